//===- Ranks.cpp - Starts and watches embedded ranks ----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Board.h"
#include "runtime/base/List.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <iterator>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace reprise::runtime;

/// What a terminal or another process asks a run for; rank 0 decides for all.
static constexpr int kRequests[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

/// How long ranks may take to end by themselves once there is a reason.
static constexpr int kGraceSeconds = 3;

namespace {
/// A forked rank, as its watcher knows it.
struct Child {
  pid_t process;
  bool isRunning;
  int status; ///< That it ended with: of `waitpid`.
  uint32_t beats;
  int64_t silence; ///< Seconds without a beat.
};

/// Forks the ranks and waits for them.
class Watcher {
public:
  Watcher(Board &board, const RankSettings &settings)
      : board(board), settings(settings) {}
  ~Watcher();

  bool start(RankMain body, void *context, Error &error);
  int watch(Error &error);

private:
  [[noreturn]] void runChild(int rank, pid_t watcher, RankMain body,
                             void *context);
  int count() const {
    return int(std::count_if(children.begin(), children.end(),
                             [](const Child &each) { return each.isRunning; }));
  }
  void takeEnded();
  void listenToHearts();
  void noteEnd(int rank);
  void killAll();
  void forward(const siginfo_t &signal);
  int takeResult(Error &error);

  Board &board;
  const RankSettings &settings;
  List<Child> children;
  sigset_t signals, before;
  bool isBlocked = false;
};
} // namespace

Watcher::~Watcher() {
  if (isBlocked)
    sigprocmask(SIG_SETMASK, &before, nullptr);
}

/// A thread of its own, so that beats go on whatever the rank computes.
static void *beat(void *state) {
  for (const timespec second = {1, 0};;) {
    static_cast<RankState *>(state)->beats.fetch_add(1,
                                                     std::memory_order_relaxed);
    nanosleep(&second, nullptr);
  }
}

void Watcher::runChild(int rank, pid_t watcher, RankMain body, void *context) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != watcher) // It has died before that.
    _exit(1);
  if (rank != 0)
    for (int each : kRequests)
      signal(each, SIG_IGN);
  // The thread of beats takes no signals: they are still blocked.
  pthread_t thread;
  int code = pthread_create(&thread, nullptr, beat, &board.ranks()[rank]);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (code != 0) {
    char reason[256];
    snprintf(reason, sizeof(reason),
             "cannot start the thread of heartbeats: %s", strerror(code));
    board.abort(rank, reason);
    _exit(1);
  }
  int status = runRank(board, rank, settings, body, context);
  fflush(nullptr);
  _exit(status);
}

bool Watcher::start(RankMain body, void *context, Error &error) {
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  for (int each : kRequests)
    sigaddset(&signals, each);
  sigprocmask(SIG_BLOCK, &signals, &before);
  isBlocked = true;
  fflush(nullptr); // Nothing is printed twice.
  pid_t self = getpid();
  if (!children.reserve(size_t(settings.numRanks)))
    return error.set("no memory left for %d ranks", settings.numRanks);
  for (int rank = 0; rank < settings.numRanks; ++rank) {
    pid_t process = fork();
    if (process == 0)
      runChild(rank, self, body, context);
    if (process < 0) {
      error.set("cannot start rank %d of %d: %s", rank, settings.numRanks,
                strerror(errno));
      killAll();
      return false;
    }
    children.push({process, true, 0, 0, 0});
  }
  return true;
}

void Watcher::killAll() {
  for (Child &each : children)
    if (each.isRunning) {
      kill(each.process, SIGKILL);
      waitpid(each.process, &each.status, 0);
      each.isRunning = false;
    }
}

/// Whether a process has ended by itself, and said so.
static bool isGood(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) != 1;
}

/// Says why, if a rank has ended and not said so itself.
void Watcher::noteEnd(int rank) {
  int status = children[size_t(rank)].status;
  if (isGood(status))
    return;
  char reason[256];
  if (WIFSIGNALED(status))
    snprintf(reason, sizeof(reason), "ended by signal %d (%s)",
             WTERMSIG(status), strsignal(WTERMSIG(status)));
  else
    snprintf(reason, sizeof(reason), "ended with status %d",
             WEXITSTATUS(status));
  board.abort(rank, reason);
}

void Watcher::takeEnded() {
  for (size_t rank = 0; rank < children.size(); ++rank) {
    Child &each = children[rank];
    if (each.isRunning && waitpid(each.process, &each.status, WNOHANG) > 0) {
      each.isRunning = false;
      noteEnd(int(rank));
    }
  }
}

/// Called once a second. Seconds in which this process was stopped, too, do
/// not count.
void Watcher::listenToHearts() {
  for (size_t rank = 0; rank < children.size(); ++rank) {
    Child &each = children[rank];
    uint32_t beats = board.ranks()[rank].beats.load(std::memory_order_relaxed);
    each.silence = beats == each.beats ? each.silence + 1 : 0;
    each.beats = beats;
    if (!each.isRunning || each.silence < settings.silenceSeconds)
      continue;
    char reason[256];
    snprintf(reason, sizeof(reason),
             "has given no sign of life for %" PRId64 " s", each.silence);
    board.abort(int(rank), reason);
  }
}

/// The terminal sends its signals to all processes, others to this one.
void Watcher::forward(const siginfo_t &signal) {
  if (signal.si_code != SI_KERNEL && children[0].isRunning)
    kill(children[0].process, signal.si_signo);
}

int Watcher::watch(Error &error) {
  int64_t waited = 0; ///< Seconds since there is a reason to end.
  for (timespec left = {1, 0}, begin, end; count() > 0;) {
    clock_gettime(CLOCK_MONOTONIC, &begin);
    siginfo_t signal = {};
    int number = sigtimedwait(&signals, &signal, &left);
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (number > 0 && number != SIGCHLD)
      forward(signal);
    takeEnded();
    int64_t passed = (end.tv_sec - begin.tv_sec) * 1'000'000'000 +
                     (end.tv_nsec - begin.tv_nsec);
    int64_t rest = left.tv_nsec + left.tv_sec * 1'000'000'000 - passed;
    if (number > 0 && rest > 0) {
      left = {0, long(rest)};
      continue;
    }
    left = {1, 0};
    listenToHearts();
    if (board.isAborted() && ++waited >= kGraceSeconds)
      killAll();
  }
  return takeResult(error);
}

int Watcher::takeResult(Error &error) {
  const Child &first = children[0];
  if (!board.isAborted())
    return WEXITSTATUS(first.status);
  // A second Ctrl-C has ended rank 0 as it ends any program.
  if (WIFSIGNALED(first.status) && board.reasonRank == 0 &&
      std::find(std::begin(kRequests), std::end(kRequests),
                WTERMSIG(first.status)) != std::end(kRequests)) {
    signal(WTERMSIG(first.status), SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    raise(WTERMSIG(first.status));
  }
  char name[128], step[64] = "";
  board.nameRank(board.reasonRank, name, sizeof(name));
  if (board.reasonStep > 0)
    snprintf(step, sizeof(step), " in step %" PRId64, board.reasonStep);
  error.set("%s%s: %s", name, step, board.reason);
  return 1;
}

int reprise::runtime::runRanks(const RankSettings &settings, RankMain body,
                               void *context, Error &error) {
  size_t bytes = Board::bytesFor(settings.numRanks);
  void *mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    error.set("cannot map %zu bytes for the channels of %d ranks: %s", bytes,
              settings.numRanks, strerror(errno));
    return 1;
  }
  Board &board = *static_cast<Board *>(mapping);
  board.numRanks = settings.numRanks;
  board.settings = &settings;
  board.context = context;
  int status = 1;
  {
    Watcher watcher(board, settings);
    if (watcher.start(body, context, error))
      status = watcher.watch(error);
  }
  munmap(mapping, bytes);
  return status;
}
