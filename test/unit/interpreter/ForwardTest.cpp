//===- ForwardTest.cpp - What forward ops compute ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A gradient can be that of the wrong function: which columns are a pair, which
// heads share a key. Here are numbers worked out by hand, and ops against
// others that say the same.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Interpreter/Interpreter.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir;
using namespace reprise;
using interpreter::Tensor;
using Values = std::vector<double>;

namespace {
/// The results of the one function of `text` on `arguments`, which leave out
/// the tables of angles.
std::vector<Values> evaluate(const std::string &text,
                             std::vector<Values> arguments) {
  MLIRContext context;
  context.loadDialect<nn::NNDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(module) << text;
  auto function = *module->getOps<func::FuncOp>().begin();
  interpreter::Interpreter machine(function);
  unsigned next = 0;
  for (BlockArgument argument : function.getArguments()) {
    if (function.getArgAttr(argument.getArgNumber(), nn::kRotaryAttr))
      continue;
    Tensor tensor(cast<ShapedType>(argument.getType()).getShape());
    EXPECT_EQ(tensor.values.size(), arguments.at(next).size());
    tensor.values = arguments.at(next++);
    machine.set(argument, std::move(tensor));
  }
  std::vector<Values> results;
  FailureOr<std::vector<Tensor>> tensors = machine.run();
  EXPECT_TRUE(succeeded(tensors));
  for (Tensor &tensor : *tensors)
    results.push_back(std::move(tensor.values));
  return results;
}

/// `rows` rows of `columns` numbers between -1 and 1 that look random.
Values makeRows(int64_t rows, int64_t columns, double seed) {
  Values values;
  for (int64_t e = 0; e < rows * columns; ++e)
    values.push_back(std::sin(seed + 1.7 * double(e)));
  return values;
}

/// Each of the heads of rows, of `width` columns, `times` times in a row.
Values repeatHeads(const Values &rows, int64_t width, int64_t times) {
  Values repeated;
  for (size_t head = 0; head < rows.size(); head += width)
    for (int64_t time = 0; time < times; ++time)
      repeated.insert(repeated.end(), rows.begin() + head,
                      rows.begin() + head + width);
  return repeated;
}

void expectNear(const Values &have, const Values &want) {
  ASSERT_EQ(have.size(), want.size());
  for (size_t e = 0; e < want.size(); ++e)
    EXPECT_NEAR(have[e], want[e], 1e-7) << e;
}

/// At position 1 the first pair turns by 1, the second by 1/10. A unit vector
/// turns into the other column of its pair.
Values rotate(const char *style, Values row) {
  Values both(4, 0.0);
  both.insert(both.end(), row.begin(), row.end());
  Values out = evaluate(
      std::string(R"(
    func.func @f(%x: tensor<1x2x4xf32>, %t: tensor<2x4xf32> {nn.rotary = #nn.rotary<theta = 100.0 : f64>}) -> tensor<1x2x4xf32> {
      %y = nn.rope %x, %t heads 1 )") +
          style +
          R"( : (tensor<1x2x4xf32>, tensor<2x4xf32>) -> tensor<1x2x4xf32>
      return %y : tensor<1x2x4xf32>
    })",
      {both})[0];
  return Values(out.begin() + 4, out.end());
}

TEST(Forward, RopePairsHalvesOrNeighbours) {
  double c0 = std::cos(1.0), s0 = std::sin(1.0);
  double c1 = std::cos(0.1), s1 = std::sin(0.1);
  expectNear(rotate("half_split", {1, 0, 0, 0}), {c0, 0, s0, 0});
  expectNear(rotate("half_split", {0, 0, 0, 1}), {0, -s1, 0, c1});
  expectNear(rotate("interleaved", {1, 0, 0, 0}), {c0, s0, 0, 0});
  expectNear(rotate("interleaved", {0, 0, 0, 1}), {0, 0, -s1, c1});
}

/// Backward turns back, all heads of all rows.
TEST(Forward, RopeBackwardIsItsInverse) {
  Values x = makeRows(2 * 3, 12, 0.5);
  expectNear(evaluate(R"(
    func.func @f(%x: tensor<2x3x12xf32>, %t: tensor<3x4xf32> {nn.rotary = #nn.rotary<theta = 100.0 : f64>}) -> tensor<2x3x12xf32> {
      %y = nn.rope %x, %t heads 3 half_split : (tensor<2x3x12xf32>, tensor<3x4xf32>) -> tensor<2x3x12xf32>
      %z = nn.rope_backward %y, %t heads 3 half_split : (tensor<2x3x12xf32>, tensor<3x4xf32>) -> tensor<2x3x12xf32>
      return %z : tensor<2x3x12xf32>
    })",
                      {x})[0],
             x);
}

/// Of a head of four columns two, from `from` on: others stay.
TEST(Forward, RopeTurnsSomeColumns) {
  auto turn = [](const std::string &how) {
    return evaluate(
        R"(
    func.func @f(%x: tensor<1x2x8xf32>, %t: tensor<2x2xf32> {nn.rotary = #nn.rotary<theta = 100.0 : f64>}) -> tensor<1x2x8xf32> {
      %y = nn.rope %x, %t heads 2 )" +
            how +
            R"( : (tensor<1x2x8xf32>, tensor<2x2xf32>) -> tensor<1x2x8xf32>
      return %y : tensor<1x2x8xf32>
    })",
        {{0, 0, 0, 0, 0, 0, 0, 0, 1, 0, .3, .4, .5, .6, 0, 1}})[0];
  };
  double c = std::cos(1.0), s = std::sin(1.0);
  Values still(8, 0.0), first = still, last = still;
  for (double x : {c, s, .3, .4, .5 * c - .6 * s, .6 * c + .5 * s, 0.0, 1.0})
    first.push_back(x);
  for (double x : {1.0, 0.0, .3 * c - .4 * s, .4 * c + .3 * s, .5, .6, -s, c})
    last.push_back(x);
  expectNear(turn("half_split"), first);
  expectNear(turn("from 2 interleaved"), last);
}

/// Two heads of two columns: mean squares 12.5 and 50, and eps 0.5.
TEST(Forward, RMSNormOfHeads) {
  auto results = evaluate(R"(
    func.func @f(%x: tensor<1x4xf32>, %g: tensor<2xf32>) -> (tensor<1x4xf32>, tensor<1x2xf32>) {
      %y, %rstd = nn.rms_norm %x, %g eps 0.5 : (tensor<1x4xf32>, tensor<2xf32>) -> (tensor<1x4xf32>, tensor<1x2xf32>)
      return %y, %rstd : tensor<1x4xf32>, tensor<1x2xf32>
    })",
                          {{3, -4, 6, 8}, {1, 2}});
  double r0 = 1 / std::sqrt(13.0), r1 = 1 / std::sqrt(50.5);
  expectNear(results[0], {3 * r0, -8 * r0, 6 * r1, 16 * r1});
  expectNear(results[1], {r0, r1});
}

TEST(Forward, SwiGLU) {
  Values out = evaluate(R"(
    func.func @f(%g: tensor<3xf32>, %u: tensor<3xf32>) -> tensor<3xf32> {
      %y = nn.swiglu %g, %u : tensor<3xf32>
      return %y : tensor<3xf32>
    })",
                        {{0, std::log(3.0), -std::log(3.0)}, {5, 4, 4}})[0];
  expectNear(out, {0, 3 * std::log(3.0), -std::log(3.0)});
}

TEST(Forward, SquaredRelu) {
  std::vector<Values> out = evaluate(R"(
    func.func @f(%x: tensor<4xf32>, %dy: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %y = nn.squared_relu %x : tensor<4xf32>
      %dx = nn.squared_relu_backward %x, %dy : tensor<4xf32>
      return %y, %dx : tensor<4xf32>, tensor<4xf32>
    })",
                                     {{-3, 0, 0.5, 4}, {7, 7, 3, -2}});
  expectNear(out[0], {0, 0, 0.25, 16});
  expectNear(out[1], {0, 0, 3, -16});
}

/// Three heads of the query on each of two of keys and values are six heads on
/// six, each key and value three times.
TEST(Forward, SharedKeysAreRepeatedKeys) {
  Values query = makeRows(2 * 3, 12, 0.1);
  Values key = makeRows(2 * 3, 4, 0.2), value = makeRows(2 * 3, 4, 0.3);
  auto attend = [&](std::string heads, const char *narrow, Values k, Values v) {
    std::string keys = std::string("tensor<2x3x") + narrow + "xf32>";
    return evaluate(
        "func.func @f(%q: tensor<2x3x12xf32>, %k: " + keys + ", %v: " + keys +
            ", %rng: tensor<4xi32>) -> (tensor<2x3x12xf32>, "
            "tensor<2x6x3x3xf32>, tensor<2x3x12xf32>) {\n"
            "%ctx, %lse = nn.attention %q, %k, %v, %rng " +
            heads + " scale 0.6 rate 0.3 stream 1 : (tensor<2x3x12xf32>, " +
            keys + ", " + keys +
            ", tensor<4xi32>) -> (tensor<2x3x12xf32>, tensor<2x6x3xf32>)\n"
            "%s = nn.scores %q, %k " +
            heads + " scale 0.6 : (tensor<2x3x12xf32>, " + keys +
            ") -> tensor<2x6x3x3xf32>\n"
            "%c = nn.context %s, %v " +
            heads + " scale 0.9 : (tensor<2x6x3x3xf32>, " + keys +
            ") -> tensor<2x3x12xf32>\n"
            "return %ctx, %s, %c : tensor<2x3x12xf32>, tensor<2x6x3x3xf32>, "
            "tensor<2x3x12xf32>\n}",
        {query, k, v, {1, 2, 3, 4}});
  };
  auto shared = attend("heads 6 kv_heads 2", "4", key, value);
  auto repeated =
      attend("heads 6", "12", repeatHeads(key, 2, 3), repeatHeads(value, 2, 3));
  for (unsigned result : {0u, 1u, 2u})
    expectNear(shared[result], repeated[result]);
}
/// At 1 two neighbours are 2^-7 apart: what lies in the middle goes to the even
/// one, here below and there above. Sums within an op are exact; what it hands
/// on is not.
TEST(Rounding, IsOfResultsInBF16) {
  const double step = 0x1p-7;
  std::vector<Values> results = evaluate(
      R"(func.func @f(%x: tensor<4xf32>) -> (tensor<4xbf16>, tensor<4xbf16>, tensor<4xf32>) {
        %y = nn.cast %x : (tensor<4xf32>) -> tensor<4xbf16>
        %z = nn.scale %y by 1.0078125 : tensor<4xbf16>
        %w = nn.cast %z : (tensor<4xbf16>) -> tensor<4xf32>
        return %y, %z, %w : tensor<4xbf16>, tensor<4xbf16>, tensor<4xf32>
      })",
      {{1 + 0.5 * step, 1 + 1.5 * step, 1 + 0.51 * step, 3e38}});
  double huge = 226 * 0x1p120;
  EXPECT_EQ(results[0], (Values{1, 1 + 2 * step, 1 + step, huge}));
  // (1 + 2s)(1 + s) = 1 + 3s + 2ss, (1 + s)^2 = 1 + 2s + ss.
  EXPECT_EQ(results[1],
            (Values{1 + step, 1 + 3 * step, 1 + 2 * step, 228 * 0x1p120}));
  EXPECT_EQ(results[2], results[1]);
}

/// Chunks of logits are rounded as whole logits are.
TEST(Rounding, IsOfLogitsInChunks) {
  std::string head =
      R"(func.func @f(%x: tensor<1x2x3xbf16>, %w: tensor<4x3xbf16>, %t: tensor<1x2xi32>, %gw: tensor<4x3xf32>)
      -> (tensor<1x2xf32>, tensor<1x2x3xbf16>, tensor<4x3xf32>) {)";
  std::vector<Values> arguments = {
      makeRows(2, 3, 1), makeRows(4, 3, 2), {3, 0}, makeRows(4, 3, 3)};
  std::vector<Values> whole = evaluate(head + R"(
      %logits = nn.linear %x, %w out_in : (tensor<1x2x3xbf16>, tensor<4x3xbf16>) -> tensor<1x2x4xbf16>
      %l, %lse = nn.cross_entropy %logits, %t : (tensor<1x2x4xbf16>, tensor<1x2xi32>) -> (tensor<1x2xf32>, tensor<1x2xf32>)
      %dl = nn.constant 0.4 : tensor<1x2xf32>
      %d = nn.cross_entropy_backward %logits, %t, %lse, %dl : (tensor<1x2x4xbf16>, tensor<1x2xi32>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2x4xbf16>
      %dx = nn.linear_backward_input %d, %w out_in : (tensor<1x2x4xbf16>, tensor<4x3xbf16>) -> tensor<1x2x3xbf16>
      %dw = nn.linear_backward_weight %x, %d out_in : (tensor<1x2x3xbf16>, tensor<1x2x4xbf16>) -> tensor<4x3xf32>
      %sum = nn.accumulate %gw, %dw : tensor<4x3xf32>
      return %l, %dx, %sum : tensor<1x2xf32>, tensor<1x2x3xbf16>, tensor<4x3xf32>
    })",
                                       arguments);
  std::vector<Values> chunks = evaluate(head + R"(
      %l, %dx, %sum = nn.linear_cross_entropy %x, %w, %t sum(%gw) by 0.4 dinput out_in rows 1024
        : (tensor<1x2x3xbf16>, tensor<4x3xbf16>, tensor<1x2xi32>, tensor<4x3xf32>) -> (tensor<1x2xf32>, tensor<1x2x3xbf16>, tensor<4x3xf32>)
      return %l, %dx, %sum : tensor<1x2xf32>, tensor<1x2x3xbf16>, tensor<4x3xf32>
    })",
                                        arguments);
  for (size_t r = 0; r < whole.size(); ++r)
    for (size_t e = 0; e < whole[r].size(); ++e)
      EXPECT_NEAR(chunks[r][e], whole[r][e], 1e-14) << r << " " << e;
}
} // namespace

// Rows of two layers; where logits are equal, each token expects their mean,
// and where one is far above the others, that expert's.
TEST(Experts, ExpectRows) {
  std::vector<Values> results =
      evaluate(R"(
    func.func @f(%l: tensor<2x3xf32>, %o: tensor<4xi32>, %p: tensor<4xi32>) -> (tensor<3xf32>, tensor<2xf32>, tensor<2x3xf32>) {
      %n = nn.count_rows %o, %p : (tensor<4xi32>, tensor<4xi32>) -> tensor<3xf32>
      %e = nn.expected_rows %l, %n : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2xf32>
      %d = nn.expected_rows_backward %l, %n, %e : (tensor<2x3xf32>, tensor<3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
      return %n, %e, %d : tensor<3xf32>, tensor<2xf32>, tensor<2x3xf32>
    })",
               {{1, 1, 1, 0, 90, 0}, {0, 2, 2, 5}, {0, 1, 5, 5}});
  EXPECT_EQ(results[0], (Values{3, 4, 3}));
  expectNear(results[1], {10.0 / 3, 4});
  const double third = 10.0 / 9;
  expectNear(results[2], {third * (3 - 10.0 / 3), third * (4 - 10.0 / 3),
                          third * (3 - 10.0 / 3), 0, 0, 0});
}

TEST(Experts, HaveSharesOfAllRows) {
  const char *text = R"(
    func.func @f(%n: tensor<4xf32>) -> (tensor<4xf32>) {
      %s = nn.row_shares %n : tensor<4xf32>
      return %s : tensor<4xf32>
    })";
  EXPECT_EQ(evaluate(text, {{3, 0, 4, 1}})[0], (Values{0.375, 0, 0.5, 0.125}));
  EXPECT_EQ(evaluate(text, {{0, 0, 0, 0}})[0], (Values{0, 0, 0, 0}));
}

TEST(Experts, AreBalancedOverAllTokens) {
  std::vector<Values> results = evaluate(
      R"(
    func.func @f(%l: tensor<2x3xf32>, %n: tensor<3xf32>, %t: tensor<f32>) -> (tensor<2xf32>, tensor<3xf32>, tensor<f32>, tensor<3xf32>) {
      %s = nn.row_logsumexp %l : (tensor<2x3xf32>) -> tensor<2xf32>
      %p = nn.sum_probabilities %l, %s : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<3xf32>
      %b = nn.balance_loss %n, %p by 0.5 : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
      %d = nn.balance_loss_backward %n, %t by 0.5 : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
      return %s, %p, %b, %d : tensor<2xf32>, tensor<3xf32>, tensor<f32>, tensor<3xf32>
    })",
      {{1, 1, 1, 0, 90, 0}, {3, 4, 2}, {6}});
  const double third = 1.0 / 3;
  expectNear(results[0], {1 + std::log(3), 90});
  expectNear(results[1], {third, 1 + third, third});
  expectNear(results[2], {0.5 * (3 * third + 4 * (1 + third) + 2 * third)});
  expectNear(results[3], {9, 12, 6});
}

std::vector<Values> choose(const std::string &how, const Values &logits,
                           const Values &bias) {
  return evaluate(R"(
    func.func @f(%l: tensor<2x6xf32>, %b: tensor<6xf32>) -> (tensor<2x2xi32>) {
      %ids = nn.choose_experts %l )" +
                      how + R"( -> tensor<2x2xi32>
      return %ids : tensor<2x2xi32>
    })",
                  {logits, bias});
}

// Groups {0, 1}, {2, 3} and {4, 5}.
TEST(Experts, AreOfTheBestGroups) {
  const char *best = "groups 3 keep 1 : (tensor<2x6xf32>)";
  const char *sum = "groups 3 keep 1 by_two : (tensor<2x6xf32>)";
  const char *two = "groups 3 keep 2 by_two : (tensor<2x6xf32>)";
  // The second group has the largest, the first the largest two; of equal
  // groups the first.
  Values logits = {4, 4, 5, 0, 3, 1, /**/ 1, 2, 0, 3, 2, 1};
  Values none(6, 0.0);
  EXPECT_EQ(choose(best, logits, none)[0], (Values{2, 3, 2, 3}));
  EXPECT_EQ(choose(sum, logits, none)[0], (Values{0, 1, 0, 1}));
  EXPECT_EQ(choose(two, logits, none)[0], (Values{0, 2, 1, 3}));
  // All that is left is below zero, and yet no other expert comes in. A group
  // with what is no number comes behind others, and of it what is one.
  EXPECT_EQ(choose(two, {-9, -8, -4, -3, -1, -90, NAN, -8, -4, NAN, -99, -99},
                   none)[0],
            (Values{2, 3, 1, 4}));
}

// A bias changes what is chosen, and not by how much.
TEST(Experts, AreChosenWithABias) {
  Values logits = {1, 0, -1, 2, 0, 0, /**/ 40, 50, 60, 0, 0, 0};
  const char *plain = "sigmoid : (tensor<2x6xf32>)";
  const char *biased = "bias %b sigmoid : (tensor<2x6xf32>, tensor<6xf32>)";
  Values bias = {0, 0.3, 0.4, -0.5, 0, 0};
  EXPECT_EQ(choose(plain, logits, bias)[0][0], 0);
  EXPECT_EQ(choose(plain, logits, bias)[0][1], 3);
  // 0.73, 0.8, 0.67, 0.38, 0.5, 0.5
  EXPECT_EQ(choose(biased, logits, bias)[0][0], 0);
  EXPECT_EQ(choose(biased, logits, bias)[0][1], 1);
  // 1, 1.3, 1.4
  EXPECT_EQ(choose(biased, logits, bias)[0][2], 1);
  EXPECT_EQ(choose(biased, logits, bias)[0][3], 2);
}

TEST(Experts, HaveSigmoidsForWeights) {
  auto weigh = [](const std::string &how) {
    return evaluate(
        R"(
    func.func @f(%l: tensor<1x3xf32>, %i: tensor<1x2xi32>) -> tensor<1x2xf32> {
      %w = nn.expert_weights %l, %i sigmoid )" +
            how + R"( : (tensor<1x3xf32>, tensor<1x2xi32>) -> tensor<1x2xf32>
      return %w : tensor<1x2xf32>
    })",
        {{std::log(3.0), 7, -std::log(3.0)}, {0, 2}})[0];
  };
  expectNear(weigh(""), {0.75, 0.25});
  expectNear(weigh("scale 2.0"), {1.5, 0.5});
  expectNear(weigh("normalized scale 4.0"), {3, 1});
}

// Of equal logits the lower index is chosen, and rows are sorted by expert and
// then by token. Expert 1 has no row; what is no number is never chosen.
TEST(Experts, AreChosenAndSorted) {
  std::vector<Values> results = evaluate(R"(
    func.func @f(%l: tensor<3x4xf32>) -> (tensor<3x2xi32>, tensor<6xi32>, tensor<3x2xi32>, tensor<5xi32>, tensor<3x2xf32>) {
      %ids = nn.choose_experts %l : (tensor<3x4xf32>) -> tensor<3x2xi32>
      %o, %i, %e = nn.sort_rows %ids : (tensor<3x2xi32>) -> (tensor<6xi32>, tensor<3x2xi32>, tensor<5xi32>)
      %w = nn.expert_weights %l, %ids normalized : (tensor<3x4xf32>, tensor<3x2xi32>) -> tensor<3x2xf32>
      return %ids, %o, %i, %e, %w : tensor<3x2xi32>, tensor<6xi32>, tensor<3x2xi32>, tensor<5xi32>, tensor<3x2xf32>
    })",
                                         {{3, -1, 1, 1, //
                                           0, -2, 3, 3, //
                                           -3, NAN, -5, -4}});
  EXPECT_EQ(results[0], (Values{0, 2, 2, 3, 0, 3}));
  EXPECT_EQ(results[1], (Values{0, 4, 1, 2, 3, 5}));
  EXPECT_EQ(results[2], (Values{0, 2, 3, 4, 1, 5}));
  EXPECT_EQ(results[3], (Values{0, 2, 2, 4, 6}));
  // What is no number shows in the weights of its token.
  results[4].resize(4);
  const double larger = 1 / (1 + std::exp(-2.0));
  expectNear(results[4], {larger, 1 - larger, 0.5, 0.5});
}
