//===- Segments.cpp - Arrays of different lengths in one kernel -*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops of one body share its code: a family. A block is part of one array, as
// in a kernel of that loop alone; buffers and lengths come from tables in
// constant memory, so that the code does not grow with the number of arrays.
//
//===----------------------------------------------------------------------===//

#include "DeviceKernels.h"
#include "reprise/Codegen/Common/Families.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::cuda;

static constexpr int64_t kThreads = 256;
/// Chunks of a thread, one after another.
static constexpr int64_t kChunks = 2;
/// f32 is in every segment: four elements are 16 bytes.
static constexpr int64_t kLanesOfSegments = 4;
static constexpr int64_t kBlock = kThreads * kChunks * kLanesOfSegments;

/// Emits what this block does of the loop of `kernel`, from `first` on, of
/// `length` elements.
static LogicalResult emitBlock(DeviceCode &code, const Buffers &kernel,
                               Value first, Value length) {
  FailureOr<LoopNest> nest = LoopNest::get(kernel.source);
  if (failed(nest))
    return failure();
  Expressions here(code, *nest, kernel);
  here.setAligned();
  here.enterTask();
  Value thread = code.thread();
  for (int64_t k = 0; k < kChunks; ++k) {
    Value c = code.add(first, code.add(code.mul(thread, code.lanes),
                                       k * kThreads * code.lanes));
    auto chunk = [&](Value mask) {
      here.enterTask();
      here.enterChunk(c, mask);
      here.storeOutputs();
    };
    Value end = code.add(c, code.lanes);
    code.when(
        code.less(length, end),
        [&] {
          // The lanes that are left, if any.
          code.when(code.less(c, length), [&] {
            Value left = code.splat(code.sub(length, c));
            chunk(arith::CmpIOp::create(code, arith::CmpIPredicate::slt,
                                        code.iota(code.getI64Type()), left));
          });
        },
        [&] { chunk({}); });
  }
  return success();
}

LogicalResult cuda::emitSegments(DeviceCode &code, DeviceKernel &kernel) {
  FailureOr<std::vector<Family>> families = getFamilies(kernel.source);
  if (failed(families))
    return failure();
  for (const Family &family : *families)
    if (family.segments.front().packed)
      return kernel.source.emitOpError(
          "needs results as rows: GEMMs of a GPU read none that are packed");
  code.lanes = kLanesOfSegments;
  SegmentTables tables(*families, kBlock);
  BlockTable blocks(code, kernel, tables.blocks);
  Value lengthTable = kernel.constantTable(code, ".lengths", tables.lengths);
  Value bufferTable = kernel.constantTable(code, ".buffers", tables.buffers);
  kernel.setLaunch(code, blocks.numBlocks, kThreads);

  Type i64 = code.getI64Type();
  auto [segment, part] = blocks.find(code, code.block());
  Value length = code.load(i64, lengthTable, segment);
  Value first = code.mul(part, kBlock);
  Value row = code.mul(segment, tables.width);
  auto addressOf = [&](int64_t index) {
    return kernel.bufferAt(code,
                           code.load(i64, bufferTable, code.add(row, index)));
  };
  LogicalResult result = success();
  int64_t last = 0;
  for (Family &family : *families) {
    int64_t begin = last;
    last += family.segments.size();
    linalg::GenericOp loop = family.segments.front().loop;
    func::FuncOp alone = outline(code, loop, kernel.source);
    Value isOfFamily = code.both(code.less(code.i64(begin - 1), segment),
                                 code.less(segment, last));
    code.when(isOfFamily, [&] {
      Buffers ofSegment;
      ofSegment.source = alone;
      int64_t numInputs = loop.getNumDpsInputs();
      for (int64_t i = 0; i < numInputs + loop.getNumResults(); ++i)
        (i < numInputs ? ofSegment.inputs : ofSegment.outputs)
            .push_back(addressOf(i));
      if (failed(emitBlock(code, ofSegment, first, length)))
        result = failure();
    });
    alone.erase();
  }
  return result;
}
