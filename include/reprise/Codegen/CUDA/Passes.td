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

def EmitCUDA : Pass<"reprise-emit-cuda", "::mlir::ModuleOp"> {
  let summary = "Turn kernels into functions of a GPU's threads";
  let description = [{
    Moves each function with `rt.kernel` into one `gpu.module @device`, as a `gpu.func` of
    the same name. Its one argument is a struct by value: the addresses of the buffers,
    inputs first, then the ids of the random streams. `rt.grid`, `rt.block` and `rt.shared`
    say how to launch it, `rt.bytes` what a launch at least reads and writes.

    Each kind of sum over ranks in the schedule gets a kernel `@reprise_sum_NxT` of N terms of
    type T, which the runtime launches within the `rt.collective`.

    Needs: kernels as `reprise-emit-cpu` takes them. Keeps: everything that is no
    kernel; `rt.launch` finds its kernel in `@device` by name.

    ```mlir
    func.func private @double(%x: tensor<1024xf32>) -> tensor<1024xf32> attributes {rt.kernel} {
      %e = tensor.empty() : tensor<1024xf32>
      %y = linalg.generic {
        indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
        iterator_types = ["parallel"]
      } ins(%x : tensor<1024xf32>) outs(%e : tensor<1024xf32>) {
      ^bb0(%a: f32, %out: f32):
        %s = arith.addf %a, %a : f32
        linalg.yield %s : f32
      } -> tensor<1024xf32>
      return %y : tensor<1024xf32>
    }
    // ==> gpu.func @double(%args: !llvm.ptr {llvm.byval = !llvm.struct<(array<2 x ptr>, array<0 x i64>)>, …}) kernel attributes {rt.kernel, rt.grid = array<i64: 1, 1, 1>, …}
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", /*default=*/"\"sm_80\"",
           "The oldest chip that the kernels must run on">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def ApproximateDeviceMath : Pass<"reprise-approximate-device-math", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Write transcendental functions with the instructions a GPU has for them";
  let description = [{
    `exp` and `exp2` on `ex2.approx.ftz`, `rsqrt` on `rsqrt.approx`, division as `div.full`, the others
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
