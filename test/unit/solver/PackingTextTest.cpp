//===- PackingTextTest.cpp - Tests of the text form -----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/Packing.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

using namespace reprise::solver;

/// Reads `text` and returns "line:column: message", or "" when it is fine.
static std::string read(const std::string &text, PackingProblem &problem,
                        std::optional<PackingSolution> &solution) {
  std::istringstream in(text);
  auto error = readPacking(in, problem, solution);
  if (!error)
    return "";
  return std::to_string(error->line) + ":" + std::to_string(error->column) +
         ": " + error->message;
}

static std::string errorOf(const std::string &text) {
  PackingProblem problem;
  std::optional<PackingSolution> solution;
  return read(text, problem, solution);
}

TEST(PackingText, ReadsProblems) {
  PackingProblem problem;
  std::optional<PackingSolution> solution;
  // Other order of columns, blanks, Windows line ends, no final line end.
  EXPECT_EQ(read("size,id,lower,upper\r\n\r\n 8 , b1,-3, 4\r\n9,b2,0,7",
                 problem, solution),
            "");
  ASSERT_EQ(problem.items.size(), 2u);
  EXPECT_EQ(problem.items[0].name, "b1");
  EXPECT_EQ(problem.items[0].lower, -3);
  EXPECT_EQ(problem.items[0].upper, 4);
  EXPECT_EQ(problem.items[0].size, 8);
  EXPECT_EQ(problem.items[1].name, "b2");
  EXPECT_FALSE(solution);
  EXPECT_EQ(errorOf("id,lower,upper,size\n"), "");
}

TEST(PackingText, RoundTripsWithOffsets) {
  PackingProblem problem{{{"a", 0, 4, 10}, {"b", 2, 6, 4}}, 8};
  PackingSolution solution{{8, 0}, 24};
  std::ostringstream out;
  writePacking(out, problem, &solution);
  EXPECT_EQ(out.str(), "id,lower,upper,size,offset\na,0,4,10,8\nb,2,6,4,0\n");

  PackingProblem again;
  again.alignment = 8;
  std::optional<PackingSolution> offsets;
  EXPECT_EQ(read(out.str(), again, offsets), "");
  ASSERT_TRUE(offsets);
  EXPECT_EQ(offsets->offsets, solution.offsets);
  EXPECT_EQ(offsets->peak, 24);
}

TEST(PackingText, RefusesWithAPlace) {
  EXPECT_EQ(errorOf(""),
            "1:1: needs a header 'id,lower,upper,size', but the text is empty");
  EXPECT_EQ(errorOf("id,lower,upper\n"),
            "1:1: the header lacks the column 'size'");
  EXPECT_EQ(errorOf("id,lower,upper,sise\n"),
            "1:16: unknown column 'sise'; the columns are id, lower, upper, "
            "size and offset");
  EXPECT_EQ(errorOf("id,lower,id,size\n"), "1:10: column 'id' is there twice");
  EXPECT_EQ(errorOf("id,lower,upper,size\na,0,4\n"),
            "2:1: needs 4 fields as the header, but got 3");
  EXPECT_EQ(errorOf("id,lower,upper,size\n\na,0, 4x,8\n"),
            "3:6: column 'upper' needs a whole number between "
            "-2305843009213693952 and 2305843009213693952, but got '4x'");
  EXPECT_EQ(errorOf("id,lower,upper,size\na,0,4,-8\n"),
            "2:7: column 'size' needs a whole number between 0 and "
            "4611686018427387904, but got '-8'");
  EXPECT_EQ(errorOf("id,lower,upper,size\na,0,4,99999999999999999999\n"),
            "2:7: column 'size' needs a whole number between 0 and "
            "4611686018427387904, but got '99999999999999999999'");
  EXPECT_EQ(errorOf("id,lower,upper,size\na,7,4,8\n"),
            "2:5: needs an upper end of at least the lower 7, but got 4");
  EXPECT_EQ(errorOf("id,lower,upper,size,offset\na,0,4,8,\n"),
            "2:9: column 'offset' needs a whole number between 0 and "
            "4611686018427387904, but got ''");
}

/// Broken bytes give an error or a problem, never a crash.
TEST(PackingText, SurvivesBrokenInput) {
  const std::string good =
      "id,lower,upper,size,offset\na,0,4,8,0\nb,1,9,16,8\n";
  const std::string bytes = "0123456789,,,\n\n\r -+xoffsetid\0\xff";
  std::mt19937 random(1);
  for (int k = 0; k != 20000; ++k) {
    std::string text = good;
    for (int n = 1 + random() % 4; n != 0; --n)
      switch (size_t at = random() % text.size(); random() % 3) {
      case 0:
        text[at] = bytes[random() % bytes.size()];
        break;
      case 1:
        text.insert(at, 1, bytes[random() % bytes.size()]);
        break;
      default:
        text.resize(at + 1);
      }
    PackingProblem problem;
    std::optional<PackingSolution> solution;
    if (read(text, problem, solution).empty() && !check(problem)) {
      if (solution)
        (void)verify(problem, *solution);
      (void)pack(problem);
    }
  }
}
