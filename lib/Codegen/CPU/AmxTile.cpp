//===- AmxTile.cpp - A tile of a GEMM by AMX ------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tile is two by two of the processor's, of 16 rows of 64 bytes each:
// registers 0 to 3 are its quarters, 4 and 5 two tiles of A, 6 and 7 two of B.
//
//===----------------------------------------------------------------------===//

#include "AmxRegisters.h"
#include "MicroKernelParts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

static constexpr int64_t kRows = AmxRegisters::kRows,
                         kRowBytes = AmxRegisters::kRowBytes;
/// Rows of words of a panel that a multiplication takes.
static constexpr int64_t kDepth = REPRISE_GEMM_AMX_DEPTH / 2;

namespace {
struct Registers : AmxRegisters {
  /// The four quarters of a tile of f32, in rows `stride` bytes apart.
  void callQuarters(StringRef name, Value base, Value stride) const {
    for (int64_t i = 0; i < 4; ++i) {
      Value row = code.mul(stride, i / 2 * kRows);
      call(name, {i},
           code.address(base, code.getI8Type(),
                        code.add(row, i % 2 * kRowBytes)),
           stride);
    }
  }
};
} // namespace

namespace {
/// The tile behind, whose sums go to memory while another is computed.
struct TileBehind {
  /// Rows for each step of another tile: a GEMM of as few as 256 values
  /// spreads them evenly.
  static constexpr int64_t kRowsOfStep = 4;

  TileBehind(Code &code, const MicroKernel &tile, Value behind)
      : code(code), tile(tile), fields{code, behind},
        sums(fields.pointer(offsetof(RepriseTile, sums))),
        c(fields.pointer(offsetof(RepriseTile, c))),
        ldc(fields.integer(offsetof(RepriseTile, ldc))),
        alpha(code.splat(
            fields.get(code.getF32Type(), offsetof(RepriseTile, alpha)))) {}

  /// What is carried from step to step: the next row, and the sums of squares
  /// of the columns of even rows, and of odd ones.
  SmallVector<Value> begin() const {
    SmallVector<Value> carried(1 + 2 * tile.cols / kLanes, code.splatF32(0));
    carried.front() = code.i64(0);
    return carried;
  }
  /// Writes the next rows, if there are any.
  SmallVector<Value> emitStep(ValueRange carried) const {
    Value isThere = arith::CmpIOp::create(code, arith::CmpIPredicate::slt,
                                          carried.front(), code.i64(tile.rows));
    return code.choose(
        isThere, [&] { return emitRows(carried); },
        [&] { return SmallVector<Value>(carried); });
  }
  /// Writes what is left.
  void emitRest(ValueRange carried) const {
    SmallVector<Value> chains =
        code.loop(carried.front(), code.i64(tile.rows), kRowsOfStep,
                  carried.drop_front(), [&](Value row, ValueRange chains) {
                    SmallVector<Value> all = {row};
                    llvm::append_range(all, chains);
                    all = emitRows(all);
                    return SmallVector<Value>(llvm::drop_begin(all));
                  });
    code.when(fields.isThere(offsetof(RepriseTile, squares)), [&] {
      code.store(code.sum(chains),
                 fields.pointer(offsetof(RepriseTile, squares)), code.i64(0));
    });
  }

private:
  SmallVector<Value> emitRows(ValueRange carried) const {
    SmallVector<Value> next(carried);
    VectorType lanes = code.lanesOf(code.getF32Type());
    for (int64_t r = 0; r < kRowsOfStep; ++r)
      for (int64_t col = 0; col < tile.cols; col += kLanes) {
        Value row = code.add(carried.front(), r);
        Value x =
            code.mul(alpha, code.load(lanes, sums,
                                      code.add(code.mul(row, tile.cols), col)));
        code.stream(x, c, code.add(code.mul(row, ldc), col));
        Value &chain = next[1 + r % 2 * tile.cols / kLanes + col / kLanes];
        chain = code.fma(x, x, chain);
      }
    next.front() = code.add(carried.front(), kRowsOfStep);
    return next;
  }

  Code &code;
  const MicroKernel &tile;
  Fields fields;
  Value sums, c, ldc, alpha;
};
} // namespace

/// Adds all steps to the quarters. Meanwhile fetches, or brings the tile behind
/// to memory.
static void emitSteps(Code &code, const MicroKernel &tile, const Fields &fields,
                      const Registers &registers, ArrayRef<FetchedRows> fetched,
                      const TileBehind *behind = nullptr) {
  Value a = fields.pointer(offsetof(RepriseTile, a));
  Value b = fields.pointer(offsetof(RepriseTile, b));
  Value k = fields.integer(offsetof(RepriseTile, k));
  SmallVector<Value> first = llvm::map_to_vector(
      fetched, [](const FetchedRows &rows) { return rows.first; });
  if (behind)
    first = behind->begin();
  auto emitStep = [&](Value p, ValueRange carried) {
    Value tileOfA = code.address(a, code.getI32Type(), code.mul(p, tile.rows));
    Value tileOfB = code.address(b, code.getI32Type(), code.mul(p, tile.cols));
    // A passes through L1 once, and should not push out B, which
    // stays for many tiles.
    for (int64_t i = 0; i < 2; ++i) {
      registers.call("tileloadd64", {6 + i},
                     registers.at(tileOfB, i * kRowBytes), 4 * tile.cols);
      registers.call("tileloaddt164", {4 + i},
                     registers.at(tileOfA, i * kRows * kRowBytes), kRowBytes);
    }
    SmallVector<Value> places(carried);
    for (int64_t step = 0; step < kDepth; step += kFetchSteps)
      for (auto [rows, place] : llvm::zip(fetched, places))
        place = emitFetch(code, rows, place, code.add(p, step));
    if (behind)
      places = behind->emitStep(carried);
    for (int64_t i = 0; i < 4; ++i)
      registers.call("tdpbf16ps", {i, 4 + i / 2, 6 + i % 2});
    return places;
  };
  SmallVector<Value> last = code.loop(code.i64(0), k, kDepth, first, emitStep);
  if (behind)
    behind->emitRest(last);
}

/// The steps with the tile behind, if there is one; or with what is fetched: C
/// and, if there is something, what comes next.
static void emitSteps(Code &code, const MicroKernel &tile, const Fields &fields,
                      const Registers &registers) {
  SmallVector<FetchedRows, 2> fetched = getFetchedRows(code, tile, fields);
  // C goes to L2, and from the start: what waits for memory in
  // the few buffers of L1 holds up A, which passes through them.
  // For the same reason one line of two: the cache fetches the neighbour.
  FetchedRows &c = fetched.front();
  c.start = code.i64(0);
  c.pace = code.i64(kFetchSteps);
  c.isWritten = false;
  c.bytes = kRowBytes;
  auto emit = [&](ArrayRef<FetchedRows> some) {
    return [&, some] { emitSteps(code, tile, fields, registers, some); };
  };
  code.when(
      fields.isThere(offsetof(RepriseTile, behind)),
      [&] {
        TileBehind behind(code, tile,
                          fields.pointer(offsetof(RepriseTile, behind)));
        emitSteps(code, tile, fields, registers, {}, &behind);
      },
      [&] {
        code.when(fields.isThere(offsetof(RepriseTile, next)), emit(fetched),
                  emit(c));
      });
}

/// Brings the quarters to C, by way of vectors; and, if it is wanted, the sum
/// of their squares: partial sums are of the columns of even rows, and of odd
/// ones.
static void emitVectorEnd(Code &code, const MicroKernel &tile,
                          const Fields &fields, const Registers &registers) {
  Value sums = code.scratch(tile.rows * tile.cols);
  registers.callQuarters("tilestored64", sums, code.i64(4 * tile.cols));
  // As many rows at a time as there are registers for.
  constexpr int64_t kSome = 8;
  VectorType lanes = code.lanesOf(code.getF32Type());
  const size_t numChains = 2 * tile.cols / kLanes;
  Value alpha =
      code.splat(fields.get(code.getF32Type(), offsetof(RepriseTile, alpha)));
  Value hasSquares = fields.isThere(offsetof(RepriseTile, squares));
  SmallVector<Value> chains(numChains, code.splatF32(0));
  chains = code.loop(
      code.i64(0), code.i64(tile.rows), kSome, chains,
      [&](Value row, ValueRange carried) {
        SmallVector<Value> scaled;
        for (int64_t at = 0; at < kSome * tile.cols; at += kLanes)
          scaled.push_back(code.mul(
              alpha,
              code.load(lanes, sums, code.add(code.mul(row, tile.cols), at))));
        SmallVector<Value> written =
            emitEnd(code, tile, fields, row, scaled, /*mayRound=*/true);
        auto add = [&] {
          SmallVector<Value> next(carried);
          for (auto [index, x] : llvm::enumerate(written))
            next[index % numChains] = code.fma(x, x, next[index % numChains]);
          return next;
        };
        return code.choose(hasSquares, add,
                           [&] { return SmallVector<Value>(carried); });
      });
  code.when(hasSquares, [&] {
    code.store(code.sum(chains), fields.pointer(offsetof(RepriseTile, squares)),
               code.i64(0));
  });
}

void codegen::emitAmxTile(Code &code, const MicroKernel &tile,
                          const Fields &fields) {
  Registers registers = {code};
  Value sums = fields.pointer(offsetof(RepriseTile, sums));
  Value strideOfSums = code.i64(4 * tile.cols);
  code.when(
      fields.isSet(offsetof(RepriseTile, continues)),
      [&] { registers.callQuarters("tileloadd64", sums, strideOfSums); },
      [&] {
        for (int64_t i = 0; i < 4; ++i)
          registers.call("tilezero", {i});
      });
  emitSteps(code, tile, fields, registers);
  auto store = [&](Value base, Value stride) {
    registers.callQuarters("tilestored64", base, stride);
  };
  code.when(
      fields.isSet(offsetof(RepriseTile, goesOn)),
      [&] { store(sums, strideOfSums); },
      [&] {
        code.when(
            fields.isSet(offsetof(RepriseTile, isPlain)),
            [&] {
              store(fields.pointer(offsetof(RepriseTile, c)),
                    code.mul(fields.integer(offsetof(RepriseTile, ldc)), 4));
            },
            [&] { emitVectorEnd(code, tile, fields, registers); });
      });
}
