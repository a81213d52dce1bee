//===- KeepIdleSegment.cpp - Keeps what a replay would not free -----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WhatIf.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Phases.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Interfaces/ExpertRounds.h"
#include "reprise/Planning/Passes.h"
#include "reprise/Solver/Budget.h"
#include <set>

namespace reprise::planning {
#define GEN_PASS_DEF_KEEPIDLESEGMENT
#include "reprise/Planning/Passes.h.inc"
} // namespace reprise::planning

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

namespace {
struct KeepIdleSegment
    : public planning::impl::KeepIdleSegmentBase<KeepIdleSegment> {
  KeepIdleSegment(Phases phases, KeepIdleSegmentOptions options)
      : KeepIdleSegmentBase(std::move(options)), phases(std::move(phases)) {}
  void runOnOperation() override;

  Phases phases;
};
} // namespace

/// The ops that are decided to be recomputed with the last layer, in order.
static SmallVector<Operation *> getLastSegment(func::FuncOp step) {
  SmallVector<Operation *> decided;
  int64_t lastLayer = -1, segment = -1;
  for (Operation &op : nn::getForward(step.getBody().front())) {
    nn::ScopeAttr scope = nn::getScope(&op);
    auto decision =
        op.getAttrOfType<remat::RecomputeAttr>(remat::kDecisionAttr);
    if (decision && decision.getLabel() == kRoundsLabel)
      decision = nullptr; // These are recomputed under every plan.
    if (decision)
      decided.push_back(&op);
    if (!scope || scope.getLayer() < lastLayer)
      continue;
    if (scope.getLayer() > lastLayer)
      segment = -1;
    lastLayer = scope.getLayer();
    if (decision)
      segment = decision.getSegment();
  }
  llvm::erase_if(decided, [&](Operation *op) {
    return op->getAttrOfType<remat::RecomputeAttr>(remat::kDecisionAttr)
               .getSegment() != segment;
  });
  return decided;
}

/// Keeps all of the input of a segment that is kept.
static void keepInput(func::FuncOp step, int64_t segment) {
  for (Operation &op : nn::getForward(step.getBody().front()))
    if (auto share = op.getAttrOfType<remat::ShareAttr>(remat::kDecisionAttr);
        share && share.getSegment() == segment)
      op.setAttr(
          remat::kDecisionAttr,
          remat::SaveAttr::get(op.getContext(),
                               "input of segment " + std::to_string(segment)));
}

/// Decides that `segment` is kept, with the number that it has.
static void keep(func::FuncOp step, ArrayRef<Operation *> segment) {
  if (segment.empty())
    return;
  int64_t number =
      segment.front()
          ->getAttrOfType<remat::RecomputeAttr>(remat::kDecisionAttr)
          .getSegment();
  for (Operation *op : segment)
    op->setAttr(remat::kDecisionAttr,
                remat::SaveAttr::get(
                    op->getContext(),
                    "in the segment before the loss, whose replay frees "
                    "nothing at the peak",
                    number));
  keepInput(step, number);
}

/// Leaves the layers of `segment` to a search, if it can find a plan of so
/// many.
static void leaveToBudget(ArrayRef<Operation *> segment) {
  std::set<int64_t> layers;
  for (Operation *op : segment)
    layers.insert(nn::getScope(op).getLayer());
  if (layers.size() <= solver::kMostSegmentLayers)
    for (Operation *op : segment)
      op->removeAttr(remat::kDecisionAttr);
}

/// Bytes that the program needs for what is alive at one time, with its last
/// segment as it is decided or kept; by how much packing misses that is no
/// merit of a plan.
static FailureOr<int64_t> planBytes(WhatIf &whatIf, bool isFree, bool isKept) {
  auto decide = [&](func::FuncOp step) {
    if (isKept)
      keep(step, getLastSegment(step));
  };
  auto program = whatIf.plan(decide, isFree, /*rowsApart=*/false);
  if (failed(program))
    return failure();
  FailureOr<PlannedBytes> bytes = getPlannedBytes(**program);
  if (failed(bytes))
    return failure();
  return bytes->least;
}

void KeepIdleSegment::runOnOperation() {
  auto step = getOperation().lookupSymbol<func::FuncOp>(nn::kStepFunction);
  SmallVector<Operation *> segment;
  if (step && step.getBody().hasOneBlock())
    segment = getLastSegment(step);
  if (segment.empty())
    return markAllAnalysesPreserved();
  if (leaveOpen)
    return leaveToBudget(segment);

  // What cannot be planned is refused by the phase that finds out.
  auto whatIf = WhatIf::create(getOperation(), phases);
  if (failed(whatIf))
    return;
  FailureOr<int64_t> before = planBytes(**whatIf, isFree, /*isKept=*/false);
  FailureOr<int64_t> after = planBytes(**whatIf, isFree, /*isKept=*/true);
  if (failed(before) || failed(after))
    return;
  bool isIdle = *after <= *before;
  int64_t number =
      segment.front()
          ->getAttrOfType<remat::RecomputeAttr>(remat::kDecisionAttr)
          .getSegment();
  if (isIdle)
    keep(step, segment);
  remark::passed(step.getLoc(), remark::RemarkOpts::name(
                                    isIdle ? "KeepSegment" : "ReplaySegment")
                                    .category("Remat")
                                    .function(step.getName()))
      << remark::metric("segment", number)
      << remark::metric("bytes", *after - *before);
}

std::unique_ptr<Pass>
planning::createKeepIdleSegment(Phases phases, KeepIdleSegmentOptions options) {
  return std::make_unique<KeepIdleSegment>(std::move(phases),
                                           std::move(options));
}
