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
#include "reprise/Interfaces/Facts.h"

namespace reprise::autodiff {
#define GEN_PASS_DEF_DERIVEINFERENCE
#include "reprise/Autodiff/Passes.h.inc"
} // namespace reprise::autodiff

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

namespace {
/// Values that are made of the tokens text by text.
struct Texts {
  DenseSet<Value> values;
  /// Of first dimensions, with all texts: what they are with one.
  DenseMap<int64_t, int64_t> lengthOfOne;

  bool contains(Value value) const { return values.contains(value); }
};

/// A function of those ops of `@forward` that some of its values need, without
/// dropout. The arguments that they read are its own.
class Copy {
public:
  /// `texts` become one text, and the tokens an input of its own.
  Copy(func::FuncOp forward, StringRef name, const Texts &texts);

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
  void takeArgument(BlockArgument argument);
  void takeOp(Operation *op);

  RankedTensorType getTypeOfOne(Type type) const;

  func::FuncOp forward;
  Texts texts;
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
    LinearOp head = findHead(forward);
    Texts texts = findTexts(forward, head);
    if (head && texts.contains(head.getInput()))
      deriveSample(forward, head, texts);
    deriveEvaluate(forward);
  }

  LogicalResult check(func::FuncOp forward);
  LinearOp findHead(func::FuncOp forward);
  Texts findTexts(func::FuncOp forward, LinearOp head);
  void deriveEvaluate(func::FuncOp forward);
  void deriveSample(func::FuncOp forward, LinearOp head, const Texts &texts);
};
} // namespace

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// `type` with one text in place of all.
RankedTensorType Copy::getTypeOfOne(Type type) const {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[0] = texts.lengthOfOne.lookup(shape[0]);
  return tensor.clone(shape);
}

Copy::Copy(func::FuncOp forward, StringRef name, const Texts &texts)
    : forward(forward), texts(texts), builder(forward.getContext()) {
  builder.setInsertionPointAfter(forward);
  function = func::FuncOp::create(builder, forward.getLoc(), name,
                                  builder.getFunctionType({}, {}));
  body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
}

/// The operand that `op` passes on as it is, or null.
static Value getPassedOn(Operation *op) {
  auto form = dyn_cast<InferenceForm>(op);
  return form ? form.getPassedOn() : Value();
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
    if (Value passed = getPassedOn(&op))
      needed.insert(passed);
    else
      needed.insert(op.operand_begin(), op.operand_end());
  }
  for (BlockArgument argument : block.getArguments())
    if (needed.contains(argument))
      takeArgument(argument);
  for (Operation *op : llvm::reverse(ops))
    takeOp(op);
}

void Copy::takeArgument(BlockArgument argument) {
  if (texts.contains(argument)) {
    mapping.map(argument, addArgument(getTypeOfOne(argument.getType()),
                                      kInputAttr, "sample_tokens"));
    return;
  }
  argumentAttributes.push_back(forward.getArgAttrDict(argument.getArgNumber()));
  mapping.map(argument,
              body->addArgument(argument.getType(), argument.getLoc()));
}

void Copy::takeOp(Operation *op) {
  if (Value passed = getPassedOn(op)) {
    mapping.map(op->getResult(0), mapping.lookup(passed));
    return;
  }
  Operation *copy = builder.clone(*op, mapping);
  if (auto rows = dyn_cast<TextRows>(op);
      rows && texts.contains(rows.getTextResults().front()))
    cast<TextRows>(copy).setOneText();
  if (auto form = dyn_cast<InferenceForm>(copy))
    form.setInference();
  for (OpResult result : op->getResults())
    if (texts.contains(result))
      copy->getResult(result.getResultNumber())
          .setType(getTypeOfOne(result.getType()));
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
  unsigned count = exit ? exit.getNumOperands() : 0;
  auto isMeasure = [&](unsigned index) {
    return bool(forward.getResultAttr(index, kMeasureAttr));
  };
  if (count < 1 || !llvm::all_of(llvm::seq(1u, count), isMeasure))
    return last->emitOpError(
        "needs to be the return of the loss, and behind it of measures alone");
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

/// The tokens and all that is made of them in front of `head` text by text,
/// which ops do with the first dimension of what they read; nothing if one op
/// does not. Rows that are sorted by their expert are as many for each text.
Texts DeriveInference::findTexts(func::FuncOp forward, LinearOp head) {
  Texts texts;
  int64_t count = 1;
  for (BlockArgument argument : forward.getArguments()) {
    auto role = forward.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                     kInputAttr);
    if (!role || role != "tokens")
      continue;
    count = cast<ShapedType>(argument.getType()).getDimSize(0);
    texts.lengthOfOne.try_emplace(count, 1);
    texts.values.insert(argument);
  }
  auto isText = [&](Value value) { return texts.contains(value); };
  for (Operation &op : forward.getBody().front()) {
    if (&op == head.getOperation())
      break;
    if (llvm::none_of(op.getOperands(), isText))
      continue;
    if (auto rows = dyn_cast<TextRows>(op)) {
      SmallVector<Value> results = rows.getTextResults();
      texts.values.insert_range(results);
      int64_t ofOne = rows.getNumTextRows() / count;
      auto [known, isNew] = texts.lengthOfOne.try_emplace(
          cast<ShapedType>(results.front().getType()).getDimSize(0), ofOne);
      if (!isNew && known->second != ofOne)
        return Texts();
      continue;
    }
    if (op.hasTrait<OpTrait::SameOperandsAndResultType>() &&
        !llvm::all_of(op.getOperands(), isText))
      return Texts();
    for (Value result : op.getResults())
      if (auto type = dyn_cast<RankedTensorType>(result.getType());
          type && type.getRank() > 0 &&
          texts.lengthOfOne.contains(type.getDimSize(0)))
        texts.values.insert(result);
  }
  return texts;
}

void DeriveInference::deriveEvaluate(func::FuncOp forward) {
  Value loss = forward.getBody().front().getTerminator()->getOperand(0);
  Copy copy(forward, kEvaluateFunction, Texts());
  copy.take(loss);
  copy.finish(copy.get(loss), "eval_loss");
}

/// The ranks that have columns of what `linear` makes.
static int64_t countParts(func::FuncOp forward, LinearOp linear) {
  Value weight = linear.getWeight();
  while (auto rounding = weight.getDefiningOp<Rounding>())
    weight = rounding.getRounded();
  auto argument = dyn_cast<BlockArgument>(weight);
  auto layout = argument ? forward.getArgAttrOfType<LayoutAttr>(
                               argument.getArgNumber(), kLayoutAttr)
                         : LayoutAttr();
  int64_t dim = linear.getLayout() == WeightLayout::InOut ? 1 : 0;
  return layout && layout.getShardDim(kTensorAxis) == dim
             ? getAxisSize(forward->getParentOfType<ModuleOp>(), kTensorAxis)
             : 1;
}

/// Of what moves a value of `scope`, which keeps the name.
static ScopeAttr getMoveScope(ScopeAttr scope) {
  return ScopeAttr::get(scope.getContext(), scope.getLayer(), scope.getModule(),
                        "");
}

void DeriveInference::deriveSample(func::FuncOp forward, LinearOp head,
                                   const Texts &texts) {
  auto input = cast<RankedTensorType>(head.getInput().getType());
  auto output = cast<RankedTensorType>(head.getOut().getType());
  Copy copy(forward, kSampleFunction, texts);
  SmallVector<Value> operands(head->getOperands());
  copy.take(operands);
  Value position =
      copy.addArgument(RankedTensorType::get(1, copy.getBuilder().getI32Type()),
                       kInputAttr, "position");
  ScopeAttr scope = getScope(head);
  Value last = copy.create<TakePositionOp>(
      head.getLoc(),
      ScopeAttr::get(&getContext(), scope.getLayer(), scope.getModule(),
                     "position"),
      input.clone({1, input.getDimSize(2)}), copy.get(head.getInput()),
      position);
  Value logits = copy.create<LinearOp>(
      head.getLoc(), scope, output.clone({1, output.getDimSize(2)}), last,
      copy.get(head.getWeight()),
      head.getBias() ? copy.get(head.getBias()) : Value(), head.getLayout());
  // Whoever draws a word from them reads f32.
  auto shown = RankedTensorType::get({1, output.getDimSize(2)},
                                     copy.getBuilder().getF32Type());
  if (logits.getType() != shown)
    logits = copy.create<CastOp>(head.getLoc(), scope, shown, logits);
  // Ranks that each have the logits of some words show those of all.
  if (int64_t ranks = countParts(forward, head); ranks > 1)
    logits = copy.create<AllGatherOp>(
        head.getLoc(), getMoveScope(scope),
        shown.clone({1, output.getDimSize(2) * ranks}), logits, Word::Invariant,
        kTensorAxis, /*dim=*/1);
  copy.finish(logits, "logits");
}
