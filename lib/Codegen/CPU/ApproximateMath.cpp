//===- ApproximateMath.cpp - Polynomials for transcendentals ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "reprise/Codegen/CPU/Passes.h"

using namespace mlir;

namespace reprise::codegen {
#define GEN_PASS_DEF_APPROXIMATEMATH
#include "reprise/Codegen/CPU/Passes.h.inc"
} // namespace reprise::codegen

namespace {
/// 1 / sqrt(x): the processor's own estimate differs from one to the next.
struct ExpandRsqrt : OpRewritePattern<math::RsqrtOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::RsqrtOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    TypedAttr value = rewriter.getFloatAttr(getElementTypeOrSelf(type), 1.0);
    if (auto vector = dyn_cast<VectorType>(type))
      value = DenseElementsAttr::get(vector, value);
    Value one = arith::ConstantOp::create(rewriter, op.getLoc(), value);
    Value root = math::SqrtOp::create(rewriter, op.getLoc(), op.getOperand());
    rewriter.replaceOpWithNewOp<arith::DivFOp>(op, one, root);
    return success();
  }
};

/// The two halves of the products of 32-bit lanes, which random words are made
/// of: even lanes and odd lanes as products of 64 bits, one instruction each,
/// put back in order by two shuffles.
struct ExpandWideMultiply : OpRewritePattern<arith::MulUIExtendedOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::MulUIExtendedOp op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<VectorType>(op.getLow().getType());
    if (!type || type.getRank() != 1 || type.getDimSize(0) % 2 != 0 ||
        !type.getElementType().isInteger(32))
      return failure();
    int64_t pairs = type.getDimSize(0) / 2;
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto wide = VectorType::get({pairs}, b.getI64Type());
    auto splat = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(
          b, DenseElementsAttr::get(wide, b.getI64IntegerAttr(value)));
    };
    Value mask = splat(0xFFFFFFFF), half = splat(32);
    Value x = vector::BitCastOp::create(b, wide, op.getLhs());
    Value y = vector::BitCastOp::create(b, wide, op.getRhs());
    Value even = arith::MulIOp::create(b, arith::AndIOp::create(b, x, mask),
                                       arith::AndIOp::create(b, y, mask));
    Value odd = arith::MulIOp::create(b, arith::ShRUIOp::create(b, x, half),
                                      arith::ShRUIOp::create(b, y, half));
    even = vector::BitCastOp::create(b, type, even);
    odd = vector::BitCastOp::create(b, type, odd);
    SmallVector<int64_t> low, high;
    for (int64_t pair = 0; pair < pairs; ++pair) {
      llvm::append_values(low, 2 * pair, 2 * (pairs + pair));
      llvm::append_values(high, 2 * pair + 1, 2 * (pairs + pair) + 1);
    }
    Value lows = vector::ShuffleOp::create(b, even, odd, low);
    Value highs = vector::ShuffleOp::create(b, even, odd, high);
    rewriter.replaceOp(op, {lows, highs});
    return success();
  }
};

struct ApproximateMath
    : reprise::codegen::impl::ApproximateMathBase<ApproximateMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpandRsqrt, ExpandWideMultiply>(&getContext());
    populateMathPolynomialApproximationPatterns(
        patterns, [](StringRef name) { return name != "math.rsqrt"; });
    arith::populateExpandBFloat16Patterns(patterns);
    // Ops of the kernel stay as they were emitted: no folding here.
    GreedyRewriteConfig config;
    config.enableFolding(false);
    if (failed(
            applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};
} // namespace
