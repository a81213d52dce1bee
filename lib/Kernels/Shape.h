//===- Shape.h - The shape of a value ---------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_KERNELS_SHAPE_H
#define REPRISE_LIB_KERNELS_SHAPE_H

#include "mlir/IR/BuiltinTypes.h"

namespace reprise::kernels {

/// That of a tensor or buffer.
inline llvm::ArrayRef<int64_t> getShape(mlir::Value value) {
  return llvm::cast<mlir::ShapedType>(value.getType()).getShape();
}

} // namespace reprise::kernels

#endif // REPRISE_LIB_KERNELS_SHAPE_H
