//===- Fibers.h - The threads of a running block ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each CUDA thread of the running block is a fiber. A fiber runs until it has
// to wait for others; then the scheduler switches to one that is ready. Fibers
// are left behind as they are when a kernel fails, so nothing on their stacks
// may need a destructor.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_SIMULATOR_FIBERS_H
#define REPRISE_TEST_SIMULATOR_FIBERS_H

#include "Simulator.h"
#include <vector>

namespace reprise::simulator {

constexpr unsigned kWarp = 32, kWarpGroup = 4, kMaxThreads = 1024,
                   kBarriers = 16;

/// Copies that a thread has begun; they land group by group.
struct Copy {
  char *to;
  const char *from;
  unsigned size, read; ///< what is beyond `read` bytes becomes zero
};

struct Fiber {
  void *stackPointer;
  unsigned thread[3];
  const char *waitsFor; ///< null while it can run
  int barrier;          ///< its number, where it waits for one
  bool ended;
  std::vector<Copy> copies;      ///< of all groups, in order
  std::vector<size_t> groupEnds; ///< in `copies`
  size_t landed, landedGroups;
};

/// Lanes of a warp that come together for one operation.
struct Meeting {
  uint32_t mask = 0, arrived = 0;
  const char *operation = nullptr;
  int place = 0;
};

struct Warp {
  uint32_t present, ready, ended; ///< a bit for each lane
  std::vector<Meeting> meetings;
  int place; ///< of the aligned barrier at which its first lane waits
  uint32_t in[kWarp][10], out[kWarp][4];
  // MMAs by warp group.
  float *sums[kWarp];          ///< of one of them, on the lanes' stacks
  uint64_t matrices[kWarp][2]; ///< its factors, as described, or 0
  unsigned groupsEnded;        ///< by wgmma.commit_group
  /// By the place of an MMA, the number of groups that ended before it.
  std::vector<unsigned> groupOf;
  size_t begun; ///< of the MMAs of its warp group
};

/// What an MMA by warp group is of; all four warps have the same ones.
struct GroupMma {
  int place;
  uint64_t a, b; ///< descriptions of matrices, or 0
};

struct Barrier {
  unsigned arrived = 0, expected = 0; ///< 0: all threads that have not ended
  unsigned yes = 0;                   ///< how many came with a true predicate
  unsigned lastYes = 0, lastArrived = 0;
};

/// The one block that runs.
struct Block {
  const char *kernel;
  uint32_t grid[3], size[3], index[3];
  unsigned threads, alive, current;
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  /// Of each four warps, in the order in which they begin.
  std::vector<std::vector<GroupMma>> groupMmas;
  Barrier barriers[kBarriers];

  Fiber &fiber() { return fibers[current]; }
  Warp &warp() { return warps[current / kWarp]; }
  unsigned lane() const { return current % kWarp; }
};

extern Block block;
extern SimulatorOptions options;
extern SimulatorCounts counts;

/// Runs `block` until all its threads have ended, each having called `entry`;
/// false if one failed.
bool runBlock(void (*entry)());

/// Gives up the launch: the text becomes its error, with kernel, block and
/// thread. Needs a running block.
[[noreturn]] void fail(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
/// The text of the last failure.
const char *failure();
/// As `fail`, of something that is no thread's fault: returns the text.
const char *refuse(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/// Lets others run until somebody calls `wake` for this fiber.
void waitFor(const char *what, int barrier = -1);
void wake(unsigned fiber);

/// The lanes of the current warp that this one meets: null if it must wait.
Meeting *arrive(const char *operation, uint32_t mask, int place);
/// Lets the others of a complete meeting go on.
void disperse(Meeting *meeting);

/// Waits for all lanes of `mask` to come with the same operation; the last one
/// calls `last` before any goes on. `place` is -1 where it does not matter.
template <typename Last>
void meet(const char *operation, uint32_t mask, int place, Last last) {
  if (Meeting *meeting = arrive(operation, mask, place)) {
    last();
    disperse(meeting);
    return;
  }
  waitFor(operation);
}

/// Comes to a barrier that `expected` threads, or with 0 all that have not
/// ended, must reach, and if `stay` waits there. Afterwards the barrier knows
/// how many came, and how many of them with `predicate`.
void arriveAtBarrier(unsigned id, unsigned expected, bool predicate, int place,
                     bool stay);

// What the block may touch of shared memory; kernels check it themselves.
extern "C" struct SimulatorShared {
  char *base;
  uint64_t bytes;
} simulatorShared;

} // namespace reprise::simulator

#endif // REPRISE_TEST_SIMULATOR_FIBERS_H
