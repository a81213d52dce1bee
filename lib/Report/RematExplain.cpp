//===- RematExplain.cpp - Prints why values are kept or replayed ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Remarks.h"
#include "reprise/Report/Decisions.h"
#include "reprise/Report/Passes.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

namespace reprise::report {
#define GEN_PASS_DEF_REMATEXPLAIN
#include "reprise/Report/Passes.h.inc"
} // namespace reprise::report

using namespace mlir;
using namespace reprise;
using namespace reprise::report;
using remark::RemarkOpts, remark::metric;

/// Microseconds, the unit of times in remarks.
static int64_t getMicroseconds(double seconds) {
  return std::llround(seconds * 1e6);
}

static void remarkDecision(Location loc, RemarkOpts options, const Plan &plan,
                           const Decision &decision, int64_t layer) {
  constexpr llvm::StringLiteral names[] = {"Saved", "Recomputed", "Free",
                                           "Shared"};
  options.remarkName = names[size_t(decision.fate)];
  remark::passed(loc, options)
      << decision.origin.scope << metric("layer", layer)
      << metric("value", decision.name) << metric("shape", decision.shape)
      << metric("bytes", decision.bytes) << metric("rule", decision.rule)
      << metric("flops", decision.flops)
      << metric("microseconds", getMicroseconds(decision.seconds))
      << metric("reason", decision.reason)
      << metric("flips", formatFlip(plan, decision));
}

static void remarkLabel(Location loc, RemarkOpts options,
                        const LabelEffect &effect) {
  options.remarkName = effect.verdict.empty() ? "Label" : "LabelBuysNothing";
  remark::passed(loc, options)
      << effect.label << metric("bytes", effect.freedBytes)
      << metric("flops", effect.flops)
      << metric("microseconds", getMicroseconds(effect.seconds))
      << metric("verdict", effect.verdict);
}

namespace {
struct RematExplain : public report::impl::RematExplainBase<RematExplain> {
  void runOnOperation() override {
    FailureOr<Plan> plan =
        report::readDecisions(getOperation(), CostTable::getCPU());
    if (failed(plan))
      return signalPassFailure();
    plan->explain(llvm::outs());
    if (getContext().getRemarkEngine())
      remarkAll(*plan);
    markAllAnalysesPreserved();
  }

  void remarkAll(const Plan &plan) {
    func::FuncOp step = getOperation();
    if (step.isExternal())
      return;
    SmallVector<Operation *> ops;
    for (Operation &op : step.getBody().front())
      ops.push_back(&op);
    RemarkOpts options =
        RemarkOpts::name("").category("Report").function(step.getSymName());
    for (const remat::LayerPlan &layer : plan.decisions.layers)
      for (const Decision &decision : getDecisions(plan, layer))
        remarkDecision(ops[decision.origin.position]->getLoc(), options, plan,
                       decision, layer.layer);
    for (const LabelEffect &effect : analyze(plan).labels)
      remarkLabel(step.getLoc(), options, effect);
  }
};
} // namespace
