//===- ScheduledOp.h - What a schedule runs ---------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_RT_SCHEDULEDOP_H
#define REPRISE_DIALECT_RT_SCHEDULEDOP_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "reprise/Interfaces/CostTable.h"

namespace reprise::rt {
/// A write of an op that takes the bytes of a read: it has to, or it may.
struct Sharing {
  unsigned read;
  int64_t write;
  bool isForced;
};
} // namespace reprise::rt

#include "reprise/Dialect/RT/ScheduledOp.h.inc"

namespace reprise::rt {
/// Lets the ops of schedules have the interface; the dialect does so when it
/// is loaded.
void attachScheduledOps(mlir::MLIRContext &context);
} // namespace reprise::rt

#endif // REPRISE_DIALECT_RT_SCHEDULEDOP_H
