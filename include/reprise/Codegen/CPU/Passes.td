//===- Passes.td - Passes that make code for the CPU -------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_CODEGEN_CPU_PASSES
#define REPRISE_CODEGEN_CPU_PASSES

include "mlir/Pass/PassBase.td"

def EmitCPU : Pass<"reprise-emit-cpu", "::mlir::ModuleOp"> {
  let summary = "Turn kernels into loops over vectors";
  let description = [{
    Replaces each function with `rt.kernel` by an `llvm.func` of the same name
    with the signature of `RepriseKernelFn`, and gives it `rt.tasks`, the number of
    independent tasks of a launch. Loops are `scf`, values `arith`, `math` and
    `vector`; memory is read and written through `llvm` loads and stores.

    Needs: kernels of one loop shape each: pointwise over a flat array, rows with
    or without row reductions, columns with column reductions, or one op of `rt`.
    A kernel that mixes shapes is refused. Keeps: everything that is no kernel.

    The bits of a result depend on the `linalg` ops alone: each element has one
    sequence of operations, in the main loop and in the remainder, in whatever
    kernel its op is fused.

    With `registers=both`, a kernel that computes for long, `@k`, comes twice: `@k.avx512`,
    which `rt.avx512` names, does the same tasks to the same bits, with `target_cpu` of
    a processor that has AVX-512. Attention in bf16 of heads up to 256 wide, with a scale above zero, comes twice more,
    whatever `registers` says: `@k.avx512_bf16`, which `rt.avx512_bf16` names, multiplies pairs of bf16 (AVX512_BF16),
    and `@k.amx`, which `rt.amx` names, makes them on tile registers, which who calls it has configured; each has
    bits of its own. The runtime chooses.

    ```mlir
    func.func private @double(%x: tensor<100xf32>) -> tensor<100xf32> attributes {rt.kernel} {
      %e = tensor.empty() : tensor<100xf32>
      %y = linalg.generic {
        indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
        iterator_types = ["parallel"]
      } ins(%x : tensor<100xf32>) outs(%e : tensor<100xf32>) {
      ^bb0(%a: f32, %out: f32):
        %s = arith.addf %a, %a : f32
        linalg.yield %s : f32
      } -> tensor<100xf32>
      return %y : tensor<100xf32>
    }
    // ==> llvm.func @double(%buffers: !llvm.ptr, %ids: !llvm.ptr, %begin: i64, %end: i64) attributes {rt.kernel, rt.tasks = 1 : i64}
    ```
  }];
  let options = [
    Option<"registers", "registers", "::reprise::codegen::Registers",
           /*default=*/"::reprise::codegen::Registers::Base",
           "What processors have; results are the same",
           [{::llvm::cl::values(
             clEnumValN(::reprise::codegen::Registers::Base, "base",
                        "16 registers of 8 lanes"),
             clEnumValN(::reprise::codegen::Registers::Wide, "wide",
                        "32 of 16 lanes, as AVX-512, for larger tiles"),
             clEnumValN(::reprise::codegen::Registers::Both, "both",
                        "both: what computes for long is emitted for each"))}]>];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def EmitMicroKernels : Pass<"reprise-emit-micro-kernels", "::mlir::ModuleOp"> {
  let summary = "Append the micro-kernels of GEMMs";
  let description = [{
    Appends an `llvm.func` for every entry of `getMicroKernels()`, with the signature
    of `RepriseMicroKernelFn`, compiled for its own instruction set. A micro-kernel packs its panel of A and rows of the next panel of B on the way if it is told to, keeps its tile in registers and adds `a[p][r] * b[p][c]` by fused
    multiply-add, `p` from 0 up, so that all of them but that of AMX give the same bits. Where no GEMM is of bf16, neither are
    micro-kernels, and none rounds to it.

    ```mlir
    // ==> llvm.func @reprise_micro_6x16_v3(%tile: !llvm.ptr) attributes {target_cpu = "x86-64-v3"}
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def ApproximateMath : Pass<"reprise-approximate-math", "::mlir::LLVM::LLVMFuncOp"> {
  let summary = "Replace exp, log, erf and their like by polynomials";
  let description = [{
    Errors of at most 6 units in the last place; the same value for a scalar and
    for a lane of a vector. `math.rsqrt` becomes a division by the square root,
    which rounds correctly on every machine, and conversions to bf16 become
    integer arithmetic that rounds to nearest even. In functions with
    `prefer_vector_width = "512"` both have instructions of AVX-512, to the same bits.

    ```mlir
    llvm.func @k(%x: f32) -> f32 {
      %r = math.rsqrt %x : f32           // ==> %s = math.sqrt %x : f32
      llvm.return %r : f32               //     %r = arith.divf %one, %s : f32
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"];
}

def ConvertKernelsToLLVM : Pass<"convert-kernels-to-llvm", "::mlir::LLVM::LLVMFuncOp"> {
  let summary = "Convert the body of an emitted kernel to the LLVM dialect";
  let description = [{
    One conversion for `scf`-free bodies: `arith`, `cf`, `math`, `ub` and `vector`.
    Function-wise, so kernels are converted in parallel.

    ```mlir
    llvm.func @k(%x: i64) -> i64 {
      %y = arith.addi %x, %x : i64       // ==> %y = llvm.add %x, %x : i64
      llvm.return %y : i64
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // REPRISE_CODEGEN_CPU_PASSES
