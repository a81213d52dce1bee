//===- Lanes.cpp - The lanes of a program ---------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lanes.h"

#include "Mesh.h"

#include "reprise/ABI/Lanes.h"

#include <algorithm>
#include <cinttypes>

using namespace reprise::runtime;

/// More than any machine has room for, and few enough to multiply.
static constexpr int64_t kMostElements = int64_t(1) << 40;
static constexpr int64_t kMostPlaces = 1 << 20;

int64_t reprise::runtime::parcelBytes(const RepriseCollective &row) {
  return row.blockElements * repriseElementBytes(row.elementType);
}

bool reprise::runtime::checkLane(const RepriseModel &model,
                                 const RepriseCollective &row, const char *name,
                                 Error &error) {
  const bool hasAxis = row.axis >= 0 && row.axis < model.numAxes;
  const int64_t size = hasAxis ? model.axes[row.axis].size : 0;
  if (row.peer >= 0 && row.peer < size &&
      row.lane >= REPRISE_LANE_ACTIVATIONS && row.lane < REPRISE_MOST_LANES &&
      row.blocks >= 1 && row.blocks <= kMostPlaces && row.blockElements >= 1 &&
      row.blockElements <= kMostElements)
    return true;
  return error.set("damaged model: %s has a lane %d with %d of %" PRId64
                   " ranks, of %" PRId64 " places with %" PRId64 " elements",
                   name, row.lane, row.peer, size, row.blocks,
                   row.blockElements);
}

namespace {
/// Notes the lanes of ranks.
class LaneFinder {
public:
  LaneFinder(List<Lane> &lanes, Error &error) : lanes(lanes), error(error) {}

  bool add(const RepriseModel &model, int rank, const RepriseCollective &row);

private:
  Lane *find(const Lane &lane) {
    return std::find_if(lanes.begin(), lanes.end(), [&](const Lane &other) {
      return other.from == lane.from && other.to == lane.to &&
             other.number == lane.number;
    });
  }

  List<Lane> &lanes;
  Error &error;
};
} // namespace

/// Either end says the same.
bool LaneFinder::add(const RepriseModel &model, int rank,
                     const RepriseCollective &row) {
  if (!checkLane(model, row, "a transfer", error))
    return false;
  const int peer = groupOf(model, rank, row.axis).rankOf(row.peer);
  const bool sends = row.operation == REPRISE_COLLECTIVE_SEND;
  const Lane lane = {sends ? rank : peer, sends ? peer : rank, row.lane,
                     size_t(parcelBytes(row)), int(row.blocks)};
  const Lane *known = find(lane);
  if (known == lanes.end())
    return lanes.push(lane) ||
           error.set("no memory left for %zu lanes", lanes.size() + 1);
  if (known->size == lane.size && known->places == lane.places)
    return true;
  return error.set("damaged model: lane %d from rank %d to %d has %d places of "
                   "%zu bytes here, and %d of %zu there",
                   lane.number, lane.from, lane.to, known->places, known->size,
                   lane.places, lane.size);
}

bool reprise::runtime::findLanes(const RepriseModel *const *models,
                                 int numModels, int target, List<Lane> &lanes,
                                 Error &error) {
  LaneFinder finder(lanes, error);
  for (int i = 0; i < numModels; ++i) {
    const RepriseModel &model = *models[i];
    // Tables without rows are refused later.
    if (model.target != target || !model.collectives)
      continue;
    for (int j = 0; j < model.numCollectives; ++j)
      for (int rank = 0, end = int(countRanks(model));
           isTransfer(model.collectives[j]) && rank < end; ++rank)
        if (stageOf(model, rank) == model.stage &&
            !finder.add(model, rank, model.collectives[j]))
          return false;
  }
  return true;
}
