//===- Mpi.cpp - Ranks that mpirun has started ----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mpi.h"

#include "LaunchedRank.h"
#include "Launcher.h"
#include "MpiLibrary.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <unistd.h>

using namespace reprise::runtime;

/// MPI_THREAD_FUNNELED, the same in all: one thread makes all calls.
static constexpr int kFunneled = 1;

/// Of all messages of exchanges, and of those of lane 0; the next lanes follow.
/// Between two ranks, those of a tag keep their order.
static constexpr int kTag = 1, kLaneTag = 2;

/// Bytes of a message at most, since MPI counts them in an int.
static constexpr size_t kMostBytes = size_t(1) << 30;

/// A library moves bytes while it is called, so waiting is looking again. Some
/// microseconds without a pause, then with pauses of a sixteenth of the time
/// that has passed, up to a millisecond.
static constexpr double kSpinSeconds = 100e-6, kLongestPause = 1e-3;

namespace {
class Mpi final : public LaunchedRank {
public:
  Mpi(Board &board, int rank, const MpiLibrary &library, const char *engine)
      : LaunchedRank(board, rank, engine), library(library) {}

  void progress() override;
  bool finishSends(Error &error) override;

private:
  bool move(const char *what, Patience patience, const Parcel *sends,
            int numSends, const Parcel *receives, int numReceives,
            Error &error) override;
  bool put(const char *what, const LaneParcel &parcel, Error &error) override;
  bool take(const char *what, const LaneParcel &parcel, Error &error) override;

  /// A message on its way.
  struct Request {
    MpiWord word;
    int peer, room; ///< Index of the room that it is sent from; -1: none.
    int expected;   ///< Bytes that are to come, of a lane; -1: not looked at.
    bool isDone;
  };
  /// What messages of a parcel have in common.
  struct Kind {
    bool isSend;
    int tag, room;
    bool isOfLane() const { return tag >= kLaneTag; }
  };
  bool begin(const Parcel &parcel, Kind kind, List<Request> &list,
             Error &error);
  bool test(List<Request> &list, bool &isDone, Error &error);
  bool hasExpected(const Request &request, const MpiStatus &status,
                   Error &error) const;
  bool testSends(Error &error);
  bool fail(const char *doing, int code, Error &error) const;
  /// Whom the first message of a list that is not done is with.
  static int missing(const List<Request> &list);
  template <typename Look, typename Missing>
  bool wait(const char *what, Patience patience, Look look, Missing missing,
            Error &error);

  const MpiLibrary &library;
  List<Request> requests; ///< Of an exchange, or of a parcel that is awaited.
  List<Request> sending;  ///< Of lanes.
};
} // namespace

/// Both ends cut a parcel in the same pieces. What is empty is not sent.
bool Mpi::begin(const Parcel &parcel, Kind kind, List<Request> &list,
                Error &error) {
  for (size_t at = 0; at < parcel.size; at += kMostBytes) {
    char *bytes = parcel.bytes + at;
    int count = int(std::min(parcel.size - at, kMostBytes));
    const int expected = kind.isOfLane() && !kind.isSend ? count : -1;
    if (!list.push({0, parcel.rank, kind.room, expected, false}))
      return error.set("no memory left for the messages of an exchange");
    MpiWord *word = &list.back().word;
    int code = kind.isSend
                   ? library.send(bytes, count, library.byte, parcel.rank,
                                  kind.tag, library.world, word)
                   : library.receive(bytes, count, library.byte, parcel.rank,
                                     kind.tag, library.world, word);
    if (code != 0)
      return fail(kind.isSend ? "send" : "receive", code, error);
    if (kind.room >= 0)
      ++rooms[size_t(kind.room)].pending;
  }
  return true;
}

/// If it cannot since another rank is gone, that one's watcher says so.
bool Mpi::fail(const char *doing, int code, Error &error) const {
  waitForReason();
  return error.set("%s cannot %s a message: error %d", library.version, doing,
                   code);
}

/// Whether a message of a lane has the bytes that the receiver knows of. A
/// longer one is an error of the library.
bool Mpi::hasExpected(const Request &request, const MpiStatus &status,
                      Error &error) const {
  int count = request.expected;
  if (count < 0 || (library.getCount(&status, library.byte, &count) == 0 &&
                    count == request.expected))
    return true;
  char peer[128];
  board.nameRank(request.peer, peer, sizeof(peer));
  return error.set("needs a parcel of %d bytes from %s, but got %d",
                   request.expected, peer, count);
}

/// Looks at each message once; false, without an error, if none is done that
/// was not.
bool Mpi::test(List<Request> &list, bool &isDone, Error &error) {
  bool hasMoved = false;
  isDone = true;
  for (Request &each : list) {
    if (each.isDone)
      continue;
    int flag = 0;
    MpiStatus status;
    int code = library.test(&each.word, &flag, &status);
    if (code != 0)
      return fail("move", code, error);
    each.isDone = flag;
    if (flag && !hasExpected(each, status, error))
      return false;
    if (flag && each.room >= 0)
      --rooms[size_t(each.room)].pending;
    hasMoved |= each.isDone;
    isDone &= each.isDone;
  }
  return hasMoved;
}

int Mpi::missing(const List<Request> &list) {
  return std::find_if(list.begin(), list.end(),
                      [](const Request &each) { return !each.isDone; })
      ->peer;
}

/// Calls `look(isDone, error)`, which returns whether something has moved,
/// until it is done; `missing` says whom that takes. The time without a message
/// is the sum of pauses, so that a run that is stopped does not wait.
template <typename Look, typename Missing>
bool Mpi::wait(const char *what, Patience patience, Look look, Missing missing,
               Error &error) {
  double last = now(), paused = 0;
  for (bool isDone = false;;) {
    error.text[0] = '\0';
    if (look(isDone, error))
      last = now(), paused = 0;
    else if (error.text[0])
      return false;
    if (isDone)
      return true;
    if (board.isAborted())
      return error.set("another rank has ended the run");
    double waited = now() - last;
    if (waited < kSpinSeconds)
      continue;
    double pause = std::min(waited / 16, kLongestPause);
    const timespec time = {0, long(pause * 1e9)};
    nanosleep(&time, nullptr);
    paused += pause;
    if (patience == Patience::Limited &&
        paused >= double(board.settings->operationSeconds))
      return giveUp(what, missing(), paused, error);
  }
}

bool Mpi::move(const char *what, Patience patience, const Parcel *sends,
               int numSends, const Parcel *receives, int numReceives,
               Error &error) {
  requests.clear();
  for (int i = 0; i < numReceives; ++i)
    if (!begin(receives[i], {false, kTag, -1}, requests, error))
      return false;
  for (int i = 0; i < numSends; ++i)
    if (!begin(sends[i], {true, kTag, -1}, requests, error))
      return false;
  auto look = [&](bool &isDone, Error &error) {
    return test(requests, isDone, error);
  };
  auto peer = [&] { return missing(requests); };
  return wait(what, patience, look, peer, error);
}

//===----------------------------------------------------------------------===//
// Lanes
//===----------------------------------------------------------------------===//

/// Tests what is sent, and forgets what has gone.
bool Mpi::testSends(Error &error) {
  bool isDone;
  const bool hasMoved = test(sending, isDone, error);
  Request *end =
      std::remove_if(sending.begin(), sending.end(),
                     [](const Request &each) { return each.isDone; });
  sending.resize(size_t(end - sending.begin()));
  return hasMoved;
}

/// An error shows where something is waited for.
void Mpi::progress() {
  Error ignored;
  if (!sending.empty())
    testSends(ignored);
}

bool Mpi::put(const char *what, const LaneParcel &parcel, Error &error) {
  if (!addRooms(parcel, error))
    return false;
  int room = -1;
  auto look = [&](bool &isDone, Error &error) {
    const bool hasMoved = testSends(error);
    room = findRoom(parcel, /*needsFree=*/true);
    isDone = room >= 0;
    return hasMoved;
  };
  auto peer = [&] { return parcel.rank; };
  if (!wait(what, Patience::Limited, look, peer, error))
    return false;
  char *bytes = rooms[size_t(room)].bytes;
  memcpy(bytes, parcel.bytes, parcel.size);
  return begin({parcel.rank, bytes, parcel.size},
               {true, kLaneTag + parcel.lane, room}, sending, error);
}

/// What is sent goes on meanwhile: the library moves all that it can.
bool Mpi::take(const char *what, const LaneParcel &parcel, Error &error) {
  requests.clear();
  auto look = [&](bool &isDone, Error &error) {
    return test(requests, isDone, error);
  };
  auto peer = [&] { return parcel.rank; };
  return begin({parcel.rank, parcel.bytes, parcel.size},
               {false, kLaneTag + parcel.lane, -1}, requests, error) &&
         wait(what, Patience::Limited, look, peer, error);
}

bool Mpi::finishSends(Error &error) {
  auto look = [&](bool &isDone, Error &error) {
    const bool hasMoved = testSends(error);
    isDone = sending.empty();
    return hasMoved;
  };
  return wait(
      "the end of the run", Patience::Endless, look,
      [&] { return missing(sending); }, error);
}

//===----------------------------------------------------------------------===//
// A rank
//===----------------------------------------------------------------------===//

/// Whether MPI has the numbers that the launcher has said.
static bool checkNumbers(const MpiLibrary &library, const Launch &launch,
                         Error &error) {
  int rank = -1, size = 0;
  library.rank(library.world, &rank);
  library.size(library.world, &size);
  return (rank == launch.rank && size == launch.size) ||
         error.set("%s has started rank %" PRId64 " of %" PRId64
                   " (%s), but in %s it is rank %d of %d: is it of the same "
                   "MPI?",
                   launch.name, launch.rank, launch.size, launch.variable,
                   library.version, rank, size);
}

static bool start(const Launch &launch, MpiLibrary &library, Error &error) {
  if (!library.open(launch, error))
    return false;
  int got = 0;
  int code = library.init(nullptr, nullptr, kFunneled, &got);
  if (code != 0)
    return error.set("%s cannot start: error %d", library.version, code);
  // An error is ours to tell: of itself, MPI would end all processes.
  library.setErrorHandler(library.world, library.errorsReturn);
  return checkNumbers(library, launch, error);
}

int reprise::runtime::runMpiRank(Board &board, int rank, const RankWork &work) {
  const Launch &launch = *static_cast<const Launch *>(work.engine);
  MpiLibrary library;
  Error error;
  if (!start(launch, library, error)) {
    board.abort(rank, error.text);
    return 1;
  }
  char engine[128];
  snprintf(engine, sizeof(engine), "started by %s, over %s", launch.name,
           library.version);
  Mpi transport(board, rank, library, engine);
  int status = 1;
  bool isTogether = false;
  if (!runLaunchedBody(board, transport, work, status, isTogether, error)) {
    board.abort(rank, error.text);
    return 1;
  }
  // Others may be about to send something here, which is an error within MPI.
  if (status == 1)
    usleep(kReasonPauses * 10'000);
  if (isTogether) // Within MPI nobody sleeps who waits for others.
    library.finalize();
  return status;
}
