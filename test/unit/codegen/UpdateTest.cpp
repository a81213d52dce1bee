//===- UpdateTest.cpp - Compiled updates against the interpreter ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a step does below nn.update.
//
//===----------------------------------------------------------------------===//

#include "StepRunner.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>
#include <tuple>

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using interpreter::Tensor;

namespace {
/// A parameter of more than a block of sums, and more than a task of elements,
/// that decays; and one of less than a vector that does not.
std::string getStep(const std::string &scale) {
  return R"(
func.func @step(
    %p: tensor<123x150xf32> {nn.parameter = #nn.parameter<name = "p", init = zeros>}, %gp: tensor<123x150xf32> {nn.gradient = "p"},
    %mp: tensor<123x150xf32> {nn.moment1 = "p"}, %vp: tensor<123x150xf32> {nn.moment2 = "p"},
    %q: tensor<7xf32> {nn.parameter = #nn.parameter<name = "q", init = zeros>}, %gq: tensor<7xf32> {nn.gradient = "q"},
    %mq: tensor<7xf32> {nn.moment1 = "q"}, %vq: tensor<7xf32> {nn.moment2 = "q"},
    %lr: tensor<f32> {nn.input = "lr"}, %c1: tensor<f32> {nn.input = "bias_correction1"}, %c2: tensor<f32> {nn.input = "bias_correction2"})
    -> (tensor<f32>, tensor<123x150xf32>, tensor<123x150xf32>, tensor<123x150xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>) {
  nn.update
  %norm = nn.global_norm %gp, %gq : (tensor<123x150xf32>, tensor<7xf32>) -> tensor<f32>
  %scale = nn.clip_scale )" +
         scale + R"(
  %p1, %mp1, %vp1 = nn.adamw %p, %gp, %mp, %vp, %scale, %lr, %c1, %c2 beta1 0.9 beta2 0.95 eps 1.0e-08 weight_decay 0.1 : tensor<123x150xf32>, tensor<f32>
  %q1, %mq1, %vq1 = nn.adamw %q, %gq, %mq, %vq, %scale, %lr, %c1, %c2 beta1 0.8 beta2 0.999 eps 1.0e-02 weight_decay 0.0 : tensor<7xf32>, tensor<f32>
  return %norm, %p1, %mp1, %vp1, %q1, %mq1, %vq1 : tensor<f32>, tensor<123x150xf32>, tensor<123x150xf32>, tensor<123x150xf32>, tensor<7xf32>, tensor<7xf32>, tensor<7xf32>
})";
}

/// For every argument: numbers in [-1, 1), and above 0 for a second moment.
std::vector<Floats> makeArguments(func::FuncOp step) {
  std::vector<Floats> arguments;
  for (unsigned i = 0; i < step.getNumArguments(); ++i) {
    auto type = cast<ShapedType>(step.getArgumentTypes()[i]);
    Floats values = randomFloats(type.getNumElements(), i + 1);
    if (step.getArgAttr(i, nn::kMoment2Attr))
      for (float &value : values)
        value = 0.51f + 0.5f * value;
    arguments.push_back(values);
  }
  unsigned lr = arguments.size() - 3;
  arguments[lr] = {0.05f}, arguments[lr + 1] = {0.271f},
  arguments[lr + 2] = {0.142625f};
  return arguments;
}

class Update : public testing::TestWithParam<const char *> {};
} // namespace

TEST_P(Update, ClipsAndDecaysAsTheInterpreterDoes) {
  StepRunner runner(getStep(GetParam()));
  std::vector<Floats> arguments = makeArguments(runner.getStep());
  std::vector<Tensor> want = runner.interpret(arguments);
  runner.compile();
  std::vector<Floats> have = runner.launch(arguments, INT64_MAX);
  EXPECT_EQ(runner.launch(arguments, 1), have);

  // The sums of gradients are returned too, as zeros for the next step.
  ASSERT_EQ(have.size(), want.size() + 2);
  for (unsigned r = 0; r < want.size(); ++r)
    for (unsigned e = 0; e < have[r].size(); ++e)
      ASSERT_NEAR(have[r][e], want[r].values[e],
                  5e-7 * (1 + std::abs(want[r].values[e])))
          << "element " << e << " of result " << r;
  for (unsigned r = want.size(); r < have.size(); ++r)
    EXPECT_EQ(have[r], Floats(have[r].size(), 0.0f));
}

// The norm is about 78: clipped to less, and left as it is.
INSTANTIATE_TEST_SUITE_P(
    MaxNorms, Update,
    testing::Values("%norm max 20.0 : tensor<f32>",
                    "%norm max 100.0 : tensor<f32>", "%norm : tensor<f32>",
                    "%norm with %c1 max 20.0 : tensor<f32>, tensor<f32>"));

// Once a gradient, once what stands in the place of the loss is no number.
TEST(UpdateTest, ChangesNothingButGradientsIfSomethingIsNoNumber) {
  const float kInfinite = std::numeric_limits<float>::infinity();
  for (auto [scale, argument, value] :
       {std::tuple("%norm max 20.0 : tensor<f32>", 5, -kInfinite),
        std::tuple("%norm : tensor<f32>", 1, std::nanf("")),
        std::tuple("%norm with %c2 : tensor<f32>, tensor<f32>", 10, kInfinite),
        std::tuple("%norm with %c2 max 2.0 : tensor<f32>, tensor<f32>", 10,
                   std::nanf(""))}) {
    StepRunner runner(getStep(scale));
    std::vector<Floats> arguments = makeArguments(runner.getStep());
    arguments[argument].back() = value;
    std::vector<Tensor> want = runner.interpret(arguments);
    runner.compile();
    std::vector<Floats> have = runner.launch(arguments, INT64_MAX);
    const unsigned kept[] = {0, 2, 3, 4, 6, 7};
    for (unsigned i = 0; i < 6; ++i) {
      EXPECT_EQ(have[i + 1], arguments[kept[i]]) << scale << ", result " << i;
      for (unsigned e = 0; e < have[i + 1].size(); ++e)
        ASSERT_EQ(want[i + 1].values[e], arguments[kept[i]][e]);
    }
    for (unsigned r = 7; r < have.size(); ++r)
      EXPECT_EQ(have[r], Floats(have[r].size(), 0.0f));
  }
}
