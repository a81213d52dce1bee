//===- StagePrograms.h - What-if compiles of a pipeline ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_PIPELINES_STAGEPROGRAMS_H
#define REPRISE_PIPELINES_STAGEPROGRAMS_H

#include "mlir/IR/BuiltinOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Pipelines/Pipelines.h"
#include "reprise/Planning/Budget.h"

namespace reprise {
/// The arena of the device of each stage of a planned pipeline.
std::vector<rt::ArenaAttr> getStageArenas(mlir::ModuleOp module);

/// What each stage of a planned pipeline takes of what a budget of `kind`
/// counts.
std::vector<int64_t> getStageBytes(mlir::ModuleOp module,
                                   planning::Budget::Kind kind);

/// The chunks of a pipeline before anything is decided of them, for what-if
/// compiles of its stages: in a context of their own, so that nobody hears what
/// these say.
class StagePrograms {
public:
  /// Takes a copy of `stages`, which is of the phase nn.
  StagePrograms(mlir::ModuleOp stages, bool isFree, bool inference);

  /// The programs of all stages, or of the `pipe.only_stages` of `decided`, if
  /// the whole step is decided as that of `decided`, of the phase joint; null
  /// if they become none. A stage's program depends on what is decided of its
  /// own chunks alone.
  mlir::OwningOpRef<mlir::ModuleOp> plan(mlir::ModuleOp decided);

  /// What each of them takes of what a budget of `kind` counts.
  std::vector<int64_t> measure(mlir::ModuleOp decided,
                               planning::Budget::Kind kind);

private:
  mlir::LogicalResult run(mlir::ModuleOp module, Phase from, Phase to,
                          const RecomputeOptions &recompute);

  mlir::MLIRContext context;
  bool isFree, inference;
  mlir::OwningOpRef<mlir::ModuleOp> chunks; ///< null if there are none
};
} // namespace reprise

#endif // REPRISE_PIPELINES_STAGEPROGRAMS_H
