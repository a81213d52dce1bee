//===- AttentionShape.cpp - What is known of an attention -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionShape.h"
#include "WarpGroup.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::cuda;

AttentionShape::AttentionShape(ShapedType query, ShapedType value,
                               int64_t queryHeads, int64_t keyHeads,
                               double scale, double rate)
    : batch(query.getDimSize(0)), length(query.getDimSize(1)),
      queryHeads(queryHeads), keyHeads(keyHeads),
      width(query.getDimSize(2) / queryHeads),
      valueWidth(value.getDimSize(2) / keyHeads),
      element(query.getElementType()), scale(scale), dropout(rate) {}

int64_t AttentionShape::padded(int64_t columns) const {
  return llvm::alignTo(columns, element.isBF16() ? 16 : kBlockColumns);
}

SharedLayout::SharedLayout(const AttentionShape &shape,
                           const Division &division) {
  strideBytes = shape.paddedWidth() * shape.elementBytes();
  if (!division.byWarpGroup)
    strideBytes += kVectorBytes;
  const int64_t ownRows = division.ownRows(), tileRows = division.tileRows;
  int64_t copiedRows = 0;
  if (division.byWarpGroup && division.direction == Direction::Backward)
    copiedRows = std::max(2 * tileRows, ownRows);
  walkedTiles = division.ownTiles() * ownRows * strideBytes;
  weights = walkedTiles + 4 * tileRows * strideBytes;
  weightStride = tileRows * 4 + kVectorBytes;
  outTiles = weights + (shape.isBF16() ? 0 : ownRows * weightStride);
  lseCopies = outTiles + copiedRows * strideBytes;
  rowNumbers = lseCopies + 4 * copiedRows;
  bytes = rowNumbers + 8 * std::max(ownRows, tileRows);
}

/// Registers of a thread for the results that are kept: of own rows by tile
/// rows, and by the widths; forward, the queries too.
static int64_t registersOf(const AttentionShape &shape,
                           const Division &division) {
  int64_t width = shape.padded(shape.width);
  int64_t ofValues = shape.padded(shape.valueWidth);
  if (division.direction == Direction::Backward)
    return division.tileRows + (width + ofValues) / 2;
  return (division.tileRows + ofValues) / 2 + (shape.isBF16() ? width / 4 : 0);
}

Division cuda::divide(const AttentionShape &shape, Direction direction,
                      bool byWarpGroup) {
  constexpr int64_t most = 160; // of 255
  Division best = {direction, 1, 16, byWarpGroup};
  for (int64_t warps : {1, 2, 4})
    for (int64_t rows : {16, 32, 64}) {
      Division next = {direction, warps, rows, byWarpGroup};
      if (rows <= next.threads() &&
          SharedLayout(shape, next).bytes <= kSharedBytes &&
          (registersOf(shape, next) <= most || rows == 16))
        best = next;
    }
  return best;
}

bool cuda::canDivideByWarpGroup(const AttentionShape &shape,
                                Direction direction) {
  // Both forms are launched alike.
  auto isWhole = [&](bool byWarpGroup) {
    return divide(shape, direction, byWarpGroup).warps == kWarpGroup;
  };
  return shape.isBF16() && shape.width % kPanelColumns == 0 &&
         shape.valueWidth % kPanelColumns == 0 && isWhole(false) &&
         isWhole(true);
}

LaunchShape cuda::launchOf(const AttentionShape &shape,
                           const Division &division, int64_t blocks) {
  // What ptxas needs beside sums, found by assembling; and for each block 1 KiB
  // of shared memory is the system's.
  int64_t registers =
      registersOf(shape, division) + (shape.dropout.isNone() ? 40 : 56);
  int64_t bytes = SharedLayout(shape, division).bytes;
  int64_t byRegisters =
      65536 / (division.threads() * llvm::alignTo(registers, 8));
  int64_t byMemory = (228 << 10) / (bytes + 1024);
  int64_t resident = std::clamp<int64_t>(std::min(byRegisters, byMemory), 1, 4);
  return {blocks, division.threads(), bytes, resident};
}

LogicalResult cuda::verifyShape(Operation *op, const AttentionShape &shape) {
  int64_t widest = std::max(shape.width, shape.valueWidth);
  if (widest > kMaxHeadWidth)
    return op->emitOpError("needs a head width of at most ")
           << kMaxHeadWidth << ", whose tiles fit into " << kSharedBytes
           << " bytes of shared memory, but got " << widest;
  if (!(shape.scale > 0))
    return op->emitOpError("needs a scale above 0, but got ") << shape.scale;
  if (!shape.element.isF32() && !shape.isBF16())
    return op->emitOpError("needs elements of f32 or bf16, but got ")
           << shape.element;
  return success();
}
