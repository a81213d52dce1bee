//===- MicroKernelSteps.h - Steps of a tile, and its panels -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_MICROKERNELSTEPS_H
#define REPRISE_LIB_CODEGEN_CPU_MICROKERNELSTEPS_H

#include "reprise/ABI/Gemm.h"
#include "reprise/Codegen/CPU/MicroKernels.h"
#include "reprise/Codegen/Common/Code.h"

namespace reprise::codegen {

/// What happens to the panel of A on the way.
enum class Form {
  Packed = REPRISE_TILE_PACKED,
  TransposesA = REPRISE_TILE_TRANSPOSES_A,
  ReadsA = REPRISE_TILE_READS_A,
  CopiesA = REPRISE_TILE_COPIES_A
};

/// Rows of a matrix, `ld` elements apart.
struct Source {
  mlir::Value data, ld;
};

/// Panels are made of words of four bytes: f32 or a pair of bf16. That of A may
/// have to be packed yet: to `packed`, from `source`. Or it is read there:
/// where it lies in rows of the depth, `rows` are the places in those of
/// numbers 0, 3, 6 ... that the next steps begin with.
struct Panels {
  Form form;
  mlir::Value a, b;
  Source source;
  mlir::Value packed;
  llvm::SmallVector<mlir::Value> rows;
};

/// Whether a micro-kernel of `tile` packs words by way of the processor's
/// general registers: where that takes less than vectors do.
inline bool packsByWords(const MicroKernel &tile) {
  return tile.isa == REPRISE_ISA_V3;
}

/// Steps of a turn of the main loop.
constexpr int64_t kUnroll = 4;

/// Packs steps p, p + 1, ... p + kUnroll - 1 of A's panel, if it is A that is
/// packed before its steps.
void emitPackingOfA(Code &code, const MicroKernel &tile, const Panels &panels,
                    mlir::Value p);

/// Packs row `row` of a panel of B, to `packed`.
void emitRowOfB(Code &code, const MicroKernel &tile, const Source &source,
                mlir::Value packed, mlir::Value row);

/// If A is read where it lies, in rows of the depth: its places before the
/// first step, and those of `panels` `kUnroll` steps later.
llvm::SmallVector<mlir::Value> getFirstRows(Code &code, const MicroKernel &tile,
                                            const Panels &panels);
llvm::SmallVector<mlir::Value> getNextRows(Code &code, const Panels &panels);

/// Adds the outer products of steps p, p + 1, ... p + steps - 1 to the sums of
/// a tile, row by row. What is packed of A behind its use is packed here.
llvm::SmallVector<mlir::Value> emitSteps(Code &code, const MicroKernel &tile,
                                         const Panels &panels, mlir::Value p,
                                         int64_t steps, mlir::ValueRange sums);

} // namespace reprise::codegen

#endif // REPRISE_LIB_CODEGEN_CPU_MICROKERNELSTEPS_H
