//===- StageScheduleTest.cpp - Tests of what stages run -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tables are compared with runs of them. A run moves numbers instead of
// tensors, goes on with any stage that can, and delivers what is sent as late
// as it may: when somebody waits for it, from whatever the slot has then.
//
//===----------------------------------------------------------------------===//

#include "BrokenTables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

using namespace reprise::solver;

using Kind = ScheduleEntry::Kind;

/// "F0.1 s r B0.1 W U": the list of a stage; chunks only if there are several.
static std::string draw(const ScheduleTable &table, int64_t stage) {
  std::string text;
  for (const ScheduleEntry &entry : table.stages[stage].entries) {
    if (entry.kind != Kind::Forward && entry.kind != Kind::Backward &&
        entry.kind != Kind::Weight)
      continue;
    text += (text.empty() ? "" : " ") + std::string(1, "FBW"[entry.kind]) +
            std::to_string(entry.microBatch);
    if (table.shape.virtualStages > 1)
      text += "." + std::to_string(entry.chunk / table.shape.stages);
  }
  return text;
}

static ScheduleTable make(const char *name, const PipelineShape &shape,
                          int64_t tiedBytes = 0) {
  const NamedSchedule *schedule = findSchedule(name);
  EXPECT_EQ(check(*schedule, shape).value_or(""), "");
  return makeTable(*schedule, shape, {/*borderBytes=*/96, tiedBytes});
}

static std::string getFault(const ScheduleTable &table) {
  std::optional<ScheduleFault> fault = verify(table);
  if (!fault)
    return "";
  return "stage " + std::to_string(fault->stage) + ", entry " +
         std::to_string(fault->entry) + ": " + fault->text;
}

// Drawn by hand from the papers.
TEST(StageScheduleTest, Orders) {
  EXPECT_EQ(draw(make("gpipe", {2, 1, 3}), 1), "F0 F1 F2 B0 B1 B2");
  EXPECT_EQ(draw(make("1f1b", {3, 1, 4}), 0), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(draw(make("1f1b", {3, 1, 4}), 2), "F0 B0 F1 B1 F2 B2 F3 B3");
  EXPECT_EQ(draw(make("1f1b", {3, 1, 1}), 0), "F0 B0");
  EXPECT_EQ(draw(make("interleaved", {2, 2, 2}), 1),
            "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 B0.0 B1.0");
  // Groups of three: the second chunk begins behind the third micro-batch.
  EXPECT_EQ(draw(make("interleaved", {2, 2, 3, 3}), 1),
            "F0.0 F1.0 F2.0 F0.1 B0.1 F1.1 B1.1 F2.1 B2.1 B0.0 B1.0 B2.0");
  EXPECT_EQ(draw(make("zb-h1", {3, 1, 4}), 0),
            "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
  EXPECT_EQ(draw(make("zb-h1", {3, 1, 4}), 2),
            "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
}

// The bubble of p stages, F = B = W = 1: that of 1F1B is (p - 1)(F + B + W),
// that of ZB-H1 (p - 1)(F + B - W); arXiv:2401.10241, table 1. Interleaved has
// that of 1F1B over its chunks; arXiv:2104.04473, section 2.2.
TEST(StageScheduleTest, Spans) {
  for (int64_t stages : {2, 3, 4, 8})
    for (int64_t batches : {2, 3, 4}) {
      PipelineShape shape = {stages, 1, batches * stages};
      int64_t busy = 3 * shape.microBatches;
      EXPECT_EQ(getSpan(make("gpipe", shape), TaskTimes()),
                busy + 3 * (stages - 1));
      EXPECT_EQ(getSpan(make("1f1b", shape), TaskTimes()),
                busy + 3 * (stages - 1));
      EXPECT_EQ(getSpan(make("zb-h1", shape), TaskTimes()), busy + stages - 1);
      shape.virtualStages = 2;
      EXPECT_EQ(getSpan(make("interleaved", shape), TaskTimes()),
                2 * busy + 3 * (stages - 1));
    }
}

// Slots are what the simulator says is in flight, and for ZB-H1 the stages on
// every stage (arXiv:2401.10241, section 2.1).
/// Chunks that take different times: against the simulator of budgets, which
/// shares no code with tables.
TEST(StageScheduleTest, SpansOfChunks) {
  std::mt19937 random(7);
  auto draw = [&](int64_t most) { return int64_t(random() % most) + 1; };
  for (int number = 0; number < 200; ++number) {
    int64_t stages = draw(5), chunksEach = stages > 1 ? draw(3) : 1;
    PipelineShape shape{stages, chunksEach, stages * draw(4)};
    std::vector<TaskTimes> times;
    std::vector<ChunkTimes> same;
    for (int64_t chunk = 0; chunk < stages * chunksEach; ++chunk) {
      TaskTimes task{draw(20), draw(20), draw(20)};
      times.push_back(task);
      same.push_back(
          {double(task.forward), double(task.backward + task.weight)});
    }
    const char *name = chunksEach > 1 ? "interleaved" : "1f1b";
    int64_t span = getSpan(make(name, shape), times);
    double least = getSpan(shape, simulate(shape), same);
    // The table waits for slots, too, which takes little.
    EXPECT_GE(span, least) << name;
    EXPECT_LE(span, chunksEach > 1 ? 1.03 * least : least) << name;
  }
}

TEST(StageScheduleTest, SlotsAreInFlight) {
  for (int64_t stages : {1, 2, 3, 4, 7})
    for (int64_t batches = 1; batches < 12; ++batches)
      for (int64_t virtualStages : {1, 2, 3}) {
        PipelineShape shape = {stages, virtualStages, batches};
        const char *name = virtualStages > 1 ? "interleaved" : "1f1b";
        if (check(*findSchedule(name), shape))
          continue;
        ScheduleTable table = make(name, shape);
        PipelineSchedule schedule = simulate(shape);
        ASSERT_EQ(getFault(table), "");
        for (int64_t stage = 0; stage < stages; ++stage)
          EXPECT_EQ(table.stages[stage].slots,
                    getMostInFlight(schedule[stage], virtualStages));
        if (virtualStages == 1)
          for (const StageTable &stage : make("zb-h1", shape).stages)
            EXPECT_EQ(stage.slots[0], std::min(stages, batches));
      }
}

TEST(StageScheduleTest, RefusesShapes) {
  auto refuse = [](const char *name, const PipelineShape &shape) {
    return check(*findSchedule(name), shape).value_or("");
  };
  EXPECT_EQ(refuse("1f1b", {2, 2, 4}),
            "needs 1 virtual stage for the schedule 1f1b, but got 2; "
            "'interleaved' has several");
  EXPECT_EQ(refuse("gpipe", {2, 1, 4, 2}),
            "needs no groups of micro-batches for the schedule gpipe, but got "
            "groups of 2");
  EXPECT_EQ(refuse("interleaved", {4, 2, 3}),
            "needs groups of at least 4 micro-batches, the stages, and at most "
            "3, all of them, but got 4");
  EXPECT_EQ(refuse("interleaved", {4, 2, 10}),
            "needs at least 4 micro-batches in the last group, the stages, but "
            "got 2, the rest of 10 in groups of 4");
  EXPECT_EQ(refuse("interleaved", {4, 2, 10, 6}), "");
  EXPECT_EQ(refuse("zb-h1", {0, 1, 1}),
            "needs at least 1 for the number of pipeline stages, but got 0");
  EXPECT_EQ(findSchedule("dual"), nullptr);
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

namespace {
/// Runs a table in one of the many orders that stages and engines may take.
class TableRun {
public:
  TableRun(const ScheduleTable &table, unsigned seed)
      : table(table), random(seed) {
    for (const StageTable &list : table.stages) {
      stages.emplace_back();
      stages.back().gradients.resize(std::max<int64_t>(list.gradientSlots, 0));
      for (int64_t count : list.slots)
        stages.back().slots.emplace_back(count);
      stages.back().left = stages.back().slots;
      for (const ScheduleEntry &entry : list.entries)
        splits |= entry.kind == Kind::Weight;
    }
    sums.resize(table.shape.stages * table.shape.virtualStages);
  }

  /// Whether the run ends, with every gradient as one device makes it.
  bool isRight() {
    for (size_t left = 1; left > 0;) {
      left = 0;
      std::vector<int64_t> order;
      for (int64_t stage = 0; stage < table.shape.stages; ++stage)
        if (stages[stage].next < table.stages[stage].entries.size())
          order.push_back(stage);
      left = order.size();
      std::shuffle(order.begin(), order.end(), random);
      bool goesOn = false;
      for (int64_t stage : order)
        goesOn |= step(stage);
      if (isWrong || (left > 0 && !goesOn))
        return false;
    }
    for (size_t chunk = 0; chunk < sums.size(); ++chunk)
      if (sums[chunk] != expected(chunk))
        return false;
    return loss == expectedLoss();
  }

private:
  using Channel = std::tuple<int64_t, int64_t, bool>;
  struct Parcel {
    const uint64_t *slot; ///< Read when it is received.
    int64_t bytes;
  };
  struct Stage {
    size_t next = 0;
    /// What waits for backward tasks, and for those of weights.
    std::vector<std::vector<uint64_t>> slots, left;
    std::vector<uint64_t> gradients;
    std::map<int64_t, size_t> met; ///< By group.
    bool hasArrived = false;
  };

  static uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t x = (a ^ (b * 0x9e3779b97f4a7c15)) + 0x165667b19e3779f9;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9;
    return x ^ (x >> 32);
  }
  // What chunks compute, of one micro-batch.
  static uint64_t forward(uint64_t input, int64_t chunk, int64_t batch) {
    return mix(input, 2 * chunk + (chunk == 0 ? 1000 * batch : 0) + 7);
  }
  static uint64_t backward(uint64_t kept, uint64_t gradient) {
    return mix(kept, gradient + 11);
  }
  /// Sums have one order.
  static uint64_t add(uint64_t sum, uint64_t left) { return mix(sum, left); }
  uint64_t expected(int64_t chunk) const {
    uint64_t sum = 0;
    for (int64_t batch = 0; batch < table.shape.microBatches; ++batch) {
      std::vector<uint64_t> kept(sums.size());
      for (size_t c = 0; c < kept.size(); ++c)
        kept[c] = forward(c ? kept[c - 1] : 0, c, batch);
      uint64_t gradient = 0;
      for (int64_t c = kept.size() - 1; c >= chunk; --c)
        gradient = backward(kept[c], gradient);
      sum = add(sum, gradient);
    }
    return sum;
  }

  uint64_t expectedLoss() const {
    uint64_t sum = 0;
    for (int64_t batch = 0; batch < table.shape.microBatches; ++batch) {
      uint64_t value = 0;
      for (size_t chunk = 0; chunk < sums.size(); ++chunk)
        value = forward(value, chunk, batch);
      sum = add(sum, value);
    }
    return sum;
  }

  /// Whether something that `slot` sends is still to be read.
  bool isRead(const uint64_t *slot) const {
    for (const auto &[channel, parcels] : channels)
      for (const Parcel &parcel : parcels)
        if (parcel.slot == slot)
          return true;
    return false;
  }
  bool step(int64_t number);
  bool transfer(int64_t number, const ScheduleEntry &entry, uint64_t *slot);
  bool meet(Stage &stage, const ScheduleEntry &entry);

  const ScheduleTable &table;
  std::mt19937 random;
  std::vector<Stage> stages;
  std::map<Channel, std::vector<Parcel>> channels;
  /// What the members do, by group and number.
  std::map<std::pair<int64_t, size_t>, std::vector<int64_t>> meetings;
  std::vector<uint64_t> sums;
  uint64_t loss = 0;
  bool splits = false;
  bool isWrong = false;
};
} // namespace

bool TableRun::transfer(int64_t number, const ScheduleEntry &entry,
                        uint64_t *slot) {
  if (entry.kind == Kind::Send) {
    channels[{number, entry.peer, entry.isGradient}].push_back(
        {slot, entry.bytes});
    return true;
  }
  std::vector<Parcel> &parcels =
      channels[{entry.peer, number, entry.isGradient}];
  if (parcels.empty() || isRead(slot))
    return false;
  isWrong |= parcels.front().bytes != entry.bytes;
  *slot = *parcels.front().slot;
  parcels.erase(parcels.begin());
  return true;
}

/// All members wait until the last one is there.
bool TableRun::meet(Stage &stage, const ScheduleEntry &entry) {
  std::vector<int64_t> &there = meetings[{entry.group, stage.met[entry.group]}];
  if (!stage.hasArrived)
    there.push_back(entry.bytes * 2 + (entry.kind == Kind::Reduce));
  stage.hasArrived = true;
  isWrong |= there.back() != there.front();
  if (there.size() < table.groups[entry.group].stages.size())
    return false;
  stage.hasArrived = false;
  ++stage.met[entry.group];
  return true;
}

/// Runs the next entry of a stage if it need not wait.
bool TableRun::step(int64_t number) {
  Stage &stage = stages[number];
  const ScheduleEntry &entry = table.stages[number].entries[stage.next];
  if (entry.kind == Kind::Update) {
    ++stage.next;
    return true;
  }
  if (entry.kind == Kind::Reduce || entry.kind == Kind::Gather) {
    bool goesOn = meet(stage, entry);
    stage.next += goesOn;
    return goesOn;
  }
  int64_t batch = entry.microBatch, v = entry.chunk / table.shape.stages;
  bool isTransfer = entry.kind == Kind::Send || entry.kind == Kind::Receive;
  bool isLast = entry.chunk == int64_t(sums.size()) - 1;
  size_t room = isTransfer && entry.isGradient ? stage.gradients.size()
                                               : stage.slots[v].size();
  if (size_t(entry.slot) >= room ||
      size_t(entry.gradientSlot + 1) > stage.gradients.size()) {
    isWrong = true;
    return false;
  }
  uint64_t *gradient =
      entry.gradientSlot < 0 ? nullptr : &stage.gradients[entry.gradientSlot];
  if (isTransfer) {
    if (!transfer(number, entry,
                  entry.isGradient ? &stage.gradients[entry.slot]
                                   : &stage.slots[v][entry.slot]))
      return false;
  } else if (entry.kind == Kind::Forward) {
    uint64_t &slot = stage.slots[v][entry.slot];
    if (isRead(&slot))
      return false;
    slot = forward(entry.chunk ? slot : 0, entry.chunk, batch);
    if (isLast)
      loss = add(loss, slot);
  } else if (entry.kind == Kind::Backward) {
    if (gradient && isRead(gradient))
      return false;
    uint64_t out = backward(stage.slots[v][entry.slot],
                            gradient && !isLast ? *gradient : 0);
    if (gradient)
      *gradient = out;
    stage.left[v][entry.slot] = out;
    if (!splits)
      sums[entry.chunk] = add(sums[entry.chunk], out);
  } else {
    sums[entry.chunk] = add(sums[entry.chunk], stage.left[v][entry.slot]);
  }
  ++stage.next;
  return true;
}

/// A random layout that some schedule takes.
static ScheduleTable makeRandom(std::mt19937 &random) {
  auto pick = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  while (true) {
    const NamedSchedule &schedule = getSchedules()[pick(0, 3)];
    PipelineShape shape = {pick(1, 5), 1, pick(1, 9)};
    if (schedule.isInterleaved) {
      shape.virtualStages = pick(1, 3);
      shape.microBatchGroup = pick(0, 1) * pick(shape.stages, 9);
    }
    if (!check(schedule, shape))
      return makeTable(schedule, shape, {pick(1, 500), pick(0, 1) * 64});
  }
}

TEST(StageScheduleTest, RandomTablesRun) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    ScheduleTable table = makeRandom(random);
    ASSERT_EQ(getFault(table), "") << table.name;
    ASSERT_TRUE(TableRun(table, i).isRight()) << table.name;
  }
}

TEST(StageScheduleTest, BrokenTablesAreRefused) {
  std::mt19937 random(2);
  std::map<std::string, int> seen;
  for (int broken = 0; broken < 1000;) {
    ScheduleTable table = makeRandom(random);
    std::string what = reprise::test::breakTable(table, random);
    if (what.empty())
      continue;
    ++broken;
    ++seen[what];
    std::optional<ScheduleFault> fault = verify(table);
    ASSERT_TRUE(fault) << what << " in " << table.name;
    EXPECT_GE(fault->stage, 0) << fault->text;
  }
  EXPECT_EQ(seen.size(), 9u);
}

// Entries in another order: whatever passes, runs.
TEST(StageScheduleTest, WhatPassesRuns) {
  std::mt19937 random(3);
  int passed = 0, refused = 0, failed = 0;
  for (int i = 0; i < 5000; ++i) {
    ScheduleTable table = makeRandom(random);
    for (int changes = 1 + random() % 3; changes > 0; --changes) {
      std::vector<ScheduleEntry> &entries =
          table.stages[random() % table.stages.size()].entries;
      size_t from = random() % entries.size(), to = random() % entries.size();
      std::swap(entries[from], entries[random() % 2 ? to : from / 2]);
    }
    bool passes = !verify(table), runs = true;
    for (unsigned seed = 0; seed < 4; ++seed)
      runs &= TableRun(table, seed).isRight();
    ASSERT_TRUE(runs || !passes) << table.name;
    (passes ? passed : refused) += 1;
    failed += !runs;
  }
  // Neither is rare, and most of what is refused does not run.
  EXPECT_GT(passed, 100);
  EXPECT_GT(failed, refused / 2);
  RecordProperty("passed", passed);
  RecordProperty("refused", refused);
  RecordProperty("failed", failed);
}

// All stages go forward with micro-batches the other way round: gradients are
// added in order, and losses are not.
TEST(StageScheduleTest, LossesAreAddedInOrder) {
  ScheduleTable table = make("gpipe", {2, 1, 2});
  for (StageTable &stage : table.stages)
    for (ScheduleEntry &entry : stage.entries)
      if (entry.kind == Kind::Forward ||
          (entry.bytes > 0 && entry.chunk >= 0 && !entry.isGradient)) {
        entry.microBatch = 1 - entry.microBatch;
        entry.slot = 1 - entry.slot;
      }
  EXPECT_EQ(getFault(table),
            "stage 1, entry 1: needs micro-batch 0 as the next "
            "whose loss chunk 1 may add, but got 1");
  EXPECT_FALSE(TableRun(table, 0).isRight());
}

// Two stages that wait for what the other sends later.
TEST(StageScheduleTest, DeadlockNamesBoth) {
  ScheduleTable table = make("1f1b", {2, 1, 2});
  // F0 s F1 s | r B0: stage 0 receives the gradient before it sends F1, which
  // is fine, but stage 1 goes forward with both first.
  StageTable &first = table.stages[0], &last = table.stages[1];
  std::vector<ScheduleEntry> gpipe =
      makeTable(*findSchedule("gpipe"), table.shape, {96}).stages[1].entries;
  last.entries = gpipe;
  last.slots = {2};
  // Stage 0: F0 s r B0 F1 s r B1.
  ScheduleTable serial = make("1f1b", {2, 1, 1});
  std::vector<ScheduleEntry> once = serial.stages[0].entries, twice;
  for (int64_t batch : {0, 1})
    for (ScheduleEntry entry : once)
      if (entry.chunk >= 0) {
        entry.microBatch = batch;
        twice.push_back(entry);
      }
  twice.push_back(once[once.size() - 2]);
  twice.push_back(once.back());
  first.entries = twice;
  first.slots = {1};
  first.gradientSlots = 1;
  EXPECT_EQ(getFault(table),
            "stage 0, entry 2: waits forever, since stages wait for each "
            "other: for it waits the receive of the activation of micro-batch "
            "1 on chunk 1, entry 2 of stage 1");
  EXPECT_FALSE(TableRun(table, 0).isRight());
}
