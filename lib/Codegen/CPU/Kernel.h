//===- Kernel.h - A kernel while it is emitted ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_KERNEL_H
#define REPRISE_LIB_CODEGEN_CPU_KERNEL_H

#include "reprise/Codegen/Common/Code.h"

namespace reprise::codegen {

class LoopNest;

/// What the processor has that a version of a kernel is for.
struct Version {
  bool avx512 = false;     ///< 32 registers of 16 lanes
  bool avx512BF16 = false; ///< and dot products of pairs of bf16
  bool amx = false;        ///< and tile registers, configured
};

/// A kernel while it is emitted: the new function, open at its entry.
struct Kernel : Buffers, Version {
  mlir::LLVM::LLVMFuncOp function;
  mlir::Value buffers, begin, end;

  /// Emits the loop over the tasks of this call.
  void tasks(Code &code, llvm::function_ref<void(mlir::Value task)> body) {
    code.loop(begin, end, 1, body);
  }
};

/// Lets `function` use 32 registers of 16 lanes, and masks; its processor has
/// them.
void setWide(mlir::LLVM::LLVMFuncOp function);
/// Lets it use what else its processor has.
void setFeatures(mlir::LLVM::LLVMFuncOp function,
                 llvm::ArrayRef<llvm::StringRef> features);

/// Of a kernel whose rows are bf16 and nothing else, and that has wide
/// registers: two of them at a time, the even elements first.
void chooseLanes(Code &code, const LoopNest &nest, const Kernel &kernel);

/// Whether what a kernel reads and writes of all rows and columns leaves little
/// of it in most caches.
bool movesPastCaches(const LoopNest &nest, const Kernel &kernel);

/// The outputs of a kernel that go past the caches: where it moves more than
/// fits into them, each line of what it writes would be read first, and would
/// take the place of something else. Of `nest`, those that hold whole cache
/// lines in each row, are written once, at the end, and take no input's place.
llvm::SmallVector<unsigned> findStreamed(const LoopNest &nest,
                                         const Kernel &kernel);

/// Elements in a task of a pointwise kernel.
constexpr int64_t kFlatBlock = 4096;

mlir::LogicalResult emitFlat(Code &code, const LoopNest &nest, Kernel &kernel);
mlir::LogicalResult emitRows(Code &code, const LoopNest &nest, Kernel &kernel);
mlir::LogicalResult emitColumns(Code &code, const LoopNest &nest,
                                Kernel &kernel);

} // namespace reprise::codegen

#endif // REPRISE_LIB_CODEGEN_CPU_KERNEL_H
