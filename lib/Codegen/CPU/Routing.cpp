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
#include <limits>

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

static constexpr int64_t kTokensOfTask = 64;

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

/// Finds the S-th expert of a token, in S passes over its logits, and then
/// writes down those that do not come behind it.
LogicalResult codegen::emitRouting(Code &code, rt::ChooseExpertsOp op,
                                   Kernel &kernel) {
  int64_t experts = getLast(op.getLogits()), slots = getLast(op.getIds());
  Value logits = addressOf(kernel, op, 0), ids = kernel.outputs[0];
  Type f32 = code.getF32Type();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Value zero = code.i64(0), one = code.i64(1), all = code.i64(experts);
  forEachToken(code, kernel, op.getLogits(), [&](Value token) {
    Value row = code.mul(token, experts), place = code.mul(token, slots);
    // What is not a number is as the lowest.
    auto get = [&](Value e) {
      Value x = code.load(f32, logits, code.add(row, e));
      Value isNumber = compare(code, arith::CmpFPredicate::ORD, x, x);
      return code.select(isNumber, x, code.f32(-kInfinity));
    };
    SmallVector<Value> last = code.loop(
        zero, code.i64(slots), 1, ValueRange{code.f32(kInfinity), code.i64(-1)},
        [&](Value, ValueRange before) -> SmallVector<Value> {
          Place next = findNext(code, {before[0], before[1]}, all, get);
          return {next.logit, next.index};
        });
    code.loop(zero, all, 1, ValueRange(place), [&](Value e, ValueRange at) {
      Value isChosen = comesBehind(code, {last[0], last[1]}, {get(e), e},
                                   /*orIs=*/true);
      code.when(isChosen, [&] {
        code.store(code.cast(e, code.getI32Type()), ids, at[0]);
      });
      return SmallVector<Value>{
          code.add(at[0], code.select(isChosen, one, zero))};
    });
  });
  return success();
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

namespace {
/// The softmax of the logits of one token, or of those that were chosen.
struct Probabilities {
  Code &code;
  Value logits, ids, row, place;
  int64_t experts, slots;
  Value greatest, sum;

  Value getChosen(Value slot) const {
    Value id = code.load(code.getI32Type(), ids, code.add(place, slot));
    return code.cast(id, code.getI64Type());
  }
  Value getLogit(Value expert) const {
    return code.load(code.getF32Type(), logits, code.add(row, expert));
  }
  Value getExponential(Value expert) const {
    return code.exp(code.sub(getLogit(expert), greatest));
  }
  Value get(Value expert) const {
    return arith::DivFOp::create(code, getExponential(expert), sum);
  }
};
} // namespace

/// The greatest logit and the sum, in ascending order, of exponentials.
static Probabilities getProbabilities(Code &code, Value logits, Value ids,
                                      Value token, int64_t experts,
                                      int64_t slots, bool isNormalized) {
  Probabilities p = {code,
                     logits,
                     ids,
                     code.mul(token, experts),
                     code.mul(token, slots),
                     experts,
                     slots,
                     {},
                     {}};
  Value count = code.i64(isNormalized ? slots : experts);
  auto getExpert = [&](Value i) { return isNormalized ? p.getChosen(i) : i; };
  Value lowest = code.f32(-std::numeric_limits<double>::infinity());
  p.greatest =
      code.loop(code.i64(0), count, 1, ValueRange(lowest),
                [&](Value i, ValueRange carried) -> SmallVector<Value> {
                  return {arith::MaxNumFOp::create(code, carried[0],
                                                   p.getLogit(getExpert(i)))};
                })[0];
  p.sum =
      code.loop(code.i64(0), count, 1, ValueRange(code.f32(0)),
                [&](Value i, ValueRange carried) -> SmallVector<Value> {
                  return {code.add(carried[0], p.getExponential(getExpert(i)))};
                })[0];
  return p;
}

LogicalResult codegen::emitRouting(Code &code, rt::ExpertWeightsOp op,
                                   Kernel &kernel) {
  int64_t experts = getLast(op.getLogits()), slots = getLast(op.getIds());
  Value logits = addressOf(kernel, op, 0), ids = addressOf(kernel, op, 1);
  forEachToken(code, kernel, op.getLogits(), [&](Value token) {
    Probabilities p = getProbabilities(code, logits, ids, token, experts, slots,
                                       op.getNormalized());
    code.loop(code.i64(0), code.i64(slots), 1, [&](Value slot) {
      code.store(p.get(p.getChosen(slot)), kernel.outputs[0],
                 code.add(p.place, slot));
    });
  });
  return success();
}

LogicalResult codegen::emitRouting(Code &code, rt::ExpertWeightsBackwardOp op,
                                   Kernel &kernel) {
  int64_t experts = getLast(op.getLogits()), slots = getLast(op.getIds());
  Value logits = addressOf(kernel, op, 0), ids = addressOf(kernel, op, 1);
  Value dweights = addressOf(kernel, op, 2), dlogits = kernel.outputs[0];
  Type f32 = code.getF32Type();
  Value zero = code.i64(0), allSlots = code.i64(slots);
  forEachToken(code, kernel, op.getLogits(), [&](Value token) {
    Probabilities p = getProbabilities(code, logits, ids, token, experts, slots,
                                       op.getNormalized());
    auto getGradient = [&](Value slot) {
      return code.load(f32, dweights, code.add(p.place, slot));
    };
    Value dot =
        code.loop(zero, allSlots, 1, ValueRange(code.f32(0)),
                  [&](Value slot, ValueRange carried) -> SmallVector<Value> {
                    Value term =
                        code.mul(getGradient(slot), p.get(p.getChosen(slot)));
                    return {code.add(carried[0], term)};
                  })[0];
    // As if no expert had been chosen; then those that were.
    code.loop(zero, code.i64(experts), 1, [&](Value e) {
      Value other = code.f32(0);
      if (!op.getNormalized())
        other = code.mul(p.get(e), code.sub(other, dot));
      code.store(other, dlogits, code.add(p.row, e));
    });
    code.loop(zero, allSlots, 1, [&](Value slot) {
      Value e = p.getChosen(slot);
      code.store(code.mul(p.get(e), code.sub(getGradient(slot), dot)), dlogits,
                 code.add(p.row, e));
    });
  });
  return success();
}

//===----------------------------------------------------------------------===//
// Sort
//===----------------------------------------------------------------------===//

/// Counts ids, adds the counts up, and deals rows out in the order of ids,
/// which makes of each expert's first row, in `offsets`, its last one; so they
/// stand one place further up until then.
LogicalResult codegen::emitRouting(Code &code, rt::SortRowsOp op,
                                   Kernel &kernel) {
  int64_t count = cast<ShapedType>(op.getIds().getType()).getNumElements();
  int64_t experts = getLast(op.getOffsets()) - 1;
  Value ids = addressOf(kernel, op, 0), order = kernel.outputs[0];
  Value inverse = kernel.outputs[1], offsets = kernel.outputs[2];
  Type i32 = code.getI32Type();
  Value zero = code.i64(0), all = code.i64(count), none = code.scalar(i32, 0);
  Value one = code.scalar(i32, 1);
  auto getId = [&](Value place) {
    return code.cast(code.load(i32, ids, place), code.getI64Type());
  };
  kernel.function->setAttr(rt::kTasksAttr, code.getI64IntegerAttr(1));
  kernel.tasks(code, [&](Value) {
    code.loop(zero, code.i64(experts + 1), 1,
              [&](Value e) { code.store(none, offsets, e); });
    // offsets[e + 1]: ids that are e.
    code.loop(zero, all, 1, [&](Value place) {
      Value at = code.add(getId(place), 1);
      code.store(code.add(code.load(i32, offsets, at), one), offsets, at);
    });
    // offsets[e + 1]: ids below e, the first row of e.
    code.loop(zero, code.i64(experts), 1, ValueRange(none),
              [&](Value e, ValueRange below) -> SmallVector<Value> {
                Value at = code.add(e, 1);
                Value size = code.load(i32, offsets, at);
                code.store(below[0], offsets, at);
                return {code.add(below[0], size)};
              });
    code.loop(zero, all, 1, [&](Value place) {
      Value at = code.add(getId(place), 1);
      Value row = code.load(i32, offsets, at);
      code.store(code.cast(place, i32), order,
                 code.cast(row, code.getI64Type()));
      code.store(row, inverse, place);
      code.store(code.add(row, one), offsets, at);
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
