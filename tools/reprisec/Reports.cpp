//===- Reports.cpp - Reports of a plan on request ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reports.h"
#include "Alternatives.h"
#include "Files.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Support/FileUtilities.h"
#include "reprise/ABI/Version.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Workload.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::driver;

FailureOr<CostTable> driver::readCosts(const Options &options, bool isCuda) {
  // Of two targets a named machine is one.
  bool isOfOther = StringRef(options.target).contains(',') &&
                   (options.costTable == "cpu") == isCuda;
  if (!options.costTable.getNumOccurrences() || isOfOther)
    return isCuda ? *CostTable::get("h100") : CostTable::getCPU();
  if (std::optional<CostTable> known = CostTable::get(options.costTable))
    return *known;
  std::string lower = StringRef(options.costTable).lower();
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(options.costTable);
  if (!buffer)
    return failure(
        fail("option --cost-table: needs " + CostTable::getNames() +
             ", or a file that can be read, but got '" + options.costTable +
             "' (" + buffer.getError().message() + ")" +
             (CostTable::get(lower) ? "; did you mean '" + lower + "'?" : "")));
  StringRef text = (*buffer)->getBuffer();
  if (failed(checkKind("option --cost-table: ", options.costTable, text,
                       frontend::FileRole::CostTable)))
    return failure();
  llvm::Expected<CostTable> costs = CostTable::parse(text);
  if (!costs)
    return failure(fail("option --cost-table: " + options.costTable + ":" +
                        llvm::toString(costs.takeError())));
  return *costs;
}

report::megatron::Options
driver::getMegatronOptions(const RecomputeOptions &recompute) {
  report::megatron::Options same;
  same.granularity = recompute.granularity;
  same.method = recompute.method;
  same.numLayers = recompute.numLayers.value_or(0);
  same.sharesSaved = recompute.sharesSaved;
  same.modules =
      recompute.modules.value_or(std::vector<std::string>{"core_attn"});
  return same;
}

/// Of `description`, which is made for one rank of those that share layers,
/// and has all experts if these are whole.
static report::megatron::Parallelism
getParallelism(const std::optional<frontend::Description> &description,
               const RecomputeOptions &recompute) {
  report::megatron::Parallelism ranks = {
      recompute.tensorRanks, recompute.sharesPositions, recompute.expertRanks,
      recompute.hasWholeExperts};
  if (!description)
    return ranks;
  ranks.vocabMultiple = description->model.vocabMultiple;
  frontend::Parallel parallel = description->parallel;
  if (!parallel.distributedOptimizer)
    return ranks;
  parallel.tensorParallel = recompute.tensorRanks;
  parallel.expertParallel =
      std::max(parallel.expertParallel, recompute.expertRanks);
  ranks.optimizerRanks = parallel.dataParallel;
  ranks.expertOptimizerRanks = frontend::countExpertCopies(parallel);
  return ranks;
}

static LogicalResult
addReference(report::Plan &plan, func::FuncOp step,
             const std::optional<frontend::Description> &description,
             const Options &options, const RecomputeOptions &recompute) {
  if (options.accounting.empty())
    return success();
  FailureOr<report::Reference> reference =
      report::computeReference(step, getMegatronOptions(recompute),
                               getParallelism(description, recompute));
  if (failed(reference))
    return failure();
  report::countRanks(step, plan.decisions.stages, *reference);
  plan.reference = std::move(*reference);
  return success();
}

static LogicalResult writeDot(const report::Plan &plan, func::FuncOp step,
                              const Options &options) {
  if (options.dot.empty())
    return success();
  int64_t layer = 0, most = 0;
  for (const remat::LayerPlan &known : plan.decisions.layers)
    most = std::max(most, known.layer);
  if (StringRef(options.dotLayer).getAsInteger(10, layer) || layer < 0 ||
      layer > most)
    return failure(fail("option --dot-layer: needs a whole number from 0 to " +
                        llvm::Twine(most) + ", but got '" + options.dotLayer +
                        "'"));
  std::string text;
  llvm::raw_string_ostream os(text);
  if (failed(report::writeDot(plan, step, layer, os)))
    return failure();
  return writeFile(options.dot, text);
}

FailureOr<report::Plan>
driver::readPlan(ModuleOp module, llvm::StringRef undecided,
                 const std::optional<frontend::Description> &description,
                 const Options &options, const RecomputeOptions &recompute) {
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  if (!step)
    return module.emitError("needs a function @step to report on");
  FailureOr<CostTable> costs = readCosts(options, options.target == "cuda");
  if (failed(costs))
    return failure();
  nn::setMesh(*costs, module);
  FailureOr<report::Plan> plan = report::readDecisions(step, *costs);
  if (failed(plan) ||
      failed(addReference(*plan, step, description, options, recompute)) ||
      failed(writeDot(*plan, step, options)))
    return failure();
  if (!undecided.empty())
    plan->alternatives =
        planAlternatives(undecided, step, *plan, options, recompute);
  return plan;
}

static report::PageInfo getPageInfo(ModuleOp module, const Options &options,
                                    const RecomputeOptions &recompute) {
  report::PageInfo info;
  auto model = module->getAttrOfType<StringAttr>(nn::kModelAttr);
  info.model = model ? model.str() : "a step";
  info.recompute = recompute.describe();
  info.command = options.getCommand();
  info.environment = {
      {"reprisec", REPRISE_VERSION},
      {"MLIR, LLVM and LLD", LLVM_VERSION_STRING},
  };
  llvm::StringRef target = options.target;
  if (target.contains("cpu"))
    info.environment.push_back({"processor", options.cpu.getNumOccurrences()
                                                 ? options.cpu.getValue()
                                                 : "x86-64-v3 or x86-64-v4"});
  if (target.contains("cuda"))
    info.environment.push_back({"chips", options.cudaArch});
  return info;
}

LogicalResult driver::writeReports(report::Plan &plan, ModuleOp module,
                                   const Options &options,
                                   const RecomputeOptions &recompute) {
  if (failed(report::readSchedule(plan, module)))
    return failure();
  chooseAlternative(plan);
  bool hasStandardOutput = options.output == "-";
  for (const auto *path :
       {&options.planJSON, &options.report, &options.trace, &options.dot})
    hasStandardOutput |= *path == "-";
  if (options.explainsPlan())
    plan.explain(hasStandardOutput ? llvm::errs() : llvm::outs());
  // Before what else is said, of a file that both streams go to.
  if (failed(flushOutput()))
    return failure();
  using llvm::raw_ostream;
  return failure(
      failed(writeFile(options.planJSON,
                       [&](raw_ostream &os) { plan.writeJSON(os); })) ||
      failed(writeFile(options.trace,
                       [&](raw_ostream &os) { plan.writeTrace(os); })) ||
      failed(writeFile(options.report, [&](raw_ostream &os) {
        plan.writePage(os, getPageInfo(module, options, recompute));
      })));
}

/// What of the memory is there only for rows of experts that seldom come.
static void printExpertRows(ModuleOp module, rt::ArenaAttr arena) {
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  if (!step || arena.getSpace() != rt::Space::Device)
    return;
  report::MemoryProfile profile(step, arena.getBegin());
  report::ExpertRows rows = report::countExpertRows(step, profile);
  if (rows.room > rows.even)
    llvm::errs() << "  " << rows.describe() << "\n";
}

void driver::printMemory(ModuleOp module) {
  for (auto [number, stage] : llvm::enumerate(module.getOps<ModuleOp>()))
    if (stage->hasAttr(rt::kPlanAttr)) {
      llvm::errs() << "stage " << number << " ";
      printMemory(stage);
    }
  auto plan = module->getAttrOfType<rt::PlanAttr>(rt::kPlanAttr);
  if (!plan)
    return;
  for (rt::ArenaAttr arena : plan.getArenas()) {
    int64_t bytes = arena.getBytes(), begin = arena.getBegin(),
            least = arena.getLeast();
    double ratio =
        least > begin ? double(bytes - begin) / (least - begin) : 1.0;
    llvm::StringRef space = arena.getSpace() == rt::Space::Device
                                ? ""
                                : rt::stringifySpace(arena.getSpace());
    llvm::errs() << space << (space.empty() ? "" : " ")
                 << "memory: " << remat::formatBytes(bytes) << ", " << bytes
                 << " bytes; " << bytes - begin << " of them within a step, "
                 << llvm::format("%.3f", ratio)
                 << " of what is alive at one time\n";
    printExpertRows(module, arena);
  }
}

LogicalResult driver::checkReports(const Options &options, Phase from,
                                   Phase to) {
  llvm::StringRef report = options.getReport();
  if (!options.accounting.empty() && report.empty())
    return failure(fail("option --accounting: needs --plan-json, --explain or "
                        "--report, which show it"));
  bool hasBudget = options.memoryBudget.getNumOccurrences() ||
                   options.activationBudget.getNumOccurrences() ||
                   !options.pareto.empty();
  if (options.costTable.getNumOccurrences() && report.empty() && !hasBudget)
    return failure(fail("option --cost-table: needs --plan-json, --explain, "
                        "--report, --trace or --dot, which show times, or a "
                        "budget, which goes by them"));
  if (options.dotLayer.getNumOccurrences() && options.dot.empty())
    return failure(fail("option --dot-layer: needs --dot"));
  if (!report.empty() && from > Phase::Remat)
    return failure(fail("option --" + report +
                        ": needs an input of phase nn, joint or remat, which "
                        "has the decisions, but --from says " +
                        stringifyPhase(from)));
  if (!report.empty() && to < Phase::RT)
    return failure(fail("option --" + report +
                        ": needs --emit=rt or later, where memory is planned, "
                        "but got '" +
                        options.emit + "'"));
  return success();
}
