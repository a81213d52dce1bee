//===- DataTest.cpp - Samples and their order -----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/Data.h"

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <vector>

using namespace reprise::runtime;

namespace {

class TextFile {
public:
  explicit TextFile(const std::string &text)
      : path(testing::TempDir() + "reprise-data-" + std::to_string(getpid()) +
             "-" + std::to_string(counter++) + ".txt") {
    std::ofstream(path, std::ios::binary) << text;
  }
  ~TextFile() { remove(path.c_str()); }
  const std::string path;

private:
  static int counter;
};
int TextFile::counter = 0;

std::string refusal(const std::string &path, BatchShape shape,
                    int64_t vocabSize) {
  TextData data;
  Error error;
  EXPECT_FALSE(data.open(path.c_str(), shape, vocabSize, error));
  return error.text;
}

} // namespace

TEST(Permutation, IsABijectionForEverySize) {
  for (uint64_t size : {1, 2, 3, 4, 5, 17, 64, 65, 1000, 4097})
    for (uint64_t epoch : {0, 1, 5}) {
      std::vector<bool> seen(size, false);
      for (uint64_t i = 0; i < size; ++i) {
        uint64_t image = permute(i, size, /*seed=*/7, epoch);
        ASSERT_LT(image, size);
        ASSERT_FALSE(seen[image]) << image << " twice among " << size;
        seen[image] = true;
      }
    }
}

// Of 1000 values, one stays where it is on average; ten would be a miracle.
TEST(Permutation, DependsOnSeedAndEpochAndMovesThings) {
  const std::pair<uint64_t, uint64_t> keys[] = {{1, 0}, {2, 0}, {1, 1}};
  for (auto &[seedA, epochA] : keys)
    for (auto &[seedB, epochB] : keys) {
      int equal = 0, fixed = 0;
      for (uint64_t i = 0; i < 1000; ++i) {
        uint64_t image = permute(i, 1000, seedA, epochA);
        equal += image == permute(i, 1000, seedB, epochB);
        fixed += image == i;
      }
      bool same = seedA == seedB && epochA == epochB;
      EXPECT_TRUE(same ? equal == 1000 : equal < 10);
      EXPECT_LT(fixed, 10);
    }
}

TEST(TextData, SequentialOrderFollowsTheFileAndWraps) {
  TextFile file("abcdefghijklmnopqrstuvwxyz"); // 26 tokens: 6 samples of 4.
  TextData data;
  Error error;
  ASSERT_TRUE(data.open(file.path.c_str(), {2, 2, 4}, 256, error))
      << error.text;
  data.setOrder(/*shuffled=*/false, 0);
  EXPECT_EQ(data.numTokens(), 26);
  EXPECT_EQ(data.numSamples(), 6);
  int32_t inputs[8], targets[8];
  // Step 1 has samples 4, 5, 0, 1; micro-batch 0 has the first two.
  data.fill(1, 0, inputs, targets);
  EXPECT_EQ(std::string(inputs, inputs + 8), "qrstuvwx");
  EXPECT_EQ(std::string(targets, targets + 8), "rstuvwxy");
  data.fill(1, 1, inputs, targets);
  EXPECT_EQ(std::string(inputs, inputs + 8), "abcdefgh");
  EXPECT_EQ(std::string(targets, targets + 8), "bcdefghi");
}

TEST(TextData, ShuffledOrderHasEverySampleOnceAnEpoch) {
  TextFile file(std::string(12 * 4 + 1, 'x')); // 12 samples, 3 steps of 4.
  TextData data;
  Error error;
  ASSERT_TRUE(data.open(file.path.c_str(), {2, 2, 4}, 256, error));
  data.setOrder(/*shuffled=*/true, 3);
  std::vector<std::vector<int64_t>> epochs(2);
  for (int64_t step = 0; step < 6; ++step)
    for (int64_t row = 0; row < 4; ++row)
      epochs[size_t(step / 3)].push_back(data.sampleOf(step, row));
  EXPECT_NE(epochs[0], epochs[1]);
  for (auto &samples : epochs) {
    std::sort(samples.begin(), samples.end());
    for (size_t i = 0; i < 12; ++i)
      EXPECT_EQ(samples[i], int64_t(i));
  }
}

TEST(TextData, OneStepIsEnough) {
  TextFile file("0123456789abcdefg"); // 2 * 2 * 4 + 1
  TextData data;
  Error error;
  EXPECT_TRUE(data.open(file.path.c_str(), {2, 2, 4}, 256, error));
  EXPECT_EQ(data.numSamples(), 4);
}

TEST(TextData, RefusesWhatItCannotTrainOn) {
  TextFile empty(""), shorter("0123456789abcdef"), high("abc\x80 abcabcabcabc");
  EXPECT_EQ(refusal("/no/such/file", {2, 2, 4}, 256),
            "cannot read '/no/such/file': No such file or directory");
  EXPECT_EQ(refusal("/", {2, 2, 4}, 256),
            "cannot read '/': it is not a plain file");
  EXPECT_EQ(refusal(empty.path, {1, 1, 1}, 256),
            "'" + empty.path +
                "' has 0 tokens (bytes), but one step needs 2: 1 rows of 1 and "
                "one more; use more text, or compile with a smaller "
                "global_batch_size or seq_length");
  EXPECT_NE(refusal(shorter.path, {2, 2, 4}, 256)
                .find("has 16 tokens (bytes), but one step needs 17: 4 rows of "
                      "4 and one more"),
            std::string::npos);
  EXPECT_EQ(refusal(high.path, {1, 2, 4}, 128),
            "'" + high.path +
                "' has the token 128 (a byte) at offset 3, but the model's "
                "vocabulary has 128 tokens, 0 to 127");
}
