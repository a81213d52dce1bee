//===- LayerShape.h - What a layer is like ----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_INTERFACES_LAYERSHAPE_H
#define REPRISE_INTERFACES_LAYERSHAPE_H

#include <cstdint>

namespace reprise {
/// A layer, and the micro-batch that goes through it.
struct LayerShape {
  int64_t sequence = 0, microBatch = 0;
  int64_t hidden = 0, heads = 0, feedForward = 0;
  int64_t keyHeads = 0;     ///< of keys and values; 0: as many as `heads`
  int64_t headWidth = 0;    ///< 0: all heads are as wide as `hidden`
  bool gated = false;       ///< two projections into the feed-forward width
  bool normedHeads = false; ///< norms of queries and keys
  bool normsBefore = true;  ///< a norm before attention, one before the MLP
  bool normsAfter = false;  ///< norms of what these put out
  bool fusedAttention = false;
  bool attentionDropout = true, hiddenDropout = true;
  int64_t experts = 0;      ///< in place of `feedForward`; 0: none
  int64_t slots = 0;        ///< experts of a token
  int64_t expertWidth = 0;  ///< inside one
  int64_t sharedWidth = 0;  ///< inside the one that all tokens share; 0: none
  bool gatesShared = false; ///< what that puts out has a weight of its own
  /// Columns of the latents of latent attention, of keys and values and of
  /// queries, 0: none; and of a key those that all heads have in common.
  int64_t keyLatent = 0, queryLatent = 0, sharedKey = 0;
  int64_t valueWidth = 0; ///< of a head of values; 0: that of heads
};
} // namespace reprise

#endif // REPRISE_INTERFACES_LAYERSHAPE_H
