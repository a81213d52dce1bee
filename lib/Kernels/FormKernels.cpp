//===- FormKernels.cpp - A schedule of launches and GEMMs -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FindUnits.h"
#include "GroupedGemms.h"
#include "NNToLinalg.h"
#include "PrepareSchedule.h"
#include "ScheduleBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/TypeUtilities.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Interfaces/Facts.h"
#include "reprise/Kernels/Passes.h"

namespace reprise::kernels {
#define GEN_PASS_DEF_FORMKERNELS
#include "reprise/Kernels/Passes.h.inc"
} // namespace reprise::kernels

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

namespace {
/// Turns the ops of one function into a schedule. First everything is decided,
/// on the ops as they are; then the schedule is built, in order.
class ScheduleFormer {
public:
  ScheduleFormer(func::FuncOp function, KernelTable &kernels, bool rowsApart)
      : function(function), block(function.getBody().front()), kernels(kernels),
        rowsApart(rowsApart), schedule(function, kernels),
        builder(schedule.getBuilder()) {}

  LogicalResult run();

private:
  bool isDeadAfter(Value value, unsigned unit);

  LogicalResult formUnit(unsigned index);
  LogicalResult formGemmUnit(const Unit &unit);
  Value formHeads(Operation *matmul, const SharedHeads &shared, Value value);
  bool hasLibrary();
  bool makesSquares(Operation *matmul, Operation *last);
  void putInPlace(Group &group, unsigned index);
  Group getGroup(unsigned index);
  void nameMakers(rt::LaunchOp launch, const Group &group);
  void formLaunch(unsigned index);

  func::FuncOp function;
  Block &block;
  KernelTable &kernels;
  bool rowsApart;
  ScheduleBuilder schedule;
  OpBuilder &builder; ///< that of `schedule`
  Units units;
  /// What is a share in the schedule, and what it was taken of there.
  DenseMap<Value, Value> wholeOf;
};

struct FormKernels : public kernels::impl::FormKernelsBase<FormKernels> {
  using FormKernelsBase::FormKernelsBase;

  void getDependentDialects(DialectRegistry &registry) const override {
    FormKernelsBase::getDependentDialects(registry);
    registerKernelBodies(registry);
  }

  void runOnOperation() override {
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isDeclaration() && !function->hasAttr(rt::kKernelAttr))
        functions.push_back(function);
    KernelTable kernels(getOperation());
    for (func::FuncOp function : functions)
      if (failed(ScheduleFormer(function, kernels, rowsApart).run()))
        return signalPassFailure();
  }
};
} // namespace

LogicalResult ScheduleFormer::run() {
  if (!function.getBody().hasOneBlock())
    return function.emitError("needs one block to become a schedule, but got ")
           << function.getBody().getBlocks().size();
  if (failed(prepareSchedule(function)))
    return failure();
  units = findUnits(function, rowsApart);

  SmallVector<Operation *> old;
  for (Operation &op : block)
    if (isa_and_present<NNDialect>(op.getDialect()))
      old.push_back(&op);
  for (unsigned index = 0; index < units.all.size(); ++index)
    if (failed(formUnit(index)))
      return failure();
  for (Operation *op : llvm::reverse(old))
    op->erase();
  return success();
}

/// Whether nothing reads `value` once `unit` has run. What has no unit is part
/// of the schedule before it, or the end of the function; or views and joins,
/// whose readers may come later.
bool ScheduleFormer::isDeadAfter(Value value, unsigned unit) {
  return llvm::none_of(value.getUsers(), [&](Operation *user) {
    auto found = units.indices.find(user);
    return found == units.indices.end() ? user == block.getTerminator() ||
                                              isa<rt::ViewOp, rt::JoinOp>(user)
                                        : found->second > unit;
  });
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

/// The op that makes `value`, or the term that it adds to a sum on its way.
static Operation *getMaker(Value value) {
  auto running = value.getDefiningOp<RunningSum>();
  Operation *term = running ? running.getTerm().getDefiningOp() : nullptr;
  return term && canStartFromSum(term) ? term : value.getDefiningOp();
}

LogicalResult ScheduleFormer::formUnit(unsigned index) {
  const Unit &unit = units.all[index];
  Operation *first = unit.ops.front();
  schedule.begin(first, unit.phase);
  if (isa<GemmBody>(first))
    return formGemmUnit(unit);
  if (auto body = dyn_cast<ScheduleBody>(first))
    body.buildSchedule(schedule);
  else
    formLaunch(index);
  return success();
}

LogicalResult ScheduleFormer::formGemmUnit(const Unit &unit) {
  auto matmul = cast<GemmBody>(unit.ops.front());
  Operation *last = matmul;
  std::optional<SharedHeads> shared = matmul.getSharedHeads();
  if (shared && !shared->areSummed)
    matmul->setOperand(1, formHeads(matmul, *shared, matmul->getOperand(1)));
  Value addend;
  for (Operation *op : unit.ops)
    if (auto running = dyn_cast<RunningSum>(op)) {
      addend = running.getSum();
      last = op;
    }
  Operation *sums = units.biasGradients.lookup(matmul);
  Beside beside = sums                         ? Beside::SumOfRows
                  : makesSquares(matmul, last) ? Beside::Squares
                                               : Beside::Nothing;
  rt::GemmOp gemm = formGemm(builder, matmul, addend, beside);
  if (gemm.getOffsets() && hasLibrary()) {
    last->getResult(0).replaceAllUsesWith(
        formGroupedGemm(schedule, gemm, matmul));
    return success();
  }
  schedule.annotate(gemm, matmul, matmul.getOperation());
  if (sums)
    sums->getResult(0).replaceAllUsesWith(gemm.getAuxiliary());
  Value result = gemm.getResult();
  if (shared && shared->areSummed)
    result = formHeads(matmul, *shared, result);
  last->getResult(0).replaceAllUsesWith(result);
  return success();
}

/// `value` with its heads of keys repeated for each head of queries, or its
/// heads of queries summed for each head of keys.
Value ScheduleFormer::formHeads(Operation *matmul, const SharedHeads &shared,
                                Value value) {
  int64_t heads = shared.heads, keyHeads = shared.keyHeads;
  bool areSummed = shared.areSummed;
  int64_t have = areSummed ? heads : keyHeads;
  int64_t want = areSummed ? keyHeads : heads;
  auto from = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(from.getShape());
  shape.back() = shape.back() / have * want;
  // Sums of heads are rounded once, as is the result of any op.
  Type element = areSummed ? getElementTypeOrSelf(matmul->getResult(0))
                           : from.getElementType();
  auto to = RankedTensorType::get(shape, element);

  std::string name = areSummed ? "sum_heads_" : "repeat_heads_";
  name += std::to_string(have) + "_to_" + std::to_string(want);
  for (auto [index, size] : llvm::enumerate(from.getShape()))
    name += (index ? "x" : "_") + std::to_string(size);
  if (element.isBF16())
    name += "_bf16";
  func::FuncOp kernel = kernels.getKernel(
      name, builder.getFunctionType(from, to),
      [&](OpBuilder &body, ValueRange arguments) {
        LoopBuilder loops(body, matmul->getLoc());
        Value result = (areSummed ? buildSummedHeads : buildRepeatedHeads)(
            loops, arguments[0], heads, keyHeads, element);
        return loops.asShapeOf(result, to);
      });
  int64_t flops = areSummed ? from.getNumElements() - to.getNumElements() : 0;
  return schedule.formLaunch(kernel, value, flops, matmul).getResult(0);
}

/// Whether GEMMs are a library's, which says how large its workspace is.
bool ScheduleFormer::hasLibrary() {
  auto module = function->getParentOfType<ModuleOp>();
  return module && module->hasAttr(rt::kGemmWorkspaceAttr);
}

/// Whether `matmul`, whose result is that of `last`, sums the squares of a
/// gradient for the norm, which then need not read it: it is the gradient of a
/// weight, which nothing is added to any more. Those of the CPU do, not a
/// library's.
bool ScheduleFormer::makesSquares(Operation *matmul, Operation *last) {
  auto gradient = dyn_cast<GemmGradient>(matmul);
  return !hasLibrary() && gradient && gradient.isOfWeight() &&
         llvm::any_of(last->getResult(0).getUsers(), [](Operation *user) {
           auto norm = dyn_cast<ScheduleBody>(user);
           return norm && norm.readsSquares();
         });
}

/// Finds which outputs of `group`, which is that of unit `index`, take the
/// place of an input.
void ScheduleFormer::putInPlace(Group &group, unsigned index) {
  auto put = [&](Value input, Value output) {
    if (group.inputs.contains(input) && group.outputs.contains(output) &&
        isDeadAfter(input, index))
      group.inPlace.insert({input, output});
  };
  // Of sums of sums the last replaces what the first adds to.
  auto getFirst = [&](Value sum) {
    for (auto inner = sum.getDefiningOp<RunningSum>();
         inner && units.isInside(inner, index) && !group.outputs.contains(sum);
         inner = sum.getDefiningOp<RunningSum>())
      sum = inner.getSum();
    return sum;
  };
  for (Operation *op : units.all[index].ops) {
    if (auto running = dyn_cast<RunningSum>(op))
      put(getFirst(running.getSum()), op->getResult(0));
    if (auto states = dyn_cast<InPlaceUpdate>(op))
      for (auto [before, after] : states.getUpdates())
        put(getFirst(before), after);
    if (auto update = dyn_cast<ParameterUpdate>(op)) {
      // Of a share, the launch that took it is there by now.
      Value sum = wholeOf.lookup(update.getGradient());
      if (!sum)
        sum = update.getGradient();
      if (Operation *zero = getZeroBehind(update, sum)) {
        group.inputs.insert(sum);
        put(sum, zero->getResult(0));
      }
    }
  }
}

Group ScheduleFormer::getGroup(unsigned index) {
  const Unit &unit = units.all[index];
  Group group(unit.ops);
  for (Operation *op : unit.ops) {
    for (Value operand : op->getOperands())
      if (!units.isInside(operand.getDefiningOp(), index))
        group.inputs.insert(operand);
    // What nobody reads is kept where the op makes it beside another, so that
    // equal ops share a kernel.
    for (Value result : op->getResults()) {
      bool isRead = llvm::any_of(result.getUsers(), [&](Operation *user) {
        return !units.isInside(user, index);
      });
      if (isRead || (result.use_empty() && op->getNumResults() > 1))
        group.outputs.insert(result);
    }
  }
  return group;
}

/// But for what is made on the way of a gradient, which is a part of it.
static int64_t countFlops(const Unit &unit) {
  int64_t flops = 0;
  for (Operation *op : unit.ops)
    if (auto cost = dyn_cast<CostModel>(op);
        cost && !op->hasAttr(remat::kFreeAttr))
      flops += cost.getFlops();
  return flops;
}

/// The op that the launch of a unit has its name and attributes from.
static Operation *getOrigin(const Unit &unit) {
  if (unit.rows)
    return unit.rows;
  // What adds a sum up may come long after the launch that does so.
  Operation *first = unit.ops.front();
  bool isOfFirst = canStartFromSum(first) || first->hasTrait<OneOfMany>();
  return isOfFirst ? first : unit.ops.back();
}

/// Where the launch of a unit stands.
static Operation *getPlace(const Unit &unit) {
  Operation *place = unit.ops.back();
  for (Operation *op : unit.ops)
    if (canStartFromSum(op))
      place = op;
  return place;
}

/// Says which op makes each output, where the launch's name does not.
void ScheduleFormer::nameMakers(rt::LaunchOp launch, const Group &group) {
  SmallVector<Attribute> makers;
  for (Value output : group.outputs)
    makers.push_back(
        builder.getStringAttr(schedule.getLaunchName(getMaker(output))));
  bool isOfName = llvm::all_of(makers, [&](Attribute maker) {
    return maker == launch->getAttr(rt::kNameAttr);
  });
  if (!group.ops.front()->hasTrait<OneOfMany>() && !isOfName)
    launch->setAttr(rt::kMadeByAttr, builder.getArrayAttr(makers));
}

void ScheduleFormer::formLaunch(unsigned index) {
  const Unit &unit = units.all[index];
  Group group = getGroup(index);
  if (group.outputs.empty())
    return;

  putInPlace(group, index);
  func::FuncOp kernel = kernels.getKernel(group);
  SmallVector<int64_t> ids = kernels.getIds(unit.ops);
  builder.setInsertionPoint(getPlace(unit));
  // A launch comes from all of its ops, in their order.
  SmallVector<Location> locs =
      llvm::map_to_vector(unit.ops, [](Operation *op) { return op->getLoc(); });
  auto launch = rt::LaunchOp::create(
      builder, FusedLoc::get(builder.getContext(), locs),
      kernel.getResultTypes(), kernel.getSymName(), group.inputs.getArrayRef(),
      ValueRange(),
      ids.empty() ? DenseI64ArrayAttr() : builder.getDenseI64ArrayAttr(ids),
      countFlops(unit));
  schedule.annotate(launch, getOrigin(unit), unit.ops);
  nameMakers(launch, group);
  for (auto [output, result] :
       llvm::zip(group.outputs.takeVector(), launch.getResults()))
    output.replaceAllUsesWith(result);
  if (isa<OwnShare>(unit.ops.front()))
    wholeOf[launch.getResult(0)] = group.inputs.front();
}
