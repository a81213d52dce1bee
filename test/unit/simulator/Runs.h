//===- Runs.h - Inputs and runs of kernels in tests -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_UNIT_SIMULATOR_RUNS_H
#define REPRISE_TEST_UNIT_SIMULATOR_RUNS_H

#include "Kernels.h"
#include "reprise/ABI/Philox.h"
#include "gtest/gtest.h"
#include <cstring>
#include <memory>

namespace reprise::simulator {

using Floats = std::vector<float>;

/// Reproducible numbers in [-1, 1).
inline Floats numbers(size_t count, uint64_t seed) {
  Floats values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = int32_t(reprisePhilox(seed, 0, 0, 0, i)) / 2147483648.0f;
  return values;
}

inline std::vector<uint16_t> asBF16(Floats &values) {
  std::vector<uint16_t> words;
  for (float &value : values) {
    words.push_back(toBF16(value));
    value = fromBF16(words.back());
  }
  return words;
}

/// `text` with each $N replaced by argument N.
inline std::string fill(std::string text, std::vector<std::string> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i)
    for (size_t at;
         (at = text.find("$" + std::to_string(i))) != std::string::npos;)
      text.replace(at, 2, arguments[i]);
  return text;
}

/// Runs `kernel` in every order of blocks and threads; what it leaves in the
/// buffers of `outputs`, the same bits in each.
template <typename T>
std::vector<std::vector<T>>
runAll(const Kernels &kernels, const std::string &name,
       std::vector<void *> inputs, std::vector<std::vector<T>> outputs,
       std::vector<int64_t> ids = {}) {
  std::vector<std::vector<T>> first;
  for (const SimulatorOptions &options : allOptions()) {
    simulatorSetOptions(&options);
    std::vector<std::unique_ptr<Buffer<T>>> buffers;
    std::vector<void *> all = inputs;
    for (const std::vector<T> &output : outputs) {
      buffers.push_back(std::make_unique<Buffer<T>>(output));
      all.push_back(buffers.back()->data());
      // An input that is null has the buffer of the output.
      for (void *&input : all)
        if (!input)
          input = buffers.back()->data();
    }
    EXPECT_EQ(kernels.run(name, all, ids), "") << describe(options);
    std::vector<std::vector<T>> results;
    for (auto &buffer : buffers)
      results.push_back(buffer->values());
    if (first.empty())
      first = results;
    for (size_t i = 0; i < results.size(); ++i)
      EXPECT_EQ(std::memcmp(results[i].data(), first[i].data(),
                            results[i].size() * sizeof(T)),
                0)
          << describe(options);
  }
  return first;
}

} // namespace reprise::simulator

#endif // REPRISE_TEST_UNIT_SIMULATOR_RUNS_H
