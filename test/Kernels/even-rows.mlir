// A GEMM of groups of rows, for which there is more room than comes where
// experts are used evenly, costs what comes: 2 x 16 x 96 x 24 FLOPs.

// RUN: reprise-opt %s --pass-pipeline='builtin.module(reprise-form-kernels)' | FileCheck %s
// RUN: sed '1i module attributes {rt.gemm_workspace = 4096 : i64} {' %s | sed '$a }' | reprise-opt --pass-pipeline='builtin.module(reprise-form-kernels)' | FileCheck %s --check-prefix=LIBRARY

// CHECK-LABEL: func @forward(
//       CHECK:   rt.gemm {{.*}} m 64 n 96 k 24 {{.*}}rt.even_rows = 16 : i64
//       CHECK:   rt.gemm {{.*}} transpose_a m 96 n 24 k 64 {{.*}}rt.even_rows = 16 : i64
//     LIBRARY:   rt.launch @grouped_product_64x96x24{{.*}} {flops = 73728 : i64
//     LIBRARY:   rt.launch @grouped_product_96x24x64{{.*}} {flops = 73728 : i64
func.func @forward(%x: tensor<64x24xf32>, %w: tensor<4x96x24xf32>, %offsets: tensor<5xi32>) -> (tensor<64x96xf32>, tensor<4x96x24xf32>) {
  %u = nn.grouped_linear %x, %w, %offsets {nn.even_rows = 16 : i64}
    : (tensor<64x24xf32>, tensor<4x96x24xf32>, tensor<5xi32>) -> tensor<64x96xf32>
  %dw = nn.grouped_linear_backward_weight %x, %u, %offsets {nn.even_rows = 16 : i64}
    : (tensor<64x24xf32>, tensor<64x96xf32>, tensor<5xi32>) -> tensor<4x96x24xf32>
  return %u, %dw : tensor<64x96xf32>, tensor<4x96x24xf32>
}
