//===- Input.h - What reprisec is given -------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TOOLS_REPRISEC_INPUT_H
#define REPRISE_TOOLS_REPRISEC_INPUT_H

#include "Options.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "python-free-frontend/Frontend.h"
#include "reprise/Pipelines/Pipelines.h"

namespace llvm {
class SourceMgr;
} // namespace llvm

namespace reprise::driver {
/// The module of phase `from`, from a description or as IR; null after a
/// message. `recompute` comes from the description or the options; a
/// description comes back as `text`.
mlir::OwningOpRef<mlir::ModuleOp>
readInput(mlir::MLIRContext &context, llvm::SourceMgr &sources,
          const Options &options, Phase from, RecomputeOptions &recompute,
          std::optional<frontend::Description> &text);
} // namespace reprise::driver

#endif // REPRISE_TOOLS_REPRISEC_INPUT_H
