//===- EmitMicroKernels.cpp - Tiles of matrix products ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/ABI/Model.h"
#include "reprise/Codegen/CPU/MicroKernels.h"
#include "reprise/Codegen/CPU/Passes.h"
#include "reprise/Codegen/Common/Code.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

namespace reprise::codegen {
#define GEN_PASS_DEF_EMITMICROKERNELS
#include "reprise/Codegen/CPU/Passes.h.inc"
} // namespace reprise::codegen

// Tiles that fill the registers and leave room for a row of B and a broadcast:
// 6 x 16 is 12 of 16 registers of 8 lanes, 12 x 32 is 24 of 32 of 16 lanes.
// Those of 8 rows are for what is left of the rows.
static constexpr MicroKernel kMicroKernels[] = {
    {6, 16, 0, "x86-64-v3"},
    {12, 32, 1, "x86-64-v4"},
    {8, 32, 1, "x86-64-v4"},
    {12, 32, 2, "x86-64-v4", REPRISE_BF16},
    {8, 32, 2, "x86-64-v4", REPRISE_BF16},
};

static constexpr bool dividePanels() {
  for (const MicroKernel &kernel : kMicroKernels)
    if (REPRISE_GEMM_ROW_ALIGN % kernel.rows != 0 ||
        REPRISE_GEMM_COL_ALIGN % kernel.cols != 0)
      return false;
  return true;
}
static_assert(dividePanels(), "panels are padded to a multiple of every tile");

ArrayRef<MicroKernel> codegen::getMicroKernels() { return kMicroKernels; }

std::string MicroKernel::packSymbol() const { return symbol() + "_pack"; }

std::string MicroKernel::symbol() const {
  StringRef suffix = hasPairs() ? "bf16" : StringRef(cpu).take_back(2);
  return "reprise_micro_" + std::to_string(rows) + "x" + std::to_string(cols) +
         "_" + suffix.str();
}

namespace {
/// Where the panels come from, in words of four bytes: f32 or a pair of bf16.
/// With `packed`, B is not packed yet: its rows are `ldb` elements apart, and a
/// copy goes there.
struct Panels {
  Value a, b, ldb, packed;
};
} // namespace

/// For each lane of two words `sum + x * y` of f32, or of pairs the odd product
/// and then the even one.
static Value emitMultiplyAdd(Code &code, const MicroKernel &tile, Value x,
                             Value y, Value sum) {
  if (!tile.hasPairs())
    return code.fma(x, y, sum);
  return LLVM::CallIntrinsicOp::create(
             code, sum.getType(),
             code.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"),
             ValueRange{sum, x, y})
      .getResult(0);
}

/// Adds the outer products of steps p, p + 1, ... p + unroll - 1 to the tile.
static SmallVector<Value> emitSteps(Code &code, const MicroKernel &tile,
                                    const Panels &panels, Value p,
                                    int64_t unroll, ValueRange sums) {
  SmallVector<Value> next(sums);
  Type word = tile.hasPairs() ? Type(code.getI32Type()) : code.getF32Type();
  auto operand = [&](Value words) -> Value {
    if (!tile.hasPairs())
      return words;
    auto pairs = VectorType::get({2 * kLanes}, code.getBF16Type());
    return vector::BitCastOp::create(code, pairs, words);
  };
  for (int64_t step = 0; step < unroll; ++step) {
    Value at = code.add(p, step);
    Value aRow = code.mul(at, tile.rows), packedRow = code.mul(at, tile.cols);
    Value bRow = panels.packed ? code.mul(at, panels.ldb) : packedRow;
    SmallVector<Value> bs;
    for (int64_t c = 0; c < tile.cols; c += kLanes) {
      Value words = code.load(code.lanesOf(word), panels.b, code.add(bRow, c));
      if (panels.packed)
        code.store(words, panels.packed, code.add(packedRow, c));
      bs.push_back(operand(words));
    }
    unsigned sum = 0;
    for (int64_t r = 0; r < tile.rows; ++r) {
      Value x =
          operand(code.splat(code.load(word, panels.a, code.add(aRow, r))));
      for (Value y : bs) {
        next[sum] = emitMultiplyAdd(code, tile, x, y, next[sum]);
        ++sum;
      }
    }
  }
  return next;
}

namespace {
/// Rows that are fetched, one for each group of steps.
struct FetchedRows {
  Value start;                ///< The step at which they begin.
  Value first, stride, count; ///< `stride` in bytes.
  int64_t bytes;              ///< of a row
  bool isWritten;
};
} // namespace

/// Fetches the row that belongs to the steps from `p` on; returns where the
/// next one is: the first before the start, the last after the end.
static Value emitFetch(Code &code, const FetchedRows &rows, Value row, Value p,
                       int64_t unroll) {
  constexpr int64_t kLine = 64;
  for (int64_t at = 0; at < rows.bytes; at += kLine)
    // What is written goes to the first cache, the rest to the second.
    LLVM::Prefetch::create(
        code, code.address(row, code.getI8Type(), code.i64(at)),
        /*rw=*/rows.isWritten, /*hint=*/rows.isWritten ? 3 : 2, /*cache=*/1);
  Value end = code.add(rows.start, code.mul(rows.count, unroll));
  Value isAfter =
      arith::CmpIOp::create(code, arith::CmpIPredicate::sge, p, rows.start);
  Value isBefore = arith::CmpIOp::create(code, arith::CmpIPredicate::slt,
                                         code.add(p, unroll), end);
  Value moves = arith::AndIOp::create(code, isAfter, isBefore);
  return code.address(row, code.getI8Type(),
                      code.select(moves, rows.stride, code.i64(0)));
}

/// Writes the tile to its place in C: what is there plus `alpha` times the
/// sums, or these alone; plus a row of bias.
static void emitStores(Code &code, const MicroKernel &tile, ValueRange sums,
                       Value c, Value ldc, Value alpha, Value bias, bool adds) {
  Value factor = code.splat(alpha);
  VectorType lanes = code.lanesOf(code.getF32Type());
  SmallVector<Value> places, values;
  for (int64_t r = 0; r < tile.rows; ++r)
    for (int64_t j = 0; j < tile.cols; j += kLanes)
      places.push_back(code.add(code.mul(ldc, r), j));
  // All loads come before all stores: rows of C are often a multiple of 4 KiB
  // apart, where a load waits for each store whose address ends like its own.
  for (auto [index, at] : llvm::enumerate(places)) {
    Value value = code.mul(factor, sums[index]);
    if (adds)
      value = code.add(code.load(lanes, c, at), value);
    if (bias) {
      int64_t col = int64_t(index) * kLanes % tile.cols;
      value = code.add(value, code.load(lanes, bias, code.i64(col)));
    }
    values.push_back(value);
  }
  for (auto [at, value] : llvm::zip(places, values))
    code.store(value, c, at);
}

/// Groups of steps that pass between the fetch of the last row of C and its
/// use.
static constexpr int64_t kTimeToFetch = 4;

/// `packs`: the form that packs B.
static void emitMicroKernel(Code &code, const MicroKernel &tile, bool packs) {
  auto pointer = LLVM::LLVMPointerType::get(code.getContext());
  Type i64 = code.getI64Type(), i32 = code.getI32Type(),
       f32 = code.getF32Type();
  SmallVector<Type> arguments{pointer, pointer, i64,     pointer, i64, f32,
                              i32,     pointer, pointer, i64,     i64};
  if (packs)
    arguments.append({i64, pointer});
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(code.getContext()), arguments);
  auto function = LLVM::LLVMFuncOp::create(
      code, packs ? tile.packSymbol() : tile.symbol(), type);
  function.setTargetCpu(StringRef(tile.cpu));
  if (tile.isa > 0) {
    // LLVM keeps to 256 bits unless it is told twice.
    function.setPreferVectorWidth(StringRef("512"));
    function.setPassthroughAttr(code.getArrayAttr(
        {code.getStrArrayAttr({"min-legal-vector-width", "512"})}));
  }
  if (tile.hasPairs()) {
    StringRef feature = "+avx512bf16";
    function.setTargetFeaturesAttr(
        LLVM::TargetFeaturesAttr::get(code.getContext(), ArrayRef(feature)));
  }
  OpBuilder::InsertionGuard guard(code);
  Block *entry = function.addEntryBlock(code);
  code.setInsertionPointToStart(entry);
  Panels panels = {entry->getArgument(0), entry->getArgument(1), {}, {}};
  if (packs)
    panels.ldb = entry->getArgument(11), panels.packed = entry->getArgument(12);
  Value k = entry->getArgument(2), c = entry->getArgument(3),
        ldc = entry->getArgument(4), alpha = entry->getArgument(5),
        addToC = entry->getArgument(6), bias = entry->getArgument(7);

  SmallVector<Value> sums(tile.rows * tile.cols / kLanes, code.splatF32(0));
  constexpr int64_t unroll = 4;
  Value four = code.i64(unroll);
  Value whole = code.mul(arith::DivSIOp::create(code, k, four), four);
  // C is fetched shortly before it is needed, so that it finds a place.
  Value start = code.sub(whole, code.i64((tile.rows + kTimeToFetch) * unroll));
  const FetchedRows fetched[] = {
      {start, c, code.mul(ldc, 4), code.i64(tile.rows), 4 * tile.cols, true},
      {code.i64(0), entry->getArgument(8), entry->getArgument(9),
       entry->getArgument(10), 128, false}};
  size_t numSums = sums.size();
  for (const FetchedRows &rows : fetched)
    sums.push_back(rows.first);
  sums = code.loop(
      code.i64(0), whole, unroll, sums, [&](Value p, ValueRange carried) {
        ValueRange at = carried.drop_front(numSums);
        SmallVector<Value> ahead;
        for (auto [rows, row] : llvm::zip(fetched, at))
          ahead.push_back(emitFetch(code, rows, row, p, unroll));
        SmallVector<Value> next = emitSteps(code, tile, panels, p, unroll,
                                            carried.take_front(numSums));
        llvm::append_range(next, ahead);
        return next;
      });
  sums.truncate(numSums);
  sums = code.loop(whole, k, 1, sums, [&](Value p, ValueRange carried) {
    return emitSteps(code, tile, panels, p, 1, carried);
  });
  Value adds = arith::CmpIOp::create(code, arith::CmpIPredicate::ne, addToC,
                                     code.scalar(i32, 0));
  Value hasBias = LLVM::ICmpOp::create(code, LLVM::ICmpPredicate::ne, bias,
                                       LLVM::ZeroOp::create(code, pointer));
  auto store = [&](bool add) {
    code.when(
        hasBias,
        [&] { emitStores(code, tile, sums, c, ldc, alpha, bias, add); },
        [&] { emitStores(code, tile, sums, c, ldc, alpha, Value(), add); });
  };
  code.when(adds, [&] { store(true); }, [&] { store(false); });
  LLVM::ReturnOp::create(code, ValueRange());
}

namespace {
struct EmitMicroKernels
    : codegen::impl::EmitMicroKernelsBase<EmitMicroKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    Code code(module.getLoc(), module.getContext());
    code.setInsertionPointToEnd(module.getBody());
    for (const MicroKernel &tile : kMicroKernels)
      for (bool packs : {false, true})
        if (!packs || !tile.hasPairs())
          emitMicroKernel(code, tile, packs);
  }
};
} // namespace
