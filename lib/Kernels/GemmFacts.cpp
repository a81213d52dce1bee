//===- GemmFacts.cpp - GEMMs of nn, as rt.gemm has them -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelBody.h"
#include "Shape.h"
#include "reprise/Dialect/NN/NNOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

/// Rows of a value seen as a matrix with its last dimension as columns.
static int64_t getRows(Value value) {
  auto type = cast<ShapedType>(value.getType());
  return type.getNumElements() / type.getShape().back();
}

static int64_t getCols(Value value) { return getShape(value).back(); }

/// out[r,n] = sum over k of input[r,k] W[k,n].
static Gemm describe(LinearOp op) {
  Gemm p;
  p.a = op.getInput(), p.b = op.getWeight(), p.bias = op.getBias();
  p.m = getRows(p.a), p.k = getCols(p.a), p.n = getCols(op.getOut());
  p.transposeB = op.getLayout() == WeightLayout::OutIn;
  p.lda = p.k, p.ldb = getCols(p.b), p.ldc = p.n;
  return p;
}

/// dinput[r,k] = sum over n of dout[r,n] W[k,n].
static Gemm describe(LinearBackwardInputOp op) {
  Gemm p;
  p.a = op.getDout(), p.b = op.getWeight();
  p.m = getRows(p.a), p.k = getCols(p.a), p.n = getCols(op.getDinput());
  p.transposeB = op.getLayout() == WeightLayout::InOut;
  p.lda = p.k, p.ldb = getCols(p.b), p.ldc = p.n;
  return p;
}

/// dW[k,n] = sum over rows of input[r,k] dout[r,n], or its transpose.
static Gemm describe(LinearBackwardWeightOp op) {
  Gemm p;
  p.a = op.getInput(), p.b = op.getDout();
  if (op.getLayout() == WeightLayout::OutIn)
    std::swap(p.a, p.b);
  p.m = getCols(p.a), p.n = getCols(p.b), p.k = getRows(p.a);
  p.transposeA = true;
  p.lda = p.m, p.ldb = p.n, p.ldc = p.n;
  return p;
}

/// A GEMM for each entry of the batch and each head. What is [B, T, H*D]
/// has the head's D columns in rows of H*D; what is [B, H, T, T] has whole
/// matrices.
static Gemm describeHeads(Value scores, Value rows, int64_t heads) {
  Gemm p;
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
static Gemm describe(ScoresOp op) {
  Gemm p = describeHeads(op.getOut(), op.getLhs(), op.getHeads());
  p.a = op.getLhs(), p.b = op.getRhs();
  p.transposeB = true;
  p.ldc = p.n;
  p.strideC = {p.batch[1] * p.m * p.n, p.m * p.n};
  p.alpha = op.getScale().convertToFloat();
  return p;
}

/// out[b,i,h,d] = scale * sum over j of P[b,h,i,j] rows[b,j,h,d].
static Gemm describe(ContextOp op) {
  Gemm p = describeHeads(op.getProbs(), op.getRows(), op.getHeads());
  p.a = op.getProbs(), p.b = op.getRows();
  int64_t queries = p.m, keys = p.n, width = p.k;
  p.lda = keys;
  p.strideA = {p.batch[1] * queries * keys, queries * keys};
  p.transposeA = op.getTransposed();
  p.m = p.transposeA ? keys : queries;
  p.k = p.transposeA ? queries : keys;
  p.n = width;
  p.alpha = op.getScale().convertToFloat();
  p.rows = p.b;
  return p;
}

//===----------------------------------------------------------------------===//
// Rows of groups
//===----------------------------------------------------------------------===//

template <typename OpTy>
static void setGroups(Gemm &p, OpTy op, std::optional<rt::Gather> gather) {
  p.offsets = op.getOffsets();
  if (!op.getOrder())
    return;
  p.order = op.getOrder();
  p.gather = gather;
  p.slots = getCols(op.getInverse());
}

/// out[r,n] = sum over k of x[r,k] W[e,n,k].
static Gemm describe(GroupedLinearOp op) {
  Gemm p;
  p.a = op.getInput(), p.b = op.getWeight();
  p.m = getRows(op.getOut()), p.n = getCols(op.getOut()), p.k = getCols(p.a);
  p.transposeB = true;
  p.lda = p.k, p.ldb = p.k, p.ldc = p.n;
  setGroups(p, op, rt::Gather::A);
  return p;
}

/// dinput[r,k] = sum over n of d[r,n] W[e,n,k].
static Gemm describe(GroupedLinearBackwardInputOp op) {
  Gemm p;
  p.a = op.getDout(), p.b = op.getWeight();
  p.m = getRows(op.getDinput()), p.n = getCols(p.b), p.k = getCols(p.a);
  p.lda = p.k, p.ldb = p.n, p.ldc = p.n;
  setGroups(p, op, rt::Gather::A);
  return p;
}

/// dW[e,n,k] = sum over rows of d[r,n] x[r,k].
static Gemm describe(GroupedLinearBackwardWeightOp op) {
  Gemm p;
  bool isInput = op.getGathered() == GatheredRows::Input;
  p.a = op.getDout(), p.b = op.getInput();
  p.m = getCols(p.a), p.n = getCols(p.b), p.k = getRows(isInput ? p.a : p.b);
  p.transposeA = true;
  p.lda = p.m, p.ldb = p.n, p.ldc = p.n;
  setGroups(p, op, isInput ? rt::Gather::B : rt::Gather::A);
  return p;
}

//===----------------------------------------------------------------------===//
// The interface
//===----------------------------------------------------------------------===//

namespace {
template <typename OpTy>
struct Body : GemmBody::ExternalModel<Body<OpTy>, OpTy> {
  Gemm describe(Operation *op) const { return ::describe(cast<OpTy>(op)); }
};

/// A bias would have to come after the sum.
struct LinearBody : GemmBody::ExternalModel<LinearBody, LinearOp> {
  Gemm describe(Operation *op) const { return ::describe(cast<LinearOp>(op)); }
  bool canStartFromSum(Operation *op) const {
    return !cast<LinearOp>(op).getBias();
  }
};

struct WeightBody
    : GemmBody::ExternalModel<WeightBody, LinearBackwardWeightOp> {
  Gemm describe(Operation *op) const {
    return ::describe(cast<LinearBackwardWeightOp>(op));
  }
  Value getSummedRows(Operation *op) const {
    return cast<LinearBackwardWeightOp>(op).getDout();
  }
};

/// Sums of heads would have to come after the sum.
template <typename OpTy>
struct HeadsBody : GemmBody::ExternalModel<HeadsBody<OpTy>, OpTy> {
  Gemm describe(Operation *op) const { return ::describe(cast<OpTy>(op)); }
  std::optional<SharedHeads> getSharedHeads(Operation *op) const {
    auto gemm = cast<OpTy>(op);
    int64_t heads = gemm.getHeads(), keyHeads = gemm.getKeyHeads();
    if (heads == keyHeads)
      return std::nullopt;
    return SharedHeads{heads, keyHeads, sumsHeads(gemm)};
  }
  bool canStartFromSum(Operation *op) const {
    std::optional<SharedHeads> shared = getSharedHeads(op);
    return !shared || !shared->areSummed;
  }

private:
  static bool sumsHeads(ScoresOp) { return false; }
  static bool sumsHeads(ContextOp op) { return op.getTransposed(); }
};
} // namespace

template <template <typename> typename Model, typename... Ops>
static void attach(MLIRContext &context) {
  (Ops::template attachInterface<Model<Ops>>(context), ...);
}

void kernels::attachGemmBodies(MLIRContext &context) {
  LinearOp::attachInterface<LinearBody>(context);
  LinearBackwardWeightOp::attachInterface<WeightBody>(context);
  attach<Body, LinearBackwardInputOp, GroupedLinearOp,
         GroupedLinearBackwardInputOp, GroupedLinearBackwardWeightOp>(context);
  attach<HeadsBody, ScoresOp, ContextOp>(context);
}
