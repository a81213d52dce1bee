//===- KernelRunner.h - Compiles and runs kernels from text -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_UNIT_CODEGEN_KERNELRUNNER_H
#define REPRISE_TEST_UNIT_CODEGEN_KERNELRUNNER_H

#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <random>
#include <string>
#include <vector>

namespace reprise::codegen {

using Floats = std::vector<float>;

/// A module of kernels, compiled for x86-64-v3 or v4.
class KernelRunner {
public:
  /// Compiles `text`, or ends the test program with what is wrong.
  /// With `wide`, for processors with 32 registers of 16 lanes.
  explicit KernelRunner(const std::string &text, bool wide = false);

  bool has(const std::string &kernel) const { return counts.count(kernel); }
  int64_t tasks(const std::string &kernel) const { return counts.at(kernel); }
  void *address(const std::string &symbol);

  /// Runs all tasks of `kernel` in chunks of `chunk`, the last chunk first if
  /// `backwards`. Buffers are inputs, then outputs.
  void run(const std::string &kernel, const std::vector<void *> &buffers,
           const std::vector<int64_t> &ids = {}, int64_t chunk = INT64_MAX,
           bool backwards = false);

private:
  mlir::MLIRContext context;
  std::map<std::string, int64_t> counts;
  std::unique_ptr<mlir::ExecutionEngine> engine;
};

/// Kernels of nn as kernels of loops, which a runner takes.
std::string asLoops(const std::string &text);

/// What `wide` can be on this processor.
std::vector<bool> widths();

/// A number of bf16: around 1, or with `extreme` a zero, a denormal number, one
/// of those whose products are denormal or vanish, or one of the largest and
/// infinities.
uint16_t randomBF16(std::mt19937 &random, bool extreme);

/// Reproducible numbers in [-1, 1).
Floats randomFloats(size_t count, uint64_t seed);

/// The sum of terms as a row reduction adds them: 64 partial sums, then
/// the tree.
float laneSum(const Floats &terms);

/// f32 in a cache line, and the first of them in `room` that begins one.
constexpr int64_t kLine = 16;
float *alignToLine(Floats &room);

/// How many units in the last place of f32 lie between two finite numbers.
int64_t ulpsApart(float a, float b);

} // namespace reprise::codegen

#endif // REPRISE_TEST_UNIT_CODEGEN_KERNELRUNNER_H
