//===- Parts.cpp - States that ranks have parts of ------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parts.h"

#include "Mesh.h"
#include "runtime/base/List.h"

#include <cstring>

using namespace reprise::runtime;

/// What is sent at a time.
static constexpr int64_t kPieceElements = 1 << 20;

Part reprise::runtime::partOf(const RepriseModel &model,
                              const RepriseState &state, int rank) {
  Part part = {1, 1, 1, 1, 0, 1};
  for (int i = 0; i < state.rank; ++i)
    (!isCut(state) || i == state.cutDim ? part.block
     : i < state.cutDim                 ? part.outer
                                        : part.inner) *= state.shape[i];
  part.extent = part.count = part.block;
  if (!isCut(state))
    return part;
  part.extent = state.wholeExtent;
  part.begin = std::min(part.extent,
                        coordinateOf(model, rank, state.cutAxis) * part.block);
  part.count = std::min(part.block, part.extent - part.begin);
  return part;
}

void WholePlace::put(int64_t element, const float *values,
                     int64_t count) const {
  while (count > 0) {
    const int64_t column = element % width;
    const int64_t run =
        stride == width ? count : std::min(count, width - column);
    memcpy(first + element / width * stride + column, values,
           size_t(run) * sizeof(float));
    element += run;
    values += run;
    count -= run;
  }
}

/// Puts the elements [begin, end) of a part, numbered by themselves, which are
/// at `values`.
static void putPart(const Part &part, int64_t begin, int64_t end,
                    const float *values, const WholePlace &place) {
  const int64_t row = part.count * part.inner;
  while (begin < end) {
    const int64_t run = std::min(end, (begin / row + 1) * row) - begin;
    place.put(begin / row * part.extent * part.inner + part.begin * part.inner +
                  begin % row,
              values, run);
    begin += run;
    values += run;
  }
}

/// Copies the elements [begin, end) of a part, numbered by themselves, out of
/// the rank's tensor.
static void takePart(const Part &part, int64_t begin, int64_t end,
                     const float *own, float *values) {
  const int64_t row = part.count * part.inner;
  while (begin < end) {
    const int64_t run = std::min(end, (begin / row + 1) * row) - begin;
    memcpy(values, own + begin / row * part.block * part.inner + begin % row,
           size_t(run) * sizeof(float));
    begin += run;
    values += run;
  }
}

bool reprise::runtime::gatherState(const RepriseModel &model,
                                   const RepriseState &state, Transport &ranks,
                                   const float *own, const WholePlace &place,
                                   Error &error) {
  const Part mine = partOf(model, state, ranks.rank());
  if (ranks.rank() == 0)
    mine.forEachRun(0, mine.wholeElements(),
                    [&](int64_t whole, int64_t from, int64_t count) {
                      place.put(whole, own + from, count);
                      return true;
                    });
  if (!isCut(state))
    return true;
  const Group group = groupOf(model, 0, state.cutAxis);
  List<float> piece;
  if (!piece.resize(size_t(std::min(kPieceElements, mine.wholeElements()))))
    return error.set("no memory left for a piece of %s", state.name);
  for (int member = 1; member < group.size; ++member) {
    const int sender = group.rankOf(member);
    if (ranks.rank() != 0 && ranks.rank() != sender)
      continue;
    const Part part = partOf(model, state, sender);
    for (int64_t begin = 0; begin < part.elements(); begin += kPieceElements) {
      const int64_t end = std::min(begin + kPieceElements, part.elements());
      const Parcel parcel = {ranks.rank() == 0 ? sender : 0,
                             reinterpret_cast<char *>(piece.begin()),
                             size_t(end - begin) * sizeof(float)};
      const bool sends = ranks.rank() == sender;
      if (sends)
        takePart(part, begin, end, own, piece.begin());
      if (!ranks.exchange("the parts of states", Patience::Endless, &parcel,
                          sends, &parcel, !sends, error))
        return false;
      if (!sends)
        putPart(part, begin, end, piece.begin(), place);
    }
  }
  return true;
}
