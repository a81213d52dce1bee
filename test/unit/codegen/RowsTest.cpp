//===- RowsTest.cpp - What goes over rows, alone and joined -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel of several ops has the bits of its ops in kernels of their own, also
// where its results take the bytes of what it reads.
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>

using namespace reprise::codegen;

using Bytes = std::vector<uint8_t>;

static std::string replaceAll(std::string text, const std::string &from,
                              const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

namespace {
struct Case {
  int64_t rows, cols;
  bool isBF16;

  std::string fill(std::string text) const {
    std::string r = std::to_string(rows), c = std::to_string(cols);
    text = replaceAll(
        text, "ALL", "tensor<2x" + r + "x" + c + (isBF16 ? "xbf16>" : "xf32>"));
    text = replaceAll(text, "ROW", "tensor<2x" + r + "xf32>");
    return replaceAll(text, "COL", "tensor<" + c + "xf32>");
  }
  size_t numBytes() const { return 2 * rows * cols * (isBF16 ? 2 : 4); }

  /// Reproducible numbers in [-1, 1).
  Bytes numbers(uint64_t seed) const {
    return bytesOf(randomFloats(2 * rows * cols, seed));
  }
  Bytes bytesOf(const Floats &values) const {
    Bytes bytes(numBytes());
    for (size_t i = 0; i < values.size(); ++i)
      if (isBF16)
        std::memcpy(&bytes[2 * i],
                    reinterpret_cast<const char *>(&values[i]) + 2, 2);
      else
        std::memcpy(&bytes[4 * i], &values[i], 4);
    return bytes;
  }
};

class Joined : public testing::TestWithParam<Case> {};
} // namespace

/// Remainders of vectors and of runs, one row, rows of one column, rows that do
/// not begin at multiples of four.
INSTANTIATE_TEST_SUITE_P(
    , Joined,
    testing::Values(Case{5, 200, false}, Case{2, 71, false}, Case{3, 1, false},
                    Case{40, 768, false}, Case{3, 128, true},
                    Case{40, 250, true}, Case{2, 90, true}));

static const uint32_t kRandom[] = {7, 9, 11, 0};

TEST_P(Joined, SumAndNorm) {
  Case all = GetParam();
  KernelRunner runner(asLoops(all.fill(R"(
func.func private @sum(%y: ALL, %rng: tensor<4xi32>, %x: ALL) -> ALL attributes {rt.kernel} {
  %yd = nn.dropout %y, %rng rate 2.5e-01 stream 0 : (ALL, tensor<4xi32>) -> ALL
  %s = nn.add %x, %yd : ALL
  return %s : ALL
}
func.func private @norm(%s: ALL, %g: COL, %b: COL) -> (ALL, ROW, ROW) attributes {rt.kernel} {
  %n, %mean, %rstd = nn.layer_norm %s, %g, %b eps 1.0e-05 : (ALL, COL, COL) -> (ALL, ROW, ROW)
  return %n, %mean, %rstd : ALL, ROW, ROW
}
func.func private @both(%y: ALL {rt.may_alias = 1 : i64}, %rng: tensor<4xi32>, %x: ALL {rt.may_alias = 0 : i64}, %g: COL, %b: COL)
    -> (ALL, ALL, ROW, ROW) attributes {rt.kernel} {
  %yd = nn.dropout %y, %rng rate 2.5e-01 stream 0 : (ALL, tensor<4xi32>) -> ALL
  %s = nn.add %x, %yd : ALL
  %n, %mean, %rstd = nn.layer_norm %s, %g, %b eps 1.0e-05 : (ALL, COL, COL) -> (ALL, ROW, ROW)
  return %s, %n, %mean, %rstd : ALL, ALL, ROW, ROW
}
func.func private @within(%y: ALL, %rng: tensor<4xi32>, %x: ALL {rt.may_alias = 0 : i64}, %g: COL, %b: COL)
    -> (ALL, ROW, ROW) attributes {rt.kernel} {
  %yd = nn.dropout %y, %rng rate 2.5e-01 stream 0 : (ALL, tensor<4xi32>) -> ALL
  %s = nn.add %x, %yd : ALL
  %n, %mean, %rstd = nn.layer_norm %s, %g, %b eps 1.0e-05 : (ALL, COL, COL) -> (ALL, ROW, ROW)
  return %n, %mean, %rstd : ALL, ROW, ROW
})")));
  Bytes x = all.numbers(1), y = all.numbers(2), s(x.size()), n = s, ss, nn;
  Floats g = randomFloats(all.cols, 3), b = randomFloats(all.cols, 4);
  Floats mean(2 * all.rows), rstd = mean, mean2 = mean, rstd2 = mean;
  uint32_t rng[4];
  std::memcpy(rng, kRandom, sizeof rng);
  runner.run("sum", {y.data(), rng, x.data(), s.data()}, {5});
  runner.run("norm", {s.data(), g.data(), b.data(), n.data(), mean.data(),
                      rstd.data()});
  ss = x, nn = y;
  runner.run("both",
             {nn.data(), rng, ss.data(), g.data(), b.data(), ss.data(),
              nn.data(), mean2.data(), rstd2.data()},
             {5}, 1, true);
  EXPECT_EQ(ss, s);
  EXPECT_EQ(nn, n);
  EXPECT_EQ(mean2, mean);
  EXPECT_EQ(rstd2, rstd);
  nn = x;
  runner.run("within",
             {y.data(), rng, nn.data(), g.data(), b.data(), nn.data(),
              mean2.data(), rstd2.data()},
             {5});
  EXPECT_EQ(nn, n);
  EXPECT_EQ(rstd2, rstd);
}

TEST_P(Joined, GradientOfNormAndSum) {
  Case all = GetParam();
  KernelRunner runner(asLoops(all.fill(R"(
func.func private @gradient(%x: ALL, %g: COL, %rstd: ROW, %dn: ALL) -> ALL attributes {rt.kernel} {
  %dx = nn.rms_norm_backward %x, %g, %rstd, %dn : (ALL, COL, ROW, ALL) -> ALL
  return %dx : ALL
}
func.func private @sum(%d: ALL, %dx: ALL, %rng: tensor<4xi32>) -> (ALL, ALL) attributes {rt.kernel} {
  %s = nn.add %d, %dx : ALL
  %dy = nn.dropout %s, %rng rate 2.5e-01 stream 0 : (ALL, tensor<4xi32>) -> ALL
  return %s, %dy : ALL, ALL
}
func.func private @both(%x: ALL, %g: COL, %rstd: ROW, %dn: ALL {rt.may_alias = 1 : i64}, %d: ALL {rt.may_alias = 0 : i64}, %rng: tensor<4xi32>)
    -> (ALL, ALL) attributes {rt.kernel} {
  %dx = nn.rms_norm_backward %x, %g, %rstd, %dn : (ALL, COL, ROW, ALL) -> ALL
  %s = nn.add %d, %dx : ALL
  %dy = nn.dropout %s, %rng rate 2.5e-01 stream 0 : (ALL, tensor<4xi32>) -> ALL
  return %s, %dy : ALL, ALL
})")));
  Bytes x = all.numbers(1), dn = all.numbers(2), d = all.numbers(3);
  Bytes dx(x.size()), s = dx, dy = dx;
  Floats g = randomFloats(all.cols, 4), rstd = randomFloats(2 * all.rows, 5);
  uint32_t rng[4];
  std::memcpy(rng, kRandom, sizeof rng);
  runner.run("gradient",
             {x.data(), g.data(), rstd.data(), dn.data(), dx.data()});
  runner.run("sum", {d.data(), dx.data(), rng, s.data(), dy.data()}, {5});
  runner.run("both",
             {x.data(), g.data(), rstd.data(), dn.data(), d.data(), rng,
              d.data(), dn.data()},
             {5}, 1, true);
  EXPECT_EQ(d, s);
  EXPECT_EQ(dn, dy);
}

/// Of attention without fusing: [2, 3, 20, 20], then [2, 3, 64, 64].
TEST(JoinedSoftmax, AndDropout) {
  for (int64_t length : {20, 64, 67}) {
    std::string size = std::to_string(length);
    KernelRunner runner(asLoops(
        replaceAll(R"(
func.func private @softmax(%s: ALL) -> ALL attributes {rt.kernel} {
  %p = nn.softmax %s : ALL
  return %p : ALL
}
func.func private @dropout(%p: ALL, %rng: tensor<4xi32>) -> ALL attributes {rt.kernel} {
  %d = nn.dropout %p, %rng rate 2.5e-01 stream 0 : (ALL, tensor<4xi32>) -> ALL
  return %d : ALL
}
func.func private @both(%s: ALL {rt.may_alias = 1 : i64}, %rng: tensor<4xi32>) -> (ALL, ALL) attributes {rt.kernel} {
  %p = nn.softmax %s : ALL
  %d = nn.dropout %p, %rng rate 2.5e-01 stream 0 : (ALL, tensor<4xi32>) -> ALL
  return %p, %d : ALL, ALL
}
func.func private @backward(%p: ALL, %dp: ALL) -> ALL attributes {rt.kernel} {
  %ds = nn.softmax_backward %p, %dp : ALL
  return %ds : ALL
}
func.func private @back(%p: ALL, %d: ALL {rt.may_alias = 0 : i64}, %rng: tensor<4xi32>) -> ALL attributes {rt.kernel} {
  %dp = nn.dropout %d, %rng rate 2.5e-01 stream 0 : (ALL, tensor<4xi32>) -> ALL
  %ds = nn.softmax_backward %p, %dp : ALL
  return %ds : ALL
})",
                   "ALL", "tensor<2x3x" + size + "x" + size + "xf32>")));
    size_t count = 6 * length * length;
    Floats s = randomFloats(count, 1), p(count), d = p, p2 = p, d2 = s, ds = p;
    uint32_t rng[4];
    std::memcpy(rng, kRandom, sizeof rng);
    runner.run("softmax", {s.data(), p.data()});
    runner.run("dropout", {p.data(), rng, d.data()}, {5});
    runner.run("both", {d2.data(), rng, p2.data(), d2.data()}, {5}, 1, true);
    EXPECT_EQ(p2, p);
    EXPECT_EQ(d2, d);
    Floats gradient = randomFloats(count, 2), dropped(count);
    runner.run("dropout", {gradient.data(), rng, dropped.data()}, {5});
    runner.run("backward", {p.data(), dropped.data(), ds.data()});
    runner.run("back", {p.data(), gradient.data(), rng, gradient.data()}, {5});
    EXPECT_EQ(gradient, ds);
  }
}

//===----------------------------------------------------------------------===//
// The loss with its gradient
//===----------------------------------------------------------------------===//

static const char *const kLoss = R"(
func.func private @loss(%x: ALL, %t: TARGETS) -> (ROW, ROW) attributes {rt.kernel} {
  %l, %lse = nn.cross_entropy %x, %t : (ALL, TARGETS) -> (ROW, ROW)
  return %l, %lse : ROW, ROW
}
func.func private @gradient(%x: ALL, %t: TARGETS, %lse: ROW, %d: ROW) -> ALL attributes {rt.kernel} {
  %dx = nn.cross_entropy_backward %x, %t, %lse, %d : (ALL, TARGETS, ROW, ROW) -> ALL
  return %dx : ALL
}
func.func private @both(%x: ALL {rt.may_alias = 1 : i64}, %t: TARGETS, %d: ROW) -> (ROW, ALL) attributes {rt.kernel} {
  %l, %lse = nn.cross_entropy %x, %t : (ALL, TARGETS) -> (ROW, ROW)
  %dx = nn.cross_entropy_backward %x, %t, %lse, %d : (ALL, TARGETS, ROW, ROW) -> ALL
  return %l, %dx : ROW, ALL
})";

static std::string lossOf(const Case &all) {
  std::string targets = "tensor<2x" + std::to_string(all.rows) + "xi32>";
  return asLoops(all.fill(replaceAll(kLoss, "TARGETS", targets)));
}

static Floats numbersOf(const Case &all, const Bytes &bytes) {
  Floats numbers(2 * all.rows * all.cols);
  for (size_t i = 0; i < numbers.size(); ++i)
    if (all.isBF16)
      std::memcpy(reinterpret_cast<char *>(&numbers[i]) + 2, &bytes[2 * i], 2);
    else
      std::memcpy(&numbers[i], &bytes[4 * i], 4);
  return numbers;
}

/// Targets in every place of a vector, where the gradient overwrites what the
/// loss is made of.
TEST_P(Joined, LossAndGradient) {
  Case all = GetParam();
  KernelRunner runner(lossOf(all));
  int64_t rows = 2 * all.rows;
  Bytes x = all.numbers(1), dx(x.size());
  std::vector<int32_t> targets;
  for (int64_t r = 0; r < rows; ++r)
    targets.push_back(r == 1 ? all.cols - 1 : r * 37 % all.cols);
  Floats d = randomFloats(rows, 2), loss(rows), lse = loss, loss2 = loss;
  runner.run("loss", {x.data(), targets.data(), loss.data(), lse.data()});
  runner.run("gradient",
             {x.data(), targets.data(), lse.data(), d.data(), dx.data()});
  Floats logits = numbersOf(all, x);
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (int64_t c = 0; c < all.cols; ++c)
      sum += std::exp(double(logits[r * all.cols + c]));
    EXPECT_NEAR(loss[r], std::log(sum) - logits[r * all.cols + targets[r]],
                1e-5);
  }
  runner.run("both",
             {x.data(), targets.data(), d.data(), loss2.data(), x.data()}, {},
             1, true);
  EXPECT_EQ(loss2, loss);
  EXPECT_EQ(x, dx);
}

/// A row with NaN or an infinite logit has no finite loss, wherever in the row
/// that is, and other rows are as they were.
TEST(Loss, OfWhatIsNoNumberIsNone) {
  Floats logits = randomFloats(18 * 100, 1);
  for (int64_t r = 0; r < 8; ++r)
    logits[r * 100 + r * 14] = NAN;
  logits[8 * 100 + 5] = NAN;
  logits[9 * 100 + 50] = INFINITY;
  for (int64_t c = 0; c < 100; ++c)
    logits[10 * 100 + c] = NAN, logits[11 * 100 + c] = -INFINITY;
  logits[12 * 100 + 5] = -INFINITY;
  std::vector<int32_t> targets(18, 5);
  for (bool isBF16 : {false, true})
    for (bool wide : widths()) {
      const Case all = {9, 100, isBF16};
      KernelRunner runner(lossOf(all), wide);
      Bytes x = all.bytesOf(logits), dx = x;
      Floats d(18, 1), loss(18);
      runner.run("both",
                 {x.data(), targets.data(), d.data(), loss.data(), dx.data()});
      for (int64_t r = 0; r < 18; ++r)
        EXPECT_EQ(std::isfinite(loss[r]), r > 12) << r << ", bf16 " << isBF16;
    }
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

/// Vectors of bf16 have another order of lanes where registers are wide.
TEST_P(Joined, HasTheSameBitsInWideRegisters) {
  Case all = GetParam();
  std::string text = all.fill(R"(
func.func private @norm(%s: ALL, %g: COL, %b: COL) -> (ALL, ROW, ROW) attributes {rt.kernel} {
  %n, %mean, %rstd = nn.layer_norm %s, %g, %b eps 1.0e-05 : (ALL, COL, COL) -> (ALL, ROW, ROW)
  return %n, %mean, %rstd : ALL, ROW, ROW
}
func.func private @back(%x: ALL, %g: COL, %mean: ROW, %rstd: ROW, %dn: ALL {rt.may_alias = 0 : i64}, %d: ALL) -> ALL attributes {rt.kernel} {
  %dx = nn.layer_norm_backward %x, %g, %mean, %rstd, %dn : (ALL, COL, ROW, ROW, ALL) -> ALL
  %s = nn.add %d, %dx : ALL
  return %s : ALL
}
func.func private @gelu(%u: ALL, %dg: ALL {rt.may_alias = 1 : i64}) -> (ALL, ALL) attributes {rt.kernel} {
  %g = nn.gelu %u tanh : ALL
  %du = nn.gelu_backward %u, %dg tanh : ALL
  return %g, %du : ALL, ALL
})");
  int64_t rows = 2 * all.rows;
  std::vector<Bytes> first;
  for (bool wide : widths()) {
    KernelRunner runner(asLoops(text), wide), losses(lossOf(all), wide);
    Bytes x = all.numbers(1), n(x.size()), dn = all.numbers(2), g(x.size());
    Bytes d = all.numbers(3), dg = all.numbers(4), logits = all.numbers(5);
    Floats gain = randomFloats(all.cols, 6), bias = randomFloats(all.cols, 7);
    Floats mean(rows), rstd(rows), loss(rows), dloss = randomFloats(rows, 8);
    std::vector<int32_t> targets(rows, all.cols / 2);
    runner.run("norm", {x.data(), gain.data(), bias.data(), n.data(),
                        mean.data(), rstd.data()});
    runner.run("back", {x.data(), gain.data(), mean.data(), rstd.data(),
                        dn.data(), d.data(), dn.data()});
    runner.run("gelu", {x.data(), dg.data(), g.data(), dg.data()});
    losses.run("both", {logits.data(), targets.data(), dloss.data(),
                        loss.data(), logits.data()});
    std::vector<Bytes> all = {n, dn, g, dg, logits};
    for (const Floats &numbers : {mean, rstd, loss}) {
      auto *bytes = reinterpret_cast<const uint8_t *>(numbers.data());
      all.emplace_back(bytes, bytes + 4 * numbers.size());
    }
    if (wide)
      EXPECT_TRUE(all == first);
    first = all;
  }
}
