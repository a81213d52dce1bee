//===- Attention.h - Causal attention on a GPU ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CUDA_ATTENTION_H
#define REPRISE_LIB_CODEGEN_CUDA_ATTENTION_H

#include "reprise/Codegen/Common/Code.h"
#include "reprise/Dialect/RT/RTOps.h"

namespace reprise::cuda {

/// How a kernel is launched: blocks and threads along x, bytes of dynamic
/// shared memory, and how many blocks a multiprocessor should have room for,
/// which bounds the registers of a thread.
struct LaunchShape {
  int64_t blocks, threads, sharedBytes, residentBlocks;
};

/// Where a kernel of attention finds things: its buffers, as the operands and
/// then the results of the op; the id of its random stream (i64); where ranks
/// have parts of the heads, which part (i64); the beginning of the dynamic
/// shared memory, in address space 3.
struct AttentionPlaces {
  llvm::SmallVector<mlir::Value> operands, results;
  mlir::Value stream, coordinate, shared;
};

// Each writes the body of a kernel at the insertion point, or fails at the op.
// The form with MMAs of four warps together (WarpGroup.h) has as many
// blocks and threads as the other one.
mlir::FailureOr<LaunchShape> emitAttention(codegen::Code &code,
                                           rt::AttentionOp op,
                                           const AttentionPlaces &places,
                                           bool byWarpGroup);
mlir::FailureOr<LaunchShape>
emitAttentionBackward(codegen::Code &code, rt::AttentionBackwardOp op,
                      const AttentionPlaces &places, bool byWarpGroup);

/// Whether there is that form.
bool hasWarpGroupForm(rt::AttentionOp op);
bool hasWarpGroupForm(rt::AttentionBackwardOp op);

} // namespace reprise::cuda

#endif // REPRISE_LIB_CODEGEN_CUDA_ATTENTION_H
