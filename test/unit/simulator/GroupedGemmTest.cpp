//===- GroupedGemmTest.cpp - GEMMs of groups in the simulator -------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runs.h"
#include <cmath>

using namespace reprise;
using namespace reprise::simulator;

using Ids = std::vector<int32_t>;

namespace {
enum class Kind { Forward, Input, Weight };

struct Gemm {
  Kind kind;
  int64_t rows, in, out; ///< of all groups; columns of inputs, and of outputs
  Ids offsets;
  int64_t slots = 0; ///< of tokens whose rows are gathered; 0: all are there
  bool isBF16 = false, adds = false;
  bool gathersA = true; ///< or B, of which only sums over rows can

  int64_t groups() const { return int64_t(offsets.size()) - 1; }
  /// Rows that the gathered operand has.
  int64_t tokens() const { return slots ? (rows + slots - 1) / slots : rows; }
  int64_t rowsOfA() const { return gathersA ? tokens() : rows; }
  int64_t rowsOfB() const { return gathersA ? rows : tokens(); }
};
} // namespace

static std::string tensor(std::vector<int64_t> shape, const char *element) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

/// The kernel of `p`: of a, b, offsets and, if there are any, order and addend.
static std::string textOf(const Gemm &p) {
  const char *element = p.isBF16 ? "bf16" : "f32";
  bool isSum = p.kind == Kind::Weight;
  // Forward X W', of inputs D W; weights D' X, where either is gathered.
  int64_t m = isSum ? p.out : p.rows, k = isSum                     ? p.rows
                                          : p.kind == Kind::Forward ? p.in
                                                                    : p.out;
  int64_t n = p.kind == Kind::Forward ? p.out : p.in;
  std::string a = tensor({p.rowsOfA(), isSum ? m : k}, element);
  std::string b = isSum ? tensor({p.rowsOfB(), n}, element)
                        : tensor({p.groups(), p.out, p.in}, element);
  std::string c =
      isSum ? tensor({p.groups(), m, n}, "f32") : tensor({m, n}, element);
  std::string types = a + ", " + b + ", " + tensor({p.groups() + 1}, "i32"),
              given = types;
  std::string arguments = "%a : " + a + ", %b : " + b +
                          ", %offsets : " + tensor({p.groups() + 1}, "i32");
  std::string options;
  if (p.slots) {
    arguments += ", %order : " + tensor({p.rows}, "i32");
    types += ", " + tensor({p.rows}, "i32");
    options += std::string(" gather ") + (p.gathersA ? "a" : "b") +
               " order(%order) slots " + std::to_string(p.slots);
  }
  if (p.adds) {
    arguments += ", %c0 : " + c + " {rt.in_place = 0 : i64}";
    types += ", " + c;
    options += " addend(%c0)";
  }
  if (isSum)
    options += " transpose_a";
  if (p.kind == Kind::Forward)
    options += " transpose_b";
  auto number = [](int64_t value) { return std::to_string(value); };
  return "func.func private @product(" + arguments + ") -> " + c +
         " attributes {rt.kernel} {\n  %c = rt.gemm %a, %b groups(%offsets)" +
         options + " m " + number(m) + " n " + number(n) + " k " + number(k) +
         " lda " + number(isSum ? m : k) + " ldb " +
         number(p.kind == Kind::Forward ? k : n) + " ldc " + number(n) +
         " : (" + types + ") -> " + c + "\n  return %c : " + c + "\n}\n";
}

/// Numbers as the kernel is given them.
static std::vector<uint16_t> given(Floats &values, bool isBF16) {
  return isBF16 ? asBF16(values) : std::vector<uint16_t>(1);
}

namespace {
/// Inputs of a GEMM, and what comes of them by the definition.
struct Data {
  explicit Data(const Gemm &p) : p(p) {
    bool isSum = p.kind == Kind::Weight;
    a = numbers(size_t(p.rowsOfA() * (p.kind == Kind::Forward ? p.in : p.out)),
                1);
    b = numbers(size_t(isSum ? p.rowsOfB() * p.in : p.groups() * p.out * p.in),
                2);
    a16 = given(a, p.isBF16), b16 = given(b, p.isBF16);
    for (int64_t row = 0; row < p.rows; ++row) // 7 and any size: nearly mixed
      order.push_back(int32_t((row * 7 + row / 7) % p.rows));
    if (p.adds)
      start = numbers(size_t(p.groups() * p.out * p.in), 3);
  }

  /// The row of A, or of B, that row `row` is found in.
  int64_t source(int64_t row, bool ofA) const {
    return p.slots && p.gathersA == ofA ? order[size_t(row)] / p.slots : row;
  }
  std::vector<double> expected() const {
    if (p.kind == Kind::Weight)
      return expectedSums();
    bool isForward = p.kind == Kind::Forward;
    int64_t n = isForward ? p.out : p.in, k = isForward ? p.in : p.out;
    std::vector<double> c(size_t(p.rows * n));
    for (int64_t e = 0; e < p.groups(); ++e)
      for (int64_t row = p.offsets[size_t(e)]; row < p.offsets[size_t(e) + 1];
           ++row)
        for (int64_t j = 0; j < n; ++j)
          for (int64_t t = 0; t < k; ++t) {
            int64_t weight = isForward ? j * p.in + t : t * p.in + j;
            c[size_t(row * n + j)] +=
                double(a[size_t(source(row, true) * k + t)]) *
                double(b[size_t(e * p.out * p.in + weight)]);
          }
    return c;
  }
  std::vector<double> expectedSums() const {
    std::vector<double> c(size_t(p.groups() * p.out * p.in));
    std::copy(start.begin(), start.end(), c.begin());
    for (int64_t e = 0; e < p.groups(); ++e)
      for (int64_t row = p.offsets[size_t(e)]; row < p.offsets[size_t(e) + 1];
           ++row)
        for (int64_t i = 0; i < p.out; ++i)
          for (int64_t j = 0; j < p.in; ++j)
            c[size_t((e * p.out + i) * p.in + j)] +=
                double(a[size_t(source(row, true) * p.out + i)]) *
                double(b[size_t(source(row, false) * p.in + j)]);
    return c;
  }

  const Gemm &p;
  Floats a, b, start;
  std::vector<uint16_t> a16, b16;
  Ids order;
};
} // namespace

/// The GEMM in every order of blocks, as f32.
static Floats run(const Gemm &p, const Data &data) {
  Kernels kernels(textOf(p));
  Buffer<float> a(data.a), b(data.b);
  Buffer<uint16_t> a16(data.a16), b16(data.b16);
  Ids offsets = p.offsets;
  Buffer<int32_t> ends(offsets), order(data.order);
  std::vector<void *> inputs = {p.isBF16 ? (void *)a16.data() : a.data(),
                                p.isBF16 ? (void *)b16.data() : b.data(),
                                ends.data()};
  if (p.slots)
    inputs.push_back(order.data());
  if (p.adds)
    inputs.push_back(nullptr); // the output's
  size_t count = data.expected().size();
  if (!p.isBF16 || p.kind == Kind::Weight) {
    Floats before = p.adds ? data.start : Floats(count, NAN);
    return runAll<float>(kernels, "product", inputs, {before})[0];
  }
  auto words = runAll<uint16_t>(kernels, "product", inputs,
                                {std::vector<uint16_t>(count, 0x7FC0)});
  Floats c;
  for (uint16_t word : words[0])
    c.push_back(fromBF16(word));
  return c;
}

static void isAsDefined(const Gemm &p) {
  Data data(p);
  std::vector<double> expected = data.expected();
  Floats c = run(p, data);
  bool isRounded = p.isBF16 && p.kind != Kind::Weight;
  for (size_t i = 0; i < c.size(); ++i) {
    double tolerance = isRounded ? 4e-3 * std::fabs(expected[i]) + 1e-5 : 2e-5;
    ASSERT_NEAR(c[i], expected[i], tolerance) << i << " of\n" << textOf(p);
  }
}

/// All kinds, of both types, for tokens as they are and gathered.
static void allKinds(Gemm p) {
  for (bool isBF16 : {false, true}) {
    p.isBF16 = isBF16, p.gathersA = true, p.adds = false;
    for (Kind kind : {Kind::Forward, Kind::Input, Kind::Weight}) {
      p.kind = kind;
      isAsDefined(p);
    }
    p.gathersA = false, p.adds = true;
    isAsDefined(p);
  }
}

/// Rows are copied in vectors; groups end within tiles, one has no row.
TEST(GroupedGemm, EvenSizes) {
  allKinds({Kind::Forward, 100, 48, 40, {0, 37, 37, 70, 100}});
  allKinds({Kind::Forward, 100, 48, 40, {0, 37, 37, 70, 100}, 2});
}

/// Rows begin anywhere.
TEST(GroupedGemm, OddSizes) {
  allKinds({Kind::Forward, 57, 13, 21, {0, 1, 34, 34, 57}});
  allKinds({Kind::Forward, 57, 13, 21, {0, 1, 34, 34, 57}, 3});
}

/// One group has all rows, as the first, the last, and the only one.
TEST(GroupedGemm, AllRowsOfOne) {
  allKinds({Kind::Forward, 70, 16, 24, {0, 70, 70, 70}});
  allKinds({Kind::Forward, 70, 16, 24, {0, 0, 0, 70}, 2});
  allKinds({Kind::Forward, 33, 8, 9, {0, 33}});
}

/// Rows that no group has are zero, be they some, or all.
TEST(GroupedGemm, RowsOfNone) {
  allKinds({Kind::Forward, 90, 16, 24, {0, 20, 33, 41}});
  allKinds({Kind::Forward, 40, 9, 7, {0, 0, 0}, 2});
}

/// Groups that begin and end where tiles do; more groups than rows.
TEST(GroupedGemm, Tiles) {
  allKinds({Kind::Forward, 128, 8, 16, {0, 32, 64, 64, 128}});
  Ids offsets = {0};
  for (int32_t e = 0; e < 37; ++e)
    offsets.push_back(offsets.back() + (e % 5 == 3));
  allKinds({Kind::Forward, 11, 16, 8, offsets});
}

/// Tiles of all sizes, with several warps side by side.
TEST(GroupedGemm, Large) {
  for (bool isBF16 : {false, true}) {
    isAsDefined({Kind::Forward, 150, 72, 136, {0, 150}, 0, isBF16});
    isAsDefined({Kind::Input, 130, 136, 72, {0, 5, 130}, 2, isBF16});
    isAsDefined({Kind::Weight, 45, 136, 200, {0, 45}, 0, isBF16, true});
  }
}
