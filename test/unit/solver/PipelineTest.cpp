//===- PipelineTest.cpp - Tests of the simulated pipeline -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/Pipeline.h"
#include "reprise/Solver/StageMoments.h"

#include <algorithm>
#include <gtest/gtest.h>

#include <random>

using namespace reprise::solver;

/// "F0@0 B0@4": the tasks of a stage with their beginnings; with virtual stages
/// "F0.1@3" is micro-batch 0 on virtual stage 1.
static std::string draw(const std::vector<PipelineTask> &stage,
                        bool isInterleaved) {
  std::string text;
  for (const PipelineTask &task : stage) {
    text +=
        (text.empty() ? "" : " ") + std::string(task.isBackward ? "B" : "F");
    text += std::to_string(task.microBatch);
    if (isInterleaved)
      text += "." + std::to_string(task.virtualStage);
    text += "@" + std::to_string(task.begin);
  }
  return text;
}

/// Micro-batches in flight at the peak of each stage, where all chunks weigh
/// the same.
static std::vector<std::vector<int64_t>> getInFlight(PipelineShape shape) {
  EXPECT_EQ(check(shape).value_or(""), "");
  std::vector<std::vector<int64_t>> counts;
  for (const auto &stage : simulate(shape))
    counts.push_back(
        getPeak(stage, std::vector<int64_t>(shape.virtualStages, 1))
            .microBatches);
  return counts;
}

using Counts = std::vector<std::vector<int64_t>>;

// A forward task takes 1, a backward task 2. Drawn by hand.
//
//   stage 0  F0 F1 .  .  B0 B0 F2 B1 B1 .  B2 B2
//   stage 1  .  F0 B0 B0 F1 B1 B1 F2 B2 B2
TEST(PipelineTest, TwoStages) {
  PipelineSchedule schedule = simulate({2, 1, 3});
  ASSERT_EQ(schedule.size(), 2u);
  EXPECT_EQ(draw(schedule[0], false), "F0@0 F1@1 B0@4 F2@6 B1@7 B2@10");
  EXPECT_EQ(draw(schedule[1], false), "F0@1 B0@2 F1@4 B1@5 F2@7 B2@8");
}

//   stage 0  F0.0 F1.0 F0.1 F1.1 .    .  .  B0.1 ...
//   stage 1  .    F0.0 F1.0 F0.1 B0.1 B0.1 F1.1 ...
TEST(PipelineTest, TwoVirtualStages) {
  PipelineSchedule schedule = simulate({2, 2, 2});
  ASSERT_EQ(schedule.size(), 2u);
  EXPECT_EQ(draw(schedule[0], true), "F0.0@0 F1.0@1 F0.1@2 F1.1@3 B0.1@6 "
                                     "B1.1@9 B0.0@11 B1.0@13");
  EXPECT_EQ(draw(schedule[1], true), "F0.0@1 F1.0@2 F0.1@3 B0.1@4 F1.1@6 "
                                     "B1.1@7 B0.0@9 B1.0@11");
}

//   stage 0  F0 F1 .  .  .  .  .  B0 B0 F2 .  .  .  .  B1 B1 .  .  .  .  B2 B2
//   stage 1  .  F0 F0 B0 B0 B0 B0 F1 F1 B1 B1 B1 B1 F2 F2 B2 B2 B2 B2
TEST(PipelineTest, SpanOfUnequalStages) {
  PipelineShape shape = {2, 1, 3};
  PipelineSchedule schedule = simulate(shape);
  EXPECT_EQ(getSpan(shape, schedule, {{1, 2}, {1, 2}}), 12);
  EXPECT_EQ(getSpan(shape, schedule, {{1, 2}, {2, 4}}), 21);
  EXPECT_EQ(getSpan(shape, schedule, {{1, 2.5}, {2, 4}}), 21.5);
  // The second stage waits for what the first does ahead: half a second more
  // is for nothing.
  EXPECT_EQ(getSpan(shape, schedule, {{8, 4}, {1, 2}}), 36);
  EXPECT_EQ(getSpan(shape, schedule, {{8, 4}, {1, 2.5}}), 36);
}

// Each chunk has most in flight at its own time.
TEST(PipelineTest, MostInFlight) {
  for (PipelineShape shape :
       {PipelineShape{4, 1, 8}, PipelineShape{2, 2, 6}, PipelineShape{3, 3, 9}})
    for (const std::vector<PipelineTask> &stage : simulate(shape)) {
      std::vector<int64_t> most = getMostInFlight(stage, shape.virtualStages);
      for (int64_t v = 0; v < shape.virtualStages; ++v) {
        std::vector<int64_t> weights(shape.virtualStages, 0);
        weights[v] = 1;
        EXPECT_EQ(most[v], getPeak(stage, weights).bytes);
      }
    }
}

// One stage runs forward and backward in turn. Of p stages, stage s holds p - s
// micro-batches, unless there are fewer.
TEST(PipelineTest, InFlight) {
  EXPECT_EQ(getInFlight({1, 1, 8}), (Counts{{1}}));
  EXPECT_EQ(getInFlight({2, 1, 1}), (Counts{{1}, {1}}));
  EXPECT_EQ(getInFlight({4, 1, 8}), (Counts{{4}, {3}, {2}, {1}}));
  EXPECT_EQ(getInFlight({4, 1, 2}), (Counts{{2}, {2}, {2}, {1}}));
}

// A schedule goes by its name. Of p stages, all hold all m micro-batches with
// GPipe; with ZB-H1 stage s holds p - s to their backward task, and p to the
// end of their task of weights.
TEST(PipelineTest, InFlightOfOtherSchedules) {
  auto most = [](PipelineShape shape, auto count) {
    std::vector<int64_t> found;
    for (const std::vector<PipelineTask> &stage : simulate(shape))
      found.push_back(count(stage, 1).front());
    return found;
  };
  using Found = std::vector<int64_t>;
  PipelineShape shape = {4, 1, 8, 0, "gpipe"};
  EXPECT_EQ(most(shape, getMostInFlight), (Found{8, 8, 8, 8}));
  EXPECT_EQ(most(shape, getMostWhole), (Found{8, 8, 8, 8}));
  shape.schedule = "zb-h1";
  EXPECT_EQ(most(shape, getMostInFlight), (Found{4, 4, 4, 4}));
  EXPECT_EQ(most(shape, getMostWhole), (Found{4, 3, 2, 1}));
  shape.schedule = "1f1b";
  EXPECT_EQ(most(shape, getMostInFlight), (Found{4, 3, 2, 1}));
  EXPECT_EQ(getInFlight({4, 1, 8, 0, "zb-h1"}), (Counts{{4}, {4}, {4}, {4}}));
}

// A forward task, a backward task and one of weights take 1 each: of three
// stages the bubble of 1F1B is 2 (1 + 2), that of ZB-H1 2 (1 + 1 - 1).
TEST(PipelineTest, SpanOfSplitTasks) {
  PipelineShape shape = {3, 1, 6, 0, "1f1b"};
  EXPECT_EQ(getSpan(shape, simulate(shape), {{1, 2}, {1, 2}, {1, 2}}), 24);
  shape.schedule = "zb-h1";
  PipelineSchedule schedule = simulate(shape);
  std::vector<ChunkTimes> times(3, {1, 1, 1});
  EXPECT_EQ(getSpan(shape, schedule, times), 20);
  PathCounts counts =
      countTasks(shape, schedule, findLongestPath(shape, schedule, times));
  double length = 0;
  for (int64_t c = 0; c < 3; ++c) {
    length += counts.forward[c] + counts.backward[c] + counts.weight[c];
    EXPECT_EQ(counts.whole[c], std::min(counts.backward[c], counts.weight[c]));
  }
  EXPECT_EQ(length, 20);
}

// Of the drawing above: stage 0 has begun all before the first backward task;
// stage 1 never holds more than one micro-batch of its last chunk.
TEST(PipelineTest, InFlightOfVirtualStages) {
  EXPECT_EQ(getInFlight({2, 2, 2}), (Counts{{2, 2}, {2, 1}}));
  // Warm-up is 4 tasks on stage 0, and a fifth is begun before the first ends:
  // 5 chunks where 1F1B holds 2 stages, that is 4 chunks.
  EXPECT_EQ(getInFlight({2, 2, 4}), (Counts{{3, 2}, {2, 1}}));
  EXPECT_EQ(getInFlight({2, 2, 1}), (Counts{{1, 1}, {1, 1}}));
}

// Where the chunks weigh differently, another point is the peak: of 4 times
// the first chunk and once the second, rather than 3 and 2.
TEST(PipelineTest, PeakIsOfBytes) {
  PipelineSchedule schedule = simulate({2, 2, 4});
  InFlight peak = getPeak(schedule[0], {100, 1});
  EXPECT_EQ(peak.microBatches, (std::vector<int64_t>{4, 1}));
  EXPECT_EQ(peak.bytes, 401);
  EXPECT_EQ(getPeak(schedule[0], {0, 0}).bytes, 0);
}

// Every task runs once, after what it needs, and a stage does one at a time.
TEST(PipelineTest, SchedulesAreValid) {
  for (int64_t stages : {2, 3, 5})
    for (int64_t virtualStages : {1, 2, 3})
      for (int64_t groups : {1, 2, 4}) {
        PipelineShape shape = {stages, virtualStages, groups * stages};
        PipelineSchedule schedule = simulate(shape);
        ASSERT_EQ(int64_t(schedule.size()), stages);
        for (const auto &stage : schedule) {
          ASSERT_EQ(int64_t(stage.size()),
                    2 * virtualStages * shape.microBatches);
          for (size_t i = 1; i < stage.size(); ++i)
            EXPECT_GE(stage[i].begin, stage[i - 1].end);
          InFlight held = getPeak({stage.begin(), stage.end()},
                                  std::vector<int64_t>(virtualStages, 1));
          EXPECT_LE(held.bytes, virtualStages * shape.microBatches);
        }
      }
}

// Tasks of the longest path follow each other, on a stage or with a
// micro-batch, and are as long as the schedule.
TEST(PipelineTest, TheLongestPathIsTheSpan) {
  std::mt19937 random(5);
  for (PipelineShape shape :
       {PipelineShape{1, 1, 3}, {3, 1, 7}, {2, 2, 6}, {3, 3, 9}}) {
    PipelineSchedule schedule = simulate(shape);
    for (int round = 0; round < 20; ++round) {
      std::vector<ChunkTimes> times(shape.stages * shape.virtualStages);
      for (ChunkTimes &own : times)
        own = {double(random() % 4), double(random() % 8)};
      TaskPath path = findLongestPath(shape, schedule, times);
      PathCounts counts = countTasks(shape, schedule, path);
      double length = 0;
      for (size_t c = 0; c < times.size(); ++c)
        length += counts.forward[c] * times[c].forward +
                  counts.backward[c] * times[c].backward;
      EXPECT_EQ(length, getSpan(shape, schedule, times));
      for (size_t k = 1; k < path.size(); ++k) {
        const PipelineTask &task = schedule[path[k].stage][path[k].first];
        const PipelineTask &waited =
            schedule[path[k - 1].stage][path[k - 1].last];
        EXPECT_EQ(task.microBatch, waited.microBatch);
        int64_t chunk = task.virtualStage * shape.stages + path[k].stage;
        int64_t before = waited.virtualStage * shape.stages + path[k - 1].stage;
        if (task.isBackward == waited.isBackward)
          EXPECT_EQ(before, task.isBackward ? chunk + 1 : chunk - 1);
        else
          EXPECT_EQ(before, chunk);
      }
    }
  }
}

// Three chunks each on four stages need the micro-batches in fours: the fifth
// alone makes the stages wait for each other.
TEST(PipelineTest, StagesWaitForever) {
  EXPECT_EQ(check({4, 3, 5}), std::nullopt);
  EXPECT_TRUE(simulate({4, 3, 5}).empty());
  EXPECT_FALSE(simulate({4, 3, 8}).empty());
}

TEST(PipelineTest, Faults) {
  EXPECT_EQ(check({0, 1, 1}),
            "needs at least 1 for the number of pipeline stages, but got 0");
  EXPECT_EQ(check({2, 1, -3}),
            "needs at least 1 for the number of micro-batches, but got -3");
  EXPECT_EQ(check({1, 2, 4}),
            "needs more than 1 pipeline stage to have virtual "
            "stages, but got 2 virtual stages");
  EXPECT_EQ(check({4096, 1, 8192}),
            "needs at most 16777216 tasks, but got more "
            "with 8192 micro-batches");
}

// Moments that are left out never need more, whatever chunks keep and work
// with.
TEST(PipelineTest, MomentsStandForAllTasks) {
  std::mt19937 random(17);
  auto pick = [&](int64_t least, int64_t most) {
    return least + int64_t(random() % (most - least + 1));
  };
  for (int round = 0; round < 300; ++round) {
    PipelineShape shape;
    shape.stages = pick(2, 4);
    shape.virtualStages = pick(1, 4);
    shape.microBatchGroup = shape.stages + pick(0, 3);
    shape.microBatches = shape.microBatchGroup * pick(1, 4);
    for (const std::vector<PipelineTask> &tasks : simulate(shape)) {
      std::vector<ChunkBytes> chunks;
      for (int64_t v = 0; v < shape.virtualStages; ++v) {
        int64_t kept = pick(0, 30);
        chunks.push_back({kept, kept + pick(0, 20)});
      }
      std::vector<int64_t> now(shape.virtualStages);
      int64_t most = 0, mostBackward = 0;
      for (const PipelineTask &task : tasks) {
        now[task.virtualStage] += !task.isBackward;
        int64_t need =
            chunks[task.virtualStage].work - chunks[task.virtualStage].kept;
        for (int64_t v = 0; v < shape.virtualStages; ++v)
          need += now[v] * chunks[v].kept;
        most = std::max(most, need);
        if (task.isBackward)
          mostBackward = std::max(mostBackward, need);
        now[task.virtualStage] -= task.isBackward;
      }
      std::vector<StageMoment> all =
          getMoments(tasks, shape.virtualStages, /*onlyBackward=*/false);
      ASSERT_EQ(getNeed(all, chunks), most) << "round " << round;
      ASSERT_EQ(getNeed(getMoments(tasks, shape.virtualStages,
                                   /*onlyBackward=*/true),
                        chunks),
                mostBackward);
      ASSERT_LT(all.size(), tasks.size());
    }
  }
}
