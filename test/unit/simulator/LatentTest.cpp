//===- LatentTest.cpp - Columns of latent attention in the simulator ------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runs.h"

using namespace reprise;
using namespace reprise::simulator;

namespace {
/// Sizes of latent attention: columns of a head that are its own, that all
/// heads share, and of values.
struct Widths {
  int64_t rows, heads, own, shared, value;
};
} // namespace

static const char kText[] = R"(
func.func private @split(%x : tensor<$0x$1x$9>) -> (tensor<$0x$2x$9>, tensor<$0x$3x$9>) attributes {rt.kernel} {
  %l, %r = rt.split_columns %x : (tensor<$0x$1x$9>) -> (tensor<$0x$2x$9>, tensor<$0x$3x$9>)
  return %l, %r : tensor<$0x$2x$9>, tensor<$0x$3x$9>
}
func.func private @join(%l : tensor<$0x$2x$9>, %r : tensor<$0x$3x$9>) -> tensor<$0x$1x$9> attributes {rt.kernel} {
  %x = rt.join_columns %l, %r : (tensor<$0x$2x$9>, tensor<$0x$3x$9>) -> tensor<$0x$1x$9>
  return %x : tensor<$0x$1x$9>
}
func.func private @heads(%x : tensor<$0x$4x$9>, %s : tensor<$0x$3x$9>) -> (tensor<$0x$5x$9>, tensor<$0x$6x$9>) attributes {rt.kernel} {
  %k, %v = rt.latent_heads %x, %s heads $7 : (tensor<$0x$4x$9>, tensor<$0x$3x$9>) -> (tensor<$0x$5x$9>, tensor<$0x$6x$9>)
  return %k, %v : tensor<$0x$5x$9>, tensor<$0x$6x$9>
}
func.func private @backward(%k : tensor<$0x$5x$9>, %v : tensor<$0x$6x$9>) -> (tensor<$0x$4x$9>, tensor<$0x$3x$9>) attributes {rt.kernel} {
  %x, %s = rt.latent_heads_backward %k, %v heads $7 : (tensor<$0x$5x$9>, tensor<$0x$6x$9>) -> (tensor<$0x$4x$9>, tensor<$0x$3x$9>)
  return %x, %s : tensor<$0x$4x$9>, tensor<$0x$3x$9>
}
)";

static std::string textOf(const Widths &w, const char *element) {
  auto text = [](int64_t number) { return std::to_string(number); };
  return fill(kText, {text(w.rows), text(w.own + w.shared), text(w.own),
                      text(w.shared), text(w.heads * (w.own + w.value)),
                      text(w.heads * (w.own + w.shared)),
                      text(w.heads * w.value), text(w.heads), "", element});
}

/// Numbers as words of bf16, or as they are.
template <typename T>
static std::vector<T> values(int64_t count, uint64_t seed) {
  Floats floats = numbers(size_t(count), seed);
  if constexpr (std::is_same_v<T, float>)
    return floats;
  else
    return asBF16(floats);
}

template <typename T>
static T rounded(float value) {
  if constexpr (std::is_same_v<T, float>)
    return value;
  else
    return toBF16(value);
}
static float exact(float value) { return value; }
static float exact(uint16_t bits) { return fromBF16(bits); }

template <typename T>
static std::vector<std::vector<T>> run(const Kernels &kernels, const char *name,
                                       std::vector<std::vector<T>> inputs,
                                       std::vector<size_t> sizes) {
  std::vector<std::unique_ptr<Buffer<T>>> buffers;
  std::vector<void *> addresses;
  for (const std::vector<T> &input : inputs) {
    buffers.push_back(std::make_unique<Buffer<T>>(input));
    addresses.push_back(buffers.back()->data());
  }
  std::vector<std::vector<T>> outputs;
  for (size_t size : sizes)
    outputs.emplace_back(size, T(1));
  return runAll<T>(kernels, name, addresses, outputs);
}

template <typename T>
static void movesColumns(const Widths &w, const char *element) {
  Kernels kernels(textOf(w, element));
  auto x = values<T>(w.rows * (w.own + w.shared), 1);
  std::vector<T> left, right;
  for (int64_t r = 0, at = 0; r < w.rows; ++r) {
    for (int64_t c = 0; c < w.own; ++c)
      left.push_back(x[size_t(at++)]);
    for (int64_t c = 0; c < w.shared; ++c)
      right.push_back(x[size_t(at++)]);
  }
  auto parts = run<T>(kernels, "split", {x}, {left.size(), right.size()});
  EXPECT_EQ(parts[0], left);
  EXPECT_EQ(parts[1], right);
  EXPECT_EQ(run<T>(kernels, "join", {left, right}, {x.size()})[0], x);
}

template <typename T>
static void makesHeads(const Widths &w, const char *element) {
  Kernels kernels(textOf(w, element));
  auto x = values<T>(w.rows * w.heads * (w.own + w.value), 1);
  auto shared = values<T>(w.rows * w.shared, 2);
  std::vector<T> keys, ofValues;
  for (int64_t r = 0, at = 0; r < w.rows; ++r)
    for (int64_t h = 0; h < w.heads; ++h) {
      for (int64_t c = 0; c < w.own; ++c)
        keys.push_back(x[size_t(at++)]);
      for (int64_t c = 0; c < w.shared; ++c)
        keys.push_back(shared[size_t(r * w.shared + c)]);
      for (int64_t c = 0; c < w.value; ++c)
        ofValues.push_back(x[size_t(at++)]);
    }
  auto made =
      run<T>(kernels, "heads", {x, shared}, {keys.size(), ofValues.size()});
  EXPECT_EQ(made[0], keys);
  EXPECT_EQ(made[1], ofValues);

  // Backward each goes where it came from, and what is shared is a sum.
  std::vector<T> sums;
  for (int64_t r = 0; r < w.rows; ++r)
    for (int64_t c = 0; c < w.shared; ++c) {
      float sum = 0;
      for (int64_t h = 0; h < w.heads; ++h) {
        T term =
            keys[size_t((r * w.heads + h) * (w.own + w.shared) + w.own + c)];
        sum = h ? sum + exact(term) : exact(term);
      }
      sums.push_back(rounded<T>(sum));
    }
  auto gradients =
      run<T>(kernels, "backward", {keys, ofValues}, {x.size(), sums.size()});
  EXPECT_EQ(gradients[0], x);
  EXPECT_EQ(gradients[1], sums);
}

/// Of widths that are whole vectors, in part, and of none.
TEST(Latent, AllWidths) {
  for (const Widths &w : {Widths{5, 3, 16, 8, 24}, Widths{37, 4, 6, 2, 10},
                          Widths{11, 2, 5, 3, 7}, Widths{1, 1, 1, 1, 1}}) {
    movesColumns<float>(w, "f32");
    movesColumns<uint16_t>(w, "bf16");
    makesHeads<float>(w, "f32");
    makesHeads<uint16_t>(w, "bf16");
  }
}
