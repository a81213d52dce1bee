//===- Gemm.cpp - Matrix products -----------------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Gemm.h"

#include "Pack.h"

#include <cstring>

using namespace reprise::runtime;

/// Below this many FLOPs, waking threads costs more than they save.
static constexpr int64_t kSerialFlops = 400'000;

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

MicroKernels
reprise::runtime::chooseMicroKernels(const RepriseMicroKernel *kernels,
                                     int count, int cpuLevel) {
  MicroKernels best;
  for (int i = 0; i < count; ++i) {
    const RepriseMicroKernel &kernel = kernels[i];
    if (int(kernel.isa) + 3 > cpuLevel)
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

/// One entry of the batch, with the packed panels it works in.
class Product {
public:
  Product(const RepriseGemm &shape, const GemmOperands &operands,
          const MicroKernels &kernels, int64_t entry, int slot)
      : shape(shape), full(*kernels.full), low(*kernels.low),
        bias(operands.bias) {
    int64_t i = entry / shape.batch[1], j = entry % shape.batch[1];
    a = {operands.a + i * shape.strideA[0] + j * shape.strideA[1], shape.lda,
         !shape.transposeA};
    b = {operands.b + i * shape.strideB[0] + j * shape.strideB[1], shape.ldb,
         shape.transposeB != 0};
    c = operands.c + i * shape.strideC[0] + j * shape.strideC[1];
    RepriseGemm one = shape;
    one.batch[0] = one.batch[1] = 1;
    panelsA = operands.workspace + slot * (repriseGemmWorkspaceBytes(&one) / 4);
    panelsB = panelsA + repriseGemmPanelsOfA(&one);
  }

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
    return panelsA + panel.rows.begin * depth.size;
  }
  void packA(int64_t index) {
    RowPanel panel = getRowPanel(index);
    packPanel(a, rows.begin + panel.rows.begin, panel.rows.size, depth.begin,
              depth.size, panel.kernel.rows, packedA(panel));
  }
  float *packedB(int64_t panel) const {
    return panelsB + panel * full.cols * depth.size;
  }
  void packB(int64_t panel) {
    int64_t first = panel * full.cols;
    packPanel(b, cols.begin + first, smaller(full.cols, cols.size - first),
              depth.begin, depth.size, full.cols, packedB(panel));
  }
  /// The part of a tile that lies in C.
  struct Edge {
    float *c;
    int64_t rows, cols;
  };

  /// The tiles of one panel of B with the panels [firstA, endA) of A; packs
  /// that of B first if `packs`.
  void computeTiles(int64_t panelB, int64_t firstA, int64_t endA, bool packs);
  void computeEdge(const RowPanel &panel, const float *packedB,
                   const Edge &edge, bool addToC, const float *tileBias);
  void computeBlock(ThreadPool *pool);

  const RepriseGemm &shape;
  const RepriseMicroKernel &full, &low;
  PanelSource a, b;
  const float *bias;
  float *c;
  float *panelsA, *panelsB;
  /// The block being worked on.
  Range rows, cols, depth;
  int64_t numFull = 0, numLow = 0; ///< Panels of its rows.
};

} // namespace

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

void Product::computeTiles(int64_t panelB, int64_t firstA, int64_t endA,
                           bool packs) {
  bool addToC = depth.begin > 0 || shape.accumulate;
  bool addBias = shape.bias && depth.begin + depth.size == shape.k;
  int64_t col = cols.begin + panelB * full.cols;
  int64_t numCols = smaller(full.cols, cols.begin + cols.size - col);
  float *packed = packedB(panelB);
  const float *unpacked = b.data + depth.begin * b.stride + col;
  const float *tileBias = addBias ? bias + col : nullptr;
  for (int64_t index = firstA; index < endA; ++index) {
    RowPanel panel = getRowPanel(index);
    float *target = c + (rows.begin + panel.rows.begin) * shape.ldc + col;
    for (int64_t r = 0; r < panel.rows.size; ++r)
      for (int64_t j = 0; j < numCols; j += 16)
        __builtin_prefetch(target + r * shape.ldc + j, /*write=*/1);
    bool isWhole = panel.rows.size == panel.kernel.rows && numCols == full.cols;
    if (packs && isWhole && !b.depthIsFast) {
      panel.kernel.packFn(packedA(panel), unpacked, depth.size, target,
                          shape.ldc, shape.alpha, addToC, tileBias, b.stride,
                          packed);
      packs = false;
      continue;
    }
    if (packs)
      packB(panelB);
    packs = false;
    if (isWhole)
      panel.kernel.fn(packedA(panel), packed, depth.size, target, shape.ldc,
                      shape.alpha, addToC, tileBias);
    else
      computeEdge(panel, packed, {target, panel.rows.size, numCols}, addToC,
                  tileBias);
  }
}

void Product::computeEdge(const RowPanel &panel, const float *packedB,
                          const Edge &edge, bool addToC,
                          const float *tileBias) {
  alignas(64) float tile[REPRISE_GEMM_ROW_ALIGN * REPRISE_GEMM_COL_ALIGN];
  alignas(64) float wholeBias[REPRISE_GEMM_COL_ALIGN] = {};
  size_t rowBytes = size_t(edge.cols) * sizeof(float);
  if (addToC)
    for (int64_t r = 0; r < edge.rows; ++r)
      memcpy(tile + r * full.cols, edge.c + r * shape.ldc, rowBytes);
  if (tileBias)
    memcpy(wholeBias, tileBias, rowBytes);
  panel.kernel.fn(packedA(panel), packedB, depth.size, tile, full.cols,
                  shape.alpha, addToC, tileBias ? wholeBias : nullptr);
  for (int64_t r = 0; r < edge.rows; ++r)
    memcpy(edge.c + r * shape.ldc, tile + r * full.cols, rowBytes);
}

/// Adds one block of the depth to one block of C: packs what is not packed yet,
/// then computes the tiles.
void Product::computeBlock(ThreadPool *pool) {
  divideRows();
  int64_t numA = numRowPanels();
  int64_t numB = divideUp(cols.size, full.cols);
  bool packsB = rows.begin == 0;
  auto share = [&](int64_t tasks, int64_t chunk, auto fn) {
    auto loop = [&](int, int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task)
        fn(task);
    };
    if (pool && 2 * rows.size * cols.size * depth.size >= kSerialFlops)
      pool->parallelFor(tasks, chunk, loop);
    else
      loop(0, 0, tasks);
  };

  int threads = pool ? pool->size() : 1;
  if (numB >= 4 * threads || threads == 1) {
    // Enough panels of B for everybody: each is packed by the thread that uses
    // it, and is still in its cache then.
    share(numA, 4, [&](int64_t task) { packA(task); });
    share(numB, 1, [&](int64_t task) { computeTiles(task, 0, numA, packsB); });
    return;
  }
  share(numA + (packsB ? numB : 0), 2, [&](int64_t task) {
    if (task < numA)
      packA(task);
    else
      packB(task - numA);
  });
  int64_t perTask = divideUp(numA * numB, 8 * threads);
  int64_t groups = divideUp(numA, perTask);
  share(numB * groups, 1, [&](int64_t task) {
    int64_t first = task % groups * perTask;
    computeTiles(task / groups, first, smaller(first + perTask, numA),
                 /*packs=*/false);
  });
}

void Product::run(ThreadPool *pool) {
  for (cols.begin = 0; cols.begin < shape.n; cols.begin += REPRISE_GEMM_NC) {
    cols.size = smaller(REPRISE_GEMM_NC, shape.n - cols.begin);
    for (depth.begin = 0; depth.begin < shape.k;
         depth.begin += REPRISE_GEMM_KC) {
      depth.size = smaller(REPRISE_GEMM_KC, shape.k - depth.begin);
      for (rows.begin = 0; rows.begin < shape.m;
           rows.begin += REPRISE_GEMM_MC) {
        rows.size = smaller(REPRISE_GEMM_MC, shape.m - rows.begin);
        computeBlock(pool);
      }
    }
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
