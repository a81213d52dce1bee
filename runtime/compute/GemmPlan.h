//===- GemmPlan.h - How a GEMM goes over its blocks -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All that is decided of a GEMM before it begins, as a function of its
// shape, the micro-kernels, the threads and L2. Nothing here
// changes a bit of the result: the order of each sum is RepriseGemm's.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_COMPUTE_GEMMPLAN_H
#define REPRISE_RUNTIME_COMPUTE_GEMMPLAN_H

#include "Gemm.h"
#include "Pack.h"

#include <cstddef>

namespace reprise::runtime {

/// The orders of loops, each tried before those below it; `kLoopOrders` says
/// when one is taken.
enum class LoopOrder {
  ReadA,          ///< Panels of A pass a narrow B, read where they lie.
  WholeDepth,     ///< A thread goes on alone with panels of B and few rows.
  ReadAByColumns, ///< As ReadA for blocks of columns, one for a thread.
  LongPartitions, ///< A thread goes on alone with many rows and all of B.
  SmallB,         ///< The same with few rows, as all of B is small.
  OwnPanels,      ///< A thread packs the panels of B that it uses.
  Partitions,     ///< A thread has rows, and B is packed for all.
  Tiles,          ///< Threads share out tiles of both.
  Amx             ///< GemmAmx.cpp has a scheme of its own.
};

/// A row of the table in docs/gemm.md, which a test compares with it.
struct LoopOrderInfo {
  LoopOrder order;
  const char *name, *when;
  const char *packsA, *packsB, *divides, *barrier;
};
extern const LoopOrderInfo kLoopOrders[9];

/// Who sums squares of blocks of C.
enum class SquaresBy {
  Nobody,
  Tile,  ///< Tile by tile, which are whole blocks.
  Panel, ///< Behind a panel of B, by the thread that has computed it.
  End    ///< All threads, when the GEMM is done.
};

/// What differs from one launch of a shape to another.
struct GemmRequest {
  bool squares = false;   ///< Whether somebody reads them.
  bool isAligned = false; ///< Whether C begins with a cache line.
};

struct GemmPlan {
  LoopOrder order, last;   ///< Of blocks of columns; of one with fewer of them.
  int threads;             ///< That the GEMM is divided among.
  PanelForm form;          ///< Of both operands' panels.
  int64_t rows, cols;      ///< Of a block of C, at most.
  int64_t depth, steps;    ///< Of a block: terms; rows of a panel.
  int64_t partitions;      ///< Of all rows; 0: none.
  int64_t unit;            ///< Rows that they are multiples of.
  bool readsB;             ///< Whether B is read where it lies, in panels.
  bool rowsMeet;           ///< See `doRowsOfAMeet`.
  bool hasPlacesOfA;       ///< A panel of A for each thread has room.
  bool hasPlacesOfB;       ///< Two panels of B for each thread have.
  bool hasAVX512, streams; ///< Whether C goes past the caches.
  SquaresBy squares;

  /// Whether threads go through all k-blocks alone.
  bool isAlone() const {
    return order == LoopOrder::LongPartitions || order == LoopOrder::SmallB ||
           order == LoopOrder::WholeDepth;
  }
  /// Values of p that a row of a panel has.
  int64_t perWord() const { return form == PanelForm::Pairs ? 2 : 1; }
  /// Whether A's panels of this depth are whole groups of steps: then
  /// micro-kernels can pack them, or read them where they lie.
  bool hasWholeGroups(int64_t ofDepth) const {
    return form != PanelForm::Expanded && ofDepth % (4 * perWord()) == 0;
  }
};

/// Decides; depends on nothing else.
GemmPlan choosePlan(const RepriseGemm &shape, const MicroKernels &kernels,
                    int threads, const GemmRequest &request);

/// The plan in a line.
void describePlan(const GemmPlan &plan, char *text, size_t size);

/// Whether C is of a size, and lies so, that it may go past the caches in whole
/// lines.
bool isLargeC(const RepriseGemm &shape, bool isAligned);

/// Whether, moreover, it is worth it for a C of f32 that goes so many bytes of
/// a row at a time. No cache has it when it is read if it is too large; or if
/// it is a gradient of a weight, the one GEMM whose A is transposed, but
/// then single lines go faster to the caches and from there to memory. What
/// others make the next kernel reads.
bool isReadLate(const RepriseGemm &shape, bool isAligned, int64_t bytesOfRow);

/// Rows as panels: full ones, and at most two low ones at the end, so that as
/// few as possible are computed in vain: 256 = 20 x 12 + 2 x 8 = 42 x 6 + 4.
struct RowPanels {
  int64_t numFull, numLow;

  static RowPanels divide(int64_t rows, int64_t ofFull, int64_t ofLow);
  int64_t count() const { return numFull + numLow; }
  /// Rows that they have room for.
  int64_t rows(int64_t ofFull, int64_t ofLow) const {
    return numFull * ofFull + numLow * ofLow;
  }
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_COMPUTE_GEMMPLAN_H
