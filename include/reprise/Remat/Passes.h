//===- Passes.h - Passes that decide and apply recomputation ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_REMAT_PASSES_H
#define REPRISE_REMAT_PASSES_H

#include "mlir/Pass/Pass.h"
#include <cstdint>

namespace reprise::remat {
/// The value of `num-layers` where nobody gave one.
inline constexpr int64_t kUnsetNumLayers = INT64_MIN;

#define GEN_PASS_DECL
#include "reprise/Remat/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "reprise/Remat/Passes.h.inc"
} // namespace reprise::remat

#endif // REPRISE_REMAT_PASSES_H
