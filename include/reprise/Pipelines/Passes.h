//===- Passes.h - Passes that try the phases behind them --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_PIPELINES_PASSES_H
#define REPRISE_PIPELINES_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace reprise::pipelines {
#define GEN_PASS_DECL
#include "reprise/Pipelines/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "reprise/Pipelines/Passes.h.inc"
} // namespace reprise::pipelines

#endif // REPRISE_PIPELINES_PASSES_H
