//===- Passes.h - Passes that plan memory -----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_MEMORY_PASSES_H
#define REPRISE_MEMORY_PASSES_H

#include "mlir/Pass/Pass.h"

namespace reprise::memory {
#define GEN_PASS_DECL
#include "reprise/Memory/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "reprise/Memory/Passes.h.inc"
} // namespace reprise::memory

#endif // REPRISE_MEMORY_PASSES_H
