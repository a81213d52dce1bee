//===- AttentionTest.cpp - Attention against its definition -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelRunner.h"
#include "reprise/ABI/Philox.h"
#include "runtime/compute/Cpu.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <sstream>

using namespace reprise;
using namespace reprise::codegen;

namespace {
using Doubles = std::vector<double>;

struct Shape {
  int64_t batch, length, heads, keyHeads, width;
  double rate;
  int64_t ofValues = 0; ///< The width of a head of values; 0: that of others.

  int64_t valueWidth() const { return ofValues ? ofValues : width; }
  int64_t size() const { return batch * length * heads * width; }
  int64_t keySize() const { return size() / heads * keyHeads; }
  int64_t outSize() const { return batch * length * heads * valueWidth(); }
  int64_t valueSize() const { return outSize() / heads * keyHeads; }
  /// As this with heads as wide as those of values.
  Shape asOfValues() const {
    Shape other = *this;
    other.width = valueWidth();
    return other;
  }
  int64_t at(int64_t b, int64_t i, int64_t h, int64_t d) const {
    return ((b * length + i) * heads + h) * width + d;
  }
  /// What head `h` of the queries reads of keys and values.
  int64_t keyAt(int64_t b, int64_t j, int64_t h, int64_t d) const {
    int64_t g = h / (heads / keyHeads);
    return ((b * length + j) * keyHeads + g) * width + d;
  }
};

const int32_t kRng[4] = {12345, 678, 3, 1};
const int64_t kStream = 9;

/// The mask factor of a score: 0 or 1 / (1 - rate).
double maskFactor(const Shape &s, int64_t b, int64_t h, int64_t i, int64_t j) {
  uint64_t element = ((b * s.heads + h) * s.length + i) * s.length + j;
  uint64_t seed = uint64_t(uint32_t(kRng[1])) << 32 | uint32_t(kRng[0]);
  uint32_t word = reprisePhilox(seed, kRng[2], kRng[3], kStream, element);
  return word >= std::round(s.rate * 0x1p32) ? 1 / (1 - s.rate) : 0;
}

struct Reference {
  Doubles out, lse, dq, dk, dv;
};

/// nn.attention and nn.attention_backward as their descriptions say.
Reference reference(const Shape &s, double scale, const Floats &q,
                    const Floats &k, const Floats &v, const Floats &dout) {
  Reference r;
  const Shape o = s.asOfValues();
  r.out.resize(o.size()), r.dq.resize(s.size()), r.dk.resize(s.keySize());
  r.dv.resize(o.keySize()), r.lse.resize(s.batch * s.heads * s.length);
  auto dot = [](const Shape &s, const Floats &x, const Floats &y, int64_t b,
                int64_t h, int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t d = 0; d < s.width; ++d)
      sum += double(x[s.at(b, i, h, d)]) * y[s.keyAt(b, j, h, d)];
    return sum;
  };
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.length; ++i) {
        double total = 0, delta = 0;
        Doubles weights;
        for (int64_t j = 0; j <= i; ++j) {
          weights.push_back(std::exp(scale * dot(s, q, k, b, h, i, j)));
          total += weights.back();
        }
        r.lse[(b * s.heads + h) * s.length + i] = std::log(total);
        for (int64_t j = 0; j <= i; ++j) {
          double p = weights[j] / total * maskFactor(s, b, h, i, j);
          for (int64_t d = 0; d < o.width; ++d) {
            r.out[o.at(b, i, h, d)] += p * v[o.keyAt(b, j, h, d)];
            r.dv[o.keyAt(b, j, h, d)] += p * dout[o.at(b, i, h, d)];
          }
        }
        for (int64_t d = 0; d < o.width; ++d)
          delta += dout[o.at(b, i, h, d)] * r.out[o.at(b, i, h, d)];
        for (int64_t j = 0; j <= i; ++j) {
          double p = weights[j] / total;
          double dp = maskFactor(s, b, h, i, j) * dot(o, dout, v, b, h, i, j);
          double ds = scale * p * (dp - delta);
          for (int64_t d = 0; d < s.width; ++d) {
            r.dq[s.at(b, i, h, d)] += ds * k[s.keyAt(b, j, h, d)];
            r.dk[s.keyAt(b, j, h, d)] += ds * q[s.at(b, i, h, d)];
          }
        }
      }
  return r;
}

std::string kernels(const Shape &s, float scale,
                    const std::string &element = "f32") {
  auto activation = [&](int64_t columns) {
    std::ostringstream type;
    type << "tensor<" << s.batch << "x" << s.length << "x" << columns << "x"
         << element << ">";
    return type.str();
  };
  std::ostringstream text, l, how;
  l << "tensor<" << s.batch << "x" << s.heads << "x" << s.length << "xf32>";
  how.precision(9);
  how << "heads " << s.heads;
  if (s.keyHeads != s.heads)
    how << " kv_heads " << s.keyHeads;
  how << std::scientific << " scale " << scale << " rate " << s.rate
      << " stream 0";
  std::string X = activation(s.heads * s.width),
              K = activation(s.keyHeads * s.width),
              V = activation(s.keyHeads * s.valueWidth()),
              O = activation(s.heads * s.valueWidth()), L = l.str(),
              I = "tensor<4xi32>";
  text << "func.func private @forward(%q: " << X << ", %k: " << K
       << ", %v: " << V << ", %r: " << I << ") -> (" << O << ", " << L
       << ") attributes {rt.kernel} {\n  %o, %l = rt.attention %q, %k, %v, %r "
       << how.str() << " : (" << X << ", " << K << ", " << V << ", " << I
       << ") -> (" << O << ", " << L << ")\n  return %o, %l : " << O << ", "
       << L << "\n}\nfunc.func private @backward(%q: " << X << ", %k: " << K
       << ", %v: " << V << ", %o: " << O << ", %l: " << L << ", %d: " << O
       << ", %r: " << I << ") -> (" << X << ", " << K << ", " << V
       << ") attributes {rt.kernel} {\n  %dq, %dk, %dv = rt.attention_backward "
          "%q, %k, %v, %o, %l, %d, %r "
       << how.str() << " : (" << X << ", " << K << ", " << V << ", " << O
       << ", " << L << ", " << O << ", " << I << ") -> (" << X << ", " << K
       << ", " << V << ")\n  return %dq, %dk, %dv : " << X << ", " << K << ", "
       << V << "\n}\n";
  return text.str();
}

void expectNear(const Floats &have, const Doubles &want, const char *what,
                double error = 3e-6) {
  double greatest = 1e-3;
  for (double value : want)
    greatest = std::max(greatest, std::abs(value));
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(have[i], want[i], error * greatest) << what << " at " << i;
}

class Attention : public testing::TestWithParam<Shape> {};
} // namespace

TEST_P(Attention, MatchesItsDefinitionHoweverTasksAreDivided) {
  Shape s = GetParam();
  float scale = 1 / std::sqrt(float(s.width));
  KernelRunner runner(kernels(s, scale));
  Floats q = randomFloats(s.size(), 1), k = randomFloats(s.keySize(), 2),
         v = randomFloats(s.valueSize(), 3),
         dout = randomFloats(s.outSize(), 4);
  for (float &x : q)
    x *= 4; // far from uniform attention
  Reference want = reference(s, scale, q, k, v, dout);

  Floats first[5];
  for (int64_t chunk : {INT64_MAX, int64_t(1)}) {
    Floats out(s.outSize(), NAN), lse(want.lse.size(), NAN), dq(s.size(), NAN),
        dk(s.keySize(), NAN), dv(s.valueSize(), NAN);
    int32_t rng[4];
    std::copy(kRng, kRng + 4, rng);
    runner.run("forward",
               {q.data(), k.data(), v.data(), rng, out.data(), lse.data()},
               {kStream}, chunk, chunk == 1);
    runner.run("backward",
               {q.data(), k.data(), v.data(), out.data(), lse.data(),
                dout.data(), rng, dq.data(), dk.data(), dv.data()},
               {kStream}, chunk, chunk == 1);
    expectNear(out, want.out, "out");
    expectNear(lse, want.lse, "lse");
    expectNear(dq, want.dq, "dq");
    expectNear(dk, want.dk, "dk");
    expectNear(dv, want.dv, "dv");
    if (chunk != 1)
      first[0] = out, first[1] = lse, first[2] = dq, first[3] = dk,
      first[4] = dv;
    EXPECT_EQ(out, first[0]);
    EXPECT_EQ(lse, first[1]);
    EXPECT_EQ(dq, first[2]);
    EXPECT_EQ(dk, first[3]);
    EXPECT_EQ(dv, first[4]);
  }
}

TEST_P(Attention, HasTheSameBitsInLargerTilesOfGemms) {
  Shape s = GetParam();
  float scale = 1 / std::sqrt(float(s.width));
  Floats q = randomFloats(s.size(), 1), k = randomFloats(s.keySize(), 2),
         v = randomFloats(s.valueSize(), 3),
         dout = randomFloats(s.outSize(), 4);
  std::vector<Floats> first;
  for (bool wide : widths()) {
    KernelRunner runner(kernels(s, scale), wide);
    std::vector<Floats> results;
    for (int64_t size : {s.outSize(), s.batch * s.heads * s.length, s.size(),
                         s.keySize(), s.valueSize()})
      results.push_back(Floats(size, NAN));
    int32_t rng[4];
    std::copy(kRng, kRng + 4, rng);
    runner.run("forward",
               {q.data(), k.data(), v.data(), rng, results[0].data(),
                results[1].data()},
               {kStream});
    runner.run("backward",
               {q.data(), k.data(), v.data(), results[0].data(),
                results[1].data(), dout.data(), rng, results[2].data(),
                results[3].data(), results[4].data()},
               {kStream});
    if (wide)
      EXPECT_EQ(results, first);
    first = results;
  }
}

namespace {
/// Numbers as bf16 has them, and as the kernel does.
struct Halves {
  std::vector<uint16_t> bits;

  explicit Halves(const Floats &numbers) {
    for (float number : numbers) {
      uint32_t word;
      std::memcpy(&word, &number, 4);
      bits.push_back((word + 0x7fff + (word >> 16 & 1)) >> 16);
    }
  }
  Floats numbers() const {
    Floats result;
    for (uint16_t half : bits) {
      uint32_t word = uint32_t(half) << 16;
      result.push_back(0);
      std::memcpy(&result.back(), &word, 4);
    }
    return result;
  }
  void *data() { return bits.data(); }
};

/// What `version` of the kernels computes, each result within so much of the
/// greatest number.
void expectDefinitionInBF16(KernelRunner &runner, const Shape &s, float scale,
                            const std::string &version, double error) {
  Halves q(randomFloats(s.size(), 1)), k(randomFloats(s.keySize(), 2)),
      v(randomFloats(s.valueSize(), 3)), dout(randomFloats(s.outSize(), 4));
  Reference want = reference(s, scale, q.numbers(), k.numbers(), v.numbers(),
                             dout.numbers());
  Floats lse(want.lse.size(), NAN);
  std::vector<uint16_t> first[4];
  for (int64_t chunk : {INT64_MAX, int64_t(1)}) {
    Halves out(Floats(s.outSize(), -7)), dq(Floats(s.size(), -7)),
        dk(Floats(s.keySize(), -7)), dv(Floats(s.valueSize(), -7));
    int32_t rng[4];
    std::copy(kRng, kRng + 4, rng);
    runner.run("forward" + version,
               {q.data(), k.data(), v.data(), rng, out.data(), lse.data()},
               {kStream}, chunk, chunk == 1);
    runner.run("backward" + version,
               {q.data(), k.data(), v.data(), out.data(), lse.data(),
                dout.data(), rng, dq.data(), dk.data(), dv.data()},
               {kStream}, chunk, chunk == 1);
    expectNear(out.numbers(), want.out, "out", error);
    expectNear(lse, want.lse, "lse");
    expectNear(dq.numbers(), want.dq, "dq", 0x1p-6);
    expectNear(dk.numbers(), want.dk, "dk", 0x1p-6);
    expectNear(dv.numbers(), want.dv, "dv", error);
    if (chunk != 1)
      first[0] = out.bits, first[1] = dq.bits, first[2] = dk.bits,
      first[3] = dv.bits;
    EXPECT_EQ(out.bits, first[0]);
    EXPECT_EQ(dq.bits, first[1]);
    EXPECT_EQ(dk.bits, first[2]);
    EXPECT_EQ(dv.bits, first[3]);
  }
}
} // namespace

// A rounding of each result; in backward that of `out` as well.
TEST_P(Attention, MatchesItsDefinitionInBF16) {
  Shape s = GetParam();
  float scale = 1 / std::sqrt(float(s.width));
  KernelRunner runner(kernels(s, scale, "bf16"));
  expectDefinitionInBF16(runner, s, scale, "", 0x1.1p-8);
}

namespace {
/// The versions whose GEMMs are of pairs, as far as this processor has them:
/// calls `body` with what their names end in.
void forPairs(const std::function<void(const std::string &)> &body) {
  for (auto [level, version] : {std::pair(5, ".avx512_bf16"), {6, ".amx"}}) {
    if (runtime::cpuLevel() < level)
      continue;
    SCOPED_TRACE(version);
    runtime::TileRegisters registers(level == 6);
    body(version);
  }
}
} // namespace

// There a weight and the gradient of a score are rounded as well.
TEST_P(Attention, MatchesItsDefinitionInPairs) {
  if (runtime::cpuLevel() < 5)
    GTEST_SKIP() << "needs AVX512_BF16";
  Shape s = GetParam();
  // Not a power of two: nothing is rounded by chance only once. Over several
  // blocks of keys, scores differ so much that what is subtracted from them has
  // to be raised.
  float scale = (s.length > 64 ? 17 : 1.1f) / std::sqrt(float(s.width));
  KernelRunner runner(kernels(s, scale, "bf16"));
  forPairs([&](const std::string &version) {
    ASSERT_EQ(runner.has("forward" + version),
              std::max(s.width, s.valueWidth()) <= 256);
    if (runner.has("forward" + version))
      expectDefinitionInBF16(runner, s, scale, version, 0x1.1p-7);
  });
}

// What is subtracted from scores lies up to 12 ln 2 below their maximum, and so
// never more: here each block of 64 keys has scores 7 above those of the block
// before it, up to 133, of which the exponential is infinite. The other head
// has them in descending order.
TEST(AttentionInPairs, SubtractsEnoughWhereScoresGrowSlowly) {
  if (runtime::cpuLevel() < 5)
    GTEST_SKIP() << "needs AVX512_BF16";
  Shape s = {1, 20 * 64, 2, 2, 16, 0};
  KernelRunner runner(kernels(s, 1, "bf16"));
  Floats ones(s.size(), 0), steps(s.size(), 0);
  for (int64_t i = 0; i < s.length; ++i) {
    ones[s.at(0, i, 0, 0)] = 1, ones[s.at(0, i, 1, 0)] = -1;
    for (int64_t h = 0; h < s.heads; ++h)
      steps[s.at(0, i, h, 0)] = 7 * (i / 64);
  }
  Halves q(ones), k(steps), v(randomFloats(s.size(), 3));
  Reference want =
      reference(s, 1, ones, steps, v.numbers(), Floats(s.size(), 0));
  forPairs([&](const std::string &version) {
    Halves out(Floats(s.size(), -7));
    Floats lse(want.lse.size(), NAN);
    int32_t rng[4] = {};
    runner.run("forward" + version,
               {q.data(), k.data(), v.data(), rng, out.data(), lse.data()},
               {kStream});
    expectNear(out.numbers(), want.out, "out", 0x1.1p-7);
    expectNear(lse, want.lse, "lse");
  });
}

// Denormal numbers are written as zeros: half of the least normal number is
// what the second query has, which sees two keys alike.
TEST(AttentionInPairs, HasNoDenormalNumbers) {
  if (runtime::cpuLevel() < 5)
    GTEST_SKIP() << "needs AVX512_BF16";
  Shape s = {1, 2, 1, 1, 1, 0};
  KernelRunner runner(kernels(s, 1, "bf16"));
  Halves q(Floats{0, 0}), k(q), v(Floats{0x1p-126f, 0});
  forPairs([&](const std::string &version) {
    Halves out(Floats{-7, -7});
    Floats lse(2, NAN);
    int32_t rng[4] = {};
    runner.run("forward" + version,
               {q.data(), k.data(), v.data(), rng, out.data(), lse.data()},
               {kStream});
    EXPECT_EQ(out.numbers(), (Floats{0x1p-126f, 0}));
  });
}

// Lengths that are no multiple of 16 lanes, of 64 queries and keys or of 4
// words, and widths that are no multiple of 16 lanes, whose blocks are the
// small ones, and the widest. Keys of each head, of groups of three and two,
// and of all heads together. Sequences whose gradients are summed by blocks, of
// wide heads and of narrow ones.
INSTANTIATE_TEST_SUITE_P(
    Shapes, Attention,
    testing::Values(
        Shape{2, 13, 3, 3, 5, 0.25}, Shape{1, 64, 2, 2, 8, 0.1},
        Shape{1, 1, 1, 1, 1, 0}, Shape{2, 50, 1, 1, 18, 0},
        Shape{1, 117, 2, 2, 64, 0.5}, Shape{1, 50, 1, 1, 1808, 0.1},
        Shape{2, 13, 6, 2, 8, 0.25}, Shape{1, 67, 4, 2, 13, 0},
        Shape{2, 132, 3, 1, 20, 0.1}, Shape{1, 33, 2, 1, 300, 0},
        Shape{1, 200, 2, 1, 64, 0}, Shape{1, 260, 2, 1, 256, 0},
        Shape{1, 1030, 2, 1, 250, 0}, Shape{1, 1490, 2, 1, 40, 0},
        Shape{1, 100, 1, 1, 72, 0.1}, Shape{1, 600, 2, 1, 16, 0},
        // Four blocks of queries together, and sums in place.
        Shape{1, 1010, 1, 1, 16, 0.1}, Shape{1, 1740, 2, 1, 150, 0},
        // Two.
        Shape{1, 1373, 1, 1, 40, 0.1},
        // Values that are narrower or wider than keys, in all of
        // these forms.
        Shape{2, 13, 3, 3, 24, 0.25, 16}, Shape{1, 67, 4, 2, 13, 0, 33},
        Shape{1, 117, 2, 2, 72, 0.5, 5}, Shape{1, 33, 2, 1, 40, 0, 300},
        Shape{1, 260, 2, 1, 192, 0, 128}, Shape{1, 1030, 2, 1, 200, 0.1, 40},
        Shape{1, 600, 2, 1, 8, 0, 20}, Shape{1, 1010, 1, 1, 24, 0.1, 16}));
