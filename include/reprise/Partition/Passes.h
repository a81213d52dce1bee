//===- Passes.h - Passes that share a model among ranks ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_PARTITION_PASSES_H
#define REPRISE_PARTITION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace reprise::partition {
#define GEN_PASS_DECL
#include "reprise/Partition/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "reprise/Partition/Passes.h.inc"
} // namespace reprise::partition

#endif // REPRISE_PARTITION_PASSES_H
