//===- Device.h - Kernels from text, run in the simulator -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_UNIT_SIMULATOR_DEVICE_H
#define REPRISE_TEST_UNIT_SIMULATOR_DEVICE_H

#include "test/simulator/Simulator.h"
#include <string>
#include <vector>

namespace reprise::simulator {

/// Both landings, each in two of the orders: what every test of a kernel goes
/// through.
std::vector<SimulatorOptions> allOptions();
std::string describe(const SimulatorOptions &options);

/// Device memory with the elements of a vector.
template <typename T>
class Buffer {
public:
  explicit Buffer(size_t count) : count(count) {
    memory = static_cast<T *>(simulatorAllocate(count * sizeof(T)));
  }
  explicit Buffer(const std::vector<T> &values) : Buffer(values.size()) {
    std::copy(values.begin(), values.end(), memory);
  }
  Buffer(const Buffer &) = delete;
  ~Buffer() { simulatorFree(memory); }

  T *data() { return memory; }
  std::vector<T> values() const { return {memory, memory + count}; }

private:
  size_t count;
  T *memory;
};

/// Compiles LLVM IR for NVPTX and loads its kernels; what is wrong, or nothing.
/// Declarations of intrinsics may be left out of `text`.
std::string load(const std::string &text);

/// Launches a kernel whose parameters are all addresses; the error, or nothing.
std::string launch(const char *kernel, std::vector<uint32_t> grid,
                   std::vector<uint32_t> block, std::vector<void *> params,
                   size_t sharedBytes = 0);

} // namespace reprise::simulator

#endif // REPRISE_TEST_UNIT_SIMULATOR_DEVICE_H
