// RUN: reprise-opt %s | FileCheck %s
// RUN: reprise-opt %s -mlir-print-op-generic | reprise-opt | FileCheck %s

// GEMMs of rows that belong to groups: forward, gradient of rows, gradient
// of weights, with rows of either operand elsewhere.

// CHECK-LABEL: func @tensors(
//       CHECK:   rt.gemm %{{.*}}, %{{.*}} groups(%{{.*}}) order(%{{.*}}) gather a slots 2 transpose_b m 32 n 96 k 24
//       CHECK:   rt.gemm %{{.*}}, %{{.*}} groups(%{{.*}}) m 32 n 24 k 96
//       CHECK:   rt.gemm %{{.*}}, %{{.*}} groups(%{{.*}}) order(%{{.*}}) gather b slots 2 addend(%{{.*}}) transpose_a m 96 n 24 k 32
func.func @tensors(%x: tensor<2x8x24xf32>, %w: tensor<4x96x24xf32>, %offsets: tensor<5xi32>,
                   %order: tensor<32xi32>, %sum: tensor<4x96x24xf32>) {
  %u = rt.gemm %x, %w groups(%offsets) order(%order) gather a slots 2 transpose_b
    m 32 n 96 k 24 lda 24 ldb 24 ldc 96
    : (tensor<2x8x24xf32>, tensor<4x96x24xf32>, tensor<5xi32>, tensor<32xi32>) -> tensor<32x96xf32>
  %dx = rt.gemm %u, %w groups(%offsets) m 32 n 24 k 96 lda 96 ldb 24 ldc 24
    : (tensor<32x96xf32>, tensor<4x96x24xf32>, tensor<5xi32>) -> tensor<32x24xf32>
  %dw = rt.gemm %u, %x groups(%offsets) order(%order) gather b slots 2 addend(%sum) transpose_a
    m 96 n 24 k 32 lda 96 ldb 24 ldc 24
    : (tensor<32x96xf32>, tensor<2x8x24xf32>, tensor<5xi32>, tensor<32xi32>, tensor<4x96x24xf32>) -> tensor<4x96x24xf32>
  return
}

// CHECK-LABEL: func @routing(
//       CHECK:   rt.choose_experts
//       CHECK:   rt.expert_weights %{{.*}}, %{{.*}} normalized
//       CHECK:   rt.expert_weights_backward
//       CHECK:   rt.sort_rows
//       CHECK:   rt.count_rows %{{.*}}, %{{.*}} : (tensor<5xi32>, tensor<5xi32>) -> tensor<4xf32>
func.func @routing(%r: tensor<2x8x4xf32>, %d: tensor<2x8x2xf32>) {
  %ids = rt.choose_experts %r : (tensor<2x8x4xf32>) -> tensor<2x8x2xi32>
  %w = rt.expert_weights %r, %ids normalized : (tensor<2x8x4xf32>, tensor<2x8x2xi32>) -> tensor<2x8x2xf32>
  %dr = rt.expert_weights_backward %r, %ids, %d
    : (tensor<2x8x4xf32>, tensor<2x8x2xi32>, tensor<2x8x2xf32>) -> tensor<2x8x4xf32>
  %order, %inverse, %offsets = rt.sort_rows %ids : (tensor<2x8x2xi32>) -> (tensor<32xi32>, tensor<2x8x2xi32>, tensor<5xi32>)
  %n = rt.count_rows %offsets, %offsets : (tensor<5xi32>, tensor<5xi32>) -> tensor<4xf32>
  return
}
