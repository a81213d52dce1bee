//===- Cpu.h - What this processor can do -----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_COMPUTE_CPU_H
#define REPRISE_RUNTIME_COMPUTE_CPU_H

#include "reprise/ABI/Model.h"

#include <cstdint>

namespace reprise::runtime {

/// The x86-64 level of this processor as far as Reprise cares: 2 (too old), 3
/// (AVX2, FMA, BMI2) or 4 (AVX-512 F, BW, CD, DQ, VL), and only as far as the
/// operating system saves the registers; 5 is 4 with AVX512_BF16, 6 that with
/// AMX_BF16, which this asks the operating system for.
int cpuLevel();

/// Bytes of the second-level data cache of one processor, as the system has it;
/// 1 MiB if it does not know.
int64_t l2Bytes();

/// Up to this level all GEMMs have the same bits, and all versions of a
/// kernel but that for pairs.
constexpr int kPortableLevel = 5;

/// What a program runs on: a level as `cpuLevel` counts them and, perhaps,
/// without all that has bits of its own there.
struct Processor {
  Processor(int level, bool hasPortableBits = false)
      : level(level), hasPortableBits(hasPortableBits) {}

  int levelOfGemms() const {
    return hasPortableBits && level > kPortableLevel ? kPortableLevel : level;
  }

  int level;
  bool hasPortableBits;
};

/// While it lives, the processor's eight tile registers, if `cpuLevel` has
/// found any, have 16 rows of 64 bytes each on this thread.
class TileRegisters {
public:
  explicit TileRegisters(bool active);
  TileRegisters(const TileRegisters &) = delete;
  TileRegisters &operator=(const TileRegisters &) = delete;
  ~TileRegisters();

private:
  bool active;
};

/// The version of a kernel for this processor.
inline RepriseKernelFn chooseKernel(const RepriseKernel &kernel,
                                    Processor processor) {
  int level = processor.level;
  if (level >= 6 && kernel.amxFn && !processor.hasPortableBits)
    return kernel.amxFn;
  if (level >= 5 && kernel.avx512BF16Fn && !processor.hasPortableBits)
    return kernel.avx512BF16Fn;
  return level >= 4 && kernel.avx512Fn ? kernel.avx512Fn : kernel.fn;
}

/// The training program proper; runs on level 3 and up. Returns the exit code.
int trainingMain(int argc, char **argv, const RepriseModel *const *models,
                 int numModels);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_COMPUTE_CPU_H
