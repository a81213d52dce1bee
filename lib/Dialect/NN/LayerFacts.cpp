//===- LayerFacts.cpp - What ops of nn tell of their layer ----------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Facts.h"
#include "reprise/Dialect/NN/NNActivationOps.h"
#include "reprise/Interfaces/Facts.h"
#include "reprise/Support/Modules.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

static std::optional<ModuleKind> getModule(Operation *op) {
  ScopeAttr scope = op ? getScope(op) : ScopeAttr();
  return scope ? parseModule(scope.getModule()) : std::nullopt;
}

static int64_t getWidth(Value value) {
  return cast<ShapedType>(value.getType()).getShape().back();
}

/// Whether `op` makes `[B, T, C]` or more: what is of rows alone says nothing
/// of blocks.
static bool isOfTokens(Operation *op) {
  auto type = dyn_cast<ShapedType>(op->getResult(0).getType());
  return type && type.getRank() >= 3;
}

/// Whether `value` is the residual stream, rather than what a block puts out.
static bool isInStream(Value value) {
  Operation *op = value.getDefiningOp();
  std::optional<ModuleKind> module = getModule(op);
  return !module || module == ModuleKind::Residual ||
         module == ModuleKind::Embedding || module == ModuleKind::FurtherToken;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

template <typename OpTy>
static void describeHeads(OpTy op, Value query, LayerShape &shape) {
  shape.heads = op.getHeads();
  shape.keyHeads = op.getKeyHeads();
  shape.headWidth =
      cast<ShapedType>(query.getType()).getDimSize(2) / shape.heads;
}

static void describe(AttentionOp op, LayerShape &shape) {
  if (!isOfTokens(op))
    return;
  describeHeads(op, op.getQuery(), shape);
  shape.fusedAttention = true;
  shape.attentionDropout = !op.getRate().isZero();
}

static void describe(ScoresOp op, LayerShape &shape) {
  if (isOfTokens(op))
    describeHeads(op, op.getLhs(), shape);
}

/// What latent attention has beside heads.
static void describe(LatentHeadsOp op, LayerShape &shape) {
  shape.sharedKey = getWidth(op.getShared());
  shape.valueWidth = getWidth(op.getValue()) / int64_t(op.getHeads());
}

//===----------------------------------------------------------------------===//
// Norms
//===----------------------------------------------------------------------===//

static void describeNormOfBlock(Operation *op, LayerShape &shape) {
  auto type = cast<ShapedType>(op->getResult(0).getType());
  shape.microBatch = type.getDimSize(0);
  shape.sequence = type.getDimSize(1);
  shape.hidden = type.getDimSize(2);
  (isInStream(op->getOperand(0)) ? shape.normsBefore : shape.normsAfter) = true;
}

/// Of attention: over a latent of keys and values, which comes from a split, or
/// of queries. Other norms are of heads.
static void describeNormOfAttention(RMSNormOp norm, LayerShape &shape) {
  int64_t width = getWidth(norm.getInput());
  auto linear = norm.getInput().getDefiningOp<LinearOp>();
  bool isRead = llvm::any_of(norm.getOut().getUsers(), [](Operation *user) {
    return getModule(user) == ModuleKind::LatentUpProjection;
  });
  if (norm.getInput().getDefiningOp<SplitColumnsOp>())
    shape.keyLatent = width;
  else if (linear && isRead)
    shape.queryLatent = width;
  else
    shape.normedHeads = true;
}

/// Those of what goes into a layer that predicts a further token are before
/// its blocks.
static bool isOfBlocks(Operation *op) {
  return isOfTokens(op) && getModule(op) != ModuleKind::FurtherToken;
}

static void describe(LayerNormOp op, LayerShape &shape) {
  if (isOfBlocks(op))
    describeNormOfBlock(op, shape);
}

static void describe(RMSNormOp op, LayerShape &shape) {
  if (!isOfBlocks(op))
    return;
  if (getModule(op) == ModuleKind::Attention)
    describeNormOfAttention(op, shape);
  else
    describeNormOfBlock(op, shape);
}

//===----------------------------------------------------------------------===//
// Feed-forward blocks
//===----------------------------------------------------------------------===//

static void describeMLP(Operation *op, bool isGated, LayerShape &shape) {
  if (getModule(op) != ModuleKind::MLP || !isOfTokens(op))
    return;
  shape.feedForward = getWidth(op->getResult(0));
  shape.gated = isGated;
}

static void describeShared(Operation *op, bool isWeighted, LayerShape &shape) {
  if (getModule(op) != ModuleKind::SharedExperts)
    return;
  shape.sharedWidth = getWidth(op->getResult(0));
  shape.gatesShared = isWeighted;
}

static void describe(GeluOp op, LayerShape &shape) {
  describeMLP(op, /*isGated=*/false, shape);
}

static void describe(SquaredReluOp op, LayerShape &shape) {
  describeMLP(op, /*isGated=*/false, shape);
}

static void describe(SwiGLUOp op, LayerShape &shape) {
  describeShared(op, /*isWeighted=*/false, shape);
  describeMLP(op, /*isGated=*/true, shape);
}

static void describe(WeightedSwiGLUOp op, LayerShape &shape) {
  describeShared(op, /*isWeighted=*/true, shape);
  if (getModule(op) == ModuleKind::MoEActivation)
    shape.expertWidth = getWidth(op->getResult(0));
}

static void describe(ChooseExpertsOp op, LayerShape &shape) {
  shape.experts = getWidth(op.getLogits());
  shape.slots = getWidth(op.getIds());
}

static void describe(DropoutOp op, LayerShape &shape) {
  if (isOfTokens(op))
    (getModule(op) == ModuleKind::CoreAttention ? shape.attentionDropout
                                                : shape.hiddenDropout) = true;
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

namespace {
template <typename OpTy>
struct Describes : LayerPart::ExternalModel<Describes<OpTy>, OpTy> {
  void describeLayer(Operation *op, LayerShape &shape) const {
    describe(cast<OpTy>(op), shape);
  }
};
} // namespace

template <typename... Ops>
static void attach(MLIRContext &context) {
  (Ops::template attachInterface<Describes<Ops>>(context), ...);
}

void nn::attachLayerFacts(MLIRContext &context) {
  attach<AttentionOp, ScoresOp, LatentHeadsOp, LayerNormOp, RMSNormOp, GeluOp,
         SquaredReluOp, SwiGLUOp, WeightedSwiGLUOp, ChooseExpertsOp, DropoutOp>(
      context);
}
