//===- Pipelines.h - The order of everything --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_PIPELINES_PIPELINES_H
#define REPRISE_PIPELINES_PIPELINES_H

#include "reprise/Codegen/CPU/Registers.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Planning/Phases.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reprise {
/// The phases that a model goes through; each is text that can be printed, read
/// again, and gone on from.
enum class Phase {
  NN,      ///< `@forward` in nn, as the frontend builds it
  Joint,   ///< `@step`: forward, backward, update
  Remat,   ///< the same, decided and applied
  Kernels, ///< launches and GEMMs on tensors, kernels of nn
  RT,      ///< launches and GEMMs on planned buffers, kernels of linalg
  LLVM,    ///< kernels in the LLVM dialect, for the CPU
  GPU,     ///< or, instead, kernels for GPUs in the module @device
  NVVM,    ///< the same in the NVVM dialect
};

/// "nn", "joint", "remat", "kernels", "rt", "llvm", "gpu", "nvvm".
llvm::StringRef stringifyPhase(Phase phase);
std::optional<Phase> parsePhase(llvm::StringRef name);

/// What the remat phase decides, in the words of the options.
struct RecomputeOptions {
  /// Empty (nothing), "selective", "full", or "plan": what a file says.
  std::string granularity;
  std::string method; ///< with "full"
  std::optional<int64_t> numLayers;
  std::optional<std::vector<std::string>> modules; ///< with "selective"
  std::string planFile;                            ///< with "plan"
  int64_t stages = 1;           ///< of a pipeline to plan for
  std::vector<int64_t> chunks;  ///< layers of each, if there are stages
  bool keepsIdleSegment = true; ///< with "full": see docs/remat.md
  bool sharesSaved = false;     ///< with "full": see docs/parallel.md
  /// Ranks that share layers, and whether positions, too, in that accounting.
  int64_t tensorRanks = 1;
  bool sharesPositions = false;
  /// And ranks that have other experts, where those that share layers do not
  /// share experts.
  int64_t expertRanks = 1;
  bool hasWholeExperts = false;
  bool isFree = true; ///< drop what kernels of backward make on their way
  /// Whether a plan file decides on some values all the same, and whether it is
  /// what says that no others are free.
  bool hasRules = false, isFreeByPlan = false;

  /// "none", "selective core_attn,mlp", "selective (nothing)", "full uniform
  /// 2", "plan FILE"; then what differs from a default: "; 2 stages of 4,4
  /// layers", "; last segment too", "; saved inputs shared", "; nothing free"
  /// or, where rules say what is, "; nothing else free".
  std::string describe() const;
  /// What of it a budget is planned under: "selective mlp and nothing free";
  /// empty if nothing is decided.
  std::string describeConstraint() const;
  /// The same in the IR, but for what is of Megatron's accounting alone.
  remat::RequestAttr getRequest(mlir::MLIRContext *context) const;
  static RecomputeOptions get(remat::RequestAttr request);
};

/// What the plan and the kernels are for.
struct TargetOptions {
  bool isCuda = false;
  codegen::Registers registers = codegen::Registers::Base; ///< of a CPU
  std::string chip = "sm_80"; ///< the oldest of the GPUs
  bool biasKernels = false;   ///< gradients of biases not by the library
  bool rowsApart = false;     ///< kernels apart, as some plan has them
  bool isPipeline = false;    ///< a module in the module for each stage
  bool overlap = true;        ///< ranks compute while they meet
  bool isTried = false;       ///< for its bytes, which nothing is proven of
};

/// Whether `module` is for the stages of a pipeline, by its mesh.
bool isPipeline(mlir::ModuleOp module);

/// Writes on `module` how memory is planned for the target, if that is not as
/// for the CPU: cuBLASLt's workspace, and buffers at multiples of 256 bytes;
/// and that ranks begin nothing before they wait for it, if so.
void setTarget(mlir::ModuleOp module, const TargetOptions &target);

/// Appends the passes that write decisions as `recompute` says, on a module of
/// the phase joint. They are the beginning of what leads to the phase remat.
void buildDeciders(mlir::OpPassManager &manager,
                   const RecomputeOptions &recompute);

/// The phases from decisions to planned memory, for planning to try plans in.
planning::Phases getPhases();

/// Appends the passes that lead from phase `from` to phase `to`, verifiers
/// included. With `inference`, what comes from the phase nn gets `@evaluate`
/// and `@sample` beside its step.
void buildPipeline(mlir::OpPassManager &manager, Phase from, Phase to,
                   const RecomputeOptions &recompute, bool inference = true,
                   const TargetOptions &target = {});
} // namespace reprise

#endif // REPRISE_PIPELINES_PIPELINES_H
