//===- FunctionsTest.cpp - Transcendentals against the C library ----------===//
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
#include <limits>
#include <random>

using namespace reprise::codegen;

namespace {
struct Function {
  const char *name, *body; ///< of %a makes %y; %one is 1
  double (*reference)(double);
  double units; ///< of the last place, at most apart
};
} // namespace

static const Function kFunctions[] = {
    {"exp", "%y = math.exp %a : f32", std::exp, 1},
    {"exp2", "%y = math.exp2 %a : f32", std::exp2, 2},
    {"logistic of base 2",
     "%e = math.exp2 %a : f32\n %s = arith.addf %one, %e : f32\n"
     "%y = arith.divf %one, %s : f32",
     [](double x) { return 1 / (1 + std::exp2(x)); }, 3},
};

/// y = f(x) of n elements.
static std::string pointwise(const Function &function, int64_t n) {
  std::string type = "tensor<" + std::to_string(n) + "xf32>";
  return "func.func private @k(%x: " + type + ") -> " + type +
         " attributes {rt.kernel} {\n%one = arith.constant 1.0 : f32\n"
         "%init = tensor.empty() : " +
         type + R"(
  %r = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
  } ins(%x : )" +
         type + ") outs(%init : " + type + R"() {
  ^bb0(%a: f32, %out: f32):
)" + function.body +
         "\nlinalg.yield %y : f32\n} -> " + type + "\nreturn %r : " + type +
         "\n}";
}

/// Numbers of every size, and what is none: bits at random.
static Floats numbersOfEverySize(int64_t n) {
  std::mt19937 random(1);
  Floats x(n);
  for (float &number : x) {
    uint32_t bits = random();
    std::memcpy(&number, &bits, sizeof(bits));
  }
  const float edges[] = {
      0.0f,       -0.0f,      INFINITY,    -INFINITY,  NAN,         1e8f,
      -1e8f,      88.722831f, 88.722839f,  -87.33654f, -87.336548f, 128.0f,
      127.99999f, -126.0f,    -126.00001f, 127.5f,     0x1.8p23f,   -0x1.8p23f,
      0.5f,       -0.5f,      1.5f};
  std::memcpy(x.data(), edges, sizeof(edges));
  return x;
}

/// How many units in the last place of f32 `y` is from `expected`, whose
/// magnitude is that of a normal number.
static double unitsApart(float y, double expected) {
  int exponent;
  std::frexp(float(expected), &exponent);
  return std::abs(y - expected) / std::ldexp(1.0, exponent - 24);
}

TEST(Functions, HaveTheSameBitsInWideRegisters) {
  constexpr int64_t n = 1 << 20;
  Floats x = numbersOfEverySize(n);
  for (const Function &function : kFunctions) {
    std::vector<uint32_t> first;
    for (bool wide : widths()) {
      KernelRunner runner(pointwise(function, n), wide);
      std::vector<uint32_t> y(n);
      runner.run("k", {x.data(), y.data()});
      if (wide)
        EXPECT_TRUE(y == first) << function.name;
      first = y;
    }
  }
}

TEST(Functions, AreWithinUnitsOfTheLastPlace) {
  constexpr int64_t n = 1 << 20;
  Floats x = numbersOfEverySize(n), y(n);
  for (const Function &function : kFunctions) {
    KernelRunner runner(pointwise(function, n));
    runner.run("k", {x.data(), y.data()});
    for (int64_t i = 0; i < n; ++i) {
      double expected = function.reference(x[i]);
      if (std::isnan(x[i]))
        ASSERT_TRUE(std::isnan(y[i])) << function.name;
      else if (expected < std::numeric_limits<float>::min())
        ASSERT_LE(y[i], std::numeric_limits<float>::min())
            << function.name << " of " << x[i];
      else if (expected > std::numeric_limits<float>::max())
        ASSERT_EQ(y[i], INFINITY) << function.name << " of " << x[i];
      else
        ASSERT_LE(unitsApart(y[i], expected), function.units)
            << function.name << " of " << x[i];
    }
  }
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

/// The argument of the tanh in GELU, doubled, and its derivative.
static double twiceU(double x) {
  return 2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
}
static double twiceSlope(double x) {
  return 2 * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}
static double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// What an exponential's argument of the size z is rounded to moves the result
/// by some z units; all else by a few.
static double boundOf(double z) { return 4 + 2.5 * std::abs(z); }

TEST(Activations, AreWithinUnitsOfTheLastPlace) {
  constexpr int64_t n = 60000;
  std::string type = "tensor<" + std::to_string(n) + "xf32>";
  std::string head = "(%x: " + type + ", %one: " + type + ") -> " + type +
                     " attributes {rt.kernel} {\n";
  std::string tail = " : " + type + "\nreturn %y : " + type + "\n}\n";
  KernelRunner runner(asLoops(
      "func.func private @gelu" + head + "%y = nn.gelu %x tanh" + tail +
      "func.func private @gelu_backward" + head +
      "%y = nn.gelu_backward %x, %one tanh" + tail +
      "func.func private @swiglu" + head + "%y = nn.swiglu %x, %one" + tail));
  Floats x(n), one(n, 1), gelu(n), slope(n), silu(n);
  for (int64_t i = 0; i < n; ++i)
    x[i] = float(i - n / 2) * 3.1e-4f;
  runner.run("gelu", {x.data(), one.data(), gelu.data()});
  runner.run("gelu_backward", {x.data(), one.data(), slope.data()});
  runner.run("swiglu", {x.data(), one.data(), silu.data()});
  for (int64_t i = 0; i < n; ++i) {
    double z = twiceU(x[i]), s = logistic(z);
    if (x[i] != 0 && std::abs(z) < 80) {
      ASSERT_LE(unitsApart(gelu[i], x[i] * s), boundOf(z)) << x[i];
      ASSERT_LE(unitsApart(silu[i], x[i] * logistic(x[i])), boundOf(x[i]))
          << x[i];
    }
    // It crosses 0, where nothing is relative; 1 - s is rounded.
    ASSERT_NEAR(slope[i], s + x[i] * s * (1 - s) * twiceSlope(x[i]), 2.1e-6)
        << x[i];
  }
  Floats ends = {INFINITY, -1e30f, 0.0f, -0.0f};
  x.assign(n, NAN);
  std::copy(ends.begin(), ends.end(), x.begin());
  runner.run("gelu", {x.data(), one.data(), gelu.data()});
  EXPECT_EQ(gelu[0], INFINITY);
  for (int i : {1, 2, 3})
    EXPECT_EQ(gelu[i], 0);
  EXPECT_TRUE(std::isnan(gelu[n - 1]));
}

/// Each operation rounds once, and the double is exact.
TEST(Activations, SquaredReluIsExact) {
  constexpr int64_t n = 1003;
  std::string type = "tensor<" + std::to_string(n) + "xf32>";
  KernelRunner runner(
      asLoops("func.func private @squared_relu(%x: " + type + ", %dy: " + type +
              ") -> (" + type + ", " + type + ") attributes {rt.kernel} {\n" +
              "%y = nn.squared_relu %x : " + type + "\n" +
              "%dx = nn.squared_relu_backward %x, %dy : " + type + "\n" +
              "return %y, %dx : " + type + ", " + type + "\n}\n"));
  Floats x(n), dy(n), y(n), dx(n);
  for (int64_t i = 0; i < n; ++i) {
    x[i] = float(i - n / 2) * 0.013f;
    dy[i] = float(i % 7) - 2.9f;
  }
  Floats ends = {INFINITY, -INFINITY, -0.0f, NAN};
  std::copy(ends.begin(), ends.end(), x.begin());
  runner.run("squared_relu", {x.data(), dy.data(), y.data(), dx.data()});
  for (int64_t i = 4; i < n; ++i) {
    float positive = x[i] > 0 ? x[i] : 0;
    ASSERT_EQ(y[i], positive * positive) << x[i];
    ASSERT_EQ(dx[i], dy[i] * (2 * positive)) << x[i];
  }
  EXPECT_EQ(y[0], INFINITY);
  EXPECT_EQ(dx[0], -INFINITY);
  for (int i : {1, 2}) {
    EXPECT_EQ(y[i], 0);
    EXPECT_EQ(dx[i], 0);
  }
  EXPECT_TRUE(std::isnan(y[3]));
  EXPECT_TRUE(std::isnan(dx[3]));
}
