//===- DeviceKernels.h - An emitter for each shape of kernel ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CUDA_DEVICEKERNELS_H
#define REPRISE_LIB_CODEGEN_CUDA_DEVICEKERNELS_H

#include "DeviceCode.h"
#include "reprise/Codegen/Common/Expressions.h"

namespace reprise::cuda {

// Each fills the body of `kernel`, whose addresses are loaded, and sets its
// launch.

mlir::LogicalResult emitFlat(DeviceCode &code, const codegen::LoopNest &nest,
                             DeviceKernel &kernel);
mlir::LogicalResult emitRows(DeviceCode &code, const codegen::LoopNest &nest,
                             DeviceKernel &kernel);
mlir::LogicalResult emitColumns(DeviceCode &code, const codegen::LoopNest &nest,
                                DeviceKernel &kernel);
mlir::LogicalResult emitSegments(DeviceCode &code, DeviceKernel &kernel);
mlir::LogicalResult emitScatterAdd(DeviceCode &code, rt::ScatterAddOp op,
                                   DeviceKernel &kernel);
mlir::LogicalResult emitBlockSums(DeviceCode &code, rt::BlockSumsOp op,
                                  DeviceKernel &kernel);
/// The sum of its inputs, each of as many elements as id 0 says.
void emitRankSum(DeviceCode &code, mlir::Type element, DeviceKernel &kernel);
/// Rows of experts between the order of experts and slots, or with 0 bytes at a
/// time their offsets. See RepriseCudaRows.
void emitRankRows(DeviceCode &code, int64_t unitBytes, DeviceKernel &kernel);
/// Lanes that a thread works on side by side: 16 bytes of the widest tensor
/// that has an element for each of the loop's, divided by 2 until it divides
/// `multiple`.
int64_t chooseLanes(const codegen::LoopNest &nest, mlir::func::FuncOp source,
                    int64_t multiple);
/// Of four lanes of f32, how many an access may take as aligned, wherever the
/// kernel's buffers begin.
int64_t countAlignedLanes(mlir::func::FuncOp source);

} // namespace reprise::cuda

#endif // REPRISE_LIB_CODEGEN_CUDA_DEVICEKERNELS_H
