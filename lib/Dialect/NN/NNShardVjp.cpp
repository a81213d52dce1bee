//===- NNShardVjp.cpp - Derivatives of what works on parts ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The moves between words come in pairs: P to I and I to R, P to S and S to R,
// S to I and I to S.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "mlir/IR/Builders.h"
#include "reprise/Dialect/NN/NNOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

/// `cotangent`, or zeros for the one that nothing asked for.
static Value orZeros(OpBuilder &builder, Value result, Value cotangent) {
  if (cotangent)
    return cotangent;
  return ConstantOp::create(builder, result.getLoc(), result.getType(),
                            builder.getF32FloatAttr(0));
}

//===----------------------------------------------------------------------===//
// From one word to another
//===----------------------------------------------------------------------===//

/// I->R: the ranks' gradients add up.
LogicalResult ReplicateOp::buildVjp(OpBuilder &builder,
                                    ArrayRef<Value> cotangents,
                                    ArrayRef<bool> needed,
                                    MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] =
        AllReduceOp::create(builder, getLoc(), cotangents, getAxisAttr())
            .getSums()
            .front();
  return success();
}

/// P->I: each part has the gradient of the sum, and so has each term of it.
LogicalResult AllReduceOp::buildVjp(OpBuilder &, ArrayRef<Value> cotangents,
                                    ArrayRef<bool> needed,
                                    MutableArrayRef<Value> gradients) {
  for (size_t index = 0; index < gradients.size(); ++index)
    if (needed[index])
      gradients[index] = cotangents[index % cotangents.size()];
  return success();
}

/// S->R and S->I.
LogicalResult AllGatherOp::buildVjp(OpBuilder &builder,
                                    ArrayRef<Value> cotangents,
                                    ArrayRef<bool> needed,
                                    MutableArrayRef<Value> gradients) {
  Type part = getInput().getType();
  if (needed[0] && getWord() == Word::Replicated)
    gradients[0] = ReduceScatterOp::create(
        builder, getLoc(), part, cotangents[0], getAxisAttr(), getDimAttr());
  else if (needed[0])
    gradients[0] = SliceOp::create(builder, getLoc(), part, cotangents[0],
                                   getAxisAttr(), getDimAttr());
  return success();
}

/// P->S.
LogicalResult ReduceScatterOp::buildVjp(OpBuilder &builder,
                                        ArrayRef<Value> cotangents,
                                        ArrayRef<bool> needed,
                                        MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = AllGatherOp::create(builder, getLoc(), getInput().getType(),
                                       cotangents[0], Word::Replicated,
                                       getAxis(), getDim());
  return success();
}

/// I->S.
LogicalResult SliceOp::buildVjp(OpBuilder &builder, ArrayRef<Value> cotangents,
                                ArrayRef<bool> needed,
                                MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = AllGatherOp::create(builder, getLoc(), getInput().getType(),
                                       cotangents[0], Word::Invariant,
                                       getAxis(), getDim());
  return success();
}

//===----------------------------------------------------------------------===//
// On parts of a vocabulary
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingPartOp::buildVjp(OpBuilder &builder,
                                        ArrayRef<Value> cotangents,
                                        ArrayRef<bool> needed,
                                        MutableArrayRef<Value> gradients) {
  if (needed[1])
    gradients[1] = EmbeddingPartBackwardOp::create(
        builder, getLoc(), getSumType(getTable()), getIds(), cotangents[0],
        getAxisAttr());
  return refuse(*this, needed, {0});
}

LogicalResult CrossEntropyPartOp::buildVjp(OpBuilder &builder,
                                           ArrayRef<Value> cotangents,
                                           ArrayRef<bool> needed,
                                           MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = CrossEntropyPartBackwardOp::create(
        builder, getLoc(), getLogits().getType(), getLogits(), getTargets(),
        getLse(), orZeros(builder, getLse(), cotangents[0]),
        orZeros(builder, getHit(), cotangents[1]), getAxisAttr(),
        getClassesAttr());
  return refuse(*this, needed, {1});
}

LogicalResult JoinLseOp::buildVjp(OpBuilder &builder,
                                  ArrayRef<Value> cotangents,
                                  ArrayRef<bool> needed,
                                  MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] =
        JoinLseBackwardOp::create(builder, getLoc(), getParts().getType(),
                                  getParts(), getLse(), cotangents[0]);
  return success();
}

LogicalResult AddBiasOp::buildVjp(OpBuilder &builder,
                                  ArrayRef<Value> cotangents,
                                  ArrayRef<bool> needed,
                                  MutableArrayRef<Value> gradients) {
  if (needed[0])
    gradients[0] = cotangents[0];
  if (needed[1])
    gradients[1] = SumRowsOp::create(builder, getLoc(), getSumType(getBias()),
                                     cotangents[0]);
  return success();
}
