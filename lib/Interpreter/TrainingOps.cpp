//===- TrainingOps.cpp - Loss, gradients, optimizer -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Semantics.h"
#include "mlir/IR/TypeUtilities.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace reprise;
using namespace reprise::interpreter;
using namespace reprise::nn;

static LogicalResult checkTargets(Operation *op, const Tensor &targets,
                                  int64_t size) {
  for (auto [index, target] : llvm::enumerate(targets.values))
    if (target < 0 || target >= double(size))
      return op->emitOpError("needs targets below ")
             << size << ", but target #" << index << " is " << int64_t(target);
  return success();
}

static void crossEntropy(CrossEntropyOp op, const Frame &frame) {
  const Tensor &logits = frame.in(0), &targets = frame.in(1);
  int64_t width = logits.cols(), classes = op.getClasses().value_or(width);
  for (int64_t row = 0; row < logits.rows(); ++row) {
    const double *x = &logits.values[row * width];
    double max = *std::max_element(x, x + classes), sum = 0;
    for (int64_t v = 0; v < classes; ++v)
      sum += std::exp(x[v] - max);
    double lse = max + std::log(sum);
    frame.out(0).values[row] = lse - x[int64_t(targets.values[row])];
    frame.out(1).values[row] = lse;
  }
}

static void crossEntropyBackward(CrossEntropyBackwardOp op,
                                 const Frame &frame) {
  const Tensor &logits = frame.in(0), &targets = frame.in(1),
               &lse = frame.in(2), &dlosses = frame.in(3);
  int64_t width = logits.cols(), classes = op.getClasses().value_or(width);
  for (int64_t row = 0; row < logits.rows(); ++row)
    for (int64_t v = 0; v < classes; ++v) {
      double p = std::exp(logits.values[row * width + v] - lse.values[row]);
      double hit = v == int64_t(targets.values[row]) ? 1.0 : 0.0;
      frame.out().values[row * width + v] = (p - hit) * dlosses.values[row];
    }
}

/// Row by row: only the row's own logits are there.
namespace {
/// What one rank does in nn.linear_cross_entropy, row by row.
class HeadOfRank {
public:
  HeadOfRank(LinearCrossEntropyOp op, const Frame &frame)
      : frame(frame), width(frame.in(0).cols()),
        vocabulary(frame.in(1).size() / width),
        isOutIn(op.getLayout() == WeightLayout::OutIn),
        rounds(!frame.isExact && getElementTypeOrSelf(op.getInput()).isBF16()),
        factor(op.getFactor() ? op.getFactor()->convertToFloat() : 0),
        begin(op.getAxis() ? frame.rank * vocabulary : 0),
        dinput(op.getDinput() ? &frame.out(1) : nullptr),
        sum(op.getSum() ? &frame.out(dinput ? 2 : 1) : nullptr) {
    if (sum)
      sum->values = frame.in(3).values;
    int64_t all =
        op.getClasses() ? int64_t(*op.getClasses()) : begin + vocabulary;
    classes = std::clamp<int64_t>(all - begin, 0, vocabulary);
  }

  /// The logits that are there, and their gradients, are of the input's type.
  double stored(double x) const { return rounds ? roundToBF16(x) : x; }
  void project(int64_t row);
  /// The logits of the row's classes.
  ArrayRef<double> getLogits() const {
    return ArrayRef(logits).take_front(classes);
  }
  /// The logit of the row's target, or 0 where that is no column.
  double getHit(int64_t row) const {
    int64_t target = getTarget(row);
    return target >= 0 && target < classes ? logits[target] : 0;
  }
  void goBack(int64_t row, double lse);

private:
  int64_t getTarget(int64_t row) const {
    return int64_t(frame.in(2).values[row]) - begin;
  }
  double getWeight(int64_t k, int64_t v) const {
    return frame.in(1).values[at(k, v)];
  }
  int64_t at(int64_t k, int64_t v) const {
    return isOutIn ? v * width + k : k * vocabulary + v;
  }

  const Frame &frame;
  const int64_t width, vocabulary;
  const bool isOutIn, rounds;
  const double factor;
  const int64_t begin; ///< the rank's first class
  int64_t classes;
  Tensor *dinput, *sum; ///< null where they are not asked for
  std::vector<double> logits;
};
} // namespace

void HeadOfRank::project(int64_t row) {
  logits.assign(vocabulary, 0);
  for (int64_t v = 0; v < vocabulary; ++v) {
    for (int64_t k = 0; k < width; ++k)
      logits[v] += frame.in(0).values[row * width + k] * getWeight(k, v);
    logits[v] = stored(logits[v]);
  }
}

void HeadOfRank::goBack(int64_t row, double lse) {
  for (int64_t v = 0; factor != 0 && v < classes; ++v) {
    double dlogit =
        stored((std::exp(logits[v] - lse) - (v == getTarget(row))) * factor);
    for (int64_t k = 0; k < width; ++k) {
      if (dinput)
        dinput->values[row * width + k] += dlogit * getWeight(k, v);
      if (sum)
        sum->values[at(k, v)] += dlogit * frame.in(0).values[row * width + k];
    }
  }
}

void interpreter::evaluateHead(LinearCrossEntropyOp op,
                               ArrayRef<Frame> frames) {
  std::vector<HeadOfRank> ranks;
  for (const Frame &frame : frames)
    ranks.emplace_back(op, frame);
  for (int64_t row = 0; row < frames.front().in(0).rows(); ++row) {
    double max = -std::numeric_limits<double>::infinity(), total = 0, hit = 0;
    for (HeadOfRank &rank : ranks) {
      rank.project(row);
      hit += rank.getHit(row);
      for (double logit : rank.getLogits())
        max = std::max(max, logit);
    }
    for (HeadOfRank &rank : ranks)
      for (double logit : rank.getLogits())
        total += std::exp(logit - max);
    double lse = max + std::log(total);
    for (auto [frame, rank] : llvm::zip_equal(frames, ranks)) {
      frame.out().values[row] = lse - hit;
      rank.goBack(row, lse);
    }
  }
}

static void adamw(AdamWOp op, const Frame &frame) {
  double beta1 = op.getBeta1().convertToDouble();
  double beta2 = op.getBeta2().convertToDouble();
  double eps = op.getEps().convertToDouble();
  double decay = op.getWeightDecay().convertToDouble();
  double scale = frame.in(4).values[0], lr = frame.in(5).values[0];
  double c1 = frame.in(6).values[0], c2 = frame.in(7).values[0];
  for (int64_t e = 0; e < frame.out().size(); ++e) {
    double p = frame.in(0).values[e], g = frame.in(1).values[e] * scale;
    double m = beta1 * frame.in(2).values[e] + (1 - beta1) * g;
    double v = beta2 * frame.in(3).values[e] + (1 - beta2) * g * g;
    double next =
        p - lr * decay * p - lr * (m / c1) / (std::sqrt(v / c2) + eps);
    if (std::isnan(scale)) {
      next = p;
      m = frame.in(2).values[e];
      v = frame.in(3).values[e];
    }
    frame.out(0).values[e] = next;
    frame.out(1).values[e] = m;
    frame.out(2).values[e] = v;
    if (op.getNewWorking())
      frame.out(3).values[e] = frame.out(0).values[e];
  }
}

/// Losses, and where their gradients begin.
static FailureOr<bool> evaluateLoss(Operation *op, const Frame &frame) {
  return TypeSwitch<Operation *, FailureOr<bool>>(op)
      .Case([&](CrossEntropyOp op) -> FailureOr<bool> {
        if (failed(checkTargets(op, frame.in(1),
                                op.getClasses().value_or(frame.in(0).cols()))))
          return failure();
        return crossEntropy(op, frame), true;
      })
      .Case([&](CrossEntropyBackwardOp op) {
        return crossEntropyBackward(op, frame), true;
      })
      .Case([&](LinearCrossEntropyOp op) -> FailureOr<bool> {
        if (failed(checkTargets(op, frame.in(2),
                                op.getClasses().value_or(frame.in(1).size() /
                                                         frame.in(0).cols()))))
          return failure();
        return evaluateHead(op, frame), true;
      })
      .Case([&](MeanOp) {
        for (double x : frame.in(0).values)
          frame.out().values[0] += x / double(frame.in(0).size());
        return true;
      })
      .Case([&](TrainingTermOp op) {
        frame.out().values[0] =
            frame.in(0).values[0] +
            op.getFactor().convertToFloat() * frame.in(1).values[0];
        return true;
      })
      .Case([&](BroadcastOp op) {
        double value = frame.in(0).values[0] * op.getFactor().convertToFloat();
        llvm::fill(frame.out().values, value);
        return true;
      })
      .Case([&](ConstantOp op) {
        llvm::fill(frame.out().values, op.getValue().convertToFloat());
        return true;
      })
      .Default([](Operation *) { return false; });
}

/// Sums of gradients, and the optimizer.
static FailureOr<bool> evaluateUpdate(Operation *op, const Frame &frame) {
  return TypeSwitch<Operation *, FailureOr<bool>>(op)
      .Case([&](AccumulateOp) {
        for (int64_t e = 0; e < frame.out().size(); ++e)
          frame.out().values[e] = frame.in(0).values[e] + frame.in(1).values[e];
        return true;
      })
      .Case([&](PushOp op) {
        frame.out(0).values = frame.in(0).values;
        for (unsigned older = 1; older + 1 < op->getNumOperands(); ++older)
          for (int64_t e = 0; e < frame.out(0).size(); ++e)
            frame.out(0).values[e] += frame.in(older).values[e];
        llvm::fill(frame.out(1).values, 0.0);
        return true;
      })
      .Case([&](GlobalNormOp) {
        double sum = 0;
        for (const Tensor *gradient : frame.operands)
          for (double x : gradient->values)
            sum += x * x;
        frame.out().values[0] = std::sqrt(sum);
        return true;
      })
      .Case([&](ClipScaleOp op) {
        double norm = frame.in(0).values[0];
        bool isFinite = std::isfinite(norm) &&
                        (!op.getLoss() || std::isfinite(frame.in(1).values[0]));
        double &scale = frame.out().values[0] = isFinite ? 1.0 : std::nan("");
        if (isFinite && op.getMaxNorm())
          scale =
              std::min(1.0, op.getMaxNorm()->convertToFloat() / (norm + 1e-6));
        return true;
      })
      .Case([&](AdamWOp op) { return adamw(op, frame), true; })
      .Default([](Operation *) { return false; });
}

FailureOr<bool> interpreter::evaluateTrainingOp(Operation *op,
                                                const Frame &frame) {
  FailureOr<bool> isLoss = evaluateLoss(op, frame);
  return failed(isLoss) || *isLoss ? isLoss : evaluateUpdate(op, frame);
}
