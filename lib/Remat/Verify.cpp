//===- Verify.cpp - Checks applied recomputation --------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Step.h"
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
  LogicalResult verifyReplay(Operation *replay);
  LogicalResult explainDifference(Operation *replay);

  const Step &step;
  Originals originals;
  /// From an op of the forward phase to its replay.
  /// By original, and whether a gradient makes it on its way.
  DenseMap<std::pair<Operation *, unsigned>, Operation *> replays;
};
} // namespace

/// (V2)
LogicalResult Verifier::verifyReads(Operation *reader) {
  for (Value operand : reader->getOperands()) {
    if (!step.isDropped(operand))
      continue;
    InFlightDiagnostic error = reader->emitOpError(
        "needs a kept or replayed value in the backward phase, but got ");
    error << getFullName(cast<OpResult>(operand)) << ", which is dropped";
    error.attachNote(operand.getLoc())
        << "it is computed, and decided on, here";
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
  Operation *original = originals.find(replay); // V5
  if (!original)
    return explainDifference(replay);

  auto decision = original->getAttrOfType<RecomputeAttr>(kDecisionAttr); // V6
  auto segment = replay->getAttrOfType<IntegerAttr>(kReplayAttr).getInt();
  if (!decision || decision.getSegment() != segment) {
    InFlightDiagnostic error = replay->emitOpError("replays segment ");
    error << segment << ", but its original is ";
    if (decision)
      error << "in segment " << decision.getSegment();
    else
      error << "kept";
    error.attachNote(original->getLoc()) << "the original is here";
    return error;
  }
  auto [first, isNew] = replays.try_emplace( // V7
      {original, unsigned(replay->hasAttr(kFreeAttr))}, replay);
  if (isNew)
    return success();
  InFlightDiagnostic error = replay->emitOpError("needs to be the only replay "
                                                 "of its original");
  error.attachNote(first->second->getLoc()) << "the first one is here";
  return error;
}

LogicalResult Verifier::verify() {
  if (failed(step.verifyDecisions())) // V1
    return failure();
  for (Operation *op : step.forward) {
    if (isReplay(op)) // V3
      return op->emitOpError("needs to be below nn.backward to be a replay");
    if (isa<FenceOp>(op))
      return op->emitOpError("needs to be below nn.backward");
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
