//===- MicroKernelParts.h - What a tile begins and ends with ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_MICROKERNELPARTS_H
#define REPRISE_LIB_CODEGEN_CPU_MICROKERNELPARTS_H

#include "reprise/ABI/Gemm.h"
#include "reprise/Codegen/CPU/MicroKernels.h"
#include "reprise/Codegen/Common/Code.h"

namespace reprise::codegen {

/// The fields of a RepriseTile.
struct Fields {
  Code &code;
  mlir::Value tile;

  mlir::Value get(mlir::Type type, size_t offset) const;
  mlir::Value pointer(size_t offset) const;
  mlir::Value integer(size_t offset) const;
  /// Whether the i32 there is not 0.
  mlir::Value isSet(size_t offset) const;
  /// Whether the pointer there is not null.
  mlir::Value isThere(size_t offset) const;
};

/// The fewest steps for each row that is fetched.
constexpr int64_t kFetchSteps = REPRISE_TILE_FETCH_STEPS;

/// Rows that are fetched, one for every `pace` steps, a power of two.
struct FetchedRows {
  mlir::Value start, pace;          ///< The step at which they begin.
  mlir::Value first, stride, count; ///< `stride` in bytes.
  int64_t bytes;                    ///< of a row
  bool isWritten;
};

/// What the result takes the place of, and what will be needed next.
llvm::SmallVector<FetchedRows, 2>
getFetchedRows(Code &code, const MicroKernel &tile, const Fields &fields);

/// Fetches the row that belongs to the kFetchSteps steps from `p` on; returns
/// where the next one is: the first before the start, the last after the end.
mlir::Value emitFetch(Code &code, const FetchedRows &rows, mlir::Value row,
                      mlir::Value p);

/// Fetches the row that belongs to step `p`: for who does not come by at every
/// step, but at a multiple of the pace at least.
void emitFetchOfStep(Code &code, const FetchedRows &rows, mlir::Value p);

/// Writes rows of the tile, from `firstRow` on, to their place: `sums`, or what
/// is in C plus these; plus a row of bias; `mayRound`: perhaps rounded. Returns
/// what it writes, before rounding.
llvm::SmallVector<mlir::Value> emitEnd(Code &code, const MicroKernel &tile,
                                       const Fields &fields,
                                       mlir::Value firstRow,
                                       mlir::ValueRange sums, bool mayRound);

/// All of a tile of AMX.
void emitAmxTile(Code &code, const MicroKernel &tile, const Fields &fields);

} // namespace reprise::codegen

#endif // REPRISE_LIB_CODEGEN_CPU_MICROKERNELPARTS_H
