//===- StageStep.cpp - The step of one stage of a pipeline ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StageStep.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/ABI/Lanes.h"
#include "reprise/Dialect/NN/Phases.h"
#include "reprise/Dialect/NN/Schedules.h"
#include "reprise/Dialect/NN/Terms.h"
#include "reprise/Interfaces/CostModel.h"
#include "reprise/Support/Borders.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;
using namespace reprise::stages;

static constexpr StringLiteral kInputs[] = {"tokens", "targets", "rng"};
static constexpr StringLiteral kLossSum = "loss_sum", kLoss = "loss";

//===----------------------------------------------------------------------===//
// What chunks have
//===----------------------------------------------------------------------===//

static ParameterAttr getParameter(func::FuncOp function, unsigned index) {
  return function.getArgAttrOfType<ParameterAttr>(index, kParameterAttr);
}

llvm::SetVector<StringRef> stages::findTied(ArrayRef<func::FuncOp> chunks) {
  auto find = [](func::FuncOp chunk) {
    llvm::SetVector<StringRef> names;
    for (unsigned index = 0; index < chunk.getNumArguments(); ++index)
      if (ParameterAttr parameter = getParameter(chunk, index);
          parameter && !parameter.getFrozen())
        names.insert(parameter.getName());
    return names;
  };
  llvm::SetVector<StringRef> tied = find(chunks.front());
  llvm::SetVector<StringRef> last = find(chunks.back());
  tied.remove_if([&](StringRef name) { return !last.contains(name); });
  return tied;
}

/// No other parameter is trained on two chunks: its sums would be on stages
/// that meet in no sum.
static LogicalResult checkShared(const Chunks &chunks) {
  llvm::StringMap<int64_t> owners;
  for (auto [chunk, one] : llvm::enumerate(chunks.steps)) {
    func::FuncOp step = one;
    for (unsigned index = 0; index < step.getNumArguments(); ++index) {
      ParameterAttr parameter = getParameter(step, index);
      if (!parameter || parameter.getFrozen() ||
          chunks.tied.contains(parameter.getName()))
        continue;
      auto [other, isNew] = owners.try_emplace(parameter.getName(), chunk);
      if (!isNew)
        return step.emitError("needs a parameter that is trained on two chunks "
                              "to be on the first and the last, but '")
               << parameter.getName() << "' is on chunks " << other->second
               << " and " << chunk;
    }
  }
  return success();
}

pipe::StageOp stages::findStage(pipe::ScheduleOp schedule, int64_t number) {
  for (auto stage : schedule.getBody().getOps<pipe::StageOp>())
    if (int64_t(stage.getNumber()) == number)
      return stage;
  return {};
}

/// What a chunk passes on, or back, is what the next one reads.
static LogicalResult checkBorders(ArrayRef<func::FuncOp> steps) {
  auto check = [](func::FuncOp from, func::FuncOp to, StringRef role) {
    SmallVector<Type> made = getOutputTypes(from, role);
    SmallVector<Type> read = getInputTypes(to, role);
    if (made.empty() || read.empty() || made == read)
      return success();
    return LogicalResult(to.emitError("needs to read as '")
                         << role << "' what the chunk beside it makes, " << made
                         << ", but reads " << read);
  };
  for (auto [front, behind] : llvm::zip(steps.drop_back(), steps.drop_front()))
    if (failed(check(front, behind, kBorder)) ||
        failed(check(behind, front, kBorderGradient)))
      return failure();
  return success();
}

static StringAttr getMeasure(func::FuncOp step, unsigned result) {
  return step.getResultAttrOfType<StringAttr>(result, kMeasureAttr);
}

/// Those of the whole model are in its order, and sums of them behind these.
static void findMeasures(Chunks &chunks) {
  auto module = chunks.steps.front()->getParentOfType<ModuleOp>();
  if (auto names = module->getAttrOfType<ArrayAttr>(kMeasuresAttr))
    for (auto name : names.getAsRange<StringAttr>())
      chunks.measures[name];
  for (func::FuncOp step : chunks.steps) {
    for (unsigned index = 0; index < step.getNumArguments(); ++index)
      if (auto name = step.getArgAttrOfType<StringAttr>(index, kMeasureAttr)) {
        Measured &measured = chunks.measures[name];
        measured.type = step.getArgumentTypes()[index];
        measured.argument = step.getArgAttrDict(index);
      }
    for (unsigned index = 0; index < step.getNumResults(); ++index)
      if (StringAttr name = getMeasure(step, index))
        chunks.measures[name].result = step.getResultAttrDict(index);
  }
  chunks.measures.remove_if([](auto &one) { return !one.second.result; });
}

static bool isBackward(Operation &op) {
  return begins(&op, StepPhase::Backward);
}

static LogicalResult checkStep(func::FuncOp step, int64_t microBatches) {
  if (!step.getBody().hasOneBlock() ||
      llvm::count_if(step.getOps(), isBackward) != 1)
    return step.emitError("needs one block with one nn.backward to be a chunk "
                          "of a pipeline");
  if (int64_t groups = getReductionGroups(step);
      groups < 1 || microBatches % groups != 0)
    return step.emitError("needs groups of micro-batches of equal size, but "
                          "has ")
           << groups << " of " << microBatches << " micro-batches";
  auto count = step->getAttrOfType<IntegerAttr>(kMicroBatchesAttr);
  int64_t found = count ? count.getInt() : 1;
  if (found == microBatches)
    return success();
  return step.emitError("needs the ")
         << microBatches << " micro-batches of the schedule, but is for "
         << found;
}

FailureOr<Chunks> stages::findChunks(ModuleOp module,
                                     pipe::ScheduleOp schedule) {
  Chunks chunks;
  chunks.microBatches = schedule.getMicroBatches();
  int64_t count = schedule.getVirtualStages() *
                  llvm::range_size(schedule.getBody().getOps<pipe::StageOp>());
  for (int64_t number = 0; number < count; ++number) {
    std::string name = "chunk" + std::to_string(number);
    auto chunk = module.lookupSymbol<ModuleOp>(name);
    auto step = chunk ? chunk.lookupSymbol<func::FuncOp>(kStepFunction)
                      : func::FuncOp();
    if (!step)
      return schedule.emitOpError("needs a module @")
             << name << " with a function @step, for " << count << " chunks";
    if (failed(checkStep(step, chunks.microBatches)))
      return failure();
    for (unsigned index = 0; index < step.getNumArguments(); ++index)
      if (StringRef input = getInput(step, index);
          llvm::is_contained(kInputs, input))
        chunks.inputs[input] = step.getArgumentTypes()[index];
    chunks.steps.push_back(step);
  }
  chunks.groups = getReductionGroups(chunks.steps.front());
  for (func::FuncOp step : chunks.steps)
    if (int64_t groups = getReductionGroups(step); groups != chunks.groups)
      return step.emitError("needs the ")
             << chunks.groups << " groups of micro-batches of chunk 0, but has "
             << groups;
  if (failed(checkBorders(chunks.steps)))
    return failure();
  for (func::FuncOp step : chunks.steps)
    chunks.lanes.add(step);
  constexpr int64_t kMostTypes =
      1 + (REPRISE_MOST_LANES - REPRISE_LANE_FURTHER) / 2;
  if (chunks.lanes.countTypes() > kMostTypes)
    return module.emitError("needs values of at most ")
           << kMostTypes << " types to cross borders, but got those of "
           << chunks.lanes.countTypes();
  chunks.tied = findTied(chunks.steps);
  findMeasures(chunks);
  if (failed(checkShared(chunks)))
    return failure();
  return chunks;
}

//===----------------------------------------------------------------------===//
// The signature
//===----------------------------------------------------------------------===//

StageStep::StageStep(const Chunks &chunks, pipe::ScheduleOp schedule,
                     pipe::StageOp stage)
    : chunks(chunks), schedule(schedule), stage(stage),
      splits(!stage.getBody().getOps<pipe::BackwardWeightOp>().empty()),
      builder(schedule.getContext()) {}

Value StageStep::addArgument(Type type, DictionaryAttr role) {
  attributes.push_back(role);
  return block->addArgument(type, step.getLoc());
}

/// A tied parameter is the first stage's. The other's copy has no place in
/// norms.
bool StageStep::isHome(StringRef parameter) {
  return stage.getNumber() == 0 || !chunks.tied.contains(parameter);
}

/// Only the last stage has a loss.
bool StageStep::hasLoss() {
  int64_t numStages = chunks.steps.size() / schedule.getVirtualStages();
  return int64_t(stage.getNumber()) + 1 == numStages;
}

/// What the stage says of a parameter that a chunk has with `role`.
DictionaryAttr StageStep::getOwnRole(DictionaryAttr role,
                                     ParameterAttr parameter) {
  if (!parameter || !chunks.tied.contains(parameter.getName()))
    return role;
  NamedAttrList entries(role);
  int64_t last = chunks.steps.size() / schedule.getVirtualStages() - 1;
  if (last == 0)
    return role;
  entries.set(kSumStagesAttr, builder.getDenseI64ArrayAttr({0, last}));
  auto order = role.getAs<DenseI64ArrayAttr>(kOrderAttr);
  if (order && !isHome(parameter.getName()))
    entries.set(kOrderAttr,
                builder.getDenseI64ArrayAttr({order[0], /*place=*/-1}));
  return entries.getDictionary(builder.getContext());
}

/// What lives from step to step, in the order in which chunks have it.
void StageStep::addParameters(func::FuncOp chunk) {
  for (unsigned index = 0; index < chunk.getNumArguments(); ++index) {
    DictionaryAttr role = chunk.getArgAttrDict(index);
    ParameterAttr parameter = getParameter(chunk, index);
    Value &argument = arguments[role];
    bool outlivesStep = parameter || role.contains(kRotaryAttr);
    if (argument || !outlivesStep)
      continue;
    argument = addArgument(chunk.getArgumentTypes()[index],
                           getOwnRole(role, parameter));
  }
}

void StageStep::addArguments() {
  SmallVector<func::FuncOp> own;
  int64_t numStages = chunks.steps.size() / schedule.getVirtualStages();
  for (size_t chunk = stage.getNumber(); chunk < chunks.steps.size();
       chunk += numStages)
    own.push_back(chunks.steps[chunk]);
  for (StringRef name : kInputs)
    for (int64_t i = 0; chunks.inputs.contains(name) && i < chunks.microBatches;
         ++i)
      inputs[name].push_back(addArgument(
          chunks.inputs.lookup(name),
          builder.getDictionaryAttr(
              {builder.getNamedAttr(kInputAttr, builder.getStringAttr(name)),
               builder.getNamedAttr(kMicroBatchAttr,
                                    builder.getI64IntegerAttr(i))})));
  llvm::for_each(own, [&](func::FuncOp chunk) { addParameters(chunk); });
  for (func::FuncOp chunk : own)
    for (unsigned index = 0; index < chunk.getNumArguments(); ++index)
      if (auto name = chunk.getArgAttrOfType<StringAttr>(index, kGradientAttr))
        if (Value &sum = sums[name]; !sum)
          sum = addArgument(chunk.getArgumentTypes()[index],
                            chunk.getArgAttrDict(index));
  loss = addArgument(RankedTensorType::get({}, builder.getF32Type()),
                     builder.getDictionaryAttr(builder.getNamedAttr(
                         kInputAttr, builder.getStringAttr(kLossSum))));
  for (const auto &[name, measured] : chunks.measures)
    measures[name] = addArgument(measured.type, measured.argument);
  for (func::FuncOp chunk : own)
    findOwnMeasures(chunk);
  addPartials();
}

/// Notes what a chunk makes of what it measures. What it returns as it was is
/// made of others at the end.
void StageStep::findOwnMeasures(func::FuncOp chunk) {
  Operation *exit = chunk.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(exit->getOperands()))
    if (StringAttr name = getMeasure(chunk, index);
        name && value.getDefiningOp())
      ownMeasures.insert(name);
}

/// Room for sums of groups that wait for others.
void StageStep::addPartials() {
  auto add = [&](StringAttr name, Type type) {
    for (unsigned level = 0; level < getPartialLevels(chunks.groups); ++level)
      partials[name].push_back(addArgument(
          type, builder.getDictionaryAttr(builder.getNamedAttr(
                    kPartialAttr, PartialAttr::get(builder.getContext(),
                                                   name.getValue(), level)))));
  };
  for (auto &[name, sum] : sums)
    add(name, sum.getType());
  if (hasLoss())
    add(builder.getStringAttr(kLoss), loss.getType());
  for (auto &[name, value] : measures)
    if (ownMeasures.contains(name))
      add(name, value.getType());
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

StageStep::Pass &StageStep::getPass(int64_t chunk, int64_t microBatch) {
  return passes[{chunk, microBatch}];
}

static Operation *getBackward(func::FuncOp chunk) {
  return findPhase(chunk, StepPhase::Backward);
}

/// Whether a chunk makes some of what is measured.
static bool isMeasuring(func::FuncOp chunk) {
  Operation *exit = chunk.getBody().front().getTerminator();
  return llvm::any_of(llvm::enumerate(exit->getOperands()), [&](auto each) {
    return getMeasure(chunk, each.index()) && each.value().getDefiningOp();
  });
}

/// The next of what was received, or null.
static Value takeFirst(ArrayRef<Value> &open) {
  if (open.empty())
    return {};
  Value first = open.front();
  open = open.drop_front();
  return first;
}

LogicalResult StageStep::goForward(pipe::ForwardOp task) {
  func::FuncOp chunk = chunks.steps[task.getChunk()];
  Pass &pass = getPass(task.getChunk(), task.getMicroBatch());
  ArrayRef<Value> open = pass.inputs;
  for (BlockArgument argument : chunk.getArguments()) {
    unsigned index = argument.getArgNumber();
    StringRef input = getInput(chunk, index);
    Value value = arguments.lookup(chunk.getArgAttrDict(index));
    if (inputs.contains(input))
      value = inputs[input][task.getMicroBatch()];
    else if (input == kBorder)
      value = takeFirst(open);
    else if (input == kLossSum)
      value = loss;
    else if (auto name =
                 chunk.getArgAttrOfType<StringAttr>(index, kMeasureAttr))
      value = measures.lookup(name);
    if (input == kBorder && !value)
      return task.emitOpError("needs what the chunk before passes on, but it "
                              "is not there");
    if (value)
      pass.values.map(argument, value);
  }
  int64_t microBatch = task.getMicroBatch();
  if (isMeasuring(chunk) && nextMeasured[task.getChunk()]++ != microBatch)
    return task.emitOpError("needs micro-batches in their order, since it "
                            "measures, but got micro-batch ")
           << microBatch << " behind " << nextMeasured[task.getChunk()] - 1
           << " others";
  ForwardOp::create(builder, task.getLoc());
  Operation *end = getBackward(chunk);
  for (Operation &op : chunk.getBody().front()) {
    if (&op == end)
      break;
    builder.clone(op, pass.values);
  }
  Operation *exit = chunk.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(exit->getOperands())) {
    if (getOutput(chunk, index) == kBorder)
      pass.passedOn.push_back(pass.values.lookup(value));
    // With a head in parts the loss is made in the backward task.
    Operation *maker = value.getDefiningOp();
    if (maker && maker->isBeforeInBlock(end))
      takeShown(chunk, index, pass.values.lookup(value), task.getMicroBatch());
  }
  return success();
}

/// The ops below nn.backward that what is passed back depends on.
static DenseSet<Operation *> findPassedBack(func::FuncOp chunk) {
  Operation *begin = getBackward(chunk);
  Operation *exit = chunk.getBody().front().getTerminator();
  DenseSet<Operation *> found;
  SmallVector<Value> open;
  for (auto [index, value] : llvm::enumerate(exit->getOperands()))
    if (getOutput(chunk, index) == kBorderGradient)
      open.push_back(value);
  while (!open.empty()) {
    Operation *maker = open.pop_back_val().getDefiningOp();
    if (maker && begin->isBeforeInBlock(maker) && found.insert(maker).second)
      llvm::append_range(open, maker->getOperands());
  }
  return found;
}

/// Makes what is passed back, and unless that is a task of its own all else.
LogicalResult StageStep::goBackward(pipe::BackwardOp task) {
  func::FuncOp chunk = chunks.steps[task.getChunk()];
  Pass &pass = getPass(task.getChunk(), task.getMicroBatch());
  ArrayRef<Value> open = pass.gradients;
  for (BlockArgument argument : chunk.getArguments())
    if (getInput(chunk, argument.getArgNumber()) == kBorderGradient) {
      Value gradient = takeFirst(open);
      if (!gradient)
        return task.emitOpError("needs the gradient of what the chunk passes "
                                "on, but it is not there");
      pass.values.map(argument, gradient);
    }
  BackwardOp::create(builder, task.getLoc());
  if (!splits) {
    addGradients(task.getChunk(), task.getMicroBatch());
  } else {
    mapSums(chunk, pass);
    pass.below = findPassedBack(chunk);
    for (Operation &op : chunk.getBody().front())
      if (pass.below.contains(&op))
        builder.clone(op, pass.values);
    takeSums(chunk, pass, task.getMicroBatch(),
             [&](Operation *op) { return pass.below.contains(op); });
  }
  Operation *exit = chunk.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(exit->getOperands()))
    if (getOutput(chunk, index) == kBorderGradient)
      pass.passedBack.push_back(pass.values.lookup(value));
  return success();
}

/// Takes the sum that result `index` of a chunk is, if it is shown.
void StageStep::takeShown(func::FuncOp chunk, unsigned index, Value value,
                          int64_t microBatch) {
  if (getOutput(chunk, index) == kLoss)
    loss = pushSum(kLoss, value, microBatch);
  else if (StringAttr name = getMeasure(chunk, index))
    measures[name] = pushSum(name, value, microBatch);
}

/// Lets a task add to what the ones before have left: sums of gradients, and
/// what is shown.
void StageStep::mapSums(func::FuncOp chunk, Pass &pass) {
  for (BlockArgument argument : chunk.getArguments())
    if (auto name = chunk.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                       kGradientAttr))
      pass.values.map(argument, sums.lookup(name));
    else if (getInput(chunk, argument.getArgNumber()) == kLossSum)
      pass.values.map(argument, loss);
    else if (auto shown = chunk.getArgAttrOfType<StringAttr>(
                 argument.getArgNumber(), kMeasureAttr))
      pass.values.map(argument, measures.lookup(shown));
}

/// Takes those sums that ops of the chunk have made which the task was for.
void StageStep::takeSums(func::FuncOp chunk, Pass &pass, int64_t microBatch,
                         llvm::function_ref<bool(Operation *)> isMade) {
  Operation *exit = chunk.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(exit->getOperands())) {
    Operation *maker = value.getDefiningOp();
    if (!maker || !getBackward(chunk)->isBeforeInBlock(maker) || !isMade(maker))
      continue;
    if (auto name = chunk.getResultAttrOfType<StringAttr>(index, kGradientAttr))
      sums[name] = pushSum(name, pass.values.lookup(value), microBatch);
    takeShown(chunk, index, pass.values.lookup(value), microBatch);
  }
}

/// Makes all below nn.backward that is not made yet.
void StageStep::addGradients(int64_t number, int64_t microBatch) {
  func::FuncOp chunk = chunks.steps[number];
  Pass &pass = getPass(number, microBatch);
  mapSums(chunk, pass);
  auto isOpen = [&](Operation *op) { return !pass.below.contains(op); };
  Block &body = chunk.getBody().front();
  for (auto at = std::next(getBackward(chunk)->getIterator());
       at != body.getTerminator()->getIterator(); ++at)
    if (isOpen(&*at))
      builder.clone(*at, pass.values);
  takeSums(chunk, pass, microBatch, isOpen);
}

static StringRef getName(bool isGradient) {
  return isGradient ? kBorderGradient : kBorder;
}

/// Whether the chunk in front of a border reads the gradient of what it passes
/// on, or the one behind it passes it back. Neither does if no chunk in front
/// has a parameter to train. Without these transfers the other entries of a
/// table wait for less than in its proof.
static bool isPassedBack(const Chunks &chunks, int64_t border) {
  return !getInputTypes(chunks.steps[border], kBorderGradient).empty() ||
         !getOutputTypes(chunks.steps[border + 1], kBorderGradient).empty();
}

/// A table says how many bytes cross a border.
template <typename Transfer>
static LogicalResult checkBytes(Transfer transfer, ArrayRef<Type> types) {
  int64_t bytes = 0;
  for (Type type : types)
    bytes += getTypeBytes(type);
  if (bytes == int64_t(transfer.getBytes()))
    return success();
  return transfer.emitOpError("needs the ")
         << bytes << " bytes of " << types << ", which "
         << (types.size() == 1 ? "crosses" : "cross")
         << " the border, but says " << transfer.getBytes();
}

LogicalResult StageStep::send(pipe::SendOp transfer) {
  bool isGradient = transfer.getPayload() == pipe::Payload::Gradient;
  if (isGradient && !isPassedBack(chunks, transfer.getChunk() - 1))
    return success();
  Pass &pass = getPass(transfer.getChunk(), transfer.getMicroBatch());
  ArrayRef<Value> values = isGradient ? pass.passedBack : pass.passedOn;
  if (values.empty())
    return transfer.emitOpError("needs what it sends to be there");
  if (failed(
          checkBytes(transfer, llvm::to_vector(ValueRange(values).getTypes()))))
    return failure();
  for (Value value : values) {
    Lane lane = *chunks.lanes.find(value.getType(), stage, isGradient);
    SendOp::create(builder, transfer.getLoc(), value,
                   builder.getStringAttr(kPipeAxis),
                   builder.getI64IntegerAttr(transfer.getPeer()),
                   builder.getI64IntegerAttr(lane.number),
                   builder.getI64IntegerAttr(lane.places));
  }
  return success();
}

LogicalResult StageStep::receive(pipe::ReceiveOp transfer) {
  bool isGradient = transfer.getPayload() == pipe::Payload::Gradient;
  if (isGradient && !isPassedBack(chunks, transfer.getChunk()))
    return success();
  SmallVector<Type> types =
      getInputTypes(chunks.steps[transfer.getChunk()], getName(isGradient));
  if (types.empty())
    return transfer.emitOpError("needs chunk ")
           << transfer.getChunk() << " to read what it receives";
  if (failed(checkBytes(transfer, types)))
    return failure();
  Pass &pass = getPass(transfer.getChunk(), transfer.getMicroBatch());
  for (Type type : types) {
    Lane lane = *chunks.lanes.find(
        type, findStage(schedule, transfer.getPeer()), isGradient);
    auto received = ReceiveOp::create(
        builder, transfer.getLoc(), type, builder.getStringAttr(kPipeAxis),
        builder.getI64IntegerAttr(transfer.getPeer()),
        builder.getI64IntegerAttr(lane.number),
        builder.getI64IntegerAttr(lane.places));
    (isGradient ? pass.gradients : pass.inputs).push_back(received.getValue());
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

/// Behind the last micro-batch of a group that another one follows, puts its
/// sum aside, with those of older groups that wait for it: what the next one
/// adds to.
Value StageStep::pushSum(StringRef name, Value sum, int64_t microBatch) {
  int64_t size = chunks.microBatches / chunks.groups;
  int64_t group = microBatch / size;
  if ((microBatch + 1) % size != 0 || group + 1 == chunks.groups)
    return sum;
  unsigned level = getLevelBehind(group);
  SmallVector<Value> &waiting = partials[builder.getStringAttr(name)];
  auto pushed = PushOp::create(
      builder, step.getLoc(), TypeRange{sum.getType(), sum.getType()}, sum,
      ArrayRef(waiting).take_front(level), waiting[level]);
  pushed->setAttr(kScopeAttr, ScopeAttr::get(builder.getContext(), -1,
                                             "optimizer", "groups"));
  waiting[level] = pushed.getPushed();
  return pushed.getRest();
}

/// The last group's sum with those that wait for it, from those of the fewest
/// groups on.
Value StageStep::addWaiting(StringRef name, Value sum) {
  for (auto [level, partial] :
       llvm::enumerate(partials[builder.getStringAttr(name)]))
    if (waitsForLast(level, chunks.groups)) {
      sum = AccumulateOp::create(builder, step.getLoc(), sum, partial);
      sum.getDefiningOp()->setAttr(
          kScopeAttr,
          ScopeAttr::get(builder.getContext(), -1, "optimizer", "groups"));
    }
  return sum;
}

LogicalResult StageStep::addEntry(Operation &entry) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(&entry)
      .Case([&](pipe::ForwardOp task) { return goForward(task); })
      .Case([&](pipe::BackwardOp task) { return goBackward(task); })
      .Case([&](pipe::BackwardWeightOp task) {
        BackwardOp::create(builder, task.getLoc());
        addGradients(task.getChunk(), task.getMicroBatch());
        return success();
      })
      .Case([&](pipe::SendOp transfer) { return send(transfer); })
      .Case([&](pipe::ReceiveOp transfer) { return receive(transfer); })
      // Sums over stages are made where the optimizer needs them.
      .Default([](Operation *) { return success(); });
}

void StageStep::finish() {
  UpdateOp::create(builder, step.getLoc());
  for (auto &[name, sum] : sums)
    sum = addWaiting(name, sum);
  if (hasLoss())
    loss = addWaiting(kLoss, loss);
  SmallVector<Value> results = {loss};
  SmallVector<DictionaryAttr> roles = {builder.getDictionaryAttr(
      builder.getNamedAttr(kOutputAttr, builder.getStringAttr(kLoss)))};
  for (auto &[name, value] : measures) {
    if (ownMeasures.contains(name))
      value = addWaiting(name, value);
    results.push_back(value);
    roles.push_back(chunks.measures.lookup(name).result);
  }
  for (auto &[name, value] : sums) {
    results.push_back(value);
    roles.push_back(
        builder.getDictionaryAttr(builder.getNamedAttr(kGradientAttr, name)));
  }
  func::ReturnOp::create(builder, step.getLoc(), results);
  step.setType(builder.getFunctionType(block->getArgumentTypes(),
                                       ValueRange(results).getTypes()));
  step.setAllArgAttrs(attributes);
  step.setAllResultAttrs(roles);
}

FailureOr<ModuleOp> StageStep::build(OpBuilder &outside) {
  func::FuncOp like = chunks.steps[stage.getNumber()];
  auto module = ModuleOp::create(outside, stage.getLoc(),
                                 "stage" + std::to_string(stage.getNumber()));
  for (NamedAttribute attribute :
       like->getParentOfType<ModuleOp>()->getDiscardableAttrs())
    module->setAttr(attribute.getName(), attribute.getValue());
  module->setAttr(kStageAttr, builder.getI64IntegerAttr(stage.getNumber()));
  builder.setInsertionPointToEnd(module.getBody());
  step = func::FuncOp::create(builder, like.getLoc(), kStepFunction,
                              builder.getFunctionType({}, {}));
  for (NamedAttribute attribute : like->getDiscardableAttrs())
    step->setAttr(attribute.getName(), attribute.getValue());
  block = step.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  addArguments();
  for (Operation &entry : stage.getBody().front())
    if (failed(addEntry(entry)))
      return failure();
  finish();
  return module;
}
