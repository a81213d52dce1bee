//===- BatchReader.h - The next batch while a step runs ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DATA_BATCHREADER_H
#define REPRISE_RUNTIME_DATA_BATCHREADER_H

#include "Data.h"

#include <pthread.h>

namespace reprise::runtime {

/// Reads the micro-batch behind the one that was taken last, in a thread of its
/// own that otherwise sleeps. What is read depends on nobody's pace: any
/// micro-batch can be taken at any time, and it is only slower if it is not the
/// next one.
class BatchReader {
public:
  BatchReader() = default;
  BatchReader(const BatchReader &) = delete;
  BatchReader &operator=(const BatchReader &) = delete;
  ~BatchReader();

  /// Starts the thread; `data` is open and outlives this. The run ends after
  /// so many steps. Takes memory for one micro-batch, eight bytes a token.
  bool start(const TrainingData &data, int64_t steps, Error &error);

  /// Writes this micro-batch, as TrainingData::fill does, and lets the thread
  /// read the next one, if the run has one.
  bool take(int64_t step, int64_t microBatch, int32_t *inputs, int32_t *targets,
            Error &error);

  /// How many of those that were taken the thread had read, or was reading.
  int64_t numExpected() const { return expected; }

private:
  enum class State { Idle, Asked, Ready, Stopping };

  void expect(int64_t step, int64_t microBatch);
  void work();
  static void *threadEntry(void *reader);

  const TrainingData *data = nullptr;
  int64_t steps = 0, expected = 0;
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

#endif // REPRISE_RUNTIME_DATA_BATCHREADER_H
