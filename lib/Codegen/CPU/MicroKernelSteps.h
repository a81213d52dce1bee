//===- MicroKernelSteps.h - Steps of a tile, and its panels ------*- C++
//-*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_MICROKERNELSTEPS_H
#define REPRISE_LIB_CODEGEN_CPU_MICROKERNELSTEPS_H

#include "reprise/ABI/Model.h"
#include "reprise/Codegen/CPU/MicroKernels.h"
#include "reprise/Codegen/Common/Code.h"

namespace reprise::codegen {

/// What happens to panels on the way.
enum class Form {
  Packed = REPRISE_TILE_PACKED,
  PacksB = REPRISE_TILE_PACKS_B,
  PacksA = REPRISE_TILE_PACKS_A,
  TransposesA = REPRISE_TILE_TRANSPOSES_A
};

/// Panels are made of words of four bytes: f32 or a pair of bf16. One of them
/// may have to be packed yet: to `packed`, from rows that are `ld` elements
/// apart.
struct Panels {
  Form form;
  mlir::Value a, b;
  mlir::Value source, ld, packed;
};

/// Steps of a turn of the main loop.
constexpr int64_t kUnroll = 4;

/// Packs steps p, p + 1, ... p + kUnroll - 1 of A's panel, if it is A that is
/// packed.
void emitPackingOfA(Code &code, const MicroKernel &tile, const Panels &panels,
                    mlir::Value p);

/// Adds the outer products of steps p, p + 1, ... p + steps - 1 to the sums of
/// a tile, row by row; packs the steps of B's panel, if it is B that is packed.
llvm::SmallVector<mlir::Value> emitSteps(Code &code, const MicroKernel &tile,
                                         const Panels &panels, mlir::Value p,
                                         int64_t steps, mlir::ValueRange sums);

} // namespace reprise::codegen

#endif // REPRISE_LIB_CODEGEN_CPU_MICROKERNELSTEPS_H
