//===- BF16x2.h - Instructions on pairs of bf16 -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pair is a word of 32 bits: the element that comes first in the lower half.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_BF16X2_H
#define REPRISE_LIB_CODEGEN_CPU_BF16X2_H

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "reprise/Codegen/Common/Code.h"

namespace reprise::codegen {

/// What LLVM calls the instructions.
inline const llvm::StringRef kAVX512BF16Features[] = {"+avx512bf16"};

/// For each of 16 lanes `sum + x * y` of f32 or, of words that are pairs, the
/// sum and the odd product, and that and the even one.
inline mlir::Value emitMultiplyAdd(Code &code, mlir::Value x, mlir::Value y,
                                   mlir::Value sum) {
  if (mlir::getElementTypeOrSelf(x).isF32())
    return code.fma(x, y, sum);
  auto pairs = mlir::VectorType::get({2 * kLanes}, code.getBF16Type());
  auto halves = [&](mlir::Value words) -> mlir::Value {
    return mlir::vector::BitCastOp::create(code, pairs, words);
  };
  return mlir::LLVM::CallIntrinsicOp::create(
             code, sum.getType(),
             code.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"),
             mlir::ValueRange{sum, halves(x), halves(y)})
      .getResult(0);
}

} // namespace reprise::codegen

#endif // REPRISE_LIB_CODEGEN_CPU_BF16X2_H
