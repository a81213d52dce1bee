//===- Workload.h - The work of an op of a model ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_WORKLOAD_H
#define REPRISE_DIALECT_NN_WORKLOAD_H

#include "mlir/IR/Operation.h"
#include "reprise/Interfaces/CostTable.h"

namespace reprise::nn {
/// What `op` does if it runs by itself, as one kernel or one exchange; nothing
/// of ops without a cost, such as marks.
Workload getWorkload(mlir::Operation *op);

/// Lets `costs` know the mesh of `module`, if there is one, of which there are
/// `stages` along the axis of a pipeline.
void setMesh(CostTable &costs, mlir::Operation *module, int64_t stages = 1);
} // namespace reprise::nn

#endif // REPRISE_DIALECT_NN_WORKLOAD_H
