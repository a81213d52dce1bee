//===- InFlight.h - Proof of what ranks have begun --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_MEMORY_INFLIGHT_H
#define REPRISE_LIB_MEMORY_INFLIGHT_H

#include "ByteRange.h"
#include "reprise/Dialect/RT/RTWaitOp.h"
#include <map>

namespace reprise::memory {

/// What is begun and not waited for yet, of one schedule in buffer form: its
/// bytes are its own. Part of the proof, which shares nothing with the planner.
class InFlight {
public:
  /// The next op of the schedule, which touches none of these bytes.
  llvm::LogicalResult visit(mlir::Operation *op);
  /// At rt.update, or at the end: nothing is under way.
  llvm::LogicalResult endPart(llvm::StringRef what);

private:
  struct Begun {
    mlir::Operation *op;
    llvm::SmallVector<rt::BufferOp> reads, writes;
    rt::BufferOp workspace;
  };
  llvm::LogicalResult begin(mlir::Operation *op, int64_t number);
  llvm::LogicalResult end(rt::WaitOp wait);
  llvm::LogicalResult checkOnce(mlir::Operation *op) const;
  llvm::LogicalResult checkBytes(mlir::Operation *op, const Begun &begun) const;
  static Begun getBegun(mlir::Operation *op);

  std::map<int64_t, Begun> all; ///< By their numbers.
  /// What is there in the last micro-batch alone, up to rt.update.
  llvm::SmallVector<rt::BufferOp> made;
  bool isUpdate = false; ///< Behind that.
};

} // namespace reprise::memory

#endif // REPRISE_LIB_MEMORY_INFLIGHT_H
