//===- Expressions.h - Elements of tensors as values ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Emits what a tensor of a kernel holds at the current row and columns, by
// cloning the bodies of the generics that make it. What varies with the column
// is a vector of columns, everything else a scalar, so an op that is fused
// computes what it would compute alone, operation by operation.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_CODEGEN_COMMON_EXPRESSIONS_H
#define REPRISE_CODEGEN_COMMON_EXPRESSIONS_H

#include "reprise/Codegen/Common/Code.h"
#include "reprise/Codegen/Common/LoopNest.h"
#include "reprise/Codegen/Common/Philox.h"
#include "reprise/Dialect/RT/RTOps.h"

namespace reprise::codegen {

class Expressions {
  struct Scope {
    mlir::Operation *anchor = nullptr;
    llvm::DenseMap<std::pair<mlir::Value, unsigned>, mlir::Value> values;
  };

public:
  Expressions(Code &code, const LoopNest &nest, const Buffers &kernel)
      : code(code), nest(nest), kernel(kernel) {}

  // Where we are. Each opens a scope and forgets what was known in the one it
  // replaces and in those within. While code is inserted in a loop, `anchor` is
  // that loop: what does not vary with it is put in front of it.
  void enterTask() { scopes[0] = Scope(), enterRow({}); }
  void enterRow(mlir::Value r) {
    scopes[1] = Scope(), row = r, enterChunk({}, {});
  }
  void enterChunk(mlir::Value c, mlir::Value columnMask) {
    scopes[2] = Scope(), column = c, mask = columnMask;
    isOfRun = false, isOfPair = false;
  }
  /// The same for 16 of the 64 columns of a run, which share random words; its
  /// four chunks are entered in order, in one block. `first` is the run's first
  /// column, a multiple of 4 as is what a row begins at.
  void enterRun(mlir::Value first, int64_t chunk) {
    enterChunk(code.add(first, chunk * kLanes), {});
    isOfRun = true, runChunk = chunk;
  }
  /// Of two rows side by side: half of the lanes are of one, from element
  /// `even` on, half of the other, from `odd` on. The output `packed` has them
  /// as pairs from its element `pairs` on, and past the caches.
  struct RowPair {
    mlir::Value even, odd, pairs;
    unsigned packed;
  };
  void enterPair(RowPair pair) {
    enterChunk({}, {});
    isOfPair = true, rowPair = pair;
  }
  /// A chunk that is left and entered again, with all that was known in it.
  struct Chunk {
    mlir::Value column, mask;
    Scope scope;
  };
  Chunk leaveChunk() { return {column, mask, std::move(scopes[2])}; }
  void resumeChunk(Chunk chunk) {
    enterChunk(chunk.column, chunk.mask);
    scopes[2] = std::move(chunk.scope);
  }
  /// Chunks begin at multiples of the lanes, and so do rows.
  void setAligned() { isAligned = true; }
  /// Whole vectors of these outputs go past the caches.
  void setStreamed(llvm::ArrayRef<unsigned> outputs) {
    streamed.assign(outputs.begin(), outputs.end());
  }
  void setTaskAnchor(mlir::Operation *op) { scopes[0].anchor = op; }
  void setRowAnchor(mlir::Operation *op) { scopes[1].anchor = op; }
  void setPhase(int64_t p) { phase = p; }

  /// The elements of `root` here: a scalar or a vector.
  mlir::Value get(mlir::Value root);
  /// The same, where the role is not given by an op.
  mlir::Value get(mlir::Value root, Role role);
  /// What is known of `root` here, or null.
  mlir::Value lookup(mlir::Value root, Role role) {
    return scopeOf(role).values.lookup({root, unsigned(role)});
  }
  /// What is known of `root` from here to the end of the scope of `role`.
  void set(mlir::Value root, Role role, mlir::Value value);

  /// The results of `op` here. `accumulators` stand for its outputs.
  llvm::SmallVector<mlir::Value> emit(mlir::linalg::GenericOp op,
                                      mlir::ValueRange accumulators = {});

  /// The initial value of result `index` of a reduction, a vector.
  mlir::Value initial(mlir::linalg::GenericOp op, unsigned index);
  /// Combines two accumulators of result `index` of a reduction.
  mlir::Value combine(mlir::linalg::GenericOp op, unsigned index, mlir::Value a,
                      mlir::Value b);

  /// Writes `value` to where output `output` has its element here.
  void store(const LoopNest::Output &output, mlir::Value value);
  /// What `root` has here is what `output` holds here.
  void setToOutput(mlir::Value root, const LoopNest::Output &output);

  /// Computes all outputs here, then writes them.
  void storeOutputs();

private:
  static bool isVector(Role role) {
    return role == Role::Column || role == Role::Full;
  }
  Scope &scopeOf(Role role) {
    return scopes[isVector(role) ? 2 : role == Role::Row ? 1 : 0];
  }
  mlir::Value offset(Role role);
  mlir::Value loadAt(mlir::Value base, mlir::Type element, Role role,
                     bool constant = false);
  mlir::Value loadPair(mlir::Value base, mlir::Type element, bool constant);
  void storePair(const LoopNest::Output &output, mlir::Value value);
  int64_t alignment() const { return isAligned ? code.lanes : 1; }
  mlir::Value compute(mlir::Value root, Role role);
  mlir::Value outside(mlir::Value value);
  mlir::Value clone(mlir::Operation *op, unsigned result,
                    llvm::SmallVector<mlir::Value> operands);
  mlir::Value extract(mlir::Operation *op, mlir::ValueRange indices);
  mlir::Value stream(int64_t index);
  mlir::Value randomWords(rt::RandomWordOp op, mlir::ValueRange operands);

  Code &code;
  const LoopNest &nest;
  const Buffers &kernel;
  Scope scopes[3]; ///< task, row, chunk of columns
  mlir::Value row, column, mask;
  int64_t phase = 0;
  bool isAligned = false;
  llvm::SmallVector<unsigned> streamed;
  bool isOfRun = false, isOfPair = false;
  int64_t runChunk = 0;
  RowPair rowPair;
  llvm::DenseMap<mlir::Operation *, std::array<mlir::Value, 4>> runWords;
};

} // namespace reprise::codegen

#endif // REPRISE_CODEGEN_COMMON_EXPRESSIONS_H
