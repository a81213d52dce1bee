//===- GemmBlock.cpp - The block that a GEMM works on ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GemmBlock.h"

using namespace reprise::runtime;

GemmJob::GemmJob(const RepriseGemm &shape, const GemmOperands &operands,
                 const MicroKernels &kernels, int64_t index, int slot,
                 int threads)
    : shape(shape), entry(shape, operands, index), full(*kernels.full),
      low(*kernels.low),
      plan(choosePlan(shape, kernels, threads,
                      {entry.squares != nullptr, entry.isAligned()})) {
  RepriseGemm one = shape;
  one.batch[0] = one.batch[1] = 1;
  int64_t size = repriseGemmWorkspaceBytes(&one) / 4;
  sums = operands.workspace + slot * size;
  panelsA = sums + repriseGemmSums(&one);
  // The panels of B come last and end with the workspace, however little of
  // their room they take.
  panelsB = sums + size - plan.steps * repriseGemmPanelCols(&one);
  if (panelsA == sums)
    sums = nullptr;
}

/// Where lines are neighbours in memory, a cache line has parts of several
/// panels: they take turns every few rows, while it is in L1.
void GemmBlock::packA(int64_t firstPanel, int64_t endPanel) const {
  constexpr int64_t kTurn = 16;
  int64_t piece = job.entry.a.depthIsFast ? depth.size : kTurn;
  for (int64_t first = 0; first < depth.size; first += piece)
    for (int64_t index = firstPanel; index < endPanel; ++index)
      packA(getRowPanel(index), first, smaller(piece, depth.size - first),
            packedA(getRowPanel(index)));
}

GemmBlock::RowPanel GemmBlock::getRowPanel(int64_t panel) const {
  const int64_t numFull = panels.numFull;
  bool isFull = panel < numFull;
  const RepriseMicroKernel &kernel = isFull ? job.full : job.low;
  int64_t begin =
      isFull ? panel * job.full.rows
             : numFull * job.full.rows + (panel - numFull) * job.low.rows;
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

bool GemmBlock::isPackedBefore(int64_t panelB) const {
  bool isNext = panelB >= numPanelsOfB();
  return !job.plan.isAlone() && !job.plan.readsB &&
         ((job.plan.partitions > 0 && !isNext) ||
          (isNext ? next.rows : rows).begin > 0);
}

FetchRegion GemmBlock::getRegionOfB(int64_t panelB) const {
  const int64_t numB = numPanelsOfB(), width = job.full.cols;
  bool isNext = panelB >= numB;
  if (isNext && next.rows.size == 0)
    return {};
  if (isPackedBefore(panelB)) {
    int64_t bytes = width * int64_t(sizeof(float));
    return {reinterpret_cast<const char *>(packedB(panelB % numB)), bytes,
            steps(), bytes};
  }
  const Range &within = isNext ? next.cols : cols;
  int64_t first = (isNext ? panelB - numB : panelB) * width;
  if (first >= within.size)
    return {};
  const Range lines = {within.begin + first,
                       smaller(width, within.size - first)};
  const Range &depths = isNext ? next.depth : depth;
  return job.entry.b.isPacked
             ? job.entry.getPackedRegionOfB(lines, depths)
             : getRegion(job.entry.b, job.plan.form, lines, depths);
}

bool GemmBlock::isPackedAhead(int64_t panelB, const FetchRegion &region) const {
  static_assert(REPRISE_GEMM_COL_ALIGN * sizeof(float) <= Fetch::kBytes,
                "a call fetches whole rows of a panel");
  const GemmPlan &plan = job.plan;
  return plan.form != PanelForm::Expanded && !job.entry.b.depthIsFast &&
         !job.entry.b.isPacked && !isPackedBefore(panelB) &&
         region.rows % plan.perWord() == 0 &&
         region.bytes * plan.perWord() ==
             job.full.cols * int64_t(sizeof(float));
}
