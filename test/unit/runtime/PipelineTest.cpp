//===- PipelineTest.cpp - Stages of a model, made by hand -----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The toy in two stages: the first has the embedding, the second what follows.
// Both have the arena of the whole, and behind it the inputs of all
// micro-batches. Nothing but the norm is summed in another order.
//
//===----------------------------------------------------------------------===//

#include "CheckpointRun.h"
#include "StagedToy.h"

#include "runtime/checkpoint/SafeTensors.h"
#include "runtime/device/CpuDevice.h"
#include "runtime/device/Executor.h"
#include "runtime/text/Json.h"
#include "runtime/trainer/Saves.h"

using namespace reprise::runtime;
using namespace reprise::runtime::test;

namespace {
class Pipeline : public Checkpoints {
protected:
  void TearDown() override {
    Training::TearDown();
    remove(other.c_str());
  }

  Outcome trainStages(std::vector<std::string> args) {
    args.insert(args.begin(), {"--data", data, "--log-format=json"});
    args.insert(args.end(), always.begin(), always.end());
    return run(args, staged.models());
  }

  /// The tensors of two files, by name, that differ.
  std::string differing() {
    TensorSet ours, theirs;
    Error error;
    if (!ours.open(other.c_str(), error) || !theirs.open(dump.c_str(), error))
      return error.text;
    std::string names;
    for (const TensorEntry &entry : theirs) {
      const TensorEntry *found = ours.find(entry.name);
      if (!found || found->bytes != entry.bytes ||
          memcmp(ours.bytesOf(*found), theirs.bytesOf(entry),
                 size_t(entry.bytes)) != 0)
        names += entry.name + std::string(" ");
    }
    return ours.end() - ours.begin() == theirs.end() - theirs.begin()
               ? names
               : "another number";
  }

  const std::string other = stem + "-other.safetensors";
  StagedToy staged{toy};
};
} // namespace

// Losses, the last gradients and all states are those of one rank to the bit.
TEST_F(Pipeline, TrainsAsOneRank) {
  Outcome one = train({"--steps=5", "--dump", dump});
  ASSERT_EQ(one.status, 0) << one.err;
  Outcome two = trainStages({"--steps=5", "--check-memory", "--dump", other});
  ASSERT_EQ(two.status, 0) << two.err;
  for (int step = 1; step <= 5; ++step)
    EXPECT_EQ(one.loss(step), two.loss(step)) << step;
  EXPECT_EQ(differing(), "grad_norm ");
  EXPECT_NE(two.out.find("\"mesh\":\"pp 2\""), std::string::npos) << two.out;
  auto mark = two.out.find("\"high_water_bytes\":" +
                           std::to_string(staged.models()[0]->arenaBytes));
  EXPECT_NE(mark, std::string::npos) << two.out;
}

// Only norms differ, which a checkpoint has among the values of its last steps.
TEST_F(Pipeline, SavesWhatOneRankSaves) {
  Outcome one = save("one", 4),
          two = trainStages({"--save", path("two"), "--steps=4"});
  ASSERT_EQ(one.status, 0) << one.err;
  ASSERT_EQ(two.status, 0) << two.err;
  EXPECT_EQ(different("one/step-00000004", "two/step-00000004"),
            "trainer.json ");
}

// Ranks with parts have a copy, whatever the budget is: 36.75 KiB of half of
// the states, and two messages of 11.63 KiB, the largest part of a state.
TEST_F(Pipeline, ACopyBeyondTheBudgetIsSaid) {
  for (ToyStage &stage : staged.stages)
    stage.model.budgetBytes = stage.model.arenaBytes + 10;
  const std::string warning = "--save takes more than --memory-budget: a copy "
                              "of 60.00 KiB";
  auto isWarned = [&](std::vector<std::string> args) {
    args.insert(args.end(), {"--save", path("a"), "--steps=1"});
    std::filesystem::remove_all(path("a"));
    Outcome outcome = trainStages(args);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out.find(warning) != outcome.out.npos;
  };
  EXPECT_TRUE(isWarned({}));
  EXPECT_FALSE(isWarned({"--save-from=copy"}));
  for (ToyStage &stage : staged.stages)
    stage.model.budgetBytes += 61'440;
  EXPECT_FALSE(isWarned({}));
}

TEST_F(Pipeline, GoesOnFromOneRankAndBack) {
  Outcome whole = train({"--steps=6"});
  ASSERT_EQ(save("one", 2).status, 0);
  Outcome two = trainStages(
      {"--resume", path("one"), "--save", path("two"), "--steps=4"});
  ASSERT_EQ(two.status, 0) << two.err;
  Outcome last = train({"--resume", path("two"), "--steps=6"});
  ASSERT_EQ(last.status, 0) << last.err;
  for (int step : {3, 4})
    EXPECT_EQ(two.loss(step), whole.loss(step)) << step;
  for (int step : {5, 6})
    EXPECT_EQ(last.loss(step), whole.loss(step)) << step;
}

TEST_F(Pipeline, BeginsWithWeights) {
  ASSERT_EQ(save("one", 2).status, 0);
  const std::string weights = path("one/step-00000002");
  Outcome one = train({"--init-from", weights, "--steps=2", "--dump", dump});
  Outcome two =
      trainStages({"--init-from", weights, "--steps=2", "--dump", other});
  ASSERT_EQ(one.status, 0) << one.err;
  ASSERT_EQ(two.status, 0) << two.err;
  EXPECT_EQ(differing(), "grad_norm ");
}

// The second stage has another kilobyte, which its rank alone shows.
TEST_F(Pipeline, ShowsThePlansOfStages) {
  const int64_t first = staged.stages[0].model.arenaBytes;
  const int64_t second = first + 1024;
  staged.stages[1].model.arenaBytes = second;
  staged.stages[1].model.arenaAlignment = 2048;
  Outcome outcome = trainStages({"--steps=1"});
  EXPECT_NE(
      outcome.out.find("\"planned_bytes\":{\"least\":" + std::to_string(first) +
                       ",\"least_rank\":0,\"median\":" + std::to_string(first) +
                       ",\"median_rank\":0,\"most\":" + std::to_string(second) +
                       ",\"most_rank\":1}"),
      std::string::npos)
      << outcome.out << outcome.err;
  EXPECT_NE(run({"--describe"}, staged.models())
                .out.find("\"planned_bytes_of_stages\": [" +
                          std::to_string(first) + ", " +
                          std::to_string(second) + "]"),
            std::string::npos);
  EXPECT_NE(run({"--version"}, staged.models())
                .out.find(" in each of 2 ranks, by their stages (pp 2)\n"),
            std::string::npos);
}

TEST_F(Pipeline, TakesThePlacesThatItHas) {
  Outcome narrow = trainStages({"--steps=3"});
  staged.setPlaces(1);
  Outcome wide = trainStages({"--steps=3"});
  EXPECT_EQ(narrow.status, 0) << narrow.err;
  EXPECT_EQ(narrow.steps(), wide.steps());
}

TEST_F(Pipeline, RefusesToInferWithoutSchedulesForIt) {
  for (auto [option, value] :
       {std::pair("--val-data", data.c_str()), {"--sample", "3"}}) {
    Outcome outcome = trainStages({"--steps=1", option, value});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.err.find(std::string(option) +
                               " needs a program that was compiled with "
                               "--inference=on"),
              std::string::npos)
        << outcome.err;
  }
}

TEST_F(Pipeline, DamagedStagesAreRefused) {
  auto refusal = [&](auto damage) {
    StagedToy damaged(toy);
    damage(damaged.stages[1]);
    Outcome outcome = run({"--data", data, "--steps=1"}, damaged.models());
    EXPECT_EQ(outcome.status, 1);
    size_t at = outcome.err.find("damaged model: ");
    return at == std::string::npos ? outcome.err : outcome.err.substr(at + 15);
  };
  EXPECT_EQ(refusal([](ToyStage &stage) { stage.model.stage = 2; }),
            "stage 1 of 2 has no model\n");
  EXPECT_EQ(refusal([](ToyStage &stage) { stage.model.numInputs = 1; }),
            "2 micro-batches of a rank need as many rows of inputs, but got "
            "1\n");
  EXPECT_EQ(refusal([](ToyStage &stage) {
              stage.inputs[1].rng.bytes = 12;
            }).substr(0, 44),
            "inputs needs at least 16 bytes in the arena ");
  EXPECT_EQ(refusal([](ToyStage &stage) { stage.inputs[0] = stage.inputs[1]; }),
            "the first row of inputs needs to be where the model has its "
            "tokens, targets and rng\n");
  EXPECT_EQ(refusal([](ToyStage &stage) {
              stage.program.insert(stage.program.begin() + 1, {0, 1});
              stage.finish();
            }),
            "a step needs to begin with the first of 1 micro-batches and to "
            "end with an update, but has 3 entries with 2 micro-batches\n");
  EXPECT_EQ(refusal([](ToyStage &stage) { stage.states[0].buffer = {0, 64}; }),
            "embedding is at home on stage 0 of 2, but stage 1 has none with "
            "64 bytes\n");
  EXPECT_EQ(refusal([](ToyStage &stage) {
              stage.states[4].isElsewhere = 1;
              stage.states[4].buffer = {};
            }),
            "output is at home on stage 1 of 2, but stage 1 has none with 0 "
            "bytes\n");
  EXPECT_EQ(
      refusal([](ToyStage &stage) { stage.states[4].stage = 2; }).substr(0, 34),
      "output is at home on stage 2 of 2,");
  EXPECT_EQ(refusal([](ToyStage &stage) {
              RepriseCollective &row = stage.collectives[StagedToy::kReceive];
              row.peer = 1;
            }),
            "hidden.receive needs another rank, but its peer 1 is rank 1 "
            "itself\n");
  EXPECT_EQ(refusal([](ToyStage &stage) {
              RepriseCollective &row = stage.collectives[StagedToy::kReceive];
              row.operation = 7;
            }),
            "hidden.receive has operation 7 along axis 0 of 1 on 1 buffers of "
            "type 0\n");
  EXPECT_EQ(refusal([](ToyStage &stage) {
              for (RepriseLaunch &launch : stage.step)
                if (!strcmp(launch.name, "hidden.receive"))
                  stage.buffers[size_t(launch.firstBuffer)].bytes = 60;
            }).substr(0, 55),
            "hidden.receive needs at least 6048 bytes in the arena o");
  // What a stage does not have, it has no bytes of.
  EXPECT_EQ(
      refusal([](ToyStage &stage) { stage.model.sampleTokens = {0, 64}; }),
      "sampleTokens is on another stage than 1, but got 64 bytes at 0 "
      "here\n");
  EXPECT_EQ(
      refusal([](ToyStage &stage) { stage.model.sampleTokens = {128, 0}; }),
      "sampleTokens is on another stage than 1, but got 0 bytes at 128 "
      "here\n");
  auto refusalOf = [&](int32_t first, int32_t stride, int32_t members) {
    return refusal([&](ToyStage &stage) {
      RepriseCollective &row = stage.collectives[StagedToy::kSum];
      row.firstMember = first, row.memberStride = stride;
      row.numMembers = members;
    });
  };
  for (auto [first, stride, members] :
       {std::tuple(0, 1, 1), {0, 2, 2}, {-1, 1, 2}, {0, 0, 2}, {0, 1, -1}})
    EXPECT_EQ(refusalOf(first, stride, members),
              "rank 1 cannot take part in sums, operation 0 of " +
                  std::to_string(members) + " ranks from " +
                  std::to_string(first) + " on in steps of " +
                  std::to_string(stride) + " along an axis of 2\n");
}

/// The text of a member, or its number as it is written.
static std::string textOf(JsonValue value, const char *key) {
  return std::string(value.find(key).text());
}

// Each rank has a track, on which launches follow each other within the step,
// and waits for another stage are slices of their own.
TEST_F(Pipeline, ATraceShowsBubbles) {
  Outcome outcome = trainStages({"--steps=2", "--trace", path("trace")});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::string text = readFile(path("trace"));
  JsonDocument document;
  Error error;
  ASSERT_TRUE(document.parse(text, "trace", error)) << error.text;
  std::string names[2], waits[2];
  double ends[2] = {0, 0}, waited[2] = {0, 0};
  int64_t launches = 0;
  for (auto [key, event] : document.root().find("traceEvents")) {
    const bool isFirst = textOf(event, "tid") == "0";
    const std::string phase = textOf(event, "ph");
    if (phase == "M")
      names[!isFirst] += textOf(event.find("args"), "name") + ";";
    if (phase != "X")
      continue;
    double begin = -1, length = -1;
    ASSERT_TRUE(event.find("ts").asDouble(begin) &&
                event.find("dur").asDouble(length));
    EXPECT_GE(begin, ends[!isFirst] - 1e-3);
    EXPECT_GE(length, 0);
    ends[!isFirst] = begin + length;
    ++launches;
    if (textOf(event, "cat") == "bubble") {
      waits[!isFirst] = textOf(event, "name");
      waited[!isFirst] += length;
    }
  }
  EXPECT_EQ(names[0], "step 2;rank 0 (pp 0);");
  EXPECT_EQ(names[1], "rank 1 (pp 1);");
  EXPECT_EQ(waits[0], "waiting for rank 1");
  EXPECT_EQ(waits[1], "waiting for rank 0");
  int64_t expected = 0;
  for (const RepriseModel *model : staged.models())
    for (int i = 0; i < model->numEntries; ++i)
      expected += model->schedules[model->program[i].schedule].numLaunches;
  EXPECT_EQ(launches, expected);
  // The table of ranks has what stages have waited in both steps.
  const size_t row = outcome.out.find("\"wait_stages_s\":{\"least\":");
  ASSERT_NE(row, std::string::npos) << outcome.out;
  EXPECT_GE(atof(outcome.out.c_str() + outcome.out.find(':', row + 18) + 1),
            std::min(waited[0], waited[1]) * 1e-6);
}

TEST_F(Pipeline, AProfileHasBubblesAsALine) {
  Outcome outcome = trainStages({"--steps=2", "--profile"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\"launch\":\"waiting for stages\""),
            std::string::npos)
      << outcome.out;
  EXPECT_EQ(outcome.out.find(".receive"), std::string::npos) << outcome.out;
  outcome = train({"--steps=2", "--profile", "--trace", path("alone")});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("waiting for stages"), std::string::npos);
  EXPECT_EQ(outcome.out.find("wait_stages_s"), std::string::npos);
  EXPECT_EQ(readFile(path("alone")).find("bubble"), std::string::npos);
}

// All come to the same number, and the others wait until rank 0 has their parts
// and has saved: what it says is heard.
TEST_F(Pipeline, ANumberThatIsNoneSavesTheStepBefore) {
  auto saveStages = [&](const std::string &name, const char *steps) {
    return trainStages({"--steps", steps, "--save", path(name)});
  };
  ASSERT_EQ(saveStages("good", "2").status, 0);
  ToyStage &last = staged.stages[1];
  last.addKernel(last.step, "spoil",
                 [](void *const *b, const int64_t *, int64_t, int64_t) {
                   if (*f32(b, 0) > 0.25f) // The third step's.
                     *f32(b, 1) = NAN;
                 },
                 {last.model.biasCorrection1, last.model.loss});
  last.finish();
  std::string text = refusal(saveStages("a", "4"));
  EXPECT_EQ(text.find("rank 0 (pp 0) in step 3: the loss of step 3 is nan; "
                      "parameters are as step 2 left them. "),
            0u)
      << text;
  EXPECT_NE(text.find(". The last checkpoint is 'a/step-00000002'"), text.npos)
      << text;
  EXPECT_EQ(different("good/step-00000002", "a/step-00000002"), "");
}

// The others have ended: nobody gives rank 0 their parts of what it would save.
TEST_F(Pipeline, ARescueSaysThatNothingIsSaved) {
  class Left final : public Transport {
  public:
    Left() : Transport(0, 2) {}
    bool hasLeft = false;

  private:
    bool move(const char *, Patience, const Parcel *, int, const Parcel *, int,
              Error &error) override {
      return !hasLeft || error.set("another rank has ended the run");
    }
  } ranks;
  const RepriseModel &model = *staged.models()[0];
  Options options;
  const std::string to = path("a");
  options.save = to.c_str();
  Arena arena;
  ThreadPool pool;
  ModelTensors tensors(model, 0);
  Log log(model, options);
  Saves saves(model, options, tensors, arena, pool, ranks, log);
  Error error;
  ASSERT_TRUE(pool.start(1, error) && arena.map(model.arenaBytes, error) &&
              tensors.find(error) && tensors.haveParts() &&
              saves.start(Resumed(), DataMark(), nullptr, error))
      << error.text;
  RunState state;
  state.step = 1;
  ranks.hasLeft = true;
  error.set("a full disk");
  saves.rescue(state, Others::Waiting, error);
  EXPECT_STREQ(error.text, "a full disk. another rank has ended the run");
}

// One stage of its own, whose launches are told of in as many shares as there
// are micro-batches.
TEST_F(Pipeline, ALongScheduleShowsLife) {
  constexpr RepriseAxis kAxes[] = {{"pp", 1, 0}};
  ToyStage stage(toy, 0, kAxes);
  for (int i = 0; i < 5; ++i)
    stage.addKernel(stage.step, "count",
                    [](void *const *b, const int64_t *, int64_t, int64_t) {
                      *f32(b, 0) += 1;
                    },
                    {stage.model.loss});
  stage.addKernel(stage.update, "root", root,
                  {stage.model.loss, stage.model.gradNorm});
  stage.finish();
  Arena arena;
  ThreadPool pool;
  Transport alone;
  Error error;
  CpuDevice device(stage.model, arena, pool, alone, {3, true});
  Executor executor(stage.model, arena, device);
  struct Life {
    const float *loss;
    std::string told;
  } life = {};
  device.setWatch({[](void *context, int64_t microBatches) {
                     auto &life = *static_cast<Life *>(context);
                     life.told += std::to_string(microBatches) + " after " +
                                  std::to_string(int(*life.loss)) + "; ";
                   },
                   &life});
  ASSERT_TRUE(pool.start(1, error) &&
              executor.prepare(/*profile=*/true, /*rank=*/0, error) &&
              device.beginStep(error))
      << error.text;
  life.loss = arena.at<float>(stage.model.loss);
  EXPECT_EQ(device.nextInputs().count(), 2);
  const Turn turn = turnFrom(stage.model, 0, device.nextInputs().count());
  EXPECT_EQ(turn.end, 2);
  ASSERT_TRUE(executor.runTurn(turn, /*isApart=*/false, error)) << error.text;
  EXPECT_EQ(life.told, "1 after 2; ");
  EXPECT_EQ(*life.loss, 5);
  for (int i = 0; i < 6; ++i)
    EXPECT_GT(device.profile().all()[i], 0) << i;
}

// What connects ranks of GPUs reads the rows of launches.
TEST_F(Pipeline, TablesAreCheckedBeforeMemoryIsTaken) {
  constexpr RepriseAxis kAxes[] = {{"pp", 1, 0}};
  ToyStage stage(toy, 0, kAxes);
  stage.addKernel(stage.update, "root", root,
                  {stage.model.loss, stage.model.gradNorm});
  stage.finish();
  Arena arena;
  ThreadPool pool;
  Transport alone;
  Error error;
  CpuDevice device(stage.model, arena, pool, alone, {3, true});
  Executor executor(stage.model, arena, device);
  stage.model.stage = 1;
  ASSERT_TRUE(pool.start(1, error));
  EXPECT_FALSE(executor.prepare(/*profile=*/false, /*rank=*/0, error));
  EXPECT_EQ(std::string(error.text).find("damaged model: stage 1"), 0u)
      << error.text;
  EXPECT_EQ(arena.size(), 0);
}

// Of three stages the first and the last have a value that they add up.
TEST_F(Pipeline, SumsOfSomeOfTheStages) {
  for (int32_t members : {0, 2}) {
    Outcome outcome = run({"--data", data, "--log-format=json", "--steps=1"},
                          SomeStages(toy, members).models());
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.loss(1), members ? 1 + 3 : 1 + 2 + 3);
  }
}

// A sum that is begun where it stood and waited for behind it; and one that
// runs in the last micro-batch.
TEST_F(Pipeline, WhatIsBegunIsThereBehindItsWait) {
  Outcome one = trainStages({"--steps=3", "--dump", dump});
  ASSERT_EQ(one.status, 0) << one.err;
  for (ToyStage &stage : staged.stages) {
    auto sums = stage.update.begin() + 1;
    sums->kind = REPRISE_LAUNCH_BEGIN;
    RepriseLaunch wait = *sums;
    wait.kind = REPRISE_LAUNCH_WAIT;
    stage.update.insert(sums + 1, wait);
    stage.collectives[size_t(wait.callee)].isOnce = 1;
    stage.finish();
  }
  Outcome two = trainStages({"--steps=3", "--profile", "--dump", other});
  ASSERT_EQ(two.status, 0) << two.err;
  for (int step = 1; step <= 3; ++step)
    EXPECT_EQ(one.loss(step), two.loss(step)) << step;
  EXPECT_EQ(differing(), "");
}

TEST_F(Pipeline, DamagedWaitsAreRefused) {
  auto refusal = [&](auto damage) {
    StagedToy damaged(toy);
    damage(damaged.stages[1], damaged.stages[1].update[1]);
    damaged.stages[1].finish();
    Outcome outcome = run({"--data", data, "--steps=1"}, damaged.models());
    EXPECT_EQ(outcome.status, 1);
    size_t at = outcome.err.find("damaged model: ");
    return at == std::string::npos ? outcome.err : outcome.err.substr(at + 15);
  };
  EXPECT_EQ(refusal([](ToyStage &, RepriseLaunch &sums) {
              sums.kind = REPRISE_LAUNCH_BEGIN;
            }),
            "sums of schedule update is begun, and not waited for\n");
  EXPECT_EQ(refusal([](ToyStage &, RepriseLaunch &sums) {
              sums.kind = REPRISE_LAUNCH_WAIT;
            }),
            "sums of schedule update is waited for, but not begun before\n");
  EXPECT_EQ(refusal([](ToyStage &stage, RepriseLaunch &sums) {
              sums.kind = REPRISE_LAUNCH_BEGIN;
              const RepriseLaunch again = sums;
              stage.update.insert(stage.update.begin() + 1, again);
            }),
            "sums of schedule update is begun, and not waited for before\n");
  EXPECT_EQ(
      refusal([](ToyStage &stage, RepriseLaunch &sums) {
        sums.kind = REPRISE_LAUNCH_BEGIN;
        RepriseLaunch wait = sums;
        wait.kind = REPRISE_LAUNCH_WAIT;
        const RepriseBuffer *own = &stage.buffers[size_t(wait.firstBuffer)];
        std::vector<RepriseBuffer> others(own, own + wait.numBuffers);
        others[0].offset += 64;
        wait.firstBuffer = int32_t(stage.buffers.size());
        stage.buffers.insert(stage.buffers.end(), others.begin(), others.end());
        stage.update.insert(stage.update.begin() + 2, wait);
      }),
      "sums of schedule update is waited for in other buffers\n");
  EXPECT_EQ(refusal([](ToyStage &stage, RepriseLaunch &sums) {
              sums.kind = REPRISE_LAUNCH_BEGIN;
              stage.collectives[size_t(sums.callee)].number = 9;
            }),
            "sums of schedule update has a number that no row has\n");
}
