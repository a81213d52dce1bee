//===- Launcher.cpp - Who has started the ranks ---------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Launcher.h"

#include "Mesh.h"
#include "Rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <unistd.h>

using namespace reprise::runtime;

namespace {
/// The variables of a launcher.
struct Row {
  const char *name;
  const char *rank, *size;
  const char *localRank, *localSize; ///< May be missing.
};
} // namespace

/// Those that come first count. A batch script of Slurm has the numbers of its
/// job, too, but not those of a step, so it is no rank.
static constexpr Row kRows[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""},
};

/// A whole number from `lowest` on in the environment.
static bool getNumber(const char *variable, int64_t lowest, int64_t &number) {
  const char *text = getenv(variable);
  if (!text || *text < '0' || *text > '9')
    return false;
  char *end = nullptr;
  errno = 0;
  int64_t value = strtoll(text, &end, 10);
  if (*end || errno || value < lowest || value > INT32_MAX)
    return false;
  number = value;
  return true;
}

static bool isSet(const char *variable) {
  const char *text = getenv(variable);
  return text && *text;
}

/// Slurm's numbers of tasks on each node, "4(x2),3": those of node `node`; 0 if
/// it does not say.
static int64_t tasksOnNode(const char *text, int64_t node) {
  while (text && *text >= '0' && *text <= '9') {
    char *end = nullptr;
    int64_t tasks = strtoll(text, &end, 10), times = 1;
    if (end[0] == '(' && end[1] == 'x') {
      times = strtoll(end + 2, &end, 10);
      end += *end == ')';
    }
    if (node < times)
      return tasks;
    node -= times;
    text = *end == ',' ? end + 1 : nullptr;
  }
  return 0;
}

/// Which libraries can meet here. torchrun may have been started by another
/// launcher, once on each machine: its ranks meet by MPI only if that counts
/// them as torchrun does.
static MpiFamily findFamily(const Launch &launch) {
  auto counts = [&](const char *rank, const char *size) {
    int64_t itsRank = -1, itsSize = -1;
    return getNumber(rank, 0, itsRank) && getNumber(size, 1, itsSize) &&
           itsRank == launch.rank && itsSize == launch.size;
  };
  const bool isTorch = !strcmp(launch.name, "torchrun");
  if (isTorch ? counts("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
              : getenv("OMPI_COMM_WORLD_SIZE") != nullptr)
    return MpiFamily::OpenMpi;
  if (isTorch ? counts("PMI_RANK", "PMI_SIZE") : getenv("PMI_RANK") != nullptr)
    return MpiFamily::Mpich;
  return !isTorch && getenv("PMIX_RANK") ? MpiFamily::Any : MpiFamily::None;
}

/// The processors that a process may use; 0: this one. At least one.
static int64_t countProcessors(pid_t process) {
  cpu_set_t allowed;
  if (sched_getaffinity(process, sizeof(allowed), &allowed) != 0)
    return 1;
  return std::max(CPU_COUNT(&allowed), 1);
}

Launch reprise::runtime::findLaunch() {
  Launch launch;
  for (const Row &row : kRows) {
    if (!isSet(row.size) || !isSet(row.rank))
      continue;
    launch.name = row.name;
    launch.variable = row.size;
    if (!getNumber(row.size, 1, launch.size) ||
        !getNumber(row.rank, 0, launch.rank) || launch.rank >= launch.size) {
      launch.unclear = row.rank;
      launch.rank = 0, launch.size = 1;
      return launch;
    }
    getNumber(row.localRank, 0, launch.localRank);
    int64_t node = 0;
    if (!getNumber(row.localSize, 1, launch.localSize) &&
        getNumber("SLURM_NODEID", 0, node))
      launch.localSize = tasksOnNode(getenv("SLURM_STEP_TASKS_PER_NODE"), node);
    launch.family = findFamily(launch);
    const int64_t all = countProcessors(getppid());
    launch.isBound = launch.size > 1 && countProcessors(0) < all;
    launch.processors = launch.isBound ? all : 0;
    return launch;
  }
  return Launch();
}

bool reprise::runtime::checkLaunch(const Launch &launch,
                                   const RepriseModel &model, int64_t ranks,
                                   Error &error) {
  if (!launch.name)
    return true;
  if (launch.unclear)
    return error.set("the environment has %s '%s' and %s '%s', which name no "
                     "rank of %s: needs a whole number of ranks, and one from "
                     "0 on that is less; without both the program starts its "
                     "ranks itself",
                     launch.unclear, getenv(launch.unclear), launch.variable,
                     getenv(launch.variable), launch.name);
  const int64_t needed = countRanks(model);
  if (ranks > 0 && launch.size > 1)
    return error.set("--ranks %" PRId64 " starts ranks, but %s has already "
                     "started %" PRId64 " (%s): leave out one of both",
                     ranks, launch.name, launch.size, launch.variable);
  if (ranks > 0 || (needed == 1 && launch.size == 1))
    return true;
  if (needed == 1)
    return error.set("needs to be started once, since the program is for one "
                     "rank, but %s has started %" PRId64 " (%s): compile it "
                     "with --data-parallel-size=%" PRId64,
                     launch.name, launch.size, launch.variable, launch.size);
  char mesh[128], hint[128] = "";
  describeMesh(model, mesh, sizeof(mesh));
  if (launch.size == 1)
    snprintf(hint, sizeof(hint), "; --ranks %" PRId64 " starts them here",
             needed);
  if (launch.size != needed)
    return error.set("needs the %" PRId64 " ranks that the program was "
                     "compiled for (%s), but %s has started %" PRId64 " (%s)%s",
                     needed, mesh, launch.name, launch.size, launch.variable,
                     hint);
  Meeting meeting;
  return launch.family != MpiFamily::None ||
         findMeeting(launch, meeting, error);
}

/// The ranks that share this machine's processors.
static int64_t ranksHere(const Launch &launch, int64_t numRanks) {
  return launch.localSize > 0 ? std::min(launch.localSize, numRanks) : numRanks;
}

int64_t reprise::runtime::shareOfProcessors(const Launch &launch,
                                            int64_t numRanks) {
  int64_t own = countProcessors(0);
  int64_t all = launch.isBound ? launch.processors : own;
  int64_t share = std::min(own, all / ranksHere(launch, numRanks));
  return std::max<int64_t>(share, 1);
}

void reprise::runtime::takeProcessors(const Launch &launch, int rank,
                                      int64_t numRanks, int64_t threads) {
  if (launch.isBound)
    return;
  const int64_t here = ranksHere(launch, numRanks);
  const int64_t place = launch.localSize > 0 ? launch.localRank : rank;
  cpu_set_t allowed, own;
  CPU_ZERO(&own);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 ||
      threads * here > CPU_COUNT(&allowed))
    return;
  int64_t share = CPU_COUNT(&allowed) / here, seen = 0;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor)
    if (CPU_ISSET(processor, &allowed) && seen++ / share == place)
      CPU_SET(processor, &own);
  sched_setaffinity(0, sizeof(own), &own);
}

bool reprise::runtime::isLeftIgnored(int signal) {
  struct sigaction action;
  return (signal == SIGINT || signal == SIGHUP) &&
         sigaction(signal, nullptr, &action) == 0 &&
         action.sa_handler == SIG_IGN;
}
