//===- Passes.h - Passes that try the phases behind them --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_PLANNING_PASSES_H
#define REPRISE_PLANNING_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "reprise/Planning/Phases.h"

namespace reprise::planning {
#define GEN_PASS_DECL
#include "reprise/Planning/Passes.h.inc"

/// The passes, which try what they decide in `phases`.
std::unique_ptr<mlir::Pass>
createKeepIdleSegment(Phases phases, KeepIdleSegmentOptions options = {});
std::unique_ptr<mlir::Pass> createRematSolve(Phases phases);
std::unique_ptr<mlir::Pass> createWriteStep(Phases phases);

/// Registers all passes of the room.
void registerPlanningPasses(const Phases &phases);
} // namespace reprise::planning

#endif // REPRISE_PLANNING_PASSES_H
