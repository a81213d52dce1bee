//===- LatentOps.cpp - Multi-head latent attention --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Semantics.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::interpreter;
using namespace reprise::nn;

/// to[row, toCol..] = from[row, fromCol..], of `count` columns of rows that are
/// seen as `rows` long ones.
static void copyColumns(Tensor &to, int64_t toCol, const Tensor &from,
                        int64_t fromCol, int64_t count, int64_t rows) {
  int64_t toWidth = to.size() / rows, fromWidth = from.size() / rows;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < count; ++c)
      to.values[row * toWidth + toCol + c] =
          from.values[row * fromWidth + fromCol + c];
}

static void splitColumns(const Frame &frame) {
  int64_t left = frame.out(0).cols(), right = frame.out(1).cols();
  copyColumns(frame.out(0), 0, frame.in(0), 0, left, frame.in(0).rows());
  copyColumns(frame.out(1), 0, frame.in(0), left, right, frame.in(0).rows());
}

static void joinColumns(const Frame &frame) {
  int64_t left = frame.in(0).cols(), right = frame.in(1).cols();
  copyColumns(frame.out(), 0, frame.in(0), 0, left, frame.out().rows());
  copyColumns(frame.out(), left, frame.in(1), 0, right, frame.out().rows());
}

static void latentHeads(LatentHeadsOp op, const Frame &frame) {
  int64_t heads = op.getHeads(), rows = frame.in(0).rows() * heads;
  int64_t shared = frame.in(1).cols(), value = frame.out(1).cols() / heads;
  int64_t key = frame.out(0).cols() / heads, own = key - shared;
  copyColumns(frame.out(0), 0, frame.in(0), 0, own, rows);
  copyColumns(frame.out(1), 0, frame.in(0), own, value, rows);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < shared; ++c)
      frame.out(0).values[row * key + own + c] =
          frame.in(1).values[row / heads * shared + c];
}

static void latentHeadsBackward(LatentHeadsBackwardOp op, const Frame &frame) {
  int64_t heads = op.getHeads(), rows = frame.in(0).rows() * heads;
  int64_t shared = frame.out(1).cols(), value = frame.in(1).cols() / heads;
  int64_t key = frame.in(0).cols() / heads, own = key - shared;
  copyColumns(frame.out(0), 0, frame.in(0), 0, own, rows);
  copyColumns(frame.out(0), own, frame.in(1), 0, value, rows);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < shared; ++c)
      frame.out(1).values[row / heads * shared + c] +=
          frame.in(0).values[row * key + own + c];
}

FailureOr<bool> interpreter::evaluateLatentOp(Operation *op,
                                              const Frame &frame) {
  return TypeSwitch<Operation *, FailureOr<bool>>(op)
      .Case([&](SplitColumnsOp) { return splitColumns(frame), true; })
      .Case([&](JoinColumnsOp) { return joinColumns(frame), true; })
      .Case([&](LatentHeadsOp op) { return latentHeads(op, frame), true; })
      .Case([&](LatentHeadsBackwardOp op) {
        return latentHeadsBackward(op, frame), true;
      })
      .Default([](Operation *) { return false; });
}
