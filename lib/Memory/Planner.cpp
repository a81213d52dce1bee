//===- Planner.cpp - Who shares bytes ---------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Planner.h"
#include "reprise/Dialect/NN/Axes.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/KnownOffsets.h"
#include "reprise/Dialect/RT/RTWaitOp.h"
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

/// The shape of what ranks have shares of, if an argument is that.
static DenseI64ArrayAttr getShareOf(func::FuncOp step, unsigned index) {
  return step.getArgAttrOfType<DenseI64ArrayAttr>(index, nn::kShareOfAttr);
}

/// How ranks have parts of an argument, if they do.
static Cuts getCutsOf(func::FuncOp step, unsigned index) {
  auto layout = step.getArgAttrOfType<nn::LayoutAttr>(index, nn::kLayoutAttr);
  if (!layout)
    return {};
  auto rows = step.getArgAttrOfType<IntegerAttr>(index, nn::kRowsAttr);
  auto whole = step.getArgAttrOfType<IntegerAttr>(index, nn::kWholeAttr);
  ArrayRef<int64_t> shape =
      cast<ShapedType>(step.getArgumentTypes()[index]).getShape();
  if (DenseI64ArrayAttr whole = getShareOf(step, index))
    shape = whole;
  Cuts cuts;
  for (StringRef axis : nn::kMeshAxes) {
    int64_t dim = layout.getShardDim(axis);
    int64_t ranks = nn::getAxisSize(step->getParentOp(), axis);
    if (dim < 0 || ranks == 1)
      continue;
    int64_t block = dim == 0 && rows ? rows.getInt() : shape[dim];
    bool isEven = !whole || axis == nn::kExpertAxis;
    cuts.push_back(rt::CutAttr::get(step.getContext(), axis, dim,
                                    isEven ? block * ranks : whole.getInt()));
  }
  llvm::sort(cuts, [](rt::CutAttr a, rt::CutAttr b) {
    return a.getDim() < b.getDim();
  });
  return cuts;
}

/// The cuts of parameters, by their names.
static llvm::StringMap<Cuts> getCuts(func::FuncOp step) {
  llvm::StringMap<Cuts> cuts;
  for (unsigned index = 0; index < step.getNumArguments(); ++index)
    if (auto parameter =
            step.getArgAttrOfType<nn::ParameterAttr>(index, nn::kParameterAttr))
      cuts[parameter.getName()] = getCutsOf(step, index);
  return cuts;
}

/// States that go by the name of their parameter.
static constexpr std::pair<StringLiteral, rt::StateKind> kStates[] = {
    {nn::kGradientAttr, rt::StateKind::Gradient},
    {nn::kMoment1Attr, rt::StateKind::Moment1},
    {nn::kMoment2Attr, rt::StateKind::Moment2},
    {nn::kWorkingAttr, rt::StateKind::Working},
    {nn::kMeasureAttr, rt::StateKind::Measure}};

/// The state that an argument of the step is, or null, from its attributes.
static rt::StateAttr getState(func::FuncOp step, unsigned index,
                              const llvm::StringMap<Cuts> &cuts) {
  MLIRContext *context = step.getContext();
  auto given = step.getArgAttrOfType<IntegerAttr>(index, nn::kRowsAttr);
  int64_t rows = given ? given.getInt() : 0;
  DenseI64ArrayAttr shareOf = getShareOf(step, index);
  auto getShareAxis = [&](StringRef name) -> StringRef {
    bool isOfExperts = llvm::any_of(cuts.lookup(name), [](rt::CutAttr cut) {
      return cut.getAxis() == nn::kExpertAxis;
    });
    StringRef axis = isOfExperts ? StringRef(nn::kExpertAxis) : StringRef();
    return shareOf ? nn::getSamplesAxis(axis) : StringRef();
  };
  if (auto parameter =
          step.getArgAttrOfType<nn::ParameterAttr>(index, nn::kParameterAttr)) {
    return rt::StateAttr::get(
        context, rt::StateKind::Parameter, parameter.getName(),
        rt::StateInit(int(parameter.getInit())), parameter.getStd(),
        parameter.getHub(), parameter.getPart(), parameter.getParts(), rows,
        cuts.lookup(parameter.getName()), getShareAxis(parameter.getName()),
        shareOf, /*level=*/0);
  }
  if (auto partial =
          step.getArgAttrOfType<nn::PartialAttr>(index, nn::kPartialAttr))
    return rt::StateAttr::get(
        context, rt::StateKind::Partial, partial.getName(),
        rt::StateInit::Zeros, FloatAttr(), /*hub=*/"", /*part=*/0, /*parts=*/1,
        rows, /*cuts=*/{}, /*share=*/"", /*shareOf=*/{}, partial.getLevel());
  for (auto [attribute, kind] : kStates)
    if (auto name = step.getArgAttrOfType<StringAttr>(index, attribute)) {
      // The working copy has an order of its own, and no file has it.
      Cuts own = kind == rt::StateKind::Working ? Cuts()
                                                : cuts.lookup(name.getValue());
      return rt::StateAttr::get(context, kind, name.getValue(),
                                rt::StateInit::Zeros, FloatAttr(), /*hub=*/"",
                                /*part=*/0, /*parts=*/1, rows, own,
                                getShareAxis(name.getValue()), shareOf,
                                /*level=*/0);
    }
  return {};
}

static Category getCategory(rt::StateAttr state) {
  switch (state.getKind()) {
  case rt::StateKind::Parameter:
  case rt::StateKind::Working:
    return Category::Parameters;
  case rt::StateKind::Gradient:
  case rt::StateKind::Partial:
    return Category::Gradients;
  case rt::StateKind::Moment1:
  case rt::StateKind::Moment2:
    return Category::OptimizerState;
  case rt::StateKind::Measure:
    return Category::InputsAndOutputs;
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
      if (isa<rt::ScheduledOp, rt::JoinOp>(op) &&
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
  if ((buffer.state = getState(function, index, cuts))) {
    buffer.category = getCategory(buffer.state);
    if (auto order =
            function.getArgAttrOfType<DenseI64ArrayAttr>(index, nn::kOrderAttr))
      buffer.order = Builder(function.getContext()).getI64IntegerAttr(order[0]);
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
    buffer.microBatch =
        function.getArgAttrOfType<IntegerAttr>(index, nn::kMicroBatchAttr);
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
  cuts = getCuts(function);
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

/// Refuses pairs that are no values of one type.
LogicalResult Planner::checkSharing(rt::ScheduledOp op,
                                    ArrayRef<rt::Sharing> sharing) {
  int64_t count = op->getNumResults();
  for (rt::Sharing pair : sharing) {
    Type type = op.getReads()[pair.read].getType();
    if (pair.write < 0 || pair.write >= count ||
        op->getResult(pair.write).getType() != type)
      return op->emitOpError("needs '")
             << (pair.isForced ? rt::kInPlaceAttr : rt::kMayAliasAttr)
             << "' of operand #" << pair.read << " to be a result of type "
             << type << ", but got " << pair.write;
  }
  return success();
}

/// Whether the value of `read` is needed by nothing else from `position` on.
bool Planner::diesAt(rt::ScheduledOp op, unsigned read, int64_t position) {
  SmallVector<Value> reads = op.getReads();
  return lastUse.lookup(reads[read]) == position &&
         llvm::count_if(reads, [&](Value other) {
           return bufferOf.lookup(other) == bufferOf.lookup(reads[read]);
         }) == 1;
}

LogicalResult Planner::overwrite(rt::ScheduledOp op, rt::Sharing sharing,
                                 int64_t position) {
  Value read = op.getReads()[sharing.read];
  Value result = op->getResult(sharing.write);
  if (beginOf.count(read) || beginOf.count(result))
    return op->emitOpError("needs operand #")
           << sharing.read << ", which it overwrites, and its result to be "
           << "whole values, but got parts";
  if (!diesAt(op, sharing.read, position))
    return op->emitOpError("needs to be the last to read operand #")
           << sharing.read << ", which it overwrites, but it is read again";
  if (!bufferOf.try_emplace(result, bufferOf.lookup(read)).second)
    return op->emitOpError("needs one operand to be overwritten by each "
                           "result, but operand #")
           << sharing.read << " is another one";
  return success();
}

/// Whether a like schedule has result `number` of `op` in another place than
/// `buffer`.
static bool isKnownApart(rt::ScheduledOp op, int64_t number,
                         const Buffer &buffer) {
  auto offsets = op->getAttrOfType<DenseI64ArrayAttr>(rt::kKnownOffsetsAttr);
  return offsets && buffer.known && *buffer.known != offsets[number] &&
         *buffer.known != rt::kNoOffset && offsets[number] != rt::kNoOffset;
}

/// Lets a result have the bytes of an operand that is needed no more.
void Planner::takeOver(rt::ScheduledOp op, rt::Sharing sharing,
                       int64_t position) {
  Value read = op.getReads()[sharing.read];
  Value result = op->getResult(sharing.write);
  int64_t buffer = bufferOf.lookup(read);
  if (bufferOf.count(result) || beginOf.count(read) ||
      !diesAt(op, sharing.read, position) || lastUse.lookup(result) == end ||
      buffers[buffer].category != Category::Activations ||
      isKnownApart(op, sharing.write, buffers[buffer]))
    return;
  // Another result may have taken the buffer already.
  if (llvm::none_of(op->getResults(), [&](Value other) {
        auto it = bufferOf.find(other);
        return it != bufferOf.end() && it->second == buffer;
      }))
    bufferOf[result] = buffer;
}

LogicalResult Planner::assignSharing(rt::ScheduledOp op, int64_t position) {
  bool isOnBuffers =
      llvm::any_of(op->getOperandTypes(), llvm::IsaPred<MemRefType>);
  FailureOr<SmallVector<rt::Sharing>> sharing = op.getSharing(symbols);
  if (isOnBuffers || failed(sharing))
    return op->emitOpError("needs to be on tensors, of a func.func, to be "
                           "planned");
  if (failed(checkSharing(op, *sharing)))
    return failure();
  for (rt::Sharing pair : *sharing)
    if (pair.isForced && failed(overwrite(op, pair, position)))
      return failure();
  for (rt::Sharing pair : *sharing)
    if (!pair.isForced)
      takeOver(op, pair, position);
  return success();
}

/// The offset of a buffer is not known if its values have two elsewhere.
void Planner::readKnownOffsets(rt::ScheduledOp op) {
  auto offsets = op->getAttrOfType<DenseI64ArrayAttr>(rt::kKnownOffsetsAttr);
  if (!offsets)
    return;
  auto read = [&](int64_t buffer, int64_t offset) {
    std::optional<int64_t> &known = buffers[buffer].known;
    known = known.value_or(offset) == offset ? offset : rt::kNoOffset;
  };
  for (auto [result, offset] :
       llvm::zip(op->getResults(), offsets.asArrayRef()))
    read(bufferOf.lookup(result), offset);
  if (auto workspace = workspaceOf.find(op); workspace != workspaceOf.end())
    read(workspace->second, offsets.asArrayRef().back());
}

/// What is begun keeps its workspace up to its wait. It runs one after another,
/// so what is under way at one time has one workspace, for the largest.
LogicalResult Planner::assignWorkspace(rt::ScheduledOp op, int64_t position) {
  if (auto wait = dyn_cast<rt::WaitOp>(op.getOperation())) {
    auto found = underWay.find(wait.getNumber());
    if (found == underWay.end() ||
        !llvm::equal(wait.getMade(), found->second->getResults()))
      return wait.emitOpError("needs all that is made by what is begun with "
                              "number ")
             << wait.getNumber() << " before it";
    if (auto begun = workspaceOf.find(found->second);
        begun != workspaceOf.end()) {
      int64_t workspace = begun->second; // The map may grow.
      workspaceOf[op] = workspace;
      buffers[workspace].lastUse = position;
    }
    underWay.erase(found);
    return success();
  }
  int64_t shared = -1;
  if (std::optional<int64_t> number = rt::getBegun(op)) {
    for (auto [other, begun] : underWay)
      if (auto workspace = workspaceOf.find(begun);
          workspace != workspaceOf.end())
        shared = workspace->second;
    if (!underWay.try_emplace(*number, op).second)
      return op->emitOpError("needs a number of its own, but ")
             << *number << " is under way";
  }
  int64_t bytes = op.getWorkspaceBytes();
  if (bytes == 0)
    return success();
  auto type = MemRefType::get({bytes / 4}, Float32Type::get(op.getContext()));
  if (shared < 0)
    shared = addBuffer(Category::Activations, type, position);
  buffers[shared].bytes = std::max(buffers[shared].bytes, bytes);
  workspaceOf[op] = shared;
  return success();
}

LogicalResult Planner::assignResults(Operation *op, int64_t position) {
  if (auto scheduled = dyn_cast<rt::ScheduledOp>(op)) {
    if (failed(assignSharing(scheduled, position)))
      return failure();
    if (failed(assignWorkspace(scheduled, position)))
      return failure();
  } else if (auto view = dyn_cast<rt::ViewOp>(op)) {
    assignView(view);
  } else if (!isa<rt::JoinOp, rt::UpdateOp, func::ReturnOp>(op)) {
    return op->emitOpError("needs to be a launch, a GEMM or a collective "
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
  if (auto scheduled = dyn_cast<rt::ScheduledOp>(op))
    readKnownOffsets(scheduled);
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
        /*hub=*/"", /*part=*/0, /*parts=*/1, buffer.state.getRows(),
        buffer.state.getCuts(), buffer.state.getShare(),
        buffer.state.getShareOf(), buffer.state.getLevel());
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
      if (!isa_and_present<rt::ScheduledOp>(maker) ||
          !joinOf.try_emplace(part, join).second)
        return join.emitOpError("needs parts that a launch or a GEMM makes "
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

/// A state that a value is, by one of its attributes.
namespace {
struct Role {
  StringRef attribute, name;
  rt::StateKind kind;
  int64_t level = 0;
};
} // namespace

/// The state that result `index` of `function` replaces, if it does.
static std::optional<Role> getReplaced(func::FuncOp function, unsigned index) {
  constexpr StringLiteral kParameter = nn::kParameterAttr;
  if (auto name = function.getResultAttrOfType<StringAttr>(index, kParameter))
    return Role{kParameter, name, rt::StateKind::Parameter};
  for (auto [attribute, kind] : kStates)
    if (auto name = function.getResultAttrOfType<StringAttr>(index, attribute))
      return Role{attribute, name, kind};
  if (auto partial = function.getResultAttrOfType<nn::PartialAttr>(
          index, nn::kPartialAttr))
    return Role{nn::kPartialAttr, partial.getName(), rt::StateKind::Partial,
                partial.getLevel()};
  return std::nullopt;
}

/// Every returned value must be where the next step, or the runtime, looks.
LogicalResult Planner::checkReturn() {
  auto exit = cast<func::ReturnOp>(block.getTerminator());
  llvm::DenseMap<std::tuple<int, StringRef, int64_t>, int64_t> states;
  for (auto [id, buffer] : llvm::enumerate(buffers))
    if (buffer.state)
      states[{int(buffer.state.getKind()), buffer.state.getParameter(),
              buffer.state.getLevel()}] = id;
  for (auto [index, value] : llvm::enumerate(exit.getOperands())) {
    Buffer &buffer = buffers[bufferOf.lookup(value)];
    if (std::optional<Role> role = getReplaced(function, index)) {
      auto it = states.find({int(role->kind), role->name, role->level});
      if (it == states.end())
        return function.emitError("needs an argument with ")
               << role->attribute << " of '" << role->name
               << "', which result #" << index << " is to replace";
      if (it->second != bufferOf.lookup(value))
        return function.emitError("needs result #")
               << index << " to be made in place of the " << role->attribute
               << " of '" << role->name << "', but it has other bytes";
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

LogicalResult Planner::assign() {
  findUses();
  end = std::distance(block.begin(), block.end()) - 1;
  if (failed(checkSizes()) || failed(assignArguments()) ||
      failed(assignJoins()))
    return failure();
  assignWrittenGradients();
  for (auto [position, op] : llvm::enumerate(block))
    if (failed(assignResults(&op, position)))
      return failure();
  if (underWay.empty())
    return checkReturn();
  return underWay.begin()->second->emitOpError("needs a wait for what it "
                                               "begins");
}

LogicalResult Planner::plan() {
  return failure(failed(assign()) || failed(place()));
}
