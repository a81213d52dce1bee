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
#include "mlir/Dialect/SCF/IR/SCF.h"
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

/// Lanes of a register of such a function.
static constexpr int64_t kWideLanes = 16;

/// Whether `op` makes a vector that such a function has in whole registers.
static bool hasWideLanes(Operation *op) {
  auto vector = dyn_cast<VectorType>(op->getResult(0).getType());
  return vector && vector.getRank() == 1 && !vector.isScalable() &&
         vector.getNumElements() % kWideLanes == 0 && isWide(op);
}

/// What `body` makes of vectors a register at a time, if they have whole ones.
static Value ofRegisters(ImplicitLocOpBuilder &b, ArrayRef<Value> vectors,
                         function_ref<Value(ArrayRef<Value>)> body) {
  auto type = cast<VectorType>(vectors.front().getType());
  int64_t count = type.getNumElements();
  if (type.getRank() != 1 || count <= kWideLanes || count % kWideLanes != 0)
    return body(vectors);
  Value made;
  for (int64_t first = 0; first < count; first += kWideLanes) {
    int64_t end = first + kWideLanes;
    SmallVector<Value> registers;
    for (Value vector : vectors)
      registers.push_back(vector::ShuffleOp::create(
          b, vector, vector, llvm::to_vector(llvm::seq(first, end))));
    Value part = body(registers);
    made = made ? vector::ShuffleOp::create(b, made, part,
                                            llvm::to_vector(llvm::seq(end)))
                      .getResult()
                : part;
  }
  return made;
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

  /// p * 2^n: one instruction for each register. It takes p for infinite where
  /// n is, and for 0 where n is minus infinite.
  Value scaleWide(Value p, Value n) {
    return ofRegisters(b, {p, n}, [&](ArrayRef<Value> part) {
      return scaleRegister(part[0], part[1], allLanes());
    });
  }
  /// The same where x is at least `lowest` or no number, else 0.
  Value scaleWide(Value p, Value n, Value x, float lowest) {
    return ofRegisters(b, {p, n, x}, [&](ArrayRef<Value> part) {
      Value isNormal = arith::CmpFOp::create(
          b, arith::CmpFPredicate::UGE, part[2],
          constant(part[2].getType(), b.getF32FloatAttr(lowest)));
      return scaleRegister(
          part[0], part[1],
          LLVM::BitcastOp::create(b, b.getI16Type(), isNormal));
    });
  }
  /// What x is beyond the integer nearest to it; 0 where it is infinite.
  Value restWide(Value x) {
    return ofRegisters(b, {x}, [&](ArrayRef<Value> part) -> Value {
      Type type = part[0].getType();
      Value toNearest = arith::ConstantOp::create(b, b.getI32IntegerAttr(8));
      return LLVM::CallIntrinsicOp::create(
                 b, type, b.getStringAttr("llvm.x86.avx512.mask.reduce.ps.512"),
                 ValueRange{part[0], toNearest,
                            constant(type, b.getF32FloatAttr(0)), allLanes(),
                            currentRounding()})
          .getResult(0);
    });
  }

  ImplicitLocOpBuilder b;

private:
  Value allLanes() {
    return arith::ConstantOp::create(b, b.getI16IntegerAttr(-1));
  }
  /// As an instruction has it that could say otherwise.
  Value currentRounding() {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(4));
  }
  Value scaleRegister(Value p, Value n, Value lanes) {
    Type type = p.getType();
    return LLVM::CallIntrinsicOp::create(
               b, type, b.getStringAttr("llvm.x86.avx512.mask.scalef.ps.512"),
               ValueRange{p, n, constant(type, b.getF32FloatAttr(0)), lanes,
                          currentRounding()})
        .getResult(0);
  }
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
    Value x = op.getOperand(), shifted, n, r;
    bool isWide = hasWideLanes(op);
    if (isWide) {
      r = in.restWide(x);
      n = arith::SubFOp::create(in.b, x, r);
    } else {
      Value magic = in.constant(0x1.8p23);
      shifted = arith::AddFOp::create(in.b, x, magic);
      n = arith::SubFOp::create(in.b, shifted, magic);
      r = arith::SubFOp::create(in.b, x, n);
    }
    // r is exact. The best of degree 5 in relative error, 1.6 of half a unit.
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

static bool isNumber(Value value, SmallVectorImpl<Value> &assumed);

/// As `isNumber`, but where the answer is no, `assumed` may have too many.
static bool findNumber(Value value, SmallVectorImpl<Value> &assumed) {
  if (llvm::is_contained(assumed, value))
    return true;
  auto areNumbers = [&](ValueRange values) {
    return llvm::all_of(values,
                        [&](Value each) { return isNumber(each, assumed); });
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    OpOperand *init = loop ? loop.getTiedLoopInit(argument) : nullptr;
    if (!init)
      return false;
    assumed.push_back(value);
    return areNumbers(
        {init->get(), loop.getTiedLoopYieldedValue(argument)->get()});
  }
  APFloat number(0.0f);
  if (matchPattern(value, m_ConstantFloat(&number)))
    return !number.isNaN();
  Operation *op = value.getDefiningOp();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return isNumber(
        loop.getRegionIterArg(cast<OpResult>(value).getResultNumber()),
        assumed);
  if (isa<arith::MaxNumFOp>(op))
    return llvm::any_of(op->getOperands(),
                        [&](Value each) { return isNumber(each, assumed); });
  if (auto broadcast = dyn_cast<vector::BroadcastOp>(op))
    return isNumber(broadcast.getSource(), assumed);
  if (isa<vector::ShuffleOp>(op))
    return areNumbers(op->getOperands());
  if (auto choice = dyn_cast<arith::SelectOp>(op)) {
    // What is greater than something is a number.
    auto test = choice.getCondition().getDefiningOp<arith::CmpFOp>();
    bool isGreater = test && test.getPredicate() == arith::CmpFPredicate::OGT &&
                     test.getLhs() == choice.getTrueValue();
    return isNumber(choice.getFalseValue(), assumed) &&
           (isGreater || isNumber(choice.getTrueValue(), assumed));
  }
  return false;
}

/// Whether `value` is a number whatever an input is: a greatest or least
/// element so far, which begins with a number and passes over what is none.
/// What is `assumed` to be one is an accumulator of a loop that is being looked
/// at.
static bool isNumber(Value value, SmallVectorImpl<Value> &assumed) {
  size_t before = assumed.size();
  bool isOne = findNumber(value, assumed);
  if (!isOne)
    assumed.truncate(before);
  return isOne;
}

/// The greater of an element and the greatest so far, which is a number: that
/// stays where the element is none, as the processor's own instruction has it.
struct ExpandMaxNum : OpRewritePattern<arith::MaxNumFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::MaxNumFOp op,
                                PatternRewriter &rewriter) const override {
    Value element = op.getRhs(), soFar = op.getLhs();
    SmallVector<Value> assumed;
    if (!isNumber(soFar, assumed)) {
      std::swap(element, soFar);
      if (!isNumber(soFar, assumed))
        return failure();
    }
    Value isGreater = arith::CmpFOp::create(
        rewriter, op.getLoc(), arith::CmpFPredicate::OGT, element, soFar);
    rewriter.replaceOpWithNewOp<arith::SelectOp>(op, isGreater, element, soFar);
    return success();
  }
};

/// Rounds to the nearest bf16, ties to even, NaN to one NaN. Adding one half of
/// the last place, less one if what is kept is even, carries where it should:
/// with masks, as wide registers have them, that is one number or another, and
/// NaN is what is not added to.
struct RoundToBF16 : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    auto type = dyn_cast<VectorType>(op.getType());
    if (!type || !type.getElementType().isBF16() ||
        !Numbers::areOf(op.getIn().getType()) || !isWide(op))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value halves = ofRegisters(
        b, op.getIn(), [&](ArrayRef<Value> x) { return round(b, x.front()); });
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, type, halves);
    return success();
  }

private:
  /// The bits of what it is rounded to.
  static Value round(ImplicitLocOpBuilder &b, Value x) {
    auto type = cast<VectorType>(x.getType());
    VectorType words = type.clone(b.getI32Type()),
               halves = type.clone(b.getI16Type());
    auto splat = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(
          b, DenseElementsAttr::get(words, b.getI32IntegerAttr(value)));
    };
    Value bits = arith::BitcastOp::create(b, words, x);
    Value last = arith::AndIOp::create(b, bits, splat(0x10000));
    Value isOdd =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ne, last, splat(0));
    Value up = arith::SelectOp::create(b, isOdd, splat(0x8000), splat(0x7FFF));
    Value isNumber = arith::CmpFOp::create(b, arith::CmpFPredicate::ORD, x, x);
    Value rounded = arith::SelectOp::create(
        b, isNumber, arith::AddIOp::create(b, bits, up), splat(0x7FC00000));
    rounded = arith::ShRUIOp::create(b, rounded, splat(16));
    return arith::TruncIOp::create(b, halves, rounded);
  }
};

struct ApproximateMath
    : reprise::codegen::impl::ApproximateMathBase<ApproximateMath> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    set.add<ExpandExp, ExpandExp2, ExpandRsqrt, ExpandMaxNum>(context);
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
