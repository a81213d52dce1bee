//===- ApproximateDeviceMath.cpp - Functions of a GPU -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Errors are stated in units in the last place (ulp) of f32. What the hardware
// has is used where it is that good: 2 ulp for ex2.approx, rsqrt.approx and
// div.full.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "reprise/Codegen/CUDA/Passes.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace reprise::cuda {
#define GEN_PASS_DEF_APPROXIMATEDEVICEMATH
#include "reprise/Codegen/CUDA/Passes.h.inc"
} // namespace reprise::cuda

/// A formula on f32, or on each lane of a vector of f32.
namespace {
class Formula : public ImplicitLocOpBuilder {
public:
  Formula(Operation *op, PatternRewriter &rewriter)
      : ImplicitLocOpBuilder(op->getLoc(), rewriter),
        type(op->getResult(0).getType()) {}

  Value number(double value) {
    TypedAttr attribute = getF32FloatAttr(value);
    if (auto vector = dyn_cast<VectorType>(type))
      attribute = DenseElementsAttr::get(vector, attribute);
    return arith::ConstantOp::create(*this, attribute);
  }
  Value mul(Value a, Value b) { return arith::MulFOp::create(*this, a, b); }
  Value fma(Value a, Value b, Value c) {
    return math::FmaOp::create(*this, a, b, c);
  }
  /// An instruction with operands and result of f32, lane by lane.
  Value instruction(StringRef intrinsic, ValueRange operands) {
    auto call = [&](ValueRange scalars) -> Value {
      return LLVM::CallIntrinsicOp::create(*this, getF32Type(),
                                           getStringAttr(intrinsic), scalars)
          .getResult(0);
    };
    auto vector = dyn_cast<VectorType>(type);
    if (!vector)
      return call(operands);
    SmallVector<Value> lanes;
    for (int64_t lane = 0; lane < vector.getNumElements(); ++lane) {
      SmallVector<Value> scalars;
      for (Value operand : operands)
        scalars.push_back(vector::ExtractOp::create(*this, operand, lane));
      lanes.push_back(call(scalars));
    }
    return vector::FromElementsOp::create(*this, vector, lanes);
  }

  /// e^x as 2^y (1 + r ln 2), where y + r is x log2(e) and y its nearest f32:
  /// the instruction takes y whole, and r undoes its rounding. 0 below e^x =
  /// 2^-126.
  Value exp(Value x) {
    // Where e^x is 0 or infinite anyway; y is a number then.
    x = arith::MaximumFOp::create(*this, x, number(-104));
    x = arith::MinimumFOp::create(*this, x, number(104));
    Value scale = number(0x1.715476p+0);
    Value whole = mul(x, scale);
    Value rest = fma(x, scale, arith::NegFOp::create(*this, whole));
    rest = fma(x, number(0x1.4ae0cp-26), rest);
    return mul(exp2(whole), fma(rest, number(0x1.62e43p-1), number(1)));
  }
  Value exp2(Value x) { return instruction("llvm.nvvm.ex2.approx.ftz.f32", x); }

private:
  Type type;
};

/// Replaces `Op` on f32 by what `Expand` makes of its operands.
template <typename Op, Value (*Expand)(Formula &, ValueRange)>
struct ExpandTo : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto vector = dyn_cast<VectorType>(op.getType());
    if (!getElementTypeOrSelf(op.getType()).isF32() ||
        (vector && (vector.getRank() != 1 || vector.isScalable())))
      return failure();
    Formula formula(op, rewriter);
    rewriter.replaceOp(op, Expand(formula, op->getOperands()));
    return success();
  }
};
} // namespace

static Value expandExp(Formula &formula, ValueRange x) {
  return formula.exp(x[0]);
}

static Value expandExp2(Formula &formula, ValueRange x) {
  return formula.exp2(x[0]);
}

static Value expandRsqrt(Formula &formula, ValueRange x) {
  return formula.instruction("llvm.nvvm.rsqrt.approx.f", x);
}

static Value expandDiv(Formula &formula, ValueRange x) {
  return formula.instruction("llvm.nvvm.div.full", x);
}

namespace {
struct ApproximateDeviceMath
    : reprise::cuda::impl::ApproximateDeviceMathBase<ApproximateDeviceMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpandTo<math::ExpOp, expandExp>,
                 ExpandTo<math::Exp2Op, expandExp2>,
                 ExpandTo<math::RsqrtOp, expandRsqrt>,
                 ExpandTo<arith::DivFOp, expandDiv>>(&getContext(),
                                                     /*benefit=*/2);
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return llvm::StringSwitch<bool>(name)
          .Cases({"math.exp", "math.exp2", "math.rsqrt"}, false)
          .Default(true);
    });
    // Ops of the kernel stay as they were emitted: no folding here.
    GreedyRewriteConfig config;
    config.enableFolding(false);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};
} // namespace
