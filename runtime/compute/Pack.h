//===- Pack.h - Operands of GEMMs as panels ---------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_COMPUTE_PACK_H
#define REPRISE_RUNTIME_COMPUTE_PACK_H

#include "reprise/ABI/Gemm.h"

#include <cstdint>

namespace reprise::runtime {

/// A matrix of f32 or bf16 as a GEMM walks through it: `lines` are the rows
/// of A or the columns of B, `depth` is the index that is summed over.
struct PanelSource {
  const void *data;
  int64_t stride;   ///< Elements from one row of the storage to the next.
  bool depthIsFast; ///< Whether the neighbour in memory is the next depth.
  /// Whether it lies as RepriseGemm::packedB has it; `stride` is its rows then.
  bool isPacked = false;

  /// Of what is packed: words from one panel to the next, and where the values
  /// of a row and a column of the storage are.
  int64_t panelWords() const { return stride / 2 * REPRISE_PACKED_COLS; }
  const uint32_t *findPacked(int64_t row, int64_t col) const {
    return static_cast<const uint32_t *>(data) +
           col / REPRISE_PACKED_COLS * panelWords() +
           row / 2 * REPRISE_PACKED_COLS + col % REPRISE_PACKED_COLS;
  }
};

/// What a panel is made of, in words of four bytes.
enum class PanelForm {
  Floats,   ///< of f32: `[depth][width]`
  Pairs,    ///< of bf16, depths 2q and 2q + 1 side by side: `[q][width]`
  Expanded, ///< of bf16, as f32 with depth 2q + 1 before 2q: `[depth][width]`
  Tiles,    ///< of bf16 for AMX, depths 32q to 32q + 31 of a line side by side:
            ///< `[q][width][16]`
};

/// Rows of a panel of `depth` values. Panels of bf16 end with a whole pair, or
/// with all 16 of a tile.
inline int64_t panelRows(PanelForm form, int64_t depth) {
  int64_t pairs = (depth + 1) / 2;
  if (form == PanelForm::Tiles)
    return (pairs + 15) / 16 * 16;
  return form == PanelForm::Floats  ? depth
         : form == PanelForm::Pairs ? pairs
                                    : 2 * pairs;
}

/// Writes `lines` lines, starting at `firstLine`, of `depth` values, starting
/// at `firstDepth`, as one panel of `width` lines, lines <= width. What is
/// missing becomes zeros. Tiles need AVX-512. What is packed becomes pairs or
/// expanded, in whole panels whose width is 8, 16 or 32, at multiples of it,
/// and multiples of 32 depths.
void packPanel(PanelForm form, bool hasAVX512, const PanelSource &source,
               int64_t firstLine, int64_t lines, int64_t firstDepth,
               int64_t depth, int64_t width, float *panel);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_COMPUTE_PACK_H
