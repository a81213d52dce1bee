//===- GemmPlan.cpp - How a GEMM goes over its blocks ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GemmPlan.h"

#include "GemmParts.h"

#include "reprise/ABI/ElementFormat.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <numeric>

using namespace reprise::runtime;

/// A thread that has rows to itself reads each panel of B from the second-level
/// cache once for so many tiles at least: then it hides behind them.
static constexpr int64_t kLeastTilesOfShare = 4;

/// Threads with so many panels of A each pack B for themselves: shares then
/// have 11 at least, and mostly 16 to 22. Or, of a narrow GEMM, pack B
/// together and A not at all.
static constexpr int64_t kLeastTilesAlone = 16;

/// So many panels of B for each thread are enough for it to have its own.
static constexpr int64_t kLeastPanelsOfThread = 4;

/// So many rows are few enough for threads to share their panels of B and each
/// to pack all of A: in one block if half of L2 holds a k-block of them.
static constexpr int64_t kMostSharedRows = 2 * REPRISE_GEMM_MC;

/// Where all of B is no more, threads that have rows of their own each pack it
/// for themselves; where a block of it is no more, and no more than half of the
/// L2, it may pass to L1 again for each panel of A.
static constexpr int64_t kBytesOfSmallB = 512 << 10;

/// So many panels of A are enough for a thread to pack a block of a B with many
/// columns that is transposed, and to wait for that: panels of so many rows
/// that a panel of B, which comes from L2 for each, is not wanted
/// too often.
static constexpr int64_t kLeastTilesOfWideB = 32, kLeastRowsOfWideB = 12;

/// From so many bytes on a C may go past the caches: it would push out of the
/// L2 what a GEMM works with, and lines would be read that are then
/// overwritten.
static constexpr int64_t kBytesToStream = 3 << 19;

/// From so many on a C has left the caches that are near when it is read.
static constexpr int64_t kBytesOfLogits = 32 << 20;

static constexpr int64_t kLine = 64;

const LoopOrderInfo reprise::runtime::kLoopOrders[] = {
    {LoopOrder::ReadA, "read A",
     "A needs a transposition, a k-block of B takes at most half of L2 and 512 "
     "KiB, and each thread has 16 panels of A",
     "read in place", "packed by all", "rows", "each k-block"},
    {LoopOrder::WholeDepth, "whole depth",
     "at most 264 rows, or 528 if half of L2 holds a k-block of them or long "
     "partitions cannot be; four panels of B and scratch for A for each thread",
     "packed by each thread", "packed by the thread that uses it",
     "panels of B", "none"},
    {LoopOrder::ReadAByColumns, "read A by columns",
     "such an A of 32 panels, B transposed and larger, f32, tiles of 12 rows",
     "read in place", "packed by its thread", "blocks of columns", "none"},
    {LoopOrder::LongPartitions, "long partitions",
     "more than 264 rows, and 16 panels of A for each thread",
     "packed by its thread", "packed by each thread for each partition",
     "partitions of at most 264 rows", "none"},
    {LoopOrder::SmallB, "small B",
     "partitions of fewer rows, and all of B takes at most 512 KiB and is not "
     "transposed",
     "packed by its thread", "packed by each thread", "partitions of rows",
     "none"},
    {LoopOrder::OwnPanels, "own panels",
     "one thread, or four panels of B for each", "packed by all",
     "packed by the thread that uses it", "panels of B", "each k-block"},
    {LoopOrder::Partitions, "partitions", "four tiles of rows for each thread",
     "packed by its thread", "packed by all", "partitions of rows",
     "each k-block"},
    {LoopOrder::Tiles, "tiles", "otherwise", "packed by all", "packed by all",
     "rows and columns", "each k-block"},
    {LoopOrder::Amx, "AMX", "the micro-kernel is of AMX: [see there](#amx)",
     "packed by each thread", "packed by each thread", "rows and columns",
     "none"},
};

//===----------------------------------------------------------------------===//
// What is known of a GEMM
//===----------------------------------------------------------------------===//

RowPanels RowPanels::divide(int64_t rows, int64_t ofFull, int64_t ofLow) {
  RowPanels panels = {rows / ofFull, 0};
  const int64_t rest = rows % ofFull;
  panels.numLow = rest > 0 && rest <= ofLow ? 1 : 0;
  if (rest > ofLow || (panels.numLow && ofLow == ofFull)) {
    ++panels.numFull;
    panels.numLow = 0;
  } else if (panels.numLow && panels.numFull > 0 &&
             rest + ofFull <= 2 * ofLow) {
    --panels.numFull;
    panels.numLow = 2;
  }
  return panels;
}

bool reprise::runtime::isLargeC(const RepriseGemm &shape, bool isAligned) {
  const int64_t size = repriseElementBytes(shape.typeC);
  return shape.m * shape.n * size >= kBytesToStream && isAligned &&
         shape.ldc * size % kLine == 0;
}

bool reprise::runtime::isReadLate(const RepriseGemm &shape, bool isAligned,
                                  int64_t bytesOfRow) {
  return isLargeC(shape, isAligned) &&
         ((shape.transposeA && bytesOfRow > kLine) ||
          shape.m * shape.n * 4 >= kBytesOfLogits);
}

namespace {
/// A GEMM, with a plan that has its form, steps and places already.
struct Known {
  const RepriseGemm &shape;
  const RepriseMicroKernel &full, &low;
  int64_t bytesOfL2;
  GemmPlan plan;

  int64_t threads() const { return plan.threads; }
  int64_t panelsOfA() const { return divideUp(shape.m, full.rows); }
  int64_t panelsOfB(int64_t cols) const { return divideUp(cols, full.cols); }
  /// Columns of the room for B that no thread has a place in.
  int64_t freeCols() const {
    return repriseGemmPanelCols(&shape) - 2 * threads() * full.cols;
  }
  /// Rows of a block of which a thread may pack all panels of A: half of L2
  /// holds them, or they are as few as blocks have else.
  int64_t mostSharedRows() const {
    const int64_t held = bytesOfL2 / 2 / int64_t(sizeof(float)) / plan.steps;
    return std::clamp<int64_t>(held, REPRISE_GEMM_MC, kMostSharedRows);
  }
  /// Whether all threads have places for B and, in the room for A and that for
  /// panels of B which are never there at the same time, panels of these rows.
  bool hasRoomForAll(int64_t rows) const {
    const RowPanels panels = RowPanels::divide(rows, full.rows, low.rows);
    const int64_t room = repriseGemmPanelsOfA(&shape) / plan.steps + freeCols();
    return plan.hasPlacesOfB &&
           threads() * panels.rows(full.rows, low.rows) <= room;
  }
  /// Whether there are enough panels of B for each thread to have its own.
  bool hasOwnPanels(int64_t cols) const {
    return plan.partitions == 0 &&
           (threads() == 1 ||
            panelsOfB(cols) >= kLeastPanelsOfThread * threads());
  }
};
} // namespace

static PanelForm chooseForm(const RepriseGemm &shape,
                            const RepriseMicroKernel &kernel) {
  if (shape.typeAB == REPRISE_F32)
    return PanelForm::Floats;
  return kernel.typeAB == REPRISE_BF16 ? PanelForm::Pairs : PanelForm::Expanded;
}

/// Whether rows of A meet in L1, whose sets repeat after 4 KiB: a
/// panel that is read there has a line of each row in one set, which takes all
/// or most of the ways, and what else passes pushes them out.
static bool doRowsOfAMeet(const RepriseGemm &shape) {
  return shape.lda * repriseElementBytes(shape.typeAB) % 4096 == 0;
}

/// Whether tiles are whole blocks of squares, which can be summed with them.
static bool hasWholeBlocks(const MicroKernels &kernels) {
  auto isWhole = [](const RepriseMicroKernel &kernel) {
    return kernel.isa >= REPRISE_ISA_V4 &&
           kernel.rows % REPRISE_GEMM_SQUARES_ROWS == 0 &&
           kernel.cols == REPRISE_GEMM_SQUARES_COLS;
  };
  return isWhole(*kernels.full) && isWhole(*kernels.low);
}

/// Rows that partitions are multiples of, but for the last: those of panels
/// and, if squares are summed behind them, of blocks of these. (Of blocks alone
/// where any number of them is made of whole panels, as of 6 and 4 rows.)
static int64_t rowsOfUnit(const MicroKernels &kernels, bool sumsBehind) {
  constexpr int kRows = REPRISE_GEMM_SQUARES_ROWS;
  const int full = kernels.full->rows, low = kernels.low->rows;
  if (!sumsBehind)
    return full;
  bool areWhole = low == kRows && full % 2 == 0 && full <= 2 * kRows;
  return areWhole ? kRows : std::lcm(full, kRows);
}

//===----------------------------------------------------------------------===//
// Orders of loops
//===----------------------------------------------------------------------===//

/// Columns of a block of B where panels of A are read where they lie, in the
/// order of Goto and van de Geijn: one is in L1 while those of B
/// pass. 0 if that cannot be, or is no faster. (To pack A takes as long as a
/// fifth of its tiles, if there are four panels of B.)
static int64_t countNarrowCols(const Known &of) {
  const RepriseGemm &shape = of.shape;
  const int64_t room = repriseGemmPanelCols(&shape);
  const int64_t bytes = smaller(of.bytesOfL2 / 2, kBytesOfSmallB);
  const int64_t most = smaller(bytes / 4 / of.plan.steps, room);
  if (shape.transposeA || most == 0 || !of.plan.hasWholeGroups(shape.k))
    return 0;
  if (shape.n <= most) {
    bool isEnough = of.panelsOfA() >= kLeastTilesAlone * of.threads();
    return isEnough && (of.plan.hasPlacesOfA || !of.plan.rowsMeet) ? shape.n
                                                                   : 0;
  }
  // Each thread has blocks of its own, of about as many columns, and a place
  // for a panel of A. What lies as panels have it is packed while tiles
  // are computed, so not here; and nothing with sums in the workspace, which
  // has them for one block of columns.
  int64_t blocks =
      divideUp(divideUp(shape.n, most), of.threads()) * of.threads();
  int64_t cols = repriseRoundUp(divideUp(shape.n, blocks), of.full.cols);
  bool hasRoom = of.plan.form == PanelForm::Floats &&
                 of.threads() * cols <= room && of.plan.hasPlacesOfA;
  bool isWorth = shape.transposeB && of.full.rows >= kLeastRowsOfWideB &&
                 of.panelsOfA() >= kLeastTilesOfWideB && 2 * cols >= most;
  return hasRoom && isWorth ? cols : 0;
}

/// Whether partitions have so many rows that each thread packs B for its own,
/// and there is room for their panels of A. (Of bf16 as f32 those would take a
/// MiB.)
static bool hasLongPartitions(const Known &of) {
  return of.plan.form != PanelForm::Expanded && of.threads() > 1 &&
         of.shape.m > REPRISE_GEMM_MC &&
         of.panelsOfA() >= kLeastTilesAlone * of.threads() &&
         (of.threads() - 1) * REPRISE_GEMM_MC <= of.freeCols();
}

/// Rows of a block where threads share the panels of B and each has panels of
/// all of them to itself: all rows or, of more than blocks have else, a half.
/// 0 if that cannot be.
static int64_t countSharedRows(const Known &of) {
  const int64_t m = of.shape.m;
  if (of.threads() == 1 || m > kMostSharedRows ||
      !of.hasOwnPanels(of.plan.cols))
    return 0;
  if (m <= of.mostSharedRows() && of.hasRoomForAll(m))
    return m;
  // Long partitions are as fast as two blocks.
  if (m <= REPRISE_GEMM_MC || hasLongPartitions(of))
    return 0;
  const int64_t half = repriseRoundUp(divideUp(m, 2), of.plan.unit);
  return of.hasRoomForAll(half) ? half : 0;
}

/// Of a GEMM with few panels of B, or with more rows than a block has, how
/// many partitions of rows there are: a thread works on one alone, in a part of
/// the room for panels of A. 0 if all threads share all rows.
static int64_t countPartitions(const Known &of) {
  const RepriseGemm &shape = of.shape;
  const int64_t unit = of.plan.unit, threads = of.threads();
  auto count = [&](int64_t most) { // As many for each thread.
    return divideUp(divideUp(shape.m, most / unit * unit), threads) * threads;
  };
  if (hasLongPartitions(of))
    return count(REPRISE_GEMM_MC);
  int64_t numB = of.panelsOfB(smaller(shape.n, REPRISE_GEMM_NC));
  if (threads == 1 ||
      (numB >= kLeastPanelsOfThread * threads && shape.m <= REPRISE_GEMM_MC))
    return 0;
  int64_t room =
      repriseRoundUp(smaller(shape.m, REPRISE_GEMM_MC), REPRISE_GEMM_ROW_ALIGN);
  int64_t most = room / threads;
  return most < kLeastTilesOfShare * of.full.rows ? 0 : count(most);
}

/// Whether all of B is small enough for each partition to be computed over all
/// of the depth, for itself.
static bool hasSmallB(const Known &of) {
  const int64_t size = of.plan.form == PanelForm::Pairs ? 2 : 4;
  return of.plan.partitions > 0 && !of.shape.transposeB &&
         of.shape.n <= REPRISE_GEMM_NC &&
         of.shape.n * of.shape.k * size <= kBytesOfSmallB &&
         (of.plan.readsB || of.plan.hasPlacesOfB);
}

/// Of blocks of so many columns, with all threads.
static LoopOrder chooseOrderOfBlock(const Known &of, int64_t cols) {
  return of.hasOwnPanels(cols)    ? LoopOrder::OwnPanels
         : of.plan.partitions > 0 ? LoopOrder::Partitions
                                  : LoopOrder::Tiles;
}

/// Blocks of as many columns each, if they are enough for all threads.
static int64_t chooseCols(const Known &of) {
  const int64_t n = of.shape.n;
  const int64_t width = divideUp(n, divideUp(n, REPRISE_GEMM_NC));
  const int64_t cols =
      smaller(repriseRoundUp(width, REPRISE_GEMM_COL_ALIGN), n);
  return of.hasOwnPanels(cols) ? cols : smaller(n, REPRISE_GEMM_NC);
}

/// Of the orders that go block by block.
static void chooseBlocks(Known &of) {
  GemmPlan &plan = of.plan;
  const RepriseGemm &shape = of.shape;
  plan.cols = smaller(shape.n, REPRISE_GEMM_NC);
  // One thread that has all rows writes no panel of B down for the others.
  const bool isOnly = plan.threads == 1 && shape.m <= of.mostSharedRows() &&
                      of.hasRoomForAll(shape.m);
  if (plan.partitions == 0 && !isOnly)
    plan.rows = smaller(shape.m, REPRISE_GEMM_MC);
  plan.order = chooseOrderOfBlock(of, plan.cols);
  plan.last = chooseOrderOfBlock(of, (shape.n - 1) % REPRISE_GEMM_NC + 1);
}

static void chooseOrder(Known &of) {
  GemmPlan &plan = of.plan;
  plan.rows = of.shape.m;
  const int64_t narrow = countNarrowCols(of);
  plan.cols = chooseCols(of);
  if (narrow != of.shape.n)
    if (const int64_t rows = countSharedRows(of)) {
      plan.rows = rows;
      plan.order = plan.last = LoopOrder::WholeDepth;
      return;
    }
  if (narrow > 0) {
    plan.cols = narrow;
    plan.order = plan.last =
        narrow < of.shape.n ? LoopOrder::ReadAByColumns : LoopOrder::ReadA;
    return;
  }
  plan.partitions = countPartitions(of);
  plan.cols = chooseCols(of);
  if (hasLongPartitions(of))
    plan.order = plan.last = LoopOrder::LongPartitions;
  else if (hasSmallB(of))
    plan.order = plan.last = LoopOrder::SmallB;
  else
    chooseBlocks(of);
}

/// Behind panels if a thread has all of them for a block of squares.
static SquaresBy chooseSquares(const GemmPlan &plan, bool areWholeTiles) {
  if (areWholeTiles)
    return SquaresBy::Tile;
  const bool readsA =
      plan.order == LoopOrder::ReadA || plan.order == LoopOrder::ReadAByColumns;
  return !readsA && (plan.isAlone() || plan.partitions > 0 || plan.threads == 1)
             ? SquaresBy::Panel
             : SquaresBy::End;
}

GemmPlan reprise::runtime::choosePlan(const RepriseGemm &shape,
                                      const MicroKernels &kernels, int threads,
                                      const GemmRequest &request) {
  const RepriseMicroKernel &full = *kernels.full;
  GemmPlan plan = {};
  plan.order = plan.last = LoopOrder::Amx;
  plan.threads = threads;
  if (full.isa == REPRISE_ISA_AMX_BF16)
    return plan;
  plan.form = chooseForm(shape, full);
  plan.depth = smaller(shape.k, repriseGemmKC(&shape));
  plan.steps = panelRows(plan.form, plan.depth);
  plan.readsB = shape.packedB && !shape.transposeB &&
                plan.form == PanelForm::Pairs &&
                full.cols == REPRISE_PACKED_COLS;
  plan.rowsMeet = doRowsOfAMeet(shape);
  plan.hasPlacesOfA = threads * full.rows <= smaller(shape.m, REPRISE_GEMM_MC);
  plan.hasPlacesOfB = 2 * threads * full.cols <= repriseGemmPanelCols(&shape);
  plan.hasAVX512 = full.isa >= REPRISE_ISA_V4;
  const bool areWholeTiles = request.squares && hasWholeBlocks(kernels);
  const bool sumsBehind = request.squares && !areWholeTiles;
  plan.unit = rowsOfUnit(kernels, sumsBehind);
  // Each tile is written once, as whole lines that nobody reads behind it.
  plan.streams =
      shape.typeC != REPRISE_BF16 && !shape.accumulate && !shape.bias &&
      !sumsBehind && shape.k <= plan.depth &&
      isReadLate(shape, request.isAligned, full.cols * int64_t(sizeof(float)));
  Known known = {shape, full, *kernels.low, kernels.bytesOfL2, plan};
  chooseOrder(known);
  if (request.squares)
    known.plan.squares = chooseSquares(known.plan, areWholeTiles);
  return known.plan;
}

//===----------------------------------------------------------------------===//
// A line of text
//===----------------------------------------------------------------------===//

void reprise::runtime::describePlan(const GemmPlan &plan, char *text,
                                    size_t size) {
  const char *name = kLoopOrders[int(plan.order)].name;
  if (plan.order == LoopOrder::Amx) {
    snprintf(text, size, "%s", name);
    return;
  }
  static constexpr const char *kForms[] = {"f32", "bf16x2", "bf16 as f32"};
  static constexpr const char *kSquares[] = {
      "", ", squares by tile", ", squares by panel", ", squares at the end"};
  size_t length = size_t(snprintf(
      text, size, "%s, %s, blocks of %" PRId64 " x %" PRId64 " x %" PRId64,
      name, kForms[int(plan.form)], plan.rows, plan.cols, plan.depth));
  auto add = [&](const char *format, auto... values) {
    if (length < size)
      length +=
          size_t(snprintf(text + length, size - length, format, values...));
  };
  if (plan.last != plan.order)
    add(", the last %s", kLoopOrders[int(plan.last)].name);
  if (plan.partitions > 0)
    add(", %" PRId64 " partitions", plan.partitions);
  if (plan.readsB)
    add("%s", ", B read in place");
  if (plan.streams)
    add("%s", ", C past the caches");
  add("%s", kSquares[int(plan.squares)]);
}
