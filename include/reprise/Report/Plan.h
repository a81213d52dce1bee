//===- Plan.h - What a step keeps, replays and needs ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_REPORT_PLAN_H
#define REPRISE_REPORT_PLAN_H

#include "mlir/IR/BuiltinOps.h"
#include "reprise/Remat/Summary.h"
#include "reprise/Report/Megatron.h"
#include "reprise/Report/MemoryProfile.h"
#include <map>
#include <optional>

namespace reprise::report {
/// What planning made of the decisions.
struct MemoryPlan {
  int64_t arenaBytes = 0; ///< all that the program allocates: its peak
  int64_t boundBytes = 0; ///< no packing of these values takes less
  std::vector<std::pair<std::string, int64_t>> categories; ///< of the arena
  MemoryProfile profile;
};

/// What Megatron would keep, for comparison.
struct Reference {
  megatron::Parallelism parallelism;
  std::map<int64_t, int64_t> layerBytes; ///< of one rank, by layer
};

/// The plan of a step. FLOPs are those of a whole step, all micro-batches, with
/// the numbers that the training program shows too.
struct Plan {
  remat::Summary decisions;
  int64_t numMicroBatches = 1;
  uint64_t stepFlops = 0; ///< without replays
  uint64_t replayFlops = 0;
  std::optional<MemoryPlan> memory;
  std::optional<Reference> reference;

  /// Object of the keys in docs/report.md. Needs `memory`.
  void writeJSON(llvm::raw_ostream &os) const;

  /// A table for each class of equal layers, why a value is kept or replayed,
  /// and which labels buy nothing. Leaves out what `memory` and `reference`
  /// tell if they are not there.
  void explain(llvm::raw_ostream &os) const;
};

/// The decisions in `step`, made of nn ops, decided or applied.
mlir::FailureOr<Plan> readDecisions(mlir::func::FuncOp step);

/// What Megatron would keep of the layers of `step`, made of nn ops. Fails with
/// a diagnostic if the ranks cannot divide a layer.
mlir::FailureOr<Reference>
computeReference(mlir::func::FuncOp step, const megatron::Options &options,
                 const megatron::Parallelism &parallelism);

/// Adds what is known of the step of `module` in buffer form. Fails with a
/// diagnostic if memory is not planned.
mlir::LogicalResult readSchedule(Plan &plan, mlir::ModuleOp module);
} // namespace reprise::report

#endif // REPRISE_REPORT_PLAN_H
