//===- StageForward.cpp - A stage that only goes forward ------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A batch goes through all chunks in their order, so a stage has its chunks in
// that order, each between what it receives and what it sends. Nothing is kept,
// and no stage waits for one behind it, but for chunks that are interleaved:
// batches follow each other through the stages.
//
//===----------------------------------------------------------------------===//

#include "StageForward.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/ABI/Lanes.h"
#include "reprise/Support/Borders.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;
using namespace reprise::stages;

namespace {
/// The function of one stage.
class StageForward {
public:
  StageForward(ModuleOp module, const Chunks &chunks, pipe::ScheduleOp schedule,
               pipe::StageOp stage, StringRef name)
      : module(module), chunks(chunks), schedule(schedule), stage(stage),
        name(name), builder(module.getContext()) {}

  LogicalResult build();

private:
  void findRoles();
  LogicalResult addChunk(int64_t number, func::FuncOp chunk);
  FailureOr<Value> getArgument(func::FuncOp chunk, unsigned index);
  FailureOr<Value> receive(int64_t number, func::FuncOp chunk, Type type);
  LogicalResult send(int64_t number, func::FuncOp chunk, Value value);
  int64_t countStages() const {
    return int64_t(chunks.steps.size()) / schedule.getVirtualStages();
  }
  FailureOr<Lane> getLane(func::FuncOp chunk, Type type, int64_t sender);

  ModuleOp module;
  const Chunks &chunks;
  mutable pipe::ScheduleOp schedule; // Whose accessors are not const.
  pipe::StageOp stage;
  StringRef name;
  OpBuilder builder;
  func::FuncOp function;
  Block *block = nullptr;
  SmallVector<DictionaryAttr> attributes; ///< of arguments
  /// What the stage's step says of its parameters, by their names.
  llvm::StringMap<DictionaryAttr> roles;
  DenseMap<Attribute, Value> arguments; ///< by their attributes
  Value result;
  DictionaryAttr output;
};
} // namespace

/// Micro-batches of the step and of validation have one shape, and share lanes.
/// A text is smaller, and the next one begins when it is through.
FailureOr<Lane> StageForward::getLane(func::FuncOp chunk, Type type,
                                      int64_t sender) {
  if (name != kEvaluateFunction)
    return Lane{REPRISE_LANE_TEXTS, 1};
  if (auto lane = chunks.lanes.find(type, findStage(schedule, sender),
                                    /*isGradient=*/false))
    return *lane;
  return chunk.emitError("needs what crosses its borders to be of a type that "
                         "crosses those of the step, but got ")
         << type;
}

void StageForward::findRoles() {
  auto step = module.lookupSymbol<func::FuncOp>(kStepFunction);
  for (unsigned index = 0; index < step.getNumArguments(); ++index)
    if (auto parameter =
            step.getArgAttrOfType<ParameterAttr>(index, kParameterAttr))
      roles[parameter.getName()] = step.getArgAttrDict(index);
}

/// The argument of the stage for one of a chunk. Inputs that the step has, too,
/// are where it has those of its first micro-batch.
FailureOr<Value> StageForward::getArgument(func::FuncOp chunk, unsigned index) {
  DictionaryAttr role = chunk.getArgAttrDict(index);
  if (auto parameter =
          chunk.getArgAttrOfType<ParameterAttr>(index, kParameterAttr)) {
    role = roles.lookup(parameter.getName());
    if (!role)
      return chunk.emitError("needs the parameter '")
             << parameter.getName() << "' to be one of the step of stage "
             << int64_t(stage.getNumber()) << ", too";
  } else if (StringRef input = getInput(chunk, index);
             chunks.inputs.contains(input)) {
    role = builder.getDictionaryAttr(
        {builder.getNamedAttr(kInputAttr, builder.getStringAttr(input)),
         builder.getNamedAttr(kMicroBatchAttr, builder.getI64IntegerAttr(0))});
  }
  Value &argument = arguments[role];
  if (!argument) {
    attributes.push_back(role);
    argument =
        block->addArgument(chunk.getArgumentTypes()[index], chunk.getLoc());
  }
  return argument;
}

FailureOr<Value> StageForward::receive(int64_t number, func::FuncOp chunk,
                                       Type type) {
  int64_t peer = (number - 1) % countStages();
  FailureOr<Lane> lane = getLane(chunk, type, peer);
  if (failed(lane))
    return failure();
  return Value(ReceiveOp::create(
      builder, function.getLoc(), type, builder.getStringAttr(kPipeAxis),
      builder.getI64IntegerAttr(peer), builder.getI64IntegerAttr(lane->number),
      builder.getI64IntegerAttr(lane->places)));
}

LogicalResult StageForward::send(int64_t number, func::FuncOp chunk,
                                 Value value) {
  FailureOr<Lane> lane = getLane(chunk, value.getType(), stage.getNumber());
  if (failed(lane))
    return failure();
  SendOp::create(builder, function.getLoc(), value,
                 builder.getStringAttr(kPipeAxis),
                 builder.getI64IntegerAttr((number + 1) % countStages()),
                 builder.getI64IntegerAttr(lane->number),
                 builder.getI64IntegerAttr(lane->places));
  return success();
}

/// Of results, what is passed on, or one.
static LogicalResult checkForward(func::FuncOp chunk, StringRef name) {
  size_t passedOn = getOutputTypes(chunk, kBorder).size();
  if (!chunk.getBody().hasOneBlock() || chunk.getNumResults() == 0 ||
      chunk.getNumResults() != std::max<size_t>(passedOn, 1))
    return chunk.emitError("needs one block with one result, or with those "
                           "that it passes on, to be part of a stage that goes "
                           "forward");
  // A text has one lane, of parcels of one size.
  if (name != kEvaluateFunction && passedOn > 1)
    return chunk.emitError("needs one value to cross to the next chunk, but "
                           "got ")
           << passedOn;
  return success();
}

LogicalResult StageForward::addChunk(int64_t number, func::FuncOp chunk) {
  if (failed(checkForward(chunk, name)))
    return failure();
  IRMapping values;
  for (BlockArgument argument : chunk.getArguments()) {
    unsigned index = argument.getArgNumber();
    FailureOr<Value> own = getInput(chunk, index) == kBorder
                               ? receive(number, chunk, argument.getType())
                               : getArgument(chunk, index);
    if (failed(own))
      return failure();
    values.map(argument, *own);
  }
  for (Operation &op : chunk.getBody().front().without_terminator())
    builder.clone(op, values);
  Operation *exit = chunk.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(exit->getOperands())) {
    Value made = values.lookupOrDefault(value);
    if (getOutput(chunk, index) == kBorder) {
      if (failed(send(number, chunk, made)))
        return failure();
    } else {
      result = made;
      output = chunk.getResultAttrDict(index);
    }
  }
  return success();
}

LogicalResult StageForward::build() {
  findRoles();
  builder.setInsertionPointToEnd(module.getBody());
  function = func::FuncOp::create(builder, stage.getLoc(), name,
                                  builder.getFunctionType({}, {}));
  block = function.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  for (int64_t number = stage.getNumber();
       number < int64_t(chunks.steps.size()); number += countStages()) {
    func::FuncOp step = chunks.steps[number];
    auto chunk =
        step->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(name);
    if (!chunk)
      return step.emitError("needs a function @")
             << name << " beside it, since another chunk has one";
    if (failed(addChunk(number, chunk)))
      return failure();
  }
  SmallVector<Value> results;
  if (result)
    results.push_back(result);
  func::ReturnOp::create(builder, function.getLoc(), results);
  function.setType(builder.getFunctionType(block->getArgumentTypes(),
                                           ValueRange(results).getTypes()));
  function.setAllArgAttrs(attributes);
  if (result)
    function.setAllResultAttrs(ArrayRef<DictionaryAttr>(output));
  return success();
}

LogicalResult stages::addForward(ModuleOp module, const Chunks &chunks,
                                 pipe::ScheduleOp schedule, pipe::StageOp stage,
                                 StringRef name) {
  auto has = [&](func::FuncOp step) {
    return bool(
        step->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(name));
  };
  if (llvm::none_of(chunks.steps, has))
    return success();
  return StageForward(module, chunks, schedule, stage, name).build();
}
