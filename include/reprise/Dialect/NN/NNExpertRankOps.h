//===- NNExpertRankOps.h - Ops of experts on several ranks ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_NNEXPERTRANKOPS_H
#define REPRISE_DIALECT_NN_NNEXPERTRANKOPS_H

#include "reprise/Dialect/NN/NNOps.h"

#define GET_OP_CLASSES
#include "reprise/Dialect/NN/NNExpertRankOps.h.inc"

#endif // REPRISE_DIALECT_NN_NNEXPERTRANKOPS_H
