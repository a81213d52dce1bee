//===- Routing.cpp - Which experts a token has ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp has a token, and a lane every 32nd of its logits. Scores lie in shared
// memory; to choose S experts takes S passes over them, in each of which the
// warp finds the first that comes behind the last one, as on a CPU.
//
//===----------------------------------------------------------------------===//

#include "ExpertKernels.h"
#include "Votes.h"
#include "reprise/Codegen/Common/Probabilities.h"
#include <limits>

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::cuda;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Tokens of a block, of which each has a warp.
static constexpr int64_t kTokens = 4;

/// Shared memory that every chip has for a block.
static constexpr int64_t kSharedBytes = 99 << 10;

static int64_t getLast(Value value) {
  return cast<ShapedType>(value.getType()).getShape().back();
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
/// What a warp does with the numbers of its token.
struct TokenWarp {
  DeviceCode &code;
  Value token, lane;
  Value warp; ///< of the block

  /// Calls `body` with each index below `count` that is this lane's.
  void forEach(int64_t count, function_ref<void(Value)> body) {
    code.loop(lane, code.i64(count), kWarp, body);
  }
  /// `start` combined with what `term` makes of each index below `count`, in
  /// all lanes; combined with another number, `start` makes no difference.
  Value combine(int64_t count, Value start, function_ref<Value(Value)> term,
                function_ref<Value(Value, Value)> op) {
    Value own = code.loop(lane, code.i64(count), kWarp, start,
                          [&](Value i, ValueRange old) -> SmallVector<Value> {
                            return {op(old[0], term(i))};
                          })[0];
    return code.combineInWarp(own, kWarp, 1, op);
  }
  Value sum(int64_t count, function_ref<Value(Value)> term) {
    return combine(count, code.f32(0), term,
                   [&](Value a, Value b) { return code.add(a, b); });
  }
};
} // namespace

/// Calls `body` with the token of each warp; `kernel` is launched with `tokens`
/// to a block.
static void forToken(DeviceCode &code, DeviceKernel &kernel, Value logits,
                     int64_t tokens, function_ref<void(TokenWarp &)> body) {
  int64_t count =
      cast<ShapedType>(logits.getType()).getNumElements() / getLast(logits);
  kernel.setLaunch(code, llvm::divideCeil(count, tokens), tokens * kWarp);
  code.lanes = 1;
  Value thread = code.thread(), warp = code.divide(thread, kWarp);
  Value token = code.add(code.mul(code.block(), tokens), warp);
  TokenWarp its = {code, token, code.remainder(thread, kWarp), warp};
  code.when(code.less(token, count), [&] { body(its); });
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

namespace {
/// An expert of a token, or a group of them, by its order: larger scores come
/// first, and of equal ones that with the lower index, an i32.
struct Place {
  Value score, index;
};

/// Finds the S-th expert of a token, and then writes down those that do not
/// come behind it. Scores of groups that are not kept are below all others.
class ChoiceEmitter {
public:
  ChoiceEmitter(DeviceCode &code, rt::ChooseExpertsOp op, DeviceKernel &kernel)
      : code(code), op(op), kernel(kernel), i32(code.getI32Type()),
        experts(getLast(op.getLogits())), slots(getLast(op.getIds())) {}

  int64_t groups() { return op.getGroups().value_or(0); }
  /// Shared memory of a token: scores of experts and of groups.
  int64_t bytes() { return 4 * (experts + groups()); }
  void emit(TokenWarp &its, Value shared);

private:
  Value load(Value base, Value index) {
    return code.load(code.getF32Type(), base, index);
  }
  /// At least the lowest number, which also stands for what is none.
  Value atLeastLowest(Value x) {
    double lowest = std::numeric_limits<float>::lowest();
    return arith::MaxNumFOp::create(code, x, code.f32(lowest));
  }
  Value isBefore(Place one, Place other);
  Place select(Value condition, Place one, Place other) {
    return {code.select(condition, one.score, other.score),
            code.select(condition, one.index, other.index)};
  }
  Place findLast(TokenWarp &its, int64_t count, int64_t total, Value base);
  Value isKept(Place last, Value base, Value index);
  void makeScores(TokenWarp &its);
  Value getGroupScore(Value first, int64_t size);
  void leaveGroupsOut(TokenWarp &its);
  void writeIds(TokenWarp &its, Place last);

  DeviceCode &code;
  rt::ChooseExpertsOp op;
  DeviceKernel &kernel;
  Type i32;
  const int64_t experts, slots;
  Value scores, groupScores; ///< of this warp's token
};
} // namespace

Value ChoiceEmitter::isBefore(Place one, Place other) {
  Value isLarger =
      compare(code, arith::CmpFPredicate::OGT, one.score, other.score);
  Value isEqual =
      compare(code, arith::CmpFPredicate::OEQ, one.score, other.score);
  Value isLower =
      compare(code, arith::CmpIPredicate::slt, one.index, other.index);
  return arith::OrIOp::create(code, isLarger, code.both(isEqual, isLower));
}

/// Of `total` scores, that which has `count` - 1 before it.
Place ChoiceEmitter::findLast(TokenWarp &its, int64_t count, int64_t total,
                              Value base) {
  Value none = code.scalar(i32, total);
  auto findNext = [&](Value, ValueRange before) -> SmallVector<Value> {
    Place last = {before[0], before[1]};
    SmallVector<Value> own =
        code.loop(its.lane, code.i64(total), kWarp,
                  ValueRange{code.f32(-kInfinity), none},
                  [&](Value i, ValueRange old) -> SmallVector<Value> {
                    Place best = {old[0], old[1]},
                          here = {load(base, i), code.cast(i, i32)};
                    Value isBetter =
                        code.both(isBefore(last, here), isBefore(here, best));
                    Place next = select(isBetter, here, best);
                    return {next.score, next.index};
                  });
    Place best = {own[0], own[1]};
    for (int64_t distance = kWarp / 2; distance > 0; distance /= 2) {
      Place other = {code.shuffle(best.score, distance),
                     code.shuffle(best.index, distance)};
      best = select(isBefore(other, best), other, best);
    }
    return {best.score, best.index};
  };
  SmallVector<Value> last = code.loop(
      code.i64(0), code.i64(count), 1,
      ValueRange{code.f32(kInfinity), code.scalar(i32, -1)}, findNext);
  return {last[0], last[1]};
}

/// Whether what is at `index` does not come behind `last`.
Value ChoiceEmitter::isKept(Place last, Value base, Value index) {
  Place here = {load(base, index), code.cast(index, i32)};
  Value isLast =
      compare(code, arith::CmpIPredicate::eq, here.index, last.index);
  return arith::OrIOp::create(code, isLast, isBefore(here, last));
}

void ChoiceEmitter::makeScores(TokenWarp &its) {
  Value logits = kernel.addressOf(op, 0), row = code.mul(its.token, experts);
  its.forEach(experts, [&](Value e) {
    Value score = load(logits, code.add(row, e));
    if (op.getSigmoid())
      score = sigmoid(code, score);
    if (op.getBias())
      score = code.add(score, load(kernel.addressOf(op, 1), e));
    code.store(atLeastLowest(score), scores, e);
  });
  syncWarp(code);
}

/// The largest score of the group whose first expert is `first`, or the sum of
/// the two largest.
Value ChoiceEmitter::getGroupScore(Value first, int64_t size) {
  Value lowest = code.f32(-kInfinity);
  SmallVector<Value> best =
      code.loop(first, code.add(first, size), 1, ValueRange{lowest, lowest},
                [&](Value e, ValueRange old) -> SmallVector<Value> {
                  Value score = load(scores, e);
                  Value smaller = arith::MinNumFOp::create(code, old[0], score);
                  return {arith::MaxNumFOp::create(code, old[0], score),
                          arith::MaxNumFOp::create(code, old[1], smaller)};
                });
  return op.getByTwo() ? code.add(best[0], best[1]) : best[0];
}

void ChoiceEmitter::leaveGroupsOut(TokenWarp &its) {
  int64_t size = experts / groups();
  its.forEach(groups(), [&](Value group) {
    code.store(getGroupScore(code.mul(group, size), size), groupScores, group);
  });
  syncWarp(code);
  Place last = findLast(its, *op.getKeep(), groups(), groupScores);
  its.forEach(experts, [&](Value e) {
    Value group = code.divide(e, size);
    code.when(
        isKept(last, groupScores, group), [] {},
        [&] { code.store(code.f32(-kInfinity), scores, e); });
  });
  syncWarp(code);
}

/// In ascending order: 32 experts at a time, whose lanes count lower ones.
void ChoiceEmitter::writeIds(TokenWarp &its, Place last) {
  code.loop(code.i64(0), code.i64(experts), kWarp, code.mul(its.token, slots),
            [&](Value first, ValueRange at) -> SmallVector<Value> {
              Value e = code.add(first, its.lane);
              Value isExpert = code.less(e, experts);
              Value known = code.min(e, experts - 1);
              Value isChosen = code.both(isExpert, isKept(last, scores, known));
              Votes votes = vote(code, isChosen, its.lane);
              Value place =
                  code.add(at[0], code.cast(votes.below, e.getType()));
              code.when(isChosen, [&] {
                code.store(code.cast(e, i32), kernel.outputs[0], place);
              });
              return {code.add(at[0], code.cast(votes.all, e.getType()))};
            });
}

void ChoiceEmitter::emit(TokenWarp &its, Value shared) {
  Value first = code.mul(its.warp, experts + groups());
  scores = code.address(shared, code.getF32Type(), first);
  groupScores = code.address(scores, code.getF32Type(), code.i64(experts));
  makeScores(its);
  if (op.getGroups())
    leaveGroupsOut(its);
  writeIds(its, findLast(its, slots, experts, scores));
}

LogicalResult cuda::emitRouting(DeviceCode &code, rt::ChooseExpertsOp op,
                                DeviceKernel &kernel) {
  ChoiceEmitter choice(code, op, kernel);
  int64_t bytes = choice.bytes();
  if (bytes > kSharedBytes)
    return op.emitOpError("needs at most ")
           << kSharedBytes / 4 << " experts and groups, whose scores fit into "
           << kSharedBytes << " bytes of shared memory, but got " << bytes / 4;
  int64_t tokens = std::min(kTokens, kSharedBytes / bytes);
  Value shared = kernel.takeShared(code, tokens * bytes);
  forToken(code, kernel, op.getLogits(), tokens,
           [&](TokenWarp &its) { choice.emit(its, shared); });
  return success();
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

template <typename OpTy>
static Probabilities getProbabilities(TokenWarp &its, OpTy op,
                                      DeviceKernel &kernel) {
  DeviceCode &code = its.code;
  Probabilities p = Probabilities::of(code, op, kernel.addressOf(op, 0),
                                      kernel.addressOf(op, 1), its.token);
  if (!p.hasSum())
    return p;
  int64_t count = p.countTerms();
  if (!p.isSigmoid)
    p.greatest = its.combine(
        count, code.f32(-kInfinity),
        [&](Value i) { return p.getLogit(p.getExpert(i)); },
        [&](Value a, Value b) -> Value {
          return arith::MaxNumFOp::create(code, a, b);
        });
  p.sum = its.sum(count, [&](Value i) { return p.getTerm(p.getExpert(i)); });
  if (p.isSigmoid)
    p.sum = code.add(p.sum, code.f32(Probabilities::kLeastOfSum));
  return p;
}

LogicalResult cuda::emitRouting(DeviceCode &code, rt::ExpertWeightsOp op,
                                DeviceKernel &kernel) {
  forToken(code, kernel, op.getLogits(), kTokens, [&](TokenWarp &its) {
    Probabilities p = getProbabilities(its, op, kernel);
    its.forEach(p.slots, [&](Value slot) {
      code.store(scaled(code, op, p.get(p.getChosen(slot))), kernel.outputs[0],
                 code.add(p.place, slot));
    });
  });
  return success();
}

LogicalResult cuda::emitRouting(DeviceCode &code,
                                rt::ExpertWeightsBackwardOp op,
                                DeviceKernel &kernel) {
  Value dweights = kernel.addressOf(op, 2), dlogits = kernel.outputs[0];
  forToken(code, kernel, op.getLogits(), kTokens, [&](TokenWarp &its) {
    Probabilities p = getProbabilities(its, op, kernel);
    auto getGradient = [&](Value slot) {
      Value at = code.add(p.place, slot);
      return scaled(code, op, code.load(code.getF32Type(), dweights, at));
    };
    Value dot;
    if (p.hasSum())
      dot = its.sum(p.slots, [&](Value slot) {
        return code.mul(getGradient(slot), p.get(p.getChosen(slot)));
      });
    // As if no expert had been chosen; then those that were.
    its.forEach(p.experts, [&](Value e) {
      Value other = code.f32(0);
      if (!p.isSigmoid && !p.isNormalized)
        other = code.mul(p.get(e), code.sub(other, dot));
      code.store(other, dlogits, code.add(p.row, e));
    });
    syncWarp(code);
    its.forEach(p.slots, [&](Value slot) {
      Value e = p.getChosen(slot);
      code.store(p.getLogitGradient(e, getGradient(slot), dot), dlogits,
                 code.add(p.row, e));
    });
  });
  return success();
}
