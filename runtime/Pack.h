//===- Pack.h - Operands of products as panels ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_PACK_H
#define REPRISE_RUNTIME_PACK_H

#include <cstdint>

namespace reprise::runtime {

/// A matrix as a product walks through it: `lines` are the rows of A or the
/// columns of B, `depth` is the index that is summed over.
struct PanelSource {
  const float *data;
  int64_t stride;   ///< Elements from one row of the storage to the next.
  bool depthIsFast; ///< Whether the neighbour in memory is the next depth.
};

/// Writes `lines` lines, starting at `firstLine`, of `depth` values, starting
/// at `firstDepth`, as one panel `[depth][width]`, lines <= width. Missing
/// lines become zeros.
void packPanel(const PanelSource &source, int64_t firstLine, int64_t lines,
               int64_t firstDepth, int64_t depth, int64_t width, float *panel);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_PACK_H
