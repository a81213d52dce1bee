//===- Numbers.h - Elements as the numbers they are added in ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whatever the format of elements in memory, they are computed with in f32:
// that is the accumulator of every row of reprise/ABI/ElementFormat.h.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_CODEGEN_COMMON_NUMBERS_H
#define REPRISE_CODEGEN_COMMON_NUMBERS_H

#include "reprise/Codegen/Common/Code.h"

namespace reprise::codegen {

// Of a scalar or a vector; what is f32 already, or to stay that, as it is.
mlir::Value toF32(Code &code, mlir::Value number);
/// Rounded to the nearest number of `element`.
mlir::Value fromF32(Code &code, mlir::Value number, mlir::Type element);

} // namespace reprise::codegen

#endif // REPRISE_CODEGEN_COMMON_NUMBERS_H
