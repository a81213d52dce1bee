//===- MoveFacts.h - What stands between the values of ranks ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks that share a model move values between them, and add up their parts.
// The op that does so is named by the value, and by itself: `n1.all_gather`. On
// another mesh it is not there, or another one is.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_REMAT_MOVEFACTS_H
#define REPRISE_LIB_REMAT_MOVEFACTS_H

#include "Step.h"
#include "reprise/Support/RecomputeLabels.h"

namespace reprise::remat {
/// What an op makes of the value that it is named by.
enum class Move {
  None,
  Sum,  ///< of parts: what the value is on one rank
  Loss, ///< the same, of losses with parts of the logits; in no layer
  Copy, ///< all of it where ranks have parts, or a part of it
  Rows, ///< rows on their way to experts on other ranks, or back
};

/// Of an op `nn.NAME`.
Move getMove(llvm::StringRef name, mlir::MLIRContext *context);

/// Of an op that ranks along `tp` need, by its name in the scope; `None` for
/// all others.
Move getTensorMove(mlir::Operation *op);

/// Whether `op` is of the region of `label`: by its module, or as a copy of
/// what is, which the reader's module has.
bool isOfRegion(const RecomputeLabel &label, mlir::Operation *op);

/// The op that does on another mesh what `nn.NAME` does; empty if there is
/// none.
llvm::StringRef getOtherMove(llvm::StringRef name);

/// Whether `op` moves rows between ranks that have other experts.
bool isExpertMove(mlir::Operation *op);

/// What decides on `op`, a move, where nothing else does. For rows on their way
/// that is what they are of; for the gathered rows of tokens that go nowhere
/// else, all that reads them there. A sum goes with its parts, and a copy with
/// the value, or with all that reads it. Null if it stays.
///
/// \param isDropped  of ops of the forward pass, whether they run again.
mlir::Operation *
findFollowed(const Step &step, mlir::Operation *op,
             llvm::function_ref<bool(mlir::Operation *)> isDropped);
} // namespace reprise::remat

#endif // REPRISE_LIB_REMAT_MOVEFACTS_H
