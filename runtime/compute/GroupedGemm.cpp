//===- GroupedGemm.cpp - GEMMs of rows that belong to groups --------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GroupedGemm.h"

#include "GemmParts.h"

#include "reprise/ABI/ElementFormat.h"

#include <inttypes.h>
#include <string.h>

using namespace reprise::runtime;

/// Less than this is not worth a second thread.
static constexpr int64_t kLeastBytesOfThread = 64 << 10;

static const char *at(const void *base, int64_t bytes) {
  return static_cast<const char *>(base) + bytes;
}

namespace {
/// One GEMM with groups, on one processor.
class GroupedGemm {
public:
  GroupedGemm(const RepriseGemm &shape, const GroupedOperands &operands,
              const MicroKernels &kernels, ThreadPool &pool)
      : shape(shape), operands(operands), kernels(kernels), pool(pool),
        size(repriseElementBytes(shape.typeAB)) {
    RepriseGemm part = repriseGemmOfGroup(&shape, repriseGemmGroupRows(&shape));
    gathered = operands.workspace + repriseGemmSums(&part) +
               repriseGemmPanelsOfA(&part) + repriseGemmPanelsOfB(&part);
  }

  bool run(const char *name, Error &error);

private:
  bool checkRows(const char *name, Error &error) const;
  void computePart(int64_t group, int64_t begin, int64_t rows, bool isFirst);
  const void *getRows(const void *base, int32_t operand, int64_t begin,
                      int64_t rows, int64_t width);
  void setToZero(int64_t group);
  void clearRest();

  const RepriseGemm &shape;
  const GroupedOperands &operands;
  const MicroKernels &kernels;
  ThreadPool &pool;
  int64_t size; ///< bytes of an element of A and B
  void *gathered;
};
} // namespace

/// The rows of an operand from `begin` on, `width` elements each: where they
/// are, or gathered.
const void *GroupedGemm::getRows(const void *base, int32_t operand,
                                 int64_t begin, int64_t rows, int64_t width) {
  const int64_t bytes = width * size;
  if (shape.gather != operand)
    return at(base, begin * bytes);
  const int32_t *order = operands.order + begin;
  const int32_t slots = shape.slots;
  pool.parallelFor(rows, divideUp(kLeastBytesOfThread, bytes),
                   [&](int, int64_t first, int64_t end) {
                     for (int64_t row = first; row < end; ++row)
                       memcpy(static_cast<char *>(gathered) + row * bytes,
                              at(base, order[row] / slots * bytes),
                              size_t(bytes));
                   });
  return gathered;
}

/// Computes rows of a group: with sums over them, the first of these start
/// from the old C or from nothing, and others go on from what is there.
void GroupedGemm::computePart(int64_t group, int64_t begin, int64_t rows,
                              bool isFirst) {
  RepriseGemm part = repriseGemmOfGroup(&shape, rows);
  GemmOperands of = {};
  const int64_t c = repriseElementBytes(shape.typeC);
  of.workspace = operands.workspace;
  const int64_t width = shape.transposeA ? shape.m : shape.k;
  of.a = getRows(operands.a, REPRISE_GATHER_A, begin, rows, width);
  if (shape.transposeA) {
    of.b = getRows(operands.b, REPRISE_GATHER_B, begin, rows, shape.n);
    of.c = static_cast<char *>(operands.c) + group * shape.strideC[1] * c;
    part.accumulate = shape.accumulate || !isFirst;
  } else {
    of.b = at(operands.b, group * shape.strideB[1] * size);
    of.c = static_cast<char *>(operands.c) + begin * shape.n * c;
  }
  gemm(part, of, kernels, pool);
}

void GroupedGemm::setToZero(int64_t group) {
  const int64_t size = repriseElementBytes(shape.typeC),
                bytes = shape.m * shape.n * size;
  char *c = static_cast<char *>(operands.c) + group * shape.strideC[1] * size;
  pool.parallelFor(bytes, kLeastBytesOfThread,
                   [&](int, int64_t first, int64_t end) {
                     memset(c + first, 0, size_t(end - first));
                   });
}

/// Rows behind those of the last group are of none.
void GroupedGemm::clearRest() {
  const int64_t first = operands.offsets[shape.groups];
  const int64_t bytes = shape.n * repriseElementBytes(shape.typeC);
  char *c = static_cast<char *>(operands.c);
  pool.parallelFor((shape.m - first) * bytes, kLeastBytesOfThread,
                   [&](int, int64_t begin, int64_t end) {
                     memset(c + first * bytes + begin, 0, size_t(end - begin));
                   });
}

/// Which rows are whose is data: it names rows of the operands once.
bool GroupedGemm::checkRows(const char *name, Error &error) const {
  const int64_t rows = shape.transposeA ? shape.k : shape.m;
  int64_t end = 0;
  for (int64_t group = 0; group <= shape.groups; ++group) {
    const int64_t begin = operands.offsets[group];
    if (begin < end || begin > rows || (group == 0 && begin != 0))
      return error.set("%s has %" PRId64 " rows, but its group %" PRId64
                       " begins at row %" PRId64 " behind row %" PRId64,
                       name, rows, group, begin, end);
    end = begin;
  }
  for (int64_t row = 0; shape.gather && row < rows; ++row)
    if (operands.order[row] < 0 || operands.order[row] >= shape.places)
      return error.set("%s has %" PRId64 " places, but row %" PRId64
                       " is gathered from place %d",
                       name, shape.places, row, operands.order[row]);
  return true;
}

bool GroupedGemm::run(const char *name, Error &error) {
  if (!checkRows(name, error))
    return false;
  for (int64_t group = 0; group < shape.groups; ++group) {
    const int64_t begin = operands.offsets[group];
    const int64_t end = operands.offsets[group + 1];
    if (begin == end && shape.transposeA && !shape.accumulate)
      setToZero(group);
    for (int64_t row = begin; row < end; row += REPRISE_GEMM_GROUP_ROWS)
      computePart(group, row, smaller(end - row, REPRISE_GEMM_GROUP_ROWS),
                  row == begin);
  }
  if (!shape.transposeA && operands.offsets[shape.groups] < shape.m)
    clearRest();
  return true;
}

bool reprise::runtime::groupedGemm(const RepriseGemm &shape,
                                   const GroupedOperands &operands,
                                   const MicroKernels &kernels,
                                   ThreadPool &pool, const char *name,
                                   Error &error) {
  return GroupedGemm(shape, operands, kernels, pool).run(name, error);
}
