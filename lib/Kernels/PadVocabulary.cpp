//===- PadVocabulary.cpp - Logits of an aligned width -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Schedules.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Kernels/Passes.h"
#include "llvm/ADT/TypeSwitch.h"

namespace reprise::kernels {
#define GEN_PASS_DEF_PADVOCABULARY
#include "reprise/Kernels/Passes.h.inc"
} // namespace reprise::kernels

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

/// 16 bytes of bf16: what every access of a product can be.
static constexpr int64_t kAligned = 8;
/// A tile's width.
static constexpr int64_t kPadded = 64;

static ArrayRef<int64_t> getShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// The parameter that an argument is, or is a state of, or an empty name.
static StringRef getParameterName(func::FuncOp function, unsigned index) {
  if (auto parameter =
          function.getArgAttrOfType<ParameterAttr>(index, kParameterAttr))
    return parameter.getName();
  for (StringRef role :
       {kGradientAttr, kMoment1Attr, kMoment2Attr, kWorkingAttr})
    if (auto name = function.getArgAttrOfType<StringAttr>(index, role))
      return name.getValue();
  if (auto partial =
          function.getArgAttrOfType<PartialAttr>(index, kPartialAttr))
    return partial.getName();
  return {};
}

namespace {
/// What has a row for each class, `[V, K]`, or a column for each, `[..., V]`,
/// in one function.
class Padder {
public:
  explicit Padder(func::FuncOp function) : function(function) {}

  /// Follows the states of a parameter. False if an op reads them that is not
  /// known to do the same with more rows.
  bool find(StringRef parameter, int64_t classes);
  void pad(int64_t classes, int64_t padded);

private:
  void add(Value table) { found.insert({table, /*areColumns=*/false}); }
  void addLogits(Value logits) { found.insert({logits, /*areColumns=*/true}); }
  void addAlike(Operation *op, Value value, bool areColumns);
  bool follow(Operation *op, Value value, bool areColumns);

  func::FuncOp function;
  llvm::MapVector<Value, bool> found;
};

struct PadVocabulary : public kernels::impl::PadVocabularyBase<PadVocabulary> {
  using PadVocabularyBase::PadVocabularyBase;
  void runOnOperation() override;

private:
  void pad(StringRef parameter, int64_t classes, Location loc);
};
} // namespace

/// What `op` computes element by element from `value`, or it from.
void Padder::addAlike(Operation *op, Value value, bool areColumns) {
  auto look = [&](Value other) {
    if (getShape(other) == getShape(value))
      found.insert({other, areColumns});
  };
  llvm::for_each(op->getOperands(), look);
  llvm::for_each(op->getResults(), look);
}

bool Padder::follow(Operation *op, Value value, bool areColumns) {
  return TypeSwitch<Operation *, bool>(op)
      .Case<AdamWOp, AccumulateOp, AddOp, CastOp, ConstantOp, PushOp>(
          [&](auto) { return addAlike(op, value, areColumns), true; })
      .Case([&](remat::FenceOp fence) {
        if (value == fence.getValue() || value == fence.getOut())
          found.insert({fence.getValue(), areColumns}),
              found.insert({fence.getOut(), areColumns});
        return true;
      })
      .Case<GlobalNormOp, AllReduceOp, func::ReturnOp>(
          [&](auto) { return true; })
      .Case([&](EmbeddingOp embedding) {
        return value == embedding.getTable() && !areColumns;
      })
      .Case([&](EmbeddingBackwardOp) { return !areColumns; })
      .Case([&](LinearOp linear) {
        addLogits(linear.getOut());
        add(linear.getWeight());
        return linear.getLayout() == WeightLayout::OutIn && !linear.getBias() &&
               value != linear.getInput();
      })
      .Case([&](LinearBackwardInputOp linear) {
        addLogits(linear.getDout());
        add(linear.getWeight());
        return linear.getLayout() == WeightLayout::OutIn &&
               value != linear.getDinput();
      })
      .Case([&](LinearBackwardWeightOp linear) {
        addLogits(linear.getDout());
        add(linear.getDweight());
        return linear.getLayout() == WeightLayout::OutIn &&
               value != linear.getInput();
      })
      .Case([&](CrossEntropyOp) { return areColumns; })
      .Case([&](CrossEntropyBackwardOp backward) {
        addLogits(backward.getLogits());
        addLogits(backward.getDlogits());
        return areColumns;
      })
      .Case([&](LinearCrossEntropyOp head) {
        add(head.getWeight());
        if (head.getSum()) {
          add(head.getSum());
          add(head.getNewSum());
        }
        return head.getLayout() == WeightLayout::OutIn && !head.getAxis() &&
               value != head.getInput() && value != head.getInputGradient();
      })
      .Default(false);
}

bool Padder::find(StringRef parameter, int64_t classes) {
  for (BlockArgument argument : function.getArguments())
    if (getParameterName(function, argument.getArgNumber()) == parameter)
      add(argument);
  for (unsigned next = 0; next < found.size(); ++next) {
    auto [value, areColumns] = found.begin()[next];
    ArrayRef<int64_t> shape = getShape(value);
    if (areColumns ? shape.empty() || shape.back() != classes
                   : shape.size() != 2 || shape[0] != classes)
      return false;
    Operation *maker = value.getDefiningOp();
    if (maker ? !follow(maker, value, areColumns)
              : getParameterName(function,
                                 cast<BlockArgument>(value).getArgNumber()) !=
                    parameter)
      return false;
    for (Operation *user : value.getUsers())
      if (!follow(user, value, areColumns))
        return false;
  }
  return true;
}

void Padder::pad(int64_t classes, int64_t padded) {
  Builder builder(function.getContext());
  auto setClasses = [&](auto op) {
    if (!op.getClasses())
      op.setClasses(classes);
  };
  for (auto [value, areColumns] : found) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    (areColumns ? shape.back() : shape.front()) = padded;
    value.setType(type.clone(shape));
    if (auto argument = dyn_cast<BlockArgument>(value))
      function.setArgAttr(argument.getArgNumber(), kRowsAttr,
                          builder.getI64IntegerAttr(classes));
    for (Operation *user : value.getUsers())
      TypeSwitch<Operation *>(user)
          .Case<CrossEntropyOp, CrossEntropyBackwardOp, LinearCrossEntropyOp>(
              setClasses);
  }
  Block &block = function.getBody().front();
  function.setType(builder.getFunctionType(
      block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
}

void PadVocabulary::pad(StringRef parameter, int64_t classes, Location loc) {
  SmallVector<Padder> padders;
  for (func::FuncOp function : getSchedules(getOperation()))
    if (!function.isExternal() &&
        !padders.emplace_back(function).find(parameter, classes)) {
      remark::missed(loc, remark::RemarkOpts::name("NotPadded")
                              .category("Kernels")
                              .function(function.getName()))
          << remark::metric("rows", classes);
      return;
    }
  int64_t padded = llvm::alignTo(classes, kPadded);
  for (Padder &padder : padders)
    padder.pad(classes, padded);
  remark::passed(
      loc, remark::RemarkOpts::name("Padded").category("Kernels").function(
               kStepFunction))
      << remark::metric("rows", classes) << remark::metric("padded", padded);
}

void PadVocabulary::runOnOperation() {
  auto step = getOperation().lookupSymbol<func::FuncOp>(kStepFunction);
  if (!step || !step.getBody().hasOneBlock() ||
      !getOperation()->hasAttr(rt::kGemmWorkspaceAttr))
    return markAllAnalysesPreserved();
  SmallVector<Value> tables;
  for (Operation &op : step.getBody().front()) {
    if (auto head = dyn_cast<LinearCrossEntropyOp>(op))
      tables.push_back(head.getWeight());
    if (auto loss = dyn_cast<CrossEntropyOp>(op))
      if (auto linear = loss.getLogits().getDefiningOp<LinearOp>())
        tables.push_back(linear.getWeight());
  }
  for (Value table : tables) {
    Location loc = table.getLoc();
    while (auto fence = table.getDefiningOp<remat::FenceOp>())
      table = fence.getValue();
    auto argument = dyn_cast<BlockArgument>(table);
    int64_t rows = getShape(table).front();
    if (argument && rows % kAligned != 0)
      pad(getParameterName(step, argument.getArgNumber()), rows, loc);
  }
}
