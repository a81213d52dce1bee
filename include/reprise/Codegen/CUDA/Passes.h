//===- Passes.h - Passes that make code for NVIDIA GPUs ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_CODEGEN_CUDA_PASSES_H
#define REPRISE_CODEGEN_CUDA_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir {
class DialectRegistry;
namespace gpu {
class GPUModuleOp;
} // namespace gpu
} // namespace mlir

namespace reprise::cuda {
#define GEN_PASS_DECL
#include "reprise/Codegen/CUDA/Passes.h.inc"

struct CUDALoweringOptions {
  std::string chip = "sm_80"; ///< One of `getChips()`.
};

/// Appends what turns kernels into the module `@device` of the phase `gpu`.
void buildDeviceEmissionPipeline(mlir::OpPassManager &manager,
                                 const CUDALoweringOptions &options);

/// Appends what takes `@device` from the phase `gpu` to the phase `nvvm`.
void buildDeviceLoweringPipeline(mlir::OpPassManager &manager);

/// Both: a module with kernels to one that `emitPTX` takes. What is no kernel
/// is kept.
void buildCUDALoweringPipeline(mlir::OpPassManager &manager,
                               const CUDALoweringOptions &options);

/// Adds the dialects of both phases, and how they become LLVM IR.
void registerCUDADialects(mlir::DialectRegistry &registry);

/// Registers the passes above and the pipeline `reprise-lower-cuda`.
void registerCUDAPasses();
} // namespace reprise::cuda

#endif // REPRISE_CODEGEN_CUDA_PASSES_H
