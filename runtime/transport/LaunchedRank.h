//===- LaunchedRank.h - A rank of a launcher, over any engine ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_LAUNCHEDRANK_H
#define REPRISE_RUNTIME_TRANSPORT_LAUNCHEDRANK_H

#include "Board.h"
#include "runtime/base/List.h"

namespace reprise::runtime {

/// Pauses of ten milliseconds in which another watcher may say what came first,
/// or another rank be told of it.
inline constexpr int kReasonPauses = 100;

/// What engines under a launcher have in common: they tell the watcher of the
/// rank what it does, by the board that they share with it, and keep the places
/// of lanes to other ranks, from which parcels are sent.
class LaunchedRank : public Transport {
public:
  void reportStep(int64_t step) final {
    board.ranks()[rank()].step.store(step, std::memory_order_relaxed);
  }
  void abort(const char *reason) final {
    board.abort(rank(), reason);
    board.tellWatcher();
  }
  const char *engine() const final { return itsEngine; }
  bool hasEnded() const final { return board.isAborted(); }
  int64_t limitSeconds() const final {
    return board.settings->operationSeconds;
  }

  /// Waits until all that was sent on lanes has gone.
  virtual bool finishSends(Error & /*error*/) { return true; }

protected:
  LaunchedRank(Board &board, int rank, const char *engine)
      : Transport(rank, board.numRanks), board(board), itsEngine(engine) {}
  ~LaunchedRank() = default; // Nobody owns one through its base.

  /// A place of a lane to another rank.
  struct Room {
    int peer, lane;
    int pending; ///< Messages that are still sent from it.
    char *bytes;
  };

  /// Sees to it that the lane of a parcel that is sent has all its places.
  bool addRooms(const LaneParcel &parcel, Error &error);
  /// The index of a place of the lane; -1: there is none.
  int findRoom(const LaneParcel &parcel, bool needsFree) const;

  /// After a failure that another rank may have caused: waits for a moment, in
  /// which the watchers may say what came first.
  void waitForReason() const;
  /// The error of a wait that has taken too long.
  bool giveUp(const char *what, int waited, double quiet, Error &error) const;

  Board &board;
  List<Room> rooms; ///< They stay as long as the engine may read them.

private:
  const char *itsEngine;
};

/// Runs the body of a rank, and waits behind it for the others; false if it
/// could not begin.
///
/// \param isTogether  becomes whether all have come to the end, where the
///                    engine may be shut down.
bool runLaunchedBody(Board &board, LaunchedRank &rank, const RankWork &work,
                     int &status, bool &isTogether, Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_LAUNCHEDRANK_H
