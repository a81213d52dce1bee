//===- ExchangeFacts.cpp - What ranks do together, in a schedule ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelBody.h"
#include "ScheduleBuilder.h"
#include "reprise/ABI/Model.h"
#include "reprise/Dialect/NN/NNExpertRankOps.h"
#include "reprise/Dialect/NN/NNOps.h"

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
    name += transfer.getLane() == REPRISE_LANE_GRADIENTS ? "_gradient"
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
    state.addAttribute(
        "operandSegmentSizes",
        builder.getDenseI32ArrayAttr({int32_t(op->getNumOperands()), 0, 0}));
    Operation *formed = builder.create(state);
    schedule.annotate(formed, op, op);
    op->replaceAllUsesWith(formed);
  }
};
} // namespace

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
}
