//===- Embedded.h - Ranks that are processes of this machine ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One process watches and forks the ranks. They share one anonymous mapping,
// so nothing has a name and nothing is left behind:
//
//   Board      the first reason to end, the state of each rank
//   Channel    for each ordered pair of ranks: a ring of bytes
//   LaneRoom   for each lane: the parcels on their way
//
// A rank that waits sleeps on its bell, a futex that a peer rings when it has
// written to or read from a channel of this rank.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_EMBEDDED_H
#define REPRISE_RUNTIME_TRANSPORT_EMBEDDED_H

#include "Ranks.h"

namespace reprise::runtime {

/// Forks the ranks, before there is any thread, and watches them until all have
/// ended. Returns the status of rank 0 if all are well; otherwise all ranks are
/// ended, `error` has the first reason and the status is 1. Signals that were
/// sent to this process alone go to rank 0; the other ranks ignore them, since
/// rank 0 decides for all. If this process dies, so do the ranks.
///
/// \param context  given to `body` and to `settings.name`.
int runRanks(const RankSettings &settings, RankMain body, void *context,
             Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_EMBEDDED_H
