//===- Watcher.cpp - Starts and watches ranks -----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Watcher.h"

#include "Launcher.h"
#include "runtime/base/Clock.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <iterator>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace reprise::runtime;

/// What a terminal or another process asks a run for; rank 0 decides for all.
static constexpr int kRequests[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

/// At which beat since there is a reason ranks that have not ended by
/// themselves are ended, and how long another watcher may take to say it then.
static constexpr int kLastBeat = 3;
static constexpr double kSpeechSeconds = 2;

/// How long the system may take to end them.
static constexpr double kDeathSeconds = 20;

Watcher::~Watcher() {
  if (events >= 0)
    close(events);
  if (isBlocked)
    sigprocmask(SIG_SETMASK, &before, nullptr);
}

namespace {
struct Heart {
  std::atomic<uint32_t> &beats;
  double seconds;
};
} // namespace

/// A thread of its own, so that beats go on whatever the rank computes.
static void *beat(void *state) {
  const auto &heart = *static_cast<const Heart *>(state);
  const auto whole = time_t(heart.seconds);
  const timespec pause = {whole, long((heart.seconds - double(whole)) * 1e9)};
  for (;; nanosleep(&pause, nullptr))
    heart.beats.fetch_add(1, std::memory_order_relaxed);
}

void Watcher::runChild(int rank, pid_t watcher, const RankWork &work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != watcher) // It has died before that.
    _exit(1);
  if (rank != 0)
    for (int each : kRequests)
      signal(each, SIG_IGN);
  // The thread of beats takes no signals: they are still blocked.
  pthread_t thread;
  RankState &state = board.ranks()[rank];
  Heart heart = {state.beats, rate.seconds};
  int code = pthread_create(&thread, nullptr, beat, &heart);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (code != 0) {
    char reason[256];
    snprintf(reason, sizeof(reason),
             "cannot start the thread of heartbeats: %s", strerror(code));
    board.abort(rank, reason);
    _exit(1);
  }
  int status = work.run(board, rank, work);
  fflush(nullptr);
  state.isDone.store(1); // The system may take long to free much memory.
  _exit(status);
}

bool Watcher::start(int firstRank, int count, const RankWork &work,
                    Error &error) {
  first = firstRank;
  launcher = getppid();
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  for (int each : kRequests)
    if (!isLeftIgnored(each))
      sigaddset(&signals, each);
  sigprocmask(SIG_BLOCK, &signals, &before);
  isBlocked = true;
  events = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (events < 0)
    return error.set("cannot listen to signals: %s", strerror(errno));
  fflush(nullptr); // Nothing is printed twice.
  pid_t self = getpid();
  if (!children.reserve(size_t(count)) ||
      !pulses.resize(size_t(settings.numRanks)))
    return error.set("no memory left for %d ranks", settings.numRanks);
  std::fill(pulses.begin(), pulses.end(), Pulse{0, 0});
  for (int rank = first; rank < first + count; ++rank) {
    pid_t process = fork();
    if (process == 0)
      runChild(rank, self, work);
    if (process < 0) {
      error.set("cannot start rank %d of %d: %s", rank, settings.numRanks,
                strerror(errno));
      killAll();
      return false;
    }
    children.push({process, true, 0});
  }
  return true;
}

/// One that waits for a dead disk or GPU does not end: it is left behind.
void Watcher::killAll() {
  for (const Child &each : children)
    if (each.isRunning)
      kill(each.process, SIGKILL);
  for (const double end = now() + kDeathSeconds;;) {
    bool areGone = true;
    for (Child &each : children) {
      if (each.isRunning && waitpid(each.process, &each.status, WNOHANG) != 0)
        each.isRunning = false;
      areGone = areGone && !each.isRunning;
    }
    isLeftBehind = !areGone;
    if (areGone || now() > end)
      break;
    usleep(5'000);
  }
  for (Child &each : children)
    each.isRunning = false;
}

/// Whether a process has ended by itself, and said so.
static bool isGood(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) != 1;
}

/// Whether MPI may have ended a process, since it has found another one gone.
static bool mayFollow(int status) {
  return WIFEXITED(status) || WTERMSIG(status) == SIGABRT;
}

/// Says why, if a rank has ended and not said so itself.
void Watcher::noteEnd(int rank) {
  int status = children[size_t(rank - first)].status;
  if (isGood(status)) {
    if (line)
      line->sayBye();
    return;
  }
  // The other's watcher has a second to say what came first.
  if (line && mayFollow(status) && !isLate) {
    hasFollowed = true;
    return;
  }
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
  for (size_t i = 0; i < children.size(); ++i) {
    Child &each = children[i];
    if (each.isRunning && waitpid(each.process, &each.status, WNOHANG) > 0) {
      each.isRunning = false;
      noteEnd(first + int(i));
    }
  }
}

bool Watcher::isHeard(int rank) const {
  size_t i = size_t(rank - first); // Of others it is too large.
  return i < children.size()
             ? children[i].isRunning && !board.ranks()[rank].isDone.load()
             : line && line->hears(rank);
}

/// Called at each beat. Time in which this process was stopped, too, does not
/// count.
void Watcher::listenToHearts() {
  for (int rank = 0; rank < settings.numRanks; ++rank) {
    Pulse &each = pulses[size_t(rank)];
    uint32_t beats = board.ranks()[rank].beats.load(std::memory_order_relaxed);
    bool isSilent = beats == each.beats && isHeard(rank);
    each.silence = isSilent ? each.silence + 1 : 0;
    each.beats = beats;
    if (each.silence < rate.mostSilent)
      continue;
    char reason[256];
    snprintf(reason, sizeof(reason), "has given no sign of life for %g s",
             double(each.silence) * rate.seconds);
    board.abort(rank, reason);
    // It would not end by itself.
    if (size_t i = size_t(rank - first); i < children.size())
      kill(children[i].process, SIGKILL);
  }
}

/// The terminal sends its signals to all processes, others to this one. Rank 0
/// takes those of the terminal itself, and has no need to hear of them twice.
void Watcher::takeSignals() {
  for (signalfd_siginfo signal;
       read(events, &signal, sizeof(signal)) == ssize_t(sizeof(signal));)
    if (signal.ssi_signo != SIGCHLD &&
        (signal.ssi_code != SI_KERNEL || isEarly()))
      passOn(int(signal.ssi_signo));
}

/// Whether the rank has yet to meet rank 0, or that the others.
bool Watcher::isEarly() const {
  return first != 0 ? !hasCalled : line && !board.hasPlace.load();
}

/// Rank 0 decides for all, once this rank has met it. Before that there is no
/// step to finish, or to save.
void Watcher::passOn(int signal) {
  char reason[128];
  if (isEarly()) {
    if (signal == SIGUSR1)
      return;
    snprintf(reason, sizeof(reason),
             "ended by signal %d (%s) before it has "
             "met %s",
             signal, strsignal(signal),
             first == 0 ? "the other ranks" : "rank 0");
    board.abort(first, reason);
  } else if (first != 0) {
    line->passOn(signal);
  } else if (children[0].isRunning) {
    kill(children[0].process, signal);
  }
}

void Watcher::takeLine() {
  if (!line)
    return;
  eventfd_t count;
  eventfd_read(board.news, &count);
  if (first != 0 && !hasCalled && board.hasPlace.load()) {
    hasCalled = true;
    Error error;
    if (!line->call(error))
      board.abort(first, error.text);
  }
  line->take();
  if (int signal = line->takeSignal(); signal && first == 0)
    passOn(signal);
  line->tellReason();
}

/// Sleeps until something happens, or the next beat.
void Watcher::sleep(double until) {
  polls.clear();
  double left = until - now();
  if (polls.push({events, POLLIN, 0}) && (!line || line->appendTo(polls)) &&
      (board.news < 0 || polls.push({board.news, POLLIN, 0})))
    poll(polls.begin(), nfds_t(polls.size()),
         std::max(int(left * 1000) + 1, 0));
  else
    usleep(10'000);
}

bool Watcher::isOver() const {
  bool isAlone = std::none_of(children.begin(), children.end(),
                              [](const Child &each) { return each.isRunning; });
  if (!isAlone || (hasFollowed && !board.isAborted()))
    return false;
  if (!line || line->isOver())
    return true;
  // Where rank 0's watcher is silent, rank 1's says it, and has a beat to do
  // so.
  if (board.hasWholeReason() && line->isFirstGone())
    return line->isSpeaker() || waited > kLastBeat;
  return (waited - kLastBeat) * rate.seconds >= kSpeechSeconds;
}

int Watcher::watch(Error &error) {
  for (double next = now() + rate.seconds; !isOver();) {
    sleep(next);
    takeSignals();
    takeEnded();
    takeLine();
    if (now() < next)
      continue;
    next = now() + rate.seconds;
    if (line)
      line->beat();
    if (hasFollowed && !board.isAborted() && ++followed * rate.seconds > 1) {
      isLate = true;
      noteEnd(first);
    }
    // Without it nobody would end what hangs here.
    if (line && getppid() != launcher)
      board.abort(first, "its launcher has ended");
    listenToHearts();
    if (line)
      line->tellReason();
    if (board.isAborted() && ++waited >= kLastBeat)
      killAll();
  }
  return takeResult(error);
}

int Watcher::takeResult(Error &error) {
  const int status = children[0].status;
  // A rank that waits for a dead disk would have this process wait, too.
  if (first == 0 && settings.ended && board.isAborted() && !isLeftBehind)
    settings.ended(board.context);
  if (!board.isAborted())
    return WEXITSTATUS(status);
  // A second Ctrl-C has ended rank 0 as it ends any program.
  if (WIFSIGNALED(status) && first == 0 && !isEarly() &&
      board.reasonRank == 0 &&
      std::find(std::begin(kRequests), std::end(kRequests), WTERMSIG(status)) !=
          std::end(kRequests)) {
    signal(WTERMSIG(status), SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    raise(WTERMSIG(status));
  }
  if (line && !line->isSpeaker())
    return 1;
  char name[128], step[64] = "";
  board.nameRank(board.reasonRank, name, sizeof(name));
  if (board.reasonStep > 0)
    snprintf(step, sizeof(step), " in step %" PRId64, board.reasonStep);
  error.set("%s%s: %s", name, step, board.reason);
  return 1;
}
