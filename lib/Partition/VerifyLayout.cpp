//===- VerifyLayout.cpp - Proves how values are spread ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Words.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "reprise/Dialect/NN/Parts.h"
#include "reprise/Dialect/NN/Phases.h"
#include "reprise/Interfaces/Facts.h"
#include "reprise/Partition/Passes.h"
#include "reprise/Support/Borders.h"
#include "llvm/ADT/SetOperations.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

namespace reprise::partition {
#define GEN_PASS_DEF_VERIFYLAYOUT
#include "reprise/Partition/Passes.h.inc"
} // namespace reprise::partition

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;
using namespace reprise::partition;

namespace {
/// The words of a rank's forward pass, from those of its arguments on.
class ForwardVerifier {
public:
  explicit ForwardVerifier(func::FuncOp forward) : forward(forward) {}
  LogicalResult run(MeshAttr mesh);

private:
  LogicalResult verify(Operation *op);

  func::FuncOp forward;
  DenseMap<Value, Read> reads;
};

/// The axes along which something is summed, each once.
using Axes = llvm::SmallSetVector<StringRef, 4>;

/// What the update of a step sums over ranks.
class SumVerifier {
public:
  SumVerifier(func::FuncOp step, MeshAttr mesh)
      : step(step), mesh(mesh), update(findPhase(step, StepPhase::Update)) {}
  LogicalResult run();

private:
  LogicalResult verifyGradient(BlockArgument argument, Value gradient);
  LogicalResult verifyLoss();
  /// The axes of the sums over ranks that lead to `value` in the update.
  FailureOr<Axes> getSummed(Value value);
  FailureOr<Axes> findSummed(Operation *op, unsigned result);
  FailureOr<Axes> getSummedAlike(Operation *op, FailureOr<Axes> sum,
                                 Value more);
  /// Those along which a parameter's gradient is a part of a sum.
  Axes getPartial(BlockArgument argument);

  func::FuncOp step;
  MeshAttr mesh;
  Operation *update;
  DenseMap<Value, Axes> summed; ///< What getSummed has found.
};

struct VerifyLayout : public partition::impl::VerifyLayoutBase<VerifyLayout> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
    if (!mesh)
      return markAllAnalysesPreserved();
    auto forward = module.lookupSymbol<func::FuncOp>(kForwardFunction);
    auto step = module.lookupSymbol<func::FuncOp>(kStepFunction);
    if (forward && !forward.isExternal() && mesh.getSize(kTensorAxis) > 1 &&
        failed(ForwardVerifier(forward).run(mesh)))
      return signalPassFailure();
    if (step && findPhase(step, StepPhase::Update) &&
        failed(SumVerifier(step, mesh).run()))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// The forward pass
//===----------------------------------------------------------------------===//

/// What draws for a part draws for these elements of the whole.
static LogicalResult verifyDrawn(Operation *op, Spread spread) {
  auto own = dyn_cast<Partitionable>(op);
  auto rate = op->getAttrOfType<FloatAttr>("rate");
  if (!own || !rate || rate.getValue().isZero())
    return success();
  auto part = op->getAttrOfType<PartAttr>("part");
  if (part && part.getAxis() != kTensorAxis)
    part = nullptr;
  std::optional<int64_t> dim;
  if (spread.isShard())
    dim = own.getDrawnDim(spread.dim);
  else if (part)
    return op->emitOpError("draws for its part along 'tp' what all ranks need "
                           "to draw alike");
  if (!dim || (part && part.getDim() == *dim))
    return success();
  return op->emitOpError("needs to draw for its part along 'tp' of dimension ")
         << *dim << ", but "
         << (part
                 ? "draws for one of dimension " + std::to_string(part.getDim())
                 : std::string("draws on all ranks alike"));
}

LogicalResult ForwardVerifier::verify(Operation *op) {
  SmallVector<Read> own;
  for (Value operand : op->getOperands())
    own.push_back(reads.lookup(operand));
  FailureOr<SmallVector<Spread>> spreads = inferSpreads(op, own);
  if (failed(spreads))
    return failure();
  bool isData = llvm::all_of(own, [](const Read &read) { return read.isData; });
  for (auto [result, spread] : llvm::zip_equal(op->getResults(), *spreads))
    reads[result] = {spread,
                     isData || getElementTypeOrSelf(result).isInteger()};
  return op->getNumResults() == 0 ? success()
                                  : verifyDrawn(op, spreads->front());
}

LogicalResult ForwardVerifier::run(MeshAttr mesh) {
  for (BlockArgument argument : forward.getArguments()) {
    unsigned index = argument.getArgNumber();
    auto layout = forward.getArgAttrOfType<LayoutAttr>(index, kLayoutAttr);
    auto parameter =
        forward.getArgAttrOfType<ParameterAttr>(index, kParameterAttr);
    reads[argument] = {Spread::get(layout, mesh.getSize(kHeadCopiesAxis)),
                       !parameter || parameter.getFrozen()};
  }
  Block &block = forward.getBody().front();
  for (Operation &op : block.without_terminator())
    if (failed(verify(&op)))
      return failure();
  for (auto [index, value] :
       llvm::enumerate(block.getTerminator()->getOperands()))
    if (Spread spread = reads.lookup(value).spread; spread != Spread())
      return block.getTerminator()->emitOpError(
                 "needs I along 'tp' as result #")
             << index << ", one number for all ranks, but got "
             << spell(spread);
  return success();
}

//===----------------------------------------------------------------------===//
// The update
//===----------------------------------------------------------------------===//

static std::string spell(const Axes &axes) {
  return axes.empty() ? "none" : llvm::join(axes, ", ");
}

FailureOr<Axes> SumVerifier::getSummed(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !update->isBeforeInBlock(op))
    return Axes();
  if (auto known = summed.find(value); known != summed.end())
    return known->second;
  FailureOr<Axes> axes =
      findSummed(op, cast<OpResult>(value).getResultNumber());
  if (succeeded(axes))
    summed[value] = *axes;
  return axes;
}

FailureOr<Axes> SumVerifier::findSummed(Operation *op, unsigned result) {
  if (auto running = dyn_cast<RunningSum>(op))
    return getSummedAlike(op, getSummed(running.getSum()), running.getTerm());
  bool isSum = sumsOverRanks(op);
  bool isShare = !isCollective(op) && !getAxis(op).empty();
  if (!isSum && !isShare)
    return Axes();
  FailureOr<Axes> axes = getSummed(op->getOperand(result));
  for (size_t more = result + op->getNumResults();
       succeeded(axes) && isSum && more < op->getNumOperands();
       more += op->getNumResults())
    axes = getSummedAlike(op, axes, op->getOperand(more));
  if (succeeded(axes) && isSum && !axes->insert(getAxis(op)))
    return op->emitOpError("sums over ranks along '")
           << getAxis(op) << "' what is such a sum already";
  return axes;
}

/// What groups of micro-batches have is added up before or behind ranks have
/// added theirs, all of it: `sum` is what `more` is added to.
FailureOr<Axes> SumVerifier::getSummedAlike(Operation *op, FailureOr<Axes> sum,
                                            Value more) {
  FailureOr<Axes> term = getSummed(more);
  if (failed(sum) || failed(term))
    return failure();
  if (llvm::set_is_subset(*sum, *term) && llvm::set_is_subset(*term, *sum))
    return sum;
  return op->emitOpError("adds what is summed along ")
         << spell(*term) << " to what is summed along " << spell(*sum);
}

Axes SumVerifier::getPartial(BlockArgument argument) {
  unsigned index = argument.getArgNumber();
  auto layout = step.getArgAttrOfType<LayoutAttr>(index, kLayoutAttr);
  Axes axes;
  StringRef samples = getSamplesAxis(layout);
  for (StringRef axis : kMeshAxes) {
    bool isUsedApart = layout && layout.getWord(axis) == Word::Replicated &&
                       axis != kExpertCopiesAxis;
    if (mesh.getSize(axis) > 1 && (axis == samples || isUsedApart))
      axes.insert(axis);
  }
  if (step.getArgAttr(index, kSumStagesAttr))
    axes.insert(kPipeAxis);
  return axes;
}

LogicalResult SumVerifier::verifyGradient(BlockArgument argument,
                                          Value gradient) {
  FailureOr<Axes> axes = getSummed(gradient);
  if (failed(axes))
    return failure();
  Axes partial = getPartial(argument);
  if (llvm::set_is_subset(*axes, partial) &&
      llvm::set_is_subset(partial, *axes))
    return success();
  auto parameter = step.getArgAttrOfType<ParameterAttr>(argument.getArgNumber(),
                                                        kParameterAttr);
  return step.emitError("needs the gradient of '")
         << parameter.getName() << "' summed along " << spell(partial)
         << ", but it is summed along " << spell(*axes);
}

/// It is that of all samples, and so is each term that the update adds to it.
LogicalResult SumVerifier::verifyLoss() {
  Operation *exit = step.getBody().front().getTerminator();
  SmallVector<Value> terms;
  for (auto [index, value] : llvm::enumerate(exit->getOperands())) {
    auto output = step.getResultAttrOfType<StringAttr>(index, kOutputAttr);
    if (output && output.getValue() == "loss" && mesh.getSize(kDataAxis) > 1)
      terms.push_back(value);
  }
  DenseSet<Value> seen;
  while (!terms.empty()) {
    Value term = terms.pop_back_val();
    if (!seen.insert(term).second)
      continue;
    Operation *op = term.getDefiningOp();
    if (op && update->isBeforeInBlock(op) && getAxis(op).empty()) {
      llvm::append_range(terms, op->getOperands());
      continue;
    }
    FailureOr<Axes> axes = getSummed(term);
    if (failed(axes))
      return failure();
    if (!axes->contains(kDataAxis))
      return step.emitError("needs the loss summed along 'dp', but it is "
                            "summed along ")
             << spell(*axes);
  }
  return success();
}

LogicalResult SumVerifier::run() {
  for (auto rule : step.getOps<ParameterUpdate>()) {
    Value parameter = rule.getParameter();
    if (Operation *share = parameter.getDefiningOp();
        share && share->getNumOperands() != 0)
      parameter = share->getOperand(0);
    auto argument = dyn_cast<BlockArgument>(parameter);
    if (argument && step.getArgAttr(argument.getArgNumber(), kParameterAttr) &&
        failed(verifyGradient(argument, rule.getGradient())))
      return failure();
  }
  return verifyLoss();
}
