//===- Megatron.h - What Megatron would keep --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_REPORT_MEGATRON_H
#define REPRISE_REPORT_MEGATRON_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// What Megatron's own scheme keeps of a layer until backward, in bytes: a
/// column to compare with. 16-bit activations, masks of a byte an element,
/// norms that keep their inputs and outputs, statistics of norms left out.
namespace reprise::report::megatron {
/// A layer of a dense transformer, and the micro-batch that goes through it.
struct LayerShape {
  int64_t sequence = 0, microBatch = 0;
  int64_t hidden = 0, heads = 0, feedForward = 0;
  int64_t keyHeads = 0;     ///< of keys and values; 0: as many as `heads`
  int64_t headWidth = 0;    ///< 0: all heads are as wide as `hidden`
  bool gated = false;       ///< two projections into the feed-forward width
  bool normedHeads = false; ///< a norm of queries and keys, head by head
  bool fusedAttention = false;
  bool attentionDropout = true, hiddenDropout = true;
};

/// How a layer is divided between ranks.
struct Parallelism {
  int64_t tensor = 1;    ///< ranks that share every layer
  bool sequence = false; ///< what they do not share, they split by positions
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

/// Bytes that one rank keeps of layer `layer` of a model chunk.
int64_t getLayerBytes(const LayerShape &shape, const Parallelism &parallelism,
                      const Options &options, int64_t layer);
} // namespace reprise::report::megatron

#endif // REPRISE_REPORT_MEGATRON_H
