//===- RankSumTest.cpp - Sums over ranks in the simulator -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "reprise/ABI/Philox.h"
#include "gtest/gtest.h"
#include <cstring>

using namespace reprise;
using namespace reprise::simulator;

/// The sum of [begin, end), split at the largest power of two below its size.
static float treeOf(const std::vector<float> &terms, size_t begin, size_t end) {
  if (end - begin == 1)
    return terms[begin];
  size_t half = 1;
  while (half * 2 < end - begin)
    half *= 2;
  return treeOf(terms, begin, begin + half) + treeOf(terms, begin + half, end);
}

/// Of many sizes, so that another order has other bits.
static float valueOf(size_t term, size_t i) {
  float value = int32_t(reprisePhilox(term, 0, 0, 0, i)) / 2147483648.0f;
  return value * (i % 3 ? 1e-3f : 1e4f);
}

static float asFloat(float value) { return value; }
static float asFloat(uint16_t value) { return fromBF16(value); }
template <typename T>
static T rounded(float value) {
  if constexpr (sizeof(T) == 4)
    return value;
  else
    return toBF16(value);
}

/// The tree over the groups [begin, end), of which terms have the sums of so
/// many each, one behind the other.
static float treeOfGroups(const std::vector<float> &terms,
                          const std::vector<size_t> &sizes, size_t begin,
                          size_t end) {
  size_t first = 0;
  for (size_t term = 0; term < terms.size(); first += sizes[term++])
    if (first == begin && first + sizes[term] == end)
      return terms[term];
  size_t half = 1;
  while (half * 2 < end - begin)
    half *= 2;
  return treeOfGroups(terms, sizes, begin, begin + half) +
         treeOfGroups(terms, sizes, begin + half, end);
}

/// A module with sums of f32 and bf16 over so many ranks.
static std::string sumsOver(size_t ranks) {
  std::string over =
      " over \"dp\" ranks " + std::to_string(ranks) + " : (tensor<4x";
  return "module attributes {nn.mesh = #nn.mesh<dp = " + std::to_string(ranks) +
         ">} { func.func @step(%x: tensor<4xf32>, %y: tensor<4xbf16>) -> "
         "(tensor<4xf32>, tensor<4xbf16>) {"
         "%0 = rt.collective all_reduce(%x)" +
         over + "f32>) -> tensor<4xf32> %1 = rt.collective all_reduce(%y)" +
         over +
         "bf16>) -> tensor<4xbf16> return %0, %1 : tensor<4xf32>, "
         "tensor<4xbf16> } }";
}

/// Terms begin `offset` elements behind each other's end; the sum takes the
/// place of term `place`, or if there is none that of one more.
template <typename T>
static void sumIsThatOfTheTree(const std::string &kernel, size_t numTerms,
                               size_t count, size_t offset, size_t place,
                               const std::vector<size_t> &sizes = {}) {
  const size_t room = count + offset;
  std::vector<T> values((numTerms + 1) * room, rounded<T>(42));
  for (size_t term = 0; term < numTerms; ++term)
    for (size_t i = 0; i < count; ++i)
      values[term * room + i] = rounded<T>(valueOf(term, i));
  Buffer<T> buffer(values);
  std::vector<void *> arguments;
  for (size_t term = 0; term < numTerms; ++term)
    arguments.push_back(buffer.data() + term * room);
  arguments.push_back(buffer.data() + place * room);
  arguments.push_back(reinterpret_cast<void *>(count));
  constexpr size_t kBlock = cuda::kRankSumElements;
  ASSERT_EQ(launch(kernel.c_str(),
                   {uint32_t((count + kBlock - 1) / kBlock), 1, 1}, {256, 1, 1},
                   arguments, 0),
            "");
  std::vector<T> expected = values;
  for (size_t i = 0; i < count; ++i) {
    std::vector<float> terms;
    for (size_t term = 0; term < numTerms; ++term)
      terms.push_back(asFloat(values[term * room + i]));
    expected[place * room + i] = rounded<T>(
        sizes.empty() ? treeOf(terms, 0, numTerms)
                      : treeOfGroups(terms, sizes, 0,
                                     std::accumulate(sizes.begin(), sizes.end(),
                                                     size_t(0))));
  }
  EXPECT_EQ(memcmp(buffer.values().data(), expected.data(),
                   expected.size() * sizeof(T)),
            0)
      << kernel << " " << count << " " << offset << " " << place;
}

TEST(RankSum, IsThatOfTheTree) {
  for (size_t ranks : {2, 3, 5, 8}) {
    Kernels kernels(sumsOver(ranks));
    std::string name = "reprise_sum_" + std::to_string(ranks) + "x";
    for (const SimulatorOptions &options : allOptions()) {
      simulatorSetOptions(&options);
      for (size_t count : {1, 1023, 1024, 2500})
        for (size_t offset : {0, 3})
          for (size_t place : {ranks, size_t(0), ranks - 1}) {
            sumIsThatOfTheTree<float>(name + "f32", ranks, count, offset,
                                      place);
            sumIsThatOfTheTree<uint16_t>(name + "bf16", ranks, count, offset,
                                         place);
          }
    }
  }
}

// Ranks with groups have several terms each: of three groups one of two groups
// and one of one. There is a kernel for the terms of one rank, too.
TEST(RankSum, IsThatOfTheGroupsOfAllRanks) {
  const std::vector<std::pair<size_t, size_t>> cases = {{2, 3}, {3, 3}, {3, 7}};
  for (auto [ranks, groups] : cases) {
    size_t terms = 0;
    std::string operands, types;
    for (size_t left = groups; left; left &= left - 1, ++terms) {
      operands += terms ? ", %x" : "%x";
      types += terms ? ", tensor<4xf32>" : "tensor<4xf32>";
    }
    const std::string number = std::to_string(ranks);
    Kernels kernels("module attributes {nn.mesh = #nn.mesh<dp = " + number +
                    ">} { func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {"
                    "%0 = rt.collective all_reduce(" +
                    operands + ") over \"dp\" ranks " + number +
                    " {rt.groups = " + std::to_string(groups) + " : i64} : (" +
                    types + ") -> tensor<4xf32> return %0 : tensor<4xf32> } }");
    for (size_t own : {ranks, size_t(1)}) {
      std::vector<size_t> sizes;
      for (size_t run = 64; run > 0; run /= 2)
        if (groups & run)
          sizes.insert(sizes.end(), own, run);
      for (const SimulatorOptions &options : allOptions()) {
        simulatorSetOptions(&options);
        sumIsThatOfTheTree<float>("reprise_sum_" + std::to_string(own * terms) +
                                      "xf32_of_" + std::to_string(groups),
                                  own * terms, 2500, 3, own * terms - 1, sizes);
      }
    }
  }
}

// More terms than 4096 bytes of parameters have room for.
TEST(RankSum, HasTermsOfManyRanks) {
  std::string ptx = Kernels::ptx(sumsOver(600), "sm_80");
  EXPECT_NE(ptx.find(".version 8.1"), std::string::npos);
  EXPECT_NE(ptx.find("reprise_sum_600xf32"), std::string::npos);
}
