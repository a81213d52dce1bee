// RUN: reprise-opt %s -reprise-emit-micro-kernels | FileCheck %s --implicit-check-not=bf16 --implicit-check-not='vector<16xi16>'
// RUN: sed 's/memref<4x4xf32>/memref<4x4xbf16>/g; s/memref<256xf32>/memref<1024xf32>/g' %s | reprise-opt -reprise-emit-micro-kernels | FileCheck %s --check-prefix=BF16

// Where no GEMM is of bf16, no tile is, and none rounds to it.

// CHECK: llvm.func @reprise_micro_6x16_v3(
// CHECK: llvm.func @reprise_micro_4x16_v3(
// CHECK: llvm.func @reprise_micro_12x32_v4(
// BF16: llvm.store {{.*}} : vector<16xi16>
// BF16: llvm.func @reprise_micro_12x32_bf16(
// BF16: llvm.func @reprise_micro_32x32_amx(
func.func @step() {
  %x = rt.buffer at <device, 0> : memref<4x4xf32>
  %y = rt.buffer at <device, 64> : memref<4x4xf32>
  %space = rt.buffer at <device, 128> : memref<256xf32>
  rt.gemm %x, %x to(%y) workspace(%space) m 4 n 4 k 4 lda 4 ldb 4 ldc 4 : (memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>, memref<256xf32>) -> ()
  return
}
