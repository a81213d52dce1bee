//===- Prefetch.h - Asking for memory ahead of its use ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A processor fetches ahead by itself, but not beyond a page, and no further
// than the instructions it has in flight. Where each element costs many of
// these, or so few that only the lines under way count, asking helps.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_PREFETCH_H
#define REPRISE_LIB_CODEGEN_CPU_PREFETCH_H

#include "Kernel.h"

namespace reprise::codegen {

/// How far ahead, in bytes.
constexpr int64_t kPrefetchBytes = 2048;

/// Whether an element of `kernel` takes tens of instructions: it has divisions,
/// transcendental functions or random words.
bool computesForLong(mlir::func::FuncOp kernel);

/// Asks for what the inputs of `kernel` that have so many `elements` hold
/// `bytes` beyond an element.
void prefetchInputs(Code &code, const Kernel &kernel, int64_t elements,
                    mlir::Value offset, int64_t bytes = kPrefetchBytes);

} // namespace reprise::codegen

#endif // REPRISE_LIB_CODEGEN_CPU_PREFETCH_H
