//===- WriteStep.cpp - Writes a step for the solvers ----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WhatIf.h"
#include "mlir/Support/FileUtilities.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Workload.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Planning/Passes.h"
#include "reprise/Solver/StepText.h"
#include "llvm/Support/ToolOutputFile.h"
#include <sstream>

namespace reprise::planning {
#define GEN_PASS_DEF_WRITESTEP
#include "reprise/Planning/Passes.h.inc"
} // namespace reprise::planning

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

namespace {
struct WriteStep : public planning::impl::WriteStepBase<WriteStep> {
  explicit WriteStep(Phases phases) : phases(std::move(phases)) {}
  void runOnOperation() override;

  Phases phases;
};
} // namespace

/// The text of the step; fails with a diagnostic.
static FailureOr<std::string> getText(ModuleOp module, const Phases &phases,
                                      const CostTable &costs, bool isFree,
                                      bool countsGradients) {
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  if (!step)
    return module.emitError("needs a function @step to write");
  FailureOr<std::unique_ptr<WhatIf>> whatIf = WhatIf::create(module, phases);
  FailureOr<TracedGraph> traced = failure();
  if (succeeded(whatIf))
    traced = (*whatIf)->trace(costs, isFree);
  if (failed(traced))
    return step.emitError("needs to be a step that becomes a schedule, to be "
                          "written for the solvers");
  if (countsGradients)
    countWrittenGradients(*traced);
  std::ostringstream text;
  solver::writeStep(text, traced->graph);
  return text.str();
}

void WriteStep::runOnOperation() {
  markAllAnalysesPreserved();
  std::optional<CostTable> costs = CostTable::get(machine);
  if (!costs) {
    getOperation().emitError("needs a machine out of ")
        << CostTable::getNames() << ", but got '" << machine << "'";
    return signalPassFailure();
  }
  nn::setMesh(*costs, getOperation());
  FailureOr<std::string> text =
      getText(getOperation(), phases, *costs, isFree, gradients);
  if (failed(text))
    return signalPassFailure();
  std::string error;
  std::unique_ptr<llvm::ToolOutputFile> out = openOutputFile(file, &error);
  if (!out) {
    getOperation().emitError(error);
    return signalPassFailure();
  }
  out->os() << *text;
  out->keep();
}

std::unique_ptr<Pass> planning::createWriteStep(Phases phases) {
  return std::make_unique<WriteStep>(std::move(phases));
}
