//===- Pipeline.cpp - Kernels to the NVVM dialect, in order -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"
#include "reprise/Codegen/CUDA/Passes.h"

using namespace mlir;

namespace reprise::cuda {
#define GEN_PASS_REGISTRATION
#include "reprise/Codegen/CUDA/Passes.h.inc"
} // namespace reprise::cuda

void reprise::cuda::buildDeviceEmissionPipeline(
    OpPassManager &manager, const CUDALoweringOptions &options) {
  EmitCUDAOptions emit;
  emit.chip = options.chip;
  manager.addPass(createEmitCUDA(emit));
  // What was computed twice is computed once.
  manager.addNestedPass<gpu::GPUModuleOp>(createCSEPass());
}

void reprise::cuda::buildDeviceLoweringPipeline(OpPassManager &manager) {
  OpPassManager &device = manager.nest<gpu::GPUModuleOp>();
  // Transcendentals as instructions.
  device.addPass(createApproximateDeviceMath());
  // Loops as blocks and branches.
  device.addPass(createSCFToControlFlowPass());
  // The rest, at once.
  device.addPass(createConvertDeviceToNVVM());
}

void reprise::cuda::buildCUDALoweringPipeline(
    OpPassManager &manager, const CUDALoweringOptions &options) {
  buildDeviceEmissionPipeline(manager, options);
  buildDeviceLoweringPipeline(manager);
}

void reprise::cuda::registerCUDADialects(DialectRegistry &registry) {
  registry.insert<gpu::GPUDialect, nvgpu::NVGPUDialect, NVVM::NVVMDialect>();
  registerBuiltinDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}

void reprise::cuda::registerCUDAPasses() {
  registerCodegenCUDAPasses();
  struct Options : PassPipelineOptions<Options> {
    Option<std::string> chip{
        *this, "chip",
        llvm::cl::desc("The oldest chip that the kernels must run on"),
        llvm::cl::init("sm_80")};
  };
  PassPipelineRegistration<Options>(
      "reprise-lower-cuda", "Kernels to the NVVM dialect, for a GPU",
      [](OpPassManager &manager, const Options &options) {
        CUDALoweringOptions lowering;
        lowering.chip = options.chip;
        buildCUDALoweringPipeline(manager, lowering);
      });
}
