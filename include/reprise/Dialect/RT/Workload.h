//===- Workload.h - What a launch costs -------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_RT_WORKLOAD_H
#define REPRISE_DIALECT_RT_WORKLOAD_H

#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Interfaces/CostTable.h"

namespace reprise::rt {
/// What `op`, a launch or a product of a schedule in tensor or in buffer form,
/// computes, reads and writes: what a product adds to is both. Panels of
/// products stay in caches and are not counted. `symbols` are those of the
/// module, with kernels of nn or rt ops.
Workload getWorkload(mlir::Operation *op, mlir::SymbolTable &symbols);
} // namespace reprise::rt

#endif // REPRISE_DIALECT_RT_WORKLOAD_H
