//===- HeadsTest.cpp - Norms, rotations, gates, shared heads ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops forward and backward, formed and compiled, against the interpreter, with
// widths that are no multiple of 16 lanes; and the same bits however tasks are
// divided.
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
struct Case {
  const char *name, *step;
  double tolerance = 1e-6;
};

void PrintTo(const Case &value, std::ostream *stream) { *stream << value.name; }

const Case kCases[] = {
    {"RMSNormOfRows", R"(
func.func @step(%x: tensor<2x13x37xf32>, %g: tensor<37xf32>, %dy: tensor<2x13x37xf32>, %sum: tensor<37xf32>)
    -> (tensor<2x13x37xf32>, tensor<2x13xf32>, tensor<2x13x37xf32>, tensor<37xf32>) {
  %y, %rstd = nn.rms_norm %x, %g eps 1.0e-01 : (tensor<2x13x37xf32>, tensor<37xf32>) -> (tensor<2x13x37xf32>, tensor<2x13xf32>)
  nn.backward
  %dx = nn.rms_norm_backward %x, %g, %rstd, %dy : (tensor<2x13x37xf32>, tensor<37xf32>, tensor<2x13xf32>, tensor<2x13x37xf32>) -> tensor<2x13x37xf32>
  %dg = nn.rms_norm_backward_gain %x, %rstd, %dy : (tensor<2x13x37xf32>, tensor<2x13xf32>, tensor<2x13x37xf32>) -> tensor<37xf32>
  %new = nn.accumulate %sum, %dg : tensor<37xf32>
  return %y, %rstd, %dx, %new : tensor<2x13x37xf32>, tensor<2x13xf32>, tensor<2x13x37xf32>, tensor<37xf32>
})"},
    {"RMSNormOfHeads", R"(
func.func @step(%x: tensor<2x5x78xf32>, %g: tensor<13xf32>, %dy: tensor<2x5x78xf32>)
    -> (tensor<2x5x78xf32>, tensor<2x5x6xf32>, tensor<2x5x78xf32>, tensor<13xf32>) {
  %y, %rstd = nn.rms_norm %x, %g eps 1.0e-06 : (tensor<2x5x78xf32>, tensor<13xf32>) -> (tensor<2x5x78xf32>, tensor<2x5x6xf32>)
  nn.backward
  %dx = nn.rms_norm_backward %x, %g, %rstd, %dy : (tensor<2x5x78xf32>, tensor<13xf32>, tensor<2x5x6xf32>, tensor<2x5x78xf32>) -> tensor<2x5x78xf32>
  %dg = nn.rms_norm_backward_gain %x, %rstd, %dy : (tensor<2x5x78xf32>, tensor<2x5x6xf32>, tensor<2x5x78xf32>) -> tensor<13xf32>
  return %y, %rstd, %dx, %dg : tensor<2x5x78xf32>, tensor<2x5x6xf32>, tensor<2x5x78xf32>, tensor<13xf32>
})"},
    {"RopeOfHalves", R"(
func.func @step(%x: tensor<2x7x114xf32>, %r: tensor<7x38xf32>) -> (tensor<2x7x114xf32>, tensor<2x7x114xf32>) {
  %y = nn.rope %x, %r heads 3 half_split : (tensor<2x7x114xf32>, tensor<7x38xf32>) -> tensor<2x7x114xf32>
  nn.backward
  %dx = nn.rope_backward %x, %r heads 3 half_split : (tensor<2x7x114xf32>, tensor<7x38xf32>) -> tensor<2x7x114xf32>
  return %y, %dx : tensor<2x7x114xf32>, tensor<2x7x114xf32>
})"},
    {"RopeOfNeighbours", R"(
func.func @step(%x: tensor<2x7x60xf32>, %r: tensor<7x10xf32>) -> (tensor<2x7x60xf32>, tensor<2x7x60xf32>) {
  %y = nn.rope %x, %r heads 6 interleaved : (tensor<2x7x60xf32>, tensor<7x10xf32>) -> tensor<2x7x60xf32>
  nn.backward
  %dx = nn.rope_backward %x, %r heads 6 interleaved : (tensor<2x7x60xf32>, tensor<7x10xf32>) -> tensor<2x7x60xf32>
  return %y, %dx : tensor<2x7x60xf32>, tensor<2x7x60xf32>
})"},
    // Columns that stay before or behind those that are turned; rows of a half,
    // of two columns and of one.
    {"RopeOfFirstColumns", R"(
func.func @step(%x: tensor<2x7x114xf32>, %r: tensor<7x18xf32>) -> (tensor<2x7x114xf32>, tensor<2x7x114xf32>) {
  %y = nn.rope %x, %r heads 3 half_split : (tensor<2x7x114xf32>, tensor<7x18xf32>) -> tensor<2x7x114xf32>
  nn.backward
  %dx = nn.rope_backward %x, %r heads 3 half_split : (tensor<2x7x114xf32>, tensor<7x18xf32>) -> tensor<2x7x114xf32>
  return %y, %dx : tensor<2x7x114xf32>, tensor<2x7x114xf32>
})"},
    {"RopeOfLastHalf", R"(
func.func @step(%x: tensor<2x7x192xf32>, %r: tensor<7x32xf32>) -> (tensor<2x7x192xf32>, tensor<2x7x192xf32>) {
  %y = nn.rope %x, %r heads 3 from 32 half_split : (tensor<2x7x192xf32>, tensor<7x32xf32>) -> tensor<2x7x192xf32>
  nn.backward
  %dx = nn.rope_backward %x, %r heads 3 from 32 half_split : (tensor<2x7x192xf32>, tensor<7x32xf32>) -> tensor<2x7x192xf32>
  return %y, %dx : tensor<2x7x192xf32>, tensor<2x7x192xf32>
})"},
    {"RopeOfLastNeighbours", R"(
func.func @step(%x: tensor<2x7x60xf32>, %r: tensor<7x6xf32>) -> (tensor<2x7x60xf32>, tensor<2x7x60xf32>) {
  %y = nn.rope %x, %r heads 6 from 4 interleaved : (tensor<2x7x60xf32>, tensor<7x6xf32>) -> tensor<2x7x60xf32>
  nn.backward
  %dx = nn.rope_backward %x, %r heads 6 from 4 interleaved : (tensor<2x7x60xf32>, tensor<7x6xf32>) -> tensor<2x7x60xf32>
  return %y, %dx : tensor<2x7x60xf32>, tensor<2x7x60xf32>
})"},
    {"RopeOfOddPlaces", R"(
func.func @step(%x: tensor<2x7x44xf32>, %r: tensor<7x6xf32>) -> (tensor<2x7x44xf32>, tensor<2x7x44xf32>) {
  %y = nn.rope %x, %r heads 4 from 3 interleaved : (tensor<2x7x44xf32>, tensor<7x6xf32>) -> tensor<2x7x44xf32>
  nn.backward
  %dx = nn.rope_backward %x, %r heads 4 from 5 half_split : (tensor<2x7x44xf32>, tensor<7x6xf32>) -> tensor<2x7x44xf32>
  return %y, %dx : tensor<2x7x44xf32>, tensor<2x7x44xf32>
})"},
    {"LatentHeads", R"(
func.func @step(%x: tensor<3x29x24xf32>, %kv: tensor<3x29x93xf32>, %dk: tensor<3x29x75xf32>, %dv: tensor<3x29x51xf32>)
    -> (tensor<3x29x21xf32>, tensor<3x29x3xf32>, tensor<3x29x51xf32>, tensor<3x29x51xf32>, tensor<3x29x93xf32>, tensor<3x29x3xf32>, tensor<3x29x24xf32>) {
  %c, %r = nn.split_columns %x : (tensor<3x29x24xf32>) -> (tensor<3x29x21xf32>, tensor<3x29x3xf32>)
  %k, %v = nn.latent_heads %kv, %r heads 3 : (tensor<3x29x93xf32>, tensor<3x29x3xf32>) -> (tensor<3x29x51xf32>, tensor<3x29x51xf32>)
  nn.backward
  %dkv, %dr = nn.latent_heads_backward %k, %v heads 3 : (tensor<3x29x51xf32>, tensor<3x29x51xf32>) -> (tensor<3x29x93xf32>, tensor<3x29x3xf32>)
  %dx = nn.join_columns %c, %dr : (tensor<3x29x21xf32>, tensor<3x29x3xf32>) -> tensor<3x29x24xf32>
  return %c, %r, %k, %v, %dkv, %dr, %dx : tensor<3x29x21xf32>, tensor<3x29x3xf32>, tensor<3x29x51xf32>, tensor<3x29x51xf32>, tensor<3x29x93xf32>, tensor<3x29x3xf32>, tensor<3x29x24xf32>
})"},
    {"Positions", R"(
func.func @step(%x: tensor<3x29x24xf32>, %ids: tensor<3x29xi32>, %table: tensor<1x24xf32>)
    -> (tensor<3x21x24xf32>, tensor<3x29x24xf32>, tensor<3x29x24xf32>, tensor<3x25x24xf32>) {
  %y = nn.crop_positions %x from 5 : (tensor<3x29x24xf32>) -> tensor<3x21x24xf32>
  %further = nn.crop_positions %ids from 4 : (tensor<3x29xi32>) -> tensor<3x25xi32>
  %e = nn.embedding %further, %table : (tensor<3x25xi32>, tensor<1x24xf32>) -> tensor<3x25x24xf32>
  %p = nn.pad_positions %y from 5 : (tensor<3x21x24xf32>) -> tensor<3x29x24xf32>
  %q = nn.pad_positions %e from 0 : (tensor<3x25x24xf32>) -> tensor<3x29x24xf32>
  return %y, %p, %q, %e : tensor<3x21x24xf32>, tensor<3x29x24xf32>, tensor<3x29x24xf32>, tensor<3x25x24xf32>
})"},
    {"OnePosition", R"(
func.func @step(%x: tensor<2x3x1xf32>) -> (tensor<2x1x1xf32>, tensor<2x3x1xf32>) {
  %y = nn.crop_positions %x from 2 : (tensor<2x3x1xf32>) -> tensor<2x1x1xf32>
  %p = nn.pad_positions %y from 1 : (tensor<2x1x1xf32>) -> tensor<2x3x1xf32>
  return %y, %p : tensor<2x1x1xf32>, tensor<2x3x1xf32>
})"},
    {"RopeOfOnePair", R"(
func.func @step(%x: tensor<1x1x2xf32>, %r: tensor<1x2xf32>) -> (tensor<1x1x2xf32>, tensor<1x1x2xf32>) {
  %y = nn.rope %x, %r heads 1 half_split : (tensor<1x1x2xf32>, tensor<1x2xf32>) -> tensor<1x1x2xf32>
  %z = nn.rope %x, %r heads 1 interleaved : (tensor<1x1x2xf32>, tensor<1x2xf32>) -> tensor<1x1x2xf32>
  return %y, %z : tensor<1x1x2xf32>, tensor<1x1x2xf32>
})"},
    {"SwiGLU", R"(
func.func @step(%g: tensor<3x7x11xf32>, %u: tensor<3x7x11xf32>, %dy: tensor<3x7x11xf32>)
    -> (tensor<3x7x11xf32>, tensor<3x7x11xf32>, tensor<3x7x11xf32>) {
  %wide = nn.scale %g by 90.0 : tensor<3x7x11xf32>
  %y = nn.swiglu %wide, %u : tensor<3x7x11xf32>
  nn.backward
  %dg, %du = nn.swiglu_backward %g, %u, %dy : tensor<3x7x11xf32>
  return %y, %dg, %du : tensor<3x7x11xf32>, tensor<3x7x11xf32>, tensor<3x7x11xf32>
})",
     2e-5},
    {"SharedHeadsUnfused", R"(
func.func @step(%q: tensor<2x9x78xf32>, %k: tensor<2x9x26xf32>, %p: tensor<2x6x9x9xf32>, %dctx: tensor<2x9x78xf32>)
    -> (tensor<2x6x9x9xf32>, tensor<2x9x78xf32>, tensor<2x9x26xf32>) {
  %s = nn.scores %q, %k heads 6 kv_heads 2 scale 2.5e-01 : (tensor<2x9x78xf32>, tensor<2x9x26xf32>) -> tensor<2x6x9x9xf32>
  %ctx = nn.context %p, %k heads 6 kv_heads 2 scale 1.0 : (tensor<2x6x9x9xf32>, tensor<2x9x26xf32>) -> tensor<2x9x78xf32>
  nn.backward
  %dv = nn.context %p, %dctx heads 6 kv_heads 2 scale 5.0e-01 transposed : (tensor<2x6x9x9xf32>, tensor<2x9x78xf32>) -> tensor<2x9x26xf32>
  return %s, %ctx, %dv : tensor<2x6x9x9xf32>, tensor<2x9x78xf32>, tensor<2x9x26xf32>
})"},
    {"SharedHeadsFused", R"(
func.func @step(%q: tensor<2x19x78xf32>, %k: tensor<2x19x26xf32>, %v: tensor<2x19x26xf32>, %dctx: tensor<2x19x78xf32>, %rng: tensor<4xi32>)
    -> (tensor<2x19x78xf32>, tensor<2x19x78xf32>, tensor<2x19x26xf32>, tensor<2x19x26xf32>) {
  %ctx, %lse = nn.attention %q, %k, %v, %rng heads 6 kv_heads 2 scale 2.5e-01 rate 2.0e-01 stream 3
    : (tensor<2x19x78xf32>, tensor<2x19x26xf32>, tensor<2x19x26xf32>, tensor<4xi32>) -> (tensor<2x19x78xf32>, tensor<2x6x19xf32>)
  nn.backward
  %dq, %dk, %dv = nn.attention_backward %q, %k, %v, %ctx, %lse, %dctx, %rng heads 6 kv_heads 2 scale 2.5e-01 rate 2.0e-01 stream 3
    : (tensor<2x19x78xf32>, tensor<2x19x26xf32>, tensor<2x19x26xf32>, tensor<2x19x78xf32>, tensor<2x6x19xf32>, tensor<2x19x78xf32>, tensor<4xi32>)
      -> (tensor<2x19x78xf32>, tensor<2x19x26xf32>, tensor<2x19x26xf32>)
  return %ctx, %dq, %dk, %dv : tensor<2x19x78xf32>, tensor<2x19x78xf32>, tensor<2x19x26xf32>, tensor<2x19x26xf32>
})",
     5e-6},
};

class Heads : public testing::TestWithParam<Case> {};
} // namespace

TEST_P(Heads, AreWhatTheInterpreterSays) {
  StepRunner runner(GetParam().step);
  std::vector<Floats> arguments;
  for (Type type : runner.getStep().getArgumentTypes()) {
    auto shaped = cast<ShapedType>(type);
    // Words of randomness are zeros, which are the same bits.
    arguments.push_back(
        shaped.getElementType().isF32()
            ? randomFloats(shaped.getNumElements(), arguments.size() + 1)
            : Floats(shaped.getNumElements(), 0.0f));
  }
  std::vector<Tensor> want = runner.interpret(arguments);
  runner.compile();
  std::vector<Floats> have = runner.launch(arguments, INT64_MAX);
  EXPECT_EQ(runner.launch(arguments, 1), have);
  ASSERT_EQ(have.size(), want.size());
  for (unsigned r = 0; r < want.size(); ++r)
    for (unsigned e = 0; e < have[r].size(); ++e)
      ASSERT_NEAR(have[r][e], want[r].values[e],
                  GetParam().tolerance * (1 + std::abs(want[r].values[e])))
          << "element " << e << " of result " << r;
}

INSTANTIATE_TEST_SUITE_P(Cases, Heads, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case> &info) {
                           return info.param.name;
                         });
