//===- Interpreter.cpp - Reference semantics of nn --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Interpreter/Interpreter.h"
#include "Semantics.h"
#include "mlir/IR/TypeUtilities.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/Remat/RematOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::interpreter;

Tensor::Tensor(ArrayRef<int64_t> shape, double value)
    : shape(shape.begin(), shape.end()) {
  int64_t size = 1;
  for (int64_t dim : shape)
    size *= dim;
  values.assign(size, value);
}

double interpreter::roundToBF16(double value) {
  APFloat number(value);
  bool losesInfo;
  number.convert(APFloat::BFloat(), APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToDouble();
}

Interpreter::Interpreter(func::FuncOp function) : function(function) {
  for (BlockArgument argument : function.getArguments())
    if (auto rotary = function.getArgAttrOfType<nn::RotaryAttr>(
            argument.getArgNumber(), nn::kRotaryAttr)) {
      auto type = cast<ShapedType>(argument.getType());
      set(argument,
          makeRotaryTable(rotary, type.getDimSize(0), type.getDimSize(1)));
    }
}

void Interpreter::set(Value value, Tensor tensor) {
  assert(ArrayRef<int64_t>(tensor.shape) ==
             cast<ShapedType>(value.getType()).getShape() &&
         "a tensor of the value's shape");
  environment[value] = std::move(tensor);
}

const Tensor &Interpreter::get(Value value) const {
  auto it = environment.find(value);
  assert(it != environment.end() && "the value has been computed");
  return it->second;
}

LogicalResult Interpreter::evaluate(Operation *op) {
  if (isa<nn::BackwardOp, nn::UpdateOp>(op))
    return success();
  if (auto fence = dyn_cast<remat::FenceOp>(op)) {
    Tensor copy = get(fence.getValue());
    set(fence.getOut(), std::move(copy));
    return success();
  }
  Frame frame;
  for (Value operand : op->getOperands())
    frame.operands.push_back(&get(operand));
  std::vector<Tensor> results;
  for (Type type : op->getResultTypes())
    results.emplace_back(cast<ShapedType>(type).getShape());
  frame.results = results;
  frame.isExact = isExact;
  for (auto family : {evaluateModelOp, evaluateRotaryOp, evaluateAttentionOp,
                      evaluateTrainingOp}) {
    FailureOr<bool> evaluated = family(op, frame);
    if (failed(evaluated))
      return failure();
    if (!*evaluated)
      continue;
    for (auto [value, tensor] : llvm::zip(op->getResults(), results)) {
      if (!isExact && getElementTypeOrSelf(value).isBF16())
        for (double &element : tensor.values)
          element = roundToBF16(element);
      set(value, std::move(tensor));
    }
    return success();
  }
  return op->emitOpError("has no reference semantics");
}

LogicalResult Interpreter::run(Block::iterator begin, Block::iterator end) {
  for (auto it = begin; it != end; ++it)
    if (failed(evaluate(&*it)))
      return failure();
  return success();
}

FailureOr<std::vector<Tensor>> Interpreter::run() {
  Block &block = function.getBody().front();
  Operation *exit = block.getTerminator();
  if (failed(run(block.begin(), exit->getIterator())))
    return failure();
  std::vector<Tensor> results;
  for (Value value : exit->getOperands())
    results.push_back(get(value));
  return results;
}
