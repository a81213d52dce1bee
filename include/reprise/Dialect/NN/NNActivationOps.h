//===- NNActivationOps.h - Functions of one element -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_NNACTIVATIONOPS_H
#define REPRISE_DIALECT_NN_NNACTIVATIONOPS_H

#include "reprise/Dialect/NN/NNOps.h"

#define GET_OP_CLASSES
#include "reprise/Dialect/NN/NNActivationOps.h.inc"

#endif // REPRISE_DIALECT_NN_NNACTIVATIONOPS_H
