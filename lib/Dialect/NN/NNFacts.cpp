//===- NNFacts.cpp - What ops of nn say about themselves ------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Facts.h"
#include "reprise/Dialect/NN/NNActivationOps.h"
#include "reprise/Interfaces/Facts.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

//===----------------------------------------------------------------------===//
// Names of results
//===----------------------------------------------------------------------===//

/// The name of the only result after the first.
static StringRef getSuffix(RMSNormOp, unsigned) { return ".rstd"; }
static StringRef getSuffix(AttentionOp, unsigned) { return ".lse"; }
static StringRef getSuffix(CrossEntropyOp, unsigned) { return ".lse"; }
static StringRef getSuffix(SplitColumnsOp, unsigned) { return ".kr"; }
static StringRef getSuffix(LatentHeadsOp, unsigned) { return ".v"; }
static StringRef getSuffix(LayerNormOp, unsigned number) {
  return number == 1 ? ".mean" : ".rstd";
}

namespace {
template <typename OpTy>
struct Names : NamedResults::ExternalModel<Names<OpTy>, OpTy> {
  StringRef getResultSuffix(Operation *op, unsigned number) const {
    return getSuffix(cast<OpTy>(op), number);
  }
};

//===----------------------------------------------------------------------===//
// Made again in the gradient
//===----------------------------------------------------------------------===//

struct GeluInGradient
    : RecomputedInGradient::ExternalModel<GeluInGradient, GeluOp> {
  bool isRecomputedIn(Operation *op, Operation *gradient) const {
    auto gelu = cast<GeluOp>(op);
    auto backward = dyn_cast<GeluBackwardOp>(gradient);
    return backward && backward.getInput() == gelu.getInput() &&
           backward.getForm() == gelu.getForm();
  }
};

struct SquaredReluInGradient
    : RecomputedInGradient::ExternalModel<SquaredReluInGradient,
                                          SquaredReluOp> {
  bool isRecomputedIn(Operation *op, Operation *gradient) const {
    auto backward = dyn_cast<SquaredReluBackwardOp>(gradient);
    return backward &&
           backward.getInput() == cast<SquaredReluOp>(op).getInput();
  }
};

struct SwiGLUInGradient
    : RecomputedInGradient::ExternalModel<SwiGLUInGradient, SwiGLUOp> {
  bool isRecomputedIn(Operation *op, Operation *gradient) const {
    auto swiglu = cast<SwiGLUOp>(op);
    auto backward = dyn_cast<SwiGLUBackwardOp>(gradient);
    return backward && backward.getGate() == swiglu.getGate() &&
           backward.getUp() == swiglu.getUp();
  }
};

//===----------------------------------------------------------------------===//
// Gradients of linear layers
//===----------------------------------------------------------------------===//

struct LinearInputGradient
    : GemmGradient::ExternalModel<LinearInputGradient, LinearBackwardInputOp> {
  bool isOfWeight(Operation *) const { return false; }
  bool isGradientOf(Operation *op, Operation *layer, Value cotangent) const {
    auto input = cast<LinearBackwardInputOp>(op);
    auto linear = dyn_cast<LinearOp>(layer);
    return linear && input.getDout() == cotangent &&
           input.getWeight() == linear.getWeight() &&
           input.getLayout() == linear.getLayout();
  }
};

struct LinearWeightGradient
    : GemmGradient::ExternalModel<LinearWeightGradient,
                                  LinearBackwardWeightOp> {
  bool isOfWeight(Operation *) const { return true; }
  bool isGradientOf(Operation *op, Operation *layer, Value cotangent) const {
    auto weight = cast<LinearBackwardWeightOp>(op);
    auto linear = dyn_cast<LinearOp>(layer);
    return linear && weight.getDout() == cotangent &&
           weight.getInput() == linear.getInput() &&
           weight.getLayout() == linear.getLayout();
  }
};

struct SumOfBias : BiasGradient::ExternalModel<SumOfBias, SumRowsOp> {
  Value getRows(Operation *op) const { return cast<SumRowsOp>(op).getInput(); }
};

struct ReplicateMark : GradientMark::ExternalModel<ReplicateMark, ReplicateOp> {
  Value getMarked(Operation *op) const {
    return cast<ReplicateOp>(op).getInput();
  }
};

//===----------------------------------------------------------------------===//
// Where nothing is trained
//===----------------------------------------------------------------------===//

struct DropoutForm : InferenceForm::ExternalModel<DropoutForm, DropoutOp> {
  Value getPassedOn(Operation *op) const {
    return cast<DropoutOp>(op).getInput();
  }
};

struct TrainingTermForm
    : InferenceForm::ExternalModel<TrainingTermForm, TrainingTermOp> {
  Value getPassedOn(Operation *op) const {
    return cast<TrainingTermOp>(op).getLoss();
  }
};

struct AttentionForm
    : InferenceForm::ExternalModel<AttentionForm, AttentionOp> {
  void setInference(Operation *op) const {
    auto attention = cast<AttentionOp>(op);
    attention.setRate(APFloat(0.0f));
    attention.removePartAttr();
  }
};

/// One text has too few tokens for a capacity.
struct SortedRows : TextRows::ExternalModel<SortedRows, SortRowsOp> {
  SmallVector<Value> getTextResults(Operation *op) const {
    auto sort = cast<SortRowsOp>(op);
    return {sort.getOrder(), sort.getInverse()};
  }
  int64_t getNumTextRows(Operation *op) const {
    return cast<SortRowsOp>(op).getIds().getType().getNumElements();
  }
  void setOneText(Operation *op) const {
    auto sort = cast<SortRowsOp>(op);
    sort.getWeightsMutable().clear();
    sort.removeCapacityAttr();
  }
};

//===----------------------------------------------------------------------===//
// Numbers, tables and shares
//===----------------------------------------------------------------------===//

struct Number : ConstantNumber::ExternalModel<Number, ConstantOp> {
  FloatAttr getNumber(Operation *op) const {
    return cast<ConstantOp>(op).getValueAttr();
  }
};

struct CastRounding : Rounding::ExternalModel<CastRounding, CastOp> {
  Value getRounded(Operation *op) const { return cast<CastOp>(op).getInput(); }
};

struct EmbeddingLookup : Lookup::ExternalModel<EmbeddingLookup, EmbeddingOp> {
  unsigned getTableNumber(Operation *op) const {
    return cast<EmbeddingOp>(op).getTableMutable().getOperandNumber();
  }
};

struct TakenShare : OwnShare::ExternalModel<TakenShare, TakeShareOp> {
  Value getWhole(Operation *op) const {
    return cast<TakeShareOp>(op).getInput();
  }
};

//===----------------------------------------------------------------------===//
// Sums and states
//===----------------------------------------------------------------------===//

struct AccumulateSum : RunningSum::ExternalModel<AccumulateSum, AccumulateOp> {
  Value getSum(Operation *op) const { return cast<AccumulateOp>(op).getSum(); }
  Value getTerm(Operation *op) const {
    return cast<AccumulateOp>(op).getTerm();
  }
  void setSum(Operation *op, Value sum) const {
    cast<AccumulateOp>(op).getSumMutable().assign(sum);
  }
};

struct AccumulateCarrier
    : SumCarrier::ExternalModel<AccumulateCarrier, AccumulateOp> {
  Value getSumBefore(Operation *op, unsigned) const {
    return cast<AccumulateOp>(op).getSum();
  }
};

/// Both results: what is put aside, and what is left.
struct PushCarrier : SumCarrier::ExternalModel<PushCarrier, PushOp> {
  Value getSumBefore(Operation *op, unsigned) const {
    return cast<PushOp>(op).getSum();
  }
};

template <typename OpTy>
struct RanksCarrier : SumCarrier::ExternalModel<RanksCarrier<OpTy>, OpTy> {
  /// The last term, of several.
  Value getSumBefore(Operation *op, unsigned number) const {
    return op->getOperand(op->getNumOperands() - op->getNumResults() + number);
  }
};

struct AdamWUpdate : ParameterUpdate::ExternalModel<AdamWUpdate, AdamWOp> {
  Value getParameter(Operation *op) const {
    return cast<AdamWOp>(op).getParameter();
  }
  Value getGradient(Operation *op) const {
    return cast<AdamWOp>(op).getGradient();
  }
};

using Updates = SmallVector<std::pair<Value, Value>>;

struct PushInPlace : InPlaceUpdate::ExternalModel<PushInPlace, PushOp> {
  Updates getUpdates(Operation *op) const {
    auto push = cast<PushOp>(op);
    return {{push.getSum(), push.getRest()},
            {push.getPlace(), push.getPushed()}};
  }
  StringRef getJointName(Operation *) const { return "push"; }
};

struct BalanceInPlace
    : InPlaceUpdate::ExternalModel<BalanceInPlace, BalanceBiasOp> {
  Updates getUpdates(Operation *op) const {
    auto balance = cast<BalanceBiasOp>(op);
    return {{balance.getBias(), balance.getNewBias()}};
  }
};

struct AdamWInPlace : InPlaceUpdate::ExternalModel<AdamWInPlace, AdamWOp> {
  Updates getUpdates(Operation *op) const {
    auto adamw = cast<AdamWOp>(op);
    Updates updates = {{adamw.getParameter(), adamw.getNewParameter()},
                       {adamw.getMoment1(), adamw.getNewMoment1()},
                       {adamw.getMoment2(), adamw.getNewMoment2()}};
    if (adamw.getWorking())
      updates.push_back({adamw.getWorking(), adamw.getNewWorking()});
    return updates;
  }
  StringRef getJointName(Operation *) const { return "optimizer"; }
};

//===----------------------------------------------------------------------===//
// How Megatron runs them
//===----------------------------------------------------------------------===//

template <typename OpTy, bool isSum>
struct Residual : ResidualPart::ExternalModel<Residual<OpTy, isSum>, OpTy> {
  bool isResidualSum(Operation *) const { return isSum; }
};

/// Sums run beside the gradients of weights. Parts of the positions are
/// gathered once more for these.
template <typename OpTy, bool inForward>
struct Exchange
    : SharedModelExchange::ExternalModel<Exchange<OpTy, inForward>, OpTy> {
  bool runsBesideGemms(Operation *, bool isForward) const {
    return isForward == inForward;
  }
};

//===----------------------------------------------------------------------===//
// Heads in chunks
//===----------------------------------------------------------------------===//

struct HeadChunks : RowChunks::ExternalModel<HeadChunks, LinearCrossEntropyOp> {
  int64_t getChunkRows(Operation *op) const {
    return cast<LinearCrossEntropyOp>(op).getRows();
  }
  void setChunkRows(Operation *op, int64_t rows) const {
    cast<LinearCrossEntropyOp>(op).setRows(rows);
  }
  int64_t getAllRows(Operation *op) const {
    auto losses = cast<LinearCrossEntropyOp>(op).getLosses();
    return cast<ShapedType>(losses.getType()).getNumElements();
  }
  int64_t getRowMultiple(Operation *op) const {
    auto input = cast<LinearCrossEntropyOp>(op).getInput();
    return LinearCrossEntropyOp::getRowBlock(
        cast<ShapedType>(input.getType()).getElementType());
  }
};
} // namespace

template <typename... Ops>
static void attachNames(MLIRContext &context) {
  (Ops::template attachInterface<Names<Ops>>(context), ...);
}

void nn::attachFacts(MLIRContext &context) {
  attachNames<LayerNormOp, RMSNormOp, AttentionOp, CrossEntropyOp,
              SplitColumnsOp, LatentHeadsOp>(context);
  GeluOp::attachInterface<GeluInGradient>(context);
  SquaredReluOp::attachInterface<SquaredReluInGradient>(context);
  SwiGLUOp::attachInterface<SwiGLUInGradient>(context);
  LinearBackwardInputOp::attachInterface<LinearInputGradient>(context);
  LinearBackwardWeightOp::attachInterface<LinearWeightGradient>(context);
  SumRowsOp::attachInterface<SumOfBias>(context);
  ReplicateOp::attachInterface<ReplicateMark>(context);
  SortRowsOp::attachInterface<SortedRows>(context);
  ConstantOp::attachInterface<Number>(context);
  CastOp::attachInterface<CastRounding>(context);
  EmbeddingOp::attachInterface<EmbeddingLookup>(context);
  TakeShareOp::attachInterface<TakenShare>(context);
  DropoutOp::attachInterface<DropoutForm>(context);
  TrainingTermOp::attachInterface<TrainingTermForm>(context);
  AttentionOp::attachInterface<AttentionForm>(context);
  AddBiasOp::attachInterface<Residual<AddBiasOp, false>>(context);
  DropoutOp::attachInterface<Residual<DropoutOp, false>>(context);
  AddOp::attachInterface<Residual<AddOp, true>>(context);
  AllGatherOp::attachInterface<Exchange<AllGatherOp, true>>(context);
  AllReduceOp::attachInterface<Exchange<AllReduceOp, false>>(context);
  ReduceScatterOp::attachInterface<Exchange<ReduceScatterOp, false>>(context);
  AccumulateOp::attachInterface<AccumulateSum, AccumulateCarrier>(context);
  PushOp::attachInterface<PushInPlace, PushCarrier>(context);
  AllReduceOp::attachInterface<RanksCarrier<AllReduceOp>>(context);
  ReduceSharesOp::attachInterface<RanksCarrier<ReduceSharesOp>>(context);
  BalanceBiasOp::attachInterface<BalanceInPlace>(context);
  AdamWOp::attachInterface<AdamWUpdate, AdamWInPlace>(context);
  LinearCrossEntropyOp::attachInterface<HeadChunks>(context);
}
