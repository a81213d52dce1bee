//===- GemmTiles.cpp - Tiles of a block of a GEMM -------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GemmTiles.h"

#include "Squares.h"

using namespace reprise::runtime;

//===----------------------------------------------------------------------===//
// What comes next
//===----------------------------------------------------------------------===//

NextPanel reprise::runtime::getNextPanel(const GemmBlock &block, int64_t panelB,
                                         const TasksOfB &sharing,
                                         bool hasOwnA) {
  const int64_t numB = block.numPanelsOfB();
  const Range &rows = block.next.rows;
  auto [parts, tasks, panels] = sharing;
  int part = int(((panelB / panels + 1) * parts - 1) / tasks);
  int64_t begin = ThreadPool::firstOfPart(tasks, parts, part) * panels;
  int64_t end =
      smaller(ThreadPool::firstOfPart(tasks, parts, part + 1) * panels, numB);
  NextPanel then = {panelB + 1, end - begin, end - 1 - panelB, rows};
  if (then.panelB == end)
    then.panelB = numB + begin;
  if (!hasOwnA) {
    int64_t first = ThreadPool::firstOfPart(rows.size, parts, part);
    int64_t last = ThreadPool::firstOfPart(rows.size, parts, part + 1);
    then.rowsOfA = {rows.begin + first, last - first};
  }
  return then;
}

LookAhead::LookAhead(const GemmBlock &block, const NextPanel &then,
                     int64_t tiles, float *place)
    : LookAhead(block, block.getRegionOfB(then.panelB),
                getRegion(block.job.entry.a, block.job.plan.form, then.rowsOfA,
                          block.next.depth),
                then, tiles, place) {}

/// B is fetched slowly, but so that calls are left for A, and one that packs
/// what was fetched last. The last panels of B fetch what comes next of A, from
/// the end on: earlier it would not stay. So that is not done as slowly as can
/// be.
LookAhead::LookAhead(const GemmBlock &block, const FetchRegion &nextB,
                     const FetchRegion &nextA, const NextPanel &then,
                     int64_t tiles, float *place)
    : ofB(FetchRegion(), 1, 1, 0), ofA(FetchRegion(), 1, 1, 0),
      perWord(block.job.plan.perWord()), cols(block.job.full.cols),
      place(place) {
  const int64_t steps = block.steps();
  bool packs = place && block.isPackedAhead(then.panelB, nextB);
  auto choosePaceB = [&](int64_t paceA) {
    int64_t callsA = divideUp(nextA.countCalls(steps, paceA), then.panels);
    return nextB.choosePace(steps, tiles - callsA - packs);
  };
  int64_t paceA = Fetch::kLeastPace;
  pace = choosePaceB(paceA);
  int64_t callsB = nextB.countCalls(steps, pace);
  if (2 * paceA <= pace && choosePaceB(2 * paceA) == pace &&
      nextA.countCalls(steps, 2 * paceA) <= (tiles - callsB) * then.panels)
    paceA *= 2;
  // A call has whole rows of the panel.
  packs = packs && callsB > 0 && callsB < tiles && steps / pace % perWord == 0;
  // Calls of the panels after this one, which fetch what comes first of A.
  const int64_t before =
      callsB < tiles ? then.panelsLeft * (tiles - callsB) : 0;
  ofB = FetchCalls(nextB, steps, pace, 0);
  ofA = FetchCalls(nextA, steps, paceA, before);
  if (packs)
    from = nextB.data;
}

void LookAhead::ask(RepriseTile &tile) {
  if (isOver)
    return;
  tile.aheadRows = last.rows / perWord;
  tile.aheadSource = last.data;
  tile.ahead = place + last.firstRow / perWord * cols;
  last = {};
  if (!ofB.isDone()) {
    const Fetch fetch = ofB.getNext();
    fetch.ask(tile);
    if (from)
      last = fetch;
  } else if (!ofA.isDone()) {
    ofA.getNext().ask(tile);
  } else {
    Fetch::ofNothing(tile.b, pace).ask(tile);
    isOver = tile.aheadRows == 0;
  }
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

GemmTiles::Results GemmTiles::getResults(int64_t panelB) const {
  const GemmEntry &entry = job.entry;
  const bool isLast = block.isLastOfDepth();
  Results to = {block.getColsOf(panelB), nullptr, nullptr, false, false};
  to.sums = block.getSums(to.cols.begin);
  if (entry.rounded && isLast)
    to.rounded =
        entry.rounded + block.rows.begin * job.shape.ldc + to.cols.begin;
  to.sumsSquares = plan.squares == SquaresBy::Tile && isLast;
  // Memory has no second look at what goes past the caches: its squares are
  // summed on its way there.
  to.areDirect = to.cols.size == job.full.cols && (to.rounded || to.sums) &&
                 !(to.sumsSquares && plan.streams);
  return to;
}

/// What the tiles of the block have in common.
RepriseTile GemmTiles::getTile() const {
  RepriseTile tile = {};
  tile.alpha = job.shape.alpha;
  tile.addToC = block.depth.begin > 0 || job.shape.accumulate;
  tile.k = block.steps();
  tile.ldc = job.strideOfSums();
  tile.ldRounded = job.shape.ldc;
  tile.streams = plan.streams;
  tile.ldSource = job.entry.a.stride;
  tile.ldAhead = job.entry.b.stride;
  return tile;
}

/// What those of a panel of B have, which lies at `place`. `room` is for their
/// bias.
void GemmTiles::usePanelOfB(RepriseTile &tile, int64_t panelB,
                            const float *place, const Results &to,
                            float *room) const {
  tile.b = block.getPanelOfB(panelB, place);
  if (job.shape.bias && block.isLastOfDepth())
    tile.bias =
        job.entry.getBias(to.cols.begin, to.cols.size, job.full.cols, room);
}

/// One tile, of which `tile` has the operands.
void GemmTiles::computeTile(RepriseTile &tile, const GemmBlock::RowPanel &panel,
                            const Results &to) const {
  if (!to.areDirect || panel.rows.size != panel.kernel.rows)
    return computeAside(tile, panel, to);
  const int64_t row = panel.rows.begin;
  tile.c = to.sums ? to.sums + row * tile.ldc : nullptr;
  tile.rounded = to.rounded ? to.rounded + row * job.shape.ldc : nullptr;
  panel.kernel.fn(&tile);
  if (to.sumsSquares)
    job.entry.sumBlocks({block.rows.begin + row, panel.rows.size}, to.cols);
}

/// One that cannot go there from the registers: at an edge, or whose squares
/// are summed on its way past the caches.
void GemmTiles::computeAside(RepriseTile tile, const GemmBlock::RowPanel &panel,
                             const Results &to) const {
  // What the micro-kernel writes has its own size, not that of this tile.
  alignas(64) float room[REPRISE_GEMM_ROW_ALIGN * REPRISE_GEMM_COL_ALIGN];
  const GemmEntry &entry = job.entry;
  Tile result = {room, job.full.cols, panel.rows.size, to.cols.size};
  Tile target = result;
  target.stride = tile.ldc;
  target.data = to.sums ? to.sums + panel.rows.begin * tile.ldc : nullptr;
  tile.c = room;
  tile.ldc = job.full.cols;
  tile.rounded = nullptr;
  tile.streams = false;
  if (tile.addToC)
    target.copyTo(result);
  panel.kernel.fn(&tile);
  const Range rowsOfC = {block.rows.begin + panel.rows.begin, panel.rows.size};
  const bool isWhole =
      rowsOfC.size == panel.kernel.rows && to.cols.size == job.full.cols;
  if (to.sumsSquares && plan.streams && isWhole)
    return streamWithSquares(room, rowsOfC.size, target.data, job.shape.ldc,
                             entry.squaresOf(rowsOfC.begin, to.cols.begin),
                             repriseGemmSquaresOfRow(&job.shape));
  if (to.rounded)
    result.roundTo(to.rounded + panel.rows.begin * job.shape.ldc,
                   job.shape.ldc);
  else
    result.copyTo(target);
  if (to.sumsSquares)
    entry.sumBlocks(rowsOfC, to.cols);
}

/// Has a tile pack its panel of A, or does so before it.
void GemmTiles::packOrAsk(RepriseTile &tile,
                          const GemmBlock::RowPanel &panel) const {
  float *place = block.packedA(panel);
  if (panel.rows.size < panel.kernel.rows) {
    block.packA(panel, 0, block.depth.size, place);
    tile.form = REPRISE_TILE_PACKED;
    return;
  }
  tile.form = job.entry.a.depthIsFast ? REPRISE_TILE_TRANSPOSES_A
                                      : REPRISE_TILE_COPIES_A;
  tile.source = block.getRegionOfA(panel, block.depth).data;
  tile.packed = place;
}

void GemmTiles::compute(int64_t panelB, PlacesOfB &places, int64_t firstA,
                        int64_t endA, Unpacked unpacked,
                        const NextPanel &then) const {
  alignas(64) float wholeBias[REPRISE_GEMM_COL_ALIGN];
  const Results to = getResults(panelB);
  RepriseTile tile = getTile();
  usePanelOfB(tile, panelB, places.now, to, wholeBias);
  if (unpacked.b &&
      places.source !=
          getRegion(job.entry.b, plan.form, to.cols, block.depth).data)
    block.packB(panelB, places.now);
  places.source = nullptr;
  if (unpacked.a && !block.canPackA()) {
    block.packA(0, block.numRowPanels());
    unpacked.a = false;
  }

  LookAhead ahead(block, then, endA - firstA, places.then);
  for (int64_t index = firstA; index < endA; ++index) {
    const GemmBlock::RowPanel panel = block.getRowPanel(index);
    ahead.ask(tile);
    tile.a = block.packedA(panel);
    if (unpacked.a)
      packOrAsk(tile, panel);
    computeTile(tile, panel, to);
  }
  if (ahead.source())
    places.goOn(ahead.source());
  if (plan.squares == SquaresBy::Panel && block.isLastOfDepth())
    sumBehind(panelB);
}

/// Sums the squares of all rows at hand in the blocks whose last columns are
/// this panel's of B, which this thread has just written as it has the others.
void GemmTiles::sumBehind(int64_t panelB) const {
  const int64_t end = block.getColsOf(panelB).end();
  const int64_t last = (end - 1) % REPRISE_GEMM_SQUARES_COLS + 1;
  if (last == REPRISE_GEMM_SQUARES_COLS || end == job.shape.n)
    job.entry.sumBlocks(block.rows, {end - last, last});
}

void GemmTiles::computeRows(int64_t first, int64_t end, float *place) const {
  const int64_t numA = block.numRowPanels(), numB = block.numPanelsOfB();
  // For one tile it is not worth it.
  const bool reads = !plan.rowsMeet || numB == 1;
  RepriseTile tile = getTile();
  tile.a = tile.packed = place;
  for (int64_t index = first; index < end; ++index) {
    const GemmBlock::RowPanel panel = block.getRowPanel(index);
    bool isWhole = panel.rows.size == panel.kernel.rows;
    if (!isWhole) // The last one.
      block.packA(panel, 0, block.depth.size, place);
    tile.form = !isWhole ? REPRISE_TILE_PACKED
                : reads  ? REPRISE_TILE_READS_A
                         : REPRISE_TILE_TRANSPOSES_A;
    tile.source = block.getRegionOfA(panel, block.depth).data;
    const bool isLast = index + 1 == numA;
    const FetchRegion nextA =
        block.getRegionOfA(block.getRowPanel(isLast ? 0 : index + 1),
                           isLast ? block.next.depth : block.depth);
    FetchCalls ofA(nextA, tile.k, numB);
    for (int64_t panelB = 0; panelB < numB; ++panelB) {
      alignas(64) float wholeBias[REPRISE_GEMM_COL_ALIGN];
      const Results to = getResults(panelB);
      usePanelOfB(tile, panelB, block.packedB(panelB), to, wholeBias);
      const Fetch fetch = ofA.isDone()
                              ? Fetch::ofNothing(tile.b, Fetch::kMostPace)
                              : ofA.getNext();
      fetch.ask(tile);
      computeTile(tile, panel, to);
      if (tile.form == REPRISE_TILE_TRANSPOSES_A)
        tile.form = REPRISE_TILE_PACKED;
    }
  }
}
