//===- AttentionScores.cpp - What hides and drops scores --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A score's element is ((entry * heads + head) * length + query) * length +
// key, so four keys in a row share a block of Philox if the length is a
// multiple of 4. The threads that have them each draw one block and exchange
// the words: a thread draws once for its four scores of a block of columns.
//
//===----------------------------------------------------------------------===//

#include "AttentionScores.h"
#include "AttentionTiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::cuda;

/// Below every score, and yet finite: differences of it are numbers.
static constexpr double kLowest = -1e30;

Warp::Values cuda::masked(Warp &code, const Division &division,
                          ValueRange scores, const Scores &where) {
  using Values = Warp::Values;
  // Only tiles at the diagonal have anything to hide.
  Value lastKey, firstQuery;
  if (where.keysAreRows) {
    lastKey = code.add(where.firstOwn, division.ownRows() - 1);
    firstQuery = where.firstOfTile;
  } else {
    lastKey = code.add(where.firstOfTile, division.tileRows - 1);
    firstQuery = where.firstOwn;
  }
  return code.choose(
      code.isLess(firstQuery, lastKey),
      [&] {
        Value lowest = code.f32(kLowest);
        Value column = code.add(where.firstOfTile, code.mul(code.quad, 2));
        Values result(scores);
        for (int64_t r = 0; r < 2; ++r) {
          Value row = code.add(where.firstOwn, ownRow(code, r));
          // The row's number among the columns of this thread.
          Value number = code.sub(row, column);
          for (int64_t c = 0; c < division.tileRows; c += kBlockColumns)
            for (int64_t e = 0; e < 2; ++e) {
              Value here = code.i32(c + e);
              Value hidden = where.keysAreRows ? code.isLess(here, number)
                                               : code.isLess(number, here);
              Value &score = result[c / 2 + 2 * r + e];
              score = code.select(hidden, lowest, score);
            }
        }
        return result;
      },
      [&] { return Values(scores); });
}

ScoreDropout::ScoreDropout(Warp &code, const AttentionShape &shape,
                           const Division &division,
                           const AttentionPlaces &places, Value rng)
    : code(code), shape(shape), division(division) {
  if (shape.dropout.isNone())
    return;
  Value base = toDevice(code, rng);
  auto at = [&](int64_t index) {
    return loadDevice(code, code.getI32Type(), base, code.i64(index));
  };
  random = {at(0), at(1), at(2), at(3),
            code.cast(places.stream, code.getI32Type())};
  if (places.coordinate)
    rank = code.cast(places.coordinate, code.getI32Type());
}

static Value constant(Warp &code, uint32_t value) {
  return arith::ConstantOp::create(code, code.getI32IntegerAttr(value));
}

/// `reprisePhilox` for the four elements of a block.
std::array<Value, 4> ScoreDropout::words(Value block) const {
  Value c0 = block, c1 = random.stream, c2 = random.step,
        c3 = random.microBatch;
  Value k0 = random.seedLow, k1 = random.seedHigh;
  auto mix = [&](Value a, Value b, Value key) -> Value {
    return arith::XOrIOp::create(code, arith::XOrIOp::create(code, a, b), key);
  };
  Value m0 = constant(code, 0xD2511F53u), m1 = constant(code, 0xCD9E8D57u);
  for (int round = 0; round < 10; ++round) {
    auto p0 = arith::MulUIExtendedOp::create(code, m0, c0);
    auto p1 = arith::MulUIExtendedOp::create(code, m1, c2);
    c0 = mix(p1.getHigh(), c1, k0);
    c1 = p1.getLow();
    c2 = mix(p0.getHigh(), c3, k1);
    c3 = p0.getLow();
    k0 = code.add(k0, constant(code, 0x9E3779B9u));
    k1 = code.add(k1, constant(code, 0xBB67AE85u));
  }
  return {c0, c1, c2, c3};
}

/// The block of an element, an i64.
static Value blockOf(Warp &code, Value element) {
  Value two = code.constant(element.getType(), 2);
  return code.cast(arith::ShRUIOp::create(code, element, two),
                   code.getI32Type());
}

/// The word of one element.
Value ScoreDropout::word(Value element) const {
  std::array<Value, 4> drawn = words(blockOf(code, element));
  Value number = code.cast(code.bits(element, 3), code.getI32Type());
  Value result = drawn[3];
  for (int64_t k = 2; k >= 0; --k)
    result = code.select(code.isLess(number, k + 1), drawn[k], result);
  return result;
}

/// The element of key 0, among those of all ranks' heads.
Value ScoreDropout::firstElement(Value head, Value query) const {
  if (rank) { // ((entry * ranks) + rank) * heads + head
    Value entry = code.div(head, shape.queryHeads);
    Value before = code.add(code.mul(entry, shape.ranks - 1), rank);
    head = code.add(head, code.mul(before, shape.queryHeads));
  }
  Value row =
      code.add(code.mul(code.widen(head), shape.length), code.widen(query));
  return code.mul(row, shape.length);
}

/// For queries as rows: rows `row` and row + 8, columns `column` and the next,
/// which are two words of a block that the thread beside has too. The even one
/// draws for the first row, the odd one for the second.
ScoreDropout::Values ScoreDropout::wordsOfRows(Value row, Value column,
                                               Value head) const {
  Value isOdd = code.isLess(code.i32(0), code.bits(code.quad, 1));
  Value mine = code.add(row, code.mul(code.bits(code.quad, 1), 8));
  Value key = code.bits(column, ~int64_t(3));
  Value element = code.add(firstElement(head, mine), code.widen(key));
  std::array<Value, 4> drawn = words(blockOf(code, element));
  Values own, other;
  for (int64_t e = 0; e < 2; ++e) {
    own.push_back(code.select(isOdd, drawn[2 + e], drawn[e]));
    other.push_back(
        shuffleXor(code, code.select(isOdd, drawn[e], drawn[2 + e]), 1));
  }
  Values result;
  for (int64_t r = 0; r < 2; ++r)
    for (int64_t e = 0; e < 2; ++e)
      result.push_back(r == 0 ? code.select(isOdd, other[e], own[e])
                              : code.select(isOdd, own[e], other[e]));
  return result;
}

/// For keys as rows: the four threads of rows 4 i .. 4 i + 3 draw one block
/// each, for the two rows and the two columns, and transpose the words.
ScoreDropout::Values ScoreDropout::wordsOfColumns(Value row, Value column,
                                                  Value head) const {
  Value low = code.bits(code.group, 1);
  Value high = code.bits(code.div(code.group, 2), 1);
  Value key = code.add(code.bits(row, ~int64_t(3)), code.mul(high, 8));
  Value element =
      code.add(firstElement(head, code.add(column, low)), code.widen(key));
  std::array<Value, 4> drawn = words(blockOf(code, element));
  Value isOdd = code.isLess(code.i32(0), low);
  Value isHigh = code.isLess(code.i32(0), high);
  // Of blocks 0 and 1 of the pair, words `low` and `low` + 2.
  Value first[2][2];
  for (int64_t h = 0; h < 2; ++h) {
    Value own = code.select(isOdd, drawn[2 * h + 1], drawn[2 * h]);
    Value sent = code.select(isOdd, drawn[2 * h], drawn[2 * h + 1]);
    Value other = shuffleXor(code, sent, 4);
    first[0][h] = code.select(isOdd, other, own);
    first[1][h] = code.select(isOdd, own, other);
  }
  // Of all four blocks, the word of this thread.
  Values result(4);
  for (int64_t b = 0; b < 2; ++b) {
    Value own = code.select(isHigh, first[b][1], first[b][0]);
    Value sent = code.select(isHigh, first[b][0], first[b][1]);
    Value other = shuffleXor(code, sent, 8);
    result[b] = code.select(isHigh, other, own);
    result[2 + b] = code.select(isHigh, own, other);
  }
  return result;
}

ScoreDropout::Values ScoreDropout::factors(const Scores &where) const {
  Values result;
  if (shape.dropout.isNone())
    return result;
  Value row = code.add(where.firstOwn, ownRow(code, 0));
  Value first = code.add(where.firstOfTile, code.mul(code.quad, 2));
  Value threshold = constant(code, shape.dropout.threshold);
  for (int64_t c = 0; c < division.tileRows; c += kBlockColumns) {
    Value column = code.add(first, c);
    Values drawn;
    if (shape.length % 4 == 0) {
      drawn = where.keysAreRows ? wordsOfColumns(row, column, where.head)
                                : wordsOfRows(row, column, where.head);
    } else {
      for (int64_t r = 0; r < 2; ++r)
        for (int64_t e = 0; e < 2; ++e) {
          Value query = code.add(row, 8 * r), key = code.add(column, e);
          if (where.keysAreRows)
            std::swap(query, key);
          drawn.push_back(
              word(code.add(firstElement(where.head, query), code.widen(key))));
        }
    }
    for (Value word : drawn) {
      Value keep = arith::CmpIOp::create(code, arith::CmpIPredicate::uge, word,
                                         threshold);
      result.push_back(
          code.select(keep, code.f32(shape.dropout.factor), code.f32(0)));
    }
  }
  return result;
}
