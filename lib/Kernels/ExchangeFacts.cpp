//===- ExchangeFacts.cpp - What ranks do together, in a schedule ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelBody.h"
#include "PrepareSchedule.h"
#include "ScheduleBuilder.h"
#include "reprise/ABI/Lanes.h"
#include "reprise/ABI/Model.h"
#include "reprise/Dialect/NN/NNExpertRankOps.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/GroupSums.h"
#include "reprise/Interfaces/EvenRows.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

static Operation *form(OpBuilder &builder, SendOp op) {
  return rt::SendOp::create(builder, op.getLoc(), op.getValue(),
                            op.getAxisAttr(), op.getPeerAttr(),
                            op.getLaneAttr(), op.getPlacesAttr());
}

static Operation *form(OpBuilder &builder, ReceiveOp op) {
  return rt::ReceiveOp::create(builder, op.getLoc(), op.getType(),
                               /*output=*/Value(), op.getAxisAttr(),
                               op.getPeerAttr(), op.getLaneAttr(),
                               op.getPlacesAttr());
}

namespace {
/// A value that goes from one stage to another.
template <typename OpTy>
struct Transfer : ScheduleBody::ExternalModel<Transfer<OpTy>, OpTy> {
  void buildSchedule(Operation *op, ScheduleBuilder &schedule) const {
    auto transfer = cast<OpTy>(op);
    OpBuilder &builder = schedule.getBuilder();
    Operation *formed = form(builder, transfer);
    op->replaceAllUsesWith(formed);
    schedule.annotate(formed, op, op);
    std::string name = op->getName().stripDialect().str();
    name += REPRISE_IS_GRADIENT_LANE(transfer.getLane()) ? "_gradient"
                                                         : "_activation";
    formed->setAttr(rt::kNameAttr, builder.getStringAttr(name));
  }
};

struct Update : ScheduleBody::ExternalModel<Update, UpdateOp> {
  void buildSchedule(Operation *op, ScheduleBuilder &schedule) const {
    rt::UpdateOp::create(schedule.getBuilder(), op->getLoc());
  }
};

//===----------------------------------------------------------------------===//
// Sums and parts
//===----------------------------------------------------------------------===//

template <typename OpTy, rt::Collective kind>
struct Meeting : ScheduleBody::ExternalModel<Meeting<OpTy, kind>, OpTy> {
  void buildSchedule(Operation *op, ScheduleBuilder &schedule) const {
    auto axis = op->getAttrOfType<StringAttr>("axis");
    auto dim = op->getAttrOfType<IntegerAttr>("dim");
    auto members = op->getAttrOfType<DenseI64ArrayAttr>("members");
    int64_t ranks = members ? members.size() : schedule.getAxisSize(axis);
    auto formed = rt::CollectiveOp::create(
        schedule.getBuilder(), op->getLoc(), op->getResultTypes(), kind,
        op->getOperands(), /*outputs=*/ValueRange(), /*workspace=*/Value(),
        axis, ranks, dim ? dim.getInt() : 0, members);
    if (Attribute groups = op->getAttr(kReductionGroupsAttr))
      formed->setAttr(rt::kGroupsAttr, groups);
    schedule.annotate(formed, op, op);
    op->replaceAllUsesWith(formed.getResults());
  }
};

//===----------------------------------------------------------------------===//
// Rows of experts
//===----------------------------------------------------------------------===//

/// The op of rt has the name of that of nn.
template <typename OpTy>
struct Rows : ScheduleBody::ExternalModel<Rows<OpTy>, OpTy> {
  void buildSchedule(Operation *op, ScheduleBuilder &schedule) const {
    OpBuilder &builder = schedule.getBuilder();
    auto axis = op->getAttrOfType<StringAttr>("axis");
    OperationState state(op->getLoc(),
                         ("rt." + op->getName().stripDialect()).str());
    state.addOperands(op->getOperands());
    state.addTypes(op->getResultTypes());
    state.addAttribute("axis", axis);
    state.addAttribute("ranks",
                       builder.getI64IntegerAttr(schedule.getAxisSize(axis)));
    for (StringRef name : {"round", "rows"})
      if (Attribute number = op->getAttr(name))
        state.addAttribute(name, number);
    if (auto back = dyn_cast<ReturnRowsOp>(op); back && back.getKept())
      state.addAttribute("keeps", builder.getUnitAttr());
    if (Attribute even = op->getAttr(kEvenNNRowsAttr))
      state.addAttribute(kEvenRTRowsAttr, even);
    state.addAttribute(
        "operandSegmentSizes",
        builder.getDenseI32ArrayAttr({int32_t(op->getNumOperands()), 0, 0}));
    Operation *formed = builder.create(state);
    schedule.annotate(formed, op, op);
    op->replaceAllUsesWith(formed);
  }
};

/// Offsets of a round lie among those of all.
struct RoundOffsets
    : ScheduleBody::ExternalModel<RoundOffsets, RoundOffsetsOp> {
  void buildSchedule(Operation *op, ScheduleBuilder &schedule) const {
    auto offsets = cast<RoundOffsetsOp>(op);
    auto type = cast<RankedTensorType>(offsets.getOut().getType());
    auto view = rt::ViewOp::create(
        schedule.getBuilder(), op->getLoc(), type, offsets.getOwn(),
        int64_t(offsets.getRound()) * type.getNumElements());
    op->replaceAllUsesWith(view);
  }
};
} // namespace

/// The rows of rounds that `value` has and that another round can be added to,
/// or null: nobody else reads them.
static ReturnRowsOp getRowsOfRounds(Value value) {
  auto back = value.getDefiningOp<ReturnRowsOp>();
  return back && back.getRound() && value.hasOneUse() ? back : ReturnRowsOp();
}

/// Whether `more` are of a round that `others` have no rows of, nor what these
/// are put among.
static bool areOfOtherRounds(ReturnRowsOp more, ReturnRowsOp others) {
  if (others.getAll() != more.getAll() || others.getAxis() != more.getAxis())
    return false;
  while (others && others.getRowsAttr() == more.getRowsAttr() &&
         others.getRoundAttr() != more.getRoundAttr()) {
    if (!others.getKept())
      return true;
    others = others.getKept().getDefiningOp<ReturnRowsOp>();
  }
  return false;
}

void kernels::putAmongOthers(Block &block) {
  for (auto add : llvm::make_early_inc_range(block.getOps<AddOp>())) {
    ReturnRowsOp others = getRowsOfRounds(add->getOperand(0));
    ReturnRowsOp more = getRowsOfRounds(add->getOperand(1));
    if (!others || !more || more.getKept() || !areOfOtherRounds(more, others) ||
        more->isBeforeInBlock(others))
      continue;
    more.getKeptMutable().assign(others.getOut());
    add->getResult(0).replaceAllUsesWith(more.getOut());
    add->erase();
  }
}

template <template <typename> typename Model, typename... Ops>
static void attach(MLIRContext &context) {
  (Ops::template attachInterface<Model<Ops>>(context), ...);
}

template <typename OpTy, rt::Collective kind>
static void attach(MLIRContext &context) {
  OpTy::template attachInterface<Meeting<OpTy, kind>>(context);
}

void kernels::attachExchangeBodies(MLIRContext &context) {
  UpdateOp::attachInterface<Update>(context);
  attach<Transfer, SendOp, ReceiveOp>(context);
  attach<AllReduceOp, rt::Collective::AllReduce>(context);
  attach<AllGatherOp, rt::Collective::AllGather>(context);
  attach<ReduceSharesOp, rt::Collective::ReduceShares>(context);
  attach<GatherSharesOp, rt::Collective::GatherShares>(context);
  attach<ReduceScatterOp, rt::Collective::ReduceScatter>(context);
  attach<Rows, GatherOffsetsOp, SendRowsOp, ReturnRowsOp>(context);
  RoundOffsetsOp::attachInterface<RoundOffsets>(context);
}
