//===- LiveBytes.h - What is alive while ops move ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_MEMORY_LIVEBYTES_H
#define REPRISE_LIB_MEMORY_LIVEBYTES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "reprise/Dialect/RT/ScheduledOp.h"

namespace reprise::memory {

/// Where an op in which ranks meet is begun and waited for.
struct BegunOp {
  rt::ScheduledOp op;
  mlir::Operation *after = nullptr;  ///< it begins behind this; null: first
  mlir::Operation *before = nullptr; ///< its wait stands before this
  llvm::SmallVector<rt::Sharing> overwrites; ///< all of them forced
  llvm::SmallVector<mlir::Value> kept;       ///< the other operands
  bool isOnce = false;
  bool isPart = false; ///< of a sum, whose bytes count where that stood
};

/// All uses of the bytes of `value` but views and joins themselves: of views of
/// it, of what it is a view of, and of parts of one whole.
llvm::SmallVector<mlir::OpOperand *> getUsesOfBytes(mlir::Value value);

/// The bytes that are alive within a step, as the planner counts them, while
/// ops in which ranks meet are begun earlier and waited for later. It goes by
/// slots: op i of the step as it was has slot 2i + 1, and what is put between
/// two ops has the even slot there.
class LiveBytes {
public:
  /// Of `step` in tensor form; fails with a diagnostic if it can't be planned.
  llvm::LogicalResult read(const mlir::SymbolTable &symbols,
                           mlir::func::FuncOp step, int64_t alignment);

  /// Whether the most bytes that are alive at one time stay what they were, if
  /// `begun` is begun and waited for there. If so, its bytes are alive there
  /// from now on.
  bool hold(const BegunOp &begun);

  /// Whether the most bytes stay what they were if `op` stands before `before`,
  /// an earlier op. If so, its bytes are alive there from now on; it has
  /// results that are in bytes of operands as `overwrites` says.
  bool moveUp(rt::ScheduledOp op, mlir::Operation *before,
              llvm::ArrayRef<rt::Sharing> overwrites);

  /// Of `begun`, which has moved, and its new wait.
  void place(const BegunOp &begun, mlir::Operation *wait);
  /// Of a new sum in place, which stands where `other` does.
  void add(mlir::Operation *op, mlir::Operation *other);

private:
  /// Bytes that are alive from one slot to another, both included.
  struct Held {
    int64_t first, last, bytes;
  };
  int64_t getBegin(const BegunOp &begun) const;
  int64_t getEnd(const BegunOp &begun) const;
  int64_t getWorkspace(rt::ScheduledOp op) const;
  llvm::SmallVector<Held> getChanges(const BegunOp &begun) const;
  bool change(llvm::ArrayRef<Held> changes);
  static void addWorkspace(llvm::SmallVector<Held> &spaces, Held held);
  void readWorkspaces(mlir::Block &block);
  void addResults(mlir::Operation *op);

  int64_t alignment = 1, most = 0;
  llvm::DenseMap<mlir::Operation *, int64_t> slots;
  /// Of the buffer that a value is in, if that is there for some of the step.
  llvm::DenseMap<mlir::Value, int64_t> bytesOf;
  llvm::SmallVector<int64_t> live; ///< by slots
  /// All that is under way at one time has one workspace, for the largest: none
  /// of these overlap.
  llvm::SmallVector<Held> workspaces;
};

} // namespace reprise::memory

#endif // REPRISE_LIB_MEMORY_LIVEBYTES_H
