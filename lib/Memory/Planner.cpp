//===- Planner.cpp - Who shares bytes ---------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Planner.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Memory/WrittenGradients.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::memory;

int64_t Planner::addBuffer(Category category, Type type, int64_t position) {
  Buffer buffer;
  buffer.space = rt::getSpace(type);
  buffer.category = category;
  buffer.bytes = getTypeBytes(type);
  buffer.firstUse = buffer.lastUse = position;
  buffers.push_back(buffer);
  return buffers.size() - 1;
}

//===----------------------------------------------------------------------===//
// Which values share a buffer
//===----------------------------------------------------------------------===//

/// The state that an argument of the step is, or null, from its attributes.
static rt::StateAttr getState(func::FuncOp step, unsigned index) {
  MLIRContext *context = step.getContext();
  auto given = step.getArgAttrOfType<IntegerAttr>(index, nn::kRowsAttr);
  int64_t rows = given ? given.getInt() : 0;
  if (auto parameter =
          step.getArgAttrOfType<nn::ParameterAttr>(index, nn::kParameterAttr))
    return rt::StateAttr::get(
        context, rt::StateKind::Parameter, parameter.getName(),
        rt::StateInit(int(parameter.getInit())), parameter.getStd(),
        parameter.getHub(), parameter.getPart(), parameter.getParts(), rows);
  std::pair<StringRef, rt::StateKind> kinds[] = {
      {nn::kGradientAttr, rt::StateKind::Gradient},
      {nn::kMoment1Attr, rt::StateKind::Moment1},
      {nn::kMoment2Attr, rt::StateKind::Moment2},
      {nn::kWorkingAttr, rt::StateKind::Working}};
  for (auto [attribute, kind] : kinds)
    if (auto name = step.getArgAttrOfType<StringAttr>(index, attribute))
      return rt::StateAttr::get(context, kind, name.getValue(),
                                rt::StateInit::Zeros, FloatAttr(), /*hub=*/"",
                                /*part=*/0, /*parts=*/1, rows);
  return {};
}

static Category getCategory(rt::StateAttr state) {
  switch (state.getKind()) {
  case rt::StateKind::Parameter:
  case rt::StateKind::Working:
    return Category::Parameters;
  case rt::StateKind::Gradient:
    return Category::Gradients;
  case rt::StateKind::Moment1:
  case rt::StateKind::Moment2:
    return Category::OptimizerState;
  }
  llvm_unreachable("unknown kind of state");
}

/// All bytes together stay far from where sums of them overflow.
LogicalResult Planner::checkSizes() {
  constexpr int64_t kMostBytes = int64_t(1) << 60;
  int64_t total = 0;
  auto check = [&](Location loc, Type type) -> LogicalResult {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() ||
        !tensor.getElementType().isIntOrFloat())
      return emitError(loc, "needs tensors of static shapes, of integers or "
                            "floats, to be planned, but got ")
             << type;
    if (Attribute encoding = tensor.getEncoding();
        encoding && !isa<rt::SpaceAttr>(encoding))
      return emitError(loc, "needs no encoding but an #rt.space, to be "
                            "planned, but got ")
             << type;
    int64_t bytes = getTypeBytes(type);
    if (bytes > kMostBytes - total)
      return emitError(loc, "needs less than ")
             << kMostBytes << " bytes in all, but with " << type
             << " there are more";
    total += bytes;
    return success();
  };
  for (BlockArgument argument : block.getArguments())
    if (failed(check(argument.getLoc(), argument.getType())))
      return failure();
  for (Operation &op : block)
    for (Type type : op.getResultTypes())
      if (isa<rt::LaunchOp, rt::GemmOp, rt::CollectiveOp, rt::JoinOp>(op) &&
          failed(check(op.getLoc(), type)))
        return failure();
  return success();
}

FailureOr<Buffer> Planner::getArgumentBuffer(BlockArgument argument) {
  unsigned index = argument.getArgNumber();
  Buffer buffer;
  buffer.space = rt::getSpace(argument.getType());
  buffer.bytes = getTypeBytes(argument.getType());
  buffer.category = Category::InputsAndOutputs;
  if ((buffer.state = getState(function, index))) {
    buffer.category = getCategory(buffer.state);
  } else if (auto rotary = function.getArgAttrOfType<nn::RotaryAttr>(
                 index, nn::kRotaryAttr)) {
    int64_t width = cast<ShapedType>(argument.getType()).getShape().back();
    nn::RotaryFrequencies angles = nn::getRotaryFrequencies(rotary, width);
    buffer.rotary = rt::RotaryAttr::get(
        function.getContext(),
        DenseF32ArrayAttr::get(function.getContext(), angles.frequencies),
        Builder(function.getContext()).getF32FloatAttr(angles.scale));
  } else if (auto input =
                 function.getArgAttrOfType<StringAttr>(index, nn::kInputAttr)) {
    // The running loss is what the step puts out.
    buffer.role = input.getValue() == "loss_sum"
                      ? StringAttr::get(function.getContext(), "loss")
                      : input;
  } else {
    return function.emitError("needs a role for every argument, but argument #")
           << index << " of type " << argument.getType() << " has none";
  }
  return buffer;
}

/// As `getArgumentBuffer`, beside a step: its buffer, or for an input that it
/// does not have a new one.
FailureOr<Buffer> Planner::getSharedBuffer(BlockArgument argument) {
  unsigned index = argument.getArgNumber();
  FailureOr<Buffer> buffer = getArgumentBuffer(argument);
  if (failed(buffer))
    return failure();
  auto shared = step->bufferOfRole.find(function.getArgAttrDict(index));
  if (shared == step->bufferOfRole.end()) {
    if (!buffer->role)
      return function.emitError("needs argument #")
             << index << " to be one of @" << nn::kStepFunction
             << " too, since it outlives a schedule, but that has none with "
             << function.getArgAttrDict(index);
    buffer->category = Category::Activations;
    return buffer;
  }
  const Buffer &other = step->buffers[shared->second];
  if (other.space != buffer->space)
    return function.emitError("needs argument #")
           << index << " to be in the space that @" << nn::kStepFunction
           << " has it in, " << rt::stringifySpace(other.space) << ", but got "
           << rt::stringifySpace(buffer->space);
  if (other.bytes != buffer->bytes)
    return function.emitError("needs argument #")
           << index << " to have the " << other.bytes << " bytes that @"
           << nn::kStepFunction << " has for it, but got " << buffer->bytes;
  return other;
}

LogicalResult Planner::assignArguments() {
  for (BlockArgument argument : block.getArguments()) {
    FailureOr<Buffer> buffer =
        step ? getSharedBuffer(argument) : getArgumentBuffer(argument);
    if (failed(buffer))
      return failure();
    bufferOf[argument] = buffers.size();
    bufferOfRole[function.getArgAttrDict(argument.getArgNumber())] =
        buffers.size();
    buffers.push_back(*buffer);
  }
  return success();
}

/// The result whose buffer `attribute` gives to an input of `launch`, or null.
FailureOr<Value> Planner::getShared(rt::LaunchOp launch, func::FuncOp kernel,
                                    unsigned input, StringRef attribute) {
  auto number = kernel.getArgAttrOfType<IntegerAttr>(input, attribute);
  if (!number)
    return Value();
  int64_t result = number.getInt(), count = launch.getNumResults();
  Type type = launch.getInputs()[input].getType();
  if (result < 0 || result >= count ||
      launch.getResult(result).getType() != type)
    return launch.emitOpError("needs '")
           << attribute << "' of operand #" << input
           << " to be a result of type " << type << ", but got " << result;
  return launch.getResult(result);
}

LogicalResult Planner::assignLaunch(rt::LaunchOp launch, int64_t position) {
  auto kernel = symbols.lookup<func::FuncOp>(launch.getKernel());
  if (!kernel || !launch.getOutputs().empty())
    return launch.emitOpError("needs to be on tensors, of a func.func, to be "
                              "planned");
  OperandRange inputs = launch.getInputs();
  auto diesHere = [&](Value input) {
    return lastUse.lookup(input) == position && !beginOf.count(input) &&
           llvm::count_if(inputs, [&](Value other) {
             return bufferOf.lookup(other) == bufferOf.lookup(input);
           }) == 1;
  };
  for (auto [index, input] : llvm::enumerate(inputs)) {
    FailureOr<Value> result =
        getShared(launch, kernel, index, rt::kInPlaceAttr);
    if (failed(result))
      return failure();
    if (!*result)
      continue;
    if (!diesHere(input))
      return launch.emitOpError("needs to be the last to read operand #")
             << index << ", which it overwrites, but it is read again";
    if (!bufferOf.try_emplace(*result, bufferOf.lookup(input)).second)
      return launch.emitOpError("needs one operand to be overwritten by each "
                                "result, but operand #")
             << index << " is another one";
  }
  for (auto [index, input] : llvm::enumerate(inputs)) {
    FailureOr<Value> result =
        getShared(launch, kernel, index, rt::kMayAliasAttr);
    if (failed(result))
      return failure();
    int64_t buffer = bufferOf.lookup(input);
    if (!*result || bufferOf.count(*result) || !diesHere(input) ||
        lastUse.lookup(*result) == end ||
        buffers[buffer].category != Category::Activations)
      continue;
    // Another result may have taken the buffer already.
    if (llvm::any_of(launch.getResults(), [&](Value other) {
          auto it = bufferOf.find(other);
          return it != bufferOf.end() && it->second == buffer;
        }))
      continue;
    bufferOf[*result] = buffer;
  }
  return success();
}

/// Sums over ranks are made in place.
LogicalResult Planner::assignCollective(rt::CollectiveOp op, int64_t position) {
  if (op.getWorkspace())
    return op.emitOpError("needs to be on tensors to be planned");
  for (auto [input, result] :
       llvm::zip_equal(op.getInputs(), op.getResults())) {
    if (lastUse.lookup(input) != position ||
        llvm::count(op.getInputs(), input) != 1)
      return op.emitOpError("needs to be the last to read ")
             << input << ", which it overwrites, but it is read again";
    if (beginOf.count(input) || beginOf.count(result))
      return op.emitOpError("needs whole values, but got parts");
    bufferOf[result] = bufferOf.lookup(input);
  }
  auto workspace = MemRefType::get({op.getWorkspaceElements()},
                                   Float32Type::get(op.getContext()));
  workspaceOf[op] = addBuffer(Category::Activations, workspace, position);
  return success();
}

LogicalResult Planner::assignResults(Operation *op, int64_t position) {
  if (auto launch = dyn_cast<rt::LaunchOp>(op)) {
    if (failed(assignLaunch(launch, position)))
      return failure();
  } else if (auto gemm = dyn_cast<rt::GemmOp>(op)) {
    if (!gemm.getResult())
      return gemm.emitOpError("needs to be on tensors to be planned");
    if (Value addend = gemm.getAddend()) {
      if (lastUse.lookup(addend) != position ||
          llvm::count(gemm->getOperands(), addend) != 1)
        return gemm.emitOpError(
            "needs to be the last to read its addend, which "
            "it adds to, but it is read again");
      if (beginOf.count(addend) || beginOf.count(gemm.getResult()))
        return gemm.emitOpError("needs to add to a whole value to make a whole "
                                "value, but got parts");
      bufferOf[gemm.getResult()] = bufferOf.lookup(addend);
    }
    auto workspace = MemRefType::get({gemm.getWorkspaceBytes() / 4},
                                     Float32Type::get(op->getContext()));
    workspaceOf[op] = addBuffer(Category::Activations, workspace, position);
  } else if (auto collective = dyn_cast<rt::CollectiveOp>(op)) {
    if (failed(assignCollective(collective, position)))
      return failure();
  } else if (auto view = dyn_cast<rt::ViewOp>(op)) {
    assignView(view);
  } else if (!isa<rt::JoinOp, rt::UpdateOp, func::ReturnOp>(op)) {
    return op->emitOpError("needs to be a launch, a product or a collective "
                           "by now");
  }
  for (Value operand : op->getOperands()) {
    Buffer &buffer = buffers[bufferOf.lookup(operand)];
    buffer.lastUse = std::max(buffer.lastUse, position);
  }
  for (Value result : op->getResults()) {
    if (!bufferOf.count(result))
      bufferOf[result] =
          addBuffer(Category::Activations, result.getType(), position);
    Buffer &buffer = buffers[bufferOf.lookup(result)];
    buffer.lastUse = std::max(buffer.lastUse, position);
  }
  return success();
}

/// A view is in the buffer of what it is a view of.
void Planner::assignView(rt::ViewOp view) {
  Value input = view.getInput();
  bufferOf[view.getOut()] = bufferOf.lookup(input);
  int64_t elements = view.getInput().getType().getNumElements();
  beginOf[view.getOut()] =
      beginOf.lookup(input) +
      getTypeBytes(input.getType()) / elements * view.getFirst();
}

/// A gradient that starts from nothing is made where its argument is, which
/// nobody reads: these bytes are its own from there on. What is part of
/// something lies there, and is refused in the end.
void Planner::assignWrittenGradients() {
  for (auto [value, argument] : findWrittenGradients(function, symbols)) {
    int64_t id = bufferOf.lookup(argument);
    if (!bufferOf.try_emplace(value, id).second)
      continue;
    Buffer &buffer = buffers[id];
    buffer.isWritten = true;
    buffer.firstUse = positions.lookup(value.getDefiningOp());
    buffer.state = rt::StateAttr::get(
        function.getContext(), buffer.state.getKind(),
        buffer.state.getParameter(), rt::StateInit::None, FloatAttr(),
        /*hub=*/"", /*part=*/0, /*parts=*/1, buffer.state.getRows());
    argumentOf[value] = argument;
  }
}

/// The parts of a join are made in its buffer, which is there from the first
/// of them on.
LogicalResult Planner::assignJoins() {
  for (auto join : block.getOps<rt::JoinOp>()) {
    int64_t first = end, begin = 0;
    for (Value part : join.getParts()) {
      Operation *maker = part.getDefiningOp();
      if (!isa_and_present<rt::LaunchOp, rt::GemmOp>(maker) ||
          !joinOf.try_emplace(part, join).second)
        return join.emitOpError("needs parts that a launch or a product makes "
                                "for it alone, but got ")
               << part;
      first = std::min(first, positions.lookup(maker));
      beginOf[part] = begin;
      begin += getTypeBytes(part.getType());
    }
    int64_t whole = addBuffer(Category::Activations, join.getType(), first);
    bufferOf[join.getOut()] = whole;
    for (Value part : join.getParts())
      bufferOf[part] = whole;
  }
  return success();
}

/// A view keeps what it is a view of.
void Planner::findUses() {
  for (auto [position, op] : llvm::enumerate(block)) {
    positions[&op] = position;
    for (Value operand : op.getOperands()) {
      lastUse[operand] = position;
      while (auto view = operand.getDefiningOp<rt::ViewOp>()) {
        operand = view.getInput();
        lastUse[operand] = position;
      }
    }
  }
}

/// Every returned value must be where the next step, or the runtime, looks.
LogicalResult Planner::checkReturn() {
  auto exit = cast<func::ReturnOp>(block.getTerminator());
  llvm::DenseMap<std::pair<int, StringRef>, int64_t> states;
  for (auto [id, buffer] : llvm::enumerate(buffers))
    if (buffer.state)
      states[{int(buffer.state.getKind()), buffer.state.getParameter()}] = id;
  std::pair<StringRef, rt::StateKind> kinds[] = {
      {nn::kParameterAttr, rt::StateKind::Parameter},
      {nn::kGradientAttr, rt::StateKind::Gradient},
      {nn::kMoment1Attr, rt::StateKind::Moment1},
      {nn::kMoment2Attr, rt::StateKind::Moment2},
      {nn::kWorkingAttr, rt::StateKind::Working}};
  for (auto [index, value] : llvm::enumerate(exit.getOperands())) {
    Buffer &buffer = buffers[bufferOf.lookup(value)];
    for (auto [attribute, kind] : kinds) {
      auto name = function.getResultAttrOfType<StringAttr>(index, attribute);
      if (!name)
        continue;
      auto it = states.find({int(kind), name.getValue()});
      if (it == states.end())
        return function.emitError("needs an argument with ")
               << attribute << " of '" << name.getValue() << "', which result #"
               << index << " is to replace";
      if (it->second != bufferOf.lookup(value))
        return function.emitError("needs result #")
               << index << " to be made in place of the " << attribute
               << " of '" << name.getValue() << "', but it has other bytes";
    }
    auto output =
        function.getResultAttrOfType<StringAttr>(index, nn::kOutputAttr);
    if (!output)
      continue;
    if (buffer.category == Category::Activations && !buffer.role) {
      if (!step)
        buffer.category = Category::InputsAndOutputs;
      buffer.role = output;
      buffer.output = value;
    } else if (buffer.role != output) {
      return function.emitError("needs result #")
             << index << " with 'nn.output' " << output
             << " to be a value of the schedule, but it is an argument's";
    }
  }
  return success();
}

LogicalResult Planner::plan() {
  findUses();
  end = std::distance(block.begin(), block.end()) - 1;
  if (failed(checkSizes()) || failed(assignArguments()) ||
      failed(assignJoins()))
    return failure();
  assignWrittenGradients();
  for (auto [position, op] : llvm::enumerate(block))
    if (failed(assignResults(&op, position)))
      return failure();
  return failure(failed(checkReturn()) || failed(place()));
}
