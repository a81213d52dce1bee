//===- ElementFormat.h - Formats of the elements of types -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table of formats that compiler and runtime share
// (reprise/ABI/ElementFormat.h), by type. A further format is a row of that
// table and one of `kTypes` in ElementFormat.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_RT_ELEMENTFORMAT_H
#define REPRISE_DIALECT_RT_ELEMENTFORMAT_H

#include "mlir/IR/BuiltinTypes.h"
#include "reprise/ABI/ElementFormat.h"

namespace reprise::rt {

/// The format of `type`, or of the elements of it; null if it has none, as
/// integers.
const RepriseElementFormat *getElementFormat(mlir::Type type);

/// Its code. Whoever writes tables has asked before whether there is one:
/// otherwise it is that of the first format.
int32_t getElementCode(mlir::Type type);

} // namespace reprise::rt

#endif // REPRISE_DIALECT_RT_ELEMENTFORMAT_H
