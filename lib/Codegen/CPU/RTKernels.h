//===- RTKernels.h - Kernels that are one op of rt --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_RTKERNELS_H
#define REPRISE_LIB_CODEGEN_CPU_RTKERNELS_H

#include "Kernel.h"
#include "reprise/Codegen/Common/ColumnMoves.h"
#include "reprise/Dialect/RT/RTOps.h"

namespace reprise::codegen {

/// The address of the buffer that operand `index` of `op` is a view of.
mlir::Value addressOf(Kernel &kernel, mlir::Operation *op, unsigned index);

// Each fills the body of `kernel` and sets its number of tasks.
mlir::LogicalResult emitAttention(Code &code, rt::AttentionOp op,
                                  Kernel &kernel);
mlir::LogicalResult
emitAttentionBackward(Code &code, rt::AttentionBackwardOp op, Kernel &kernel);
mlir::LogicalResult emitScatterAdd(Code &code, rt::ScatterAddOp op,
                                   Kernel &kernel);
mlir::LogicalResult emitBlockSums(Code &code, rt::BlockSumsOp op,
                                  Kernel &kernel);

mlir::LogicalResult emitRouting(Code &code, rt::ChooseExpertsOp op,
                                Kernel &kernel);
mlir::LogicalResult emitRouting(Code &code, rt::ExpertWeightsOp op,
                                Kernel &kernel);
mlir::LogicalResult emitRouting(Code &code, rt::ExpertWeightsBackwardOp op,
                                Kernel &kernel);
mlir::LogicalResult emitRouting(Code &code, rt::SortRowsOp op, Kernel &kernel);
mlir::LogicalResult emitRouting(Code &code, rt::CountRowsOp op, Kernel &kernel);
mlir::LogicalResult emitRouting(Code &code, rt::CountChoicesOp op,
                                Kernel &kernel);

mlir::LogicalResult emitColumnMoves(Code &code, const ColumnMoves &moves,
                                    mlir::Operation *op, Kernel &kernel);

/// Whether tile registers can make the GEMMs of `op`: attention in bf16, of
/// heads with blocks that are large enough.
bool mayHaveBF16x2(mlir::Operation *op);

} // namespace reprise::codegen

#endif // REPRISE_LIB_CODEGEN_CPU_RTKERNELS_H
