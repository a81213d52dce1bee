//===- DeriveInference.cpp - What only goes forward -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "reprise/Autodiff/Passes.h"
#include "reprise/Dialect/NN/NNOps.h"

namespace reprise::autodiff {
#define GEN_PASS_DEF_DERIVEINFERENCE
#include "reprise/Autodiff/Passes.h.inc"
} // namespace reprise::autodiff

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

namespace {
/// A function of those ops of `@forward` that some of its values need, without
/// dropout. The arguments that they read are its own.
class Copy {
public:
  Copy(func::FuncOp forward, StringRef name);

  /// Copies what `values` need, and all arguments in the order of `@forward`'s.
  void take(ArrayRef<Value> values);
  Value get(Value value) { return mapping.lookup(value); }

  Value addArgument(Type type, StringRef role, StringRef name);
  /// Creates `OpTy` with a scope behind all that is there.
  template <typename OpTy, typename... Args>
  OpTy create(Location loc, ScopeAttr scope, Args &&...args) {
    auto op = OpTy::create(builder, loc, std::forward<Args>(args)...);
    if (scope)
      op->setAttr(kScopeAttr, scope);
    return op;
  }
  /// Returns `result`, which is `output`, and completes the function.
  void finish(Value result, StringRef output);

  Builder &getBuilder() { return builder; }

private:
  func::FuncOp forward;
  OpBuilder builder;
  func::FuncOp function;
  Block *body;
  IRMapping mapping;
  SmallVector<DictionaryAttr> argumentAttributes;
};

struct DeriveInference
    : public autodiff::impl::DeriveInferenceBase<DeriveInference> {
  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>(kForwardFunction);
    if (!forward) {
      getOperation().emitError("needs a function @forward to derive from");
      return signalPassFailure();
    }
    if (failed(check(forward)))
      return signalPassFailure();
    // Each stands behind @forward, so that the first comes last.
    if (LinearOp head = findHead(forward))
      deriveSample(forward, head);
    deriveEvaluate(forward);
  }

  LogicalResult check(func::FuncOp forward);
  LinearOp findHead(func::FuncOp forward);
  void deriveEvaluate(func::FuncOp forward);
  void deriveSample(func::FuncOp forward, LinearOp head);
};
} // namespace

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

Copy::Copy(func::FuncOp forward, StringRef name)
    : forward(forward), builder(forward.getContext()) {
  builder.setInsertionPointAfter(forward);
  function = func::FuncOp::create(builder, forward.getLoc(), name,
                                  builder.getFunctionType({}, {}));
  body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
}

void Copy::take(ArrayRef<Value> values) {
  DenseSet<Value> needed(values.begin(), values.end());
  Block &block = forward.getBody().front();
  SmallVector<Operation *> ops;
  for (Operation &op : llvm::reverse(block)) {
    if (llvm::none_of(op.getResults(),
                      [&](Value result) { return needed.contains(result); }))
      continue;
    ops.push_back(&op);
    if (auto dropout = dyn_cast<DropoutOp>(op))
      needed.insert(dropout.getInput());
    else
      needed.insert(op.operand_begin(), op.operand_end());
  }
  for (BlockArgument argument : block.getArguments()) {
    if (!needed.contains(argument))
      continue;
    argumentAttributes.push_back(
        forward.getArgAttrDict(argument.getArgNumber()));
    mapping.map(argument,
                body->addArgument(argument.getType(), argument.getLoc()));
  }
  for (Operation *op : llvm::reverse(ops)) {
    if (auto dropout = dyn_cast<DropoutOp>(op)) {
      mapping.map(dropout.getOut(), mapping.lookup(dropout.getInput()));
      continue;
    }
    Operation *copy = builder.clone(*op, mapping);
    if (auto attention = dyn_cast<AttentionOp>(copy))
      attention.setRate(APFloat(0.0f));
  }
}

Value Copy::addArgument(Type type, StringRef role, StringRef name) {
  argumentAttributes.push_back(builder.getDictionaryAttr(
      builder.getNamedAttr(role, builder.getStringAttr(name))));
  return body->addArgument(type, forward.getLoc());
}

void Copy::finish(Value result, StringRef output) {
  func::ReturnOp::create(builder, forward.getLoc(), result);
  function.setType(
      builder.getFunctionType(body->getArgumentTypes(), result.getType()));
  function.setAllArgAttrs(argumentAttributes);
  function.setResultAttr(0, kOutputAttr, builder.getStringAttr(output));
}

//===----------------------------------------------------------------------===//
// The functions
//===----------------------------------------------------------------------===//

LogicalResult DeriveInference::check(func::FuncOp forward) {
  if (!forward.getBody().hasOneBlock())
    return forward.emitError("needs one block to derive from, but got ")
           << forward.getBody().getBlocks().size();
  Operation *last = forward.getBody().front().getTerminator();
  auto exit = dyn_cast<func::ReturnOp>(last);
  if (!exit || exit.getNumOperands() != 1)
    return last->emitOpError("needs to be the return of the loss alone");
  for (Operation &op : forward.getBody().front())
    if (op.getNumRegions() != 0)
      return op.emitOpError("needs to be written out without regions, which "
                            "would be copied with what they refer to");
  for (StringRef name : {kEvaluateFunction, kSampleFunction})
    if (Operation *other = getOperation().lookupSymbol(name)) {
      InFlightDiagnostic error = forward.emitError("needs the name @")
                                 << name << " to be free for what it makes";
      error.attachNote(other->getLoc()) << "this has it";
      return error;
    }
  return success();
}

/// The projection to the vocabulary, on `[B, T, C]`; null if there is none, or
/// not one alone.
LinearOp DeriveInference::findHead(func::FuncOp forward) {
  LinearOp head;
  for (auto linear : forward.getBody().front().getOps<LinearOp>()) {
    ScopeAttr scope = getScope(linear);
    if (!scope || scope.getValue() != "logits" ||
        cast<ShapedType>(linear.getInput().getType()).getRank() != 3)
      continue;
    if (head)
      return {};
    head = linear;
  }
  return head;
}

void DeriveInference::deriveEvaluate(func::FuncOp forward) {
  Value loss = forward.getBody().front().getTerminator()->getOperand(0);
  Copy copy(forward, kEvaluateFunction);
  copy.take(loss);
  copy.finish(copy.get(loss), "eval_loss");
}

void DeriveInference::deriveSample(func::FuncOp forward, LinearOp head) {
  auto input = cast<RankedTensorType>(head.getInput().getType());
  auto output = cast<RankedTensorType>(head.getOut().getType());
  int64_t rows = input.getDimSize(0);
  Copy copy(forward, kSampleFunction);
  SmallVector<Value> operands(head->getOperands());
  copy.take(operands);
  Value position = copy.addArgument(
      RankedTensorType::get(rows, copy.getBuilder().getI32Type()), kInputAttr,
      "position");
  ScopeAttr scope = getScope(head);
  Value last = copy.create<TakePositionOp>(
      head.getLoc(),
      ScopeAttr::get(&getContext(), scope.getLayer(), scope.getModule(),
                     "position"),
      input.clone({rows, input.getDimSize(2)}), copy.get(head.getInput()),
      position);
  Value logits = copy.create<LinearOp>(
      head.getLoc(), scope, output.clone({rows, output.getDimSize(2)}), last,
      copy.get(head.getWeight()),
      head.getBias() ? copy.get(head.getBias()) : Value(), head.getLayout());
  copy.finish(logits, "logits");
}
