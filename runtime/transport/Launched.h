//===- Launched.h - Ranks that a launcher has started -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The process that a launcher has started watches, and forks the rank that
// talks to the others. So a rank that hangs in MPI, is stopped or is killed has
// somebody who says so:
//
//   launcher --- watcher of rank 0 --- rank 0
//           |          | Line            | MPI, or sockets
//           \-- watcher of rank 1 --- rank 1
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_LAUNCHED_H
#define REPRISE_RUNTIME_TRANSPORT_LAUNCHED_H

#include "Board.h"
#include "Launcher.h"

namespace reprise::runtime {

/// Runs the rank of this process, before there is any thread, and watches it
/// until all ranks have ended: over MPI if the launcher has one, and otherwise
/// over sockets. Returns its status if all are well; otherwise all ranks are
/// ended and the status is 1. `error` has the first reason in rank 0, or where
/// that is gone, in rank 1; in others it is empty. Signals to this process go
/// to rank 0; the other ranks ignore them.
///
/// \param context  given to `body` and to `settings.name`.
int runLaunchedRank(const Launch &launch, const RankSettings &settings,
                    RankMain body, void *context, Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_LAUNCHED_H
