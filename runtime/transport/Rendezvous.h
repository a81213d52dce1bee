//===- Rendezvous.h - How ranks without MPI meet ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launcher such as torchrun says where the machine of rank 0 is, and of the
// port MASTER_PORT there that its own agent may have. Rank 0 listens at the
// first free port behind it; the others look for it there. Each brings the port
// that it listens at itself, and gets the places of all:
//
//   rank 1 --- hello: run, rank, port ---> rank 0
//   rank 1 <-- secret, places of all ----- rank 0
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_RENDEZVOUS_H
#define REPRISE_RUNTIME_TRANSPORT_RENDEZVOUS_H

#include "Board.h"
#include "Launcher.h"
#include "runtime/base/List.h"

namespace reprise::runtime {

/// Where the ranks of a launcher look for rank 0.
struct Meeting {
  /// Rank 0 takes the first free one of so many ports.
  static constexpr int kPorts = 16;

  char host[256];
  int port;     ///< The first of them.
  uint64_t run; ///< The same in all ranks of a run: of its launcher's numbers.
  bool tells;   ///< Whether this rank says what it waits for, if that is long.
};

/// Where a rank listens, as `sockaddr_in` has it.
struct RankPlace {
  uint32_t address;
  uint16_t port;
  uint16_t unused;
};

/// What all ranks know of each other once they have met.
struct Places {
  char secret[16]; ///< Who knows it belongs to the run.
  List<RankPlace> ranks;
};

/// From MASTER_ADDR and MASTER_PORT, or from what srun says of its nodes.
bool findMeeting(const Launch &launch, Meeting &meeting, Error &error);

/// The first of Slurm's list of nodes, "node[03-04,7],gpu1": "node03".
void firstNode(const char *list, char *name, size_t size);

/// Listens at a port that the system chooses, on the loopback interface alone
/// if all ranks are on this machine. Returns a socket that does not block, or
/// -1.
int listenForRanks(bool isLocal, RankPlace &own, Error &error);

/// Meets all ranks, which takes as long as the last takes to come. False if one
/// does not within the time limit of an operation.
bool meet(const Meeting &meeting, bool isLocal, Board &board, int rank,
          RankPlace own, Places &places, Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_RENDEZVOUS_H
