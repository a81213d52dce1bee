//===- CutChunks.cpp - A module for each chunk of a model -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops of a layer are in the chunk of the layer. Of the others, those behind a
// layer, or that read targets, are in the last chunk, and those that read other
// samples in the first. Terms
// of the loss, and counts, are where the latest that they read is made: the
// last layer of them, or the head. What is left is made of parameters alone:
// each chunk that reads it makes it itself.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"
#include "reprise/Dialect/NN/Axes.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Terms.h"
#include "reprise/Stages/Passes.h"
#include "reprise/Support/Active.h"
#include "reprise/Support/Borders.h"
#include "reprise/Support/LayerSplit.h"
#include "reprise/Support/Modules.h"
#include "llvm/ADT/SetVector.h"

namespace reprise::stages {
#define GEN_PASS_DEF_CUTCHUNKS
#include "reprise/Stages/Passes.h.inc"
} // namespace reprise::stages

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

/// Of ops that every chunk makes itself.
static constexpr int64_t kEverywhere = -1;

namespace {
/// Which chunk each op of a function that goes forward is in, and what chunks
/// pass on.
class Cut {
public:
  Cut(func::FuncOp forward, ArrayRef<int64_t> layers)
      : forward(forward), block(forward.getBody().front()), layers(layers) {}

  LogicalResult find();
  /// Finds what of the borders has a gradient: what depends on a parameter that
  /// is trained.
  LogicalResult findTrained();
  /// Adds the function of a chunk to its module.
  void build(ModuleOp module, int64_t chunk) const;

private:
  int64_t getLayer(Operation *op) const;
  int64_t getChunkOfLayer(int64_t layer) const;
  /// Where an op outside of layers belongs.
  int64_t place(Operation *op) const;
  bool readsSamples(Value value) const;
  bool isTargets(Value value) const;
  LogicalResult findChunks();
  LogicalResult findBorders();
  /// The chunk that returns result `index`. What is made of parameters alone is
  /// everywhere: the last one does.
  int64_t getChunkOfResult(unsigned index) const;
  /// What a chunk returns, with what it says of that: what it passes on, or the
  /// loss, and of what is measured that which it makes.
  std::pair<SmallVector<Value>, SmallVector<DictionaryAttr>>
  getReturned(int64_t chunk) const;
  /// What a chunk says of a value of the border that it reads.
  DictionaryAttr getBorderRole(Value value) const;
  /// What the ops of a chunk need, in order: themselves, and what is
  /// everywhere.
  llvm::SetVector<Operation *> getOps(int64_t chunk) const;
  int64_t getNumChunks() const { return layers.size(); }
  Operation *getExit() const { return block.getTerminator(); }

  mutable func::FuncOp forward; // Whose accessors are not const.
  Block &block;
  ArrayRef<int64_t> layers; ///< of each chunk
  DenseMap<Operation *, int64_t> chunks;
  SmallVector<SmallVector<Value>> borders; ///< what chunk i passes on
  DenseSet<Value> untrained;               ///< of these
};

struct CutChunks : public stages::impl::CutChunksBase<CutChunks> {
  using CutChunksBase::CutChunksBase;

  void runOnOperation() override {
    if (failed(cut()))
      signalPassFailure();
  }

  LogicalResult cut();
  FailureOr<std::vector<int64_t>> split(func::FuncOp forward);
};
} // namespace

int64_t Cut::getLayer(Operation *op) const {
  ScopeAttr scope = getScope(op);
  return scope ? scope.getLayer() : -1;
}

int64_t Cut::getChunkOfLayer(int64_t layer) const {
  int64_t chunk = 0;
  for (int64_t end = layers[0]; layer >= end; end += layers[chunk])
    ++chunk;
  return chunk;
}

static bool isOfLoss(Operation *op) {
  ScopeAttr scope = getScope(op);
  return scope && scope.getModule() == getName(ModuleKind::Loss);
}

/// Of the samples, what the last chunk reads: to predict it, and to predict
/// what follows it.
bool Cut::isTargets(Value value) const {
  auto argument = dyn_cast<BlockArgument>(value);
  auto input = argument ? forward.getArgAttrOfType<StringAttr>(
                              argument.getArgNumber(), kInputAttr)
                        : StringAttr();
  return input && input.getValue() == "targets";
}

bool Cut::readsSamples(Value value) const {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return bool(forward.getArgAttr(argument.getArgNumber(), kInputAttr));
  return chunks.at(value.getDefiningOp()) != kEverywhere;
}

int64_t Cut::place(Operation *op) const {
  bool reads = isa<func::ReturnOp>(op), isBehind = false;
  int64_t latest = kEverywhere;
  for (Value operand : op->getOperands()) {
    reads |= readsSamples(operand);
    isBehind |= isTargets(operand);
    Operation *maker = operand.getDefiningOp();
    if (!maker || chunks.at(maker) == kEverywhere)
      continue;
    latest = std::max(latest, chunks.at(maker));
    isBehind |= getLayer(maker) >= 0 || chunks.at(maker) == getNumChunks() - 1;
  }
  if (isOfLoss(op) && reads)
    return latest == kEverywhere ? getNumChunks() - 1 : latest;
  if (isBehind)
    return getNumChunks() - 1;
  if (!reads)
    return kEverywhere;
  // The loss of a model without layers is behind all of them.
  return isa<func::ReturnOp>(op) ? getNumChunks() - 1 : 0;
}

LogicalResult Cut::findChunks() {
  for (Operation &op : block) {
    if (op.getNumRegions() != 0)
      return op.emitOpError("needs to be written out without regions to be cut "
                            "into chunks");
    int64_t layer = getLayer(&op);
    int64_t chunk = layer >= 0 ? getChunkOfLayer(layer) : place(&op);
    chunks[&op] = chunk;
    if (chunk == kEverywhere)
      continue;
    for (Value operand : op.getOperands())
      if (Operation *maker = operand.getDefiningOp();
          maker && chunks.at(maker) > chunk)
        return op.emitOpError("needs values of chunks up to its own, ")
               << chunk << ", but reads one of chunk " << chunks.at(maker);
  }
  return success();
}

/// Values cross each border between their maker and their last reader, in the
/// order in which they are read first. A chunk without layers passes on what it
/// gets.
LogicalResult Cut::findBorders() {
  SmallVector<llvm::SetVector<Value>> crossing(getNumChunks() - 1);
  for (Operation &op : block)
    for (Value operand : op.getOperands()) {
      Operation *maker = operand.getDefiningOp();
      // What is measured is returned by the chunk that makes it.
      bool isMeasured = &op == getExit() && operand != op.getOperand(0);
      if (!maker || chunks.at(maker) == kEverywhere || isMeasured)
        continue;
      for (int64_t c = chunks.at(maker); c < chunks.at(&op); ++c)
        crossing[c].insert(operand);
    }
  for (auto [chunk, values] : llvm::enumerate(crossing)) {
    if (values.empty())
      return forward.emitError("needs a value to cross from chunk ")
             << chunk << " to the next, but got none";
    for (Value value : values)
      if (!isa<FloatType>(getElementTypeOrSelf(value)))
        return value.getDefiningOp()->emitOpError("needs f32 or bf16 to cross "
                                                  "from chunk ")
               << chunk << " to the next, but got " << value.getType();
    borders.emplace_back(values.takeVector());
  }
  return success();
}

int64_t Cut::getChunkOfResult(unsigned index) const {
  Operation *maker = getExit()->getOperand(index).getDefiningOp();
  int64_t own = maker ? chunks.at(maker) : kEverywhere;
  return index == 0 || own == kEverywhere ? getNumChunks() - 1 : own;
}

llvm::SetVector<Operation *> Cut::getOps(int64_t chunk) const {
  llvm::SetVector<Operation *> needed, ordered;
  SmallVector<Operation *> open;
  for (Operation &op : block)
    if (chunks.at(&op) == chunk && &op != getExit() && needed.insert(&op))
      open.push_back(&op);
  for (OpOperand &result : getExit()->getOpOperands())
    if (Operation *maker = result.get().getDefiningOp();
        maker && chunks.at(maker) == kEverywhere &&
        getChunkOfResult(result.getOperandNumber()) == chunk &&
        needed.insert(maker))
      open.push_back(maker);
  while (!open.empty())
    for (Value operand : open.pop_back_val()->getOperands())
      if (Operation *maker = operand.getDefiningOp();
          maker && chunks.at(maker) == kEverywhere && needed.insert(maker))
        open.push_back(maker);
  for (Operation &op : block)
    if (needed.contains(&op))
      ordered.insert(&op);
  return ordered;
}

LogicalResult Cut::findTrained() {
  auto isTrained = [&](BlockArgument argument) {
    auto parameter = forward.getArgAttrOfType<ParameterAttr>(
        argument.getArgNumber(), kParameterAttr);
    return parameter && !parameter.getFrozen();
  };
  if (llvm::none_of(block.getArguments(), isTrained))
    return forward.emitError("needs a parameter to train, but all are frozen");
  DenseSet<Value> active = findActive(block, isTrained);
  for (ArrayRef<Value> border : borders)
    for (Value value : border)
      if (!active.contains(value))
        untrained.insert(value);
  return success();
}

LogicalResult Cut::find() {
  return failure(failed(findChunks()) || failed(findBorders()));
}

/// An empty module for a chunk, with all that is said of the whole.
static ModuleOp makeModule(OpBuilder &builder, ModuleOp whole, int64_t chunk) {
  auto module = ModuleOp::create(builder, whole.getLoc(),
                                 "chunk" + std::to_string(chunk));
  for (NamedAttribute attribute : whole->getDiscardableAttrs())
    module->setAttr(attribute.getName(), attribute.getValue());
  return module;
}

/// Whether the chunk returns an argument of the whole, one of its `ops` reads
/// it, or it is the first chunk's, as no op reads it: the state of dropout
/// where there is none.
static bool isArgumentOf(BlockArgument argument, int64_t chunk,
                         const llvm::SetVector<Operation *> &ops,
                         ArrayRef<Value> returned) {
  return (chunk == 0 && argument.use_empty()) ||
         llvm::is_contained(returned, argument) ||
         llvm::any_of(argument.getUsers(),
                      [&](Operation *user) { return ops.contains(user); });
}

DictionaryAttr Cut::getBorderRole(Value value) const {
  Builder builder(forward.getContext());
  NamedAttrList role;
  role.set(kInputAttr, builder.getStringAttr(kBorder));
  if (untrained.contains(value))
    role.set(kUntrainedAttr, builder.getUnitAttr());
  return role.getDictionary(builder.getContext());
}

std::pair<SmallVector<Value>, SmallVector<DictionaryAttr>>
Cut::getReturned(int64_t chunk) const {
  Builder builder(forward.getContext());
  int64_t last = getNumChunks() - 1;
  SmallVector<Value> values;
  SmallVector<DictionaryAttr> roles;
  if (chunk < last) {
    values = borders[chunk];
    roles.assign(values.size(),
                 builder.getDictionaryAttr(builder.getNamedAttr(
                     kOutputAttr, builder.getStringAttr(kBorder))));
  }
  for (auto [index, value] : llvm::enumerate(getExit()->getOperands())) {
    if (getChunkOfResult(index) != chunk)
      continue;
    DictionaryAttr role = forward.getResultAttrDict(index);
    values.push_back(value);
    roles.push_back(role ? role : builder.getDictionaryAttr({}));
  }
  return {values, roles};
}

void Cut::build(ModuleOp module, int64_t chunk) const {
  llvm::SetVector<Operation *> ops = getOps(chunk);
  auto [returned, roles] = getReturned(chunk);
  SmallVector<Value> arguments;
  SmallVector<DictionaryAttr> attributes;
  for (BlockArgument argument : forward.getArguments())
    if (isArgumentOf(argument, chunk, ops, returned)) {
      arguments.push_back(argument);
      attributes.push_back(forward.getArgAttrDict(argument.getArgNumber()));
    }
  OpBuilder inside = OpBuilder::atBlockEnd(module.getBody());
  if (chunk > 0)
    for (Value value : borders[chunk - 1]) {
      arguments.push_back(value);
      attributes.push_back(getBorderRole(value));
    }
  auto function = func::FuncOp::create(
      inside, forward.getLoc(), forward.getName(),
      inside.getFunctionType(ValueRange(arguments).getTypes(),
                             ValueRange(returned).getTypes()));
  for (NamedAttribute attribute : forward->getDiscardableAttrs())
    function->setAttr(attribute.getName(), attribute.getValue());
  function.setAllArgAttrs(attributes);
  function.setAllResultAttrs(roles);

  IRMapping mapping;
  Block *body = function.addEntryBlock();
  mapping.map(arguments, body->getArguments());
  inside.setInsertionPointToEnd(body);
  for (Operation *op : ops)
    inside.clone(*op, mapping);
  for (Value &value : returned)
    value = mapping.lookup(value);
  func::ReturnOp::create(inside, getExit()->getLoc(), returned);
}

/// Says of each parameter where it is in the whole model, and where its
/// gradient is in norms.
static void numberParameters(ModuleOp module, func::FuncOp forward) {
  Builder builder(module.getContext());
  int64_t number = 0, counts[kNumCutKinds] = {};
  for (unsigned index = 0; index < forward.getNumArguments(); ++index) {
    auto parameter =
        forward.getArgAttrOfType<ParameterAttr>(index, kParameterAttr);
    if (!parameter)
      continue;
    auto layout = forward.getArgAttrOfType<LayoutAttr>(index, kLayoutAttr);
    int kind = int(getCutKind(module, layout));
    int64_t place = parameter.getFrozen() ? -1 : counts[kind]++;
    forward.setArgAttr(index, kOrderAttr,
                       builder.getDenseI64ArrayAttr({number++, place}));
  }
  module->setAttr(kGradientCountsAttr, builder.getDenseI64ArrayAttr(counts));
}

/// Says in which order what chunks measure is shown.
static void orderMeasures(ModuleOp module, func::FuncOp forward) {
  SmallVector<Attribute> names;
  for (unsigned index = 0; index < forward.getNumResults(); ++index)
    if (Attribute name = forward.getResultAttr(index, kMeasureAttr))
      names.push_back(name);
  if (!names.empty())
    module->setAttr(kMeasuresAttr, ArrayAttr::get(module.getContext(), names));
}

FailureOr<std::vector<int64_t>> CutChunks::split(func::FuncOp forward) {
  auto recorded =
      getOperation()->getAttrOfType<DenseI64ArrayAttr>(kChunkLayersAttr);
  if (recorded && layers.empty() && layout.empty()) {
    stages = getAxisSize(getOperation(), kPipeAxis);
    virtualStages = recorded.size() / stages;
    layers = recorded.asArrayRef();
  }
  int64_t numLayers = 0;
  for (Operation &op : forward.getBody().front())
    if (ScopeAttr scope = getScope(&op))
      numLayers = std::max<int64_t>(numLayers, scope.getLayer() + 1);
  if (stages < 1 || virtualStages < 1)
    return forward.emitError("needs at least 1 pipeline stage and 1 virtual "
                             "stage, but got ")
           << int64_t(stages) << " and " << int64_t(virtualStages);
  LayerSplit wanted;
  wanted.stages = stages;
  wanted.virtualStages = virtualStages;
  wanted.layout.assign(layers.begin(), layers.end());
  std::vector<int64_t> chunks;
  int64_t further = 0; // Which are the last layers of the last chunk.
  if (!layout.empty()) {
    if (!layers.empty())
      return forward.emitError("needs 'layers' or 'layout', but got both");
    if (std::optional<std::string> fault =
            parseLayout(layout, wanted.layout, further))
      return forward.emitError() << *fault;
  }
  if (std::optional<std::string> fault = splitLayers(wanted, numLayers, chunks))
    return forward.emitError() << *fault;
  return chunks;
}

static bool canCut(func::FuncOp function) {
  return function.getBody().hasOneBlock() &&
         isa<func::ReturnOp>(function.getBody().front().getTerminator());
}

LogicalResult CutChunks::cut() {
  ModuleOp module = getOperation();
  auto forward = module.lookupSymbol<func::FuncOp>(kForwardFunction);
  if (!forward)
    return module.emitError("needs a function @forward to cut");
  if (!canCut(forward))
    return forward.emitError("needs one block that returns to be cut");
  SmallVector<func::FuncOp> functions = {forward};
  for (Operation &op : *module.getBody()) {
    auto function = dyn_cast<func::FuncOp>(op);
    bool goesForward = function && (function.getName() == kEvaluateFunction ||
                                    function.getName() == kSampleFunction);
    if (goesForward && canCut(function))
      functions.push_back(function);
    else if (&op != forward &&
             !op.getDialect()->getNamespace().starts_with("pipe"))
      return op.emitOpError("needs to be made of chunks later, but is beside "
                            "the @forward that is to be cut");
  }
  FailureOr<std::vector<int64_t>> chunks = split(forward);
  if (failed(chunks))
    return failure();
  if (chunks->size() == 1)
    return success();
  SmallVector<Cut> cuts;
  for (func::FuncOp function : functions)
    if (failed(cuts.emplace_back(function, *chunks).find()))
      return failure();
  if (failed(cuts.front().findTrained()))
    return failure();
  numberParameters(module, forward);
  orderMeasures(module, forward);
  OpBuilder builder(forward);
  for (int64_t chunk = 0; chunk < int64_t(chunks->size()); ++chunk) {
    ModuleOp own = makeModule(builder, module, chunk);
    for (const Cut &cut : cuts)
      cut.build(own, chunk);
  }
  for (func::FuncOp function : functions)
    function.erase();
  return success();
}
