//===- LoopsTest.cpp - Kernels of loops in the simulator --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runs.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>

using namespace reprise;
using namespace reprise::simulator;

TEST(Flat, DrawsTheWordsOfEachElement) {
  for (int64_t size : {1, 3, 1024, 4102}) {
    Kernels kernels(fill(R"(
func.func private @words() -> tensor<$0xi32> attributes {rt.kernel} {
  %low = arith.constant 7 : i32
  %high = arith.constant 9 : i32
  %step = arith.constant 11 : i32
  %id = rt.stream 0
  %e = tensor.empty() : tensor<$0xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    outs(%e : tensor<$0xi32>) {
  ^bb0(%out: i32):
    %i = linalg.index 0 : index
    %w = rt.random_word %i key %low, %high step %step micro_batch %low stream %id
    linalg.yield %w : i32
  } -> tensor<$0xi32>
  return %y : tensor<$0xi32>
})",
                         {std::to_string(size)}));
    auto words = runAll<uint32_t>(kernels, "words", {},
                                  {std::vector<uint32_t>(size)}, {5})[0];
    for (int64_t i = 0; i < size; ++i)
      ASSERT_EQ(words[i], reprisePhilox(7 | 9ull << 32, 11, 7, 5, i))
          << i << " of " << size;
  }
}

/// Within a few units in the last place; where they end, as they should.
TEST(Flat, Functions) {
  Floats x;
  for (float value = -110; value < 95; value += 0.05f)
    x.push_back(value);
  for (float value = 1e-30f; value < 100; value *= 1.7f)
    x.insert(x.end(), {value, -value});
  x.insert(x.end(), {0, INFINITY, -INFINITY, NAN, 100, 1e30f});
  struct {
    const char *name;
    double (*function)(double);
    double tolerance;
  } functions[] = {{"exp", std::exp, 3e-7},   {"exp2", std::exp2, 3e-7},
                   {"log", std::log, 3e-7},   {"erf", std::erf, 5e-7},
                   {"sqrt", std::sqrt, 1e-7}, {"log1p", std::log1p, 5e-7}};
  for (auto [name, function, tolerance] : functions) {
    Kernels kernels(fill(R"(
func.func private @f(%x: tensor<$0xf32>) -> tensor<$0xf32> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<$0xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%x : tensor<$0xf32>) outs(%e : tensor<$0xf32>) {
  ^bb0(%a: f32, %out: f32):
    %r = math.$1 %a : f32
    linalg.yield %r : f32
  } -> tensor<$0xf32>
  return %y : tensor<$0xf32>
})",
                         {std::to_string(x.size()), name}));
    Buffer<float> in(x);
    Floats y = runAll<float>(kernels, "f", {in.data()}, {Floats(x.size())})[0];
    for (size_t i = 0; i < x.size(); ++i) {
      double expected = function(x[i]);
      if (std::isnan(expected))
        ASSERT_TRUE(std::isnan(y[i])) << name << "(" << x[i] << ")";
      else if (std::abs(expected) > 3.4e38)
        ASSERT_EQ(y[i], expected > 0 ? INFINITY : -INFINITY)
            << name << "(" << x[i] << ")";
      else
        ASSERT_NEAR(y[i], expected, tolerance * std::abs(expected) + 1.2e-38)
            << name << "(" << x[i] << ")";
    }
  }
}

/// Each row divided by the root of its squares' sum, which is a result too.
static const char *const kNormalize = R"(
func.func private @normalize(%x: tensor<$0x$1x$2> {rt.may_alias = 0 : i64}) -> (tensor<$0x$1x$2>, tensor<$0xf32>) attributes {rt.kernel} {
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<$0xf32>
  %e = tensor.empty() : tensor<$0x$1x$2>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<$0xf32>) -> tensor<$0xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<$0x$1x$2>) outs(%z : tensor<$0xf32>) {
  ^bb0(%a: $2, %o: f32):
    $3
    %q = arith.mulf %f, %f : f32
    %t = arith.addf %o, %q : f32
    linalg.yield %t : f32
  } -> tensor<$0xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
    ins(%x, %s : tensor<$0x$1x$2>, tensor<$0xf32>) outs(%e : tensor<$0x$1x$2>) {
  ^bb0(%a: $2, %b: f32, %o: $2):
    $3
    %n = math.sqrt %b : f32
    %t = arith.divf %f, %n : f32
    $4
    linalg.yield %r : $2
  } -> tensor<$0x$1x$2>
  return %y, %s : tensor<$0x$1x$2>, tensor<$0xf32>
})";

/// One thread, part of a warp, a warp, several, a loop; whole or not.
TEST(Rows, AreReducedWhateverTheirLength) {
  int64_t rows = 5;
  for (int64_t cols :
       {1, 7, 24, 128, 768, 1600, 2400, 4096, 6000, 24000, 24006, 50257}) {
    SCOPED_TRACE(cols);
    Kernels kernels(fill(kNormalize, {"5", std::to_string(cols), "f32",
                                      "%f = arith.addf %a, %zero : f32",
                                      "%r = arith.addf %t, %zero : f32"}));
    Floats x = numbers(rows * cols, cols);
    auto results =
        runAll<float>(kernels, "normalize", {nullptr}, {x, Floats(rows)});
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t c = 0; c < cols; ++c)
        sum += double(x[r * cols + c]) * x[r * cols + c];
      ASSERT_NEAR(results[1][r], sum, 1e-6 * sum);
      for (int64_t c = 0; c < cols; ++c)
        ASSERT_NEAR(results[0][r * cols + c], x[r * cols + c] / std::sqrt(sum),
                    2e-6);
    }
  }
}

TEST(Rows, OfBF16) {
  int64_t rows = 5;
  for (int64_t cols : {20, 96, 2048, 14336}) {
    SCOPED_TRACE(cols);
    Kernels kernels(fill(kNormalize, {"5", std::to_string(cols), "bf16",
                                      "%f = arith.extf %a : bf16 to f32",
                                      "%r = arith.truncf %t : f32 to bf16"}));
    Floats x = numbers(rows * cols, cols);
    Buffer<uint16_t> in(asBF16(x)), out(x.size());
    Buffer<float> sums(rows);
    ASSERT_EQ(kernels.run("normalize", {in.data(), out.data(), sums.data()}),
              "");
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t c = 0; c < cols; ++c)
        sum += double(x[r * cols + c]) * x[r * cols + c];
      ASSERT_NEAR(sums.values()[r], sum, 1e-6 * sum);
      for (int64_t c = 0; c < cols; ++c) {
        double expected = x[r * cols + c] / std::sqrt(sum);
        ASSERT_NEAR(fromBF16(out.values()[r * cols + c]), expected,
                    0.005 * std::abs(expected));
      }
    }
  }
}

/// A sum and a norm in one kernel have the bits of two, whatever a row's layout
/// is: a warp, several, a loop.
TEST(Rows, JoinedAsApart) {
  struct Case {
    int64_t cols;
    const char *element;
  } cases[] = {{5, "f32"},    {1, "f32"},     {68, "f32"},   {768, "f32"},
               {1024, "f32"}, {1536, "f32"},  {6000, "f32"}, {24000, "f32"},
               {96, "bf16"},  {1280, "bf16"}, {90, "bf16"}};
  for (const Case &tested : cases) {
    int64_t cols = tested.cols;
    const char *element = tested.element;
    SCOPED_TRACE(std::to_string(cols) + " " + element);
    Kernels kernels(fill(R"(
func.func private @sum(%y: tensor<5x$0x$1>, %rng: tensor<4xi32>, %x: tensor<5x$0x$1>) -> tensor<5x$0x$1> attributes {rt.kernel} {
  %yd = nn.dropout %y, %rng rate 2.5e-01 stream 0 : (tensor<5x$0x$1>, tensor<4xi32>) -> tensor<5x$0x$1>
  %s = nn.add %x, %yd : tensor<5x$0x$1>
  return %s : tensor<5x$0x$1>
}
func.func private @norm(%s: tensor<5x$0x$1>, %g: tensor<$0xf32>, %b: tensor<$0xf32>) -> (tensor<5x$0x$1>, tensor<5xf32>, tensor<5xf32>) attributes {rt.kernel} {
  %n, %mean, %rstd = nn.layer_norm %s, %g, %b eps 1.0e-05 : (tensor<5x$0x$1>, tensor<$0xf32>, tensor<$0xf32>) -> (tensor<5x$0x$1>, tensor<5xf32>, tensor<5xf32>)
  return %n, %mean, %rstd : tensor<5x$0x$1>, tensor<5xf32>, tensor<5xf32>
}
func.func private @both(%y: tensor<5x$0x$1>, %rng: tensor<4xi32>, %x: tensor<5x$0x$1> {rt.may_alias = 0 : i64}, %g: tensor<$0xf32>, %b: tensor<$0xf32>)
    -> (tensor<5x$0x$1>, tensor<5x$0x$1>, tensor<5xf32>, tensor<5xf32>) attributes {rt.kernel} {
  %yd = nn.dropout %y, %rng rate 2.5e-01 stream 0 : (tensor<5x$0x$1>, tensor<4xi32>) -> tensor<5x$0x$1>
  %s = nn.add %x, %yd : tensor<5x$0x$1>
  %n, %mean, %rstd = nn.layer_norm %s, %g, %b eps 1.0e-05 : (tensor<5x$0x$1>, tensor<$0xf32>, tensor<$0xf32>) -> (tensor<5x$0x$1>, tensor<5xf32>, tensor<5xf32>)
  return %s, %n, %mean, %rstd : tensor<5x$0x$1>, tensor<5x$0x$1>, tensor<5xf32>, tensor<5xf32>
}
func.func private @gradient(%x: tensor<5x$0x$1>, %g: tensor<$0xf32>, %rstd: tensor<5xf32>, %dn: tensor<5x$0x$1>) -> tensor<5x$0x$1> attributes {rt.kernel} {
  %dx = nn.rms_norm_backward %x, %g, %rstd, %dn : (tensor<5x$0x$1>, tensor<$0xf32>, tensor<5xf32>, tensor<5x$0x$1>) -> tensor<5x$0x$1>
  return %dx : tensor<5x$0x$1>
}
func.func private @gradients(%x: tensor<5x$0x$1>, %g: tensor<$0xf32>, %rstd: tensor<5xf32>, %dn: tensor<5x$0x$1> {rt.may_alias = 0 : i64}, %d: tensor<5x$0x$1>)
    -> tensor<5x$0x$1> attributes {rt.kernel} {
  %dx = nn.rms_norm_backward %x, %g, %rstd, %dn : (tensor<5x$0x$1>, tensor<$0xf32>, tensor<5xf32>, tensor<5x$0x$1>) -> tensor<5x$0x$1>
  %s = nn.add %d, %dx : tensor<5x$0x$1>
  return %s : tensor<5x$0x$1>
}
func.func private @add(%d: tensor<5x$0x$1>, %dx: tensor<5x$0x$1>) -> tensor<5x$0x$1> attributes {rt.kernel} {
  %s = nn.add %d, %dx : tensor<5x$0x$1>
  return %s : tensor<5x$0x$1>
})",
                         {std::to_string(cols), element}));
    bool isBF16 = std::string(element) == "bf16";
    // Elements of either type, as words of 16 bits.
    using Words = std::vector<uint16_t>;
    auto words = [&](uint64_t seed) {
      Floats values = numbers(5 * cols, seed);
      Words words(values.size() * (isBF16 ? 1 : 2));
      if (isBF16)
        return asBF16(values);
      std::memcpy(words.data(), values.data(), words.size() * 2);
      return words;
    };
    Words x = words(1), y = words(2), empty(x.size()), row(2 * 5);
    Buffer<uint16_t> inX(x), inY(y);
    Buffer<float> g(numbers(cols, 3)), b(numbers(cols, 4)), r(numbers(5, 5));
    Buffer<uint32_t> rng({7, 9, 11, 0});
    auto run = [&](const char *name, std::vector<void *> inputs,
                   std::vector<Words> outputs, std::vector<int64_t> ids = {}) {
      return runAll<uint16_t>(kernels, name, inputs, outputs, ids);
    };
    Words sum =
        run("sum", {inY.data(), rng.data(), inX.data()}, {empty}, {5})[0];
    Buffer<uint16_t> inSum(sum);
    auto norm =
        run("norm", {inSum.data(), g.data(), b.data()}, {empty, row, row});
    norm.insert(norm.begin(), sum);
    EXPECT_EQ(run("both", {inY.data(), rng.data(), nullptr, g.data(), b.data()},
                  {x, empty, row, row}, {5}),
              norm);
    Words dx = run("gradient", {inX.data(), g.data(), r.data(), inY.data()},
                   {empty})[0];
    Buffer<uint16_t> inDx(dx);
    EXPECT_EQ(run("gradients",
                  {inX.data(), g.data(), r.data(), nullptr, inSum.data()}, {y}),
              run("add", {inSum.data(), inDx.data()}, {empty}));
  }
}

/// One block of a strip or several, which add up what all have left.
TEST(Columns, AddToWhatWasThere) {
  for (auto [rows, cols] : {std::pair<int64_t, int64_t>{1, 1},
                            {13, 24},
                            {3000, 7},
                            {2000, 1000},
                            {700, 66}}) {
    SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(cols));
    Kernels kernels(fill(R"(
func.func private @sum(%x: tensor<$0x$1xf32>, %old: tensor<$1xf32> {rt.in_place = 0 : i64}) -> tensor<$1xf32> attributes {rt.kernel} {
  %s = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>], iterator_types = ["reduction", "parallel"]}
    ins(%x : tensor<$0x$1xf32>) outs(%old : tensor<$1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<$1xf32>
  return %s : tensor<$1xf32>
})",
                         {std::to_string(rows), std::to_string(cols)}));
    Floats values = numbers(rows * cols, 1), old = numbers(cols, 2);
    Buffer<float> x(values);
    Floats sums = runAll<float>(kernels, "sum", {x.data(), nullptr}, {old})[0];
    for (int64_t c = 0; c < cols; ++c) {
      double expected = old[c];
      for (int64_t r = 0; r < rows; ++r)
        expected += values[r * cols + c];
      ASSERT_NEAR(sums[c], expected, 1e-5 * std::sqrt(rows)) << c;
    }
    // The counters are as they were: once more is the same.
    EXPECT_EQ(runAll<float>(kernels, "sum", {x.data(), nullptr}, {old})[0],
              sums);
  }
}

/// Sums of one launch have the bits that each has alone.
TEST(Columns, AreBesideOthersAsAlone) {
  for (auto [rows, cols] :
       {std::pair<int64_t, int64_t>{5, 24}, {3000, 768}, {700, 66}}) {
    SCOPED_TRACE(std::to_string(rows) + "x" + std::to_string(cols));
    std::string gain = R"(
  %dg = nn.layer_norm_backward_gain %x, %m, %r, %dy : (tensor<$0x$1xbf16>, tensor<$0xf32>, tensor<$0xf32>, tensor<$0x$1xbf16>) -> tensor<$1xf32>
  %g = nn.accumulate %old, %dg : tensor<$1xf32>)";
    std::string bias = R"(
  %b = nn.sum_rows %dy : (tensor<$0x$1xbf16>) -> tensor<$1xf32>)";
    std::string arguments = "%x: tensor<$0x$1xbf16>, %m: tensor<$0xf32>, "
                            "%r: tensor<$0xf32>, %dy: tensor<$0x$1xbf16>, "
                            "%old: tensor<$1xf32> {rt.in_place = 0 : i64}";
    std::string text = "func.func private @gain(" + arguments +
                       ") -> tensor<$1xf32> attributes {rt.kernel} {" + gain +
                       R"(
  return %g : tensor<$1xf32>
}
func.func private @bias(%dy: tensor<$0x$1xbf16>) -> tensor<$1xf32> attributes {rt.kernel} {)" +
                       bias + R"(
  return %b : tensor<$1xf32>
}
func.func private @both()" +
                       arguments +
                       ") -> (tensor<$1xf32>, tensor<$1xf32>) attributes "
                       "{rt.kernel} {" +
                       gain + bias + R"(
  return %g, %b : tensor<$1xf32>, tensor<$1xf32>
})";
    Kernels kernels(fill(text, {std::to_string(rows), std::to_string(cols)}));
    Floats values = numbers(rows * cols, 1),
           gradients = numbers(rows * cols, 2), old = numbers(cols, 5),
           none(cols);
    Buffer<uint16_t> x(asBF16(values)), dy(asBF16(gradients));
    Buffer<float> m(numbers(rows, 3)), r(numbers(rows, 4));
    std::vector<void *> inputs = {x.data(), m.data(), r.data(), dy.data(),
                                  nullptr};
    std::vector<Floats> both =
        runAll<float>(kernels, "both", inputs, {old, none});
    EXPECT_EQ(runAll<float>(kernels, "gain", inputs, {old})[0], both[0]);
    EXPECT_EQ(runAll<float>(kernels, "bias", {dy.data()}, {none})[0], both[1]);
  }
}

/// Rows are added in the order of the tokens, to nothing, and then to the
/// table.
TEST(ScatterAdd, AddsInTheOrderOfTokens) {
  for (auto [table, cols, count] :
       {std::array<int64_t, 3>{70, 300, 5000}, {5, 24, 13}, {33, 256, 2049}}) {
    SCOPED_TRACE(count);
    Kernels kernels(fill(
        R"(
func.func private @scatter(%t: tensor<$0x$1xf32> {rt.may_alias = 0 : i64}, %rows: tensor<$2x$1xf32>, %ids: tensor<$2xi32>) -> tensor<$0x$1xf32> attributes {rt.kernel} {
  %y = rt.scatter_add %t, %rows at %ids : (tensor<$0x$1xf32>, tensor<$2x$1xf32>, tensor<$2xi32>) -> tensor<$0x$1xf32>
  return %y : tensor<$0x$1xf32>
})",
        {std::to_string(table), std::to_string(cols), std::to_string(count)}));
    Floats before = numbers(table * cols, 1), rows = numbers(count * cols, 2);
    std::vector<int32_t> ids;
    // Every second token is row 3, some rows are nobody's.
    for (int64_t i = 0; i < count; ++i)
      ids.push_back(i % 2 ? 3 : reprisePhilox(3, 0, 0, 0, i) % table / 2);
    Floats sums(table * cols), expected = before;
    for (int64_t i = 0; i < count; ++i)
      for (int64_t c = 0; c < cols; ++c)
        sums[ids[i] * cols + c] += rows[i * cols + c];
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] += sums[i];
    Buffer<float> from(before), added(rows);
    Buffer<int32_t> places(ids);
    EXPECT_EQ(runAll<float>(kernels, "scatter",
                            {nullptr, added.data(), places.data()},
                            {before})[0],
              expected);
    EXPECT_EQ(runAll<float>(kernels, "scatter",
                            {from.data(), added.data(), places.data()},
                            {Floats(before.size())})[0],
              expected);
  }
}

TEST(ScatterAdd, AddsByPosition) {
  Kernels kernels(R"(
func.func private @scatter(%t: tensor<9x70xf32> {rt.in_place = 0 : i64}, %rows: tensor<4x6x70xf32>) -> tensor<9x70xf32> attributes {rt.kernel} {
  %y = rt.scatter_add %t, %rows : (tensor<9x70xf32>, tensor<4x6x70xf32>) -> tensor<9x70xf32>
  return %y : tensor<9x70xf32>
})");
  Floats before = numbers(9 * 70, 1), rows = numbers(24 * 70, 2);
  Floats expected = before;
  for (int64_t r = 0; r < 24; ++r)
    for (int64_t c = 0; c < 70; ++c)
      expected[r % 6 * 70 + c] += rows[r * 70 + c];
  Buffer<float> added(rows);
  EXPECT_EQ(
      runAll<float>(kernels, "scatter", {nullptr, added.data()}, {before})[0],
      expected);
}

TEST(BlockSums, OfSquares) {
  Kernels kernels(R"(
func.func private @sums(%x: tensor<40003xf32>, %y: tensor<7xf32>, %z: tensor<16384xf32>) -> tensor<5xf32> attributes {rt.kernel} {
  %s = rt.block_sums %x, %y, %z square : (tensor<40003xf32>, tensor<7xf32>, tensor<16384xf32>) -> tensor<5xf32>
  return %s : tensor<5xf32>
})");
  std::vector<Floats> values = {numbers(40003, 1), numbers(7, 2),
                                numbers(16384, 3)};
  std::vector<double> expected;
  for (const Floats &array : values)
    for (size_t i = 0; i < array.size(); ++i) {
      if (i % 16384 == 0)
        expected.push_back(0);
      expected.back() += double(array[i]) * array[i];
    }
  Buffer<float> x(values[0]), y(values[1]), z(values[2]);
  Floats sums = runAll<float>(kernels, "sums", {x.data(), y.data(), z.data()},
                              {Floats(5)})[0];
  for (size_t i = 0; i < 5; ++i)
    EXPECT_NEAR(sums[i], expected[i], 1e-6 * expected[i]);
}

TEST(Segments, AreArraysOfTheirOwn) {
  std::string loop = R"(
  %e$0 = tensor.empty() : tensor<$1xf32>
  %y$0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%x$0 : tensor<$1xf32>) outs(%e$0 : tensor<$1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.$2f %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<$1xf32>)";
  Kernels kernels(R"(
func.func private @segments(%x0: tensor<5xf32>, %x1: tensor<10002xf32>, %x2: tensor<2048xf32>) -> (tensor<2048xf32>, tensor<5xf32>, tensor<10002xf32>) attributes {rt.kernel} {)" +
                  fill(loop, {"0", "5", "add"}) +
                  fill(loop, {"1", "10002", "mul"}) +
                  fill(loop, {"2", "2048", "add"}) + R"(
  return %y2, %y0, %y1 : tensor<2048xf32>, tensor<5xf32>, tensor<10002xf32>
})");
  std::vector<Floats> x = {numbers(5, 1), numbers(10002, 2), numbers(2048, 3)};
  Buffer<float> x0(x[0]), x1(x[1]), x2(x[2]);
  auto results =
      runAll<float>(kernels, "segments", {x0.data(), x1.data(), x2.data()},
                    {Floats(2048), Floats(5), Floats(10002)});
  for (size_t i = 0; i < 2048; ++i)
    ASSERT_EQ(results[0][i], x[2][i] + x[2][i]);
  for (size_t i = 0; i < 5; ++i)
    ASSERT_EQ(results[1][i], x[0][i] + x[0][i]);
  for (size_t i = 0; i < 10002; ++i)
    ASSERT_EQ(results[2][i], x[1][i] * x[1][i]);
}
