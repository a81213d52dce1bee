//===- Warp.h - Writing what the threads of a warp do -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A builder for what a thread counts, and functions for what it does beside.
// Everything that counts is an i32; offsets in shared memory are in bytes from
// its beginning, offsets in device memory in elements, as i64.
//
// A warp holds a result of 16 rows by n columns in blocks of 8 columns, four
// numbers to a thread, as mma.sync has them: with g = lane / 4 and t = lane %
// 4, rows g and g + 8, columns 2 t and 2 t + 1:
//
//   [4 * block]     row g,     column 8 * block + 2 t
//   [4 * block + 1] row g,     column 8 * block + 2 t + 1
//   [4 * block + 2] row g + 8, column 8 * block + 2 t
//   [4 * block + 3] row g + 8, column 8 * block + 2 t + 1
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CUDA_WARP_H
#define REPRISE_LIB_CODEGEN_CUDA_WARP_H

#include "reprise/Codegen/Common/Code.h"

namespace reprise::cuda {

constexpr int64_t kWarpSize = 32;
/// Rows of the results that a warp holds, and columns of their blocks.
constexpr int64_t kWarpRows = 16, kBlockColumns = 8;

class Warp : public codegen::Code {
public:
  /// Writes at the insertion point of `code`. \param shared  the beginning of
  /// the dynamic shared memory, aligned to 16 bytes, and for MMAs of four
  /// warps to the panels of WarpGroup.h.
  Warp(const codegen::Code &code, mlir::Value shared);

  mlir::Value thread, lane, warp; ///< in the block; in the warp; of the block
  mlir::Value group, quad;        ///< lane / 4, lane % 4

  mlir::Value blockIndex(); ///< along x

  // Arithmetic with a constant, in the type of `a`; integers are not negative.
  using Code::add;
  using Code::mul;
  mlir::Value constant(mlir::Type type, int64_t value);
  mlir::Value i32(int64_t value) { return constant(getI32Type(), value); }
  mlir::Value add(mlir::Value a, int64_t b);
  mlir::Value mul(mlir::Value a, int64_t b);
  mlir::Value div(mlir::Value a, int64_t b);
  mlir::Value div(mlir::Value a, mlir::Value b);
  mlir::Value rem(mlir::Value a, int64_t b);
  mlir::Value rem(mlir::Value a, mlir::Value b);
  mlir::Value bits(mlir::Value a, int64_t mask);
  mlir::Value both(mlir::Value a, mlir::Value b);
  mlir::Value widen(mlir::Value a); ///< as i64
  mlir::Value isLess(mlir::Value a, mlir::Value b);
  mlir::Value isLess(mlir::Value a, int64_t b);

  // Control.
  using Values = llvm::SmallVector<mlir::Value>;
  using Body = llvm::function_ref<Values(mlir::Value, mlir::ValueRange)>;
  Values repeat(mlir::Value from, mlir::Value to, int64_t step,
                mlir::ValueRange carried, Body body);
  Values choose(mlir::Value condition, llvm::function_ref<Values()> yes,
                llvm::function_ref<Values()> no);

  /// Of shared memory, in address space 3.
  mlir::Value sharedAddress(mlir::Value offset);

private:
  mlir::Value shared;
};

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

mlir::Value exp2(Warp &code, mlir::Value a);
/// Two f32 as bf16, `low` in the low half of an i32.
mlir::Value pack(Warp &code, mlir::Value low, mlir::Value high);

//===----------------------------------------------------------------------===//
// Threads together
//===----------------------------------------------------------------------===//

void barrier(Warp &code);  ///< of the block
void syncWarp(Warp &code); ///< writes to shared memory are seen by the warp
mlir::Value shuffleXor(Warp &code, mlir::Value value, int64_t lanes);
/// The same op on `value` and what lanes at distances 1, 2, … below `width`
/// have: all of them get the result.
mlir::Value
reduceLanes(Warp &code, mlir::Value value, int64_t width,
            llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> op);

//===----------------------------------------------------------------------===//
// Memory, where vectors are aligned to their size
//===----------------------------------------------------------------------===//

/// An address in address space 1.
mlir::Value toDevice(Warp &code, mlir::Value pointer);
mlir::Value loadDevice(Warp &code, mlir::Type type, mlir::Value base,
                       mlir::Value offset);
void storeDevice(Warp &code, mlir::Value value, mlir::Value base,
                 mlir::Value offset);
mlir::Value loadShared(Warp &code, mlir::Type type, mlir::Value offset);
void storeShared(Warp &code, mlir::Value value, mlir::Value offset);

/// Begins to copy 16 bytes to shared memory, of which `valid` ones are read and
/// the others are zero.
void copyVector(Warp &code, mlir::Value offset, mlir::Value from,
                mlir::Value valid);

//===----------------------------------------------------------------------===//
// Matrices of bf16
//===----------------------------------------------------------------------===//

/// A row of the fourth of them is given by each lane: see ldmatrix in the PTX
/// manual.
Warp::Values loadMatrices(Warp &code, mlir::Value offset, bool transposed);
/// c + a b, with a 16 x 16, b 16 x 8.
Warp::Values multiply(Warp &code, mlir::ValueRange a, mlir::ValueRange b,
                      mlir::ValueRange c);

} // namespace reprise::cuda

#endif // REPRISE_LIB_CODEGEN_CUDA_WARP_H
