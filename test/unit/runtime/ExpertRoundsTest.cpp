//===- ExpertRoundsTest.cpp - Rows of experts that come in rounds ---------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/ExpertRows.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace reprise::runtime;

namespace {

/// Notes what a member exchanges, and does the rest at once.
class NotedMemory final : public RankMemory {
public:
  explicit NotedMemory(int self) : self(self) {}

  int rank() const override { return self; }
  bool exchange(const char *, const Parcel *out, int numSends, const Parcel *in,
                int numReceives, Error &) override {
    sends.assign(out, out + numSends);
    receives.assign(in, in + numReceives);
    return true;
  }
  bool copy(void *to, const void *from, size_t size, Error &) override {
    memcpy(to, from, size);
    return true;
  }
  bool clear(void *bytes, size_t size, Error &) override {
    memset(bytes, 0, size);
    return true;
  }
  bool send(const char *, const LaneParcel &, Error &) override {
    return false;
  }
  bool receive(const char *, const LaneParcel &, Error &) override {
    return false;
  }
  bool sum(Number, void *, const void *const *, int, int64_t, int64_t,
           Error &) override {
    return false;
  }
  bool fillSlots(const RowSlots &, Error &) override { return false; }
  bool emptySlots(const RowSlots &, Error &) override { return false; }
  bool findOwnOffsets(const int32_t *, int64_t, int64_t, int64_t, int32_t *,
                      Error &) override {
    return false;
  }

  /// The parcels that go to `other`, or come from it, in order.
  static std::vector<Parcel> of(int other, const std::vector<Parcel> &all) {
    std::vector<Parcel> some;
    for (const Parcel &parcel : all)
      if (parcel.rank == other)
        some.push_back(parcel);
    return some;
  }

  const int self;
  std::vector<Parcel> sends, receives;
};

/// Delivers what all members have noted; that parcels fit each other.
void deliver(const std::vector<NotedMemory *> &members) {
  for (NotedMemory *from : members)
    for (NotedMemory *to : members) {
      auto sent = NotedMemory::of(to->self, from->sends);
      auto received = NotedMemory::of(from->self, to->receives);
      ASSERT_EQ(sent.size(), received.size());
      for (size_t i = 0; i < sent.size(); ++i) {
        ASSERT_EQ(sent[i].size, received[i].size);
        memcpy(received[i].bytes, sent[i].bytes, sent[i].size);
      }
    }
}

/// The ranks of a group, and how many rows each has for each expert.
struct Choice {
  int members;
  int64_t experts;
  std::vector<int32_t> offsets; ///< of all members
  std::vector<std::unique_ptr<NotedMemory>> memories;

  Choice(int members, int64_t experts, const std::vector<int> &counts)
      : members(members), experts(experts) {
    for (int member = 0; member < members; ++member) {
      memories.push_back(std::make_unique<NotedMemory>(member));
      offsets.push_back(0);
      for (int64_t e = 0; e < experts; ++e)
        offsets.push_back(offsets.back() +
                          counts[size_t(member * experts + e)]);
    }
  }
  int64_t some() const { return experts / members; }
  int32_t count(int member, int64_t expert) const {
    const int32_t *own = &offsets[size_t(member * (experts + 1))];
    return own[expert + 1] - own[expert];
  }
  int32_t rowsOf(int member) const {
    return offsets[size_t(member * (experts + 1) + experts)];
  }
  Group group() const { return {0, 1, members}; }

  /// What each expert of a member has, by the definition: member, expert and
  /// number of each row, in order.
  std::vector<std::vector<float>> there(int member) const {
    std::vector<std::vector<float>> rows;
    for (int64_t e = member * some(); e < (member + 1) * some(); ++e) {
      rows.emplace_back();
      for (int from = 0; from < members; ++from)
        for (int i = 0; i < count(from, e); ++i)
          rows.back().push_back(name(from, e, i));
    }
    return rows;
  }
  static float name(int member, int64_t expert, int i) {
    return float(1 + member + 10 * expert + 1000 * i);
  }
  std::vector<float> home(int member) const {
    std::vector<float> rows;
    for (int64_t e = 0; e < experts; ++e)
      for (int i = 0; i < count(member, e); ++i)
        rows.push_back(name(member, e, i));
    return rows;
  }

  void check(int64_t most, int64_t rounds);
};

/// In each round experts have their next rows, and in all of them every row
/// comes back to where it was.
void Choice::check(int64_t most, int64_t rounds) {
  Error error;
  std::vector<std::vector<float>> homes, back;
  std::vector<NotedMemory *> all;
  for (int m = 0; m < members; ++m) {
    homes.push_back(home(m));
    homes.back().resize(homes.back().size() + 2, -1); // Behind all rows.
    back.emplace_back(homes.back().size(), -1.0f);
    all.push_back(memories[size_t(m)].get());
  }
  for (int64_t round = 0; round < rounds; ++round) {
    ExpertRows rows = {experts,      1,    offsets.data(),
                       round * most, most, round != 0};
    std::vector<std::vector<float>> theres(
        size_t(members), std::vector<float>(size_t(some() * most), -1));
    for (int m = 0; m < members; ++m)
      ASSERT_TRUE(
          sendRows(*all[size_t(m)], group(), "send", Number::F32, rows,
                   {homes[size_t(m)].data(), int64_t(homes[size_t(m)].size())},
                   {theres[size_t(m)].data(), some() * most}, Span(), error))
          << error.text;
    deliver(all);
    for (int m = 0; m < members; ++m) {
      std::vector<float> expected;
      for (const std::vector<float> &expert : there(m))
        for (int64_t i = round * most;
             i < std::min((round + 1) * most, int64_t(expert.size())); ++i)
          expected.push_back(expert[size_t(i)]);
      expected.resize(size_t(some() * most));
      EXPECT_EQ(theres[size_t(m)], expected) << "round " << round;
    }
    for (int m = 0; m < members; ++m)
      ASSERT_TRUE(
          returnRows(*all[size_t(m)], group(), "return", Number::F32, rows,
                     {theres[size_t(m)].data(), some() * most},
                     {back[size_t(m)].data(), int64_t(back[size_t(m)].size())},
                     Span(), error))
          << error.text;
    deliver(all);
  }
  for (int m = 0; m < members; ++m) {
    std::fill(homes[size_t(m)].end() - 2, homes[size_t(m)].end(), 0.0f);
    EXPECT_EQ(back[size_t(m)], homes[size_t(m)]);
  }
}

TEST(ExpertRounds, RowsAreThoseOfOneRoundAfterTheOther) {
  std::mt19937 random(5);
  for (int members : {1, 2, 3, 4})
    for (int64_t some : {1, 2, 3})
      for (int trial = 0; trial < 20; ++trial) {
        std::vector<int> counts;
        for (int64_t i = 0; i < members * members * some; ++i)
          counts.push_back(random() % 3 ? int(random() % 6) : 0);
        const int64_t most = 1 + int64_t(random() % 7);
        Choice(members, members * some, counts)
            .check(most, (members * 5 + most - 1) / most);
      }
}

TEST(ExpertRounds, OneExpertHasAllRowsAndOthersNone) {
  for (int expert : {0, 3, 5}) {
    std::vector<int> counts(3 * 6);
    for (int member : {0, 1, 2})
      counts[size_t(member * 6 + expert)] = 7;
    Choice(3, 6, counts).check(4, 6);
  }
}

TEST(ExpertRounds, ThereIsNoRow) {
  Choice(2, 4, std::vector<int>(2 * 4)).check(3, 2);
}

TEST(ExpertRounds, OffsetsAreThoseOfEachRound) {
  Error error;
  // Experts with 5, 0 and 9 rows.
  std::vector<int32_t> own(3 * 4, -1);
  for (auto [i, offset] : {std::pair(0, 0), {1, 5}, {2, 5}, {3, 14}})
    own[size_t(i)] = offset;
  ASSERT_TRUE(splitOffsets("offsets", 3, 4, 3, own.data(), error));
  EXPECT_EQ(own, (std::vector<int32_t>{0, 4, 4, 8, 0, 1, 1, 5, 0, 0, 0, 1}));
}

TEST(ExpertRounds, MoreRowsThanRoundsHaveAreRefused) {
  Error error;
  std::vector<int32_t> own = {0, 5, 14, -1, -1, -1};
  EXPECT_FALSE(splitOffsets("offsets", 2, 4, 2, own.data(), error));
  EXPECT_STREQ(error.text, "offsets: expert 1 has 9 rows, but 2 rounds have 8");
}

} // namespace
