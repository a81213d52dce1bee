//===- TensorWriterTest.cpp - Ranks that write files together -------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two or three ranks with one model, which read the same samples: axes that are
// not "dp" have no samples of their own, and nothing is summed.
//
//===----------------------------------------------------------------------===//

#include "CheckpointRun.h"
#include "Faults.h"

#include "runtime/base/Crc32c.h"
#include "runtime/checkpoint/TensorFiles.h"

using namespace reprise::runtime;
using namespace reprise::runtime::test;

namespace {
class TensorWriters : public Checkpoints {
protected:
  /// From now on.
  void shareAmong(int64_t ranks) {
    axis = {"tp", ranks, 0};
    toy.model.axes = &axis;
    toy.model.numAxes = 1;
  }
  /// `"KEY":{"least":A,"least_rank":..,"most":B,` of the report of ranks.
  static std::pair<int64_t, int64_t> leastAndMost(const Outcome &outcome,
                                                  const std::string &key) {
    size_t at = outcome.out.find("\"" + key + "\":{");
    EXPECT_NE(at, std::string::npos) << outcome.out << outcome.err;
    auto number = [&](const char *name) {
      size_t place = outcome.out.find(name, at);
      return atoll(outcome.out.c_str() + place + strlen(name));
    };
    return {number("\"least\":"), number("\"most\":")};
  }

  RepriseAxis axis = {};
};
} // namespace

TEST(Crc32c, OfBothIsThatOfAll) {
  std::vector<unsigned char> bytes(100'000);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = (unsigned char)(i * i >> 3);
  const uint32_t whole = crc32c(bytes.data(), bytes.size());
  for (size_t first : {0, 1, 7, 4096, 65536, 99'999, 100'000}) {
    const size_t rest = bytes.size() - first;
    EXPECT_EQ(crc32cOfBoth(crc32c(bytes.data(), first),
                           crc32c(bytes.data() + first, rest), int64_t(rest)),
              whole)
        << first;
  }
}

// Slices are one behind the other, and parts of ranks end with a page of a file
// or with the file: at most a page from an equal share.
TEST_F(TensorWriters, HaveEqualPartsOfWholePages) {
  constexpr int64_t kPage = 4096;
  ModelTensors tensors(toy.model);
  Error error;
  ASSERT_TRUE(tensors.find(error)) << error.text;
  for (int64_t shardBytes : {INT64_C(1'000'000), INT64_C(13'000)})
    for (const std::string &writes :
         {std::string("\1", 1), std::string("\1\1", 2),
          std::string("\1\0\1", 3), std::string("\1\1\1\1\1", 5)}) {
      TensorFiles files(tensors);
      const int ranks = int(writes.size());
      const int64_t writers = std::count(writes.begin(), writes.end(), 1);
      ASSERT_TRUE(files.find(shardBytes, error) &&
                  files.deal(writes.data(), ranks, error));
      EXPECT_EQ(files.size(), shardBytes > 20'000 ? 2 : 3);
      int tensor = 0;
      int64_t end = 0, sum = 0;
      for (const TensorSlice &slice : files.slices()) {
        EXPECT_TRUE(writes[size_t(slice.rank)]);
        if (slice.tensor != tensor) {
          EXPECT_EQ(end, tensors[tensor].elements());
          EXPECT_EQ(slice.tensor, ++tensor);
          end = 0;
        }
        EXPECT_EQ(slice.begin, end);
        end = slice.end;
      }
      EXPECT_EQ(tensor + 1, tensors.size());
      EXPECT_EQ(end, tensors[tensor].elements());
      for (int rank = 0; rank < ranks; ++rank) {
        const int64_t bytes = files.bytesOf(rank);
        sum += bytes;
        EXPECT_LE(
            std::abs(bytes - writes[size_t(rank)] * files.bytes() / writers),
            kPage);
        const Share own = files.slicesOf(rank);
        if (own.begin == own.end || sum == files.bytes())
          continue;
        const TensorSlice &last = files.slices()[size_t(own.end) - 1];
        int file = 0;
        while (last.tensor >= files[file].end())
          ++file;
        int64_t place = files[file].headerBytes + last.end * 4;
        for (int i = files[file].first; i < last.tensor; ++i)
          place += tensors[i].elements() * 4;
        EXPECT_TRUE(place % kPage == 0 ||
                    place == files[file].headerBytes + files[file].tensorBytes)
            << place;
      }
      EXPECT_EQ(sum, files.bytes());
    }
}

// Files of several writers are those of one, from a copy and from the arena,
// and every rank writes its part of them: nobody writes all.
TEST_F(TensorWriters, WriteWhatOneWrites) {
  ASSERT_EQ(save("one", 3, {"--save-interval=1"}).status, 0);
  const int64_t all = 3 * 4 * (2 * kVocab * kWidth + kVocab);
  for (int ranks : {2, 3})
    for (const char *from : {"copy", "arena"}) {
      shareAmong(ranks);
      const std::string name = from + std::to_string(ranks);
      Outcome outcome = save(
          name, 3, {"--save-interval=1", std::string("--save-from=") + from});
      ASSERT_EQ(outcome.status, 0) << outcome.err;
      for (const char *step : {"1", "2", "3"})
        EXPECT_EQ(different(std::string("one/step-0000000") + step,
                            name + "/step-0000000" + step),
                  "");
      EXPECT_EQ(list(name),
                "LATEST step-00000001 step-00000002 step-00000003 ");
      const auto [least, most] = leastAndMost(outcome, "saved_bytes");
      EXPECT_GT(least, 3 * (all / ranks - 4096)) << name;
      EXPECT_LT(most, 3 * (all / ranks + 4096)) << name;
    }
}

TEST_F(TensorWriters, GoOnWithOtherNumbers) {
  ASSERT_EQ(save("one", 6).status, 0);
  shareAmong(3);
  ASSERT_EQ(save("many", 2).status, 0);
  shareAmong(2);
  ASSERT_EQ(save("many", 4, {"--resume=auto"}).status, 0);
  toy.model.numAxes = 0;
  ASSERT_EQ(save("many", 6, {"--resume=auto"}).status, 0);
  EXPECT_EQ(different("one/step-00000006", "many/step-00000006"), "");
}

// The end of the moments is that of the last rank: it says what it could not
// write, and the run goes on and tries again.
TEST_F(TensorWriters, WhoFindsNoRoomIsNamed) {
  shareAmong(3);
  ASSERT_EQ(save("a", 1).status, 0);
  // The moments have 50 kB.
  std::string text = expectTriedAgain("a", 45'000, "rank 2 (tp 2): ");
  EXPECT_NE(text.find("cannot save step 9 in 'a/step-00000009': rank 2 (tp 2): "
                      "File too large. The last checkpoint is "
                      "'a/step-00000001'"),
            text.npos)
      << text;
  EXPECT_EQ(save("a", 3, {"--resume=auto"}).status, 0);
}

// Rank 0 alone has curves. What it has no room for ends the run, and all write
// their parts of the step that is done.
TEST_F(TensorWriters, AFullDiskUnderCurvesSavesTheStepThatIsDone) {
  shareAmong(3);
  const std::string curves = folder.path + "curves";
  for (std::vector<std::string> into :
       {std::vector<std::string>{"--tensorboard", curves},
        {"--csv", path("t.csv")}}) {
    const std::string name = into.front().substr(2);
    into.push_back("--log-interval=9000");
    // The moments have 50 kB.
    Outcome outcome = saveInto(90'000, name, 9000, into);
    std::string text = refusal(outcome);
    EXPECT_EQ(text.find("rank 0 (tp 0) in step "), 0u) << text;
    EXPECT_NE(text.find(": cannot write '"), text.npos) << text;
    const std::string said =
        "': File too large. The last checkpoint is '" + name + "/step-";
    size_t at = text.find(said);
    ASSERT_NE(at, text.npos) << text;
    const int steps = atoi(text.c_str() + at + said.size());
    EXPECT_GT(steps, 50);
    const std::string step = "/" + text.substr(at + said.size() - 5, 13);
    EXPECT_EQ(list(name), "LATEST " + step.substr(1) + " ");
    // It is what a run has that ends there.
    ASSERT_EQ(save(name + ".whole", steps).status, 0);
    EXPECT_EQ(different(name + step, name + ".whole" + step), "");
  }
}

/// In the third step, which the correction tells, a number that is none.
static void spoil(void *const *b, const int64_t *, int64_t, int64_t) {
  if (*f32(b, 0) > 0.25f)
    *f32(b, 1) = NAN;
}

// All come to the same error, and write what the step before has left; in the
// second run it is a parameter, of the last rank's part, that is no number.
TEST_F(TensorWriters, SaveTheStepBeforeANumberThatIsNone) {
  shareAmong(2);
  ASSERT_EQ(save("good", 2).status, 0);
  toy.addLaunch(toy.micro, "spoil", spoil, 1,
                {toy.model.biasCorrection1, toy.model.loss});
  toy.finish();
  for (const char *from : {"copy", "arena"}) {
    Outcome outcome = save(from, 9, {std::string("--save-from=") + from});
    EXPECT_NE(
        refusal(outcome).find(
            "; parameters are as step 2 left them. A lower learning rate"),
        std::string::npos)
        << outcome.err;
    EXPECT_EQ(
        different("good/step-00000002", std::string(from) + "/step-00000002"),
        "");
  }
}

// A file of tensors that is not what ranks have written gets no name.
TEST_F(TensorWriters, WhatIsCutOffMeanwhileGetsNoName) {
  beforeCall = [](const std::string &call, const std::string &path) {
    const std::string last = "step-00000001.tmp/config.json";
    if (call == "fsync" && path.size() > last.size() &&
        path.substr(path.size() - last.size()) == last) {
      const std::string folder = path.substr(0, path.rfind('/'));
      EXPECT_EQ(truncate((folder + "/optimizer.safetensors").c_str(), 100), 0);
    }
  };
  shareAmong(2);
  Outcome outcome = save("a", 2, {"--save-interval=1"});
  beforeCall = nullptr;
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("cannot save step 1 in '" +
                             path("a/step-00000001") +
                             "': 'optimizer.safetensors' has 100 bytes instead "
                             "of 5"),
            outcome.out.npos)
      << outcome.out;
  EXPECT_EQ(list("a"), "LATEST step-00000002 ");
}

//===----------------------------------------------------------------------===//
// Errors of one rank, while ranks write
//===----------------------------------------------------------------------===//

/// The file of tokens, and which becomes none while the first step runs, since
/// starts look through the first ones; -1: none does.
static const char *tokenFile = nullptr;
static int64_t badToken = -1;

/// Part of a step.
static void spoilToken(void *const *, const int64_t *, int64_t, int64_t) {
  usleep(150'000);
  if (badToken < 0)
    return;
  std::fstream file(tokenFile, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(badToken);
  file.put(char(200));
}

namespace {
/// Two ranks with samples of their own, of which one rank alone comes to a
/// number that is no token in its fourth step. All else is the same token, so
/// that rank 0 has the states of a rank that is alone. What is written without
/// delay is written while a step runs.
class OneRankFails : public TensorWriters {
protected:
  static constexpr int64_t kSamples = 2 * kMicroBatches * kRows; ///< Of a step.

  void SetUp() override {
    TensorWriters::SetUp();
    toy.model.configJson = "{}\n";
    toy.addLaunch(toy.update, "spoil", spoilToken, 1,
                  {toy.model.biasCorrection1});
    toy.finish();
    tokenFile = tokens.c_str();
    axis = {"dp", 2, 0};
    toy.model.axes = &axis;
    toy.model.numAxes = 1;
    toy.model.numMicroBatches = 2 * kMicroBatches;
  }
  void TearDown() override {
    beforeCall = nullptr;
    TensorWriters::TearDown();
  }

  Outcome train(std::vector<std::string> args) {
    std::ofstream(tokenFile, std::ios::binary) << std::string(13'800, 'a');
    args.insert(args.end(),
                {"--data", tokenFile, "--dtype=u8", "--data-order=sequential",
                 "--peak-flops=1e9", "--threads=1"});
    return Training::run(args, toy.model);
  }

  Outcome failIn(int rank, const std::string &interval,
                 void (*delay)(const std::string &, const std::string &)) {
    badToken = (3 * kSamples + rank * kSamples / 2) * kLength + 5;
    beforeCall = delay;
    Outcome outcome = train(
        {"--steps=9", "--save", path("a"), "--save-interval=" + interval});
    beforeCall = nullptr;
    badToken = -1;
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    EXPECT_NE(outcome.err.find("token"), outcome.err.npos) << outcome.err;
    return outcome;
  }

  /// A run goes on from it, which refuses what is damaged.
  void expectWhole(const std::string &checkpoint) {
    Outcome outcome = train({"--resume=" + path(checkpoint),
                             std::string("--steps=") + checkpoint.back()});
    EXPECT_EQ(outcome.status, 0) << checkpoint << ": " << outcome.err;
  }

  /// Rank 0 has saved what one rank has after three steps.
  void expectSavedAlone() {
    expectWhole("a/step-00000003");
    toy.model.numAxes = 0;
    toy.model.numMicroBatches = kMicroBatches;
    ASSERT_EQ(train({"--steps=3", "--save", path("one")}).status, 0);
    for (const char *file : {"model.safetensors", "optimizer.safetensors"})
      EXPECT_TRUE(readFile(path(std::string("a/step-00000003/") + file)) ==
                  readFile(path(std::string("one/step-00000003/") + file)))
          << file;
  }

  static bool endsWith(const std::string &text, const std::string &end) {
    return text.size() >= end.size() &&
           !text.compare(text.size() - end.size(), end.size(), end);
  }

  const std::string tokens = path("tokens.bin");
};
} // namespace

// All have written step 2, and rank 0 is about to give it its name, when it
// comes to an error: it does so, and then saves step 3 alone.
TEST_F(OneRankFails, FirstGivesANameAndSavesAlone) {
  Outcome outcome =
      failIn(0, "2", [](const std::string &call, const std::string &path) {
        if (call == "fsync" && endsWith(path, "step-00000002.tmp/config.json"))
          usleep(1'000'000);
      });
  EXPECT_NE(outcome.err.find("step-00000003'"), outcome.err.npos)
      << outcome.err;
  EXPECT_EQ(list("a"), "LATEST step-00000002 step-00000003 ");
  expectWhole("a/step-00000002");
  expectSavedAlone();
}

// The same while rank 1 still writes step 3: what it makes then is in nobody's
// way.
TEST_F(OneRankFails, FirstSavesAloneWhatOthersAreWriting) {
  Outcome outcome =
      failIn(0, "3", [](const std::string &call, const std::string &path) {
        static bool isFirst = false; // Others make no folders.
        if (call == "mkdir" && endsWith(path, "step-00000003.tmp"))
          isFirst = true;
        if (call == "open" && !isFirst &&
            endsWith(path, "step-00000003.tmp/optimizer.safetensors"))
          usleep(700'000);
        if (call == "rmdir")
          usleep(1'400'000);
      });
  EXPECT_NE(outcome.err.find("step-00000003'"), outcome.err.npos)
      << outcome.err;
  EXPECT_EQ(list("a"), "LATEST step-00000003 ");
  expectSavedAlone();
}

// What rank 1 is still writing when it comes to an error is lost, and nobody
// waits for it: the run ends before the disk would have it.
static const char *syncedMark = nullptr;
TEST_F(OneRankFails, NobodyWaitsForWhatIsLost) {
  const std::string mark = path("synced");
  syncedMark = mark.c_str();
  Outcome outcome =
      failIn(1, "3", [](const std::string &call, const std::string &path) {
        static bool isFirst = false;
        if (call == "mkdir" && endsWith(path, "step-00000003.tmp"))
          isFirst = true;
        if (call == "fsync" && !isFirst &&
            endsWith(path, "step-00000003.tmp/optimizer.safetensors")) {
          sleep(15);
          std::ofstream(syncedMark) << "1\n";
        }
      });
  EXPECT_NE(outcome.err.find("rank 1 (dp 1) in step 4"), outcome.err.npos)
      << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(mark));
}
