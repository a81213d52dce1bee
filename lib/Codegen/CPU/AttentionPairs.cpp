//===- AttentionPairs.cpp - Operands of attention in pairs of bf16 --------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements are pairs as they lie in memory; of rows, pairs are made once for a
// block. What is made of scores has its keys in rows; on tile registers, where
// terms are keys it is transposed.
//
//===----------------------------------------------------------------------===//

#include "AttentionTile.h"
#include "RTKernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

/// The bf16 in a vector of pairs.
static constexpr int64_t kHalves = 2 * kLanes;

static VectorType halvesOf(Code &code, int64_t count) {
  return VectorType::get({count}, code.getI16Type());
}

/// The lanes of two vectors in turn, from `first` on.
static Value interleave(Code &code, Value even, Value odd, int64_t first) {
  int64_t lanes = cast<VectorType>(even.getType()).getNumElements();
  SmallVector<int64_t> order;
  for (int64_t i = first; i < first + kLanes; ++i)
    order.append({i, i + lanes});
  return vector::ShuffleOp::create(code, even, odd, order);
}

bool codegen::mayHavePairs(Operation *op) {
  auto check = [](auto attention) {
    auto query = cast<ShapedType>(attention.getQuery().getType());
    auto out = cast<ShapedType>(attention.getOut().getType());
    int64_t width =
        std::max(query.getDimSize(2), out.getDimSize(2)) / attention.getHeads();
    // Scores are scaled when their maximum is known, which is to stay that.
    return query.getElementType().isBF16() && blockOf(width) % kTerms == 0 &&
           attention.getScale().convertToDouble() > 0;
  };
  if (auto forward = dyn_cast<rt::AttentionOp>(op))
    return check(forward);
  auto backward = dyn_cast<rt::AttentionBackwardOp>(op);
  return backward && check(backward);
}

Value AttentionTile::halvesMask(const Heads &heads, int64_t column) {
  if (column + kHalves <= heads.width)
    return {};
  llvm::SaveAndRestore lanes(code.lanes, kHalves);
  return code.maskOf(heads.width - column);
}

void AttentionTile::copyPairs(const Heads &heads, Value base, Value first,
                              Value r, Value elements) {
  VectorType type = halvesOf(code, kHalves);
  Value from = rowOffset(heads, code.add(first, r));
  Value to = code.mul(r, 2 * heads.words);
  for (int64_t column = 0; column < heads.width; column += kHalves) {
    Value row = code.load(type, base, code.add(from, column),
                          halvesMask(heads, column));
    code.store(row, elements, code.add(to, column));
  }
}

void AttentionTile::interleaveRows(const Heads &heads, Value even, Value odd,
                                   int64_t column, Value pair, Value rows) {
  Value to = code.mul(pair, 2 * heads.padded);
  for (int64_t c = 0; c < kHalves && column + c < heads.padded; c += kLanes)
    code.store(interleave(code, even, odd, c), rows,
               code.add(to, 2 * (column + c)));
}

void AttentionTile::gatherTwo(const Heads &heads, Value base, Value first,
                              Value r, Value elements, Value rows) {
  VectorType type = halvesOf(code, kHalves);
  Value pair = arith::ShRUIOp::create(code, r, code.i64(1));
  for (int64_t column = 0; column < heads.width; column += kHalves) {
    SmallVector<Value> both;
    for (int64_t k = 0; k < 2; ++k) {
      Value row = code.add(r, k);
      Value from = rowOffset(heads, code.add(first, row));
      both.push_back(code.load(type, base, code.add(from, column),
                               halvesMask(heads, column)));
      if (elements)
        code.store(both.back(), elements,
                   code.add(code.mul(row, 2 * heads.words), column));
    }
    if (rows)
      interleaveRows(heads, both[0], both[1], column, pair, rows);
  }
  for (int64_t k = 0; k < 2; ++k)
    fetchRow({heads, base, code.add(first, block)}, code.add(r, k));
}

void AttentionTile::makeRows(const Heads &heads, Value elements, Value rows) {
  if (!hasPairs)
    return;
  VectorType type = halvesOf(code, kHalves);
  code.loop(code.i64(0), code.i64(block / 2), 1, [&](Value pair) {
    Value from = code.mul(pair, 4 * heads.words);
    for (int64_t column = 0; column < heads.padded; column += kHalves) {
      Value at = code.add(from, column);
      Value even = code.load(type, elements, at);
      Value odd = code.load(type, elements, code.add(at, 2 * heads.words));
      interleaveRows(heads, even, odd, column, pair, rows);
    }
  });
}

/// Two vectors rounded to bf16, the first in the lower half. Denormal numbers
/// become zeros, which products take them for.
static Value roundBoth(Code &code, ValueRange numbers) {
  auto type = VectorType::get({kHalves}, code.getBF16Type());
  Value both = LLVM::CallIntrinsicOp::create(
                   code, type,
                   code.getStringAttr("llvm.x86.avx512bf16.cvtne2ps2bf16.512"),
                   ValueRange{numbers[1], numbers[0]})
                   .getResult(0);
  return arith::BitcastOp::create(code, halvesOf(code, kHalves), both);
}

void AttentionTile::roundRow(const Heads &heads, Value sums, Value from,
                             Value times, Value base, Value to) {
  for (int64_t column = 0; column < heads.width; column += kHalves) {
    SmallVector<Value> numbers(2, code.splatF32(0));
    for (int64_t k = 0; k < 2 && column + k * kLanes < heads.padded; ++k) {
      numbers[k] = load(sums, code.add(from, column + k * kLanes));
      if (times)
        numbers[k] = code.mul(numbers[k], times);
    }
    code.store(roundBoth(code, numbers), base, code.add(to, column),
               halvesMask(heads, column));
  }
}

void AttentionTile::storeKeys(Value tile, Value key, Value lane,
                              ValueRange numbers) {
  if (hasPairs) {
    Value both = roundBoth(code, numbers);
    SmallVector<int64_t> order;
    for (int64_t i = 0; i < kLanes; ++i)
      order.append({i, i + kLanes});
    Value pair = arith::ShRUIOp::create(code, key, code.i64(1));
    return code.store(vector::ShuffleOp::create(code, both, both, order), tile,
                      code.mul(at(pair, lane), 2));
  }
  for (auto [k, number] : llvm::enumerate(numbers))
    code.store(number, tile, at(code.add(key, k), lane));
}

void AttentionTile::storeQueries(Value tile, Value key, Value lane,
                                 ValueRange numbers) {
  if (!hasPairs)
    return storeKeys(tile, key, lane, numbers);
  Value both = roundBoth(code, numbers);
  for (int64_t k = 0; k < 2; ++k) {
    SmallVector<int64_t> half;
    for (int64_t i = 0; i < kLanes; ++i)
      half.push_back(k * kLanes + i);
    // Rows as far apart as those of scores.
    code.store(vector::ShuffleOp::create(code, both, both, half), tile,
               code.add(code.mul(code.add(key, k), 2 * block), lane));
  }
}

Value AttentionTile::rowOf(Value lane, Value j) {
  assert(block == 4 * kLanes && "as many rows as fours of keys");
  return code.add(lane, arith::ShRUIOp::create(code, j, code.i64(2)));
}

void AttentionTile::forUnseen(Value keys, function_ref<void(Value)> body) {
  if (!hasPairs)
    return;
  Value end = code.add(keys, kTerms - 1);
  end = arith::AndIOp::create(code, end, code.i64(-kTerms));
  code.loop(keys, end, 2, body);
}

void AttentionTile::scaleRows(const Heads &heads, Value sums, Value lane,
                              Value factors) {
  code.loop(lane, code.add(lane, kLanes), 1, [&](Value r) {
    Value factor = code.splat(code.load(code.getF32Type(), factors, r));
    Value row = code.mul(r, heads.padded);
    for (int64_t c = 0; c < heads.padded; c += kLanes) {
      Value at = code.add(row, c);
      code.store(code.mul(load(sums, at), factor), sums, at);
    }
  });
}
