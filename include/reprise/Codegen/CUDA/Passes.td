//===- Passes.td - Passes that make code for NVIDIA GPUs ---*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_CODEGEN_CUDA_PASSES
#define REPRISE_CODEGEN_CUDA_PASSES

include "mlir/Pass/PassBase.td"

def ApproximateDeviceMath : Pass<"reprise-approximate-device-math", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Write transcendental functions with the instructions a GPU has for them";
  let description = [{
    `exp` and `tanh` on `ex2.approx`, `rsqrt` on `rsqrt.approx`, division as `div.full`, the others
    as polynomials; each within a few units in the last place, and one sequence of
    instructions wherever it stands. No library is needed.

    ```mlir
    gpu.module @device {
      gpu.func @k(%x: f32) -> f32 {
        %r = math.rsqrt %x : f32   // ==> llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"(%x)
        gpu.return %r : f32
      }
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
}

def ConvertDeviceToNVVM : Pass<"convert-device-to-nvvm", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Convert a module of kernels to the NVVM dialect";
  let description = [{
    One conversion with one type converter for everything that stands in kernels without
    structured control flow: `arith`, `cf`, `gpu`, `index`, `math`, `memref`, `nvgpu`, `ub` and `vector`;
    then what NVVM has as text of PTX. Arrays in workgroup memory become globals
    in address space 3.

    ```mlir
    gpu.module @device {
      gpu.func @k() kernel attributes {known_block_size = array<i32: 128, 1, 1>} {
        gpu.barrier                // ==> nvvm.barrier
        gpu.return                 //     llvm.return
      }
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect", "::mlir::memref::MemRefDialect"];
}

#endif // REPRISE_CODEGEN_CUDA_PASSES
