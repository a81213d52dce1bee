//===- MicroKernels.h - Tiles of GEMMs --------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_CODEGEN_CPU_MICROKERNELS_H
#define REPRISE_CODEGEN_CPU_MICROKERNELS_H

#include "reprise/ABI/Gemm.h"
#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <string>

namespace reprise::codegen {

/// A function that `reprise-emit-micro-kernels` makes; what an entry of
/// `RepriseModel::microKernels` says, with the symbol in place of its address.
struct MicroKernel {
  int32_t rows, cols; ///< Divide what panels are padded to.
  uint32_t isa;       ///< As in `RepriseMicroKernel`.
  const char *cpu;    ///< LLVM's name of the oldest processor that runs it.
  int32_t typeAB = REPRISE_F32; ///< As in `RepriseMicroKernel`.

  /// Whether it multiplies pairs of bf16.
  bool hasBF16x2() const { return typeAB == REPRISE_BF16; }
  /// Whether it does so in tile registers.
  constexpr bool isAmx() const { return isa == REPRISE_ISA_AMX_BF16; }
  /// reprise_micro_6x16_v3, reprise_micro_12x32_bf16, reprise_micro_32x32_amx
  std::string symbol() const;
};

/// All of them, the ones that need least first.
llvm::ArrayRef<MicroKernel> getMicroKernels();

} // namespace reprise::codegen

#endif // REPRISE_CODEGEN_CPU_MICROKERNELS_H
