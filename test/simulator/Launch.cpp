//===- Launch.cpp - Grids of blocks -----------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fibers.h"
#include "Module.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <utility>

using namespace reprise;
using namespace reprise::simulator;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static SimulatorOptions optionsOfEnvironment() {
  SimulatorOptions result = {SIMULATOR_LATE, SIMULATOR_ASCENDING, 0};
  auto read = [](const char *name) {
    const char *value = std::getenv(name);
    return std::string(value ? value : "");
  };
  std::string landing = read("REPRISE_SIMULATOR_LANDING");
  if (landing == "once")
    result.landing = SIMULATOR_AT_ONCE;
  std::string order = read("REPRISE_SIMULATOR_ORDER");
  if (order == "descending")
    result.order = SIMULATOR_DESCENDING;
  else if (!order.empty() && order != "ascending") {
    result.order = SIMULATOR_SHUFFLED;
    result.seed = std::strtoul(order.c_str(), nullptr, 10);
  }
  return result;
}

SimulatorOptions simulator::options = optionsOfEnvironment();

void simulatorSetOptions(const SimulatorOptions *chosen) { options = *chosen; }

SimulatorCounts simulatorCounts() { return counts; }

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

static std::map<std::string, KernelEntry> &kernels() {
  static std::map<std::string, KernelEntry> known;
  return known;
}
static std::mutex &guard() {
  static std::mutex mutex;
  return mutex;
}

const char *simulatorLoad(const char *path) {
  std::lock_guard<std::mutex> lock(guard());
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return refuse("%s", dlerror());
  auto *entry =
      static_cast<const KernelEntry *>(dlsym(library, "simulatorKernels"));
  if (!entry)
    return refuse("%s: not a shared object of reprise-simulate", path);
  for (; entry->name; ++entry)
    kernels()[entry->name] = *entry;
  return nullptr;
}

int simulatorHas(const char *kernel) {
  std::lock_guard<std::mutex> lock(guard());
  return kernels().count(kernel);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

constexpr size_t kPage = 4096, kShared = 256 << 10;

/// Pages with one before and one behind that must not be touched; what
/// `aligned` asks for is their alignment.
static char *mapGuarded(size_t bytes, size_t aligned) {
  size_t inner = (bytes + kPage - 1) / kPage * kPage;
  size_t outer = inner + 2 * kPage + (aligned > kPage ? aligned : 0);
  void *memory = mmap(nullptr, outer, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return nullptr;
  uintptr_t first = reinterpret_cast<uintptr_t>(memory) + kPage;
  first = (first + aligned - 1) / aligned * aligned;
  char *result = reinterpret_cast<char *>(first);
  if (mprotect(result, inner, PROT_READ | PROT_WRITE) != 0) {
    munmap(memory, outer);
    return nullptr;
  }
  return result;
}

/// The sizes of blocks of device memory.
static std::map<void *, size_t> &allocations() {
  static std::map<void *, size_t> known;
  return known;
}

void *simulatorAllocate(size_t bytes) {
  std::lock_guard<std::mutex> lock(guard());
  size_t whole = (bytes + 255) / 256 * 256;
  size_t inner = (whole + kPage - 1) / kPage * kPage;
  char *pages = mapGuarded(inner, kPage);
  if (!pages)
    return nullptr;
  std::memset(pages, 0xFF, inner);
  char *result = pages + inner - whole;
  allocations()[result] = bytes;
  return result;
}

void simulatorFree(void *memory) {
  std::lock_guard<std::mutex> lock(guard());
  auto found = allocations().find(memory);
  if (found == allocations().end())
    return;
  size_t whole = (found->second + 255) / 256 * 256;
  size_t inner = (whole + kPage - 1) / kPage * kPage;
  char *pages = static_cast<char *>(memory) + whole - inner;
  munmap(pages - kPage, inner + 2 * kPage);
  allocations().erase(found);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

static const KernelEntry *running;
static const void *parameters;

/// Of the limits of compute capability 8.0 and later, those that a wrong launch
/// meets; shared memory as on the largest, 9.0 and 10.0.
static const char *checkLaunch(const KernelEntry &entry, const uint32_t grid[3],
                               const uint32_t size[3], size_t shared,
                               size_t bytes) {
  for (int axis = 0; axis < 3; ++axis) {
    uint32_t most = axis == 0 ? 0x7FFFFFFF : 65535;
    if (grid[axis] < 1 || grid[axis] > most)
      return refuse("kernel '%s': a grid needs 1 to %u blocks along axis %d, "
                    "but got %u",
                    entry.name, most, axis, grid[axis]);
    if (entry.block[axis] && entry.block[axis] != size[axis])
      return refuse("kernel '%s': needs blocks of %u threads along axis %d, "
                    "but got %u",
                    entry.name, entry.block[axis], axis, size[axis]);
  }
  uint64_t threads = uint64_t(size[0]) * size[1] * size[2];
  if (threads < 1 || threads > kMaxThreads || size[2] > 64)
    return refuse("kernel '%s': a block needs 1 to %u threads, at most 64 of "
                  "them along axis 2, but got %u x %u x %u",
                  entry.name, kMaxThreads, size[0], size[1], size[2]);
  constexpr size_t most = 227 << 10;
  if (shared > most)
    return refuse("kernel '%s': needs at most %zu bytes of shared memory, but "
                  "got %zu",
                  entry.name, most, shared);
  if (bytes != entry.paramBytes)
    return refuse("kernel '%s': needs %llu bytes of parameters, but got %zu",
                  entry.name, (unsigned long long)entry.paramBytes, bytes);
  return nullptr;
}

const char *simulatorLaunch(const char *name, const uint32_t grid[3],
                            const uint32_t size[3], size_t sharedBytes,
                            const void *params, size_t bytes) {
  std::lock_guard<std::mutex> lock(guard());
  auto found = kernels().find(name);
  if (found == kernels().end())
    return refuse("there is no kernel '%s'", name);
  const KernelEntry &kernel = found->second;
  size_t shared = sharedBytes ? kernel.dynamicShared + sharedBytes
                              : size_t(kernel.staticShared);
  if (const char *error = checkLaunch(kernel, grid, size, shared, bytes))
    return error;
  if (!simulatorShared.base)
    simulatorShared.base = mapGuarded(kShared, kShared);
  if (!simulatorShared.base)
    return refuse("there is no memory for shared memory");
  simulatorShared.bytes = shared;
  running = &kernel, parameters = params;
  block.kernel = kernel.name;
  std::copy(grid, grid + 3, block.grid);
  std::copy(size, size + 3, block.size);

  uint64_t blocks = uint64_t(grid[0]) * grid[1] * grid[2];
  // Shuffled: steps of a number prime to that of blocks.
  uint64_t step = 1, start = 0;
  if (options.order == SIMULATOR_SHUFFLED) {
    auto divisor = [](uint64_t a, uint64_t b) {
      while (b)
        a = std::exchange(b, a % b);
      return a;
    };
    start = options.seed % blocks;
    for (step = options.seed % blocks + blocks / 2 + 1;
         divisor(step, blocks) != 1;)
      ++step;
  }
  for (uint64_t i = 0; i < blocks; ++i) {
    uint64_t index = i;
    if (options.order == SIMULATOR_DESCENDING)
      index = blocks - 1 - i;
    else if (options.order == SIMULATOR_SHUFFLED)
      index = (start + i * (step % blocks)) % blocks;
    block.index[0] = index % grid[0];
    block.index[1] = index / grid[0] % grid[1];
    block.index[2] = index / grid[0] / grid[1];
    std::memset(simulatorShared.base, 0xFF, shared);
    if (!runBlock([] { running->run(parameters); }))
      return failure();
  }
  return nullptr;
}
