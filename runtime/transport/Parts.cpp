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

/// Whether `rank` has another part or share than all ranks before it, of those
/// of the stage where the state is at home.
static bool isFirstOfPart(const RepriseModel &model, const RepriseState &state,
                          int rank) {
  if (stageOf(model, rank) != state.stage)
    return false;
  for (int axis = 0; axis < model.numAxes; ++axis) {
    bool differs = state.shareForm != REPRISE_SHARE_NONE &&
                   overlap(model, axis, state.shareAxis);
    for (int dim = 0; dim < state.rank; ++dim)
      differs |= state.wholeExtents[dim] > 0 &&
                 overlap(model, axis, state.cutAxes[dim]);
    const bool isOfStages = !strcmp(model.axes[axis].name, kStageAxis);
    if (!differs && !isOfStages && coordinateOf(model, rank, axis) != 0)
      return false;
  }
  return true;
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

namespace {
/// The elements of a part on their way from a rank to rank 0, in pieces.
class Passage {
public:
  Passage(Transport &ranks, int sender, int64_t elements, List<float> &piece,
          Error &error)
      : ranks(ranks), sender(sender), left(elements), piece(piece),
        error(error) {}

  bool send(const float *values, int64_t count) {
    while (count > 0) {
      const int64_t some = std::min(count, size() - filled);
      memcpy(piece.begin() + filled, values, size_t(some) * sizeof(float));
      filled += some, values += some, count -= some;
      if (filled == size() && !pass())
        return false;
    }
    return true;
  }

  /// Puts elements of the whole from number `element` on.
  bool receive(const WholePlace &place, int64_t element, int64_t count) {
    while (count > 0) {
      if (filled == 0 && !pass())
        return false;
      const int64_t some = std::min(count, filled);
      place.put(element, piece.begin() + used, some);
      used += some, filled -= some, element += some, count -= some;
    }
    return true;
  }

private:
  int64_t size() const { return std::min(left, int64_t(piece.size())); }

  /// Of a rank that sends all are in the piece that fit, of one that receives
  /// none; after it the other way round.
  bool pass() {
    const int64_t count = size();
    const bool sends = ranks.rank() == sender;
    const Parcel parcel = {sends ? 0 : sender,
                           reinterpret_cast<char *>(piece.begin()),
                           size_t(count) * sizeof(float)};
    left -= count, used = 0, filled = sends ? 0 : count;
    return ranks.exchange("the parts of states", Patience::Endless, &parcel,
                          sends, &parcel, !sends, error);
  }

  Transport &ranks;
  const int sender;
  int64_t left, filled = 0, used = 0;
  List<float> &piece;
  Error &error;
};
} // namespace

bool reprise::runtime::gatherState(const RepriseModel &model,
                                   const RepriseState &state, Transport &ranks,
                                   const float *own, const WholePlace &place,
                                   Share elements, Error &error) {
  const auto [begin, end] = elements;
  if (ranks.rank() == 0 && isFirstOfPart(model, state, 0))
    partOf(model, state, 0)
        .forEachRun(begin, end,
                    [&](int64_t whole, int64_t from, int64_t count) {
                      place.put(whole - begin, own + from, count);
                      return true;
                    });
  if (!isGathered(state))
    return true;
  List<float> piece;
  if (!piece.resize(size_t(std::min(kPieceElements, end - begin))))
    return error.set("no memory left for a piece of %s", state.name);
  for (int sender = 1; sender < ranks.size(); ++sender) {
    const bool sends = ranks.rank() == sender;
    if ((ranks.rank() != 0 && !sends) || !isFirstOfPart(model, state, sender))
      continue;
    const Part part = partOf(model, state, sender);
    Passage passage(ranks, sender, part.elements(begin, end), piece, error);
    if (!part.forEachRun(
            begin, end, [&](int64_t whole, int64_t from, int64_t count) {
              return sends ? passage.send(own + from, count)
                           : passage.receive(place, whole - begin, count);
            }))
      return false;
  }
  return true;
}
