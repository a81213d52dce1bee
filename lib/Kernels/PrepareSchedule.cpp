//===- PrepareSchedule.cpp - What a schedule makes explicit -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PrepareSchedule.h"
#include "NNToLinalg.h"
#include "Products.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/Remat/RematOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

bool kernels::canStartFromSum(Operation *op) {
  if (!isProduct(op))
    return isa<SumBody>(op);
  // A bias would have to come after the sum, and so would sums of heads.
  auto linear = dyn_cast<LinearOp>(op);
  std::optional<SharedHeads> shared = getSharedHeads(op);
  return !(linear && linear.getBias()) && !(shared && shared->areSummed);
}

static void dropFences(Block &block) {
  for (auto fence :
       llvm::make_early_inc_range(block.getOps<remat::FenceOp>())) {
    fence.getOut().replaceAllUsesWith(fence.getValue());
    fence->erase();
  }
}

/// A rank's own use of what all have is no work.
static void dropReplicates(Block &block) {
  for (auto replicate :
       llvm::make_early_inc_range(block.getOps<ReplicateOp>())) {
    replicate.replaceAllUsesWith(replicate.getInput());
    replicate->erase();
  }
}

/// Ranks meet, or have places, along the axes of a mesh.
static LogicalResult checkAxes(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  auto mesh = module ? module->getAttrOfType<MeshAttr>(kMeshAttr) : MeshAttr();
  for (Operation &op : function.getBody().front()) {
    bool meets = isCollective(&op) || isa<SendOp, ReceiveOp, StagesNormOp>(op);
    StringAttr axis =
        meets ? op.getAttrOfType<StringAttr>("axis") : getCoordinateAxis(&op);
    if (axis && (!mesh || !llvm::is_contained(mesh.getNames(), axis)))
      return op.emitOpError("needs the axis ")
             << axis << " in the module's '" << kMeshAttr
             << "' to be part of a schedule";
  }
  return success();
}

/// Whether `gradient` is added to an argument, which has to be zero when the
/// step begins.
static bool startsFromArgument(Value gradient) {
  while (!isa<BlockArgument>(gradient)) {
    auto result = cast<OpResult>(gradient);
    if (auto accumulate = dyn_cast<AccumulateOp>(result.getOwner()))
      gradient = accumulate.getSum();
    else if (isa<AllReduceOp, ReduceSharesOp>(result.getOwner()))
      gradient = result.getOwner()->getOperand(result.getResultNumber());
    else
      return false;
  }
  return true;
}

/// A gradient that is added to an argument is left at zero by nn.adamw: writes
/// that zero as a value behind it, and returns it in place of the gradient.
/// What the next step writes over is returned as it is.
static LogicalResult returnGradients(func::FuncOp function) {
  llvm::StringMap<unsigned> gradients;
  for (unsigned index = 0; index < function.getNumResults(); ++index)
    if (auto name =
            function.getResultAttrOfType<StringAttr>(index, kGradientAttr))
      gradients[name] = index;

  OpBuilder builder(function.getContext());
  Block &block = function.getBody().front();
  Operation *exit = block.getTerminator();
  SmallVector<Value> results(exit->getOperands());
  SmallVector<DictionaryAttr> attributes;
  function.getAllResultAttrs(attributes);
  attributes.resize(results.size(), builder.getDictionaryAttr({}));
  for (auto adamw : block.getOps<AdamWOp>()) {
    auto argument = dyn_cast<BlockArgument>(getWhole(adamw.getParameter()));
    auto parameter = argument ? function.getArgAttrOfType<ParameterAttr>(
                                    argument.getArgNumber(), kParameterAttr)
                              : ParameterAttr();
    if (!parameter)
      return adamw.emitOpError("needs to update an argument with '")
             << kParameterAttr << "', but got " << adamw.getParameter();
    Value left = getWhole(adamw.getGradient());
    if (startsFromArgument(left)) {
      builder.setInsertionPointAfter(adamw);
      auto zero = ConstantOp::create(builder, adamw.getLoc(), left.getType(),
                                     builder.getF32FloatAttr(0));
      remat::keepId(adamw, zero);
      left = zero;
    }
    auto [entry, isNew] =
        gradients.try_emplace(parameter.getName(), results.size());
    if (!isNew) {
      results[entry->second] = left;
      continue;
    }
    results.push_back(left);
    attributes.push_back(builder.getDictionaryAttr(builder.getNamedAttr(
        kGradientAttr, builder.getStringAttr(parameter.getName()))));
  }
  exit->setOperands(results);
  function.setType(builder.getFunctionType(function.getArgumentTypes(),
                                           ValueRange(results).getTypes()));
  function.setAllResultAttrs(attributes);
  return success();
}

/// Where the term of `accumulate` is itself a sum, of terms that can each be
/// made on top of the old sum, accumulates them one after the other.
static void splitSum(AccumulateOp accumulate) {
  SmallVector<AddOp> adds;
  SmallVector<Value> terms, open = {accumulate.getTerm()};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    Operation *term = value.getDefiningOp();
    if (!term || !value.hasOneUse())
      return;
    if (auto add = dyn_cast<AddOp>(term)) {
      adds.push_back(add);
      open.push_back(add.getRhs());
      open.push_back(add.getLhs());
    } else if (canStartFromSum(term)) {
      terms.push_back(value);
    } else {
      return;
    }
  }
  if (adds.empty())
    return;
  OpBuilder builder(accumulate);
  Value sum = accumulate.getSum();
  for (Value term : terms) {
    auto part = AccumulateOp::create(builder, accumulate.getLoc(), sum, term);
    part->setDiscardableAttrs(accumulate->getDiscardableAttrDictionary());
    sum = part;
  }
  accumulate.replaceAllUsesWith(sum);
  accumulate->erase();
  for (AddOp add : adds)
    add->erase();
}

/// Whether what `maker` makes can be written over old bytes: not if it adds
/// rows to those of a table, is there already, or is put together from parts.
static bool canWrite(Operation *maker) {
  return isa_and_present<NNDialect>(maker->getDialect()) &&
         !isa<AccumulateOp, EmbeddingBackwardOp, EmbeddingPartBackwardOp,
              PositionsBackwardOp>(maker);
}

/// With one micro-batch the sum of a gradient starts from zero: its first term
/// takes the place of the argument, unless it can only be added, or is that of
/// another gradient already.
static void startFromFirstTerms(func::FuncOp function) {
  auto count = function->getAttrOfType<IntegerAttr>(kMicroBatchesAttr);
  if (count && count.getInt() != 1)
    return;
  DenseSet<Value> taken;
  for (auto accumulate : llvm::make_early_inc_range(
           function.getBody().front().getOps<AccumulateOp>())) {
    auto argument = dyn_cast<BlockArgument>(accumulate.getSum());
    Value term = accumulate.getTerm();
    Operation *maker = term.getDefiningOp();
    if (!argument || !argument.hasOneUse() || !maker || !canWrite(maker) ||
        !function.getArgAttr(argument.getArgNumber(), kGradientAttr) ||
        !taken.insert(term).second)
      continue;
    accumulate.replaceAllUsesWith(term);
    accumulate->erase();
  }
}

Value kernels::getWhole(Value value) {
  auto share = value.getDefiningOp<TakeShareOp>();
  return share ? share.getInput() : value;
}

ConstantOp kernels::getZeroBehind(AdamWOp adamw, Value sum) {
  auto zero = dyn_cast_if_present<ConstantOp>(adamw->getNextNode());
  bool isZero =
      zero && zero.getValue().isPosZero() && zero.getType() == sum.getType();
  return isZero ? zero : ConstantOp();
}

LogicalResult kernels::prepareSchedule(func::FuncOp function) {
  Block &block = function.getBody().front();
  if (failed(checkAxes(function)))
    return failure();
  dropFences(block);
  dropReplicates(block);
  expandHeads(function);
  for (auto accumulate :
       llvm::make_early_inc_range(block.getOps<AccumulateOp>()))
    splitSum(accumulate);
  startFromFirstTerms(function);
  return returnGradients(function);
}
