//===- ByteRange.h - Bytes of an arena --------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the proof of a plan is said in; the planner has nothing of it.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_MEMORY_BYTERANGE_H
#define REPRISE_LIB_MEMORY_BYTERANGE_H

#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Interfaces/CostModel.h"

namespace reprise::memory {

/// The bytes from `begin` up to `end` of the arena of `space`.
struct ByteRange {
  rt::Space space;
  int64_t begin, end;

  bool operator==(ByteRange other) const {
    return space == other.space && begin == other.begin && end == other.end;
  }
  bool overlaps(ByteRange other) const {
    return space == other.space && begin < other.end && other.begin < end;
  }
};

inline mlir::Diagnostic &operator<<(mlir::Diagnostic &diagnostic,
                                    ByteRange range) {
  diagnostic << "[" << range.begin << ", " << range.end << ")";
  if (range.space != rt::Space::Device)
    diagnostic << " of the " << rt::stringifySpace(range.space);
  return diagnostic;
}

inline ByteRange getRange(rt::BufferOp buffer) {
  rt::PlaceAttr place = buffer.getPlace();
  int64_t begin = place.getOffset();
  return {place.getSpace(), begin, begin + getTypeBytes(buffer.getType())};
}

} // namespace reprise::memory

#endif // REPRISE_LIB_MEMORY_BYTERANGE_H
