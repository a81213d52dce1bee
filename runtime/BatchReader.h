//===- BatchReader.h - The next batch while a step runs ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BATCHREADER_H
#define REPRISE_RUNTIME_BATCHREADER_H

#include "Data.h"

#include <pthread.h>

namespace reprise::runtime {

/// Reads the micro-batch that is needed next, in a thread of its own that
/// otherwise sleeps. What is read depends on nobody's pace: any micro-batch can
/// be asked for at any time, and it is only slower if it was not expected.
class BatchReader {
public:
  BatchReader() = default;
  BatchReader(const BatchReader &) = delete;
  BatchReader &operator=(const BatchReader &) = delete;
  ~BatchReader();

  /// Starts the thread; `data` is open and outlives this. Takes memory for one
  /// micro-batch, eight bytes a token.
  bool start(const TrainingData &data, Error &error);

  /// Lets the thread read this micro-batch. The last one expected counts.
  void expect(int64_t step, int64_t microBatch);

  /// Writes this micro-batch, as TrainingData::fill does.
  bool take(int64_t step, int64_t microBatch, int32_t *inputs, int32_t *targets,
            Error &error);

private:
  enum class State { Idle, Asked, Ready, Stopping };

  void work();
  static void *threadEntry(void *reader);

  const TrainingData *data = nullptr;
  int64_t numTokens = 0;     ///< Of a micro-batch.
  int32_t *tokens = nullptr; ///< Inputs, then targets.
  bool isRunning = false;
  pthread_t thread;

  /// What follows is shared.
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  State state = State::Idle;
  int64_t step = 0, microBatch = 0;
  bool good = false;
  Error problem;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BATCHREADER_H
