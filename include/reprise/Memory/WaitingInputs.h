//===- WaitingInputs.h - Inputs of micro-batches to come --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_MEMORY_WAITINGINPUTS_H
#define REPRISE_MEMORY_WAITINGINPUTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace reprise::memory {

/// Whether an input of this role differs from micro-batch to micro-batch.
bool isOfMicroBatch(llvm::StringRef role);

/// Bytes of the places beside the inputs of a micro-batch, `bytes` in all: one
/// for each other that is given to the device at a time, and again for those
/// that come next. How many there are at a time depends on the launches of a
/// micro-batch. 0 for a device that is given its inputs one by one.
/// (A stage of a pipeline has those of all micro-batches in its schedule.)
int64_t getWaitingBytes(mlir::func::FuncOp step, int64_t launches,
                        int64_t bytes);

} // namespace reprise::memory

#endif // REPRISE_MEMORY_WAITINGINPUTS_H
