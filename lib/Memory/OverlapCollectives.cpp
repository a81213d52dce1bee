//===- OverlapCollectives.cpp - Ranks meet while they compute -------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Planner.h"
#include "SplitSums.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Remarks.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTWaitOp.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Interfaces/CostModel.h"
#include "reprise/Memory/Passes.h"
#include "llvm/Support/MathExtras.h"

namespace reprise::memory {
#define GEN_PASS_DEF_OVERLAPCOLLECTIVES
#include "reprise/Memory/Passes.h.inc"
} // namespace reprise::memory

using namespace mlir;
using namespace reprise;
using namespace reprise::memory;

/// What is gathered from a part that was there long before begins so many
/// products early: long enough for most links, and the whole takes bytes.
static constexpr int kProductsBefore = 2;

namespace {
/// Bytes that are alive from one position to another, both included.
struct Held {
  int64_t first, last, bytes;
};

/// How one op in which ranks meet would be begun and waited for.
struct Candidate {
  rt::ScheduledOp op;
  Operation *after = nullptr; ///< It begins behind this; null: the first of all
  Operation *before = nullptr; ///< Its wait stands before this.
  SmallVector<Value> kept;
  bool isOnce = false;
};

/// Takes the ops of one step apart.
class Overlap {
public:
  Overlap(const SymbolTable &symbols, func::FuncOp step, int64_t alignment)
      : symbols(symbols), step(step), block(step.getBody().front()),
        alignment(alignment) {}

  LogicalResult run();
  int64_t numBegun = 0, numRefused = 0;

private:
  LogicalResult takeLive();
  bool findPlaces(Candidate &candidate);
  bool findBegin(Candidate &candidate);
  bool findWait(Candidate &candidate);
  Operation *findOverwrite(Value kept, Operation *before);
  bool hidesWork(const Candidate &candidate);
  bool fits(Candidate candidate);
  void apply(const Candidate &candidate);
  int64_t at(Operation *op) const { return positions.lookup(op); }

  const SymbolTable &symbols;
  func::FuncOp step;
  Block &block;
  const int64_t alignment;
  Operation *update = nullptr; ///< Or null.
  /// Where ops have been, and waits are: at what they stand before.
  DenseMap<Operation *, int64_t> positions;
  SmallVector<int64_t> live; ///< Bytes, at each position.
  int64_t most = 0;
};

struct OverlapCollectives
    : public memory::impl::OverlapCollectivesBase<OverlapCollectives> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

//===----------------------------------------------------------------------===//
// Where it begins and ends
//===----------------------------------------------------------------------===//

/// Ranks of one model meet in it. Stages have schedules of their own.
static bool isExchange(Operation &op) {
  auto axis = op.getAttrOfType<StringAttr>("axis");
  return rt::isMeeting(&op) && axis.getValue() != nn::kPipeAxis &&
         !op.hasAttr("members");
}

/// Whether it writes over all that it reads, and one op is like several.
static bool isSumInPlace(Operation *op) {
  auto collective = dyn_cast<rt::CollectiveOp>(op);
  return collective && collective.isInPlace();
}

static bool isWork(Operation *op) { return isa<rt::LaunchOp, rt::GemmOp>(op); }

/// Behind what makes the last of its operands. What stands in the update stays
/// there, behind the norm, but for sums of gradients that are there above it.
bool Overlap::findBegin(Candidate &candidate) {
  Operation *op = candidate.op;
  for (Value read : candidate.op.getReads())
    if (Operation *maker = read.getDefiningOp())
      if (!candidate.after || candidate.after->isBeforeInBlock(maker))
        candidate.after = maker;
  // What is summed in place is read by nobody else any more.
  for (Value read :
       isSumInPlace(op) ? candidate.op.getReads() : SmallVector<Value>())
    for (Operation *user : read.getUsers())
      if (user != op &&
          (!candidate.after || candidate.after->isBeforeInBlock(user)))
        candidate.after = user;
  bool isBelow = update && update->isBeforeInBlock(op);
  if (isBelow) {
    bool isReady = candidate.after && candidate.after->isBeforeInBlock(update);
    candidate.isOnce = isReady && isSumInPlace(op);
    auto collective = dyn_cast<rt::CollectiveOp>(op);
    return candidate.isOnce ||
           (!isReady && collective &&
            collective.getKind() == rt::Collective::GatherShares);
  }
  if (isSumInPlace(op))
    return true;
  int products = 0;
  for (Operation *before = op->getPrevNode();
       before && before != candidate.after; before = before->getPrevNode())
    if (isa<rt::GemmOp>(before) && ++products > kProductsBefore) {
      candidate.after = before;
      break;
    }
  return true;
}

/// What takes the bytes of `kept` before `before`, or that.
Operation *Overlap::findOverwrite(Value kept, Operation *before) {
  for (OpOperand &use : kept.getUses()) {
    auto user = dyn_cast<rt::ScheduledOp>(use.getOwner());
    if (!user || !user->isBeforeInBlock(before))
      continue;
    FailureOr<SmallVector<rt::Sharing>> sharing = user.getSharing(symbols);
    if (succeeded(sharing) && llvm::any_of(*sharing, [&](rt::Sharing pair) {
          return pair.isForced && user.getReads()[pair.read] == kept;
        }))
      before = user;
  }
  return before;
}

/// Before the first op that reads what it makes, or writes over what it reads;
/// sums that run once, where the update begins.
bool Overlap::findWait(Candidate &candidate) {
  Operation *op = candidate.op;
  bool isBelow = update && update->isBeforeInBlock(op);
  candidate.before =
      update && (!isBelow || candidate.isOnce) ? update : block.getTerminator();
  if (!candidate.isOnce)
    for (Operation *user : op->getUsers()) {
      if (isa<rt::JoinOp>(user))
        return false; // Its parts are made where they belong.
      if (user->isBeforeInBlock(candidate.before))
        candidate.before = user;
    }
  SmallVector<rt::Sharing> own;
  if (FailureOr<SmallVector<rt::Sharing>> sharing =
          candidate.op.getSharing(symbols);
      succeeded(sharing))
    own = *sharing;
  for (auto [number, read] : llvm::enumerate(candidate.op.getReads())) {
    if (llvm::any_of(own, [number = number](rt::Sharing pair) {
          return pair.isForced && pair.read == number;
        }))
      continue;
    candidate.kept.push_back(read);
    candidate.before = findOverwrite(read, candidate.before);
  }
  return candidate.before != op;
}

/// Whether anything is computed meanwhile.
bool Overlap::hidesWork(const Candidate &candidate) {
  Operation *next =
      candidate.after ? candidate.after->getNextNode() : &block.front();
  for (; next && next != candidate.before; next = next->getNextNode())
    if (isWork(next))
      return true;
  return false;
}

bool Overlap::findPlaces(Candidate &candidate) {
  return findBegin(candidate) && findWait(candidate) && hidesWork(candidate);
}

//===----------------------------------------------------------------------===//
// What it holds
//===----------------------------------------------------------------------===//

LogicalResult Overlap::takeLive() {
  Planner planner(symbols, step, alignment, /*step=*/nullptr);
  if (failed(planner.assign()))
    return failure();
  live = planner.getLive(rt::Space::Device);
  most = *llvm::max_element(live);
  for (auto [position, op] : llvm::enumerate(block))
    positions[&op] = position;
  return success();
}

/// Whether the most bytes that are alive at one time stay what they are, with
/// what this holds longer than before: from where it begins what it makes, up
/// to the wait what it reads, and its workspace all the time. If so, these
/// bytes are alive from now on.
bool Overlap::fits(Candidate candidate) {
  int64_t begin = candidate.after ? at(candidate.after) : 0;
  int64_t own = at(candidate.op), wait = at(candidate.before);
  SmallVector<Held> held;
  if (int64_t bytes = candidate.op.getWorkspaceBytes())
    held.push_back({begin, wait, bytes});
  for (Value read : candidate.kept) {
    int64_t last = own;
    for (Operation *user : read.getUsers())
      last = std::max(last, at(user));
    if (!isa<BlockArgument>(read) && last < wait)
      held.push_back({last, wait, getTypeBytes(read.getType())});
  }
  if (!isSumInPlace(candidate.op) && begin < own)
    for (Type type : candidate.op->getResultTypes())
      held.push_back({begin, own - 1, getTypeBytes(type)});
  SmallVector<int64_t> changed = live;
  for (Held one : held)
    for (int64_t position = one.first; position <= one.last; ++position)
      changed[position] += llvm::alignTo(one.bytes, alignment);
  for (Held one : held)
    for (int64_t position = one.first; position <= one.last; ++position)
      if (changed[position] > most)
        return false;
  live = std::move(changed);
  return true;
}

void Overlap::apply(const Candidate &candidate) {
  Operation *op = candidate.op;
  OpBuilder builder(candidate.before);
  IntegerAttr number = builder.getI64IntegerAttr(numBegun++);
  if (candidate.after)
    op->moveAfter(candidate.after);
  else
    op->moveBefore(&block, block.begin());
  op->setAttr(rt::kBegunAttr, number);
  auto wait = rt::WaitOp::create(builder, op->getLoc(), op->getResultTypes(),
                                 number, op->getResults(), candidate.kept,
                                 /*outputs=*/ValueRange(),
                                 /*workspace=*/Value());
  for (auto [made, result] : llvm::zip(op->getResults(), wait.getResults()))
    made.replaceAllUsesExcept(result, wait);
  for (StringRef name :
       {StringRef(rt::kNameAttr), StringRef(remat::kReplayAttr)})
    if (Attribute attribute = op->getAttr(name))
      wait->setAttr(name, attribute);
  if (candidate.isOnce)
    for (Operation *one : {op, wait.getOperation()})
      one->setAttr(rt::kOnceAttr, builder.getUnitAttr());
  positions[op] = candidate.after ? at(candidate.after) : 0;
  positions[wait] = at(candidate.before);
}

LogicalResult Overlap::run() {
  SmallVector<Operation *> exchanges;
  for (Operation &op : block) {
    if (isa<rt::UpdateOp>(op))
      update = &op;
    if (isExchange(op) && !rt::getBegun(&op))
      exchanges.push_back(&op);
  }
  if (exchanges.empty())
    return success();
  if (update)
    exchanges = splitSums(exchanges, update);
  if (failed(takeLive()))
    return failure();
  for (Operation *op : exchanges) {
    Candidate candidate;
    candidate.op = cast<rt::ScheduledOp>(op);
    if (!findPlaces(candidate))
      continue;
    if (fits(candidate))
      apply(candidate);
    else
      ++numRefused;
  }
  return success();
}

void OverlapCollectives::runOnOperation() {
  ModuleOp module = getOperation();
  auto step = module.lookupSymbol<func::FuncOp>(nn::kStepFunction);
  if (!step || !step.getBody().hasOneBlock() ||
      module->hasAttr(rt::kNoOverlapAttr))
    return;
  auto recorded = module->getAttrOfType<IntegerAttr>(rt::kAlignmentAttr);
  SymbolTable symbols(module);
  Overlap overlap(symbols, step,
                  recorded ? recorded.getInt() : rt::kDefaultAlignment);
  if (failed(overlap.run()))
    return signalPassFailure();
  remark::passed(step.getLoc(), remark::RemarkOpts::name("Overlapped")
                                    .category("Memory")
                                    .function(step.getName()))
      << remark::metric("begun", overlap.numBegun)
      << remark::metric("refused", overlap.numRefused);
}
