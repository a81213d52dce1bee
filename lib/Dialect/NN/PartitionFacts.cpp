//===- PartitionFacts.cpp - How ranks share ops of nn ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Facts.h"
#include "reprise/Dialect/NN/NNActivationOps.h"
#include "reprise/Interfaces/Partitionable.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

static int64_t getLastDim(Value value) {
  return cast<RankedTensorType>(value.getType()).getRank() - 1;
}

/// Gives `value` these sizes in place of as many of its first.
static void setFirstSizes(Value value, ArrayRef<int64_t> sizes) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  llvm::copy(sizes, shape.begin());
  value.setType(type.clone(shape));
}

static ArrayRef<int64_t> getSizes(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

namespace {
/// An op of which its way, and the number of operands whose columns it keeps
/// apart, say all.
template <typename OpTy, PartWay way, unsigned columns = 0>
struct Way : Partitionable::ExternalModel<Way<OpTy, way, columns>, OpTy> {
  PartWay getPartWay(Operation *) const { return way; }
  unsigned getNumColumnOperands(Operation *) const { return columns; }
};

struct LinearWay : Partitionable::ExternalModel<LinearWay, LinearOp> {
  PartWay getPartWay(Operation *) const { return PartWay::Linear; }
  int64_t getResultDim(Operation *op, int64_t) const {
    return getLastDim(op->getResult(0));
  }
  int64_t getResultsDim(Operation *op) const { return isInOut(op) ? 1 : 0; }
  int64_t getTermsDim(Operation *op) const { return isInOut(op) ? 0 : 1; }
  int64_t getBiasOperand(Operation *op) const {
    return cast<LinearOp>(op).getBias() ? 2 : -1;
  }

private:
  static bool isInOut(Operation *op) {
    return cast<LinearOp>(op).getLayout() == WeightLayout::InOut;
  }
};

/// A linear of rows, `[R, C]`, with a weight `[E, N, K]`.
struct GroupedLinearWay
    : Partitionable::ExternalModel<GroupedLinearWay, GroupedLinearOp> {
  PartWay getPartWay(Operation *) const { return PartWay::Linear; }
  int64_t getResultDim(Operation *, int64_t) const { return 1; }
  int64_t getResultsDim(Operation *) const { return 1; }
  int64_t getTermsDim(Operation *) const { return 2; }
  SmallVector<unsigned> getExpertOperands(Operation *op) const {
    if (cast<GroupedLinearOp>(op).getOrder())
      return {2, 3, 4};
    return {2};
  }
  void fitTokens(Operation *op) const {
    auto linear = cast<GroupedLinearOp>(op);
    Value rows = linear.getOrder() ? linear.getOrder() : linear.getInput();
    setFirstSizes(linear.getOut(), getSizes(rows).front());
  }
};

/// What makes something of each token `[..., E]`.
template <typename OpTy>
struct TokensWay : Partitionable::ExternalModel<TokensWay<OpTy>, OpTy> {
  PartWay getPartWay(Operation *) const { return PartWay::Tokens; }
  void fitTokens(Operation *op) const {
    setFirstSizes(op->getResult(0), getSizes(op->getOperand(0)).drop_back());
  }
};

/// Rows of the tokens `[..., S]` and their slots; none is dropped.
struct SortRowsWay : Partitionable::ExternalModel<SortRowsWay, SortRowsOp> {
  PartWay getPartWay(Operation *) const { return PartWay::Tokens; }
  void fitTokens(Operation *op) const {
    auto sort = cast<SortRowsOp>(op);
    setFirstSizes(sort.getOrder(), sort.getIds().getType().getNumElements());
    setFirstSizes(sort.getInverse(), getSizes(sort.getIds()));
  }
};

/// As many as there are rows.
struct PermuteWay : Partitionable::ExternalModel<PermuteWay, PermuteOp> {
  PartWay getPartWay(Operation *) const { return PartWay::Tokens; }
  void fitTokens(Operation *op) const {
    auto permute = cast<PermuteOp>(op);
    setFirstSizes(permute.getOut(), getSizes(permute.getOrder()));
  }
};

/// Back from rows to tokens.
struct CombineWay : Partitionable::ExternalModel<CombineWay, CombineOp> {
  PartWay getPartWay(Operation *) const { return PartWay::Sum; }
  void fitTokens(Operation *op) const {
    auto combine = cast<CombineOp>(op);
    setFirstSizes(combine.getOut(), getSizes(combine.getInverse()).drop_back());
  }
};

/// The weight of a row is that of all of its columns.
struct WeightedSwiGLUWay
    : Partitionable::ExternalModel<WeightedSwiGLUWay, WeightedSwiGLUOp> {
  PartWay getPartWay(Operation *) const { return PartWay::Heads; }
  unsigned getNumColumnOperands(Operation *) const { return 2; }
  SmallVector<unsigned> getSharedOperands(Operation *) const { return {2}; }
  void fitTokens(Operation *op) const {
    op->getResult(0).setType(op->getOperand(0).getType());
  }
};

/// Heads of the result 1, too, are those of the operand 0; what all heads share
/// is whole.
struct LatentHeadsWay
    : Partitionable::ExternalModel<LatentHeadsWay, LatentHeadsOp> {
  PartWay getPartWay(Operation *) const { return PartWay::Heads; }
  unsigned getNumColumnOperands(Operation *) const { return 1; }
  unsigned getNumColumnResults(Operation *) const { return 2; }
  SmallVector<unsigned> getSharedOperands(Operation *) const { return {1}; }
  int64_t getNumHeads(Operation *op) const {
    return cast<LatentHeadsOp>(op).getHeads();
  }
};

struct AddWay : Partitionable::ExternalModel<AddWay, AddOp> {
  PartWay getPartWay(Operation *) const { return PartWay::Pointwise; }
  bool addsOperands(Operation *) const { return true; }
};

/// Groups of columns are heads; over whole rows there is one group.
struct RMSNormWay : Partitionable::ExternalModel<RMSNormWay, RMSNormOp> {
  PartWay getPartWay(Operation *) const { return PartWay::Norm; }
  unsigned getNumColumnOperands(Operation *) const { return 1; }
  int64_t getNumHeads(Operation *op) const {
    auto norm = cast<RMSNormOp>(op);
    return norm.getInput().getType().getShape().back() /
           norm.getGain().getType().getNumElements();
  }
  void fitResults(Operation *op, int64_t) const {
    auto norm = cast<RMSNormOp>(op);
    SmallVector<int64_t> shape(norm.getOut().getType().getShape());
    shape.pop_back();
    if (int64_t heads = getNumHeads(op); heads > 1)
      shape.push_back(heads);
    norm.getRstd().setType(norm.getRstd().getType().clone(shape));
  }
};

struct RopeWay : Partitionable::ExternalModel<RopeWay, RopeOp> {
  PartWay getPartWay(Operation *) const { return PartWay::Heads; }
  unsigned getNumColumnOperands(Operation *) const { return 1; }
  int64_t getNumHeads(Operation *op) const {
    return cast<RopeOp>(op).getHeads();
  }
  bool passesHeads(Operation *) const { return true; }
};

struct DropoutWay : Partitionable::ExternalModel<DropoutWay, DropoutOp> {
  PartWay getPartWay(Operation *) const { return PartWay::Pointwise; }
  unsigned getNumColumnOperands(Operation *) const { return 1; }
  std::optional<int64_t> getDrawnDim(Operation *, int64_t dim) const {
    return dim;
  }
};

/// What it draws is for `[B, H, T, T]`, and so is `lse`, `[B, H, T]`.
struct AttentionWay : Partitionable::ExternalModel<AttentionWay, AttentionOp> {
  PartWay getPartWay(Operation *) const { return PartWay::Heads; }
  unsigned getNumColumnOperands(Operation *) const { return 3; }
  int64_t getNumHeads(Operation *op) const {
    return cast<AttentionOp>(op).getHeads();
  }
  int64_t getNumKeyHeads(Operation *op) const {
    return cast<AttentionOp>(op).getKeyHeads();
  }
  SmallVector<unsigned> getKeyHeadOperands(Operation *) const { return {1, 2}; }
  bool scoresHeads(Operation *) const { return true; }
  std::optional<int64_t> getDrawnDim(Operation *, int64_t) const { return 1; }
  void fitResults(Operation *op, int64_t ranks) const {
    auto lse = cast<AttentionOp>(op).getLse();
    SmallVector<int64_t> shape(lse.getType().getShape());
    shape[1] = llvm::divideCeil(shape[1], ranks);
    lse.setType(lse.getType().clone(shape));
  }
};

/// From `[B, T, H*D]` to `[B, H, T, T]`.
struct ScoresWay : Partitionable::ExternalModel<ScoresWay, ScoresOp> {
  PartWay getPartWay(Operation *) const { return PartWay::Heads; }
  unsigned getNumColumnOperands(Operation *) const { return 2; }
  int64_t getResultDim(Operation *, int64_t) const { return 1; }
  int64_t getOperandDim(Operation *, unsigned, int64_t) const { return 2; }
  int64_t getNumHeads(Operation *op) const {
    return cast<ScoresOp>(op).getHeads();
  }
  int64_t getNumKeyHeads(Operation *op) const {
    return cast<ScoresOp>(op).getKeyHeads();
  }
  SmallVector<unsigned> getKeyHeadOperands(Operation *) const { return {1}; }
  bool scoresHeads(Operation *) const { return true; }
};

/// From `[B, H, T, T]` and `[B, T, H*D]` to `[B, T, H*D]`.
struct ContextWay : Partitionable::ExternalModel<ContextWay, ContextOp> {
  PartWay getPartWay(Operation *) const { return PartWay::Heads; }
  unsigned getNumColumnOperands(Operation *) const { return 2; }
  int64_t getResultDim(Operation *op, int64_t) const {
    return getLastDim(op->getResult(0));
  }
  int64_t getOperandDim(Operation *, unsigned number, int64_t dim) const {
    return number == 0 ? 1 : dim;
  }
  int64_t getNumHeads(Operation *op) const {
    return cast<ContextOp>(op).getHeads();
  }
  int64_t getNumKeyHeads(Operation *op) const {
    return cast<ContextOp>(op).getKeyHeads();
  }
  SmallVector<unsigned> getKeyHeadOperands(Operation *) const { return {1}; }
};
} // namespace

template <typename OpTy, PartWay way, unsigned columns = 0>
static void attach(MLIRContext &context) {
  OpTy::template attachInterface<Way<OpTy, way, columns>>(context);
}

void nn::attachPartitionFacts(MLIRContext &context) {
  attach<EmbeddingOp, PartWay::Lookup>(context);
  attach<AddPositionsOp, PartWay::Positions>(context);
  attach<LayerNormOp, PartWay::Norm>(context);
  attach<CrossEntropyOp, PartWay::Loss>(context);
  attach<CastOp, PartWay::Rounding, 1>(context);
  attach<ScaleOp, PartWay::Pointwise, 1>(context);
  attach<GeluOp, PartWay::Pointwise, 1>(context);
  attach<SquaredReluOp, PartWay::Pointwise, 1>(context);
  attach<SwiGLUOp, PartWay::Pointwise, 2>(context);
  attach<SoftmaxOp, PartWay::Heads, 1>(context);
  attach<CountRowsOp, PartWay::Count>(context);
  attach<CountChoicesOp, PartWay::Count>(context);
  attach<SplitColumnsOp, PartWay::Norm>(context);
  attach<GateWeightOp, PartWay::Norm>(context);
  attach<JoinColumnsOp, PartWay::Join>(context);
  attach<CropPositionsOp, PartWay::Range>(context);
  attach<PadPositionsOp, PartWay::Sum>(context);
  AddOp::attachInterface<AddWay>(context);
  ChooseExpertsOp::attachInterface<TokensWay<ChooseExpertsOp>>(context);
  ExpertWeightsOp::attachInterface<TokensWay<ExpertWeightsOp>>(context);
  SortRowsOp::attachInterface<SortRowsWay>(context);
  PermuteOp::attachInterface<PermuteWay>(context);
  CombineOp::attachInterface<CombineWay>(context);
  GroupedLinearOp::attachInterface<GroupedLinearWay>(context);
  WeightedSwiGLUOp::attachInterface<WeightedSwiGLUWay>(context);
  LatentHeadsOp::attachInterface<LatentHeadsWay>(context);
  LinearOp::attachInterface<LinearWay>(context);
  RMSNormOp::attachInterface<RMSNormWay>(context);
  RopeOp::attachInterface<RopeWay>(context);
  DropoutOp::attachInterface<DropoutWay>(context);
  AttentionOp::attachInterface<AttentionWay>(context);
  ScoresOp::attachInterface<ScoresWay>(context);
  ContextOp::attachInterface<ContextWay>(context);
}
