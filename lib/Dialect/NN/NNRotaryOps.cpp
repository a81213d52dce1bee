//===- NNRotaryOps.cpp - Rotary positions -----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

//===----------------------------------------------------------------------===//
// Where angles come from
//===----------------------------------------------------------------------===//

LogicalResult RotaryAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 FloatAttr theta, RotaryType type,
                                 FloatAttr factor, FloatAttr lowFreqFactor,
                                 FloatAttr highFreqFactor,
                                 int64_t originalLength, FloatAttr betaFast,
                                 FloatAttr betaSlow, bool truncate,
                                 FloatAttr attentionFactor, FloatAttr mscale,
                                 FloatAttr mscaleAllDim) {
  if (!theta.getValue().isFinite() || !(theta.getValueAsDouble() > 1))
    return emitError() << "needs a finite 'theta' above 1, but got " << theta;
  bool stretched = type != RotaryType::Default;
  bool llama3 = type == RotaryType::Llama3, yarn = type == RotaryType::Yarn;
  struct Number {
    StringRef name;
    FloatAttr value;
    bool allowed, needed;
  };
  for (auto [name, value, allowed, needed] :
       {Number{"factor", factor, stretched, stretched},
        Number{"low_freq_factor", lowFreqFactor, llama3, llama3},
        Number{"high_freq_factor", highFreqFactor, llama3, llama3},
        Number{"beta_fast", betaFast, yarn, false},
        Number{"beta_slow", betaSlow, yarn, false},
        Number{"attention_factor", attentionFactor, yarn, false},
        Number{"mscale", mscale, yarn, false},
        Number{"mscale_all_dim", mscaleAllDim, yarn, false}}) {
    if (value ? !allowed : needed)
      return emitError() << (value ? "has no use for '" : "needs '") << name
                         << "' with type " << stringifyRotaryType(type)
                         << ", but got " << (value ? "one" : "none");
    if (value &&
        (!value.getValue().isFiniteNonZero() || value.getValue().isNegative()))
      return emitError() << "needs a finite '" << name << "' above 0, but got "
                         << value;
  }
  if (llama3 || yarn ? originalLength < 1 : originalLength != 0)
    return emitError() << "needs 'original_max_position_embeddings' to be "
                       << (llama3 || yarn ? "at least 1" : "left out")
                       << " with type " << stringifyRotaryType(type)
                       << ", but got " << originalLength;
  if (!yarn && !truncate)
    return emitError() << "has no use for 'truncate' with type "
                       << stringifyRotaryType(type) << ", but got false";
  if (llama3 &&
      !(lowFreqFactor.getValueAsDouble() < highFreqFactor.getValueAsDouble()))
    return emitError() << "needs a 'low_freq_factor' below 'high_freq_factor', "
                          "but got "
                       << lowFreqFactor << " and " << highFreqFactor;
  return success();
}

namespace {
/// The base frequencies of one head width, and how each type changes them.
class Frequencies {
public:
  Frequencies(RotaryAttr rotary, int64_t width) : rotary(rotary), width(width) {
    for (int64_t pair = 0; pair < width / 2; ++pair)
      values.push_back(std::pow(rotary.getTheta().getValueAsDouble(),
                                -2.0 * double(pair) / double(width)));
  }

  void stretchLinear() {
    for (double &value : values)
      value /= rotary.getFactor().getValueAsDouble();
  }

  void stretchLlama3() {
    double length = double(rotary.getOriginalMaxPositionEmbeddings());
    double factor = rotary.getFactor().getValueAsDouble();
    double low = rotary.getLowFreqFactor().getValueAsDouble();
    double high = rotary.getHighFreqFactor().getValueAsDouble();
    for (double &value : values) {
      double turns = length * value / (2 * llvm::numbers::pi);
      double blend = std::clamp((turns - low) / (high - low), 0.0, 1.0);
      value = (1 - blend) * value / factor + blend * value;
    }
  }

  void stretchYarn() {
    double low = getColumn(rotary.getBetaFast(), 32);
    double high = getColumn(rotary.getBetaSlow(), 1);
    if (rotary.getTruncate()) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, double(width - 1));
    if (low == high)
      high += 0.001;
    double factor = rotary.getFactor().getValueAsDouble();
    for (auto [pair, value] : llvm::enumerate(values)) {
      double ramp = std::clamp((double(pair) - low) / (high - low), 0.0, 1.0);
      value = ramp * value / factor + (1 - ramp) * value;
    }
  }

  double getYarnScale() const {
    if (FloatAttr scale = rotary.getAttentionFactor())
      return scale.getValueAsDouble();
    double factor = rotary.getFactor().getValueAsDouble();
    auto magnitude = [&](double slope) {
      return factor > 1 ? 0.1 * slope * std::log(factor) + 1 : 1.0;
    };
    if (rotary.getMscale() && rotary.getMscaleAllDim())
      return magnitude(rotary.getMscale().getValueAsDouble()) /
             magnitude(rotary.getMscaleAllDim().getValueAsDouble());
    return magnitude(1);
  }

  std::vector<double> values;

private:
  /// The pair that turns `turns` times over the original length, as a number
  /// that need not be whole.
  double getColumn(FloatAttr turns, double otherwise) const {
    double n = turns ? turns.getValueAsDouble() : otherwise;
    double length = double(rotary.getOriginalMaxPositionEmbeddings());
    return double(width) * std::log(length / (2 * llvm::numbers::pi * n)) /
           (2 * std::log(rotary.getTheta().getValueAsDouble()));
  }

  RotaryAttr rotary;
  int64_t width;
};
} // namespace

RotaryFrequencies nn::getRotaryFrequencies(RotaryAttr rotary,
                                           int64_t headWidth) {
  assert(headWidth % 2 == 0 && "columns come in pairs");
  Frequencies frequencies(rotary, headWidth);
  double scale = 1;
  switch (rotary.getType()) {
  case RotaryType::Default:
    break;
  case RotaryType::Linear:
    frequencies.stretchLinear();
    break;
  case RotaryType::Llama3:
    frequencies.stretchLlama3();
    break;
  case RotaryType::Yarn:
    frequencies.stretchYarn();
    scale = frequencies.getYarnScale();
    break;
  }
  RotaryFrequencies result;
  for (double value : frequencies.values)
    result.frequencies.push_back(float(value));
  result.scale = float(scale);
  return result;
}

//===----------------------------------------------------------------------===//
// Rotation
//===----------------------------------------------------------------------===//

template <typename OpTy>
static LogicalResult verifyRope(OpTy op, Shaped values) {
  Dims dims(op);
  int64_t heads = op.getHeads(), from = op.getFrom().value_or(0);
  if (failed(dims.match({values})) || failed(dims.bindHeads(heads)) || // C3
      failed(dims.match({{"rotary", op.getRotary(), "TR"}})))          // C2
    return failure();
  if (dims['R'] % 2 != 0) // C4
    return op.emitOpError("needs an even number of columns to turn, but got ")
           << dims['R'];
  if (from < 0 || from + dims['R'] > dims['D']) // C4
    return op.emitOpError("needs to turn columns of a head, ")
           << dims['D'] << " of " << heads << " heads in " << dims['W']
           << " columns, but got " << dims['R'] << " from " << from << " on";
  return success();
}

/// An element that is turned: a product and a multiply-add.
template <typename OpTy>
static int64_t countRopeFlops(OpTy op, Value values) {
  return multiply({countRows(values), int64_t(op.getHeads()),
                   getShape(op.getRotary()).back(), 3});
}

LogicalResult RopeOp::verify() {
  return verifyRope(*this, {"input", getInput(), "BTW"});
}

int64_t RopeOp::getFlops() { return countRopeFlops(*this, getOut()); }

LogicalResult RopeBackwardOp::verify() {
  return verifyRope(*this, {"dout", getDout(), "BTW"});
}

int64_t RopeBackwardOp::getFlops() {
  return countRopeFlops(*this, getDinput());
}
