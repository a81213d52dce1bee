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
#include "reprise/Dialect/NN/Phases.h"
#include "reprise/Dialect/Remat/RematOps.h"

#include <map>

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

//===----------------------------------------------------------------------===//
// One rank
//===----------------------------------------------------------------------===//

Frame Interpreter::makeFrame(Operation *op,
                             std::vector<Tensor> &results) const {
  Frame frame;
  for (Value operand : op->getOperands())
    frame.operands.push_back(&get(operand));
  for (Type type : op->getResultTypes())
    results.emplace_back(cast<ShapedType>(type).getShape());
  frame.results = results;
  frame.isExact = isExact;
  auto axis = op->getAttrOfType<StringAttr>("axis");
  if (StringAttr own = nn::getCoordinateAxis(op))
    axis = own;
  if (axis && mesh) {
    frame.rank = mesh.getCoordinate(rank, axis);
    frame.ranks = mesh.getSize(axis);
  }
  return frame;
}

void Interpreter::store(Operation *op, std::vector<Tensor> &results) {
  for (auto [value, tensor] : llvm::zip(op->getResults(), results)) {
    if (!isExact && getElementTypeOrSelf(value).isBF16())
      for (double &element : tensor.values)
        element = roundToBF16(element);
    set(value, std::move(tensor));
  }
}

LogicalResult Interpreter::evaluate(Operation *op) {
  if (nn::getPhaseBegun(op))
    return success();
  if (auto fence = dyn_cast<remat::FenceOp>(op)) {
    Tensor copy = get(fence.getValue());
    set(fence.getOut(), std::move(copy));
    return success();
  }
  std::vector<Tensor> results;
  Frame frame = makeFrame(op, results);
  if (nn::isCollective(op)) {
    if (frame.ranks != 1)
      return op->emitOpError("needs the ")
             << frame.ranks << " ranks that meet in it, but got one";
    evaluateCollective(op, frame);
    store(op, results);
    return success();
  }
  for (auto family : {evaluateModelOp, evaluateRotaryOp, evaluateAttentionOp,
                      evaluateExpertOp, evaluateLatentOp, evaluateTrainingOp,
                      evaluateShardOp}) {
    FailureOr<bool> evaluated = family(op, frame);
    if (failed(evaluated))
      return failure();
    if (!*evaluated)
      continue;
    store(op, results);
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

std::vector<Tensor> Interpreter::getResults() const {
  std::vector<Tensor> results;
  func::FuncOp run = function;
  for (Value value : run.getBody().front().getTerminator()->getOperands())
    results.push_back(get(value));
  return results;
}

FailureOr<std::vector<Tensor>> Interpreter::run() {
  Block &block = function.getBody().front();
  if (failed(run(block.begin(), block.getTerminator()->getIterator())))
    return failure();
  return getResults();
}

//===----------------------------------------------------------------------===//
// All ranks
//===----------------------------------------------------------------------===//

Ranks::Ranks(nn::MeshAttr mesh, ArrayRef<func::FuncOp> functions) : mesh(mesh) {
  assert(int64_t(functions.size()) == mesh.getNumRanks() &&
         "a function for each rank");
  for (auto [rank, function] : llvm::enumerate(functions)) {
    machines.emplace_back(function);
    machines.back().mesh = mesh;
    machines.back().rank = rank;
  }
}

/// Whether ranks can meet in two collectives.
static bool areSame(Operation *lhs, Operation *rhs) {
  return lhs->getName() == rhs->getName() &&
         lhs->getOperandTypes() == rhs->getOperandTypes() &&
         lhs->getResultTypes() == rhs->getResultTypes() &&
         llvm::all_of(ArrayRef<StringLiteral>{"axis", "dim", "word"},
                      [&](StringRef name) {
                        return lhs->getAttr(name) == rhs->getAttr(name);
                      });
}

void Ranks::meet(ArrayRef<Operation *> ops) {
  StringRef axis = ops.front()->getAttrOfType<StringAttr>("axis").getValue();
  std::map<int64_t, SmallVector<int64_t>> groups; // by the group's first rank
  for (int64_t rank = 0; rank < int64_t(ops.size()); ++rank)
    groups[rank - mesh.getCoordinate(rank, axis) * mesh.getStride(axis)]
        .push_back(rank);
  for (auto &[first, ranks] : groups) {
    std::vector<std::vector<Tensor>> results(ranks.size());
    SmallVector<Frame> frames;
    for (auto [index, rank] : llvm::enumerate(ranks))
      frames.push_back(machines[rank].makeFrame(ops[rank], results[index]));
    evaluateCollective(ops[first], frames);
    for (auto [index, rank] : llvm::enumerate(ranks))
      machines[rank].store(ops[rank], results[index]);
  }
}

LogicalResult Ranks::run() {
  SmallVector<Block::iterator> at;
  for (Interpreter &machine : machines)
    at.push_back(machine.function.getBody().front().begin());
  while (true) {
    SmallVector<Operation *> ops;
    for (auto [machine, next] : llvm::zip_equal(machines, at)) {
      auto begin = next;
      while (!nn::isCollective(&*next) && !isa<func::ReturnOp>(*next))
        ++next;
      if (failed(machine.run(begin, next)))
        return failure();
      ops.push_back(&*next++);
    }
    for (auto [rank, op] : llvm::enumerate(ops))
      if (!areSame(op, ops.front())) {
        InFlightDiagnostic error =
            op->emitOpError("is where rank ")
            << rank << " waits for others, but rank 0 is elsewhere";
        error.attachNote(ops.front()->getLoc()) << "rank 0 is here";
        return error;
      }
    if (!nn::isCollective(ops.front()))
      return success();
    meet(ops);
  }
}
