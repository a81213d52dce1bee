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
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "reprise/Codegen/CPU/Passes.h"
#include <limits>

using namespace mlir;

namespace reprise::codegen {
#define GEN_PASS_DEF_APPROXIMATEMATH
#include "reprise/Codegen/CPU/Passes.h.inc"
} // namespace reprise::codegen

/// Whether `op` is in a function for 32 registers of 16 lanes, with masks.
static bool isWide(Operation *op) {
  auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
  return function && function.getPreferVectorWidth() == StringRef("512");
}

/// Whether `op` makes a vector that such a function has in one register.
static bool hasWideLanes(Operation *op) {
  auto vector = dyn_cast<VectorType>(op->getResult(0).getType());
  return vector && vector.getNumElements() == 16 && isWide(op);
}

namespace {
/// What a pattern builds with: numbers of one type, scalars or vectors of f32.
class Numbers {
public:
  Numbers(Operation *op, OpBuilder &builder)
      : b(op->getLoc(), builder), type(op->getResult(0).getType()) {}

  static bool areOf(Type type) { return getElementTypeOrSelf(type).isF32(); }

  Value constant(double number) {
    return constant(type, b.getF32FloatAttr(float(number)));
  }
  Value fma(Value x, Value y, Value z) {
    return math::FmaOp::create(b, x, y, z);
  }
  /// Where the comparison of x and y holds, `then`, else `otherwise`.
  Value where(arith::CmpFPredicate predicate, Value x, Value y, Value then,
              Value otherwise) {
    Value holds = arith::CmpFOp::create(b, predicate, x, y);
    return arith::SelectOp::create(b, holds, then, otherwise);
  }
  /// A polynomial in x, from its highest coefficient down.
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value sum = constant(coefficients.front());
    for (double coefficient : coefficients.drop_front())
      sum = fma(sum, x, constant(coefficient));
    return sum;
  }
  /// p * 2^n where x is at least `lowest` and at most `highest`, where that has
  /// an exponent and the low bits of `shifted` are n. What is below is 0, what
  /// is above infinite, and NaN stays NaN.
  Value scale(Value p, Value shifted, Value x, float lowest, float highest) {
    Type bits = integers();
    Value amount = constant(bits, b.getI32IntegerAttr(23));
    Value n = arith::ShLIOp::create(
        b, arith::BitcastOp::create(b, bits, shifted), amount);
    Value y = arith::AddIOp::create(b, arith::BitcastOp::create(b, bits, p), n);
    y = arith::BitcastOp::create(b, type, y);
    Value above = arith::AddFOp::create(
        b, x, constant(std::numeric_limits<double>::infinity()));
    y = where(arith::CmpFPredicate::OLE, x, constant(highest), y, above);
    return where(arith::CmpFPredicate::OLT, x, constant(lowest), constant(0),
                 y);
  }

  /// p * 2^n: one instruction for 16 lanes. It takes p for infinite where n is,
  /// and for 0 where n is minus infinite. With a mask, 0 where that is not set.
  Value scaleWide(Value p, Value n, Value mask = {}) {
    Value bits =
        mask ? LLVM::BitcastOp::create(b, b.getI16Type(), mask).getResult()
             : arith::ConstantOp::create(b, b.getI16IntegerAttr(-1));
    Value rounding = arith::ConstantOp::create(b, b.getI32IntegerAttr(4));
    return LLVM::CallIntrinsicOp::create(
               b, type, b.getStringAttr("llvm.x86.avx512.mask.scalef.ps.512"),
               ValueRange{p, n, constant(0), bits, rounding})
        .getResult(0);
  }
  /// The same where x is at least `lowest` or no number, else 0.
  Value scaleWide(Value p, Value n, Value x, float lowest) {
    return scaleWide(p, n,
                     arith::CmpFOp::create(b, arith::CmpFPredicate::UGE, x,
                                           constant(lowest)));
  }

  ImplicitLocOpBuilder b;

private:
  Type integers() {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? Type(vector.clone(b.getI32Type())) : b.getI32Type();
  }
  Value constant(Type of, TypedAttr value) {
    if (auto vector = dyn_cast<VectorType>(of))
      value = DenseElementsAttr::get(vector, value);
    return arith::ConstantOp::create(b, value);
  }

  Type type;
};

/// exp(x) = 2^n exp(r), with the integer n nearest to x / ln 2 and |r| at most
/// ln 2 / 2: within 1 unit in the last place. What has no normal number is 0 or
/// infinite, and NaN stays NaN.
struct ExpandExp : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    if (!Numbers::areOf(op.getType()))
      return failure();
    Numbers in(op, rewriter);
    Value x = op.getOperand();
    // Added to 1.5 * 2^23, a number is rounded to an integer in the low bits.
    Value magic = in.constant(0x1.8p23);
    Value shifted = in.fma(x, in.constant(1.44269504088896341), magic);
    Value n = arith::SubFOp::create(in.b, shifted, magic);
    // ln 2 in two parts, the first of which has few enough bits for any n.
    Value r = in.fma(n, in.constant(-0.693145751953125), x);
    r = in.fma(n, in.constant(-1.42860682030941723212e-6), r);
    // The best of degree 6 in relative error, 0.05 of half a unit.
    Value p =
        in.polynomial(r, {0.00138145380839, 0.0083687453269, 0.0416683908282,
                          0.166665203967, 0.499999934319, 1, 1});
    // In wide registers, what is too large becomes infinite by itself.
    rewriter.replaceOp(op, hasWideLanes(op)
                               ? in.scaleWide(p, n, x, kLowest)
                               : in.scale(p, shifted, x, kLowest, kHighest));
    return success();
  }

  static constexpr float kLowest = -87.336544f, kHighest = 88.722831f;
};

/// 2^x = 2^n 2^r, with the integer n nearest to x and |r| at most a half:
/// within 2 units in the last place. The ends are those of exp.
struct ExpandExp2 : OpRewritePattern<math::Exp2Op> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::Exp2Op op,
                                PatternRewriter &rewriter) const override {
    if (!Numbers::areOf(op.getType()))
      return failure();
    Numbers in(op, rewriter);
    Value x = op.getOperand(), magic = in.constant(0x1.8p23);
    Value shifted = arith::AddFOp::create(in.b, x, magic), n;
    bool isWide = hasWideLanes(op);
    if (isWide)
      n = math::RoundEvenOp::create(in.b, x);
    else
      n = arith::SubFOp::create(in.b, shifted, magic);
    // Exact. The best of degree 5 in relative error, 1.6 of half a unit.
    Value r = arith::SubFOp::create(in.b, x, n);
    Value p = in.polynomial(r, {0.00132695353, 0.00967129227, 0.0555071086,
                                0.240222469, 0.693147004, 1});
    Value y;
    if (!isWide)
      y = in.scale(p, shifted, x, kLowest, kHighest);
    else if (isAddedToOne(op))
      y = in.scaleWide(p, n);
    else
      y = in.scaleWide(p, n, x, kLowest);
    rewriter.replaceOp(op, y);
    return success();
  }

private:
  static bool isOne(Value value) {
    if (auto broadcast = value.getDefiningOp<vector::BroadcastOp>())
      value = broadcast.getSource();
    return matchPattern(value, m_OneFloat());
  }
  /// Whether nobody sees a difference between 0 and what is no normal number.
  static bool isAddedToOne(math::Exp2Op op) {
    return llvm::all_of(op->getUsers(), [](Operation *user) {
      return isa<arith::AddFOp>(user) &&
             llvm::any_of(user->getOperands(), isOne);
    });
  }

  static constexpr float kLowest = -126, kHighest = 0x1.fffffep6;
};

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

/// Rounds to the nearest bf16, ties to even, NaN to one NaN. Adding one half of
/// the last place, less one if what is kept is even, carries where it should;
/// with masks, as wide registers have them, that is one addition or another.
struct RoundToBF16 : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<VectorType>(op.getType());
    if (!type || !type.getElementType().isBF16() ||
        !Numbers::areOf(op.getIn().getType()) || !isWide(op))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    VectorType words = type.clone(b.getI32Type()),
               halves = type.clone(b.getI16Type());
    auto splat = [&](VectorType of, int64_t value) -> Value {
      return arith::ConstantOp::create(
          b, DenseElementsAttr::get(
                 of, b.getIntegerAttr(of.getElementType(), value)));
    };
    Value bits = arith::BitcastOp::create(b, words, op.getIn());
    Value last = arith::AndIOp::create(b, bits, splat(words, 0x10000));
    Value isOdd = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, last,
                                        splat(words, 0));
    Value rounded = arith::SelectOp::create(
        b, isOdd, arith::AddIOp::create(b, bits, splat(words, 0x8000)),
        arith::AddIOp::create(b, bits, splat(words, 0x7FFF)));
    rounded = arith::ShRUIOp::create(b, rounded, splat(words, 16));
    Value half = arith::TruncIOp::create(b, halves, rounded);
    Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO,
                                        op.getIn(), op.getIn());
    half = arith::SelectOp::create(b, isNaN, splat(halves, 0x7FC0), half);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, type, half);
    return success();
  }
};

struct ApproximateMath
    : reprise::codegen::impl::ApproximateMathBase<ApproximateMath> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    set.add<ExpandExp, ExpandExp2, ExpandRsqrt>(context);
    set.add<RoundToBF16>(context, /*benefit=*/2);
    populateMathPolynomialApproximationPatterns(set, [](StringRef name) {
      return name != "math.exp" && name != "math.exp2" && name != "math.rsqrt";
    });
    arith::populateExpandBFloat16Patterns(set);
    patterns = std::move(set);
    return success();
  }

  void runOnOperation() override {
    // Ops of the kernel stay as they were emitted: no folding here.
    GreedyRewriteConfig config;
    config.enableFolding(false);
    if (failed(applyPatternsGreedily(getOperation(), patterns, config)))
      signalPassFailure();
  }

  FrozenRewritePatternSet patterns;
};
} // namespace
