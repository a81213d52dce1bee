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
#include <map>
#include <mutex>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace reprise::runtime::test;

//===----------------------------------------------------------------------===//
// The calls
//===----------------------------------------------------------------------===//

namespace {

/// What a machine that stops would lose: files, and changes of folders, that
/// nobody has waited for the disk to have (fsync). Names have one each of `/`.
class Disk {
public:
  void opened(int file, const std::string &name, bool isNew) {
    std::lock_guard lock(mutex);
    names[file] = name;
    if (isNew)
      changed(name);
  }
  void wrote(int file) {
    std::lock_guard lock(mutex);
    auto name = names.find(file);
    if (name == names.end())
      return;
    unsynced.insert(name->second);
    if (folderOf(name->second).find("/step-") != std::string::npos)
      checkSignals();
  }
  void synced(int file) {
    std::lock_guard lock(mutex);
    auto name = names.find(file);
    if (name == names.end())
      return;
    unsynced.erase(name->second);
    renamedIn.erase(name->second);
  }
  void closed(int file) {
    std::lock_guard lock(mutex);
    names.erase(file);
  }
  void renamed(const std::string &from, const std::string &to) {
    std::lock_guard lock(mutex);
    const std::string folder = folderOf(to);
    if (endsWith(from, ".tmp")) {
      ++renames;
      for (const std::string &name : unsynced)
        if (name == from || name.rfind(from + "/", 0) == 0)
          problems += "rename " + from + " before fsync " + name + "\n";
    }
    // The newest one is there before LATEST says so, and LATEST says so before
    // an old one goes.
    if ((endsWith(to, "/LATEST") || endsWith(to, ".tmp")) &&
        renamedIn.count(folder))
      problems += "rename " + from + " before fsync " + folder + "\n";
    renamedIn.insert(folder);
    for (const std::string &name : std::set<std::string>(unsynced))
      if (name == from || name.rfind(from + "/", 0) == 0)
        unsynced.erase(name);
  }

  int renames = 0; ///< Of what was unfinished.
  std::string problems;

private:
  static bool endsWith(const std::string &name, const std::string &end) {
    return name.size() >= end.size() &&
           !name.compare(name.size() - end.size(), end.size(), end);
  }
  static std::string folderOf(const std::string &name) {
    return name.substr(0, name.rfind('/'));
  }
  void changed(const std::string &name) {
    unsynced.insert(name);
    unsynced.insert(folderOf(name));
  }
  /// Interrupts are for the thread that trains.
  void checkSignals() {
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    if (!sigismember(&blocked, SIGINT) || !sigismember(&blocked, SIGTERM))
      problems += "a write that a signal interrupts\n";
  }

  std::mutex mutex;
  std::map<int, std::string> names; ///< Of open files.
  std::set<std::string> unsynced, renamedIn;
};

/// Where calls are noted; null: nowhere.
Disk *disk = nullptr;

} // namespace

/// Whether the fault is in this call. Each is counted once: threads and other
/// ranks count, too.
static bool isCounted() {
  return fault != Fault::None && --callsUntilFault == 0;
}

static void fail() {
  if (fault == Fault::Kill)
    kill(getpid(), SIGKILL);
  errno = ENOSPC;
}

/// Whether this call fails; or the program ends.
static bool meetsFault() {
  if (!isCounted())
    return false;
  fail();
  return true;
}

static void announce(const char *call, const char *path) {
  if (beforeCall)
    beforeCall(call, path);
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
  announce("open", path);
  if (meetsFault())
    return -1;
  int file = __real_open(path, flags, mode);
  if (disk && file >= 0)
    disk->opened(file, path, flags & O_CREAT);
  return file;
}
ssize_t __wrap_write(int file, const void *bytes, size_t count) {
  if (disk)
    disk->wrote(file);
  if (!isCounted())
    return __real_write(file, bytes, count);
  if (fault == Fault::Kill)
    __real_write(file, bytes, count / 2);
  fail();
  return -1;
}
// Programs die here, not machines: nothing needs to get to the disk.
int __wrap_fsync(int file) {
  if (beforeCall) {
    char name[4096] = "";
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    if (readlink(link.c_str(), name, sizeof(name) - 1) > 0)
      announce("fsync", name);
  }
  if (disk)
    disk->synced(file);
  return meetsFault() ? -1 : 0;
}
int __wrap_close(int file) {
  if (disk)
    disk->closed(file);
  bool fails = meetsFault();
  int result = __real_close(file);
  return fails ? -1 : result;
}
int __wrap_mkdir(const char *path, mode_t mode) {
  announce("mkdir", path);
  return meetsFault() ? -1 : __real_mkdir(path, mode);
}
int __wrap_rmdir(const char *path) {
  announce("rmdir", path);
  return meetsFault() ? -1 : __real_rmdir(path);
}
int __wrap_rename(const char *from, const char *to) {
  if (disk)
    disk->renamed(from, to);
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
  int runWithFault(Fault kind, int call, std::string resume = "auto") {
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
          "train",     "--data",       data.c_str(),    "--peak-flops=1e9",
          "--steps=3", "--threads=1",  "--save",        save.c_str(),
          "--resume",  resume.c_str(), "--keep-last=2", "--save-interval=1"};
      int status = runProgram(int(std::size(args)), const_cast<char **>(args),
                              toy.model);
      // A number that is left says that the fault was beyond the last call.
      _exit(callsUntilFault > 0 ? 4 : status);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  /// Runs with each call that fails, until none does.
  void tryFailingCalls();

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
    if (std::string latest = readFile(path("a/LATEST")); !latest.empty()) {
      latest.pop_back();
      EXPECT_TRUE(std::filesystem::exists(path("a/" + latest))) << latest;
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
    EXPECT_EQ(readFile(path("b/LATEST")), "step-00000003\n");
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

/// Two ranks that have the same, and each write a part of it.
static constexpr RepriseAxis kTwo[] = {{"tp", 2, 0}};

// The same with two ranks, whose calls are counted together, and with the
// process that watches them: where one dies, all end.
TEST_F(Faults, WhicheverRankIsKilledARunGoesOnToTheSameBits) {
  toy.model.axes = kTwo;
  toy.model.numAxes = 1;
  int call = 1, watchers = 0;
  for (; call < 1000; ++call) {
    std::filesystem::remove_all(path("a"));
    hadCheckpoint = false;
    int status = runWithFault(Fault::Kill, call);
    if (HasFailure() || status == 4)
      break;
    ASSERT_TRUE(status == 1 || status == 128 + SIGKILL) << status;
    watchers += status != 1;
    check(call);
  }
  EXPECT_LT(call, 1000);
  EXPECT_GT(call, 100);
  EXPECT_GT(call, 2 * watchers);
}

void Faults::tryFailingCalls() {
  int call = 1, finished = 0;
  for (; call < 1000; ++call) {
    std::filesystem::remove_all(path("a"));
    hadCheckpoint = false;
    int status = runWithFault(Fault::Full, call);
    if (HasFailure() || status == 4)
      break;
    EXPECT_TRUE(status == 0 || status == 1) << status << " at " << call;
    if (status == 0) {
      ++finished;
      EXPECT_EQ(different("a/step-00000003", "whole/step-00000003"), "");
      EXPECT_EQ(readFile(path("a/LATEST")), "step-00000003\n");
    }
    check(call);
  }
  EXPECT_LT(call, 1000);
  EXPECT_GT(finished, 60);
}

// The same with a call that fails. Without some a run cannot begin; when a save
// fails, the next one takes its place, and the last one is tried again.
TEST_F(Faults, WhenACallFailsTheGoodOnesStay) { tryFailingCalls(); }

// The same with two ranks, of which any has the full disk.
TEST_F(Faults, WhenACallOfARankFailsTheGoodOnesStay) {
  toy.model.axes = kTwo;
  toy.model.numAxes = 1;
  tryFailingCalls();
}

// The same where later checkpoints are set aside: LATEST never names one that
// is not there.
TEST_F(Faults, KilledWhileLaterOnesAreSetAside) {
  int call = 1;
  for (; call < 1000; ++call) {
    std::filesystem::remove_all(path("a"));
    std::filesystem::copy(path("whole"), path("a"),
                          std::filesystem::copy_options::recursive);
    hadCheckpoint = true;
    int status = runWithFault(Fault::Kill, call, path("a/step-00000001"));
    if (HasFailure() || status == 4)
      break;
    ASSERT_EQ(status, 128 + SIGKILL) << call;
    check(call);
  }
  EXPECT_LT(call, 1000);
  EXPECT_GT(call, 100);
}

// Programs die above; a machine that stops loses what is not on its disk.
TEST_F(Faults, NothingHasItsNameBeforeItIsOnTheDisk) {
  Disk noted;
  disk = &noted;
  Outcome outcome =
      save("a", 3, {"--save-interval=1", "--keep-last=2", "--threads=1"});
  disk = nullptr;
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(noted.problems, "");
  EXPECT_EQ(noted.renames, 3 + 3); // Checkpoints, and LATEST.
}
