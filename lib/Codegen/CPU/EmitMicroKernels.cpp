//===- EmitMicroKernels.cpp - Tiles of matrix products ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "MicroKernelSteps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Codegen/CPU/Passes.h"
#include "reprise/Dialect/RT/RTOps.h"

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

std::string MicroKernel::symbol() const {
  StringRef suffix = hasPairs() ? "bf16" : StringRef(cpu).take_back(2);
  return "reprise_micro_" + std::to_string(rows) + "x" + std::to_string(cols) +
         "_" + suffix.str();
}

namespace {
/// The fields of a RepriseTile.
struct Fields {
  Code &code;
  Value tile;

  Value get(Type type, size_t offset) const {
    return code.load(
        type, code.address(tile, code.getI8Type(), code.i64(int64_t(offset))),
        code.i64(0));
  }
  Value pointer(size_t offset) const {
    return get(LLVM::LLVMPointerType::get(code.getContext()), offset);
  }
  Value integer(size_t offset) const { return get(code.getI64Type(), offset); }
};
} // namespace

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

/// Alpha times the sums. It is 1 for most products, which then do without as
/// many multiplications as half a step has, or of a short tile a hundredth.
static SmallVector<Value> emitScaling(Code &code, const Fields &fields,
                                      ValueRange sums) {
  Value alpha = fields.get(code.getF32Type(), offsetof(RepriseTile, alpha));
  Value scales = arith::CmpFOp::create(code, arith::CmpFPredicate::UNE, alpha,
                                       code.f32(1));
  return code.choose(
      scales,
      [&] {
        Value factor = code.splat(alpha);
        SmallVector<Value> scaled;
        for (Value sum : sums)
          scaled.push_back(code.mul(factor, sum));
        return scaled;
      },
      [&] { return SmallVector<Value>(sums); });
}

/// Writes the tile to its place: what is in C plus the sums, or these alone;
/// plus a row of bias; rounded or not.
static void emitStores(Code &code, const MicroKernel &tile,
                       const Fields &fields, ValueRange sums, bool adds,
                       bool hasBias, bool rounds) {
  VectorType lanes = code.lanesOf(code.getF32Type());
  Value c, ldc, bias;
  if (adds || !rounds) {
    c = fields.pointer(offsetof(RepriseTile, c));
    ldc = fields.integer(offsetof(RepriseTile, ldc));
  }
  if (hasBias)
    bias = fields.pointer(offsetof(RepriseTile, bias));
  auto placesOf = [&](Value stride) {
    SmallVector<Value> places;
    for (int64_t r = 0; r < tile.rows; ++r)
      for (int64_t j = 0; j < tile.cols; j += kLanes)
        places.push_back(code.add(code.mul(stride, r), j));
    return places;
  };
  SmallVector<Value> places, values;
  if (c)
    places = placesOf(ldc);
  // All loads come before all stores: rows of C are often a multiple of 4 KiB
  // apart, where a load waits for each store whose address ends like its own.
  for (auto [index, sum] : llvm::enumerate(sums)) {
    Value value = sum;
    if (adds)
      value = code.add(code.load(lanes, c, places[index]), value);
    if (bias) {
      int64_t col = int64_t(index) * kLanes % tile.cols;
      value = code.add(value, code.load(lanes, bias, code.i64(col)));
    }
    values.push_back(value);
  }
  if (rounds) {
    c = fields.pointer(offsetof(RepriseTile, rounded));
    places = placesOf(fields.integer(offsetof(RepriseTile, ldRounded)));
    // LLVM takes a vector apart where there is no instruction for it.
    VectorType narrow = code.lanesOf(code.getBF16Type());
    for (Value &value : values)
      value = tile.hasPairs()
                  ? Value(LLVM::FPTruncOp::create(code, narrow, value))
                  : Value(arith::TruncFOp::create(code, narrow, value));
  }
  for (auto [at, value] : llvm::zip(places, values))
    code.store(value, c, at);
}

/// Groups of steps that pass between the fetch of the last row of C and its
/// use.
static constexpr int64_t kTimeToFetch = 16;

/// The sums over the first `whole` steps, a multiple of four.
static SmallVector<Value> emitMainLoop(Code &code, const MicroKernel &tile,
                                       const Panels &panels, Value whole,
                                       ArrayRef<FetchedRows> fetched) {
  // Making pairs takes registers: LLVM runs out of them with more steps.
  bool makesPairs = panels.form == Form::PacksB && tile.hasPairs();
  const int64_t unroll = makesPairs ? 2 : kUnroll;
  SmallVector<Value> sums(tile.rows * tile.cols / kLanes, code.splatF32(0));
  size_t numSums = sums.size();
  for (const FetchedRows &rows : fetched)
    sums.push_back(rows.first);
  // A is packed a group of steps before it is used. (The last group is packed
  // twice.)
  Value last = code.sub(whole, code.i64(unroll));
  emitPackingOfA(code, tile, panels, code.i64(0));
  sums = code.loop(
      code.i64(0), whole, unroll, sums, [&](Value p, ValueRange carried) {
        ValueRange at = carried.drop_front(numSums);
        SmallVector<Value> ahead;
        for (auto [rows, row] : llvm::zip(fetched, at))
          ahead.push_back(emitFetch(code, rows, row, p, unroll));
        emitPackingOfA(code, tile, panels, code.min(code.add(p, unroll), last));
        SmallVector<Value> next = emitSteps(code, tile, panels, p, unroll,
                                            carried.take_front(numSums));
        llvm::append_range(next, ahead);
        return next;
      });
  sums.truncate(numSums);
  return sums;
}

/// `mayRound`: whether results may be of bf16.
static void emitMicroKernel(Code &code, const MicroKernel &tile,
                            bool mayRound) {
  auto pointer = LLVM::LLVMPointerType::get(code.getContext());
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(code.getContext()), {pointer});
  auto function = LLVM::LLVMFuncOp::create(code, tile.symbol(), type);
  function.setTargetCpu(StringRef(tile.cpu));
  if (tile.isa > 0)
    setWide(function);
  if (tile.hasPairs()) {
    StringRef feature = "+avx512bf16";
    function.setTargetFeaturesAttr(
        LLVM::TargetFeaturesAttr::get(code.getContext(), ArrayRef(feature)));
  }
  OpBuilder::InsertionGuard guard(code);
  Block *entry = function.addEntryBlock(code);
  code.setInsertionPointToStart(entry);
  Fields fields = {code, entry->getArgument(0)};
  Value k = fields.integer(offsetof(RepriseTile, k));
  auto isSet = [&](Value address) {
    return LLVM::ICmpOp::create(code, LLVM::ICmpPredicate::ne, address,
                                LLVM::ZeroOp::create(code, pointer));
  };
  // What the result takes the place of.
  Value rounded = fields.pointer(offsetof(RepriseTile, rounded));
  Value rounds = isSet(rounded);
  Value target =
      code.select(rounds, rounded, fields.pointer(offsetof(RepriseTile, c)));
  Value rowBytes = code.select(
      rounds, code.mul(fields.integer(offsetof(RepriseTile, ldRounded)), 2),
      code.mul(fields.integer(offsetof(RepriseTile, ldc)), 4));

  Value whole =
      code.mul(arith::DivSIOp::create(code, k, code.i64(kUnroll)), kUnroll);
  // C is fetched shortly before it is needed, so that it finds a place.
  Value start = arith::MaxSIOp::create(
      code, code.i64(0),
      code.sub(whole, code.i64((tile.rows + kTimeToFetch) * kUnroll)));
  const FetchedRows fetched[] = {
      {start, target, rowBytes, code.i64(tile.rows), 4 * tile.cols, true},
      {code.i64(0), fields.pointer(offsetof(RepriseTile, next)),
       fields.integer(offsetof(RepriseTile, nextStride)),
       fields.integer(offsetof(RepriseTile, nextRows)), 128, false}};
  Panels panels = {Form::Packed,
                   fields.pointer(offsetof(RepriseTile, a)),
                   fields.pointer(offsetof(RepriseTile, b)),
                   fields.pointer(offsetof(RepriseTile, source)),
                   fields.integer(offsetof(RepriseTile, ldSource)),
                   fields.pointer(offsetof(RepriseTile, packed))};
  Value form = fields.get(code.getI32Type(), offsetof(RepriseTile, form));
  // One main loop for each form; all else there is once.
  auto emitForms = [&](auto &self, ArrayRef<Form> forms) {
    auto emit = [&] {
      panels.form = forms.front();
      return emitMainLoop(code, tile, panels, whole, fetched);
    };
    if (forms.size() == 1)
      return emit();
    Value isFirst = arith::CmpIOp::create(
        code, arith::CmpIPredicate::eq, form,
        code.scalar(code.getI32Type(), double(forms.front())));
    return code.choose(isFirst, emit,
                       [&] { return self(self, forms.drop_front()); });
  };
  SmallVector<Value> sums = emitForms(
      emitForms, {Form::Packed, Form::PacksB, Form::PacksA, Form::TransposesA});
  panels.form = Form::Packed;
  sums = code.loop(whole, k, 1, sums, [&](Value p, ValueRange carried) {
    return emitSteps(code, tile, panels, p, 1, carried);
  });
  sums = emitScaling(code, fields, sums);
  Value adds = arith::CmpIOp::create(
      code, arith::CmpIPredicate::ne,
      fields.get(code.getI32Type(), offsetof(RepriseTile, addToC)),
      code.scalar(code.getI32Type(), 0));
  Value hasBias = isSet(fields.pointer(offsetof(RepriseTile, bias)));
  rounds = isSet(fields.pointer(offsetof(RepriseTile, rounded)));
  // Each of them or not: what a tile ends with has no branches.
  auto choose = [&](Value condition, auto emit) {
    code.when(condition, [&] { emit(true); }, [&] { emit(false); });
  };
  auto store = [&](bool rounding) {
    choose(adds, [&](bool adding) {
      choose(hasBias, [&](bool biased) {
        emitStores(code, tile, fields, sums, adding, biased, rounding);
      });
    });
  };
  if (mayRound)
    choose(rounds, store);
  else
    store(false);
  LLVM::ReturnOp::create(code, ValueRange());
}

/// Whether a product of `module` is of bf16, or there is none to tell.
static bool mayHaveBF16(ModuleOp module) {
  bool isAny = false, isBF16 = false;
  module.walk([&](rt::GemmOp gemm) {
    isAny = true;
    isBF16 |= getElementTypeOrSelf(gemm.getA().getType()).isBF16();
  });
  return !isAny || isBF16;
}

namespace {
struct EmitMicroKernels
    : codegen::impl::EmitMicroKernelsBase<EmitMicroKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    Code code(module.getLoc(), module.getContext());
    code.setInsertionPointToEnd(module.getBody());
    bool mayRound = mayHaveBF16(module);
    for (const MicroKernel &tile : kMicroKernels)
      if (mayRound || !tile.hasPairs())
        emitMicroKernel(code, tile, mayRound);
  }
};
} // namespace
