//===- LoopNest.h - What a kernel of linalg ops loops over ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All generics of a kernel share one iteration space of rows and columns. Every
// tensor then is a function of the row r, of the column c, of both or of
// neither: its role. In a kernel that works on [rows, cols], a pointwise op on
// [rows] has the role Row, and one on [rows * cols] goes over the same
// elements.
//
// A row reduction is known only after a pass over the row, so a row is walked
// in phases: the phase of a value is the number of reductions that must be
// complete before it can be computed.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_CODEGEN_COMMON_LOOPNEST_H
#define REPRISE_CODEGEN_COMMON_LOOPNEST_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

namespace reprise::codegen {

enum class Role { Uniform, Row, Column, Full };

/// The tensor that `value` is a reshaped view of.
mlir::Value getRoot(mlir::Value value);

class LoopNest {
public:
  enum class Shape { Flat, Rows, Columns };

  /// Analyses a kernel, or says at the op what emission cannot do.
  static mlir::FailureOr<LoopNest> get(mlir::func::FuncOp kernel);

  Shape shape = Shape::Flat;
  int64_t rows = 1, cols = 1;

  /// What operand or result `index` of `op` varies with, as `op` reads it. For
  /// a result, what it holds: a row reduction makes a Row.
  Role operandRole(mlir::linalg::GenericOp op, unsigned index) const;
  Role resultRole(mlir::Value root) const;
  /// What dimension `dim` of `op`'s loops counts: rows, columns, or elements.
  Role dimRole(mlir::linalg::GenericOp op, unsigned dim) const;
  bool isReduction(mlir::Operation *op) const;
  int64_t phase(mlir::Operation *op) const { return phases.lookup(op); }
  int64_t numPhases() const { return phaseCount; }

  /// Reductions, in order.
  llvm::SmallVector<mlir::linalg::GenericOp> reductions() const;

  struct Output {
    mlir::Value root;
    Role role;
    int64_t phase; ///< in which it is stored
    unsigned index;
  };
  llvm::ArrayRef<Output> outputs() const { return outs; }
  /// The output that holds `root` before phase `phase` begins, if one does.
  const Output *storedBefore(mlir::Value root, int64_t phase) const;

private:
  mlir::LogicalResult findSpace(mlir::func::FuncOp kernel);
  mlir::LogicalResult findGenerics(mlir::func::FuncOp kernel);
  mlir::LogicalResult findRoles(mlir::func::FuncOp kernel);
  mlir::FailureOr<std::optional<Role>> roleByLength(mlir::linalg::GenericOp op);
  std::optional<Role> roleByNeighbours(mlir::linalg::GenericOp op) const;
  mlir::LogicalResult check(mlir::linalg::GenericOp op);
  mlir::LogicalResult findPhases(mlir::func::FuncOp kernel);
  mlir::LogicalResult findOutputs(mlir::func::FuncOp kernel);
  mlir::FailureOr<Output> getOutput(mlir::OpOperand &result) const;
  mlir::LogicalResult delayOutputs(mlir::func::FuncOp kernel);
  bool readsIn(mlir::Value argument, int64_t phase) const;
  bool reads(mlir::Value root, mlir::Value argument, int64_t phase) const;
  bool agree(Role access, Role role) const;

  llvm::SmallVector<mlir::linalg::GenericOp> generics;
  llvm::DenseMap<mlir::Operation *, Role> roles;
  llvm::DenseMap<mlir::Operation *, int64_t> phases;
  llvm::SmallVector<Output> outs;
  int64_t phaseCount = 1;
};

/// Whether result `output` of `kernel` adds to an argument, in its buffer, or
/// may be given it (`rt.in_place`, `rt.may_alias`).
bool mayTakePlace(mlir::func::FuncOp kernel, unsigned argument,
                  unsigned output);

} // namespace reprise::codegen

#endif // REPRISE_CODEGEN_COMMON_LOOPNEST_H
