//===- GemmBlock.h - The block that a GEMM works on -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_COMPUTE_GEMMBLOCK_H
#define REPRISE_RUNTIME_COMPUTE_GEMMBLOCK_H

#include "GemmParts.h"
#include "GemmPlan.h"

namespace reprise::runtime {

/// The rows and bytes of `lines` times `depth` elements of a matrix.
FetchRegion getRegion(const PanelSource &source, PanelForm form, Range lines,
                      Range depth);

/// What does not change while an entry of a batch is computed.
struct GemmJob {
  GemmJob(const RepriseGemm &shape, const GemmOperands &operands,
          const MicroKernels &kernels, int64_t entry, int slot, int threads);

  int64_t strideOfSums() const {
    return entry.c ? shape.ldc : repriseGemmPanelCols(&shape);
  }

  const RepriseGemm &shape;
  const GemmEntry entry;
  const RepriseMicroKernel &full, &low;
  const GemmPlan plan;
  float *panelsA, *panelsB, *sums; ///< Parts of the workspace.
};

/// The rows, columns and depth of a block; without rows it is none.
struct BlockRange {
  Range rows, cols, depth;
};

/// A block of a GEMM that is being worked on, the one after it, empty at the
/// end, and where panels of its operands are. A value: whoever goes on with
/// another block makes another one.
class GemmBlock {
public:
  GemmBlock(const GemmJob &job, const BlockRange &now, const BlockRange &next)
      : GemmBlock(job, now, next, job.panelsA, job.panelsB) {}
  /// With panels in parts of the workspace that are a thread's own.
  GemmBlock(const GemmJob &job, const BlockRange &now, const BlockRange &next,
            float *panelsA, float *panelsB)
      : job(job), rows(now.rows), cols(now.cols), depth(now.depth), next(next),
        panels(RowPanels::divide(now.rows.size, job.full.rows, job.low.rows)),
        panelsA(panelsA), panelsB(panelsB) {}

  /// Rows of the block that one panel of A has.
  struct RowPanel {
    const RepriseMicroKernel &kernel;
    Range rows;
  };
  RowPanel getRowPanel(int64_t panel) const;
  int64_t numRowPanels() const { return panels.count(); }
  int64_t numPanelsOfB() const { return divideUp(cols.size, job.full.cols); }
  /// The columns of C that a panel of B is for.
  Range getColsOf(int64_t panelB) const {
    const int64_t width = job.full.cols, first = panelB * width;
    return {cols.begin + first, smaller(width, cols.size - first)};
  }
  bool isLastOfDepth() const { return depth.end() == job.shape.k; }
  /// Rows of its panels.
  int64_t steps() const { return panelRows(job.plan.form, depth.size); }

  float *packedA(const RowPanel &panel) const {
    return panelsA + panel.rows.begin * steps();
  }
  /// Whether micro-kernels can pack whole panels of A as they use them first.
  bool canPackA() const { return job.plan.hasWholeGroups(depth.size); }
  /// Panels [firstPanel, endPanel).
  void packA(int64_t firstPanel, int64_t endPanel) const;
  /// Depths [first, first + count) of the block.
  void packA(const RowPanel &panel, int64_t first, int64_t count,
             float *place) const {
    const PanelForm form = job.plan.form;
    packPanel(form, job.plan.hasAVX512, job.entry.a,
              rows.begin + panel.rows.begin, panel.rows.size,
              depth.begin + first, count, panel.kernel.rows,
              place + panelRows(form, first) * panel.kernel.rows);
  }
  float *packedB(int64_t place) const {
    return panelsB + place * job.full.cols * steps();
  }
  const void *getPanelOfB(int64_t panel, const float *place) const {
    if (job.plan.readsB)
      return job.entry.b.findPacked(depth.begin,
                                    cols.begin + panel * job.full.cols);
    return place;
  }
  void packB(int64_t panel, float *place) const {
    Range lines = getColsOf(panel);
    packPanel(job.plan.form, job.plan.hasAVX512, job.entry.b, lines.begin,
              lines.size, depth.begin, depth.size, job.full.cols, place);
  }

  /// What a panel of A is made of.
  FetchRegion getRegionOfA(const RowPanel &panel, Range depths) const {
    Range lines = {rows.begin + panel.rows.begin, panel.rows.size};
    return getRegion(job.entry.a, job.plan.form, lines, depths);
  }
  /// What a panel of B is packed from or, if it is packed already, is.
  FetchRegion getRegionOfB(int64_t panelB) const;
  /// Whether micro-kernels can pack a panel on their way, that of `region`: a
  /// whole one of rows that lie as they read them. (Transposed ones on the way
  /// take longer than before it.)
  bool isPackedAhead(int64_t panelB, const FetchRegion &region) const;

  /// Where f32 sums go from block to block, from the first row at hand and a
  /// column on: C or, of a C of bf16, the workspace, or nowhere if it has only
  /// one block.
  float *getSums(int64_t col) const {
    const int64_t row = rows.begin * job.strideOfSums();
    if (job.entry.c)
      return job.entry.c + row + col;
    return job.sums ? job.sums + row + col - cols.begin : nullptr;
  }

  const GemmJob &job;
  const Range rows, cols, depth;
  const BlockRange next;

private:
  /// Whether a panel of B, from the number of them on one of the next block, is
  /// packed by now.
  bool isPackedBefore(int64_t panelB) const;

  const RowPanels panels;
  float *const panelsA, *const panelsB;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_COMPUTE_GEMMBLOCK_H
