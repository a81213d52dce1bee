//===- Cpu.cpp - What this processor can do -------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one file that is compiled for any x86-64, so that a processor that is too
// old gets a sentence and not an illegal instruction. Asks the processor
// itself: the compilers' builtins would need their support library at link
// time.
//
//===----------------------------------------------------------------------===//

#include "Cpu.h"

#include <cpuid.h>
#include <cstdio>

using namespace reprise::runtime;

/// The register sets whose state the operating system saves.
static uint32_t savedRegisters() {
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

static bool hasAll(uint32_t word, uint32_t bits) {
  return (word & bits) == bits;
}

int reprise::runtime::cpuLevel() {
  const uint32_t ymmSaved = 0x06, zmmSaved = 0xE6; // XCR0
  const uint32_t avx512 =
      bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) ||
      !hasAll(c, bit_FMA | bit_AVX | bit_F16C | bit_MOVBE | bit_OSXSAVE) ||
      !hasAll(savedRegisters(), ymmSaved))
    return 2;
  if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !hasAll(c, bit_LZCNT))
    return 2;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) ||
      !hasAll(b, bit_AVX2 | bit_BMI | bit_BMI2))
    return 2;
  if (!hasAll(b, avx512) || !hasAll(savedRegisters(), zmmSaved))
    return 3;
  const uint32_t avx512Bf16 = 1 << 5;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && hasAll(a, avx512Bf16) ? 5
                                                                          : 4;
}

int repriseMain(int argc, char **argv, const RepriseModel *const *models,
                int32_t numModels) {
  if (cpuLevel() < 3) {
    fprintf(stderr, "error: this program needs an x86-64-v3 processor (AVX2, "
                    "FMA, BMI2), but this one lacks some of that\n");
    return 1;
  }
  return trainingMain(argc, argv, models, numModels);
}
