//===- Reports.cpp - Reports of a plan on request ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reports.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Support/FileUtilities.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::driver;

FailureOr<report::Plan> driver::readPlan(ModuleOp module,
                                         const Options &options,
                                         const RecomputeOptions &recompute) {
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  if (!step)
    return module.emitError("needs a function @step to report on");
  FailureOr<report::Plan> plan = report::readDecisions(step);
  if (failed(plan) || options.accounting.empty())
    return plan;
  report::megatron::Options same;
  same.granularity = recompute.granularity;
  same.method = recompute.method;
  same.numLayers = recompute.numLayers.value_or(0);
  same.modules =
      recompute.modules.value_or(std::vector<std::string>{"core_attn"});
  FailureOr<report::Reference> reference = report::computeReference(
      step, same, {options.tensorParallel, options.sequenceParallel});
  if (failed(reference))
    return failure();
  plan->reference = std::move(*reference);
  return plan;
}

LogicalResult driver::writeReports(report::Plan &plan, ModuleOp module,
                                   const Options &options) {
  if (failed(report::readSchedule(plan, module)))
    return failure();
  if (options.explain)
    plan.explain(options.output == "-" || options.planJSON == "-"
                     ? llvm::errs()
                     : llvm::outs());
  if (options.planJSON.empty())
    return success();
  std::string error;
  auto file = openOutputFile(options.planJSON, &error);
  if (!file)
    return failure(fail(error));
  plan.writeJSON(file->os());
  file->keep();
  return success();
}

LogicalResult driver::checkReports(const Options &options, Phase from,
                                   Phase to) {
  if (options.accounting.empty()) {
    if (options.tensorParallel.getNumOccurrences() ||
        options.sequenceParallel.getNumOccurrences())
      return failure(fail("options --tensor-model-parallel-size and "
                          "--sequence-parallel: need --accounting=megatron; a "
                          "program is for one rank"));
  } else if (options.accounting != "megatron") {
    return failure(fail("option --accounting: needs megatron, but got '" +
                        options.accounting + "'"));
  } else if (!options.reports()) {
    return failure(fail("option --accounting: needs --plan-json or --explain, "
                        "which show it"));
  }
  if (options.tensorParallel < 1)
    return failure(fail("option --tensor-model-parallel-size: needs at least "
                        "1, but got " +
                        llvm::Twine(options.tensorParallel)));
  if (options.reports() && from > Phase::Remat)
    return failure(fail("options --plan-json and --explain: need an input of "
                        "phase nn, joint or remat, which has the decisions, "
                        "but --from says " +
                        stringifyPhase(from)));
  if (options.reports() && to < Phase::RT)
    return failure(fail("options --plan-json and --explain: need --emit=rt or "
                        "later, where memory is planned, but got '" +
                        options.emit + "'"));
  return success();
}
