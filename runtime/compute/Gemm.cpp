//===- Gemm.cpp - Matrix products -----------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gemm.h"

#include "Cpu.h"
#include "GemmAmx.h"
#include "GemmProduct.h"

#include <utility>

using namespace reprise::runtime;

/// A thread that has rows to itself reads each panel of B from the second-level
/// cache once for so many tiles at least: then it hides behind them.
static constexpr int64_t kLeastTilesOfShare = 4;

/// Threads with so many panels of A each pack B for themselves: shares then
/// have 11 at least, and mostly 16 to 22. Or, of a narrow product, pack B
/// together and A not at all.
static constexpr int64_t kLeastTilesAlone = 16;

/// Where all of B is no more, threads that have rows of their own each pack it
/// for themselves; where a block of it is no more, and no more than half of the
/// second cache, it may pass to the first one again for each panel of A.
static constexpr int64_t kBytesOfSmallB = 512 << 10;

/// So many panels of A are enough for a thread to pack a block of a B with many
/// columns that is transposed, and to wait for that: panels of so many rows
/// that a panel of B, which comes from the second cache for each, is not wanted
/// too often.
static constexpr int64_t kLeastTilesOfWideB = 32, kLeastRowsOfWideB = 12;

/// Tasks for each thread where it goes on alone: so few that what a task does
/// once is nothing beside its tiles, so many that a thread which comes to the
/// end first takes about as much of the rest as it should.
static constexpr int64_t kTasksOfThread = 32;
static_assert((kTasksOfThread + 1) * ThreadPool::kMaxThreads <=
                  ThreadPool::kMostTasksOfRounds,
              "and one more for each where they are rounded up");

MicroKernels
reprise::runtime::chooseMicroKernels(const RepriseMicroKernel *kernels,
                                     int count, int cpuLevel, int typeAB) {
  MicroKernels best;
  best.secondCache = secondCacheBytes();
  for (int i = 0; i < count; ++i) {
    const RepriseMicroKernel &kernel = kernels[i];
    if (int(kernel.isa) + 3 > cpuLevel || kernel.typeAB != typeAB)
      continue;
    if (!best.full || kernel.isa > best.full->isa)
      best.full = best.low = &kernel;
    else if (best.low == best.full && kernel.isa == best.full->isa &&
             kernel.cols == best.full->cols && kernel.rows < best.full->rows)
      best.low = &kernel;
  }
  return best;
}

int64_t Product::countShares(int threads) const {
  const int64_t unit = rowsOfUnit();
  auto count = [&](int64_t most) { // As many for each thread.
    return divideUp(divideUp(shape.m, most / unit * unit), threads) * threads;
  };
  if (hasLongShares(threads))
    return count(REPRISE_GEMM_MC);
  int64_t numB = divideUp(smaller(shape.n, REPRISE_GEMM_NC), full.cols);
  if (threads == 1 || (numB >= 4 * threads && shape.m <= REPRISE_GEMM_MC))
    return 0;
  int64_t room =
      repriseRoundUp(smaller(shape.m, REPRISE_GEMM_MC), REPRISE_GEMM_ROW_ALIGN);
  int64_t most = room / threads;
  if (most < kLeastTilesOfShare * full.rows)
    return 0;
  return count(most);
}

Range Product::getRowsOfShare(int64_t share) const {
  const int64_t unit = rowsOfUnit(), units = divideUp(shape.m, unit);
  auto first = [&](int64_t i) {
    return smaller(units * i / numShares * unit, shape.m);
  };
  return {first(share), first(share + 1) - first(share)};
}

void Product::takeShare(int64_t index, int slot) {
  const int64_t unit = rowsOfUnit();
  const int64_t most = divideUp(divideUp(shape.m, unit), numShares) * unit;
  // Of long shares this goes on into the room for B, which comes after A's.
  panelsA += slot * most * stepsOfBlock();
  rows = getRowsOfShare(index);
  divideRows();
}

bool Product::hasOwnPanelsOfA(int threads) const {
  int64_t free = repriseGemmPanelCols(&shape) - 2 * threads * full.cols;
  return (threads - 1) * (numFull * full.rows + numLow * low.rows) <= free;
}

void Product::takeOwnPanelsOfA(int slot) {
  if (slot > 0)
    panelsA = panelsB + (slot - 1) * (numFull * full.rows + numLow * low.rows) *
                            stepsOfBlock();
}

template <typename Fn>
void Product::share(ThreadPool *pool, int64_t flops, int64_t tasks,
                    Fn fn) const {
  auto loop = [&](int slot, int64_t begin, int64_t end) {
    DenormalsAreZero guard(form != PanelForm::Floats);
    for (int64_t task = begin; task < end; ++task)
      fn(task, slot);
    if (streams)
      _mm_sfence();
  };
  if (pool && flops >= kSerialFlops)
    pool->parallelFor(tasks, 1, loop);
  else
    loop(0, 0, tasks);
}

template <typename Fn>
void Product::shareRounds(ThreadPool *pool, int64_t rounds, int64_t tasks,
                          Fn fn) const {
  auto call = [&](int slot, int64_t round, int64_t task) {
    DenormalsAreZero guard(form != PanelForm::Floats);
    fn(slot, round, task);
    if (streams)
      _mm_sfence();
  };
  if (pool)
    return pool->parallelRounds(rounds, tasks, call);
  for (int64_t round = 0; round < rounds; ++round)
    for (int64_t task = 0; task < tasks; ++task)
      call(/*slot=*/0, round, task);
}

bool Product::hasSmallB(int threads) const {
  const int64_t size = form == PanelForm::Pairs ? 2 : 4;
  return numShares > 0 && !b.depthIsFast && shape.n <= REPRISE_GEMM_NC &&
         shape.n * shape.k * size <= kBytesOfSmallB &&
         (readsB() || hasPlacesOfB(threads));
}

bool Product::hasLongShares(int threads) const {
  int64_t panels = divideUp(shape.m, full.rows);
  int64_t free = repriseGemmPanelCols(&shape) - 2 * threads * full.cols;
  return form != PanelForm::Expanded && threads > 1 &&
         shape.m > REPRISE_GEMM_MC && panels >= kLeastTilesAlone * threads &&
         (threads - 1) * REPRISE_GEMM_MC <= free;
}

Product::PlacesOfB Product::getPlacesOfB(int slot) const {
  const int64_t size = full.cols * stepsOfBlock();
  float *end = panelsB + repriseGemmPanelCols(&shape) / full.cols * size;
  return {end - (2 * slot + 1) * size, end - (2 * slot + 2) * size, nullptr};
}

bool Product::hasOwnColumns(int threads) const {
  return numShares == 0 &&
         (threads == 1 || divideUp(cols.size, full.cols) >= 4 * threads);
}

bool Product::hasAllDepth(int threads) const {
  return threads > 1 && shape.m <= REPRISE_GEMM_MC && hasOwnColumns(threads) &&
         hasPlacesOfB(threads) && hasOwnPanelsOfA(threads);
}

void Product::computeAlone(ThreadPool &pool) {
  const int threads = pool.size();
  const int64_t kc = repriseGemmKC(&shape), depths = divideUp(shape.k, kc);
  const int64_t rounds = depths * divideUp(shape.n, cols.size);
  const int64_t numB = divideUp(cols.size, full.cols);
  auto getBlock = [&, width = cols.size](int64_t round) -> Block {
    if (round == rounds)
      return {};
    int64_t col = round / depths * width, p = round % depths * kc;
    return {{0, shape.m},
            {col, smaller(width, shape.n - col)},
            {p, smaller(kc, shape.k - p)}};
  };
  const int64_t shares = numShares > 0 ? numShares : 1;
  const int64_t atOnce = rounds == 1 ? shares : threads;
  for (int64_t first = 0, count; first < shares; first += count) {
    count = smaller(atOnce, shares - first);
    // Whole blocks of squares.
    const int64_t unit = sumsBehind ? REPRISE_GEMM_SQUARES_COLS / full.cols : 1;
    const int64_t panelsOfTask = smaller(
        repriseRoundUp(divideUp(count * numB, threads * kTasksOfThread), unit),
        numB);
    const int64_t parts = divideUp(numB, panelsOfTask), tasks = count * parts;
    const TasksOfB sharing = {numShares > 0 ? 1 : threads, parts, panelsOfTask};
    int64_t packed[ThreadPool::kMaxThreads] = {}; // Its round and share.
    auto compute = [&](int slot, int64_t round, int64_t task) {
      const int64_t share = first + task / parts;
      Product own = *this;
      const Block block = getBlock(round);
      own.rows = block.rows, own.cols = block.cols, own.depth = block.depth;
      own.next = getBlock(round + 1);
      if (numShares == 0) {
        own.takeOwnPanelsOfA(slot);
      } else {
        own.takeShare(share, slot);
        // What this thread goes on with, about.
        int64_t then = share + 1;
        if ((then - first) * parts <
            ThreadPool::firstOfPart(tasks, threads, slot + 1))
          own.next = block;
        else if (own.next.rows.size > 0)
          then = first + ThreadPool::firstOfPart(tasks, threads, slot) / parts;
        else if (then = first + count + slot; then < shares)
          own.next = getBlock(0);
        if (own.next.rows.size > 0)
          own.next.rows = getRowsOfShare(then);
      }
      const int64_t number = 1 + round * shares + share;
      // The last block may have fewer panels than others.
      const int64_t most = divideUp(own.cols.size, full.cols);
      int64_t panelB = task % parts * panelsOfTask;
      const int64_t end = smaller(panelB + panelsOfTask, most);
      for (; panelB < end; ++panelB) {
        own.computeTiles(panelB, places[slot], 0, own.numRowPanels(),
                         {packed[slot] != number, !readsB()},
                         own.getNext(panelB, sharing, true));
        if (packed[slot] != number) // Others' are in the same cache line.
          packed[slot] = number;
      }
    };
    shareRounds(&pool, rounds, tasks, compute);
  }
}

/// Adds one block of the depth to one block of C: packs what is not packed yet,
/// then computes the tiles.
void Product::computeBlock(ThreadPool *pool) {
  divideRows();
  int64_t numA = numRowPanels();
  int64_t numB = divideUp(cols.size, full.cols);
  bool packsB = rows.begin == 0 && !readsB();
  auto share = [&](int64_t tasks, auto fn) {
    this->share(pool, 2 * rows.size * cols.size * depth.size, tasks, fn);
  };

  int threads = pool ? pool->size() : 1;
  if (hasOwnColumns(threads)) {
    // Each panel of B is packed by the thread that uses it, and is still in its
    // cache then. If no other rows follow, a thread has two places for all of
    // its panels.
    bool isOnly = rows.size == shape.m && hasPlacesOfB(threads);
    const bool ownA = threads == 1;
    if (!ownA)
      share(numGroupsOfA(), [&](int64_t task, int) { packGroupOfA(task); });
    share(numB, [&](int64_t task, int slot) {
      PlacesOfB &mine = places[slot];
      if (!isOnly) {
        mine.now = packedB(task);
        mine.then =
            threads == 1 && numB > 1 ? packedB((task + 1) % numB) : nullptr;
      }
      computeTiles(task, mine, 0, numA, {ownA && task == 0, packsB},
                   getNext(task, {threads, numB, 1}, ownA));
    });
    return;
  }
  if (numShares > 0) {
    // Each thread has rows of its own, and reads B's panels from its caches.
    if (packsB)
      share(numB, [&](int64_t task, int) { packB(task, packedB(task)); });
    share(numShares, [&](int64_t task, int slot) {
      Product part = *this;
      part.takeShare(task, slot);
      // This thread goes on with about this share.
      if (task + 1 < numShares * (slot + 1) / threads)
        part.next = {getRowsOfShare(task + 1), cols, depth};
      else if (next.rows.size > 0)
        part.next.rows = getRowsOfShare(numShares * slot / threads);
      for (int64_t panelB = 0; panelB < numB; ++panelB) {
        PlacesOfB place = {packedB(panelB), nullptr, nullptr};
        part.computeTiles(panelB, place, 0, part.numRowPanels(),
                          {/*a=*/panelB == 0, /*b=*/false},
                          part.getNext(panelB, {1, numB, 1}, true));
      }
    });
    return;
  }
  int64_t groupsA = numGroupsOfA();
  share(groupsA + (packsB ? numB : 0), [&](int64_t task, int) {
    if (task < groupsA)
      packGroupOfA(task);
    else
      packB(task - groupsA, packedB(task - groupsA));
  });
  int64_t perTask = divideUp(numA * numB, 8 * threads);
  int64_t groups = divideUp(numA, perTask);
  share(numB * groups, [&](int64_t task, int) {
    int64_t first = task % groups * perTask;
    int64_t panelB = task / groups;
    PlacesOfB place = {packedB(panelB), nullptr, nullptr};
    computeTiles(panelB, place, first, smaller(first + perTask, numA),
                 {/*a=*/false, /*b=*/false},
                 getNext(panelB, {1, numB, 1}, true));
  });
}

int64_t Product::countNarrowCols(int threads) const {
  const int64_t panels = divideUp(shape.m, full.rows);
  const int64_t room = repriseGemmPanelCols(&shape);
  const int64_t bytes = smaller(secondCache / 2, kBytesOfSmallB);
  const int64_t most = smaller(bytes / 4 / stepsOfBlock(), room);
  if (!a.depthIsFast || !hasWholeGroups(shape.k))
    return 0;
  const bool hasPlaces = hasPlacesOfA(threads);
  if (shape.n <= most) {
    bool isEnough = panels >= kLeastTilesAlone * threads;
    return isEnough && (hasPlaces || !doRowsOfAMeet()) ? shape.n : 0;
  }
  // Each thread has blocks of its own, of about as many columns, and a place
  // for a panel of A. What lies as panels have it is packed while tiles
  // are computed, so not here; and nothing with sums in the workspace, which
  // has them for one block of columns.
  int64_t blocks = divideUp(divideUp(shape.n, most), threads) * threads;
  int64_t cols = repriseRoundUp(divideUp(shape.n, blocks), full.cols);
  bool hasRoom =
      form == PanelForm::Floats && threads * cols <= room && hasPlaces;
  bool isWorth = b.depthIsFast && full.rows >= kLeastRowsOfWideB &&
                 panels >= kLeastTilesOfWideB && 2 * cols >= most;
  return hasRoom && isWorth ? cols : 0;
}

void Product::computeNarrow(ThreadPool *pool, int64_t most) {
  const int64_t kc = repriseGemmKC(&shape);
  const int64_t numBlocks = divideUp(shape.n, most);
  auto getDepth = [&](int64_t begin) {
    return Range{begin, smaller(kc, shape.k - begin)};
  };
  rows = {0, shape.m};
  divideRows();
  const int64_t numA = numRowPanels();
  const int threads = pool ? pool->size() : 1;
  // One is enough where it is for the last panel of all rows.
  auto placeOf = [&, hasPlaces = hasPlacesOfA(threads)](int slot) {
    return panelsA + (hasPlaces ? slot * full.rows * stepsOfBlock() : 0);
  };
  if (numBlocks == 1) {
    cols = {0, shape.n};
    for (depth = getDepth(0); depth.size > 0; depth = next.depth) {
      next.depth = getDepth(depth.end());
      auto share = [&](int64_t tasks, auto fn) {
        this->share(pool, 2 * rows.size * cols.size * depth.size, tasks, fn);
      };
      if (!readsB())
        share(divideUp(cols.size, full.cols),
              [&](int64_t panel, int) { packB(panel, packedB(panel)); });
      // Some 0.3 us of work, to come by which takes a tenth of that.
      const int64_t perTask =
          divideUp(kSerialFlops / 4, 2 * full.rows * cols.size * depth.size);
      share(divideUp(numA, perTask), [&](int64_t task, int slot) {
        computeRows(task * perTask, smaller((task + 1) * perTask, numA),
                    placeOf(slot));
      });
    }
    return;
  }
  // As many blocks at a time as there are threads, of which one that has done
  // its own takes pieces of another's, with B packed once more.
  const int64_t rounds = divideUp(shape.k, kc);
  const int64_t pieces = smaller(numA, pool ? kTasksOfThread : 1);
  for (int64_t firstBlock = 0; firstBlock < numBlocks; firstBlock += threads) {
    int64_t packed[ThreadPool::kMaxThreads] = {}; // Its round and block.
    auto compute = [&](int slot, int64_t round, int64_t task) {
      const int64_t block = firstBlock + task / pieces, piece = task % pieces;
      Product own = *this;
      own.cols = {block * most, smaller(most, shape.n - block * most)};
      own.depth = getDepth(round * kc);
      own.next.depth = getDepth(own.depth.end());
      own.panelsB += slot * most * stepsOfBlock();
      const int64_t number = 1 + round * numBlocks + block;
      if (std::exchange(packed[slot], number) != number)
        for (int64_t panel = 0; panel < divideUp(own.cols.size, full.cols);
             ++panel)
          own.packB(panel, own.packedB(panel));
      own.computeRows(numA * piece / pieces, numA * (piece + 1) / pieces,
                      placeOf(slot));
    };
    const int64_t blocks = smaller(threads, numBlocks - firstBlock);
    shareRounds(pool, rounds, blocks * pieces, compute);
  }
}

void Product::compute(ThreadPool *pool) {
  const int threads = pool ? pool->size() : 1;
  if (int64_t most = countNarrowCols(threads)) {
    sumsBehind = false;
    return computeNarrow(pool, most);
  }
  numShares = countShares(threads);
  packsBAlone = hasLongShares(threads) || hasSmallB(threads);
  PlacesOfB placesOfThreads[ThreadPool::kMaxThreads];
  places = placesOfThreads;
  for (int slot = 0; slot < threads; ++slot)
    places[slot] = hasPlacesOfB(threads) ? getPlacesOfB(slot) : PlacesOfB();
  // Blocks of as many columns each, if they are enough for all threads.
  rows = {0, shape.m};
  const int64_t width = divideUp(shape.n, divideUp(shape.n, REPRISE_GEMM_NC));
  cols = {0, smaller(repriseRoundUp(width, REPRISE_GEMM_COL_ALIGN), shape.n)};
  if (!hasOwnColumns(threads))
    cols.size = smaller(shape.n, REPRISE_GEMM_NC);
  divideRows();
  const bool isAlone = packsBAlone || hasAllDepth(threads);
  // Or a thread does not have all panels for a block of squares.
  sumsBehind &= isAlone || numShares > 0 || threads == 1;
  if (isAlone)
    return computeAlone(*pool);
  const int64_t kc = repriseGemmKC(&shape);
  const int64_t mc = numShares > 0 ? shape.m : REPRISE_GEMM_MC;
  auto isDone = [&](const Block &block) { return block.cols.begin >= shape.n; };
  auto clip = [&](Block &block) {
    block.rows.size = smaller(mc, shape.m - block.rows.begin);
    block.depth.size = smaller(kc, shape.k - block.depth.begin);
    block.cols.size = smaller(REPRISE_GEMM_NC, shape.n - block.cols.begin);
  };
  // Rows change fastest, then the depth, then the columns.
  auto getNext = [&](Block block) {
    block.rows.begin += mc;
    if (block.rows.begin >= shape.m) {
      block.rows.begin = 0;
      block.depth.begin += kc;
    }
    if (block.depth.begin >= shape.k) {
      block.depth.begin = 0;
      block.cols.begin += REPRISE_GEMM_NC;
    }
    if (isDone(block))
      return Block{{0, 0}, {shape.n, 0}, {0, 0}};
    clip(block);
    return block;
  };
  Block block = {};
  clip(block);
  for (; !isDone(block); block = next) {
    next = getNext(block);
    rows = block.rows, cols = block.cols, depth = block.depth;
    computeBlock(pool);
  }
}

void Product::run(ThreadPool *pool) {
  compute(pool);
  if (!squares || sumsSquares || sumsBehind)
    return;
  constexpr int64_t kRows = 8 * REPRISE_GEMM_SQUARES_ROWS;
  const int64_t tasks = divideUp(shape.m, kRows);
  share(pool, 2 * shape.m * shape.n * shape.k, tasks, [&](int64_t task, int) {
    const int64_t row = task * kRows;
    sumBlocks({row, smaller(kRows, shape.m - row)}, {0, shape.n});
  });
}

//===----------------------------------------------------------------------===//
// A batch of products
//===----------------------------------------------------------------------===//

void reprise::runtime::gemm(const RepriseGemm &shape,
                            const GemmOperands &operands,
                            const MicroKernels &kernels, ThreadPool &pool) {
  auto compute = [&](int64_t entry, ThreadPool *threads, int slot) {
    if (kernels.full->isa == REPRISE_ISA_AMX_BF16)
      gemmAmx(shape, operands, kernels, entry, threads, slot);
    else
      Product(shape, operands, kernels, entry, slot).run(threads);
  };
  int64_t entries = shape.batch[0] * shape.batch[1];
  int64_t flops = 2 * shape.m * shape.n * shape.k;
  // With fewer entries than threads, large ones are shared out one by one.
  if (entries < pool.size() && flops >= kSerialFlops) {
    for (int64_t entry = 0; entry < entries; ++entry)
      compute(entry, &pool, /*slot=*/0);
    return;
  }
  int64_t chunk = divideUp(kSerialFlops / 2, flops);
  pool.parallelFor(
      entries, smaller(chunk, divideUp(entries, pool.size())),
      [&](int slot, int64_t begin, int64_t end) {
        for (int64_t entry = begin; entry < end; ++entry)
          compute(entry, /*threads=*/nullptr, slot);
      },
      int(smaller(entries, REPRISE_GEMM_SLOTS)));
}
