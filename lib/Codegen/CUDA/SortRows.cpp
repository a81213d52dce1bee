//===- SortRows.cpp - Rows in the order of their experts --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block has one expert, and looks through the ids of all: the first row of
// its expert is the number of ids below, and rows are dealt in the order of
// places, with a part of the places for each warp. First warps count, then each
// goes through its part once more and knows what comes before. So blocks need
// nothing of each other, and only whole numbers are added up.
//
// Where experts have a capacity, an expert's rows are its places whose weight
// is above the last that is taken, and as many of that weight as are left, in
// their order. Without weights all are as good as the last. The rows of the
// experts below are then counted expert by expert, as none has more than that.
//
//===----------------------------------------------------------------------===//

#include "ExpertKernels.h"
#include "Votes.h"
#include <limits>

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::cuda;

/// Threads of a block: more where there are many ids.
static constexpr int64_t kFewThreads = 256, kFewIds = 1 << 13;
/// Ids of a lane whose loads are under way at once.
static constexpr int64_t kSideBySide = 4;
/// Shared memory that every chip has for a block.
static constexpr int64_t kSharedBytes = 99 << 10;

static int64_t getCount(Value value) {
  return cast<ShapedType>(value.getType()).getNumElements();
}

static int64_t chooseThreads(int64_t ids) {
  return ids > kFewIds ? kMaxThreads : kFewThreads;
}

namespace {
/// A block that counts.
class CountingBlock {
public:
  CountingBlock(DeviceCode &code, DeviceKernel &kernel, int64_t threads)
      : code(code), threads(threads), i32(code.getI32Type()),
        words(kernel.takeShared(code, threads / kWarp * 4)),
        thread(code.thread()), lane(code.remainder(thread, kWarp)),
        warp(code.divide(thread, kWarp)) {}

  Value number(int64_t value) { return code.scalar(i32, value); }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(code, predicate, a, b);
  }
  Value asNumber(Value flag) { return arith::ExtUIOp::create(code, i32, flag); }
  Value sumOfWarp(Value value) {
    return code.combineInWarp(value, kWarp, 1,
                              [&](Value a, Value b) { return code.add(a, b); });
  }
  /// The sum of what all threads have, an i32, in all of them.
  Value sum(Value value) {
    Value ofWarp = sumOfWarp(value);
    code.barrier(); // Nobody reads the words of the last sum any more.
    code.when(code.equal(lane, 0), [&] { code.store(ofWarp, words, warp); });
    code.barrier();
    return code.loop(code.i64(0), code.i64(threads / kWarp), 1, number(0),
                     [&](Value other, ValueRange old) -> SmallVector<Value> {
                       return {code.add(old[0], code.load(i32, words, other))};
                     })[0];
  }
  /// How many of the `count` numbers that `isCounted` is given are counted.
  Value countIf(int64_t count, function_ref<Value(Value)> isCounted) {
    return sum(code.loop(thread, code.i64(count), threads, number(0),
                         [&](Value at, ValueRange old) -> SmallVector<Value> {
                           return {code.add(old[0], asNumber(isCounted(at)))};
                         })[0]);
  }

  DeviceCode &code;
  const int64_t threads;
  Type i32;
  Value words, thread, lane, warp;
};

class SortEmitter {
public:
  SortEmitter(DeviceCode &code, rt::SortRowsOp op, DeviceKernel &kernel)
      : code(code), op(op), experts(getCount(op.getOffsets()) - 1),
        count(getCount(op.getIds())), rows(getCount(op.getOrder())),
        block(code, kernel, chooseThreads(count)), kernel(kernel),
        ids(kernel.addressOf(op, 0)) {
    if (op.getWeights())
      weights = kernel.addressOf(op, 1);
    part = llvm::alignTo(llvm::divideCeil(count, block.threads / kWarp),
                         kWarp * kSideBySide);
  }

  LogicalResult emit();

private:
  using Values = SmallVector<Value>;

  /// Whether a place is the expert's, and how its weight is to the last.
  struct Kind {
    Value isMine, isAbove, isEqual; ///< `isAbove` is null without weights
  };

  Value getId(Value place) { return code.load(block.i32, ids, place); }
  Value getBits(Value place);
  Kind getKind(Value place, Value isThere);
  void findLastWeight();
  Value countBelowWithCapacity(Value counts);
  void countParts();
  void dealOne(Value place, Value isThere, const Kind &kind, Values &before);
  Values walk(Values carried, function_ref<void(Value, Value, Values &)> body);
  void writeOffsets();

  DeviceCode &code;
  rt::SortRowsOp op;
  const int64_t experts, count, rows;
  CountingBlock block;
  DeviceKernel &kernel;
  Value ids, weights;
  int64_t part;      ///< places of a warp
  Value expert;      ///< of the block, i32
  Value last;        ///< bits of the last weight that is taken
  Value begin, size; ///< rows of the expert
  Value left;        ///< rows for places whose weight is the last
  Values beforeWarp; ///< places above the last and of it, in earlier parts
};
} // namespace

/// The bits of a weight without its sign, which have the order of numbers.
Value SortEmitter::getBits(Value place) {
  return arith::AndIOp::create(
      code, code.load(block.i32, weights, place),
      block.number(std::numeric_limits<int32_t>::max()));
}

SortEmitter::Kind SortEmitter::getKind(Value place, Value isThere) {
  using Predicate = arith::CmpIPredicate;
  Value isMine =
      code.both(isThere, block.compare(Predicate::eq, getId(place), expert));
  if (!weights)
    return {isMine, {}, isMine};
  Value bits = getBits(place);
  return {isMine, code.both(isMine, block.compare(Predicate::sgt, bits, last)),
          code.both(isMine, block.compare(Predicate::eq, bits, last))};
}

/// The bits of the least weight that is taken, from the highest on: a bit is
/// set if as many weights are at least what it makes. Zero where all are taken.
void SortEmitter::findLastWeight() {
  using Predicate = arith::CmpIPredicate;
  last =
      code.loop(code.i64(0), code.i64(31), 1, block.number(0),
                [&](Value step, ValueRange old) -> Values {
                  Value bit = arith::ShRUIOp::create(
                      code, block.number(1 << 30), code.cast(step, block.i32));
                  Value tried = arith::OrIOp::create(code, old[0], bit);
                  Value found = block.countIf(count, [&](Value place) {
                    return code.both(
                        block.compare(Predicate::eq, getId(place), expert),
                        block.compare(Predicate::sge, getBits(place), tried));
                  });
                  Value isEnough = block.compare(
                      Predicate::sge, found, block.number(*op.getCapacity()));
                  return {code.select(isEnough, tried, old[0])};
                })[0];
}

/// Rows of the experts below this one, of which a thread counts one in a part
/// of the places: `counts` has room for all of these numbers.
Value SortEmitter::countBelowWithCapacity(Value counts) {
  using Predicate = arith::CmpIPredicate;
  int64_t padded = llvm::alignTo(experts, kWarp);
  int64_t parts = std::max<int64_t>(block.threads / padded, 1);
  int64_t length = llvm::divideCeil(count, parts);
  Value mine = code.cast(expert, code.getI64Type());
  // Threads beyond these have a part behind the last one, of no places.
  Value number = code.divide(block.thread, padded);
  Value first = code.mul(number, length);
  Value end = code.min(code.add(first, length), count);
  Value begin =
      parts == 1 ? block.thread : code.remainder(block.thread, padded);
  code.loop(begin, mine, parts == 1 ? block.threads : padded, [&](Value other) {
    Value id = code.cast(other, block.i32);
    Value found =
        code.loop(first, end, 1, block.number(0),
                  [&](Value place, ValueRange old) -> Values {
                    Value is = block.compare(Predicate::eq, getId(place), id);
                    return {code.add(old[0], block.asNumber(is))};
                  })[0];
    code.when(code.less(number, parts), [&] {
      code.store(found, counts, code.add(code.mul(number, padded), other));
    });
  });
  code.barrier();
  Value own =
      code.loop(block.thread, mine, block.threads, block.number(0),
                [&](Value other, ValueRange old) -> Values {
                  Value all = block.number(0);
                  for (int64_t p = 0; p < parts; ++p)
                    all = code.add(all, code.load(block.i32, counts,
                                                  code.add(other, p * padded)));
                  return {code.add(
                      old[0], code.min(all, block.number(*op.getCapacity())))};
                })[0];
  return block.sum(own);
}

/// Calls `body` with each place of this warp's part that is this lane's, in
/// order, 32 places of all lanes at a time, and with what is carried along.
SortEmitter::Values
SortEmitter::walk(Values carried,
                  function_ref<void(Value, Value, Values &)> body) {
  Value first = code.mul(block.warp, part);
  Value end = code.min(code.add(first, part), count);
  return code.loop(first, end, kWarp * kSideBySide, carried,
                   [&](Value group, ValueRange old) -> Values {
                     Values next(old);
                     for (int64_t k = 0; k < kSideBySide; ++k) {
                       Value place =
                           code.add(code.add(group, k * kWarp), block.lane);
                       Value isThere = code.less(place, count);
                       body(code.min(place, count - 1), isThere, next);
                     }
                     return next;
                   });
}

/// Counts what each warp has of its part, and all together.
void SortEmitter::countParts() {
  using Predicate = arith::CmpIPredicate;
  enum { kAbove, kEqual, kBelow, kNumbers };
  Values counts(kNumbers, block.number(0));
  counts = walk(counts, [&](Value place, Value isThere, Values &next) {
    auto tally = [&](int number, Value flag) {
      next[number] = code.add(next[number], block.asNumber(flag));
    };
    Kind kind = getKind(place, isThere);
    if (kind.isAbove)
      tally(kAbove, kind.isAbove);
    tally(kEqual, kind.isEqual);
    if (!op.getCapacity())
      tally(kBelow, code.both(isThere, block.compare(Predicate::slt,
                                                     getId(place), expert)));
  });
  int64_t warps = block.threads / kWarp;
  Value ofWarps = kernel.takeShared(code, kNumbers * warps * 4);
  for (Value &value : counts)
    value = block.sumOfWarp(value);
  code.when(code.equal(block.lane, 0), [&] {
    for (auto [number, value] : llvm::enumerate(counts))
      code.store(value, ofWarps, code.add(block.warp, number * warps));
  });
  code.barrier();
  // What lower warps have of the first two, and all.
  Values sums = code.loop(
      code.i64(0), code.i64(warps), 1, Values(kNumbers + 2, block.number(0)),
      [&](Value other, ValueRange old) -> Values {
        Values next(old);
        Value isLower = code.less(other, block.warp);
        for (int64_t number = 0; number < kNumbers; ++number) {
          Value value =
              code.load(block.i32, ofWarps, code.add(other, number * warps));
          next[number] = code.add(next[number], value);
          if (number < kBelow)
            next[kNumbers + number] =
                code.add(next[kNumbers + number],
                         code.select(isLower, value, block.number(0)));
        }
        return next;
      });
  left = block.number(op.getCapacity().value_or(count));
  if (weights)
    left = code.sub(left, sums[kAbove]);
  size = code.add(sums[kAbove], code.min(sums[kEqual], left));
  beforeWarp.assign(sums.begin() + kNumbers, sums.end());
  if (!op.getCapacity())
    begin = sums[kBelow];
}

/// `before` has the places above the last and of it that come before these 32.
void SortEmitter::dealOne(Value place, Value isThere, const Kind &kind,
                          Values &before) {
  enum { kAbove, kEqual };
  Value order = kernel.outputs[0], inverse = kernel.outputs[1];
  Value above = before[kAbove], isTaken;
  Votes equal = vote(code, kind.isEqual, block.lane);
  Value rank = code.add(before[kEqual], equal.below);
  before[kEqual] = code.add(before[kEqual], equal.all);
  isTaken = code.both(kind.isEqual,
                      block.compare(arith::CmpIPredicate::slt, rank, left));
  if (kind.isAbove) {
    Votes votes = vote(code, kind.isAbove, block.lane);
    above = code.add(above, votes.below);
    before[kAbove] = code.add(before[kAbove], votes.all);
    isTaken = arith::OrIOp::create(code, isTaken, kind.isAbove);
  }
  Value row = code.add(begin, code.add(above, code.min(rank, left)));
  code.when(isTaken, [&] {
    code.store(code.cast(place, block.i32), order,
               code.cast(row, code.getI64Type()));
  });
  if (op.getCapacity()) // All that is dropped has the last row.
    row = code.select(isTaken, row, block.number(rows - 1));
  code.when(kind.isMine, [&] { code.store(row, inverse, place); });
}

void SortEmitter::writeOffsets() {
  Value offsets = kernel.outputs[2];
  Value mine = code.cast(expert, code.getI64Type());
  Value end = code.add(begin, size);
  code.when(code.equal(block.thread, 0),
            [&] { code.store(begin, offsets, mine); });
  code.when(code.equal(mine, experts - 1), [&] {
    code.when(code.equal(block.thread, 0),
              [&] { code.store(end, offsets, code.i64(experts)); });
    if (op.getCapacity()) // Rows of no expert.
      code.loop(code.add(code.cast(end, code.getI64Type()), block.thread),
                code.i64(rows), block.threads, [&](Value row) {
                  code.store(block.number(0), kernel.outputs[0], row);
                });
  });
}

LogicalResult SortEmitter::emit() {
  int64_t padded = llvm::alignTo(experts, kWarp);
  int64_t counts = std::max(block.threads, padded);
  if (op.getCapacity() && counts * 4 > kSharedBytes - (1 << 10))
    return op.emitOpError("needs at most ")
           << (kSharedBytes - (1 << 10)) / 4 << " experts with a capacity, "
           << "whose rows are counted in " << kSharedBytes
           << " bytes of shared memory, but got " << experts;
  kernel.setLaunch(code, experts, block.threads);
  expert = code.cast(code.block(), block.i32);
  if (weights)
    findLastWeight();
  if (op.getCapacity())
    begin = countBelowWithCapacity(kernel.takeShared(code, counts * 4));
  countParts();
  walk(beforeWarp, [&](Value place, Value isThere, Values &before) {
    dealOne(place, isThere, getKind(place, isThere), before);
  });
  writeOffsets();
  return success();
}

LogicalResult cuda::emitRouting(DeviceCode &code, rt::SortRowsOp op,
                                DeviceKernel &kernel) {
  code.lanes = 1;
  return SortEmitter(code, op, kernel).emit();
}

/// Whole numbers, which f32 has exactly up to 2^24.
LogicalResult cuda::emitRouting(DeviceCode &code, rt::CountChoicesOp op,
                                DeviceKernel &kernel) {
  code.lanes = 1;
  int64_t experts = cast<ShapedType>(op.getRows().getType()).getShape().back();
  int64_t numbers = getCount(op.getRows());
  int64_t ids = getCount(op.getIds()) / (numbers / experts);
  CountingBlock block(code, kernel, chooseThreads(ids));
  kernel.setLaunch(code, numbers, block.threads);
  Value number = code.block();
  Value first = code.mul(code.divide(number, experts), ids);
  Value expert = code.cast(code.remainder(number, experts), block.i32);
  Value address = kernel.addressOf(op, 0);
  Value rows = block.countIf(ids, [&](Value place) {
    Value id = code.load(block.i32, address, code.add(first, place));
    return block.compare(arith::CmpIPredicate::eq, id, expert);
  });
  code.when(code.equal(block.thread, 0), [&] {
    code.store(arith::SIToFPOp::create(code, code.getF32Type(), rows),
               kernel.outputs[0], number);
  });
  return success();
}

/// Whole numbers are added up, and the sum is exact.
LogicalResult cuda::emitRouting(DeviceCode &code, rt::CountRowsOp op,
                                DeviceKernel &kernel) {
  code.lanes = 1;
  int64_t experts = getCount(op.getRows());
  kernel.setLaunch(code, llvm::divideCeil(experts, kFewThreads), kFewThreads);
  Type i32 = code.getI32Type();
  Value e = code.add(code.mul(code.block(), kFewThreads), code.thread());
  code.when(code.less(e, experts), [&] {
    Value rows = code.scalar(i32, 0), next = code.add(e, 1);
    for (unsigned i = 0, end = op.getOffsets().size(); i < end; ++i) {
      Value offsets = kernel.addressOf(op, i);
      rows = code.add(rows, code.load(i32, offsets, next));
      rows = code.sub(rows, code.load(i32, offsets, e));
    }
    code.store(arith::SIToFPOp::create(code, code.getF32Type(), rows),
               kernel.outputs[0], e);
  });
  return success();
}
