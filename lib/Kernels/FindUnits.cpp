//===- FindUnits.cpp - Which ops one launch or GEMM is of -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FindUnits.h"
#include "KernelBody.h"
#include "PrepareSchedule.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

namespace {
/// Goes over the ops in order, and adds each to the last unit or begins one.
class UnitFinder {
public:
  UnitFinder(Units &found, bool rowsApart)
      : found(found), units(found.all), rowsApart(rowsApart) {}

  void run(Block &block);

private:
  void addToLast(Operation *op);
  void addPartners(Operation *op);
  RunningSum getMergedSum(Operation *op);
  Operation *getMergedBackward(Operation *op);
  bool canBeGrouped(Operation *op, StepPhase phase) const;
  bool readsForward(Operation *op) const;
  bool fitsGroup(Operation *op, const Unit &unit) const;
  bool extendsGroup(Operation *op, unsigned unit) const;
  bool joinsOthers(Operation *op);
  bool joinsSums(Operation *op);
  bool joinsColumns(Operation *op);

  Units &found;
  std::vector<Unit> &units; ///< those of `found`
  bool rowsApart;           ///< and what a replay may come before
  /// Names of ops of the forward pass that one launch runs after each other.
  llvm::StringSet<> forwardPairs;
};
} // namespace

static bool isOfNN(Operation *op) {
  return isa_and_present<NNDialect>(op->getDialect());
}

/// The op that adds to a running sum what `op`, next in the schedule, makes, if
/// `op` can do that itself; or null.
RunningSum UnitFinder::getMergedSum(Operation *op) {
  if (!canStartFromSum(op) || !op->getResult(0).hasOneUse())
    return RunningSum();
  Value term = op->getResult(0);
  auto running = dyn_cast<RunningSum>(*term.getUsers().begin());
  if (!running || running.getTerm() != term)
    return RunningSum();
  // The old sum is there already, and only this reads it.
  Value sum = running.getSum();
  Operation *definition = sum.getDefiningOp();
  bool isThere = !definition || found.indices.count(definition);
  return isThere && sum.hasOneUse() ? running : RunningSum();
}

/// The gradient of the losses that `op`, next in the schedule, makes, if it
/// comes right behind: both go over the same rows. A replay of the losses is a
/// launch of rows like others.
Operation *UnitFinder::getMergedBackward(Operation *op) {
  if (!isa<GradientBeside>(op) ||
      (rowsApart && op->hasAttr(remat::kReplayAttr)))
    return nullptr;
  Operation *next = op->getNextNode();
  return cast<LogitsLoss>(op).isGradient(next) ? next : nullptr;
}

static ShapedType getType(Operation *op) {
  return cast<ShapedType>(op->getResult(0).getType());
}

/// Whether all that `op` reads and makes of the shape of `type` is of `type`.
static bool hasOneType(Operation *op, ShapedType type) {
  auto fits = [&](Type other) {
    return other == type ||
           cast<ShapedType>(other).getShape() != type.getShape();
  };
  return llvm::all_of(op->getOperandTypes(), fits) &&
         llvm::all_of(op->getResultTypes(), fits);
}

/// Whether `op` may be beside others. A replay of rows is alone: it takes as
/// long as it was said to take when a plan asked for it.
bool UnitFinder::canBeGrouped(Operation *op, StepPhase phase) const {
  return op->hasTrait<nn::Pointwise>() ||
         (op->hasTrait<nn::Rowwise>() &&
          !(rowsApart && phase == StepPhase::Forward) &&
          !op->hasAttr(remat::kReplayAttr));
}

/// Whether `op` can be in a group with `unit`, as far as shapes go: all ops are
/// pointwise, but for one that goes over rows. With that one, all elements are
/// of one type, so that rows are cut up as they are without the others, and
/// sums over them have the same order.
bool UnitFinder::fitsGroup(Operation *op, const Unit &unit) const {
  Operation *last = unit.ops.back();
  if (!canBeGrouped(op, unit.phase) || !canBeGrouped(last, unit.phase) ||
      canStartFromSum(unit.ops.front()))
    return false;
  ShapedType type = getType(op);
  if (type.getShape() != getType(last).getShape())
    return false;
  if (!op->hasTrait<nn::Rowwise>())
    return !unit.rows || (hasOneType(op, type) && hasOneType(last, type));
  return !unit.rows && hasOneType(op, type) &&
         llvm::all_of(unit.ops,
                      [&](Operation *one) { return hasOneType(one, type); });
}

/// Whether `op` reads what the forward pass or a replay makes: under some plan
/// a replay comes right before it.
bool UnitFinder::readsForward(Operation *op) const {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    auto maker = found.indices.find(operand.getDefiningOp());
    return maker != found.indices.end() &&
           (units[maker->second].phase == StepPhase::Forward ||
            maker->first->hasAttr(remat::kReplayAttr));
  });
}

/// "layer3.residual.x1, layer3.residual.x2", also of their replays.
static std::string getPair(Operation *first, Operation *second) {
  return getScopeName(getScope(first)) + ", " + getScopeName(getScope(second));
}

/// Whether `op` continues `unit`, the last of the schedule: it reads what is
/// made there, or has it made on its way.
bool UnitFinder::extendsGroup(Operation *op, unsigned unit) const {
  Operation *last = units[unit].ops.back();
  if (!fitsGroup(op, units[unit]) || op->hasAttr(remat::kFreeAttr))
    return false;
  if (last->hasAttr(remat::kFreeAttr))
    return true;
  if (rowsApart && units[unit].phase == StepPhase::Backward &&
      !op->hasAttr(remat::kReplayAttr) && readsForward(op))
    return false;
  if (rowsApart && op->hasAttr(remat::kReplayAttr) &&
      !forwardPairs.contains(getPair(last, op)))
    return false;
  return op->getAttr(remat::kReplayAttr) == last->getAttr(remat::kReplayAttr) &&
         llvm::any_of(op->getOperands(), [&](Value operand) {
           return found.isInside(operand.getDefiningOp(), unit);
         });
}

/// Whether `op` does for one parameter what the last unit does for others.
bool UnitFinder::joinsOthers(Operation *op) {
  // The verifier of a plan compares all buffers of a launch, at most 8 for an
  // update, with each other. As many parameters has a layer of GPT-2: its
  // layers share a kernel.
  constexpr int64_t kMost = 16;
  if (!op->hasTrait<OneOfMany>() || units.empty())
    return false;
  auto isAlike = [&](Operation *other) {
    return other->getName() == op->getName();
  };
  const Unit &last = units.back();
  return isAlike(last.ops.front()) && llvm::count_if(last.ops, isAlike) < kMost;
}

/// Whether `op` adds the gradient of a bias beside others in the last unit.
bool UnitFinder::joinsSums(Operation *op) {
  // A sum has three buffers: with so many a kernel's parameters, one for each,
  // are well below what PTX allows.
  constexpr size_t kMostSums = 64;
  auto isOfBias = [&](Operation *op) {
    auto running = dyn_cast<RunningSum>(op);
    return running && running.getTerm().getDefiningOp<BiasGradient>();
  };
  return isOfBias(op) && !units.empty() && isOfBias(units.back().ops.front()) &&
         units.back().ops.size() < kMostSums;
}

static bool sumsColumns(Operation *op) {
  auto sum = dyn_cast<SumBody>(op);
  return sum && sum.sumsColumns();
}

/// Whether `op` sums columns of rows that the last unit reads for such a sum
/// too. All rows are of one type: they are cut up in one way then, so each sum
/// has the order that it has alone.
bool UnitFinder::joinsColumns(Operation *op) {
  // As many buffers as an update has.
  constexpr size_t kMostColumns = 16;
  if (!sumsColumns(op) || units.empty())
    return false;
  unsigned last = units.size() - 1;
  const Unit &unit = units[last];
  Operation *first = unit.ops.front();
  auto type = cast<ShapedType>(op->getOperand(0).getType());
  auto fits = [&](Operation *one) {
    return isa<RunningSum>(one) || hasOneType(one, type);
  };
  if (!sumsColumns(first) || getType(first) != getType(op) ||
      first->getOperand(0).getType() != type || !fits(op) ||
      !llvm::all_of(unit.ops, fits) || unit.ops.size() >= kMostColumns)
    return false;
  // What reads a sum of the unit, or starts from one, can only come behind it.
  SmallVector<Value> read(op->getOperands());
  if (RunningSum running = getMergedSum(op))
    read.push_back(running.getSum());
  if (llvm::any_of(read, [&](Value value) {
        return found.isInside(value.getDefiningOp(), last);
      }))
    return false;
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    return llvm::any_of(operand.getUsers(), [&](Operation *user) {
      return found.isInside(user, last);
    });
  });
}

void UnitFinder::addToLast(Operation *op) {
  Unit &unit = units.back();
  unit.ops.push_back(op);
  found.indices[op] = units.size() - 1;
  if (op->hasTrait<nn::Rowwise>())
    unit.rows = op;
}

/// Adds what `op`, the last of the schedule so far, makes on its way.
void UnitFinder::addPartners(Operation *op) {
  Operation *partner = getMergedSum(op);
  if (auto update = dyn_cast<ParameterUpdate>(op))
    partner = getZeroBehind(update, getWhole(update.getGradient()));
  if (Operation *backward = getMergedBackward(op))
    partner = backward;
  for (Operation *other : {partner, found.biasGradients.lookup(op)})
    if (other)
      addToLast(other);
}

void UnitFinder::run(Block &block) {
  StepPhase phase = StepPhase::Forward;
  bool isOpen = false;
  for (Operation &op : block) {
    // A launch is where the last of its ops is: in front of views of it.
    if (!isOfNN(&op))
      isOpen =
          isOpen && llvm::none_of(op.getOperands(), [&](Value operand) {
            return found.isInside(operand.getDefiningOp(), units.size() - 1);
          });
    if (!isOfNN(&op) || found.indices.count(&op))
      continue;
    std::optional<StepPhase> begun = getPhaseBegun(&op);
    if (begun && *begun != StepPhase::Update) {
      phase = *begun;
      isOpen = false;
      continue;
    }
    if (isOpen && extendsGroup(&op, units.size() - 1)) {
      if (phase == StepPhase::Forward)
        forwardPairs.insert(getPair(units.back().ops.back(), &op));
      addToLast(&op);
      continue;
    }
    if (begun)
      phase = *begun;
    if (!joinsOthers(&op) && !joinsSums(&op) && !(isOpen && joinsColumns(&op)))
      units.push_back({{}, phase});
    addToLast(&op);
    addPartners(&op);
    isOpen = true;
  }
}

Units kernels::findUnits(func::FuncOp function, bool rowsApart) {
  Units units;
  units.biasGradients = takeBiasGradients(function);
  UnitFinder(units, rowsApart).run(function.getBody().front());
  return units;
}
