//===- ExpertOps.cpp - Mixtures of experts --------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Semantics.h"
#include "reprise/Dialect/NN/NNBalanceOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;
using namespace reprise;
using namespace reprise::interpreter;
using namespace reprise::nn;

/// Fails unless all of `ids` are from 0 on and below `size`.
static LogicalResult check(Operation *op, const Tensor &ids, int64_t size) {
  for (double id : ids.values)
    if (id < 0 || id >= double(size))
      return op->emitOpError("needs ids below ")
             << size << ", but got " << int64_t(id);
  return success();
}

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// The `count` of `candidates` with the largest scores, of equal ones those
/// that come first, in ascending order.
static std::vector<int64_t> takeLargest(std::vector<int64_t> candidates,
                                        ArrayRef<double> scores,
                                        int64_t count) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  candidates.resize(count);
  std::sort(candidates.begin(), candidates.end());
  return candidates;
}

static std::vector<int64_t> count(int64_t size) {
  std::vector<int64_t> all(size);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// The experts of the groups that are kept.
static std::vector<int64_t> getCandidates(ChooseExpertsOp op,
                                          ArrayRef<double> scores) {
  if (!op.getGroups())
    return count(int64_t(scores.size()));
  int64_t groups = *op.getGroups(), size = int64_t(scores.size()) / groups;
  std::vector<double> best;
  for (int64_t group = 0; group < groups; ++group) {
    std::vector<double> own(scores.slice(group * size, size));
    std::sort(own.begin(), own.end(), std::greater<>());
    best.push_back(op.getByTwo() ? own[0] + own[1] : own[0]);
  }
  std::vector<int64_t> candidates;
  for (int64_t group : takeLargest(count(groups), best, *op.getKeep()))
    for (int64_t e = 0; e < size; ++e)
      candidates.push_back(group * size + e);
  return candidates;
}

static void chooseExperts(ChooseExpertsOp op, const Frame &frame) {
  const Tensor &logits = frame.in(0);
  constexpr double kLowest = std::numeric_limits<float>::lowest();
  int64_t experts = logits.cols(), slots = frame.out().cols();
  for (int64_t t = 0; t < logits.rows(); ++t) {
    std::vector<double> scores;
    for (int64_t e = 0; e < experts; ++e) {
      double score = logits.values[t * experts + e];
      if (op.getSigmoid())
        score = sigmoid(score);
      if (op.getBias())
        score += frame.in(1).values[e];
      scores.push_back(score >= kLowest ? score : kLowest);
    }
    std::vector<int64_t> chosen =
        takeLargest(getCandidates(op, scores), scores, slots);
    std::copy(chosen.begin(), chosen.end(), &frame.out().values[t * slots]);
  }
}

/// The probability of each expert for token `t`: zero of those that do not take
/// part.
template <typename OpTy>
static std::vector<double> getProbabilities(OpTy op, const Frame &frame,
                                            int64_t t) {
  const Tensor &logits = frame.in(0), &ids = frame.in(1);
  bool isNormalized = op.getNormalized();
  int64_t experts = logits.cols(), slots = ids.cols();
  std::vector<double> p(experts, isNormalized ? 0 : 1);
  if (isNormalized)
    for (int64_t j = 0; j < slots; ++j)
      p[int64_t(ids.values[t * slots + j])] = 1;
  const double *row = &logits.values[t * experts];
  double greatest = *std::max_element(row, row + experts), sum = 0;
  for (int64_t e = 0; e < experts; ++e)
    sum += p[e] *=
        op.getSigmoid() ? sigmoid(row[e]) : std::exp(row[e] - greatest);
  if (op.getSigmoid() && !isNormalized)
    return p;
  for (double &x : p)
    x /= op.getSigmoid() ? sum + 1e-20 : sum;
  return p;
}

template <typename OpTy>
static double getScale(OpTy op) {
  return op.getScale() ? op.getScale()->convertToDouble() : 1;
}

static void expertWeights(ExpertWeightsOp op, const Frame &frame) {
  const Tensor &ids = frame.in(1);
  int64_t slots = ids.cols();
  for (int64_t t = 0; t < ids.rows(); ++t) {
    std::vector<double> p = getProbabilities(op, frame, t);
    for (int64_t j = t * slots; j < (t + 1) * slots; ++j)
      frame.out().values[j] = p[int64_t(ids.values[j])] * getScale(op);
  }
}

/// Of a softmax over those that take part `dr[i] = p[i] * (dp[i] - <dp, p>)`;
/// of sigmoids `s`, which are `p` times their sum if that is divided by, the
/// same times `1 - s[i]`, and without the division no `<dp, p>`.
static void expertWeightsBackward(ExpertWeightsBackwardOp op,
                                  const Frame &frame) {
  const Tensor &ids = frame.in(1), &dweights = frame.in(2);
  bool isSigmoid = op.getSigmoid();
  int64_t slots = ids.cols(), experts = frame.out().cols();
  for (int64_t t = 0; t < ids.rows(); ++t) {
    std::vector<double> p = getProbabilities(op, frame, t);
    std::vector<double> dp(experts, 0);
    for (int64_t j = t * slots; j < (t + 1) * slots; ++j)
      dp[int64_t(ids.values[j])] = dweights.values[j] * getScale(op);
    double dot = std::inner_product(p.begin(), p.end(), dp.begin(), 0.0);
    if (isSigmoid && !op.getNormalized())
      dot = 0;
    for (int64_t e = 0; e < experts; ++e) {
      double slope =
          isSigmoid ? 1 - sigmoid(frame.in(0).values[t * experts + e]) : 1;
      frame.out().values[t * experts + e] = p[e] * (dp[e] - dot) * slope;
    }
  }
}

/// The places of expert `e` that are not dropped.
static std::vector<int64_t> getPlaces(SortRowsOp op, const Frame &frame,
                                      int64_t e) {
  const std::vector<double> &ids = frame.in(0).values;
  std::vector<int64_t> places;
  for (int64_t place = 0; place < frame.in(0).size(); ++place)
    if (int64_t(ids[place]) == e)
      places.push_back(place);
  int64_t capacity = op.getCapacity().value_or(places.size());
  if (int64_t(places.size()) <= capacity)
    return places;
  std::vector<double> weights(frame.in(0).size(), 0);
  for (size_t place = 0; op.getWeights() && place < weights.size(); ++place) {
    double weight = std::abs(frame.in(1).values[place]);
    weights[place] = std::isnan(weight)
                         ? std::numeric_limits<double>::infinity()
                         : std::min(weight, std::numeric_limits<double>::max());
  }
  return takeLargest(places, weights, capacity);
}

static void sortRows(SortRowsOp op, const Frame &frame) {
  int64_t row = 0, experts = frame.out(2).size() - 1;
  if (op.getCapacity())
    std::fill(frame.out(1).values.begin(), frame.out(1).values.end(),
              double(frame.out(0).size() - 1));
  for (int64_t e = 0; e < experts; ++e) {
    for (int64_t place : getPlaces(op, frame, e)) {
      frame.out(0).values[row] = double(place);
      frame.out(1).values[place] = double(row++);
    }
    frame.out(2).values[e + 1] = double(row);
  }
}

static void combine(const Frame &frame) {
  const Tensor &rows = frame.in(0), &inverse = frame.in(2);
  int64_t width = rows.cols(), slots = inverse.cols();
  for (int64_t place = 0; place < inverse.size(); ++place)
    for (int64_t c = 0; c < width; ++c)
      frame.out().values[place / slots * width + c] +=
          rows.values[int64_t(inverse.values[place]) * width + c];
}

static void dispatch(const Frame &frame) {
  const Tensor &input = frame.in(0), &order = frame.in(1);
  int64_t width = input.cols(), slots = frame.in(2).cols();
  for (int64_t row = 0; row < order.size(); ++row)
    for (int64_t c = 0; c < width; ++c)
      frame.out().values[row * width + c] =
          input.values[int64_t(order.values[row]) / slots * width + c];
}

//===----------------------------------------------------------------------===//
// GEMMs
//===----------------------------------------------------------------------===//

namespace {
/// Rows that are where they are, or those of tokens.
struct Rows {
  const Tensor &values;
  const Tensor *order = nullptr;
  int64_t slots = 1;

  double at(int64_t row, int64_t col) const {
    int64_t place = order ? int64_t(order->values[row]) / slots : row;
    return values.values[place * values.cols() + col];
  }
};
} // namespace

/// Calls `fn(expert, row)` for each row.
static void forEachRow(const Tensor &offsets,
                       function_ref<void(int64_t, int64_t)> fn) {
  for (int64_t e = 0; e + 1 < offsets.size(); ++e)
    for (int64_t row = int64_t(offsets.values[e]);
         row < int64_t(offsets.values[e + 1]); ++row)
      fn(e, row);
}

static Rows getRows(const Frame &frame, unsigned operand, bool isGathered) {
  Rows rows = {frame.in(operand)};
  if (isGathered) {
    rows.order = &frame.in(3);
    rows.slots = frame.in(4).cols();
  }
  return rows;
}

/// out[r, i] = sum over o of x[r, o] * W(e, i, o).
static void multiply(const Frame &frame, bool isGathered, bool isBackward) {
  const Tensor &weight = frame.in(1);
  int64_t n = weight.shape[1], k = weight.shape[2];
  int64_t inner = isBackward ? n : k, outer = isBackward ? k : n;
  Rows x = getRows(frame, 0, isGathered);
  forEachRow(frame.in(2), [&](int64_t e, int64_t row) {
    for (int64_t i = 0; i < outer; ++i)
      for (int64_t o = 0; o < inner; ++o) {
        int64_t at = isBackward ? o * k + i : i * k + o;
        frame.out().values[row * outer + i] +=
            x.at(row, o) * weight.values[e * n * k + at];
      }
  });
}

static void multiplyForWeight(GroupedLinearBackwardWeightOp op,
                              const Frame &frame) {
  Rows x = getRows(frame, 0, op.getGathered() == GatheredRows::Input);
  Rows d = getRows(frame, 1, op.getGathered() == GatheredRows::Dout);
  int64_t n = frame.out().shape[1], k = frame.out().shape[2];
  forEachRow(frame.in(2), [&](int64_t e, int64_t row) {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t o = 0; o < k; ++o)
        frame.out().values[(e * n + i) * k + o] += d.at(row, i) * x.at(row, o);
  });
}

//===----------------------------------------------------------------------===//
// Activation
//===----------------------------------------------------------------------===//

static void weightedSwiGLU(const Frame &frame) {
  for (int64_t e = 0; e < frame.out().size(); ++e) {
    double gate = frame.in(0).values[e];
    frame.out().values[e] = gate * sigmoid(gate) * frame.in(1).values[e] *
                            frame.in(2).values[e / frame.out().cols()];
  }
}

static void weightedSwiGLUBackward(const Frame &frame) {
  for (int64_t e = 0; e < frame.out().size(); ++e) {
    int64_t row = e / frame.out().cols();
    double gate = frame.in(0).values[e], up = frame.in(1).values[e];
    double dout = frame.in(3).values[e], s = sigmoid(gate);
    double d = dout * frame.in(2).values[row];
    frame.out(0).values[e] = d * up * (s + gate * s * (1 - s));
    frame.out(1).values[e] = d * gate * s;
    frame.out(2).values[row] += dout * gate * s * up;
  }
}

//===----------------------------------------------------------------------===//
// Balance
//===----------------------------------------------------------------------===//

/// The softmax of the logits of token `t`, or the shares of their sigmoids.
static std::vector<double> getShares(const Tensor &logits, int64_t t,
                                     bool isSigmoid) {
  const double *row = &logits.values[t * logits.cols()];
  std::vector<double> p(row, row + logits.cols());
  double greatest = *std::max_element(p.begin(), p.end()), sum = 0;
  for (double &x : p)
    sum += x = isSigmoid ? sigmoid(x) : std::exp(x - greatest);
  for (double &x : p)
    x /= isSigmoid ? sum + 1e-20 : sum;
  return p;
}

/// The logarithm of the sum of the exponentials of the logits of token `t`.
static double getLogSumExp(const Tensor &logits, int64_t t) {
  const double *row = &logits.values[t * logits.cols()];
  double greatest = *std::max_element(row, row + logits.cols()), sum = 0;
  for (int64_t e = 0; e < logits.cols(); ++e)
    sum += std::exp(row[e] - greatest);
  return greatest + std::log(sum);
}

static void countRows(const Frame &frame) {
  for (const Tensor *offsets : frame.operands)
    for (int64_t e = 0; e < frame.out().size(); ++e)
      frame.out().values[e] += offsets->values[e + 1] - offsets->values[e];
}

/// Of the sequence that each id is of, or of all.
static void countChoices(const Frame &frame) {
  const Tensor &ids = frame.in(0);
  int64_t experts = frame.out().cols();
  int64_t perCount = ids.size() / (frame.out().size() / experts);
  for (int64_t place = 0; place < ids.size(); ++place)
    frame.out()
        .values[place / perCount * experts + int64_t(ids.values[place])] += 1;
}

/// The rows of experts as the sequence of token `t` has them.
static const double *getRowsOf(const Frame &frame, int64_t t) {
  const Tensor &logits = frame.in(0), &rows = frame.in(1);
  int64_t perCount = logits.rows() * logits.cols() / rows.size();
  return &rows.values[t / perCount * logits.cols()];
}

static void expectedRows(ExpectedRowsOp op, const Frame &frame) {
  for (int64_t t = 0; t < frame.out().size(); ++t) {
    std::vector<double> p = getShares(frame.in(0), t, op.getSigmoid());
    frame.out().values[t] =
        std::inner_product(p.begin(), p.end(), getRowsOf(frame, t), 0.0);
  }
}

static void expectedRowsBackward(ExpectedRowsBackwardOp op,
                                 const Frame &frame) {
  const Tensor &logits = frame.in(0);
  for (int64_t t = 0; t < frame.in(2).size(); ++t) {
    const double *rows = getRowsOf(frame, t);
    std::vector<double> p = getShares(logits, t, op.getSigmoid());
    double out = std::inner_product(p.begin(), p.end(), rows, 0.0);
    for (int64_t e = 0; e < logits.cols(); ++e) {
      int64_t at = t * logits.cols() + e;
      double slope = op.getSigmoid() ? 1 - sigmoid(logits.values[at]) : 1;
      frame.out().values[at] =
          frame.in(2).values[t] * p[e] * (rows[e] - out) * slope;
    }
  }
}

static void rowShares(const Frame &frame) {
  const std::vector<double> &rows = frame.in(0).values;
  double all = std::accumulate(rows.begin(), rows.end(), 0.0);
  for (size_t e = 0; e < rows.size(); ++e)
    frame.out().values[e] = all == 0 ? 0 : rows[e] / all;
}

static void squaredLogSumExp(const Frame &frame) {
  for (int64_t t = 0; t < frame.out().size(); ++t)
    frame.out().values[t] = std::pow(getLogSumExp(frame.in(0), t), 2);
}

static void squaredLogSumExpBackward(const Frame &frame) {
  const Tensor &logits = frame.in(0);
  for (int64_t t = 0; t < frame.in(1).size(); ++t) {
    std::vector<double> p = getShares(logits, t, /*isSigmoid=*/false);
    double slope = 2 * frame.in(1).values[t] * getLogSumExp(logits, t);
    for (int64_t e = 0; e < logits.cols(); ++e)
      frame.out().values[t * logits.cols() + e] = slope * p[e];
  }
}

static void balanceBias(BalanceBiasOp op, const Frame &frame) {
  const std::vector<double> &rows = frame.in(1).values;
  double mean = std::accumulate(rows.begin(), rows.end(), 0.0) / rows.size();
  double rate = op.getRate().convertToDouble();
  for (size_t e = 0; e < rows.size(); ++e) {
    double sign = (mean > rows[e]) - (mean < rows[e]);
    bool stays = std::isnan(frame.in(2).values[0]);
    frame.out().values[e] = frame.in(0).values[e] + (stays ? 0 : rate * sign);
  }
}

static void sumProbabilities(const Frame &frame) {
  const Tensor &logits = frame.in(0);
  for (int64_t t = 0; t < frame.in(1).size(); ++t)
    for (int64_t e = 0; e < logits.cols(); ++e)
      frame.out().values[e] += std::exp(logits.values[t * logits.cols() + e] -
                                        frame.in(1).values[t]);
}

static void balanceLoss(BalanceLossOp op, const Frame &frame) {
  const std::vector<double> &rows = frame.in(0).values;
  frame.out().values[0] = op.getFactor().convertToDouble() *
                          std::inner_product(rows.begin(), rows.end(),
                                             frame.in(1).values.begin(), 0.0);
}

static void balanceLossBackward(BalanceLossBackwardOp op, const Frame &frame) {
  double factor = op.getFactor().convertToDouble() * frame.in(1).values[0];
  for (int64_t e = 0; e < frame.out().size(); ++e)
    frame.out().values[e] = factor * frame.in(0).values[e];
}

/// The ops for the balance of all layers together; whether `op` is one.
static FailureOr<bool> evaluateModelBalance(Operation *op, const Frame &frame) {
  return TypeSwitch<Operation *, FailureOr<bool>>(op)
      .Case([&](RowLogSumExpOp) {
        for (int64_t t = 0; t < frame.out().size(); ++t)
          frame.out().values[t] = getLogSumExp(frame.in(0), t);
        return true;
      })
      .Case([&](SumProbabilitiesOp) { return sumProbabilities(frame), true; })
      .Case([&](BalanceLossOp op) { return balanceLoss(op, frame), true; })
      .Case([&](BalanceLossBackwardOp op) {
        return balanceLossBackward(op, frame), true;
      })
      .Default([](Operation *) { return false; });
}

/// The ops for the balance of experts; whether `op` is one.
static FailureOr<bool> evaluateBalance(Operation *op, const Frame &frame) {
  return TypeSwitch<Operation *, FailureOr<bool>>(op)
      .Case([&](CountRowsOp) { return countRows(frame), true; })
      .Case([&](CountChoicesOp op) -> FailureOr<bool> {
        if (failed(check(op, frame.in(0), frame.out().cols())))
          return failure();
        return countChoices(frame), true;
      })
      .Case([&](RowSharesOp) { return rowShares(frame), true; })
      .Case([&](ExpectedRowsOp op) { return expectedRows(op, frame), true; })
      .Case([&](ExpectedRowsBackwardOp op) {
        return expectedRowsBackward(op, frame), true;
      })
      .Case([&](SquaredLogSumExpOp) { return squaredLogSumExp(frame), true; })
      .Case([&](SquaredLogSumExpBackwardOp) {
        return squaredLogSumExpBackward(frame), true;
      })
      .Case([&](BalanceBiasOp op) { return balanceBias(op, frame), true; })
      .Default([&](Operation *op) { return evaluateModelBalance(op, frame); });
}

static void permute(const Frame &frame) {
  for (int64_t e = 0; e < frame.out().size(); ++e)
    frame.out().values[e] = frame.in(0).values[int64_t(frame.in(1).values[e])];
}

static void gateWeight(const Frame &frame) {
  for (int64_t t = 0; t < frame.out().size(); ++t)
    frame.out().values[t] = sigmoid(frame.in(0).values[t]);
}

static void gateWeightBackward(const Frame &frame) {
  for (int64_t t = 0; t < frame.out().size(); ++t) {
    double w = frame.in(0).values[t];
    frame.out().values[t] = frame.in(1).values[t] * w * (1 - w);
  }
}

/// The ops that bring rows to experts and back; whether `op` is one.
static FailureOr<bool> evaluateRows(Operation *op, const Frame &frame) {
  return TypeSwitch<Operation *, FailureOr<bool>>(op)
      .Case([&](SortRowsOp op) -> FailureOr<bool> {
        if (failed(check(op, frame.in(0), frame.out(2).size() - 1)))
          return failure();
        return sortRows(op, frame), true;
      })
      .Case([&](PermuteOp op) -> FailureOr<bool> {
        if (failed(check(op, frame.in(1), frame.in(0).size())))
          return failure();
        return permute(frame), true;
      })
      .Case([&](DispatchOp op) -> FailureOr<bool> {
        if (failed(check(op, frame.in(1), frame.in(2).size())))
          return failure();
        return dispatch(frame), true;
      })
      .Case([&](CombineOp op) -> FailureOr<bool> {
        if (failed(check(op, frame.in(2), frame.in(0).rows())))
          return failure();
        return combine(frame), true;
      })
      .Default([&](Operation *op) { return evaluateBalance(op, frame); });
}

FailureOr<bool> interpreter::evaluateExpertOp(Operation *op,
                                              const Frame &frame) {
  return TypeSwitch<Operation *, FailureOr<bool>>(op)
      .Case([&](ChooseExpertsOp op) { return chooseExperts(op, frame), true; })
      .Case([&](ExpertWeightsOp op) -> FailureOr<bool> {
        if (failed(check(op, frame.in(1), frame.in(0).cols())))
          return failure();
        return expertWeights(op, frame), true;
      })
      .Case([&](ExpertWeightsBackwardOp op) -> FailureOr<bool> {
        if (failed(check(op, frame.in(1), frame.in(0).cols())))
          return failure();
        return expertWeightsBackward(op, frame), true;
      })
      .Case([&](GroupedLinearOp op) {
        return multiply(frame, bool(op.getOrder()), /*isBackward=*/false), true;
      })
      .Case([&](GroupedLinearBackwardInputOp op) {
        return multiply(frame, bool(op.getOrder()), /*isBackward=*/true), true;
      })
      .Case([&](GroupedLinearBackwardWeightOp op) {
        return multiplyForWeight(op, frame), true;
      })
      .Case([&](GateWeightOp) { return gateWeight(frame), true; })
      .Case(
          [&](GateWeightBackwardOp) { return gateWeightBackward(frame), true; })
      .Case([&](WeightedSwiGLUOp) { return weightedSwiGLU(frame), true; })
      .Case([&](WeightedSwiGLUBackwardOp) {
        return weightedSwiGLUBackward(frame), true;
      })
      .Default([&](Operation *op) { return evaluateRows(op, frame); });
}
