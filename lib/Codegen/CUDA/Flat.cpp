//===- Flat.cpp - Pointwise kernels on flat arrays --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A thread has one or two chunks of a few elements; what it reads of both is
// under way before anything is written.
//
//===----------------------------------------------------------------------===//

#include "DeviceKernels.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::cuda;

static constexpr int64_t kThreads = 256;
/// Blocks that keep a large GPU busy for a while: with fewer, threads have one
/// chunk each.
static constexpr int64_t kManyBlocks = 2048;

namespace {
/// A chunk of a thread, with what is to be stored of it.
struct Part {
  Value isThere; ///< null where it always is
  Expressions::Chunk chunk;
  SmallVector<Value> values;
};
} // namespace

/// Computes the chunk of column `column`, where it comes before `whole` if that
/// is given.
static Part emitPart(DeviceCode &code, const LoopNest &nest, Expressions &here,
                     Value column, std::optional<int64_t> whole) {
  Part part;
  if (whole) {
    part.isThere = code.less(column, *whole);
    column = code.select(part.isThere, column, code.i64(0));
  }
  here.enterChunk(column, {});
  for (const LoopNest::Output &output : nest.outputs())
    part.values.push_back(here.get(output.root, output.role));
  part.chunk = here.leaveChunk();
  return part;
}

static void storePart(DeviceCode &code, const LoopNest &nest, Expressions &here,
                      Part &part) {
  here.resumeChunk(std::move(part.chunk));
  auto store = [&] {
    for (auto [output, value] : llvm::zip(nest.outputs(), part.values))
      here.store(output, value);
  };
  if (part.isThere)
    code.when(part.isThere, store);
  else
    store();
}

LogicalResult cuda::emitFlat(DeviceCode &code, const LoopNest &nest,
                             DeviceKernel &kernel) {
  code.lanes = chooseLanes(nest, kernel.source, 8);
  int64_t size = nest.cols, whole = size / code.lanes * code.lanes;
  int64_t perBlock = kThreads * code.lanes;
  int64_t chunks = size / perBlock >= 2 * kManyBlocks ? 2 : 1;
  int64_t blocks = llvm::divideCeil(size, perBlock * chunks);
  kernel.setLaunch(code, blocks, kThreads);

  Expressions here(code, nest, kernel);
  here.setAligned();
  here.enterTask();
  Value thread = code.thread(), block = code.block();
  Value first = code.add(code.mul(block, perBlock * chunks),
                         code.mul(thread, code.lanes));

  std::optional<int64_t> end;
  if (whole != blocks * perBlock * chunks)
    end = whole;
  SmallVector<Part> parts;
  if (whole > 0)
    for (int64_t k = 0; k < chunks; ++k)
      parts.push_back(
          emitPart(code, nest, here, code.add(first, k * perBlock), end));
  for (Part &part : parts)
    storePart(code, nest, here, part);
  if (whole < size)
    // What is left is the last thread's.
    code.when(code.both(code.equal(block, blocks - 1),
                        code.equal(thread, kThreads - 1)),
              [&] {
                here.enterTask();
                here.enterChunk(code.i64(whole), code.maskOf(size - whole));
                here.storeOutputs();
              });
  return success();
}
