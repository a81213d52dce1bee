//===- UnicodeTest.cpp - Characters, and their normal form ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Unicode.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

using namespace reprise::runtime;

namespace {

using Characters = std::vector<uint32_t>;

const unsigned char *bytesOf(const std::string &text) {
  return reinterpret_cast<const unsigned char *>(text.data());
}

class Unicode : public testing::Test {
protected:
  void SetUp() override { ASSERT_TRUE(table.build(error)) << error.text; }

  std::string normal(const std::string &text) {
    List<unsigned char> result;
    EXPECT_TRUE(table.normalize(bytesOf(text), int64_t(text.size()), result));
    return std::string(result.begin(), result.end());
  }
  bool isStable(const std::string &text) {
    return table.isStable(bytesOf(text), int64_t(text.size()));
  }

  CharTable table;
  Error error;
};

} // namespace

TEST_F(Unicode, ClassesAreThoseOfTheDatabase) {
  for (uint32_t letter :
       Characters{'a', 'Z', 0xAA, 0xDF, 0x17F, 0x3B1, 0x5D0, 0x4E00, 0x9FFF,
                  0xAC00, 0xD7A3, 0x1D400, 0x2A6DF})
    EXPECT_EQ(table.classOf(letter) & ~kUnstable, kLetter) << letter;
  // Decimal digits, superscripts, fractions, Roman numerals, circled numbers.
  for (uint32_t number :
       Characters{'0', '9', 0xB2, 0xBC, 0x663, 0x2167, 0x32BF, 0x1D7FF})
    EXPECT_EQ(table.classOf(number), kNumber) << number;
  for (uint32_t space :
       Characters{' ', '\t', '\v', '\f', 0x85, 0xA0, 0x1680, 0x2000, 0x200A,
                  0x2028, 0x2029, 0x202F, 0x205F, 0x3000})
    EXPECT_EQ(table.classOf(space) & ~kUnstable, kSpace) << space;
  EXPECT_EQ(table.classOf('\n'), kSpace | kNewline);
  EXPECT_EQ(table.classOf('\r'), kSpace | kNewline);
  // Punctuation, symbols, marks, controls, joiners, a byte order mark, private
  // and unassigned characters.
  for (uint32_t other :
       Characters{'_', '\'', 0x301, 0x200B, 0x200D, 0x1C, 0xFEFF, 0xFE0F,
                  0x1F600, 0xE000, 0x378, 0x10FFFF})
    EXPECT_EQ(table.classOf(other) & ~kUnstable, 0) << other;
}

TEST(Utf8, WhatIsNoneIsFound) {
  auto firstInvalid = [](const std::string &text) {
    return findInvalidUtf8(bytesOf(text), int64_t(text.size()));
  };
  for (const char *good :
       {"", "abc", "12345678", "a\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80",
        "\xED\x9F\xBF\xEE\x80\x80", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"})
    EXPECT_EQ(firstInvalid(good), int64_t(strlen(good))) << good;
  // Overlong forms, surrogates, beyond U+10FFFF, strays, ends in the middle.
  for (const char *bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF",
        "\xC3", "\xE2\x82", "\xF0\x9F\x98", "\xE2\x28\xA1", "\xC3\xC3\xA9"}) {
    EXPECT_EQ(firstInvalid(bad), 0) << bad;
    EXPECT_EQ(firstInvalid("0123456789" + std::string(bad)), 10) << bad;
  }
}

TEST(Utf8, EncodingIsTheReverseOfDecoding) {
  for (uint32_t c :
       {0x0u, 0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    unsigned char bytes[4];
    int length = encodeUtf8(c, bytes), decoded;
    EXPECT_EQ(findInvalidUtf8(bytes, length), length);
    EXPECT_EQ(decodeUtf8(bytes, decoded), c);
    EXPECT_EQ(decoded, length);
  }
}

TEST_F(Unicode, NormalFormComposes) {
  EXPECT_EQ(normal(u8"e\u0301"), u8"\u00E9");
  EXPECT_EQ(normal(u8"xe\u0301ya\u0300"), u8"x\u00E9y\u00E0");
  // A precomposed character and one more mark.
  EXPECT_EQ(normal(u8"\u00EA\u0301"), u8"\u1EBF");
  EXPECT_EQ(normal(u8"q\u0301"), u8"q\u0301"); // There is no such letter.
  EXPECT_EQ(normal(u8"\u0301"), u8"\u0301");   // Nothing to combine with.
  EXPECT_EQ(normal(""), "");
}

TEST_F(Unicode, NormalFormOrdersMarksByClass) {
  // Dot below (220) goes before dot above (230); among equals order stays.
  EXPECT_EQ(normal(u8"q\u0307\u0323"), u8"q\u0323\u0307");
  EXPECT_EQ(normal(u8"q\u0307\u0301"), u8"q\u0307\u0301");
  EXPECT_EQ(normal(u8"s\u0307\u0323"), u8"\u1E69");
  // A mark of the same class in between blocks, one of a lower class does not.
  EXPECT_EQ(normal(u8"a\u0310\u0301"), u8"a\u0310\u0301");
  EXPECT_EQ(normal(u8"a\u0315\u0300\u05AE\u0062"),
            u8"\u00E0\u05AE\u0315\u0062");
}

TEST_F(Unicode, NormalFormReplacesWhatIsExcluded) {
  EXPECT_EQ(normal(u8"\u212B"), u8"\u00C5");       // Angstrom sign.
  EXPECT_EQ(normal(u8"\u0958"), u8"\u0915\u093C"); // Devanagari qa.
  EXPECT_EQ(normal(u8"\u0344"), u8"\u0308\u0301"); // No starter.
  EXPECT_EQ(normal(u8"\uF900"), u8"\u8C48");       // A compatibility form.
  EXPECT_EQ(normal(u8"\u00B2\uFB01"), u8"\u00B2\uFB01"); // Not canonical.
}

TEST_F(Unicode, HangulComposesByArithmetic) {
  EXPECT_EQ(normal(u8"\u1112\u1161\u11AB"), u8"\uD55C");
  EXPECT_EQ(normal(u8"\uD558\u11AB"), u8"\uD55C");
  EXPECT_EQ(normal(u8"\u1112\u1161\u11A7"), u8"\uD558\u11A7"); // No consonant.
  EXPECT_EQ(normal(u8"\uD55C\u11AB"), u8"\uD55C\u11AB"); // It has one already.
}

TEST_F(Unicode, StableTextIsInNormalForm) {
  EXPECT_TRUE(isStable(u8"plain, \u00E9, \uD55C, \U0001F600"));
  EXPECT_FALSE(isStable(u8"e\u0301"));
  EXPECT_FALSE(isStable(u8"\u212B"));
  EXPECT_FALSE(isStable(u8"\u1112\u1161"));
}

// Quadratic work would take minutes.
TEST_F(Unicode, LongRunsOfMarksTakeNoTime) {
  std::string text = "a";
  for (int i = 0; i < 200000; ++i)
    text += i % 2 ? u8"\u0323" : u8"\u0307";
  std::string result = normal(text);
  std::string start = u8"\u1EA1\u0323"; // a with dot below, then the others.
  EXPECT_EQ(result.substr(0, start.size()), start);
  EXPECT_EQ(normal(result), result);
}
