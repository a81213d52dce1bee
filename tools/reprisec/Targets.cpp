//===- Targets.cpp - What a program is for ----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Targets.h"
#include "reprise/Codegen/CUDA/Device.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Interfaces/ExpertRounds.h"
#include "reprise/Target/Executable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::driver;

static FailureOr<std::vector<std::string>> readChips(const Options &options) {
  std::vector<const cuda::Chip *> chips;
  for (StringRef name : llvm::split(StringRef(options.cudaArch), ',')) {
    const cuda::Chip *chip = cuda::findChip(name);
    std::vector<std::string> known;
    for (const cuda::Chip &each : cuda::getChips())
      known.push_back(each.name.str());
    if (!chip)
      return fail("option --cuda-arch: needs some of " +
                  llvm::join(known, ",") + ", but got '" + name + "'" +
                  tools::adviseOnSpelling(name, known)),
             failure();
    if (llvm::is_contained(chips, chip))
      return fail("option --cuda-arch: needs each chip once, but got " + name +
                  " twice"),
             failure();
    chips.push_back(chip);
  }
  // The PTX is for the first: those whose code later ones take come first.
  llvm::sort(chips, [](const cuda::Chip *a, const cuda::Chip *b) {
    return std::tuple(a->archSpecific, a->major, a->minor) <
           std::tuple(b->archSpecific, b->major, b->minor);
  });
  std::vector<std::string> names;
  for (const cuda::Chip *chip : chips)
    names.push_back(chip->name.str());
  return names;
}

FailureOr<Targets> driver::readTargets(const Options &options) {
  Targets targets;
  for (StringRef name : llvm::split(StringRef(options.target), ',')) {
    bool isKnown = name == "cpu" || name == "cuda";
    std::optional<TargetOptions> &target =
        name == "cuda" ? targets.cuda : targets.cpu;
    if (!isKnown || target)
      return fail("option --target: needs cpu, cuda or cpu,cuda, but got '" +
                  options.target + "'" +
                  tools::adviseOnSpelling(name, {"cpu", "cuda"})),
             failure();
    target.emplace();
    // On processors, which move bytes themselves, nothing would be hidden.
    target->overlap = options.overlap.getNumOccurrences()
                          ? options.overlap == "on"
                          : name == "cuda";
  }
  if (options.cudaArch.getNumOccurrences() && !targets.cuda)
    return fail("option --cuda-arch: needs --target=cuda"), failure();
  if (options.biasGradients.getNumOccurrences() && !targets.cuda)
    return fail("option --cuda-bias-gradients: needs --target=cuda"), failure();
  if (options.cpu.getNumOccurrences() && !targets.cpu)
    return fail("option --cpu: needs --target=cpu"), failure();
  if (options.cpu.getNumOccurrences()) {
    std::string error = target::checkProcessor(target::resolveCPU(options.cpu));
    std::string lower = StringRef(options.cpu).lower();
    bool isCase = lower != options.cpu &&
                  target::checkProcessor(target::resolveCPU(lower)).empty();
    if (!error.empty())
      return fail("option --cpu: " + error +
                  (isCase ? "; did you mean '" + lower + "'?" : "")),
             failure();
  }
  if (targets.cpu && !options.cpu.getNumOccurrences())
    targets.cpu->registers = codegen::Registers::Both;
  else if (targets.cpu &&
           target::hasWideRegisters(target::resolveCPU(options.cpu)))
    targets.cpu->registers = codegen::Registers::Wide;
  if (!targets.cuda)
    return targets;
  FailureOr<std::vector<std::string>> chips = readChips(options);
  if (failed(chips))
    return failure();
  targets.chips = std::move(*chips);
  targets.cuda->isCuda = true;
  targets.cuda->chip = targets.chips.front();
  targets.cuda->biasKernels = options.biasGradients == "kernel";
  return targets;
}

static bool isFor(Phase phase, const Targets &targets) {
  return phase < Phase::LLVM ||
         bool(phase == Phase::LLVM ? targets.cpu : targets.cuda);
}

FailureOr<Goal> driver::readGoal(const Options &options,
                                 const Targets &targets) {
  StringRef emit = options.emit;
  Goal goal = {Goal::Program, targets.last()};
  if (emit == "obj") {
    goal.kind = Goal::Object;
  } else if (emit == "ptx" || emit == "cubin") {
    goal = {emit == "ptx" ? Goal::PTX : Goal::Cubin, Phase::NVVM};
  } else if (!emit.empty()) {
    goal = {Goal::IR, *parsePhase(emit)};
  }
  if (options.explain == Options::Explain::Kernels) {
    if (!emit.empty() || !targets.cuda || targets.areBoth())
      return fail("option --explain: needs --target=cuda alone for 'kernels', "
                  "and no --emit"),
             failure();
    return Goal{Goal::Kernels, Phase::NVVM};
  }
  if (goal.kind == Goal::Program || goal.kind == Goal::Object)
    return goal;
  if (!isFor(goal.phase, targets))
    return fail("option --emit: needs --target=" +
                Twine(goal.phase == Phase::LLVM ? "cpu" : "cuda") + " for '" +
                emit + "'"),
           failure();
  if (goal.phase > Phase::Kernels && targets.areBoth())
    return fail("option --emit: needs one target for '" + emit +
                "', but --target says cpu,cuda"),
           failure();
  if (goal.kind == Goal::Cubin && targets.chips.size() > 1)
    return fail("option --emit: needs one chip for 'cubin', but --cuda-arch "
                "says " +
                llvm::join(targets.chips, ",")),
           failure();
  return goal;
}

FailureOr<Phase> driver::readFrom(const Options &options,
                                  const Targets &targets, const Goal &goal) {
  if (options.from.empty())
    return Phase::NN;
  std::optional<Phase> from = parsePhase(options.from);
  if (!isFor(*from, targets))
    return fail("option --from: needs --target=" +
                Twine(*from == Phase::LLVM ? "cpu" : "cuda") + " for '" +
                options.from + "'"),
           failure();
  if (*from > Phase::Kernels && targets.areBoth())
    return fail("option --from: needs one target for '" + options.from +
                "', but --target says cpu,cuda"),
           failure();
  if (*from > goal.phase)
    return fail("option --emit: needs a phase after '" + stringifyPhase(*from) +
                "', which --from says the input is, but got '" + options.emit +
                "'"),
           failure();
  return *from;
}

LogicalResult driver::checkPlanned(ModuleOp module, Phase from,
                                   const Targets &targets) {
  if (targets.cuda && module->hasAttr(kExpertRowsAttr))
    return fail("option --target: needs cpu with moe_expert_rows_per_round, as "
                "the host of a GPU does not know how many rows there are, but "
                "got cuda; moe_expert_capacity_factor bounds rows there"),
           failure();
  bool isForCuda = module->hasAttr(rt::kGemmWorkspaceAttr);
  if (from < Phase::RT || isForCuda == !targets.cpu)
    return success();
  return module.emitError("is planned for --target=")
         << (isForCuda ? "cuda" : "cpu") << ", but --target says "
         << (isForCuda ? "cpu" : "cuda");
}
