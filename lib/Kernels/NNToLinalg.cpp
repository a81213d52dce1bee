//===- NNToLinalg.cpp - Write out what kernels compute ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NNToLinalg.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Interfaces/Facts.h"
#include "reprise/Kernels/Passes.h"

namespace reprise::kernels {
#define GEN_PASS_DEF_CONVERTNNTOLINALG
#include "reprise/Kernels/Passes.h.inc"
} // namespace reprise::kernels

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;

using Values = LoopBuilder::Values;

namespace {
struct ConvertNNToLinalg
    : public kernels::impl::ConvertNNToLinalgBase<ConvertNNToLinalg> {
  void getDependentDialects(DialectRegistry &registry) const override {
    ConvertNNToLinalgBase::getDependentDialects(registry);
    registerKernelBodies(registry);
  }

  void runOnOperation() override {
    if (getOperation()->hasAttr(rt::kKernelAttr) &&
        !getOperation().isDeclaration() && failed(convertBody()))
      signalPassFailure();
  }

  LogicalResult convertBody();
};
} // namespace

/// The op whose result `op` adds to a sum, if that can start from the sum.
static Operation *getAccumulated(Operation *op) {
  auto running = dyn_cast<RunningSum>(op);
  if (!running || !running.getTerm().hasOneUse())
    return nullptr;
  Operation *term = running.getTerm().getDefiningOp();
  return isa_and_present<SumBody>(term) ? term : nullptr;
}

/// The elementwise ops that `ops` begin with, of one shape; an update is a loop
/// of its own, and so is adding what the ops before it do not make.
static SmallVector<Operation *> getElementwiseRun(ArrayRef<Operation *> ops) {
  SmallVector<Operation *> run;
  auto getShape = [](Operation *op) {
    return cast<ShapedType>(op->getResult(0).getType()).getShape();
  };
  for (Operation *op : ops) {
    bool isAlone = op->hasTrait<nn::OneOfMany>() ||
                   (isa<RunningSum>(op) &&
                    llvm::none_of(op->getOperands(), [&](Value operand) {
                      return llvm::is_contained(run, operand.getDefiningOp());
                    }));
    if (!isa<ElementBody>(op) || getShape(op) != getShape(ops.front()) ||
        (isAlone && !run.empty()))
      break;
    run.push_back(op);
  }
  return run;
}

/// The gradient of the loss `op`, if it is one and that comes next.
static Operation *getGradient(Operation *op, ArrayRef<Operation *> rest) {
  bool isNext = isa<GradientBeside>(op) && !rest.empty() &&
                cast<LogitsLoss>(op).isGradient(rest.front());
  return isNext ? rest.front() : nullptr;
}

static void replace(LoopBuilder &loops, Operation *op, ArrayRef<Value> values) {
  for (auto [value, result] : llvm::zip(values, op->getResults()))
    result.replaceAllUsesWith(loops.storedAs(value, result.getType()));
}

static void convertLoss(OpBuilder &builder, Operation *loss,
                        Operation *gradient) {
  builder.setInsertionPointAfter(gradient);
  LoopBuilder loops(builder, loss->getLoc());
  Values results =
      cast<GradientBeside>(loss).buildWithGradient(loops, gradient);
  unsigned count = loss->getNumResults();
  replace(loops, loss, ArrayRef(results).take_front(count));
  replace(loops, gradient, ArrayRef(results).drop_front(count));
}

/// Converts `op`, and `running`, unless null, which adds its result to a sum.
static LogicalResult convertAlone(OpBuilder &builder, Operation *op,
                                  RunningSum running) {
  Operation *replaced = running ? running.getOperation() : op;
  builder.setInsertionPointAfter(replaced);
  LoopBuilder loops(builder, op->getLoc());
  Values results;
  if (auto sum = dyn_cast<SumBody>(op))
    results.push_back(
        sum.buildSum(loops, running ? running.getSum() : Value()));
  else if (auto body = dyn_cast<LoopBody>(op))
    results = body.buildLoops(loops);
  else
    return op->emitOpError("needs a form as loops to be in the kernel @")
           << op->getParentOfType<func::FuncOp>().getName() << ", but has none";
  replace(loops, replaced, results);
  return success();
}

LogicalResult ConvertNNToLinalg::convertBody() {
  SmallVector<Operation *> ops, old;
  DenseMap<Operation *, RunningSum> sums;
  for (Operation &op : getOperation().getBody().getOps()) {
    if (!isa_and_present<nn::NNDialect>(op.getDialect()))
      continue;
    old.push_back(&op);
    if (Operation *term = getAccumulated(&op))
      sums[term] = cast<RunningSum>(op);
    else
      ops.push_back(&op);
  }

  OpBuilder builder(&getContext());
  for (ArrayRef<Operation *> rest = ops; !rest.empty();) {
    Operation *op = rest.front();
    SmallVector<Operation *> run = getElementwiseRun(rest);
    rest = rest.drop_front(std::max<size_t>(run.size(), 1));
    if (!run.empty()) {
      builder.setInsertionPointAfter(run.back());
      LoopBuilder loops(builder, op->getLoc());
      convertElementwise(loops, run);
    } else if (Operation *gradient = getGradient(op, rest)) {
      rest = rest.drop_front();
      convertLoss(builder, op, gradient);
    } else if (failed(convertAlone(builder, op, sums.lookup(op)))) {
      return failure();
    }
  }
  for (Operation *op : llvm::reverse(old))
    op->erase();
  return success();
}
