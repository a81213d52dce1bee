//===- GemmProduct.h - One product with its panels --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What one entry of a batch does whose panels lie in the workspace: panels and
// tiles are in GemmTiles.cpp, how threads share them in Gemm.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_COMPUTE_GEMMPRODUCT_H
#define REPRISE_RUNTIME_COMPUTE_GEMMPRODUCT_H

#include "GemmParts.h"

#include <numeric>

namespace reprise::runtime {

/// The rows and bytes of `lines` times `depth` elements of a matrix.
FetchRegion getRegion(const PanelSource &source, PanelForm form, Range lines,
                      Range depth);

/// One entry of the batch, with the packed panels it works in.
class Product : GemmEntry {
public:
  Product(const RepriseGemm &shape, const GemmOperands &operands,
          const MicroKernels &kernels, int64_t entry, int slot);

  /// Computes the product and the squares that are wanted of it, with the
  /// pool's threads unless `pool` is null.
  void run(ThreadPool *pool);

private:
  /// Whether tiles are whole blocks of squares, which can be summed with them.
  bool hasWholeBlocks() const {
    auto isWhole = [](const RepriseMicroKernel &kernel) {
      return kernel.isa >= REPRISE_ISA_V4 &&
             kernel.rows % REPRISE_GEMM_SQUARES_ROWS == 0 &&
             kernel.cols == REPRISE_GEMM_SQUARES_COLS;
    };
    return isWhole(full) && isWhole(low);
  }
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
  /// Rows that shares are multiples of, but for the last: those of panels and,
  /// if squares are summed behind them, of blocks of these. (Of blocks alone
  /// where any number of them is made of whole panels, as of 6 and 4 rows.)
  int64_t rowsOfUnit() const {
    constexpr int kRows = REPRISE_GEMM_SQUARES_ROWS;
    if (!sumsBehind)
      return full.rows;
    bool areWhole =
        low.rows == kRows && full.rows % 2 == 0 && full.rows <= 2 * kRows;
    return areWhole ? kRows : std::lcm(full.rows, kRows);
  }
  Range getRowsOfShare(int64_t share) const;
  /// Goes on as share `index` of all rows, with panels of A in part `slot` of
  /// the room.
  void takeShare(int64_t index, int slot);

  float *packedA(const RowPanel &panel) const {
    return panelsA + panel.rows.begin * panelRows(form, depth.size);
  }
  /// Goes on with panels of A of its own for thread `slot`, which lie where
  /// panels of B would: see `hasOwnPanelsOfA`.
  void takeOwnPanelsOfA(int slot);
  /// Whether, of a product whose panels of B are used once, the room for those
  /// that are never there at the same time holds a copy of A's for each thread.
  bool hasOwnPanelsOfA(int threads) const;
  /// Whether A's panels of this depth are whole groups of steps: then
  /// micro-kernels can pack them, or read them where they lie.
  bool hasWholeGroups(int64_t ofDepth) const {
    return form != PanelForm::Expanded && ofDepth % (4 * perWord()) == 0;
  }
  /// Whether they can pack whole panels of A as they use them first.
  bool canPackA() const { return hasWholeGroups(depth.size); }
  /// Whether the room for panels of A has one for each thread.
  bool hasPlacesOfA(int threads) const {
    return threads * full.rows <= smaller(shape.m, REPRISE_GEMM_MC);
  }
  /// Whether rows of A meet in the first cache, whose sets repeat after 4 KiB:
  /// a panel that is read there has a line of each row in one set, which takes
  /// all or most of the ways, and what else passes pushes them out.
  bool doRowsOfAMeet() const {
    const int64_t size = form == PanelForm::Floats ? 4 : 2;
    return a.stride * size % 4096 == 0;
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
  void packA(const RowPanel &panel, int64_t first, int64_t count,
             float *place) const {
    packPanel(form, hasAVX512, a, rows.begin + panel.rows.begin,
              panel.rows.size, depth.begin + first, count, panel.kernel.rows,
              place + panelRows(form, first) * panel.kernel.rows);
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
  void packB(int64_t panel, float *place) const {
    Range lines = getColsOf(panel);
    packPanel(form, hasAVX512, b, lines.begin, lines.size, depth.begin,
              depth.size, full.cols, place);
  }
  /// The columns of C that a panel of B is for.
  Range getColsOf(int64_t panelB) const {
    int64_t first = panelB * full.cols;
    return {cols.begin + first, smaller(full.cols, cols.size - first)};
  }
  bool isLastBlock() const { return depth.end() == shape.k; }
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
  /// How threads share panels of B: by tasks of so many, as many in each block,
  /// though the last one may have columns for fewer.
  struct TasksOfB {
    int threads;
    int64_t tasks, panels;
  };
  Next getNext(int64_t panelB, const TasksOfB &sharing, bool hasOwnA) const;
  /// What the calls for one panel of B do for later.
  struct LookAhead {
    FetchCalls ofB, ofA; ///< What they fetch, in this order.
    int64_t pace;        ///< When there is nothing left.
    const void *source;  ///< What they pack the next panel of B from, or null:
    float *place;        ///< each what the one before it has fetched, to here.
    Fetch last = {};     ///< What that is.
    bool isOver = false; ///< All is fetched and packed.
  };
  /// Of so many `tiles`, with a `place` for the next panel of B or null.
  LookAhead planLookAhead(const Next &then, int64_t tiles, float *place) const;
  /// Has a tile do its part of that.
  void askLookAhead(RepriseTile &tile, LookAhead &ahead) const;
  /// Panels that are not packed yet.
  struct Unpacked {
    bool a, b;
  };
  /// Where the tiles of a panel of B go.
  struct Results {
    Range cols;
    /// From the first of all rows at hand on: f32 sums, null if they go
    /// nowhere, and in the last block, if it is rounded, the result, else null.
    float *sums;
    uint16_t *rounded;
    bool sumsSquares; ///< Tile by tile.
    /// Whether whole tiles go there from the registers.
    bool areDirect;
  };
  Results getResults(int64_t panelB) const;
  /// What the tiles of the block have in common, and those of a panel of B, at
  /// `place`. `room` is for their bias.
  RepriseTile getTile() const;
  void usePanelOfB(RepriseTile &tile, int64_t panelB, const float *place,
                   const Results &to, float *room) const;
  /// Has a tile pack its panel of A, or does so before it.
  void packOrAsk(RepriseTile &tile, const RowPanel &panel);
  /// The tiles of one panel of B with the panels [firstA, endA) of A; of A with
  /// all of them if they are not packed yet. Meanwhile fetches what comes next,
  /// and packs of it what `places` has a place for and a micro-kernel can.
  void computeTiles(int64_t panelB, PlacesOfB &places, int64_t firstA,
                    int64_t endA, Unpacked unpacked, const Next &then);
  /// One tile, of which `tile` has the operands.
  void computeTile(RepriseTile &tile, const RowPanel &panel,
                   const Results &to) const;
  /// One that cannot go there from the registers: at an edge, or whose squares
  /// are summed on its way past the caches.
  void computeAside(RepriseTile tile, const RowPanel &panel,
                    const Results &to) const;
  /// Whether a panel of B, from the number of them on one of the next block, is
  /// packed by now.
  bool isPackedBefore(int64_t panelB) const;
  /// What a panel of A is made of.
  FetchRegion getRegionOfA(const RowPanel &panel, Range depths) const;
  /// What a panel of B is packed from or, if it is packed already, is.
  FetchRegion getRegionOfB(int64_t panelB) const;
  /// Rows of the panels of a block, but for a last one that is not as deep.
  int64_t stepsOfBlock() const {
    return panelRows(form, smaller(shape.k, repriseGemmKC(&shape)));
  }
  /// Values of p that a row of a panel has.
  int64_t perWord() const { return form == PanelForm::Pairs ? 2 : 1; }
  /// Whether micro-kernels can pack a panel on their way, that of `region`: a
  /// whole one of rows that lie as they read them. (Transposed ones on the way
  /// take longer than before it.)
  bool isPackedAhead(int64_t panelB, const FetchRegion &region) const;
  /// Whether C goes past the caches: each tile is written once, as whole lines
  /// that nobody reads behind it.
  bool mayStream() const {
    return c && !shape.accumulate && !shape.bias && !sumsBehind &&
           shape.k <= repriseGemmKC(&shape) &&
           isReadLate(full.cols * int64_t(sizeof(float)));
  }
  /// Sums the squares of all rows at hand in the blocks whose last columns are
  /// this panel's of B, which this thread has just written as it has the
  /// others.
  void sumBehind(int64_t panelB) const;
  /// Where f32 sums go from block to block, from the first row at hand and a
  /// column on: C or, of a C of bf16, the workspace, or nowhere if it has only
  /// one block.
  float *getSums(int64_t col) const {
    if (c)
      return c + rows.begin * strideOfSums() + col;
    return sums ? sums + rows.begin * strideOfSums() + col - cols.begin
                : nullptr;
  }
  int64_t strideOfSums() const {
    return c ? shape.ldc : repriseGemmPanelCols(&shape);
  }
  /// Whether there are enough panels of B for each thread to have its own.
  bool hasOwnColumns(int threads) const;
  /// Whether, moreover, each has places for them and panels of A of its own.
  bool hasAllDepth(int threads) const;
  void computeBlock(ThreadPool *pool);
  /// Columns of a block of B where panels of A are read where they lie, in the
  /// order of Goto and van de Geijn: one is in the first cache while those of B
  /// pass. 0 if that cannot be, or is no faster. (To pack A takes as long as a
  /// fifth of its tiles, if there are four panels of B.)
  int64_t countNarrowCols(int threads) const;
  /// The product in blocks of so many columns.
  void computeNarrow(ThreadPool *pool, int64_t most);
  /// The product in whichever way is the fastest.
  void compute(ThreadPool *pool);
  /// Panels [first, end) of A with the block's of B, which are packed. One of A
  /// that is not read where it lies is packed at `place`. Meanwhile fetches the
  /// next panel of A; behind the last one the first of the next block, which of
  /// rows that threads share is as often another's.
  void computeRows(int64_t first, int64_t end, float *place);
  /// Calls `fn(task, slot)` for all tasks, with the pool's threads if so many
  /// FLOPs are worth it.
  template <typename Fn>
  void share(ThreadPool *pool, int64_t flops, int64_t tasks, Fn fn) const;
  /// Calls `fn(slot, round, task)` for all tasks of all rounds, with the pool's
  /// threads if there is one: see `ThreadPool::parallelRounds`.
  template <typename Fn>
  void shareRounds(ThreadPool *pool, int64_t rounds, int64_t tasks,
                   Fn fn) const;
  /// Whether all of B is small enough for each share to be computed over all of
  /// the depth, for itself.
  bool hasSmallB(int threads) const;
  /// Whether the same is worth it since shares have many rows, and there is
  /// room for their panels of A. (Of bf16 as f32 those would take a MiB.)
  bool hasLongShares(int threads) const;
  /// The product by threads that pack for themselves what they use of A, all
  /// rows or a share, and of B. A task is a panel of B, or a few, and a round a
  /// block of the depth; nobody waits before the end or, of several rounds,
  /// before the next share, so that its part of C stays in the caches.
  void computeAlone(ThreadPool &pool);

  const RepriseMicroKernel &full, &low;
  int64_t secondCache;
  PanelForm form;
  /// Whether squares are summed tile by tile, or behind panels of B by the
  /// thread that computed them, unless `compute` finds that none has them all.
  bool hasAVX512, sumsSquares, sumsBehind, streams;
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

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_COMPUTE_GEMMPRODUCT_H
