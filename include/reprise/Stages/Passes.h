//===- Passes.h - Passes that make stages of a model ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_STAGES_PASSES_H
#define REPRISE_STAGES_PASSES_H

#include "mlir/Pass/Pass.h"

namespace reprise::stages {
#define GEN_PASS_DECL
#include "reprise/Stages/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "reprise/Stages/Passes.h.inc"
} // namespace reprise::stages

#endif // REPRISE_STAGES_PASSES_H
