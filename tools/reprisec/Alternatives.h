//===- Alternatives.h - Other plans for the same step -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TOOLS_REPRISEC_ALTERNATIVES_H
#define REPRISE_TOOLS_REPRISEC_ALTERNATIVES_H

#include "Options.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Pipelines/Pipelines.h"
#include "reprise/Report/Plan.h"

namespace reprise::driver {
/// The bytes of `module` (CopyModule.h), of phase joint, or of phase remat
/// without its decisions (what was moved for them stays where it is).
mlir::FailureOr<std::string> writeUndecided(mlir::ModuleOp module, Phase phase);

/// Decides the step of the module in `undecided` in other ways, and plans each
/// down to buffers: no recompute, one label more and one less, whole layers one
/// by one; for `--report` the labels in all combinations and `full` with
/// several numbers of layers. What a step cannot have is left out. The first is
/// `recompute`, the options of `plan`, to be filled in by `chooseAlternative`.
/// Takes a compilation each.
std::vector<report::Alternative>
planAlternatives(llvm::StringRef undecided, mlir::func::FuncOp step,
                 const report::Plan &plan, const Options &options,
                 const RecomputeOptions &recompute);

/// Fills in the plan itself, once its schedule is read.
void chooseAlternative(report::Plan &plan);
} // namespace reprise::driver

#endif // REPRISE_TOOLS_REPRISEC_ALTERNATIVES_H
