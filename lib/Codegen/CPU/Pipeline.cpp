//===- Pipeline.cpp - From kernels to LLVM ----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "reprise/Codegen/CPU/Passes.h"

using namespace mlir;

namespace reprise::codegen {
#define GEN_PASS_REGISTRATION
#include "reprise/Codegen/CPU/Passes.h.inc"
} // namespace reprise::codegen

void reprise::codegen::buildCPULoweringPipeline(OpPassManager &manager,
                                                Registers registers) {
  // Kernels and micro-kernels as loops over vectors.
  EmitCPUOptions emission;
  emission.registers = registers;
  manager.addPass(createEmitCPU(emission));
  manager.addPass(createEmitMicroKernels());
  // From here on each function is on its own.
  OpPassManager &functions = manager.nest<LLVM::LLVMFuncOp>();
  // What was computed twice is computed once, before it grows.
  functions.addPass(createCSEPass());
  // Transcendentals as polynomials, the same bits everywhere.
  functions.addPass(createApproximateMath());
  // Loops as blocks and branches.
  functions.addPass(createSCFToControlFlowPass());
  // The rest one to one.
  functions.addPass(createConvertKernelsToLLVM());
}

void reprise::codegen::registerCPUPasses() {
  registerCodegenCPUPasses();
  PassPipelineRegistration<>(
      "reprise-lower-cpu", "Kernels to the LLVM dialect, for the CPU",
      [](OpPassManager &manager) { buildCPULoweringPipeline(manager); });
}
