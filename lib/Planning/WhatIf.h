//===- WhatIf.h - What-if compiles of a program -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_PLANNING_WHATIF_H
#define REPRISE_LIB_PLANNING_WHATIF_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Interfaces/CostTable.h"
#include "reprise/Planning/Phases.h"
#include "reprise/Solver/StepGraph.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

namespace reprise::planning {

/// A result of an op of `@step`, by number of the op in its block.
struct StepResult {
  int64_t op = -1;
  unsigned number = 0;
};

/// The graph of a step, and the origins of its values and ops.
struct TracedGraph {
  solver::StepGraph graph;
  /// For each value of the forward pass that an op of `@step` makes.
  std::vector<StepResult> origins;
  std::vector<Work> works; ///< of each op
  /// For each op, the number of the last op of `@step` that it was made of; -1:
  /// none.
  std::vector<int64_t> positions;
  /// The ops of the forward pass that are part of a launch, by number: what
  /// they make and no other launch reads is never in memory.
  std::vector<int64_t> fused;
  /// The ops that free recompute drops, by number.
  llvm::DenseSet<int64_t> free;
  /// Gradients that the step makes from nothing, where it makes them. In the
  /// graph they outlive the step.
  std::vector<int64_t> writtenGradients;
  /// Bytes of the arena that outlive the step as it is; those of a micro-batch
  /// whose inputs may wait; and how many launches fewer the program has, where
  /// that counts (`rt.most_launches`).
  int64_t baseBytes = 0, ofMicroBatch = 0, joined = 0;
};

/// Makes `traced` a graph of all that the memory of a step is for: gradients
/// that are made from nothing live within it, from there on. What is alive
/// then is no more than the program has bytes behind `baseBytes`.
void countWrittenGradients(TracedGraph &traced);

/// `baseBytes` of the program whose step runs as `run`: with replays there are
/// more launches, and maybe fewer buffers for inputs that wait.
int64_t getBaseBytes(mlir::func::FuncOp step, const TracedGraph &traced,
                     const solver::StepRun &run);

/// Bytes of the arena for some arguments of `step`, the first values of
/// `traced`, for those among them that wait for a micro-batch of `launches`,
/// and for what the step puts out.
int64_t getBaseBytes(mlir::func::FuncOp step, const TracedGraph &traced,
                     llvm::ArrayRef<mlir::BlockArgument> arguments,
                     int64_t launches);

/// Offsets of the buffers that launches of a planned step write, from the
/// beginning of activations (`rt::kNoOffset` for those that outlive it): by the
/// name of the op that makes the value, in the order of the schedule.
using KnownOffsets = llvm::StringMap<llvm::SmallVector<int64_t>>;
KnownOffsets getKnownOffsets(mlir::ModuleOp planned);

/// Writes known offsets on the launches of `step`, which have the same ops.
void writeKnownOffsets(mlir::func::FuncOp step, const KnownOffsets &offsets);

/// A program before its plan is applied, for what-if compiles. It has a context
/// of its own, so that nobody hears their remarks.
class WhatIf {
public:
  /// Takes a copy of `module`, of the phase joint. Fails without a diagnostic:
  /// what cannot be read is refused by the phase that comes to it.
  static mlir::FailureOr<std::unique_ptr<WhatIf>> create(mlir::ModuleOp module,
                                                         Phases phases);

  mlir::func::FuncOp getStep() const;
  mlir::ModuleOp getModule() const { return *module; }

  /// The step with none of its decisions applied, but for those of free
  /// recompute; others become rules of the graph's values. What goes over rows
  /// is a launch of its own there: a plan may ask for a norm and not for the
  /// sum before it, which the program runs in one.
  mlir::FailureOr<TracedGraph> trace(const CostTable &costs, bool isFree);

  /// The program under the decisions that `decide` writes on its step, planned.
  /// Its kernels are left behind. With `rowsApart` its launches are those of
  /// the graph, in its order. Packing takes known `offsets` if no worse.
  mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
  plan(llvm::function_ref<void(mlir::func::FuncOp)> decide, bool isFree,
       bool rowsApart, const KnownOffsets *offsets = nullptr);

private:
  WhatIf(std::unique_ptr<mlir::MLIRContext> context, Phases phases)
      : context(std::move(context)), phases(std::move(phases)) {}

  std::unique_ptr<mlir::MLIRContext> context;
  Phases phases;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// The bytes of `rt.plan`: of the whole arena, of activations, before them, and
/// the most that are alive at one time.
struct PlannedBytes {
  int64_t arena, activations, begin, least;
};
mlir::FailureOr<PlannedBytes> getPlannedBytes(mlir::ModuleOp module);

} // namespace reprise::planning

#endif // REPRISE_LIB_PLANNING_WHATIF_H
