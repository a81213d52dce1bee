//===- Differentiate.cpp - Append the backward pass -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Autodiff/Passes.h"
#include "reprise/Dialect/NN/NNBalanceOps.h"
#include "reprise/Dialect/NN/Phases.h"
#include "reprise/Dialect/NN/Terms.h"
#include "reprise/Interfaces/Facts.h"
#include "reprise/Support/Active.h"
#include "reprise/Support/Borders.h"
#include "reprise/Support/Modules.h"
#include "llvm/ADT/SetVector.h"

namespace reprise::autodiff {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "reprise/Autodiff/Passes.h.inc"
} // namespace reprise::autodiff

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

/// How many values a chunk that another one follows passes on, its first
/// results; 0 if none does.
static unsigned countPassedOn(func::FuncOp function) {
  unsigned count = 0;
  for (; count < function.getNumResults(); ++count) {
    auto output = function.getResultAttrOfType<StringAttr>(count, kOutputAttr);
    if (!output || output.getValue() != kBorder)
      break;
  }
  return count;
}

/// The result that is measured first, behind the loss or what is passed on.
static unsigned getFirstMeasure(func::FuncOp function) {
  return std::max(countPassedOn(function), 1u);
}

namespace {
/// The backward pass of one function of one block.
class Differentiator {
public:
  Differentiator(func::FuncOp function, func::ReturnOp exit)
      : function(function), exit(exit), block(*exit->getBlock()),
        builder(exit) {}

  LogicalResult run();

private:
  /// Refuses what is no forward pass.
  LogicalResult check();
  /// Gives what the function returns its cotangent, below `nn.backward`: of the
  /// loss and its terms the weight of a micro-batch, of what a chunk passes on
  /// an argument. Returns `nn.backward`.
  Operation *seed();
  /// Adds up what is measured, each with `weight` if it is a number.
  void measure(FloatAttr weight);
  /// Makes room for the measures that terms are of.
  void addTotals();
  /// `sum` and the term of this micro-batch, times `weight` if there is one.
  Value addUp(Value sum, Value term, FloatAttr weight, StringRef name);
  bool isMeasured(Value value, StringAttr name);
  /// Where ops read the sum of a measure as far as the step has come: adds the
  /// one of all ranks with samples to `sum`, which they read then. Null if
  /// there is no such op.
  Value addUpSoFar(Value sum, Value measured, StringRef name);
  /// Appends to what the function returns.
  void addResult(Value value, StringRef role, StringRef name);
  /// Marks what depends on a trainable parameter: these values get cotangents.
  void findActive();
  LogicalResult differentiate(Operation *op);
  void addCotangent(Operation *cause, Value value, Value cotangent);
  /// The cotangent of a result of `op`, of a type that its derivative takes, or
  /// null.
  Value getCotangent(Operation *op, Value result);
  /// Returns the gradients of the first arguments, those of @forward.
  LogicalResult addGradients(unsigned numArguments, Operation *backward);
  /// The sum of a parameter's gradients, with that of this micro-batch.
  Value accumulate(ParameterAttr parameter, Value gradient,
                   Operation *backward);
  /// Appends an argument to the block; run() fits the signature in the end, at
  /// once, since signatures are uniqued and there are thousands of arguments.
  Value addArgument(Type type, StringRef role, StringRef name);

  func::FuncOp function;
  func::ReturnOp exit;
  Block &block;
  OpBuilder builder;
  DenseSet<Value> active;
  DenseMap<Value, Value> cotangents;
  SmallVector<DictionaryAttr> argumentAttributes, resultAttributes;
  SmallVector<Value> results;
};

struct Differentiate : public autodiff::impl::DifferentiateBase<Differentiate> {
  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(kForwardFunction);
    if (!function) {
      getOperation().emitError("needs a function @forward to differentiate");
      return signalPassFailure();
    }
    if (failed(differentiate(function)))
      return signalPassFailure();
  }

  LogicalResult differentiate(func::FuncOp function);
};
} // namespace

LogicalResult Differentiate::differentiate(func::FuncOp function) {
  if (!function.getBody().hasOneBlock())
    return function.emitError("needs one block to differentiate, but got ")
           << function.getBody().getBlocks().size();
  if (Operation *step = getOperation().lookupSymbol(kStepFunction)) {
    InFlightDiagnostic error =
        function.emitError("needs the name @step to be free for its result");
    error.attachNote(step->getLoc()) << "this has it";
    return error;
  }
  Operation *last = function.getBody().front().getTerminator();
  auto exit = dyn_cast<func::ReturnOp>(last);
  if (!exit)
    return last->emitOpError("needs to be the return of the loss");
  return Differentiator(function, exit).run();
}

/// The name of what is shown as a result of the forward pass, or null.
static StringAttr getMeasure(func::FuncOp function, unsigned result) {
  return function.getResultAttrOfType<StringAttr>(result, kMeasureAttr);
}

/// The name of the measure that it is a term of, as of the loss, or null.
static StringAttr getTerm(func::FuncOp function, unsigned result) {
  return function.getResultAttrOfType<StringAttr>(result, kTermAttr);
}

/// What a micro-batch counts in the step's loss: each alike, whichever rank has
/// it.
static float getWeight(func::FuncOp function) {
  int64_t microBatches = 1;
  if (auto attr = function->getAttrOfType<IntegerAttr>(kMicroBatchesAttr))
    microBatches = attr.getInt();
  if (auto module = function->getParentOfType<ModuleOp>())
    microBatches *= getAxisSize(module, kDataAxis);
  return 1.0f / float(microBatches);
}

static ParameterAttr getParameter(func::FuncOp function, unsigned index) {
  return function.getArgAttrOfType<ParameterAttr>(index, kParameterAttr);
}

/// Whether an argument is what the chunk before passes on, with parameters to
/// train there or further before.
static bool isBorder(func::FuncOp function, unsigned argument) {
  auto input = function.getArgAttrOfType<StringAttr>(argument, kInputAttr);
  return input && input.getValue() == kBorder &&
         !function.getArgAttr(argument, kUntrainedAttr);
}

void Differentiator::findActive() {
  active = reprise::findActive(block, [&](BlockArgument argument) {
    ParameterAttr parameter = getParameter(function, argument.getArgNumber());
    return (parameter && !parameter.getFrozen()) ||
           isBorder(function, argument.getArgNumber());
  });
}

Value Differentiator::addArgument(Type type, StringRef role, StringRef name) {
  argumentAttributes.push_back(builder.getDictionaryAttr(
      builder.getNamedAttr(role, builder.getStringAttr(name))));
  return block.addArgument(type, function.getLoc());
}

void Differentiator::addCotangent(Operation *cause, Value value,
                                  Value cotangent) {
  Value &sum = cotangents[value];
  if (!sum) {
    sum = cotangent;
    return;
  }
  auto add = AddOp::create(builder, cause->getLoc(), sum, cotangent);
  if (ScopeAttr scope = getScope(cause))
    add->setAttr(kScopeAttr, scope);
  sum = add;
}

Value Differentiator::getCotangent(Operation *op, Value result) {
  Value cotangent = cotangents.lookup(result);
  // As a weight a value gets its gradient in f32, for the sake of the sum; only
  // a parameter, which a cast rounds, keeps it so.
  if (!cotangent || cotangent.getType() == result.getType() ||
      isa<Rounding>(op))
    return cotangent;
  auto cast =
      CastOp::create(builder, op->getLoc(), result.getType(), cotangent);
  if (ScopeAttr scope = getScope(op))
    cast->setAttr(kScopeAttr, scope);
  return cast;
}

LogicalResult Differentiator::differentiate(Operation *op) {
  SmallVector<Value> resultCotangents;
  for (Value result : op->getResults())
    resultCotangents.push_back(getCotangent(op, result));
  if (llvm::none_of(resultCotangents, [](Value value) { return bool(value); }))
    return success();

  SmallVector<bool> needed;
  for (Value operand : op->getOperands())
    needed.push_back(active.contains(operand));
  if (!llvm::is_contained(needed, true))
    return success();
  auto differentiable = dyn_cast<Differentiable>(op);
  if (!differentiable)
    return op->emitOpError("needs a derivative, since the loss depends through "
                           "it on a trainable parameter, but has none");

  Operation *last = exit->getPrevNode();
  SmallVector<Value> gradients(op->getNumOperands());
  if (failed(differentiable.buildVjp(builder, resultCotangents, needed,
                                     gradients)))
    return failure();
  if (ScopeAttr scope = getScope(op))
    for (Operation *built = last->getNextNode(); built != exit;
         built = built->getNextNode())
      built->setAttr(kScopeAttr, scope);
  for (auto [operand, gradient] : llvm::zip(op->getOperands(), gradients))
    if (gradient)
      addCotangent(op, operand, gradient);
  return success();
}

LogicalResult Differentiator::check() {
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  unsigned count = exit.getNumOperands();
  if (count < 1 ||
      (exit.getOperand(0).getType() != scalar && countPassedOn(function) == 0))
    return exit.emitOpError("needs to return the loss alone, a tensor<f32>");
  for (unsigned index = getFirstMeasure(function); index < count; ++index)
    if (!getMeasure(function, index))
      return exit.emitOpError("needs to return the loss, a tensor<f32>, and "
                              "behind it measures, but result #")
             << index << " has no 'nn.measure'";
  llvm::StringMap<unsigned> names;
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (ParameterAttr parameter = getParameter(function, index)) {
      auto [other, isNew] = names.try_emplace(parameter.getName(), index);
      if (!isNew)
        return function.emitError("needs a name of its own for each parameter, "
                                  "but arguments #")
               << other->second << " and #" << index << " are both '"
               << parameter.getName() << "'";
    }
  for (Operation &op : block)
    if (auto name = op.getAttrOfType<StringAttr>(kSoFarAttr))
      if (!isMeasured(op.getOperand(0), name))
        return op.emitOpError("needs its operand 0 to be returned as the "
                              "measure ")
               << name;
  for (Operation &op : block) {
    if (op.getNumRegions() != 0)
      return op.emitOpError("needs to be written out without regions, where "
                            "uses of parameters would go unseen");
    if (getPhaseBegun(&op))
      return op.emitOpError("needs to be in @step, but is in @forward");
  }
  return success();
}

void Differentiator::addResult(Value value, StringRef role, StringRef name) {
  results.push_back(value);
  resultAttributes.push_back(builder.getDictionaryAttr(
      builder.getNamedAttr(role, builder.getStringAttr(name))));
}

bool Differentiator::isMeasured(Value value, StringAttr name) {
  for (unsigned index = getFirstMeasure(function);
       index < exit.getNumOperands(); ++index)
    if (exit.getOperand(index) == value && getMeasure(function, index) == name)
      return true;
  return false;
}

static void setLossScope(Operation *op, StringRef name) {
  op->setAttr(kScopeAttr, ScopeAttr::get(op->getContext(), -1,
                                         getName(ModuleKind::Loss), name));
}

Value Differentiator::addUpSoFar(Value sum, Value measured, StringRef name) {
  SmallVector<Operation *> readers;
  for (Operation &op : block)
    if (auto own = op.getAttrOfType<StringAttr>(kSoFarAttr); own && own == name)
      readers.push_back(&op);
  if (readers.empty())
    return {};
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(readers.front());
  auto module = function->getParentOfType<ModuleOp>();
  if (module && getAxisSize(module, kDataAxis) > 1) {
    auto all = AllReduceOp::create(builder, readers.front()->getLoc(), measured,
                                   builder.getStringAttr(kDataAxis));
    setLossScope(all, (name + ".all_reduce").str());
    measured = all.getSums().front();
  }
  Value total = addUp(sum, measured, FloatAttr(), (name + ".so_far").str());
  for (Operation *reader : readers) {
    reader->setOperand(0, total);
    reader->removeAttr(kSoFarAttr);
  }
  return total;
}

Value Differentiator::addUp(Value sum, Value term, FloatAttr weight,
                            StringRef name) {
  Location loc = exit.getLoc();
  if (weight) {
    auto scaled = ScaleOp::create(builder, loc, term, weight);
    setLossScope(scaled, name);
    term = scaled;
  }
  auto total = AccumulateOp::create(builder, loc, sum, term);
  setLossScope(total, name);
  return total;
}

void Differentiator::addTotals() {
  llvm::SetVector<StringAttr> totals;
  for (unsigned index = getFirstMeasure(function);
       index < exit.getNumOperands(); ++index)
    if (StringAttr total = getTerm(function, index))
      totals.insert(total);
  // Of one that is a measure itself, these are further terms.
  for (unsigned index = getFirstMeasure(function);
       index < exit.getNumOperands(); ++index)
    totals.remove(getMeasure(function, index));
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  for (StringAttr total : totals)
    addResult(addArgument(scalar, kMeasureAttr, total), kMeasureAttr, total);
}

void Differentiator::measure(FloatAttr weight) {
  for (unsigned index = getFirstMeasure(function);
       index < exit.getNumOperands(); ++index) {
    Value measured = exit.getOperand(index);
    StringRef name = getMeasure(function, index).getValue();
    Value sum = addArgument(measured.getType(), kMeasureAttr, name);
    Value total = addUpSoFar(sum, measured, name);
    // Counts are added up as they are.
    bool isMean = cast<RankedTensorType>(measured.getType()).getRank() == 0;
    if (!total)
      total = addUp(sum, measured, isMean ? weight : FloatAttr(), name);
    addResult(total, kMeasureAttr, name);
    if (StringAttr term = getTerm(function, index)) {
      NamedAttrList said(resultAttributes.back());
      said.set(kTermAttr, term);
      resultAttributes.back() = said.getDictionary(builder.getContext());
    }
  }
  addTotals();
}

Operation *Differentiator::seed() {
  Location loc = exit.getLoc();
  FloatAttr weight = builder.getF32FloatAttr(getWeight(function));
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  ValueRange passedOn = exit.getOperands().take_front(countPassedOn(function));
  for (Value value : passedOn)
    addResult(value, kOutputAttr, kBorder);
  if (passedOn.empty()) {
    Value lossSum = addArgument(scalar, kInputAttr, "loss_sum");
    addResult(addUp(lossSum, exit.getOperand(0), weight, "total"), kOutputAttr,
              "loss");
  }
  measure(weight);
  Operation *backward = BackwardOp::create(builder, loc);
  auto addSeed = [&](Value of) {
    auto seed = ConstantOp::create(builder, loc, scalar, weight);
    setLossScope(seed, "total");
    addCotangent(seed, of, seed);
  };
  if (passedOn.empty())
    addSeed(exit.getOperand(0));
  for (Value value : passedOn)
    if (active.contains(value))
      cotangents[value] =
          addArgument(value.getType(), kInputAttr, kBorderGradient);
  for (unsigned index = getFirstMeasure(function);
       index < exit.getNumOperands(); ++index)
    if (Value term = exit.getOperand(index);
        getTerm(function, index) && active.contains(term))
      addSeed(term);
  return backward;
}

Value Differentiator::accumulate(ParameterAttr parameter, Value gradient,
                                 Operation *backward) {
  // Right behind the last contribution, so that no gradient outlives it.
  OpBuilder::InsertionGuard guard(builder);
  // Of what is added to what a chunk passes on, it is an argument.
  Operation *last = gradient.getDefiningOp();
  if (!last)
    last = backward;
  builder.setInsertionPointAfter(last);
  Value sum =
      addArgument(gradient.getType(), kGradientAttr, parameter.getName());
  auto total = AccumulateOp::create(builder, gradient.getLoc(), sum, gradient);
  if (ScopeAttr scope = getScope(last))
    total->setAttr(kScopeAttr, scope);
  return total;
}

LogicalResult Differentiator::addGradients(unsigned numArguments,
                                           Operation *backward) {
  for (unsigned index = 0; index < numArguments; ++index) {
    ParameterAttr parameter = getParameter(function, index);
    Value cotangent = cotangents.lookup(block.getArgument(index));
    if (isBorder(function, index)) {
      if (!cotangent)
        return function.emitError("needs what the chunk before passes on to be "
                                  "read, but it is not");
      addResult(cotangent, kOutputAttr, kBorderGradient);
      continue;
    }
    if (!parameter || parameter.getFrozen())
      continue;
    if (!cotangent)
      return function.emitError("needs the loss to depend on the parameter '")
             << parameter.getName() << "', but it does not; freeze it";
    addResult(accumulate(parameter, cotangent, backward), kGradientAttr,
              parameter.getName());
  }
  return success();
}

/// Marks have said what they had to say by the end of backward.
static void removeMarks(ArrayRef<Operation *> forward) {
  for (Operation *op : forward)
    if (auto mark = dyn_cast<GradientMark>(op)) {
      op->getResult(0).replaceAllUsesWith(mark.getMarked());
      op->erase();
    }
}

LogicalResult Differentiator::run() {
  if (failed(check()))
    return failure();
  findActive();

  // What to walk is fixed before the first backward op joins it.
  SmallVector<Operation *> forward;
  for (Operation &op : block.without_terminator())
    forward.push_back(&op);
  function.getAllArgAttrs(argumentAttributes);
  unsigned numArguments = function.getNumArguments();
  Operation *backward = seed();
  for (Operation *op : llvm::reverse(forward))
    if (failed(differentiate(op)))
      return failure();
  removeMarks(forward);
  if (failed(addGradients(numArguments, backward)))
    return failure();

  exit->setOperands(results);
  function.setName(kStepFunction);
  function.setType(builder.getFunctionType(block.getArgumentTypes(),
                                           ValueRange(results).getTypes()));
  function.setAllArgAttrs(argumentAttributes);
  function.setAllResultAttrs(resultAttributes);
  return success();
}
