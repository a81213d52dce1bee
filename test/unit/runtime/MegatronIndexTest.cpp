//===- MegatronIndexTest.cpp - Data sets with an index --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestFiles.h"

#include <algorithm>
#include <random>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

namespace {

class Megatron : public testing::Test {
protected:
  /// Writes both files and reads them by the .idx.
  Tokens read(const std::string &index, const std::string &tokens) {
    folder.write("x.bin", tokens);
    folder.write("x.idx", index);
    return Tokens({folder.path + "x.idx"});
  }
  /// Why that is refused, without the name of the index.
  std::string refusal(const std::string &index) {
    std::string error = read(index, ten).error;
    std::string name = "'" + folder.path + "x.idx' ";
    EXPECT_EQ(error.substr(0, name.size()), name);
    return error.substr(std::min(name.size(), error.size()));
  }
  std::string refusal(const IndexFile &index) { return refusal(index.bytes()); }

  Folder folder;
  const std::string ten =
      bytesAs<uint16_t>({10, 11, 12, 13, 14, 15, 16, 17, 18, 19});
  /// Three documents, the second one empty, of two, no and two sequences, one
  /// of which is empty.
  const IndexFile good = {{3, 4, 0, 3}, {0, 6, 14, 14}, {0, 2, 2, 4}};
};

} // namespace

TEST_F(Megatron, EitherNameWillDo) {
  const Values expected = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  EXPECT_EQ(read(good.bytes(), ten).values, expected);
  EXPECT_EQ(Tokens({folder.path + "x.bin"}).values, expected);
  EXPECT_EQ(Tokens({folder.path + "x.bin"}, TokenType::U16).values, expected);
  // Nor need there be an ending, as Megatron's --data-path has none.
  EXPECT_EQ(Tokens({folder.path + "x"}).values, expected);
  // A pattern that has both means the data set once.
  EXPECT_EQ(Tokens({folder.path + "*"}).values, expected);
  EXPECT_EQ(Tokens({folder.path + "x.???"}).values, expected);
  EXPECT_EQ(Tokens({folder.path + "x.bin"}, TokenType::U32).error,
            "'" + folder.path +
                "x.idx' has tokens of type u16, but --dtype is u32; it is "
                "needed only for .bin files without a header");
  // A file of the very name comes first.
  folder.write("x", "text");
  EXPECT_EQ(Tokens({folder.path + "x"}).values, (Values{'t', 'e', 'x', 't'}));
  remove((folder.path + "x").c_str());
  remove((folder.path + "x.idx").c_str());
  EXPECT_EQ(Tokens({folder.path + "x"}).error,
            "cannot read '" + folder.path +
                "x': No such file or directory; there is '" + folder.path +
                "x.bin'");
  folder.write("x.idx", good.bytes());
  remove((folder.path + "x.bin").c_str());
  // An index without its tokens is named as such, whatever names it.
  for (const char *name : {"x.idx", "x", "*.idx"})
    EXPECT_EQ(
        Tokens({folder.path + name}).error,
        "'" + folder.path +
            "x.idx' is the index of a Megatron data set, whose tokens are "
            "in a second file beside it, but '" +
            folder.path + "x.bin' is missing")
        << name;
}

TEST_F(Megatron, AllIntegersAreTokens) {
  auto check = [&](TokenType type, const std::string &bytes) {
    IndexFile index = {{3}, {0}, {0, 1}, type};
    EXPECT_EQ(read(index.bytes(), bytes).values, (Values{1, 100, 2}))
        << nameOf(type);
  };
  const std::vector<int64_t> values = {1, 100, 2};
  check(TokenType::U8, bytesAs<uint8_t>(values));
  check(TokenType::I8, bytesAs<int8_t>(values));
  check(TokenType::I16, bytesAs<int16_t>(values));
  check(TokenType::I32, bytesAs<int32_t>(values));
  check(TokenType::I64, bytesAs<int64_t>(values));
  check(TokenType::U16, bytesAs<uint16_t>(values));
}

TEST_F(Megatron, TokensBelowZeroOrWideAreNotInTheVocabulary) {
  auto check = [&](TokenType type, const std::string &bytes,
                   const std::string &token) {
    IndexFile index = {{2}, {0}, {0, 1}, type};
    EXPECT_EQ(read(index.bytes(), bytes).error,
              "'" + folder.path + "x.bin' has the token " + token +
                  " at byte " + std::to_string(bytesOf(type)) +
                  " (number 1, from 0), but the model's vocabulary has "
                  "2147483647 tokens, 0 to 2147483646");
  };
  check(TokenType::I8, bytesAs<int8_t>({1, -128}), "-128");
  check(TokenType::I16, bytesAs<int16_t>({1, -2}), "-2");
  check(TokenType::I32, bytesAs<int32_t>({1, INT32_MIN}), "-2147483648");
  check(TokenType::I64, bytesAs<int64_t>({1, -1}), "-1");
  check(TokenType::I64, bytesAs<int64_t>({1, INT64_C(1) << 32}), "4294967296");
}

TEST_F(Megatron, SequencesMayLieInAnyOrderWithGaps) {
  IndexFile index = {{2, 3, 1}, {16, 2, 8}, {0, 3}};
  EXPECT_EQ(read(index.bytes(), ten).values, (Values{18, 19, 11, 12, 13, 14}));
  IndexFile nothing = {{}, {}, {0}};
  EXPECT_EQ(read(nothing.bytes(), "").error, "");
  EXPECT_EQ(read(nothing.bytes(), "").values, Values());
}

TEST_F(Megatron, HeadersAreChecked) {
  std::string bytes = good.bytes();
  auto changed = [&](size_t at, const std::string &by) {
    return std::string(bytes).replace(at, by.size(), by);
  };
  EXPECT_EQ(refusal("MMIDIDX"), "is no index of a Megatron data set: it does "
                                "not begin with MMIDIDX");
  EXPECT_EQ(refusal(changed(3, "X")), "is no index of a Megatron data set: it "
                                      "does not begin with MMIDIDX");
  EXPECT_EQ(refusal(bytes.substr(0, 33)),
            "is truncated: an index needs at least 34 bytes, but got 33");
  EXPECT_EQ(refusal(changed(9, "\2")),
            "needs to be of version 1, but got version 2");
  EXPECT_EQ(refusal(changed(17, "\11")),
            "needs a token type from 1 to 8, but got 9");
  EXPECT_EQ(refusal(changed(17, "\7")),
            "needs tokens that are integers, but got f32");
  EXPECT_EQ(refusal(changed(18, "\5")),
            "needs 126 bytes for 5 sequences and 4 document boundaries, but "
            "got 114");
  EXPECT_EQ(refusal(bytes + "x"),
            "needs 114 bytes for 4 sequences and 4 document boundaries, but "
            "got 115");
  EXPECT_EQ(refusal(changed(18, bytesAs<int64_t>({-1}))),
            "has 114 bytes, which cannot hold the 18446744073709551615 "
            "sequences and 4 document boundaries that it names");
}

TEST_F(Megatron, SequencesMustLieInTheFile) {
  auto with = [&](std::vector<int64_t> lengths, std::vector<int64_t> offsets) {
    return refusal(IndexFile{lengths, offsets, {0, 2}});
  };
  std::string tokens = "'" + folder.path + "x.bin'";
  EXPECT_EQ(with({3, -1}, {0, 6}), "has sequence 1 with -1 tokens");
  EXPECT_EQ(with({3, 3}, {0, -6}),
            "has sequence 1 in the 6 bytes from byte -6 on, but " + tokens +
                " has 20 bytes");
  EXPECT_EQ(with({3, 4}, {0, 14}),
            "has sequence 1 in the 8 bytes from byte 14 on, but " + tokens +
                " has 20 bytes");
  EXPECT_EQ(with({3, INT32_MAX}, {0, INT64_MAX - 8}),
            "has sequence 1 in the 4294967294 bytes from byte "
            "9223372036854775799 on, but " +
                tokens + " has 20 bytes");
  EXPECT_EQ(with({3, 0}, {0, 21}),
            "has sequence 1 in the 0 bytes from byte 21 on, but " + tokens +
                " has 20 bytes");
  EXPECT_EQ(with({3, 3}, {0, 5}), "has sequences that overlap: byte 5 of " +
                                      tokens + " belongs to two");
  EXPECT_EQ(with({3, 3}, {10, 8}), "has sequences that overlap: byte 10 of " +
                                       tokens + " belongs to two");
  EXPECT_EQ(with({3, 3}, {4, 4}), "has sequences that overlap: byte 4 of " +
                                      tokens + " belongs to two");
}

TEST_F(Megatron, DocumentsMustFollowEachOther) {
  auto with = [&](std::vector<int64_t> boundaries) {
    return refusal(IndexFile{{3, 3}, {0, 6}, boundaries});
  };
  EXPECT_EQ(with({}), "needs at least one document boundary, but got none");
  EXPECT_EQ(with({1, 2}), "needs document boundaries that rise from 0 to 2, "
                          "but number 0 is 1 after 0");
  EXPECT_EQ(with({0, 2, 1, 2}), "needs document boundaries that rise from 0 to "
                                "2, but number 2 is 1 after 2");
  EXPECT_EQ(with({0, 3}), "needs document boundaries that rise from 0 to 2, "
                          "but number 1 is 3 after 0");
  EXPECT_EQ(with({0, -1}), "needs document boundaries that rise from 0 to 2, "
                           "but number 1 is -1 after 0");
  EXPECT_EQ(with({0, 1}), "has 2 sequences, but its last document ends before "
                          "sequence 1");
}

TEST_F(Megatron, OnlyTextCanBeTrainedOn) {
  EXPECT_EQ(read(good.bytes() + std::string(4, '\0'), ten).values.size(), 10u);
  EXPECT_EQ(refusal(good.bytes() + std::string("\0\0\1\0", 4)),
            "has sequence 2 of mode 1, but only text, mode 0, can be trained "
            "on");
}

TEST_F(Megatron, EveryTruncationIsRefused) {
  ASSERT_EQ(read(good.bytes(), ten).error, "");
  std::string index = folder.path + "x.idx", tokens = folder.path + "x.bin";
  for (int64_t size = int64_t(ten.size()) - 1; size >= 0; --size) {
    ASSERT_EQ(truncate(tokens.c_str(), size), 0);
    EXPECT_NE(Tokens({tokens}).error, "") << size;
  }
  folder.write("x.bin", ten);
  for (int64_t size = int64_t(good.bytes().size()) - 1; size >= 0; --size) {
    ASSERT_EQ(truncate(index.c_str(), size), 0);
    EXPECT_NE(Tokens({index}).error, "") << size;
  }
}

namespace {

template <typename T>
T load(const std::string &bytes, size_t at) {
  T value;
  memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

/// The tokens of an index that was accepted; fails the test if it should not
/// have been. Knows indices of at most 16 sequences and boundaries.
Values plainlyRead(const std::string &index, const std::string &tokens) {
  Values values;
  auto type = TokenType(index[17]);
  size_t each = size_t(bytesOf(type));
  auto sequences = load<uint64_t>(index, 18),
       documents = load<uint64_t>(index, 26);
  EXPECT_LE(sequences, 16u);
  EXPECT_LE(documents, 16u);
  EXPECT_EQ(load<uint64_t>(index, 9), 1u);
  size_t needed = 34 + 12 * sequences + 8 * documents;
  EXPECT_TRUE(index.size() == needed || index.size() == needed + sequences);
  std::vector<bool> used(tokens.size(), false);
  for (uint64_t i = 0; i < sequences; ++i) {
    auto length = load<int32_t>(index, 34 + 4 * i);
    auto offset = load<int64_t>(index, 34 + 4 * sequences + 8 * i);
    EXPECT_GE(length, 0);
    for (int32_t t = 0; t < length; ++t, offset += int64_t(each)) {
      if (offset < 0 || offset + int64_t(each) > int64_t(tokens.size())) {
        ADD_FAILURE() << "sequence " << i << " is accepted at " << offset;
        return values;
      }
      int64_t value = 0;
      for (size_t b = 0; b < each; ++b) {
        EXPECT_FALSE(used[size_t(offset) + b]);
        used[size_t(offset) + b] = true;
        auto byte = static_cast<unsigned char>(tokens[size_t(offset) + b]);
        value |= int64_t(byte) << (8 * b);
      }
      values.push_back(int32_t(value));
    }
  }
  return values;
}

} // namespace

// Random damage: what is accepted must be right by the plain reading above, and
// what is not has a sentence. The fixed seed makes every run the same.
TEST_F(Megatron, DamagedIndicesDoNoHarm) {
  const int64_t telling[] = {0,  1,  2,         3,         4,         6,
                             14, 20, -1,        INT32_MAX, INT32_MIN, INT64_MAX,
                             8,  5,  INT64_MIN, 16};
  IndexFile scattered = {{2, 3, 1, 0}, {16, 2, 8, 20}, {0, 1, 4}};
  const std::string seeds[] = {good.bytes(), scattered.bytes(),
                               good.bytes() + std::string(4, '\0')};
  std::mt19937 random(20240520);
  int accepted = 0;
  const int rounds = 6000;
  for (int round = 0; round < rounds; ++round) {
    std::string index = seeds[random() % 3];
    for (int changes = 1 + int(random() % 3); changes > 0; --changes) {
      size_t at = random() % index.size();
      if (random() % 2) {
        index[at] = char(random());
        continue;
      }
      // A telling number in the place of another one.
      std::string number = bytesAs<int64_t>({telling[random() % 16]});
      size_t size = random() % 2 ? 4 : 8;
      if (at >= 34)
        at = 34 + (at - 34) / 4 * 4;
      index.replace(at, std::min(size, index.size() - at), number, 0,
                    std::min(size, index.size() - at));
    }
    if (random() % 8 == 0)
      index.resize(random() % (index.size() + 9));
    Tokens tokens = read(index, ten);
    if (tokens.error.empty()) {
      ++accepted;
      ASSERT_EQ(tokens.values, plainlyRead(index, ten)) << "round " << round;
    }
  }
  EXPECT_GT(accepted, rounds / 50);
  EXPECT_LT(accepted, rounds / 2);
}
