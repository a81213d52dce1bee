//===- reprisec.cpp - Compiles a description to a program -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"
#include "Output.h"
#include "Reports.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "python-free-frontend/Frontend.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Pipelines/Registration.h"
#include "reprise/Remat/Summary.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::driver;

/// A module as text, and the plan that its description asked for.
static OwningOpRef<ModuleOp> readIR(MLIRContext &context,
                                    llvm::SourceMgr &sources,
                                    const Options &options,
                                    RecomputeOptions &recompute) {
  for (const auto &key : options.keys)
    if (key->getNumOccurrences()) {
      fail("option --" + key->ArgStr + ": is a key of a description, but " +
           "--from says that the input is IR");
      return nullptr;
    }
  std::string error;
  auto buffer = openInputFile(options.input, &error);
  if (!buffer) {
    fail(error);
    return nullptr;
  }
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  auto module = parseSourceFile<ModuleOp>(sources, &context);
  auto train = module ? (*module)->getAttrOfType<DictionaryAttr>(nn::kTrainAttr)
                      : DictionaryAttr();
  auto plan = train ? train.getAs<StringAttr>("recompute") : StringAttr();
  if (!plan)
    return module;
  std::optional<RecomputeOptions> recorded = RecomputeOptions::parse(plan);
  if (!recorded) {
    module->emitError("needs a plan such as 'none', 'selective mlp,layernorm' "
                      "or 'full uniform 1' as 'recompute' in 'nn.train', but "
                      "got ")
        << plan;
    return nullptr;
  }
  recompute = *recorded;
  return module;
}

/// The module of phase `from`, from a description or as IR; null after a
/// message. `recompute` comes from the description or the options.
static OwningOpRef<ModuleOp> readInput(MLIRContext &context,
                                       llvm::SourceMgr &sources,
                                       const Options &options, Phase from,
                                       RecomputeOptions &recompute) {
  if (!options.from.empty())
    return readIR(context, sources, options, recompute);
  frontend::DescriptionReader reader(sources);
  for (auto [key, name] : llvm::zip(options.keys, options.keyNames))
    if (key->getNumOccurrences() && failed(reader.setOption(name, *key)))
      return nullptr;
  FailureOr<frontend::Description> description = reader.read(options.input);
  if (failed(description))
    return nullptr;
  if (options.verbose)
    for (const std::string &key : description->ignoredKeys)
      llvm::WithColor::note()
          << "the key '" << key << "' of the model means nothing here\n";
  recompute.granularity = description->recompute.granularity;
  recompute.method = description->recompute.method;
  recompute.numLayers = description->recompute.numLayers;
  recompute.modules = description->recompute.modules;
  return frontend::buildModel(context, *description);
}

/// The effective plan belongs to the program, and is shown to who makes it.
static void recordPlan(ModuleOp module, const RecomputeOptions &recompute) {
  auto train = module->getAttrOfType<DictionaryAttr>(nn::kTrainAttr);
  if (!train)
    return;
  NamedAttrList entries(train);
  entries.set("recompute",
              StringAttr::get(module.getContext(), recompute.describe()));
  module->setAttr(nn::kTrainAttr, entries.getDictionary(module.getContext()));
}

static LogicalResult printPlan(ModuleOp module,
                               const RecomputeOptions &recompute) {
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  if (!step)
    return success();
  FailureOr<remat::Summary> summary = remat::summarize(step);
  if (failed(summary))
    return failure();
  llvm::errs() << "recompute: " << recompute.describe() << "\n";
  summary->print(llvm::errs());
  return success();
}

static LogicalResult runPhases(ModuleOp module, Phase from, Phase to,
                               const RecomputeOptions &recompute,
                               bool inference = true) {
  PassManager manager(module.getContext());
  buildPipeline(manager, from, to, recompute, inference);
  return manager.run(module);
}

static LogicalResult checkInference(const Options &options, Phase from) {
  if (options.inference != "on" && options.inference != "off")
    return failure(fail("option --inference: needs on or off, but got '" +
                        options.inference + "'"));
  if (options.inference.getNumOccurrences() && from > Phase::NN)
    return failure(fail("option --inference: needs an input of phase nn, which "
                        "it is made from, but --from says " +
                        stringifyPhase(from)));
  return success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  Options options;
  options.parse(argc, argv);
  if (options.printKeys) {
    frontend::printKeysAsMarkdown(llvm::outs());
    return 0;
  }
  if (options.input.empty())
    return fail("needs a description, as in: reprisec model.yaml -o train");

  std::optional<Phase> from = Phase::NN, to = Phase::LLVM;
  if (!options.from.empty() && !(from = parsePhase(options.from)))
    return fail("option --from: needs nn, joint, remat, kernels, rt or llvm, "
                "but got '" +
                options.from + "'");
  bool isText = !options.emit.empty() && options.emit != "obj";
  if (isText && !(to = parsePhase(options.emit)))
    return fail("option --emit: needs nn, joint, remat, kernels, rt, llvm or "
                "obj, but got '" +
                options.emit + "'");
  if (*from > *to)
    return fail("option --emit: needs a phase after '" + stringifyPhase(*from) +
                "', which --from says the input is, but got '" + options.emit +
                "'");
  if (failed(checkInference(options, *from)) ||
      failed(checkReports(options, *from, *to)))
    return 1;
  bool isReport = !options.getReport().empty() && options.output.empty() &&
                  options.emit.empty();
  if (isReport)
    to = Phase::RT;
  if (options.output.empty() && !isReport) {
    if (!isText)
      return fail("needs a place for the program: -o FILE");
    options.output = "-";
  }
  if (!isText && !isReport && failed(checkOutput(options)))
    return 1;

  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler(sources, &context);
  RecomputeOptions recompute;
  OwningOpRef<ModuleOp> module =
      readInput(context, sources, options, *from, recompute);
  if (!module)
    return 1;
  if (options.from.empty())
    recordPlan(*module, recompute);

  Phase decided = std::min(*to, Phase::Remat);
  if (failed(runPhases(*module, *from, std::max(*from, decided), recompute,
                       options.inference == "on")))
    return 1;
  if (*from < Phase::Remat && *to >= Phase::Remat && !options.quiet &&
      failed(printPlan(*module, recompute)))
    return 1;
  if (!options.getReport().empty()) {
    FailureOr<report::Plan> plan = readPlan(*module, options, recompute);
    if (failed(plan) ||
        failed(runPhases(*module, decided, Phase::RT, recompute)) ||
        failed(writeReports(*plan, *module, options, recompute)))
      return 1;
    if (isReport)
      return 0;
    decided = Phase::RT;
  }
  if (failed(runPhases(*module, std::max(*from, decided), *to, recompute)))
    return 1;
  if (!isText)
    return writeProgram(*module, options, argv[0]);

  std::string error;
  auto file = openOutputFile(options.output, &error);
  if (!file)
    return fail(error);
  module->print(file->os());
  file->os().flush();
  if (file->os().has_error()) {
    std::error_code reason = file->os().error();
    file->os().clear_error();
    return fail("cannot write '" + options.output + "': " + reason.message());
  }
  file->keep();
  return 0;
}
