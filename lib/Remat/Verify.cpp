//===- Verify.cpp - Checks applied recomputation --------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Share.h"
#include "reprise/Dialect/NN/Parts.h"
#include "reprise/Remat/Passes.h"

namespace reprise::remat {
#define GEN_PASS_DEF_VERIFY
#include "reprise/Remat/Passes.h.inc"
} // namespace reprise::remat

using namespace mlir;
using namespace reprise;
using namespace reprise::remat;

namespace {
struct Verify : public remat::impl::VerifyBase<Verify> {
  void runOnOperation() override;
};

class Verifier {
public:
  explicit Verifier(const Step &step) : step(step), originals(step) {}
  LogicalResult verify();

private:
  LogicalResult verifyReads(Operation *reader);
  LogicalResult verifyFence(FenceOp fence);
  LogicalResult verifyPart(Operation *op);
  LogicalResult verifyReplay(Operation *replay);
  LogicalResult verifyGather(Operation *gather, Value whole);
  LogicalResult verifySegment(Operation *replay, Location original,
                              std::optional<int64_t> decided);
  LogicalResult explainDifference(Operation *replay);

  const Step &step;
  Originals originals;
  /// From an op of the forward phase to its replay.
  /// By original, and whether a gradient makes it on its way.
  DenseMap<std::pair<Operation *, unsigned>, Operation *> replays;
  DenseMap<Value, Operation *> gathers; ///< by what they make whole
};
} // namespace

/// (V2)
LogicalResult Verifier::verifyReads(Operation *reader) {
  for (Value operand : reader->getOperands()) {
    if (!step.isDropped(operand) && !step.getShare(operand))
      continue;
    InFlightDiagnostic error = reader->emitOpError(
        "needs a kept or replayed value in the backward phase, but got ");
    explainAbsence(error, step, operand);
    return error;
  }
  return success();
}

/// (V8)
LogicalResult Verifier::verifyFence(FenceOp fence) {
  for (Value after : fence.getAfter()) {
    Operation *op = after.getDefiningOp();
    if (op && !step.isForward(op))
      continue;
    InFlightDiagnostic error =
        fence.emitOpError("needs to wait for a value of the backward phase");
    error.attachNote(after.getLoc()) << "this one is there before";
    return error;
  }
  return success();
}

/// Says how `replay`, which has no original, differs from the op that its scope
/// points at.
LogicalResult Verifier::explainDifference(Operation *replay) {
  ArrayRef<Operation *> candidates = originals.getCandidates(replay);
  if (candidates.empty())
    return replay->emitOpError("needs an original in the forward phase to be "
                               "a replay of, with scope ")
           << nn::getScopeName(nn::getScope(replay)) << ", but there is none";
  Operation *original = candidates.front();
  InFlightDiagnostic error = replay->emitOpError("needs the ");
  error.attachNote(original->getLoc()) << "the original is here";
  for (NamedAttribute attribute : getOwnAttributes(original))
    if (replay->getAttr(attribute.getName()) != attribute.getValue())
      return error << "attribute '" << attribute.getName().strref()
                   << "' of its original, " << attribute.getValue()
                   << ", but got " << replay->getAttr(attribute.getName());
  if (original->getNumOperands() == replay->getNumOperands())
    for (auto [index, operand] : llvm::enumerate(original->getOperands()))
      if (originals.trace(replay->getOperand(index)) != operand)
        return error << "operands of its original, again or behind a fence, "
                        "but operand "
                     << index << " is another";
  return error << "attributes, operands and types of its original, but has "
                  "others";
}

/// (V6): `decided` is the segment of what is replayed, if it is.
LogicalResult Verifier::verifySegment(Operation *replay, Location original,
                                      std::optional<int64_t> decided) {
  auto segment = replay->getAttrOfType<IntegerAttr>(kReplayAttr).getInt();
  if (decided == segment)
    return success();
  InFlightDiagnostic error = replay->emitOpError("replays segment ");
  error << segment << ", but its original is ";
  if (decided)
    error << "in segment " << *decided;
  else
    error << "kept";
  error.attachNote(original) << "the original is here";
  return error;
}

/// (V6), (V7) and (V9) of what makes `whole` again of its parts.
LogicalResult Verifier::verifyGather(Operation *gather, Value whole) {
  ShareAttr decision = step.getShare(whole);
  std::optional<int64_t> segment;
  if (decision && decision.getAxis() == nn::getAxis(gather))
    segment = decision.getSegment();
  if (failed(verifySegment(gather, whole.getLoc(), segment)))
    return failure();
  auto [first, isNew] = gathers.try_emplace(whole, gather);
  if (isNew)
    return success();
  InFlightDiagnostic error =
      gather->emitOpError("needs to be the only one of its parts");
  error.attachNote(first->second->getLoc()) << "the first one is here";
  return error;
}

/// (V3) to (V7)
LogicalResult Verifier::verifyReplay(Operation *replay) {
  if (step.update && step.update->isBeforeInBlock(replay))
    return replay->emitOpError("needs to be above nn.update to be a replay");
  for (auto [index, operand] : llvm::enumerate(replay->getOperands())) { // V4
    Operation *op = operand.getDefiningOp();
    if (!op || isReplay(op) || isa<FenceOp>(op))
      continue;
    InFlightDiagnostic error = replay->emitOpError(
        "needs a replayed value, a fence or an argument as operand ");
    error << index << ", but got a result of '" << op->getName() << "'";
    error.attachNote(op->getLoc()) << "it is computed here";
    return error;
  }
  if (Value whole = originals.findShared(replay))
    return verifyGather(replay, whole);
  Operation *original = originals.find(replay); // V5
  if (!original)
    return explainDifference(replay);

  auto decision = original->getAttrOfType<RecomputeAttr>(kDecisionAttr);
  std::optional<int64_t> segment;
  if (decision)
    segment = decision.getSegment();
  if (failed(verifySegment(replay, original->getLoc(), segment)))
    return failure();
  auto [first, isNew] = replays.try_emplace( // V7
      {original, unsigned(replay->hasAttr(kFreeAttr))}, replay);
  if (isNew)
    return success();
  InFlightDiagnostic error = replay->emitOpError("needs to be the only replay "
                                                 "of its original");
  error.attachNote(first->second->getLoc()) << "the first one is here";
  return error;
}

/// (V9)
LogicalResult Verifier::verifyPart(Operation *op) {
  if (!op->hasAttr(kShareAttr))
    return success();
  Value whole = nn::getWhole(op);
  ShareAttr decision = whole ? step.getShare(whole) : ShareAttr();
  if (decision && decision.getAxis() == nn::getAxis(op))
    return success();
  return op->emitOpError("needs to take a part of a value that is decided to "
                         "be shared, along its axis, to have 'remat.share'");
}

LogicalResult Verifier::verify() {
  if (failed(step.verifyDecisions())) // V1
    return failure();
  for (Operation *op : step.forward) {
    if (isReplay(op)) // V3
      return op->emitOpError("needs to be below nn.backward to be a replay");
    if (isa<FenceOp>(op))
      return op->emitOpError("needs to be below nn.backward");
    if (failed(verifyPart(op)))
      return failure();
  }
  for (Operation *op : step.below) {
    if (failed(verifyReads(op)))
      return failure();
    if (auto fence = dyn_cast<FenceOp>(op))
      if (failed(verifyFence(fence)))
        return failure();
    if (isReplay(op) && failed(verifyReplay(op)))
      return failure();
  }
  return success();
}

void Verify::runOnOperation() {
  FailureOr<Step> step = getStep(getOperation());
  if (failed(step) || (step->backward && failed(Verifier(*step).verify())))
    return signalPassFailure();
  markAllAnalysesPreserved();
}
