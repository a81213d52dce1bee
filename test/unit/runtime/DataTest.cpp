//===- DataTest.cpp - Samples and their order -----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestFiles.h"

#include "runtime/data/BatchReader.h"
#include "runtime/data/DataMark.h"

#include <algorithm>
#include <set>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

namespace {

class DataFiles : public testing::Test {
protected:
  /// Opens a file with this text.
  bool open(const std::string &text, BatchShape shape, bool shuffled,
            int64_t vocabSize = 256) {
    path = folder.write("text", text);
    DataOptions options;
    options.data.items[options.data.count++] = path.c_str();
    options.shuffled = shuffled;
    options.seed = 3;
    options.steps = steps;
    return data.open(options, {}, shape, vocabSize, error);
  }

  /// Changes a byte of the open file.
  void putByte(int64_t offset, char byte) const {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset).put(byte);
  }

  Folder folder;
  std::string path;
  int64_t steps = 1;
  TrainingData data;
  Error error;
};

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

/// The branches of the tree over the groups [first, first + count).
static void addBranches(std::set<std::set<int64_t>> &all, int64_t first,
                        int64_t count) {
  std::set<int64_t> groups;
  for (int64_t i = first; i < first + count; ++i)
    groups.insert(i);
  all.insert(groups);
  int64_t half = 1;
  while (2 * half < count)
    half *= 2;
  if (count == 1)
    return;
  addBranches(all, first, half);
  addBranches(all, first + half, count - half);
}

// Of a run of groups all shards have a branch of the tree, each one of its own,
// in order; micro-batches of a group are neighbours.
TEST(BatchShape, ShardsHaveBranchesOfTheTree) {
  const std::pair<int64_t, int64_t> cases[] = {
      {1, 6}, {2, 3}, {2, 5}, {2, 7}, {4, 3}, {4, 6}, {8, 11}, {3, 4}, {5, 1}};
  for (auto [shards, groups] : cases) {
    std::set<std::set<int64_t>> branches;
    addBranches(branches, 0, shards * groups);
    std::set<int64_t> seen;
    int64_t begin = 0;
    for (int64_t run = 64; run > 0; run /= 2) {
      if (!(groups & run))
        continue;
      std::set<int64_t> all;
      for (int64_t part = 0; part < shards; ++part) {
        BatchShape shape = {groups * 2, 1, 1, {part, shards}, groups};
        std::set<int64_t> own;
        for (int64_t i = begin; i < begin + run; ++i) {
          int64_t first = shape.globalMicroBatch(2 * i);
          EXPECT_EQ(shape.globalMicroBatch(2 * i + 1), first + 1);
          EXPECT_EQ(first % 2, 0);
          own.insert(first / 2);
        }
        EXPECT_TRUE(all.empty() || *all.rbegin() < *own.begin());
        EXPECT_TRUE(branches.count(own)) << shards << " x " << groups;
        all.insert(own.begin(), own.end());
      }
      EXPECT_TRUE(branches.count(all)) << shards << " x " << groups;
      seen.insert(all.begin(), all.end());
      begin += run;
    }
    EXPECT_EQ(int64_t(seen.size()), shards * groups);
  }
}

TEST_F(DataFiles, SequentialOrderFollowsTheFileAndWraps) {
  ASSERT_TRUE(open("abcdefghijklmnopqrstuvwxyz", {2, 2, 4}, false));
  EXPECT_EQ(data.stream().size(), 26); // 6 samples of 4.
  EXPECT_EQ(data.numSamples(), 6);
  int32_t inputs[8], targets[8];
  // Step 1 has samples 4, 5, 0, 1; micro-batch 0 has the first two.
  ASSERT_TRUE(data.fill(1, 0, inputs, targets, error));
  EXPECT_EQ(std::string(inputs, inputs + 8), "qrstuvwx");
  EXPECT_EQ(std::string(targets, targets + 8), "rstuvwxy");
  ASSERT_TRUE(data.fill(1, 1, inputs, targets, error));
  EXPECT_EQ(std::string(inputs, inputs + 8), "abcdefgh");
  EXPECT_EQ(std::string(targets, targets + 8), "bcdefghi");
}

TEST_F(DataFiles, ShuffledOrderHasEverySampleOnceAnEpoch) {
  // 12 samples, 3 steps of 4.
  ASSERT_TRUE(open(std::string(12 * 4 + 1, 'x'), {2, 2, 4}, true));
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

// Where an epoch does not end with a step, the step goes over into the next.
TEST_F(DataFiles, EpochsThatStepsDoNotDivideHaveEverySampleOnce) {
  for (int64_t count : {4, 5, 7, 13, 101}) {
    TrainingData odd;
    path = folder.write("odd", std::string(size_t(count) * 3 + 1, 'x'));
    DataOptions options;
    options.data.items[options.data.count++] = path.c_str();
    options.seed = 11;
    ASSERT_TRUE(odd.open(options, {}, {2, 2, 3}, 256, error)) << error.text;
    ASSERT_EQ(odd.numSamples(), count);
    for (int64_t epoch = 0; epoch < 4; ++epoch) {
      std::vector<bool> seen(size_t(count), false);
      for (int64_t i = epoch * count; i < (epoch + 1) * count; ++i) {
        int64_t sample = odd.sampleOf(i / 4, i % 4);
        ASSERT_TRUE(sample >= 0 && sample < count);
        ASSERT_FALSE(seen[size_t(sample)]) << sample << " twice in " << epoch;
        seen[size_t(sample)] = true;
      }
    }
  }
}

// The tokens of five files are one text, whose samples end where they end.
TEST_F(DataFiles, GoOverTheEndsOfFiles) {
  DataOptions options;
  std::string pattern = folder.path + "part-*", last = folder.path + "last";
  for (const char *part : {"part-1", "part-2", "part-3", "part-4"})
    folder.write(part, std::string(1, part[5]) + "bc");
  folder.write("last", "xyz");
  options.data.items[options.data.count++] = pattern.c_str();
  options.data.items[options.data.count++] = last.c_str();
  options.shuffled = false;
  ASSERT_TRUE(data.open(options, {}, {1, 2, 7}, 256, error)) << error.text;
  EXPECT_EQ(data.stream().numFiles(), 5);
  int32_t inputs[14], targets[14];
  ASSERT_TRUE(data.fill(0, 0, inputs, targets, error));
  EXPECT_EQ(std::string(inputs, inputs + 14), "1bc2bc3bc4bcxy");
  EXPECT_EQ(std::string(targets, targets + 14), "bc2bc3bc4bcxyz");
}

TEST_F(DataFiles, OneStepIsEnough) {
  ASSERT_TRUE(open("0123456789abcdefg", {2, 2, 4}, true)); // 2 * 2 * 4 + 1
  EXPECT_EQ(data.numSamples(), 4);
}

// Text says where it ends; of other files there is no line to name.
TEST_F(DataFiles, TooFewAreRefused) {
  EXPECT_FALSE(open("", {1, 1, 1}, true));
  EXPECT_EQ(error.text,
            "'" + path +
                "' is empty, but one step needs 2 tokens: 1 rows of 1 and one "
                "more; use more data, or compile with a smaller "
                "global_batch_size or seq_length");
  EXPECT_FALSE(error.hasPlace);
  EXPECT_FALSE(open("abc\nde", {2, 2, 4}, true));
  std::string expected =
      path + ":2:3: error: the data ends after 6 tokens, but one step needs "
             "17: 4 rows of 4 and one more;";
  EXPECT_EQ(std::string(error.text).substr(0, expected.size()), expected);

  std::string binary = folder.write("x.bin", bytesAs<uint16_t>({1, 2, 3}));
  DataOptions options;
  options.steps = 1;
  for (const char *more : {"'", "' and 1 more file", "' and 2 more files"}) {
    options.data.items[options.data.count++] = binary.c_str();
    TrainingData few;
    EXPECT_FALSE(few.open(options, {TokenType::U16}, {2, 2, 4}, 256, error));
    expected = "'" + binary + more + ": " +
               std::to_string(3 * options.data.size()) +
               " tokens, but one step needs 17";
    EXPECT_EQ(std::string(error.text).substr(0, expected.size()), expected);
    EXPECT_FALSE(error.hasPlace);
  }
}

TEST_F(DataFiles, WithoutStepsAnyAmountWillDo) {
  steps = 0;
  EXPECT_TRUE(open("", {1, 1, 1}, true)) << error.text;
  EXPECT_EQ(data.numSamples(), 0);
}

// Other tokens, another order and another number show.
TEST_F(DataFiles, AMarkTellsDataApart) {
  std::string text;
  for (int i = 0; i < 100'000; ++i)
    text += char('a' + int64_t(i) * i % 23);
  auto markOf = [&](const std::string &bytes) {
    std::string file = folder.write("marked", bytes);
    TokenStream stream;
    EXPECT_TRUE(stream.add(file.c_str(), {}, error)) << error.text;
    return reprise::runtime::markOf(stream, nullptr);
  };
  DataMark mark = markOf(text);
  EXPECT_EQ(mark.tokens, 100'000);
  EXPECT_GE(mark.crc, 0);
  EXPECT_EQ(mark.tokenizer, DataMark::kNone);
  EXPECT_EQ(markOf(text).crc, mark.crc);
  for (size_t at : {size_t(0), size_t(4095), text.size() - 1}) {
    std::string other = text;
    other[at] = 'x';
    EXPECT_NE(markOf(other).crc, mark.crc) << at;
  }
  EXPECT_NE(markOf(text.substr(50'000) + text.substr(0, 50'000)).crc, mark.crc);
  EXPECT_NE(markOf("ab").crc, markOf("ba").crc);
  EXPECT_EQ(markOf("").crc, DataMark::kUnknown);
}

// They are looked for when files are opened, wherever they are, and again in
// what is read, since files can change.
TEST_F(DataFiles, TokensOutsideTheVocabularyStopTheirBatch) {
  EXPECT_FALSE(open("ab\nde\n\nhi tail\x80", {1, 2, 4}, false, 128));
  EXPECT_EQ(error.text,
            path + ":4:8: error: byte 14 is the token 128, but the model's "
                   "vocabulary has 128 tokens, 0 to 127");
  path = folder.write("text", "ab\nde\n\nhi tail");
  TrainingData changing;
  DataOptions options;
  options.data.items[options.data.count++] = path.c_str();
  options.shuffled = false;
  ASSERT_TRUE(changing.open(options, {}, {1, 2, 4}, 128, error));
  putByte(8, '\x80');
  int32_t inputs[8], targets[8];
  EXPECT_FALSE(changing.fill(0, 0, inputs, targets, error));
  EXPECT_EQ(error.text,
            path + ":4:2: error: byte 8 is the token 128, but the model's "
                   "vocabulary has 128 tokens, 0 to 127");
}

TEST_F(DataFiles, ValidationHasTheSameBatchesEachTime) {
  path = folder.write("text", "abcdefghijklmnopqrstuvwxyz"); // 6 samples of 4.
  Paths files;
  files.items[files.count++] = path.c_str();
  ValidationData validation;
  ASSERT_TRUE(validation.open(files, {}, 2, 2, 4, 256, error)) << error.text;
  EXPECT_EQ(validation.numBatches(), 3);
  int32_t inputs[8], targets[8];
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(validation.fill(2, inputs, targets, error));
    EXPECT_EQ(std::string(inputs, inputs + 8), "qrstuvwx");
    EXPECT_EQ(std::string(targets, targets + 8), "rstuvwxy");
    ASSERT_TRUE(validation.fill(0, inputs, targets, error));
    EXPECT_EQ(std::string(inputs, inputs + 8), "abcdefgh");
  }
  ValidationData large;
  EXPECT_FALSE(large.open(files, {}, 4, 2, 4, 256, error));
  EXPECT_NE(std::string(error.text)
                .find("26 tokens, but a validation needs 33: 8 rows of 4 and "
                      "one more; use more data, or compile with a smaller "
                      "micro_batch_size or seq_length"),
            std::string::npos)
      << error.text;
}

//===----------------------------------------------------------------------===//
// BatchReader
//===----------------------------------------------------------------------===//

namespace {
/// Inputs and targets of a micro-batch of 2 x 4.
struct Batch {
  int32_t tokens[16] = {};
  bool operator==(const Batch &other) const {
    return std::equal(tokens, tokens + 16, other.tokens);
  }
};
} // namespace

TEST_F(DataFiles, ComeThroughTheReaderInWhateverOrder) {
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += char('a' + i * 7 % 26);
  ASSERT_TRUE(open(text, {2, 2, 4}, true));
  BatchReader reader;
  ASSERT_TRUE(reader.start(data, 10000, error)) << error.text;
  auto check = [&](int64_t step, int64_t micro) {
    Batch taken, filled;
    ASSERT_TRUE(
        reader.take(step, micro, taken.tokens, taken.tokens + 8, error));
    ASSERT_TRUE(
        data.fill(step, micro, filled.tokens, filled.tokens + 8, error));
    EXPECT_EQ(taken, filled) << step << " " << micro;
  };
  check(3, 1); // None is the first.
  for (int64_t step = 0; step < 200; ++step)
    for (int64_t micro = 0; micro < 2; ++micro) {
      check(step, micro);
      if (step % 5 == 0) // Another one, before the next can be ready.
        check(step, 0);
      if (step % 7 == 0)
        check(step + 1, 0); // What is expected is not needed yet.
    }
  // Another one, while the next one may be being read.
  for (int64_t step = 0; step < 3000; ++step) {
    check(step, 0);
    usleep(unsigned(step % 30));
    check(step + 2, 1);
  }
}

TEST_F(DataFiles, AreReadAheadFromFirstToLast) {
  ASSERT_TRUE(open(std::string(1000, 'x'), {3, 2, 4}, true));
  BatchReader reader;
  ASSERT_TRUE(reader.start(data, 7, error)) << error.text;
  Batch batch;
  auto take = [&](int64_t step, int64_t micro) {
    EXPECT_TRUE(
        reader.take(step, micro, batch.tokens, batch.tokens + 8, error));
    return reader.numExpected();
  };
  // All but the first.
  for (int64_t i = 0; i < 7 * 3; ++i)
    EXPECT_EQ(take(i / 3, i % 3), i);
  EXPECT_EQ(take(7, 0), 20); // The run has ended.
  EXPECT_EQ(take(5, 1), 20);
  EXPECT_EQ(take(5, 2), 21);
  EXPECT_EQ(take(6, 1), 21);
}

TEST_F(DataFiles, ThatCannotBeReadAreRefusedWhenTheyAreTaken) {
  ASSERT_TRUE(open("abcdefghxyzabcdefghi", {1, 2, 4}, false, 128));
  putByte(7, '\x80');
  BatchReader reader;
  ASSERT_TRUE(reader.start(data, 2, error));
  Batch batch;
  EXPECT_TRUE(reader.take(1, 0, batch.tokens, batch.tokens + 8, error));
  EXPECT_FALSE(reader.take(0, 0, batch.tokens, batch.tokens + 8, error));
  EXPECT_NE(std::string(error.text).find("byte 7 is the token 128"),
            std::string::npos)
      << error.text;
}

TEST_F(DataFiles, OfAFileThatWasShortenedAreRefused) {
  ASSERT_TRUE(open(std::string(9, 'x'), {1, 2, 4}, false));
  ASSERT_EQ(truncate(path.c_str(), 6), 0);
  Batch batch;
  EXPECT_FALSE(data.fill(0, 0, batch.tokens, batch.tokens + 8, error));
  EXPECT_EQ(error.text, "'" + path +
                            "' had 9 bytes at the start of the run, but now "
                            "ends before byte 6; files must not be changed "
                            "while they are read");
}
