//===- Interrupts.cpp - Signals to a run ----------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interrupts.h"

#include "runtime/base/Clock.h"
#include "runtime/base/Text.h"
#include "runtime/transport/Launcher.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>

using namespace reprise::runtime;

namespace {
/// A signal that runs take, and what it meant before.
struct Taken {
  int number;
  bool stops, endsAtOnce; ///< The latter if it comes once more.
  struct sigaction before;
};
} // namespace

static Taken taken[] = {{SIGINT, true, true, {}},
                        {SIGTERM, true, true, {}},
                        {SIGHUP, true, false, {}},
                        {SIGUSR1, false, false, {}}};

static volatile sig_atomic_t stopRequested = 0, saveRequested = 0;
static sem_t wakes; ///< The thread that says something.
static std::atomic<int64_t> lastStop{0};
static_assert(std::atomic<int64_t>::is_always_lock_free, "a handler uses it");

static int64_t milliseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * 1000 + time.tv_nsec / 1'000'000;
}

/// Only what a handler may do.
static void handle(int number) {
  int code = errno;
  const Taken *signal =
      std::find_if(std::begin(taken), std::end(taken),
                   [&](const Taken &each) { return each.number == number; });
  if (!signal->stops) {
    saveRequested = 1;
  } else {
    int64_t time = milliseconds(), before = lastStop.exchange(time);
    bool isAgain = stopRequested && time - before >= Interrupts::kTogether;
    if (isAgain && signal->endsAtOnce) {
      struct sigaction end = {};
      end.sa_handler = SIG_DFL;
      sigaction(number, &end, nullptr);
      raise(number); // When this has returned.
    } else if (!stopRequested) {
      stopRequested = 1;
      sem_post(&wakes);
    }
  }
  errno = code;
}

const volatile sig_atomic_t &Interrupts::stopFlag() { return stopRequested; }

bool Interrupts::takeSave() {
  bool isAsked = saveRequested;
  saveRequested = 0;
  return isAsked;
}

bool Interrupts::start(bool doesSave, bool isOnTerminal, Error &error) {
  saves = doesSave;
  hasBar = isOnTerminal;
  stopRequested = saveRequested = 0;
  sem_init(&wakes, 0, 0);
  // Signals are for the others.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int code = pthread_create(&thread, nullptr, threadEntry, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (code != 0)
    return error.set("cannot start the thread that answers signals: %s",
                     strerror(code));
  isRunning = true;
  struct sigaction action = {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  for (Taken &signal : taken) {
    sigaction(signal.number, nullptr, &signal.before);
    if (!isLeftIgnored(signal.number))
      sigaction(signal.number, &action, nullptr);
  }
  return true;
}

Interrupts::~Interrupts() {
  if (!isRunning)
    return;
  for (const Taken &signal : taken)
    sigaction(signal.number, &signal.before, nullptr);
  pthread_mutex_lock(&mutex);
  isEnding = true;
  pthread_mutex_unlock(&mutex);
  sem_post(&wakes);
  pthread_join(thread, nullptr);
  sem_destroy(&wakes);
}

void Interrupts::report(const Activity &now) {
  pthread_mutex_lock(&mutex);
  activity = now;
  pthread_mutex_unlock(&mutex);
}

void *Interrupts::threadEntry(void *interrupts) {
  static_cast<Interrupts *>(interrupts)->watch();
  return nullptr;
}

void Interrupts::watch() {
  bool ends = false, isSaid = false;
  while (!ends) {
    while (sem_wait(&wakes) != 0)
      ;
    pthread_mutex_lock(&mutex);
    ends = isEnding;
    Activity current = activity;
    pthread_mutex_unlock(&mutex);
    if (!stopRequested || isSaid)
      continue;
    isSaid = true;
    char text[256];
    describeInterrupt(current, now(), saves, text, sizeof(text));
    fprintf(stderr, "%s%s\n", hasBar ? "\r\033[K" : "", text);
    fflush(stderr);
  }
}

void reprise::runtime::describeInterrupt(const Activity &activity, double now,
                                         bool saves, char *text, size_t size) {
  char step[64];
  snprintf(step, sizeof(step), "step %" PRId64, activity.step);
  double left = std::max(activity.begin + activity.seconds - now, 0.0);
  bool isKnown = activity.seconds > 0;
  const char *doing = "";
  switch (activity.kind) {
  case Activity::Step:
    doing = saves ? "finishing %s and saving" : "finishing %s";
    break;
  case Activity::Looking:
    doing = saves ? "saving %s" : "ending after %s";
    left = 0, isKnown = true;
    break;
  case Activity::Saving:
    doing = "saving %s";
    break;
  }
  if (saves && activity.kind != Activity::Saving)
    left += activity.saveSeconds;
  char about[64] = "";
  if (isKnown && left >= 90)
    snprintf(about, sizeof(about), " (about %s)", duration(left).chars);
  else if (isKnown && left >= 1)
    snprintf(about, sizeof(about), " (about %.0f s)", left);
  char what[128];
  snprintf(what, sizeof(what), doing, step);
  snprintf(text, size, "interrupted: %s%s; %s again ends %s", what, about,
           isLeftIgnored(SIGINT) ? "SIGTERM" : "Ctrl-C",
           saves ? "without saving" : "at once");
}
