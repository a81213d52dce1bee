//===- StepInputs.cpp - What steps are trained on -------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepInputs.h"

#include <cinttypes>

using namespace reprise::runtime;

bool StepInputs::openTokenizer(Error &error) {
  if (!tokenizer.load(options.tokenizer, error))
    return false;
  if (tokenizer.vocabSize() > model.vocabSize)
    return error.set("'%s' has tokens up to %" PRId64 ", but the model's "
                     "vocabulary has %" PRId64 ", 0 to %" PRId64
                     "; compile with a vocab_size of at least %" PRId64,
                     tokenizer.path(), tokenizer.vocabSize() - 1,
                     model.vocabSize, model.vocabSize - 1,
                     tokenizer.vocabSize());
  tokens.tokenizer = &tokenizer;
  return true;
}

bool StepInputs::open(ThreadPool &pool, Error &error) {
  tokens.type = options.dtype;
  tokens.pool = &pool;
  if (options.tokenizer && !openTokenizer(error))
    return false;
  if (options.data.size() == 0) // Only steps need data.
    return true;
  BatchShape batch = {model.microBatchesPerRank, model.microBatchSize,
                      model.seqLength, shard, model.reductionGroups};
  return training.open(options, tokens, batch, model.vocabSize, error) &&
         reader.start(training, options.steps, error);
}

bool StepInputs::send(int64_t step, int64_t first, Error &error) {
  DeviceInputs &inputs = device.nextInputs();
  if (!inputs.begin(error))
    return false;
  for (int64_t i = 0; i < inputs.count(); ++i) {
    MicroBatch batch = executor.inputs(i);
    if (!reader.take(step, first + i, batch.tokens, batch.targets, error))
      return false;
    batch.rng[0] = uint32_t(options.seed);
    batch.rng[1] = uint32_t(options.seed >> 32);
    batch.rng[2] = uint32_t(step);
    batch.rng[3] = uint32_t(training.batch().globalMicroBatch(first + i));
    if (dump && step + 1 == options.steps)
      dump->keepInputs(first + i, batch);
  }
  return inputs.send(error);
}

bool StepInputs::write(int64_t step, int64_t first, Error &error) {
  if (ahead.step != step || ahead.first != first)
    return send(step, first, error);
  if (!ahead.good)
    error = ahead.error;
  return ahead.good;
}

void StepInputs::writeAhead(int64_t step, int64_t first) {
  first += device.nextInputs().count();
  if (first == model.microBatchesPerRank) {
    ++step;
    first = 0;
  }
  if (!device.isAhead() || step == options.steps)
    return;
  ahead.step = step;
  ahead.first = first;
  ahead.good = send(step, first, ahead.error);
}
