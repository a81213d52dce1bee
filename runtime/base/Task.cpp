//===- Task.cpp - A function in a thread of its own -----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Task.h"

#include <csignal>

using namespace reprise::runtime;

void *Task::entry(void *task) {
  auto *self = static_cast<Task *>(task);
  self->function(self->context);
  self->finished = true;
  return nullptr;
}

int Task::start(void (*what)(void *), void *with) {
  function = what;
  context = with;
  finished = false;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int code = pthread_create(&thread, nullptr, entry, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  runs = code == 0;
  return code;
}

void Task::wait() {
  if (runs)
    pthread_join(thread, nullptr);
  runs = false;
}
