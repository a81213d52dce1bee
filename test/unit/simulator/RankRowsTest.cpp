//===- RankRowsTest.cpp - Rows of experts in the simulator ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "gtest/gtest.h"
#include <algorithm>

using namespace reprise;
using namespace reprise::simulator;

namespace {

constexpr int64_t kExperts = 6, kMembers = 3, kRoom = 5;
constexpr int64_t kPerMember = kExperts / kMembers;

/// Rows that each member has for each expert, at most `kRoom` for a member.
constexpr int64_t kCounts[kMembers][kExperts] = {
    {1, 0, 3, 2, 0, 0}, {0, 0, 0, 4, 2, 3}, {2, 3, 0, 0, 1, 0}};

std::vector<int32_t> allOffsets() {
  std::vector<int32_t> offsets;
  for (const auto &counts : kCounts) {
    offsets.push_back(0);
    for (int64_t count : counts)
      offsets.push_back(offsets.back() + int32_t(count));
  }
  return offsets;
}

/// A number for each row: of its member, its expert, and among those.
struct Name {
  int64_t member, expert, number;
  int64_t value() const {
    return 1 + (member * kExperts + expert) * 8 + number;
  }
};

std::vector<int64_t> atHome(int64_t member) {
  std::vector<int64_t> rows;
  for (int64_t e = 0; e < kExperts; ++e)
    for (int64_t i = 0; i < kCounts[member][e]; ++i)
      rows.push_back(Name{member, e, i}.value());
  return rows;
}

std::vector<int64_t> atExperts(int64_t member) {
  std::vector<int64_t> rows;
  for (int64_t e = member * kPerMember; e < (member + 1) * kPerMember; ++e)
    for (int64_t from = 0; from < kMembers; ++from)
      for (int64_t i = 0; i < kCounts[from][e]; ++i)
        rows.push_back(Name{from, e, i}.value());
  return rows;
}

/// What slot `slot` of `self` has.
std::vector<int64_t> inSlot(int64_t self, int64_t slot, bool areOfTokens) {
  const int64_t from = areOfTokens ? self : slot;
  const int64_t to = areOfTokens ? slot : self;
  std::vector<int64_t> rows;
  for (int64_t e = to * kPerMember; e < (to + 1) * kPerMember; ++e)
    for (int64_t i = 0; i < kCounts[from][e]; ++i)
      rows.push_back(Name{from, e, i}.value());
  return rows;
}

/// Elements of so many rows, of which those behind `rows` are `rest`.
template <typename T>
std::vector<T> elementsOf(std::vector<int64_t> rows, int64_t count,
                          int64_t width, T rest) {
  std::vector<T> elements;
  for (int64_t row = 0; row < count; ++row)
    for (int64_t i = 0; i < width; ++i)
      elements.push_back(
          row < int64_t(rows.size()) ? T(rows[size_t(row)] * 100 + i) : rest);
  return elements;
}

template <typename T>
std::vector<T> slotsOf(int64_t self, bool areOfTokens, int64_t width, T rest) {
  std::vector<T> slots;
  for (int64_t slot = 0; slot < kMembers; ++slot) {
    std::vector<T> one =
        elementsOf<T>(inSlot(self, slot, areOfTokens), kRoom, width, rest);
    slots.insert(slots.end(), one.begin(), one.end());
  }
  return slots;
}

/// A module in which ranks exchange rows of this type.
std::string rowsOf(const std::string &type) {
  return "module attributes {nn.mesh = #nn.mesh<ep = 3>} { func.func @step("
         "%x: tensor<15x" +
         type + ">, %o: tensor<7xi32>) -> tensor<15x" + type +
         "> { %a:2 = rt.gather_offsets %o over \"ep\" ranks 3 : "
         "(tensor<7xi32>) -> (tensor<3x7xi32>, tensor<3xi32>) "
         "%0 = rt.send_rows %x, %a#0 over \"ep\" ranks 3 : (tensor<15x" +
         type + ">, tensor<3x7xi32>) -> tensor<15x" + type +
         "> return %0 : tensor<15x" + type + "> } }";
}

template <typename T>
void rowsGoThroughSlots(const std::string &type, int64_t width, int64_t unit) {
  Kernels kernels(rowsOf(std::to_string(width) + "x" + type));
  const std::string name = "reprise_rows_by_" + std::to_string(unit);
  const int64_t units = width * int64_t(sizeof(T)) / unit;
  constexpr int64_t kSlots = kMembers * kRoom;
  for (const SimulatorOptions &options : allOptions()) {
    simulatorSetOptions(&options);
    for (int64_t self = 0; self < kMembers; ++self)
      for (bool areOfTokens : {true, false})
        for (bool toSlots : {true, false}) {
          // At home a row more than slots have, which nobody has.
          const int64_t count = areOfTokens ? kSlots + 1 : kSlots;
          std::vector<T> rows = elementsOf<T>(
              areOfTokens ? atHome(self) : atExperts(self), count, width, 0);
          std::vector<T> slots = slotsOf<T>(self, areOfTokens, width, 77);
          Buffer<T> from(toSlots ? rows : slots);
          Buffer<T> to(std::vector<T>((toSlots ? slots : rows).size(), 77));
          Buffer<int32_t> offsets(allOffsets());
          std::vector<void *> arguments = {from.data(), offsets.data(),
                                           to.data()};
          for (int64_t id : {kExperts, kMembers, self, kRoom, units, count,
                             int64_t(areOfTokens), int64_t(toSlots)})
            arguments.push_back(reinterpret_cast<void *>(id));
          ASSERT_EQ(launch(name.c_str(),
                           {uint32_t(toSlots ? kSlots : count), 1, 1},
                           {128, 1, 1}, arguments, 0),
                    "");
          EXPECT_EQ(to.values(), toSlots ? slots : rows)
              << type << " " << self << areOfTokens << toSlots;
        }
  }
}

} // namespace

TEST(RankRows, GoThroughSlots) {
  rowsGoThroughSlots<uint16_t>("bf16", 3, 2);
  rowsGoThroughSlots<uint16_t>("bf16", 6, 4);
  rowsGoThroughSlots<uint16_t>("bf16", 8, 16);
  rowsGoThroughSlots<uint32_t>("f32", 1, 4);
  rowsGoThroughSlots<uint32_t>("f32", 7, 4);
  rowsGoThroughSlots<uint32_t>("f32", 132 * 4, 16);
}

TEST(RankRows, HaveOffsets) {
  Kernels kernels(rowsOf("4xf32"));
  for (int64_t self = 0; self < kMembers; ++self) {
    Buffer<int32_t> all(allOffsets());
    Buffer<int32_t> own(std::vector<int32_t>(kPerMember + 1, -1));
    std::vector<void *> arguments = {all.data(), own.data()};
    for (int64_t id : {kExperts, kMembers, self})
      arguments.push_back(reinterpret_cast<void *>(id));
    ASSERT_EQ(
        launch("reprise_rows_offsets", {1, 1, 1}, {128, 1, 1}, arguments, 0),
        "");
    std::vector<int32_t> expected = {0};
    for (int64_t e = self * kPerMember; e < (self + 1) * kPerMember; ++e) {
      expected.push_back(expected.back());
      for (const auto &counts : kCounts)
        expected.back() += int32_t(counts[e]);
    }
    EXPECT_EQ(own.values(), expected);
  }
}
