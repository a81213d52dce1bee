//===- GemmTiles.h - Tiles of a block of a GEMM -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_COMPUTE_GEMMTILES_H
#define REPRISE_RUNTIME_COMPUTE_GEMMTILES_H

#include "GemmBlock.h"

namespace reprise::runtime {

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

/// What a thread goes on with after a panel of B.
struct NextPanel {
  /// Its next panel of B; from the number of them on, one of the next block.
  int64_t panelB;
  /// Panels of B in all and until it comes to the next block, and the rows of A
  /// that it packs then.
  int64_t panels, panelsLeft;
  Range rowsOfA;
};

/// How threads share panels of B: by tasks of so many, as many in each block,
/// though the last one may have columns for fewer.
struct TasksOfB {
  int threads;
  int64_t tasks, panels;
};

/// Of a thread that works on panel `panelB`; with `hasOwnA` it packs all rows.
NextPanel getNextPanel(const GemmBlock &block, int64_t panelB,
                       const TasksOfB &sharing, bool hasOwnA);

/// What the calls for one panel of B do for later: they fetch a part of what
/// comes next of B, then of A, and each packs of the next panel of B what the
/// one before it has fetched.
class LookAhead {
public:
  /// Of so many `tiles`, with a `place` for the next panel of B or null.
  LookAhead(const GemmBlock &block, const NextPanel &then, int64_t tiles,
            float *place);
  /// Has a tile do its part.
  void ask(RepriseTile &tile);
  /// What the next panel of B is packed from, or null: it is not.
  const void *source() const { return from; }

private:
  LookAhead(const GemmBlock &block, const FetchRegion &nextB,
            const FetchRegion &nextA, const NextPanel &then, int64_t tiles,
            float *place);

  FetchCalls ofB, ofA;
  int64_t perWord, cols;
  int64_t pace; ///< When there is nothing left.
  const void *from = nullptr;
  float *place;
  Fetch last = {};     ///< What the last call has fetched.
  bool isOver = false; ///< All is fetched and packed.
};

/// The tiles of a block: micro-kernels are called for panels of A and B, which
/// are packed before or by the way.
class GemmTiles {
public:
  explicit GemmTiles(const GemmBlock &block)
      : block(block), job(block.job), plan(job.plan) {}

  /// Panels that are not packed yet.
  struct Unpacked {
    bool a, b;
  };
  /// The tiles of one panel of B with the panels [firstA, endA) of A; of A with
  /// all of them if they are not packed yet. Meanwhile fetches what comes next,
  /// and packs of it what `places` has a place for and a micro-kernel can.
  void compute(int64_t panelB, PlacesOfB &places, int64_t firstA, int64_t endA,
               Unpacked unpacked, const NextPanel &then) const;

  /// Panels [first, end) of A with the block's of B, which are packed. One of A
  /// that is not read where it lies is packed at `place`. Meanwhile fetches the
  /// next panel of A; behind the last one the first of the next block, which of
  /// rows that threads share is as often another's.
  void computeRows(int64_t first, int64_t end, float *place) const;

private:
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
  RepriseTile getTile() const;
  void usePanelOfB(RepriseTile &tile, int64_t panelB, const float *place,
                   const Results &to, float *room) const;
  void packOrAsk(RepriseTile &tile, const GemmBlock::RowPanel &panel) const;
  void computeTile(RepriseTile &tile, const GemmBlock::RowPanel &panel,
                   const Results &to) const;
  void computeAside(RepriseTile tile, const GemmBlock::RowPanel &panel,
                    const Results &to) const;
  void sumBehind(int64_t panelB) const;

  const GemmBlock &block;
  const GemmJob &job;
  const GemmPlan &plan;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_COMPUTE_GEMMTILES_H
