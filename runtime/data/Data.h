//===- Data.h - Training samples and their order ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DATA_DATA_H
#define REPRISE_RUNTIME_DATA_DATA_H

#include "DataOptions.h"
#include "TokenStream.h"
#include "runtime/base/Shard.h"

namespace reprise::runtime {

/// The image of `index` under a permutation of [0, size) that belongs to this
/// seed and epoch; 0 <= index < size. Needs no memory: any sample of any epoch
/// can be asked for at any time.
///
/// A Feistel network over the smallest even number of bits that holds `size`,
/// applied until the value is below `size` (on average at most four times).
/// Source: Black and Rogaway, "Ciphers with arbitrary finite domains",
/// CT-RSA 2002, section 3 (cycle walking).
uint64_t permute(uint64_t index, uint64_t size, uint64_t seed, uint64_t epoch);

/// How a data set is cut into batches: a step has those of all shards.
struct BatchShape {
  /// Of one shard; rows of `length` tokens each.
  int64_t microBatches, rows, length;
  Shard shard = {};
  /// Of the micro-batches of one shard, of equal sizes.
  int64_t groups = 1;
  int64_t globalRows() const { return shard.of * microBatches * rows; }
  /// The number of a micro-batch of this shard among those of a step. Groups of
  /// a shard are runs of 2^k, as the binary digits of their number are, the
  /// longest first, and in a run shards have theirs one behind the other. So
  /// all groups of a run are a branch of the tree that adds groups up, and
  /// those of a shard one of that. Groups of two shards, three each:
  ///
  ///   shard 0   0 1      4
  ///   shard 1       2 3    5
  int64_t globalMicroBatch(int64_t microBatch) const;
};

/// A stream of tokens, cut in pieces. With n tokens there are (n - 1) / length
/// samples; sample i is the tokens from i * length on, and its targets are the
/// same shifted by one.
class Samples {
public:
  /// Opens the files; together they must hold as many samples as `shape` has
  /// rows, which errors call `what`, such as "one step"; `key` of the
  /// description makes it smaller. Every token is checked once.
  bool open(const Paths &files, const TokenFormat &format,
            const BatchShape &shape, int64_t vocabSize, const char *what,
            const char *key, Error &error);

  const TokenStream &stream() const { return tokens; }
  /// 0 before they are opened.
  int64_t size() const {
    return tokens.size() ? (tokens.size() - 1) / length : 0;
  }

  /// Writes a sample's inputs and targets, `length` tokens each. False if one
  /// of them is not in the vocabulary or cannot be read. May be called by
  /// several threads.
  bool read(int64_t sample, int32_t *inputs, int32_t *targets,
            Error &error) const;

private:
  TokenStream tokens;
  int64_t length = 1, vocabSize = 0;
};

/// What a model is trained on: samples in the order that the options say, over
/// and over.
class TrainingData {
public:
  /// Opens the files that the options name; together they must hold at least
  /// one step's tokens. Takes order and seed from the options, too.
  bool open(const DataOptions &options, const TokenFormat &format,
            const BatchShape &shape, int64_t vocabSize, Error &error);

  const TokenStream &stream() const { return samples.stream(); }
  const BatchShape &batch() const { return shape; }
  int64_t numSamples() const { return samples.size(); }

  /// The sample in this row (over all micro-batches) of a step, from 0.
  int64_t sampleOf(int64_t step, int64_t row) const;

  /// Writes one micro-batch of the shard: rows x length tokens and as many
  /// targets. May be called by several threads.
  bool fill(int64_t step, int64_t microBatch, int32_t *inputs, int32_t *targets,
            Error &error) const;

private:
  Samples samples;
  BatchShape shape = {};
  bool shuffled = true;
  uint64_t seed = 0;
};

/// What a model is judged by: samples in the order of the files, always the
/// same ones.
class ValidationData {
public:
  /// Opens the files; together they must hold `batches` batches of `rows`
  /// samples.
  bool open(const Paths &files, const TokenFormat &format, int64_t batches,
            int64_t rows, int64_t length, int64_t vocabSize, Error &error);

  const TokenStream &stream() const { return samples.stream(); }
  /// Whole ones.
  int64_t numBatches() const { return samples.size() / shape.rows; }

  /// Writes batch `batch` < numBatches(): rows x length tokens and as many
  /// targets.
  bool fill(int64_t batch, int32_t *inputs, int32_t *targets,
            Error &error) const;

private:
  Samples samples;
  BatchShape shape = {};
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DATA_DATA_H
