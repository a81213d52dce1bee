//===- RTKernelsTest.cpp - Kernels that are one op of rt --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace reprise::codegen;

TEST(ScatterAdd, AddsRowsInTokenOrder) {
  KernelRunner runner(R"(
func.func private @k(%t: tensor<5x70xf32> {rt.may_alias = 0 : i64}, %ids: tensor<2x3xi32>, %rows: tensor<2x3x70xf32>) -> tensor<5x70xf32> attributes {rt.kernel} {
  %y = rt.scatter_add %t, %rows at %ids : (tensor<5x70xf32>, tensor<2x3x70xf32>, tensor<2x3xi32>) -> tensor<5x70xf32>
  return %y : tensor<5x70xf32>
})");
  EXPECT_EQ(runner.tasks("k"), 2);
  Floats table = randomFloats(5 * 70, 1), rows = randomFloats(6 * 70, 2);
  std::vector<int32_t> ids = {4, 1, 4, 4, 0, 1};
  Floats expected = table;
  for (int r = 0; r < 6; ++r)
    for (int c = 0; c < 70; ++c)
      expected[ids[r] * 70 + c] += rows[r * 70 + c];
  Floats apart(5 * 70), inPlace = table;
  runner.run("k", {table.data(), ids.data(), rows.data(), apart.data()}, {}, 1,
             true);
  runner.run("k", {inPlace.data(), ids.data(), rows.data(), inPlace.data()});
  EXPECT_EQ(apart, expected);
  EXPECT_EQ(inPlace, expected);
}

TEST(ScatterAdd, AddsRowsByPositionWithoutIds) {
  KernelRunner runner(R"(
func.func private @k(%t: tensor<5x70xf32> {rt.may_alias = 0 : i64}, %rows: tensor<4x3x70xf32>) -> tensor<5x70xf32> attributes {rt.kernel} {
  %y = rt.scatter_add %t, %rows : (tensor<5x70xf32>, tensor<4x3x70xf32>) -> tensor<5x70xf32>
  return %y : tensor<5x70xf32>
}
func.func private @zero(%rows: tensor<4x3x70xf32>) -> tensor<5x70xf32> attributes {rt.kernel} {
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x70xf32>
  %t = linalg.fill ins(%c : f32) outs(%e : tensor<5x70xf32>) -> tensor<5x70xf32>
  %y = rt.scatter_add %t, %rows : (tensor<5x70xf32>, tensor<4x3x70xf32>) -> tensor<5x70xf32>
  return %y : tensor<5x70xf32>
})");
  Floats table = randomFloats(5 * 70, 1), rows = randomFloats(12 * 70, 2);
  Floats expected = table, fromZero(5 * 70, 0.0f);
  for (int r = 0; r < 12; ++r)
    for (int c = 0; c < 70; ++c) {
      expected[r % 3 * 70 + c] += rows[r * 70 + c];
      fromZero[r % 3 * 70 + c] += rows[r * 70 + c];
    }
  Floats apart(5 * 70, NAN), inPlace = table, zero(5 * 70, NAN);
  runner.run("k", {table.data(), rows.data(), apart.data()}, {}, 1, true);
  runner.run("k", {inPlace.data(), rows.data(), inPlace.data()});
  runner.run("zero", {rows.data(), zero.data()}, {}, 1, true);
  EXPECT_EQ(apart, expected);
  EXPECT_EQ(inPlace, expected);
  EXPECT_EQ(zero, fromZero);
}

TEST(BlockSums, HasAnElementForEachBlockOfEachOperand) {
  KernelRunner runner(R"(
func.func private @k(%a: tensor<200x200xf32>, %b: tensor<3xf32>, %c: tensor<16384xf32>) -> tensor<5xf32> attributes {rt.kernel} {
  %y = rt.block_sums %a, %b, %c square : (tensor<200x200xf32>, tensor<3xf32>, tensor<16384xf32>) -> tensor<5xf32>
  return %y : tensor<5xf32>
})");
  EXPECT_EQ(runner.tasks("k"), 5);
  std::vector<Floats> inputs = {randomFloats(40000, 1), randomFloats(3, 2),
                                randomFloats(16384, 3)};
  Floats expected;
  for (const Floats &input : inputs)
    for (size_t from = 0; from < input.size(); from += 16384) {
      Floats terms;
      for (size_t i = from; i < std::min(from + 16384, input.size()); ++i)
        terms.push_back(input[i] * input[i]);
      expected.push_back(laneSum(terms));
    }
  Floats sums(5);
  runner.run(
      "k", {inputs[0].data(), inputs[1].data(), inputs[2].data(), sums.data()},
      {}, 2, true);
  EXPECT_EQ(sums, expected);
}
