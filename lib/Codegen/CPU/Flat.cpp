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

#include "Expressions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "reprise/Dialect/RT/RTOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

static constexpr int64_t kBlock = 4096;

LogicalResult codegen::emitFlat(Code &code, const LoopNest &nest,
                                Kernel &kernel) {
  int64_t size = nest.cols, whole = size / kLanes * kLanes;
  int64_t tasks = llvm::divideCeil(size, kBlock);
  kernel.function->setAttr(rt::kTasksAttr, code.getI64IntegerAttr(tasks));

  Expressions here(code, nest, kernel);
  auto chunk = [&](Value c, Value mask) {
    here.enterChunk(c, mask);
    SmallVector<Value> values;
    for (const LoopNest::Output &output : nest.outputs())
      values.push_back(here.get(output.root, output.role));
    for (auto [output, value] : llvm::zip(nest.outputs(), values))
      here.store(output, value);
  };
  kernel.tasks(code, [&](Value task) {
    here.enterTask();
    if (whole > 0) {
      Value from = code.mul(task, kBlock);
      Value to = code.min(code.add(from, kBlock), code.i64(whole));
      code.loop(from, to, kLanes, [&](Value c) {
        here.setTaskAnchor(code.getInsertionBlock()->getParentOp());
        chunk(c, {});
      });
      here.setTaskAnchor(nullptr);
    }
    if (whole == size)
      return;
    Value isLast = arith::CmpIOp::create(code, arith::CmpIPredicate::eq, task,
                                         code.i64(tasks - 1));
    code.when(isLast, [&] {
      here.setTaskAnchor(code.getInsertionBlock()->getParentOp());
      chunk(code.i64(whole), code.maskOf(size - whole));
    });
  });
  return success();
}
