//===- Prefetch.cpp - Asking for memory ahead of its use --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Prefetch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "reprise/Dialect/RT/RTOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

bool codegen::computesForLong(func::FuncOp kernel) {
  auto takesLong = [](Operation *op) {
    bool isShort = isa<math::AbsFOp, math::FmaOp>(op);
    return isa<arith::DivFOp, rt::RandomWordOp>(op) ||
           (isa_and_present<math::MathDialect>(op->getDialect()) && !isShort);
  };
  return kernel
      .walk([&](Operation *op) {
        return takesLong(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

void codegen::prefetchInputs(Code &code, const Kernel &kernel, int64_t elements,
                             Value offset, int64_t bytes) {
  func::FuncOp source = kernel.source;
  for (auto [argument, input] :
       llvm::zip(source.getArguments(), kernel.inputs)) {
    auto type = cast<ShapedType>(argument.getType());
    if (type.getNumElements() == elements)
      code.prefetch(input, type.getElementType(), offset, bytes);
  }
}
