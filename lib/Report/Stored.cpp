//===- Stored.cpp - What backward reads of a layer --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Stored.h"
#include <algorithm>

using namespace reprise;
using namespace reprise::report::megatron;

namespace {
/// What the elements of a tensor are counted in, with sequence s, micro-batch
/// b, hidden width h, heads a of width d and of values v, heads k of keys and
/// values, and feed-forward width f.
enum class Unit {
  Hidden,      // s b h
  Queries,     // s b a d
  Keys,        // s b k d
  Values,      // s b k v
  Context,     // s b a v
  KeyLatent,   // s b times that of keys and values
  QueryLatent, // s b times that of queries
  SharedKey,   // s b times what all heads of keys have in common
  FeedForward, // s b f
  Scores,      // a s^2 b
  Rows,        // a s b
  Experts,     // s b E, with E experts
  Slots,       // s b k, with k experts of a token
  Offsets,     // E + 1
  SlotsHidden, // s b k h
  SlotsInner,  // s b k f, with width f of an expert
  SharedInner, // s b f, with that of the shared expert
  Positions,   // s b
};

/// How ranks of a tensor-parallel group share a tensor.
enum class Share {
  Divided,    // Each has its heads or columns.
  Replicated, // Each has all of it, or with sequence parallelism its positions.
  Rows,       // Those of whole experts have the rows of their positions, those
              // with a part of each expert the rows of all, gathered.
  Whole,      // Each has as much as one rank alone.
};

/// In which layers a tensor is stored.
enum class Where {
  Always,
  NormedHeads,
  NormsBefore,
  NormsAfter,
  Dense,
  Gated,
  Experts,
  Shared,
  GatedShared,
  Latent,
  LatentQueries,
  Unfused,
  Fused,
  UnfusedDropout,
  HiddenDropout,
};

/// A tensor that backward reads.
struct Stored {
  std::string_view name;
  int64_t elementBytes;
  Unit unit;
  Share share;
  Where where;
  std::string_view label;      // Of recompute_modules that drops it, or empty.
  std::string_view other = ""; // Another that does.
  std::string_view only = "";  // The one with which alone it is kept.
};
} // namespace

// Korthikanti et al. 2022, arXiv:2205.05198, sections 4.1 to 4.3 and 5; regions
// of labels as in Megatron Core 0.15 to 0.19. With f = 4h and k = a these add
// up to s b h (34 + 5 a s / h). A mask has a byte, the fused log-sum-exp is
// f32. Attention keeps queries and keys as it reads them, normed and turned;
// turning back needs nothing, the norms need what they read: those behind a
// block its output, while nobody reads what they put out but a sum. Megatron's
// maps of which token goes where depend on its fused kernels: here they are
// ids, and a permutation. The shared expert keeps what it puts out for its
// gate. The part of keys that heads have in common is gathered, with sequence
// parallelism, in front of the region that turns it.
//
// Rows are in the order of the forward pass, each where the first op that keeps
// it stands: backward of that op is the last to read it. A shared expert comes
// in front of the router.
static constexpr Stored kStored[] = {
    {"x0", 2, Unit::Hidden, Share::Replicated, Where::Always, ""},
    {"n1", 2, Unit::Hidden, Share::Replicated, Where::NormsBefore, "layernorm"},
    {"cq", 2, Unit::QueryLatent, Share::Replicated, Where::LatentQueries, ""},
    {"qn", 2, Unit::QueryLatent, Share::Replicated, Where::LatentQueries, ""},
    {"ckv", 2, Unit::KeyLatent, Share::Replicated, Where::Latent, ""},
    {"kvn", 2, Unit::KeyLatent, Share::Replicated, Where::Latent, ""},
    {"kr", 2, Unit::SharedKey, Share::Whole, Where::Latent, "", "",
     "mla_up_proj"},
    {"q", 2, Unit::Queries, Share::Divided, Where::Always, "mla_up_proj"},
    {"k", 2, Unit::Keys, Share::Divided, Where::Always, "mla_up_proj"},
    {"v", 2, Unit::Values, Share::Divided, Where::Always, "mla_up_proj"},
    {"q before its norm", 2, Unit::Queries, Share::Divided, Where::NormedHeads,
     ""},
    {"k before its norm", 2, Unit::Keys, Share::Divided, Where::NormedHeads,
     ""},
    {"p", 2, Unit::Scores, Share::Divided, Where::Unfused, "core_attn"},
    {"mask of p", 1, Unit::Scores, Share::Divided, Where::UnfusedDropout,
     "core_attn"},
    {"pd", 2, Unit::Scores, Share::Divided, Where::UnfusedDropout, "core_attn"},
    {"ctx.lse", 4, Unit::Rows, Share::Divided, Where::Fused, "core_attn"},
    {"ctx", 2, Unit::Context, Share::Divided, Where::Always, ""},
    {"a", 2, Unit::Hidden, Share::Replicated, Where::NormsAfter, ""},
    {"mask of a", 1, Unit::Hidden, Share::Replicated, Where::HiddenDropout, ""},
    {"x1", 2, Unit::Hidden, Share::Replicated, Where::Always, ""},
    {"n2", 2, Unit::Hidden, Share::Replicated, Where::NormsBefore, "layernorm"},
    {"gt", 2, Unit::FeedForward, Share::Divided, Where::Gated, "mlp"},
    {"u", 2, Unit::FeedForward, Share::Divided, Where::Dense, "mlp"},
    {"g", 2, Unit::FeedForward, Share::Divided, Where::Dense, "mlp"},
    {"gt shared", 2, Unit::SharedInner, Share::Divided, Where::Shared, "moe",
     "shared_experts"},
    {"u shared", 2, Unit::SharedInner, Share::Divided, Where::Shared, "moe",
     "shared_experts"},
    {"g shared", 2, Unit::SharedInner, Share::Divided, Where::Shared, "moe",
     "shared_experts"},
    {"y shared", 2, Unit::Hidden, Share::Replicated, Where::GatedShared, "moe",
     "shared_experts"},
    {"gate shared", 2, Unit::Positions, Share::Replicated, Where::GatedShared,
     "moe", "shared_experts"},
    {"sc", 4, Unit::Experts, Share::Replicated, Where::Experts, "moe"},
    {"id", 4, Unit::Slots, Share::Replicated, Where::Experts, ""},
    {"w", 4, Unit::Slots, Share::Replicated, Where::Experts, "moe"},
    {"pm", 4, Unit::Slots, Share::Replicated, Where::Experts, ""},
    {"off", 4, Unit::Offsets, Share::Whole, Where::Experts, ""},
    {"xp", 2, Unit::SlotsHidden, Share::Rows, Where::Experts, "moe"},
    {"gt of experts", 2, Unit::SlotsInner, Share::Divided, Where::Experts,
     "moe"},
    {"u of experts", 2, Unit::SlotsInner, Share::Divided, Where::Experts,
     "moe"},
    {"g of experts", 2, Unit::SlotsInner, Share::Divided, Where::Experts, "moe",
     "moe_act"},
    {"y", 2, Unit::Hidden, Share::Replicated, Where::NormsAfter, ""},
    {"mask of y", 1, Unit::Hidden, Share::Replicated, Where::HiddenDropout, ""},
};

static bool isStored(const Stored &stored, const LayerShape &shape) {
  switch (stored.where) {
  case Where::Always:
    return true;
  case Where::NormedHeads:
    return shape.normedHeads;
  case Where::NormsBefore:
    return shape.normsBefore;
  case Where::NormsAfter:
    return shape.normsAfter;
  case Where::Dense:
    return shape.experts == 0;
  case Where::Gated:
    return shape.experts == 0 && shape.gated;
  case Where::Experts:
    return shape.experts != 0;
  case Where::Shared:
    return shape.sharedWidth != 0;
  case Where::GatedShared:
    return shape.sharedWidth != 0 && shape.gatesShared;
  case Where::Latent:
    return shape.keyLatent != 0;
  case Where::LatentQueries:
    return shape.queryLatent != 0;
  case Where::Unfused:
    return !shape.fusedAttention;
  case Where::Fused:
    return shape.fusedAttention;
  case Where::UnfusedDropout:
    return !shape.fusedAttention && shape.attentionDropout;
  case Where::HiddenDropout:
    return shape.hiddenDropout;
  }
  return false;
}

/// Of all ranks together, each of which has one at least.
static int64_t countKeyHeads(const LayerShape &shape, int64_t tensor) {
  return std::max(getKeyHeads(shape), tensor);
}

/// Columns of `heads` heads.
static int64_t getWidth(int64_t heads, const LayerShape &shape) {
  return shape.headWidth ? heads * shape.headWidth
                         : shape.hidden / shape.heads * heads;
}

/// Columns of `heads` heads of values.
static int64_t getValueWidth(int64_t heads, const LayerShape &shape) {
  return shape.valueWidth ? heads * shape.valueWidth : getWidth(heads, shape);
}

/// Elements of a tensor on all ranks together.
static int64_t countElements(Unit unit, const LayerShape &shape,
                             int64_t tensor) {
  int64_t rows = shape.sequence * shape.microBatch;
  switch (unit) {
  case Unit::Hidden:
    return rows * shape.hidden;
  case Unit::Queries:
    return rows * getWidth(shape.heads, shape);
  case Unit::Keys:
    return rows * getWidth(countKeyHeads(shape, tensor), shape);
  case Unit::Values:
    return rows * getValueWidth(countKeyHeads(shape, tensor), shape);
  case Unit::Context:
    return rows * getValueWidth(shape.heads, shape);
  case Unit::KeyLatent:
    return rows * shape.keyLatent;
  case Unit::QueryLatent:
    return rows * shape.queryLatent;
  case Unit::SharedKey:
    return rows * shape.sharedKey;
  case Unit::FeedForward:
    return rows * shape.feedForward;
  case Unit::Scores:
    return rows * shape.heads * shape.sequence;
  case Unit::Rows:
    return rows * shape.heads;
  case Unit::Experts:
    return rows * shape.experts;
  case Unit::Slots:
    return rows * shape.slots;
  case Unit::Offsets:
    return shape.experts + 1;
  case Unit::SlotsHidden:
    return rows * shape.slots * shape.hidden;
  case Unit::SlotsInner:
    return rows * shape.slots * shape.expertWidth;
  case Unit::SharedInner:
    return rows * shape.sharedWidth;
  case Unit::Positions:
    return rows;
  }
  return 0;
}

static bool isDivided(Share share, const Parallelism &parallelism) {
  switch (share) {
  case Share::Divided:
    return true;
  case Share::Replicated:
    return parallelism.sequence;
  case Share::Rows:
    return parallelism.hasWholeExperts;
  case Share::Whole:
    return false;
  }
  return false;
}

static int64_t getBytes(const Stored &stored, const LayerShape &shape,
                        const Parallelism &parallelism) {
  int64_t tensor = parallelism.tensor;
  return stored.elementBytes * countElements(stored.unit, shape, tensor) /
         (isDivided(stored.share, parallelism) ? tensor : 1);
}

std::vector<Tensor>
reprise::report::megatron::getTensors(const LayerShape &shape,
                                      const Parallelism &parallelism) {
  std::vector<Tensor> tensors;
  for (const Stored &stored : kStored)
    if (isStored(stored, shape)) {
      bool isChoice = stored.where == Where::Experts && stored.label.empty();
      tensors.push_back({stored.name, getBytes(stored, shape, parallelism),
                         isChoice, stored.label, stored.other, stored.only});
    }
  return tensors;
}
