//===- RTExpertRankOps.h - Rows of experts on their way ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_RT_RTEXPERTRANKOPS_H
#define REPRISE_DIALECT_RT_RTEXPERTRANKOPS_H

#include "reprise/Dialect/RT/RTOps.h"

#define GET_OP_CLASSES
#include "reprise/Dialect/RT/RTExpertRankOps.h.inc"

namespace reprise::rt {
/// Lets these ops have the interface of ops of schedules; the dialect does so
/// when it is loaded.
void attachScheduledRows(mlir::MLIRContext &context);
} // namespace reprise::rt

#endif // REPRISE_DIALECT_RT_RTEXPERTRANKOPS_H
