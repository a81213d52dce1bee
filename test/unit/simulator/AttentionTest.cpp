//===- AttentionTest.cpp - Attention and its definition ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "reprise/ABI/Philox.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cmath>
#include <ostream>
#include <random>
#include <sstream>

using namespace reprise;
using namespace reprise::simulator;

namespace {
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

struct Shape {
  const char *type;
  int64_t batch, length, heads, keyHeads, width;
  double rate;
  const char *chip = "sm_80";
  int64_t ofValues = 0; ///< width of values, if not that of keys

  bool isBF16() const { return type[0] == 'b'; }
  int64_t valueWidth() const { return ofValues ? ofValues : width; }
  int64_t size() const { return batch * length * heads * width; }
  int64_t keySize() const { return size() / heads * keyHeads; }
  int64_t outSize() const { return size() / width * valueWidth(); }
  int64_t valueSize() const { return keySize() / width * valueWidth(); }
  /// Of queries, and of outputs, whose heads have `columns`.
  int64_t at(int64_t b, int64_t i, int64_t h, int64_t d,
             int64_t columns) const {
    return ((b * length + i) * heads + h) * columns + d;
  }
  /// What head `h` of the queries reads of keys and values.
  int64_t keyAt(int64_t b, int64_t j, int64_t h, int64_t d,
                int64_t columns) const {
    int64_t g = h / (heads / keyHeads);
    return ((b * length + j) * keyHeads + g) * columns + d;
  }
};

void PrintTo(const Shape &s, std::ostream *os) {
  *os << s.type << " B" << s.batch << " T" << s.length << " H" << s.heads
      << " G" << s.keyHeads << " D" << s.width << " V" << s.valueWidth()
      << " rate " << s.rate << " " << s.chip;
}

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

/// nn.attention and nn.attention_backward as their descriptions say; the
/// gradients are those of the output `out` that the kernel is given.
Reference reference(const Shape &s, double scale, const Floats &q,
                    const Floats &k, const Floats &v, const Floats &dout) {
  Reference r;
  int64_t width = s.width, ofValues = s.valueWidth();
  r.out.resize(s.outSize()), r.dq.resize(s.size()), r.dk.resize(s.keySize());
  r.dv.resize(s.valueSize()), r.lse.resize(s.batch * s.heads * s.length);
  auto dot = [&](const Floats &x, const Floats &y, int64_t b, int64_t h,
                 int64_t i, int64_t j, int64_t columns) {
    double sum = 0;
    for (int64_t d = 0; d < columns; ++d)
      sum += double(x[s.at(b, i, h, d, columns)]) *
             y[s.keyAt(b, j, h, d, columns)];
    return sum;
  };
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.length; ++i) {
        Doubles p(i + 1), mask(i + 1, 1);
        double total = 0, delta = 0;
        for (int64_t j = 0; j <= i; ++j)
          total += p[j] = std::exp(scale * dot(q, k, b, h, i, j, width));
        r.lse[(b * s.heads + h) * s.length + i] = std::log(total);
        for (int64_t j = 0; j <= i; ++j) {
          p[j] /= total;
          if (s.rate > 0)
            mask[j] = maskFactor(s, b, h, i, j);
          for (int64_t d = 0; d < ofValues; ++d) {
            double weight = p[j] * mask[j];
            int64_t row = s.at(b, i, h, d, ofValues);
            int64_t key = s.keyAt(b, j, h, d, ofValues);
            r.out[row] += weight * v[key];
            r.dv[key] += weight * dout[row];
          }
        }
        for (int64_t d = 0; d < ofValues; ++d)
          delta += dout[s.at(b, i, h, d, ofValues)] *
                   r.out[s.at(b, i, h, d, ofValues)];
        for (int64_t j = 0; j <= i; ++j) {
          double dp = mask[j] * dot(dout, v, b, h, i, j, ofValues);
          double ds = scale * p[j] * (dp - delta);
          for (int64_t d = 0; d < width; ++d) {
            int64_t row = s.at(b, i, h, d, width);
            int64_t key = s.keyAt(b, j, h, d, width);
            r.dq[row] += ds * k[key];
            r.dk[key] += ds * q[row];
          }
        }
      }
  return r;
}

std::string kernels(const Shape &s, float scale) {
  auto activation = [&](int64_t heads, int64_t width) {
    std::ostringstream type;
    type << "tensor<" << s.batch << "x" << s.length << "x" << heads * width
         << "x" << s.type << ">";
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
  // Queries, keys, values, outputs.
  std::string Q = activation(s.heads, s.width),
              K = activation(s.keyHeads, s.width),
              V = activation(s.keyHeads, s.valueWidth()),
              X = activation(s.heads, s.valueWidth()), L = l.str(),
              I = "tensor<4xi32>";
  text << "func.func private @forward(%q: " << Q << ", %k: " << K
       << ", %v: " << V << ", %r: " << I << ") -> (" << X << ", " << L
       << ") attributes {rt.kernel} {\n  %o, %l = rt.attention %q, %k, %v, %r "
       << how.str() << " : (" << Q << ", " << K << ", " << V << ", " << I
       << ") -> (" << X << ", " << L << ")\n  return %o, %l : " << X << ", "
       << L << "\n}\nfunc.func private @backward(%q: " << Q << ", %k: " << K
       << ", %v: " << V << ", %o: " << X << ", %l: " << L << ", %d: " << X
       << ", %r: " << I << ") -> (" << Q << ", " << K << ", " << V
       << ") attributes {rt.kernel} {\n  %dq, %dk, %dv = rt.attention_backward "
          "%q, %k, %v, %o, %l, %d, %r "
       << how.str() << " : (" << Q << ", " << K << ", " << V << ", " << X
       << ", " << L << ", " << X << ", " << I << ") -> (" << Q << ", " << K
       << ", " << V << ")\n  return %dq, %dk, %dv : " << Q << ", " << K << ", "
       << V << "\n}\n";
  return text.str();
}

/// Device memory with activations of the shape's type.
class Activation {
public:
  Activation(const Shape &s, size_t count)
      : isBF16(s.isBF16()), bits(isBF16 ? count : 0),
        floats(isBF16 ? 0 : count) {}
  Activation(const Shape &s, const Floats &values)
      : Activation(s, values.size()) {
    for (size_t i = 0; i < values.size(); ++i)
      if (isBF16)
        bits.data()[i] = toBF16(values[i]);
      else
        floats.data()[i] = values[i];
  }
  void *data() {
    return isBF16 ? static_cast<void *>(bits.data())
                  : static_cast<void *>(floats.data());
  }
  Floats values() const {
    if (!isBF16)
      return floats.values();
    Floats result;
    for (uint16_t value : bits.values())
      result.push_back(fromBF16(value));
    return result;
  }

private:
  bool isBF16;
  Buffer<uint16_t> bits;
  Buffer<float> floats;
};

/// Reproducible numbers in [-size, size), of which the shape's type has them.
Floats randomValues(const Shape &s, size_t count, uint64_t seed, float size) {
  std::mt19937_64 source(seed);
  Floats values(count);
  for (float &value : values) {
    value = size * (float(source() >> 40) * 0x1p-23f - 1.0f);
    if (s.isBF16())
      value = fromBF16(toBF16(value));
  }
  return values;
}

/// f32 is as near as on a CPU. bf16 is rounded in the result and, within, in
/// weights that no sum makes small.
void expectNear(const Shape &s, const Floats &have, const Doubles &want,
                const char *what) {
  double greatest = 1e-2;
  for (double value : want)
    greatest = std::max(greatest, std::abs(value));
  double bound = s.isBF16() ? 1.5e-2 : 4e-6;
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(have[i], want[i], bound * greatest) << what << " at " << i;
}

class Attention : public testing::TestWithParam<Shape> {};
} // namespace

TEST_P(Attention, MatchesItsDefinitionInEveryOrder) {
  Shape s = GetParam();
  float scale = 1 / std::sqrt(float(s.width));
  Kernels compiled(kernels(s, scale), s.chip);
  // Queries far from uniform attention.
  Floats q = randomValues(s, s.size(), 1, 4),
         k = randomValues(s, s.keySize(), 2, 1),
         v = randomValues(s, s.valueSize(), 3, 1),
         dout = randomValues(s, s.outSize(), 4, 1);
  Reference want = reference(s, scale, q, k, v, dout);

  Activation dq(s, q), dk(s, k), dv(s, v), ddout(s, dout);
  Buffer<int32_t> rng(std::vector<int32_t>(kRng, kRng + 4));
  Floats first[5];
  for (const SimulatorOptions &options : allOptions()) {
    SCOPED_TRACE(describe(options));
    simulatorSetOptions(&options);
    Activation out(s, s.outSize()), gq(s, s.size()), gk(s, s.keySize()),
        gv(s, s.valueSize());
    Buffer<float> lse(want.lse.size());
    ASSERT_EQ(compiled.run("forward",
                           {dq.data(), dk.data(), dv.data(), rng.data(),
                            out.data(), lse.data()},
                           {kStream}),
              "");
    ASSERT_EQ(compiled.run("backward",
                           {dq.data(), dk.data(), dv.data(), out.data(),
                            lse.data(), ddout.data(), rng.data(), gq.data(),
                            gk.data(), gv.data()},
                           {kStream}),
              "");
    Floats results[5] = {out.values(), lse.values(), gq.values(), gk.values(),
                         gv.values()};
    for (int i = 0; i < 5; ++i) {
      if (first[i].empty())
        first[i] = results[i];
      EXPECT_EQ(results[i], first[i]);
    }
  }
  expectNear(s, first[0], want.out, "out");
  for (size_t i = 0; i < want.lse.size(); ++i)
    ASSERT_NEAR(first[1][i], want.lse[i], 5e-6) << "lse at " << i;
  expectNear(s, first[2], want.dq, "dq");
  expectNear(s, first[3], want.dk, "dk");
  expectNear(s, first[4], want.dv, "dv");
}

/// Sums so small that their inverse is infinite: rows beyond the sequence have
/// no part in gradients, not even zero times infinity.
TEST(AttentionOf, ScoresFarBelowZero) {
  for (const char *type : {"f32", "bf16"}) {
    Shape s = {type, 1, 21, 1, 1, 8, 0};
    Kernels compiled(kernels(s, 1));
    Activation q(s, Floats(s.size(), 8.0f)), k(s, Floats(s.size(), -8.0f)),
        v(s, Floats(s.size(), 1.0f)), dout(s, Floats(s.size(), 1.0f)),
        out(s, s.size()), gq(s, s.size()), gk(s, s.size()), gv(s, s.size());
    Buffer<int32_t> rng(std::vector<int32_t>(kRng, kRng + 4));
    Buffer<float> lse(s.length);
    ASSERT_EQ(compiled.run("forward",
                           {q.data(), k.data(), v.data(), rng.data(),
                            out.data(), lse.data()},
                           {kStream}),
              "");
    EXPECT_NEAR(lse.values()[20], -512 + std::log(21.0), 1e-3);
    ASSERT_EQ(
        compiled.run("backward",
                     {q.data(), k.data(), v.data(), out.data(), lse.data(),
                      dout.data(), rng.data(), gq.data(), gk.data(), gv.data()},
                     {kStream}),
        "");
    // All weights of a query are the same, and so are all values.
    for (float value : gk.values())
      EXPECT_NEAR(value, 0, 1e-2) << type;
    EXPECT_NEAR(gv.values()[20 * 8], 1.0 / 21, 1e-3) << type;
  }
}

// Lengths that are no multiple of a tile or of 4 words, widths that are no
// multiple of 8 or of a vector, and the widest. Keys of each head, of groups of
// three and two, and of all heads together.
INSTANTIATE_TEST_SUITE_P(
    Shapes, Attention,
    testing::Values(
        Shape{"bf16", 1, 64, 1, 1, 64, 0}, Shape{"bf16", 2, 13, 3, 3, 5, 0.25},
        Shape{"bf16", 1, 132, 2, 1, 64, 0.1}, Shape{"bf16", 1, 67, 4, 2, 24, 0},
        Shape{"bf16", 1, 1, 1, 1, 8, 0}, Shape{"bf16", 1, 52, 6, 2, 8, 0.5},
        Shape{"bf16", 1, 97, 1, 1, 128, 0.1},
        Shape{"bf16", 1, 40, 1, 1, 256, 0}, Shape{"f32", 1, 64, 1, 1, 64, 0},
        Shape{"f32", 2, 13, 3, 3, 5, 0.25}, Shape{"f32", 1, 132, 2, 1, 64, 0.1},
        Shape{"f32", 1, 67, 4, 2, 13, 0}, Shape{"f32", 1, 1, 1, 1, 1, 0},
        Shape{"f32", 1, 52, 6, 2, 8, 0.5}, Shape{"f32", 1, 97, 1, 1, 128, 0.1},
        Shape{"f32", 1, 20, 1, 1, 256, 0}));

// MMAs of four warps together: of one, two and three panels, in both
// directions, and of four forward alone; lengths that are no multiple of a tile
// of 64, 32 or 16 rows; keys of each head, of groups of two, and of all heads.
INSTANTIATE_TEST_SUITE_P(
    WarpGroups, Attention,
    testing::Values(Shape{"bf16", 1, 64, 1, 1, 64, 0, "sm_90a"},
                    Shape{"bf16", 1, 132, 2, 1, 64, 0.1, "sm_90a"},
                    Shape{"bf16", 2, 67, 2, 2, 64, 0, "sm_90a"},
                    Shape{"bf16", 1, 1, 1, 1, 64, 0, "sm_90a"},
                    Shape{"bf16", 1, 97, 1, 1, 128, 0.1, "sm_90a"},
                    Shape{"bf16", 1, 150, 4, 2, 128, 0, "sm_90a"},
                    Shape{"bf16", 1, 70, 4, 2, 192, 0.1, "sm_90a"},
                    Shape{"bf16", 1, 75, 2, 1, 256, 0, "sm_90a"},
                    Shape{"bf16", 1, 70, 4, 2, 192, 0.1, "sm_90a", 128},
                    Shape{"bf16", 1, 67, 2, 2, 64, 0, "sm_90a", 128}));

// Values that are narrower and wider than keys, in vectors and not.
INSTANTIATE_TEST_SUITE_P(
    Widths, Attention,
    testing::Values(Shape{"bf16", 1, 67, 3, 3, 24, 0.1, "sm_80", 16},
                    Shape{"bf16", 2, 13, 4, 2, 9, 0, "sm_80", 21},
                    Shape{"bf16", 1, 70, 2, 1, 192, 0, "sm_80", 128},
                    Shape{"f32", 1, 67, 3, 3, 24, 0.1, "sm_80", 16},
                    Shape{"f32", 2, 13, 4, 2, 9, 0, "sm_80", 21},
                    Shape{"f32", 1, 40, 2, 1, 192, 0, "sm_80", 128}));
