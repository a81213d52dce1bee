//===- Passes.h - Passes that build the step --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_AUTODIFF_PASSES_H
#define REPRISE_AUTODIFF_PASSES_H

#include "mlir/Pass/Pass.h"

namespace reprise::autodiff {
#define GEN_PASS_DECL
#include "reprise/Autodiff/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "reprise/Autodiff/Passes.h.inc"
} // namespace reprise::autodiff

#endif // REPRISE_AUTODIFF_PASSES_H
