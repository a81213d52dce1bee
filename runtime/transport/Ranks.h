//===- Ranks.h - How ranks are started and watched --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_RANKS_H
#define REPRISE_RUNTIME_TRANSPORT_RANKS_H

#include "Transport.h"

#include <algorithm>
#include <cmath>

namespace reprise::runtime {

/// A lane that a program has from one rank to another.
struct Lane {
  int from, to, number;
  size_t size; ///< Bytes of a parcel.
  int places;  ///< How many may be on their way.
};

/// How silence of a rank is found in time: all ranks have ended `timeout`
/// seconds after it begins. In beats, of which these are ten or more:
///
///   1  at most, until a watcher counts the last beat
///   n  without another, `mostSilent`
///   1  at most, until the next watcher, which is told, counts one more
///   2  in which ranks may end by themselves
///   1  to spare
struct HeartRate {
  explicit HeartRate(double timeout)
      : seconds(std::min(1.0, timeout / 10)),
        mostSilent(std::llround(timeout / seconds) - 5) {}

  double seconds; ///< From one beat to the next.
  /// So many, without a beat, are the end of a rank.
  int64_t mostSilent;
};

/// How ranks are started and watched, by any engine.
struct RankSettings {
  int numRanks = 1;
  /// All ranks have ended so many seconds after one of them falls silent.
  double timeoutSeconds = 10;
  /// An exchange in which no byte moves for so many seconds is given up.
  int64_t operationSeconds = 600;
  /// All lanes of the program, for which an engine may keep room: at most one
  /// from one rank to another with the same number.
  const Lane *lanes = nullptr;
  int numLanes = 0;
  /// Names a rank for errors, e.g. "rank 3 (dp 1, tp 1)".
  void (*name)(int rank, char *text, size_t size,
               const void *context) = nullptr;
  /// Called by who watches rank 0 when that has ended, however it has.
  void (*ended)(const void *context) = nullptr;
};

/// The work of one rank in its own process; what it returns is the status that
/// the process ends with. A failed one has called `Transport::abort`.
using RankMain = int (*)(Transport &transport, void *context);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_RANKS_H
