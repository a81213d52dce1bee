//===- Differentiable.h - Ops that know their own gradient ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_INTERFACES_DIFFERENTIABLE_H
#define REPRISE_INTERFACES_DIFFERENTIABLE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

#include "reprise/Interfaces/Differentiable.h.inc"

#endif // REPRISE_INTERFACES_DIFFERENTIABLE_H
