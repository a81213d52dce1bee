//===- Products.cpp - Matrix products of nn as rt.gemm ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Products.h"
#include "Shape.h"
#include "reprise/ABI/Gemm.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

namespace {
/// A product of two matrices of a buffer each, as rt.gemm describes it.
struct Product {
  Value a, b, bias;
  int64_t m, n, k;
  int64_t lda, ldb, ldc;
  bool transposeA = false, transposeB = false;
  float alpha = 1;
  SmallVector<int64_t, 2> batch, strideA, strideB, strideC;
  Value offsets, order; ///< of rows that belong to groups
  std::optional<rt::Gather> gather;
  int64_t slots = 1;
};
} // namespace

/// Rows of a value seen as a matrix with its last dimension as columns.
static int64_t getRows(Value value) {
  auto type = cast<ShapedType>(value.getType());
  return type.getNumElements() / type.getShape().back();
}

static int64_t getCols(Value value) { return getShape(value).back(); }

/// out[r,n] = sum over k of input[r,k] W[k,n].
static Product describe(LinearOp op) {
  Product p;
  p.a = op.getInput(), p.b = op.getWeight(), p.bias = op.getBias();
  p.m = getRows(p.a), p.k = getCols(p.a), p.n = getCols(op.getOut());
  p.transposeB = op.getLayout() == WeightLayout::OutIn;
  p.lda = p.k, p.ldb = getCols(p.b), p.ldc = p.n;
  return p;
}

/// dinput[r,k] = sum over n of dout[r,n] W[k,n].
static Product describe(LinearBackwardInputOp op) {
  Product p;
  p.a = op.getDout(), p.b = op.getWeight();
  p.m = getRows(p.a), p.k = getCols(p.a), p.n = getCols(op.getDinput());
  p.transposeB = op.getLayout() == WeightLayout::InOut;
  p.lda = p.k, p.ldb = getCols(p.b), p.ldc = p.n;
  return p;
}

/// dW[k,n] = sum over rows of input[r,k] dout[r,n], or its transpose.
static Product describe(LinearBackwardWeightOp op) {
  Product p;
  p.a = op.getInput(), p.b = op.getDout();
  if (op.getLayout() == WeightLayout::OutIn)
    std::swap(p.a, p.b);
  p.m = getCols(p.a), p.n = getCols(p.b), p.k = getRows(p.a);
  p.transposeA = true;
  p.lda = p.m, p.ldb = p.n, p.ldc = p.n;
  return p;
}

/// A product for each entry of the batch and each head. What is [B, T, H*D]
/// has the head's D columns in rows of H*D; what is [B, H, T, T] has whole
/// matrices.
static Product describeHeads(Value scores, Value rows, int64_t heads) {
  Product p;
  int64_t batch = getShape(rows)[0], width = getCols(rows);
  int64_t length = getShape(rows)[1], keys = getCols(scores);
  int64_t queries = getShape(scores)[2];
  p.batch = {batch, heads};
  p.strideA = p.strideB = p.strideC = {length * width, width / heads};
  p.lda = p.ldb = p.ldc = width;
  p.m = queries, p.n = keys, p.k = width / heads;
  return p;
}

/// out[b,h,i,j] = scale * sum over d of lhs[b,i,h,d] rhs[b,j,h,d].
static Product describe(ScoresOp op) {
  Product p = describeHeads(op.getOut(), op.getLhs(), op.getHeads());
  p.a = op.getLhs(), p.b = op.getRhs();
  p.transposeB = true;
  p.ldc = p.n;
  p.strideC = {p.batch[1] * p.m * p.n, p.m * p.n};
  p.alpha = op.getScale().convertToFloat();
  return p;
}

/// out[b,i,h,d] = scale * sum over j of P[b,h,i,j] rows[b,j,h,d].
static Product describe(ContextOp op) {
  Product p = describeHeads(op.getProbs(), op.getRows(), op.getHeads());
  p.a = op.getProbs(), p.b = op.getRows();
  int64_t queries = p.m, keys = p.n, width = p.k;
  p.lda = keys;
  p.strideA = {p.batch[1] * queries * keys, queries * keys};
  p.transposeA = op.getTransposed();
  p.m = p.transposeA ? keys : queries;
  p.k = p.transposeA ? queries : keys;
  p.n = width;
  p.alpha = op.getScale().convertToFloat();
  return p;
}

//===----------------------------------------------------------------------===//
// Rows of groups
//===----------------------------------------------------------------------===//

template <typename OpTy>
static void setGroups(Product &p, OpTy op, std::optional<rt::Gather> gather) {
  p.offsets = op.getOffsets();
  if (!op.getOrder())
    return;
  p.order = op.getOrder();
  p.gather = gather;
  p.slots = getCols(op.getInverse());
}

/// out[r,n] = sum over k of x[r,k] W[e,n,k].
static Product describe(GroupedLinearOp op) {
  Product p;
  p.a = op.getInput(), p.b = op.getWeight();
  p.m = getRows(op.getOut()), p.n = getCols(op.getOut()), p.k = getCols(p.a);
  p.transposeB = true;
  p.lda = p.k, p.ldb = p.k, p.ldc = p.n;
  setGroups(p, op, rt::Gather::A);
  return p;
}

/// dinput[r,k] = sum over n of d[r,n] W[e,n,k].
static Product describe(GroupedLinearBackwardInputOp op) {
  Product p;
  p.a = op.getDout(), p.b = op.getWeight();
  p.m = getRows(op.getDinput()), p.n = getCols(p.b), p.k = getCols(p.a);
  p.lda = p.k, p.ldb = p.n, p.ldc = p.n;
  setGroups(p, op, rt::Gather::A);
  return p;
}

/// dW[e,n,k] = sum over rows of d[r,n] x[r,k].
static Product describe(GroupedLinearBackwardWeightOp op) {
  Product p;
  bool isInput = op.getGathered() == GatheredRows::Input;
  p.a = op.getDout(), p.b = op.getInput();
  p.m = getCols(p.a), p.n = getCols(p.b), p.k = getRows(isInput ? p.a : p.b);
  p.transposeA = true;
  p.lda = p.m, p.ldb = p.n, p.ldc = p.n;
  setGroups(p, op, isInput ? rt::Gather::B : rt::Gather::A);
  return p;
}

bool kernels::isProduct(Operation *op) {
  return isa<LinearOp, LinearBackwardInputOp, LinearBackwardWeightOp, ScoresOp,
             ContextOp, GroupedLinearOp, GroupedLinearBackwardInputOp,
             GroupedLinearBackwardWeightOp>(op);
}

std::optional<kernels::SharedHeads> kernels::getSharedHeads(Operation *op) {
  std::optional<kernels::SharedHeads> shared;
  if (auto scores = dyn_cast<ScoresOp>(op))
    shared = {int64_t(scores.getHeads()), scores.getKeyHeads(), false};
  if (auto context = dyn_cast<ContextOp>(op))
    shared = {int64_t(context.getHeads()), context.getKeyHeads(),
              context.getTransposed()};
  if (shared && shared->heads == shared->keyHeads)
    return std::nullopt;
  return shared;
}

rt::GemmOp kernels::formProduct(OpBuilder &builder, Operation *op, Value addend,
                                Beside beside) {
  auto p =
      TypeSwitch<Operation *, Product>(op)
          .Case<LinearOp, LinearBackwardInputOp, LinearBackwardWeightOp,
                ScoresOp, ContextOp, GroupedLinearOp,
                GroupedLinearBackwardInputOp, GroupedLinearBackwardWeightOp>(
              [](auto product) { return describe(product); })
          .DefaultUnreachable("not a product");
  auto strides = [&](ArrayRef<int64_t> values) {
    return p.batch.empty() ? DenseI64ArrayAttr()
                           : builder.getDenseI64ArrayAttr(values);
  };
  auto number = [&](int64_t value) { return builder.getI64IntegerAttr(value); };
  auto flag = [&](bool set) {
    return set ? builder.getUnitAttr() : UnitAttr();
  };
  // Rows go in and come out for the same heads; those of heads that are to be
  // summed yet are not rounded.
  Type type = isa<ContextOp>(op) ? p.b.getType() : op->getResult(0).getType();
  if (std::optional<SharedHeads> shared = getSharedHeads(op);
      shared && shared->areSummed)
    type = cast<RankedTensorType>(type).clone(builder.getF32Type());
  SmallVector<Type, 2> types = {type};
  rt::EpilogueAttr epilogue;
  auto make = [&](rt::Epilogue kind, ArrayRef<int64_t> shape) {
    epilogue = rt::EpilogueAttr::get(builder.getContext(), kind);
    types.push_back(RankedTensorType::get(shape, builder.getF32Type()));
  };
  if (beside == Beside::SumOfRows) {
    bool isA = cast<LinearBackwardWeightOp>(op).getDout() == p.a;
    make(isA ? rt::Epilogue::SumsOfA : rt::Epilogue::SumsOfB,
         {isA ? p.m : p.n});
  } else if (beside == Beside::Squares) {
    make(rt::Epilogue::SquaresOfC,
         {int64_t(llvm::divideCeil(p.m, REPRISE_GEMM_SQUARES_ROWS)),
          int64_t(llvm::divideCeil(p.n, REPRISE_GEMM_SQUARES_COLS))});
  }
  return rt::GemmOp::create(
      builder, op->getLoc(), types, p.a, p.b, p.bias, p.offsets, p.order,
      addend,
      /*output=*/Value(), /*aux=*/Value(), /*workspace=*/Value(), number(p.m),
      number(p.n), number(p.k), number(p.lda), number(p.ldb), number(p.ldc),
      strides(p.batch), strides(p.strideA), strides(p.strideB),
      strides(p.strideC), builder.getF32FloatAttr(p.alpha), flag(p.transposeA),
      flag(p.transposeB),
      /*accumulate=*/UnitAttr(), epilogue, /*packedB=*/UnitAttr(),
      p.gather ? rt::GatherAttr::get(builder.getContext(), *p.gather)
               : rt::GatherAttr(),
      p.gather ? number(p.slots) : IntegerAttr());
}
