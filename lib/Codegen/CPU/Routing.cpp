//===- Routing.cpp - Which expert has which token ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rows of logits are short and few beside what the experts compute, so all goes
// number by number. A task is 64 tokens, each of which is on its own; only the
// sort goes over all of them, as one task: it reads each id twice.
//
//===----------------------------------------------------------------------===//

#include "RTKernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "reprise/Codegen/Common/Probabilities.h"
#include <limits>

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

static constexpr int64_t kTokensOfTask = 64;

/// What a task may have on the stack, of the 8 MiB that a thread usually has.
static constexpr int64_t kStackBytes = 1 << 20;

static int64_t getLast(Value value) {
  return cast<ShapedType>(value.getType()).getShape().back();
}

/// Calls `body` with each token of the tasks.
static void forEachToken(Code &code, Kernel &kernel, Value logits,
                         function_ref<void(Value)> body) {
  int64_t tokens =
      cast<ShapedType>(logits.getType()).getNumElements() / getLast(logits);
  kernel.function->setAttr(
      rt::kTasksAttr,
      code.getI64IntegerAttr(llvm::divideCeil(tokens, kTokensOfTask)));
  kernel.tasks(code, [&](Value task) {
    Value first = code.mul(task, kTokensOfTask);
    Value end = code.min(code.add(first, kTokensOfTask), code.i64(tokens));
    code.loop(first, end, 1, body);
  });
}

static Value compare(Code &code, arith::CmpFPredicate predicate, Value a,
                     Value b) {
  return arith::CmpFOp::create(code, predicate, a, b);
}

static Value compare(Code &code, arith::CmpIPredicate predicate, Value a,
                     Value b) {
  return arith::CmpIOp::create(code, predicate, a, b);
}

namespace {
/// An expert of a token, by its order among them: larger logits come first, and
/// of equal ones that with the lower index.
struct Place {
  Value logit, index;
};
} // namespace

/// Whether expert `one` comes behind `other`, or is it if `orIs`.
static Value comesBehind(Code &code, Place one, Place other, bool orIs) {
  Value isSmaller =
      compare(code, arith::CmpFPredicate::OLT, one.logit, other.logit);
  Value isEqual =
      compare(code, arith::CmpFPredicate::OEQ, one.logit, other.logit);
  Value isLater = compare(
      code, orIs ? arith::CmpIPredicate::sge : arith::CmpIPredicate::sgt,
      one.index, other.index);
  return arith::OrIOp::create(code, isSmaller,
                              arith::AndIOp::create(code, isEqual, isLater));
}

/// Of the experts behind `last`, of whom there is one at least, the first.
static Place findNext(Code &code, Place last, Value experts,
                      function_ref<Value(Value)> getLogit) {
  double least = -std::numeric_limits<double>::infinity();
  SmallVector<Value> found =
      code.loop(code.i64(0), experts, 1, ValueRange{code.f32(least), experts},
                [&](Value e, ValueRange best) -> SmallVector<Value> {
                  Place here = {getLogit(e), e};
                  Value isFirst =
                      compare(code, arith::CmpIPredicate::eq, best[1], experts);
                  Value isGreater = compare(code, arith::CmpFPredicate::OGT,
                                            here.logit, best[0]);
                  Value isNext = arith::AndIOp::create(
                      code, comesBehind(code, here, last, /*orIs=*/false),
                      arith::OrIOp::create(code, isFirst, isGreater));
                  return {code.select(isNext, here.logit, best[0]),
                          code.select(isNext, e, best[1])};
                });
  return {found[0], found[1]};
}

/// Of `total`, that which has `count` - 1 before it.
static Place findLast(Code &code, int64_t count, Value total,
                      function_ref<Value(Value)> getScore) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  SmallVector<Value> last =
      code.loop(code.i64(0), code.i64(count), 1,
                ValueRange{code.f32(kInfinity), code.i64(-1)},
                [&](Value, ValueRange before) -> SmallVector<Value> {
                  Place next =
                      findNext(code, {before[0], before[1]}, total, getScore);
                  return {next.logit, next.index};
                });
  return {last[0], last[1]};
}

namespace {
/// Finds the S-th expert of a token, in S passes over its scores, and then
/// writes down those that do not come behind it. Scores that are more than
/// logits are made once, on the stack; those of groups that are not kept are
/// below all others there.
class ChoiceEmitter {
public:
  ChoiceEmitter(Code &code, rt::ChooseExpertsOp op, Kernel &kernel)
      : code(code), op(op), kernel(kernel), experts(getLast(op.getLogits())),
        slots(getLast(op.getIds())), logits(addressOf(kernel, op, 0)) {
    if (hasScores())
      scores = code.scratch(experts);
    if (op.getGroups())
      groupScores = code.scratch(*op.getGroups());
  }

  void emit(Value token) {
    Value row = code.mul(token, experts);
    if (hasScores())
      makeScores(row);
    if (op.getGroups())
      leaveGroupsOut();
    auto get = [&](Value e) {
      return hasScores() ? load(scores, e) : getLogit(row, e);
    };
    Place last = findLast(code, slots, code.i64(experts), get);
    Value one = code.i64(1), zero = code.i64(0);
    code.loop(zero, code.i64(experts), 1, ValueRange(code.mul(token, slots)),
              [&](Value e, ValueRange at) {
                Value isChosen =
                    comesBehind(code, last, {get(e), e}, /*orIs=*/true);
                code.when(isChosen, [&] {
                  code.store(code.cast(e, code.getI32Type()), kernel.outputs[0],
                             at[0]);
                });
                return SmallVector<Value>{
                    code.add(at[0], code.select(isChosen, one, zero))};
              });
  }

private:
  bool hasScores() { return op.getSigmoid() || op.getBias() || op.getGroups(); }
  Value load(Value base, Value index) {
    return code.load(code.getF32Type(), base, index);
  }
  /// At least the lowest number, which also stands for what is none.
  Value atLeastLowest(Value x) {
    double lowest = std::numeric_limits<float>::lowest();
    return arith::MaxNumFOp::create(code, x, code.f32(lowest));
  }
  Value getLogit(Value row, Value e) {
    return atLeastLowest(load(logits, code.add(row, e)));
  }

  void makeScores(Value row) {
    code.loop(code.i64(0), code.i64(experts), 1, [&](Value e) {
      Value score = load(logits, code.add(row, e));
      if (op.getSigmoid())
        score = sigmoid(code, score);
      if (op.getBias())
        score = code.add(score, load(addressOf(kernel, op, 1), e));
      code.store(atLeastLowest(score), scores, e);
    });
  }

  /// The largest score of the group whose first expert is `first`, or the sum
  /// of the two largest.
  Value getGroupScore(Value first, int64_t size) {
    Value lowest = code.f32(-std::numeric_limits<double>::infinity());
    SmallVector<Value> best =
        code.loop(first, code.add(first, size), 1, ValueRange{lowest, lowest},
                  [&](Value e, ValueRange old) -> SmallVector<Value> {
                    Value score = load(scores, e);
                    Value smaller =
                        arith::MinNumFOp::create(code, old[0], score);
                    return {arith::MaxNumFOp::create(code, old[0], score),
                            arith::MaxNumFOp::create(code, old[1], smaller)};
                  });
    return op.getByTwo() ? code.add(best[0], best[1]) : best[0];
  }

  void leaveGroupsOut() {
    int64_t groups = *op.getGroups(), size = experts / groups;
    Value zero = code.i64(0), all = code.i64(groups);
    code.loop(zero, all, 1, [&](Value group) {
      code.store(getGroupScore(code.mul(group, size), size), groupScores,
                 group);
    });
    Place last = findLast(code, *op.getKeep(), all, [&](Value group) {
      return load(groupScores, group);
    });
    Value none = code.f32(-std::numeric_limits<double>::infinity());
    code.loop(zero, all, 1, [&](Value group) {
      Value isKept = comesBehind(code, last, {load(groupScores, group), group},
                                 /*orIs=*/true);
      Value first = code.mul(group, size);
      code.when(
          isKept, [] {},
          [&] {
            code.loop(first, code.add(first, size), 1,
                      [&](Value e) { code.store(none, scores, e); });
          });
    });
  }

  Code &code;
  rt::ChooseExpertsOp op;
  Kernel &kernel;
  const int64_t experts, slots;
  Value logits, scores, groupScores;
};
} // namespace

LogicalResult codegen::emitRouting(Code &code, rt::ChooseExpertsOp op,
                                   Kernel &kernel) {
  // Scores of experts and of groups.
  constexpr int64_t kMostExperts = kStackBytes / 8;
  int64_t experts = getLast(op.getLogits());
  if (experts > kMostExperts)
    return op.emitOpError("needs at most ")
           << kMostExperts << " experts, for a task to do with " << kStackBytes
           << " bytes of stack, but got " << experts;
  ChoiceEmitter choice(code, op, kernel);
  forEachToken(code, kernel, op.getLogits(),
               [&](Value token) { choice.emit(token); });
  return success();
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// The greatest logit and the sum, in ascending order, of terms.
template <typename OpTy>
static Probabilities getProbabilities(Code &code, OpTy op, Kernel &kernel,
                                      Value token) {
  Probabilities p = Probabilities::of(code, op, addressOf(kernel, op, 0),
                                      addressOf(kernel, op, 1), token);
  if (!p.hasSum())
    return p;
  Value count = code.i64(p.countTerms());
  Value lowest = code.f32(-std::numeric_limits<double>::infinity());
  if (!p.isSigmoid)
    p.greatest =
        code.loop(code.i64(0), count, 1, ValueRange(lowest),
                  [&](Value i, ValueRange carried) -> SmallVector<Value> {
                    return {arith::MaxNumFOp::create(
                        code, carried[0], p.getLogit(p.getExpert(i)))};
                  })[0];
  p.sum = code.loop(code.i64(0), count, 1, ValueRange(code.f32(0)),
                    [&](Value i, ValueRange carried) -> SmallVector<Value> {
                      return {code.add(carried[0], p.getTerm(p.getExpert(i)))};
                    })[0];
  if (p.isSigmoid)
    p.sum = code.add(p.sum, code.f32(Probabilities::kLeastOfSum));
  return p;
}

LogicalResult codegen::emitRouting(Code &code, rt::ExpertWeightsOp op,
                                   Kernel &kernel) {
  forEachToken(code, kernel, op.getLogits(), [&](Value token) {
    Probabilities p = getProbabilities(code, op, kernel, token);
    code.loop(code.i64(0), code.i64(p.slots), 1, [&](Value slot) {
      code.store(scaled(code, op, p.get(p.getChosen(slot))), kernel.outputs[0],
                 code.add(p.place, slot));
    });
  });
  return success();
}

LogicalResult codegen::emitRouting(Code &code, rt::ExpertWeightsBackwardOp op,
                                   Kernel &kernel) {
  Value dweights = addressOf(kernel, op, 2), dlogits = kernel.outputs[0];
  Type f32 = code.getF32Type();
  Value zero = code.i64(0);
  forEachToken(code, kernel, op.getLogits(), [&](Value token) {
    Probabilities p = getProbabilities(code, op, kernel, token);
    Value slots = code.i64(p.slots), dot;
    auto getGradient = [&](Value slot) {
      return scaled(code, op,
                    code.load(f32, dweights, code.add(p.place, slot)));
    };
    if (p.hasSum())
      dot = code.loop(zero, slots, 1, ValueRange(code.f32(0)),
                      [&](Value slot, ValueRange old) -> SmallVector<Value> {
                        Value term = code.mul(getGradient(slot),
                                              p.get(p.getChosen(slot)));
                        return {code.add(old[0], term)};
                      })[0];
    // As if no expert had been chosen; then those that were.
    code.loop(zero, code.i64(p.experts), 1, [&](Value e) {
      Value other = code.f32(0);
      if (!p.isSigmoid && !p.isNormalized)
        other = code.mul(p.get(e), code.sub(other, dot));
      code.store(other, dlogits, code.add(p.row, e));
    });
    code.loop(zero, slots, 1, [&](Value slot) {
      Value e = p.getChosen(slot);
      code.store(p.getLogitGradient(e, getGradient(slot), dot), dlogits,
                 code.add(p.row, e));
    });
  });
  return success();
}

//===----------------------------------------------------------------------===//
// Sort
//===----------------------------------------------------------------------===//

namespace {
/// Counts ids, adds the counts up, and deals rows out in the order of ids,
/// which makes of each expert's first row, in `offsets`, its last one; so they
/// stand one place further up until then.
///
/// Where experts have a capacity, places are dealt rows whose weight is above
/// the last that is taken of their expert, and as many of that weight as are
/// left, in their order. Without weights all are as good as the last.
class SortEmitter {
public:
  SortEmitter(Code &code, rt::SortRowsOp op, Kernel &kernel)
      : code(code), op(op), i32(code.getI32Type()),
        experts(getLast(op.getOffsets()) - 1),
        count(cast<ShapedType>(op.getIds().getType()).getNumElements()),
        ids(addressOf(kernel, op, 0)), order(kernel.outputs[0]),
        inverse(kernel.outputs[1]), offsets(kernel.outputs[2]) {
    if (op.getWeights())
      weights = addressOf(kernel, op, 1);
  }

  void emit() {
    fill(offsets, experts + 1, 0);
    forEachPlace([&](Value, Value e) { increment(offsets, code.add(e, 1)); });
    if (op.getCapacity())
      makeRoom();
    addUp();
    forEachPlace([&](Value place, Value e) {
      if (op.getCapacity())
        return dealOrDrop(place, e);
      deal(place, e);
    });
  }

private:
  Value number(int64_t value) { return code.scalar(i32, value); }
  Value loadI32(Value base, Value index) { return code.load(i32, base, index); }
  void increment(Value base, Value index) {
    code.store(code.add(loadI32(base, index), number(1)), base, index);
  }
  void fill(Value base, int64_t size, int64_t value) {
    Value filled = number(value);
    code.loop(code.i64(0), code.i64(size), 1,
              [&](Value at) { code.store(filled, base, at); });
  }
  /// Calls `body` with each place of `ids` and its expert.
  void forEachPlace(function_ref<void(Value, Value)> body) {
    code.loop(code.i64(0), code.i64(count), 1, [&](Value place) {
      body(place, code.cast(loadI32(ids, place), code.getI64Type()));
    });
  }
  /// The bits of a weight without its sign, which have the order of numbers.
  Value getBits(Value place) {
    return arith::AndIOp::create(code, loadI32(weights, place),
                                 number(std::numeric_limits<int32_t>::max()));
  }

  void makeRoom() {
    int64_t rows = cast<ShapedType>(op.getOrder().getType()).getNumElements();
    fill(order, rows, 0);
    left = code.scratch(experts);
    if (weights)
      findLastWeights();
    fill(left, experts, *op.getCapacity());
    if (weights)
      forEachPlace([&](Value place, Value e) {
        code.when(compare(code, arith::CmpIPredicate::sgt, getBits(place),
                          loadI32(last, e)),
                  [&] {
                    code.store(code.sub(loadI32(left, e), number(1)), left, e);
                  });
      });
  }

  /// Of each expert with more places than it may have, the bits of the least
  /// weight that is taken, from the highest on: a bit is set if as many weights
  /// are at least what it makes. Zero of others.
  void findLastWeights() {
    last = code.scratch(experts);
    fill(last, experts, 0);
    for (int bit = 30; bit >= 0; --bit) {
      auto getTried = [&](Value e) {
        return arith::OrIOp::create(code, loadI32(last, e),
                                    number(int64_t(1) << bit));
      };
      fill(left, experts, 0);
      forEachPlace([&](Value place, Value e) {
        code.when(compare(code, arith::CmpIPredicate::sge, getBits(place),
                          getTried(e)),
                  [&] { increment(left, e); });
      });
      code.loop(code.i64(0), code.i64(experts), 1, [&](Value e) {
        code.when(compare(code, arith::CmpIPredicate::sge, loadI32(left, e),
                          number(*op.getCapacity())),
                  [&] { code.store(getTried(e), last, e); });
      });
    }
  }

  /// offsets[e + 1], where the places of `e` were counted: rows of those before
  /// `e`, its first row.
  void addUp() {
    code.loop(code.i64(0), code.i64(experts), 1, ValueRange(number(0)),
              [&](Value e, ValueRange below) -> SmallVector<Value> {
                Value at = code.add(e, 1), size = loadI32(offsets, at);
                if (op.getCapacity())
                  size = code.min(size, number(*op.getCapacity()));
                code.store(below[0], offsets, at);
                return {code.add(below[0], size)};
              });
  }

  void deal(Value place, Value e) {
    Value at = code.add(e, 1), row = loadI32(offsets, at);
    code.store(code.cast(place, i32), order, code.cast(row, code.getI64Type()));
    code.store(row, inverse, place);
    increment(offsets, at);
  }

  void dealOrDrop(Value place, Value e) {
    int64_t rows = cast<ShapedType>(op.getOrder().getType()).getNumElements();
    code.store(number(rows - 1), inverse, place);
    auto dealOneOfLeft = [&] {
      Value rest = loadI32(left, e);
      code.when(compare(code, arith::CmpIPredicate::sgt, rest, number(0)), [&] {
        code.store(code.sub(rest, number(1)), left, e);
        deal(place, e);
      });
    };
    if (!weights)
      return dealOneOfLeft();
    Value bits = getBits(place), least = loadI32(last, e);
    code.when(
        compare(code, arith::CmpIPredicate::sgt, bits, least),
        [&] { deal(place, e); },
        [&] {
          code.when(compare(code, arith::CmpIPredicate::eq, bits, least),
                    dealOneOfLeft);
        });
  }

  Code &code;
  rt::SortRowsOp op;
  Type i32;
  const int64_t experts, count;
  Value ids, order, inverse, offsets, weights;
  Value left, last; ///< of each expert
};
} // namespace

LogicalResult codegen::emitRouting(Code &code, rt::SortRowsOp op,
                                   Kernel &kernel) {
  constexpr int64_t kMostExperts = kStackBytes / 8;
  int64_t experts = getLast(op.getOffsets()) - 1;
  if (op.getCapacity() && experts > kMostExperts)
    return op.emitOpError("needs at most ")
           << kMostExperts << " experts with a capacity, for a task to do with "
           << kStackBytes << " bytes of stack, but got " << experts;
  kernel.function->setAttr(rt::kTasksAttr, code.getI64IntegerAttr(1));
  kernel.tasks(code, [&](Value) { SortEmitter(code, op, kernel).emit(); });
  return success();
}

/// Whole numbers, which f32 has exactly up to 2^24.
LogicalResult codegen::emitRouting(Code &code, rt::CountChoicesOp op,
                                   Kernel &kernel) {
  int64_t experts = getLast(op.getRows());
  int64_t counts =
      cast<ShapedType>(op.getRows().getType()).getNumElements() / experts;
  int64_t ids =
      cast<ShapedType>(op.getIds().getType()).getNumElements() / counts;
  Type f32 = code.getF32Type();
  Value rows = kernel.outputs[0], address = addressOf(kernel, op, 0);
  kernel.function->setAttr(rt::kTasksAttr, code.getI64IntegerAttr(counts));
  kernel.tasks(code, [&](Value task) {
    Value first = code.mul(task, experts), begin = code.mul(task, ids);
    Value zero = code.f32(0), one = code.f32(1);
    code.loop(code.i64(0), code.i64(experts), 1,
              [&](Value e) { code.store(zero, rows, code.add(first, e)); });
    code.loop(code.i64(0), code.i64(ids), 1, [&](Value place) {
      Value id = code.load(code.getI32Type(), address, code.add(begin, place));
      Value at = code.add(first, code.cast(id, code.getI64Type()));
      code.store(code.add(code.load(f32, rows, at), one), rows, at);
    });
  });
  return success();
}

/// Whole numbers are added up, and the sum is exact.
LogicalResult codegen::emitRouting(Code &code, rt::CountRowsOp op,
                                   Kernel &kernel) {
  int64_t experts = getLast(op.getRows());
  Type i32 = code.getI32Type();
  kernel.function->setAttr(rt::kTasksAttr, code.getI64IntegerAttr(1));
  kernel.tasks(code, [&](Value) {
    code.loop(code.i64(0), code.i64(experts), 1, [&](Value e) {
      Value rows = code.scalar(i32, 0), next = code.add(e, 1);
      for (unsigned i = 0, end = op.getOffsets().size(); i < end; ++i) {
        Value offsets = addressOf(kernel, op, i);
        rows = code.add(rows, code.load(i32, offsets, next));
        rows = code.sub(rows, code.load(i32, offsets, e));
      }
      code.store(arith::SIToFPOp::create(code, code.getF32Type(), rows),
                 kernel.outputs[0], e);
    });
  });
  return success();
}
