//===- Gemm.cpp - Matrix products -----------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gemm.h"

#include "Fetch.h"
#include "Pack.h"

#include <cstring>
#include <immintrin.h>

using namespace reprise::runtime;

/// Below this many FLOPs, waking threads costs more than they save.
static constexpr int64_t kSerialFlops = 400'000;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

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

/// A range of rows, columns or depth.
struct Range {
  int64_t begin, size;
};

/// While it lives, this thread takes denormal numbers for zeros and makes none:
/// what products of bf16 do, for so does the processor that has them.
class DenormalsAreZero {
public:
  explicit DenormalsAreZero(bool active) : saved(_mm_getcsr()) {
    if (active)
      _mm_setcsr(saved | _MM_FLUSH_ZERO_ON | _MM_DENORMALS_ZERO_ON);
  }
  DenormalsAreZero(const DenormalsAreZero &) = delete;
  DenormalsAreZero &operator=(const DenormalsAreZero &) = delete;
  ~DenormalsAreZero() { _mm_setcsr(saved); }

private:
  unsigned saved;
};

/// A part of a row-major f32 matrix.
struct Tile {
  float *data;
  int64_t stride, rows, cols;

  void copyTo(const Tile &to) const {
    for (int64_t r = 0; r < rows; ++r)
      memcpy(to.data + r * to.stride, data + r * stride,
             size_t(cols) * sizeof(float));
  }
  /// To the nearest bf16, ties to even.
  void roundTo(uint16_t *to, int64_t toStride) const {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < cols; ++j) {
        uint32_t bits;
        memcpy(&bits, data + r * stride + j, sizeof(bits));
        uint32_t nearest = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
        bool isNaN = (bits & 0x7FFFFFFF) > 0x7F800000;
        to[r * toStride + j] = uint16_t(isNaN ? 0x7FC0 : nearest);
      }
  }
};

/// One entry of the batch, with the packed panels it works in.
class Product {
public:
  Product(const RepriseGemm &shape, const GemmOperands &operands,
          const MicroKernels &kernels, int64_t entry, int slot);

  /// Computes the product, with the pool's threads unless `pool` is null.
  void run(ThreadPool *pool);

private:
  /// Rows of the block that one panel of A has.
  struct RowPanel {
    const RepriseMicroKernel &kernel;
    Range rows;
  };
  RowPanel getRowPanel(int64_t panel) const;
  int64_t numRowPanels() const { return numFull + numLow; }
  void divideRows();

  float *packedA(const RowPanel &panel) const {
    return panelsA + panel.rows.begin * panelRows(form, depth.size);
  }
  void packA(int64_t index) {
    RowPanel panel = getRowPanel(index);
    packPanel(form, hasAVX512, a, rows.begin + panel.rows.begin,
              panel.rows.size, depth.begin, depth.size, panel.kernel.rows,
              packedA(panel));
  }
  float *packedB(int64_t place) const {
    return panelsB + place * full.cols * panelRows(form, depth.size);
  }
  void packB(int64_t panel, int64_t place) {
    int64_t first = panel * full.cols;
    packPanel(form, hasAVX512, b, cols.begin + first,
              smaller(full.cols, cols.size - first), depth.begin, depth.size,
              full.cols, packedB(place));
  }

  /// The tiles of one panel of B with the panels [firstA, endA) of A; packs
  /// that of B first if `packs`. Meanwhile fetches what comes next: this thread
  /// goes on with the panel of B `ahead` of this one.
  void computeTiles(int64_t panelB, int64_t place, int64_t firstA, int64_t endA,
                    bool packs, int64_t ahead);
  /// One tile. The form of the micro-kernel that packs B does if `packs`.
  void computeTile(const RowPanel &panel, int64_t panelB, float *packed,
                   bool packs, const Fetch &fetch);
  /// What a panel of B is packed from or, if it is packed already, is.
  FetchRegion getRegionOfB(int64_t panelB) const;
  /// What the panels of A of the next block are packed from.
  FetchRegion getRegionOfNextA() const;
  /// Where f32 sums go from block to block: C or, of a C of bf16, the
  /// workspace, or nowhere if it has only one block.
  Tile getSums(const RowPanel &panel, int64_t panelB) const;
  void computeBlock(ThreadPool *pool);

  const RepriseGemm &shape;
  const RepriseMicroKernel &full, &low;
  PanelForm form;
  bool hasAVX512;
  PanelSource a, b;
  const float *bias;
  float *c;          ///< Null if C is of bf16.
  uint16_t *rounded; ///< Null if it is not.
  float *panelsA, *panelsB, *sums;
  /// The block being worked on, and the one after it, empty at the end.
  struct Block {
    Range rows, cols, depth;
  };
  Range rows, cols, depth;
  Block next = {};
  int64_t numFull = 0, numLow = 0; ///< Panels of its rows.
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
    : shape(shape), full(*kernels.full), low(*kernels.low),
      form(chooseForm(shape, full)), hasAVX512(full.isa > 0),
      bias(operands.bias) {
  int64_t i = entry / shape.batch[1], j = entry % shape.batch[1];
  auto at = [&](const void *data, const int64_t *strides, int32_t type) {
    return static_cast<const char *>(data) +
           (i * strides[0] + j * strides[1]) * (type == REPRISE_BF16 ? 2 : 4);
  };
  a = {at(operands.a, shape.strideA, shape.typeAB), shape.lda,
       !shape.transposeA};
  b = {at(operands.b, shape.strideB, shape.typeAB), shape.ldb,
       shape.transposeB != 0};
  auto *target = const_cast<char *>(at(operands.c, shape.strideC, shape.typeC));
  bool rounds = shape.typeC == REPRISE_BF16;
  c = rounds ? nullptr : reinterpret_cast<float *>(target);
  rounded = rounds ? reinterpret_cast<uint16_t *>(target) : nullptr;

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

FetchRegion Product::getRegionOfB(int64_t panelB) const {
  int64_t numB = divideUp(cols.size, full.cols);
  bool isNext = panelB >= numB;
  if (isNext && next.rows.size == 0)
    return {};
  if ((isNext ? next.rows : rows).begin > 0) {
    int64_t bytes = full.cols * int64_t(sizeof(float));
    return {reinterpret_cast<const char *>(packedB(panelB % numB)), bytes,
            panelRows(form, depth.size), bytes};
  }
  const Range &within = isNext ? next.cols : cols;
  int64_t first = (isNext ? panelB - numB : panelB) * full.cols;
  if (first >= within.size)
    return {};
  return getRegion(
      b, form, {within.begin + first, smaller(full.cols, within.size - first)},
      isNext ? next.depth : depth);
}

FetchRegion Product::getRegionOfNextA() const {
  return getRegion(a, form, next.rows, next.depth);
}

void Product::computeTiles(int64_t panelB, int64_t place, int64_t firstA,
                           int64_t endA, bool packs, int64_t ahead) {
  bool isWide = cols.size - panelB * full.cols >= full.cols;
  int64_t steps = panelRows(form, depth.size);
  FetchRegion nextB = getRegionOfB(panelB + ahead), nextA = getRegionOfNextA();
  int64_t callsB = nextB.countCalls(steps), callsA = nextA.countCalls(steps);
  // The last panels of B fetch what comes next of A, from the end on.
  int64_t spare = endA - firstA - callsB;
  int64_t before = (divideUp(cols.size, full.cols) - 1 - panelB) * spare;
  for (int64_t index = firstA; index < endA; ++index) {
    RowPanel panel = getRowPanel(index);
    bool packsOnTheWay = packs && form == PanelForm::Floats && !b.depthIsFast &&
                         isWide && panel.rows.size == panel.kernel.rows;
    if (packs && !packsOnTheWay)
      packB(panelB, place);
    int64_t call = index - firstA, callA = before + call - callsB;
    Fetch fetch = {reinterpret_cast<const char *>(packedB(place)), 0, 1};
    if (call < callsB)
      fetch = nextB.getCall(call, steps);
    else if (callA < callsA)
      fetch = nextA.getCall(callA, steps);
    computeTile(panel, panelB, packedB(place), packsOnTheWay, fetch);
    packs = false;
  }
}

Tile Product::getSums(const RowPanel &panel, int64_t panelB) const {
  int64_t row = rows.begin + panel.rows.begin, col = panelB * full.cols;
  Tile tile = {nullptr, full.cols, panel.rows.size,
               smaller(full.cols, cols.size - col)};
  if (c) {
    tile.stride = shape.ldc;
    tile.data = c + row * tile.stride + cols.begin + col;
  } else if (sums) {
    tile.stride = repriseGemmPanelCols(&shape);
    tile.data = sums + row * tile.stride + col;
  }
  return tile;
}

void Product::computeTile(const RowPanel &panel, int64_t panelB, float *packed,
                          bool packs, const Fetch &fetch) {
  alignas(64) float room[REPRISE_GEMM_ROW_ALIGN * REPRISE_GEMM_COL_ALIGN];
  alignas(64) float wholeBias[REPRISE_GEMM_COL_ALIGN];
  int64_t col = cols.begin + panelB * full.cols;
  bool addToC = depth.begin > 0 || shape.accumulate;
  bool isLast = depth.begin + depth.size == shape.k;
  const float *tileBias = shape.bias && isLast ? bias + col : nullptr;
  const Tile target = getSums(panel, panelB);
  bool isWhole = target.rows == panel.kernel.rows && target.cols == full.cols;
  bool isInPlace = target.data && isWhole;
  Tile tile = target;
  if (!isInPlace) {
    tile.data = room, tile.stride = full.cols;
    if (addToC)
      target.copyTo(tile);
    if (tileBias && !isWhole)
      tileBias = static_cast<float *>(
          memcpy(wholeBias, tileBias, size_t(target.cols) * sizeof(float)));
  }
  int64_t steps = panelRows(form, depth.size);
  if (packs)
    panel.kernel.packFn(
        packedA(panel),
        static_cast<const float *>(b.data) + depth.begin * b.stride + col,
        steps, tile.data, tile.stride, shape.alpha, addToC, tileBias,
        fetch.data, fetch.stride, fetch.rows, b.stride, packed);
  else
    panel.kernel.fn(packedA(panel), packed, steps, tile.data, tile.stride,
                    shape.alpha, addToC, tileBias, fetch.data, fetch.stride,
                    fetch.rows);
  if (rounded && isLast)
    tile.roundTo(rounded + (rows.begin + panel.rows.begin) * shape.ldc + col,
                 shape.ldc);
  else if (!isInPlace)
    tile.copyTo(target);
}

/// Adds one block of the depth to one block of C: packs what is not packed yet,
/// then computes the tiles.
void Product::computeBlock(ThreadPool *pool) {
  divideRows();
  int64_t numA = numRowPanels();
  int64_t numB = divideUp(cols.size, full.cols);
  bool packsB = rows.begin == 0;
  auto share = [&](int64_t tasks, int64_t chunk, auto fn) {
    auto loop = [&](int slot, int64_t begin, int64_t end) {
      DenormalsAreZero guard(form != PanelForm::Floats);
      for (int64_t task = begin; task < end; ++task)
        fn(task, slot);
    };
    if (pool && 2 * rows.size * cols.size * depth.size >= kSerialFlops)
      pool->parallelFor(tasks, chunk, loop);
    else
      loop(0, 0, tasks);
  };

  int threads = pool ? pool->size() : 1;
  if (numB >= 4 * threads || threads == 1) {
    // Enough panels of B for everybody: each is packed by the thread that uses
    // it, and is still in its cache then. If no other rows follow, a thread has
    // one place for all of its panels, but the last is always where it belongs.
    bool isOnly = rows.size == shape.m;
    share(numA, 4, [&](int64_t task, int) { packA(task); });
    share(numB, 1, [&](int64_t task, int slot) {
      int64_t place = isOnly && task + 1 < numB ? numB - 2 - slot : task;
      computeTiles(task, place, 0, numA, packsB, threads);
    });
    return;
  }
  share(numA + (packsB ? numB : 0), 2, [&](int64_t task, int) {
    if (task < numA)
      packA(task);
    else
      packB(task - numA, task - numA);
  });
  int64_t perTask = divideUp(numA * numB, 8 * threads);
  int64_t groups = divideUp(numA, perTask);
  share(numB * groups, 1, [&](int64_t task, int) {
    int64_t first = task % groups * perTask;
    computeTiles(task / groups, task / groups, first,
                 smaller(first + perTask, numA),
                 /*packs=*/false, /*ahead=*/1);
  });
}

void Product::run(ThreadPool *pool) {
  const int64_t kc = repriseGemmKC(&shape), mc = REPRISE_GEMM_MC;
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

void reprise::runtime::gemm(const RepriseGemm &shape,
                            const GemmOperands &operands,
                            const MicroKernels &kernels, ThreadPool &pool) {
  int64_t entries = shape.batch[0] * shape.batch[1];
  int64_t flops = 2 * shape.m * shape.n * shape.k;
  // With fewer entries than threads, large ones are shared out one by one.
  if (entries < pool.size() && flops >= kSerialFlops) {
    for (int64_t entry = 0; entry < entries; ++entry)
      Product(shape, operands, kernels, entry, /*slot=*/0).run(&pool);
    return;
  }
  int64_t chunk = divideUp(kSerialFlops / 2, flops);
  pool.parallelFor(
      entries, smaller(chunk, divideUp(entries, pool.size())),
      [&](int slot, int64_t begin, int64_t end) {
        for (int64_t entry = begin; entry < end; ++entry)
          Product(shape, operands, kernels, entry, slot).run(nullptr);
      },
      int(smaller(entries, REPRISE_GEMM_SLOTS)));
}
