//===- NNVjp.cpp - The vector-Jacobian product of every nn op ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

//
// Each op builds only the gradients that are asked for. The ops built carry the
// location of the op they differentiate; the differentiate pass gives them its
// scope.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "reprise/Dialect/NN/NNOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

//===----------------------------------------------------------------------===//
// Embeddings
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::buildVjp(OpBuilder &builder,
                                    ArrayRef<Value> cotangents,
                                    ArrayRef<bool> needed,
                                    MutableArrayRef<Value> gradients) {
  if (needed[1])
    gradients[1] = EmbeddingBackwardOp::create(
        builder, getLoc(), getSumType(getTable()), getIds(), cotangents[0]);
  return refuse(*this, needed, {0});
}

LogicalResult AddPositionsOp::buildVjp(OpBuilder &builder,
                                       ArrayRef<Value> cotangents,
                                       ArrayRef<bool> needed,
                                       MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = cotangents[0];
  if (needed[1])
    gradients[1] = PositionsBackwardOp::create(
        builder, getLoc(), getSumType(getTable()), cotangents[0]);
  return success();
}

//===----------------------------------------------------------------------===//
// Norm and projections
//===----------------------------------------------------------------------===//

LogicalResult LayerNormOp::buildVjp(OpBuilder &builder,
                                    ArrayRef<Value> cotangents,
                                    ArrayRef<bool> needed,
                                    MutableArrayRef<Value> gradients) {
  if (cotangents[1] || cotangents[2])
    return emitOpError("has no derivative of its mean and rstd");
  Value dout = cotangents[0];
  if (needed[1])
    gradients[1] =
        LayerNormBackwardGainOp::create(builder, getLoc(), getGain().getType(),
                                        getInput(), getMean(), getRstd(), dout);
  if (needed[2])
    gradients[2] =
        SumRowsOp::create(builder, getLoc(), getBias().getType(), dout);
  if (needed[0])
    gradients[0] = LayerNormBackwardOp::create(
        builder, getLoc(), getInput().getType(), getInput(), getGain(),
        getMean(), getRstd(), dout);
  return success();
}

LogicalResult RMSNormOp::buildVjp(OpBuilder &builder,
                                  ArrayRef<Value> cotangents,
                                  ArrayRef<bool> needed,
                                  MutableArrayRef<Value> gradients) {
  if (cotangents[1])
    return emitOpError("has no derivative of its rstd");
  Value dout = cotangents[0];
  if (needed[1])
    gradients[1] = RMSNormBackwardGainOp::create(
        builder, getLoc(), getGain().getType(), getInput(), getRstd(), dout);
  if (needed[0])
    gradients[0] =
        RMSNormBackwardOp::create(builder, getLoc(), getInput().getType(),
                                  getInput(), getGain(), getRstd(), dout);
  return success();
}

LogicalResult LinearOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents,
                                 ArrayRef<bool> needed,
                                 MutableArrayRef<Value> gradients) {
  Value dout = cotangents[0];
  if (needed[1])
    gradients[1] = LinearBackwardWeightOp::create(
        builder, getLoc(), getSumType(getWeight()), getInput(), dout,
        getLayout());
  if (getBias() && needed[2])
    gradients[2] =
        SumRowsOp::create(builder, getLoc(), getSumType(getBias()), dout);
  if (needed[0])
    gradients[0] =
        LinearBackwardInputOp::create(builder, getLoc(), getInput().getType(),
                                      dout, getWeight(), getLayout());
  return success();
}

//===----------------------------------------------------------------------===//
// Pointwise
//===----------------------------------------------------------------------===//

LogicalResult GeluOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents,
                               ArrayRef<bool> needed,
                               MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = GeluBackwardOp::create(builder, getLoc(), getInput(),
                                          cotangents[0], getForm());
  return success();
}

LogicalResult SwiGLUOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents,
                                 ArrayRef<bool> needed,
                                 MutableArrayRef<Value> gradients) {
  if (!needed[0] && !needed[1])
    return success();
  Type type = getOut().getType();
  auto backward =
      SwiGLUBackwardOp::create(builder, getLoc(), TypeRange{type, type},
                               getGate(), getUp(), cotangents[0]);
  for (unsigned index : {0u, 1u})
    if (needed[index])
      gradients[index] = backward.getResult(index);
  return success();
}

LogicalResult AddOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents,
                              ArrayRef<bool> needed,
                              MutableArrayRef<Value> gradients) {
  for (unsigned index : {0u, 1u})
    if (needed[index])
      gradients[index] = cotangents[0];
  return success();
}

LogicalResult ScaleOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents,
                                ArrayRef<bool> needed,
                                MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] =
        ScaleOp::create(builder, getLoc(), cotangents[0], getFactorAttr());
  return success();
}

LogicalResult DropoutOp::buildVjp(OpBuilder &builder,
                                  ArrayRef<Value> cotangents,
                                  ArrayRef<bool> needed,
                                  MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = DropoutOp::create(builder, getLoc(), getInput().getType(),
                                     cotangents[0], getRng(), getRateAttr(),
                                     getStreamAttr(), getPartAttr());
  return refuse(*this, needed, {1});
}

LogicalResult CastOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents,
                               ArrayRef<bool> needed,
                               MutableArrayRef<Value> gradients) {
  // What adds up to the gradient of a working copy is f32 already.
  Type type = getInput().getType();
  if (needed[0])
    gradients[0] = cotangents[0].getType() == type
                       ? cotangents[0]
                       : CastOp::create(builder, getLoc(), type, cotangents[0]);
  return success();
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

LogicalResult RopeOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents,
                               ArrayRef<bool> needed,
                               MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = RopeBackwardOp::create(
        builder, getLoc(), getInput().getType(), cotangents[0], getRotary(),
        getHeadsAttr(), getFromAttr(), getStyleAttr());
  return refuse(*this, needed, {1});
}

LogicalResult AttentionOp::buildVjp(OpBuilder &builder,
                                    ArrayRef<Value> cotangents,
                                    ArrayRef<bool> needed,
                                    MutableArrayRef<Value> gradients) {
  if (cotangents[1])
    return emitOpError("has no derivative of its log-sum-exp");
  if (needed[0] || needed[1] || needed[2]) {
    auto backward = AttentionBackwardOp::create(
        builder, getLoc(),
        TypeRange{getQuery().getType(), getKey().getType(),
                  getValue().getType()},
        getQuery(), getKey(), getValue(), getOut(), getLse(), cotangents[0],
        getRng(), getHeadsAttr(), getKvHeadsAttr(), getScaleAttr(),
        getRateAttr(), getStreamAttr(), getPartAttr());
    for (unsigned index : {0u, 1u, 2u})
      if (needed[index])
        gradients[index] = backward.getResult(index);
  }
  return refuse(*this, needed, {3});
}

LogicalResult ScoresOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents,
                                 ArrayRef<bool> needed,
                                 MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] =
        ContextOp::create(builder, getLoc(), getLhs().getType(), cotangents[0],
                          getRhs(), getHeadsAttr(), getKvHeadsAttr(),
                          getScaleAttr(), /*transposed=*/UnitAttr());
  if (needed[1])
    gradients[1] =
        ContextOp::create(builder, getLoc(), getRhs().getType(), cotangents[0],
                          getLhs(), getHeadsAttr(), getKvHeadsAttr(),
                          getScaleAttr(), builder.getUnitAttr());
  return success();
}

LogicalResult ContextOp::buildVjp(OpBuilder &builder,
                                  ArrayRef<Value> cotangents,
                                  ArrayRef<bool> needed,
                                  MutableArrayRef<Value> gradients) {
  Value dout = cotangents[0];
  if (needed[1])
    gradients[1] = ContextOp::create(
        builder, getLoc(), getRows().getType(), getProbs(), dout,
        getHeadsAttr(), getKvHeadsAttr(), getScaleAttr(),
        getTransposed() ? UnitAttr() : builder.getUnitAttr());
  // d probs[i,j] is the product of row i of the output's gradient with row j;
  // transposed, the roles change.
  if (needed[0])
    gradients[0] = ScoresOp::create(
        builder, getLoc(), getProbs().getType(),
        getTransposed() ? getRows() : dout, getTransposed() ? dout : getRows(),
        getHeadsAttr(), getKvHeadsAttr(), getScaleAttr());
  return success();
}

LogicalResult SoftmaxOp::buildVjp(OpBuilder &builder,
                                  ArrayRef<Value> cotangents,
                                  ArrayRef<bool> needed,
                                  MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] =
        SoftmaxBackwardOp::create(builder, getLoc(), getOut(), cotangents[0]);
  return success();
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

LogicalResult CrossEntropyOp::buildVjp(OpBuilder &builder,
                                       ArrayRef<Value> cotangents,
                                       ArrayRef<bool> needed,
                                       MutableArrayRef<Value> gradients) {
  if (cotangents[1])
    return emitOpError("has no derivative of its log-sum-exp");
  if (needed[0])
    gradients[0] = CrossEntropyBackwardOp::create(
        builder, getLoc(), getLogits().getType(), getLogits(), getTargets(),
        getLse(), cotangents[0], getClassesAttr());
  return refuse(*this, needed, {1});
}

LogicalResult MeanOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents,
                               ArrayRef<bool> needed,
                               MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = BroadcastOp::create(
        builder, getLoc(), getInput().getType(), cotangents[0],
        builder.getF32FloatAttr(1.0f /
                                float(getInput().getType().getNumElements())));
  return success();
}
