//===- FormatTest.cpp - Numbers as people read them -----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Support/Format.h"
#include <gtest/gtest.h>
#include <limits>

using namespace reprise;

TEST(FormatSeconds, EachUnitHasItsDigits) {
  EXPECT_EQ(formatSeconds(0), "0 s");
  EXPECT_EQ(formatSeconds(2.5e-9), "2.5 ns");
  EXPECT_EQ(formatSeconds(115.25e-6), "115.2 us");
  EXPECT_EQ(formatSeconds(271.26e-3), "271.26 ms");
  EXPECT_EQ(formatSeconds(18.338), "18.338 s");
  EXPECT_EQ(formatSeconds(452.775), "7.55 min");
  EXPECT_EQ(formatSeconds(9000), "2.50 h");
  EXPECT_EQ(formatSeconds(94533.596), "1.1 days");
  EXPECT_EQ(formatSeconds(396626.126), "4.6 days");
}

// There is never "1000.00 ms" or "60.00 min".
TEST(FormatSeconds, RoundsUpToTheNextUnit) {
  EXPECT_EQ(formatSeconds(999.94e-6), "999.9 us");
  EXPECT_EQ(formatSeconds(999.96e-6), "1.00 ms");
  EXPECT_EQ(formatSeconds(0.999996), "1.000 s");
  EXPECT_EQ(formatSeconds(59.9996), "1.00 min");
  EXPECT_EQ(formatSeconds(3596), "59.93 min");
  EXPECT_EQ(formatSeconds(3599.8), "1.00 h");
  EXPECT_EQ(formatSeconds(86399), "1.0 days");
}

TEST(FormatSeconds, TakesWhatNoStepTakes) {
  EXPECT_EQ(formatSeconds(-1.5), "-1.500 s");
  EXPECT_EQ(formatSeconds(1e-15), "0.0 ns");
  EXPECT_EQ(formatSeconds(1e300), "1.2e+295 days");
  EXPECT_EQ(formatSeconds(std::numeric_limits<double>::infinity()), "inf s");
}

TEST(FormatSeconds, PriceOfMemory) {
  EXPECT_EQ(formatSecondsPerGiB(18.338 / (1 << 30)), "18.338 s per GiB");
  EXPECT_EQ(formatSecondsPerGiB(0), "0 s per GiB");
}

using Lines = std::vector<std::string>;

TEST(BreakText, FillsLines) {
  EXPECT_EQ(breakText("", 10), Lines{});
  EXPECT_EQ(breakText("one two", 10), Lines{"one two"});
  EXPECT_EQ(breakText("one two three", 10), (Lines{"one two", "three"}));
  EXPECT_EQ(breakText("one two three", 13), Lines{"one two three"});
}

// A number stays with its unit, and what is too long has a line of its own.
TEST(BreakText, KeepsNumbersAndLongWords) {
  EXPECT_EQ(breakText("takes 18.338 s", 8), (Lines{"takes", "18.338 s"}));
  EXPECT_EQ(breakText("a incomprehensible b", 6),
            (Lines{"a", "incomprehensible", "b"}));
}
