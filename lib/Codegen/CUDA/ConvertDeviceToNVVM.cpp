//===- ConvertDeviceToNVVM.cpp - Kernels in the NVVM dialect ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Transforms/DialectConversion.h"
#include "reprise/Codegen/CUDA/Passes.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace reprise::cuda {
#define GEN_PASS_DEF_CONVERTDEVICETONVVM
#include "reprise/Codegen/CUDA/Passes.h.inc"
} // namespace reprise::cuda

/// Everything, at once: separate passes would disagree about types.
static LogicalResult convertAll(gpu::GPUModuleOp module) {
  MLIRContext *context = module.getContext();
  LLVMTypeConverter converter(context);
  configureGpuToNVVMTypeConverter(converter);
  nvgpu::populateCommonGPUTypeAndAttributeConversions(converter);

  RewritePatternSet patterns(context);
  // Functions of libraries come with what is for the GPU: they come last.
  PatternBenefit last = 0;
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  index::populateIndexToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
  ub::populateUBToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  vector::populateVectorFromElementsUnrollPatterns(patterns);
  populateNVGPUToNVVMConversionPatterns(converter, patterns);
  populateGpuToNVVMConversionPatterns(converter, patterns, last);
  populateGpuSubgroupReduceOpLoweringPattern(converter, patterns, last);

  LLVMConversionTarget target(*context);
  target.addLegalDialect<NVVM::NVVMDialect>();
  target.addLegalOp<gpu::GPUModuleOp>();
  return applyFullConversion(module, target, std::move(patterns));
}

/// What LLVM has no intrinsic for becomes PTX inside of LLVM IR.
static LogicalResult convertTextOfPTX(gpu::GPUModuleOp module) {
  MLIRContext *context = module.getContext();
  RewritePatternSet patterns(context);
  populateNVVMToLLVMConversionPatterns(patterns);
  LLVMConversionTarget target(*context);
  target.addDynamicallyLegalDialect<NVVM::NVVMDialect>([](Operation *op) {
    auto text = dyn_cast<NVVM::BasicPtxBuilderInterface>(op);
    return !text || text.hasIntrinsic();
  });
  return applyPartialConversion(module, target, std::move(patterns));
}

/// Attributes of kernels that upstream's pattern does not know. Kernels only
/// read their arguments: said so, these stay where the launch puts them and are
/// not copied to the stack of each thread. A block has the threads that it has.
static void finishKernels(gpu::GPUModuleOp module,
                          const llvm::StringMap<ArrayAttr> &argumentAttrs) {
  Builder builder(module.getContext());
  StringRef byValue = LLVM::LLVMDialect::getByValAttrName();
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    if (!function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      continue;
    if (ArrayAttr attributes = argumentAttrs.lookup(function.getName()))
      function.setArgAttrsAttr(attributes);
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (function.getArgAttr(i, byValue))
        function.setArgAttr(i, NVVM::NVVMDialect::getGridConstantAttrName(),
                            builder.getUnitAttr());
    if (Attribute size =
            function->removeAttr(NVVM::NVVMDialect::getMaxntidAttrName()))
      function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(), size);
    SmallVector<StringAttr> ofGPU;
    for (NamedAttribute attribute : function->getDiscardableAttrs())
      if (isa_and_nonnull<gpu::GPUDialect>(attribute.getNameDialect()))
        ofGPU.push_back(attribute.getName());
    for (StringAttr name : ofGPU)
      function->removeAttr(name);
  }
}

/// What upstream would take from a library has no code here, and LLVM would end
/// the process for it.
static LogicalResult checkFunctions(gpu::GPUModuleOp module) {
  WalkResult result = module.walk([](Operation *op) -> WalkResult {
    auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
    if ((function && function.isExternal()) ||
        isa<LLVM::ACosOp, LLVM::ASinOp, LLVM::ATanOp, LLVM::ATan2Op,
            LLVM::CosOp, LLVM::CoshOp, LLVM::ExpOp, LLVM::Exp10Op, LLVM::LogOp,
            LLVM::Log10Op, LLVM::Log2Op, LLVM::PowIOp, LLVM::PowOp, LLVM::SinOp,
            LLVM::SinhOp, LLVM::TanOp, LLVM::TanhOp>(op))
      return op->emitOpError("needs code of its own in a kernel, which is "
                             "linked with no library");
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {
struct ConvertDeviceToNVVM
    : reprise::cuda::impl::ConvertDeviceToNVVMBase<ConvertDeviceToNVVM> {
  void runOnOperation() override {
    llvm::StringMap<ArrayAttr> argumentAttrs;
    for (auto function : getOperation().getOps<gpu::GPUFuncOp>())
      argumentAttrs[function.getName()] = function.getArgAttrsAttr();
    if (failed(convertAll(getOperation())) ||
        failed(convertTextOfPTX(getOperation())) ||
        failed(checkFunctions(getOperation())))
      return signalPassFailure();
    finishKernels(getOperation(), argumentAttrs);
  }
};
} // namespace
