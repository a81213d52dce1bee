//===- Kernels.h - Kernels of rt, run in the simulator ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_UNIT_SIMULATOR_KERNELS_H
#define REPRISE_TEST_UNIT_SIMULATOR_KERNELS_H

#include "Device.h"
#include "reprise/Codegen/CUDA/Device.h"

namespace reprise::simulator {

/// A module of kernels, compiled for a GPU and loaded into the simulator.
class Kernels {
public:
  /// Compiles `text` for `chip`, or ends the test program with what is wrong.
  explicit Kernels(const std::string &text, const std::string &chip = "sm_80");

  /// Launches a kernel as its facts say; the error, or nothing. Buffers are
  /// inputs, then outputs.
  std::string run(const std::string &kernel, std::vector<void *> buffers,
                  const std::vector<int64_t> &ids = {}) const;

  const std::vector<cuda::KernelFacts> &getFacts() const { return facts; }
  /// The PTX for `chip`.
  static std::string ptx(const std::string &text, const std::string &chip);

private:
  std::vector<cuda::KernelFacts> facts;
};

/// Conversions of bf16, to the nearest and ties to even.
uint16_t toBF16(float value);
float fromBF16(uint16_t bits);

} // namespace reprise::simulator

#endif // REPRISE_TEST_UNIT_SIMULATOR_KERNELS_H
