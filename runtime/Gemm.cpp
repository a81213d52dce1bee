//===- Gemm.cpp - Matrix products -----------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gemm.h"

#include "GemmAmx.h"
#include "GemmParts.h"

using namespace reprise::runtime;

/// A thread that has rows to itself reads each panel of B from the second-level
/// cache once for so many tiles at least: then it hides behind them.
static constexpr int64_t kLeastTilesOfShare = 4;

/// Threads with so many panels of A each pack B for themselves: shares then
/// have 11 at least, and mostly 16 to 22.
static constexpr int64_t kLeastTilesAlone = 16;

/// Half of a second cache: where all of B is no more, threads that have rows of
/// their own each pack it for themselves.
static constexpr int64_t kBytesOfSmallB = 512 << 10;

MicroKernels
reprise::runtime::chooseMicroKernels(const RepriseMicroKernel *kernels,
                                     int count, int cpuLevel, int typeAB) {
  MicroKernels best;
  for (int i = 0; i < count; ++i) {
    const RepriseMicroKernel &kernel = kernels[i];
    if (int(kernel.isa) + 3 > cpuLevel || kernel.typeAB != typeAB)
      continue;
    if (!best.full || kernel.isa > best.full->isa)
      best = {&kernel, &kernel};
    else if (best.low == best.full && kernel.isa == best.full->isa &&
             kernel.cols == best.full->cols && kernel.rows < best.full->rows)
      best.low = &kernel;
  }
  return best;
}

//===----------------------------------------------------------------------===//
// One product
//===----------------------------------------------------------------------===//

namespace {

/// One entry of the batch, with the packed panels it works in.
class Product : GemmEntry {
public:
  Product(const RepriseGemm &shape, const GemmOperands &operands,
          const MicroKernels &kernels, int64_t entry, int slot);

  /// Computes the product, with the pool's threads unless `pool` is null.
  void run(ThreadPool *pool);

private:
  /// Where a thread packs panels of B: the one at hand and, unless it is null,
  /// the one that comes next, meanwhile.
  struct PlacesOfB {
    float *now, *then;
    /// What the panel at `now` is packed from, if it is there already.
    const void *source;

    /// Goes on with the next panel, which is there, packed from `from`.
    void goOn(const void *from) {
      float *last = now;
      now = then, then = last;
      source = from;
    }
  };
  /// Rows of the block that one panel of A has.
  struct RowPanel {
    const RepriseMicroKernel &kernel;
    Range rows;
  };
  RowPanel getRowPanel(int64_t panel) const;
  int64_t numRowPanels() const { return numFull + numLow; }
  void divideRows();
  /// Of a product with few panels of B, or with more rows than a block has, how
  /// many shares of rows there are: a thread works on one alone, in a part of
  /// the room for panels of A. 0 if all threads share all rows.
  int64_t countShares(int threads) const;
  /// This product as share `index` of the block's rows, its panels of A in part
  /// `slot` of the room.
  Product getShare(int64_t index, int slot, int threads) const;

  float *packedA(const RowPanel &panel) const {
    return panelsA + panel.rows.begin * panelRows(form, depth.size);
  }
  /// This product with panels of A of its own for thread `slot`, which lie
  /// where panels of B would: see `hasOwnPanelsOfA`.
  Product getOwn(int slot) const;
  /// Whether, of a product whose panels of B are used once, the room for those
  /// that are never there at the same time holds a copy of A's for each thread.
  bool hasOwnPanelsOfA(int threads) const;
  /// Whether a micro-kernel packs whole panels of A on its way: by transposing
  /// them. (Copies of rows, of which a cache line has parts of several panels,
  /// are made sooner than there is something to compute meanwhile.)
  bool packsOnTheWay() const {
    return a.depthIsFast && form != PanelForm::Expanded &&
           depth.size % (4 * perWord()) == 0;
  }
  /// Panels of A that a thread packs together where others use them, too.
  static constexpr int64_t kGroupOfA = 4;
  int64_t numGroupsOfA() const { return divideUp(numRowPanels(), kGroupOfA); }
  void packGroupOfA(int64_t group) {
    packA(group * kGroupOfA, smaller((group + 1) * kGroupOfA, numRowPanels()));
  }
  /// Panels [firstPanel, endPanel).
  void packA(int64_t firstPanel, int64_t endPanel);
  /// Depths [first, first + count) of the block.
  void packA(const RowPanel &panel, int64_t first, int64_t count) {
    packPanel(form, hasAVX512, a, rows.begin + panel.rows.begin,
              panel.rows.size, depth.begin + first, count, panel.kernel.rows,
              packedA(panel) + panelRows(form, first) * panel.kernel.rows);
  }
  float *packedB(int64_t place) const {
    return panelsB + place * full.cols * panelRows(form, depth.size);
  }
  /// Whether panels of B are not packed, but read where they lie.
  bool readsB() const {
    return b.isPacked && !b.depthIsFast && form == PanelForm::Pairs &&
           full.cols == REPRISE_PACKED_COLS;
  }
  const void *getPanelOfB(int64_t panel, const float *place) const {
    if (readsB())
      return b.findPacked(depth.begin, cols.begin + panel * full.cols);
    return place;
  }
  void packB(int64_t panel, float *place) {
    int64_t first = panel * full.cols;
    packPanel(form, hasAVX512, b, cols.begin + first,
              smaller(full.cols, cols.size - first), depth.begin, depth.size,
              full.cols, place);
  }
  /// The room for B ends with two places for each thread.
  bool hasPlacesOfB(int threads) const {
    return 2 * threads * full.cols <= repriseGemmPanelCols(&shape);
  }
  PlacesOfB getPlacesOfB(int slot) const;

  /// What a thread goes on with after a panel of B.
  struct Next {
    /// Its next panel of B; from the number of them on, one of the next block.
    int64_t panelB;
    /// Panels of B in all and until it comes to the next block, and the rows of
    /// A that it packs then.
    int64_t panels, panelsLeft;
    Range rowsOfA;
  };
  Next getNext(int64_t panelB, int parts, bool hasOwnA) const;
  /// What the calls for one panel of B do for later.
  struct LookAhead {
    FetchRegion nextB, nextA; ///< What they fetch, in this order.
    int64_t steps, paceB, callsB, paceA, callsA;
    int64_t before; ///< Calls before these that could have fetched A.
    bool packs;     ///< Each packs what the one before it has fetched of B.
  };
  /// Of so many `tiles`, with a place for the next panel of B or not.
  LookAhead planLookAhead(const Next &then, int64_t tiles, bool hasPlace) const;
  /// Has a tile do that.
  void askLookAhead(RepriseTile &tile, const LookAhead &plan, int64_t call,
                    float *place) const;
  /// Panels that are not packed yet.
  struct Unpacked {
    bool a, b;
  };
  /// The tiles of one panel of B with the panels [firstA, endA) of A; of A with
  /// all of them if they are not packed yet. Meanwhile fetches what comes next,
  /// and packs of it what `places` has a place for and a micro-kernel can.
  void computeTiles(int64_t panelB, PlacesOfB &places, int64_t firstA,
                    int64_t endA, Unpacked unpacked, const Next &then);
  /// One tile, of which `work` has the operands.
  void computeTile(RepriseTile &work, const RowPanel &panel, Range colsOfC,
                   bool isLast);
  /// Whether a panel of B, from the number of them on one of the next block, is
  /// packed by now.
  bool isPackedBefore(int64_t panelB) const;
  /// What a panel of B is packed from or, if it is packed already, is.
  FetchRegion getRegionOfB(int64_t panelB) const;
  /// Values of p that a row of a panel has.
  int64_t perWord() const { return form == PanelForm::Pairs ? 2 : 1; }
  /// Whether micro-kernels can pack a panel on their way, that of `region`: a
  /// whole one of rows that lie as they read them. (Transposed ones on the way
  /// take longer than before it.)
  bool isPackedAhead(int64_t panelB, const FetchRegion &region) const;
  /// Whether C goes past the caches: each tile is written once, as whole lines.
  bool mayStream() const {
    return c && !shape.accumulate && !shape.bias &&
           shape.k <= repriseGemmKC(&shape) && isReadLate();
  }
  /// Where f32 sums go from block to block: C or, of a C of bf16, the
  /// workspace, or nowhere if it has only one block.
  Tile getSums(Range rowsOfC, Range colsOfC) const;
  void computeBlock(ThreadPool *pool);
  /// Calls `fn(task, slot)` for all tasks, with the pool's threads if so many
  /// FLOPs are worth it.
  template <typename Fn>
  void share(ThreadPool *pool, int64_t flops, int64_t tasks, Fn fn) const;
  /// Whether all of B is small enough for each share to be computed over all of
  /// the depth, for itself.
  bool hasSmallB(int threads) const;
  /// Whether the same is worth it since shares have many rows, and there is
  /// room for their panels of A.
  bool hasLongShares(int threads) const;
  void computeAlone(ThreadPool &pool);

  const RepriseMicroKernel &full, &low;
  PanelForm form;
  bool hasAVX512, streams;
  float *panelsA, *panelsB, *sums;
  /// The block being worked on, and the one after it, empty at the end.
  struct Block {
    Range rows, cols, depth;
  };
  Range rows, cols, depth;
  Block next = {};
  int64_t numFull = 0, numLow = 0; ///< Panels of its rows.
  int64_t numShares = 0;           ///< If not 0, a block has all rows.
  bool packsBAlone = false;        ///< Each thread for its share.
  PlacesOfB *places = nullptr;     ///< Of each thread.
};

} // namespace

static PanelForm chooseForm(const RepriseGemm &shape,
                            const RepriseMicroKernel &kernel) {
  if (shape.typeAB == REPRISE_F32)
    return PanelForm::Floats;
  return kernel.typeAB == REPRISE_BF16 ? PanelForm::Pairs : PanelForm::Expanded;
}

Product::Product(const RepriseGemm &shape, const GemmOperands &operands,
                 const MicroKernels &kernels, int64_t entry, int slot)
    : GemmEntry(shape, operands, entry), full(*kernels.full), low(*kernels.low),
      form(chooseForm(shape, full)), hasAVX512(full.isa >= REPRISE_ISA_V4) {
  RepriseGemm one = shape;
  one.batch[0] = one.batch[1] = 1;
  int64_t size = repriseGemmWorkspaceBytes(&one) / 4;
  panelsA = operands.workspace + slot * size;
  sums = panelsA + repriseGemmPanelsOfA(&one);
  // The panels of B come last and end with the workspace, however little of
  // their room they take.
  int64_t depthOfBlock = smaller(shape.k, repriseGemmKC(&shape));
  panelsB = panelsA + size -
            panelRows(form, depthOfBlock) * repriseGemmPanelCols(&one);
  if (repriseGemmSums(&one) == 0)
    sums = nullptr;
  streams = mayStream();
}

/// The rows become full panels and at most two low ones at the end, so that as
/// few as possible are computed in vain: 256 = 20 x 12 + 2 x 8.
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

int64_t Product::countShares(int threads) const {
  int64_t panels = divideUp(shape.m, full.rows);
  auto count = [&](int64_t most) { // As many for each thread.
    return divideUp(divideUp(panels, most), threads) * threads;
  };
  if (hasLongShares(threads))
    return count(REPRISE_GEMM_MC / full.rows);
  int64_t numB = divideUp(smaller(shape.n, REPRISE_GEMM_NC), full.cols);
  if (threads == 1 || (numB >= 4 * threads && shape.m <= REPRISE_GEMM_MC))
    return 0;
  int64_t room =
      repriseRoundUp(smaller(shape.m, REPRISE_GEMM_MC), REPRISE_GEMM_ROW_ALIGN);
  int64_t most = room / threads / full.rows;
  if (most < kLeastTilesOfShare)
    return 0;
  return count(most);
}

Product Product::getShare(int64_t index, int slot, int threads) const {
  int64_t panels = divideUp(shape.m, full.rows);
  auto getRows = [&](int64_t share) {
    auto first = [&](int64_t i) {
      return smaller(panels * i / numShares * full.rows, shape.m);
    };
    return Range{first(share), first(share + 1) - first(share)};
  };
  Product share = *this;
  const int64_t most = divideUp(panels, numShares) * full.rows;
  // Of long shares this goes on into the room for B, which is next to A's.
  share.panelsA += slot * most * panelRows(form, depth.size);
  share.rows = getRows(index);
  // This thread goes on with about this share.
  int64_t then = index + 1;
  if (then < numShares * (slot + 1) / threads)
    share.next = {getRows(then), cols, depth};
  else if (next.rows.size > 0)
    share.next.rows = getRows(numShares * slot / threads);
  share.divideRows();
  return share;
}

bool Product::hasOwnPanelsOfA(int threads) const {
  int64_t free = repriseGemmPanelCols(&shape) - 2 * threads * full.cols;
  return (threads - 1) * (numFull * full.rows + numLow * low.rows) <= free;
}

Product Product::getOwn(int slot) const {
  Product own = *this;
  if (slot > 0)
    own.panelsA = panelsB + (slot - 1) *
                                (numFull * full.rows + numLow * low.rows) *
                                panelRows(form, depth.size);
  return own;
}

/// Where lines are neighbours in memory, a cache line has parts of several
/// panels: they take turns every few rows, while it is in the first cache.
void Product::packA(int64_t firstPanel, int64_t endPanel) {
  constexpr int64_t kTurn = 16;
  int64_t piece = a.depthIsFast ? depth.size : kTurn;
  for (int64_t first = 0; first < depth.size; first += piece)
    for (int64_t index = firstPanel; index < endPanel; ++index)
      packA(getRowPanel(index), first, smaller(piece, depth.size - first));
}

Product::RowPanel Product::getRowPanel(int64_t panel) const {
  bool isFull = panel < numFull;
  const RepriseMicroKernel &kernel = isFull ? full : low;
  int64_t begin = isFull ? panel * full.rows
                         : numFull * full.rows + (panel - numFull) * low.rows;
  return {kernel, {begin, smaller(kernel.rows, rows.size - begin)}};
}

/// The rows and bytes of `lines` times `depth` elements of a matrix.
static FetchRegion getRegion(const PanelSource &source, PanelForm form,
                             Range lines, Range depth) {
  int64_t size = form == PanelForm::Floats ? 4 : 2;
  const Range &rows = source.depthIsFast ? lines : depth;
  const Range &cols = source.depthIsFast ? depth : lines;
  return {static_cast<const char *>(source.data) +
              (rows.begin * source.stride + cols.begin) * size,
          source.stride * size, rows.size, cols.size * size};
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

/// Of `parts` threads, with as many panels each.
Product::Next Product::getNext(int64_t panelB, int parts, bool hasOwnA) const {
  int64_t numB = divideUp(cols.size, full.cols);
  int part = int(((panelB + 1) * parts - 1) / numB);
  int64_t begin = ThreadPool::firstOfPart(numB, parts, part);
  int64_t end = ThreadPool::firstOfPart(numB, parts, part + 1);
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
                                          bool hasPlace) const {
  const int64_t steps = panelRows(form, depth.size);
  FetchRegion nextB = getRegionOfB(then.panelB);
  FetchRegion nextA = getRegion(a, form, then.rowsOfA, next.depth);
  bool packs = hasPlace && isPackedAhead(then.panelB, nextB);
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
  return {nextB,
          nextA,
          steps,
          paceB,
          callsB,
          paceA,
          nextA.countCalls(steps, paceA),
          then.panelsLeft * (tiles - callsB),
          packs};
}

void Product::askLookAhead(RepriseTile &tile, const LookAhead &plan,
                           int64_t call, float *place) const {
  // What is at hand, if there is nothing to fetch.
  Fetch fetch = {static_cast<const char *>(tile.b), 0, 1, plan.paceB, 0};
  int64_t callA = plan.before + call - plan.callsB;
  if (call < plan.callsB)
    fetch = plan.nextB.getCall(call, plan.steps, plan.paceB);
  else if (callA < plan.callsA)
    fetch = plan.nextA.getCall(callA, plan.steps, plan.paceA);
  fetch.ask(tile);
  tile.aheadRows = 0;
  if (!plan.packs || call == 0 || call > plan.callsB)
    return;
  Fetch last = plan.nextB.getCall(call - 1, plan.steps, plan.paceB);
  tile.aheadSource = last.data, tile.ldAhead = b.stride;
  tile.aheadRows = last.rows / perWord();
  tile.ahead = place + last.firstRow / perWord() * full.cols;
}

void Product::computeTiles(int64_t panelB, PlacesOfB &places, int64_t firstA,
                           int64_t endA, Unpacked unpacked, const Next &then) {
  alignas(64) float wholeBias[REPRISE_GEMM_COL_ALIGN];
  int64_t col = cols.begin + panelB * full.cols;
  int64_t width = smaller(full.cols, cols.begin + cols.size - col);
  bool isLast = depth.begin + depth.size == shape.k;
  // What all tiles have in common.
  RepriseTile tile = {};
  tile.alpha = shape.alpha;
  tile.addToC = depth.begin > 0 || shape.accumulate;
  tile.b = getPanelOfB(panelB, places.now);
  tile.k = panelRows(form, depth.size);
  if (shape.bias && isLast)
    tile.bias = getBias(col, width, full.cols, wholeBias);
  if (unpacked.b &&
      places.source != getRegion(b, form, {col, width}, depth).data)
    packB(panelB, places.now);
  places.source = nullptr;
  if (unpacked.a && !packsOnTheWay()) {
    packA(0, numRowPanels());
    unpacked.a = false;
  }

  const int64_t tiles = endA - firstA;
  const LookAhead plan = planLookAhead(then, tiles, places.then);
  for (int64_t call = 0; call < tiles; ++call) {
    RowPanel panel = getRowPanel(firstA + call);
    askLookAhead(tile, plan, call, places.then);
    tile.a = packedA(panel);
    tile.form = REPRISE_TILE_PACKED;
    bool isWhole = panel.rows.size == panel.kernel.rows;
    if (unpacked.a && !isWhole) {
      packA(panel, 0, depth.size);
    } else if (unpacked.a) {
      Range lines = {rows.begin + panel.rows.begin, panel.rows.size};
      tile.form = REPRISE_TILE_TRANSPOSES_A;
      tile.source = getRegion(a, form, lines, depth).data;
      tile.ldSource = a.stride;
      tile.packed = packedA(panel);
    }
    computeTile(tile, panel, {col, width}, isLast);
  }
  if (plan.packs)
    places.goOn(plan.nextB.data);
}

Tile Product::getSums(Range rowsOfC, Range colsOfC) const {
  Tile tile = {nullptr, full.cols, rowsOfC.size, colsOfC.size};
  if (c) {
    tile.stride = shape.ldc;
    tile.data = c + rowsOfC.begin * tile.stride + colsOfC.begin;
  } else if (sums) {
    tile.stride = repriseGemmPanelCols(&shape);
    tile.data = sums + rowsOfC.begin * tile.stride + colsOfC.begin - cols.begin;
  }
  return tile;
}

void Product::computeTile(RepriseTile &work, const RowPanel &panel,
                          Range colsOfC, bool isLast) {
  Range rowsOfC = {rows.begin + panel.rows.begin, panel.rows.size};
  bool isWhole = rowsOfC.size == panel.kernel.rows && colsOfC.size == full.cols;
  const Tile target = getSums(rowsOfC, colsOfC);
  work.c = target.data;
  work.ldc = target.stride;
  work.streams = isWhole && streams;
  uint16_t *result = nullptr;
  if (rounded && isLast)
    result = rounded + rowsOfC.begin * shape.ldc + colsOfC.begin;
  if (isWhole && (result || target.data)) {
    work.rounded = result;
    work.ldRounded = shape.ldc;
    return panel.kernel.fn(&work);
  }
  // What the micro-kernel writes has its own size, not that of this tile.
  alignas(64) float room[REPRISE_GEMM_ROW_ALIGN * REPRISE_GEMM_COL_ALIGN];
  Tile tile = {room, full.cols, target.rows, target.cols};
  work.c = room;
  work.ldc = full.cols;
  work.rounded = nullptr;
  if (work.addToC)
    target.copyTo(tile);
  panel.kernel.fn(&work);
  if (result)
    tile.roundTo(result, shape.ldc);
  else
    tile.copyTo(target);
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

bool Product::hasSmallB(int threads) const {
  const int64_t size = form == PanelForm::Pairs ? 2 : 4;
  return numShares > 0 && !b.depthIsFast && shape.n <= REPRISE_GEMM_NC &&
         shape.n * shape.k * size <= kBytesOfSmallB &&
         (readsB() || hasPlacesOfB(threads));
}

bool Product::hasLongShares(int threads) const {
  int64_t panels = divideUp(shape.m, full.rows);
  int64_t free = repriseGemmPanelCols(&shape) - 2 * threads * full.cols;
  return form == PanelForm::Floats && threads > 1 &&
         shape.m > REPRISE_GEMM_MC && panels >= kLeastTilesAlone * threads &&
         (threads - 1) * REPRISE_GEMM_MC <= free;
}

Product::PlacesOfB Product::getPlacesOfB(int slot) const {
  const int64_t size =
      full.cols * panelRows(form, smaller(shape.k, repriseGemmKC(&shape)));
  float *end = panelsB + repriseGemmPanelCols(&shape) / full.cols * size;
  return {end - (2 * slot + 1) * size, end - (2 * slot + 2) * size, nullptr};
}

/// A share's part of C stays in the caches from block to block of the depth,
/// and no thread waits for another.
void Product::computeAlone(ThreadPool &pool) {
  const int64_t kc = repriseGemmKC(&shape);
  // The columns and depths of a block, and of the next.
  auto clip = [&](Block &block) {
    block.cols.size = smaller(REPRISE_GEMM_NC, shape.n - block.cols.begin);
    block.depth.size = smaller(kc, shape.k - block.depth.begin);
  };
  auto getNext = [&](Block block) {
    block.depth.begin += kc;
    if (block.depth.begin >= shape.k)
      block.depth.begin = 0, block.cols.begin += REPRISE_GEMM_NC;
    if (block.cols.begin < shape.n)
      clip(block);
    return block;
  };
  Block first = {};
  clip(first);
  cols = first.cols, depth = first.depth;
  share(&pool, 2 * shape.m * shape.n * shape.k, numShares,
        [&](int64_t task, int slot) {
          Product part = getShare(task, slot, pool.size());
          const Block then = part.next;
          PlacesOfB &mine = places[slot];
          for (Block block = first; block.cols.begin < shape.n;) {
            part.cols = block.cols, part.depth = block.depth;
            block = getNext(block);
            part.next = then;
            if (block.cols.begin < shape.n)
              part.next = {part.rows, block.cols, block.depth};
            const int64_t numB = divideUp(part.cols.size, full.cols);
            for (int64_t panelB = 0; panelB < numB; ++panelB)
              part.computeTiles(panelB, mine, 0, part.numRowPanels(),
                                {/*a=*/panelB == 0, /*b=*/!readsB()},
                                part.getNext(panelB, 1, true));
          }
        });
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
  if (numShares == 0 && (numB >= 4 * threads || threads == 1)) {
    // Enough panels of B for everybody: each is packed by the thread that uses
    // it, and is still in its cache then. If no other rows follow, a thread has
    // two places for all of its panels.
    bool isOnly = rows.size == shape.m && hasPlacesOfB(threads);
    bool ownA = threads == 1 || (isOnly && hasOwnPanelsOfA(threads));
    bool isPacked[ThreadPool::kMaxThreads] = {};
    if (!ownA)
      share(numGroupsOfA(), [&](int64_t task, int) { packGroupOfA(task); });
    share(numB, [&](int64_t task, int slot) {
      PlacesOfB &mine = places[slot];
      if (!isOnly) {
        mine.now = packedB(task);
        mine.then =
            threads == 1 && numB > 1 ? packedB((task + 1) % numB) : nullptr;
      }
      Product own = ownA ? getOwn(slot) : *this;
      bool unpackedA = ownA && !isPacked[slot];
      isPacked[slot] = true;
      own.computeTiles(task, mine, 0, numA, {unpackedA, packsB},
                       getNext(task, threads, ownA));
    });
    return;
  }
  if (numShares > 0) {
    // Each thread has rows of its own, and reads B's panels from its caches.
    if (packsB)
      share(numB, [&](int64_t task, int) { packB(task, packedB(task)); });
    share(numShares, [&](int64_t task, int slot) {
      Product part = getShare(task, slot, threads);
      for (int64_t panelB = 0; panelB < numB; ++panelB) {
        PlacesOfB place = {packedB(panelB), nullptr, nullptr};
        part.computeTiles(panelB, place, 0, part.numRowPanels(),
                          {/*a=*/panelB == 0, /*b=*/false},
                          part.getNext(panelB, 1, true));
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
                 {/*a=*/false, /*b=*/false}, getNext(panelB, 1, true));
  });
}

void Product::run(ThreadPool *pool) {
  const int threads = pool ? pool->size() : 1;
  numShares = countShares(threads);
  packsBAlone = hasLongShares(threads) || hasSmallB(threads);
  PlacesOfB placesOfThreads[ThreadPool::kMaxThreads];
  places = placesOfThreads;
  for (int slot = 0; slot < threads; ++slot)
    places[slot] = hasPlacesOfB(threads) ? getPlacesOfB(slot) : PlacesOfB();
  if (packsBAlone)
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

//===----------------------------------------------------------------------===//
// A batch of products
//===----------------------------------------------------------------------===//

static bool hasAmx(const MicroKernels &kernels) {
  return kernels.full->isa == REPRISE_ISA_AMX_BF16;
}

/// Sums squares once all of C is there: tiles are of other heights than blocks.
static void sumBlocks(const RepriseGemm &shape, const GemmOperands &operands,
                      ThreadPool &pool) {
  const GemmEntry entry(shape, operands, /*entry=*/0);
  constexpr int64_t kSize = REPRISE_GEMM_SQUARES;
  pool.parallelFor(divideUp(shape.m, kSize), 1,
                   [&](int, int64_t begin, int64_t end) {
                     DenormalsAreZero guard(shape.typeAB == REPRISE_BF16);
                     for (int64_t row = begin * kSize;
                          row < smaller(end * kSize, shape.m); row += kSize)
                       for (int64_t col = 0; col < shape.n; col += kSize)
                         entry.sumBlock(row, col);
                   });
}

static void computeEntries(const RepriseGemm &shape,
                           const GemmOperands &operands,
                           const MicroKernels &kernels, ThreadPool &pool) {
  auto compute = [&](int64_t entry, ThreadPool *threads, int slot) {
    if (hasAmx(kernels))
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

void reprise::runtime::gemm(const RepriseGemm &shape,
                            const GemmOperands &operands,
                            const MicroKernels &kernels, ThreadPool &pool) {
  computeEntries(shape, operands, kernels, pool);
  if (operands.squares && !hasAmx(kernels))
    sumBlocks(shape, operands, pool);
}
