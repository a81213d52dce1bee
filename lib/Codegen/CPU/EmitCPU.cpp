//===- EmitCPU.cpp - Kernels become loops -----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AmxRegisters.h"
#include "BF16x2.h"
#include "Kernel.h"
#include "Prefetch.h"
#include "RTKernels.h"
#include "Segments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "reprise/Codegen/CPU/Passes.h"
#include "reprise/Codegen/Common/Expressions.h"
#include "reprise/Codegen/Common/Families.h"
#include "reprise/Codegen/Common/KernelBody.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

namespace reprise::codegen {
#define GEN_PASS_DEF_EMITCPU
#include "reprise/Codegen/CPU/Passes.h.inc"
} // namespace reprise::codegen

/// Opens the function that replaces `source` and loads the addresses of its
/// buffers.
static Kernel openKernel(Code &code, func::FuncOp source, StringRef name) {
  Kernel kernel;
  kernel.source = source;
  auto pointer = LLVM::LLVMPointerType::get(code.getContext());
  Type i64 = code.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(
      LLVM::LLVMVoidType::get(code.getContext()), {pointer, pointer, i64, i64});
  code.setInsertionPoint(source);
  kernel.function = LLVM::LLVMFuncOp::create(code, name, type);
  Block *entry = kernel.function.addEntryBlock(code);
  code.setInsertionPointToStart(entry);
  kernel.buffers = entry->getArgument(0);
  kernel.ids = entry->getArgument(1);
  kernel.begin = entry->getArgument(2);
  kernel.end = entry->getArgument(3);
  LLVM::ReturnOp::create(code, ValueRange());
  code.setInsertionPointToStart(entry);
  return kernel;
}

static void loadAddresses(Code &code, Kernel &kernel) {
  auto pointer = LLVM::LLVMPointerType::get(code.getContext());
  func::FuncOp source = kernel.source;
  unsigned inputs = source.getNumArguments(), outputs = source.getNumResults();
  for (unsigned i = 0; i < inputs + outputs; ++i)
    (i < inputs ? kernel.inputs : kernel.outputs)
        .push_back(code.load(pointer, kernel.buffers, code.i64(i)));
}

Value codegen::addressOf(Kernel &kernel, Operation *op, unsigned index) {
  auto root = cast<BlockArgument>(getRoot(op->getOperand(index)));
  return kernel.inputs[root.getArgNumber()];
}

static LogicalResult emitLoops(Code &code, Kernel &kernel) {
  if (isSegmented(kernel.source))
    return emitSegments(code, kernel);
  FailureOr<LoopNest> nest = LoopNest::get(kernel.source);
  if (failed(nest))
    return failure();
  switch (nest->shape) {
  case LoopNest::Shape::Flat:
    return emitFlat(code, *nest, kernel);
  case LoopNest::Shape::Rows:
    return emitRows(code, *nest, kernel);
  case LoopNest::Shape::Columns:
    return emitColumns(code, *nest, kernel);
  }
  llvm_unreachable("all shapes have an emitter");
}

void codegen::chooseLanes(Code &code, const LoopNest &nest,
                          const Kernel &kernel) {
  func::FuncOp source = kernel.source;
  SmallVector<Type> types(source.getArgumentTypes());
  llvm::append_range(types, source.getResultTypes());
  // What all rows share is shuffled for each: less than rows take that gain.
  llvm::erase_if(types, [&](Type type) {
    int64_t count = cast<ShapedType>(type).getNumElements();
    return count != nest.rows * nest.cols &&
           (count == 1 || count == nest.rows || count == nest.cols);
  });
  bool areRounded = llvm::all_of(
      types, [](Type type) { return getElementTypeOrSelf(type).isBF16(); });
  if (!kernel.avx512 || nest.cols < kSumVectors * kLanes || types.empty() ||
      !areRounded || drawsRandomWords(source))
    return;
  code.lanes = 2 * kLanes;
  code.evenFirst = true;
}

void codegen::setWide(LLVM::LLVMFuncOp function) {
  Builder b(function.getContext());
  // LLVM keeps to 256 bits unless it is told twice.
  function.setPreferVectorWidth(StringRef("512"));
  function.setPassthroughAttr(
      b.getArrayAttr({b.getStrArrayAttr({"min-legal-vector-width", "512"})}));
}

void codegen::setFeatures(LLVM::LLVMFuncOp function,
                          ArrayRef<StringRef> features) {
  function.setTargetFeaturesAttr(
      LLVM::TargetFeaturesAttr::get(function.getContext(), features));
}

/// Emits one version of `source`, which is made of `op` or, if that is null, of
/// loops, as the function `name`; null after an error.
static LLVM::LLVMFuncOp emitVersion(func::FuncOp source, Operation *op,
                                    StringRef name, Version version) {
  Code code(source.getLoc(), source.getContext());
  Kernel kernel = openKernel(code, source, name);
  static_cast<Version &>(kernel) = version;
  loadAddresses(code, kernel);
  LogicalResult result =
      op ? TypeSwitch<Operation *, LogicalResult>(op)
               .Case([&](rt::AttentionOp op) {
                 return emitAttention(code, op, kernel);
               })
               .Case([&](rt::AttentionBackwardOp op) {
                 return emitAttentionBackward(code, op, kernel);
               })
               .Case([&](rt::ScatterAddOp op) {
                 return emitScatterAdd(code, op, kernel);
               })
               .Case([&](rt::BlockSumsOp op) {
                 return emitBlockSums(code, op, kernel);
               })
               .Case<rt::ChooseExpertsOp, rt::ExpertWeightsOp,
                     rt::ExpertWeightsBackwardOp, rt::SortRowsOp,
                     rt::CountRowsOp, rt::CountChoicesOp>(
                   [&](auto op) { return emitRouting(code, op, kernel); })
               .Case<rt::SplitColumnsOp, rt::JoinColumnsOp, rt::LatentHeadsOp,
                     rt::LatentHeadsBackwardOp>([&](auto op) {
                 return emitColumnMoves(code, ColumnMoves(op), op, kernel);
               })
               .Default([](Operation *other) {
                 return other->emitOpError("needs to be in a schedule on a "
                                           "CPU, whose runtime makes GEMMs");
               })
         : emitLoops(code, kernel);
  if (version.avx512)
    setWide(kernel.function);
  if (succeeded(result))
    return kernel.function;
  kernel.function.erase();
  return {};
}

/// Whether a kernel is faster with wider registers: what streams memory, or
/// adds rows to a table, is not.
static bool gainsFromWidth(func::FuncOp source, Operation *op) {
  return op ? isa<rt::AttentionOp, rt::AttentionBackwardOp>(op)
            : computesForLong(source);
}

static LogicalResult emitKernel(func::FuncOp source, Registers registers) {
  FailureOr<Operation *> op = getKernelOp(source);
  if (failed(op))
    return failure();
  LLVM::LLVMFuncOp kernel = emitVersion(
      source, *op, source.getName(), {/*avx512=*/registers == Registers::Wide});
  if (!kernel)
    return failure();
  kernel->setAttr(rt::kKernelAttr, UnitAttr::get(source.getContext()));
  auto add = [&](StringRef suffix, StringRef attribute, Version version,
                 ArrayRef<StringRef> features = {}) {
    LLVM::LLVMFuncOp function =
        emitVersion(source, *op, (source.getName() + suffix).str(), version);
    if (!function)
      return failure();
    function.setTargetCpu(StringRef(kAVX512Processor));
    if (!features.empty())
      setFeatures(function, features);
    kernel->setAttr(attribute, FlatSymbolRefAttr::get(function));
    return success();
  };
  if (registers == Registers::Both && gainsFromWidth(source, *op) &&
      failed(add(".avx512", rt::kAVX512Attr, {/*avx512=*/true})))
    return failure();
  // Whatever the processor that kernels are for: as of GEMMs, which bits
  // there are is for the one to say that runs them.
  if (*op && mayHaveBF16x2(*op) &&
      (failed(add(".avx512_bf16", rt::kAVX512BF16Attr,
                  {/*avx512=*/true, /*avx512BF16=*/true},
                  kAVX512BF16Features)) ||
       failed(add(".amx", rt::kAmxAttr,
                  {/*avx512=*/true, /*avx512BF16=*/true, /*amx=*/true},
                  kAmxFeatures))))
    return failure();
  source.erase();
  return success();
}

namespace {
struct EmitCPU : codegen::impl::EmitCPUBase<EmitCPU> {
  using EmitCPUBase::EmitCPUBase;

  void runOnOperation() override {
    SmallVector<func::FuncOp> kernels;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(rt::kKernelAttr))
        kernels.push_back(function);
    for (func::FuncOp kernel : kernels)
      if (failed(emitKernel(kernel, registers)))
        return signalPassFailure();
  }
};
} // namespace
