//===- FaultsTest.cpp - Saves that end at any moment ----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Faults.h"
#include "CheckpointRun.h"

#include <cerrno>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace reprise::runtime::test;

//===----------------------------------------------------------------------===//
// The calls
//===----------------------------------------------------------------------===//

/// Whether this call fails; or the program ends.
static bool meetsFault() {
  if (fault == Fault::None || --callsUntilFault != 0)
    return false;
  if (fault == Fault::Kill)
    kill(getpid(), SIGKILL);
  errno = ENOSPC;
  return true;
}

extern "C" {
int __real_open(const char *path, int flags, ...);
ssize_t __real_write(int file, const void *bytes, size_t count);
int __real_close(int file);
int __real_mkdir(const char *path, mode_t mode);
int __real_rmdir(const char *path);
int __real_rename(const char *from, const char *to);
int __real_unlink(const char *path);
int __real_unlinkat(int folder, const char *path, int flags);

int __wrap_open(const char *path, int flags, mode_t mode) {
  return meetsFault() ? -1 : __real_open(path, flags, mode);
}
ssize_t __wrap_write(int file, const void *bytes, size_t count) {
  if (fault == Fault::Kill && callsUntilFault == 1)
    __real_write(file, bytes, count / 2);
  return meetsFault() ? -1 : __real_write(file, bytes, count);
}
// Programs die here, not machines: nothing needs to get to the disk.
int __wrap_fsync(int) { return meetsFault() ? -1 : 0; }
int __wrap_close(int file) {
  bool fails = meetsFault();
  int result = __real_close(file);
  return fails ? -1 : result;
}
int __wrap_mkdir(const char *path, mode_t mode) {
  return meetsFault() ? -1 : __real_mkdir(path, mode);
}
int __wrap_rmdir(const char *path) {
  return meetsFault() ? -1 : __real_rmdir(path);
}
int __wrap_rename(const char *from, const char *to) {
  return meetsFault() ? -1 : __real_rename(from, to);
}
int __wrap_unlink(const char *path) {
  return meetsFault() ? -1 : __real_unlink(path);
}
int __wrap_unlinkat(int folder, const char *path, int flags) {
  return meetsFault() ? -1 : __real_unlinkat(folder, path, flags);
}
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

namespace {

class Faults : public Checkpoints {
protected:
  /// Trains to step 3 in folder "a" with a fault, in a process of its own.
  /// \returns its status, or that of a program that was killed.
  int runWithFault(Fault kind, int call) {
    fflush(nullptr);
    pid_t child = fork();
    if (child == 0) {
      if (!freopen("/dev/null", "w", stdout) ||
          !freopen("/dev/null", "w", stderr))
        _exit(3);
      callsUntilFault = call;
      fault = kind;
      std::string save = path("a");
      const char *args[] = {
          "train",     "--data",      data.c_str(),    "--peak-flops=1e9",
          "--steps=3", "--threads=1", "--save",        save.c_str(),
          "--resume",  "auto",        "--keep-last=2", "--save-interval=1"};
      int status = repriseMain(int(std::size(args)), const_cast<char **>(args),
                               &toy.model);
      // A number that is left says that the fault was beyond the last call.
      _exit(callsUntilFault > 0 ? 4 : status);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  /// Whatever has a checkpoint's name is what an undisturbed run wrote, at
  /// least one is there if one was, and the run can go on to the same end.
  void check(int call) {
    SCOPED_TRACE("call " + std::to_string(call));
    bool any = false;
    if (std::filesystem::exists(path("a")))
      for (auto &entry : std::filesystem::directory_iterator(path("a"))) {
        std::string name = entry.path().filename().string();
        if (name.rfind("step-", 0) == 0 && name.size() == 13) {
          EXPECT_EQ(different("a/" + name, "whole/" + name), "") << name;
          any = true;
        }
      }
    EXPECT_TRUE(any || !hadCheckpoint);
    hadCheckpoint = any;
    std::filesystem::remove_all(path("b"));
    if (any)
      std::filesystem::copy(path("a"), path("b"),
                            std::filesystem::copy_options::recursive);
    Outcome rest =
        save("b", 3, {"--resume=auto", "--keep-last=2", "--threads=1"});
    EXPECT_EQ(rest.status, 0) << rest.err;
    EXPECT_EQ(different("b/step-00000003", "whole/step-00000003"), "");
    EXPECT_EQ(list("b").find(".tmp"), std::string::npos) << list("b");
  }

  void SetUp() override {
    Checkpoints::SetUp();
    toy.model.configJson = "{}\n";
    ASSERT_EQ(save("whole", 3, {"--save-interval=1"}).status, 0);
  }

  bool hadCheckpoint = false;
};

} // namespace

// Killed at each call of a run that saves three times; and, going on from what
// that left, killed again at some other call.
TEST_F(Faults, KilledAtAnyCallARunGoesOnToTheSameBits) {
  int call = 1;
  for (; call < 1000; ++call) {
    std::filesystem::remove_all(path("a"));
    hadCheckpoint = false;
    int status = runWithFault(Fault::Kill, call);
    if (HasFailure() || status == 4)
      break;
    ASSERT_EQ(status, 128 + SIGKILL) << call;
    check(call);
    runWithFault(Fault::Kill, 1 + call * 7 % 53);
    check(call);
  }
  EXPECT_LT(call, 1000);
  EXPECT_GT(call, 100);
}

// The same with a call that fails. What cannot be closed or removed is no
// reason to stop; all else is.
TEST_F(Faults, WhenACallFailsTheGoodOnesStay) {
  int call = 1, stopped = 0;
  for (; call < 1000; ++call) {
    std::filesystem::remove_all(path("a"));
    hadCheckpoint = false;
    int status = runWithFault(Fault::Full, call);
    if (HasFailure() || status == 4)
      break;
    EXPECT_TRUE(status == 0 || status == 1) << status << " at " << call;
    stopped += status == 1;
    check(call);
  }
  EXPECT_LT(call, 1000);
  EXPECT_GT(stopped, 60);
}
