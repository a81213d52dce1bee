//===- Facts.h - Interfaces that ops get when nn is loaded ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_DIALECT_NN_FACTS_H
#define REPRISE_LIB_DIALECT_NN_FACTS_H

#include "mlir/IR/MLIRContext.h"

namespace reprise::nn {
/// Attaches the small facts of `reprise/Interfaces/Facts.td`.
void attachFacts(mlir::MLIRContext &context);

/// Attaches how ranks share ops: `reprise/Interfaces/Partitionable.td`.
void attachPartitionFacts(mlir::MLIRContext &context);

/// Attaches what losses are made of, and what ops do with padded classes:
/// `LogitsLoss` and `ClassRows` of the same file.
void attachClassFacts(mlir::MLIRContext &context);

/// Attaches what ops tell of their layer: `LayerPart` of the same file.
void attachLayerFacts(mlir::MLIRContext &context);
} // namespace reprise::nn

#endif // REPRISE_LIB_DIALECT_NN_FACTS_H
