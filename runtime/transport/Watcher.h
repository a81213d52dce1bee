//===- Watcher.h - Starts and watches ranks ---------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_WATCHER_H
#define REPRISE_RUNTIME_TRANSPORT_WATCHER_H

#include "Line.h"

#include <csignal>
#include <sys/types.h>

namespace reprise::runtime {

/// Forks ranks, before there is any thread, and waits for them. It ends them,
/// and those of the watchers on its line, if one of them does not end as it
/// should, or is silent.
class Watcher {
public:
  /// \param line  to the watchers of the other ranks; null: there are none.
  explicit Watcher(Board &board, Line *line = nullptr)
      : board(board), settings(*board.settings), rate(settings.timeoutSeconds),
        line(line) {}
  Watcher(const Watcher &) = delete;
  Watcher &operator=(const Watcher &) = delete;
  ~Watcher();

  bool start(int firstRank, int count, const RankWork &work, Error &error);

  /// Returns when all ranks have ended: the status of the first of them, or 1
  /// and in `error` why; that is empty if another watcher says it.
  int watch(Error &error);

private:
  /// A forked rank.
  struct Child {
    pid_t process;
    bool isRunning;
    int status; ///< That it ended with: of `waitpid`.
  };
  /// Of a rank, forked here or not.
  struct Pulse {
    uint32_t beats;
    int64_t silence; ///< Beats that have not come.
  };

  [[noreturn]] void runChild(int rank, pid_t watcher, const RankWork &work);
  void sleep(double until);
  void takeSignals();
  bool isEarly() const;
  void passOn(int signal);
  void takeEnded();
  void takeLine();
  bool isHeard(int rank) const;
  void listenToHearts();
  void noteEnd(int rank);
  void killAll();
  bool isOver() const;
  int takeResult(Error &error);

  Board &board;
  const RankSettings &settings;
  const HeartRate rate; ///< The watcher's, too.
  Line *line;
  int first = 0;      ///< Rank of those forked here.
  pid_t launcher = 0; ///< Who has started this process.
  List<Child> children;
  List<Pulse> pulses;
  List<pollfd> polls;
  int events = -1; ///< Signals, as `signalfd` has them.
  sigset_t signals, before;
  bool isBlocked = false, hasCalled = false;
  /// The rank has ended, perhaps since another has; and a second ago.
  bool hasFollowed = false, isLate = false, isLeftBehind = false;
  int followed = 0,
      waited = 0; ///< Beats since; since there is a reason to end.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_WATCHER_H
