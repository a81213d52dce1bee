//===- Kernels.h - Launches and copies, to be timed -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_BENCH_KERNELS_H
#define REPRISE_TEST_BENCH_KERNELS_H

#include "Bench.h"

#include "runtime/compute/Cpu.h"
#include "runtime/device/Arena.h"

#include <cstdlib>
#include <cstring>
#include <immintrin.h>
#include <sys/mman.h>

namespace reprise::bench {

/// Memory on huge pages, as the arena is, with every page there.
inline char *allocatePages(size_t bytes) {
  constexpr size_t kHugePage = 2 << 20;
  bytes = (bytes + kHugePage) & ~(kHugePage - 1);
  void *memory = aligned_alloc(kHugePage, bytes);
  madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<char *>(memset(memory, 1, bytes));
}

/// Reads half of `bytes` bytes and writes as many, with all threads: what a
/// kernel that moves `bytes` is measured against.
class Copy {
public:
  explicit Copy(int64_t bytes)
      : half((bytes / 2 + 63) & ~63), from(allocatePages(size_t(half))),
        to(allocatePages(size_t(half))) {}
  Copy(const Copy &) = delete;
  Copy &operator=(const Copy &) = delete;
  ~Copy() { free(from), free(to); }

  /// How bytes are copied: as the C library does with small pieces and with
  /// large ones, and with stores around the caches, which read nothing of what
  /// they overwrite. None is always the fastest.
  enum Way { kSmall, kLarge, kAround };
  void run(runtime::ThreadPool &pool, Way way) {
    int64_t piece = way == kSmall   ? 64 << 10
                    : way == kLarge ? 8 << 20
                                    : 1 << 20;
    pool.parallelFor((half + piece - 1) / piece, 1,
                     [&](int, int64_t begin, int64_t end) {
                       int64_t first = begin * piece;
                       int64_t last = std::min(end * piece, half);
                       if (way == kAround)
                         copyAround(first, last);
                       else
                         memcpy(to + first, from + first, size_t(last - first));
                     });
  }

  /// Contestants for a race, one for each way.
  std::vector<Contestant> contestants(runtime::ThreadPool &pool) {
    return {{"copy", [this, &pool] { run(pool, kSmall); }},
            {"copy of large pieces", [this, &pool] { run(pool, kLarge); }},
            {"copy around caches", [this, &pool] { run(pool, kAround); }}};
  }

private:
  void copyAround(int64_t first, int64_t last) {
    for (int64_t at = first; at < last; at += 32)
      _mm256_stream_si256(
          reinterpret_cast<__m256i *>(to + at),
          _mm256_load_si256(reinterpret_cast<const __m256i *>(from + at)));
    _mm_sfence();
  }

  int64_t half;
  char *from, *to;
};

/// The bytes that a kernel's launch reads and writes: each buffer once, and
/// twice what is changed in place, for it is an input and an output. Of a table
/// that is looked up no more than the rows, the next largest buffer.
inline int64_t bytesOf(const RepriseModel &model, const RepriseLaunch &launch) {
  const char *name = model.kernels[launch.callee].name;
  bool isLookup = strncmp(name, "embedding", 9) == 0 ||
                  strncmp(name, "add_positions", 13) == 0 ||
                  strncmp(name, "positions", 9) == 0;
  int64_t table = 0, rows = 0, bytes = 0;
  auto forBuffers = [&](auto body) {
    for (int i = 0; i < launch.numBuffers; ++i)
      body(model.buffers[launch.firstBuffer + i].bytes);
  };
  forBuffers([&](int64_t size) { table = std::max(table, size); });
  forBuffers([&](int64_t size) {
    if (size < table)
      rows = std::max(rows, size);
  });
  forBuffers([&](int64_t size) {
    bytes += isLookup && rows > 0 ? std::min(size, rows) : size;
  });
  return bytes;
}

/// Whether a launch computes for long rather than moving bytes.
inline bool isAttention(const RepriseModel &model,
                        const RepriseLaunch &launch) {
  return strncmp(model.kernels[launch.callee].name, "attention", 9) == 0;
}

/// Launches of a model on its own buffers, filled for each.
class Launcher {
public:
  explicit Launcher(const RepriseModel &model) : model(model) {}

  bool start(int threads) {
    runtime::Error error;
    if (pool.start(threads, error) && arena.map(model.arenaBytes, error))
      return true;
    fprintf(stderr, "bench: %s\n", error.text);
    return false;
  }

  /// What runs `launch`, as the runtime does on this processor, on buffers
  /// filled now.
  std::function<void()> prepare(const RepriseLaunch &launch,
                                runtime::Processor processor = cpuLevel()) {
    fill(launch);
    std::vector<void *> buffers;
    for (int i = 0; i < launch.numBuffers; ++i)
      buffers.push_back(arena.at<void>(model.buffers[launch.firstBuffer + i]));
    int64_t chunk =
        std::max<int64_t>(launch.tasks / (kChunksPerThread * pool.size()), 1);
    const RepriseKernel &kernel = model.kernels[launch.callee];
    RepriseKernelFn fn = runtime::chooseKernel(kernel, processor);
    return [this, &launch, fn, isAmx = fn == kernel.amxFn, buffers, chunk] {
      pool.parallelFor(
          launch.tasks, chunk, [&](int, int64_t begin, int64_t end) {
            runtime::TileRegisters tiles(isAmx);
            fn(buffers.data(), model.ids + launch.firstId, begin, end);
          });
    };
  }

  runtime::ThreadPool pool;

private:
  /// Numbers between 0 and 1, which every kernel can work on, also where it
  /// reads two of bf16 in place of one of f32 (denormal ones take a hundred
  /// times as long); small integers where it expects tokens.
  void fill(const RepriseLaunch &launch) {
    uint32_t random = 1;
    for (int i = 0; i < launch.numBuffers; ++i) {
      const RepriseBuffer &buffer = model.buffers[launch.firstBuffer + i];
      bool isInteger = buffer.offset == model.tokens.offset ||
                       buffer.offset == model.targets.offset ||
                       buffer.offset == model.rng.offset;
      auto *words = arena.at<uint32_t>(buffer);
      for (int64_t j = 0; j < buffer.bytes / 4; ++j) {
        random = random * 1664525u + 1013904223u;
        if (isInteger)
          words[j] = uint32_t((random >> 8) % uint64_t(model.vocabSize));
        else {
          float number = float(random >> 8) * 0x1p-24f;
          memcpy(words + j, &number, sizeof(number));
          words[j] = (words[j] & 0xFFFF0000u) | words[j] >> 16;
        }
      }
    }
  }

  /// The chunks per thread of the runtime's own launches.
  static constexpr int64_t kChunksPerThread = 8;

  const RepriseModel &model;
  runtime::Arena arena;
};

} // namespace reprise::bench

#endif // REPRISE_TEST_BENCH_KERNELS_H
