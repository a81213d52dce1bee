//===- Cpu.cpp - What this processor can do -------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled for any x86-64, as Entry.cpp is. Asks the processor itself: the
// compilers' builtins would need their support library at link time.
//
//===----------------------------------------------------------------------===//

#include "Cpu.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/// Whether the operating system lets this process use tile registers, whose
/// state it saves only for those that ask.
static bool allowTiles() {
  constexpr long kRequest = 0x1023, kTileData = 18; // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

/// Whether there are tile registers that this process may use, as far as
/// `cpuLevel` has asked.
static bool hasTiles = false;

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
  const uint32_t amx = 1 << 22 | 1 << 24; // AMX_BF16, AMX_TILE
  bool hasAmx = hasAll(d, amx) && hasAll(savedRegisters(), 0x60000);
  const uint32_t avx512Bf16 = 1 << 5;
  if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !hasAll(a, avx512Bf16))
    return 4;
  hasTiles = hasAmx && allowTiles();
  return hasTiles ? 6 : 5;
}

int64_t reprise::runtime::l2Bytes() {
  long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? bytes : 1 << 20;
}

TileRegisters::TileRegisters(bool active) : active(active && hasTiles) {
  const struct alignas(64) {
    uint8_t palette = 1, reserved[15] = {};
    uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } shape;
  if (this->active)
    __asm__ volatile("ldtilecfg %0" : : "m"(shape) : "memory");
}

TileRegisters::~TileRegisters() {
  if (active)
    __asm__ volatile("tilerelease" : : : "memory");
}
