//===- Data.cpp - Training samples and their order ------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Data.h"

#include "reprise/ABI/Philox.h"

#include <algorithm>
#include <cinttypes>

using namespace reprise::runtime;

/// Rounds of the Feistel network; four make it a good permutation when the
/// round function is one (Luby and Rackoff), small domains want more.
static constexpr uint32_t kRounds = 8;

/// The micro-batch number under which the order of the data is drawn; no
/// micro-batch has it.
static constexpr uint32_t kOrderStream = 0xFFFFFFFFu;

uint64_t reprise::runtime::permute(uint64_t index, uint64_t size, uint64_t seed,
                                   uint64_t epoch) {
  int halfBits = 1;
  while (uint64_t(1) << 2 * halfBits < size)
    ++halfBits;
  uint64_t mask = (uint64_t(1) << halfBits) - 1;
  do {
    uint64_t left = index >> halfBits, right = index & mask;
    for (uint32_t round = 0; round < kRounds; ++round) {
      uint32_t word =
          reprisePhilox(seed, uint32_t(epoch), kOrderStream, round, right * 4);
      uint64_t next = left ^ (word & mask);
      left = right;
      right = next;
    }
    index = left << halfBits | right;
  } while (index >= size);
  return index;
}

bool Samples::open(const Paths &files, const TokenFormat &format,
                   const BatchShape &shape, int64_t vocabulary,
                   const char *what, const char *key, Error &error) {
  length = shape.length;
  vocabSize = vocabulary;
  for (const char *pattern : files)
    if (!tokens.add(pattern, format, error))
      return false;
  int64_t rows = shape.globalRows();
  int64_t needed = rows > 0 ? rows * shape.length + 1 : 0;
  if (tokens.size() >= needed)
    return tokens.check(vocabSize, format.pool, error);
  int64_t others = tokens.numFiles() - 1;
  const PlainFile &last = tokens.file(others);
  const bool isEmpty = others == 0 && last.size == 0;
  char count[32], shortage[256];
  snprintf(count, sizeof(count), "%" PRId64 " tokens", tokens.size());
  snprintf(shortage, sizeof(shortage),
           "%s, but %s needs %" PRId64 "%s: %" PRId64 " rows of %" PRId64
           " and one more; use more data, or compile with "
           "a smaller %s or seq_length",
           isEmpty ? " is empty" : count, what, needed,
           isEmpty ? " tokens" : "", rows, shape.length, key);
  if (tokens.isText(others) && last.size > 0)
    return error.setAt(last.placeOf(last.size), "the data ends after %s",
                       shortage);
  if (others == 0)
    return error.set("'%s'%s%s", last.path, isEmpty ? "" : ": ", shortage);
  return error.set("'%s' and %" PRId64 " more file%s: %s", tokens.file(0).path,
                   others, others == 1 ? "" : "s", shortage);
}

bool Samples::read(int64_t sample, int32_t *inputs, int32_t *targets,
                   Error &error) const {
  int64_t first = sample * length, last = length - 1;
  if (!tokens.read(first, length, vocabSize, inputs, error) ||
      !tokens.read(first + length, 1, vocabSize, targets + last, error))
    return false;
  std::copy_n(inputs + 1, last, targets);
  return true;
}

int64_t BatchShape::globalMicroBatch(int64_t microBatch) const {
  const int64_t size = microBatches / groups, group = microBatch / size;
  int64_t first = 0, run = 1; // The run that has the group.
  for (int64_t left = groups;; first += run, left -= run) {
    run = int64_t(1) << (63 - __builtin_clzll(uint64_t(left)));
    if (group < first + run)
      break;
  }
  const int64_t place = shard.of * first + shard.part * run + group - first;
  return place * size + microBatch % size;
}

bool TrainingData::open(const DataOptions &options, const TokenFormat &format,
                        const BatchShape &batch, int64_t vocabSize,
                        Error &error) {
  shape = batch;
  shuffled = options.shuffled;
  seed = options.seed;
  // Without steps any amount will do.
  BatchShape needed = shape;
  if (options.steps == 0)
    needed.rows = 0;
  return samples.open(options.data, format, needed, vocabSize, "one step",
                      "global_batch_size", error);
}

int64_t TrainingData::sampleOf(int64_t step, int64_t row) const {
  int64_t index = step * shape.globalRows() + row;
  int64_t epoch = index / numSamples(), place = index % numSamples();
  if (!shuffled)
    return place;
  return int64_t(
      permute(uint64_t(place), uint64_t(numSamples()), seed, uint64_t(epoch)));
}

bool TrainingData::fill(int64_t step, int64_t microBatch, int32_t *inputs,
                        int32_t *targets, Error &error) const {
  int64_t first = shape.globalMicroBatch(microBatch) * shape.rows;
  for (int64_t row = 0; row < shape.rows; ++row)
    if (!samples.read(sampleOf(step, first + row), inputs + row * shape.length,
                      targets + row * shape.length, error))
      return false;
  return true;
}

bool ValidationData::open(const Paths &files, const TokenFormat &format,
                          int64_t batches, int64_t rows, int64_t length,
                          int64_t vocabSize, Error &error) {
  shape = {batches, rows, length};
  return samples.open(files, format, shape, vocabSize, "a validation",
                      "micro_batch_size", error);
}

bool ValidationData::fill(int64_t batch, int32_t *inputs, int32_t *targets,
                          Error &error) const {
  for (int64_t row = 0; row < shape.rows; ++row)
    if (!samples.read(batch * shape.rows + row, inputs + row * shape.length,
                      targets + row * shape.length, error))
      return false;
  return true;
}
