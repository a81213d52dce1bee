//===- Data.h - Training samples from a file --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DATA_H
#define REPRISE_RUNTIME_DATA_H

#include "Error.h"

#include <cstddef>
#include <cstdint>

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

/// A text file whose bytes are the tokens, mapped into memory. With n tokens
/// there are (n - 1) / length samples; sample i is the tokens from i * length
/// on, and its targets are the same shifted by one.
class TextData {
public:
  TextData() = default;
  TextData(const TextData &) = delete;
  TextData &operator=(const TextData &) = delete;
  ~TextData();

  /// Opens and checks the file: it must hold at least one step's tokens, and no
  /// byte at or above `vocabSize`.
  bool open(const char *path, const BatchShape &shape, int64_t vocabSize,
            Error &error);

  /// Chooses the order of samples: as they lie in the file, or permuted anew in
  /// each epoch.
  void setOrder(bool shuffled, uint64_t seed) {
    this->shuffled = shuffled;
    this->seed = seed;
  }

  int64_t numTokens() const { return tokens; }
  int64_t numSamples() const { return (tokens - 1) / shape.length; }

  /// The sample in this row (over all micro-batches) of a step, from 0.
  int64_t sampleOf(int64_t step, int64_t row) const;

  /// Writes one micro-batch: rows x length tokens and as many targets.
  void fill(int64_t step, int64_t microBatch, int32_t *inputs,
            int32_t *targets) const;

private:
  const unsigned char *bytes = nullptr;
  int64_t tokens = 0;
  BatchShape shape = {};
  bool shuffled = true;
  uint64_t seed = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DATA_H
