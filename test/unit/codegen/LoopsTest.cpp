//===- LoopsTest.cpp - Kernels of linalg ops against plain C++ --*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"
#include "reprise/ABI/Philox.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>
#include <random>

using namespace reprise::codegen;

//===----------------------------------------------------------------------===//
// Pointwise
//===----------------------------------------------------------------------===//

/// y = exp(x * s) of n elements.
static std::string expScale(int64_t n) {
  std::string type = "tensor<" + std::to_string(n) + "xf32>";
  return R"(
func.func private @k(%x: )" +
         type + R"(, %s: tensor<f32>) -> )" + type +
         R"( attributes {rt.kernel} {
  %e = tensor.empty() : )" +
         type + R"(
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%x, %s : )" +
         type + R"(, tensor<f32>) outs(%e : )" + type + R"() {
  ^bb0(%a: f32, %b : f32, %out: f32):
    %t = arith.mulf %a, %b : f32
    %u = math.exp %t : f32
    linalg.yield %u : f32
  } -> )" +
         type + R"(
  return %y : )" +
         type + R"(
})";
}

TEST(Pointwise, MatchesForEveryRemainder) {
  for (int64_t n : {1, 15, 16, 17, 4095, 4096, 4097, 10000}) {
    KernelRunner runner(expScale(n));
    EXPECT_EQ(runner.tasks("k"), (n + 4095) / 4096);
    Floats x = randomFloats(n, n), y(n + 1, -7);
    float s = 3;
    runner.run("k", {x.data(), &s, y.data()});
    for (int64_t i = 0; i < n; ++i)
      ASSERT_LE(ulpsApart(y[i], float(std::exp(double(x[i] * s)))), 1) << i;
    EXPECT_EQ(y[n], -7) << "nothing is written beyond the end";
  }
}

TEST(Pointwise, AnElementHasTheSameBitsInMainLoopAndRemainder) {
  // Element 0 alone, in a remainder; and among others, in a whole vector.
  KernelRunner one(expScale(1)), many(expScale(100));
  Floats x = randomFloats(100, 3);
  float s = 2.5f;
  Floats all(100);
  many.run("k", {x.data(), &s, all.data()});
  for (int64_t i = 0; i < 100; ++i) {
    float y;
    one.run("k", {&x[i], &s, &y});
    ASSERT_EQ(y, all[i]) << i;
  }
}

TEST(Pointwise, AddsInPlaceAndCopiesScalars) {
  // The constant is a result too; ids of the launch are values.
  KernelRunner runner(R"(
func.func private @k(%x: tensor<2x21xf32> {rt.in_place = 0 : i64}) -> (tensor<2x21xf32>, tensor<42xi32>) attributes {rt.kernel} {
  %flat = tensor.collapse_shape %x [[0, 1]] : tensor<2x21xf32> into tensor<42xf32>
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<42xf32>
  %e2 = tensor.empty() : tensor<42xi32>
  %y:2 = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%flat : tensor<42xf32>) outs(%e, %e2 : tensor<42xf32>, tensor<42xi32>) {
  ^bb0(%a: f32, %o: f32, %o2: i32):
    %id = rt.stream 1
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %sum = arith.addi %n, %id : i32
    %t = arith.addf %a, %one : f32
    linalg.yield %t, %sum : f32, i32
  } -> (tensor<42xf32>, tensor<42xi32>)
  %r = tensor.expand_shape %y#0 [[0, 1]] output_shape [2, 21] : tensor<42xf32> into tensor<2x21xf32>
  return %r, %y#1 : tensor<2x21xf32>, tensor<42xi32>
})");
  Floats x = randomFloats(42, 1), before = x;
  std::vector<int32_t> numbers(42);
  runner.run("k", {x.data(), x.data(), numbers.data()}, {5, 1000});
  for (int i = 0; i < 42; ++i) {
    EXPECT_EQ(x[i], before[i] + 1);
    EXPECT_EQ(numbers[i], 1000 + i);
  }
}

TEST(Pointwise, DrawsTheWordOfEachElement) {
  // Remainders of runs of 64, of vectors, of tasks; and a stream of the launch.
  for (int64_t n : {1, 5, 16, 64, 70, 150, 4096, 4096 + 64 + 32 + 3}) {
    std::string size = std::to_string(n);
    KernelRunner runner(R"(
func.func private @k(%rng: tensor<4xi32>) -> tensor<)" +
                        size + R"(xi32> attributes {rt.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %low = tensor.extract %rng[%c0] : tensor<4xi32>
  %high = tensor.extract %rng[%c1] : tensor<4xi32>
  %step = tensor.extract %rng[%c2] : tensor<4xi32>
  %micro = tensor.extract %rng[%c3] : tensor<4xi32>
  %id = rt.stream 0
  %e = tensor.empty() : tensor<)" +
                        size +
                        R"(xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    outs(%e : tensor<)" +
                        size +
                        R"(xi32>) {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %w = rt.random_word %i key %low, %high step %step micro_batch %micro stream %id
    linalg.yield %w : i32
  } -> tensor<)" + size +
                        R"(xi32>
  return %y : tensor<)" +
                        size + R"(xi32>
})");
    std::vector<uint32_t> rng = {0x89abcdef, 0x01234567, 42, 3}, words(n);
    runner.run("k", {rng.data(), words.data()}, {9}, /*chunk=*/1);
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(words[i], reprisePhilox(0x0123456789abcdef, 42, 3, 9, i))
          << i << " of " << n;
  }
}

TEST(Pointwise, DrawsWordsOfElementsThatAreComputed) {
  // Elements 3 (21 r + c), which no run has side by side.
  KernelRunner runner(R"(
func.func private @k() -> tensor<2x21xi32> attributes {rt.kernel} {
  %seed = arith.constant 7 : i32
  %zero = arith.constant 0 : i32
  %three = arith.constant 3 : index
  %cols = arith.constant 21 : index
  %e = tensor.empty() : tensor<2x21xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
    outs(%e : tensor<2x21xi32>) {
  ^bb0(%o: i32):
    %r = linalg.index 0 : index
    %c = linalg.index 1 : index
    %row = arith.muli %r, %cols : index
    %i = arith.addi %row, %c : index
    %at = arith.muli %i, %three : index
    %w = rt.random_word %at key %seed, %zero step %zero micro_batch %zero stream %zero
    %first = rt.random_word %row key %seed, %zero step %zero micro_batch %zero stream %zero
    %both = arith.xori %w, %first : i32
    linalg.yield %both : i32
  } -> tensor<2x21xi32>
  return %y : tensor<2x21xi32>
})");
  std::vector<uint32_t> words(42);
  runner.run("k", {words.data()});
  for (int64_t i = 0; i < 42; ++i)
    ASSERT_EQ(words[i], reprisePhilox(7, 0, 0, 0, 3 * i) ^
                            reprisePhilox(7, 0, 0, 0, i / 21 * 21))
        << i;
}

// Rank 1 of 2 has every second piece: runs within pieces share their shift, and
// others do not.
TEST(Pointwise, DrawsWordsOfParts) {
  for (int64_t size : {2, 24, 64, 96, 128}) {
    std::string type = "tensor<" + std::to_string(4 * size) + "xi32>";
    KernelRunner runner(R"(
func.func private @k() -> )" +
                        type + R"( attributes {rt.kernel} {
  %seed = arith.constant 7 : i32
  %zero = arith.constant 0 : i32
  %id = rt.stream 0
  %size = arith.constant )" +
                        std::to_string(size) + R"( : index
  %e = tensor.empty() : )" +
                        type + R"(
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    outs(%e : )" + type +
                        R"() {
  ^bb0(%o: i32):
    %i = linalg.index 0 : index
    %rank = arith.index_cast %id : i32 to index
    %piece = arith.divui %i, %size : index
    %before = arith.muli %piece, %size : index
    %own = arith.muli %rank, %size : index
    %sum = arith.addi %i, %before : index
    %at = arith.addi %sum, %own : index
    %w = rt.random_word %at key %seed, %zero step %zero micro_batch %zero stream %zero
    linalg.yield %w : i32
  } -> )" + type + R"(
  return %y : )" + type +
                        R"(
})");
    std::vector<uint32_t> words(4 * size);
    runner.run("k", {words.data()}, {1});
    for (int64_t i = 0; i < 4 * size; ++i)
      ASSERT_EQ(words[i],
                reprisePhilox(7, 0, 0, 0, (i / size * 2 + 1) * size + i % size))
          << i << " in pieces of " << size;
  }
}

//===----------------------------------------------------------------------===//
// Arrays of different lengths
//===----------------------------------------------------------------------===//

/// For array i of `lengths`: y = x * s in place, and z = y + 1, or y + 2 for
/// every third array.
static std::string scaleAll(const std::vector<int64_t> &lengths) {
  std::string arguments, body, types, values;
  for (unsigned i = 0; i < lengths.size(); ++i) {
    std::string n = std::to_string(i);
    std::string type = "tensor<" + std::to_string(lengths[i]) + "xf32>";
    arguments += ", %x" + n + ": " + type +
                 " {rt.in_place = " + std::to_string(2 * i) + " : i64}";
    types += (i ? ", " : "") + type + ", " + type;
    values += (i ? ", " : "") + ("%y" + n) + "#0, %y" + n + "#1";
    body += "  %e" + n + " = tensor.empty() : " + type + "\n  %y" + n +
            R"(:2 = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%x)" +
            n + ", %s : " + type + ", tensor<f32>) outs(%e" + n + ", %e" + n +
            " : " + type + ", " + type + R"() {
  ^bb0(%a: f32, %b: f32, %o: f32, %p: f32):
    %c = arith.constant )" +
            (i % 3 == 2 ? "2.0" : "1.0") + R"( : f32
    %t = arith.mulf %a, %b : f32
    %u = arith.addf %t, %c : f32
    linalg.yield %t, %u : f32, f32
  } -> ()" + type +
            ", " + type + ")\n";
  }
  return "func.func private @k(%s: tensor<f32>" + arguments + ") -> (" + types +
         ") attributes {rt.kernel} {\n" + body + "  return " + values + " : " +
         types + "\n}";
}

TEST(Segments, EachArrayAsAlone) {
  std::vector<int64_t> lengths = {4097, 1, 16, 4096, 15, 17, 10000, 1, 33};
  KernelRunner runner(scaleAll(lengths));
  int64_t tasks = 0;
  std::vector<Floats> x, z;
  float s = 3;
  std::vector<void *> inputs = {&s}, outputs;
  for (int64_t n : lengths) {
    tasks += (n + 4095) / 4096;
    x.push_back(randomFloats(n + 1, n));
    z.push_back(Floats(n + 1, -7));
  }
  std::vector<Floats> before = x;
  for (unsigned i = 0; i < lengths.size(); ++i) {
    inputs.push_back(x[i].data());
    outputs.insert(outputs.end(), {x[i].data(), z[i].data()});
  }
  inputs.insert(inputs.end(), outputs.begin(), outputs.end());
  EXPECT_EQ(runner.tasks("k"), tasks);
  runner.run("k", inputs, {}, /*chunk=*/2, /*backwards=*/true);
  for (unsigned i = 0; i < lengths.size(); ++i) {
    for (int64_t e = 0; e < lengths[i]; ++e) {
      ASSERT_EQ(x[i][e], before[i][e] * s) << e << " of " << i;
      ASSERT_EQ(z[i][e], x[i][e] + (i % 3 == 2 ? 2 : 1)) << e << " of " << i;
    }
    EXPECT_EQ(x[i][lengths[i]], before[i][lengths[i]]);
    EXPECT_EQ(z[i][lengths[i]], -7) << "nothing is written beyond the end";
  }
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

static void replace(std::string &text, const std::string &what, int64_t value) {
  for (size_t at; (at = text.find(what)) != std::string::npos;)
    text.replace(at, what.size(), std::to_string(value));
}

/// Softmax over the rows of what is x + x in the buffer of x: two reductions,
/// three passes, the input overwritten by an intermediate that is a result.
static std::string softmax(int64_t rows, int64_t cols) {
  std::string text = R"(
#rc = affine_map<(r, c) -> (r, c)>
#r = affine_map<(r, c) -> (r)>
func.func private @k(%x: tensor<ROWSxCOLSxf32> {rt.in_place = 1 : i64}) -> (tensor<ROWSxCOLSxf32>, tensor<ROWSxCOLSxf32>, tensor<ROWSxf32>) attributes {rt.kernel} {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<ROWSxCOLSxf32>
  %er = tensor.empty() : tensor<ROWSxf32>
  %x2 = linalg.generic {indexing_maps = [#rc, #rc], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<ROWSxCOLSxf32>) outs(%e : tensor<ROWSxCOLSxf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<ROWSxCOLSxf32>
  %lows = linalg.fill ins(%low : f32) outs(%er : tensor<ROWSxf32>) -> tensor<ROWSxf32>
  %max = linalg.generic {indexing_maps = [#rc, #r], iterator_types = ["parallel", "reduction"]}
    ins(%x2 : tensor<ROWSxCOLSxf32>) outs(%lows : tensor<ROWSxf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<ROWSxf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%er : tensor<ROWSxf32>) -> tensor<ROWSxf32>
  %sum = linalg.generic {indexing_maps = [#rc, #r, #r], iterator_types = ["parallel", "reduction"]}
    ins(%x2, %max : tensor<ROWSxCOLSxf32>, tensor<ROWSxf32>) outs(%zeros : tensor<ROWSxf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %d = arith.subf %a, %m : f32
    %p = math.exp %d : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<ROWSxf32>
  %y = linalg.generic {indexing_maps = [#rc, #r, #r, #rc], iterator_types = ["parallel", "parallel"]}
    ins(%x2, %max, %sum : tensor<ROWSxCOLSxf32>, tensor<ROWSxf32>, tensor<ROWSxf32>) outs(%e : tensor<ROWSxCOLSxf32>) {
  ^bb0(%a: f32, %m: f32, %s: f32, %o: f32):
    %d = arith.subf %a, %m : f32
    %p = math.exp %d : f32
    %t = arith.divf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<ROWSxCOLSxf32>
  %lse = linalg.generic {indexing_maps = [affine_map<(r) -> (r)>, affine_map<(r) -> (r)>, affine_map<(r) -> (r)>], iterator_types = ["parallel"]}
    ins(%max, %sum : tensor<ROWSxf32>, tensor<ROWSxf32>) outs(%er : tensor<ROWSxf32>) {
  ^bb0(%m: f32, %s: f32, %o: f32):
    %l = math.log %s : f32
    %t = arith.addf %m, %l : f32
    linalg.yield %t : f32
  } -> tensor<ROWSxf32>
  return %y, %x2, %lse : tensor<ROWSxCOLSxf32>, tensor<ROWSxCOLSxf32>, tensor<ROWSxf32>
})";
  replace(text, "ROWS", rows);
  replace(text, "COLS", cols);
  return text;
}

TEST(Rows, SoftmaxOverwritesWhatItReads) {
  for (auto [rows, cols] : {std::pair<int64_t, int64_t>{3, 5},
                            {7, 16},
                            {1, 33},
                            {700, 50},
                            {2, 40000}}) {
    KernelRunner runner(softmax(rows, cols));
    Floats x = randomFloats(rows * cols, 9), was = x;
    Floats y(rows * cols), lse(rows);
    runner.run("k", {x.data(), y.data(), x.data(), lse.data()}, {}, 2, true);
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (int64_t c = 0; c < cols; ++c)
        sum += std::exp(2.0 * was[r * cols + c]);
      EXPECT_NEAR(lse[r], std::log(sum), 1e-5);
      for (int64_t c = 0; c < cols; ++c) {
        ASSERT_EQ(x[r * cols + c], 2 * was[r * cols + c]);
        ASSERT_NEAR(y[r * cols + c], std::exp(2.0 * was[r * cols + c]) / sum,
                    1e-6);
      }
    }
  }
}

TEST(Rows, PartitionOfTasksDoesNotShow) {
  KernelRunner runner(softmax(1000, 77));
  ASSERT_GT(runner.tasks("k"), 3);
  Floats input = randomFloats(1000 * 77, 4), first;
  for (int64_t chunk : {int64_t(1), int64_t(3), INT64_MAX}) {
    Floats x = input, y(1000 * 77), lse(1000);
    runner.run("k", {x.data(), y.data(), x.data(), lse.data()}, {}, chunk,
               chunk == 3);
    if (first.empty())
      first = y;
    EXPECT_EQ(y, first);
  }
}

TEST(Rows, SumIsLaneStridedWithTheFixedTree) {
  // The mean of all elements as one row; the quotient is a generic of one row.
  std::string text = R"(
func.func private @k(%x: tensor<COLSxf32>) -> tensor<f32> attributes {rt.kernel} {
  %row = tensor.expand_shape %x [[0, 1]] output_shape [1, COLS] : tensor<COLSxf32> into tensor<1xCOLSxf32>
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 4.0 : f32
  %e = tensor.empty() : tensor<1xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
    ins(%row : tensor<1xCOLSxf32>) outs(%zeros : tensor<1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<1xf32>
  %mean = linalg.generic {indexing_maps = [affine_map<(r) -> (r)>, affine_map<(r) -> (r)>], iterator_types = ["parallel"]}
    ins(%sum : tensor<1xf32>) outs(%e : tensor<1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.divf %a, %n : f32
    linalg.yield %t : f32
  } -> tensor<1xf32>
  %r = tensor.collapse_shape %mean [] : tensor<1xf32> into tensor<f32>
  return %r : tensor<f32>
})";
  for (int64_t n : {1, 15, 16, 31, 1000}) {
    std::string one = text;
    replace(one, "COLS", n);
    KernelRunner runner(one);
    Floats x = randomFloats(n, n);
    float mean;
    runner.run("k", {x.data(), &mean});
    EXPECT_EQ(mean, laneSum(x) / 4) << n;
  }
}

//===----------------------------------------------------------------------===//
// Fusion
//===----------------------------------------------------------------------===//

/// z = tanh(x) * x and y = z + sum of the row of z: alone, and in one kernel.
static constexpr char kParts[] = R"(
#rc = affine_map<(r, c) -> (r, c)>
#r = affine_map<(r, c) -> (r)>
#i = affine_map<(i) -> (i)>
func.func private @first(%x: tensor<301xf32>) -> tensor<301xf32> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<301xf32>
  %z = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%x : tensor<301xf32>) outs(%e : tensor<301xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.tanh %a : f32
    %p = arith.mulf %t, %a : f32
    linalg.yield %p : f32
  } -> tensor<301xf32>
  return %z : tensor<301xf32>
}
func.func private @second(%z: tensor<7x43xf32>) -> tensor<7x43xf32> attributes {rt.kernel} {
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<7xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%er : tensor<7xf32>) -> tensor<7xf32>
  %sum = linalg.generic {indexing_maps = [#rc, #r], iterator_types = ["parallel", "reduction"]} ins(%z : tensor<7x43xf32>) outs(%zeros : tensor<7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<7xf32>
  %e = tensor.empty() : tensor<7x43xf32>
  %y = linalg.generic {indexing_maps = [#rc, #r, #rc], iterator_types = ["parallel", "parallel"]} ins(%z, %sum : tensor<7x43xf32>, tensor<7xf32>) outs(%e : tensor<7x43xf32>) {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %t = arith.addf %a, %s : f32
    linalg.yield %t : f32
  } -> tensor<7x43xf32>
  return %y : tensor<7x43xf32>
}
func.func private @both(%x: tensor<301xf32>) -> tensor<7x43xf32> attributes {rt.kernel} {
  %ef = tensor.empty() : tensor<301xf32>
  %flat = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%x : tensor<301xf32>) outs(%ef : tensor<301xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.tanh %a : f32
    %p = arith.mulf %t, %a : f32
    linalg.yield %p : f32
  } -> tensor<301xf32>
  %z = tensor.expand_shape %flat [[0, 1]] output_shape [7, 43] : tensor<301xf32> into tensor<7x43xf32>
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<7xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%er : tensor<7xf32>) -> tensor<7xf32>
  %sum = linalg.generic {indexing_maps = [#rc, #r], iterator_types = ["parallel", "reduction"]} ins(%z : tensor<7x43xf32>) outs(%zeros : tensor<7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<7xf32>
  %e = tensor.empty() : tensor<7x43xf32>
  %y = linalg.generic {indexing_maps = [#rc, #r, #rc], iterator_types = ["parallel", "parallel"]} ins(%z, %sum : tensor<7x43xf32>, tensor<7xf32>) outs(%e : tensor<7x43xf32>) {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %t = arith.addf %a, %s : f32
    linalg.yield %t : f32
  } -> tensor<7x43xf32>
  return %y : tensor<7x43xf32>
}
)";

TEST(Fusion, DoesNotShowInTheBits) {
  KernelRunner runner(kParts);
  Floats x = randomFloats(301, 8), z(301), apart(301), fused(301);
  runner.run("first", {x.data(), z.data()});
  runner.run("second", {z.data(), apart.data()});
  runner.run("both", {x.data(), fused.data()});
  EXPECT_EQ(apart, fused);
}

//===----------------------------------------------------------------------===//
// Columns and tables
//===----------------------------------------------------------------------===//

TEST(Columns, AddTheirRowsInOrderOntoWhatIsThere) {
  for (int64_t cols : {5, 16, 64, 100, 200}) {
    std::string text = R"(
func.func private @k(%sum: tensor<COLSxf32> {rt.in_place = 0 : i64}, %x: tensor<9xCOLSxf32>, %s: tensor<9xf32>) -> tensor<COLSxf32> attributes {rt.kernel} {
  %y = linalg.generic {
    indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (c)>],
    iterator_types = ["reduction", "parallel"]
  } ins(%x, %s : tensor<9xCOLSxf32>, tensor<9xf32>) outs(%sum : tensor<COLSxf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<COLSxf32>
  return %y : tensor<COLSxf32>
})";
    replace(text, "COLS", cols);
    KernelRunner runner(text);
    EXPECT_EQ(runner.tasks("k"), (cols + 63) / 64);
    Floats sum = randomFloats(cols, 1), x = randomFloats(9 * cols, 2),
           s = randomFloats(9, 3), expected = sum;
    for (int64_t r = 0; r < 9; ++r)
      for (int64_t c = 0; c < cols; ++c)
        expected[c] += x[r * cols + c] * s[r];
    runner.run("k", {sum.data(), x.data(), s.data(), sum.data()}, {}, 1, true);
    EXPECT_EQ(sum, expected) << cols;
  }
}

/// Sums of one kernel have the bits that each has alone, and strips that are
/// taken together those that each has alone.
TEST(Columns, AreBesideOthersAsAlone) {
  for (int64_t cols : {5, 64, 200, 1300}) {
    std::string text = R"(
func.func private @gain(%x: tensor<67xCOLSxf32>, %m: tensor<67xf32>, %r: tensor<67xf32>, %dy: tensor<67xCOLSxf32>, %old: tensor<COLSxf32> {rt.in_place = 0 : i64}) -> tensor<COLSxf32> attributes {rt.kernel} {
  %dg = nn.layer_norm_backward_gain %x, %m, %r, %dy : (tensor<67xCOLSxf32>, tensor<67xf32>, tensor<67xf32>, tensor<67xCOLSxf32>) -> tensor<COLSxf32>
  %g = nn.accumulate %old, %dg : tensor<COLSxf32>
  return %g : tensor<COLSxf32>
}
func.func private @bias(%dy: tensor<67xCOLSxf32>) -> tensor<COLSxf32> attributes {rt.kernel} {
  %b = nn.sum_rows %dy : (tensor<67xCOLSxf32>) -> tensor<COLSxf32>
  return %b : tensor<COLSxf32>
}
func.func private @both(%x: tensor<67xCOLSxf32>, %m: tensor<67xf32>, %r: tensor<67xf32>, %dy: tensor<67xCOLSxf32>, %old: tensor<COLSxf32> {rt.in_place = 0 : i64}) -> (tensor<COLSxf32>, tensor<COLSxf32>) attributes {rt.kernel} {
  %dg = nn.layer_norm_backward_gain %x, %m, %r, %dy : (tensor<67xCOLSxf32>, tensor<67xf32>, tensor<67xf32>, tensor<67xCOLSxf32>) -> tensor<COLSxf32>
  %g = nn.accumulate %old, %dg : tensor<COLSxf32>
  %b = nn.sum_rows %dy : (tensor<67xCOLSxf32>) -> tensor<COLSxf32>
  return %g, %b : tensor<COLSxf32>, tensor<COLSxf32>
})";
    replace(text, "COLS", cols);
    KernelRunner runner(asLoops(text));
    Floats x = randomFloats(67 * cols, 1), m = randomFloats(67, 2),
           r = randomFloats(67, 3), dy = randomFloats(67 * cols, 4),
           old = randomFloats(cols, 5), gain = old, bias(cols), both = old,
           other(cols);
    runner.run(
        "gain",
        {x.data(), m.data(), r.data(), dy.data(), gain.data(), gain.data()}, {},
        1);
    runner.run("bias", {dy.data(), bias.data()}, {}, 1);
    runner.run("both", {x.data(), m.data(), r.data(), dy.data(), both.data(),
                        both.data(), other.data()});
    EXPECT_EQ(both, gain) << cols;
    EXPECT_EQ(other, bias) << cols;
  }
}

TEST(Rows, GatherRowsOfATable) {
  KernelRunner runner(R"(
func.func private @k(%table: tensor<11x21xf32>, %ids: tensor<2x4xi32>, %positions: tensor<4x21xf32>) -> tensor<2x4x21xf32> attributes {rt.kernel} {
  %flat = tensor.collapse_shape %ids [[0, 1]] : tensor<2x4xi32> into tensor<8xi32>
  %e = tensor.empty() : tensor<8x21xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%flat : tensor<8xi32>) outs(%e : tensor<8x21xf32>) {
  ^bb0(%id: i32, %o: f32):
    %row = arith.index_cast %id : i32 to index
    %r = linalg.index 0 : index
    %c = linalg.index 1 : index
    %four = arith.constant 4 : index
    %at = arith.remui %r, %four : index
    %a = tensor.extract %table[%row, %c] : tensor<11x21xf32>
    %b = tensor.extract %positions[%at, %c] : tensor<4x21xf32>
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<8x21xf32>
  %out = tensor.expand_shape %y [[0, 1], [2]] output_shape [2, 4, 21] : tensor<8x21xf32> into tensor<2x4x21xf32>
  return %out : tensor<2x4x21xf32>
})");
  Floats table = randomFloats(11 * 21, 1), positions = randomFloats(4 * 21, 2);
  std::vector<int32_t> ids = {10, 0, 3, 3, 7, 10, 1, 2};
  Floats y(8 * 21);
  runner.run("k", {table.data(), ids.data(), positions.data(), y.data()});
  for (int r = 0; r < 8; ++r)
    for (int c = 0; c < 21; ++c)
      EXPECT_EQ(y[r * 21 + c],
                table[ids[r] * 21 + c] + positions[r % 4 * 21 + c]);
}
