//===- GemmAmx.cpp - GEMMs of bf16 with AMX -------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tiles multiply so fast that most of the time goes to what brings operands and
// takes results away. So a thread packs all that it works on itself, into a
// scratch of its own, and waits for nobody. What lies in rows is not fetched
// ahead: tiles of A pass from L2 to L1 through the buffers
// that fetches would hold while they wait for memory, and slow down by what
// packing gains.
//
// A B that lies packed, as weights do, is fetched one panel ahead: its lines
// are neighbours, and no packing waits for the caches besides. Where it is not
// transposed its panels are read where they lie.
//
//===----------------------------------------------------------------------===//

#include "GemmAmx.h"

#include "Cpu.h"
#include "GemmParts.h"
#include "GemmPlan.h"

#include <algorithm>
#include <cstdlib>

using namespace reprise::runtime;

/// A panel of B stays in L1 in parts of so many words, 32 KiB,
/// past which A streams: the tiles of a whole panel would read both from the
/// L2, as many bytes as that can give.
static constexpr int64_t kWordsOfPart = 256;

/// From so many rows for each thread on threads have rows of their own, and not
/// columns: each then packs its part of A and all of B, where with columns it
/// would pack all of A. A square weight's gradient in GPT-2 has as many for
/// each of two.
static constexpr int64_t kRowsOfThread = 384;

/// From this depth on a tile has steps enough to bring the one behind it to
/// memory; less, and most of that would wait for its end.
static constexpr int64_t kDepthForBehind = 256;

/// Panels that take turns where lines are neighbours in memory, which gives
/// neighbours faster than single lines.
static constexpr int64_t kPanelsOfTurn = 4;

bool AmxScratches::allocate(int threads, Error &error) {
  scratches = static_cast<AmxScratch *>(
      aligned_alloc(alignof(AmxScratch), size_t(threads) * sizeof(AmxScratch)));
  return scratches || error.set("no memory left for GEMMs with AMX, %zu bytes "
                                "for each of %d threads",
                                sizeof(AmxScratch), threads);
}

AmxScratches::~AmxScratches() { free(scratches); }

namespace {

class AmxGemm : GemmEntry {
public:
  AmxGemm(const RepriseGemm &shape, const GemmOperands &operands,
          const MicroKernels &kernels, int64_t entry);

  void run(ThreadPool *pool, int slot);

private:
  void divide(int64_t threads);
  /// Part `index` of `parts` of so many lines, in whole panels.
  static Range getPart(int64_t index, int64_t parts, int64_t lines,
                       int64_t panel) {
    int64_t panels = divideUp(lines, panel);
    int64_t begin = panels * index / parts * panel;
    int64_t end = smaller(panels * (index + 1) / parts * panel, lines);
    return {begin, end - begin};
  }
  Range getRows(int64_t block) const {
    return getPart(block, numRowBlocks, shape.m, kernel.rows);
  }
  Range getDepth(int64_t block) const {
    int64_t begin = block * AmxScratch::kDepth;
    return {begin, smaller(AmxScratch::kDepth, shape.k - begin)};
  }
  /// Words of each line of a panel.
  static int64_t getWords(Range depth) {
    return panelRows(PanelForm::Tiles, depth.size);
  }

  /// Packs panels of `width` lines each, side by side.
  static void pack(PanelForm form, const PanelSource &source, Range lines,
                   Range depth, int64_t width, uint32_t *panels);
  /// The panel of B at column `col` of `cols`, which is called for from the
  /// first one on: where it lies, or packed.
  const uint32_t *getPanelOfB(Range cols, int64_t col, Range depth,
                              AmxScratch &scratch) const;
  /// What is fetched of the panel of B that begins with this column.
  FetchRegion getRegionOfB(int64_t col, Range depth) const {
    return b.isPacked ? getPackedRegionOfB({col, kernel.cols}, depth)
                      : FetchRegion{};
  }
  /// Task `task`: columns of a block of rows, over all of the depth.
  /// `packedRows` is the block of rows whose A is in the scratch, if that is
  /// all. `isLast` if the thread has no task after it.
  void computeTask(int64_t task, bool isLast, AmxScratch &scratch,
                   int64_t &packedRows) const;
  /// The tiles of what is packed of A and of these columns, behind which comes
  /// `next`. `sums` has those of a C of bf16 from block to block of the depth,
  /// tile by tile.
  void computeTiles(Range rows, Range cols, Range depth,
                    const FetchRegion &next, AmxScratch &scratch,
                    float *sums) const;
  /// One tile of a C of f32, one of them that goes past the caches or is at an
  /// edge, and the last block of one of bf16, that at `row` and `col` of what
  /// is packed. `behind` is the tile whose sums wait, if it has any.
  void computeTile(RepriseTile &tile, Range rows, Range cols, bool isLast,
                   RepriseTile &behind) const;
  void computeStreamed(RepriseTile &tile, RepriseTile &behind) const;
  /// Meanwhile brings `behind` to memory, and leaves it empty.
  void call(RepriseTile &tile, RepriseTile &behind) const {
    tile.behind = behind.sums ? &behind : nullptr;
    kernel.fn(&tile);
    tile.behind = nullptr;
    behind = {};
  }
  void computeEdge(RepriseTile &tile, Range rows, Range cols) const;
  void computeRounded(RepriseTile &tile, Range rows, Range cols,
                      AmxScratch &scratch, int64_t row, int64_t col) const;

  const RepriseMicroKernel &kernel;
  AmxScratch *scratches;
  /// Whether C goes past the caches; one of bf16 in rows of more lines than a
  /// tile has.
  bool streams = false;
  int64_t numRowBlocks = 1, numDepthBlocks = 1;
  int64_t colsOfTask = 0; ///< Whole panels.
};

} // namespace

AmxGemm::AmxGemm(const RepriseGemm &shape, const GemmOperands &operands,
                 const MicroKernels &kernels, int64_t entry)
    : GemmEntry(shape, operands, entry), kernel(*kernels.full),
      scratches(kernels.scratches) {}

void AmxGemm::divide(int64_t threads) {
  const int64_t panelsA = divideUp(shape.m, kernel.rows);
  const int64_t panelsB = divideUp(shape.n, kernel.cols);
  numDepthBlocks = divideUp(shape.k, AmxScratch::kDepth);
  // Sums of several blocks of the depth need the cache, too.
  numRowBlocks = divideUp(shape.m, numDepthBlocks > 1 ? AmxScratch::kRowsOfSums
                                                      : AmxScratch::kRows);
  if (shape.m >= threads * kRowsOfThread)
    numRowBlocks = repriseRoundUp(numRowBlocks, threads);
  // With too few columns for all, rows are divided, too.
  int64_t least = smaller(panelsA, divideUp(threads, panelsB));
  numRowBlocks = std::max(numRowBlocks, least);

  int64_t most = AmxScratch::kCols;
  if (numDepthBlocks > 1) {
    // All that sums have room for: A is packed again for each task.
    int64_t rows = divideUp(panelsA, numRowBlocks) * kernel.rows;
    most = AmxScratch::kSums / rows;
  }
  // As few tasks as that permits, or some more if everybody is done earlier.
  int64_t fewest = divideUp(panelsB, most / kernel.cols), soonest = 0;
  for (int64_t tasks = fewest; tasks < fewest + threads; ++tasks) {
    int64_t panels = divideUp(panelsB, tasks);
    int64_t all = numRowBlocks * divideUp(panelsB, panels);
    int64_t time = divideUp(all, threads) * panels;
    if (tasks == fewest || time < soonest) {
      soonest = time;
      colsOfTask = panels * kernel.cols;
    }
  }
  if (rounded)
    streams = isLargeC(shape, isAligned()) && colsOfTask > kernel.cols;
  else
    streams =
        isReadLate(shape, isAligned(), kernel.cols * int64_t(sizeof(float))) &&
        !shape.accumulate && !shape.bias && numDepthBlocks == 1;
}

void AmxGemm::pack(PanelForm form, const PanelSource &source, Range lines,
                   Range depth, int64_t width, uint32_t *panels) {
  const int64_t words = getWords(depth), packed = panelRows(form, depth.size);
  const int64_t step = source.depthIsFast ? depth.size : REPRISE_GEMM_AMX_DEPTH;
  for (int64_t turn = 0; turn < lines.size; turn += kPanelsOfTurn * width) {
    int64_t end = smaller(turn + kPanelsOfTurn * width, lines.size);
    for (int64_t first = 0; first < depth.size; first += step)
      for (int64_t line = turn; line < end; line += width)
        packPanel(form, /*hasAVX512=*/true, source, lines.begin + line,
                  smaller(width, lines.size - line), depth.begin + first,
                  smaller(step, depth.size - first), width,
                  reinterpret_cast<float *>(panels + line * words +
                                            first / 2 * width));
    // Pairs may end before the last step of 32.
    for (int64_t line = turn; packed < words && line < end; line += width)
      memset(panels + line * words + packed * width, 0,
             size_t((words - packed) * width) * sizeof(uint32_t));
  }
}

/// Copies rows past the caches but for what is left of their last lines.
__attribute__((target("avx512f"))) static void
streamRows(const uint16_t *from, int64_t fromStride, Range cols, int64_t rows,
           uint16_t *to, int64_t toStride) {
  constexpr int64_t kLine = 32;
  for (int64_t r = 0; r < rows; ++r, from += fromStride, to += toStride) {
    int64_t j = 0;
    for (; j + kLine <= cols.size; j += kLine)
      _mm512_stream_si512(reinterpret_cast<__m512i *>(to + j),
                          _mm512_loadu_si512(from + j));
    memcpy(to + j, from + j, size_t(cols.size - j) * sizeof(uint16_t));
  }
}

/// Whether nothing is done to sums on their way to a C of f32.
static bool isPlain(const RepriseTile &tile) {
  return tile.alpha == 1 && !tile.addToC && !tile.bias;
}

// What a micro-kernel writes has its own size, not that of a tile at an edge.

/// Memory takes the result while the next tile is computed.
void AmxGemm::computeStreamed(RepriseTile &tile, RepriseTile &behind) const {
  RepriseTile streamed = tile;
  streamed.goesOn = true;
  call(streamed, behind);
  behind = streamed;
}

void AmxGemm::computeTile(RepriseTile &tile, Range rows, Range cols,
                          bool isLast, RepriseTile &behind) const {
  tile.c = c + rows.begin * shape.ldc + cols.begin;
  tile.ldc = shape.ldc;
  const bool isWhole = rows.size == kernel.rows && cols.size == kernel.cols;
  tile.streams = isWhole && streams;
  const bool sums = squares && isLast && !tile.goesOn;
  tile.squares = nullptr;
  if (sums && isWhole) { // The first of its blocks has all squares.
    for (int64_t row = rows.begin; row < rows.end();
         row += REPRISE_GEMM_SQUARES_ROWS)
      *squaresOf(row, cols.begin) = 0;
    tile.squares = squaresOf(rows.begin, cols.begin);
  }
  tile.isPlain = !tile.streams && !tile.squares && isPlain(tile);
  if (tile.streams && !tile.goesOn && shape.k >= kDepthForBehind)
    return computeStreamed(tile, behind);
  if (tile.goesOn || isWhole)
    return call(tile, behind);
  computeEdge(tile, rows, cols);
  if (sums)
    sumBlocks(rows, cols);
}

void AmxGemm::computeEdge(RepriseTile &tile, Range rows, Range cols) const {
  alignas(64) float values[REPRISE_GEMM_AMX_ROW_ALIGN * REPRISE_GEMM_COL_ALIGN];
  const Tile part = {values, kernel.cols, rows.size, cols.size};
  const Tile result = {tile.c, shape.ldc, rows.size, cols.size};
  if (tile.addToC)
    result.copyTo(part);
  tile.c = values, tile.ldc = kernel.cols;
  kernel.fn(&tile);
  part.copyTo(result);
}

void AmxGemm::computeRounded(RepriseTile &tile, Range rows, Range cols,
                             AmxScratch &scratch, int64_t row,
                             int64_t col) const {
  uint16_t *target = rounded + rows.begin * shape.ldc + cols.begin;
  const bool isWhole = rows.size == kernel.rows && cols.size == kernel.cols;
  const bool isDirect = !streams && isWhole;
  // Only what streams stays there.
  uint16_t *waits = streams ? scratch.rounded + row * AmxScratch::kCols + col
                            : scratch.rounded;
  tile.rounded = isDirect ? target : waits;
  tile.ldRounded = isDirect ? shape.ldc : AmxScratch::kCols;
  kernel.fn(&tile);
  if (streams || isWhole || tile.goesOn)
    return;
  for (int64_t r = 0; r < rows.size; ++r)
    memcpy(target + r * shape.ldc, waits + r * AmxScratch::kCols,
           size_t(cols.size) * sizeof(uint16_t));
}

const uint32_t *AmxGemm::getPanelOfB(Range cols, int64_t col, Range depth,
                                     AmxScratch &scratch) const {
  if (b.isPacked && !b.depthIsFast)
    return b.findPacked(depth.begin, cols.begin + col);
  auto packB = [&](Range lines) {
    pack(PanelForm::Pairs, b, lines, depth, kernel.cols, scratch.b);
  };
  if (b.isPacked) {
    packB({cols.begin + col, kernel.cols});
    return scratch.b;
  }
  // Cache lines have parts of several panels.
  if (col == 0)
    packB(cols);
  return scratch.b + col * getWords(depth);
}

void AmxGemm::computeTiles(Range rows, Range cols, Range depth,
                           const FetchRegion &next, AmxScratch &scratch,
                           float *sums) const {
  alignas(64) float wholeBias[REPRISE_GEMM_COL_ALIGN];
  const int64_t words = getWords(depth), parts = divideUp(words, kWordsOfPart);
  const bool isFirst = depth.begin == 0, isLast = depth.end() == shape.k;
  const int64_t rowPanels = divideUp(rows.size, kernel.rows);
  RepriseTile tile = {}, behind = {};
  tile.alpha = shape.alpha;
  tile.addToC = !isFirst || shape.accumulate;
  for (int64_t col = 0; col < cols.size; col += kernel.cols) {
    const Range colsOfC = {cols.begin + col,
                           smaller(kernel.cols, cols.size - col)};
    if (shape.bias && isLast)
      tile.bias = getBias(colsOfC.begin, colsOfC.size, kernel.cols, wholeBias);
    const uint32_t *panelOfB = getPanelOfB(cols, col, depth, scratch);
    auto getWordsOfPart = [&](int64_t part) {
      return getPart(part, parts, words, panelRows(PanelForm::Tiles, 1));
    };
    // The first part is the shortest.
    FetchCalls fetches(
        colsOfC.end() < cols.end() ? getRegionOfB(colsOfC.end(), depth) : next,
        getWordsOfPart(0).size, rowPanels * parts);
    for (int64_t part = 0; part < parts; ++part) {
      const Range some = getWordsOfPart(part);
      tile.k = some.size;
      tile.b = panelOfB + some.begin * kernel.cols;
      tile.continues = part > 0;
      tile.goesOn = part + 1 < parts;
      for (int64_t panel = 0; panel < rowPanels; ++panel) {
        const int64_t row = panel * kernel.rows;
        fetches.getNext().ask(tile);
        tile.a = scratch.a + row * words + some.begin * kernel.rows;
        tile.sums = scratch.partial + (parts > 1 ? row * kernel.cols : 0);
        const Range rowsOfC = {rows.begin + row,
                               smaller(kernel.rows, rows.size - row)};
        if (!rounded) {
          computeTile(tile, rowsOfC, colsOfC, isLast, behind);
          continue;
        }
        if (numDepthBlocks > 1) {
          tile.c = sums + (col * rowPanels * kernel.rows + row * kernel.cols);
          tile.ldc = kernel.cols;
        }
        if (isLast) {
          computeRounded(tile, rowsOfC, colsOfC, scratch, row, col);
        } else {
          tile.isPlain = isPlain(tile);
          kernel.fn(&tile);
        }
      }
    }
  }
  if (behind.sums) {
    tile = {};
    tile.goesOn = true;
    tile.sums = scratch.partial;
    call(tile, behind);
  }
}

void AmxGemm::computeTask(int64_t task, bool isLast, AmxScratch &scratch,
                          int64_t &packedRows) const {
  const int64_t tasksOfBlock = divideUp(shape.n, colsOfTask);
  const int64_t block = task / tasksOfBlock;
  const Range rows = getRows(block);
  const int64_t first = task % tasksOfBlock * colsOfTask;
  const int64_t end = smaller(first + colsOfTask, shape.n);
  for (int64_t i = 0; i < numDepthBlocks; ++i) {
    const Range depth = getDepth(i);
    if (packedRows != block || numDepthBlocks > 1)
      pack(PanelForm::Tiles, a, rows, depth, kernel.rows, scratch.a);
    packedRows = block;
    for (int64_t col = first; col < end; col += AmxScratch::kCols) {
      const Range cols = {col, smaller(AmxScratch::kCols, end - col)};
      FetchRegion next = {};
      if (cols.end() < end)
        next = getRegionOfB(cols.end(), depth);
      else if (i + 1 < numDepthBlocks)
        next = getRegionOfB(first, getDepth(i + 1));
      else if (!isLast)
        next =
            getRegionOfB((task + 1) % tasksOfBlock * colsOfTask, getDepth(0));
      int64_t heights = divideUp(rows.size, kernel.rows) * kernel.rows;
      computeTiles(rows, cols, depth, next, scratch,
                   scratch.sums + (col - first) * heights);
      if (rounded && streams && i + 1 == numDepthBlocks)
        streamRows(scratch.rounded, AmxScratch::kCols, cols, rows.size,
                   rounded + rows.begin * shape.ldc + col, shape.ldc);
    }
  }
}

void AmxGemm::run(ThreadPool *pool, int slot) {
  const int threads = pool ? pool->size() : 1;
  divide(threads);
  int64_t packedRows[ThreadPool::kMaxThreads];
  std::fill_n(packedRows, threads, -1);
  const int64_t tasks = numRowBlocks * divideUp(shape.n, colsOfTask);
  const int parts = pool ? pool->countParts(tasks) : 1;
  auto loop = [&](int thread, int64_t begin, int64_t end) {
    DenormalsAreZero guard(true);
    TileRegisters tiles(true);
    const int64_t ofNext = ThreadPool::firstOfPart(tasks, parts, thread + 1);
    for (int64_t task = begin; task < end; ++task)
      computeTask(task, /*isLast=*/task + 1 == ofNext, scratches[slot + thread],
                  packedRows[thread]);
    if (streams)
      _mm_sfence();
  };
  if (pool)
    pool->parallelFor(tasks, 1, loop);
  else
    loop(0, 0, tasks);
}

void reprise::runtime::gemmAmx(const RepriseGemm &shape,
                               const GemmOperands &operands,
                               const MicroKernels &kernels, int64_t entry,
                               ThreadPool *pool, int slot) {
  AmxGemm(shape, operands, kernels, entry).run(pool, slot);
}
