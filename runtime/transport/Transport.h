//===- Transport.h - Bytes between ranks ------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An engine of a run of many ranks moves bytes and adds nothing: sums are made
// by Collectives.h, in an order that the program fixes. So every engine gives
// the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_TRANSPORT_H
#define REPRISE_RUNTIME_TRANSPORT_TRANSPORT_H

#include "runtime/base/Clock.h"
#include "runtime/base/Error.h"

#include <cstddef>
#include <cstdint>

namespace reprise::runtime {

/// Bytes that go to another rank, or come from it.
struct Parcel {
  int rank;
  char *bytes;
  size_t size;
};

/// The next parcel of a lane: to another rank, or from it. Between two ranks,
/// each direction has lanes, known by number, on which parcels come in order.
/// No lane waits for another, or for exchanges.
struct LaneParcel {
  int rank, lane;
  char *bytes;
  size_t size; ///< The same for all of a lane.
  int places;  ///< How many of the lane may be on their way; so are these.
};

/// How long an exchange waits for others whose hearts beat.
enum class Patience {
  Limited, ///< Until no byte has moved for the time limit of an operation.
  Endless  ///< For what one of them does alone, such as a save.
};

/// The ranks of a run, seen from one of them. One thread makes all calls. This
/// class is a run of one rank; engines derive from it.
class Transport {
public:
  Transport() = default;
  ~Transport() = default; // Nobody owns an engine through its base.
  Transport(const Transport &) = delete;
  Transport &operator=(const Transport &) = delete;

  int rank() const { return itsRank; }
  int size() const { return numRanks; }

  /// Sends and receives all these parcels, which may cross: returns when what
  /// was received is there and what was sent may be written over. Between two
  /// ranks, parcels come in the order in which they were sent; a rank receives
  /// the sizes that were sent to it. No rank sends to itself.
  ///
  /// False if another rank has ended, or if nothing has come for too long.
  ///
  /// \param what  names the operation in an error, e.g. "the sum of gradients".
  bool exchange(const char *what, Patience patience, const Parcel *sends,
                int numSends, const Parcel *receives, int numReceives,
                Error &error) {
    double begin = now();
    bool good =
        move(what, patience, sends, numSends, receives, numReceives, error);
    itsSeconds[patience == Patience::Endless] += now() - begin;
    for (int i = 0; i < numSends; ++i)
      itsBytes += int64_t(sends[i].size);
    return good;
  }

  /// Puts a parcel on its way: returns when it may be written over, which is at
  /// once unless all places of the lane are taken by parcels that have not been
  /// received. It is copied, so the receiver need not have come so far.
  bool send(const char *what, const LaneParcel &parcel, Error &error) {
    double begin = now();
    bool good = put(what, parcel, error);
    itsSeconds[0] += now() - begin;
    itsBytes += int64_t(parcel.size);
    return good;
  }

  /// Takes a parcel; waits until it is there. Patience is limited, here and
  /// where one sends.
  bool receive(const char *what, const LaneParcel &parcel, Error &error) {
    double begin = now();
    bool good = take(what, parcel, error);
    const double seconds = now() - begin;
    itsSeconds[0] += seconds;
    itsReceiveSeconds += seconds;
    return good;
  }

  /// Lets what was sent go on, where that takes this thread's time. Called
  /// between launches.
  virtual void progress() {}

  /// The time that all exchanges of this patience have taken, and the bytes
  /// that this rank has sent in any.
  double exchangeSeconds(Patience patience) const {
    return itsSeconds[patience == Patience::Endless];
  }
  int64_t sentBytes() const { return itsBytes; }
  /// Of the time, that in which this rank waited for parcels of lanes.
  double receiveSeconds() const { return itsReceiveSeconds; }

  /// Lets the others know which step this rank computes, from 1; 0 before the
  /// first.
  virtual void reportStep(int64_t /*step*/) {}

  /// Ends the run of all ranks: the first reason is the one that is shown.
  virtual void abort(const char * /*reason*/) {}

  /// What moves bytes, for the log.
  virtual const char *engine() const { return ""; }

  /// Whether there is a reason to end, of any rank.
  virtual bool hasEnded() const { return false; }

  /// Seconds after which an operation is given up in which nothing moves.
  virtual int64_t limitSeconds() const { return 0; }

protected:
  Transport(int rank, int size) : itsRank(rank), numRanks(size) {}

  /// An exchange, by an engine.
  virtual bool move(const char * /*what*/, Patience /*patience*/,
                    const Parcel * /*sends*/, int /*numSends*/,
                    const Parcel * /*receives*/, int /*numReceives*/,
                    Error & /*error*/) {
    return true;
  }

  /// A parcel of a lane, by an engine.
  virtual bool put(const char * /*what*/, const LaneParcel & /*parcel*/,
                   Error & /*error*/) {
    return true;
  }
  virtual bool take(const char * /*what*/, const LaneParcel & /*parcel*/,
                    Error & /*error*/) {
    return true;
  }

private:
  int itsRank = 0, numRanks = 1;
  double itsSeconds[2] = {0, 0}; ///< With a limit, and without.
  double itsReceiveSeconds = 0;
  int64_t itsBytes = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_TRANSPORT_H
