//===- Columns.cpp - Kernels that reduce columns ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A task is a strip of 64 columns, four cache lines of f32: each column adds
// its rows in order, in a lane of its own.
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "reprise/Codegen/Common/Expressions.h"
#include "reprise/Dialect/RT/RTOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

static constexpr int64_t kStrip = 64;

namespace {
class ColumnEmitter {
public:
  ColumnEmitter(Code &code, const LoopNest &nest, Kernel &kernel)
      : code(code), nest(nest), here(code, nest, kernel) {}

  /// Emits the `width` columns from `first` on, side by side.
  void emit(Value first, int64_t width) {
    here.enterTask();
    columns.clear();
    for (int64_t c = 0; c < width; c += kLanes)
      columns.push_back({code.add(first, c), width - c < kLanes
                                                 ? code.maskOf(width - c)
                                                 : Value()});

    SmallVector<linalg::GenericOp> reductions = nest.reductions();
    SmallVector<Value> sums;
    for (auto [c, mask] : columns) {
      here.enterChunk(c, mask);
      for (linalg::GenericOp op : reductions)
        for (unsigned i = 0; i < op.getNumResults(); ++i)
          sums.push_back(here.initial(op, i));
    }
    sums =
        code.loop(code.i64(0), code.i64(nest.rows), 1, sums,
                  [&](Value r, ValueRange carried) {
                    here.setTaskAnchor(code.getInsertionBlock()->getParentOp());
                    here.enterRow(r);
                    return row(carried, reductions);
                  });
    here.setTaskAnchor(nullptr);
    here.enterRow({});

    unsigned next = 0;
    for (auto [c, mask] : columns) {
      here.enterChunk(c, mask);
      for (linalg::GenericOp op : reductions)
        for (Value result : op.getResults())
          here.set(result, Role::Column, sums[next++]);
      storeAll(Role::Column);
    }
  }

private:
  SmallVector<Value> row(ValueRange sums,
                         ArrayRef<linalg::GenericOp> reductions) {
    SmallVector<Value> next;
    for (auto [c, mask] : columns) {
      here.enterChunk(c, mask);
      for (linalg::GenericOp op : reductions)
        llvm::append_range(
            next, here.emit(op, sums.slice(next.size(), op.getNumResults())));
      storeAll(Role::Full);
    }
    return next;
  }

  void storeAll(Role role) {
    SmallVector<std::pair<const LoopNest::Output *, Value>> stored;
    for (const LoopNest::Output &output : nest.outputs())
      if (output.role == role)
        stored.push_back({&output, here.get(output.root, role)});
    for (auto [output, value] : stored)
      here.store(*output, value);
  }

  Code &code;
  const LoopNest &nest;
  Expressions here;
  SmallVector<std::pair<Value, Value>> columns; ///< first column, mask
};
} // namespace

LogicalResult codegen::emitColumns(Code &code, const LoopNest &nest,
                                   Kernel &kernel) {
  int64_t whole = nest.cols / kStrip, rest = nest.cols % kStrip;
  kernel.function->setAttr(
      rt::kTasksAttr,
      code.getI64IntegerAttr(llvm::divideCeil(nest.cols, kStrip)));

  ColumnEmitter strip(code, nest, kernel);
  kernel.tasks(code, [&](Value task) {
    Value first = code.mul(task, kStrip);
    if (rest == 0)
      return strip.emit(first, kStrip);
    if (whole == 0)
      return strip.emit(first, rest);
    Value isWhole = arith::CmpIOp::create(code, arith::CmpIPredicate::slt, task,
                                          code.i64(whole));
    code.when(
        isWhole, [&] { strip.emit(first, kStrip); },
        [&] { strip.emit(first, rest); });
  });
  return success();
}
