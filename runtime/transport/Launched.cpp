//===- Launched.cpp - Ranks that a launcher has started -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Launched.h"

#include "Mpi.h"
#include "Sockets.h"
#include "Watcher.h"

#include <cerrno>
#include <cstring>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace reprise::runtime;

/// A watcher, or a rank, of many has a connection to each, and a rank more for
/// its lanes.
static void allowManyFiles() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int reprise::runtime::runLaunchedRank(const Launch &launch,
                                      const RankSettings &settings,
                                      RankMain body, void *context,
                                      Error &error) {
  const int rank = int(launch.rank);
  allowManyFiles();
  Board *board = Board::map(settings, context, /*hasChannels=*/false, error);
  if (!board)
    return 1;
  Line line(*board, rank);
  int status = 1;
  auto run = launch.family == MpiFamily::None ? runSocketRank : runMpiRank;
  board->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (board->news < 0) {
    error.set("cannot make an event: %s", strerror(errno));
  } else if (rank != 0 || line.listen(launch.localSize == launch.size, error)) {
    Watcher watcher(*board, &line);
    if (watcher.start(rank, 1, {body, context, run, &launch}, error))
      status = watcher.watch(error);
  }
  if (board->news >= 0)
    close(board->news);
  board->unmap(/*hasChannels=*/false);
  return status;
}
