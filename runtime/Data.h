//===- Data.h - Training samples and their order ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DATA_H
#define REPRISE_RUNTIME_DATA_H

#include "Options.h"
#include "TokenStream.h"

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

/// How a data set is cut into batches.
struct BatchShape {
  int64_t microBatches, rows, length; ///< rows of `length` tokens each.
  int64_t globalRows() const { return microBatches * rows; }
};

/// Samples of one stream of tokens. With n tokens there are (n - 1) / length
/// samples; sample i is the tokens from i * length on, and its targets are the
/// same shifted by one.
class TrainingData {
public:
  TrainingData() = default;

  /// Opens the files that the options name; together they must hold at least
  /// one step's tokens. Takes order and seed from the options, too.
  bool open(const Options &options, const BatchShape &shape, int64_t vocabSize,
            Error &error);

  const TokenStream &stream() const { return tokens; }
  int64_t numSamples() const { return (tokens.size() - 1) / shape.length; }

  /// The sample in this row (over all micro-batches) of a step, from 0.
  int64_t sampleOf(int64_t step, int64_t row) const;

  /// Writes one micro-batch: rows x length tokens and as many targets. False if
  /// a token is not in the vocabulary.
  bool fill(int64_t step, int64_t microBatch, int32_t *inputs, int32_t *targets,
            Error &error) const;

  /// Lets the system fetch a micro-batch while something else is done.
  void expect(int64_t step, int64_t microBatch) const;

private:
  TokenStream tokens;
  BatchShape shape = {};
  int64_t vocabSize = 0;
  bool shuffled = true;
  uint64_t seed = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DATA_H
