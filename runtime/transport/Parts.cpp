//===- Parts.cpp - States that ranks have parts of ------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parts.h"

#include "Mesh.h"

#include <cstring>

using namespace reprise::runtime;

/// Adds a level, or what is not cut to the last one, where it makes each
/// element that many.
static void addDimension(const RepriseModel &model, const RepriseState &state,
                         int rank, int dim, Part &part) {
  const int64_t size = state.shape[dim], extent = state.wholeExtents[dim];
  Part::Level *level = &part.levels[part.numLevels - 1];
  if (extent == 0) {
    for (int64_t *number :
         {&level->extent, &level->block, &level->begin, &level->count})
      *number *= size;
    return;
  }
  if (level->extent != 1 || level->block != 1 || level->count != 1)
    level = &part.levels[part.numLevels++]; // Something is before it.
  const int64_t begin =
      std::min(extent, coordinateOf(model, rank, state.cutAxes[dim]) * size);
  *level = {extent, size, begin, std::min(size, extent - begin), 1, 1};
}

Part reprise::runtime::partOf(const RepriseModel &model,
                              const RepriseState &state, int rank) {
  Part part = {{{1, 1, 0, 1, 1, 1}}, 1, 0, 0, 0, false};
  for (int dim = 0; dim < state.rank; ++dim)
    addDimension(model, state, rank, dim, part);
  for (int i = part.numLevels - 1; i-- > 0;) {
    const Part::Level &inner = part.levels[i + 1];
    part.levels[i].wholeStride = inner.extent * inner.wholeStride;
    part.levels[i].ownStride = inner.block * inner.ownStride;
  }
  part.last = part.levels[0].block * part.levels[0].ownStride;
  if (state.shareForm == REPRISE_SHARE_NONE)
    return part;
  const Share share =
      shareOf(part.last, int(coordinateOf(model, rank, state.shareAxis)),
              int(model.axes[state.shareAxis].size));
  part.first = share.begin, part.last = share.end, part.isShare = true;
  if (state.shareForm == REPRISE_SHARE_APART)
    part.offset = share.begin;
  return part;
}

bool Part::hasMore() const {
  return isShare ||
         std::any_of(levels, levels + numLevels, [](const Level &level) {
           return level.count < level.block;
         });
}

int64_t Part::elements(int64_t from, int64_t to) const {
  int64_t count = 0;
  forEachRun(from, to, [&](int64_t, int64_t, int64_t number) {
    count += number;
    return true;
  });
  return count;
}

bool reprise::runtime::sendsPart(const RepriseModel &model,
                                 const RepriseState &state, int rank,
                                 int receiver) {
  if (stageOf(model, rank) != state.stage)
    return false;
  for (int axis = 0; axis < model.numAxes; ++axis) {
    bool differs = state.shareForm != REPRISE_SHARE_NONE &&
                   overlap(model, axis, state.shareAxis);
    for (int dim = 0; dim < state.rank; ++dim)
      differs |= state.wholeExtents[dim] > 0 &&
                 overlap(model, axis, state.cutAxes[dim]);
    const bool isOfStages = !strcmp(model.axes[axis].name, kStageAxis);
    if (!differs && !isOfStages &&
        coordinateOf(model, rank, axis) != coordinateOf(model, receiver, axis))
      return false;
  }
  return true;
}
