//===- Expressions.cpp - Elements of tensors as values ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Codegen/Common/Expressions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include <numeric>

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

static bool isVector(Value value) { return isa<VectorType>(value.getType()); }

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value Expressions::offset(Role role) {
  switch (role) {
  case Role::Uniform:
    return code.i64(0);
  case Role::Row:
    return row ? row : code.i64(0);
  case Role::Column:
    return column;
  case Role::Full:
    return row && nest.rows > 1 ? code.add(code.mul(row, nest.cols), column)
                                : column;
  }
  llvm_unreachable("all roles have an offset");
}

Value Expressions::loadPair(Value base, Type element, bool constant) {
  auto half = VectorType::get({code.lanes / 2}, element);
  auto load = [&](Value from) {
    return code.load(half, base, from, {}, alignment(), constant);
  };
  return vector::ShuffleOp::create(code, load(rowPair.even), load(rowPair.odd),
                                   llvm::to_vector(llvm::seq(code.lanes)));
}

void Expressions::storePair(const LoopNest::Output &output, Value value) {
  Value base = kernel.outputs[output.index];
  if (output.index == rowPair.packed)
    return code.streamPairs(value, base, rowPair.pairs);
  const int64_t half = code.lanes / 2;
  for (auto [place, first] :
       {std::pair(rowPair.even, int64_t(0)), std::pair(rowPair.odd, half)})
    code.store(vector::ShuffleOp::create(
                   code, value, value,
                   llvm::to_vector(llvm::seq(first, first + half))),
               base, place, {}, alignment());
}

Value Expressions::loadAt(Value base, Type element, Role role, bool constant) {
  if (isVector(role) && isOfPair)
    return loadPair(base, element, constant);
  if (isVector(role))
    return code.load(code.lanesOf(element), base, offset(role), mask,
                     alignment(), constant);
  return code.load(element, base, offset(role), {}, 1, constant);
}

void Expressions::store(const LoopNest::Output &output, Value value) {
  Type element = getElementTypeOrSelf(value.getType());
  if (isVector(output.role) && !::isVector(value))
    value = code.splat(value);
  assert(element == getElementTypeOrSelf(output.root.getType()) &&
         "stored as what it is");
  if (isVector(output.role) && isOfPair)
    return storePair(output, value);
  if (isVector(output.role) && !mask &&
      llvm::is_contained(streamed, output.index))
    return code.stream(value, kernel.outputs[output.index],
                       offset(output.role));
  code.store(value, kernel.outputs[output.index], offset(output.role),
             isVector(output.role) ? mask : Value(), alignment());
}

void Expressions::setToOutput(Value root, const LoopNest::Output &output) {
  Type element = getElementTypeOrSelf(output.root.getType());
  set(root, output.role,
      loadAt(kernel.outputs[output.index], element, output.role));
}

void Expressions::storeOutputs() {
  SmallVector<Value> values;
  for (const LoopNest::Output &output : nest.outputs())
    values.push_back(get(output.root, output.role));
  for (auto [output, value] : llvm::zip(nest.outputs(), values))
    store(output, value);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

void Expressions::set(Value root, Role role, Value value) {
  scopeOf(role).values[{root, unsigned(role)}] = value;
}

Value Expressions::get(Value root) { return get(root, nest.resultRole(root)); }

Value Expressions::get(Value root, Role role) {
  if (auto fill = root.getDefiningOp<linalg::FillOp>())
    return outside(fill.getInputs()[0]);
  if (isa_and_nonnull<linalg::GenericOp>(root.getDefiningOp()))
    role = nest.resultRole(root);
  Scope &scope = scopeOf(role);
  if (Value known = scope.values.lookup({root, unsigned(role)}))
    return known;
  OpBuilder::InsertionGuard guard(code);
  if (scope.anchor)
    code.setInsertionPoint(scope.anchor);
  Value value = compute(root, role);
  set(root, role, value);
  return value;
}

Value Expressions::compute(Value root, Role role) {
  Type element = getElementTypeOrSelf(root.getType());
  if (auto argument = dyn_cast<BlockArgument>(root))
    return loadAt(kernel.inputs[argument.getArgNumber()], element, role,
                  kernel.isConstant(argument.getArgNumber()));
  if (const LoopNest::Output *output = nest.storedBefore(root, phase))
    return loadAt(kernel.outputs[output->index], element, role);
  auto op = cast<linalg::GenericOp>(root.getDefiningOp());
  assert(!nest.isReduction(op) && "reductions are set when they are complete");
  SmallVector<Value> values = emit(op);
  for (auto [result, value] : llvm::zip(op.getResults(), values))
    set(result, role, value);
  return values[cast<OpResult>(root).getResultNumber()];
}

//===----------------------------------------------------------------------===//
// Scalars from outside of the generics
//===----------------------------------------------------------------------===//

Value Expressions::stream(int64_t index) {
  Value id = code.load(code.getI64Type(), kernel.ids, code.i64(index));
  return code.cast(id, code.getI32Type());
}

Value Expressions::outside(Value value) {
  Scope &scope = scopes[0];
  if (Value known = scope.values.lookup({value, 0}))
    return known;
  OpBuilder::InsertionGuard guard(code);
  if (scope.anchor)
    code.setInsertionPoint(scope.anchor);
  Operation *op = value.getDefiningOp();
  Value result;
  if (auto id = dyn_cast<rt::StreamOp>(op)) {
    result = stream(id.getIndex());
  } else {
    SmallVector<Value> operands;
    if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
      for (Value index : extract.getIndices())
        operands.push_back(outside(index));
      result = this->extract(op, operands);
    } else {
      for (Value operand : op->getOperands())
        operands.push_back(outside(operand));
      result = clone(op, cast<OpResult>(value).getResultNumber(), operands);
    }
  }
  scope.values[{value, 0}] = result;
  return result;
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

/// Clones a scalar op on scalars, or on vectors if any operand is one.
static SmallVector<Value> cloneOn(Code &code, Operation *op,
                                  SmallVector<Value> operands) {
  bool vector = llvm::any_of(operands, [](Value v) { return isVector(v); });
  SmallVector<Type> types(op->getResultTypes());
  if (vector) {
    for (Value &operand : operands)
      if (!isVector(operand))
        operand = code.splat(operand);
    for (Type &type : types)
      type = code.lanesOf(type);
  }
  OperationState state(op->getLoc(), op->getName(), operands, types,
                       op->getAttrs());
  return SmallVector<Value>(code.create(state)->getResults());
}

Value Expressions::clone(Operation *op, unsigned result,
                         SmallVector<Value> operands) {
  return cloneOn(code, op, std::move(operands))[result];
}

Value Expressions::extract(Operation *op, ValueRange indices) {
  auto extract = cast<tensor::ExtractOp>(op);
  auto argument = cast<BlockArgument>(getRoot(extract.getTensor()));
  auto type = cast<RankedTensorType>(extract.getTensor().getType());
  // A vector of indices is those of the loop itself: load from the first on.
  Value offset = code.i64(0);
  bool contiguous = false,
       constant = kernel.isConstant(argument.getArgNumber());
  for (auto [given, index, size] :
       llvm::zip(extract.getIndices(), indices, type.getShape())) {
    Value at = index;
    if (::isVector(at)) {
      contiguous = true;
      auto generic = op->getParentOfType<linalg::GenericOp>();
      auto loop = given.getDefiningOp<linalg::IndexOp>();
      at = this->offset(nest.dimRole(generic, loop.getDim()));
    }
    offset = code.add(code.mul(offset, size), code.cast(at, code.getI64Type()));
  }
  Value base = kernel.inputs[argument.getArgNumber()];
  if (contiguous)
    return code.load(code.lanesOf(type.getElementType()), base, offset, mask,
                     std::gcd(type.getShape().back(), alignment()), constant);
  return code.load(type.getElementType(), base, offset, {}, 1, constant);
}

/// A constant above 0, or 0.
static int64_t getConstant(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)))
    return 0;
  return std::max<int64_t>(constant.getSExtValue(), 0);
}

namespace {
/// The number of an element in a whole that a kernel has a part of: its number
/// here and a shift, where runs of elements side by side have one shift, a
/// multiple of four. So random words of a run can be drawn together.
class ShiftedIndex {
public:
  /// \param run  what begins at its multiples is a run.
  ShiftedIndex(linalg::GenericOp op, Value element, int64_t run)
      : op(op), run(run) {
    isShifted = find(element);
  }

  explicit operator bool() const { return isShifted; }
  int64_t getDim() { return index.getDim(); }

private:
  bool find(Value value) {
    if (auto own = value.getDefiningOp<linalg::IndexOp>())
      return index = own;
    auto sum = value.getDefiningOp<arith::AddIOp>();
    return sum && ((find(sum.getLhs()) && isShift(sum.getRhs())) ||
                   (find(sum.getRhs()) && isShift(sum.getLhs())));
  }

  bool isShift(Value value) const {
    if (auto sum = value.getDefiningOp<arith::AddIOp>())
      return isShift(sum.getLhs()) && isShift(sum.getRhs());
    auto product = value.getDefiningOp<arith::MulIOp>();
    int64_t factor = product ? getConstant(product.getRhs()) : 0;
    return factor > 0 && factor % 4 == 0 && isOfRun(product.getLhs());
  }

  /// Whether it is one number for all of a run.
  bool isOfRun(Value value) const {
    if (!op->getRegion(0).isAncestor(value.getParentRegion()))
      return true;
    if (auto cast = value.getDefiningOp<arith::IndexCastOp>())
      return isOfRun(cast.getIn());
    auto piece = value.getDefiningOp<arith::DivUIOp>();
    int64_t size = piece ? getConstant(piece.getRhs()) : 0;
    return size > 0 && size % run == 0 &&
           piece.getLhs().getDefiningOp<linalg::IndexOp>();
  }

  linalg::GenericOp op;
  int64_t run;
  linalg::IndexOp index;
  bool isShifted;
};
} // namespace

/// Of lanes side by side, or of one scalar.
Value Expressions::randomWords(rt::RandomWordOp op, ValueRange operands) {
  RandomStream random = {operands[1], operands[2], operands[3], operands[4],
                         operands[5]};
  Value elements = operands[0];
  if (!::isVector(elements))
    return vector::ExtractOp::create(
        code, emitWords(code, random, code.splat(elements)), int64_t(0));
  // The elements side by side in rows that begin at multiples of four.
  auto generic = op->getParentOfType<linalg::GenericOp>();
  int64_t lanes = isOfRun ? 4 * kLanes : code.lanes;
  ShiftedIndex index(generic, op.getElement(),
                     nest.rows == 1 ? lanes : nest.cols);
  bool isOfElement =
      index &&
      (nest.rows == 1 || nest.dimRole(generic, index.getDim()) == Role::Full);
  // What a value in the body is for the first element.
  auto valueAtFirst = [&](auto &&self, Value value) -> Value {
    if (!generic.getRegion().isAncestor(value.getParentRegion()))
      return outside(value);
    Operation *maker = value.getDefiningOp();
    if (isa<linalg::IndexOp>(maker))
      return code.cast(offset(Role::Full), code.getIndexType());
    SmallVector<Value> known;
    for (Value operand : maker->getOperands())
      known.push_back(self(self, operand));
    return cloneOn(code, maker, known)[0];
  };
  auto first = [&]() -> Value {
    if (op.getElement().getDefiningOp<linalg::IndexOp>())
      return offset(Role::Full);
    return code.cast(valueAtFirst(valueAtFirst, op.getElement()),
                     code.getI64Type());
  };
  if (isOfElement && isAligned && code.lanes % 4 == 0)
    return emitWordsOfBlocks(code, random, first());
  if (!isOfRun || !isOfElement)
    return emitWords(code, random, elements);
  if (runChunk == 0)
    runWords[op] = emitWordsOfRun(code, random, first());
  return runWords[op][runChunk];
}

SmallVector<Value> Expressions::emit(linalg::GenericOp op,
                                     ValueRange accumulators) {
  IRMapping values;
  Block *body = op.getBody();
  int64_t numInputs = op.getNumDpsInputs();
  for (BlockArgument argument : body->getArguments()) {
    unsigned index = argument.getArgNumber();
    if (index >= numInputs && !accumulators.empty())
      values.map(argument, accumulators[index - numInputs]);
    else if (!argument.use_empty())
      values.map(argument, get(getRoot(op->getOperand(index)),
                               nest.operandRole(op, index)));
  }
  auto lookup = [&](Value value) {
    if (Value known = values.lookupOrNull(value))
      return known;
    return outside(value);
  };
  for (Operation &inner : body->without_terminator()) {
    SmallVector<Value> operands;
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      Role role = nest.dimRole(op, index.getDim());
      Value at = code.cast(offset(role), code.getIndexType());
      if (isVector(role))
        at = code.add(code.splat(at), code.iota(code.getIndexType()));
      values.map(index.getResult(), at);
    } else if (auto id = dyn_cast<rt::StreamOp>(inner)) {
      values.map(id.getResult(), outside(id.getResult()));
    } else if (auto element = dyn_cast<tensor::ExtractOp>(inner)) {
      for (Value index : element.getIndices())
        operands.push_back(lookup(index));
      values.map(element.getResult(), extract(element, operands));
    } else if (auto word = dyn_cast<rt::RandomWordOp>(inner)) {
      for (Value operand : word->getOperands())
        operands.push_back(lookup(operand));
      values.map(word.getResult(), randomWords(word, operands));
    } else {
      for (Value operand : inner.getOperands())
        operands.push_back(lookup(operand));
      values.map(inner.getResults(), cloneOn(code, &inner, operands));
    }
  }
  SmallVector<Value> results;
  for (Value yielded : body->getTerminator()->getOperands())
    results.push_back(lookup(yielded));
  return results;
}

Value Expressions::initial(linalg::GenericOp op, unsigned index) {
  Value init = get(getRoot(op.getDpsInits()[index]),
                   nest.operandRole(op, op.getNumDpsInputs() + index));
  return ::isVector(init) ? init : code.splat(init);
}

Value Expressions::combine(linalg::GenericOp op, unsigned index, Value a,
                           Value b) {
  Value out = op.getRegionOutputArgs()[index];
  Operation *yielded =
      op.getBody()->getTerminator()->getOperand(index).getDefiningOp();
  bool first = yielded->getOperand(0) == out;
  OperationState state(op.getLoc(), yielded->getName(),
                       first ? ValueRange{a, b} : ValueRange{b, a}, a.getType(),
                       yielded->getAttrs());
  return code.create(state)->getResult(0);
}
