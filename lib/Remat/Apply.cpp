//===- Apply.cpp - Replays dropped values in backward ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Share.h"
#include "reprise/Dialect/NN/Parts.h"
#include "reprise/Remat/Passes.h"

namespace reprise::remat {
#define GEN_PASS_DEF_APPLY
#include "reprise/Remat/Passes.h.inc"
} // namespace reprise::remat

using namespace mlir;
using namespace reprise;
using namespace reprise::remat;

namespace {
struct Apply : public remat::impl::ApplyBase<Apply> {
  void runOnOperation() override {
    auto apply = [&](const Step &step) { return this->apply(step); };
    if (failed(onStep(getOperation(), apply)))
      signalPassFailure();
  }

  LogicalResult apply(const Step &decided);
};

/// Builds replays, from the first op of the backward phase to the last.
class Replayer {
public:
  explicit Replayer(const Step &step)
      : step(step), builder(step.backward->getContext()) {}

  /// Rebuilds the dropped values that `reader` reads, in front of it, and lets
  /// it read those.
  LogicalResult serve(Operation *reader);

  /// Lets `gradient` make the value of `original` on its way.
  void share(Operation *original, Operation *gradient) {
    shared[gradient] = original;
  }

private:
  void begin(Operation *reader);
  void makeOnTheWay(Operation *original, Operation *reader);
  Operation *replay(Operation *original);
  Value getFence(Value value);
  Operation *takePart(Value whole, ShareAttr decision);
  Value getAgain(Value value);

  const Step &step;
  OpBuilder builder;
  DenseSet<Operation *> replayed;
  DenseMap<Operation *, Operation *> shared;
  DenseMap<Value, Value> rebuilt;
  /// For the reader being served: its fences, and what they wait for.
  DenseMap<Value, Value> fences;
  SmallVector<Value, 1> gradient;
};
} // namespace

/// Whether `op` computes in the backward phase what is not a copy of the
/// forward phase.
static bool isGradient(const Step &step, Operation *op) {
  return op && !step.isForward(op) && op->getNumResults() > 0 &&
         !isReplay(op) && !isa<FenceOp>(op);
}

/// What a replay for `reader` must not begin before: a gradient that `reader`
/// reads, or else the last one computed before it; none if there is none.
static SmallVector<Value, 1> getGradient(const Step &step, Operation *reader) {
  for (Value operand : reader->getOperands())
    if (isGradient(step, operand.getDefiningOp()))
      return {operand};
  for (Operation *op = reader->getPrevNode(); op && op != step.backward;
       op = op->getPrevNode())
    if (isGradient(step, op))
      return {op->getResult(0)};
  return {};
}

/// "name" becomes "name@replay".
static Location getReplayLoc(Location loc) {
  auto name = dyn_cast<NameLoc>(loc);
  if (!name)
    return loc;
  return NameLoc::get(
      StringAttr::get(loc.getContext(), name.getName().strref() + "@replay"),
      name.getChildLoc());
}

Value Replayer::getFence(Value value) {
  Value &fence = fences[value];
  if (!fence)
    fence = FenceOp::create(builder, getReplayLoc(value.getLoc()),
                            value.getType(), value, gradient);
  return fence;
}

/// Gives `op` the name of `value`, with what is done to it behind.
static void setName(Operation *op, Value value, StringRef verb) {
  nn::ScopeAttr scope;
  std::string name = "x0"; // What a chunk gets from the one before.
  if (Operation *maker = value.getDefiningOp()) {
    scope = nn::getScope(maker);
    name = getValueName(cast<OpResult>(value));
  } else {
    for (Operation *user : value.getUsers())
      if (nn::ScopeAttr reader = nn::getScope(user))
        scope = reader; // The first one comes last.
  }
  if (scope)
    op->setAttr(nn::kScopeAttr,
                nn::ScopeAttr::get(op->getContext(), scope.getLayer(),
                                   scope.getModule(), name + "." + verb.str()));
}

/// Takes the rank's part of `whole` once no other op of the forward phase
/// reads that, nor an op that such a reader may share a kernel with.
Operation *Replayer::takePart(Value whole, ShareAttr decision) {
  Operation *last = nullptr;
  for (Operation *user : whole.getUsers())
    if (step.isForward(user) && (!last || last->isBeforeInBlock(user)))
      last = user;
  if (!last)
    last = whole.getDefiningOp();
  // An argument that backward alone reads is there from the beginning.
  Operation *next =
      last ? last->getNextNode() : &step.backward->getBlock()->front();
  while (next->hasTrait<nn::Pointwise>() || next->hasTrait<nn::Rowwise>())
    next = next->getNextNode();
  StringRef axis = decision.getAxis();
  int64_t ranks =
      countRanks(step.backward->getParentOfType<func::FuncOp>(), axis);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(next);
  Operation *part = nn::createPart(builder, whole.getLoc(), whole, axis,
                                   getCutDim(whole, ranks), ranks);
  part->setAttr(kShareAttr, builder.getUnitAttr());
  setName(part, whole, "slice");
  return part;
}

/// What `value` is in the backward phase, if it is dropped or shared; of a
/// shared one gathers the parts if they are not yet.
Value Replayer::getAgain(Value value) {
  ShareAttr decision = step.getShare(value);
  Value &again = rebuilt[value];
  if (again || !decision)
    return again;
  Operation *part = takePart(value, decision);
  Location loc = getReplayLoc(value.getLoc());
  Value block = part->getResult(0);
  auto fence = FenceOp::create(builder, loc, block.getType(), block, gradient);
  Operation *gather = nn::createWhole(builder, loc, fence, part);
  gather->setAttr(kReplayAttr,
                  builder.getI64IntegerAttr(decision.getSegment()));
  setName(gather, value, "all_gather");
  return again = gather->getResult(0);
}

Operation *Replayer::replay(Operation *original) {
  Operation *copy = original->clone();
  bool isTied = copy->getNumOperands() == 0;
  for (OpOperand &operand : copy->getOpOperands()) {
    if (Value again = getAgain(operand.get()))
      operand.set(again);
    else if (operand.get().getDefiningOp())
      operand.set(getFence(operand.get()));
    else
      continue;
    isTied = true;
  }
  if (!isTied)
    copy->setOperand(0, getFence(copy->getOperand(0)));

  int64_t segment =
      original->getAttrOfType<RecomputeAttr>(kDecisionAttr).getSegment();
  copy->removeAttr(kDecisionAttr);
  copy->setAttr(kReplayAttr, builder.getI64IntegerAttr(segment));
  copy->setLoc(getReplayLoc(original->getLoc()));
  builder.insert(copy);
  for (auto [old, again] :
       llvm::zip(original->getResults(), copy->getResults()))
    if (step.isDropped(old))
      rebuilt[old] = again;
  return copy;
}

void Replayer::begin(Operation *reader) {
  fences.clear();
  gradient = getGradient(step, reader);
  builder.setInsertionPoint(reader);
}

/// A replay right in front of the gradient that it shares a kernel with, or of
/// the first reader of a wider copy.
void Replayer::makeOnTheWay(Operation *original, Operation *reader) {
  begin(reader);
  for (Operation *operand : step.takeReplay(original, replayed))
    replay(operand);
  replayed.insert(original);
  replay(original)->setAttr(kFreeAttr, builder.getUnitAttr());
}

LogicalResult Replayer::serve(Operation *reader) {
  Operation *made = shared.lookup(reader);
  if (made && llvm::is_contained(reader->getOperands(), made->getResult(0)))
    makeOnTheWay(std::exchange(made, nullptr), reader);
  auto dropped = llvm::find_if(reader->getOperands(), [&](Value operand) {
    return step.isDropped(operand) || step.getShare(operand);
  });
  if (dropped == reader->getOperands().end()) {
    if (made)
      makeOnTheWay(made, reader);
    return success();
  }
  if (step.isLate(reader)) {
    InFlightDiagnostic error = reader->emitOpError(
        "needs to read values that are kept, after the last micro-batch's "
        "backward phase, but got ");
    explainAbsence(error, step, *dropped);
    return error;
  }

  begin(reader);
  for (Operation *original : step.takeReplay(reader, replayed))
    replay(original);
  for (OpOperand &operand : reader->getOpOperands())
    if (Value again = getAgain(operand.get()))
      operand.set(again);
  if (made)
    makeOnTheWay(made, reader);
  return success();
}

LogicalResult Apply::apply(const Step &decided) {
  // Gradients that make a value on their way come before its readers.
  SmallVector<std::pair<Operation *, Operation *>> shared;
  for (Operation *op : decided.forward) {
    SmallVector<Operation *> hoisted;
    Operation *reader = nullptr;
    if (!decided.isFree(op))
      continue;
    shared.push_back({op, decided.findSharedGradient(op, &hoisted, &reader)});
    for (Operation *next : hoisted)
      next->moveBefore(reader);
  }
  FailureOr<Step> step = getStep(getOperation());
  Replayer replayer(*step);
  for (auto [op, gradient] : shared)
    replayer.share(op, gradient);
  for (Operation *reader : step->below)
    if (failed(replayer.serve(reader)))
      return failure();
  return success();
}
