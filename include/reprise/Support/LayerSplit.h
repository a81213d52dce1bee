//===- LayerSplit.h - Layers onto pipeline stages ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SUPPORT_LAYERSPLIT_H
#define REPRISE_SUPPORT_LAYERSPLIT_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reprise {
/// How a model's layers are cut into chunks for `stages` pipeline stages of
/// `virtualStages` chunks each. Chunks follow each other in the model; chunk
/// `c` is on stage `c % stages`, as in an interleaved pipeline.
struct LayerSplit {
  int64_t stages = 1;
  int64_t virtualStages = 1;
  /// Layers of the first and of the last stage; the others share the rest.
  std::optional<int64_t> first, last;
  /// The embedding, or the head with the loss, takes the place of a layer.
  bool countsEmbedding = false, countsLoss = false;
  /// Layers of each chunk; empty: as the others say.
  std::vector<int64_t> layout;

  int64_t getNumChunks() const { return stages * virtualStages; }
};

/// Fills `chunks` with the number of layers of each chunk, or says with numbers
/// why that cannot be. Without `first`, `last` and `layout`, sizes differ by
/// one at most, larger chunks first. Every chunk has a layer, unless `layout`
/// or what is counted as one says otherwise.
///
/// Source: Megatron Core, `num_layers_in_first_pipeline_stage`,
/// `account_for_embedding_in_pipeline_split` and their like; it refuses layers
/// that do not divide evenly where none of these is given.
std::optional<std::string> splitLayers(const LayerSplit &split,
                                       int64_t numLayers,
                                       std::vector<int64_t> &chunks);

/// Fills `chunks` with the number of layers of each chunk that `text` has, or
/// says what is wrong with it: `E` for the embedding, `t` for a layer, `m` for
/// one that predicts further tokens, in front of the loss, `L`, with `|`
/// between chunks; `x*3` is `xxx`, and `(..)*3` repeats what is in the
/// brackets. Commas are for people. Layers that predict further tokens, which
/// are behind all others and in the last chunk, are `further` of that chunk's.
///
/// Source: Megatron Core, `pipeline_model_parallel_layout`.
std::optional<std::string> parseLayout(const std::string &text,
                                       std::vector<int64_t> &chunks,
                                       int64_t &further);
} // namespace reprise

#endif // REPRISE_SUPPORT_LAYERSPLIT_H
