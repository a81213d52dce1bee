//===- ModelOps.cpp - Embeddings, norms, projections, pointwise -----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Semantics.h"
#include "reprise/ABI/Philox.h"
#include "reprise/Dialect/NN/NNActivationOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace reprise;
using namespace reprise::interpreter;
using namespace reprise::nn;

double interpreter::getDropoutFactor(const Tensor &rng, double rate,
                                     int64_t stream, int64_t element) {
  auto word = [&](unsigned index) {
    return uint32_t(int32_t(int64_t(rng.values[index])));
  };
  uint64_t seed = uint64_t(word(1)) << 32 | word(0);
  uint32_t random = reprisePhilox(seed, word(2), word(3), uint32_t(stream),
                                  uint64_t(element));
  double threshold = std::min(std::round(rate * 4294967296.0), 4294967295.0);
  return double(random) >= threshold ? 1.0 / (1.0 - rate) : 0.0;
}

/// The row that id `index` names, checked against the table's `size`; `what`
/// the ids are.
static FailureOr<int64_t> getId(Operation *op, const Tensor &ids, int64_t index,
                                int64_t size, StringRef what = "id") {
  int64_t id = int64_t(ids.values[index]);
  if (id < 0 || id >= size)
    return op->emitOpError("needs ") << what << "s below " << size << ", but "
                                     << what << " #" << index << " is " << id;
  return id;
}

static LogicalResult embed(EmbeddingOp op, const Frame &frame) {
  const Tensor &ids = frame.in(0), &table = frame.in(1);
  int64_t width = table.cols();
  for (int64_t row = 0; row < ids.size(); ++row) {
    FailureOr<int64_t> id = getId(op, ids, row, table.rows());
    if (failed(id))
      return failure();
    for (int64_t c = 0; c < width; ++c)
      frame.out().values[row * width + c] = table.values[*id * width + c];
  }
  return success();
}

static LogicalResult embedBackward(EmbeddingBackwardOp op, const Frame &frame) {
  const Tensor &ids = frame.in(0), &dout = frame.in(1);
  int64_t width = dout.cols();
  for (int64_t row = 0; row < ids.size(); ++row) {
    FailureOr<int64_t> id = getId(op, ids, row, frame.out().rows());
    if (failed(id))
      return failure();
    for (int64_t c = 0; c < width; ++c)
      frame.out().values[*id * width + c] += dout.values[row * width + c];
  }
  return success();
}

static void addPositions(const Frame &frame) {
  const Tensor &input = frame.in(0), &table = frame.in(1);
  int64_t width = input.cols(), length = input.shape[1];
  for (int64_t row = 0; row < input.rows(); ++row)
    for (int64_t c = 0; c < width; ++c)
      frame.out().values[row * width + c] =
          input.values[row * width + c] +
          table.values[row % length * width + c];
}

static void positionsBackward(const Frame &frame) {
  const Tensor &dout = frame.in(0);
  int64_t width = dout.cols(), length = dout.shape[1];
  for (int64_t row = 0; row < dout.rows(); ++row)
    for (int64_t c = 0; c < width; ++c)
      frame.out().values[row % length * width + c] +=
          dout.values[row * width + c];
}

/// Calls `copy` with the number of an element of `all`, and with that of the
/// same of `some`, whose positions are those of `all` from `first` on.
static void copyPositions(ArrayRef<int64_t> all, ArrayRef<int64_t> some,
                          int64_t first,
                          function_ref<void(int64_t, int64_t)> copy) {
  int64_t width = all.size() == 3 ? all[2] : 1;
  for (int64_t b = 0; b < some[0]; ++b)
    for (int64_t t = 0; t < some[1]; ++t)
      for (int64_t c = 0; c < width; ++c)
        copy((b * all[1] + first + t) * width + c,
             (b * some[1] + t) * width + c);
}

static void cropPositions(CropPositionsOp op, const Frame &frame) {
  copyPositions(frame.in(0).shape, frame.out().shape, op.getFrom(),
                [&](int64_t whole, int64_t part) {
                  frame.out().values[part] = frame.in(0).values[whole];
                });
}

static void padPositions(PadPositionsOp op, const Frame &frame) {
  copyPositions(frame.out().shape, frame.in(0).shape, op.getFrom(),
                [&](int64_t whole, int64_t part) {
                  frame.out().values[whole] = frame.in(0).values[part];
                });
}

static LogicalResult takePosition(TakePositionOp op, const Frame &frame) {
  const Tensor &input = frame.in(0), &positions = frame.in(1);
  int64_t length = input.shape[1], width = input.cols();
  for (int64_t b = 0; b < positions.size(); ++b) {
    FailureOr<int64_t> position = getId(op, positions, b, length, "position");
    if (failed(position))
      return failure();
    for (int64_t c = 0; c < width; ++c)
      frame.out().values[b * width + c] =
          input.values[(b * length + *position) * width + c];
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Layer normalisation
//===----------------------------------------------------------------------===//

static void layerNorm(double eps, const Frame &frame) {
  const Tensor &input = frame.in(0), &gain = frame.in(1), &bias = frame.in(2);
  int64_t width = input.cols();
  for (int64_t row = 0; row < input.rows(); ++row) {
    const double *x = &input.values[row * width];
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < width; ++c)
      mean += x[c] / double(width);
    for (int64_t c = 0; c < width; ++c)
      variance += (x[c] - mean) * (x[c] - mean) / double(width);
    double rstd = 1.0 / std::sqrt(variance + eps);
    for (int64_t c = 0; c < width; ++c)
      frame.out().values[row * width + c] =
          (x[c] - mean) * rstd * gain.values[c] + bias.values[c];
    frame.out(1).values[row] = mean;
    frame.out(2).values[row] = rstd;
  }
}

static void layerNormBackward(const Frame &frame) {
  const Tensor &input = frame.in(0), &gain = frame.in(1), &mean = frame.in(2),
               &rstd = frame.in(3), &dout = frame.in(4);
  int64_t width = input.cols();
  for (int64_t row = 0; row < input.rows(); ++row) {
    auto n = [&](int64_t c) {
      return (input.values[row * width + c] - mean.values[row]) *
             rstd.values[row];
    };
    auto g = [&](int64_t c) {
      return dout.values[row * width + c] * gain.values[c];
    };
    double sumG = 0, sumGN = 0;
    for (int64_t c = 0; c < width; ++c) {
      sumG += g(c);
      sumGN += g(c) * n(c);
    }
    for (int64_t c = 0; c < width; ++c)
      frame.out().values[row * width + c] =
          rstd.values[row] *
          (g(c) - sumG / double(width) - n(c) * sumGN / double(width));
  }
}

static void layerNormBackwardGain(const Frame &frame) {
  const Tensor &input = frame.in(0), &mean = frame.in(1), &rstd = frame.in(2),
               &dout = frame.in(3);
  int64_t width = input.cols();
  for (int64_t row = 0; row < input.rows(); ++row)
    for (int64_t c = 0; c < width; ++c)
      frame.out().values[c] +=
          dout.values[row * width + c] *
          (input.values[row * width + c] - mean.values[row]) * rstd.values[row];
}

static void sumRows(const Frame &frame) {
  const Tensor &input = frame.in(0);
  for (int64_t row = 0; row < input.rows(); ++row)
    for (int64_t c = 0; c < input.cols(); ++c)
      frame.out().values[c] += input.values[row * input.cols() + c];
}

//===----------------------------------------------------------------------===//
// RMS normalisation
//===----------------------------------------------------------------------===//

static void rmsNorm(double eps, const Frame &frame) {
  const Tensor &input = frame.in(0), &gain = frame.in(1);
  int64_t width = gain.size();
  for (int64_t group = 0; group < frame.out(1).size(); ++group) {
    const double *x = &input.values[group * width];
    double square = 0;
    for (int64_t c = 0; c < width; ++c)
      square += x[c] * x[c] / double(width);
    double rstd = 1.0 / std::sqrt(square + eps);
    for (int64_t c = 0; c < width; ++c)
      frame.out().values[group * width + c] = x[c] * rstd * gain.values[c];
    frame.out(1).values[group] = rstd;
  }
}

static void rmsNormBackward(const Frame &frame) {
  const Tensor &input = frame.in(0), &gain = frame.in(1), &rstd = frame.in(2),
               &dout = frame.in(3);
  int64_t width = gain.size();
  for (int64_t group = 0; group < rstd.size(); ++group) {
    auto n = [&](int64_t c) {
      return input.values[group * width + c] * rstd.values[group];
    };
    auto g = [&](int64_t c) {
      return dout.values[group * width + c] * gain.values[c];
    };
    double mean = 0;
    for (int64_t c = 0; c < width; ++c)
      mean += g(c) * n(c) / double(width);
    for (int64_t c = 0; c < width; ++c)
      frame.out().values[group * width + c] =
          rstd.values[group] * (g(c) - n(c) * mean);
  }
}

static void rmsNormBackwardGain(const Frame &frame) {
  const Tensor &input = frame.in(0), &rstd = frame.in(1), &dout = frame.in(2);
  int64_t width = frame.out().size();
  for (int64_t group = 0; group < rstd.size(); ++group)
    for (int64_t c = 0; c < width; ++c)
      frame.out().values[c] += dout.values[group * width + c] *
                               input.values[group * width + c] *
                               rstd.values[group];
}

//===----------------------------------------------------------------------===//
// Projections
//===----------------------------------------------------------------------===//

/// Element (k, n) of a weight, however it is stored.
static double getWeight(const Tensor &weight, WeightLayout layout, int64_t k,
                        int64_t n) {
  return layout == WeightLayout::InOut ? weight.values[k * weight.cols() + n]
                                       : weight.values[n * weight.cols() + k];
}

static void linear(LinearOp op, const Frame &frame) {
  const Tensor &input = frame.in(0), &weight = frame.in(1);
  int64_t inner = input.cols(), width = frame.out().cols();
  for (int64_t row = 0; row < input.rows(); ++row)
    for (int64_t n = 0; n < width; ++n) {
      double sum = op.getBias() ? frame.in(2).values[n] : 0.0;
      for (int64_t k = 0; k < inner; ++k)
        sum += input.values[row * inner + k] *
               getWeight(weight, op.getLayout(), k, n);
      frame.out().values[row * width + n] = sum;
    }
}

static void linearBackwardInput(LinearBackwardInputOp op, const Frame &frame) {
  const Tensor &dout = frame.in(0), &weight = frame.in(1);
  int64_t inner = frame.out().cols(), width = dout.cols();
  for (int64_t row = 0; row < dout.rows(); ++row)
    for (int64_t k = 0; k < inner; ++k)
      for (int64_t n = 0; n < width; ++n)
        frame.out().values[row * inner + k] +=
            dout.values[row * width + n] *
            getWeight(weight, op.getLayout(), k, n);
}

static void linearBackwardWeight(LinearBackwardWeightOp op,
                                 const Frame &frame) {
  const Tensor &input = frame.in(0), &dout = frame.in(1);
  int64_t inner = input.cols(), width = dout.cols();
  bool inOut = op.getLayout() == WeightLayout::InOut;
  for (int64_t row = 0; row < input.rows(); ++row)
    for (int64_t k = 0; k < inner; ++k)
      for (int64_t n = 0; n < width; ++n)
        frame.out().values[inOut ? k * width + n : n * inner + k] +=
            input.values[row * inner + k] * dout.values[row * width + n];
}

//===----------------------------------------------------------------------===//
// Pointwise
//===----------------------------------------------------------------------===//

template <typename Function>
static void forEach(const Frame &frame, Function function) {
  for (int64_t e = 0; e < frame.out().size(); ++e)
    frame.out().values[e] = function(e);
}

static const double kSqrt2OverPi = std::sqrt(2.0 / M_PI);

static double gelu(GeluForm form, double x) {
  if (form == GeluForm::Erf)
    return 0.5 * x * (1.0 + std::erf(x / M_SQRT2));
  return 0.5 * x * (1.0 + std::tanh(kSqrt2OverPi * (x + 0.044715 * x * x * x)));
}

static double geluDerivative(GeluForm form, double x) {
  if (form == GeluForm::Erf)
    return 0.5 * (1.0 + std::erf(x / M_SQRT2)) +
           x * std::exp(-0.5 * x * x) / std::sqrt(2.0 * M_PI);
  double t = std::tanh(kSqrt2OverPi * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * kSqrt2OverPi *
                               (1.0 + 3.0 * 0.044715 * x * x);
}

static double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

/// Rows of tables, and positions of texts.
static FailureOr<bool> evaluateTableOp(Operation *op, const Frame &frame) {
  return TypeSwitch<Operation *, FailureOr<bool>>(op)
      .Case([&](EmbeddingOp op) -> FailureOr<bool> {
        if (failed(embed(op, frame)))
          return failure();
        return true;
      })
      .Case([&](EmbeddingBackwardOp op) -> FailureOr<bool> {
        if (failed(embedBackward(op, frame)))
          return failure();
        return true;
      })
      .Case([&](AddPositionsOp) { return addPositions(frame), true; })
      .Case([&](PositionsBackwardOp) { return positionsBackward(frame), true; })
      .Case([&](CropPositionsOp op) { return cropPositions(op, frame), true; })
      .Case([&](PadPositionsOp op) { return padPositions(op, frame), true; })
      .Case([&](TakePositionOp op) -> FailureOr<bool> {
        if (failed(takePosition(op, frame)))
          return failure();
        return true;
      })
      .Default([](Operation *) { return false; });
}

/// Norms, and GEMMs with a weight.
static FailureOr<bool> evaluateLayerOp(Operation *op, const Frame &frame) {
  return TypeSwitch<Operation *, FailureOr<bool>>(op)
      .Case([&](LayerNormOp op) {
        return layerNorm(op.getEps().convertToFloat(), frame), true;
      })
      .Case([&](LayerNormBackwardOp) { return layerNormBackward(frame), true; })
      .Case([&](LayerNormBackwardGainOp) {
        return layerNormBackwardGain(frame), true;
      })
      .Case([&](SumRowsOp) { return sumRows(frame), true; })
      .Case([&](RMSNormOp op) {
        return rmsNorm(op.getEps().convertToFloat(), frame), true;
      })
      .Case([&](RMSNormBackwardOp) { return rmsNormBackward(frame), true; })
      .Case([&](RMSNormBackwardGainOp) {
        return rmsNormBackwardGain(frame), true;
      })
      .Case([&](LinearOp op) { return linear(op, frame), true; })
      .Case([&](LinearBackwardInputOp op) {
        return linearBackwardInput(op, frame), true;
      })
      .Case([&](LinearBackwardWeightOp op) {
        return linearBackwardWeight(op, frame), true;
      })
      .Default([](Operation *) { return false; });
}

static void dropout(DropoutOp op, const Frame &frame) {
  double rate = op.getRate().convertToFloat();
  int64_t piece = frame.out().size();
  if (PartAttr part = op.getPartAttr())
    for (int64_t dim = 0; dim < part.getDim(); ++dim)
      piece /= frame.out().shape[dim];
  forEach(frame, [&](int64_t e) {
    int64_t ofAll = (e / piece * frame.ranks + frame.rank) * piece + e % piece;
    return frame.in(0).values[e] *
           getDropoutFactor(frame.in(1), rate, op.getStream(), ofAll);
  });
}

/// Activations, and their gradients.
static FailureOr<bool> evaluateActivation(Operation *op, const Frame &frame) {
  auto value = [&](unsigned operand, int64_t e) {
    return frame.in(operand).values[e];
  };
  return TypeSwitch<Operation *, FailureOr<bool>>(op)
      .Case([&](GeluOp op) {
        forEach(frame,
                [&](int64_t e) { return gelu(op.getForm(), value(0, e)); });
        return true;
      })
      .Case([&](GeluBackwardOp op) {
        forEach(frame, [&](int64_t e) {
          return value(1, e) * geluDerivative(op.getForm(), value(0, e));
        });
        return true;
      })
      .Case([&](SquaredReluOp) {
        forEach(frame, [&](int64_t e) {
          double x = value(0, e);
          return x < 0 ? 0.0 : x * x;
        });
        return true;
      })
      .Case([&](SquaredReluBackwardOp) {
        forEach(frame, [&](int64_t e) {
          double x = value(0, e), dout = value(1, e);
          return x < 0 ? 0.0 * dout : 2.0 * x * dout;
        });
        return true;
      })
      .Case([&](SwiGLUOp) {
        forEach(frame, [&](int64_t e) {
          return value(0, e) * sigmoid(value(0, e)) * value(1, e);
        });
        return true;
      })
      .Case([&](SwiGLUBackwardOp) {
        for (int64_t e = 0; e < frame.out().size(); ++e) {
          double gate = value(0, e), dout = value(2, e), s = sigmoid(gate);
          frame.out(0).values[e] =
              dout * value(1, e) * (s + gate * s * (1.0 - s));
          frame.out(1).values[e] = dout * gate * s;
        }
        return true;
      })
      .Default([](Operation *) { return false; });
}

static FailureOr<bool> evaluateElementwiseOp(Operation *op,
                                             const Frame &frame) {
  auto value = [&](unsigned operand, int64_t e) {
    return frame.in(operand).values[e];
  };
  return TypeSwitch<Operation *, FailureOr<bool>>(op)
      .Case([&](AddOp) {
        forEach(frame, [&](int64_t e) { return value(0, e) + value(1, e); });
        return true;
      })
      .Case([&](ScaleOp op) {
        double factor = op.getFactor().convertToFloat();
        forEach(frame, [&](int64_t e) { return value(0, e) * factor; });
        return true;
      })
      .Case([&](DropoutOp op) { return dropout(op, frame), true; })
      .Case([&](CastOp) {
        forEach(frame, [&](int64_t e) { return value(0, e); });
        return true;
      })
      .Default([](Operation *) { return false; });
}

FailureOr<bool> interpreter::evaluateModelOp(Operation *op,
                                             const Frame &frame) {
  for (auto family : {evaluateTableOp, evaluateLayerOp, evaluateActivation,
                      evaluateElementwiseOp}) {
    FailureOr<bool> isKnown = family(op, frame);
    if (failed(isKnown) || *isKnown)
      return isKnown;
  }
  return false;
}
