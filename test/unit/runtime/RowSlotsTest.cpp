//===- RowSlotsTest.cpp - Rows of experts in slots of one size ------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/RowSlots.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <string>
#include <vector>

using namespace reprise::runtime;

namespace {

/// Rows of all members, whose values say whose they are: member, expert, and
/// the number among those.
struct Routing {
  int64_t experts, members, room;       ///< of a slot
  std::vector<std::vector<int>> counts; ///< by member and expert
  std::vector<int32_t> offsets;

  Routing(int64_t experts, int64_t members, int64_t room, unsigned seed)
      : experts(experts), members(members), room(room), counts(members) {
    for (std::vector<int> &own : counts) {
      std::vector<int> left(counts.size(), int(room));
      for (int64_t e = 0; e < experts; ++e) {
        seed = seed * 1664525 + 1013904223;
        int &rest = left[size_t(e / (experts / members))];
        own.push_back(std::min(rest, int(seed >> 28) % 4));
        rest -= own.back();
      }
    }
    for (const std::vector<int> &own : counts) {
      offsets.push_back(0);
      for (int count : own)
        offsets.push_back(offsets.back() + count);
    }
  }
  int64_t perMember() const { return experts / members; }

  using Rows = std::vector<std::string>;
  static std::string row(int64_t member, int64_t expert, int i) {
    std::string text = {char('a' + member), char('A' + expert), char('0' + i)};
    return text;
  }
  /// By the definition: those of a member's tokens, and those of its experts.
  Rows home(int64_t member) const {
    Rows rows;
    for (int64_t e = 0; e < experts; ++e)
      for (int i = 0; i < counts[size_t(member)][size_t(e)]; ++i)
        rows.push_back(row(member, e, i));
    return rows;
  }
  Rows there(int64_t member) const {
    Rows rows;
    for (int64_t e = member * perMember(); e < (member + 1) * perMember(); ++e)
      for (int64_t from = 0; from < members; ++from)
        for (int i = 0; i < counts[size_t(from)][size_t(e)]; ++i)
          rows.push_back(row(from, e, i));
    return rows;
  }
};

/// With room for `count` rows, of which the last are zero.
std::string bytesOf(const Routing::Rows &rows, int64_t count) {
  std::string bytes;
  for (const std::string &row : rows)
    bytes += row;
  bytes.resize(size_t(3 * count));
  return bytes;
}

} // namespace

// What all members send in slots is what their experts have, and the other way
// round: with experts that have nothing, nobody's rows, and room for few or
// many more.
TEST(RowSlots, AreWhatExpertsHave) {
  for (auto [experts, members, room] : std::vector<std::array<int64_t, 3>>{
           {4, 2, 6}, {6, 3, 2}, {8, 2, 13}, {5, 1, 9}, {4, 4, 1}, {12, 4, 7}})
    for (unsigned seed = 0; seed < 40; ++seed) {
      const Routing routing(experts, members, room, seed);
      const int64_t numThere = members * room, numHome = members * room + 1;
      for (bool areOfTokens : {true, false}) {
        const int64_t numFrom = areOfTokens ? numHome : numThere;
        const int64_t numTo = areOfTokens ? numThere : numHome;
        auto rowsOf = [&](int64_t member, bool ofTokens, int64_t count) {
          return bytesOf(
              ofTokens ? routing.home(member) : routing.there(member), count);
        };
        // sent[a][b]: what a has for b.
        std::vector<std::string> sent;
        for (int64_t self = 0; self < members; ++self) {
          std::string rows = rowsOf(self, areOfTokens, numFrom);
          std::string slots(size_t(3 * members * room), '?');
          fillSlots({routing.offsets.data(), experts, members, self, 3,
                     areOfTokens, rows.data(), numFrom, slots.data(), room});
          sent.push_back(slots);
        }
        for (int64_t self = 0; self < members; ++self) {
          std::string slots, rows(size_t(3 * numTo), '!');
          for (int64_t from = 0; from < members; ++from)
            slots += sent[size_t(from)].substr(size_t(3 * self * room),
                                               size_t(3 * room));
          emptySlots({routing.offsets.data(), experts, members, self, 3,
                      !areOfTokens, rows.data(), numTo, slots.data(), room});
          ASSERT_EQ(rows, rowsOf(self, !areOfTokens, numTo))
              << experts << " experts, member " << self << " of " << members;
        }
      }
    }
}

TEST(RowSlots, OffsetsOfAMembersExperts) {
  const Routing routing(6, 3, 50, 7);
  for (int64_t self = 0; self < 3; ++self) {
    std::vector<int32_t> own(3, -1);
    findOwnOffsets(routing.offsets.data(), 6, 3, self, own.data());
    int32_t rows = 0;
    for (int64_t e = 0; e < 2; ++e) {
      EXPECT_EQ(own[size_t(e)], rows);
      for (int64_t member = 0; member < 3; ++member)
        rows += routing.counts[size_t(member)][size_t(2 * self + e)];
    }
    EXPECT_EQ(own[2], rows);
  }
}
