//===- AddOptimizer.cpp - Append clipping and AdamW -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Autodiff/Passes.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Support/Borders.h"

namespace reprise::autodiff {
#define GEN_PASS_DEF_ADDOPTIMIZER
#include "reprise/Autodiff/Passes.h.inc"
} // namespace reprise::autodiff

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

/// Turns casts of parameters, which would round them for each micro-batch, into
/// arguments: what the last update has rounded. Lookups round the few rows they
/// read themselves, so that a copy is for products, which may have it in an
/// order of their own. Returns the arguments by that of the parameter.
///
/// \param attributes  of all arguments; gets those of the new ones.
static DenseMap<Value, Value>
takeWorkingCopies(func::FuncOp function,
                  SmallVectorImpl<DictionaryAttr> &attributes) {
  Builder builder(function.getContext());
  Block &block = function.getBody().front();
  DenseMap<Value, Value> copies;
  for (auto cast : llvm::make_early_inc_range(block.getOps<CastOp>())) {
    auto argument = dyn_cast<BlockArgument>(cast.getInput());
    auto parameter =
        argument ? attributes[argument.getArgNumber()].getAs<ParameterAttr>(
                       kParameterAttr)
                 : ParameterAttr();
    if (!parameter || !cast.getType().getElementType().isBF16())
      continue;
    cast.getOut().replaceUsesWithIf(argument, [&](OpOperand &use) {
      auto lookup = dyn_cast<EmbeddingOp>(use.getOwner());
      return lookup && &use == &lookup.getTableMutable();
    });
    if (cast.use_empty()) {
      cast.erase();
      continue;
    }
    Value &copy = copies[argument];
    if (!copy) {
      copy = block.addArgument(cast.getType(), cast.getLoc());
      attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
          kWorkingAttr, builder.getStringAttr(parameter.getName()))));
    }
    cast.replaceAllUsesWith(copy);
    cast.erase();
  }
  return copies;
}

/// What only goes forward reads working copies of the same parameters.
static void readWorkingCopies(func::FuncOp function) {
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return;
  SmallVector<DictionaryAttr> attributes;
  function.getAllArgAttrs(attributes);
  Block &block = function.getBody().front();
  DenseMap<Value, Value> copies = takeWorkingCopies(function, attributes);
  for (int64_t index = block.getNumArguments(); index-- > 0;)
    if (copies.contains(block.getArgument(index)) &&
        block.getArgument(index).use_empty()) {
      block.eraseArgument(index);
      attributes.erase(attributes.begin() + index);
    }
  function.setType(FunctionType::get(function.getContext(),
                                     block.getArgumentTypes(),
                                     function.getResultTypes()));
  function.setAllArgAttrs(attributes);
}

namespace {
/// A parameter, its gradient, and where the gradient is returned.
struct Trained {
  ParameterAttr parameter;
  Value value, gradient;
  Word word; ///< how the parameter is spread along `tp`
};

struct AddOptimizer : public autodiff::impl::AddOptimizerBase<AddOptimizer> {
  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<func::FuncOp>(kStepFunction);
    if (!step) {
      getOperation().emitError("needs a function @step to optimize");
      return signalPassFailure();
    }
    if (failed(check(step)) || failed(append(step)))
      return signalPassFailure();
    for (StringRef name : {kEvaluateFunction, kSampleFunction})
      if (auto other = getOperation().lookupSymbol<func::FuncOp>(name))
        readWorkingCopies(other);
  }

  LogicalResult check(func::FuncOp step);
  LogicalResult append(func::FuncOp step);
  FailureOr<double> getNumber(StringRef key);
  FailureOr<SmallVector<Trained>> findTrained(func::FuncOp step);
  void sumOverRanks(OpBuilder &builder, Location loc,
                    SmallVectorImpl<Trained> &trained, Value &loss,
                    SmallVectorImpl<Value> &results);
  Value makeNorm(OpBuilder &builder, Location loc, ArrayRef<Trained> trained);
};
} // namespace

LogicalResult AddOptimizer::check(func::FuncOp step) {
  if (!step.getBody().hasOneBlock())
    return step.emitError("needs one block to append to, but got ")
           << step.getBody().getBlocks().size();
  Block &block = step.getBody().front();
  if (!isa<func::ReturnOp>(block.getTerminator()))
    return block.getTerminator()->emitOpError(
        "needs to be the return of the gradients");
  for (auto update : block.getOps<UpdateOp>())
    return update.emitOpError("needs to be appended once, but is there before");
  for (BlockArgument argument : step.getArguments()) {
    auto input =
        step.getArgAttrOfType<StringAttr>(argument.getArgNumber(), kInputAttr);
    if (input &&
        (input.getValue() == kBorder || input.getValue() == kBorderGradient))
      return step.emitError(
          "needs the step of a whole model, since its norm is "
          "that of all gradients, but got that of a chunk");
  }
  if (!getOperation()->getAttrOfType<DictionaryAttr>(kTrainAttr))
    return getOperation().emitError(
        "needs the hyper-parameters, 'nn.train', on the module");
  return success();
}

FailureOr<double> AddOptimizer::getNumber(StringRef key) {
  auto train = getOperation()->getAttrOfType<DictionaryAttr>(kTrainAttr);
  auto number = train.getAs<FloatAttr>(key);
  if (!number)
    return getOperation().emitError("needs a number '")
           << key << "' in the module's 'nn.train'";
  return number.getValueAsDouble();
}

FailureOr<SmallVector<Trained>> AddOptimizer::findTrained(func::FuncOp step) {
  auto exit = cast<func::ReturnOp>(step.getBody().front().getTerminator());
  llvm::StringMap<Value> gradients;
  for (auto [index, value] : llvm::enumerate(exit.getOperands()))
    if (auto name = step.getResultAttrOfType<StringAttr>(index, kGradientAttr))
      gradients[name.getValue()] = value;
  SmallVector<Trained> trained;
  for (BlockArgument argument : step.getArguments()) {
    auto parameter = step.getArgAttrOfType<ParameterAttr>(
        argument.getArgNumber(), kParameterAttr);
    if (!parameter || parameter.getFrozen())
      continue;
    Value gradient = gradients.lookup(parameter.getName());
    if (!gradient)
      return step.emitError("needs a gradient of the parameter '")
             << parameter.getName() << "' among the results of @step";
    auto layout =
        step.getArgAttrOfType<LayoutAttr>(argument.getArgNumber(), kLayoutAttr);
    trained.push_back({parameter, argument, gradient,
                       layout ? layout.getWord(kTensorAxis) : Word::Invariant});
  }
  if (trained.empty())
    return step.emitError("needs a trainable parameter, but all are frozen");
  return trained;
}

/// The loss that the step returns, or null.
static Value findLoss(func::FuncOp step) {
  Operation *exit = step.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(exit->getOperands())) {
    auto output = step.getResultAttrOfType<StringAttr>(index, kOutputAttr);
    if (output && output.getValue() == "loss")
      return value;
  }
  return {};
}

/// Makes each of `parts` its sum over the ranks along `axis`, all in one
/// collective, and returns these sums in the place of the parts.
static void sumOver(StringRef axis, OpBuilder &builder, Location loc,
                    ArrayRef<Value *> parts, SmallVectorImpl<Value> &results) {
  if (parts.empty())
    return;
  SmallVector<Value> terms;
  for (Value *part : parts)
    terms.push_back(*part);
  auto sums =
      AllReduceOp::create(builder, loc, terms, builder.getStringAttr(axis));
  sums->setAttr(kScopeAttr, ScopeAttr::get(builder.getContext(), -1,
                                           "optimizer", "sum_over_ranks"));
  for (auto [part, sum] : llvm::zip_equal(parts, sums.getSums())) {
    llvm::replace(results, *part, Value(sum));
    *part = sum;
  }
}

/// Sums the gradients of parameters that ranks along `tp` use each in its own
/// way; and the loss and all gradients over the ranks that have samples of
/// their own. What the step returns are these sums.
void AddOptimizer::sumOverRanks(OpBuilder &builder, Location loc,
                                SmallVectorImpl<Trained> &trained, Value &loss,
                                SmallVectorImpl<Value> &results) {
  SmallVector<Value *> used, all;
  if (loss)
    all.push_back(&loss);
  for (Trained &one : trained) {
    all.push_back(&one.gradient);
    if (one.word == Word::Replicated)
      used.push_back(&one.gradient);
  }
  if (getAxisSize(getOperation(), kTensorAxis) > 1)
    sumOver(kTensorAxis, builder, loc, used, results);
  if (getAxisSize(getOperation(), kDataAxis) > 1)
    sumOver(kDataAxis, builder, loc, all, results);
}

/// The norm of all gradients, of which ranks along `tp` have parts: a whole one
/// counts once, and of the parts each rank gives their norm to the others.
Value AddOptimizer::makeNorm(OpBuilder &builder, Location loc,
                             ArrayRef<Trained> trained) {
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  int64_t ranks = getAxisSize(getOperation(), kTensorAxis);
  SmallVector<Value> whole, parts;
  for (const Trained &one : trained)
    (one.word == Word::Shard && ranks > 1 ? parts : whole)
        .push_back(one.gradient);
  if (!parts.empty()) {
    Value own = GlobalNormOp::create(builder, loc, scalar, parts);
    Value row = BroadcastOp::create(
        builder, loc, RankedTensorType::get({1}, scalar.getElementType()), own,
        builder.getF32FloatAttr(1.0f));
    whole.push_back(AllGatherOp::create(
        builder, loc, RankedTensorType::get({ranks}, scalar.getElementType()),
        row, Word::Invariant, kTensorAxis, /*dim=*/0));
    auto scope =
        ScopeAttr::get(builder.getContext(), -1, "optimizer", "norm_of_parts");
    for (Value value : {own, row, whole.back()})
      value.getDefiningOp()->setAttr(kScopeAttr, scope);
  }
  return GlobalNormOp::create(builder, loc, scalar, whole);
}

LogicalResult AddOptimizer::append(func::FuncOp step) {
  FailureOr<SmallVector<Trained>> trained = findTrained(step);
  FailureOr<double> beta1 = getNumber("adam_beta1");
  FailureOr<double> beta2 = getNumber("adam_beta2");
  FailureOr<double> eps = getNumber("adam_eps");
  FailureOr<double> weightDecay = getNumber("weight_decay");
  FailureOr<double> clip = getNumber("clip_grad");
  if (failed(trained) || failed(beta1) || failed(beta2) || failed(eps) ||
      failed(weightDecay) || failed(clip))
    return failure();

  OpBuilder builder(step.getContext());
  Location loc = step.getLoc();
  Block &block = step.getBody().front();
  auto exit = cast<func::ReturnOp>(block.getTerminator());
  SmallVector<Value> results(exit.getOperands());
  SmallVector<DictionaryAttr> resultAttributes;
  step.getAllResultAttrs(resultAttributes);
  // The signature is fitted at the end, at once: signatures are uniqued, and
  // there are thousands of arguments.
  SmallVector<DictionaryAttr> argumentAttributes;
  step.getAllArgAttrs(argumentAttributes);
  DenseMap<Value, Value> copies = takeWorkingCopies(step, argumentAttributes);
  auto addArgument = [&](Type type, StringRef role, StringRef name) -> Value {
    argumentAttributes.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr(role, builder.getStringAttr(name))));
    return block.addArgument(type, loc);
  };
  auto addResult = [&](Value value, StringRef role, StringRef name) {
    results.push_back(value);
    resultAttributes.push_back(builder.getDictionaryAttr(
        builder.getNamedAttr(role, builder.getStringAttr(name))));
  };

  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  Value lr = addArgument(scalar, kInputAttr, "lr");
  Value correction1 = addArgument(scalar, kInputAttr, "bias_correction1");
  Value correction2 = addArgument(scalar, kInputAttr, "bias_correction2");

  builder.setInsertionPoint(exit);
  UpdateOp::create(builder, loc);
  auto setScope = [&](Value value, StringRef name) {
    value.getDefiningOp()->setAttr(
        kScopeAttr,
        ScopeAttr::get(builder.getContext(), -1, "optimizer", name));
    return value;
  };
  Value loss = findLoss(step);
  sumOverRanks(builder, loc, *trained, loss, results);
  Value norm = setScope(makeNorm(builder, loc, *trained), "grad_norm");
  addResult(norm, kOutputAttr, "grad_norm");
  Value scale = ClipScaleOp::create(builder, loc, scalar, norm, loss,
                                    *clip > 0 ? builder.getF32FloatAttr(*clip)
                                              : FloatAttr());
  setScope(scale, "clip_scale");
  for (Trained &one : *trained) {
    StringRef name = one.parameter.getName();
    Value moment1 = addArgument(one.value.getType(), kMoment1Attr, name);
    Value moment2 = addArgument(one.value.getType(), kMoment2Attr, name);
    Value copy = copies.lookup(one.value);
    SmallVector<Type> types(3, one.value.getType());
    if (copy)
      types.push_back(copy.getType());
    auto adamw = AdamWOp::create(
        builder, loc, types, one.value, one.gradient, moment1, moment2, scale,
        lr, correction1, correction2, copy, builder.getF64FloatAttr(*beta1),
        builder.getF64FloatAttr(*beta2), builder.getF64FloatAttr(*eps),
        builder.getF64FloatAttr(one.parameter.getDecay() ? *weightDecay : 0.0));
    setScope(adamw.getNewParameter(), name);
    addResult(adamw.getNewParameter(), kParameterAttr, name);
    addResult(adamw.getNewMoment1(), kMoment1Attr, name);
    addResult(adamw.getNewMoment2(), kMoment2Attr, name);
    if (copy)
      addResult(adamw.getNewWorking(), kWorkingAttr, name);
  }
  exit->setOperands(results);
  step.setType(builder.getFunctionType(block.getArgumentTypes(),
                                       ValueRange(results).getTypes()));
  step.setAllArgAttrs(argumentAttributes);
  step.setAllResultAttrs(resultAttributes);
  return success();
}
