//===- GroupGradients.cpp - Sums over groups of micro-batches ---*- C++ -*-===//
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
#include "reprise/Dialect/NN/Phases.h"
#include "reprise/Dialect/NN/Schedules.h"
#include "reprise/Support/Modules.h"

namespace reprise::autodiff {
#define GEN_PASS_DEF_GROUPGRADIENTS
#include "reprise/Autodiff/Passes.h.inc"
} // namespace reprise::autodiff

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

namespace {
/// What each micro-batch adds to.
struct Sum {
  std::string name; ///< the parameter's or measure's, or "loss"
  unsigned result;  ///< of the step
  RankedTensorType type;
  /// Of the argument, and of what replaces it.
  DictionaryAttr before, after;

  PartialAttr getPartial(unsigned level) const {
    return PartialAttr::get(type.getContext(), name, level);
  }
};

struct GroupGradients
    : public autodiff::impl::GroupGradientsBase<GroupGradients> {
  void runOnOperation() override;
};
} // namespace

/// The sums that `step` returns.
static SmallVector<Sum> findSums(func::FuncOp step) {
  Builder builder(step.getContext());
  auto get = [&](StringRef attribute, StringAttr value) {
    return builder.getDictionaryAttr(builder.getNamedAttr(attribute, value));
  };
  SmallVector<Sum> sums;
  for (unsigned index = 0; index < step.getNumResults(); ++index) {
    auto type = dyn_cast<RankedTensorType>(step.getResultTypes()[index]);
    auto name = step.getResultAttrOfType<StringAttr>(index, kGradientAttr);
    auto output = step.getResultAttrOfType<StringAttr>(index, kOutputAttr);
    auto measure = step.getResultAttrOfType<StringAttr>(index, kMeasureAttr);
    if (type && measure)
      sums.push_back({measure.str(), index, type, get(kMeasureAttr, measure),
                      get(kMeasureAttr, measure)});
    else if (type && name)
      sums.push_back({name.str(), index, type, get(kGradientAttr, name),
                      get(kGradientAttr, name)});
    else if (type && output && output == "loss")
      sums.push_back({"loss", index, type,
                      get(kInputAttr, builder.getStringAttr("loss_sum")),
                      get(kOutputAttr, output)});
  }
  return sums;
}

/// Below a new nn.update, adds to what `step` returns the partial sums that
/// still wait, which become arguments, from those of the fewest groups on.
static void addWaiting(func::FuncOp step, ArrayRef<Sum> sums, int64_t groups) {
  OpBuilder builder(step.getContext());
  Block &block = step.getBody().front();
  Operation *exit = block.getTerminator();
  builder.setInsertionPoint(exit);
  UpdateOp::create(builder, step.getLoc());
  SmallVector<DictionaryAttr> attributes;
  step.getAllArgAttrs(attributes);
  auto scope = ScopeAttr::get(builder.getContext(), -1,
                              getName(ModuleKind::Optimizer), "groups");
  for (const Sum &sum : sums)
    for (unsigned level = 0; level < getPartialLevels(groups); ++level) {
      Value partial = block.addArgument(sum.type, step.getLoc());
      attributes.push_back(builder.getDictionaryAttr(
          builder.getNamedAttr(kPartialAttr, sum.getPartial(level))));
      if (!waitsForLast(level, groups))
        continue;
      OpOperand &total = exit->getOpOperand(sum.result);
      auto more =
          AccumulateOp::create(builder, step.getLoc(), total.get(), partial);
      more->setAttr(kScopeAttr, scope);
      total.set(more);
    }
  step.setType(builder.getFunctionType(block.getArgumentTypes(),
                                       exit->getOperandTypes()));
  step.setAllArgAttrs(attributes);
}

/// Makes the function that puts `sums` into the partial sums of `level`, with
/// all below it.
static void addPush(func::FuncOp step, ArrayRef<Sum> sums, unsigned level) {
  OpBuilder builder(step.getContext());
  builder.setInsertionPointAfter(step);
  auto push = func::FuncOp::create(builder, step.getLoc(),
                                   (kPushFunction + Twine(level)).str(),
                                   builder.getFunctionType({}, {}));
  Block &block = *push.addEntryBlock();
  builder.setInsertionPointToStart(&block);
  auto scope = ScopeAttr::get(builder.getContext(), -1,
                              getName(ModuleKind::Optimizer), "groups");
  SmallVector<DictionaryAttr> arguments, attributes;
  SmallVector<Value> results;
  for (const Sum &sum : sums) {
    auto addArgument = [&](DictionaryAttr role) -> Value {
      arguments.push_back(role);
      return block.addArgument(sum.type, push.getLoc());
    };
    auto getRole = [&](unsigned level) {
      return builder.getDictionaryAttr(
          builder.getNamedAttr(kPartialAttr, sum.getPartial(level)));
    };
    Value running = addArgument(sum.before);
    SmallVector<Value> older;
    for (unsigned below = 0; below < level; ++below)
      older.push_back(addArgument(getRole(below)));
    auto pushed =
        PushOp::create(builder, push.getLoc(), TypeRange{sum.type, sum.type},
                       running, older, addArgument(getRole(level)));
    pushed->setAttr(kScopeAttr, scope);
    llvm::append_range(results, pushed.getResults());
    llvm::append_values(attributes, getRole(level), sum.after);
  }
  func::ReturnOp::create(builder, push.getLoc(), results);
  push.setType(builder.getFunctionType(block.getArgumentTypes(),
                                       ValueRange(results).getTypes()));
  push.setAllArgAttrs(arguments);
  push.setAllResultAttrs(attributes);
}

void GroupGradients::runOnOperation() {
  auto step = getOperation().lookupSymbol<func::FuncOp>(kStepFunction);
  int64_t groups = step ? getReductionGroups(step) : 1;
  if (groups == 1)
    return markAllAnalysesPreserved();
  if (!step.getBody().hasOneBlock() ||
      !isa<func::ReturnOp>(step.getBody().front().getTerminator()) ||
      findPhase(step, StepPhase::Update)) {
    step.emitError("needs one block that returns, without nn.update, for its "
                   "sums to be grouped");
    return signalPassFailure();
  }
  SmallVector<Sum> sums = findSums(step);
  addWaiting(step, sums, groups);
  for (unsigned level = getPartialLevels(groups); level-- > 0;)
    addPush(step, sums, level);
}
