//===- RematSolve.cpp - Decides what a budget of bytes asks for -----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Pipelines/Budget.h"
#include "reprise/Pipelines/Passes.h"

namespace reprise::pipelines {
#define GEN_PASS_DEF_REMATSOLVE
#include "reprise/Pipelines/Passes.h.inc"
} // namespace reprise::pipelines

using namespace mlir;
using namespace reprise;
using namespace reprise::pipelines;

namespace {
struct RematSolve : public pipelines::impl::RematSolveBase<RematSolve> {
  using RematSolveBase::RematSolveBase;
  void runOnOperation() override;
};
} // namespace

void RematSolve::runOnOperation() {
  if ((memoryBudget < 0) == (activationBudget < 0)) {
    getOperation().emitError("needs one budget, of the memory or of the "
                             "activations, but got ")
        << (memoryBudget < 0 ? "none" : "both");
    return signalPassFailure();
  }
  std::optional<CostTable> costs = CostTable::get(machine);
  if (!costs) {
    getOperation().emitError("needs a machine out of ")
        << CostTable::getNames() << ", but got '" << machine << "'";
    return signalPassFailure();
  }
  Budget budget = {Budget::Kind::Memory, memoryBudget};
  if (memoryBudget < 0)
    budget = {Budget::Kind::Activations, activationBudget};
  FailureOr<BudgetReport> report =
      solveBudget(getOperation(), budget, *costs, isFree);
  if (failed(report))
    return signalPassFailure();
  remark::passed(getOperation().getLoc(),
                 remark::RemarkOpts::name("Solved").category("Remat"))
      << remark::metric("budget", budget.bytes)
      << remark::metric("planned", report->plannedBytes)
      << remark::metric("foreseen", report->foreseenBytes)
      << remark::metric("nanoseconds", int64_t(report->replaySeconds * 1e9))
      << remark::metric("bound", int64_t(report->boundSeconds * 1e9));
}
