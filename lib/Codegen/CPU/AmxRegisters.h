//===- AmxRegisters.h - Instructions on tile registers ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The processor's eight tile registers have 16 rows of 64 bytes each, of f32 or
// of pairs of bf16. A multiplication of two adds to each number of a third,
// number n of row m, the products of 16 pairs in row m of the first and of pair
// n in 16 rows of the second. Registers are named one by one, so LLVM neither
// allocates nor configures them: the runtime has done that (`TileRegisters`)
// before it calls what uses them.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_AMXREGISTERS_H
#define REPRISE_LIB_CODEGEN_CPU_AMXREGISTERS_H

#include "reprise/Codegen/Common/Code.h"

namespace reprise::codegen {

struct AmxRegisters {
  static constexpr int64_t kRows = 16, kRowBytes = 64;
  /// Words of a row: numbers of f32, or pairs.
  static constexpr int64_t kWords = 16;

  Code &code;

  /// `stride` in bytes.
  void call(llvm::StringRef name, llvm::ArrayRef<int64_t> registers,
            mlir::Value address, mlir::Value stride) const {
    llvm::SmallVector<mlir::Value> operands;
    for (int64_t each : registers)
      operands.push_back(code.scalar(code.getI8Type(), double(each)));
    if (address)
      operands.append({address, stride});
    mlir::LLVM::CallIntrinsicOp::create(
        code, code.getStringAttr("llvm.x86." + name.str()), operands);
  }
  void call(llvm::StringRef name, llvm::ArrayRef<int64_t> registers,
            mlir::Value address, int64_t stride) const {
    call(name, registers, address, code.i64(stride));
  }
  void call(llvm::StringRef name, llvm::ArrayRef<int64_t> registers) const {
    call(name, registers, mlir::Value(), mlir::Value());
  }
  mlir::Value at(mlir::Value base, int64_t bytes) const {
    return code.address(base, code.getI8Type(), code.i64(bytes));
  }
};

/// What LLVM calls the instructions of AMX, those on vectors of bf16 beside
/// them.
inline const llvm::StringRef kAmxFeatures[] = {"+avx512bf16", "+amx-tile",
                                               "+amx-bf16"};

} // namespace reprise::codegen

#endif // REPRISE_LIB_CODEGEN_CPU_AMXREGISTERS_H
