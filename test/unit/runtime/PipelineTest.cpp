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
#include "runtime/device/Executor.h"

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

TEST_F(Pipeline, RefusesWhatNeedsAWholeModel) {
  for (auto [option, value] :
       {std::pair("--val-data", data.c_str()), {"--sample", "3"}}) {
    Outcome outcome = trainStages({"--steps=1", option, value});
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.err.find("train: error: " + std::string(option) +
                               " needs a program whose ranks have whole "
                               "models, but this one has 2 stages"),
              0u)
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
  Executor executor(stage.model, arena, pool, alone);
  struct Life {
    const float *loss;
    std::string told;
  } life = {};
  executor.setWatch({[](void *context, int64_t microBatches) {
                       auto &life = *static_cast<Life *>(context);
                       life.told += std::to_string(microBatches) + " after " +
                                    std::to_string(int(*life.loss)) + "; ";
                     },
                     &life});
  ASSERT_TRUE(pool.start(1, error) && executor.allocate(error) &&
              executor.prepare({3, true}, /*profile=*/true, error) &&
              executor.beginStep(error))
      << error.text;
  life.loss = arena.at<float>(stage.model.loss);
  EXPECT_EQ(executor.numAtOnce(), 2);
  const Turn turn = turnFrom(stage.model, 0, executor.numAtOnce());
  EXPECT_EQ(turn.end, 2);
  ASSERT_TRUE(executor.runTurn(turn, /*isApart=*/false, error)) << error.text;
  EXPECT_EQ(life.told, "1 after 2; ");
  EXPECT_EQ(*life.loss, 5);
  for (int i = 0; i < 6; ++i)
    EXPECT_GT(executor.profile()[i], 0) << i;
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
