//===- AnnotateFree.cpp - Drops what a gradient's kernel makes again ------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decide.h"
#include "mlir/IR/Remarks.h"
#include "reprise/Remat/Passes.h"

namespace reprise::remat {
#define GEN_PASS_DEF_ANNOTATEFREE
#include "reprise/Remat/Passes.h.inc"
} // namespace reprise::remat

using namespace mlir;
using namespace reprise;
using namespace reprise::remat;

namespace {
struct AnnotateFree : public remat::impl::AnnotateFreeBase<AnnotateFree> {
  void runOnOperation() override {
    auto decideAll = [&](const Step &step) {
      for (Operation *op : step.forward)
        decide(step, op);
      return success();
    };
    if (failed(onStep(getOperation(), decideAll)))
      signalPassFailure();
  }

  void decide(const Step &step, Operation *op);
};
} // namespace

void AnnotateFree::decide(const Step &step, Operation *op) {
  // What another decider keeps or shares stays, but for what it keeps for want
  // of use. What it drops needs no replay of its own.
  auto kept = op->getAttrOfType<SaveAttr>(kDecisionAttr);
  auto dropped = op->getAttrOfType<RecomputeAttr>(kDecisionAttr);
  if ((kept && kept.getSegment() < 0) ||
      op->getAttrOfType<ShareAttr>(kDecisionAttr) ||
      (dropped && dropped.getLabel() == kFreeLabel))
    return;
  if (getLayer(op) < 0 || !step.findSharedGradient(op))
    return;
  op->removeAttr(kDecisionAttr);
  decideToRecompute(op, dropped ? dropped.getSegment() : getLayer(op),
                    kFreeLabel, {0});
  remark::passed(op->getLoc(),
                 remark::RemarkOpts::name("Free").category("Remat").function(
                     getOperation().getSymName()))
      << getFullName(op->getResult(0))
      << remark::metric("bytes", getTypeBytes(op->getResult(0).getType()));
}
