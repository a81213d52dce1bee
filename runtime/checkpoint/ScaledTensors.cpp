//===- ScaledTensors.cpp - Weights of few bits and their scales -----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScaledTensors.h"

#include <algorithm>
#include <cinttypes>

using namespace reprise::runtime;

static constexpr char kSuffix[] = "_scale_inv";

static int64_t ceilDiv(int64_t count, int64_t step) {
  return count / step + (count % step != 0);
}

const TensorEntry *reprise::runtime::findScales(const TensorSet &set,
                                                const TensorEntry &whole) {
  if (whole.type->use != ElementUse::Scaled)
    return nullptr;
  char name[512];
  int length = snprintf(name, sizeof(name), "%s%s", whole.name, kSuffix);
  return length < int(sizeof(name)) ? set.find({name, size_t(length)})
                                    : nullptr;
}

/// Whether the scales are those that `whole` needs in this many blocks.
static bool checkShape(const TensorSet &set, const TensorEntry &whole,
                       const TensorEntry &scales, int64_t rows, int64_t columns,
                       Error &error) {
  int64_t shape[TensorEntry::kMostDimensions];
  std::copy(whole.shape, whole.shape + whole.rank, shape);
  shape[whole.rank - 2] = rows;
  shape[whole.rank - 1] = columns;
  const bool isOne = whole.rank == 2 && rows == 1 && columns == 1 &&
                     scales.bytes * 8 == scales.type->bits;
  return isOne ||
         (scales.rank == whole.rank &&
          std::equal(shape, shape + whole.rank, scales.shape)) ||
         error.set("tensor '%s' of '%s' needs the shape %s, a scale for each "
                   "block of '%s', but got %s",
                   scales.name, set.pathOf(scales),
                   ShapeText(shape, whole.rank).chars, whole.name,
                   ShapeText(scales.shape, scales.rank).chars);
}

bool reprise::runtime::addScales(const TensorSet &set, const TensorEntry &whole,
                                 const ScaleBlocks &blocks, TensorEntry &tensor,
                                 Error &error) {
  if (tensor.type->use != ElementUse::Scaled)
    return true;
  const TensorEntry *scales = findScales(set, whole);
  if (!scales)
    return error.set("tensor '%s' of '%s' is %s, whose values need scales, but "
                     "there is no tensor '%s%s'",
                     whole.name, set.pathOf(whole), whole.type->name,
                     whole.name, kSuffix);
  if (whole.rank < 2)
    return error.set("tensor '%s' of '%s' needs two dimensions or more, as it "
                     "has scales of blocks, but got the shape %s",
                     whole.name, set.pathOf(whole),
                     ShapeText(whole.shape, whole.rank).chars);
  if (!scales->type->isScale())
    return error.set("tensor '%s' of '%s' needs to be F32, BF16, F16 or "
                     "F8_E8M0, but got %s",
                     scales->name, set.pathOf(*scales), scales->type->name);
  const int64_t *matrix = whole.shape + whole.rank - 2;
  TensorEntry::Scales &own = tensor.scales;
  own.rows = blocks.isMatrix ? std::max<int64_t>(1, matrix[0]) : blocks.rows;
  own.columns =
      blocks.isMatrix ? std::max<int64_t>(1, matrix[1]) : blocks.columns;
  const int64_t rows = ceilDiv(matrix[0], own.rows);
  const int64_t columns = ceilDiv(matrix[1], own.columns);
  if (!checkShape(set, whole, *scales, rows, columns, error))
    return false;
  own.entry = scales;
  own.first = own.matrix * rows * columns;
  return true;
}

int64_t reprise::runtime::scaleIndex(const TensorEntry &tensor,
                                     int64_t element) {
  const TensorEntry::Scales &scales = tensor.scales;
  const int64_t width = tensor.shape[tensor.rank - 1];
  const int64_t row = scales.firstRow + element / width;
  return scales.first + row / scales.rows * ceilDiv(width, scales.columns) +
         element % width / scales.columns;
}

bool reprise::runtime::readElements(const TensorSet &set,
                                    const TensorEntry &tensor, int64_t first,
                                    int64_t count, float *to) {
  tensor.type->convert(set.bytesOf(tensor) + first * (tensor.type->bits / 8),
                       count, to);
  const TensorEntry::Scales &scales = tensor.scales;
  if (!scales.entry)
    return allFinite(to, count);
  const ElementType &type = *scales.entry->type;
  const unsigned char *bytes = set.bytesOf(*scales.entry);
  const int64_t width = tensor.shape[tensor.rank - 1];
  for (int64_t i = 0; i < count;) {
    const int64_t column = (first + i) % width;
    // To the end of the block, or of the row.
    const int64_t last =
        std::min(width, (column / scales.columns + 1) * scales.columns);
    const int64_t end = std::min(count, i + last - column);
    float scale;
    type.convert(bytes + scaleIndex(tensor, first + i) * (type.bits / 8), 1,
                 &scale);
    for (; i < end; ++i)
      to[i] *= scale;
  }
  return allFinite(to, count);
}
