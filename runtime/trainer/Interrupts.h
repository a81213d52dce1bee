//===- Interrupts.h - Signals to a run --------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRAINER_INTERRUPTS_H
#define REPRISE_RUNTIME_TRAINER_INTERRUPTS_H

#include "runtime/base/Error.h"

#include <csignal>
#include <pthread.h>
#include <semaphore.h>

namespace reprise::runtime {

/// What a run does at this moment, for whoever interrupts it.
struct Activity {
  enum Kind { Step, Looking, Saving } kind = Looking;
  int64_t step = 0;       ///< From 1: the one that runs, or was finished last.
  double begin = 0;       ///< On the clock of `now()`.
  double seconds = 0;     ///< That it takes; 0: not known.
  double saveSeconds = 0; ///< That saving takes behind it.
};

/// Signals to a run. SIGINT, SIGTERM and SIGHUP (but `isLeftIgnored`) ask it to
/// end after its step, and SIGUSR1 to save and go on. A
/// thread says at once, on standard error, what will happen. A second SIGINT or
/// SIGTERM ends the program on the spot, but not one that comes within
/// `kTogether` of the one before: a shell, a scheduler and a terminal may each
/// send the same one.
class Interrupts {
public:
  static constexpr int64_t kTogether = 500; ///< Milliseconds.

  Interrupts() = default;
  Interrupts(const Interrupts &) = delete;
  Interrupts &operator=(const Interrupts &) = delete;
  /// Gives the signals back.
  ~Interrupts();

  /// Takes the signals. One run at a time may.
  /// \param saves   whether the run saves when it ends.
  /// \param hasBar  whether standard error has a progress bar.
  bool start(bool saves, bool hasBar, Error &error);

  /// Not 0 if the run is to end.
  static const volatile sig_atomic_t &stopFlag();
  /// Whether the run is to save now; once for each signal.
  static bool takeSave();

  /// What the run does from now on.
  void report(const Activity &activity);

private:
  static void *threadEntry(void *interrupts);
  void watch();

  bool isRunning = false, isEnding = false;
  bool saves = false, hasBar = false;
  pthread_t thread = {};
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; ///< Of what follows.
  Activity activity;
};

/// What is said when a signal comes at the time `now`, in one line.
void describeInterrupt(const Activity &activity, double now, bool saves,
                       char *text, size_t size);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRAINER_INTERRUPTS_H
