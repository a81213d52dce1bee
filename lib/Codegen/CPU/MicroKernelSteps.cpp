//===- MicroKernelSteps.cpp - Steps of a GEMM's tile ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MicroKernelSteps.h"

#include "BF16x2.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

/// What nobody writes meanwhile; so it need not wait for a panel's stores.
static Value loadOperand(Code &code, Type type, Value base, Value offset) {
  return code.load(type, base, offset, /*mask=*/{}, /*aligned=*/1,
                   /*constant=*/true);
}

/// Copies words, of AVX2 by way of general registers: on a Zen 3 a store of a
/// vector takes the place of one or two multiply-adds, and one of a word of
/// none. (Volatile, for LLVM would make other vectors of them again.)
static void copyWords(Code &code, const MicroKernel &tile, Value from, Value to,
                      int64_t words) {
  for (int64_t word = 0, some; word < words; word += some) {
    const int64_t left = words - word;
    some = packsByWords(tile) ? std::min<int64_t>(left, 2) : left < 8 ? 4 : 8;
    Type type = packsByWords(tile)
                    ? Type(code.getIntegerType(32 * some))
                    : Type(VectorType::get({some}, code.getF32Type()));
    auto at = [&](Value base) {
      return code.address(base, code.getI32Type(), code.i64(word));
    };
    Value copied = LLVM::LoadOp::create(code, type, at(from), /*alignment=*/4,
                                        /*isVolatile=*/true);
    LLVM::StoreOp::create(code, copied, at(to), /*alignment=*/4,
                          /*isVolatile=*/true);
  }
}

static Type wordOf(Code &code, const MicroKernel &tile) {
  return tile.hasBF16x2() ? Type(code.getI32Type()) : code.getF32Type();
}

/// What rows of a matrix are made of.
static Type elementOf(Code &code, const MicroKernel &tile) {
  return tile.hasBF16x2() ? Type(code.getI16Type()) : code.getF32Type();
}

/// `count` words of row `p` of a panel, from the source's element `first` on:
/// one row of it or, of pairs, two, up to 64 bytes of each.
static SmallVector<Value> emitRowOfSource(Code &code, const MicroKernel &tile,
                                          const Source &source, Value p,
                                          int64_t first, int64_t count) {
  auto load = [&](Type element, Value row) {
    return loadOperand(code, VectorType::get({count}, element), source.data,
                       code.add(row, first));
  };
  if (!tile.hasBF16x2())
    return {load(code.getF32Type(), code.mul(p, source.ld))};
  Value row = code.mul(code.mul(p, 2), source.ld);
  Value even = load(code.getI16Type(), row);
  Value odd = load(code.getI16Type(), code.add(row, source.ld));
  SmallVector<Value> words;
  for (int64_t begin = 0, some; begin < count; begin += some) {
    some = std::min(count, kLanes);
    SmallVector<int64_t> order;
    for (int64_t i = begin; i < begin + some; ++i)
      order.append({i, count + i});
    words.push_back(vector::BitCastOp::create(
        code, VectorType::get({some}, wordOf(code, tile)),
        vector::ShuffleOp::create(code, even, odd, order)));
  }
  return words;
}

/// From rows of the depth: four lines at a time are transposed in registers.
static void emitTransposition(Code &code, const MicroKernel &tile,
                              const Panels &panels, Value p) {
  assert(tile.rows % 4 == 0 && "lines are transposed by four");
  Type word = wordOf(code, tile);
  Type element = elementOf(code, tile);
  int64_t perWord = tile.hasBF16x2() ? 2 : 1;
  auto four = VectorType::get({kUnroll}, word);
  auto loadLine = [&](int64_t line) -> Value {
    Value at = code.add(code.mul(panels.source.ld, line), code.mul(p, perWord));
    Value loaded =
        loadOperand(code, VectorType::get({kUnroll * perWord}, element),
                    panels.source.data, at);
    return vector::BitCastOp::create(code, four, loaded);
  };
  auto shuffle = [&](Value x, Value y, ArrayRef<int64_t> order) -> Value {
    return vector::ShuffleOp::create(code, x, y, order);
  };
  auto store = [&](Value words, int64_t step, int64_t line) {
    code.store(words, panels.packed,
               code.add(code.mul(code.add(p, step), tile.rows), line));
  };
  for (int64_t line = 0; line < tile.rows; line += 4) {
    Value lines[4], low[2], high[2];
    for (int64_t i = 0; i < 4; ++i)
      lines[i] = loadLine(line + i);
    for (int64_t i = 0; i < 2; ++i) {
      low[i] = shuffle(lines[2 * i], lines[2 * i + 1], {0, 4, 1, 5});
      high[i] = shuffle(lines[2 * i], lines[2 * i + 1], {2, 6, 3, 7});
    }
    store(shuffle(low[0], low[1], {0, 1, 4, 5}), 0, line);
    store(shuffle(low[0], low[1], {2, 3, 6, 7}), 1, line);
    store(shuffle(high[0], high[1], {0, 1, 4, 5}), 2, line);
    store(shuffle(high[0], high[1], {2, 3, 6, 7}), 3, line);
  }
}

/// Rows of A that are read from one address: from two more an address has room
/// for once and twice the distance between them.
static constexpr int64_t kRowsOfAddress = 3;

static bool readsRows(const MicroKernel &tile, Form form) {
  return form == Form::ReadsA ||
         (form == Form::TransposesA && packsByWords(tile));
}

/// Whether rows of A are multiplied by where they lie, and then copied.
static bool copiesRows(const MicroKernel &tile, Form form) {
  return form == Form::CopiesA && !tile.hasBF16x2();
}

SmallVector<Value> codegen::getFirstRows(Code &code, const MicroKernel &tile,
                                         const Panels &panels) {
  SmallVector<Value> rows;
  if (readsRows(tile, panels.form))
    for (int64_t row = 0; row < tile.rows; row += kRowsOfAddress)
      rows.push_back(code.address(panels.source.data, elementOf(code, tile),
                                  code.mul(panels.source.ld, row)));
  return rows;
}

/// LLVM does not see that these are the old ones and a number. If it did, it
/// would keep an address for each row, or find them one after the other, and
/// load all rows before it multiplies, with no registers for them.
SmallVector<Value> codegen::getNextRows(Code &code, const Panels &panels) {
  SmallVector<Value> rows;
  for (Value row : panels.rows) {
    Value next = code.address(row, code.getF32Type(), code.i64(kUnroll));
    rows.push_back(LLVM::InlineAsmOp::create(
                       code, next.getType(), next, /*asm_string=*/"",
                       /*constraints=*/"=r,0", /*has_side_effects=*/false,
                       /*is_align_stack=*/false, LLVM::TailCallKind::None,
                       LLVM::AsmDialectAttr(), ArrayAttr())
                       .getResult(0));
  }
  return rows;
}

/// Steps from asking for a row to copying it: as long as L3 takes.
static constexpr int64_t kCopiedAhead = 16;

/// Asks for what step `step` of A will be copied from, a row or two.
static void fetchCopied(Code &code, const MicroKernel &tile,
                        const Source &source, Value step) {
  Type element = elementOf(code, tile);
  const int64_t perWord = tile.hasBF16x2() ? 2 : 1;
  Value row = code.mul(code.mul(step, perWord), source.ld);
  for (int64_t i = 0; i < perWord; ++i, row = code.add(row, source.ld))
    LLVM::Prefetch::create(code, code.address(source.data, element, row),
                           /*rw=*/0, /*hint=*/3, /*cache=*/1);
}

/// Copies rows of the depth, two as one of pairs. (Twelve words at once are
/// less code, but a shuffle across a wide register: a GEMM took 1 % longer.)
static void emitPairs(Code &code, const MicroKernel &tile, const Panels &panels,
                      Value p) {
  for (int64_t step = 0; step < kUnroll; ++step) {
    Value at = code.add(p, step), to = code.mul(at, tile.rows);
    for (int64_t first = 0, some; first < tile.rows; first += some) {
      some = tile.rows - first >= 8 ? 8 : 4;
      Value words =
          emitRowOfSource(code, tile, panels.source, at, first, some).front();
      code.store(words, panels.packed, code.add(to, first));
    }
    fetchCopied(code, tile, panels.source, code.add(at, kCopiedAhead));
  }
}

void codegen::emitPackingOfA(Code &code, const MicroKernel &tile,
                             const Panels &panels, Value p) {
  if (panels.form == Form::TransposesA && !packsByWords(tile))
    emitTransposition(code, tile, panels, p);
  if (panels.form == Form::CopiesA && tile.hasBF16x2())
    emitPairs(code, tile, panels, p);
}

void codegen::emitRowOfB(Code &code, const MicroKernel &tile,
                         const Source &source, Value packed, Value row) {
  if (packsByWords(tile)) {
    Type word = wordOf(code, tile);
    return copyWords(
        code, tile, code.address(source.data, word, code.mul(row, source.ld)),
        code.address(packed, word, code.mul(row, tile.cols)), tile.cols);
  }
  SmallVector<Value> words;
  int64_t step = tile.hasBF16x2() ? 2 * kLanes : kLanes;
  for (int64_t c = 0; c < tile.cols; c += step)
    llvm::append_range(words,
                       emitRowOfSource(code, tile, source, row, c, step));
  Value at = code.mul(row, tile.cols);
  for (auto [index, value] : llvm::enumerate(words))
    code.store(value, packed, code.add(at, int64_t(index) * kLanes));
}

/// The place of an element of A that is not packed.
static std::pair<Value, int64_t> placeInSource(Code &code,
                                               const MicroKernel &tile,
                                               const Panels &panels, Value p,
                                               int64_t step, int64_t row) {
  Type element = elementOf(code, tile);
  if (readsRows(tile, panels.form))
    return {code.address(panels.rows[row / kRowsOfAddress], element,
                         code.mul(panels.source.ld, row % kRowsOfAddress)),
            step};
  return {code.address(panels.source.data, element,
                       code.mul(panels.source.ld, code.add(p, step))),
          row};
}

/// Packs step `p + step` of A, behind its use: what was copied before LLVM
/// would multiply by, and move it back to vectors for that.
static void emitCopyOfStep(Code &code, const MicroKernel &tile,
                           const Panels &panels, Value p, int64_t step) {
  Type word = wordOf(code, tile);
  Value to =
      code.address(panels.packed, word, code.mul(code.add(p, step), tile.rows));
  auto place = [&](int64_t row) {
    auto [line, at] = placeInSource(code, tile, panels, p, step, row);
    return code.address(line, word, code.i64(at));
  };
  if (copiesRows(tile, panels.form)) {
    fetchCopied(code, tile, panels.source, code.add(p, step + kCopiedAhead));
    copyWords(code, tile, place(0), to, tile.rows);
  } else if (panels.form == Form::TransposesA && packsByWords(tile)) {
    for (int64_t row = 0; row < tile.rows; ++row)
      copyWords(code, tile, place(row), code.address(to, word, code.i64(row)),
                1);
  }
}

SmallVector<Value> codegen::emitSteps(Code &code, const MicroKernel &tile,
                                      const Panels &panels, Value p,
                                      int64_t steps, ValueRange sums) {
  SmallVector<Value> next(sums);
  Type word = wordOf(code, tile);
  const bool isPacked =
      !readsRows(tile, panels.form) && !copiesRows(tile, panels.form);
  auto loadA = [&](int64_t step, int64_t row) -> Value {
    if (!isPacked) {
      auto [line, at] = placeInSource(code, tile, panels, p, step, row);
      return loadOperand(code, word, line, code.i64(at));
    }
    Value at = code.add(code.mul(code.add(p, step), tile.rows), row);
    return code.load(word, panels.a, at, /*mask=*/{}, /*aligned=*/1,
                     /*constant=*/panels.form == Form::Packed);
  };
  for (int64_t step = 0; step < steps; ++step) {
    Value bRow = code.mul(code.add(p, step), tile.cols);
    SmallVector<Value> bs;
    for (int64_t c = 0; c < tile.cols; c += kLanes)
      bs.push_back(code.load(code.lanesOf(word), panels.b, code.add(bRow, c)));
    unsigned sum = 0;
    for (int64_t r = 0; r < tile.rows; ++r) {
      Value x = code.splat(loadA(step, r));
      for (Value y : bs) {
        next[sum] = emitMultiplyAdd(code, x, y, next[sum]);
        ++sum;
      }
    }
    emitCopyOfStep(code, tile, panels, p, step);
  }
  return next;
}
