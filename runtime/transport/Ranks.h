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

namespace reprise::runtime {

/// A lane that a program has from one rank to another.
struct Lane {
  int from, to, number;
  size_t size; ///< Bytes of a parcel.
  int places;  ///< How many may be on their way.
};

/// How ranks are started and watched, by any engine.
struct RankSettings {
  int numRanks = 1;
  /// A rank whose thread of heartbeats is silent for so many seconds, of one
  /// beat each, is taken for dead.
  int64_t silenceSeconds = 10;
  /// An exchange in which no byte moves for so many seconds is given up.
  int64_t operationSeconds = 600;
  /// All lanes of the program, for which an engine may keep room: at most one
  /// from one rank to another with the same number.
  const Lane *lanes = nullptr;
  int numLanes = 0;
  /// Names a rank for errors, e.g. "rank 3 (dp 1, tp 1)".
  void (*name)(int rank, char *text, size_t size,
               const void *context) = nullptr;
};

/// The work of one rank in its own process; what it returns is the status that
/// the process ends with. A failed one has called `Transport::abort`.
using RankMain = int (*)(Transport &transport, void *context);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_RANKS_H
