//===- OverlapCollectives.cpp - Ranks meet while they compute -------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LiveBytes.h"
#include "SplitSums.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Remarks.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTWaitOp.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Interfaces/CostModel.h"
#include "reprise/Memory/Passes.h"
#include "llvm/ADT/BitVector.h"

namespace reprise::memory {
#define GEN_PASS_DEF_OVERLAPCOLLECTIVES
#include "reprise/Memory/Passes.h.inc"
} // namespace reprise::memory

using namespace mlir;
using namespace reprise;
using namespace reprise::memory;

/// What is gathered from a part that was there long before begins so many
/// GEMMs early: long enough for most links, and the whole takes bytes.
static constexpr int kGemmsBefore = 2;
/// Launches and GEMMs behind an exchange among which one that can be beside
/// it is looked for: more than a layer has.
static constexpr int64_t kWorkAhead = 64;
/// Exchanges of so many times fewer bytes than the largest have no work brought
/// beside them.
static constexpr int64_t kMuchLess = 8;

namespace {
/// Takes the ops of one step apart.
class Overlap {
public:
  Overlap(const SymbolTable &symbols, func::FuncOp step)
      : symbols(symbols), step(step), block(step.getBody().front()) {}

  LogicalResult run(int64_t alignment);
  int64_t numBegun = 0, numRefused = 0;

private:
  SmallVector<Operation *> findExchanges();
  bool findPlaces(BegunOp &begun);
  bool findBegin(BegunOp &begun);
  bool findWait(BegunOp &begun);
  Operation *findOverwrite(Value kept, Operation *before);
  SmallVector<rt::Sharing> getOverwrites(rt::ScheduledOp op);
  BegunOp open(Operation *op);
  bool hidesWork(const BegunOp &begun);
  bool isGemm(Operation *op);
  bool takeAlong(Operation *op, const BegunOp &begun);
  bool bringWork(const BegunOp &begun);
  void bringWorkBeside(ArrayRef<Operation *> exchanges);
  bool begin(Operation *op, bool isPart);
  void beginParts(rt::CollectiveOp sums);
  void apply(const BegunOp &begun);

  const SymbolTable &symbols;
  func::FuncOp step;
  Block &block;
  Operation *update = nullptr;            ///< Or null.
  int64_t nextNumber = 0;                 ///< Of what is begun.
  llvm::DenseMap<StringAttr, bool> gemms; ///< Of kernels.
  LiveBytes live;
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

/// Of what is exchanged.
static int64_t getBytes(Operation *op) {
  int64_t bytes = 0;
  for (Type type : op->getResultTypes())
    bytes += getTypeBytes(type);
  return bytes;
}

/// Whether it writes over all that it reads, and one op is like several.
static bool isSumInPlace(Operation *op) {
  auto collective = dyn_cast<rt::CollectiveOp>(op);
  return collective && collective.isInPlace();
}

static bool isWork(Operation *op) { return isa<rt::LaunchOp, rt::GemmOp>(op); }

/// Whether it multiplies matrices: by itself, or in a kernel, as GEMMs of
/// experts do on GPUs.
bool Overlap::isGemm(Operation *op) {
  if (isa<rt::GemmOp>(op))
    return true;
  auto launch = dyn_cast<rt::LaunchOp>(op);
  if (!launch)
    return false;
  auto [known, isNew] = gemms.try_emplace(launch.getKernelAttr().getAttr());
  if (isNew)
    if (auto kernel = symbols.lookup<func::FuncOp>(launch.getKernel()))
      known->second =
          kernel.walk([](rt::GemmOp) { return WalkResult::interrupt(); })
              .wasInterrupted();
  return known->second;
}

/// What `op` has to write over.
SmallVector<rt::Sharing> Overlap::getOverwrites(rt::ScheduledOp op) {
  FailureOr<SmallVector<rt::Sharing>> sharing = op.getSharing(symbols);
  if (failed(sharing))
    return {};
  llvm::erase_if(*sharing, [](rt::Sharing pair) { return !pair.isForced; });
  return *sharing;
}

/// Behind what makes the last of its operands, and behind who reads what it
/// writes over. What stands in the update stays there, but for sums of
/// gradients that are there above it.
bool Overlap::findBegin(BegunOp &begun) {
  Operation *op = begun.op;
  auto comeBehind = [&](Operation *other) {
    if (other && other != op &&
        (!begun.after || begun.after->isBeforeInBlock(other)))
      begun.after = other;
  };
  SmallVector<Value> reads = begun.op.getReads();
  for (Value read : reads)
    comeBehind(read.getDefiningOp());
  for (rt::Sharing pair : begun.overwrites)
    for (OpOperand *use : getUsesOfBytes(reads[pair.read]))
      comeBehind(use->getOwner());
  if (begun.after && op->isBeforeInBlock(begun.after))
    return false;
  if (update && update->isBeforeInBlock(op)) {
    bool isReady = begun.after && begun.after->isBeforeInBlock(update);
    begun.isOnce = isReady && isSumInPlace(op);
    if (begun.isOnce)
      return true;
    comeBehind(update);
    auto collective = dyn_cast<rt::CollectiveOp>(op);
    return collective && collective.getKind() == rt::Collective::GatherShares;
  }
  if (isSumInPlace(op))
    return true;
  int numGemms = 0;
  for (Operation *before = op->getPrevNode(); before && before != begun.after;
       before = before->getPrevNode())
    if (isGemm(before) && ++numGemms > kGemmsBefore) {
      begun.after = before;
      break;
    }
  return true;
}

/// What writes over the bytes of `kept` before `before`, or that.
Operation *Overlap::findOverwrite(Value kept, Operation *before) {
  for (OpOperand *use : getUsesOfBytes(kept)) {
    auto user = dyn_cast<rt::ScheduledOp>(use->getOwner());
    if (!user || !user->isBeforeInBlock(before))
      continue;
    SmallVector<Value> reads = user.getReads();
    if (llvm::any_of(getOverwrites(user), [&](rt::Sharing pair) {
          return reads[pair.read] == use->get();
        }))
      before = user;
  }
  return before;
}

/// Before the first op that reads what it makes, or writes over what it reads;
/// sums that run once, where the update begins.
bool Overlap::findWait(BegunOp &begun) {
  Operation *op = begun.op;
  bool isBelow = update && update->isBeforeInBlock(op);
  begun.before =
      update && (!isBelow || begun.isOnce) ? update : block.getTerminator();
  if (!begun.isOnce)
    for (Operation *user : op->getUsers()) {
      if (isa<rt::JoinOp>(user))
        return false; // Its parts are made where they belong.
      if (user->isBeforeInBlock(begun.before))
        begun.before = user;
    }
  SmallVector<Value> reads = begun.op.getReads();
  llvm::BitVector isOverwritten(reads.size());
  for (rt::Sharing pair : begun.overwrites)
    isOverwritten.set(pair.read);
  for (auto [number, read] : llvm::enumerate(reads))
    if (!isOverwritten[number]) {
      begun.kept.push_back(read);
      begun.before = findOverwrite(read, begun.before);
    }
  return begun.before != op;
}

/// Whether anything is computed meanwhile.
bool Overlap::hidesWork(const BegunOp &begun) {
  Operation *next = begun.after ? begun.after->getNextNode() : &block.front();
  for (; next && next != begun.before; next = next->getNextNode())
    if (isWork(next))
      return true;
  return false;
}

/// What may be begun, without places.
BegunOp Overlap::open(Operation *op) {
  BegunOp begun;
  begun.op = cast<rt::ScheduledOp>(op);
  begun.overwrites = getOverwrites(begun.op);
  return begun;
}

bool Overlap::findPlaces(BegunOp &begun) {
  return findBegin(begun) && findWait(begun);
}

//===----------------------------------------------------------------------===//
// Work that comes beside
//===----------------------------------------------------------------------===//

/// Moves `op`, which stands behind, before the wait, if all that it reads is
/// there by then, and no byte more is needed. What it writes over is not what
/// the exchange has, and nobody between reads it before.
bool Overlap::takeAlong(Operation *op, const BegunOp &begun) {
  rt::ScheduledOp exchange = begun.op;
  auto isThere = [&](Value value) {
    Operation *maker = value.getDefiningOp();
    return !maker || (maker != exchange.getOperation() &&
                      maker->isBeforeInBlock(begun.before));
  };
  SmallVector<Operation *> views;
  for (Value operand : op->getOperands()) {
    if (isThere(operand))
      continue;
    auto view = operand.getDefiningOp<rt::ViewOp>();
    if (!view || !isThere(view.getInput()))
      return false;
    views.push_back(view);
  }
  auto scheduled = cast<rt::ScheduledOp>(op);
  SmallVector<rt::Sharing> overwrites = getOverwrites(scheduled);
  SmallVector<Value> reads = scheduled.getReads();
  for (rt::Sharing pair : overwrites)
    for (OpOperand *use : getUsesOfBytes(reads[pair.read])) {
      Operation *user = use->getOwner();
      const bool comesBetween = user != op && user->isBeforeInBlock(op) &&
                                !user->isBeforeInBlock(begun.before);
      if (user == exchange.getOperation() || comesBetween)
        return false;
    }
  if (!live.moveUp(scheduled, begun.before, overwrites))
    return false;
  for (Operation *view : views)
    view->moveBefore(begun.before);
  op->moveBefore(begun.before);
  return true;
}

/// Brings a GEMM beside the exchange that comes later and needs nothing of
/// it, with what is before that GEMM and it needs; so a shared expert's
/// GEMMs are dealt to the exchanges of the other experts.
bool Overlap::bringWork(const BegunOp &begun) {
  int64_t numSeen = 0;
  bool any = false;
  for (Operation *op = begun.before; op && op != block.getTerminator() &&
                                     op != update && numSeen < kWorkAhead;) {
    Operation *next = op->getNextNode();
    if (isWork(op) && op != begun.before) {
      ++numSeen;
      const bool isLast = isGemm(op);
      if (takeAlong(op, begun)) {
        any = true;
        if (isLast)
          return true;
      }
    }
    op = next;
  }
  return any;
}

/// Of exchanges of rows that nothing is computed beside, those of the most
/// bytes first: offsets and weights of rows take no time of their own.
void Overlap::bringWorkBeside(ArrayRef<Operation *> exchanges) {
  auto findIdle = [&](Operation *op) -> std::optional<BegunOp> {
    BegunOp begun = open(op);
    if (!findPlaces(begun) || hidesWork(begun))
      return std::nullopt;
    return begun;
  };
  SmallVector<Operation *> idle;
  int64_t most = 0;
  for (Operation *op : exchanges)
    if (!isa<rt::CollectiveOp>(op) && findIdle(op)) {
      idle.push_back(op);
      most = std::max(most, getBytes(op));
    }
  // Work that was brought beside one of them can be beside another as well.
  for (Operation *op : idle)
    if (getBytes(op) > most / kMuchLess)
      if (std::optional<BegunOp> begun = findIdle(op))
        bringWork(*begun);
}

//===----------------------------------------------------------------------===//
// Each of them
//===----------------------------------------------------------------------===//

void Overlap::apply(const BegunOp &begun) {
  Operation *op = begun.op;
  OpBuilder builder(begun.before);
  IntegerAttr number = builder.getI64IntegerAttr(nextNumber++);
  if (begun.after)
    op->moveAfter(begun.after);
  else
    op->moveBefore(&block, block.begin());
  op->setAttr(rt::kBegunAttr, number);
  auto wait = rt::WaitOp::create(builder, op->getLoc(), op->getResultTypes(),
                                 number, op->getResults(), begun.kept,
                                 /*outputs=*/ValueRange(),
                                 /*workspace=*/Value());
  for (auto [made, result] : llvm::zip(op->getResults(), wait.getResults()))
    made.replaceAllUsesExcept(result, wait);
  for (StringRef name :
       {StringRef(rt::kNameAttr), StringRef(remat::kReplayAttr)})
    if (Attribute attribute = op->getAttr(name))
      wait->setAttr(name, attribute);
  if (begun.isOnce)
    for (Operation *one : {op, wait.getOperation()})
      one->setAttr(rt::kOnceAttr, builder.getUnitAttr());
  live.place(begun, wait);
}

/// Begins `op` if anything is computed beside it, and no byte more is needed.
bool Overlap::begin(Operation *op, bool isPart) {
  BegunOp begun = open(op);
  begun.isPart = isPart;
  if (!findPlaces(begun) || !hidesWork(begun))
    return false;
  if (!live.hold(begun)) {
    ++numRefused;
    return false;
  }
  apply(begun);
  ++numBegun;
  return true;
}

/// Of a sum of gradients what can be begun early; what is left is one sum.
void Overlap::beginParts(rt::CollectiveOp sums) {
  SmallVector<SumPart> rest;
  SmallVector<SumPart> parts = splitSum(sums, update);
  for (const SumPart &part : parts)
    live.add(part.op, sums);
  sums.erase();
  for (SumPart &part : parts)
    if (!begin(part.op, /*isPart=*/true))
      rest.push_back(std::move(part));
  if (rest.empty())
    return;
  Operation *place = rest.back().op; // Gone then, and its slot is known.
  live.add(joinSums(rest), place);
}

/// What is begun already keeps its place and its number.
SmallVector<Operation *> Overlap::findExchanges() {
  SmallVector<Operation *> exchanges;
  for (Operation &op : block) {
    if (isa<rt::UpdateOp>(op))
      update = &op;
    if (std::optional<int64_t> number = rt::getBegun(&op))
      nextNumber = std::max(nextNumber, *number + 1);
    else if (isExchange(op))
      exchanges.push_back(&op);
  }
  return exchanges;
}

LogicalResult Overlap::run(int64_t alignment) {
  SmallVector<Operation *> exchanges = findExchanges();
  if (exchanges.empty())
    return success();
  if (failed(live.read(symbols, step, alignment)))
    return failure();
  bringWorkBeside(exchanges);
  for (Operation *op : exchanges) {
    auto sums = dyn_cast<rt::CollectiveOp>(op);
    if (sums && update && isSumToSplit(sums, update))
      beginParts(sums);
    else
      begin(op, /*isPart=*/false);
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
  Overlap overlap(symbols, step);
  if (failed(overlap.run(recorded ? recorded.getInt() : rt::kDefaultAlignment)))
    return signalPassFailure();
  remark::passed(step.getLoc(), remark::RemarkOpts::name("Overlapped")
                                    .category("Memory")
                                    .function(step.getName()))
      << remark::metric("begun", overlap.numBegun)
      << remark::metric("refused", overlap.numRefused);
}
