//===- Philox.cpp - Random words for 16 lanes -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Codegen/Common/Philox.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <cmath>

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

static Value word(Code &code, uint32_t value) {
  return arith::ConstantOp::create(code, code.getI32IntegerAttr(value));
}

RandomStream RandomStream::load(Code &code, const Buffers &kernel, Value rng,
                                int64_t stream) {
  auto at = [&](int64_t index) {
    return code.load(code.getI32Type(), rng, code.i64(index));
  };
  Value id = code.load(code.getI64Type(), kernel.ids, code.i64(stream));
  return {at(0), at(1), at(2), at(3), code.cast(id, code.getI32Type())};
}

/// The ten rounds. `like` makes of a scalar i32 what `block` is, `multiply` the
/// high and the low half of the product of a counter with a constant.
static std::array<Value, 4>
emitRounds(Code &code, const RandomStream &random, Value block,
           function_ref<Value(Value)> like,
           function_ref<std::pair<Value, Value>(uint32_t, Value)> multiply) {
  Value c0 = block, c1 = like(random.stream), c2 = like(random.step),
        c3 = like(random.microBatch);
  Value k0 = random.seedLow, k1 = random.seedHigh;
  auto mix = [&](Value a, Value b, Value key) -> Value {
    return arith::XOrIOp::create(code, arith::XOrIOp::create(code, a, b),
                                 like(key));
  };
  for (int round = 0; round < 10; ++round) {
    auto [high0, low0] = multiply(0xD2511F53u, c0);
    auto [high1, low1] = multiply(0xCD9E8D57u, c2);
    c0 = mix(high1, c1, k0);
    c1 = low1;
    c2 = mix(high0, c3, k1);
    c3 = low0;
    k0 = code.add(k0, word(code, 0x9E3779B9u));
    k1 = code.add(k1, word(code, 0xBB67AE85u));
  }
  return {c0, c1, c2, c3};
}

//===----------------------------------------------------------------------===//
// Vectors of a CPU
//===----------------------------------------------------------------------===//

// It multiplies lanes of 64 bits. So words of 32 bits stay in the low halves of
// such lanes for all rounds: taking them apart and putting them together again
// for each product takes longer than the products. High halves may be anything.

static constexpr int64_t kHalf = kLanes / 2;

static VectorType getLongType(Code &code) {
  return VectorType::get({kHalf}, code.getI64Type());
}
static Value splatLong(Code &code, int64_t value) {
  return arith::ConstantOp::create(
      code,
      DenseElementsAttr::get(getLongType(code), code.getI64IntegerAttr(value)));
}
static Value asWords(Code &code, Value longs) {
  return vector::BitCastOp::create(code, code.lanesOf(code.getI32Type()),
                                   longs);
}
static Value asLongs(Code &code, Value words) {
  return vector::BitCastOp::create(code, getLongType(code), words);
}

/// Words: the low halves of `even` and of `odd`, in turn. (By shifts, LLVM
/// would see that no high halves are needed, and so take another product.)
static Value joinHalves(Code &code, Value even, Value odd) {
  SmallVector<int64_t> lanes;
  for (int64_t lane = 0; lane < kLanes; lane += 2)
    llvm::append_values(lanes, lane, kLanes + lane);
  return vector::ShuffleOp::create(code, asWords(code, even),
                                   asWords(code, odd), lanes);
}

/// The words of the blocks in the low halves of lanes of 64 bits.
static std::array<Value, 4>
emitLongPhilox(Code &code, const RandomStream &random, Value blocks) {
  Value low = splatLong(code, 0xFFFFFFFF);
  // Not by a shift, which waits for the unit that multiplies.
  SmallVector<int64_t> highHalves;
  for (int64_t lane = 1; lane < kLanes; lane += 2)
    highHalves.append(2, lane);
  // In both halves, for the same reason.
  auto like = [&](Value scalar) { return asLongs(code, code.splat(scalar)); };
  auto multiply = [&](uint32_t m, Value c) -> std::pair<Value, Value> {
    Value counter = arith::AndIOp::create(code, c, low);
    Value product = arith::MulIOp::create(code, counter, splatLong(code, m));
    Value words = asWords(code, product);
    Value high = vector::ShuffleOp::create(code, words, words, highHalves);
    return {asLongs(code, high), product};
  };
  return emitRounds(code, random, blocks, like, multiply);
}

/// Of lanes of 32 bits, the even ones and the odd ones.
static std::array<Value, 4>
emitPhiloxOfLanes(Code &code, const RandomStream &random, Value blocks) {
  Value even = asLongs(code, blocks);
  Value odd = arith::ShRUIOp::create(code, even, splatLong(code, 32));
  auto evens = emitLongPhilox(code, random, even);
  auto odds = emitLongPhilox(code, random, odd);
  return {
      joinHalves(code, evens[0], odds[0]), joinHalves(code, evens[1], odds[1]),
      joinHalves(code, evens[2], odds[2]), joinHalves(code, evens[3], odds[3])};
}

std::array<Value, 4>
codegen::emitWordsOfRun(Code &code, const RandomStream &random, Value first) {
  Value two = code.scalar(first.getType(), 2);
  Value block = arith::ShRUIOp::create(code, first, two);
  Value all = vector::BroadcastOp::create(code, getLongType(code), block);
  std::array<Value, 4> words;
  for (int64_t half = 0; half < 2; ++half) {
    // Lanes 2 j and 2 j + 1 have blocks j and j + 4: then those that belong
    // side by side are in even lanes of four vectors, or in odd ones.
    SmallVector<int64_t> numbers;
    for (int64_t j = 0; j < kHalf / 2; ++j)
      llvm::append_values(numbers, half * kHalf + j,
                          half * kHalf + kHalf / 2 + j);
    Value offsets = arith::ConstantOp::create(
        code, DenseElementsAttr::get(getLongType(code), ArrayRef(numbers)));
    auto drawn = emitLongPhilox(code, random, code.add(all, offsets));
    Value pairs0 = asLongs(code, joinHalves(code, drawn[0], drawn[1]));
    Value pairs1 = asLongs(code, joinHalves(code, drawn[2], drawn[3]));
    for (int64_t odd = 0; odd < 2; ++odd) {
      SmallVector<int64_t> lanes;
      for (int64_t j = odd; j < kHalf; j += 2)
        llvm::append_values(lanes, j, kHalf + j);
      words[2 * half + odd] =
          asWords(code, vector::ShuffleOp::create(code, pairs0, pairs1, lanes));
    }
  }
  return words;
}

//===----------------------------------------------------------------------===//
// Any numbers of lanes
//===----------------------------------------------------------------------===//

std::array<Value, 4> codegen::emitPhilox(Code &code, const RandomStream &random,
                                         Value block) {
  bool isVector = isa<VectorType>(block.getType());
  if (isVector && code.lanes == kLanes)
    return emitPhiloxOfLanes(code, random, block);
  auto like = [&](Value scalar) {
    return isVector ? code.splat(scalar) : scalar;
  };
  auto multiply = [&](uint32_t m, Value c) -> std::pair<Value, Value> {
    Value factor = like(word(code, m));
    auto product = arith::MulUIExtendedOp::create(code, factor, c);
    return {product.getHigh(), product.getLow()};
  };
  return emitRounds(code, random, block, like, multiply);
}

/// The blocks of `elements`, as the 32 bits that a counter has for them.
static Value blocksOf(Code &code, Value elements) {
  Value two = code.splat(code.scalar(getElementTypeOrSelf(elements), 2));
  Value blocks = arith::ShRUIOp::create(code, elements, two);
  return code.cast(blocks, code.lanesOf(code.getI32Type()));
}

Value codegen::emitWords(Code &code, const RandomStream &random,
                         Value elements) {
  auto drawn = emitPhilox(code, random, blocksOf(code, elements));
  Type type = getElementTypeOrSelf(elements);
  Value position =
      arith::AndIOp::create(code, elements, code.splat(code.scalar(type, 3)));
  Value words = drawn[3];
  for (int64_t k = 0; k < 3; ++k) {
    Value isIt = arith::CmpIOp::create(code, arith::CmpIPredicate::eq, position,
                                       code.splat(code.scalar(type, k)));
    words = code.select(isIt, drawn[k], words);
  }
  return words;
}

Value codegen::emitWordsOfBlocks(Code &code, const RandomStream &random,
                                 Value first) {
  Type i32 = code.getI32Type();
  Value two = code.scalar(first.getType(), 2);
  Value block = code.cast(arith::ShRUIOp::create(code, first, two), i32);
  SmallVector<Value> words;
  for (int64_t k = 0; k < code.lanes / 4; ++k)
    llvm::append_range(
        words, emitPhilox(code, random,
                          k == 0 ? block : code.add(block, word(code, k))));
  return vector::FromElementsOp::create(code, code.lanesOf(i32), words);
}

Dropout::Dropout(double rate)
    : threshold(uint32_t(std::min(std::round(rate * 0x1p32), 0x1p32 - 1))),
      factor(float(1 / (1 - rate))) {}

Value Dropout::emit(Code &code, Value words) const {
  Value keep = arith::CmpIOp::create(code, arith::CmpIPredicate::uge, words,
                                     code.splat(word(code, threshold)));
  return code.select(keep, code.splatF32(factor), code.splatF32(0));
}
