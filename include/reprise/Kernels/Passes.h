//===- Passes.h - Passes that form kernels ----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_KERNELS_PASSES_H
#define REPRISE_KERNELS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace reprise::kernels {
#define GEN_PASS_DECL
#include "reprise/Kernels/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "reprise/Kernels/Passes.h.inc"
} // namespace reprise::kernels

#endif // REPRISE_KERNELS_PASSES_H
