//===- AmxRegisters.h - Instructions on tile registers ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The processor's eight tile registers have 16 rows of 64 bytes each, of f32 or
// of pairs of bf16. A product of two adds to each number of a third, number n
// of row m, the products of 16 pairs in row m of the first and of pair n in 16
// rows of the second. Registers are named one by one, so LLVM neither allocates
// nor configures them.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_AMXREGISTERS_H
#define REPRISE_LIB_CODEGEN_CPU_AMXREGISTERS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "reprise/Codegen/Common/Code.h"

namespace reprise::codegen {

struct AmxRegisters {
  static constexpr int64_t kRows = 16, kRowBytes = 64;
  /// Words of a row: numbers of f32, or pairs.
  static constexpr int64_t kWords = 16;

  Code &code;

  void call(llvm::StringRef name, llvm::ArrayRef<int64_t> registers,
            mlir::Value address = {}, int64_t stride = 0) const {
    llvm::SmallVector<mlir::Value> operands;
    for (int64_t each : registers)
      operands.push_back(code.scalar(code.getI8Type(), double(each)));
    if (address)
      operands.push_back(address);
    if (stride > 0)
      operands.push_back(code.i64(stride));
    mlir::LLVM::CallIntrinsicOp::create(
        code, code.getStringAttr("llvm.x86." + name.str()), operands);
  }
  mlir::Value at(mlir::Value base, int64_t bytes) const {
    return code.address(base, code.getI8Type(), code.i64(bytes));
  }

  /// Gives all registers their shape, and takes it away again: whoever saves a
  /// thread's registers then has none of these to save.
  void configure() const {
    constexpr int32_t kPalette = 1, kAllBytes = kRowBytes << 16 | kRowBytes,
                      kAllRows = kRows * 0x01010101;
    llvm::SmallVector<int32_t> words(16);
    words[0] = kPalette;
    // Of each register two bytes, from byte 16 on, and one, from byte 48 on.
    for (unsigned i = 0; i < 4; ++i)
      words[4 + i] = kAllBytes;
    words[12] = words[13] = kAllRows;
    mlir::Value shape = code.scratch(kWords);
    code.store(
        mlir::arith::ConstantOp::create(code, code.getI32VectorAttr(words)),
        shape, code.i64(0));
    call("ldtilecfg", {}, shape);
  }
  void release() const { call("tilerelease", {}); }
};

/// What LLVM calls the instructions of AMX, those on vectors of bf16 beside
/// them.
inline const llvm::StringRef kAmxFeatures[] = {"+avx512bf16", "+amx-tile",
                                               "+amx-bf16"};

} // namespace reprise::codegen

#endif // REPRISE_LIB_CODEGEN_CPU_AMXREGISTERS_H
