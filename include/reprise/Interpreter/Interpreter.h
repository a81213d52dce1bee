//===- Interpreter.h - Reference semantics of nn ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// What every op of nn means, evaluated in f64, one element at a time, from its
// formula: slow, and meant to be read. It is what tests trust: it shares
// nothing with the way to compiled code but the dialect itself. Results in bf16
// are rounded, unless exact ones are asked for; others are not, so compiled
// code agrees with it up to rounding.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_INTERPRETER_INTERPRETER_H
#define REPRISE_INTERPRETER_INTERPRETER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/LogicalResult.h"
#include <vector>

namespace reprise::interpreter {
struct Frame;

/// A row-major array. Ids, which are below 2^53, are doubles too.
struct Tensor {
  std::vector<int64_t> shape;
  std::vector<double> values;

  Tensor() = default;
  /// All elements are `value`.
  explicit Tensor(llvm::ArrayRef<int64_t> shape, double value = 0);

  int64_t size() const { return values.size(); }
  /// Elements of the last dimension; 1 for a scalar.
  int64_t cols() const { return shape.empty() ? 1 : shape.back(); }
  int64_t rows() const { return cols() ? size() / cols() : 0; }
};

/// The nearest number in bf16, of two as near the one with an even last bit.
double roundToBF16(double value);

/// The table `[length, width]` that `rotary` describes, of numbers of f32 as
/// the runtime makes them.
Tensor makeRotaryTable(nn::RotaryAttr rotary, int64_t length, int64_t width);

/// Evaluates the ops of one function of one block, on values that the caller
/// gives to its arguments; those with `nn.rotary` are given already.
class Interpreter {
public:
  explicit Interpreter(mlir::func::FuncOp function);

  /// From here on results in bf16 are not rounded, either.
  void setExact() { isExact = true; }

  void set(mlir::Value value, Tensor tensor);
  const Tensor &get(mlir::Value value) const;

  /// Evaluates the ops from `begin` up to `end`, markers aside. Fails with a
  /// diagnostic at an op that is not of nn (or a fence of remat), or at an id
  /// beyond its table.
  llvm::LogicalResult run(mlir::Block::iterator begin,
                          mlir::Block::iterator end);

  /// Evaluates the whole function and returns its results.
  llvm::FailureOr<std::vector<Tensor>> run();

  /// What the function returns, once all of it is evaluated.
  std::vector<Tensor> getResults() const;

private:
  friend class Ranks;

  llvm::LogicalResult evaluate(mlir::Operation *op);
  /// What `op` reads; its results become new tensors of `results`, which is
  /// empty.
  Frame makeFrame(mlir::Operation *op, std::vector<Tensor> &results) const;
  void store(mlir::Operation *op, std::vector<Tensor> &results);

  mlir::func::FuncOp function;
  bool isExact = false;
  nn::MeshAttr mesh; ///< null for a rank alone
  int64_t rank = 0;  ///< in `mesh`
  llvm::DenseMap<mlir::Value, Tensor> environment;
};

/// All ranks of a mesh, each an interpreter with values of its own: each goes
/// on by itself up to its next collective, where all meet.
class Ranks {
public:
  /// Rank `i` evaluates `functions[i]`; there is one for each rank of `mesh`,
  /// and may be the same one.
  Ranks(nn::MeshAttr mesh, llvm::ArrayRef<mlir::func::FuncOp> functions);

  int64_t size() const { return machines.size(); }
  Interpreter &operator[](int64_t rank) { return machines[rank]; }

  /// Evaluates all functions. Fails with a diagnostic where an interpreter
  /// fails, or where a rank waits in another collective than rank 0.
  llvm::LogicalResult run();

private:
  /// Evaluates `ops[i]` of each rank `i`, the same collective.
  void meet(llvm::ArrayRef<mlir::Operation *> ops);

  nn::MeshAttr mesh;
  std::vector<Interpreter> machines;
};
} // namespace reprise::interpreter

#endif // REPRISE_INTERPRETER_INTERPRETER_H
