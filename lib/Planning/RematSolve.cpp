//===- RematSolve.cpp - Decides what a budget of bytes asks for -----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "reprise/Dialect/NN/Workload.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Planning/Budget.h"
#include "reprise/Planning/Passes.h"

namespace reprise::planning {
#define GEN_PASS_DEF_REMATSOLVE
#include "reprise/Planning/Passes.h.inc"
} // namespace reprise::planning

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

namespace {
struct RematSolve : public planning::impl::RematSolveBase<RematSolve> {
  explicit RematSolve(Phases phases) : phases(std::move(phases)) {}
  void runOnOperation() override;

  Phases phases;
};
} // namespace

void RematSolve::runOnOperation() {
  bool hasMemory = memoryBudget.hasValue();
  if (hasMemory == activationBudget.hasValue()) {
    getOperation().emitError("needs one budget, of the memory or of the "
                             "activations, but got ")
        << (hasMemory ? "both" : "none");
    return signalPassFailure();
  }
  int64_t bytes = hasMemory ? memoryBudget : activationBudget;
  if (bytes < 1) {
    getOperation().emitError("needs a budget of at least 1 byte, but got ")
        << (hasMemory ? "memory-budget" : "activation-budget") << "=" << bytes;
    return signalPassFailure();
  }
  std::optional<CostTable> costs = CostTable::get(machine);
  if (!costs) {
    getOperation().emitError("needs a machine out of ")
        << CostTable::getNames() << ", but got '" << machine << "'";
    return signalPassFailure();
  }
  nn::setMesh(*costs, getOperation());
  Budget budget = {hasMemory ? Budget::Kind::Memory : Budget::Kind::Activations,
                   bytes};
  BudgetSettings settings;
  settings.isFree = isFree;
  FailureOr<BudgetReport> report =
      solveBudget(phases, getOperation(), budget, *costs, settings);
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

std::unique_ptr<Pass> planning::createRematSolve(Phases phases) {
  return std::make_unique<RematSolve>(std::move(phases));
}

void planning::registerPlanningPasses(const Phases &phases) {
  registerPass([=] { return createKeepIdleSegment(phases); });
  registerPass([=] { return createRematSolve(phases); });
  registerPass([=] { return createWriteStep(phases); });
}
