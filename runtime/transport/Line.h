//===- Line.h - What watchers tell each other -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks that a launcher has started may be on several machines, and each has a
// watcher of its own. Those of the other ranks have a TCP connection each to
// that of rank 0, which passes on the first reason to end:
//
//   watcher of rank 1 --\
//   watcher of rank 2 ----- watcher of rank 0
//   watcher of rank 3 --/
//
// A message is a head of 16 bytes and a text of as many bytes as it says. Who
// opens a connection says hello, with the secret of the run.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_LINE_H
#define REPRISE_RUNTIME_TRANSPORT_LINE_H

#include "Board.h"
#include "runtime/base/List.h"

#include <poll.h>

namespace reprise::runtime {

/// The connections of one watcher. What others say goes to its board: each
/// message of theirs is a beat of their rank.
class Line {
public:
  Line(Board &board, int rank) : board(board), self(rank) {}
  Line(const Line &) = delete;
  Line &operator=(const Line &) = delete;
  // Connections stay open up to the end of the process: where they close, it
  // has said all that there is to say.

  /// Rank 0: listens, on the loopback interface alone if all ranks are on this
  /// machine, and writes the place to the board.
  bool listen(bool isLocal, Error &error);
  /// Another rank: connects with the place on the board.
  bool call(Error &error);

  /// Appends what to wait for. False if there is no memory left for it.
  bool appendTo(List<pollfd> &polls) const;
  /// Takes all that has come.
  void take();

  /// Tells of the own rank's step, with each beat.
  void beat();
  /// Hands a signal to the run on to rank 0.
  void passOn(int signal);
  /// A signal that was handed on to this watcher; 0: none. Once for each.
  int takeSignal();
  /// The own rank has ended as it should.
  void sayBye();
  /// Tells all the reason on the board, once.
  void tellReason();

  /// Whether a rank is connected and has not ended.
  bool hears(int rank) const;
  /// Whether this watcher may end: rank 0's once all others have ended, or have
  /// come for the reason to end; another one once rank 0's has.
  bool isOver() const;
  /// Once there is a reason to end: whether rank 0's watcher cannot say it.
  bool isFirstGone() const;
  /// Whether this watcher is the one that says why the run ends.
  bool isSpeaker() const;

private:
  struct Head {
    uint16_t kind;
    uint16_t size; ///< Of the text behind it.
    int32_t rank;
    int64_t step; ///< Of a signal, its number.
  };
  static constexpr size_t kMostText = sizeof(Board::reason);
  struct Message {
    Head head;
    char text[kMostText];
  };
  struct Connection {
    int socket;   ///< -1: closed.
    int rank;     ///< -1: it has not said hello.
    bool isBye;   ///< The rank has ended as it should.
    size_t there; ///< Bytes of `message`.
    Message message;
  };

  bool connectTo(uint32_t address, Error &error);
  bool push(int socket, int rank, Error &error);
  void acceptAll();
  void takeFrom(Connection &from);
  void handle(Connection &from);
  void lose(Connection &from);
  void send(Connection &to, uint16_t kind, const char *text, size_t size,
            int64_t number = 0);
  void sendAll(uint16_t kind, const char *text = "", size_t size = 0);
  void sendReason(Connection &to);

  Board &board;
  const int self;
  int listener = -1;
  bool hasCalled = false, hasToldReason = false, hasSaidBye = false;
  int signal = 0; ///< The last that was handed on.
  bool hasHeardReason = false;
  bool hasLostFirst = false; ///< Rank 0 has gone without a word.
  List<Connection> connections;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_LINE_H
