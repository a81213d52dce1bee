//===- EmitMicroKernels.cpp - Tiles of GEMMs --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AmxRegisters.h"
#include "Kernel.h"
#include "MicroKernelParts.h"
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
// Those of 4 and of 8 rows are for what is left of the rows. The tile of AMX is
// four of the processor's, which leaves two for A and two for B: a load for
// each multiplication.
static constexpr MicroKernel kMicroKernels[] = {
    {6, 16, REPRISE_ISA_V3, "x86-64-v3"},
    {4, 16, REPRISE_ISA_V3, "x86-64-v3"},
    {12, 32, REPRISE_ISA_V4, "x86-64-v4"},
    {8, 32, REPRISE_ISA_V4, "x86-64-v4"},
    {12, 32, REPRISE_ISA_AVX512_BF16, "x86-64-v4", REPRISE_BF16},
    {8, 32, REPRISE_ISA_AVX512_BF16, "x86-64-v4", REPRISE_BF16},
    {32, 32, REPRISE_ISA_AMX_BF16, "x86-64-v4", REPRISE_BF16},
};

static constexpr bool dividePanels() {
  for (const MicroKernel &kernel : kMicroKernels)
    if ((kernel.isAmx() ? REPRISE_GEMM_AMX_ROW_ALIGN : REPRISE_GEMM_ROW_ALIGN) %
                kernel.rows !=
            0 ||
        REPRISE_GEMM_COL_ALIGN % kernel.cols != 0)
      return false;
  return true;
}
static_assert(dividePanels(), "panels are padded to a multiple of every tile");

static constexpr bool haveBlocksOfSquares() {
  for (const MicroKernel &kernel : kMicroKernels)
    if (kernel.isa >= REPRISE_ISA_V4 &&
        (kernel.rows % REPRISE_GEMM_SQUARES_ROWS != 0 ||
         kernel.cols != REPRISE_GEMM_SQUARES_COLS))
      return false;
  return true;
}
static_assert(haveBlocksOfSquares(), "squares are summed tile by tile");

ArrayRef<MicroKernel> codegen::getMicroKernels() { return kMicroKernels; }

std::string MicroKernel::symbol() const {
  StringRef suffix = isAmx()       ? "amx"
                     : hasBF16x2() ? "bf16"
                                   : StringRef(cpu).take_back(2);
  return "reprise_micro_" + std::to_string(rows) + "x" + std::to_string(cols) +
         "_" + suffix.str();
}

/// Alpha times the sums. It is 1 for most GEMMs, which then do without as
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

/// What step `p` of the main loop does for later: fetches, and packs a row of
/// the next panel of B.
static void emitLookAhead(Code &code, const MicroKernel &tile,
                          const Fields &fields, ArrayRef<FetchedRows> fetched,
                          Value p) {
  for (const FetchedRows &rows : fetched)
    emitFetchOfStep(code, rows, p);
  Value row = arith::ShRUIOp::create(
      code, p, math::CountTrailingZerosOp::create(code, fetched.back().pace));
  Value isOne =
      arith::CmpIOp::create(code, arith::CmpIPredicate::slt, row,
                            fields.integer(offsetof(RepriseTile, aheadRows)));
  code.when(isOne, [&] {
    emitRowOfB(code, tile,
               {fields.pointer(offsetof(RepriseTile, aheadSource)),
                fields.integer(offsetof(RepriseTile, ldAhead))},
               fields.pointer(offsetof(RepriseTile, ahead)), row);
  });
}

/// Adds the first `whole` steps, a multiple of four, to the sums.
static SmallVector<Value> emitMainLoop(Code &code, const MicroKernel &tile,
                                       const Fields &fields, Panels panels,
                                       Value whole,
                                       ArrayRef<FetchedRows> fetched,
                                       ArrayRef<Value> sums) {
  Value pace = fetched.front().pace;
  for (const FetchedRows &rows : fetched.drop_front())
    pace = code.min(pace, rows.pace);
  Value between = code.sub(pace, code.i64(1));
  // A is packed a group of steps before it is used, if there are any. (The last
  // group is packed twice.)
  Value last = code.sub(whole, code.i64(kUnroll));
  code.when(
      arith::CmpIOp::create(code, arith::CmpIPredicate::sge, last, code.i64(0)),
      [&] { emitPackingOfA(code, tile, panels, code.i64(0)); });
  SmallVector<Value> first(sums);
  llvm::append_range(first, getFirstRows(code, tile, panels));
  SmallVector<Value> all = code.loop(
      code.i64(0), whole, kUnroll, first, [&](Value p, ValueRange carried) {
        // All but the multiply-adds is skipped mostly: an instruction that is
        // no part of them takes their place as often as not.
        Value rest = arith::AndIOp::create(code, p, between);
        code.when(arith::CmpIOp::create(code, arith::CmpIPredicate::eq, rest,
                                        code.i64(0)),
                  [&] { emitLookAhead(code, tile, fields, fetched, p); });
        emitPackingOfA(code, tile, panels,
                       code.min(code.add(p, kUnroll), last));
        panels.rows = carried.drop_front(sums.size());
        SmallVector<Value> next = emitSteps(code, tile, panels, p, kUnroll,
                                            carried.take_front(sums.size()));
        llvm::append_range(next, getNextRows(code, panels));
        return next;
      });
  all.resize(sums.size());
  return all;
}

/// The sums of a tile, from all its steps.
static SmallVector<Value> emitSums(Code &code, const MicroKernel &tile,
                                   const Fields &fields,
                                   ArrayRef<FetchedRows> fetched) {
  Value k = fields.integer(offsetof(RepriseTile, k));
  Value whole =
      code.mul(arith::DivSIOp::create(code, k, code.i64(kUnroll)), kUnroll);
  Panels panels = {Form::Packed,
                   fields.pointer(offsetof(RepriseTile, a)),
                   fields.pointer(offsetof(RepriseTile, b)),
                   {fields.pointer(offsetof(RepriseTile, source)),
                    fields.integer(offsetof(RepriseTile, ldSource))},
                   fields.pointer(offsetof(RepriseTile, packed)),
                   {}};
  Value form = fields.get(code.getI32Type(), offsetof(RepriseTile, form));
  auto isForm = [&](Form which) -> Value {
    return arith::CmpIOp::create(code, arith::CmpIPredicate::eq, form,
                                 code.scalar(code.getI32Type(), int(which)));
  };
  // A main loop for each form; all else there is once.
  using Values = SmallVector<Value>;
  auto emitForm = [&](Form which, Value steps, ArrayRef<Value> sums) -> Values {
    panels.form = which;
    return emitMainLoop(code, tile, fields, panels, steps, fetched, sums);
  };
  Values sums(tile.rows * tile.cols / kLanes, code.splatF32(0));
  sums = code.choose(
      isForm(Form::Packed), [&] { return emitForm(Form::Packed, whole, sums); },
      [&] {
        // Of no steps, not more branches: for three LLVM keeps sums in memory.
        auto emitIf = [&](Form which, ValueRange sums) {
          Value steps = code.select(isForm(which), whole, code.i64(0));
          return emitForm(which, steps, Values(sums));
        };
        Values rest = emitIf(Form::CopiesA, emitIf(Form::ReadsA, sums));
        if (packsByWords(tile))
          return emitIf(Form::TransposesA, rest);
        return code.choose(
            isForm(Form::TransposesA),
            [&] { return emitForm(Form::TransposesA, whole, rest); },
            [&] { return rest; });
      });
  panels.form = Form::Packed;
  return code.loop(whole, k, 1, sums, [&](Value p, ValueRange carried) {
    return emitSteps(code, tile, panels, p, 1, carried);
  });
}

/// `mayRound`: whether results may be of bf16.
static void emitMicroKernel(Code &code, const MicroKernel &tile,
                            bool mayRound) {
  auto pointer = LLVM::LLVMPointerType::get(code.getContext());
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(code.getContext()), {pointer});
  auto function = LLVM::LLVMFuncOp::create(code, tile.symbol(), type);
  function.setTargetCpu(StringRef(tile.cpu));
  if (tile.isa >= REPRISE_ISA_V4)
    setWide(function);
  if (tile.isAmx())
    setFeatures(function, kAmxFeatures);
  else if (tile.hasBF16x2())
    setFeatures(function, {"+avx512bf16"});
  OpBuilder::InsertionGuard guard(code);
  Block *entry = function.addEntryBlock(code);
  code.setInsertionPointToStart(entry);
  Fields fields = {code, entry->getArgument(0)};
  if (tile.isAmx()) {
    emitAmxTile(code, tile, fields);
  } else {
    SmallVector<Value> sums =
        emitSums(code, tile, fields, getFetchedRows(code, tile, fields));
    sums = emitScaling(code, fields, sums);
    emitEnd(code, tile, fields, code.i64(0), sums, mayRound);
  }
  LLVM::ReturnOp::create(code, ValueRange());
}

/// Whether a GEMM of `module` is of bf16, or there is none to tell.
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
      if (mayRound || !tile.hasBF16x2())
        emitMicroKernel(code, tile, mayRound);
  }
};
} // namespace
