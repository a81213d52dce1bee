//===- Share.h - Values that ranks keep parts of ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_REMAT_SHARE_H
#define REPRISE_LIB_REMAT_SHARE_H

#include "Step.h"

namespace reprise::remat {
/// What a chunk of a pipeline gets from the one before, of a micro-batch; null
/// if `function` gets none.
mlir::BlockArgument getBorder(mlir::func::FuncOp function);

/// The values of a step's forward phase that each rank along an axis has of its
/// own. Of all others these ranks have the same, to the last bit.
class OwnValues {
public:
  OwnValues(mlir::func::FuncOp function, const Step &step,
            llvm::StringRef axis);

  bool contains(mlir::Value value) const { return own.contains(value); }

private:
  bool isOwn(mlir::func::FuncOp function, mlir::BlockArgument argument) const;
  bool isOwn(mlir::Operation *op) const;
  bool overlaps(llvm::StringRef other) const;

  nn::MeshAttr mesh;
  llvm::StringRef axis;
  llvm::DenseSet<mlir::Value> own;
};

/// The ranks along `axis`, of the mesh of the module that `function` is in.
int64_t countRanks(mlir::func::FuncOp function, llvm::StringRef axis);

/// Whether `value` has elements to cut, which ranks do not choose by.
bool canBeCut(mlir::Value value);
/// The dimension of `value` that is cut for so many ranks: the first that they
/// divide, or -1.
int64_t getCutDim(mlir::Value value, int64_t ranks);
/// "needs a dimension that the 4 ranks along tp divide, to share x2, but got
/// 1x3x5xf32".
void explainCut(mlir::InFlightDiagnostic &error, mlir::Value value,
                llvm::StringRef axis, int64_t ranks);

/// Decides that ranks along `axis` share `value`, which is an input of
/// `segment`. It has no decision.
void decideToShare(mlir::Value value, llvm::StringRef axis, int64_t segment,
                   llvm::StringRef reason = "");

/// "u, which is dropped", and where that is decided.
void explainAbsence(mlir::InFlightDiagnostic &error, const Step &step,
                    mlir::Value value);

/// Checks decisions to share.
llvm::LogicalResult verifyShares(mlir::func::FuncOp function, const Step &step);
} // namespace reprise::remat

#endif // REPRISE_LIB_REMAT_SHARE_H
