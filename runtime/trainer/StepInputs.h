//===- StepInputs.h - What steps are trained on -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRAINER_STEPINPUTS_H
#define REPRISE_RUNTIME_TRAINER_STEPINPUTS_H

#include "Options.h"
#include "runtime/checkpoint/Dump.h"
#include "runtime/data/BatchReader.h"
#include "runtime/data/Data.h"
#include "runtime/device/Executor.h"

namespace reprise::runtime {

/// The micro-batches of a run, from files to where the device reads them.
class StepInputs {
public:
  /// \param dump   what keeps the inputs of the last step; or null.
  /// \param shard  of the data, the one of this rank.
  StepInputs(const RepriseModel &model, const Options &options,
             Executor &executor, Device &device, Dump *dump, Shard shard)
      : model(model), options(options), executor(executor), device(device),
        dump(options.dump ? dump : nullptr), shard(shard) {}

  /// Opens what the options name, and begins to read it.
  bool open(ThreadPool &pool, Error &error);

  /// Writes those of the micro-batches from `first` on that run at a time,
  /// unless that was done ahead.
  bool write(int64_t step, int64_t first, Error &error);
  /// Writes those behind `first` if the device is busy meanwhile. What goes
  /// wrong is said when it is their turn.
  void writeAhead(int64_t step, int64_t first);

  const TokenFormat &format() const { return tokens; }
  const TrainingData &data() const { return training; }

private:
  bool openTokenizer(Error &error);
  bool send(int64_t step, int64_t first, Error &error);

  const RepriseModel &model;
  const Options &options;
  Executor &executor;
  Device &device;
  Dump *dump;
  Shard shard;
  Tokenizer tokenizer;
  TokenFormat tokens;
  TrainingData training;
  BatchReader reader;
  /// The first micro-batch that was written ahead, and what went wrong.
  struct {
    int64_t step = -1, first = 0;
    bool good = true;
    Error error;
  } ahead;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRAINER_STEPINPUTS_H
