//===- Summary.cpp - The effective recompute plan of a step ---------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Remat/Summary.h"
#include "Decide.h"
#include "Share.h"
#include "reprise/Solver/Pipeline.h"
#include "reprise/Solver/StageMoments.h"
#include "reprise/Solver/StageSchedule.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <numeric>

using namespace mlir;
using namespace reprise;
using namespace reprise::remat;

//===----------------------------------------------------------------------===//
// From IR
//===----------------------------------------------------------------------===//

namespace {
/// What is read again of an op that is replayed, or is to be.
struct Rebuilt {
  int64_t bytes = 0, freedBytes = 0;
  bool isFree = false;
  SmallVector<Operation *> readers; // Below, without replays.
};
} // namespace

namespace {
/// Finds the ops of the forward phase that are replayed, or are to be.
class RebuiltFinder {
public:
  explicit RebuiltFinder(const Step &step)
      : step(step), pending(step.getReplayed()) {}

  LogicalResult run();
  /// Those that are found, in their order.
  llvm::MapVector<Operation *, Rebuilt> takeInOrder();
  /// For shared values, what makes them again.
  DenseMap<Value, Operation *> gathers;

private:
  using IsReader = llvm::function_ref<bool(Operation *)>;
  void add(Operation *op, OpResult value, IsReader isReader);
  void addPending(Operation *op);
  LogicalResult addReplay(Operation *replay, Operation *original);

  const Step &step;
  DenseSet<Operation *> pending; // That are to be replayed.
  llvm::MapVector<Operation *, Rebuilt> found;
  // A value may be there again twice: replayed, and on its gradient's way.
  DenseSet<Value> counted, freed;
};
} // namespace

/// Adds `value`, which is there again in place of a result of `op`.
void RebuiltFinder::add(Operation *op, OpResult value, IsReader isReader) {
  Rebuilt &rebuilt = found[op];
  int64_t bytes = getTypeBytes(value.getType());
  Value original = op->getResult(value.getResultNumber());
  if (counted.insert(original).second)
    rebuilt.bytes += bytes;
  auto readers = llvm::make_filter_range(value.getUsers(), isReader);
  if (!readers.empty() && freed.insert(original).second)
    rebuilt.freedBytes += bytes;
  llvm::append_range(rebuilt.readers, readers);
}

void RebuiltFinder::addPending(Operation *op) {
  auto isPending = [&](Operation *user) { return pending.contains(user); };
  auto isBelow = [&](Operation *user) { return step.isBelow(user); };
  // What other replays read has one of its own.
  if (step.isFree(op) && llvm::none_of(op->getUsers(), isPending))
    found[op].isFree = true;
  for (OpResult result : op->getResults())
    if (step.isDropped(result) &&
        llvm::any_of(result.getUsers(), [&](Operation *user) {
          return isBelow(user) || isPending(user);
        }))
      add(op, result, isBelow);
}

LogicalResult RebuiltFinder::addReplay(Operation *replay, Operation *original) {
  if (!original || !original->getAttrOfType<RecomputeAttr>(kDecisionAttr))
    return replay->emitOpError("needs an original that is recomputed to be a "
                               "replay of, but there is none");
  auto [entry, isNew] = found.insert({original, Rebuilt()});
  entry->second.isFree =
      replay->hasAttr(kFreeAttr) && (isNew || entry->second.isFree);
  for (OpResult result : replay->getResults())
    if (!result.use_empty())
      add(original, result, [](Operation *user) { return !isReplay(user); });
  return success();
}

LogicalResult RebuiltFinder::run() {
  for (Operation *op : pending)
    addPending(op);
  Originals originals(step);
  for (Operation *op : step.below) {
    if (!isReplay(op))
      continue;
    if (Value whole = originals.findShared(op))
      gathers[whole] = op;
    else if (failed(addReplay(op, originals.find(op))))
      return failure();
  }
  return success();
}

llvm::MapVector<Operation *, Rebuilt> RebuiltFinder::takeInOrder() {
  auto ordered = found.takeVector();
  llvm::sort(ordered, [&](const auto &a, const auto &b) {
    return step.positions.lookup(a.first) < step.positions.lookup(b.first);
  });
  for (auto &entry : ordered)
    found.insert(std::move(entry));
  return std::move(found);
}

static Origin getOrigin(const Step &step, OpResult value) {
  Operation *op = value.getOwner();
  return {nn::getScopeName(nn::getScope(op)), step.positions.lookup(op),
          value.getResultNumber(), op->getNumResults()};
}

/// "gelu_backward of g reads it", "replay of u reads it, and 2 more": the first
/// op of backward that does; or else the first replay, one of the forward ops
/// in `replays`.
static std::string describeReaders(SmallVector<Operation *> readers,
                                   SmallVector<Operation *> replays) {
  auto isBefore = [](Operation *a, Operation *b) {
    return a != b && a->isBeforeInBlock(b);
  };
  for (auto *ops : {&readers, &replays}) {
    llvm::sort(*ops, isBefore);
    ops->erase(llvm::unique(*ops), ops->end());
  }
  if (readers.empty() && replays.empty())
    return "";
  Operation *first = readers.empty() ? replays.front() : readers.front();
  std::string text =
      readers.empty() ? "replay" : first->getName().stripDialect().str();
  nn::ScopeAttr scope = nn::getScope(first);
  if (scope && !scope.getValue().empty())
    text += " of " + scope.getValue().str();
  text += " reads it";
  if (size_t others = readers.size() + replays.size() - 1)
    text += ", and " + std::to_string(others) + " more";
  return text;
}

solver::PipelineShape remat::getPipelineShape(func::FuncOp step, int64_t stages,
                                              int64_t virtualStages) {
  solver::PipelineShape shape;
  shape.stages = stages;
  shape.virtualStages = virtualStages;
  // Without a pipeline, micro-batches come one after another.
  if (stages == 1)
    return shape;
  if (auto count = step->getAttrOfType<IntegerAttr>(nn::kMicroBatchesAttr))
    shape.microBatches = count.getInt();
  auto module = step->getParentOfType<ModuleOp>();
  auto name = module->getAttrOfType<StringAttr>(nn::kScheduleAttr);
  auto group = module->getAttrOfType<IntegerAttr>(nn::kMicroBatchGroupAttr);
  const solver::NamedSchedule *named =
      name ? solver::findSchedule(name.str()) : nullptr;
  solver::PipelineShape scheduled = shape;
  if (group)
    scheduled.microBatchGroup = group.getInt();
  if (!named || solver::check(*named, scheduled))
    return shape;
  scheduled.schedule = named->name;
  return scheduled;
}

/// Says which stage and chunk each layer is of, and what the stages keep.
static LogicalResult addStages(func::FuncOp function, const Chunks &chunks,
                               Summary &summary) {
  solver::PipelineShape shape =
      getPipelineShape(function, chunks.stages, chunks.getNumVirtualStages());
  if (std::optional<std::string> fault = solver::check(shape))
    return function.emitError("has no pipeline: ") << *fault;
  solver::PipelineSchedule schedule = solver::simulate(shape);
  if (schedule.empty())
    return function.emitError("needs a multiple of its ")
           << shape.stages << " pipeline stages as micro-batches, for "
           << shape.virtualStages
           << " chunks on each stage wait for each other forever with "
           << shape.microBatches;

  std::vector<int64_t> bytes(chunks.layers.size(), 0);
  for (LayerPlan &plan : summary.layers) {
    int64_t chunk = plan.layer < 0 ? chunks.layers.size() - 1
                                   : chunks.getChunkOf(plan.layer);
    plan.stage = chunk % shape.stages;
    plan.chunk = chunk / shape.stages;
    bytes[chunk] += plan.getSavedBytes();
  }
  summary.stages.resize(shape.stages);
  int64_t firstLayer = 0;
  for (auto [chunk, numLayers] : llvm::enumerate(chunks.layers)) {
    summary.stages[chunk % shape.stages].chunks.push_back(
        {firstLayer, numLayers, bytes[chunk], 0});
    firstLayer += numLayers;
  }
  for (auto [stage, tasks] : llvm::zip(summary.stages, schedule)) {
    std::vector<int64_t> weights;
    for (const ChunkPlan &chunk : stage.chunks)
      weights.push_back(chunk.savedBytes);
    solver::InFlight peak = solver::getPeak(tasks, weights);
    for (auto [chunk, count] : llvm::zip(stage.chunks, peak.microBatches))
      chunk.inFlight = count;
    stage.waiting = solver::getMostWaiting(tasks);
  }
  return success();
}

/// From segment to its first and last layer.
using Segments = std::map<int64_t, std::pair<int64_t, int64_t>>;

static void addLayer(Segments &segments, int64_t segment, int64_t layer) {
  auto &[first, last] =
      segments.try_emplace(segment, layer, layer).first->second;
  first = std::min(first, layer);
  last = std::max(last, layer);
}

/// Whose label an op is replayed for. What would be free but for `replays` that
/// read it is replayed for the first of them that is for something else.
static std::string getLabel(RecomputeAttr decision, bool isFree,
                            ArrayRef<Operation *> replays) {
  if (!isFree && decision.getLabel() == kFreeLabel)
    for (Operation *reader : replays)
      if (auto other = reader->getAttrOfType<RecomputeAttr>(kDecisionAttr);
          other && other.getLabel() != kFreeLabel)
        return other.getLabel().str();
  return decision.getLabel().str();
}

/// What is kept of `value`, if backward or a replay reads it. `gather` makes it
/// whole again, or is null.
static std::optional<SavedValue>
getSaved(func::FuncOp function, const Step &step, OpResult value,
         const llvm::MapVector<Operation *, Rebuilt> &replayed,
         Operation *gather) {
  SmallVector<Operation *> readers, replays;
  auto isReader = [&](Operation *user) {
    return step.isBelow(user) && !isa<FenceOp>(user);
  };
  for (Operation *user : value.getUsers()) {
    if (replayed.contains(user))
      replays.push_back(user);
    else if (isReader(user))
      readers.push_back(user);
  }
  if (gather)
    for (Operation *user : gather->getUsers())
      if (isReader(user) && !isReplay(user))
        readers.push_back(user);
  if ((readers.empty() && replays.empty()) || step.isDropped(value))
    return std::nullopt;
  SavedValue saved = {getHome(step, value).second,
                      getTypeBytes(value.getType()),
                      value.getType(),
                      getOrigin(step, value),
                      false,
                      describeReaders(readers, replays)};
  Attribute decision = value.getOwner()->getAttr(kDecisionAttr);
  saved.isDecided = isa_and_present<SaveAttr, ShareAttr>(decision);
  if (auto save = dyn_cast_if_present<SaveAttr>(decision))
    saved.reason = save.getReason().str();
  if (auto share = dyn_cast_if_present<ShareAttr>(decision)) {
    saved.axis = share.getAxis().str();
    saved.bytes /= countRanks(function, share.getAxis());
    saved.origin.scope += ".slice"; // Of which there is the part alone.
    saved.reason =
        share.getReason().empty()
            ? "input of segment " + std::to_string(share.getSegment())
            : share.getReason().str();
  }
  return saved;
}

FailureOr<DenseSet<Operation *>> remat::findFree(func::FuncOp function) {
  FailureOr<Step> step = getStep(function);
  if (failed(step))
    return failure();
  DenseSet<Operation *> free;
  if (step->backward)
    for (Operation *op : step->forward)
      if (step->isFree(op))
        free.insert(op);
  return free;
}

namespace {
/// Adds up what a step keeps and replays, layer by layer.
class Summarizer {
public:
  Summarizer(func::FuncOp function, const Step &step, RebuiltFinder &finder)
      : function(function), step(step), gathers(finder.gathers),
        replayed(finder.takeInOrder()) {}

  Summary run();

private:
  void addSaved(OpResult value);
  void addReplayed(Operation *op, Rebuilt &rebuilt);
  void addSegment(Operation *op);
  void addSkipped(Operation *op);
  void takeLayers();

  func::FuncOp function;
  const Step &step;
  const DenseMap<Value, Operation *> &gathers;
  llvm::MapVector<Operation *, Rebuilt> replayed;
  std::map<int64_t, LayerPlan> layers; // -1: what is in none.
  Segments segments;
  std::optional<int64_t> idle; // The segment that is not replayed.
  Summary summary;
};
} // namespace

void Summarizer::addSaved(OpResult value) {
  std::optional<SavedValue> saved =
      getSaved(function, step, value, replayed, gathers.lookup(value));
  if (!saved)
    return;
  summary.savedBytes += saved->bytes;
  layers[getHome(step, value).first].saved.push_back(std::move(*saved));
}

void Summarizer::addReplayed(Operation *op, Rebuilt &rebuilt) {
  auto decision = op->getAttrOfType<RecomputeAttr>(kDecisionAttr);
  int64_t layer = getLayer(op), segment = decision.getSegment();
  int64_t flops = getFlops(op);
  OpResult first = step.getFirstDropped(op);
  SmallVector<Operation *> replays;
  for (Operation *user : op->getUsers())
    if (replayed.contains(user))
      replays.push_back(user);
  LayerPlan &plan = layers[layer];
  (rebuilt.isFree ? plan.free : plan.recomputed)
      .push_back({getValueName(first), op->getName().getStringRef().str(),
                  getLabel(decision, rebuilt.isFree, replays), segment,
                  rebuilt.bytes, flops, rebuilt.freedBytes, first.getType(),
                  getOrigin(step, first),
                  describeReaders(rebuilt.readers, replays)});
  if (rebuilt.isFree) {
    summary.freeBytes += rebuilt.bytes;
    return;
  }
  summary.replayFlops += flops;
  // What is made in rounds is dropped in any plan, and of no segment.
  if (!isMadeInRounds(op))
    addLayer(segments, segment, layer);
}

/// Notes the segment of what is kept although it is within one.
void Summarizer::addSegment(Operation *op) {
  auto kept = op->getAttrOfType<SaveAttr>(kDecisionAttr);
  if (!kept || kept.getSegment() < 0)
    return;
  addLayer(segments, kept.getSegment(), getLayer(op));
  idle = kept.getSegment();
}

/// Notes what is decided, but needs no replay.
void Summarizer::addSkipped(Operation *op) {
  auto decision = op->getAttrOfType<RecomputeAttr>(kDecisionAttr);
  auto plan = layers.find(getLayer(op));
  if (decision && plan != layers.end() && !replayed.contains(op) &&
      op->getNumResults() != 0)
    plan->second.skipped.push_back(
        {getValueName(step.getFirstDropped(op)), decision.getLabel().str()});
}

/// What is in no layer comes last.
void Summarizer::takeLayers() {
  for (auto &[layer, plan] : layers) {
    plan.layer = layer;
    if (layer >= 0)
      summary.layers.push_back(std::move(plan));
  }
  if (auto rest = layers.find(-1); rest != layers.end())
    summary.layers.push_back(std::move(rest->second));
}

Summary Summarizer::run() {
  for (Operation *op : step.forward)
    for (OpResult value : op->getResults())
      addSaved(value);
  for (auto &[op, rebuilt] : replayed)
    addReplayed(op, rebuilt);
  for (Operation *op : step.forward) {
    addSegment(op);
    addSkipped(op);
  }
  takeLayers();
  for (auto &[segment, range] : segments)
    summary.segments.push_back(range);
  if (idle)
    summary.idleSegment = segments[*idle];
  return std::move(summary);
}

FailureOr<Summary> remat::summarize(func::FuncOp function) {
  FailureOr<Step> step = getStep(function);
  if (failed(step))
    return failure();
  if (!step->backward)
    return Summary();
  FailureOr<Chunks> chunks = getChunks(function, *step);
  if (failed(chunks) || failed(step->verifyDecisions()))
    return failure();
  RebuiltFinder finder(*step);
  if (failed(finder.run()))
    return failure();
  Summary summary = Summarizer(function, *step, finder).run();
  if (failed(addStages(function, *chunks, summary)))
    return failure();
  return summary;
}

int64_t StagePlan::getActivationBytes() const {
  int64_t bytes = 0;
  for (const ChunkPlan &chunk : chunks)
    bytes += chunk.inFlight * chunk.savedBytes;
  return bytes;
}

int64_t LayerPlan::getSavedBytes() const {
  int64_t bytes = 0;
  for (const SavedValue &value : saved)
    bytes += value.bytes;
  return bytes;
}

int64_t LayerPlan::getReplayFlops() const {
  int64_t flops = 0;
  for (const Replay &replay : recomputed)
    flops += replay.flops;
  return flops;
}

//===----------------------------------------------------------------------===//
// To text
//===----------------------------------------------------------------------===//

/// "12 B", "1.5 MiB"; "12 FLOP", "1.5 GFLOP".
static std::string formatScaled(int64_t number, double base,
                                ArrayRef<StringRef> units) {
  std::string text;
  llvm::raw_string_ostream os(text);
  double scaled = number;
  size_t unit = 0;
  for (; scaled >= base && unit + 1 < units.size(); ++unit)
    scaled /= base;
  if (unit == 0)
    os << number;
  else
    os << llvm::format("%.1f", scaled);
  os << " " << units[unit];
  return text;
}

std::string remat::formatBytes(int64_t bytes) {
  return formatScaled(bytes, 1024, {"B", "KiB", "MiB", "GiB", "TiB"});
}

std::string remat::formatFlops(int64_t flops) {
  return formatScaled(flops, 1000,
                      {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"});
}

std::string remat::formatLayers(ArrayRef<int64_t> layers) {
  constexpr size_t mostRanges = 4;
  if (layers.empty())
    return "no layers";
  if (layers.front() < 0)
    return "outside layers";
  std::string text = layers.size() == 1 ? "layer " : "layers ";
  size_t ranges = 0;
  for (size_t first = 0; first < layers.size(); ++ranges) {
    size_t last = first;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1)
      ++last;
    if (ranges == mostRanges)
      return text + ", ... (" + std::to_string(layers.size()) + " layers)";
    text += (ranges ? ", " : "") + std::to_string(layers[first]);
    if (last > first)
      text += "-" + std::to_string(layers[last]);
    first = last + 1;
  }
  return text;
}

/// What is kept and what is recomputed, without the layers that it is true of;
/// `each` follows every amount.
static std::string formatPlan(const LayerPlan &plan, StringRef each) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::MapVector<StringRef, LayerPlan> kept; // By the axis of parts.
  for (const SavedValue &value : plan.saved)
    kept[value.axis].saved.push_back(value);
  if (kept.empty())
    os << "save nothing";
  for (auto &[axis, part] : kept) {
    os << (&part == &kept.front().second ? "" : "; ")
       << (axis.empty() ? "save" : "share");
    for (const SavedValue &value : part.saved)
      os << " " << value.name;
    os << " (" << formatBytes(part.getSavedBytes()) << each << ")";
    if (!axis.empty())
      os << " over " << axis;
  }
  if (!plan.free.empty()) {
    int64_t bytes = 0;
    os << "; free";
    for (const Replay &value : plan.free) {
      os << " " << value.name;
      bytes += value.bytes;
    }
    os << " (" << formatBytes(bytes) << each << ")";
  }
  llvm::MapVector<StringRef, LayerPlan> labels;
  for (const Replay &replay : plan.recomputed)
    labels[replay.label].recomputed.push_back(replay);
  for (auto &[label, part] : labels) {
    int64_t bytes = 0;
    os << "; recompute";
    llvm::StringSet<> named; // Rounds of experts have the same names.
    for (const Replay &replay : part.recomputed) {
      if (named.insert(replay.name).second)
        os << " " << replay.name;
      bytes += replay.bytes;
    }
    os << " (" << formatBytes(bytes) << ", "
       << formatFlops(part.getReplayFlops()) << each << ") for " << label;
  }
  return text;
}

static SmallVector<int64_t> listLayers(int64_t first, int64_t last) {
  SmallVector<int64_t> layers(last - first + 1);
  std::iota(layers.begin(), layers.end(), first);
  return layers;
}

/// "layers 0-1, 3 micro-batches of 512.0 KiB; layers 4-5, 2 of 512.0 KiB: 2.5
/// MiB in flight"; where gradients of weights have tasks of their own, ",
/// beside what gradients of weights of 2 wait with".
static std::string formatStage(const StagePlan &stage) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const ChunkPlan &chunk : stage.chunks) {
    SmallVector<int64_t> layers =
        listLayers(chunk.firstLayer, chunk.firstLayer + chunk.numLayers - 1);
    os << (&chunk == &stage.chunks.front() ? "" : "; ") << formatLayers(layers)
       << ", " << chunk.inFlight << " micro-batch"
       << (chunk.inFlight == 1 ? "" : "es") << " of "
       << formatBytes(chunk.savedBytes);
  }
  os << ": " << formatBytes(stage.getActivationBytes()) << " in flight";
  if (stage.waiting)
    os << ", beside what gradients of weights of " << stage.waiting
       << " wait with";
  return text;
}

void Summary::print(llvm::raw_ostream &os) const {
  // Classes of equal layers, by the text that they share, in order of their
  // first layers; what is in no layer is a class of its own.
  SmallVector<SmallVector<int64_t>> classes;
  SmallVector<const LayerPlan *> plans;
  std::map<std::pair<bool, std::string>, size_t> numbers;
  for (const LayerPlan &plan : layers) {
    auto [found, isNew] = numbers.try_emplace(
        {plan.layer < 0, formatPlan(plan, "")}, classes.size());
    if (isNew) {
      classes.emplace_back();
      plans.push_back(&plan);
    }
    classes[found->second].push_back(plan.layer);
  }
  for (auto [plan, layers] : llvm::zip(plans, classes))
    os << formatLayers(layers) << ": "
       << formatPlan(*plan, layers.size() > 1 ? " each" : "") << "\n";
  if (!layers.empty())
    os << "in all: save " << formatBytes(savedBytes) << ", recompute "
       << formatFlops(replayFlops);
  if (!layers.empty())
    os << (freeBytes ? ", free " + formatBytes(freeBytes) : "") << "\n";
  if (idleSegment)
    os << "kept whole: "
       << formatLayers(listLayers(idleSegment->first, idleSegment->second))
       << ", whose replay would free nothing at the peak\n";
  if (stages.size() > 1)
    for (auto [number, stage] : llvm::enumerate(stages))
      os << "stage " << number << ": " << formatStage(stage) << "\n";
}
