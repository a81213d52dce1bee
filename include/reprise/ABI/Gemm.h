//===- Gemm.h - GEMMs: shapes, blocks, tiles ----------------------*- C -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The shape of a GEMM, how it is divided into blocks, and the tiles that the
// compiler's micro-kernels make of a block. Structs and constants, with their
// meaning, are in Gemm.def. Sizes that the compiler plans follow from the
// functions here: a change of one is a change of the interface, and raises
// REPRISE_ABI_MEANING of Model.def.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_ABI_GEMM_H
#define REPRISE_ABI_GEMM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REPRISE_DECLARE
#include "reprise/ABI/Gemm.def"

static inline int64_t repriseRoundUp(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

static inline int64_t repriseGemmKC(const RepriseGemm *g) {
  return g->typeAB == REPRISE_BF16 ? REPRISE_GEMM_KC_BF16 : REPRISE_GEMM_KC;
}

/// Blocks of C in a row of blocks, for REPRISE_EPILOGUE_SQUARES_OF_C, and in
/// all.
static inline int64_t repriseGemmSquaresOfRow(const RepriseGemm *g) {
  return repriseRoundUp(g->n, REPRISE_GEMM_SQUARES_COLS) /
         REPRISE_GEMM_SQUARES_COLS;
}
static inline int64_t repriseGemmSquares(const RepriseGemm *g) {
  return repriseRoundUp(g->m, REPRISE_GEMM_SQUARES_ROWS) /
         REPRISE_GEMM_SQUARES_ROWS * repriseGemmSquaresOfRow(g);
}

/// The most rows of a panel. Those of bf16 have whole pairs, and room for f32:
/// not every processor multiplies bf16.
static inline int64_t repriseGemmPanelRows(const RepriseGemm *g) {
  int64_t k = g->k < repriseGemmKC(g) ? g->k : repriseGemmKC(g);
  return g->typeAB == REPRISE_BF16 ? (k + 1) / 2 * 2 : k;
}

/// Columns of a block, whole panels.
static inline int64_t repriseGemmPanelCols(const RepriseGemm *g) {
  int64_t n = g->n < REPRISE_GEMM_NC ? g->n : REPRISE_GEMM_NC;
  return repriseRoundUp(n, REPRISE_GEMM_COL_ALIGN);
}

/// Elements of the packed panels of A of one entry, whole cache lines.
static inline int64_t repriseGemmPanelsOfA(const RepriseGemm *g) {
  int64_t m = g->m < REPRISE_GEMM_MC ? g->m : REPRISE_GEMM_MC;
  return repriseRoundUp(
      repriseGemmPanelRows(g) * repriseRoundUp(m, REPRISE_GEMM_ROW_ALIGN), 16);
}

/// Elements of the packed panels of B of one entry.
static inline int64_t repriseGemmPanelsOfB(const RepriseGemm *g) {
  return repriseGemmPanelRows(g) * repriseGemmPanelCols(g);
}

/// Elements of the f32 sums that a C of bf16 needs from block to block: all
/// rows of a block of columns.
static inline int64_t repriseGemmSums(const RepriseGemm *g) {
  return g->typeC == REPRISE_BF16 && g->k > repriseGemmKC(g)
             ? g->m * repriseGemmPanelCols(g)
             : 0;
}

/// The GEMM of so many rows of one group, and all that it shares with others:
/// operands that are gathered lie in rows of their own.
static inline RepriseGemm repriseGemmOfGroup(const RepriseGemm *g,
                                             int64_t rows) {
  RepriseGemm part = *g;
  part.groups = 0;
  part.gather = REPRISE_GATHER_NONE;
  part.slots = 1;
  *(g->transposeA ? &part.k : &part.m) = rows;
  return part;
}

/// Rows of a part of a group, at most.
static inline int64_t repriseGemmGroupRows(const RepriseGemm *g) {
  int64_t rows = g->transposeA ? g->k : g->m;
  return rows < REPRISE_GEMM_GROUP_ROWS ? rows : REPRISE_GEMM_GROUP_ROWS;
}

/// Elements of a row that is gathered; 0 where none is.
static inline int64_t repriseGemmGatheredWidth(const RepriseGemm *g) {
  if (g->gather == REPRISE_GATHER_NONE)
    return 0;
  if (g->gather == REPRISE_GATHER_B)
    return g->n;
  return g->transposeA ? g->m : g->k;
}

/// Bytes of workspace a GEMM needs on the CPU: sums, packed panels of A, and
/// packed panels of B, for one entry of the batch, or for up to
/// REPRISE_GEMM_SLOTS entries side by side. With groups, those of a part of
/// one, and behind them the rows that it gathers, as f32.
static inline int64_t repriseGemmWorkspaceBytes(const RepriseGemm *g) {
  if (g->groups) {
    RepriseGemm part = repriseGemmOfGroup(g, repriseGemmGroupRows(g));
    return 4 * (repriseGemmSums(&part) + repriseGemmPanelsOfA(&part) +
                repriseGemmPanelsOfB(&part) +
                repriseGemmGroupRows(g) * repriseGemmGatheredWidth(g));
  }
  int64_t slots = g->batch[0] * g->batch[1];
  if (slots > REPRISE_GEMM_SLOTS)
    slots = REPRISE_GEMM_SLOTS;
  return slots * 4 *
         (repriseGemmSums(g) + repriseGemmPanelsOfA(g) +
          repriseGemmPanelsOfB(g));
}

#ifdef __cplusplus
}
#endif
#endif /* REPRISE_ABI_GEMM_H */
