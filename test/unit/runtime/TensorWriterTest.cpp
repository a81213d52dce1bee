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

#include "runtime/base/Crc32c.h"
#include "runtime/checkpoint/TensorFiles.h"

#include <sys/resource.h>

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
    for (const std::string writes :
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
  rlimit old = {}, small = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  small = {45'000, old.rlim_max}; // The moments have 50 kB.
  signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Outcome outcome = save("a", 9, {"--resume=auto", "--save-interval=3"});
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, SIG_DFL);
  for (auto [step, then] :
       {std::pair<std::string, std::string>(
            "3", "training goes on, and step 6 is saved next"),
        {"6", "training goes on, and step 9 is saved next"},
        {"9", "it is tried once more"}})
    EXPECT_NE(
        outcome.out.find("{\"event\":\"note\",\"note\":\"cannot save step " +
                         step + " in '" + path("a/step-0000000" + step) +
                         "': rank 2 (tp 2): File too large; " + then + "\"}"),
        outcome.out.npos)
        << outcome.out;
  EXPECT_NE(refusal(outcome).find(
                "cannot save step 9 in 'a/step-00000009': rank 2 (tp 2): File "
                "too large. The last checkpoint is 'a/step-00000001'"),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(list("a"), "LATEST step-00000001 ");
  EXPECT_EQ(save("a", 3, {"--resume=auto"}).status, 0);
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

// The others go on with the next step when data of rank 0 are gone: it has all,
// and saves alone.
static const char *cutFile = nullptr;
TEST_F(TensorWriters, OneSavesAloneWhereOthersAreElsewhere) {
  toy.addLaunch(toy.update, "cut",
                [](void *const *b, const int64_t *, int64_t, int64_t) {
                  if (*f32(b, 0) > 0.25f) // The correction of the third step.
                    EXPECT_EQ(truncate(cutFile, 1000), 0);
                },
                1, {toy.model.biasCorrection1});
  toy.finish();
  shareAmong(2);
  const std::string whole = readFile(data);
  cutFile = data.c_str();
  Outcome outcome = save(
      "a", 90, {"--data-order=sequential", "--threads=1", "--log-interval=1"});
  EXPECT_EQ(outcome.status, 1);
  const std::string last = "The last checkpoint is '" + path("a/step-");
  const size_t said = outcome.err.find(last);
  if (said == outcome.err.npos) { // Another rank came to it first.
    EXPECT_NE(outcome.err.find("files must not be changed"), outcome.err.npos)
        << outcome.err;
    return;
  }
  const std::string step = outcome.err.substr(said + last.size(), 8);
  std::ofstream(data, std::ios::binary) << whole;
  ToyModel other;
  toy.update = other.update;
  toy.finish();
  toy.model.numAxes = 0;
  ASSERT_EQ(save("b", atoi(step.c_str()), {"--data-order=sequential"}).status,
            0);
  EXPECT_EQ(different("a/step-" + step, "b/step-" + step), "");
}
