//===- RotaryOps.cpp - Rotary positions -------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Semantics.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace reprise;
using namespace reprise::interpreter;
using namespace reprise::nn;

Tensor interpreter::makeRotaryTable(RotaryAttr rotary, int64_t length,
                                    int64_t width) {
  RotaryFrequencies given = getRotaryFrequencies(rotary, width);
  Tensor table(ArrayRef<int64_t>{length, width});
  for (int64_t t = 0; t < length; ++t)
    for (int64_t j = 0; j < width / 2; ++j) {
      double angle = float(t) * given.frequencies[j];
      double *row = &table.values[t * width];
      row[j] = float(std::cos(angle) * given.scale);
      row[width / 2 + j] = float(std::sin(angle) * given.scale);
    }
  return table;
}

/// Turns by the angles of the table times `direction`, 1 or -1.
template <typename OpTy>
static void rotate(OpTy op, double direction, const Frame &frame) {
  const Tensor &input = frame.in(0), &rotary = frame.in(1);
  int64_t heads = op.getHeads(), width = input.cols() / heads;
  int64_t turned = rotary.cols(), half = turned / 2, length = rotary.rows();
  bool split = op.getStyle() == RopeStyle::HalfSplit;
  frame.out().values = input.values;
  for (int64_t head = 0; head < input.rows() * heads; ++head) {
    int64_t t = head / heads % length;
    int64_t first = head * width + op.getFrom().value_or(0);
    const double *x = &input.values[first];
    double *out = &frame.out().values[first];
    for (int64_t j = 0; j < half; ++j) {
      int64_t l = split ? j : 2 * j, r = split ? j + half : 2 * j + 1;
      double c = rotary.values[t * turned + j];
      double s = rotary.values[t * turned + half + j] * direction;
      out[l] = x[l] * c - x[r] * s;
      out[r] = x[r] * c + x[l] * s;
    }
  }
}

FailureOr<bool> interpreter::evaluateRotaryOp(Operation *op,
                                              const Frame &frame) {
  return TypeSwitch<Operation *, FailureOr<bool>>(op)
      .Case([&](RopeOp op) { return rotate(op, 1, frame), true; })
      .Case([&](RopeBackwardOp op) { return rotate(op, -1, frame), true; })
      .Default([](Operation *) { return false; });
}
