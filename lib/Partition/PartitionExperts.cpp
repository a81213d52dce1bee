//===- PartitionExperts.cpp - The experts of one rank -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Goes over the ops in program order. Rows of tokens, sorted by expert, are at
// home on the rank of the tokens. A GEMM with the weights of experts is done
// where these are: its rows go there, and what it makes is there. So is what is
// made of that row by row. What else reads it has it sent back.
//
//===----------------------------------------------------------------------===//

#include "ExpertRounds.h"
#include "Layout.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Dialect/NN/NNExpertRankOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Interfaces/EvenRows.h"
#include "reprise/Interfaces/ExpertRounds.h"
#include "reprise/Interfaces/Partitionable.h"
#include "reprise/Partition/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace reprise::partition {
#define GEN_PASS_DEF_PARTITIONEXPERTS
#include "reprise/Partition/Passes.h.inc"
} // namespace reprise::partition

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

namespace {
/// Where the rows of one choice of experts go.
struct Routing {
  GatherOffsetsOp gather; ///< Or null.
  Value all, own;    ///< The offsets of all ranks, and of the rank's experts.
  int64_t home = 0;  ///< rows of the tokens
  int64_t there = 0; ///< the most rows that a rank's experts can have
};

class ExpertPartitioner {
public:
  ExpertPartitioner(func::FuncOp forward, MeshAttr mesh, IntegerAttr rows)
      : forward(forward), rows(rows), ranks(mesh.getSize(kExpertAxis)),
        copies(mesh.getSize(kExpertCopiesAxis)),
        isWhole(partition::hasWholeExperts(mesh)),
        builder(forward.getContext()),
        axis(builder.getStringAttr(kExpertAxis)) {}
  LogicalResult run();

private:
  LogicalResult partition(Operation *op);
  LogicalResult partitionGemm(Partitionable op, ArrayRef<unsigned> operands);
  LogicalResult checkSort(Operation *op, Value rows, Value offsets);
  LogicalResult partitionRows(Operation *op, Value offsets);
  LayoutAttr getOfExperts(LayoutAttr layout);
  LogicalResult takeExperts(Operation *op, Value weight);
  FailureOr<const Routing *> getRouting(Operation *op, Value offsets,
                                        Value inverse);
  Value send(Operation *op, Value rows, Value offsets);
  Value moveBack(Operation *op, Value rows);
  /// The scope of `op` on what moves the value called `name`.
  void setScope(Operation *made, Operation *op, StringRef name);

  func::FuncOp forward;
  IntegerAttr rows; ///< of an expert in a round, or null
  int64_t ranks, copies;
  bool isWhole; ///< experts are, on ranks along `tp`, too
  OpBuilder builder;
  StringAttr axis;
  llvm::MapVector<Value, Routing> routings; ///< By the offsets at home.
  /// The offsets at home of values whose rows are with their experts.
  DenseMap<Value, Value> placed;
  /// What is moved already; rows of tokens by these and their order.
  DenseMap<std::pair<Value, Value>, Value> tokens;
  DenseMap<Value, Value> sent, returned;
};

struct PartitionExperts
    : public partition::impl::PartitionExpertsBase<PartitionExperts> {
  void getDependentDialects(DialectRegistry &registry) const override {
    PartitionExpertsBase::getDependentDialects(registry);
    registry.insert<remat::RematDialect>();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (getAxisSize(module, kExpertAxis) == 1)
      return;
    if (!module.lookupSymbol<func::FuncOp>(kForwardFunction)) {
      module.emitError("needs a function @forward to partition");
      return signalPassFailure();
    }
    auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
    auto rows = module->getAttrOfType<IntegerAttr>(kExpertRowsAttr);
    for (StringRef name :
         {kForwardFunction, kEvaluateFunction, kSampleFunction})
      if (auto function = module.lookupSymbol<func::FuncOp>(name))
        if (failed(ExpertPartitioner(function, mesh, rows).run()))
          return signalPassFailure();
  }
};
} // namespace

static RankedTensorType getTensor(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The type of `value` with another number of rows.
static RankedTensorType getWithRows(Value value, int64_t rows) {
  SmallVector<int64_t> shape(getTensor(value).getShape());
  shape.front() = rows;
  return getTensor(value).clone(shape);
}

/// Whether `op` moves a value along `tp`, or takes a rank's part of it.
static bool isMoveOfParts(Operation *op) {
  auto axis = op->getAttrOfType<StringAttr>("axis");
  return axis && axis.getValue() == kTensorAxis && op->getNumOperands() == 1 &&
         op->getNumResults() == 1;
}

/// What `value` is called on one rank: so rows have the same names on all
/// meshes, whichever way tokens came to a rank along `tp`.
static StringRef getName(Value value) {
  Operation *maker = value.getDefiningOp();
  while (maker && isMoveOfParts(maker) && maker->getOperand(0).getDefiningOp())
    maker = maker->getOperand(0).getDefiningOp();
  ScopeAttr scope = maker ? nn::getScope(maker) : ScopeAttr();
  return scope ? scope.getValue() : StringRef();
}

void ExpertPartitioner::setScope(Operation *made, Operation *op,
                                 StringRef name) {
  ScopeAttr scope = nn::getScope(op);
  if (!scope)
    return;
  std::string own;
  if (!name.empty())
    own = (name + "." + made->getName().stripDialect()).str();
  made->setAttr(kScopeAttr, ScopeAttr::get(op->getContext(), scope.getLayer(),
                                           scope.getModule(), own));
}

//===----------------------------------------------------------------------===//
// Rows on their way
//===----------------------------------------------------------------------===//

/// A rank's experts get of each rank the rows of all of its tokens at most, and
/// each token's for so many of them as it has slots; or what their capacities
/// allow.
FailureOr<const Routing *>
ExpertPartitioner::getRouting(Operation *op, Value offsets, Value inverse) {
  Routing &routing = routings[offsets];
  if (routing.all)
    return &routing;
  Operation *sort = offsets.getDefiningOp();
  int64_t experts = getTensor(offsets).getNumElements() - 1;
  if (!sort || sort->getNumResults() < 2 || !inverse)
    return op->emitOpError("needs rows of tokens, sorted by nn.sort_rows, to "
                           "be on ")
           << ranks << " ranks along 'ep'";
  if (experts % ranks != 0)
    return op->emitOpError("needs experts that the ")
           << ranks << " ranks along 'ep' divide, but got " << experts;
  int64_t slots = getTensor(inverse).getShape().back();
  int64_t numTokens = getTensor(inverse).getNumElements() / slots;
  int64_t own = experts / ranks, most = numTokens * std::min(slots, own);
  if (auto capacity = sort->getAttrOfType<IntegerAttr>("capacity"))
    most = std::min(most, own * capacity.getInt());
  routing.there = ranks * most;
  builder.setInsertionPointAfter(sort);
  Type i32 = builder.getI32Type();
  auto gather = GatherOffsetsOp::create(
      builder, sort->getLoc(), RankedTensorType::get({ranks, experts + 1}, i32),
      RankedTensorType::get({own + 1}, i32), offsets, axis,
      /*rows=*/IntegerAttr());
  setScope(gather, sort, getName(offsets));
  routing.gather = gather;
  routing.all = gather.getAll();
  routing.own = gather.getOwn();
  return &routing;
}

Value ExpertPartitioner::send(Operation *op, Value rows, Value offsets) {
  Value &found = sent[rows];
  if (found)
    return found;
  Routing &routing = routings[offsets];
  routing.home = getTensor(rows).getDimSize(0);
  builder.setInsertionPoint(op);
  auto made = SendRowsOp::create(builder, op->getLoc(),
                                 getWithRows(rows, routing.there), rows,
                                 routing.all, axis, /*round=*/IntegerAttr(),
                                 /*rows=*/IntegerAttr());
  // Rows of tokens are called as what the tokens have.
  StringRef name = getName(rows);
  name.consume_back(".dispatch");
  // They belong where they were made, not where they are read.
  Operation *maker = rows.getDefiningOp();
  setScope(made, maker && nn::getScope(maker) ? maker : op, name);
  placed[made] = offsets;
  return found = made;
}

Value ExpertPartitioner::moveBack(Operation *op, Value rows) {
  Value &found = returned[rows];
  if (found)
    return found;
  const Routing &routing = routings[placed[rows]];
  builder.setInsertionPoint(op);
  auto made = ReturnRowsOp::create(builder, op->getLoc(),
                                   getWithRows(rows, routing.home), rows,
                                   routing.all, /*kept=*/Value(), axis,
                                   /*round=*/IntegerAttr(),
                                   /*rows=*/IntegerAttr());
  setScope(made, op, getName(rows));
  return found = made;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// Whether ranks have parts of the first dimension, the experts.
static bool isCutByExperts(LayoutAttr layout) {
  return layout && llvm::any_of(layout.getNames(), [&](StringAttr axis) {
           return layout.getShardDim(axis) == 0;
         });
}

/// Of weights that ranks have the experts of, and along `tp` what they have of
/// each. Those along `tp` that have whole experts are ranks along `ep`.
LayoutAttr ExpertPartitioner::getOfExperts(LayoutAttr layout) {
  SmallVector<StringAttr> names;
  SmallVector<Word> words;
  SmallVector<int64_t> dims;
  if (layout && !isWhole) {
    names.assign(layout.getNames().begin(), layout.getNames().end());
    words.assign(layout.getWords().begin(), layout.getWords().end());
    dims.assign(layout.getDims().begin(), layout.getDims().end());
  }
  auto add = [&](StringAttr name, Word word, int64_t dim) {
    names.push_back(name), words.push_back(word), dims.push_back(dim);
  };
  add(axis, Word::Shard, 0);
  if (copies > 1)
    add(builder.getStringAttr(kExpertCopiesAxis), Word::Replicated, 0);
  return LayoutAttr::get(forward.getContext(), names, words, dims);
}

/// A rank has the weights of its experts.
LogicalResult ExpertPartitioner::takeExperts(Operation *op, Value weight) {
  SmallVector<Value> copies = {weight};
  while (getPartWay(copies.back().getDefiningOp()) == PartWay::Rounding)
    copies.push_back(copies.back().getDefiningOp()->getOperand(0));
  auto argument = dyn_cast<BlockArgument>(copies.back());
  if (!argument)
    return op->emitOpError("needs the weights of experts to be a parameter, to "
                           "be on ")
           << ranks << " ranks along 'ep'";
  unsigned number = argument.getArgNumber();
  auto layout = forward.getArgAttrOfType<LayoutAttr>(number, kLayoutAttr);
  if (isCutByExperts(layout))
    return op->emitOpError("needs weights that one op reads, and that ranks "
                           "have no other experts of, but argument #")
           << number << " is in parts already";
  for (Value copy : copies)
    copy.setType(getWithRows(copy, getTensor(copy).getDimSize(0) / ranks));
  forward.setArgAttr(number, kLayoutAttr, getOfExperts(layout));
  return success();
}

LogicalResult ExpertPartitioner::partitionGemm(Partitionable op,
                                               ArrayRef<unsigned> operands) {
  bool ofTokens = operands.size() == 3;
  Value offsets = op->getOperand(operands[0]), rows = op->getOperand(0);
  Value order = ofTokens ? op->getOperand(operands[1]) : Value();
  Value inverse = ofTokens ? op->getOperand(operands[2]) : Value();
  FailureOr<const Routing *> routing = getRouting(op, offsets, inverse);
  if (failed(routing) || failed(takeExperts(op, op->getOperand(1))))
    return failure();
  if (ofTokens) {
    Value &found = tokens[{rows, order}];
    if (!found) {
      builder.setInsertionPoint(op);
      auto type = RankedTensorType::get({getTensor(order).getNumElements(),
                                         getTensor(rows).getShape().back()},
                                        getTensor(rows).getElementType());
      auto made =
          DispatchOp::create(builder, op.getLoc(), type, rows, order, inverse);
      setScope(made, op, getName(rows));
      found = made;
    }
    rows = found;
  }
  if (failed(checkSort(op, rows, offsets)))
    return failure();
  if (!placed.contains(rows))
    rows = send(op, rows, offsets);
  builder.setInsertionPoint(op);
  Value out = op->getResult(0);
  auto made = GroupedLinearOp::create(
      builder, op.getLoc(), getWithRows(out, (*routing)->there), rows,
      op->getOperand(1), (*routing)->own, Value(), Value());
  made->setAttr(kScopeAttr, op->getAttr(kScopeAttr));
  // As many come as others get.
  made->setAttr(kEvenNNRowsAttr,
                builder.getI64IntegerAttr(getTensor(out).getDimSize(0)));
  placed[made] = offsets;
  out.replaceAllUsesWith(made);
  op->erase();
  return success();
}

/// Rows that two sorts have placed lie in two orders there.
LogicalResult ExpertPartitioner::checkSort(Operation *op, Value rows,
                                           Value offsets) {
  Value known = placed.lookup(rows);
  if (!known || known == offsets)
    return success();
  return op->emitOpError("needs rows that one nn.sort_rows has sorted, to be "
                         "on ")
         << ranks << " ranks along 'ep'";
}

LogicalResult ExpertPartitioner::partitionRows(Operation *op, Value offsets) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (failed(checkSort(op, operand.get(), offsets)))
      return failure();
    if (!placed.contains(operand.get()))
      operand.set(send(op, operand.get(), offsets));
  }
  for (Value result : op->getResults()) {
    result.setType(getWithRows(result, routings[offsets].there));
    placed[result] = offsets;
  }
  return success();
}

LogicalResult ExpertPartitioner::partition(Operation *op) {
  if (auto own = dyn_cast<Partitionable>(op))
    if (SmallVector<unsigned> operands = own.getExpertOperands();
        !operands.empty())
      return partitionGemm(own, operands);
  Value offsets;
  for (Value operand : op->getOperands())
    if (!offsets)
      offsets = placed.lookup(operand);
  if (!offsets)
    return success();
  if (op->hasTrait<nn::Rowwise>() || op->hasTrait<nn::Pointwise>())
    return partitionRows(op, offsets);
  for (OpOperand &operand : op->getOpOperands())
    if (placed.contains(operand.get()))
      operand.set(moveBack(op, operand.get()));
  return success();
}

LogicalResult ExpertPartitioner::run() {
  for (Operation &op : llvm::make_early_inc_range(forward.getOps()))
    if (failed(partition(&op)))
      return failure();
  if (rows)
    for (auto &[offsets, routing] : routings)
      if (failed(partition::splitIntoRounds(routing.gather, rows.getInt())))
        return failure();
  Block &block = forward.getBody().front();
  forward.setType(builder.getFunctionType(
      block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
  return success();
}
