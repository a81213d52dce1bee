//===- Registration.cpp - All dialects and passes ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Pipelines/Registration.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "reprise/Autodiff/Passes.h"
#include "reprise/Codegen/CPU/Passes.h"
#include "reprise/Codegen/CUDA/Passes.h"
#include "reprise/Dialect/NN/NNDialect.h"
#include "reprise/Dialect/Pipe/PipeOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Kernels/Passes.h"
#include "reprise/Memory/Passes.h"
#include "reprise/Partition/Passes.h"
#include "reprise/Pipelines/Pipelines.h"
#include "reprise/Planning/Passes.h"
#include "reprise/Remat/Passes.h"
#include "reprise/Report/Passes.h"
#include "reprise/Stages/Passes.h"

using namespace mlir;

void reprise::registerDialects(DialectRegistry &registry) {
  registry.insert<nn::NNDialect, pipe::PipeDialect, remat::RematDialect,
                  rt::RTDialect, arith::ArithDialect, func::FuncDialect,
                  LLVM::LLVMDialect, linalg::LinalgDialect, math::MathDialect,
                  memref::MemRefDialect, scf::SCFDialect, tensor::TensorDialect,
                  vector::VectorDialect>();
  cuda::registerCUDADialects(registry);
}

void reprise::registerPasses() {
  registerCSEPass();
  registerCanonicalizerPass();
  registerSymbolDCEPass();
  autodiff::registerAutodiffPasses();
  codegen::registerCPUPasses();
  cuda::registerCUDAPasses();
  kernels::registerKernelsPasses();
  memory::registerMemoryPasses();
  partition::registerPartitionPasses();
  planning::registerPlanningPasses(getPhases());
  remat::registerRematPasses();
  report::registerReportPasses();
  stages::registerStagesPasses();
  // A short name for what people ask for most.
  PassPipelineRegistration<>(
      "remat-explain", "reprise-remat-explain of every function",
      [](OpPassManager &manager) {
        manager.addNestedPass<func::FuncOp>(report::createRematExplain());
      });
}
