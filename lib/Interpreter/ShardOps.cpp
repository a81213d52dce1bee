//===- ShardOps.cpp - Parts of values, and what joins them ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Semantics.h"
#include "mlir/IR/TypeUtilities.h"
#include "reprise/Dialect/NN/GroupSums.h"
#include "reprise/Dialect/NN/NNExpertRankOps.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Support/Shares.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace reprise;
using namespace reprise::interpreter;
using namespace reprise::nn;

//===----------------------------------------------------------------------===//
// One rank
//===----------------------------------------------------------------------===//

/// Block `index` of `whole` along `dim`, of the shape of `part`.
static void copyBlock(const Tensor &whole, int64_t dim, int64_t index,
                      Tensor &part) {
  int64_t inner = 1;
  for (int64_t size : ArrayRef(part.shape).drop_front(dim))
    inner *= size;
  int64_t blocks = whole.shape[dim] / part.shape[dim];
  for (int64_t e = 0; e < part.size(); ++e)
    part.values[e] =
        whole.values[(e / inner * blocks + index) * inner + e % inner];
}

/// The column or row of a rank's part that id `index` names, or -1; ids are
/// below the size of the whole.
static FailureOr<int64_t> getOwn(Operation *op, const Frame &frame,
                                 const Tensor &ids, int64_t index, int64_t own,
                                 StringRef what) {
  int64_t id = int64_t(ids.values[index]);
  if (id < 0 || id >= own * frame.ranks)
    return op->emitOpError("needs ")
           << what << "s below " << own * frame.ranks << ", but " << what
           << " #" << index << " is " << id;
  return id / own == frame.rank ? id % own : -1;
}

static LogicalResult embedPart(EmbeddingPartOp op, const Frame &frame) {
  const Tensor &ids = frame.in(0), &table = frame.in(1);
  int64_t width = table.cols();
  for (int64_t row = 0; row < ids.size(); ++row) {
    FailureOr<int64_t> own = getOwn(op, frame, ids, row, table.rows(), "id");
    if (failed(own))
      return failure();
    for (int64_t c = 0; c < width && *own >= 0; ++c)
      frame.out().values[row * width + c] = table.values[*own * width + c];
  }
  return success();
}

static LogicalResult embedPartBackward(EmbeddingPartBackwardOp op,
                                       const Frame &frame) {
  const Tensor &ids = frame.in(0), &dout = frame.in(1);
  int64_t width = dout.cols();
  for (int64_t row = 0; row < ids.size(); ++row) {
    FailureOr<int64_t> own =
        getOwn(op, frame, ids, row, frame.out().rows(), "id");
    if (failed(own))
      return failure();
    for (int64_t c = 0; c < width && *own >= 0; ++c)
      frame.out().values[*own * width + c] += dout.values[row * width + c];
  }
  return success();
}

/// The columns of a rank's part of `width` columns that are classes.
static int64_t countClasses(std::optional<uint64_t> classes, const Frame &frame,
                            int64_t width) {
  return classes ? std::clamp<int64_t>(int64_t(*classes) - frame.rank * width,
                                       0, width)
                 : width;
}

static LogicalResult crossEntropyPart(CrossEntropyPartOp op,
                                      const Frame &frame) {
  const Tensor &logits = frame.in(0), &targets = frame.in(1);
  int64_t width = logits.cols();
  int64_t classes = countClasses(op.getClasses(), frame, width);
  for (int64_t row = 0; row < logits.rows(); ++row) {
    FailureOr<int64_t> own = getOwn(op, frame, targets, row, width, "target");
    if (failed(own))
      return failure();
    const double *x = &logits.values[row * width];
    double max = -INFINITY, sum = 0;
    for (int64_t v = 0; v < classes; ++v)
      max = std::max(max, x[v]);
    for (int64_t v = 0; v < classes; ++v)
      sum += std::exp(x[v] - max);
    frame.out(0).values[row] = classes == 0 ? max : max + std::log(sum);
    frame.out(1).values[row] = *own < 0 ? 0 : x[*own];
  }
  return success();
}

static LogicalResult crossEntropyPartBackward(CrossEntropyPartBackwardOp op,
                                              const Frame &frame) {
  const Tensor &logits = frame.in(0), &lse = frame.in(2), &dlse = frame.in(3),
               &dhit = frame.in(4);
  int64_t width = logits.cols();
  int64_t classes = countClasses(op.getClasses(), frame, width);
  for (int64_t row = 0; row < logits.rows(); ++row) {
    FailureOr<int64_t> own =
        getOwn(op, frame, frame.in(1), row, width, "target");
    if (failed(own))
      return failure();
    for (int64_t v = 0; v < classes; ++v)
      frame.out().values[row * width + v] =
          std::exp(logits.values[row * width + v] - lse.values[row]) *
              dlse.values[row] +
          (v == *own ? dhit.values[row] : 0);
  }
  return success();
}

static void joinLse(const Frame &frame) {
  const Tensor &parts = frame.in(0);
  Tensor &lse = frame.out();
  for (int64_t row = 0; row < lse.size(); ++row) {
    double max = -INFINITY, sum = 0;
    for (int64_t e = row; e < parts.size(); e += lse.size())
      max = std::max(max, parts.values[e]);
    for (int64_t e = row; e < parts.size(); e += lse.size())
      sum += std::exp(parts.values[e] - max);
    lse.values[row] = max + std::log(sum);
  }
}

static void joinLseBackward(const Frame &frame) {
  const Tensor &parts = frame.in(0), &lse = frame.in(1), &dlse = frame.in(2);
  for (int64_t e = 0; e < parts.size(); ++e)
    frame.out().values[e] =
        std::exp(parts.values[e] - lse.values[e % lse.size()]) *
        dlse.values[e % lse.size()];
}

static void takeRound(RoundOffsetsOp op, const Frame &frame) {
  int64_t size = frame.out().size();
  std::copy_n(&frame.in(0).values[op.getRound() * size], size,
              frame.out().values.begin());
}

FailureOr<bool> interpreter::evaluateShardOp(Operation *op,
                                             const Frame &frame) {
  auto done = [](LogicalResult result) -> FailureOr<bool> {
    if (failed(result))
      return failure();
    return true;
  };
  return TypeSwitch<Operation *, FailureOr<bool>>(op)
      .Case([&](EmbeddingPartOp op) { return done(embedPart(op, frame)); })
      .Case([&](EmbeddingPartBackwardOp op) {
        return done(embedPartBackward(op, frame));
      })
      .Case([&](CrossEntropyPartOp op) {
        return done(crossEntropyPart(op, frame));
      })
      .Case([&](CrossEntropyPartBackwardOp op) {
        return done(crossEntropyPartBackward(op, frame));
      })
      .Case([&](JoinLseOp) { return joinLse(frame), true; })
      .Case([&](JoinLseBackwardOp) { return joinLseBackward(frame), true; })
      .Case([&](SliceOp op) {
        copyBlock(frame.in(0), op.getDim(), frame.rank, frame.out());
        return true;
      })
      .Case([&](TakeShareOp) {
        const Tensor &whole = frame.in(0);
        Tensor &own = frame.out();
        for (int64_t e = 0; e < own.size(); ++e) {
          int64_t from = frame.rank * own.size() + e;
          own.values[e] = from < whole.size() ? whole.values[from] : 0;
        }
        return true;
      })
      .Case([&](ReplicateOp) {
        frame.out().values = frame.in(0).values;
        return true;
      })
      .Case([&](RoundOffsetsOp op) { return takeRound(op, frame), true; })
      .Case([&](AddBiasOp) {
        int64_t width = frame.in(1).size();
        for (int64_t e = 0; e < frame.out().size(); ++e)
          frame.out().values[e] =
              frame.in(0).values[e] + frame.in(1).values[e % width];
        return true;
      })
      .Default([](Operation *) { return false; });
}

//===----------------------------------------------------------------------===//
// All ranks
//===----------------------------------------------------------------------===//

namespace {
/// What a rank has of so many groups of micro-batches.
struct Term {
  const Tensor *value;
  int64_t groups;
};
} // namespace

/// The sum of `terms` by the tree over their groups.
static Tensor sumTree(ArrayRef<Term> terms) {
  if (terms.size() == 1)
    return *terms.front().value;
  uint64_t groups = 0, before = 0;
  for (Term term : terms)
    groups += term.groups;
  size_t split = 0;
  while (before < llvm::bit_floor(groups - 1))
    before += terms[split++].groups;
  Tensor sum = sumTree(terms.take_front(split));
  Tensor other = sumTree(terms.drop_front(split));
  for (auto [a, b] : llvm::zip_equal(sum.values, other.values))
    a += b;
  return sum;
}

/// Result `number` of a sum over ranks, each of which has the terms `number`,
/// `results + number` and so on, one for each run of its groups.
static Tensor sumTree(Operation *op, ArrayRef<Frame> frames, unsigned number) {
  SmallVector<Term> terms;
  int64_t left = getGroupsOfRank(op);
  for (; number < op->getNumOperands(); number += op->getNumResults()) {
    int64_t run = llvm::bit_floor(uint64_t(left));
    for (const Frame &frame : frames)
      terms.push_back({&frame.in(number), run});
    left -= run;
  }
  return sumTree(terms);
}

/// `part` as block `index` of `whole` along `dim`.
static void pasteBlock(const Tensor &part, int64_t dim, int64_t index,
                       Tensor &whole) {
  int64_t inner = 1;
  for (int64_t size : ArrayRef(part.shape).drop_front(dim))
    inner *= size;
  int64_t blocks = whole.shape[dim] / part.shape[dim];
  for (int64_t e = 0; e < part.size(); ++e)
    whole.values[(e / inner * blocks + index) * inner + e % inner] =
        part.values[e];
}

/// The elements of the share of rank `index` of `ranks`, of so many.
static std::pair<int64_t, int64_t> getShare(int64_t elements, int64_t index,
                                            int64_t ranks) {
  int64_t size = getShareSize(elements, ranks);
  return {std::min(elements, index * size),
          std::min(elements, (index + 1) * size)};
}

/// Result `number`, but for the share of rank `index` zeros.
static Tensor reduceShare(Operation *op, ArrayRef<Frame> frames,
                          unsigned number, int64_t index) {
  Tensor sum = sumTree(op, frames, number);
  auto [begin, end] = getShare(sum.size(), index, frames.size());
  for (int64_t e = 0; e < sum.size(); ++e)
    if (e < begin || e >= end)
      sum.values[e] = 0;
  return sum;
}

static void gatherShares(ArrayRef<Frame> frames, Tensor &whole) {
  for (auto [index, frame] : llvm::enumerate(frames)) {
    auto [begin, end] = getShare(whole.size(), index, frames.size());
    for (int64_t e = begin; e < end; ++e)
      whole.values[e] = frame.in(0).values[e - begin];
  }
}

/// Each rank has zeros where others have their shares.
static double normOfShares(ArrayRef<Frame> frames, unsigned gradients) {
  double squares = 0;
  for (const Frame &frame : frames)
    for (unsigned operand = 0; operand < gradients; ++operand)
      for (double value : frame.in(operand).values)
        squares += value * value;
  return std::sqrt(squares);
}

/// Of each rank's offsets, in their order, those of its experts: of all their
/// rows, or of those of each round.
static void gatherOffsets(GatherOffsetsOp op, ArrayRef<Frame> frames) {
  int64_t ranks = frames.size(), size = frames.front().in(0).size();
  int64_t some = (size - 1) / ranks;
  for (auto [self, frame] : llvm::enumerate(frames)) {
    std::vector<double> counts(some);
    for (auto [other, from] : llvm::enumerate(frames)) {
      const double *offsets = &from.in(0).values[self * some];
      std::copy_n(from.in(0).values.begin(), size,
                  &frame.out(0).values[other * size]);
      for (int64_t e = 0; e < some; ++e)
        counts[e] += offsets[e + 1] - offsets[e];
    }
    std::vector<double> &own = frame.out(1).values;
    for (size_t round = 0; round * (some + 1) < own.size(); ++round)
      for (int64_t e = 0; e < some; ++e) {
        double rows = counts[e];
        if (op.getRows())
          rows = std::clamp(rows - double(round * *op.getRows()), 0.0,
                            double(*op.getRows()));
        own[round * (some + 1) + e + 1] = own[round * (some + 1) + e] + rows;
      }
  }
}

/// Calls `visit(rank, row, other, place)` for each row of a rank's tokens that
/// is of the op's round and its place with its expert, on rank `other`.
template <typename OpTy>
static void
visitRows(OpTy op, ArrayRef<Frame> frames,
          function_ref<void(int64_t, int64_t, int64_t, int64_t)> visit) {
  const Tensor &all = frames.front().in(1);
  int64_t ranks = frames.size(), experts = all.shape.back() - 1;
  std::vector<int64_t> filled(ranks, 0);
  for (int64_t e = 0; e < experts; ++e) {
    int64_t other = e / (experts / ranks), number = 0;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const double *offsets = &all.values[rank * (experts + 1) + e];
      for (int64_t row = offsets[0]; row < offsets[1]; ++row, ++number)
        if (!op.getRows() ||
            number / int64_t(*op.getRows()) == int64_t(*op.getRound()))
          visit(rank, row, other, filled[other]++);
    }
  }
}

template <typename OpTy>
static void moveRows(OpTy op, ArrayRef<Frame> frames) {
  constexpr bool areSent = std::is_same_v<OpTy, SendRowsOp>;
  if constexpr (!areSent)
    for (const Frame &frame : frames)
      if (op.getKept())
        frame.out().values = frame.in(2).values;
  visitRows(
      op, frames, [&](int64_t rank, int64_t row, int64_t other, int64_t place) {
        const Frame &from = frames[areSent ? rank : other];
        const Frame &to = frames[areSent ? other : rank];
        int64_t width = from.in(0).size() / from.in(0).shape[0];
        std::copy_n(&from.in(0).values[(areSent ? row : place) * width], width,
                    &to.out().values[(areSent ? place : row) * width]);
      });
}

void interpreter::evaluateCollective(Operation *op, ArrayRef<Frame> frames) {
  if (auto gather = dyn_cast<GatherOffsetsOp>(op))
    return gatherOffsets(gather, frames);
  if (auto send = dyn_cast<SendRowsOp>(op))
    return moveRows(send, frames);
  if (auto back = dyn_cast<ReturnRowsOp>(op))
    return moveRows(back, frames);
  if (auto head = dyn_cast<LinearCrossEntropyOp>(op))
    return evaluateHead(head, frames);
  for (auto [index, frame] : llvm::enumerate(frames)) {
    if (isa<AllReduceOp>(op))
      for (unsigned number = 0; number < op->getNumResults(); ++number)
        frame.out(number) = sumTree(op, frames, number);
    else if (isa<ReduceSharesOp>(op))
      for (unsigned number = 0; number < op->getNumResults(); ++number)
        frame.out(number) = reduceShare(op, frames, number, index);
    else if (isa<GatherSharesOp>(op))
      gatherShares(frames, frame.out());
    else if (isa<SharesNormOp>(op))
      frame.out().values[0] = normOfShares(frames, op->getNumOperands());
    else if (auto scatter = dyn_cast<ReduceScatterOp>(op))
      copyBlock(sumTree(op, frames, 0), scatter.getDim(), index, frame.out());
    else
      for (auto [other, part] : llvm::enumerate(frames))
        pasteBlock(part.in(0), cast<AllGatherOp>(op).getDim(), other,
                   frame.out());
  }
}
