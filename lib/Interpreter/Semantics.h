//===- Semantics.h - What ops compute ---------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// One function for each family of ops; the formulas are those of the ops'
// descriptions.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_INTERPRETER_SEMANTICS_H
#define REPRISE_LIB_INTERPRETER_SEMANTICS_H

#include "reprise/Interpreter/Interpreter.h"

namespace reprise::interpreter {
/// What an op reads, and where its results go: already of their shapes, zero.
struct Frame {
  llvm::SmallVector<const Tensor *> operands;
  llvm::MutableArrayRef<Tensor> results;
  bool isExact = false; ///< what an op has within itself is not rounded
  int64_t rank = 0;     ///< the number along the axis of the op, if it has one
  int64_t ranks = 1;    ///< of the ranks along that axis

  const Tensor &in(unsigned index) const { return *operands[index]; }
  Tensor &out(unsigned index = 0) const { return results[index]; }
};

/// Each evaluates `op` if it is one of its family; `false` if it is not. Fails
/// with a diagnostic.
llvm::FailureOr<bool> evaluateModelOp(mlir::Operation *op, const Frame &frame);
llvm::FailureOr<bool> evaluateAttentionOp(mlir::Operation *op,
                                          const Frame &frame);
llvm::FailureOr<bool> evaluateExpertOp(mlir::Operation *op, const Frame &frame);
llvm::FailureOr<bool> evaluateLatentOp(mlir::Operation *op, const Frame &frame);
llvm::FailureOr<bool> evaluateRotaryOp(mlir::Operation *op, const Frame &frame);
llvm::FailureOr<bool> evaluateTrainingOp(mlir::Operation *op,
                                         const Frame &frame);
llvm::FailureOr<bool> evaluateShardOp(mlir::Operation *op, const Frame &frame);

/// Evaluates a collective for all ranks along its axis, in their order.
void evaluateCollective(mlir::Operation *op, llvm::ArrayRef<Frame> frames);

/// The same of a head, for ranks that have parts of the vocabulary, or for one.
void evaluateHead(nn::LinearCrossEntropyOp op, llvm::ArrayRef<Frame> frames);

/// 0, or 1 / (1 - rate), for one element of a dropout; `rng` is the operand of
/// that name.
double getDropoutFactor(const Tensor &rng, double rate, int64_t stream,
                        int64_t element);
} // namespace reprise::interpreter

#endif // REPRISE_LIB_INTERPRETER_SEMANTICS_H
