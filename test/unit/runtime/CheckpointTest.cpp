//===- CheckpointTest.cpp - Saving, resuming, weights of others -----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckpointRun.h"

#include "runtime/base/Files.h"
#include "runtime/text/Json.h"

#include <sys/stat.h>

using namespace reprise::runtime::test;

TEST_F(Checkpoints, SixStepsAreThreeAndThree) {
  Outcome whole = save("a", 6, {"--save-interval=3"});
  ASSERT_EQ(whole.status, 0) << whole.err;
  EXPECT_EQ(list("a"), "LATEST step-00000003 step-00000006 ");
  EXPECT_EQ(readFile(path("a/LATEST")), "step-00000006\n");
  ASSERT_EQ(save("b", 3).status, 0);
  EXPECT_EQ(different("a/step-00000003", "b/step-00000003"), "");
  for (const char *from : {"auto", "b", "b/step-00000003/"}) {
    std::filesystem::remove_all(path("c"));
    std::filesystem::copy(path("b"), path("c"),
                          std::filesystem::copy_options::recursive);
    std::string resume = "--resume=";
    resume += *from == 'a' ? "auto" : path(std::string("c") + (from + 1));
    Outcome rest = save("c", 6, {resume, "--threads=2"});
    ASSERT_EQ(rest.status, 0) << rest.err;
    EXPECT_EQ(whole.steps().find("{\"step\":1,"), 0u);
    EXPECT_EQ(rest.steps(),
              whole.steps().substr(whole.steps().find("{\"step\":4,")));
    EXPECT_EQ(different("a/step-00000006", "c/step-00000006"), "");
  }
  // The same bytes from the plan's memory.
  ASSERT_EQ(save("e", 6, {"--save-interval=3", "--save-from=arena"}).status, 0);
  EXPECT_EQ(different("a/step-00000006", "e/step-00000006"), "");
  EXPECT_EQ(different("a/step-00000003", "e/step-00000003"), "");
  // With other options, other bits: the comparison can fail.
  EXPECT_EQ(save("d", 6, {"--data-order=sequential"}).status, 0);
  EXPECT_NE(different("a/step-00000006", "d/step-00000006"), "");
  // Nothing is left to do, or to save.
  EXPECT_EQ(save("a", 6, {"--resume=auto"}).steps(), "");
  EXPECT_EQ(list("a"), "LATEST step-00000003 step-00000006 ");
}

// What is left out depends on the last 128 steps, which a checkpoint has.
TEST_F(Checkpoints, WhatStandsOutIsTheSameAfterAResume) {
  always.insert(always.end(), {"--skip-grad-z=0.5", "--skip-loss-z=2"});
  Outcome whole = save("a", 140, {"--save-interval=130"});
  ASSERT_EQ(whole.status, 0) << whole.err;
  ASSERT_EQ(save("b", 130).status, 0);
  Outcome rest = save("b", 140, {"--resume=auto", "--threads=2"});
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_EQ(rest.steps(),
            whole.steps().substr(whole.steps().find("{\"step\":131,")));
  EXPECT_EQ(different("a/step-00000140", "b/step-00000140"), "");
  // Some of the steps after the checkpoint are left out, and some are not.
  EXPECT_NE(rest.out.find("\"skipped\":true"), rest.out.npos) << rest.out;
  EXPECT_NE(rest.out.find("\"skipped\":false"), rest.out.npos) << rest.out;
}

// What it says of itself is JSON, and is checked as all else is.
TEST_F(Checkpoints, TheySayWhatTheyWereTrainedWith) {
  toy.model.compiler = "by \"hand\"";
  toy.model.trainJson = "{\n  \"lr\": 0.05\n}";
  ASSERT_EQ(save("a", 2, {"--save-interval=1"}).status, 0);
  const std::string trainer = readFile(path("a/step-00000002/trainer.json"));
  reprise::runtime::JsonDocument document;
  reprise::runtime::Error error;
  ASSERT_TRUE(document.parse(trainer, "trainer.json", error)) << error.text;
  EXPECT_EQ(document.root().find("compiler").text(), "by \"hand\"");
  double rate = 0;
  EXPECT_TRUE(document.root().find("train").find("lr").asDouble(rate));
  EXPECT_EQ(rate, 0.05);
  EXPECT_EQ(document.root().find("data").size(), 1);
  EXPECT_EQ(readFile(path("a/step-00000002/description.yaml")),
            "# toy \"bigram\", recompute: none; by \"hand\"\n"
            "model: {hf_config: config.json}\n"
            "train: {\n    \"lr\": 0.05\n  }\n");
  EXPECT_EQ(save("a", 3, {"--resume=auto"}).status, 0);
  folder.write("a/step-00000003/description.yaml", "train: {}\n");
  EXPECT_NE(refusal(train({"--steps=4", "--resume", path("a")}))
                .find("description.yaml' is damaged"),
            std::string::npos);
  Outcome described = run({"--describe"}, toy.model);
  reprise::runtime::JsonDocument all;
  ASSERT_TRUE(all.parse(described.out, "output", error)) << error.text;
  EXPECT_EQ(all.root().find("config").find("model_type").text(), "toy");
}

TEST_F(Checkpoints, AutoIsAFreshRunWhereNothingIs) {
  Outcome fresh = save("new/folder", 2, {"--resume=auto"});
  ASSERT_EQ(fresh.status, 0) << fresh.err;
  EXPECT_EQ(fresh.out.find("\"event\":\"resumed\""), fresh.out.npos);
  EXPECT_EQ(list("new/folder"), "LATEST step-00000002 ");
  Outcome more = save("new/folder", 3, {"--resume=auto"});
  EXPECT_NE(more.out.find("\"event\":\"resumed\",\"path\":\"" +
                          path("new/folder/step-00000002") + "\",\"step\":2,"),
            more.out.npos)
      << more.out << more.err;
}

TEST_F(Checkpoints, OnlyTheLastAreKept) {
  ASSERT_EQ(save("a", 7, {"--save-interval=2", "--keep-last=2"}).status, 0);
  EXPECT_EQ(list("a"), "LATEST step-00000006 step-00000007 ");
}

// Files of others in an old checkpoint stay, and are no reason to stop.
TEST_F(Checkpoints, WhatOthersPutInAnOldCheckpointStays) {
  ASSERT_EQ(save("a", 2, {"--save-interval=1"}).status, 0);
  std::filesystem::create_directory(path("a/step-00000001/mine"));
  folder.write("a/step-00000001/mine/notes", "x");
  folder.write("a/step-00000001/model-1.safetensors", "y");
  // What a run left that was killed has one, too.
  std::filesystem::create_directories(path("a/step-00000003.tmp/mine"));
  folder.write("a/step-00000003.tmp/config.json", "{}");
  Outcome outcome = save("a//", 3, {"--resume=auto", "--keep-last=2"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char *rest : {"a/step-00000001.rest", "a/step-00000003.rest"})
    EXPECT_NE(outcome.out.find("{\"event\":\"note\",\"note\":\"'" + path(rest) +
                               "' has files that no run wrote; they are all "
                               "that is left of an old checkpoint\"}"),
              outcome.out.npos)
        << outcome.out;
  EXPECT_EQ(list("a"), "LATEST step-00000001.rest step-00000002 step-00000003 "
                       "step-00000003.rest ");
  EXPECT_EQ(list("a/step-00000001.rest"), "mine model-1.safetensors ");
  EXPECT_EQ(readFile(path("a/step-00000001.rest/mine/notes")), "x");
  EXPECT_EQ(save("a", 4, {"--resume=auto", "--keep-last=2"}).out.find("note"),
            std::string::npos);
}

// What another future left goes as soon as this one has two of its own.
TEST_F(Checkpoints, OldFuturesAreRemovedWithTheOld) {
  ASSERT_EQ(save("a", 4, {"--save-interval=1"}).status, 0);
  std::vector<std::string> args = {"--resume", path("a/step-00000002"),
                                   "--keep-last=2", "--save-interval=1"};
  ASSERT_EQ(save("a", 3, args).status, 0);
  EXPECT_EQ(list("a"), "LATEST step-00000002 step-00000003 step-00000003.old "
                       "step-00000004.old ");
  args[1] = path("a/step-00000003");
  ASSERT_EQ(save("a", 5, args).status, 0);
  EXPECT_EQ(list("a"), "LATEST step-00000004 step-00000005 ");
}

// Names a user may give, and what a link leads to, stay.
TEST_F(Checkpoints, OnlyUnfinishedOnesAreRemoved) {
  ASSERT_EQ(save("a", 1).status, 0);
  for (const char *name : {"a/step-notes.tmp", "a/step-2.tmp", "behind",
                           "a/step-00000001.tmp2", "a/step-00000009.tmp"}) {
    std::filesystem::create_directory(path(name));
    folder.write(std::string(name) + "/config.json", "{}");
  }
  folder.write("a/step-00000008.tmp", "notes");
  std::filesystem::create_symlink(path("behind"), path("a/step-00000003.tmp"));
  Outcome outcome = save("a", 2, {"--resume=auto"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\"cannot remove '"), outcome.out.npos)
      << outcome.out;
  EXPECT_EQ(list("a"),
            "LATEST step-00000001 step-00000001.tmp2 step-00000002 "
            "step-00000003.tmp step-00000008.tmp step-2.tmp step-notes.tmp ");
  EXPECT_EQ(refusal(save("a", 3, {"--resume=auto"})),
            "cannot save step 3: cannot make the folder "
            "'a/step-00000003.tmp': File exists. The last checkpoint is "
            "'a/step-00000002'");
  EXPECT_EQ(list("behind"), "config.json ");
  // One that is old, and elsewhere.
  std::filesystem::remove(path("a/step-00000003.tmp"));
  std::filesystem::rename(path("a/step-00000001"), path("elsewhere"));
  std::filesystem::create_symlink(path("elsewhere"), path("a/step-00000001"));
  outcome = save("a", 3, {"--resume=auto", "--keep-last=2"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\"cannot remove '" + path("a/step-00000001") +
                             "', which is not needed any more: Not a "
                             "directory\""),
            outcome.out.npos)
      << outcome.out;
  EXPECT_TRUE(std::filesystem::is_symlink(path("a/step-00000001")));
  EXPECT_NE(list("elsewhere").find("model.safetensors"), std::string::npos);
}

TEST_F(Checkpoints, AFolderBehindALinkIsNotRemoved) {
  std::filesystem::create_directory(path("behind"));
  folder.write("behind/x", "x");
  std::filesystem::create_symlink(path("behind"), path("link"));
  auto any = [](const char *name) { return *name != '.'; };
  EXPECT_FALSE(reprise::runtime::removeFolder(path("link").c_str(), any));
  EXPECT_EQ(errno, ENOTDIR);
  EXPECT_EQ(list("."), "behind link ");
  EXPECT_EQ(list("behind"), "x ");
  EXPECT_TRUE(reprise::runtime::removeFolder(path("behind").c_str(), any));
  EXPECT_TRUE(reprise::runtime::removeFolder(path("behind").c_str(), any));
  EXPECT_EQ(list("."), "link ");
}

// Whatever became of the one it named.
TEST_F(Checkpoints, LatestNamesTheNewest) {
  ASSERT_EQ(save("a", 3, {"--save-interval=1"}).status, 0);
  ASSERT_EQ(save("a", 2, {"--resume", path("a/step-00000002")}).status, 0);
  EXPECT_EQ(list("a"), "LATEST step-00000001 step-00000002 step-00000003.old ");
  EXPECT_EQ(readFile(path("a/LATEST")), "step-00000002\n");
  // As after a kill before it was written; or while a user wrote it.
  for (const char *text : {"step-00000001\n", "", "step-00000002"}) {
    folder.write("a/LATEST", text);
    ASSERT_EQ(save("a", 2, {"--resume=auto"}).status, 0);
    EXPECT_EQ(readFile(path("a/LATEST")), "step-00000002\n");
  }
  std::filesystem::remove(path("a/LATEST"));
  ASSERT_EQ(save("a", 2, {"--resume=auto"}).status, 0);
  EXPECT_EQ(readFile(path("a/LATEST")), "step-00000002\n");
}

TEST_F(Checkpoints, AFolderBelongsToOneRun) {
  ASSERT_EQ(save("a", 4, {"--save-interval=2"}).status, 0);
  // Its own are as much in the way, but it can go on from them.
  EXPECT_EQ(refusal(save("a", 4)),
            "'a' has checkpoints of this run, up to step 4; --resume auto with "
            "--steps 5 or more goes on from there, or name another folder to "
            "begin anew");
  const std::string isOther =
      "'a' has checkpoints of another run, the last one of step 4; --resume "
      "auto goes on from there, or name another folder";
  EXPECT_EQ(refusal(save("a", 4, {"--seed=7"})), isOther);
  EXPECT_EQ(refusal(save("a", 4, {"--data-order=sequential"})), isOther);
  EXPECT_EQ(refusal(save("a", 4, {"--data", data})), isOther);
  toy.model.trainJson = "{\n  \"lr\": 0.05\n}";
  ASSERT_EQ(save("c", 4).status, 0);
  toy.model.trainJson = "{\n  \"lr\": 0.25\n}";
  EXPECT_EQ(refusal(save("c", 4)).find("'c' has checkpoints of another run"),
            0u);
  toy.model.trainJson = nullptr;
  ASSERT_EQ(save("b", 2).status, 0);
  EXPECT_EQ(refusal(save("a", 5, {"--resume", path("b")})),
            "'a' has checkpoints of this run, up to step 4; --resume auto goes "
            "on from there, or name another folder to begin anew");
  // Going on from an earlier one, later ones are those of another future.
  Outcome other = save("a", 3, {"--resume", path("a/step-00000002")});
  EXPECT_EQ(other.status, 0) << other.err;
  EXPECT_EQ(list("a"), "LATEST step-00000002 step-00000003 step-00000004.old ");
  // Somebody else's lock.
  int lock = open(path("a").c_str(), O_RDONLY);
  ASSERT_EQ(flock(lock, LOCK_SH), 0); // Even one that others may share.
  EXPECT_EQ(refusal(save("a", 5, {"--resume=auto"})),
            "cannot save in 'a': another run does");
  close(lock);
  folder.write("file", "");
  EXPECT_EQ(refusal(save("file", 1)), "cannot save in 'file': Not a directory");
  EXPECT_EQ(refusal(save("file/a", 1)),
            "cannot save in 'file/a': Not a directory");
}

TEST_F(Checkpoints, AnotherRunIsRefusedWithBothValues) {
  ASSERT_EQ(save("a", 2).status, 0);
  const std::string end = "; --init-from a/step-00000002 begins a new run with "
                          "its parameters";
  const std::string own = "; what reprisec makes of "
                          "'a/step-00000002/description.yaml' goes on from it";
  EXPECT_EQ(refusal(save("a", 4, {"--resume=auto", "--seed=7"})),
            "'a/step-00000002' was trained with --seed 1, but this run has 7" +
                end);
  EXPECT_EQ(
      refusal(save("a", 4, {"--resume=auto", "--data-order=sequential"})),
      "'a/step-00000002' was trained with --data-order shuffled, but this "
      "run has sequential" +
          end);
  toy.model.name = "another";
  EXPECT_EQ(refusal(save("a", 4, {"--resume=auto"})),
            "'a/step-00000002' is of the model 'toy \"bigram\"', but this "
            "program trains 'another'" +
                own);
  toy.model.name = "toy \"bigram\"";
  auto with = [&](auto &field, int value) {
    auto before = field;
    field = value;
    std::string text = refusal(save("a", 4, {"--resume=auto"}));
    field = before;
    const std::string start = "'a/step-00000002' ";
    return text.rfind(start, 0) ? text : text.substr(start.size());
  };
  EXPECT_EQ(with(toy.model.numMicroBatches, 1),
            "was trained with micro-batches (global_batch_size / "
            "micro_batch_size): 2, but this run has 1" +
                end);
  EXPECT_EQ(with(toy.model.microBatchSize, 2),
            "was trained with micro_batch_size 3, but this run has 2" + end);
  EXPECT_EQ(with(toy.model.seqLength, 20),
            "was trained with seq_length 21, but this run has 20" + end);
  EXPECT_EQ(with(toy.model.vocabSize, 200),
            "was trained with vocab_size 128, but this run has 200" + own);
  toy.model.configJson = "{\n  \"eps\": 1e-05,\n  \"tie\": true\n}\n";
  ASSERT_EQ(save("b", 2).status, 0);
  toy.model.configJson = "{\n  \"eps\": 1e-06,\n  \"tie\": true\n}\n";
  EXPECT_EQ(refusal(save("b", 4, {"--resume=auto"})),
            "'b/step-00000002/config.json' has eps 1e-05, but this program's "
            "model has 1e-06: its weights would compute something else");
  // What only training sees is not in the weights, but in the run.
  toy.model.configJson = "{\n  \"eps\": 1e-05,\n  \"embd_pdrop\": 0.1\n}\n";
  EXPECT_EQ(refusal(save("b", 4, {"--resume=auto"})),
            "'b/step-00000002/config.json' has the line '  \"tie\": true', but "
            "this program's model '  \"embd_pdrop\": 0.1'; --init-from "
            "b/step-00000002 begins a new run with its parameters");
  EXPECT_EQ(refusal(train({"--steps=4", "--resume", path("none")})),
            "'none' is no checkpoint, with a file trainer.json, nor a folder "
            "of checkpoints, step-00000001 or the like");
}

// One bit in any byte of any file, and any file cut off: refused, with the one
// before it offered. Every byte of the small files, some of the large ones.
TEST_F(Checkpoints, DamageIsFoundAndTheOneBeforeOffered) {
  toy.model.configJson = "{\n  \"model_type\": \"toy\"\n}\n";
  ASSERT_EQ(save("a", 2, {"--save-interval=1"}).status, 0);
  const std::string last = path("a/step-00000002/");
  int refused = 0;
  for (const char *name : {"config.json", "model.safetensors",
                           "optimizer.safetensors", "trainer.json"}) {
    const std::string good = readFile(last + name);
    ASSERT_GT(good.size(), 20u) << name;
    auto check = [&](const std::string &bytes, size_t at) {
      folder.write(std::string("a/step-00000002/") + name, bytes);
      std::string text = refusal(train({"--steps=4", "--resume", path("a")}));
      const std::string offer =
          "; the checkpoint of step 1 is good: --resume a/step-00000001";
      size_t end = text.size() - std::min(text.size(), offer.size());
      EXPECT_EQ(text.substr(end), offer) << name << " " << at << ": " << text;
      refused += text.substr(end) == offer;
    };
    size_t stride = std::max<size_t>(1, good.size() / 60);
    for (size_t at = 0; at < good.size() && !HasFailure(); at += stride) {
      std::string damaged = good;
      damaged[at] = char(damaged[at] ^ 1 << at % 8);
      check(damaged, at);
      check(good.substr(0, at), at);
    }
    check(good + " ", good.size());
    folder.write(std::string("a/step-00000002/") + name, good);
    std::filesystem::rename(last + name, last + "gone");
    EXPECT_NE(
        refusal(train({"--steps=4", "--resume", path("a")}))
            .find("No such file or directory; the checkpoint of step 1 is "
                  "good"),
        std::string::npos);
    std::filesystem::rename(last + "gone", last + name);
  }
  EXPECT_GT(refused, 400);
  EXPECT_EQ(train({"--steps=3", "--resume", path("a")}).status, 0);
  // With the one before damaged, too, there is nothing to offer.
  folder.write("a/step-00000002/config.json", "");
  folder.write("a/step-00000001/optimizer.safetensors", "");
  EXPECT_EQ(refusal(train({"--steps=4", "--resume", path("a")})),
            "'a/step-00000002/config.json' is damaged: it needs 26 bytes, but "
            "has 0; no earlier one is good");
}

TEST_F(Checkpoints, OneThatLacksItsFileIsDamaged) {
  ASSERT_EQ(save("a", 2, {"--save-interval=1"}).status, 0);
  std::filesystem::remove(path("a/step-00000002/trainer.json"));
  for (const char *name : {"a", "a/step-00000002", "a/step-00000002/"})
    EXPECT_EQ(refusal(train({"--steps=4", "--resume", path(name)})),
              "cannot read 'a/step-00000002/trainer.json': No such file or "
              "directory; the checkpoint of step 1 is good: --resume "
              "a/step-00000001");
  EXPECT_EQ(refusal(train({"--steps=4", "--resume", path("a/step-00000007")})),
            "'a/step-00000007' is no checkpoint, with a file trainer.json, nor "
            "a folder of checkpoints, step-00000001 or the like");
}

// A run that goes on says what is not as it was.
TEST_F(Checkpoints, OfOtherDataOneIsWarned) {
  auto notes = [](const Outcome &outcome) {
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::string text;
    std::regex line("\\{\"event\":\"(?:note|warning)\",(.*)\\}");
    for (std::sregex_iterator i(outcome.out.begin(), outcome.out.end(), line),
         end;
         i != end; ++i)
      text += (*i)[1].str() + "\n";
    return text;
  };
  toy.model.trainJson = "{\n  \"lr\": 0.05\n}";
  ASSERT_EQ(save("a", 2).status, 0);
  auto resumed = [&] {
    return notes(train({"--steps=3", "--resume", path("a")}));
  };
  EXPECT_EQ(resumed(), "");
  toy.model.trainJson = "{\n  \"lr\": 5e-2,\n  \"clip_grad\": 1\n}";
  EXPECT_EQ(resumed(), ""); // The same number; and a key of later versions.
  toy.model.trainJson = "{\n  \"lr\": 0.25\n}";
  EXPECT_EQ(resumed(), "\"warning\":\"lr 0.05 then, 0.25 now\"\n");
  // For people it stands on standard error, before the table.
  Outcome shown = run(
      {"--data", data, "--steps=3", "--resume", path("a"), "--peak-flops=1e9"},
      toy.model);
  EXPECT_EQ(shown.err, "warning: lr 0.05 then, 0.25 now\n");
  EXPECT_EQ(shown.out.find("lr 0.05"), shown.out.npos) << shown.out;
  toy.model.trainJson = "{\n  \"lr\": 0.05\n}";
  // No data is no other data; and what was known of it is kept.
  EXPECT_EQ(notes(run({"--steps=0", "--resume", path("a"), "--save", path("b"),
                       "--log-format=json"},
                      toy.model)),
            "");
  EXPECT_EQ(notes(train({"--steps=2", "--resume", path("a")})),
            "\"note\":\"step 2 is finished, so nothing is left to do; --steps "
            "3 or more goes on\"\n");
  std::string text = readFile(data);
  text[5] = '!';
  std::ofstream(data, std::ios::binary) << text;
  EXPECT_TRUE(std::regex_match(
      resumed(), std::regex("\"warning\":\"the data has as many tokens as "
                            "then, but others \\(checksum [0-9a-f]{8} then, "
                            "[0-9a-f]{8} now\\), so other samples may "
                            "follow\"\n")))
      << resumed();
  std::ofstream(data, std::ios::binary) << text << "more";
  EXPECT_EQ(resumed(),
            "\"warning\":\"the data had 13,800 tokens then, so other samples "
            "may follow\"\n");
}

TEST_F(Checkpoints, WithOthersFrozenOneIsToldTheWayOut) {
  ASSERT_EQ(save("a", 2).status, 0);
  // The bias is frozen: it has no moments.
  for (int i = 0; i < toy.model.numStates; ++i) {
    const RepriseState &state = toy.model.states[i];
    if (strcmp(state.name, "bias") || (state.kind != REPRISE_STATE_MOMENT1 &&
                                       state.kind != REPRISE_STATE_MOMENT2))
      states.push_back(state);
  }
  toy.model.states = states.data();
  toy.model.numStates = int32_t(states.size());
  EXPECT_EQ(refusal(train({"--steps=4", "--resume", path("a")})),
            "'a/step-00000002' has 3 parameters and 6 moments, but the model "
            "has 3 and 4; are others frozen (train.frozen)? --init-from "
            "a/step-00000002 begins a new run with its parameters");
}

// What was saved is what others read, and read back it is saved alike.
TEST_F(Checkpoints, WeightsGoInAndOutUnchanged) {
  publishAsParts();
  ASSERT_EQ(save("a", 2).status, 0);
  const std::string first = path("a/step-00000002");
  for (const std::string &from : {first, first + "/model.safetensors"}) {
    std::filesystem::remove_all(path("b"));
    Outcome again = save("b", 0, {"--init-from", from});
    ASSERT_EQ(again.status, 0) << again.err;
    EXPECT_NE(again.out.find("\"event\":\"weights\",\"path\":\"" + from +
                             "\",\"tensors\":2,\"files\":1,\"bytes\":25088}"),
              again.out.npos)
        << again.out;
    EXPECT_TRUE(readFile(path("b/step-00000000/model.safetensors")) ==
                readFile(first + "/model.safetensors"));
  }
  // What is no tensor goes along as it is, also from step to step.
  folder.write("a/step-00000002/tokenizer.json", "{\"x\": 1}");
  folder.write("a/step-00000002/merges.txt", "");
  folder.write("a/step-00000002/secret.json", "");
  ASSERT_EQ(save("c", 1, {"--init-from", first}).status, 0);
  ASSERT_EQ(save("c", 2, {"--resume=auto"}).status, 0);
  EXPECT_EQ(list("c/step-00000002"), "config.json merges.txt model.safetensors "
                                     "optimizer.safetensors tokenizer.json "
                                     "trainer.json ");
  EXPECT_EQ(readFile(path("c/step-00000002/tokenizer.json")), "{\"x\": 1}");
  // The moments start anew.
  EXPECT_FALSE(readFile(path("b/step-00000000/optimizer.safetensors")) ==
               readFile(first + "/optimizer.safetensors"));
}
