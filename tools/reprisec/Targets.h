//===- Targets.h - What a program is for ------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TOOLS_REPRISEC_TARGETS_H
#define REPRISE_TOOLS_REPRISEC_TARGETS_H

#include "Options.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Pipelines/Pipelines.h"
#include <optional>

namespace reprise::driver {
/// What --target, --cpu and --cuda-arch say.
struct Targets {
  std::optional<TargetOptions> cpu, cuda;
  std::vector<std::string> chips; ///< with `cuda`, oldest first

  bool areBoth() const { return cpu && cuda; }
  /// The one that plans and reports are about.
  const TargetOptions &first() const { return cpu ? *cpu : *cuda; }
  /// The last phase of the first.
  Phase last() const { return cpu ? Phase::LLVM : Phase::NVVM; }
};

mlir::FailureOr<Targets> readTargets(const Options &options);

/// What --emit says.
struct Goal {
  enum Kind { Program, Object, IR, PTX, Cubin, Kernels };
  Kind kind;
  Phase phase; ///< the last one on the way, of the first target
};

/// Fails if it is not on the way of the targets.
mlir::FailureOr<Goal> readGoal(const Options &options, const Targets &targets);

/// Whether --from says a phase that is on the way of the targets, and before
/// the goal.
mlir::FailureOr<Phase> readFrom(const Options &options, const Targets &targets,
                                const Goal &goal);

/// Whether `module`, of the phase `from`, is for the targets.
mlir::LogicalResult checkPlanned(mlir::ModuleOp module, Phase from,
                                 const Targets &targets);
} // namespace reprise::driver

#endif // REPRISE_TOOLS_REPRISEC_TARGETS_H
