//===- Code.h - Writing loops over vectors ----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What all emitters share: vectors of one number of lanes, on a CPU 16 whatever
// the machine has (LLVM splits them) and 32 of rows of bf16, 64-bit integers
// for everything that counts, and addresses that are a base pointer and an
// offset in elements.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_CODEGEN_COMMON_CODE_H
#define REPRISE_CODEGEN_COMMON_CODE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace reprise::codegen {

/// Lanes of vectors on a CPU, but where they are bf16, and of those that sums
/// of rows end in. The order of sums depends on it: never change it.
constexpr int64_t kLanes = 16;
/// Vectors of partial sums of a row, which take its vectors in turn: one alone
/// would wait for each addition before the next. Sums depend on it too.
constexpr int64_t kSumVectors = 4;

/// A builder with the few shapes of code that kernels are made of.
class Code : public mlir::ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  /// Lanes of every vector.
  int64_t lanes = kLanes;
  /// Whether the even elements of a vector come before the odd ones. Of bf16
  /// they are the two halves of words, which become f32, and are made of it, by
  /// a shift or a mask for each register: no other order takes less.
  bool evenFirst = false;

  mlir::VectorType lanesOf(mlir::Type element) {
    return mlir::VectorType::get({lanes}, element);
  }

  // Constants. `scalar` is an integer, index or float of `type`.
  mlir::Value scalar(mlir::Type type, double value);
  mlir::Value i64(int64_t value);
  mlir::Value f32(double value) { return scalar(getF32Type(), value); }
  mlir::Value splat(mlir::Value scalar);
  mlir::Value splatF32(double value) { return splat(f32(value)); }
  /// 0, 1, 2, … of the elements.
  mlir::Value iota(mlir::Type element);
  /// Set in the first `count` lanes.
  mlir::Value maskOf(int64_t count);

  // Arithmetic on numbers of one type, scalar or vector.
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, int64_t b) { return add(a, i64(b)); }
  mlir::Value mul(mlir::Value a, int64_t b) { return mul(a, i64(b)); }
  mlir::Value min(mlir::Value a, mlir::Value b); ///< signed integers
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c);
  mlir::Value max(mlir::Value a, mlir::Value b); ///< f32
  mlir::Value exp(mlir::Value a);
  mlir::Value select(mlir::Value mask, mlir::Value a, mlir::Value b);
  mlir::Value cast(mlir::Value a,
                   mlir::Type type); ///< between integers and index

  /// Of lanes with the even elements first, those of `count` elements side by
  /// side from `first` on.
  mlir::Value inOrder(mlir::Value vector, int64_t first, int64_t count);

  // Memory. `mask` leaves lanes out; lanes left out of a load are zero. The
  // offset of a vector is a multiple of `aligned`, up to 16 bytes. Nobody
  // writes what is loaded as `constant`.
  mlir::Value address(mlir::Value base, mlir::Type element, mlir::Value offset);
  mlir::Value load(mlir::Type type, mlir::Value base, mlir::Value offset,
                   mlir::Value mask = {}, int64_t aligned = 1,
                   bool constant = false);
  void store(mlir::Value value, mlir::Value base, mlir::Value offset,
             mlir::Value mask = {}, int64_t aligned = 1);
  /// A whole vector, past the caches: its place begins at a multiple of its
  /// bytes, or of a cache line, and no other store waits for it.
  void stream(mlir::Value value, mlir::Value base, mlir::Value offset);
  /// The same of bf16, of which the halves become neighbours: the first lane of
  /// each, the second, and so on.
  void streamPairs(mlir::Value value, mlir::Value base, mlir::Value offset);
  /// Puts what has been streamed before all that is stored behind this, on a
  /// CPU.
  void fence();
  /// Asks for what is `bytes` beyond an element, in the second-level cache, to
  /// be written or only read.
  void prefetch(mlir::Value base, mlir::Type element, mlir::Value offset,
                int64_t bytes, bool isWritten = false);
  /// Room for f32 on the stack, allocated at the entry of the function.
  mlir::Value scratch(int64_t elements);

  // Control.
  using Body = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::Value, mlir::ValueRange)>;
  /// for (i = from; i < to; i += step), with values carried along.
  llvm::SmallVector<mlir::Value> loop(mlir::Value from, mlir::Value to,
                                      int64_t step, mlir::ValueRange carried,
                                      Body body);
  void loop(mlir::Value from, mlir::Value to, int64_t step,
            llvm::function_ref<void(mlir::Value)> body);
  void when(mlir::Value condition, llvm::function_ref<void()> body);
  void when(mlir::Value condition, llvm::function_ref<void()> body,
            llvm::function_ref<void()> otherwise);
  /// The values of one of them.
  llvm::SmallVector<mlir::Value>
  choose(mlir::Value condition,
         llvm::function_ref<llvm::SmallVector<mlir::Value>()> body,
         llvm::function_ref<llvm::SmallVector<mlir::Value>()> otherwise);

  /// The fixed tree: vector v with v + 2, then v + 1, as far as there are so
  /// many; lane l with l + 8, then l + 4, l + 2, l + 1.
  mlir::Value
  reduce(mlir::ValueRange vectors,
         llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> combine);
  mlir::Value sum(mlir::ValueRange vectors);

private:
  mlir::Value loadEvenFirst(mlir::VectorType type, mlir::Value from,
                            unsigned alignment, bool constant);
  mlir::Value pairHalves(mlir::Value value);
  mlir::Value orderFromEvenFirst(mlir::Value value);
};

/// What a kernel is given: the addresses of its buffers, as the arguments and
/// the results of `source`, and that of the ids of its random streams.
struct Buffers {
  mlir::func::FuncOp source;
  llvm::SmallVector<mlir::Value> inputs, outputs;
  mlir::Value ids;
  /// Of inputs, whether no output of the launch has their bytes; empty where
  /// that makes no difference.
  llvm::SmallVector<bool> constant;

  bool isConstant(unsigned input) const {
    return !constant.empty() && constant[input];
  }
};

} // namespace reprise::codegen

#endif // REPRISE_CODEGEN_COMMON_CODE_H
