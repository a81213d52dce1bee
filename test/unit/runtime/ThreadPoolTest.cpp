//===- ThreadPoolTest.cpp - Fork and join ---------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/ThreadPool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>
#include <vector>

using namespace reprise::runtime;

// Many small jobs in a row, so that threads come late to some of them.
TEST(ThreadPool, EveryTaskRunsOnceInEveryJob) {
  for (int threads : {1, 2, 3, 7}) {
    ThreadPool pool;
    Error error;
    ASSERT_TRUE(pool.start(threads, error)) << error.text;
    EXPECT_EQ(pool.size(), threads);
    for (int job = 0; job < 3000; ++job) {
      int64_t tasks = job % 41;
      std::vector<int> runs(size_t(tasks), 0);
      pool.parallelFor(tasks, 1 + job % 3,
                       [&](int, int64_t begin, int64_t end) {
                         for (int64_t i = begin; i < end; ++i)
                           ++runs[size_t(i)];
                       });
      ASSERT_EQ(runs, std::vector<int>(size_t(tasks), 1)) << "job " << job;
      if (job % 500 == 0)
        usleep(2000); // Longer than the threads spin: they must wake up.
    }
  }
}

// Few tasks for many threads, some of which sleep in them: others take the same
// task of the next round, and must wait, for longer than they spin.
TEST(ThreadPool, RoundsOfATaskComeOneAfterTheOther) {
  for (int threads : {1, 2, 3, 7}) {
    ThreadPool pool;
    Error error;
    ASSERT_TRUE(pool.start(threads, error)) << error.text;
    for (int job = 0; job < 300; ++job) {
      const int64_t rounds = 1 + job % 5, tasks = job % 13;
      std::vector<int64_t> over(size_t(tasks), 0);
      std::atomic<bool> isInOrder{true};
      pool.parallelRounds(
          rounds, tasks, [&](int slot, int64_t round, int64_t task) {
            if (over[size_t(task)] != round || slot < 0 || slot >= threads)
              isInOrder = false;
            if ((job + round + task) % 20 == 0)
              usleep(300);
            ++over[size_t(task)];
          });
      ASSERT_TRUE(isInOrder) << "job " << job;
      ASSERT_EQ(over, std::vector<int64_t>(size_t(tasks), rounds));
    }
  }
}

TEST(ThreadPool, NobodyWaitsForTheEndOfARound) {
  ThreadPool pool;
  Error error;
  ASSERT_TRUE(pool.start(2, error)) << error.text;
  constexpr int64_t kRounds = 3;
  std::atomic<int64_t> others{0};
  pool.parallelRounds(kRounds, 2, [&](int, int64_t round, int64_t task) {
    if (task == 1)
      others = round + 1;
    for (int i = 0; task == 0 && round == 0 && others < kRounds && i < 20000;
         ++i)
      usleep(1000);
    if (task == 0 && round == 0)
      EXPECT_EQ(others, kRounds);
  });
}

// All wait for each other, so nobody takes what is another's.
TEST(ThreadPool, AThreadHasTheSamePartAndSlotInEveryJob) {
  constexpr int kThreads = 3;
  ThreadPool pool;
  Error error;
  ASSERT_TRUE(pool.start(kThreads, error)) << error.text;
  pthread_t owners[kThreads] = {};
  for (int job = 0; job < 100; ++job) {
    std::atomic<int> arrived{0};
    pool.parallelFor(kThreads, 1, [&](int slot, int64_t task, int64_t) {
      if (job == 0)
        owners[task] = pthread_self();
      else
        EXPECT_TRUE(pthread_equal(owners[task], pthread_self()))
            << "task " << task << ", job " << job;
      EXPECT_EQ(slot, task) << "job " << job;
      for (++arrived; arrived < kThreads;)
        sched_yield();
    });
  }
  EXPECT_TRUE(pthread_equal(owners[0], pthread_self()));
}

// Slots separate concurrent calls: a slot's scratch is never used twice at
// once.
TEST(ThreadPool, SlotsAreExclusiveAndBelowTheLimit) {
  ThreadPool pool;
  Error error;
  ASSERT_TRUE(pool.start(6, error)) << error.text;
  for (int limit : {1, 2, 4, 100}) {
    std::atomic<int> users[8] = {};
    std::atomic<bool> shared{false}, tooHigh{false};
    for (int job = 0; job < 20; ++job)
      pool.parallelFor(
          24, 1,
          [&](int slot, int64_t, int64_t) {
            tooHigh = tooHigh || slot >= limit || slot >= 6;
            shared = shared || ++users[slot] != 1;
            usleep(100); // Long enough for all threads to come.
            --users[slot];
          },
          limit);
    EXPECT_FALSE(shared);
    EXPECT_FALSE(tooHigh);
  }
}

TEST(ThreadPool, StartsAgainAfterAStop) {
  ThreadPool pool;
  Error error;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(pool.start(3, error)) << error.text;
    std::atomic<int64_t> sum{0};
    pool.parallelFor(100, 1,
                     [&](int, int64_t begin, int64_t) { sum += begin; });
    EXPECT_EQ(sum, 4950);
    pool.stop();
    EXPECT_EQ(pool.size(), 1);
  }
}

namespace {
/// The processors that this thread may use; back as they were at the end.
struct Allowed {
  cpu_set_t set;
  Allowed() { sched_getaffinity(0, sizeof(set), &set); }
  ~Allowed() { allowAll(); }
  void allowAll() const { sched_setaffinity(0, sizeof(set), &set); }
  void allowOne(int processor) const {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    sched_setaffinity(0, sizeof(one), &one);
  }
};
} // namespace

// Nobody needs to run for this: where a thread is, it has noted itself.
TEST(ThreadPlaces, TheHigherNumberLeavesASharedProcessor) {
  Allowed allowed;
  if (CPU_COUNT(&allowed.set) < 2)
    GTEST_SKIP() << "needs two processors";
  int first = sched_getcpu();
  static ThreadPlaces places;
  places.start(2);
  allowed.allowOne(first);
  places.lookNow(1);
  places.lookNow(0);
  places.lookNow(1); // There is no other processor to go to.
  EXPECT_EQ(sched_getcpu(), first);

  // Allowed to go everywhere, a thread still stays where it is.
  allowed.allowAll();
  places.lookNow(0);
  EXPECT_EQ(sched_getcpu(), first) << "the lowest number stays";
  places.look(1);
  EXPECT_EQ(sched_getcpu(), first) << "it has just looked";
  places.lookNow(1);
  EXPECT_NE(sched_getcpu(), first);
  cpu_set_t now;
  sched_getaffinity(0, sizeof(now), &now);
  EXPECT_TRUE(CPU_EQUAL(&now, &allowed.set)) << "it may still go everywhere";
}

// With more threads than processors two must share one.
TEST(ThreadPlaces, CrowdsStayWhereTheyAre) {
  Allowed allowed;
  int first = sched_getcpu();
  static ThreadPlaces places;
  places.start(CPU_COUNT(&allowed.set) + 1);
  allowed.allowOne(first);
  places.lookNow(0);
  allowed.allowAll();
  places.lookNow(1);
  EXPECT_EQ(sched_getcpu(), first);
}
