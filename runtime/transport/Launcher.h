//===- Launcher.h - Who has started the ranks -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_LAUNCHER_H
#define REPRISE_RUNTIME_TRANSPORT_LAUNCHER_H

#include "runtime/base/Error.h"

#include "reprise/ABI/Model.h"

namespace reprise::runtime {

/// Which MPI libraries find each other where a launcher has started processes.
enum class MpiFamily { None, OpenMpi, Mpich, Any };

/// What a launcher, such as mpirun, says of this process.
struct Launch {
  const char *name = nullptr;     ///< "mpirun"; null: there is no launcher.
  const char *variable = nullptr; ///< Of the environment: it has `size`.
  /// Of the environment: it has `rank`, but these are no numbers, or no rank of
  /// so many. Null: they are.
  const char *unclear = nullptr;
  int64_t rank = 0, size = 1;
  int64_t localRank = 0; ///< Among those on this machine.
  int64_t localSize = 0; ///< 0: not known.
  MpiFamily family = MpiFamily::None;
  /// Whether this process may use fewer processors than the launcher itself,
  /// and how many that are.
  bool isBound = false;
  int64_t processors = 0;
};

/// Looks at the environment: at what torchrun sets first, then Open MPI's
/// mpirun, then MPICH's and others that speak PMI, then Slurm's srun.
Launch findLaunch();

/// Whether what was launched is what the program is for, and can be a run.
/// \param ranks  of the option; 0: not given.
bool checkLaunch(const Launch &launch, const RepriseModel &model, int64_t ranks,
                 Error &error);

/// Whether it has the process ignore a signal, and the program does, too:
/// SIGINT in the background of a script, SIGHUP under nohup. All others are
/// taken.
bool isLeftIgnored(int signal);

/// The threads of a rank, if nothing is said of them: an equal share of the
/// processors, and no more than the launcher lets it use.
int64_t shareOfProcessors(const Launch &launch, int64_t numRanks);

/// Leaves this process an equal share of the processors that it may use, its
/// own if all ranks of this machine with `threads` threads each find one.
/// Otherwise nothing changes, and neither where the launcher has given each
/// rank its own.
void takeProcessors(const Launch &launch, int rank, int64_t numRanks,
                    int64_t threads);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_LAUNCHER_H
