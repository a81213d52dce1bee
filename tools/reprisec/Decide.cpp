//===- Decide.cpp - What is recomputed, and what it is called -------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decide.h"
#include "Files.h"
#include "Stages.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Remat/PlanFile.h"
#include "reprise/Remat/Summary.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::driver;

void driver::record(ModuleOp module, StringRef key, Attribute value) {
  auto train = module->getAttrOfType<DictionaryAttr>(nn::kTrainAttr);
  if (!train)
    return;
  NamedAttrList entries(train);
  entries.set(key, value);
  module->setAttr(nn::kTrainAttr, entries.getDictionary(module.getContext()));
}

void driver::recordPlan(ModuleOp module, const RecomputeOptions &recompute,
                        StringRef name) {
  MLIRContext *context = module.getContext();
  context->loadDialect<remat::RematDialect>();
  module->setAttr(remat::kRequestAttr, recompute.getRequest(context));
  record(module, "recompute", StringAttr::get(context, name));
}

/// The rows of a chunk of the head, as a plan has them, are those of the
/// program.
static LogicalResult setHeadRows(ModuleOp module, int64_t rows,
                                 StringRef planFile) {
  auto train = module->getAttrOfType<DictionaryAttr>(nn::kTrainAttr);
  auto given =
      train ? train.getAs<IntegerAttr>(nn::kHeadChunkRows) : IntegerAttr();
  if (given && given.getInt() != rows)
    return failure(fail("'" + planFile + "' is a plan for head_chunk_rows " +
                        llvm::Twine(rows) + ", but the description has " +
                        llvm::Twine(given.getInt())));
  record(module, nn::kHeadChunkRows,
         Builder(module.getContext()).getI64IntegerAttr(rows));
  return success();
}

LogicalResult driver::readPlanFile(ModuleOp module, RecomputeOptions &recompute,
                                   std::string &name) {
  if (recompute.granularity != "plan")
    return success();
  // What cannot be read is told of where it is parsed.
  auto text = llvm::MemoryBuffer::getFile(recompute.planFile);
  if (text && failed(checkKind("", recompute.planFile, (*text)->getBuffer(),
                               frontend::FileRole::Plan)))
    return failure();
  FailureOr<remat::PlanFile> plan =
      remat::parsePlanFile(recompute.planFile, module.getContext());
  if (failed(plan) ||
      (plan->headRows &&
       failed(setHeadRows(module, *plan->headRows, recompute.planFile))))
    return failure();
  if (plan->putsActivationsFirst)
    module->setAttr(rt::kActivationsFirstAttr,
                    UnitAttr::get(module.getContext()));
  recompute.isFreeByPlan = recompute.isFree && !plan->isFree;
  recompute.isFree &= plan->isFree;
  name = plan->name;
  return success();
}

static FailureOr<std::string> describePlan(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  if (!step)
    return text;
  FailureOr<remat::Summary> summary = remat::summarize(step);
  if (failed(summary))
    return failure();
  summary->print(os);
  return text;
}

LogicalResult driver::printPlan(ModuleOp module, ModuleOp other,
                                StringRef name) {
  FailureOr<std::string> plan = describePlan(module), second = plan;
  if (other)
    second = describePlan(other);
  if (failed(plan) || failed(second))
    return failure();
  if (plan->empty())
    return success();
  llvm::errs() << "recompute: " << name << "\n";
  if (*plan == *second)
    llvm::errs() << *plan;
  else
    llvm::errs() << "on the CPU:\n" << *plan << "on GPUs:\n" << *second;
  return success();
}

FailureOr<Met> driver::decide(ModuleOp module, Phase begin, Phase to,
                              const std::optional<planning::Budget> &budget,
                              const Options &options,
                              const RecomputeOptions &recompute,
                              StringRef planName, bool isCuda,
                              const planning::MeasureStages &measure) {
  Met met;
  RecomputeOptions rest = recompute; // What is still to be decided.
  bool inference = options.inference == "on";
  if (budget || !options.pareto.empty()) {
    if (failed(runPhases(module, begin, Phase::Joint, recompute, inference)))
      return failure();
    begin = Phase::Joint;
    FailureOr<Met> result =
        meetBudget(module, budget, options, recompute, isCuda, measure);
    if (failed(result))
      return failure();
    met = std::move(*result);
  }
  if (budget) {
    // What the program takes for other things is to fit as well.
    if (budget->kind == planning::Budget::Kind::Memory)
      record(module, nn::kMemoryBudget,
             Builder(module.getContext()).getI64IntegerAttr(budget->bytes));
    rest = RecomputeOptions();
    rest.isFree = recompute.isFree;
  } else if (recompute.stages > 1 && options.describesStages() &&
             begin <= Phase::Joint) {
    if (failed(runPhases(module, begin, Phase::Joint, recompute, inference)))
      return failure();
    begin = Phase::Joint;
    FailureOr<report::PipelineNeed> need =
        measurePipeline(module, options, recompute, isCuda);
    if (failed(need))
      return failure();
    met.pipeline = std::move(*need);
  }
  Phase decided = std::max(begin, std::min(to, Phase::Remat));
  if (failed(runPhases(module, begin, decided, rest, inference)))
    return failure();
  if (begin < Phase::Remat && to >= Phase::Remat && !planName.empty()) {
    RecomputeOptions named;
    named.granularity = "plan";
    named.planFile = planName.str();
    recordPlan(module, named, planName);
  }
  return met;
}
