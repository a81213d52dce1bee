//===- LaunchedRank.cpp - A rank of a launcher, over any engine -----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaunchedRank.h"

#include "Collectives.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>

using namespace reprise::runtime;

int LaunchedRank::findRoom(const LaneParcel &parcel, bool needsFree) const {
  for (size_t i = 0; i < rooms.size(); ++i)
    if (rooms[i].peer == parcel.rank && rooms[i].lane == parcel.lane &&
        !(needsFree && rooms[i].pending > 0))
      return int(i);
  return -1;
}

/// At the first parcel of a lane, which has all its places from then on.
bool LaunchedRank::addRooms(const LaneParcel &parcel, Error &error) {
  if (findRoom(parcel, /*needsFree=*/false) >= 0)
    return true;
  for (int i = 0; i < parcel.places; ++i) {
    auto *bytes = static_cast<char *>(malloc(std::max<size_t>(parcel.size, 1)));
    if (!bytes || !rooms.push({parcel.rank, parcel.lane, 0, bytes}))
      return error.set("no memory left for %d parcels of %zu bytes on their "
                       "way",
                       parcel.places, parcel.size);
  }
  return true;
}

void LaunchedRank::waitForReason() const {
  const timespec pause = {0, 10'000'000};
  for (int i = 0; i < kReasonPauses && !board.isAborted(); ++i)
    nanosleep(&pause, nullptr);
}

bool LaunchedRank::giveUp(const char *what, int waited, double quiet,
                          Error &error) const {
  char self[128], peer[128];
  board.nameRank(rank(), self, sizeof(self));
  board.nameRank(waited, peer, sizeof(peer));
  return error.set("%s has waited for %s for %.0f s in %s", self, peer, quiet,
                   what);
}

/// Tells the watcher of this rank where that of rank 0 listens.
static bool shareMeetingPlace(Board &board, Transport &transport,
                              Error &error) {
  if (!broadcast(transport, {0, 1, board.numRanks}, "the start of the run",
                 &board.place, sizeof(board.place), error))
    return false;
  board.hasPlace.store(1);
  board.tellWatcher();
  return true;
}

bool reprise::runtime::runLaunchedBody(Board &board, LaunchedRank &rank,
                                       const RankWork &work, int &status,
                                       bool &isTogether, Error &error) {
  isTogether = false;
  if (!shareMeetingPlace(board, rank, error))
    return false;
  status = work.body(rank, work.context);
  // Whoever ends early waits here for the others, where it sleeps.
  char end = 0;
  isTogether = status != 1 && rank.finishSends(error) &&
               broadcast(rank, {0, 1, board.numRanks}, "the end of the run",
                         &end, 1, error);
  return true;
}
