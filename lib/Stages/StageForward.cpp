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
#include "reprise/ABI/Model.h"
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
  Value receive(int64_t chunk, Type type);
  void send(int64_t chunk, Value value);
  int64_t countStages() const {
    return int64_t(chunks.steps.size()) / schedule.getVirtualStages();
  }
  pipe::StageOp getStage(int64_t number);
  int64_t getLane() const;
  int64_t countPlacesOf(int64_t sender);

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

/// Micro-batches of the step and of validation have one shape, and share a
/// lane. A text is smaller, and the next one begins when it is through.
int64_t StageForward::getLane() const {
  return name == kEvaluateFunction ? REPRISE_LANE_ACTIVATIONS
                                   : REPRISE_LANE_TEXTS;
}

pipe::StageOp StageForward::getStage(int64_t number) {
  for (auto other : schedule.getBody().getOps<pipe::StageOp>())
    if (int64_t(other.getNumber()) == number)
      return other;
  return {};
}

int64_t StageForward::countPlacesOf(int64_t sender) {
  return name == kEvaluateFunction
             ? countPlaces(getStage(sender), /*isGradient=*/false)
             : 1;
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

Value StageForward::receive(int64_t chunk, Type type) {
  int64_t peer = (chunk - 1) % countStages();
  return ReceiveOp::create(
      builder, function.getLoc(), type, builder.getStringAttr(kPipeAxis),
      builder.getI64IntegerAttr(peer), builder.getI64IntegerAttr(getLane()),
      builder.getI64IntegerAttr(countPlacesOf(peer)));
}

void StageForward::send(int64_t chunk, Value value) {
  SendOp::create(builder, function.getLoc(), value,
                 builder.getStringAttr(kPipeAxis),
                 builder.getI64IntegerAttr((chunk + 1) % countStages()),
                 builder.getI64IntegerAttr(getLane()),
                 builder.getI64IntegerAttr(countPlacesOf(stage.getNumber())));
}

LogicalResult StageForward::addChunk(int64_t number, func::FuncOp chunk) {
  if (!chunk.getBody().hasOneBlock() || chunk.getNumResults() != 1)
    return chunk.emitError("needs one block with one result to be part of a "
                           "stage that goes forward");
  IRMapping values;
  for (BlockArgument argument : chunk.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (getInput(chunk, index) == kBorder) {
      values.map(argument, receive(number, argument.getType()));
      continue;
    }
    FailureOr<Value> own = getArgument(chunk, index);
    if (failed(own))
      return failure();
    values.map(argument, *own);
  }
  for (Operation &op : chunk.getBody().front().without_terminator())
    builder.clone(op, values);
  Value made = values.lookupOrDefault(
      chunk.getBody().front().getTerminator()->getOperand(0));
  if (getOutput(chunk, 0) == kBorder) {
    send(number, made);
  } else {
    result = made;
    output = chunk.getResultAttrDict(0);
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
