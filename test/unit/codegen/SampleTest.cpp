//===- SampleTest.cpp - Compiled sampling against the interpreter ---------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A model that only goes forward: the logits of one position of each row.
//
//===----------------------------------------------------------------------===//

#include "StepRunner.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using interpreter::Tensor;

namespace {
const char *const kSample = R"(
func.func @step(%tokens: tensor<3x5xi32>, %rng: tensor<4xi32>, %position: tensor<3xi32>,
                %wte: tensor<41x18xf32>, %wpe: tensor<5x18xf32>, %gain: tensor<18xf32>, %bias: tensor<18xf32>)
    -> (tensor<3x18xf32>, tensor<3x41xf32>) {
  %e = nn.embedding %tokens, %wte : (tensor<3x5xi32>, tensor<41x18xf32>) -> tensor<3x5x18xf32>
  %x = nn.add_positions %e, %wpe : (tensor<3x5x18xf32>, tensor<5x18xf32>) -> tensor<3x5x18xf32>
  %ctx, %lse = nn.attention %x, %x, %x, %rng heads 2 scale 0.3 rate 0.0 stream 0
    : (tensor<3x5x18xf32>, tensor<3x5x18xf32>, tensor<3x5x18xf32>, tensor<4xi32>) -> (tensor<3x5x18xf32>, tensor<3x2x5xf32>)
  %n, %mean, %rstd = nn.layer_norm %ctx, %gain, %bias eps 1.0e-05
    : (tensor<3x5x18xf32>, tensor<18xf32>, tensor<18xf32>) -> (tensor<3x5x18xf32>, tensor<3x5xf32>, tensor<3x5xf32>)
  %last = nn.take_position %n, %position : (tensor<3x5x18xf32>, tensor<3xi32>) -> tensor<3x18xf32>
  %logits = nn.linear %last, %wte out_in : (tensor<3x18xf32>, tensor<41x18xf32>) -> tensor<3x41xf32>
  return %last, %logits : tensor<3x18xf32>, tensor<3x41xf32>
})";

/// Whole numbers as the bits that a kernel finds in memory.
Floats asBits(const Floats &numbers) {
  Floats bits;
  for (float number : numbers)
    bits.push_back(llvm::bit_cast<float>(int32_t(number)));
  return bits;
}
} // namespace

TEST(Sample, LogitsOfAPositionAreTheInterpreters) {
  StepRunner runner(kSample);
  Floats tokens, rng(4, 0), position = {4, 0, 2};
  for (int i = 0; i < 15; ++i)
    tokens.push_back(float(i * 11 % 41));
  std::vector<Floats> arguments = {tokens, rng, position};
  for (int64_t size : {41 * 18, 5 * 18, 18, 18})
    arguments.push_back(randomFloats(size, arguments.size()));
  std::vector<Tensor> want = runner.interpret(arguments);
  for (unsigned i : {0u, 1u, 2u})
    arguments[i] = asBits(arguments[i]);
  runner.compile();
  std::vector<Floats> have = runner.launch(arguments, INT64_MAX);
  EXPECT_EQ(runner.launch(arguments, 1), have);
  ASSERT_EQ(have.size(), want.size());
  for (unsigned r = 0; r < want.size(); ++r)
    for (unsigned e = 0; e < have[r].size(); ++e)
      ASSERT_NEAR(have[r][e], want[r].values[e],
                  2e-6 * (1 + std::abs(want[r].values[e])))
          << "element " << e << " of result " << r;
}
