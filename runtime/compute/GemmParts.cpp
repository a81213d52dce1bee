//===- GemmParts.cpp - What all GEMMs have in common ----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GemmParts.h"

#include "Squares.h"

#include "reprise/ABI/ElementFormat.h"

using namespace reprise::runtime;

GemmEntry::GemmEntry(const RepriseGemm &shape, const GemmOperands &operands,
                     int64_t entry)
    : shape(shape), bias(operands.bias), squares(operands.squares) {
  int64_t i = entry / shape.batch[1], j = entry % shape.batch[1];
  auto at = [&](const void *data, const int64_t *strides, int32_t type) {
    return static_cast<const char *>(data) +
           (i * strides[0] + j * strides[1]) * repriseElementBytes(type);
  };
  a = {at(operands.a, shape.strideA, shape.typeAB), shape.lda,
       !shape.transposeA};
  b = {at(operands.b, shape.strideB, shape.typeAB), shape.ldb,
       shape.transposeB != 0, shape.packedB != 0};
  auto *target = const_cast<char *>(at(operands.c, shape.strideC, shape.typeC));
  bool rounds = shape.typeC == REPRISE_BF16;
  c = rounds ? nullptr : reinterpret_cast<float *>(target);
  rounded = rounds ? reinterpret_cast<uint16_t *>(target) : nullptr;
}

const float *GemmEntry::getBias(int64_t col, int64_t count, int64_t width,
                                float *room) const {
  if (!rounded) {
    const float *values = static_cast<const float *>(bias) + col;
    return count == width ? values
                          : static_cast<float *>(memcpy(
                                room, values, size_t(count) * sizeof(float)));
  }
  const uint16_t *values = static_cast<const uint16_t *>(bias) + col;
  for (int64_t j = 0; j < count; ++j) {
    uint32_t bits = uint32_t(values[j]) << 16;
    memcpy(room + j, &bits, sizeof(bits));
  }
  return room;
}

FetchRegion GemmEntry::getPackedRegionOfB(Range lines, Range depth) const {
  constexpr int64_t kWord = sizeof(uint32_t);
  const Range &rows = b.depthIsFast ? lines : depth;
  const Range &cols = b.depthIsFast ? depth : lines;
  auto *data =
      reinterpret_cast<const char *>(b.findPacked(rows.begin, cols.begin));
  const int64_t pairs = rows.size / 2, stride = REPRISE_PACKED_COLS * kWord;
  // Where lines are rows they are neighbours in each panel of the storage.
  if (b.depthIsFast)
    return {data, b.panelWords() * kWord, cols.size / REPRISE_PACKED_COLS,
            pairs * stride};
  return {data, stride, pairs, cols.size * kWord};
}

void GemmEntry::sumBlocks(Range rows, Range cols) const {
  sumSquares(c + rows.begin * shape.ldc + cols.begin, shape.ldc, rows.size,
             cols.size, squaresOf(rows.begin, cols.begin),
             repriseGemmSquaresOfRow(&shape));
}

bool GemmEntry::isAligned() const {
  constexpr uintptr_t kLine = 64;
  const void *begin = c ? static_cast<const void *>(c) : rounded;
  return reinterpret_cast<uintptr_t>(begin) % kLine == 0;
}
