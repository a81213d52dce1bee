//===- StepTime.cpp - The time of a step of many ranks --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Report/StepTime.h"
#include "LinkClock.h"
#include "TextTable.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Phases.h"
#include "reprise/Dialect/NN/Workload.h"
#include "reprise/Dialect/RT/LaunchName.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Interfaces/CostModel.h"
#include "reprise/Interfaces/Facts.h"
#include "reprise/Report/MemoryProfile.h"
#include "reprise/Support/Format.h"
#include "reprise/Support/Modules.h"
#include "reprise/Support/RecomputeLabels.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::report;

static void add(Exchanges &exchanges, const std::string &kind,
                ExchangeSeconds seconds) {
  ExchangeSeconds &sum = exchanges[kind];
  sum.all += seconds.all;
  sum.exposed += seconds.exposed;
}

TaskSeconds &TaskSeconds::operator+=(const TaskSeconds &other) {
  forward += other.forward;
  backward += other.backward;
  weight += other.weight;
  replay += other.replay;
  update += other.update;
  for (const auto &[kind, seconds] : other.exchanges)
    add(exchanges, kind, seconds);
  return *this;
}

double StepTime::getExposed() const {
  double exposed = 0;
  for (const auto &[kind, seconds] : exchanges)
    exposed += seconds.exposed;
  return exposed;
}

/// The place of what is in module `module` and in layer `layer`, if any.
static int64_t getPlace(int64_t layer, StringRef module) {
  if (layer >= 0)
    return layer;
  return module == getName(ModuleKind::Embedding) ? kBeforeLayers
                                                  : kBehindLayers;
}

static int64_t getPlace(Operation *op) {
  nn::ScopeAttr scope = nn::getScope(op);
  return scope ? getPlace(scope.getLayer(), scope.getModule()) : kBehindLayers;
}

/// Of an exchange, what does not depend on its bytes.
static double getMessageSeconds(const CostTable &costs, Workload load) {
  if (load.work != Work::Exchange)
    return 0;
  load.sentBytes = 0;
  load.key.clear(); // What was measured is with its bytes.
  return costs.getSeconds(load);
}

//===----------------------------------------------------------------------===//
// As Megatron
//===----------------------------------------------------------------------===//

namespace {
/// Goes over a step, op by op.
class MegatronTimer {
public:
  MegatronTimer(func::FuncOp step, const CostTable &costs,
                const megatron::Options &options, ArrayRef<int64_t> chunks)
      : step(step), costs(costs), options(options), chunks(chunks),
        further(getFurtherLayers(step)) {}
  LayerSeconds time();

private:
  void addForward(Operation *op);
  void addBackward(Operation *op);
  bool isReplayed(nn::ScopeAttr scope) const;
  void shareUpdate(double seconds);

  func::FuncOp step;
  const CostTable &costs;
  const megatron::Options &options;
  ArrayRef<int64_t> chunks;
  std::set<int64_t> further; ///< Layers that predict a further token.
  LayerSeconds layers;
  /// Of the blocks of layers: what runs beside each other in backward.
  struct Beside {
    double gemms = 0, exchanges = 0;
    Exchanges kinds;

    void add(const Workload &load, double seconds) {
      exchanges += seconds;
      ::add(kinds, load.exchange, {seconds, 0});
    }
  };
  std::map<std::pair<int64_t, std::string>, Beside> blocks;
};
} // namespace

std::set<int64_t> report::getFurtherLayers(func::FuncOp step) {
  std::set<int64_t> layers;
  for (Operation &op : nn::getForward(step.getBody().front()))
    if (nn::ScopeAttr scope = nn::getScope(&op);
        scope && parseModule(scope.getModule()) == ModuleKind::FurtherToken)
      layers.insert(scope.getLayer());
  layers.erase(-1);
  return layers;
}

/// Whether Megatron replays the op of `scope`; with `block` no layer that
/// predicts a further token, whose number goes on behind the others.
bool MegatronTimer::isReplayed(nn::ScopeAttr scope) const {
  if (!scope || scope.getLayer() < 0 || options.granularity.empty())
    return false;
  if (options.granularity == "selective")
    return llvm::any_of(kRecomputeLabels, [&](const RecomputeLabel &label) {
      return llvm::is_contained(options.modules, label.name.str()) &&
             label.covers(scope.getModule());
    });
  if (options.method == "uniform")
    return true;
  int64_t layer = scope.getLayer();
  if (further.count(layer))
    return false;
  for (int64_t size : chunks) {
    if (layer < size)
      break;
    layer -= size;
  }
  return layer < options.numLayers;
}

static bool isSum(Operation *op) {
  auto part = dyn_cast<ResidualPart>(op);
  return part && part.isResidualSum();
}

static bool runsBesideGemms(Operation *op, bool isForward) {
  auto exchange = dyn_cast<SharedModelExchange>(op);
  return exchange && exchange.runsBesideGemms(isForward);
}

/// Whether `op` is in the kernel that adds to the residual stream: a bias or a
/// dropout on the way to a sum.
static bool isInSum(Operation *op) {
  auto part = dyn_cast<ResidualPart>(op);
  return part && !part.isResidualSum() &&
         llvm::any_of(op->getResult(0).getUsers(), [](Operation *user) {
           return isSum(user) || isInSum(user);
         });
}

void MegatronTimer::addForward(Operation *op) {
  if (isInSum(op))
    return;
  nn::ScopeAttr scope = nn::getScope(op);
  Workload load = nn::getWorkload(op);
  double seconds = costs.getSeconds(load);
  TaskSeconds &task = layers[getPlace(op)];
  bool replays = isReplayed(scope);
  task.forward += seconds;
  task.replay += replays ? seconds : 0;
  if (load.work != Work::Exchange)
    return;
  double all = replays ? 2 * seconds : seconds;
  add(task.exchanges, load.exchange, {all, all});
  if (scope && runsBesideGemms(op, /*isForward=*/true))
    blocks[{getPlace(op), scope.getModule().str()}].add(load, seconds);
}

void MegatronTimer::addBackward(Operation *op) {
  nn::ScopeAttr scope = nn::getScope(op);
  Workload load = nn::getWorkload(op);
  bool isOfLayer = scope && scope.getLayer() >= 0;
  // With the GEMM that makes what is added.
  if (isa<RunningSum>(op) || (isOfLayer && isSum(op)))
    return;
  double seconds = costs.getSeconds(load);
  Beside none;
  Beside &block =
      scope ? blocks[{getPlace(op), scope.getModule().str()}] : none;
  if (runsBesideGemms(op, /*isForward=*/false)) {
    block.add(load, seconds);
    return;
  }
  TaskSeconds &task = layers[getPlace(op)];
  auto gemm = dyn_cast<GemmGradient>(op);
  bool isOfWeight = gemm && gemm.isOfWeight();
  (isOfWeight ? task.weight : task.backward) += seconds;
  if (load.work == Work::Exchange)
    add(task.exchanges, load.exchange, {seconds, seconds});
  if (gemm)
    block.gemms += seconds;
}

/// The update goes by elements of parameters; each counts where it is first
/// read.
void MegatronTimer::shareUpdate(double seconds) {
  std::map<int64_t, double> elements;
  double all = 0;
  mlir::Block &body = step.getBody().front();
  for (BlockArgument argument : body.getArguments()) {
    unsigned number = argument.getArgNumber();
    auto type = dyn_cast<ShapedType>(argument.getType());
    bool isRead = step.getArgAttr(number, nn::kParameterAttr) ||
                  step.getArgAttr(number, nn::kWorkingAttr);
    if (!type || !isRead)
      continue;
    Operation *first = nullptr;
    for (Operation *user : argument.getUsers())
      if (nn::getScope(user) && (!first || user->isBeforeInBlock(first)))
        first = user;
    if (!first || isa<ParameterUpdate>(first))
      continue;
    elements[getPlace(first)] += type.getNumElements();
    all += type.getNumElements();
  }
  for (auto [place, count] : elements)
    layers[place].update = seconds * count / all;
}

LayerSeconds MegatronTimer::time() {
  auto phase = nn::StepPhase::Forward;
  double update = 0, messages = 0;
  for (Operation &op : step.getBody().front()) {
    if (std::optional<nn::StepPhase> next = nn::getPhaseBegun(&op))
      phase = *next;
    else if (!isa<CostModel>(op))
      continue;
    else if (phase == nn::StepPhase::Forward)
      addForward(&op);
    else if (phase == nn::StepPhase::Backward)
      addBackward(&op);
    else {
      Workload load = nn::getWorkload(&op);
      double seconds = costs.getSeconds(load);
      double latency = std::min(getMessageSeconds(costs, load), seconds);
      update += seconds - latency;
      messages += latency;
    }
  }
  layers[kEveryStage].update = messages;
  for (const auto &[key, block] : blocks) {
    double exposed = std::max(block.exchanges - block.gemms, 0.0);
    TaskSeconds &task = layers[key.first];
    task.backward += exposed;
    for (const auto &[kind, seconds] : block.kinds)
      add(task.exchanges, kind,
          {seconds.all, exposed * seconds.all / block.exchanges});
  }
  shareUpdate(update);
  return std::move(layers);
}

LayerSeconds report::timeAsMegatron(func::FuncOp step, const CostTable &costs,
                                    const megatron::Options &options,
                                    ArrayRef<int64_t> chunks) {
  if (step.isExternal())
    return {};
  return MegatronTimer(step, costs, options, chunks).time();
}

//===----------------------------------------------------------------------===//
// As planned
//===----------------------------------------------------------------------===//

/// Of a launch's name, "layer3.mlp.u.backward_weight".
static int64_t getPlace(StringRef name) {
  return getPlace(rt::getLayer(name), name.split('.').first);
}

LayerSeconds report::timeAsPlanned(func::FuncOp step, const CostTable &costs,
                                   const LayerSeconds &like) {
  LayerSeconds layers;
  double update = 0, all = 0;
  MemoryProfile profile(step, /*begin=*/0);
  std::vector<PositionTime> last = timeMicroBatch(profile, costs, true);
  std::vector<PositionTime> other = timeMicroBatch(profile, costs, false);
  for (auto [index, position] : llvm::enumerate(profile.getPositions())) {
    if (position.runsOnce()) {
      const auto &[seconds, load] = last[index];
      double latency = std::min(getMessageSeconds(costs, load), seconds);
      layers[kEveryStage].update += latency;
      update += seconds - latency;
      continue;
    }
    const auto &[seconds, load] = other[index];
    // What the last one waits longer for is of a step.
    layers[kEveryStage].update += last[index].seconds - seconds;
    TaskSeconds &task = layers[getPlace(position.name)];
    bool isWeight = rt::isOfWeightGradient(position.name);
    (position.phase == Phase::Forward  ? task.forward
     : position.phase == Phase::Replay ? task.replay
     : isWeight                        ? task.weight
                                       : task.backward) += seconds;
    if (load.work == Work::Exchange && position.begins < 0)
      add(task.exchanges, load.exchange, {costs.getSeconds(load), seconds});
  }
  for (const auto &[place, task] : like)
    all += place == kEveryStage ? 0 : task.update;
  for (const auto &[place, task] : like)
    if (place != kEveryStage && task.update > 0)
      layers[place].update = update * task.update / all;
  return layers;
}

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

int64_t report::getBorderBytes(func::FuncOp step) {
  for (Operation &op : nn::getForward(step.getBody().front())) {
    nn::ScopeAttr scope = nn::getScope(&op);
    if (!scope)
      continue;
    for (Value operand : op.getOperands()) {
      Operation *maker = operand.getDefiningOp();
      nn::ScopeAttr from = maker ? nn::getScope(maker) : nn::ScopeAttr();
      if (from && from.getLayer() >= 0 && from.getLayer() != scope.getLayer())
        return getTypeBytes(operand.getType());
    }
  }
  return 0;
}

/// What each chunk of the model has to do.
static std::vector<TaskSeconds> addUpChunks(const LayerSeconds &layers,
                                            const StepShape &shape) {
  auto get = [&](int64_t place) {
    auto found = layers.find(place);
    return found == layers.end() ? TaskSeconds() : found->second;
  };
  std::vector<TaskSeconds> chunks;
  int64_t layer = 0;
  for (int64_t size : shape.chunks) {
    TaskSeconds &chunk = chunks.emplace_back();
    for (int64_t end = layer + size; layer < end; ++layer)
      chunk += get(layer);
  }
  chunks.front() += get(kBeforeLayers);
  chunks.back() += get(kBehindLayers);
  return chunks;
}

/// When the last task ends.
static double getSpan(const std::vector<TaskSeconds> &chunks,
                      const StepShape &shape) {
  constexpr double kUnits = 1e9; // Nanoseconds.
  std::vector<solver::TaskTimes> times;
  for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    const TaskSeconds &task = chunks[chunk];
    double sent = chunk + 1 < chunks.size() ? shape.borderSeconds : 0;
    double sentBack = chunk > 0 ? shape.borderSeconds : 0;
    times.push_back({int64_t((task.forward + sent) * kUnits),
                     int64_t((task.replay + task.backward + sentBack) * kUnits),
                     int64_t(task.weight * kUnits)});
  }
  const solver::NamedSchedule *schedule = solver::findSchedule(shape.schedule);
  assert(schedule && !solver::check(*schedule, shape.pipeline));
  solver::ScheduleTable table =
      solver::makeTable(*schedule, shape.pipeline, {/*borderBytes=*/1});
  return solver::getSpan(table, times) / kUnits;
}

StepTime report::getStepTime(StringRef who, const LayerSeconds &layers,
                             const StepShape &shape) {
  std::vector<TaskSeconds> chunks = addUpChunks(layers, shape);
  std::vector<TaskSeconds> stages(shape.pipeline.stages);
  for (auto [number, chunk] : llvm::enumerate(chunks))
    stages[number % stages.size()] += chunk;
  const TaskSeconds &busiest =
      *llvm::max_element(stages, [](const auto &left, const auto &right) {
        return left.getTasks() < right.getTasks();
      });
  double microBatches = shape.pipeline.microBatches;
  StepTime time;
  time.who = who.str();
  time.forward = microBatches * busiest.forward;
  time.backward = microBatches * (busiest.backward + busiest.weight);
  time.replay = microBatches * busiest.replay;
  for (const auto &[kind, seconds] : busiest.exchanges)
    time.exchanges[kind] = {microBatches * seconds.all,
                            microBatches * seconds.exposed};
  double tasks = microBatches * busiest.getTasks();
  time.waiting = std::max(getSpan(chunks, shape) - tasks, 0.0);
  for (const TaskSeconds &stage : stages)
    time.update = std::max(time.update, stage.update);
  if (auto every = layers.find(kEveryStage); every != layers.end())
    time.update += every->second.update;
  return time;
}

//===----------------------------------------------------------------------===//
// Told
//===----------------------------------------------------------------------===//

/// What a reader knows an exchange as.
static std::string getTitle(StringRef exchange) {
  StringRef term = llvm::StringSwitch<StringRef>(exchange)
                       .Case("send_rows", "dispatch")
                       .Case("return_rows", "combine")
                       .Default("");
  return (term.empty() ? exchange : term + " (" + exchange + ")").str();
}

/// The exchanges of all micro-batches by what they do.
static void printExchanges(raw_ostream &os, ArrayRef<StepTime> times) {
  using Kind = TextTable::Kind;
  TextTable table({{"run by", Kind::Text},
                   {"exchange", Kind::Text},
                   {"takes", Kind::Number},
                   {"exposed", Kind::Number}});
  bool isEmpty = true;
  for (const StepTime &time : times)
    for (const auto &[kind, seconds] : time.exchanges) {
      table.add({time.who, getTitle(kind), formatSeconds(seconds.all),
                 formatSeconds(seconds.exposed)});
      isEmpty = false;
    }
  if (isEmpty)
    return;
  os << "\n";
  table.print(os);
  printText(os, "exposed is what launches wait for; the rest of an exchange "
                "runs beside them");
}

void report::printStepTimes(raw_ostream &os, ArrayRef<StepTime> times,
                            StringRef ranks, StringRef machine) {
  if (times.empty())
    return;
  os << "\n";
  printText(os,
            "a step of " + ranks.str() + ", as modelled for " + machine.str());
  using Kind = TextTable::Kind;
  TextTable table({{"run by", Kind::Text},
                   {"forward", Kind::Number},
                   {"backward", Kind::Number},
                   {"replays", Kind::Number},
                   {"exchanges", Kind::Number},
                   {"waiting", Kind::Number},
                   {"update", Kind::Number},
                   {"step", Kind::Number}});
  for (const StepTime &time : times)
    table.add({time.who, formatSeconds(time.forward),
               formatSeconds(time.backward), formatSeconds(time.replay),
               formatSeconds(time.getExposed()), formatSeconds(time.waiting),
               formatSeconds(time.update), formatSeconds(time.getSeconds())});
  table.print(os);
  printText(os,
            "forward, backward and replays are of the stage that has most "
            "to do, what launches wait for exchanges between ranks a part of "
            "them; waiting is for other stages");
  printExchanges(os, times);
}

llvm::json::Value report::describeStepTimes(ArrayRef<StepTime> times,
                                            StringRef ranks,
                                            StringRef machine) {
  if (times.empty())
    return nullptr;
  llvm::json::Array rows;
  for (const StepTime &time : times)
    rows.push_back(llvm::json::Object{
        {"who", time.who},
        {"forward", formatSeconds(time.forward)},
        {"backward", formatSeconds(time.backward)},
        {"replays", formatSeconds(time.replay)},
        {"exchanges", formatSeconds(time.getExposed())},
        {"waiting", formatSeconds(time.waiting)},
        {"update", formatSeconds(time.update)},
        {"step", formatSeconds(time.getSeconds())},
    });
  llvm::json::Object object{
      {"ranks", ranks}, {"machine", machine}, {"rows", std::move(rows)}};
  llvm::json::Array exchanges;
  for (const StepTime &time : times)
    for (const auto &[kind, seconds] : time.exchanges)
      exchanges.push_back(
          llvm::json::Object{{"who", time.who},
                             {"exchange", getTitle(kind)},
                             {"takes", formatSeconds(seconds.all)},
                             {"exposed", formatSeconds(seconds.exposed)}});
  if (!exchanges.empty())
    object["exchanges"] = llvm::json::Object{{"rows", std::move(exchanges)}};
  return object;
}

void report::writeStepTimes(llvm::json::OStream &json,
                            ArrayRef<StepTime> times) {
  json.attributeArray("step_times", [&] {
    for (const StepTime &time : times)
      json.object([&] {
        json.attribute("who", time.who);
        json.attribute("forward_seconds", time.forward);
        json.attribute("backward_seconds", time.backward);
        json.attribute("replay_seconds", time.replay);
        json.attribute("exchange_seconds", time.getExposed());
        json.attribute("waiting_seconds", time.waiting);
        json.attribute("update_seconds", time.update);
        json.attribute("seconds", time.getSeconds());
        json.attributeArray("exchanges", [&] {
          for (const auto &exchange : time.exchanges)
            json.object([&] {
              json.attribute("exchange", exchange.first);
              json.attribute("seconds", exchange.second.all);
              json.attribute("exposed_seconds", exchange.second.exposed);
            });
        });
      });
  });
}
