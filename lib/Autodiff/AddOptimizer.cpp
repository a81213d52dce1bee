//===- AddOptimizer.cpp - Append clipping and AdamW -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "reprise/Autodiff/Passes.h"
#include "reprise/Dialect/NN/Axes.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Phases.h"
#include "reprise/Dialect/NN/Schedules.h"
#include "reprise/Dialect/NN/Terms.h"
#include "reprise/Interfaces/Facts.h"
#include "reprise/Support/Borders.h"
#include "reprise/Support/Runs.h"
#include "reprise/Support/Shares.h"
#include "llvm/ADT/StringSet.h"

namespace reprise::autodiff {
#define GEN_PASS_DEF_ADDOPTIMIZER
#include "reprise/Autodiff/Passes.h.inc"
} // namespace reprise::autodiff

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

/// Turns casts of parameters, which would round them for each micro-batch, into
/// arguments: what the last update has rounded. Lookups round the few rows they
/// read themselves, so that a copy is for GEMMs, which may have it in an
/// order of their own. Returns the arguments by that of the parameter.
///
/// \param attributes  of all arguments; gets those of the new ones.
/// \param hasShares   lookups read a copy, if there is one: then ranks can have
///                    shares of the parameter itself.
static DenseMap<Value, Value>
takeWorkingCopies(func::FuncOp function, bool hasShares,
                  SmallVectorImpl<DictionaryAttr> &attributes) {
  Builder builder(function.getContext());
  Block &block = function.getBody().front();
  DenseMap<Value, Value> copies;
  for (auto rounding : llvm::make_early_inc_range(block.getOps<Rounding>())) {
    Value rounded = rounding->getResult(0);
    auto argument = dyn_cast<BlockArgument>(rounding.getRounded());
    auto parameter =
        argument ? attributes[argument.getArgNumber()].getAs<ParameterAttr>(
                       kParameterAttr)
                 : ParameterAttr();
    if (!parameter || !getElementTypeOrSelf(rounded).isBF16())
      continue;
    auto isLookup = [](OpOperand &use) {
      auto lookup = dyn_cast<Lookup>(use.getOwner());
      return lookup && use.getOperandNumber() == lookup.getTableNumber();
    };
    if (!hasShares || llvm::all_of(rounded.getUses(), isLookup))
      rounded.replaceUsesWithIf(argument, isLookup);
    if (rounded.use_empty()) {
      rounding.erase();
      continue;
    }
    Value &copy = copies[argument];
    if (!copy) {
      copy = block.addArgument(rounded.getType(), rounding.getLoc());
      attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
          kWorkingAttr, builder.getStringAttr(parameter.getName()))));
    }
    rounded.replaceAllUsesWith(copy);
    rounding.erase();
  }
  return copies;
}

/// What only goes forward reads working copies of the same parameters.
static void readWorkingCopies(func::FuncOp function, bool hasShares) {
  if (function.isExternal() || !function.getBody().hasOneBlock())
    return;
  SmallVector<DictionaryAttr> attributes;
  function.getAllArgAttrs(attributes);
  Block &block = function.getBody().front();
  DenseMap<Value, Value> copies =
      takeWorkingCopies(function, hasShares, attributes);
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

/// Erases sums of the runs of a rank where a sum over ranks has a term for each
/// run, and adds up all of them at once.
static void eraseUnusedSums(func::FuncOp step) {
  Block &block = step.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isa<RunningSum>(op) && isOpTriviallyDead(&op))
      op.erase();
}

/// Says of the sums that `push` puts aside all that `step` says of them.
static void takeSumsOf(func::FuncOp step, func::FuncOp push) {
  llvm::StringMap<DictionaryAttr> sums;
  auto getName = [](func::FuncOp function, unsigned index) {
    return function.getArgAttrOfType<StringAttr>(index, kGradientAttr);
  };
  for (unsigned index = 0; index < step.getNumArguments(); ++index)
    if (StringAttr name = getName(step, index))
      sums[name] = step.getArgAttrDict(index);
  for (unsigned index = 0; index < push.getNumArguments(); ++index)
    if (StringAttr name = getName(push, index))
      if (DictionaryAttr said = sums.lookup(name))
        push.setArgAttrs(index, said);
}

namespace {
/// A parameter, its gradient, and where the gradient is returned.
struct Trained {
  ParameterAttr parameter;
  Value value, gradient;
  /// How the parameter is spread over ranks that share the model, or null.
  LayoutAttr layout;
  /// The ranks that have all the same of it, each from samples of its own:
  /// those along `dp`, or with other experts there a part of that axis.
  StringRef axis;
  /// The rank's share of the parameter; null if it has all.
  RankedTensorType share;
  /// Its number among those of its kind in a model that stages share; -1 if
  /// another stage counts it.
  int64_t place;
  /// The stages that train it, if there are two; or null.
  DenseI64ArrayAttr sumStages;
  /// The argument that the gradient of micro-batches is added to, or null.
  BlockArgument sum;
};

/// Gradients of one kind, with their places among those that all stages have.
struct Counted {
  SmallVector<Value> gradients;
  SmallVector<int64_t> places;
  int64_t count = 0; ///< those of all stages
};

/// What updates of all parameters have in common.
struct AdamW {
  double beta1, beta2, eps, weightDecay;
  Value scale, lr, correction1, correction2;
};

/// The signature of the step as it grows. It is fitted at the end, at once:
/// signatures are uniqued, and there are thousands of arguments.
struct Signature {
  explicit Signature(func::FuncOp step)
      : step(step), block(step.getBody().front()), builder(step.getContext()),
        results(block.getTerminator()->getOperands()) {
    step.getAllArgAttrs(argumentAttributes);
    step.getAllResultAttrs(resultAttributes);
  }

  Value addArgument(Type type, StringRef role, StringRef name,
                    ArrayRef<int64_t> shareOf = {});
  void addResult(Value value, StringRef role, StringRef name);
  /// Says that ranks have shares of an argument, which has or had this shape.
  void setShareOf(unsigned index, ArrayRef<int64_t> shape);
  void finish();

  func::FuncOp step;
  Block &block;
  Builder builder;
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> argumentAttributes, resultAttributes;
};

struct AddOptimizer : public autodiff::impl::AddOptimizerBase<AddOptimizer> {
  void runOnOperation() override {
    auto step = getOperation().lookupSymbol<func::FuncOp>(kStepFunction);
    if (!step) {
      getOperation().emitError("needs a function @step to optimize");
      return signalPassFailure();
    }
    hasShares = getOperation()->hasAttr(kDistributedOptimizerAttr) &&
                (getAxisSize(getOperation(), kDataAxis) > 1 ||
                 getAxisSize(getOperation(), kExpertCopiesAxis) > 1);
    if (failed(check(step)))
      return signalPassFailure();
    for (StringRef name : {kEvaluateFunction, kSampleFunction})
      if (auto other = getOperation().lookupSymbol<func::FuncOp>(name))
        readWorkingCopies(other, hasShares);
    findReadBeside();
    if (failed(append(step)))
      return signalPassFailure();
    eraseUnusedSums(step);
    for (func::FuncOp other : getSchedules(getOperation()))
      if (getPushLevel(other))
        takeSumsOf(step, other);
  }

  LogicalResult check(func::FuncOp step);
  LogicalResult append(func::FuncOp step);
  FailureOr<double> getNumber(StringRef key);
  FailureOr<SmallVector<Trained>> findTrained(func::FuncOp step);
  void sumOverRanks(OpBuilder &builder, Location loc,
                    SmallVectorImpl<Trained> &trained, Value &loss,
                    MutableArrayRef<Value> measures,
                    SmallVectorImpl<Value> &results);
  void addTerms(OpBuilder &builder, Location loc, func::FuncOp step,
                llvm::StringMap<Value> &measures, Value &loss,
                SmallVectorImpl<Value> &results);
  void sumOverStages(OpBuilder &builder, Location loc,
                     MutableArrayRef<Trained> trained,
                     SmallVectorImpl<Value> &results);
  LogicalResult followMeasures(OpBuilder &builder, Location loc,
                               Signature &signature,
                               const llvm::StringMap<Value> &measures,
                               Value scale);
  Value makeNorm(OpBuilder &builder, Location loc, ArrayRef<Trained> trained);
  Value makeNormOfParts(OpBuilder &builder, Location loc, CutKind kind,
                        const Counted &parts);
  Value makeNormOf(OpBuilder &builder, Location loc, const Counted &kind,
                   StringRef axis);
  Value makeStagesNorm(OpBuilder &builder, Location loc, const Counted &kind,
                       StringRef axis);
  /// Whether ranks along `axis` have shares of what they all have.
  bool areShared(StringRef axis) {
    return hasShares && getAxisSize(getOperation(), axis) > 1;
  }
  /// Whether the step is that of a stage of a pipeline.
  bool isStage() { return getOperation()->hasAttr(kStageAttr); }
  void findReadBeside();
  void update(OpBuilder &builder, Location loc, Signature &signature,
              const Trained &one, Value copy, const AdamW &given);

  /// Whether ranks along `dp`, or with the same experts, have shares of the
  /// optimizer's state.
  bool hasShares = false;
  llvm::StringSet<> readBeside;
};
} // namespace

//===----------------------------------------------------------------------===//
// The signature
//===----------------------------------------------------------------------===//

Value Signature::addArgument(Type type, StringRef role, StringRef name,
                             ArrayRef<int64_t> shareOf) {
  argumentAttributes.push_back(builder.getDictionaryAttr(
      builder.getNamedAttr(role, builder.getStringAttr(name))));
  Value argument = block.addArgument(type, step.getLoc());
  if (!shareOf.empty())
    setShareOf(argumentAttributes.size() - 1, shareOf);
  return argument;
}

void Signature::addResult(Value value, StringRef role, StringRef name) {
  results.push_back(value);
  resultAttributes.push_back(builder.getDictionaryAttr(
      builder.getNamedAttr(role, builder.getStringAttr(name))));
}

void Signature::setShareOf(unsigned index, ArrayRef<int64_t> shape) {
  NamedAttrList attributes(argumentAttributes[index]);
  attributes.set(kShareOfAttr, builder.getDenseI64ArrayAttr(shape));
  argumentAttributes[index] = attributes.getDictionary(builder.getContext());
}

void Signature::finish() {
  block.getTerminator()->setOperands(results);
  step.setType(builder.getFunctionType(block.getArgumentTypes(),
                                       ValueRange(results).getTypes()));
  step.setAllArgAttrs(argumentAttributes);
  step.setAllResultAttrs(resultAttributes);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// A term is measured, and so is the number that it is a term of.
static LogicalResult checkTerms(func::FuncOp step) {
  auto scalar = RankedTensorType::get({}, Float32Type::get(step.getContext()));
  auto get = [&](unsigned index, StringRef attribute) {
    return step.getResultAttrOfType<StringAttr>(index, attribute);
  };
  llvm::StringMap<Type> measures;
  for (unsigned index = 0; index < step.getNumResults(); ++index)
    if (StringAttr name = get(index, kMeasureAttr))
      measures[name.getValue()] = step.getResultTypes()[index];
  for (unsigned index = 0; index < step.getNumResults(); ++index)
    if (StringAttr total = get(index, kTermAttr);
        total && (!get(index, kMeasureAttr) ||
                  measures.lookup(total.getValue()) != scalar))
      return step.emitError("needs result #")
             << index << " to be a measure, as a term of '" << total.getValue()
             << "', and that to be one, a tensor<f32>";
  return success();
}

LogicalResult AddOptimizer::check(func::FuncOp step) {
  if (!step.getBody().hasOneBlock())
    return step.emitError("needs one block to append to, but got ")
           << step.getBody().getBlocks().size();
  Block &block = step.getBody().front();
  if (!isa<func::ReturnOp>(block.getTerminator()))
    return block.getTerminator()->emitOpError(
        "needs to be the return of the gradients");
  for (auto update : block.getOps<ParameterUpdate>())
    return update->emitOpError(
        "needs to be appended once, but is there before");
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
  return checkTerms(step);
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
  llvm::StringMap<BlockArgument> sums;
  for (BlockArgument argument : step.getArguments())
    if (auto name = step.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      kGradientAttr))
      sums[name.getValue()] = argument;
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
    auto order = step.getArgAttrOfType<DenseI64ArrayAttr>(
        argument.getArgNumber(), kOrderAttr);
    auto type = cast<RankedTensorType>(argument.getType());
    StringRef axis = getSamplesAxis(layout);
    RankedTensorType share;
    if (areShared(axis))
      share = type.clone({getShareSize(type.getNumElements(),
                                       getAxisSize(getOperation(), axis))});
    trained.push_back({parameter, argument, gradient, layout, axis, share,
                       order ? order[1] : -1,
                       step.getArgAttrOfType<DenseI64ArrayAttr>(
                           argument.getArgNumber(), kSumStagesAttr),
                       sums.lookup(parameter.getName())});
  }
  // Of a stage all may be: it counts nothing in the norm of all stages.
  if (trained.empty() && !isStage())
    return step.emitError("needs a trainable parameter, but all are frozen");
  return trained;
}

static Value setScope(Value value, StringRef name) {
  Operation *op = value.getDefiningOp();
  op->setAttr(kScopeAttr,
              ScopeAttr::get(op->getContext(), -1, "optimizer", name));
  return value;
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

/// What the step returns to show, in its order, and the names of these.
static void findMeasures(func::FuncOp step, SmallVectorImpl<Value> &values,
                         SmallVectorImpl<StringRef> &names) {
  Operation *exit = step.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(exit->getOperands()))
    if (auto name = step.getResultAttrOfType<StringAttr>(index, kMeasureAttr)) {
      values.push_back(value);
      names.push_back(name.getValue());
    }
}

/// Whether sums of groups of micro-batches were put aside in `value`.
static bool isPartial(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument) // In the step of a stage.
    return isa<InPlaceUpdate>(value.getDefiningOp()) &&
           isa<SumCarrier>(value.getDefiningOp());
  auto step = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return step && step.getArgAttr(argument.getArgNumber(), kPartialAttr);
}

/// The terms of `sum` that ranks have branches of, one for each run of their
/// groups, which were added from the last run on; `sum` alone where nothing is
/// added to it in this stage.
static SmallVector<Value> getRuns(Value sum, int64_t groups) {
  SmallVector<Value> runs;
  Value last = sum;
  for (int64_t left = getNumRuns(groups); left > 1; --left) {
    auto more = last.getDefiningOp<RunningSum>();
    if (!more || !isPartial(more.getTerm()))
      return {sum};
    runs.push_back(more.getTerm());
    last = more.getSum();
  }
  runs.push_back(last);
  return runs;
}

/// Makes each of `parts` its sum over the ranks along `axis`, or the rank's
/// share of that, all in one collective, and returns these in the place of the
/// parts. Of each a rank has a term for each run of `groups`.
template <typename SumOp>
static void sumTerms(StringRef axis, OpBuilder &builder, Location loc,
                     ArrayRef<Value *> parts, SmallVectorImpl<Value> &results,
                     int64_t groups) {
  if (parts.empty())
    return;
  SmallVector<Value> terms(parts.size() * getNumRuns(groups));
  SmallVector<Type> types;
  for (auto [number, part] : llvm::enumerate(parts)) {
    types.push_back(part->getType());
    for (auto [run, term] : llvm::enumerate(getRuns(*part, groups)))
      terms[run * parts.size() + number] = term;
  }
  SmallVector<NamedAttribute> attributes = {
      builder.getNamedAttr("axis", builder.getStringAttr(axis))};
  if (terms.size() > parts.size())
    attributes.push_back(builder.getNamedAttr(
        kReductionGroupsAttr, builder.getI64IntegerAttr(groups)));
  auto sums = SumOp::create(builder, loc, types, terms, attributes);
  sums->setAttr(kScopeAttr, ScopeAttr::get(builder.getContext(), -1,
                                           "optimizer", "sum_over_ranks"));
  for (auto [part, sum] : llvm::zip_equal(parts, sums.getSums())) {
    llvm::replace(results, *part, Value(sum));
    *part = sum;
  }
}

/// Sums those of `parts` that have a term for each run of `groups`, and then
/// the others.
template <typename SumOp>
static void sumOver(StringRef axis, OpBuilder &builder, Location loc,
                    ArrayRef<Value *> parts, SmallVectorImpl<Value> &results,
                    int64_t groups = 1) {
  SmallVector<Value *> inRuns, others;
  for (Value *part : parts)
    (getRuns(*part, groups).size() > 1 ? inRuns : others).push_back(part);
  sumTerms<SumOp>(axis, builder, loc, inRuns, results, groups);
  sumTerms<SumOp>(axis, builder, loc, others, results, /*groups=*/1);
}

/// Whether each micro-batch has added what all ranks have to `sum`.
static bool isOfAllRanks(Value sum) {
  auto running = sum.getDefiningOp<RunningSum>();
  Operation *term = running ? running.getTerm().getDefiningOp() : nullptr;
  return term && isCollective(term) &&
         term->getAttrOfType<StringAttr>("axis") == kDataAxis;
}

/// Sums the loss, measures and all gradients over the ranks that have samples
/// of their own; and then the gradients of parameters that ranks along another
/// axis, or another stage, use in their own ways. In this order sums over
/// samples are the same, whichever ranks have them. What the step returns are
/// these sums.
void AddOptimizer::sumOverRanks(OpBuilder &builder, Location loc,
                                SmallVectorImpl<Trained> &trained, Value &loss,
                                MutableArrayRef<Value> measures,
                                SmallVectorImpl<Value> &results) {
  const int64_t groups = getReductionGroups(
      getOperation().lookupSymbol<func::FuncOp>(kStepFunction));
  SmallVector<Value *> numbers;
  if (loss)
    numbers.push_back(&loss);
  for (Value &measure : measures)
    if (!isOfAllRanks(measure))
      numbers.push_back(&measure);
  for (StringRef axis : {kDataAxis, kExpertCopiesAxis}) {
    if (getAxisSize(getOperation(), axis) == 1)
      continue;
    SmallVector<Value *> all, shared;
    if (axis == kDataAxis)
      all = numbers;
    for (Trained &one : trained)
      if (one.axis == axis)
        (one.share ? shared : all).push_back(&one.gradient);
    sumOver<AllReduceOp>(axis, builder, loc, all, results, groups);
    sumOver<ReduceSharesOp>(axis, builder, loc, shared, results, groups);
  }
  for (StringRef axis : kMeshAxes) {
    if (getAxisSize(getOperation(), axis) == 1 || axis == kExpertCopiesAxis)
      continue;
    SmallVector<Value *> used;
    for (Trained &one : trained)
      if (one.layout && one.layout.getWord(axis) == Word::Replicated)
        used.push_back(&one.gradient);
    sumOver<AllReduceOp>(axis, builder, loc, used, results);
  }
  if (!isStage())
    return;
  sumOverStages(builder, loc, trained, results);
  // One stage has the loss, or what is measured, and others zero.
  SmallVector<Value *> shown;
  if (loss)
    shown.push_back(&loss);
  for (Value &measure : measures)
    shown.push_back(&measure);
  sumOver<AllReduceOp>(kPipeAxis, builder, loc, shown, results);
}

/// Adds the terms that are measured by themselves, in the order in which the
/// step returns them, to the measures that they are of, and to the loss.
void AddOptimizer::addTerms(OpBuilder &builder, Location loc, func::FuncOp step,
                            llvm::StringMap<Value> &measures, Value &loss,
                            SmallVectorImpl<Value> &results) {
  llvm::MapVector<StringAttr, Value> sums;
  for (unsigned index = 0; index < step.getNumResults(); ++index)
    if (auto total = step.getResultAttrOfType<StringAttr>(index, kTermAttr)) {
      auto name = step.getResultAttrOfType<StringAttr>(index, kMeasureAttr);
      Value term = measures.lookup(name.getValue()), &sum = sums[total];
      sum =
          sum ? setScope(AddOp::create(builder, loc, sum, term), total) : term;
    }
  auto add = [&](Value &to, Value term, StringRef name) {
    Value sum = setScope(AccumulateOp::create(builder, loc, to, term), name);
    llvm::replace(results, to, sum);
    to = sum;
  };
  for (auto [total, sum] : sums) {
    add(measures[total.getValue()], sum, total);
    if (loss)
      add(loss, sum, "loss");
  }
}

/// Sums the gradients of what two stages train.
void AddOptimizer::sumOverStages(OpBuilder &builder, Location loc,
                                 MutableArrayRef<Trained> trained,
                                 SmallVectorImpl<Value> &results) {
  SmallVector<Value> terms;
  SmallVector<Trained *> tied;
  for (Trained &one : trained)
    if (one.sumStages) {
      tied.push_back(&one);
      terms.push_back(one.gradient);
    }
  if (tied.empty())
    return;
  auto sums = AllReduceOp::create(builder, loc, ValueRange(terms).getTypes(),
                                  terms, builder.getStringAttr(kPipeAxis),
                                  tied.front()->sumStages);
  sums->setAttr(kScopeAttr, ScopeAttr::get(builder.getContext(), -1,
                                           "optimizer", "sum_over_stages"));
  for (auto [one, sum] : llvm::zip_equal(tied, sums.getSums())) {
    llvm::replace(results, one->gradient, Value(sum));
    one->gradient = sum;
  }
}

/// Of gradients with their places among so many: of those that are the stage's
/// to count.
Value AddOptimizer::makeStagesNorm(OpBuilder &builder, Location loc,
                                   const Counted &kind, StringRef axis) {
  SmallVector<std::pair<int64_t, Value>> counted;
  for (auto [place, gradient] : llvm::zip_equal(kind.places, kind.gradients))
    if (place >= 0)
      counted.push_back({place, gradient});
  llvm::sort(counted, llvm::less_first());
  SmallVector<Value> values;
  SmallVector<int64_t> ascending;
  for (auto [place, gradient] : counted) {
    values.push_back(gradient);
    ascending.push_back(place);
  }
  auto norm = StagesNormOp::create(
      builder, loc, RankedTensorType::get({}, builder.getF32Type()), values,
      builder.getDenseI64ArrayAttr(ascending),
      builder.getI64IntegerAttr(kind.count), builder.getStringAttr(kPipeAxis));
  if (areShared(axis))
    norm->setAttr(kSharesAttr, builder.getStringAttr(axis));
  return norm;
}

/// The norm of gradients of which ranks along `axis` all have the sum, or
/// shares, and stages some.
Value AddOptimizer::makeNormOf(OpBuilder &builder, Location loc,
                               const Counted &kind, StringRef axis) {
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  if (isStage())
    return makeStagesNorm(builder, loc, kind, axis);
  if (areShared(axis))
    return SharesNormOp::create(builder, loc, scalar, kind.gradients,
                                builder.getStringAttr(axis));
  return GlobalNormOp::create(builder, loc, scalar, kind.gradients);
}

/// `value`, or the rank's share of it.
static Value takeShare(OpBuilder &builder, Location loc, Value value,
                       StringRef axis, RankedTensorType share, StringRef name) {
  if (!share || !value)
    return value;
  Type type = share.clone(getElementTypeOrSelf(value));
  return setScope(TakeShareOp::create(builder, loc, type, value, axis).getOut(),
                  name);
}

/// The norms of the parts of this kind that ranks have of gradients, on all of
/// these ranks.
Value AddOptimizer::makeNormOfParts(OpBuilder &builder, Location loc,
                                    CutKind kind, const Counted &parts) {
  ArrayRef<StringLiteral> axes = getAxes(kind);
  StringRef name = "norm_of_parts";
  Value own = setScope(
      makeNormOf(builder, loc, parts, getSamplesAxis(axes.back())), name);
  Type element = builder.getF32Type();
  auto type = RankedTensorType::get({1}, element);
  Value all = setScope(BroadcastOp::create(builder, loc, type, own,
                                           builder.getF32FloatAttr(1.0f)),
                       name);
  for (StringRef axis : axes) {
    type =
        type.clone({type.getNumElements() * getAxisSize(getOperation(), axis)});
    all = setScope(AllGatherOp::create(builder, loc, type, all, Word::Invariant,
                                       axis, /*dim=*/0),
                   name);
  }
  // All ranks along `dp` have it, and the first counts it: its share is all.
  return areShared(kDataAxis)
             ? takeShare(builder, loc, all, kDataAxis, type, "norm_of_parts")
             : all;
}

/// The norm of all gradients, of which ranks that share a model have parts: a
/// whole one counts once, and of the parts each rank gives their norm to the
/// others.
Value AddOptimizer::makeNorm(OpBuilder &builder, Location loc,
                             ArrayRef<Trained> trained) {
  Counted kinds[kNumCutKinds]; // Whole ones are the first kind.
  for (const Trained &one : trained) {
    Counted &kind = kinds[int(getCutKind(getOperation(), one.layout))];
    kind.gradients.push_back(one.gradient);
    kind.places.push_back(one.place);
    ++kind.count;
  }
  if (auto counts =
          getOperation()->getAttrOfType<DenseI64ArrayAttr>(kGradientCountsAttr))
    for (auto [kind, count] : llvm::zip_equal(kinds, counts.asArrayRef()))
      kind.count = count;
  auto stage = getOperation()->getAttrOfType<IntegerAttr>(kStageAttr);
  Counted &whole = kinds[0];
  for (int kind = 1; kind < kNumCutKinds; ++kind) {
    if (kinds[kind].count == 0)
      continue;
    whole.gradients.push_back(
        makeNormOfParts(builder, loc, CutKind(kind), kinds[kind]));
    // All stages have it, too, and the first counts it.
    whole.places.push_back(stage && stage.getInt() == 0 ? whole.count : -1);
    ++whole.count;
  }
  return makeNormOf(builder, loc, whole, kDataAxis);
}

/// Notes the parameters that a schedule beside the step reads themselves.
void AddOptimizer::findReadBeside() {
  readBeside.clear(); // A pass runs on one module after another.
  for (StringRef name : {kEvaluateFunction, kSampleFunction}) {
    auto other = getOperation().lookupSymbol<func::FuncOp>(name);
    for (unsigned index = 0; other && index < other.getNumArguments(); ++index)
      if (auto parameter =
              other.getArgAttrOfType<ParameterAttr>(index, kParameterAttr);
          parameter &&
          !(other.isExternal() || other.getArgument(index).use_empty()))
        readBeside.insert(parameter.getName());
  }
}

/// What all ranks have of `value` in place of `whole`: that itself, unless it
/// is a share.
static Value gatherShares(OpBuilder &builder, Location loc, Value value,
                          Value whole, StringRef axis, RankedTensorType share,
                          StringRef name) {
  if (!share)
    return value;
  return setScope(
      GatherSharesOp::create(builder, loc, whole.getType(), value, whole, axis)
          .getOut(),
      name);
}

/// Updates a parameter and its working copy, if it has one. Of a parameter that
/// nothing but this reads then, a rank with a share of the moments has the same
/// share.
void AddOptimizer::update(OpBuilder &builder, Location loc,
                          Signature &signature, const Trained &one, Value copy,
                          const AdamW &given) {
  StringRef name = one.parameter.getName();
  auto whole = cast<RankedTensorType>(one.value.getType());
  RankedTensorType type = one.share ? one.share : whole;
  ArrayRef<int64_t> shareOf;
  if (one.share)
    shareOf = whole.getShape();
  bool isOwn =
      one.share && copy && one.value.use_empty() && !readBeside.contains(name);
  if (isOwn) {
    auto argument = cast<BlockArgument>(one.value);
    argument.setType(one.share);
    signature.setShareOf(argument.getArgNumber(), shareOf);
  }
  if (one.share && one.sum)
    signature.setShareOf(one.sum.getArgNumber(), shareOf);
  Value moment1 = signature.addArgument(type, kMoment1Attr, name, shareOf);
  Value moment2 = signature.addArgument(type, kMoment2Attr, name, shareOf);
  Value value =
      isOwn ? one.value
            : takeShare(builder, loc, one.value, one.axis, one.share, name);
  Value gradient =
      takeShare(builder, loc, one.gradient, one.axis, one.share, name);
  Value working = takeShare(builder, loc, copy, one.axis, one.share, name);
  SmallVector<Type> types(3, type);
  if (copy)
    types.push_back(working.getType());
  auto adamw = AdamWOp::create(
      builder, loc, types, value, gradient, moment1, moment2, given.scale,
      given.lr, given.correction1, given.correction2, working,
      builder.getF64FloatAttr(given.beta1),
      builder.getF64FloatAttr(given.beta2), builder.getF64FloatAttr(given.eps),
      builder.getF64FloatAttr(one.parameter.getDecay() ? given.weightDecay
                                                       : 0.0));
  setScope(adamw.getNewParameter(), name);
  signature.addResult(
      gatherShares(builder, loc, adamw.getNewParameter(), one.value, one.axis,
                   isOwn ? RankedTensorType() : one.share, name),
      kParameterAttr, name);
  signature.addResult(adamw.getNewMoment1(), kMoment1Attr, name);
  signature.addResult(adamw.getNewMoment2(), kMoment2Attr, name);
  if (copy)
    signature.addResult(gatherShares(builder, loc, adamw.getNewWorking(), copy,
                                     one.axis, one.share, name),
                        kWorkingAttr, name);
}

/// Changes the biases that follow a measure, behind the last micro-batch: what
/// ranks have counted is added up by then.
LogicalResult AddOptimizer::followMeasures(
    OpBuilder &builder, Location loc, Signature &signature,
    const llvm::StringMap<Value> &measures, Value scale) {
  for (BlockArgument argument : signature.block.getArguments()) {
    DictionaryAttr attributes =
        signature.argumentAttributes[argument.getArgNumber()];
    auto measure = attributes.getAs<StringAttr>(kFollowsAttr);
    if (!measure)
      continue;
    auto parameter = attributes.getAs<ParameterAttr>(kParameterAttr);
    Value rows = measures.lookup(measure.getValue());
    if (!parameter || !parameter.getFrozen() || !rows ||
        rows.getType() != argument.getType())
      return signature.step.emitError("needs '")
             << kFollowsAttr << "' on a frozen parameter, and a measure "
             << measure << " of its type, but argument #"
             << argument.getArgNumber() << " is " << argument.getType();
    FailureOr<double> rate = getNumber(kBiasUpdateRate);
    if (failed(rate))
      return failure();
    auto balance =
        BalanceBiasOp::create(builder, loc, argument.getType(), argument, rows,
                              scale, builder.getF32FloatAttr(*rate));
    signature.addResult(setScope(balance, parameter.getName()), kParameterAttr,
                        parameter.getName());
  }
  return success();
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
  Signature signature(step);
  DenseMap<Value, Value> copies =
      takeWorkingCopies(step, hasShares, signature.argumentAttributes);
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  AdamW adamw = {*beta1, *beta2, *eps, *weightDecay, {}, {}, {}, {}};
  adamw.lr = signature.addArgument(scalar, kInputAttr, "lr");
  adamw.correction1 =
      signature.addArgument(scalar, kInputAttr, "bias_correction1");
  adamw.correction2 =
      signature.addArgument(scalar, kInputAttr, "bias_correction2");

  builder.setInsertionPoint(step.getBody().front().getTerminator());
  if (!findPhase(step, StepPhase::Update))
    UpdateOp::create(builder, loc);
  Value loss = findLoss(step);
  SmallVector<Value> measured;
  SmallVector<StringRef> names;
  findMeasures(step, measured, names);
  sumOverRanks(builder, loc, *trained, loss, measured, signature.results);
  llvm::StringMap<Value> measures;
  for (auto [name, value] : llvm::zip_equal(names, measured))
    measures[name] = value;
  addTerms(builder, loc, step, measures, loss, signature.results);
  Value norm = setScope(makeNorm(builder, loc, *trained), "grad_norm");
  signature.addResult(norm, kOutputAttr, "grad_norm");
  adamw.scale =
      setScope(ClipScaleOp::create(builder, loc, scalar, norm, loss,
                                   *clip > 0 ? builder.getF32FloatAttr(*clip)
                                             : FloatAttr()),
               "clip_scale");
  for (Trained &one : *trained)
    update(builder, loc, signature, one, copies.lookup(one.value), adamw);
  if (failed(followMeasures(builder, loc, signature, measures, adamw.scale)))
    return failure();
  signature.finish();
  return success();
}
