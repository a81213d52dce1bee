//===- Passes.h - Passes that make code for the CPU -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_CODEGEN_CPU_PASSES_H
#define REPRISE_CODEGEN_CPU_PASSES_H

#include "mlir/Pass/Pass.h"
#include "reprise/Codegen/CPU/Registers.h"

namespace mlir::LLVM {
class LLVMFuncOp;
} // namespace mlir::LLVM

namespace reprise::codegen {
#define GEN_PASS_DECL
#include "reprise/Codegen/CPU/Passes.h.inc"

/// Appends what takes a module with kernels to kernels in the LLVM dialect:
/// emission, polynomials, control flow, conversion. What is no kernel is kept.
void buildCPULoweringPipeline(mlir::OpPassManager &manager,
                              Registers registers = Registers::Base);

/// Registers the passes above and the pipeline `reprise-lower-cpu`.
void registerCPUPasses();
} // namespace reprise::codegen

#endif // REPRISE_CODEGEN_CPU_PASSES_H
