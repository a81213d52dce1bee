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

std::array<Value, 4> codegen::emitPhilox(Code &code, const RandomStream &random,
                                         Value block) {
  auto like = [&](Value scalar) {
    return isa<VectorType>(block.getType()) ? code.splat(scalar) : scalar;
  };
  Value c0 = block, c1 = like(random.stream), c2 = like(random.step),
        c3 = like(random.microBatch);
  Value k0 = random.seedLow, k1 = random.seedHigh;
  auto mix = [&](Value a, Value b, Value key) -> Value {
    return arith::XOrIOp::create(code, arith::XOrIOp::create(code, a, b),
                                 like(key));
  };
  Value m0 = like(word(code, 0xD2511F53u));
  Value m1 = like(word(code, 0xCD9E8D57u));
  for (int round = 0; round < 10; ++round) {
    auto p0 = arith::MulUIExtendedOp::create(code, m0, c0);
    auto p1 = arith::MulUIExtendedOp::create(code, m1, c2);
    c0 = mix(p1.getHigh(), c1, k0);
    c1 = p1.getLow();
    c2 = mix(p0.getHigh(), c3, k1);
    c3 = p0.getLow();
    k0 = code.add(k0, word(code, 0x9E3779B9u));
    k1 = code.add(k1, word(code, 0xBB67AE85u));
  }
  return {c0, c1, c2, c3};
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

std::array<Value, 4>
codegen::emitWordsOfRun(Code &code, const RandomStream &random, Value first) {
  Type i32 = code.getI32Type();
  Value two = code.scalar(first.getType(), 2);
  Value block = code.cast(arith::ShRUIOp::create(code, first, two), i32);
  auto drawn =
      emitPhilox(code, random, code.add(code.splat(block), code.iota(i32)));
  // Lane 4 j + k of vector v is word k of block 4 v + j.
  std::array<Value, 4> words;
  for (int64_t v = 0; v < 4; ++v) {
    auto interleave = [&](Value even, Value odd) -> Value {
      SmallVector<int64_t> lanes;
      for (int64_t j = 4 * v; j < 4 * v + 4; ++j)
        lanes.append({j, kLanes + j});
      return vector::ShuffleOp::create(code, even, odd, lanes);
    };
    SmallVector<int64_t> pairs;
    for (int64_t j = 0; j < 8; j += 2)
      pairs.append({j, j + 1, 8 + j, 8 + j + 1});
    words[v] = vector::ShuffleOp::create(code, interleave(drawn[0], drawn[1]),
                                         interleave(drawn[2], drawn[3]), pairs);
  }
  return words;
}

Dropout::Dropout(double rate)
    : threshold(uint32_t(std::min(std::round(rate * 0x1p32), 0x1p32 - 1))),
      factor(float(1 / (1 - rate))) {}

Value Dropout::emit(Code &code, Value words) const {
  Value keep = arith::CmpIOp::create(code, arith::CmpIPredicate::uge, words,
                                     code.splat(word(code, threshold)));
  return code.select(keep, code.splatF32(factor), code.splatF32(0));
}
