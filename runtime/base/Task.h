//===- Task.h - A function in a thread of its own ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_TASK_H
#define REPRISE_RUNTIME_BASE_TASK_H

#include <atomic>
#include <pthread.h>

namespace reprise::runtime {

/// Runs a function beside the thread that trains, one at a time. Signals are
/// for that thread.
class Task {
public:
  Task() = default;
  Task(const Task &) = delete;
  Task &operator=(const Task &) = delete;
  ~Task() { wait(); }

  /// Begins it; the error's number, or 0. Nothing may run.
  int start(void (*function)(void *), void *context);
  /// Whether it was begun and nobody has waited for it since.
  bool isRunning() const { return runs; }
  /// Whether waiting would take no time.
  bool hasFinished() const { return !runs || finished; }
  void wait();

private:
  static void *entry(void *task);

  void (*function)(void *) = nullptr;
  void *context = nullptr;
  pthread_t thread = {};
  bool runs = false;
  std::atomic<bool> finished{false};
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_TASK_H
