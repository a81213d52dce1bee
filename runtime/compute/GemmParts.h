//===- GemmParts.h - What all GEMMs have in common --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One entry of a batch, and what a GEMM does with it whose panels lie in the
// workspace (GemmBlock.h) or, of AMX, with its threads (GemmAmx.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_COMPUTE_GEMMPARTS_H
#define REPRISE_RUNTIME_COMPUTE_GEMMPARTS_H

#include "Fetch.h"
#include "Gemm.h"
#include "Pack.h"

#include <cstring>
#include <immintrin.h>

namespace reprise::runtime {

/// Below this many FLOPs, waking threads costs more than they save.
constexpr int64_t kSerialFlops = 400'000;

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// A range of rows, columns or depth.
struct Range {
  int64_t begin, size;

  int64_t end() const { return begin + size; }
};

/// While it lives, this thread takes denormal numbers for zeros and makes none:
/// what GEMMs of bf16 do, for so does the processor that has them.
class DenormalsAreZero {
public:
  explicit DenormalsAreZero(bool active) : saved(_mm_getcsr()) {
    if (active)
      _mm_setcsr(saved | _MM_FLUSH_ZERO_ON | _MM_DENORMALS_ZERO_ON);
  }
  DenormalsAreZero(const DenormalsAreZero &) = delete;
  DenormalsAreZero &operator=(const DenormalsAreZero &) = delete;
  ~DenormalsAreZero() { _mm_setcsr(saved); }

private:
  unsigned saved;
};

/// A part of a row-major f32 matrix.
struct Tile {
  float *data;
  int64_t stride, rows, cols;

  void copyTo(const Tile &to) const {
    for (int64_t r = 0; r < rows; ++r)
      memcpy(to.data + r * to.stride, data + r * stride,
             size_t(cols) * sizeof(float));
  }
  /// To the nearest bf16, ties to even.
  void roundTo(uint16_t *to, int64_t toStride) const {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < cols; ++j) {
        uint32_t bits;
        memcpy(&bits, data + r * stride + j, sizeof(bits));
        uint32_t nearest = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
        bool isNaN = (bits & 0x7FFFFFFF) > 0x7F800000;
        to[r * toStride + j] = uint16_t(isNaN ? 0x7FC0 : nearest);
      }
  }
};

/// One entry of a batch.
struct GemmEntry {
  GemmEntry(const RepriseGemm &shape, const GemmOperands &operands,
            int64_t entry);

  /// The bias of `count` columns from `col` on, in f32 and where a micro-kernel
  /// may read a whole tile's: `room`, of at least `width`, unless it lies so.
  const float *getBias(int64_t col, int64_t count, int64_t width,
                       float *room) const;

  /// The memory of `lines` columns times `depth` of a B that is packed.
  FetchRegion getPackedRegionOfB(Range lines, Range depth) const;

  /// Where the sum of the squares of the block at this element of C goes.
  float *squaresOf(int64_t row, int64_t col) const {
    return squares +
           row / REPRISE_GEMM_SQUARES_ROWS * repriseGemmSquaresOfRow(&shape) +
           col / REPRISE_GEMM_SQUARES_COLS;
  }
  /// Writes those of the blocks that begin in these rows and columns, once all
  /// of them is in C.
  void sumBlocks(Range rows, Range cols) const;

  /// Whether C begins with a cache line.
  bool isAligned() const;

  const RepriseGemm &shape;
  PanelSource a, b;
  const void *bias;
  float *c;          ///< Null if C is of bf16.
  uint16_t *rounded; ///< Null if it is not.
  float *squares;    ///< Null unless they are wanted, of a C of f32.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_COMPUTE_GEMMPARTS_H
