//===- NNDialect.h - The nn dialect -----------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_NNDIALECT_H
#define REPRISE_DIALECT_NN_NNDIALECT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"

#include "reprise/Dialect/NN/NNDialect.h.inc"

#endif // REPRISE_DIALECT_NN_NNDIALECT_H
