//===- Input.cpp - What reprisec is given ---------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Input.h"
#include "Files.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::driver;

/// Refuses what is clearly of another phase than `--from` says.
static LogicalResult checkPhase(ModuleOp module, Phase from) {
  if (isPipeline(module))
    return success();
  bool hasForward = module.lookupSymbol(nn::kForwardFunction);
  bool hasStep = module.lookupSymbol(nn::kStepFunction);
  StringRef phase;
  if (module->hasAttr(rt::kPlanAttr))
    phase = from < Phase::RT ? "rt or of one behind it" : "";
  else if (hasForward && !hasStep)
    phase = from == Phase::NN ? "" : "nn";
  else if (hasStep && !hasForward && from == Phase::NN)
    phase = "joint or of one behind it";
  if (phase.empty())
    return success();
  return module->emitError("is IR of the phase ")
         << phase << ", but --from says " << stringifyPhase(from);
}

/// What the description of a module asked for. What is decided may have any
/// name, and no request.
static LogicalResult readRequest(ModuleOp module, Phase from,
                                 RecomputeOptions &recompute) {
  if (auto request =
          module->getAttrOfType<remat::RequestAttr>(remat::kRequestAttr)) {
    recompute = RecomputeOptions::get(request);
    return success();
  }
  auto train = module->getAttrOfType<DictionaryAttr>(nn::kTrainAttr);
  auto plan = train ? train.getAs<StringAttr>("recompute") : StringAttr();
  if (!plan)
    return success();
  if (from < Phase::Remat)
    return module->emitError("has the name of a plan, ")
           << plan << ", as 'recompute' in 'nn.train', but nothing is decided "
           << "before the phase remat: what is to be decided is said by "
           << "'remat.request', as in remat.request = #remat.request<"
           << "granularity = \"full\", method = \"uniform\", layers = 1>";
  recompute.granularity = "plan";
  recompute.planFile = plan.str();
  return success();
}

/// A module as text, and the plan that its description asked for.
static OwningOpRef<ModuleOp> readIR(MLIRContext &context,
                                    llvm::SourceMgr &sources,
                                    const Options &options, Phase from,
                                    RecomputeOptions &recompute) {
  std::string error;
  auto buffer = openInputFile(options.input, &error);
  if (!buffer) {
    fail(error);
    return nullptr;
  }
  if (failed(checkKind("option --from: ", options.input, buffer->getBuffer(),
                       frontend::FileRole::IR)))
    return nullptr;
  for (const auto &key : options.keys)
    if (key->getNumOccurrences()) {
      fail("option --" + key->ArgStr + ": is a key of a description, but " +
           "--from says that the input is IR");
      return nullptr;
    }
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  auto module = parseSourceFile<ModuleOp>(sources, &context);
  if (module && failed(checkPhase(*module, from)))
    return nullptr;
  if (!module || failed(readRequest(*module, from, recompute)))
    return nullptr;
  return module;
}

/// What the description says of recompute, in the words of the pipeline.
static void takeRecompute(const frontend::Description &description,
                          const Options &options, RecomputeOptions &recompute) {
  const frontend::Recompute &given = description.recompute;
  recompute.granularity = given.planFile.empty() ? given.granularity : "plan";
  recompute.planFile = given.planFile;
  recompute.method = given.method;
  recompute.numLayers = given.numLayers;
  recompute.modules = given.modules;
  recompute.keepsIdleSegment = given.lastSegment == "auto";
  recompute.sharesSaved = given.distributesSaved;
  recompute.isFree = given.isFree == "on";
  recompute.hasRules = !given.planFile.empty();
  recompute.stages = description.parallel.stages;
  recompute.chunks = description.parallel.chunks;
  if (!options.accounting.empty()) {
    recompute.tensorRanks = description.parallel.tensorParallel;
    recompute.sharesPositions = description.parallel.sequenceParallel;
    recompute.hasWholeExperts = frontend::hasWholeExperts(description.parallel);
    if (recompute.hasWholeExperts)
      recompute.expertRanks = description.parallel.expertParallel;
  }
}

OwningOpRef<ModuleOp>
driver::readInput(MLIRContext &context, llvm::SourceMgr &sources,
                  const Options &options, Phase from,
                  RecomputeOptions &recompute,
                  std::optional<frontend::Description> &text) {
  if (!options.from.empty())
    return readIR(context, sources, options, from, recompute);
  frontend::DescriptionReader reader(sources);
  bool isWrong = false;
  for (auto [key, name] : llvm::zip(options.keys, options.keyNames))
    if (key->getNumOccurrences())
      isWrong |= failed(reader.setOption(name, *key));
  if (isWrong)
    return nullptr;
  FailureOr<frontend::Description> description = reader.read(options.input);
  if (failed(description))
    return nullptr;
  if (options.verbose)
    for (const std::string &key : description->ignoredKeys)
      llvm::WithColor::note()
          << "the key '" << key << "' of the model means nothing here\n";
  takeRecompute(*description, options, recompute);
  // Megatron's figures are for so many ranks, beside a plan for one.
  if (!options.accounting.empty()) {
    int64_t &ranks = description->parallel.tensorParallel;
    int64_t stages = description->parallel.stages;
    bool makesStages = stages > 1 && !options.output.empty();
    if ((ranks > 1 || makesStages) && !options.quiet)
      llvm::WithColor::note()
          << "with --accounting, plan and program have whole tensors and all "
             "layers in each rank; Megatron's figures and times of a step are "
             "of tensor_model_parallel_size "
          << ranks << " and pipeline_stages " << stages << "\n";
    if (frontend::hasWholeExperts(description->parallel))
      description->parallel.expertParallel = 1;
    ranks = 1;
    description->parallel.sequenceParallel = false;
  }
  text = *description;
  return frontend::buildModel(context, *description);
}
