//===- BF16Test.cpp - Kernels that read and write bf16 ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>

using namespace reprise::codegen;
using Halves = std::vector<uint16_t>;

/// To nearest, ties to even; NaN aside.
static uint16_t rounded(float number) {
  uint32_t word;
  std::memcpy(&word, &number, 4);
  return uint16_t((word + 0x7FFF + (word >> 16 & 1)) >> 16);
}

static float extended(uint16_t half) {
  uint32_t word = uint32_t(half) << 16;
  float number;
  std::memcpy(&number, &word, 4);
  return number;
}

static Halves roundedAll(const Floats &numbers) {
  Halves halves;
  for (float number : numbers)
    halves.push_back(rounded(number));
  return halves;
}

/// y = x + s of n elements, y in place of what %old has: as an update makes a
/// working copy beside a parameter.
static std::string addAndRound(int64_t n) {
  std::string f32 = "tensor<" + std::to_string(n) + "xf32>";
  std::string bf16 = "tensor<" + std::to_string(n) + "xbf16>";
  return "func.func private @k(%x: " + bf16 + ", %s: " + f32 +
         ", %old: " + bf16 + " {rt.in_place = 1 : i64}) -> (" + f32 + ", " +
         bf16 +
         R"() attributes {rt.kernel} {
  %e0 = tensor.empty() : )" +
         f32 + "\n  %e1 = tensor.empty() : " + bf16 + R"(
  %y:2 = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%x, %s : )" +
         bf16 + ", " + f32 + ") outs(%e0, %e1 : " + f32 + ", " + bf16 + R"() {
  ^bb0(%a: bf16, %b : f32, %o0: f32, %o1: bf16):
    %w = arith.extf %a : bf16 to f32
    %t = arith.addf %w, %b : f32
    %r = arith.truncf %t : f32 to bf16
    linalg.yield %t, %r : f32, bf16
  } -> ()" +
         f32 + ", " + bf16 + ")\n  return %y#0, %y#1 : " + f32 + ", " + bf16 +
         "\n}";
}

TEST(BF16, IsReadAndRoundedForEveryRemainder) {
  for (int64_t n : {1, 15, 16, 17, 4095, 4097, 10000})
    for (bool wide : widths()) {
      KernelRunner runner(addAndRound(n), wide);
      Halves x = roundedAll(randomFloats(n, n)), y(n + 1, 0x4321);
      Floats s = randomFloats(n, n + 1), sum(n + 1, -7);
      x[0] = 0x3F80,
      s[0] = 0x1p-8f; // In the middle of 1 and what is next to it.
      runner.run("k", {x.data(), s.data(), y.data(), sum.data(), y.data()});
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(sum[i], extended(x[i]) + s[i]) << i;
        ASSERT_EQ(y[i], rounded(sum[i])) << i;
      }
      EXPECT_EQ(y[0], 0x3F80);
      EXPECT_EQ(sum[n], -7) << "nothing is written beyond the end";
      EXPECT_EQ(y[n], 0x4321) << "nothing is written beyond the end";
    }
}

/// As an update makes it of a parameter that is a matrix, y = x + s, packed for
/// GEMMs; and beside it one that is none.
static std::string addAndPack(int64_t rows, int64_t cols) {
  auto type = [](std::vector<int64_t> shape, const char *element) {
    std::string text = "tensor<";
    for (int64_t size : shape)
      text += std::to_string(size) + "x";
    return text + element + ">";
  };
  std::string matrix = type({rows, cols}, "f32"),
              flat = type({rows * cols}, "f32"),
              rounded = type({rows * cols}, "bf16"),
              roundedMatrix = type({rows, cols}, "bf16"),
              packed = type({cols / 32, rows / 2, 32, 2}, "bf16");
  return "func.func private @k(%x: " + matrix +
         " {rt.in_place = 0 : i64}, %s: tensor<f32>, %old: " + packed +
         " {rt.in_place = 1 : i64}, %z: tensor<5xf32>) -> (" + matrix + ", " +
         packed + R"(, tensor<5xf32>) attributes {rt.kernel} {
  %fx = tensor.collapse_shape %x [[0, 1]] : )" +
         matrix + " into " + flat + "\n  %e0 = tensor.empty() : " + flat +
         "\n  %e1 = tensor.empty() : " + rounded + R"(
  %y:2 = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%fx, %s : )" +
         flat + ", tensor<f32>) outs(%e0, %e1 : " + flat + ", " + rounded +
         R"() {
  ^bb0(%a: f32, %b : f32, %o0: f32, %o1: bf16):
    %t = arith.addf %a, %b : f32
    %r = arith.truncf %t : f32 to bf16
    linalg.yield %t, %r : f32, bf16
  } -> ()" +
         flat + ", " + rounded + R"()
  %e2 = tensor.empty() : tensor<5xf32>
  %z2 = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%z : tensor<5xf32>) outs(%e2 : tensor<5xf32>) {
  ^bb0(%a: f32, %o0: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<5xf32>
  %shape = tensor.empty() : )" +
         packed + "\n  %m0 = tensor.expand_shape %y#0 [[0, 1]] output_shape [" +
         std::to_string(rows) + ", " + std::to_string(cols) + "] : " + flat +
         " into " + matrix +
         "\n  %m1 = tensor.expand_shape %y#1 [[0, 1]] output_shape [" +
         std::to_string(rows) + ", " + std::to_string(cols) + "] : " + rounded +
         " into " + roundedMatrix +
         "\n  %w = linalg.pack %m1 outer_dims_perm = [1, 0] inner_dims_pos = "
         "[1, 0] inner_tiles = [32, 2] into %shape : " +
         roundedMatrix + " -> " + packed +
         "\n  return %m0, %w, %z2 : " + matrix + ", " + packed +
         ", tensor<5xf32>\n}";
}

TEST(BF16, IsPackedAsGemmsReadIt) {
  for (auto [rows, cols] : std::vector<std::pair<int64_t, int64_t>>{
           {32, 32}, {96, 64}, {64, 96}, {160, 1056}, {32, 4128}})
    for (bool wide : widths()) {
      KernelRunner runner(addAndPack(rows, cols), wide);
      const int64_t n = rows * cols;
      Floats x = randomFloats(n, n), s = {0.25f}, z(5, 1), z2(6, -7);
      Floats sum = x;
      sum.push_back(-7);
      // Whole vectors go past the caches to where buffers begin: cache lines.
      std::vector<uint16_t> room(n + 64, 0x4321);
      auto *y = reinterpret_cast<uint16_t *>(
          (reinterpret_cast<uintptr_t>(room.data()) + 63) / 64 * 64);
      runner.run("k",
                 {sum.data(), s.data(), y, z.data(), sum.data(), y, z2.data()});
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c) {
          float want = x[r * cols + c] + s[0];
          ASSERT_EQ(sum[r * cols + c], want) << r << ' ' << c;
          ASSERT_EQ(
              y[((c / 32 * (rows / 2) + r / 2) * 32 + c % 32) * 2 + r % 2],
              rounded(want))
              << r << ' ' << c;
        }
      EXPECT_EQ(z2, (Floats{2, 2, 2, 2, 2, -7}));
      EXPECT_EQ(sum[n], -7) << "nothing is written beyond the end";
      EXPECT_EQ(y[n], 0x4321) << "nothing is written beyond the end";
    }
}

TEST(BF16, StaysWhatIsNoNumber) {
  for (bool wide : widths()) {
    KernelRunner runner(addAndRound(20), wide);
    Halves x(20, 0x3F80), y(20);
    Floats s(20, 1), sum(20);
    s[2] = NAN, s[3] = INFINITY, s[4] = -INFINITY, s[17] = NAN;
    x[5] = 0x7F7F, s[5] = 0x1p120f; // rounds to infinity
    runner.run("k", {x.data(), s.data(), y.data(), sum.data(), y.data()});
    EXPECT_EQ(y[2], 0x7FC0);
    EXPECT_EQ(y[3], 0x7F80);
    EXPECT_EQ(y[4], 0xFF80);
    EXPECT_EQ(y[5], 0x7F80);
    EXPECT_EQ(y[17], 0x7FC0);
    EXPECT_EQ(y[19], 0x4000);
  }
}

TEST(BF16, RowsAreAddedToATableInF32) {
  KernelRunner runner(R"(
func.func private @k(%t: tensor<5x70xf32> {rt.may_alias = 0 : i64}, %ids: tensor<2x3xi32>, %rows: tensor<2x3x70xbf16>) -> tensor<5x70xf32> attributes {rt.kernel} {
  %y = rt.scatter_add %t, %rows at %ids : (tensor<5x70xf32>, tensor<2x3x70xbf16>, tensor<2x3xi32>) -> tensor<5x70xf32>
  return %y : tensor<5x70xf32>
})");
  Floats table = randomFloats(5 * 70, 1);
  Halves rows = roundedAll(randomFloats(6 * 70, 2));
  std::vector<int32_t> ids = {4, 1, 4, 4, 0, 1};
  Floats expected = table;
  for (int r = 0; r < 6; ++r)
    for (int c = 0; c < 70; ++c)
      expected[ids[r] * 70 + c] += extended(rows[r * 70 + c]);
  Floats apart(5 * 70);
  runner.run("k", {table.data(), ids.data(), rows.data(), apart.data()}, {}, 1,
             true);
  EXPECT_EQ(apart, expected);
}
