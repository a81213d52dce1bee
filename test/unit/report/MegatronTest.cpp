//===- MegatronTest.cpp - What Megatron would keep --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Against the closed formulas of Korthikanti et al. 2022 (arXiv:2205.05198,
// table 2) for the models of its table 3.
//
//===----------------------------------------------------------------------===//

#include "reprise/Report/Megatron.h"
#include "gtest/gtest.h"

using namespace reprise::report::megatron;

namespace {
LayerShape getShape(int64_t s, int64_t b, int64_t h, int64_t a) {
  LayerShape shape;
  shape.sequence = s, shape.microBatch = b;
  shape.hidden = h, shape.heads = a, shape.feedForward = 4 * h;
  return shape;
}

Options select(std::vector<std::string> modules) {
  return {"selective", "", 0, std::move(modules)};
}

const Options kNone = {};
const Options kCoreAttention = select({"core_attn"});
const Options kFull = {"full", "uniform", 1, {}};

/// The sample layer: s = 128, b = 2, h = 64, a = 4.
int64_t getSampleBytes(const Options &options) {
  return getLayerBytes(getShape(128, 2, 64, 4), {}, options, 0);
}

TEST(Megatron, SampleLayer) {
  EXPECT_EQ(getSampleBytes(kNone), 1212416);
  EXPECT_EQ(getSampleBytes(select({})), 1212416);
  EXPECT_EQ(getSampleBytes(kCoreAttention), 557056);
  EXPECT_EQ(getSampleBytes(select({"mlp"})), 950272);
  EXPECT_EQ(getSampleBytes(select({"layernorm"})), 1146880);
  EXPECT_EQ(getSampleBytes(select({"moe"})), 1212416);
  EXPECT_EQ(getSampleBytes(select({"core_attn", "mlp", "layernorm"})),
            557056 - 262144 - 65536);
  EXPECT_EQ(getSampleBytes(kFull), 32768);
}

TEST(Megatron, FusedAttentionAndNoDropout) {
  LayerShape shape = getShape(128, 2, 64, 4);
  shape.fusedAttention = true;
  // 34 s b h, and the log-sum-exp of 4 bytes for each head and position.
  EXPECT_EQ(getLayerBytes(shape, {}, kNone, 0), 557056 + 4096);
  EXPECT_EQ(getLayerBytes(shape, {}, kCoreAttention, 0), 557056);
  shape.hiddenDropout = false;
  EXPECT_EQ(getLayerBytes(shape, {}, kCoreAttention, 0), 32 * 16384);
  shape.fusedAttention = shape.attentionDropout = false;
  EXPECT_EQ(getLayerBytes(shape, {}, kNone, 0), 32 * 16384 + 2 * 131072);
}

/// Of 8 heads as wide as 16, two hold keys: q and ctx have 128 columns, k and v
/// 32. The gate is a third tensor of the feed-forward width, 96; norms of heads
/// need q and k once more.
TEST(Megatron, SharedKeysAndGates) {
  LayerShape shape = getShape(128, 2, 64, 8);
  shape.feedForward = 96;
  shape.keyHeads = 2, shape.headWidth = 16;
  shape.gated = shape.fusedAttention = true;
  shape.attentionDropout = shape.hiddenDropout = false;
  const int64_t rows = 256, lse = 4 * 8;
  EXPECT_EQ(getLayerBytes(shape, {}, kNone, 0),
            rows * (2 * (4 * 64 + 2 * 128 + 2 * 32 + 3 * 96) + lse));
  EXPECT_EQ(getLayerBytes(shape, {}, select({"mlp"}), 0),
            rows * (2 * (4 * 64 + 2 * 128 + 2 * 32) + lse));
  shape.normedHeads = true;
  EXPECT_EQ(getLayerBytes(shape, {}, kNone, 0),
            rows * (2 * (4 * 64 + 3 * 128 + 3 * 32 + 3 * 96) + lse));
  // Norms behind the blocks keep what these put out, under every label.
  shape.normsBefore = false, shape.normsAfter = true;
  EXPECT_EQ(getLayerBytes(shape, {}, select({"layernorm"}), 0),
            rows * (2 * (4 * 64 + 3 * 128 + 3 * 32 + 3 * 96) + lse));
  // Four ranks have a head of each kind, of which neighbours have the same.
  shape.normedHeads = shape.normsAfter = false, shape.normsBefore = true;
  EXPECT_EQ(checkDivision(shape, {4, false}), "");
  EXPECT_EQ(getLayerBytes(shape, {4, false}, kNone, 0),
            rows *
                (2 * (4 * 64 + 2 * 128 / 4 + 2 * 16 + 3 * 96 / 4) + lse / 4));
  shape.keyHeads = 3;
  EXPECT_EQ(checkDivision(shape, {4, false}),
            "needs a number of key heads that the 4 ranks of a tensor-parallel "
            "group can divide, or that divides these, but got 3");
}

TEST(Megatron, SegmentsKeepTheirInputs) {
  LayerShape shape = getShape(128, 2, 64, 4);
  Options uniform = {"full", "uniform", 3, {}},
          block = {"full", "block", 2, {}};
  const int64_t input = 32768, all = 1212416;
  for (auto [layer, bytes] :
       {std::pair(0, input), {1, int64_t(0)}, {2, int64_t(0)}, {3, input}})
    EXPECT_EQ(getLayerBytes(shape, {}, uniform, layer), bytes) << layer;
  for (auto [layer, bytes] :
       {std::pair(0, input), {1, input}, {2, all}, {3, all}})
    EXPECT_EQ(getLayerBytes(shape, {}, block, layer), bytes) << layer;
}

/// The sample layer has 8 tensors of 32768 bytes, 655360 of P and its dropout,
/// two masks of 16384, and u and g of 131072. While it runs backward, what is
/// behind is gone.
TEST(Megatron, ReplaysOfASampleLayer) {
  auto get = [](const Options &options) {
    return getLayer(getShape(128, 2, 64, 4), {}, options, 0).most;
  };
  const int64_t value = 32768, core = 655360, mask = 16384, inner = 262144;
  EXPECT_EQ(get(kNone), 1212416);
  EXPECT_EQ(get(kFull), 1212416);
  // x0, n1, q, k, v, and the core again; ctx is gone by then.
  EXPECT_EQ(get(kCoreAttention), 5 * value + core);
  EXPECT_EQ(get(select({"mlp"})), 1212416 - mask);
  // What n2 takes when it is there again is less than what is gone.
  EXPECT_EQ(get(select({"layernorm"})), 1212416 - 2 * value);
  // But mlp reads it.
  EXPECT_EQ(get(select({"layernorm", "mlp"})), 1212416 - mask - value);
  // u and g beside n2, or the core beside x0, q, k and v.
  EXPECT_EQ(get(select({"core_attn", "layernorm", "mlp"})), 4 * value + core);
  LayerShape fused = getShape(128, 2, 64, 4);
  fused.fusedAttention = true;
  EXPECT_EQ(
      getLayer(fused, {}, select({"core_attn", "layernorm", "mlp"}), 0).most,
      7 * value + mask + inner);
}

/// A chunk of which the second layer is replayed with the third: the first is
/// kept, what is behind is gone.
TEST(Megatron, PartsOfAChunk) {
  Chunk chunk;
  chunk.add({5, 5});
  chunk.add({10, 100, /*continues=*/false});
  chunk.add({1, 100, /*continues=*/true});
  EXPECT_EQ(chunk.getKept(), 16);
  EXPECT_EQ(chunk.getMost(), 205);
  chunk.add({10, 150});
  EXPECT_EQ(chunk.getMost(), 205);
  chunk.add({30, 190});
  EXPECT_EQ(chunk.getMost(), 26 + 190);
  chunk.add({300, 300});
  EXPECT_EQ(chunk.getMost(), 356);
  EXPECT_EQ(chunk.getKept(), 356);
}

// A layer of Mixtral's kind: 4 h + 4 a d + 4 k d + 4 a bytes a position for
// attention, 4 h for x1 and n2, 4 E + 12 s + s (2 h + 6 f) for s of E experts,
// and once 4 (E + 1) for their offsets.
TEST(Megatron, Experts) {
  LayerShape shape = getShape(128, 2, 64, 4);
  shape.keyHeads = 2, shape.fusedAttention = true;
  shape.attentionDropout = shape.hiddenDropout = false;
  shape.experts = 8, shape.slots = 2, shape.expertWidth = 32;
  auto get = [&](const Options &options) {
    return getLayerBytes(shape, {}, options, 0);
  };
  EXPECT_EQ(get(kNone), 411684);
  EXPECT_EQ(get(select({"moe"})), 237604);
  EXPECT_EQ(get(select({"moe_act"})), 378916);
  EXPECT_EQ(get(select({"moe", "moe_act"})), 237604);
  EXPECT_EQ(get(select({"layernorm", "moe_act"})), 313380);
  EXPECT_EQ(get(select({"mlp"})), 411684);
  // A replay makes all of it again, but not what routing chose.
  auto getMost = [&](const Options &options) {
    return getLayer(shape, {}, options, 0).most;
  };
  EXPECT_EQ(getMost(select({"moe"})), 411684);
  EXPECT_EQ(getMost(select({"moe_act"})), 411684);
  EXPECT_EQ(getMost(select({"moe", "layernorm"})), 411684 - 32768);
  EXPECT_EQ(getMost(select({"moe_act", "layernorm"})), 411684 - 2 * 32768);
  EXPECT_EQ(getMost(kFull), 411684);
  // The layer's input, and what routing chose.
  EXPECT_EQ(get(kFull), 256 * (2 * 64 + 8 * 2) + 4 * 9);
  // A shared expert of width 48 with its gate: 6 f + 2 h + 2.
  shape.sharedWidth = 48, shape.gatesShared = true;
  EXPECT_EQ(get(kNone), 411684 + 256 * (6 * 48 + 2 * 64 + 2));
  EXPECT_EQ(get(select({"shared_experts"})), 411684);
  EXPECT_EQ(get(select({"moe"})), 237604);
}

// Of ranks that share a layer, those with a part of each expert gather the rows
// of all positions, 4 h bytes a position here, behind which columns are
// divided; those with whole ones have the rows of their positions. Each has the
// offsets.
TEST(Megatron, RanksShareRowsOfExperts) {
  LayerShape shape = getShape(128, 2, 64, 4);
  shape.keyHeads = 2, shape.fusedAttention = true;
  shape.attentionDropout = shape.hiddenDropout = false;
  shape.experts = 8, shape.slots = 2, shape.expertWidth = 32;
  const int64_t offsets = 4 * 9, rows = 256 * 4 * 64;
  auto get = [&](const Parallelism &ranks, const Options &options) {
    return getLayerBytes(shape, ranks, options, 0);
  };
  const int64_t rest = 411684 - offsets - rows;
  EXPECT_EQ(get({2, true, 1, false}, kNone), rest / 2 + rows + offsets);
  EXPECT_EQ(get({2, true, 4, false}, kNone), rest / 2 + rows + offsets);
  EXPECT_EQ(get({2, true, 4, true}, kNone), (rest + rows) / 2 + offsets);
  const int64_t kept = 237604 - offsets;
  EXPECT_EQ(get({2, true, 1, false}, select({"moe"})), kept / 2 + offsets);
  EXPECT_EQ(get({2, true, 4, true}, select({"moe"})), kept / 2 + offsets);
}

// 128 experts of width 768, of which a token has 8; norms of heads.
TEST(Megatron, ExpertsOfPublished30B) {
  LayerShape shape = getShape(4096, 1, 2048, 32);
  shape.keyHeads = 4, shape.headWidth = 128, shape.normedHeads = true;
  shape.fusedAttention = true;
  shape.attentionDropout = shape.hiddenDropout = false;
  shape.experts = 128, shape.slots = 8, shape.expertWidth = 768;
  EXPECT_EQ(getLayerBytes(shape, {}, kNone, 0), 468582916);
  EXPECT_EQ(getLayerBytes(shape, {}, select({"moe"}), 0), 181142020);
}

// A layer of DeepSeek's kind: 4 h + 4 q + 4 c + 4 a (n + r) + 4 a v + 4 a bytes
// a position for attention, with latents of q and c columns.
TEST(Megatron, LatentAttention) {
  LayerShape shape = getShape(128, 2, 64, 4);
  shape.fusedAttention = true;
  shape.attentionDropout = shape.hiddenDropout = false;
  shape.headWidth = 24, shape.valueWidth = 16, shape.sharedKey = 8;
  shape.queryLatent = 24, shape.keyLatent = 16;
  shape.experts = 8, shape.slots = 2, shape.expertWidth = 32;
  shape.sharedWidth = 32;
  auto get = [&](const Options &options) {
    return getLayerBytes(shape, {}, options, 0);
  };
  EXPECT_EQ(get(kNone), 567332);
  EXPECT_EQ(get(select({"mla_up_proj"})), 440356);
  EXPECT_EQ(get(select({"shared_experts"})), 518180);
  EXPECT_EQ(get(select({"moe", "shared_experts"})), 344100);
  EXPECT_EQ(get(select({"layernorm"})), 567332 - 2 * 256 * 2 * 64);
  // Of x0, n1, ctx, x1 and n2 each has 32768 bytes, latents and their norms
  // 40960, q, k and v 131072, the log-sum-exp 4096, the shared key 4096, the
  // shared expert 49152, and the others 178212, of which 4132 are choices.
  auto getMost = [&](const Options &options) {
    return getLayer(shape, {}, options, 0).most;
  };
  EXPECT_EQ(getMost(select({"mla_up_proj"})), 567332 - 131072 + 4096);
  // The others are gone when the shared expert is replayed, in front of them.
  EXPECT_EQ(getMost(select({"shared_experts"})), 567332 - 49152);
  EXPECT_EQ(getMost(select({"moe"})), 567332);
  EXPECT_EQ(getMost(select({"moe", "shared_experts"})), 567332 - 49152);
  EXPECT_EQ(getMost(select({"moe", "shared_experts", "moe_act"})),
            567332 - 49152);
  EXPECT_EQ(getMost(select({"moe", "shared_experts", "mla_up_proj", "layernorm",
                            "core_attn"})),
            4 * 32768 + 40960 + 4096 + 178212);
  // Of a narrow layer the core of attention has most, where queries, keys and
  // values are there again.
  LayerShape narrow = shape;
  narrow.experts = narrow.sharedWidth = 0, narrow.feedForward = 1;
  auto getCore = [&] {
    return getLayer(narrow, {},
                    select({"mla_up_proj", "core_attn", "layernorm"}), 0)
        .most;
  };
  EXPECT_EQ(getCore(), 32768 + 40960 + 4096 + 131072 + 4096);
  // Without a latent of queries they are made of n1, which is there first.
  narrow.queryLatent = 0;
  EXPECT_EQ(getCore(), 2 * 32768 + 16384 + 4096 + 131072 + 4096);
  // Queries without a latent.
  shape.queryLatent = 0;
  EXPECT_EQ(get(kNone), 567332 - 2 * 256 * 2 * 24);
}

// Of 671B: 61 layers, here one with experts.
TEST(Megatron, LatentAttentionOfPublished671B) {
  LayerShape shape = getShape(4096, 1, 7168, 128);
  shape.fusedAttention = true;
  shape.attentionDropout = shape.hiddenDropout = false;
  shape.headWidth = 192, shape.valueWidth = 128, shape.sharedKey = 64;
  shape.queryLatent = 1536, shape.keyLatent = 512;
  shape.experts = 256, shape.slots = 8, shape.expertWidth = 2048;
  shape.sharedWidth = 2048;
  EXPECT_EQ(getLayerBytes(shape, {}, kNone, 0), 1868956676);
  EXPECT_EQ(getLayerBytes(shape, {}, select({"moe"}), 0), 941884420);
}

/// Gigabytes to the digits that are quoted.
std::string inGB(int64_t bytes, int digits) {
  char text[32];
  snprintf(text, sizeof text, "%.*f", digits, double(bytes) * 1e-9);
  return text;
}

TEST(Megatron, Published175B) {
  LayerShape shape = getShape(2048, 1, 12288, 96);
  Parallelism one, tensor = {8, false}, both = {8, true};
  auto get = [&](const Parallelism &ranks, const Options &options) {
    return getLayerBytes(shape, ranks, options, 0);
  };
  EXPECT_EQ(inGB(get(one, kNone), 3), "2.869");
  EXPECT_EQ(inGB(get(tensor, kNone), 3), "0.579");
  EXPECT_EQ(inGB(get(both, kNone), 3), "0.359");
  EXPECT_EQ(inGB(get(tensor, kCoreAttention), 3), "0.327");
  EXPECT_EQ(inGB(get(both, kCoreAttention), 3), "0.107");
  EXPECT_EQ(inGB(get(tensor, kFull), 4), "0.0503");
}

TEST(Megatron, FormulasOfThePaper) {
  struct {
    const char *name;
    int64_t h, a, b;
  } models[] = {{"22B", 6144, 64, 4},
                {"175B", 12288, 96, 1},
                {"530B", 20480, 128, 1},
                {"1T", 25600, 160, 1}};
  const int64_t s = 2048, t = 8;
  for (auto [name, h, a, b] : models) {
    SCOPED_TRACE(name);
    LayerShape shape = getShape(s, b, h, a);
    auto get = [&](const Parallelism &ranks, const Options &options) {
      return double(getLayerBytes(shape, ranks, options, 0));
    };
    double sbh = double(s) * b * h, core = 5.0 * a * s / h;
    EXPECT_DOUBLE_EQ(get({}, kNone), sbh * (34 + core));
    EXPECT_DOUBLE_EQ(get({t, false}, kNone), sbh * (10 + (24 + core) / t));
    EXPECT_DOUBLE_EQ(get({t, true}, kNone), sbh / t * (34 + core));
    EXPECT_DOUBLE_EQ(get({t, false}, kCoreAttention), sbh * (10 + 24.0 / t));
    EXPECT_DOUBLE_EQ(get({t, true}, kCoreAttention), 34 * sbh / t);
    EXPECT_DOUBLE_EQ(get({t, false}, kFull), 2 * sbh);
    EXPECT_DOUBLE_EQ(get({t, true}, kFull), 2 * sbh / t);
  }
}

TEST(Megatron, RanksDivideALayer) {
  LayerShape shape = getShape(130, 2, 64, 4);
  EXPECT_EQ(checkDivision(shape, {4, false}), "");
  EXPECT_EQ(checkDivision(shape, {3, false}),
            "needs a number of heads that the 3 ranks of a tensor-parallel "
            "group can divide, but got 4");
  EXPECT_EQ(checkDivision(shape, {4, true}),
            "needs a sequence length that the 4 ranks of a tensor-parallel "
            "group can divide, but got 130");
}

// Megatron fills GPT-3's vocabulary of 50257 up to 51200 for eight ranks.
TEST(Megatron, RanksShareParameters) {
  EXPECT_EQ(countParameters(Sharing::Vocabulary, 50257 * 12288, 50257, {8}),
            51200 / 8 * 12288);
  EXPECT_EQ(countParameters(Sharing::Vocabulary, 50257 * 12288, 50257, {}),
            50304 * 12288);
  EXPECT_EQ(countParameters(Sharing::Divided, 12288 * 49152, 12288, {8}),
            12288 * 49152 / 8);
  EXPECT_EQ(countParameters(Sharing::Whole, 12288, 12288, {8}), 12288);
}

// As Megatron's --make-vocab-size-divisible-by has it.
TEST(Megatron, VocabulariesHaveMultiples) {
  Parallelism ranks = {8};
  ranks.vocabMultiple = 1;
  EXPECT_EQ(countParameters(Sharing::Vocabulary, 50257 * 2, 50257, ranks),
            50264 / 8 * 2);
  EXPECT_EQ(getOutsideBytes(Outside::Logits, 3, 50257, ranks),
            4 * 3 * 50264 / 8);
}

// 4 s b h (1 + v / h) / t, section 4.3 of the paper, and s b h / t for the mask
// behind the embedding.
TEST(Megatron, OutsideLayersOf175B) {
  constexpr int64_t s = 2048, h = 12288, v = 51200, t = 8;
  Parallelism ranks = {t, /*sequence=*/true};
  EXPECT_EQ(2 * getOutsideBytes(Outside::Input, s, h, ranks) +
                getOutsideBytes(Outside::Logits, s, v, ranks),
            4 * s * (h + v) / t);
  EXPECT_EQ(getOutsideBytes(Outside::Mask, s, h, ranks), s * h / t);
  ranks.sequence = false;
  EXPECT_EQ(getOutsideBytes(Outside::Input, s, h, ranks), 2 * s * h);
}

// 18 bytes for each parameter of Llama 3.1 8B are 134.6 GiB.
TEST(Megatron, StatesOfARank) {
  Rank rank;
  rank.trained = 8030261248;
  EXPECT_EQ(rank.getStateBytes(), 144544702464);
  rank.frozen = 1000;
  rank.activationBytes = 5;
  rank.replayBytes = 7;
  EXPECT_EQ(rank.getPeakBytes(), 144544702464 + 2000 + 5 + 7);
  // 6 + 12 / d bytes, of each kind with its own d.
  rank.trainedOfExperts = 600;
  rank.optimizerRanks = 8, rank.expertOptimizerRanks = 5;
  EXPECT_EQ(rank.getOptimizerBytes(), 8030261248 / 8 * 12 + 600 / 5 * 12);
  EXPECT_EQ(rank.getGradientBytes(), 4 * (8030261248 + 600));
  rank.trained = 5;
  EXPECT_EQ(rank.getOptimizerBytes(), 8 + 1440); // 7.5, rounded up.
}
} // namespace
