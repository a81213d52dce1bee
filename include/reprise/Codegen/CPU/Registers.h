//===- Registers.h - What kernels are emitted for ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_CODEGEN_CPU_REGISTERS_H
#define REPRISE_CODEGEN_CPU_REGISTERS_H

namespace reprise::codegen {

/// The vector registers that kernels are emitted for. Results are the same.
enum class Registers {
  Base, ///< 16 of 8 lanes, as x86-64-v3 has
  Wide, ///< 32 of 16 lanes, as x86-64-v4 has
  Both  ///< `Base`, and kernels that gain from it once more for `Wide`
};

/// LLVM's name of the oldest processor that runs what is emitted once more.
inline constexpr char kAVX512Processor[] = "x86-64-v4";

} // namespace reprise::codegen

#endif // REPRISE_CODEGEN_CPU_REGISTERS_H
