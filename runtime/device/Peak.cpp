//===- Peak.cpp - The fastest that GEMMs can be ---------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Peak.h"

#include "runtime/base/Clock.h"
#include "runtime/base/MappedFile.h"
#include "runtime/base/ReplacedFile.h"
#include "runtime/compute/Cpu.h"
#include "runtime/text/Json.h"
#include "runtime/text/JsonWriter.h"

#include <algorithm>
#include <cmath>

using namespace reprise::runtime;

/// The largest tile, and as many values of p as panels of it fit in 32 KiB.
static constexpr int64_t kLargestTile = 32, kDepth = 128;

double reprise::runtime::measurePeakFlops(const RepriseMicroKernel &kernel,
                                          ThreadPool &pool, bool isQuick) {
  if (kernel.rows > kLargestTile || kernel.cols > kLargestTile)
    return 0;
  constexpr int kCalls = 2000, kRounds = 8, kEnough = 16;
  constexpr double kPatience = 0.2; // Seconds, however busy the machine is.
  double flops = 2.0 * kernel.rows * kernel.cols * kDepth * kCalls;
  if (kernel.typeAB == REPRISE_BF16) // Each word is a pair.
    flops *= 2;
  double best = 0, begin = now();
  auto isEnough = [&](int rounds, int unbeaten) {
    return rounds >= kRounds &&
           (isQuick || unbeaten >= kEnough || now() - begin > kPatience);
  };
  for (int round = 0, unbeaten = 0; !isEnough(round, unbeaten);
       ++round, ++unbeaten) {
    double start = now();
    pool.parallelFor(pool.size(), 1, [&](int, int64_t begin, int64_t end) {
      TileRegisters tiles(kernel.isa == REPRISE_ISA_AMX_BF16);
      alignas(64) float a[kLargestTile * kDepth], b[kLargestTile * kDepth],
          tile[kLargestTile * kLargestTile];
      std::fill_n(a, kLargestTile * kDepth, 1.0f);
      std::fill_n(b, kLargestTile * kDepth, 1.0f);
      RepriseTile work = {};
      work.a = a, work.b = work.next = b, work.k = kDepth;
      work.nextRows = 1, work.nextSteps = kDepth;
      work.c = tile, work.ldc = kernel.cols, work.alpha = 1.0f;
      for (int64_t task = begin; task < end; ++task)
        for (int call = 0; call < kCalls; ++call)
          kernel.fn(&work);
    });
    double rate = flops * pool.size() / (now() - start);
    if (rate > best * 1.005) // What is less is chance.
      unbeaten = 0;
    best = std::max(best, rate);
  }
  return best;
}

/// The FLOP/s that a file has for a machine; 0 if it has none.
static double readPeak(const char *path, const char *machine) {
  MappedFile file;
  JsonDocument document;
  Error ignored;
  double flops = 0;
  if (file.map(path, ignored) &&
      document.parse(
          {reinterpret_cast<const char *>(file.data), size_t(file.size)}, path,
          ignored) &&
      document.root().find("machine").text() == machine)
    document.root().find("peak_flops").asDouble(flops);
  file.unmap();
  return flops > 0 && std::isfinite(flops) ? flops : 0;
}

void Peak::measure(const RepriseMicroKernel &kernel, ThreadPool &pool,
                   const char *name, const char *folder) {
  isMeasured = true;
  snprintf(machine, sizeof(machine), "%s", name);
  if (folder) {
    file = Path("%s/machine.json", folder);
    kept = readPeak(file, machine);
  }
  best = std::max(kept, measurePeakFlops(kernel, pool));
}

void Peak::reached(double flops) {
  if (isMeasured)
    best = std::max(best, flops);
}

void Peak::keep() {
  if (!isMeasured || !file.chars[0] || best <= kept)
    return;
  ReplacedFile out;
  Error ignored;
  FILE *text = out.start(file, ignored) ? out.open(ignored) : nullptr;
  if (!text)
    return;
  JsonWriter json(text);
  json.object(JsonWriter::Lines).member("machine", +machine);
  json.member("peak_flops", best, 6).finish();
  if (out.finish(true, ignored))
    kept = best;
}

MicroKernels reprise::runtime::chooseForBF16(const RepriseMicroKernel *kernels,
                                             int count, int cpuLevel,
                                             ThreadPool &pool) {
  MicroKernels floats = chooseMicroKernels(kernels, count, cpuLevel);
  MicroKernels pairs =
      chooseMicroKernels(kernels, count, cpuLevel, REPRISE_BF16);
  if (!floats.full || !pairs.full)
    return floats;
  if (pairs.full->isa == REPRISE_ISA_AMX_BF16)
    return pairs;
  return measurePeakFlops(*pairs.full, pool, /*isQuick=*/true) >
                 measurePeakFlops(*floats.full, pool, /*isQuick=*/true)
             ? pairs
             : floats;
}

double reprise::runtime::dataSheetFlops(int major, int minor, bool isBF16,
                                        bool isTF32) {
  static constexpr struct {
    int major, minor;
    double bf16, tf32, f32;
  } kChips[] = {{8, 0, 312e12, 156e12, 19.5e12},
                {9, 0, 989.4e12, 494.7e12, 66.9e12},
                {10, 0, 2250e12, 1125e12, 80e12}};
  for (const auto &chip : kChips)
    if (chip.major == major && chip.minor == minor)
      return isBF16 ? chip.bf16 : isTF32 ? chip.tf32 : chip.f32;
  return 0;
}
