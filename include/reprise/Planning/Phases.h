//===- Phases.h - The phases behind a decision ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_PLANNING_PHASES_H
#define REPRISE_PLANNING_PHASES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include <functional>

namespace reprise::planning {

/// The passes from a decided step to the plan of its memory. Planning runs them
/// on copies of a program, to learn the bytes of a plan; it does not know which
/// they are. Each member appends the passes of a phase to a manager of modules:
/// the first takes a module of the phase joint, the others what the one before
/// them leaves.
struct Phases {
  /// Applies the decisions on `@step`; with `isFree`, after those of free
  /// recompute are added.
  std::function<void(mlir::OpPassManager &, bool isFree)> applyDecisions;
  /// Forms kernels; with `rowsApart` a launch for each op over rows.
  std::function<void(mlir::OpPassManager &, bool rowsApart)> formKernels;
  /// Gives each buffer its place: leaves `rt.plan`, which is not proven.
  std::function<void(mlir::OpPassManager &)> planMemory;
};

} // namespace reprise::planning

#endif // REPRISE_PLANNING_PHASES_H
