//===- BatchReader.cpp - The next batch while a step runs -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BatchReader.h"

#include <algorithm>
#include <csignal>

using namespace reprise::runtime;

BatchReader::~BatchReader() {
  if (isRunning) {
    pthread_mutex_lock(&mutex);
    state = State::Stopping;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, nullptr);
  }
  free(tokens);
}

bool BatchReader::start(const TrainingData &source, int64_t numSteps,
                        Error &error) {
  data = &source;
  steps = numSteps;
  numTokens = source.batch().rows * source.batch().length;
  tokens =
      static_cast<int32_t *>(malloc(2 * size_t(numTokens) * sizeof(int32_t)));
  if (!tokens)
    return error.set("no memory left for a micro-batch of %" PRId64 " tokens",
                     numTokens);
  // Signals are for the thread that trains.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int code = pthread_create(&thread, nullptr, threadEntry, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  isRunning = code == 0;
  return isRunning || error.set("cannot start the thread that reads data: %s",
                                strerror(code));
}

void *BatchReader::threadEntry(void *reader) {
  static_cast<BatchReader *>(reader)->work();
  return nullptr;
}

void BatchReader::work() {
  pthread_mutex_lock(&mutex);
  while (state != State::Stopping) {
    if (state != State::Asked) {
      pthread_cond_wait(&changed, &mutex);
      continue;
    }
    int64_t askedStep = step, askedMicro = microBatch;
    pthread_mutex_unlock(&mutex);
    Error failure;
    bool filled =
        data->fill(askedStep, askedMicro, tokens, tokens + numTokens, failure);
    pthread_mutex_lock(&mutex);
    // If another one was expected meanwhile, that comes next.
    if (state == State::Asked && step == askedStep &&
        microBatch == askedMicro) {
      state = State::Ready;
      good = filled;
      problem = failure;
      pthread_cond_broadcast(&changed);
    }
  }
  pthread_mutex_unlock(&mutex);
}

void BatchReader::expect(int64_t newStep, int64_t newMicroBatch) {
  pthread_mutex_lock(&mutex);
  step = newStep;
  microBatch = newMicroBatch;
  state = State::Asked;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

bool BatchReader::take(int64_t wantedStep, int64_t wantedMicro, int32_t *inputs,
                       int32_t *targets, Error &error) {
  pthread_mutex_lock(&mutex);
  bool isExpected =
      state != State::Idle && step == wantedStep && microBatch == wantedMicro;
  while (isExpected && state == State::Asked)
    pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
  if (isExpected) {
    ++expected;
    // Nobody writes these until the next one is expected.
    std::copy_n(tokens, numTokens, inputs);
    std::copy_n(tokens + numTokens, numTokens, targets);
    if (!good) {
      error = problem;
      return false;
    }
  } else if (!data->fill(wantedStep, wantedMicro, inputs, targets, error)) {
    return false;
  }
  bool isLast = wantedMicro + 1 == data->batch().microBatches;
  if (!isLast)
    expect(wantedStep, wantedMicro + 1);
  else if (wantedStep + 1 < steps)
    expect(wantedStep + 1, 0);
  return true;
}
