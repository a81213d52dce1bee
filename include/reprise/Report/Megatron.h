//===- Megatron.h - What Megatron would keep --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_REPORT_MEGATRON_H
#define REPRISE_REPORT_MEGATRON_H

#include "reprise/Interfaces/LayerShape.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What Megatron's own scheme keeps of a layer until backward, in bytes: a
/// column to compare with. 16-bit activations, masks of a byte an element,
/// norms that keep their inputs and outputs, statistics of norms left out.
namespace reprise::report::megatron {
using reprise::LayerShape;

/// How a layer is divided between ranks.
struct Parallelism {
  int64_t tensor = 1;    ///< ranks that share every layer
  bool sequence = false; ///< what they do not share, they split by positions
  int64_t experts = 1;   ///< ranks that have other experts
  bool hasWholeExperts = false; ///< ranks that share layers do not share these
  /// Ranks that share the optimizer's state of a parameter, and of those of an
  /// expert: with a distributed optimizer those that have the same ones.
  int64_t optimizerRanks = 1, expertOptimizerRanks = 1;
  int64_t vocabMultiple = 128; ///< rows of the vocabulary, for each rank
};

/// The recompute options, as in a description; they are valid.
struct Options {
  std::string granularity; ///< empty, "selective" or "full"
  std::string method;      ///< with "full": "uniform" or "block"
  int64_t numLayers = 0;   ///< with "full"
  std::vector<std::string> modules = {};
  bool sharesSaved = false; ///< with "full": ranks share what is kept
};

/// Why `shape` cannot be divided so; empty if it can.
std::string checkDivision(const LayerShape &shape,
                          const Parallelism &parallelism);

/// A layer of a micro-batch on one rank, or what else keeps something.
struct Part {
  int64_t kept = 0;       ///< bytes, until it has run backward
  int64_t most = 0;       ///< that are there while it does, made again or kept
  bool continues = false; ///< the segment of the part before it
};

/// Layer `layer` of a model chunk.
Part getLayer(const LayerShape &shape, const Parallelism &parallelism,
              const Options &options, int64_t layer);

/// Bytes that one rank keeps of it.
int64_t getLayerBytes(const LayerShape &shape, const Parallelism &parallelism,
                      const Options &options, int64_t layer);

/// And of the input of a layer.
int64_t getInputBytes(const LayerShape &shape, const Parallelism &parallelism);

/// A micro-batch on a model chunk, whose parts are added in the order of the
/// forward pass. They run backward in the reverse order, and what is behind the
/// one that does is gone; the parts of a segment have all that is there of any
/// when it is replayed.
class Chunk {
public:
  void add(const Part &part);

  int64_t getKept() const { return kept; }
  int64_t getMost() const { return most; } ///< at one time of backward

private:
  int64_t kept = 0, most = 0;
  int64_t before = 0, segment = 0; ///< of the last segment
};

/// What one rank has of its pipeline stage when it has most: 18 bytes for each
/// parameter that is trained, 2 in bf16, 4 of its gradient, and 12 of the
/// optimizer, a master copy and two moments in f32, or its part of these; 2 for
/// one that is frozen.
struct Rank {
  int64_t trained = 0, trainedOfExperts = 0, frozen = 0; ///< parameters
  int64_t optimizerRanks = 1, expertOptimizerRanks = 1;  ///< that share 12
  int64_t activationBytes = 0; ///< of micro-batches in flight
  int64_t replayBytes = 0;     ///< that replays add to these, at the peak

  int64_t getTrained() const { return trained + trainedOfExperts; }
  int64_t getParameters() const { return getTrained() + frozen; }
  int64_t getParameterBytes() const { return 2 * getParameters(); }
  int64_t getGradientBytes() const { return 4 * getTrained(); }
  int64_t getOptimizerBytes() const;
  int64_t getStateBytes() const {
    return getParameterBytes() + getGradientBytes() + getOptimizerBytes();
  }
  int64_t getPeakBytes() const {
    return getStateBytes() + activationBytes + replayBytes;
  }
};

/// How the ranks of a tensor-parallel group share a parameter.
enum class Sharing {
  Whole,      ///< each has all of it: norms, positions, biases of sums
  Divided,    ///< by columns or rows
  Experts,    ///< each has some of them, or a part of these
  Vocabulary, ///< by rows, which are filled up to a multiple for each rank
};

/// Parameters that one rank has of `elements` in `rows` rows.
int64_t countParameters(Sharing sharing, int64_t elements, int64_t rows,
                        const Parallelism &parallelism);

/// What is kept of embedding and head.
enum class Outside {
  Mask,   ///< of the dropout behind the embedding, a byte an element
  Input,  ///< of the last norm and of the output projection, 2 bytes
  Logits, ///< in f32, divided by vocabulary
};

/// Bytes that one rank keeps of `rows` positions of `columns`.
int64_t getOutsideBytes(Outside what, int64_t rows, int64_t columns,
                        const Parallelism &parallelism);
} // namespace reprise::report::megatron

#endif // REPRISE_REPORT_MEGATRON_H
