//===- ConvertKernelsToLLVM.cpp - Bodies of kernels to LLVM -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Analysis/DataLayoutAnalysis.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Transforms/DialectConversion.h"
#include "reprise/Codegen/CPU/Passes.h"

using namespace mlir;

namespace reprise::codegen {
#define GEN_PASS_DEF_CONVERTKERNELSTOLLVM
#include "reprise/Codegen/CPU/Passes.h.inc"
} // namespace reprise::codegen

namespace {
struct ConvertKernelsToLLVM
    : reprise::codegen::impl::ConvertKernelsToLLVMBase<ConvertKernelsToLLVM> {
  // Made once: there are hundreds, and each function is small.
  LogicalResult initialize(MLIRContext *context) override {
    converter = std::make_shared<LLVMTypeConverter>(context);
    RewritePatternSet set(context);
    arith::populateArithToLLVMConversionPatterns(*converter, set);
    cf::populateControlFlowToLLVMConversionPatterns(*converter, set);
    populateMathToLLVMConversionPatterns(*converter, set);
    ub::populateUBToLLVMConversionPatterns(*converter, set);
    populateVectorToLLVMConversionPatterns(*converter, set);
    vector::populateVectorFromElementsUnrollPatterns(set);
    patterns = std::move(set);
    return success();
  }

  void runOnOperation() override {
    LLVMConversionTarget target(getContext());
    target.addLegalOp<LLVM::LLVMFuncOp>();
    if (failed(applyFullConversion(getOperation(), target, patterns)))
      signalPassFailure();
  }

  std::shared_ptr<LLVMTypeConverter> converter; // What patterns refer to.
  FrozenRewritePatternSet patterns;
};
} // namespace
