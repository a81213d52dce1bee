//===- GemmTiles.cpp - Panels and tiles of a product ----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GemmProduct.h"
#include "Squares.h"

using namespace reprise::runtime;

static PanelForm chooseForm(const RepriseGemm &shape,
                            const RepriseMicroKernel &kernel) {
  if (shape.typeAB == REPRISE_F32)
    return PanelForm::Floats;
  return kernel.typeAB == REPRISE_BF16 ? PanelForm::Pairs : PanelForm::Expanded;
}

Product::Product(const RepriseGemm &shape, const GemmOperands &operands,
                 const MicroKernels &kernels, int64_t entry, int slot)
    : GemmEntry(shape, operands, entry), full(*kernels.full), low(*kernels.low),
      secondCache(kernels.secondCache), form(chooseForm(shape, full)),
      hasAVX512(full.isa >= REPRISE_ISA_V4),
      sumsSquares(squares && hasWholeBlocks()),
      sumsBehind(squares && !sumsSquares) {
  RepriseGemm one = shape;
  one.batch[0] = one.batch[1] = 1;
  int64_t size = repriseGemmWorkspaceBytes(&one) / 4;
  sums = operands.workspace + slot * size;
  panelsA = sums + repriseGemmSums(&one);
  // The panels of B come last and end with the workspace, however little of
  // their room they take.
  panelsB = sums + size - stepsOfBlock() * repriseGemmPanelCols(&one);
  if (panelsA == sums)
    sums = nullptr;
  streams = mayStream();
}

/// The rows become full panels and at most two low ones at the end, so that as
/// few as possible are computed in vain: 256 = 20 x 12 + 2 x 8 = 42 x 6 + 4.
void Product::divideRows() {
  numFull = rows.size / full.rows;
  int64_t rest = rows.size % full.rows;
  numLow = rest > 0 && rest <= low.rows ? 1 : 0;
  if (rest > low.rows || (numLow && &low == &full)) {
    ++numFull;
    numLow = 0;
  } else if (numLow && numFull > 0 && rest + full.rows <= 2 * low.rows) {
    --numFull;
    numLow = 2;
  }
}

/// Where lines are neighbours in memory, a cache line has parts of several
/// panels: they take turns every few rows, while it is in the first cache.
void Product::packA(int64_t firstPanel, int64_t endPanel) {
  constexpr int64_t kTurn = 16;
  int64_t piece = a.depthIsFast ? depth.size : kTurn;
  for (int64_t first = 0; first < depth.size; first += piece)
    for (int64_t index = firstPanel; index < endPanel; ++index)
      packA(getRowPanel(index), first, smaller(piece, depth.size - first),
            packedA(getRowPanel(index)));
}

Product::RowPanel Product::getRowPanel(int64_t panel) const {
  bool isFull = panel < numFull;
  const RepriseMicroKernel &kernel = isFull ? full : low;
  int64_t begin = isFull ? panel * full.rows
                         : numFull * full.rows + (panel - numFull) * low.rows;
  return {kernel, {begin, smaller(kernel.rows, rows.size - begin)}};
}

FetchRegion reprise::runtime::getRegion(const PanelSource &source,
                                        PanelForm form, Range lines,
                                        Range depth) {
  int64_t size = form == PanelForm::Floats ? 4 : 2;
  const Range &rows = source.depthIsFast ? lines : depth;
  const Range &cols = source.depthIsFast ? depth : lines;
  return {static_cast<const char *>(source.data) +
              (rows.begin * source.stride + cols.begin) * size,
          source.stride * size, rows.size, cols.size * size};
}

FetchRegion Product::getRegionOfA(const RowPanel &panel, Range depths) const {
  Range lines = {rows.begin + panel.rows.begin, panel.rows.size};
  return getRegion(a, form, lines, depths);
}

bool Product::isPackedBefore(int64_t panelB) const {
  bool isNext = panelB >= divideUp(cols.size, full.cols);
  return !packsBAlone && !readsB() &&
         ((numShares > 0 && !isNext) || (isNext ? next.rows : rows).begin > 0);
}

FetchRegion Product::getRegionOfB(int64_t panelB) const {
  int64_t numB = divideUp(cols.size, full.cols);
  bool isNext = panelB >= numB;
  if (isNext && next.rows.size == 0)
    return {};
  if (isPackedBefore(panelB)) {
    int64_t bytes = full.cols * int64_t(sizeof(float));
    return {reinterpret_cast<const char *>(packedB(panelB % numB)), bytes,
            panelRows(form, depth.size), bytes};
  }
  const Range &within = isNext ? next.cols : cols;
  int64_t first = (isNext ? panelB - numB : panelB) * full.cols;
  if (first >= within.size)
    return {};
  const Range lines = {within.begin + first,
                       smaller(full.cols, within.size - first)};
  const Range &depths = isNext ? next.depth : depth;
  return b.isPacked ? getPackedRegionOfB(lines, depths)
                    : getRegion(b, form, lines, depths);
}

bool Product::isPackedAhead(int64_t panelB, const FetchRegion &region) const {
  static_assert(REPRISE_GEMM_COL_ALIGN * sizeof(float) <= Fetch::kBytes,
                "a call fetches whole rows of a panel");
  return form != PanelForm::Expanded && !b.depthIsFast && !b.isPacked &&
         !isPackedBefore(panelB) && region.rows % perWord() == 0 &&
         region.bytes * perWord() == full.cols * int64_t(sizeof(float));
}

Product::Next Product::getNext(int64_t panelB, const TasksOfB &sharing,
                               bool hasOwnA) const {
  const int64_t numB = divideUp(cols.size, full.cols);
  auto [parts, tasks, panels] = sharing;
  int part = int(((panelB / panels + 1) * parts - 1) / tasks);
  int64_t begin = ThreadPool::firstOfPart(tasks, parts, part) * panels;
  int64_t end =
      smaller(ThreadPool::firstOfPart(tasks, parts, part + 1) * panels, numB);
  Next then = {panelB + 1, end - begin, end - 1 - panelB, next.rows};
  if (then.panelB == end)
    then.panelB = numB + begin;
  if (!hasOwnA) {
    int64_t first = ThreadPool::firstOfPart(next.rows.size, parts, part);
    int64_t last = ThreadPool::firstOfPart(next.rows.size, parts, part + 1);
    then.rowsOfA = {next.rows.begin + first, last - first};
  }
  return then;
}

/// B is fetched slowly, but so that calls are left for A, and one that packs
/// what was fetched last. The last panels of B fetch what comes next of A, from
/// the end on: earlier it would not stay. So that is not done as slowly as can
/// be.
Product::LookAhead Product::planLookAhead(const Next &then, int64_t tiles,
                                          float *place) const {
  const int64_t steps = panelRows(form, depth.size);
  FetchRegion nextB = getRegionOfB(then.panelB);
  FetchRegion nextA = getRegion(a, form, then.rowsOfA, next.depth);
  bool packs = place && isPackedAhead(then.panelB, nextB);
  auto choosePaceB = [&](int64_t paceA) {
    int64_t callsA = divideUp(nextA.countCalls(steps, paceA), then.panels);
    return nextB.choosePace(steps, tiles - callsA - packs);
  };
  int64_t paceA = Fetch::kLeastPace, paceB = choosePaceB(paceA);
  int64_t callsB = nextB.countCalls(steps, paceB);
  if (2 * paceA <= paceB && choosePaceB(2 * paceA) == paceB &&
      nextA.countCalls(steps, 2 * paceA) <= (tiles - callsB) * then.panels)
    paceA *= 2;
  // A call has whole rows of the panel.
  packs =
      packs && callsB > 0 && callsB < tiles && steps / paceB % perWord() == 0;
  // Calls of the panels after this one, which fetch what comes first of A.
  const int64_t before =
      callsB < tiles ? then.panelsLeft * (tiles - callsB) : 0;
  return {FetchCalls(nextB, steps, paceB, 0),
          FetchCalls(nextA, steps, paceA, before), paceB,
          packs ? nextB.data : nullptr, place};
}

void Product::askLookAhead(RepriseTile &tile, LookAhead &ahead) const {
  if (ahead.isOver)
    return;
  tile.aheadRows = ahead.last.rows / perWord();
  tile.aheadSource = ahead.last.data;
  tile.ahead = ahead.place + ahead.last.firstRow / perWord() * full.cols;
  ahead.last = {};
  if (!ahead.ofB.isDone()) {
    const Fetch fetch = ahead.ofB.getNext();
    fetch.ask(tile);
    if (ahead.source)
      ahead.last = fetch;
  } else if (!ahead.ofA.isDone()) {
    ahead.ofA.getNext().ask(tile);
  } else {
    Fetch::ofNothing(tile.b, ahead.pace).ask(tile);
    ahead.isOver = tile.aheadRows == 0;
  }
}

Product::Results Product::getResults(int64_t panelB) const {
  Results to = {getColsOf(panelB), nullptr, nullptr, false, false};
  to.sums = getSums(to.cols.begin);
  if (rounded && isLastBlock())
    to.rounded = rounded + rows.begin * shape.ldc + to.cols.begin;
  to.sumsSquares = sumsSquares && isLastBlock();
  // Memory has no second look at what goes past the caches: its squares are
  // summed on its way there.
  to.areDirect = to.cols.size == full.cols && (to.rounded || to.sums) &&
                 !(to.sumsSquares && streams);
  return to;
}

RepriseTile Product::getTile() const {
  RepriseTile tile = {};
  tile.alpha = shape.alpha;
  tile.addToC = depth.begin > 0 || shape.accumulate;
  tile.k = panelRows(form, depth.size);
  tile.ldc = strideOfSums();
  tile.ldRounded = shape.ldc;
  tile.streams = streams;
  tile.ldSource = a.stride;
  tile.ldAhead = b.stride;
  return tile;
}

void Product::usePanelOfB(RepriseTile &tile, int64_t panelB, const float *place,
                          const Results &to, float *room) const {
  tile.b = getPanelOfB(panelB, place);
  if (shape.bias && isLastBlock())
    tile.bias = getBias(to.cols.begin, to.cols.size, full.cols, room);
}

void Product::computeTile(RepriseTile &tile, const RowPanel &panel,
                          const Results &to) const {
  if (!to.areDirect || panel.rows.size != panel.kernel.rows)
    return computeAside(tile, panel, to);
  const int64_t row = panel.rows.begin;
  tile.c = to.sums ? to.sums + row * tile.ldc : nullptr;
  tile.rounded = to.rounded ? to.rounded + row * shape.ldc : nullptr;
  panel.kernel.fn(&tile);
  if (to.sumsSquares)
    sumBlocks({rows.begin + row, panel.rows.size}, to.cols);
}

void Product::computeAside(RepriseTile tile, const RowPanel &panel,
                           const Results &to) const {
  // What the micro-kernel writes has its own size, not that of this tile.
  alignas(64) float room[REPRISE_GEMM_ROW_ALIGN * REPRISE_GEMM_COL_ALIGN];
  Tile result = {room, full.cols, panel.rows.size, to.cols.size};
  Tile target = result;
  target.stride = tile.ldc;
  target.data = to.sums ? to.sums + panel.rows.begin * tile.ldc : nullptr;
  tile.c = room;
  tile.ldc = full.cols;
  tile.rounded = nullptr;
  tile.streams = false;
  if (tile.addToC)
    target.copyTo(result);
  panel.kernel.fn(&tile);
  const Range rowsOfC = {rows.begin + panel.rows.begin, panel.rows.size};
  const bool isWhole =
      rowsOfC.size == panel.kernel.rows && to.cols.size == full.cols;
  if (to.sumsSquares && streams && isWhole)
    return streamWithSquares(room, rowsOfC.size, target.data, shape.ldc,
                             squaresOf(rowsOfC.begin, to.cols.begin),
                             repriseGemmSquaresOfRow(&shape));
  if (to.rounded)
    result.roundTo(to.rounded + panel.rows.begin * shape.ldc, shape.ldc);
  else
    result.copyTo(target);
  if (to.sumsSquares)
    sumBlocks(rowsOfC, to.cols);
}

void Product::packOrAsk(RepriseTile &tile, const RowPanel &panel) {
  float *place = packedA(panel);
  if (panel.rows.size < panel.kernel.rows) {
    packA(panel, 0, depth.size, place);
    tile.form = REPRISE_TILE_PACKED;
    return;
  }
  tile.form = a.depthIsFast ? REPRISE_TILE_TRANSPOSES_A : REPRISE_TILE_COPIES_A;
  tile.source = getRegionOfA(panel, depth).data;
  tile.packed = place;
}

void Product::computeTiles(int64_t panelB, PlacesOfB &places, int64_t firstA,
                           int64_t endA, Unpacked unpacked, const Next &then) {
  alignas(64) float wholeBias[REPRISE_GEMM_COL_ALIGN];
  const Results to = getResults(panelB);
  RepriseTile tile = getTile();
  usePanelOfB(tile, panelB, places.now, to, wholeBias);
  if (unpacked.b && places.source != getRegion(b, form, to.cols, depth).data)
    packB(panelB, places.now);
  places.source = nullptr;
  if (unpacked.a && !canPackA()) {
    packA(0, numRowPanels());
    unpacked.a = false;
  }

  LookAhead ahead = planLookAhead(then, endA - firstA, places.then);
  for (int64_t index = firstA; index < endA; ++index) {
    const RowPanel panel = getRowPanel(index);
    askLookAhead(tile, ahead);
    tile.a = packedA(panel);
    if (unpacked.a)
      packOrAsk(tile, panel);
    computeTile(tile, panel, to);
  }
  if (ahead.source)
    places.goOn(ahead.source);
  if (sumsBehind && isLastBlock())
    sumBehind(panelB);
}

void Product::sumBehind(int64_t panelB) const {
  const int64_t end = getColsOf(panelB).end();
  const int64_t last = (end - 1) % REPRISE_GEMM_SQUARES_COLS + 1;
  if (last == REPRISE_GEMM_SQUARES_COLS || end == shape.n)
    sumBlocks(rows, {end - last, last});
}

void Product::computeRows(int64_t first, int64_t end, float *place) {
  const int64_t numA = numRowPanels(), numB = divideUp(cols.size, full.cols);
  // For one tile it is not worth it.
  const bool reads = !doRowsOfAMeet() || numB == 1;
  RepriseTile tile = getTile();
  tile.a = tile.packed = place;
  for (int64_t index = first; index < end; ++index) {
    const RowPanel panel = getRowPanel(index);
    bool isWhole = panel.rows.size == panel.kernel.rows;
    if (!isWhole) // The last one.
      packA(panel, 0, depth.size, place);
    tile.form = !isWhole ? REPRISE_TILE_PACKED
                : reads  ? REPRISE_TILE_READS_A
                         : REPRISE_TILE_TRANSPOSES_A;
    tile.source = getRegionOfA(panel, depth).data;
    const FetchRegion nextA = index + 1 < numA
                                  ? getRegionOfA(getRowPanel(index + 1), depth)
                                  : getRegionOfA(getRowPanel(0), next.depth);
    FetchCalls ofA(nextA, tile.k, numB);
    for (int64_t panelB = 0; panelB < numB; ++panelB) {
      alignas(64) float wholeBias[REPRISE_GEMM_COL_ALIGN];
      const Results to = getResults(panelB);
      usePanelOfB(tile, panelB, packedB(panelB), to, wholeBias);
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
