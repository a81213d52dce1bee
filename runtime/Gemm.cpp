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

const RepriseMicroKernel *
reprise::runtime::chooseMicroKernel(const RepriseMicroKernel *kernels,
                                    int count, int cpuLevel) {
  const RepriseMicroKernel *best = nullptr;
  for (int i = 0; i < count; ++i)
    if (int(kernels[i].isa) + 3 <= cpuLevel &&
        (!best || kernels[i].isa > best->isa))
      best = &kernels[i];
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
          const RepriseMicroKernel &kernel, int64_t entry, int slot)
      : shape(shape), kernel(kernel), bias(operands.bias) {
    int64_t i = entry / shape.batch[1], j = entry % shape.batch[1];
    a = {operands.a + i * shape.strideA[0] + j * shape.strideA[1], shape.lda,
         !shape.transposeA};
    b = {operands.b + i * shape.strideB[0] + j * shape.strideB[1], shape.ldb,
         shape.transposeB != 0};
    c = operands.c + i * shape.strideC[0] + j * shape.strideC[1];
    RepriseGemm one = shape;
    one.batch[0] = one.batch[1] = 1;
    // B's panels come first: their size is a multiple of a cache line.
    panelsB = operands.workspace + slot * (repriseGemmWorkspaceBytes(&one) / 4);
    int64_t n = smaller(shape.n, REPRISE_GEMM_NC);
    panelsA = panelsB + divideUp(n, REPRISE_GEMM_COL_ALIGN) *
                            REPRISE_GEMM_COL_ALIGN *
                            smaller(shape.k, REPRISE_GEMM_KC);
  }

  /// Computes the product, with the pool's threads unless `pool` is null.
  void run(ThreadPool *pool);

private:
  void packA(int64_t panel) {
    int64_t first = panel * kernel.rows;
    packPanel(a, rows.begin + first, smaller(kernel.rows, rows.size - first),
              depth.begin, depth.size, kernel.rows,
              panelsA + first * depth.size);
  }
  void packB(int64_t panel) {
    int64_t first = panel * kernel.cols;
    packPanel(b, cols.begin + first, smaller(kernel.cols, cols.size - first),
              depth.begin, depth.size, kernel.cols,
              panelsB + first * depth.size);
  }
  /// The part of a tile that lies in C.
  struct Edge {
    float *c;
    int64_t rows, cols;
  };

  void computeTiles(int64_t panelB, int64_t firstA, int64_t endA);
  void computeEdge(const float *packedA, const float *packedB, const Edge &edge,
                   bool addToC, const float *tileBias);
  void computeBlock(ThreadPool *pool);

  const RepriseGemm &shape;
  const RepriseMicroKernel &kernel;
  PanelSource a, b;
  const float *bias;
  float *c;
  float *panelsA, *panelsB;
  /// The block being worked on.
  Range rows, cols, depth;
};

} // namespace

/// The tiles of one panel of B with the panels [firstA, endA) of A.
void Product::computeTiles(int64_t panelB, int64_t firstA, int64_t endA) {
  bool addToC = depth.begin > 0 || shape.accumulate;
  bool addBias = shape.bias && depth.begin + depth.size == shape.k;
  int64_t col = cols.begin + panelB * kernel.cols;
  int64_t numCols = smaller(kernel.cols, cols.begin + cols.size - col);
  const float *packedB = panelsB + panelB * kernel.cols * depth.size;
  const float *tileBias = addBias ? bias + col : nullptr;
  for (int64_t panel = firstA; panel < endA; ++panel) {
    int64_t row = rows.begin + panel * kernel.rows;
    int64_t numRows = smaller(kernel.rows, rows.begin + rows.size - row);
    const float *packedA = panelsA + panel * kernel.rows * depth.size;
    float *target = c + row * shape.ldc + col;
    for (int64_t r = 0; r < numRows; ++r)
      for (int64_t j = 0; j < numCols; j += 16)
        __builtin_prefetch(target + r * shape.ldc + j, /*write=*/1);
    if (numRows == kernel.rows && numCols == kernel.cols)
      kernel.fn(packedA, packedB, depth.size, target, shape.ldc, shape.alpha,
                addToC, tileBias);
    else
      computeEdge(packedA, packedB, {target, numRows, numCols}, addToC,
                  tileBias);
  }
}

void Product::computeEdge(const float *packedA, const float *packedB,
                          const Edge &edge, bool addToC,
                          const float *tileBias) {
  alignas(64) float tile[REPRISE_GEMM_ROW_ALIGN * REPRISE_GEMM_COL_ALIGN];
  alignas(64) float wholeBias[REPRISE_GEMM_COL_ALIGN] = {};
  size_t rowBytes = size_t(edge.cols) * sizeof(float);
  if (addToC)
    for (int64_t r = 0; r < edge.rows; ++r)
      memcpy(tile + r * kernel.cols, edge.c + r * shape.ldc, rowBytes);
  if (tileBias)
    memcpy(wholeBias, tileBias, rowBytes);
  kernel.fn(packedA, packedB, depth.size, tile, kernel.cols, shape.alpha,
            addToC, tileBias ? wholeBias : nullptr);
  for (int64_t r = 0; r < edge.rows; ++r)
    memcpy(edge.c + r * shape.ldc, tile + r * kernel.cols, rowBytes);
}

/// Adds one block of the depth to one block of C: packs what is not packed yet,
/// then computes the tiles.
void Product::computeBlock(ThreadPool *pool) {
  int64_t numA = divideUp(rows.size, kernel.rows);
  int64_t numB = divideUp(cols.size, kernel.cols);
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
    share(numB, 1, [&](int64_t task) {
      if (packsB)
        packB(task);
      computeTiles(task, 0, numA);
    });
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
    computeTiles(task / groups, first, smaller(first + perTask, numA));
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
                            const RepriseMicroKernel &kernel,
                            ThreadPool &pool) {
  int64_t entries = shape.batch[0] * shape.batch[1];
  int64_t flops = 2 * shape.m * shape.n * shape.k;
  // With fewer entries than threads, large ones are shared out one by one.
  if (entries < pool.size() && flops >= kSerialFlops) {
    for (int64_t entry = 0; entry < entries; ++entry)
      Product(shape, operands, kernel, entry, /*slot=*/0).run(&pool);
    return;
  }
  int64_t chunk = divideUp(kSerialFlops / 2, flops);
  pool.parallelFor(
      entries, smaller(chunk, divideUp(entries, pool.size())),
      [&](int slot, int64_t begin, int64_t end) {
        for (int64_t entry = begin; entry < end; ++entry)
          Product(shape, operands, kernel, entry, slot).run(nullptr);
      },
      int(smaller(entries, REPRISE_GEMM_SLOTS)));
}
