//===- WeightsTest.cpp - Weights of others --------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckpointRun.h"

#include "runtime/checkpoint/CheckpointWriter.h"
#include "runtime/checkpoint/Weights.h"

#include <array>
#include <cmath>
#include <map>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

namespace {

/// A tensor as a test writes it.
struct Source {
  std::string dtype, shape, bytes;
};

std::string floats(const std::vector<float> &values) {
  return {reinterpret_cast<const char *>(values.data()), 4 * values.size()};
}

/// The upper halves: exact for values that have few bits.
std::string bfloats(const std::vector<float> &values) {
  std::string bytes;
  for (float value : values) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    bytes += {char(bits >> 16), char(bits >> 24)};
  }
  return bytes;
}

std::string halves(const std::vector<float> &values) {
  std::string bytes;
  for (float value : values) {
    _Float16 half = _Float16(value);
    bytes.append(reinterpret_cast<const char *>(&half), 2);
  }
  return bytes;
}

std::string fileOf(const std::map<std::string, Source> &sources) {
  std::string header = "{", data;
  for (auto &[name, source] : sources) {
    header += (data.empty() ? "\"" : ",\"") + name + "\":{\"dtype\":\"" +
              source.dtype + "\",\"shape\":" + source.shape +
              ",\"data_offsets\":[" + std::to_string(data.size()) + ",";
    data += source.bytes;
    header += std::to_string(data.size()) + "]}";
  }
  header += "}";
  return bytesAs<int64_t>({int64_t(header.size())}) + header + data;
}

/// A model with these tensors: GPT-2's names, q and k side by side, a table
/// that is tied.
class Weights : public testing::Test {
protected:
  Weights() {
    add("wte", "transformer.wte.weight", 0, 1, {5, 4});
    add("q", "transformer.h.0.attn.c_attn.weight", 0, 2, {4, 3});
    add("k", "transformer.h.0.attn.c_attn.weight", 1, 2, {4, 3});
    add("qb", "transformer.h.0.attn.c_attn.bias", 0, 2, {3});
    add("kb", "transformer.h.0.attn.c_attn.bias", 1, 2, {3});
    model.states = states.data();
    model.numStates = int32_t(states.size());
    model.name = "small";
    model.plan = "none";
    model.numMicroBatches = model.microBatchesPerRank = 1;
    for (float i = 0; i < 20; ++i)
      wte.push_back(i / 8);
    for (float i = 0; i < 24; ++i)
      weight.push_back(i);
    sources = {
        {"h.0.attn.c_attn.bias", {"F32", "[6]", floats({1, 2, 3, 4, 5, 6})}},
        {"h.0.attn.c_attn.weight", {"F32", "[4,6]", floats(weight)}},
        {"wte.weight", {"F32", "[5,4]", floats(wte)}}};
  }

  void add(const char *name, const char *hubName, int part, int parts,
           std::vector<int64_t> shape) {
    RepriseState state = {};
    state.name = name, state.hubName = hubName;
    state.part = part, state.parts = parts;
    state.rank = int32_t(shape.size());
    std::copy(shape.begin(), shape.end(), state.shape);
    int64_t bytes = 4;
    for (int64_t size : shape)
      bytes *= size;
    state.buffer = {end, bytes};
    end += bytes;
    states.push_back(state);
  }

  /// The values of all states after reading, side by side; none after an error.
  std::vector<float> load(const std::string &path) {
    Arena arena;
    ThreadPool pool;
    ModelTensors tensors(model);
    EXPECT_TRUE(arena.map(end, error) && pool.start(2, error) &&
                tensors.find(error));
    error = {};
    if (!loadWeights(path.c_str(), tensors, arena, pool, report, error))
      return {};
    EXPECT_EQ(arena.highWaterBytes(), end);
    return {arena.at<float>(0), arena.at<float>(end)};
  }
  std::vector<float> load(const std::map<std::string, Source> &changed) {
    return load(folder.write("w.safetensors", fileOf(changed)));
  }
  std::string refusal(const std::map<std::string, Source> &changed) {
    EXPECT_TRUE(load(changed).empty());
    std::string text = error.text;
    for (size_t at; (at = text.find(folder.path)) != text.npos;)
      text.erase(at, folder.path.size());
    return text;
  }

  RepriseModel model = {};
  std::vector<RepriseState> states;
  int64_t end = 0;
  std::vector<float> wte, weight;
  std::map<std::string, Source> sources;
  Folder folder;
  Error error;
  WeightsReport report = {};
};

} // namespace

TEST_F(Weights, PublishedTensorsAreSplitAndConverted) {
  std::vector<float> expected = wte;
  for (int column : {0, 3})
    for (int row = 0; row < 4; ++row)
      for (int i = 0; i < 3; ++i)
        expected.push_back(weight[size_t(row * 6 + column + i)]);
  expected.insert(expected.end(), {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(load(sources), expected) << error.text;
  EXPECT_EQ(report.tensors, 3);
  EXPECT_EQ(report.bytes, 4 * (20 + 24 + 6));
  auto changed = sources;
  changed["wte.weight"] = {"BF16", "[5,4]", bfloats(wte)};
  changed["h.0.attn.c_attn.weight"] = {"F16", "[4,6]", halves(weight)};
  EXPECT_EQ(load(changed), expected) << error.text;
  // With the base model's name, with tables of old versions, with the head.
  std::map<std::string, Source> full;
  for (auto &[name, source] : changed)
    full["transformer." + name] = source;
  full["transformer.h.0.attn.bias"] = {"U8", "[1]", "x"};
  full["transformer.h.0.attn.masked_bias"] = {"F32", "[]", "xxxx"};
  full["lm_head.weight"] = sources["wte.weight"];
  EXPECT_EQ(load(full), expected) << error.text;
  EXPECT_EQ(report.tensors, 3);
}

// A tensor for each index of the first dimension, in which 10 comes before 2.
TEST_F(Weights, SlicesOfStacksAreTensorsOfTheirOwn) {
  add("experts.up", "transformer.experts.*.up", 0, 1, {11, 2, 3});
  model.states = states.data();
  model.numStates = int32_t(states.size());
  std::vector<float> expected = load(sources);
  EXPECT_TRUE(expected.empty());
  expected = wte;
  for (int column : {0, 3})
    for (int row = 0; row < 4; ++row)
      for (int i = 0; i < 3; ++i)
        expected.push_back(weight[size_t(row * 6 + column + i)]);
  expected.insert(expected.end(), {1, 2, 3, 4, 5, 6});
  for (int expert = 0; expert < 11; ++expert) {
    std::vector<float> slice;
    for (float i = 0; i < 6; ++i)
      slice.push_back(float(expert) + i / 8);
    sources["experts." + std::to_string(expert) + ".up"] = {"F32", "[2,3]",
                                                            floats(slice)};
    expected.insert(expected.end(), slice.begin(), slice.end());
  }
  EXPECT_EQ(load(sources), expected) << error.text;
  EXPECT_EQ(report.tensors, 3 + 11);
  auto changed = sources;
  changed["experts.7.up"] = {"F32", "[3,2]", floats({1, 2, 3, 4, 5, 6})};
  EXPECT_EQ(refusal(changed), "tensor 'experts.7.up' of 'w.safetensors' needs "
                              "the shape [2, 3], but got [3, 2]");
  changed = sources;
  changed.erase("experts.10.up");
  EXPECT_EQ(refusal(changed), "'w.safetensors' has no tensor "
                              "'transformer.experts.10.up'");
}

// As version 5 of transformers has them: gate before up, all experts together,
// and Mixtral's under another name.
TEST_F(Weights, ExpertsMayStandInOneTensor) {
  const std::string in = "transformer.h.0.block_sparse_moe.experts.*.";
  const std::string names[] = {in + "w1.weight", in + "w3.weight",
                               in + "w2.weight"};
  add("gate", names[0].c_str(), 0, 1, {3, 2, 4});
  add("up", names[1].c_str(), 0, 1, {3, 2, 4});
  add("down", names[2].c_str(), 0, 1, {3, 4, 2});
  model.states = states.data();
  model.numStates = int32_t(states.size());
  std::vector<float> both, down, gate, up;
  for (float expert = 0; expert < 3; ++expert)
    for (float i = 0; i < 16; ++i) {
      both.push_back(expert + i / 16);
      (i < 8 ? gate : up).push_back(both.back());
      if (i < 8)
        down.push_back(-expert - i / 8);
    }
  const std::string experts = "h.0.mlp.experts.";
  sources[experts + "gate_up_proj"] = {"F32", "[3,4,4]", floats(both)};
  sources[experts + "down_proj"] = {"F32", "[3,4,2]", floats(down)};
  std::vector<float> expected;
  for (const std::vector<float> &part : {gate, up, down})
    expected.insert(expected.end(), part.begin(), part.end());
  std::vector<float> values = load(sources);
  ASSERT_GT(values.size(), expected.size()) << error.text;
  values.erase(values.begin(), values.end() - expected.size());
  EXPECT_EQ(values, expected);
  EXPECT_EQ(report.bytes, 4 * (20 + 24 + 6 + 48 + 24));
  // One expert too few, and rows that no two can share.
  auto changed = sources;
  changed[experts + "down_proj"] = {"F32", "[2,4,2]",
                                    floats(std::vector<float>(16))};
  EXPECT_EQ(refusal(changed),
            "'w.safetensors' has no tensor "
            "'transformer.h.0.block_sparse_moe.experts.2.w2.weight'");
  changed = sources;
  changed[experts + "gate_up_proj"] = {"F32", "[3,5,4]",
                                       floats(std::vector<float>(60))};
  EXPECT_NE(refusal(changed).find("has no tensor"), std::string::npos);
}

TEST_F(Weights, AStackIsWhole) {
  add("experts.up", "transformer.experts.*.up", 0, 1, {4});
  model.states = states.data();
  model.numStates = int32_t(states.size());
  ModelTensors tensors(model);
  EXPECT_FALSE(tensors.find(error));
  EXPECT_STREQ(error.text, "damaged model: 'transformer.experts.*.up' needs to "
                           "be one block, of two dimensions or more");
}

TEST_F(Weights, ANameOfTheBaseMayBeTooMuch) {
  for (RepriseState &state : states)
    state.hubName += strlen("transformer.");
  EXPECT_FALSE(load(sources).empty()) << error.text;
  std::map<std::string, Source> full;
  for (auto &[name, source] : sources)
    full["model." + name] = source;
  EXPECT_FALSE(load(full).empty()) << error.text;
  full["wte.weight"] = sources["wte.weight"];
  EXPECT_EQ(refusal(full), "'w.safetensors' has the tensor 'model.wte.weight', "
                           "which the model has not");
}

// Who wraps a model, or has it as a part, saves its names behind another.
TEST_F(Weights, APrefixOfAllNamesIsPassedOver) {
  std::vector<float> values = load(sources);
  for (auto [prefix, passedOver] :
       std::vector<std::pair<const char *, const char *>>{
           {"_orig_mod.", "_orig_mod."},
           {"module.", "module."},
           {"base_model.model.", "base_model.model."},
           {"net.0.", "net.0."},
           {"model.transformer.", "model."},
           {"transformer.", ""}}) {
    std::map<std::string, Source> wrapped;
    for (auto &[name, source] : sources)
      wrapped[prefix + name] = source;
    EXPECT_EQ(load(wrapped), values) << prefix << error.text;
    EXPECT_STREQ(report.prefix, passedOver);
    // The head is behind it, too.
    wrapped[std::string(prefix) + "lm_head.weight"] = sources["wte.weight"];
    EXPECT_EQ(load(wrapped), values) << prefix << error.text;
    wrapped.erase(std::string(prefix) + "wte.weight");
    EXPECT_EQ(load(wrapped), values) << prefix << error.text;
    wrapped["other"] = {"U8", "[1]", "x"};
    EXPECT_EQ(
        refusal(wrapped),
        "'w.safetensors' has the tensor 'other', which the model has not");
  }
}

// Who wraps parts of a model has names with the wrappers in the middle, of some
// tensors or of all, behind a prefix or not.
TEST_F(Weights, ModulesThatWrapOthersArePassedOver) {
  std::vector<float> values = load(sources);
  EXPECT_EQ(report.wrapped, 0);
  for (const char *wrapper :
       {"_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.",
        "_forward_module.", "_fpw_module.", "module.",
        "_fsdp_wrapped_module._checkpoint_wrapped_module._orig_mod."})
    for (std::string prefix : {"", "model.transformer.", "module."}) {
      std::map<std::string, Source> wrapped;
      for (auto &[name, source] : sources) {
        size_t layer = name.find("attn.");
        std::string part = layer == name.npos ? "" : wrapper;
        wrapped[prefix + std::string(name).insert(part.size() ? layer : 0,
                                                  part)] = source;
      }
      EXPECT_EQ(load(wrapped), values) << prefix << wrapper << error.text;
      EXPECT_EQ(report.wrapped, prefix == "module." ? 3 : 2);
    }
  // A name that only ends so is another one, and two that become one are none.
  std::map<std::string, Source> other = sources;
  other["h.0.my_module.attn.c_attn.bias"] = other["h.0.attn.c_attn.bias"];
  other.erase("h.0.attn.c_attn.bias");
  EXPECT_EQ(refusal(other),
            "'w.safetensors' has no tensor 'transformer.h.0.attn.c_attn.bias'; "
            "it has 'h.0.my_module.attn.c_attn.bias', which the model has not");
  other["h.0.module.attn.c_attn.weight"] = other["h.0.attn.c_attn.weight"];
  EXPECT_EQ(refusal(other),
            "without the parts of names that wrap modules, such as _orig_mod., "
            "tensor 'h.0.attn.c_attn.weight' is in 'w.safetensors' and in "
            "'w.safetensors'");
}

// A model that has its head tied to the embedding is in a file once, under
// either name, or twice with equal values.
TEST_F(Weights, ATiedPairHasEitherName) {
  std::vector<float> values = load(sources);
  auto renamed = sources;
  renamed["lm_head.weight"] = sources["wte.weight"];
  EXPECT_EQ(load(renamed), values) << error.text;
  renamed.erase("wte.weight");
  EXPECT_EQ(load(renamed), values) << error.text;
  renamed["model.lm_head.weight"] = sources["wte.weight"];
  renamed.erase("lm_head.weight");
  EXPECT_EQ(load(renamed), values) << error.text;
  renamed["model.lm_head.weight"].shape = "[4,5]";
  EXPECT_EQ(refusal(renamed), "tensor 'model.lm_head.weight' of "
                              "'w.safetensors' needs the shape [5, 4], but got "
                              "[4, 5]");
}

/// A matrix of bytes, with a scale for each block of it.
struct Scaled {
  Scaled(int64_t matrices, int64_t rows, int64_t columns, int64_t blockRows,
         int64_t blockColumns, unsigned seed)
      : across((columns + blockColumns - 1) / blockColumns) {
    const int64_t down = (rows + blockRows - 1) / blockRows;
    for (int64_t i = 0; i < matrices * down * across; ++i)
      scales.push_back(std::ldexp(float(1000 + i * 37 % 991), -14));
    for (int64_t i = 0; i < matrices * rows * columns; ++i) {
      seed = seed * 1664525 + 1013904223;
      const int code = int(seed >> 24) & 0xF7; // No NaN of E4M3.
      bytes += char(code);
      const int64_t row = i / columns;
      const float scale =
          scales[size_t((row / rows * down + row % rows / blockRows) * across +
                        i % columns / blockColumns)];
      // Exact in f64, and rounded once.
      values.push_back(float(valueOf(code) * double(scale)));
    }
  }
  static double valueOf(int code) {
    const int exponent = code >> 3 & 15;
    const double size = exponent ? std::ldexp(8 + (code & 7), exponent - 7 - 3)
                                 : std::ldexp(code & 7, -6 - 3);
    return code & 0x80 ? -size : size;
  }

  const int64_t across;
  std::string bytes;
  std::vector<float> scales, values;
};

// Matrices whose last blocks are not whole, in columns side by side and as
// experts, each in a tensor and all in one, where gate and up share a block.
TEST_F(Weights, EightBitsAreMultipliedByTheirScales) {
  const std::string in = "transformer.h.0.mlp.experts.*.";
  const std::string names[] = {in + "gate_proj.weight", in + "up_proj.weight",
                               in + "down_proj.weight"};
  add("gate", names[0].c_str(), 0, 1, {3, 70, 133});
  add("up", names[1].c_str(), 0, 1, {3, 70, 133});
  add("down", names[2].c_str(), 0, 1, {3, 133, 70});
  model.states = states.data();
  model.numStates = int32_t(states.size());
  const std::string experts = "h.0.mlp.experts.";
  auto weight = [&](const std::string &name, const Scaled &matrix,
                    const std::string &shape, const std::string &scales,
                    bool areScaled) {
    sources.erase(name + "_scale_inv");
    sources[name] = {"F32", shape, floats(matrix.values)};
    if (!areScaled)
      return;
    sources[name] = {"F8_E4M3", shape, matrix.bytes};
    sources[name + "_scale_inv"] = {"F32", scales, floats(matrix.scales)};
  };
  for (bool areStacked : {false, true}) {
    std::vector<float> expected;
    for (bool areScaled : {false, true}) {
      if (areStacked) {
        weight(experts + "gate_up_proj", {3, 140, 133, 128, 128, 1},
               "[3,140,133]", "[3,2,2]", areScaled);
        weight(experts + "down_proj", {3, 133, 70, 128, 128, 2}, "[3,133,70]",
               "[3,2,1]", areScaled);
      }
      for (unsigned expert = 0; expert < 3; ++expert) {
        const std::string one = experts + std::to_string(expert) + ".";
        if (areStacked) {
          for (const char *name : {"gate_proj", "up_proj", "down_proj"})
            for (const char *end : {".weight", ".weight_scale_inv"})
              sources.erase(one + name + end);
          continue;
        }
        weight(one + "gate_proj.weight", {1, 70, 133, 128, 128, expert},
               "[70,133]", "[1,2]", areScaled);
        weight(one + "up_proj.weight", {1, 70, 133, 128, 128, expert + 9},
               "[70,133]", "[1,2]", areScaled);
        weight(one + "down_proj.weight", {1, 133, 70, 128, 128, expert + 18},
               "[133,70]", "[2,1]", areScaled);
      }
      std::vector<float> values = load(sources);
      ASSERT_FALSE(values.empty()) << error.text;
      EXPECT_EQ(report.scaled, areScaled ? 9 : 0);
      EXPECT_EQ(report.tensors, 3 + 9);
      if (areScaled)
        EXPECT_TRUE(values == expected) << areStacked;
      expected = std::move(values);
    }
  }
}

// Sizes of blocks, types of elements and scales, a scale for the whole matrix.
TEST_F(Weights, ScalesHaveBlocksOfOtherSizes) {
  auto configure = [&](const std::string &size) {
    folder.write("config.json", "{\"quantization_config\": {\"quant_method\": "
                                "\"fp8\"" +
                                    size + "}}");
  };
  const std::string name = "h.0.attn.c_attn.weight";
  configure(", \"weight_block_size\": [3, 4]");
  Scaled matrix(1, 4, 6, 3, 4, 5);
  sources[name] = {"F32", "[4,6]", floats(matrix.values)};
  std::vector<float> expected = load(sources);
  sources[name] = {"F8_E4M3", "[4,6]", matrix.bytes};
  sources[name + "_scale_inv"] = {"F32", "[2,2]", floats(matrix.scales)};
  EXPECT_EQ(load(sources), expected) << error.text;
  // Blocks of 128 are what is meant without a word.
  configure("");
  EXPECT_EQ(refusal(sources),
            "tensor 'h.0.attn.c_attn.weight_scale_inv' of 'w.safetensors' "
            "needs the shape [1, 1], a scale for each block of "
            "'h.0.attn.c_attn.weight', but got [2, 2]");
  // One for all, however it is written, and powers of two.
  configure(", \"weight_block_size\": null");
  matrix.bytes = "";
  matrix.values.clear();
  for (int i = 0; i < 24; ++i) {
    const int code = i * 10 + i / 12 * 3; // E5M2, without its infinities.
    matrix.bytes += char(code & 0xFB);
    const int bits = code & 0xFB, exponent = bits >> 2 & 31;
    const double size = exponent ? std::ldexp(4 + (bits & 3), exponent - 17)
                                 : std::ldexp(bits & 3, -16);
    matrix.values.push_back(float((bits & 0x80 ? -size : size) / 4));
  }
  sources.erase(name + "_scale_inv");
  sources[name] = {"F32", "[4,6]", floats(matrix.values)};
  expected = load(sources);
  ASSERT_FALSE(expected.empty()) << error.text;
  sources[name] = {"F8_E5M2", "[4,6]", matrix.bytes};
  for (const char *shape : {"[]", "[1]", "[1,1]"}) {
    sources[name + "_scale_inv"] = {"BF16", shape, bfloats({0.25})};
    EXPECT_EQ(load(sources), expected) << shape << error.text;
    sources[name + "_scale_inv"] = {"F8_E8M0", shape, "\x7D"};
    EXPECT_EQ(load(sources), expected) << shape << error.text;
  }
}

TEST_F(Weights, ScalesAreRefused) {
  const std::string name = "h.0.attn.c_attn.weight";
  const std::string scales = name + "_scale_inv";
  sources[name] = {"F8_E4M3", "[4,6]", std::string(24, '\x38')};
  EXPECT_EQ(refusal(sources),
            "tensor 'h.0.attn.c_attn.weight' of 'w.safetensors' is F8_E4M3, "
            "whose values need scales, but there is no tensor "
            "'h.0.attn.c_attn.weight_scale_inv'");
  sources[scales] = {"F32", "[1,1]", floats({2})};
  EXPECT_FALSE(load(sources).empty()) << error.text;
  sources[scales] = {"I32", "[1,1]", floats({2})};
  EXPECT_EQ(refusal(sources),
            "tensor 'h.0.attn.c_attn.weight_scale_inv' of 'w.safetensors' "
            "needs to be F32, BF16, F16 or F8_E8M0, but got I32");
  sources[scales] = {"F32", "[1,1]", floats({NAN})};
  EXPECT_EQ(refusal(sources),
            "tensor 'h.0.attn.c_attn.weight' of 'w.safetensors' is nan at "
            "[0, 0] with element 0 of 'h.0.attn.c_attn.weight_scale_inv'; "
            "weights need to be finite");
  sources[scales] = {"F32", "[1,1]", floats({2})};
  sources[name].bytes[15] = '\x7F';
  EXPECT_EQ(refusal(sources),
            "tensor 'h.0.attn.c_attn.weight' of 'w.safetensors' is nan at "
            "[2, 3] with element 0 of 'h.0.attn.c_attn.weight_scale_inv'; "
            "weights need to be finite");
  // A scale of what needs none, or of nothing.
  sources[name] = {"F32", "[4,6]", floats(weight)};
  EXPECT_EQ(refusal(sources),
            "'w.safetensors' has the tensor "
            "'h.0.attn.c_attn.weight_scale_inv', which the model has not");
  sources.erase(scales);
  // A vector has no blocks.
  sources["h.0.attn.c_attn.bias"] = {"F8_E4M3", "[6]", std::string(6, '\x38')};
  sources["h.0.attn.c_attn.bias_scale_inv"] = {"F32", "[1]", floats({2})};
  EXPECT_EQ(refusal(sources),
            "tensor 'h.0.attn.c_attn.bias' of 'w.safetensors' needs two "
            "dimensions or more, as it has scales of blocks, but got the shape "
            "[6]");
}

// A head and an embedding are compared by their values.
TEST_F(Weights, ATiedPairMayBeScaled) {
  sources["wte.weight"] = {"F8_E4M3", "[5,4]", std::string(20, '\x38')};
  sources["wte.weight_scale_inv"] = {"F32", "[1,1]", floats({1.5})};
  sources["lm_head.weight"] = {"F32", "[5,4]",
                               floats(std::vector<float>(20, 1.5))};
  EXPECT_FALSE(load(sources).empty()) << error.text;
  sources["lm_head.weight"] = {"F8_E4M3", "[5,4]", std::string(20, '\x30')};
  sources["lm_head.weight_scale_inv"] = {"F32", "[1,1]", floats({3})};
  EXPECT_FALSE(load(sources).empty()) << error.text;
  sources["lm_head.weight_scale_inv"] = {"F32", "[1,1]", floats({2})};
  EXPECT_EQ(refusal(sources),
            "'lm_head.weight' of 'w.safetensors' differs from 'wte.weight', "
            "first at element 0: 1 and 1.5; but the model has them tied "
            "(tie_word_embeddings)");
}

// An error has names of both sides, some of each.
TEST_F(Weights, MissingTensorsAreToldBesideThoseThatAreThere) {
  std::map<std::string, Source> others;
  for (const char *name : {"a.weight", "b.weight", "c", "d", "e"})
    others[name] = {"F32", "[1]", floats({1})};
  EXPECT_EQ(refusal(others),
            "'w.safetensors' has no tensor 'transformer.h.0.attn.c_attn.bias', "
            "'transformer.h.0.attn.c_attn.weight', 'transformer.wte.weight'; "
            "it has 'a.weight', 'b.weight', 'c', 'd' and 1 more, which the "
            "model has not");
  std::map<std::string, Source> part;
  part["module.h.0.attn.c_attn.bias"] = sources["h.0.attn.c_attn.bias"];
  part["module.wte.weight"] = sources["wte.weight"];
  EXPECT_EQ(refusal(part),
            "'w.safetensors' has no tensor "
            "'transformer.h.0.attn.c_attn.weight' behind the prefix 'module.'");
}

TEST_F(Weights, Refusals) {
  auto with = [&](const char *name, Source source) {
    auto changed = sources;
    changed[name] = std::move(source);
    return refusal(changed);
  };
  auto without = sources;
  without.erase("wte.weight");
  EXPECT_EQ(refusal(without),
            "'w.safetensors' has no tensor 'transformer.wte.weight'");
  EXPECT_EQ(refusal({}),
            "'w.safetensors' has no tensor 'transformer.h.0.attn.c_attn.bias', "
            "'transformer.h.0.attn.c_attn.weight', 'transformer.wte.weight'");
  auto more = sources;
  for (const char *name : {"u", "v", "w", "x", "y", "z"})
    more[name] = {"U8", "[0]", ""};
  EXPECT_EQ(refusal(more), "'w.safetensors' has the tensors 'u', 'v', 'w', 'x' "
                           "and 2 more, which the model has not");
  EXPECT_EQ(
      with("wte.weight", {"F32", "[4,5]", floats(wte)}),
      "tensor 'wte.weight' of 'w.safetensors' needs the shape [5, 4], but "
      "got [4, 5]");
  EXPECT_EQ(with("h.0.attn.c_attn.bias", {"F32", "[3]", floats({1, 2, 3})}),
            "tensor 'h.0.attn.c_attn.bias' of 'w.safetensors' needs the shape "
            "[6], but got [3]");
  EXPECT_EQ(with("wte.weight", {"I32", "[5,4]", floats(wte)}),
            "tensor 'wte.weight' of 'w.safetensors' needs to be F32, BF16 or "
            "F16, or F8_E4M3 or F8_E5M2 with scales, but got I32");
  std::vector<float> bad = weight;
  bad[15] = NAN; // Row 2, column 3: the first of the second part.
  EXPECT_EQ(with("h.0.attn.c_attn.weight", {"F32", "[4,6]", floats(bad)}),
            "tensor 'h.0.attn.c_attn.weight' of 'w.safetensors' is nan at "
            "[2, 3]; weights need to be finite");
  bad = wte;
  bad[19] = -INFINITY;
  EXPECT_EQ(with("wte.weight", {"BF16", "[5,4]", bfloats(bad)}),
            "tensor 'wte.weight' of 'w.safetensors' is -inf at [4, 3]; weights "
            "need to be finite");
  bad = wte;
  bad[7] = 3;
  EXPECT_EQ(with("lm_head.weight", {"F32", "[5,4]", floats(bad)}),
            "'lm_head.weight' of 'w.safetensors' differs from 'wte.weight', "
            "first at element 7: 3 and 0.875; but the model has them tied "
            "(tie_word_embeddings)");
  EXPECT_EQ(with("lm_head.weight", {"F32", "[4,5]", floats(wte)}),
            "'lm_head.weight' needs the shape of 'wte.weight', [5, 4], since "
            "the model has them tied (tie_word_embeddings), but got [4, 5]");
  // In another type the same values are still equal.
  auto tied = sources;
  tied["lm_head.weight"] = {"F16", "[5,4]", halves(wte)};
  EXPECT_FALSE(load(tied).empty()) << error.text;
}

TEST_F(Weights, OtherFilesAreNamed) {
  auto refusalOf = [&](const std::string &name, const std::string &bytes) {
    EXPECT_TRUE(load(folder.write(name, bytes)).empty());
    std::string text = error.text;
    for (size_t at; (at = text.find(folder.path)) != text.npos;)
      text.erase(at, folder.path.size());
    return text;
  };
  EXPECT_EQ(refusalOf("a.safetensors",
                      "version https://git-lfs.github.com/spec/v1\noid x\n"),
            "'a.safetensors' is a Git LFS pointer, not the file itself; git "
            "lfs pull fetches that");
  EXPECT_EQ(refusalOf("a.gguf", "GGUF\x03"),
            "'a.gguf' is a GGUF file, but only safetensors is read");
  EXPECT_EQ(
      refusalOf("a.bin", "PK\x03\x04 "),
      "'a.bin' is a zip file, as PyTorch and NumPy (.npz) write, but only "
      "safetensors is read");
  EXPECT_EQ(refusalOf("a.h5", "\x89HDF\r\n\x1A\n"),
            "'a.h5' is an HDF5 file, but only safetensors is read");
  // As pickle.dump and joblib write.
  using namespace std::string_literals;
  for (const std::string &bytes :
       {"\x80\x02}q\x00X\x01\x00\x00\x00"
        "aq\x01K\x01s."s,
        "\x80\x03]q\x00(K\x01K\x02K\x03e."s,
        "\x80\x04\x95\x0a\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01"
        "a\x94K\x01s."s,
        "\x80\x05\x95\x0a\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01"
        "a\x94K\x01s."s})
    EXPECT_EQ(refusalOf("model.safetensors", bytes),
              "'model.safetensors' is pickled Python objects, but only "
              "safetensors is read");
  EXPECT_EQ(refusalOf("config.json", "{}"),
            "'config.json' is no weights file; name its folder, or the "
            ".safetensors file");
  std::filesystem::remove(folder.path + "model.safetensors");
  folder.write("pytorch_model.bin", "");
  EXPECT_TRUE(load(folder.path).empty());
  EXPECT_NE(std::string(error.text)
                .find("but has neither; pytorch_model.bin is not read, only "
                      "safetensors is"),
            std::string::npos)
      << error.text;
  // One of several files.
  auto part = sources;
  part.erase("wte.weight");
  folder.write("model.safetensors.index.json", "{}");
  EXPECT_EQ(refusal(part),
            "'w.safetensors' has no tensor 'transformer.wte.weight'; all files "
            "together are 'model.safetensors.index.json'");
  // A folder of checkpoints.
  Folder run;
  std::filesystem::create_directory(run.path + "step-00000002");
  EXPECT_TRUE(load(run.path).empty());
  EXPECT_NE(
      std::string(error.text)
          .find("; its newest checkpoint is '" + run.path + "step-00000002'"),
      std::string::npos)
      << error.text;
}

TEST_F(Weights, AHeadOfItsOwn) {
  add("head", "lm_head.weight", 0, 1, {5, 4});
  model.states = states.data();
  model.numStates = int32_t(states.size());
  EXPECT_EQ(refusal(sources),
            "'w.safetensors' has no tensor 'lm_head.weight'; weights that are "
            "tied need a model with tie_word_embeddings: true");
  auto swapped = sources;
  swapped["lm_head.weight"] = sources["wte.weight"];
  swapped.erase("wte.weight");
  EXPECT_EQ(refusal(swapped),
            "'w.safetensors' has no tensor 'transformer.wte.weight'");
  std::vector<float> other(20, 7.0f);
  auto full = sources;
  full["lm_head.weight"] = {"F32", "[5,4]", floats(other)};
  std::vector<float> values = load(full);
  ASSERT_EQ(values.size(), 70u) << error.text;
  EXPECT_EQ(values[69], 7.0f);
}

// More rows than one thread takes at a time, and which of many errors is told.
TEST_F(Weights, TheFirstBadElementOfALargeTensor) {
  states.clear();
  end = 0;
  add("wte", "wte.weight", 0, 1, {3000, 1000});
  model.states = states.data();
  model.numStates = 1;
  std::vector<float> large(3'000'000);
  for (size_t i = 0; i < large.size(); ++i)
    large[i] = float(i % 251);
  std::map<std::string, Source> one = {
      {"wte.weight", {"F32", "[3000,1000]", floats(large)}}};
  EXPECT_EQ(load(one), large);
  for (size_t at : {2'999'999u, 2'000'500u, 1'000'001u})
    large[at] = NAN;
  one["wte.weight"].bytes = floats(large);
  EXPECT_EQ(refusal(one), "tensor 'wte.weight' of 'w.safetensors' is nan at "
                          "[1000, 1]; weights need to be finite");
}

// Tensors that are larger than what a thread copies at a time.
TEST_F(Weights, AreCopiedInPieces) {
  states.clear();
  end = 0;
  for (const char *name : {"q", "k", "v"})
    add(name, "qkv", name[0] == 'v' ? 2 : name[0] == 'k', 3, {700, 1024});
  add("wte", "wte", 0, 1, {2500, 999});
  add("bias", "bias", 0, 1, {3});
  model.states = states.data();
  model.numStates = int32_t(states.size());
  Arena arena;
  ThreadPool pool;
  ModelTensors tensors(model);
  ASSERT_TRUE(arena.map(end, error) && pool.start(3, error) &&
              tensors.find(error));
  for (int64_t i = 0; i < end / 4; ++i)
    arena.at<float>(0)[i] = float(i);
  std::vector<float> copy(size_t(end) / 4, -1);
  // By name: bias, qkv, wte.
  const int64_t sizes[] = {3, 3 * 700 * 1024, 2500 * 999};
  float *places[] = {copy.data(), copy.data() + 3,
                     copy.data() + 3 + 3 * 700 * 1024};
  Transport alone;
  List<TensorSlice> whole;
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(whole.push({i, 0, sizes[i], 0}));
  ASSERT_TRUE(tensors.gather(whole, copy.data(), arena, alone, pool, error))
      << error.text;
  const float first = 3 * 700 * 1024, last = first + 2500 * 999;
  int64_t wrong = 0;
  for (int64_t i = 0; i < 3; ++i)
    wrong += places[0][i] != last + float(i);
  for (int64_t i = 0; i < 3 * 700 * 1024; ++i) {
    int64_t row = i / 3072, column = i % 3072;
    wrong += places[1][i] !=
             float(column / 1024 * 700 * 1024 + row * 1024 + column % 1024);
  }
  for (int64_t i = 0; i < 2500 * 999; ++i)
    wrong += places[2][i] != first + float(i);
  EXPECT_EQ(wrong, 0);
  // From the middle of a part to that of another, some rows further.
  for (auto [from, to] : {std::pair<int64_t, int64_t>(1000, 1500),
                          {3000, 3100},
                          {700 * 3072 - 5000, 700 * 3072},
                          {17, 700 * 3072 - 1}}) {
    List<TensorSlice> slice;
    std::vector<float> some(size_t(to - from), -1), read;
    ASSERT_TRUE(slice.push({1, from, to, 0}) &&
                tensors.gather(slice, some.data(), arena, alone, pool, error));
    EXPECT_TRUE(std::equal(some.begin(), some.end(), places[1] + from));
    tensors.forEachRun(slice[0], arena, [&](const void *bytes, size_t count) {
      auto *values = static_cast<const float *>(bytes);
      read.insert(read.end(), values, values + count / 4);
      return true;
    });
    EXPECT_EQ(read, some);
  }
}

// A file is full when another tensor would be more than the limit.
TEST_F(Weights, ShardsAreAsLargeAsTheyMayBe) {
  ASSERT_EQ(load(sources).size(), 50u) << error.text;
  Arena arena;
  ThreadPool pool;
  ModelTensors tensors(model);
  ASSERT_TRUE(arena.map(end, error) && pool.start(1, error) &&
              tensors.find(error));
  // 24 bytes, 96 bytes and 80 bytes.
  const std::pair<int64_t, int> cases[] = {{1, 3},   {116, 3}, {119, 3},
                                           {120, 2}, {176, 2}, {196, 2},
                                           {199, 2}, {200, 1}};
  for (auto [limit, files] : cases) {
    std::string path = folder.path + std::to_string(limit);
    SaveSettings settings = {path.c_str(), 0, 1, true, {}};
    Transport ranks;
    Error refused;
    TensorWriter tensorWriter(model, tensors, arena, pool, ranks);
    CheckpointWriter writer(model, tensors, tensorWriter);
    ASSERT_TRUE(writer.start(settings, nullptr, 0, error) &&
                tensorWriter.start(path.c_str(), limit, {}, error) &&
                writer.save({}, refused, error) && writer.wait(error))
        << error.text;
    ASSERT_STREQ(refused.text, "");
    ASSERT_FALSE(writer.takeFailure(error)) << error.text;
    int found = 0;
    for (auto &entry :
         std::filesystem::directory_iterator(path + "/step-00000000"))
      found += entry.path().filename().string().rfind("model", 0) == 0 &&
               entry.path().extension() == ".safetensors";
    EXPECT_EQ(found, files) << limit;
  }
}

// The parts go out as they came in, in as many files as there have to be.
TEST_F(Weights, ShardsAreWrittenAndReadBack) {
  std::vector<float> values = load(sources);
  ASSERT_EQ(values.size(), 50u) << error.text;
  Arena arena;
  ThreadPool pool;
  ModelTensors tensors(model);
  ASSERT_TRUE(arena.map(end, error) && pool.start(1, error) &&
              tensors.find(error));
  memcpy(arena.at<float>(0), values.data(), size_t(end));
  std::string path;
  for (bool isCopy : {true, false}) {
    path = folder.path + (isCopy ? "copied" : "out");
    SaveSettings settings = {path.c_str(), 0, 1, true, {100}};
    SaveRoom room;
    room.isCopy = isCopy;
    Transport ranks;
    Error refused;
    TensorWriter tensorWriter(model, tensors, arena, pool, ranks);
    CheckpointWriter writer(model, tensors, tensorWriter);
    ASSERT_TRUE(writer.start(settings, nullptr, 0, error) &&
                tensorWriter.start(path.c_str(), 100, room, error))
        << error.text;
    EXPECT_EQ(tensorWriter.source().copyBytes(), isCopy ? end : 0);
    RunState state;
    state.step = 7;
    ASSERT_TRUE(writer.save(state, refused, error) && writer.wait(error))
        << error.text;
    SaveReport saved;
    EXPECT_TRUE(writer.takeReport(saved));
    EXPECT_EQ(saved.step, 7);
    EXPECT_FALSE(writer.takeReport(saved));
    // Without a wait between, one waits for the other.
    state.step = 8;
    ASSERT_TRUE(writer.save(state, refused, error));
    state.step = 9;
    ASSERT_TRUE(writer.save(state, refused, error) && writer.wait(error));
    EXPECT_STREQ(refused.text, "");
    EXPECT_FALSE(writer.takeFailure(error)) << error.text;
    EXPECT_EQ(std::string(writer.lastComplete()), path + "/step-00000009");
    EXPECT_TRUE(std::filesystem::exists(path + "/step-00000008"));
  }
  path += "/step-00000007";
  // 24 bytes; 96 bytes; 80 bytes.
  EXPECT_EQ(readFile(path + "/model.safetensors.index.json"),
            "{\n  \"metadata\": {\n    \"total_size\": 200\n  },\n"
            "  \"weight_map\": {\n"
            "    \"transformer.h.0.attn.c_attn.bias\": "
            "\"model-00001-of-00003.safetensors\",\n"
            "    \"transformer.h.0.attn.c_attn.weight\": "
            "\"model-00002-of-00003.safetensors\",\n"
            "    \"transformer.wte.weight\": "
            "\"model-00003-of-00003.safetensors\"\n  }\n}\n");
  EXPECT_EQ(load(path), values) << error.text;
  EXPECT_EQ(report.files, 3);
}

TEST_F(Weights, DamagedModelsAreRefused) {
  states[2].part = 0;
  ModelTensors tensors(model);
  EXPECT_FALSE(tensors.find(error));
  EXPECT_STREQ(error.text,
               "damaged model: 'transformer.h.0.attn.c_attn.weight' needs 2 "
               "parts of one shape, but part 1 is missing or another");
}
