//===- SavesTest.cpp - What a run keeps when it does not end well ---------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckpointRun.h"

#include "runtime/base/FreeMemory.h"
#include "runtime/trainer/Interrupts.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

using namespace reprise::runtime;
using namespace reprise::runtime::test;

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

// Nobody reads the log any more.
TEST_F(Checkpoints, AClosedPipeEndsARunWithAnError) {
  int out[2], err[2];
  ASSERT_TRUE(pipe(out) == 0 && pipe(err) == 0);
  fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    signal(SIGPIPE, SIG_DFL);
    dup2(out[1], 1);
    dup2(err[1], 2);
    for (int file : {out[0], out[1], err[0], err[1]})
      close(file);
    std::string to = path("a");
    const char *args[] = {"train",
                          "--data",
                          data.c_str(),
                          "--peak-flops=1e9",
                          "--threads=1",
                          "--save",
                          to.c_str(),
                          "--steps=1000000",
                          "--save-interval=1",
                          "--keep-last=2",
                          "--log-format=json"};
    _exit(
        runProgram(int(std::size(args)), const_cast<char **>(args), toy.model));
  }
  close(out[1]);
  close(err[1]);
  auto next = [](int file, std::string &text) {
    char bytes[4096];
    ssize_t count = read(file, bytes, sizeof(bytes));
    text.append(bytes, size_t(std::max<ssize_t>(count, 0)));
    return count > 0;
  };
  std::string log, message;
  while (log.find("\"event\":\"saved\"") == log.npos && next(out[0], log))
    ;
  close(out[0]);
  while (next(err[0], message))
    ;
  close(err[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(message.find("train: error: cannot write the log: Broken pipe. The "
                         "last checkpoint is '" +
                         path("a/step-")),
            0u)
      << message;
}

TEST_F(Checkpoints, ADiskThatIsFullLeavesTheGoodOne) {
  ASSERT_EQ(save("a", 1).status, 0);
  const std::string before = readFile(path("a/step-00000001/trainer.json"));
  EXPECT_EQ(expectTriedAgain("a", 30'000, ""),
            "cannot save step 9 in 'a/step-00000009': File too large. The last "
            "checkpoint is 'a/step-00000001'");
  EXPECT_EQ(readFile(path("a/step-00000001/trainer.json")), before);
  EXPECT_EQ(save("a", 3, {"--resume=auto"}).status, 0);
}

TEST_F(Checkpoints, WhenALossIsNoNumberTheLastGoodOneIsNamed) {
  toy.model.learningRate = 1e38;
  Outcome outcome = save("a", 9, {"--save-interval=1"});
  EXPECT_NE(refusal(outcome).find(". The last checkpoint is 'a/step-00000001'"),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(list("a"), "LATEST step-00000001 ");
}

/// In the third step, which the correction tells, a number that is none.
static void spoil(void *const *b, const int64_t *, int64_t, int64_t) {
  if (*f32(b, 0) > 0.25f)
    *f32(b, 1) = NAN;
}

// The update leaves the states alone then, so they are those of the step
// before, wherever the number comes from.
TEST_F(Checkpoints, ANumberThatIsNoneSavesTheStepBefore) {
  ASSERT_EQ(save("good", 2).status, 0);
  ASSERT_EQ(save("whole", 4).status, 0);
  const std::vector<RepriseLaunch> before = toy.micro;
  for (const char *what : {"loss", "gradient norm"}) {
    const RepriseState *gradient = toy.model.states;
    while (gradient->kind != REPRISE_STATE_GRADIENT)
      ++gradient;
    toy.addLaunch(toy.micro, "spoil", spoil, 1,
                  {toy.model.biasCorrection1,
                   !strcmp(what, "loss") ? toy.model.loss : gradient->buffer});
    toy.finish();
    const std::string name = what;
    // Also where the host looks before the update.
    for (std::vector<std::string> apart :
         {std::vector<std::string>(), {"--skip-loss-z=100"}}) {
      Outcome outcome = save(name, 4, apart);
      std::string text = refusal(outcome);
      EXPECT_EQ(text.find("the " + name + " of step 3 is nan"), 0u) << text;
      EXPECT_NE(text.find("; parameters are as step 2 left them. "), text.npos);
      EXPECT_NE(
          text.find(". The last checkpoint is '" + name + "/step-00000002'"),
          text.npos)
          << text;
      EXPECT_NE(outcome.out.find("\"event\":\"saved\""), text.npos);
      EXPECT_EQ(different("good/step-00000002", name + "/step-00000002"), "");
      // It comes to the same again, and has nothing to save.
      EXPECT_EQ(refusal(save(name, 4, {"--resume=auto"})), text);
      EXPECT_EQ(list(name), "LATEST step-00000002 ");
      std::filesystem::remove_all(path(name + ".before"));
      std::filesystem::rename(path(name), path(name + ".before"));
    }
    toy.micro = before;
    toy.finish();
    const std::string saved = path(name + ".before/step-00000002");
    ASSERT_EQ(save(name, 4, {"--resume", saved}).status, 0);
    EXPECT_EQ(different("whole/step-00000004", name + "/step-00000004"), "");
  }
}

// Of the first step there is nothing to lose.
TEST_F(Checkpoints, AnErrorInTheFirstStepSavesNothing) {
  toy.addLaunch(toy.micro, "spoil",
                [](void *const *b, const int64_t *, int64_t, int64_t) {
                  *f32(b, 0) = NAN;
                },
                1, {toy.model.loss});
  toy.finish();
  std::string text = refusal(save("a", 4));
  EXPECT_EQ(text.find("the loss of step 1 is nan"), 0u) << text;
  EXPECT_EQ(text.find("checkpoint"), text.npos) << text;
  EXPECT_EQ(list("a"), "");
}

// The update itself has made them useless.
TEST_F(Checkpoints, ParametersThatAreNoNumbersAreNotSaved) {
  ASSERT_EQ(save("a", 2).status, 0);
  toy.model.learningRate = 1e39; // Infinite in f32.
  std::string text = refusal(save("a", 9, {"--resume=auto"}));
  EXPECT_TRUE(std::regex_search(
      text, std::regex("^the loss of step 4 is .*. Parameters are of no use "
                       "after step 3, and not saved: '[a-z.]+' is "
                       "-?(nan|inf) at element 0. The last checkpoint is "
                       "'a/step-00000002'$")))
      << text;
  EXPECT_EQ(list("a"), "LATEST step-00000002 ");
  // Neither is the one that has them the last good one.
  text = refusal(save("a", 9, {"--resume=auto", "--save-interval=1"}));
  EXPECT_NE(text.find(" after step 3, and not saved again (they are in "),
            text.npos)
      << text;
  EXPECT_NE(text.find(". The last checkpoint is 'a/step-00000002'"), text.npos)
      << text;
}

static const char *cutFile;

// Good parameters are kept, whatever else is wrong.
TEST_F(Checkpoints, DataThatGoSaveTheStepsBefore) {
  const std::string whole = readFile(data);
  cutFile = data.c_str();
  toy.addLaunch(toy.update, "cut",
                [](void *const *b, const int64_t *, int64_t, int64_t) {
                  if (*f32(b, 0) > 0.25f) // The correction of the third step.
                    EXPECT_EQ(truncate(cutFile, 1000), 0);
                },
                1, {toy.model.biasCorrection1});
  toy.finish();
  Outcome outcome = save("a", 90, {"--data-order=sequential", "--threads=1"});
  std::string text = refusal(outcome);
  const std::string said = "; files must not be changed while they are read. "
                           "The last checkpoint is 'a/step-000000";
  EXPECT_NE(text.find(said), text.npos) << text;
  // Some of the data may have been read before; what is saved is what a run has
  // that ends there.
  int steps = atoi(text.c_str() + text.find(said) + said.size());
  EXPECT_GE(steps, 3);
  EXPECT_LT(steps, 10);
  std::ofstream(data, std::ios::binary) << whole;
  ToyModel other;
  toy.update = other.update;
  toy.finish();
  ASSERT_EQ(save("b", steps, {"--data-order=sequential"}).status, 0);
  const std::string step = "/step-0000000" + std::to_string(steps);
  EXPECT_EQ(different("a" + step, "b" + step), "");
}

TEST_F(Checkpoints, AFullDiskUnderATableSavesTheStepThatIsDone) {
  const std::string table = folder.path + "t.csv";
  // The parameters have 25 kB, their moments 50; a row of the table has 90.
  Outcome outcome =
      saveInto(90'000, "a", 9000, {"--csv", table, "--log-interval=9000"});
  std::string text = refusal(outcome);
  EXPECT_EQ(text.find("cannot write 't.csv': File too large. The last "
                      "checkpoint is 'a/step-"),
            0u)
      << text;
  // The row that found no room is of the last step that was done.
  std::string rows = readFile(table);
  int64_t last = std::count(rows.begin(), rows.end(), '\n');
  char name[32];
  snprintf(name, sizeof(name), "step-%08" PRId64, last);
  EXPECT_GT(last, 100);
  EXPECT_EQ(list("a"), "LATEST " + std::string(name) + " ");
}

//===----------------------------------------------------------------------===//
// Room on the disk
//===----------------------------------------------------------------------===//

/// What the disk has left; -1: what it says.
static int64_t diskBytes = -1;

extern "C" {
int __real_statvfs(const char *path, struct statvfs *info);
int __wrap_statvfs(const char *path, struct statvfs *info) {
  const int code = __real_statvfs(path, info);
  if (diskBytes >= 0)
    info->f_blocks = 1 << 20, info->f_frsize = 1,
    info->f_bavail = fsblkcnt_t(diskBytes);
  return code;
}
}

TEST_F(Checkpoints, ADiskThatIsTooSmallIsSaidAtTheStart) {
  const int64_t bytes = 3 * 4 * (2 * kVocab * kWidth + kVocab); // 73.5 KiB
  auto warning = [&](int64_t left, const std::string &name, int steps,
                     std::vector<std::string> args) {
    diskBytes = left;
    Outcome outcome = save(name, steps, args);
    diskBytes = -1;
    EXPECT_EQ(outcome.status, 0) << outcome.err; // It is no refusal.
    const std::string key = "{\"event\":\"warning\",\"warning\":\"";
    size_t at = outcome.out.find(key);
    if (at == outcome.out.npos)
      return std::string();
    at += key.size();
    std::string text = outcome.out.substr(at, outcome.out.find('"', at) - at);
    return text.substr(text.find(" has ") + 1);
  };
  EXPECT_EQ(warning(bytes, "a", 5, {}), "");
  const std::string one = "left on its disk, but a checkpoint of this run "
                          "takes 73.50 KiB";
  EXPECT_EQ(warning(600, "b", 5, {}), "has 600 B " + one);
  // After steps 2 and 4, and the last one.
  EXPECT_EQ(warning(3 * bytes, "c", 5, {"--save-interval=2"}), "");
  EXPECT_EQ(warning(3 * bytes - 1, "d", 5, {"--save-interval=2"}),
            "has 220.50 KiB " + one +
                ", and up to 3 lie there at a time; "
                "--keep-last 2 takes room for 3");
  EXPECT_EQ(warning(4 * bytes, "e", 4, {"--save-interval=1"}), "");
  EXPECT_EQ(warning(3 * bytes, "f", 9, {"--save-interval=1", "--keep-last=2"}),
            "");
  EXPECT_EQ(
      warning(3 * bytes - 1, "g", 9, {"--save-interval=1", "--keep-last=2"}),
      "has 220.50 KiB " + one + ", and up to 3 lie there at a time");
  // What is there has its place: there is one more until the next is whole.
  EXPECT_EQ(warning(bytes, "g", 20,
                    {"--save-interval=1", "--keep-last=2", "--resume=auto"}),
            "");
  EXPECT_EQ(warning(bytes - 1, "g", 29,
                    {"--save-interval=1", "--keep-last=2", "--resume=auto"}),
            "has 73.50 KiB " + one);
  EXPECT_EQ(warning(0, "g", 29, {"--resume=auto"}), ""); // Nothing to write.
}

//===----------------------------------------------------------------------===//
// Room for the copy
//===----------------------------------------------------------------------===//

TEST_F(Checkpoints, ABudgetHasRoomForTheCopyOrThereIsNone) {
  const int64_t copy = 3 * 4 * (2 * kVocab * kWidth + kVocab);
  auto saved = [&](int64_t budget, const std::string &name,
                   std::vector<std::string> args) {
    toy.model.budgetBytes = budget;
    Outcome outcome = save(name, 2, args);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    size_t at = outcome.out.find("\"event\":\"saving\"");
    std::string line = outcome.out.substr(at, outcome.out.find('\n', at) - at);
    return line.substr(line.find("\"from\""));
  };
  const std::string isCopied = "\"from\":\"copy\",\"copy_bytes\":" +
                               std::to_string(copy) + "}",
                    isNot = "\"from\":\"arena\",\"copy_bytes\":0}";
  const int64_t plan = toy.model.arenaBytes;
  EXPECT_EQ(saved(plan + copy, "a", {}), isCopied);
  EXPECT_EQ(saved(plan + copy - 1, "b", {}), isNot);
  EXPECT_EQ(saved(plan, "c", {"--save-from=copy"}), isCopied);
  EXPECT_EQ(saved(plan + copy, "d", {"--save-from=arena"}), isNot);
  for (const char *other : {"b", "c", "d"})
    EXPECT_EQ(
        different("a/step-00000002", std::string(other) + "/step-00000002"),
        "");
  toy.model.budgetBytes = plan + 10;
  Outcome text =
      run({"--data", data, "--steps=1", "--save", path("e")}, toy.model);
  EXPECT_NE(text.out.find("at the end, from the plan's memory, while no step "
                          "runs: a copy of 73.50 KiB is more than the 10 B "
                          "that the budget leaves\n"),
            text.out.npos)
      << text.out;
}

TEST(FreeMemory, IsTheLeastThatAGroupLeaves) {
  Folder folder;
  auto write = [&](const std::string &name, const std::string &text) {
    std::filesystem::path path = folder.path + name;
    std::filesystem::create_directories(path.parent_path());
    folder.write(name, text);
  };
  auto free = [&](const std::string &groups) {
    write("groups", groups);
    return freeInGroups((folder.path + "groups").c_str(),
                        (folder.path + "mount").c_str());
  };
  EXPECT_EQ(free(""), kUnlimited);
  EXPECT_EQ(free("0::/job/step\n"), kUnlimited);
  EXPECT_EQ(freeInGroups("/no/such/file", "/no/such/folder"), kUnlimited);
  // Version 2: without limits, with one above, with a tighter one.
  write("mount/job/step/memory.max", "max\n");
  write("mount/job/step/memory.current", "700\n");
  EXPECT_EQ(free("0::/job/step\n"), kUnlimited);
  write("mount/job/memory.max", "1000\n");
  write("mount/job/memory.current", "800\n");
  EXPECT_EQ(free("0::/job/step\n"), 200);
  write("mount/job/memory.stat",
        "anon 600\nfile 200\ninactive_file 90\nactive_file 40\n");
  EXPECT_EQ(free("0::/job/step\n"), 330);
  write("mount/job/step/memory.max", "710\n");
  EXPECT_EQ(free("0::/job/step\n"), 10);
  EXPECT_EQ(free("0::/job/other\n"), 330);
  write("mount/job/step/memory.max", "500\n");
  EXPECT_EQ(free("0::/job/step\n"), 0);
  // In a container its own group is the topmost, whatever its name.
  write("mount/memory.max", "50\n");
  write("mount/memory.current", "20\n");
  EXPECT_EQ(free("0::/elsewhere\n"), 30);
  EXPECT_EQ(free("0::/\n"), 30);
  // Version 1, beside a version 2 that has no memory.
  std::filesystem::remove_all(folder.path + "mount");
  write("mount/memory/a/memory.limit_in_bytes", "4096\n");
  write("mount/memory/a/memory.usage_in_bytes", "1096\n");
  write("mount/memory/a/memory.stat",
        "inactive_file 1\ntotal_inactive_file 96\ntotal_active_file 0\n");
  EXPECT_EQ(free("9:name=systemd:/\n4:cpu,memory:/a\n3:memories:/b\n0::/\n"),
            3096);
  EXPECT_EQ(free("4:memoryx:/a\n"), kUnlimited);
}

//===----------------------------------------------------------------------===//
// Signals
//===----------------------------------------------------------------------===//

static int raised = 0;

TEST_F(Checkpoints, AnInterruptSavesItsStep) {
  toy.addLaunch(
      toy.update, "signal",
      [](void *const *, const int64_t *, int64_t, int64_t) { raise(raised); },
      1, {});
  toy.finish();
  for (int each : {SIGINT, SIGTERM, SIGHUP}) {
    raised = each;
    std::string name = "a" + std::to_string(each);
    Outcome outcome = save(name, 9, {"--save-interval=5"});
    EXPECT_EQ(outcome.status, 4) << outcome.err;
    // This step is short, and may be done when it is said.
    EXPECT_TRUE(std::regex_match(
        outcome.err, std::regex("interrupted: (finishing step 1 and )?saving"
                                "( step 1)?; Ctrl-C again ends without "
                                "saving\n")))
        << outcome.err;
    EXPECT_EQ(list(name), "LATEST step-00000001 ");
  }
  // As under nohup, and in the background of a script.
  for (int each : {SIGHUP, SIGINT}) {
    raised = each;
    signal(each, SIG_IGN);
    std::string name = "b" + std::to_string(each);
    EXPECT_EQ(save(name, 3).status, 0);
    EXPECT_EQ(list(name), "LATEST step-00000003 ");
    signal(each, SIG_DFL);
  }
}

// Twice at once is what a shell or a scheduler does; it is one interrupt.
TEST_F(Checkpoints, ASignalThatComesTwiceIsOne) {
  toy.addLaunch(toy.update, "signal",
                [](void *const *, const int64_t *, int64_t, int64_t) {
                  raise(SIGINT);
                  raise(SIGINT);
                  raise(SIGTERM);
                  raise(SIGHUP);
                },
                1, {});
  toy.finish();
  EXPECT_EQ(save("a", 9).status, 4);
  EXPECT_EQ(list("a"), "LATEST step-00000001 ");
}

/// Waits until a second signal is one of its own.
static void passTheTimeTogether() {
  usleep(useconds_t(Interrupts::kTogether + 1) * 1000);
}

TEST_F(Checkpoints, ASecondSignalEndsTheRunAtOnce) {
  toy.addLaunch(toy.update, "signal",
                [](void *const *, const int64_t *, int64_t, int64_t) {
                  raise(SIGTERM);
                  passTheTimeTogether();
                  raise(SIGHUP); // That of a terminal that closes is none.
                  passTheTimeTogether();
                  raise(SIGINT);
                },
                1, {});
  toy.finish();
  fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    save("a", 9);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
  EXPECT_EQ(list("a"), "");
}

static bool wasSaidAtOnce;

// Before the step that runs is done.
TEST_F(Checkpoints, AnInterruptIsAnsweredAtOnce) {
  toy.addLaunch(toy.update, "signal",
                [](void *const *b, const int64_t *, int64_t, int64_t) {
                  if (*f32(b, 0) < 0.25f) // The correction of the third step.
                    return;
                  raise(SIGTERM);
                  struct stat info = {};
                  for (int i = 0; i < 10000 && info.st_size == 0; ++i) {
                    usleep(1000);
                    fstat(STDERR_FILENO,
                          &info); // A file, while it is captured.
                  }
                  wasSaidAtOnce = info.st_size > 0;
                },
                1, {toy.model.biasCorrection1});
  toy.finish();
  wasSaidAtOnce = false;
  Outcome outcome = save("a", 9);
  EXPECT_TRUE(wasSaidAtOnce);
  EXPECT_EQ(outcome.status, 4);
  EXPECT_EQ(outcome.err, "interrupted: finishing step 3 and saving; Ctrl-C "
                         "again ends without saving\n");
}

TEST(Interrupts, SayWhatComesAndHowLongItTakes) {
  auto text = [](Activity activity, double now, bool saves) {
    char text[256];
    describeInterrupt(activity, now, saves, text, sizeof(text));
    return std::string(text);
  };
  const Activity step = {Activity::Step, 2, 100, 18.8, 1.1};
  EXPECT_EQ(text(step, 102, true),
            "interrupted: finishing step 2 and saving (about 18 s); Ctrl-C "
            "again ends without saving");
  EXPECT_EQ(text(step, 102, false),
            "interrupted: finishing step 2 (about 17 s); Ctrl-C again ends at "
            "once");
  // Longer than was thought.
  EXPECT_EQ(text(step, 200, true),
            "interrupted: finishing step 2 and saving (about 1 s); Ctrl-C "
            "again ends without saving");
  EXPECT_EQ(text({Activity::Step, 1, 100, 0, 1.1}, 102, true),
            "interrupted: finishing step 1 and saving; Ctrl-C again ends "
            "without saving");
  EXPECT_EQ(text({Activity::Looking, 7, 0, 0, 200}, 1, true),
            "interrupted: saving step 7 (about 3:20); Ctrl-C again ends "
            "without saving");
  EXPECT_EQ(text({Activity::Looking, 7, 0, 0, 0}, 1, false),
            "interrupted: ending after step 7; Ctrl-C again ends at once");
  EXPECT_EQ(text({Activity::Saving, 9, 10, 30, 30}, 20, true),
            "interrupted: saving step 9 (about 20 s); Ctrl-C again ends "
            "without saving");
}

TEST_F(Checkpoints, SIGUSR1SavesAndTheRunGoesOn) {
  toy.addLaunch(toy.update, "signal",
                [](void *const *b, const int64_t *, int64_t, int64_t) {
                  // The corrections of the second and the third step are 0.19
                  // and 0.271.
                  if (*f32(b, 0) > 0.15f && *f32(b, 0) < 0.25f)
                    raise(SIGUSR1);
                },
                1, {toy.model.biasCorrection1});
  toy.finish();
  Outcome outcome = save("a", 4);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(list("a"), "LATEST step-00000002 step-00000004 ");
  outcome = train({"--steps=4"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\"SIGUSR1 saves, but there is no --save DIR\""),
            outcome.out.npos);
}
