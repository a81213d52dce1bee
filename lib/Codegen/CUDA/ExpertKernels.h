//===- ExpertKernels.h - Kernels of experts and latent heads ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CUDA_EXPERTKERNELS_H
#define REPRISE_LIB_CODEGEN_CUDA_EXPERTKERNELS_H

#include "DeviceCode.h"
#include "reprise/Codegen/Common/ColumnMoves.h"

namespace reprise::cuda {

// Each fills the body of `kernel`, whose addresses are loaded, and sets its
// launch.

// Routing to experts: a token for each warp, or an expert for each block.
mlir::LogicalResult emitRouting(DeviceCode &code, rt::ChooseExpertsOp op,
                                DeviceKernel &kernel);
mlir::LogicalResult emitRouting(DeviceCode &code, rt::ExpertWeightsOp op,
                                DeviceKernel &kernel);
mlir::LogicalResult emitRouting(DeviceCode &code,
                                rt::ExpertWeightsBackwardOp op,
                                DeviceKernel &kernel);
mlir::LogicalResult emitRouting(DeviceCode &code, rt::SortRowsOp op,
                                DeviceKernel &kernel);
mlir::LogicalResult emitRouting(DeviceCode &code, rt::CountRowsOp op,
                                DeviceKernel &kernel);
mlir::LogicalResult emitRouting(DeviceCode &code, rt::CountChoicesOp op,
                                DeviceKernel &kernel);

/// A GEMM of rows that belong to groups.
mlir::LogicalResult emitGroupedGemm(DeviceCode &code, rt::GemmOp op,
                                    DeviceKernel &kernel);

// Columns of latent attention.
mlir::LogicalResult emitColumnMoves(DeviceCode &code,
                                    const codegen::ColumnMoves &moves,
                                    mlir::Operation *op, DeviceKernel &kernel);

} // namespace reprise::cuda

#endif // REPRISE_LIB_CODEGEN_CUDA_EXPERTKERNELS_H
