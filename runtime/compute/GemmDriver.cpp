//===- GemmDriver.cpp - The loops around tiles ----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GemmDriver.h"

#include <utility>

using namespace reprise::runtime;

/// Tasks for each thread where it goes on alone: so few that what a task does
/// once is nothing beside its tiles, so many that a thread which comes to the
/// end first takes about as much of the rest as it should.
static constexpr int64_t kTasksOfThread = 32;
static_assert((kTasksOfThread + 1) * ThreadPool::kMaxThreads <=
                  ThreadPool::kMostTasksOfRounds,
              "and one more for each where they are rounded up");

/// Panels of A that a thread packs together where others use them, too.
static constexpr int64_t kGroupOfA = 4;

static void packGroupOfA(const GemmBlock &block, int64_t group) {
  block.packA(group * kGroupOfA,
              smaller((group + 1) * kGroupOfA, block.numRowPanels()));
}

/// The room for B ends with two places for each thread.
GemmDriver::GemmDriver(const GemmJob &job, ThreadPool *pool)
    : job(job), plan(job.plan), pool(pool) {
  const int64_t size = job.full.cols * plan.steps;
  float *end =
      job.panelsB + repriseGemmPanelCols(&job.shape) / job.full.cols * size;
  for (int slot = 0; slot < plan.threads; ++slot)
    places[slot] = plan.hasPlacesOfB
                       ? PlacesOfB{end - (2 * slot + 1) * size,
                                   end - (2 * slot + 2) * size, nullptr}
                       : PlacesOfB();
}

template <typename Fn>
void GemmDriver::share(int64_t flops, int64_t tasks, Fn fn) const {
  auto loop = [&](int slot, int64_t begin, int64_t end) {
    DenormalsAreZero guard(plan.form != PanelForm::Floats);
    for (int64_t task = begin; task < end; ++task)
      fn(task, slot);
    if (plan.streams)
      _mm_sfence();
  };
  if (pool && flops >= kSerialFlops)
    pool->parallelFor(tasks, 1, loop);
  else
    loop(0, 0, tasks);
}

template <typename Fn>
void GemmDriver::share(const GemmBlock &block, int64_t tasks, Fn fn) const {
  share(2 * block.rows.size * block.cols.size * block.depth.size, tasks, fn);
}

template <typename Fn>
void GemmDriver::shareRounds(int64_t rounds, int64_t tasks, Fn fn) const {
  auto call = [&](int slot, int64_t round, int64_t task) {
    DenormalsAreZero guard(plan.form != PanelForm::Floats);
    fn(slot, round, task);
    if (plan.streams)
      _mm_sfence();
  };
  if (pool)
    return pool->parallelRounds(rounds, tasks, call);
  for (int64_t round = 0; round < rounds; ++round)
    for (int64_t task = 0; task < tasks; ++task)
      call(/*slot=*/0, round, task);
}

void GemmDriver::run() {
  if (plan.order == LoopOrder::ReadA)
    readA();
  else if (plan.order == LoopOrder::ReadAByColumns)
    readAByColumns();
  else if (plan.isAlone())
    computeAlone();
  else
    computeBlocks();
  if (plan.squares != SquaresBy::End)
    return;
  constexpr int64_t kRows = 8 * REPRISE_GEMM_SQUARES_ROWS;
  const RepriseGemm &shape = job.shape;
  share(2 * shape.m * shape.n * shape.k, divideUp(shape.m, kRows),
        [&](int64_t task, int) {
          const int64_t row = task * kRows;
          job.entry.sumBlocks({row, smaller(kRows, shape.m - row)},
                              {0, shape.n});
        });
}

//===----------------------------------------------------------------------===//
// A read where it lies
//===----------------------------------------------------------------------===//

/// One is enough where it is for the last panel of all rows.
float *GemmDriver::placeOfA(int slot) const {
  return job.panelsA +
         (plan.hasPlacesOfA ? slot * job.full.rows * plan.steps : 0);
}

void GemmDriver::readA() const {
  const RepriseGemm &shape = job.shape;
  const Range rows = {0, shape.m}, cols = {0, shape.n};
  for (Range depth = getDepth(0), next; depth.size > 0; depth = next) {
    next = getDepth(depth.end());
    const GemmBlock block(job, {rows, cols, depth}, {{}, {}, next});
    if (!plan.readsB)
      share(block, block.numPanelsOfB(), [&](int64_t panel, int) {
        block.packB(panel, block.packedB(panel));
      });
    // Some 0.3 us of work, to come by which takes a tenth of that.
    const int64_t numA = block.numRowPanels();
    const int64_t perTask =
        divideUp(kSerialFlops / 4, 2 * job.full.rows * cols.size * depth.size);
    share(block, divideUp(numA, perTask), [&](int64_t task, int slot) {
      GemmTiles(block).computeRows(
          task * perTask, smaller((task + 1) * perTask, numA), placeOfA(slot));
    });
  }
}

/// As many blocks at a time as there are threads, of which one that has done
/// its own takes pieces of another's, with B packed once more.
void GemmDriver::readAByColumns() const {
  const RepriseGemm &shape = job.shape;
  const int64_t width = plan.cols, numBlocks = divideUp(shape.n, width);
  const int64_t rounds = divideUp(shape.k, plan.depth);
  const int64_t numA =
      RowPanels::divide(shape.m, job.full.rows, job.low.rows).count();
  const int64_t pieces = smaller(numA, pool ? kTasksOfThread : 1);
  for (int64_t first = 0; first < numBlocks; first += plan.threads) {
    int64_t packed[ThreadPool::kMaxThreads] = {}; // Its round and block.
    auto compute = [&](int slot, int64_t round, int64_t task) {
      const int64_t index = first + task / pieces, piece = task % pieces;
      const Range cols = {index * width,
                          smaller(width, shape.n - index * width)};
      const Range depth = getDepth(round * plan.depth);
      const GemmBlock block(job, {{0, shape.m}, cols, depth},
                            {{}, {}, getDepth(depth.end())}, job.panelsA,
                            job.panelsB + slot * width * plan.steps);
      const int64_t number = 1 + round * numBlocks + index;
      if (std::exchange(packed[slot], number) != number)
        for (int64_t panel = 0; panel < block.numPanelsOfB(); ++panel)
          block.packB(panel, block.packedB(panel));
      GemmTiles(block).computeRows(numA * piece / pieces,
                                   numA * (piece + 1) / pieces, placeOfA(slot));
    };
    const int64_t blocks = smaller(plan.threads, numBlocks - first);
    shareRounds(rounds, blocks * pieces, compute);
  }
}

//===----------------------------------------------------------------------===//
// Threads alone
//===----------------------------------------------------------------------===//

Range GemmDriver::getRowsOfPartition(int64_t index) const {
  const int64_t unit = plan.unit, units = divideUp(job.shape.m, unit);
  auto first = [&](int64_t i) {
    return smaller(units * i / plan.partitions * unit, job.shape.m);
  };
  return {first(index), first(index + 1) - first(index)};
}

float *GemmDriver::panelsOfPartition(int slot) const {
  const int64_t units = divideUp(job.shape.m, plan.unit);
  const int64_t most = divideUp(units, plan.partitions) * plan.unit;
  return job.panelsA + slot * most * plan.steps;
}

float *GemmDriver::panelsOfSharedRows(int slot) const {
  const int64_t full = job.full.rows, low = job.low.rows;
  const RowPanels panels = RowPanels::divide(plan.rows, full, low);
  return job.panelsA + slot * panels.rows(full, low) * plan.steps;
}

/// Tasks that are computed without waiting for others: `parts` for each of
/// `count` partitions, or of shared rows, from `first` on.
struct GemmDriver::AloneTasks {
  int64_t first, count, of; ///< Of so many partitions.
  int64_t panelsOfTask, parts, rounds;
  int threads;

  int64_t tasks() const { return count * parts; }
  int64_t partitionOf(int64_t task) const { return first + task / parts; }
};

/// The depth changes fastest, then the columns, then the rows. Nothing behind
/// the last round.
BlockRange GemmDriver::getRangeAlone(int64_t round) const {
  const RepriseGemm &shape = job.shape;
  const int64_t depths = divideUp(shape.k, plan.depth);
  const int64_t blocks = divideUp(shape.n, plan.cols);
  const int64_t row = round / depths / blocks * plan.rows;
  const int64_t col = round / depths % blocks * plan.cols;
  if (row >= shape.m)
    return {};
  return {{row, smaller(plan.rows, shape.m - row)},
          {col, smaller(plan.cols, shape.n - col)},
          getDepth(round % depths * plan.depth)};
}

void GemmDriver::computeAlone() {
  const RepriseGemm &shape = job.shape;
  const int64_t rounds = divideUp(shape.k, plan.depth) *
                         divideUp(shape.n, plan.cols) *
                         divideUp(shape.m, plan.rows);
  const int64_t numB = divideUp(plan.cols, job.full.cols);
  const int64_t of = plan.partitions > 0 ? plan.partitions : 1;
  const int64_t atOnce = rounds == 1 ? of : plan.threads;
  // Whole blocks of squares.
  const int64_t unit = plan.squares == SquaresBy::Panel
                           ? REPRISE_GEMM_SQUARES_COLS / job.full.cols
                           : 1;
  for (int64_t first = 0, count; first < of; first += count) {
    count = smaller(atOnce, of - first);
    const int64_t perTask =
        divideUp(count * numB, plan.threads * kTasksOfThread);
    const int64_t panels = smaller(repriseRoundUp(perTask, unit), numB);
    computeAlone({first, count, of, panels, divideUp(numB, panels), rounds,
                  plan.partitions > 0 ? 1 : plan.threads});
  }
}

void GemmDriver::computeAlone(const AloneTasks &tasks) {
  const TasksOfB sharing = {tasks.threads, tasks.parts, tasks.panelsOfTask};
  int64_t packed[ThreadPool::kMaxThreads] = {}; // Its round and partition.
  shareRounds(
      tasks.rounds, tasks.tasks(), [&](int slot, int64_t round, int64_t task) {
        const GemmBlock block = getBlockAlone(tasks, slot, round, task);
        const int64_t number = 1 + round * tasks.of + tasks.partitionOf(task);
        int64_t panelB = task % tasks.parts * tasks.panelsOfTask;
        // The last block may have fewer panels than others.
        const int64_t end =
            smaller(panelB + tasks.panelsOfTask, block.numPanelsOfB());
        for (; panelB < end; ++panelB) {
          GemmTiles(block).compute(
              panelB, places[slot], 0, block.numRowPanels(),
              {packed[slot] != number, !plan.readsB},
              getNextPanel(block, panelB, sharing, /*hasOwnA=*/true));
          if (packed[slot] != number) // Others' are in the same cache line.
            packed[slot] = number;
        }
      });
}

GemmBlock GemmDriver::getBlockAlone(const AloneTasks &tasks, int slot,
                                    int64_t round, int64_t task) const {
  BlockRange now = getRangeAlone(round), next = getRangeAlone(round + 1);
  if (plan.partitions == 0)
    return GemmBlock(job, now, next, panelsOfSharedRows(slot), job.panelsB);
  // What this thread goes on with, about.
  const int64_t partition = tasks.partitionOf(task);
  int64_t then = partition + 1;
  auto firstOf = [&](int part) {
    return ThreadPool::firstOfPart(tasks.tasks(), plan.threads, part);
  };
  if ((then - tasks.first) * tasks.parts < firstOf(slot + 1))
    next = now;
  else if (next.rows.size > 0)
    then = tasks.first + firstOf(slot) / tasks.parts;
  else if (then = tasks.first + tasks.count + slot; then < tasks.of)
    next = getRangeAlone(0);
  if (next.rows.size > 0)
    next.rows = getRowsOfPartition(then);
  now.rows = getRowsOfPartition(partition);
  return GemmBlock(job, now, next, panelsOfPartition(slot), job.panelsB);
}

//===----------------------------------------------------------------------===//
// Block by block
//===----------------------------------------------------------------------===//

/// Rows change fastest, then the depth, then the columns.
void GemmDriver::computeBlocks() {
  const RepriseGemm &shape = job.shape;
  auto clip = [&](int64_t row, int64_t p, int64_t col) -> BlockRange {
    if (col >= shape.n)
      return {};
    return {{row, smaller(plan.rows, shape.m - row)},
            {col, smaller(plan.cols, shape.n - col)},
            getDepth(p)};
  };
  auto getNext = [&](const BlockRange &block) {
    int64_t row = block.rows.begin + plan.rows;
    int64_t p = block.depth.begin, col = block.cols.begin;
    if (row >= shape.m)
      row = 0, p += plan.depth;
    if (p >= shape.k)
      p = 0, col += plan.cols;
    return clip(row, p, col);
  };
  BlockRange block = clip(0, 0, 0);
  for (BlockRange next; block.rows.size > 0; block = next) {
    next = getNext(block);
    const bool isWhole = block.cols.size == plan.cols;
    computeBlock(GemmBlock(job, block, next), isWhole ? plan.order : plan.last);
  }
}

void GemmDriver::computeBlock(const GemmBlock &block, LoopOrder order) {
  if (order == LoopOrder::OwnPanels)
    computeOwnPanels(block);
  else if (order == LoopOrder::Partitions)
    computePartitions(block);
  else
    computeTiles(block);
}

/// Each panel of B is packed by the thread that uses it, and is still in its
/// cache then. If no other rows follow, a thread has two places for all of its
/// panels.
void GemmDriver::computeOwnPanels(const GemmBlock &block) {
  const int64_t numA = block.numRowPanels(), numB = block.numPanelsOfB();
  const bool packsB = block.rows.begin == 0 && !plan.readsB;
  const bool isOnly = block.rows.size == job.shape.m && plan.hasPlacesOfB;
  const bool ownA = plan.threads == 1;
  if (!ownA)
    share(block, divideUp(numA, kGroupOfA),
          [&](int64_t task, int) { packGroupOfA(block, task); });
  share(block, numB, [&](int64_t task, int slot) {
    PlacesOfB &mine = places[slot];
    if (!isOnly) {
      mine.now = block.packedB(task);
      mine.then = ownA && numB > 1 ? block.packedB((task + 1) % numB) : nullptr;
    }
    GemmTiles(block).compute(
        task, mine, 0, numA, {ownA && task == 0, packsB},
        getNextPanel(block, task, {plan.threads, numB, 1}, ownA));
  });
}

/// Each thread has rows of its own, and reads B's panels from its caches.
void GemmDriver::computePartitions(const GemmBlock &all) {
  const int64_t numB = all.numPanelsOfB(), partitions = plan.partitions;
  if (all.rows.begin == 0 && !plan.readsB)
    share(all, numB,
          [&](int64_t task, int) { all.packB(task, all.packedB(task)); });
  share(all, partitions, [&](int64_t task, int slot) {
    // This thread goes on with about this one.
    BlockRange next = all.next;
    if (task + 1 < partitions * (slot + 1) / plan.threads)
      next = {getRowsOfPartition(task + 1), all.cols, all.depth};
    else if (next.rows.size > 0)
      next.rows = getRowsOfPartition(partitions * slot / plan.threads);
    const GemmBlock block(job, {getRowsOfPartition(task), all.cols, all.depth},
                          next, panelsOfPartition(slot), job.panelsB);
    for (int64_t panelB = 0; panelB < numB; ++panelB) {
      PlacesOfB place = {block.packedB(panelB), nullptr, nullptr};
      GemmTiles(block).compute(panelB, place, 0, block.numRowPanels(),
                               {/*a=*/panelB == 0, /*b=*/false},
                               getNextPanel(block, panelB, {1, numB, 1}, true));
    }
  });
}

void GemmDriver::computeTiles(const GemmBlock &block) {
  const int64_t numA = block.numRowPanels(), numB = block.numPanelsOfB();
  const int64_t groupsA = divideUp(numA, kGroupOfA);
  const bool packsB = block.rows.begin == 0 && !plan.readsB;
  share(block, groupsA + (packsB ? numB : 0), [&](int64_t task, int) {
    if (task < groupsA)
      packGroupOfA(block, task);
    else
      block.packB(task - groupsA, block.packedB(task - groupsA));
  });
  const int64_t perTask = divideUp(numA * numB, 8 * plan.threads);
  const int64_t groups = divideUp(numA, perTask);
  share(block, numB * groups, [&](int64_t task, int) {
    int64_t first = task % groups * perTask;
    int64_t panelB = task / groups;
    PlacesOfB place = {block.packedB(panelB), nullptr, nullptr};
    GemmTiles(block).compute(panelB, place, first,
                             smaller(first + perTask, numA),
                             {/*a=*/false, /*b=*/false},
                             getNextPanel(block, panelB, {1, numB, 1}, true));
  });
}
