//===- Flat.cpp - Pointwise kernels on flat arrays --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tasks are blocks of 4096 elements, 16 KiB of each f32 array: small enough
// that threads share the work evenly, large enough to pay for a task.
//
//===----------------------------------------------------------------------===//

#include "Prefetch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "reprise/Codegen/Common/Expressions.h"
#include "reprise/Codegen/Common/KernelBody.h"
#include "reprise/Dialect/RT/RTOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

/// With random numbers, four chunks share the blocks that their words are of.
static constexpr int64_t kRun = 4 * kLanes;

/// Four chunks from element `c` on, with their random words.
static void emitRun(Expressions &here, Value c) {
  for (int64_t index = 0; index < kRun / kLanes; ++index) {
    here.enterRun(c, index);
    here.storeOutputs();
  }
}

/// The elements from `whole` on, less than a vector of the others.
static void emitRest(Code &code, Expressions &here, int64_t whole,
                     int64_t size) {
  here.setTaskAnchor(code.getInsertionBlock()->getParentOp());
  code.lanes = kLanes, code.evenFirst = false;
  for (int64_t c = whole; c < size; c += kLanes) {
    here.enterChunk(code.i64(c),
                    size - c < kLanes ? code.maskOf(size - c) : Value());
    here.storeOutputs();
  }
}

LogicalResult codegen::emitFlat(Code &code, const LoopNest &nest,
                                Kernel &kernel) {
  chooseLanes(code, nest, kernel);
  int64_t size = nest.cols, whole = size / code.lanes * code.lanes;
  int64_t inRuns = drawsRandomWords(kernel.source) ? size / kRun * kRun : 0;
  int64_t tasks = llvm::divideCeil(size, kFlatBlock);
  kernel.function->setAttr(rt::kTasksAttr, code.getI64IntegerAttr(tasks));

  SmallVector<unsigned> streamed = findStreamed(nest, kernel);
  Expressions here(code, nest, kernel);
  here.setStreamed(streamed);
  bool isLong = computesForLong(kernel.source);
  auto loop = [&](Value from, Value to, int64_t step,
                  function_ref<void(Value)> body) {
    code.loop(from, to, step, [&](Value c) {
      here.setTaskAnchor(code.getInsertionBlock()->getParentOp());
      if (isLong)
        for (int64_t first = 0; first < step; first += code.lanes)
          prefetchInputs(code, kernel, size, code.add(c, first));
      body(c);
    });
    here.setTaskAnchor(nullptr);
  };
  kernel.tasks(code, [&](Value task) {
    here.enterTask();
    Value from = code.mul(task, kFlatBlock), end = code.add(from, kFlatBlock);
    if (inRuns > 0) {
      Value to = code.min(end, code.i64(inRuns));
      loop(from, to, kRun, [&](Value c) { emitRun(here, c); });
      from = to;
    }
    if (inRuns < whole)
      loop(from, code.min(end, code.i64(whole)), code.lanes, [&](Value c) {
        here.enterChunk(c, {});
        here.storeOutputs();
      });
    if (whole == size)
      return;
    Value isLast = arith::CmpIOp::create(code, arith::CmpIPredicate::eq, task,
                                         code.i64(tasks - 1));
    code.when(isLast, [&] { emitRest(code, here, whole, size); });
  });
  if (!streamed.empty())
    code.fence();
  return success();
}
