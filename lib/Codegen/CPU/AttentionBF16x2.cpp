//===- AttentionBF16x2.cpp - Rows of pairs of bf16 --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elements are pairs as they lie in memory; of rows, pairs are made once for a
// block.
//
//===----------------------------------------------------------------------===//

#include "AttentionRows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::codegen::attention;

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

/// Of the 32 columns from `column` on, those that a row in memory has: null if
/// all.
static Value halvesMask(Code &code, const Heads &heads, int64_t column) {
  if (column + kHalves <= heads.width)
    return {};
  llvm::SaveAndRestore lanes(code.lanes, kHalves);
  return code.maskOf(heads.width - column);
}

void attention::copyPairs(Code &code, const AttentionShape &shape,
                          const Heads &heads, Value base, Value first, Value r,
                          Value elements) {
  VectorType type = halvesOf(code, kHalves);
  Value from = rowOffset(code, shape, heads, code.add(first, r));
  Value to = code.mul(r, 2 * heads.words);
  for (int64_t column = 0; column < heads.width; column += kHalves) {
    Value row = code.load(type, base, code.add(from, column),
                          halvesMask(code, heads, column));
    code.store(row, elements, code.add(to, column));
  }
}

/// Rows `even` and `odd`, from `column` on, become pairs of the row `pair`.
static void interleaveRows(Code &code, const Heads &heads, Value even,
                           Value odd, int64_t column, Value pair, Value rows) {
  Value to = code.mul(pair, 2 * heads.padded);
  for (int64_t c = 0; c < kHalves && column + c < heads.padded; c += kLanes)
    code.store(interleave(code, even, odd, c), rows,
               code.add(to, 2 * (column + c)));
}

void attention::gatherTwo(Code &code, const AttentionShape &shape,
                          const Heads &heads, Value base, Value first, Value r,
                          Value elements, Value rows) {
  VectorType type = halvesOf(code, kHalves);
  Value pair = arith::ShRUIOp::create(code, r, code.i64(1));
  for (int64_t column = 0; column < heads.width; column += kHalves) {
    SmallVector<Value> both;
    for (int64_t k = 0; k < 2; ++k) {
      Value row = code.add(r, k);
      Value from = rowOffset(code, shape, heads, code.add(first, row));
      both.push_back(code.load(type, base, code.add(from, column),
                               halvesMask(code, heads, column)));
      if (elements)
        code.store(both.back(), elements,
                   code.add(code.mul(row, 2 * heads.words), column));
    }
    if (rows)
      interleaveRows(code, heads, both[0], both[1], column, pair, rows);
  }
  for (int64_t k = 0; k < 2; ++k)
    fetchRow(code, shape, {heads, base, code.add(first, shape.block)},
             code.add(r, k));
}

void attention::makeRows(Code &code, const AttentionShape &shape,
                         const Heads &heads, Value elements, Value rows) {
  if (!shape.hasBF16x2)
    return;
  VectorType type = halvesOf(code, kHalves);
  code.loop(code.i64(0), code.i64(shape.block / 2), 1, [&](Value pair) {
    Value from = code.mul(pair, 4 * heads.words);
    for (int64_t column = 0; column < heads.padded; column += kHalves) {
      Value at = code.add(from, column);
      Value even = code.load(type, elements, at);
      Value odd = code.load(type, elements, code.add(at, 2 * heads.words));
      interleaveRows(code, heads, even, odd, column, pair, rows);
    }
  });
}

Value attention::roundBoth(Code &code, ValueRange numbers) {
  auto type = VectorType::get({kHalves}, code.getBF16Type());
  Value both = LLVM::CallIntrinsicOp::create(
                   code, type,
                   code.getStringAttr("llvm.x86.avx512bf16.cvtne2ps2bf16.512"),
                   ValueRange{numbers[1], numbers[0]})
                   .getResult(0);
  return arith::BitcastOp::create(code, halvesOf(code, kHalves), both);
}

void attention::roundRow(Code &code, const Heads &heads, Value sums, Value from,
                         Value times, Value base, Value to) {
  for (int64_t column = 0; column < heads.width; column += kHalves) {
    SmallVector<Value> numbers(2, code.splatF32(0));
    for (int64_t k = 0; k < 2 && column + k * kLanes < heads.padded; ++k) {
      numbers[k] = loadLanes(code, sums, code.add(from, column + k * kLanes));
      if (times)
        numbers[k] = code.mul(numbers[k], times);
    }
    code.store(roundBoth(code, numbers), base, code.add(to, column),
               halvesMask(code, heads, column));
  }
}
