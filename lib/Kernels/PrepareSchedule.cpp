//===- PrepareSchedule.cpp - What a schedule makes explicit -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PrepareSchedule.h"
#include "NNToLinalg.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Interfaces/Partitionable.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

bool kernels::canStartFromSum(Operation *op) {
  auto gemm = dyn_cast<GemmBody>(op);
  return gemm ? gemm.canStartFromSum() : isa<SumBody>(op);
}

static void dropFences(Block &block) {
  for (auto fence :
       llvm::make_early_inc_range(block.getOps<remat::FenceOp>())) {
    fence.getOut().replaceAllUsesWith(fence.getValue());
    fence->erase();
  }
}

/// A rank's own use of what all have is no work.
static void dropMarks(Block &block) {
  for (auto mark : llvm::make_early_inc_range(block.getOps<GradientMark>())) {
    mark->getResult(0).replaceAllUsesWith(mark.getMarked());
    mark->erase();
  }
}

/// Ranks meet, or have places, along the axes of a mesh.
static LogicalResult checkAxes(func::FuncOp function) {
  auto module = function->getParentOfType<ModuleOp>();
  auto mesh = module ? module->getAttrOfType<MeshAttr>(kMeshAttr) : MeshAttr();
  for (Operation &op : function.getBody().front()) {
    bool meets = isCollective(&op) || isa<ScheduleBody>(op);
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
    auto carrier = dyn_cast<SumCarrier>(result.getOwner());
    if (!carrier)
      return false;
    gradient = carrier.getSumBefore(result.getResultNumber());
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
  for (auto update : block.getOps<ParameterUpdate>()) {
    auto argument = dyn_cast<BlockArgument>(getWhole(update.getParameter()));
    auto parameter = argument ? function.getArgAttrOfType<ParameterAttr>(
                                    argument.getArgNumber(), kParameterAttr)
                              : ParameterAttr();
    if (!parameter)
      return update->emitOpError("needs to update an argument with '")
             << kParameterAttr << "', but got " << update.getParameter();
    Value left = getWhole(update.getGradient());
    if (startsFromArgument(left)) {
      builder.setInsertionPointAfter(update);
      auto zero = ConstantOp::create(builder, update.getLoc(), left.getType(),
                                     builder.getF32FloatAttr(0));
      remat::keepId(update, zero);
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

static bool isSum(Operation *op) {
  auto own = dyn_cast<Partitionable>(op);
  return own && own.addsOperands();
}

/// Where the term of `running` is itself a sum, of terms that can each be made
/// on top of the old sum, accumulates them one after the other.
static void splitSum(RunningSum running) {
  SmallVector<Operation *> adds;
  SmallVector<Value> terms, open = {running.getTerm()};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    Operation *term = value.getDefiningOp();
    if (!term || !value.hasOneUse())
      return;
    if (isSum(term)) {
      adds.push_back(term);
      llvm::append_range(open, llvm::reverse(term->getOperands()));
    } else if (canStartFromSum(term)) {
      terms.push_back(value);
    } else {
      return;
    }
  }
  if (adds.empty())
    return;
  OpBuilder builder(running);
  Value sum = running.getSum();
  for (Value term : terms) {
    auto part = AccumulateOp::create(builder, running.getLoc(), sum, term);
    part->setDiscardableAttrs(running->getDiscardableAttrDictionary());
    sum = part;
  }
  running->getResult(0).replaceAllUsesWith(sum);
  running->erase();
  for (Operation *add : adds)
    add->erase();
}

/// Whether what `maker` makes can be written over old bytes: not if it adds
/// rows to those of a table, is there already, or is put together from parts.
static bool canWrite(Operation *maker) {
  auto sum = dyn_cast<SumBody>(maker);
  return isa_and_present<NNDialect>(maker->getDialect()) &&
         !isa<RunningSum>(maker) && (!sum || sum.canWrite());
}

/// With one micro-batch the sum of a gradient starts from zero: its first term
/// takes the place of the argument, unless it can only be added, or is that of
/// another gradient already.
static void startFromFirstTerms(func::FuncOp function) {
  auto count = function->getAttrOfType<IntegerAttr>(kMicroBatchesAttr);
  if (count && count.getInt() != 1)
    return;
  DenseSet<Value> taken;
  for (auto running : llvm::make_early_inc_range(
           function.getBody().front().getOps<RunningSum>())) {
    auto argument = dyn_cast<BlockArgument>(running.getSum());
    Value term = running.getTerm();
    Operation *maker = term.getDefiningOp();
    if (!argument || !argument.hasOneUse() || !maker || !canWrite(maker) ||
        !function.getArgAttr(argument.getArgNumber(), kGradientAttr) ||
        !taken.insert(term).second)
      continue;
    running->getResult(0).replaceAllUsesWith(term);
    running->erase();
  }
}

Value kernels::getWhole(Value value) {
  auto share = value.getDefiningOp<OwnShare>();
  return share ? share.getWhole() : value;
}

Operation *kernels::getZeroBehind(ParameterUpdate update, Value sum) {
  auto zero = dyn_cast_if_present<ConstantNumber>(update->getNextNode());
  bool isZero = zero && zero.getNumber().getValue().isPosZero() &&
                zero->getResult(0).getType() == sum.getType();
  return isZero ? zero.getOperation() : nullptr;
}

LogicalResult kernels::prepareSchedule(func::FuncOp function) {
  Block &block = function.getBody().front();
  if (failed(checkAxes(function)))
    return failure();
  dropFences(block);
  dropMarks(block);
  putAmongOthers(block);
  expandHeads(function);
  for (auto running : llvm::make_early_inc_range(block.getOps<RunningSum>()))
    splitSum(running);
  startFromFirstTerms(function);
  return returnGradients(function);
}
