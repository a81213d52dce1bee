// RUN: reprise-opt %s --pass-pipeline='builtin.module(reprise-form-kernels)' | FileCheck %s
// RUN: reprise-opt %s --pass-pipeline='builtin.module(reprise-form-kernels,func.func(convert-nn-to-linalg))' | FileCheck %s --check-prefix=LOOPS
// RUN: sed '1i module attributes {rt.gemm_workspace = 4096 : i64} {' %s | sed '$a }' | reprise-opt --pass-pipeline='builtin.module(reprise-form-kernels,func.func(convert-nn-to-linalg),reprise-verify-kernels)' | FileCheck %s --check-prefix=LIBRARY

// GEMMs of groups read rows where tokens are, and no value has them sorted.
// The gradient of a weight is added to its sum in place.

// CHECK-LABEL: func @forward(
//  CHECK-SAME:   %[[X:.*]]: tensor<2x8x24xf32>, %[[W:.*]]: tensor<4x96x24xf32>, %[[R:.*]]: tensor<2x8x4xf32>
//       CHECK:   %[[IDS:.*]] = rt.launch @[[CHOOSE:.*]](%[[R]])
//       CHECK:   %[[S:.*]]:3 = rt.launch @[[SORT:.*]](%[[IDS]])
//       CHECK:   %[[U:.*]] = rt.gemm %[[X]], %[[W]] groups(%[[S]]#2) order(%[[S]]#0) gather a slots 2 transpose_b m 32 n 96 k 24 lda 24 ldb 24 ldc 96
//       CHECK:   rt.launch @{{.*}}(%[[U]]
func.func @forward(%x: tensor<2x8x24xf32>, %w: tensor<4x96x24xf32>, %r: tensor<2x8x4xf32>, %wr: tensor<32xf32>) -> tensor<32x96xf32> {
  %ids = nn.choose_experts %r : (tensor<2x8x4xf32>) -> tensor<2x8x2xi32>
  %order, %inverse, %offsets = nn.sort_rows %ids : (tensor<2x8x2xi32>) -> (tensor<32xi32>, tensor<2x8x2xi32>, tensor<5xi32>)
  %u = nn.grouped_linear %x, %w, %offsets rows %order, %inverse
    : (tensor<2x8x24xf32>, tensor<4x96x24xf32>, tensor<5xi32>, tensor<32xi32>, tensor<2x8x2xi32>) -> tensor<32x96xf32>
  %g = nn.weighted_swiglu %u, %u, %wr : (tensor<32x96xf32>, tensor<32x96xf32>, tensor<32xf32>) -> tensor<32x96xf32>
  return %g : tensor<32x96xf32>
}

// CHECK-LABEL: func @gradients(
//       CHECK:   rt.gemm %{{.*}}, %{{.*}} groups(%{{.*}}) m 32 n 24 k 96 lda 96 ldb 24 ldc 24
//       CHECK:   rt.gemm %{{.*}}, %{{.*}} groups(%{{.*}}) order(%{{.*}}) gather b slots 2 addend(%{{.*}}) transpose_a m 96 n 24 k 32 lda 96 ldb 24 ldc 24
//       CHECK:   rt.gemm %{{.*}}, %{{.*}} groups(%{{.*}}) order(%{{.*}}) gather a slots 2 transpose_a m 24 n 96 k 32 lda 24 ldb 96 ldc 96
func.func @gradients(%x: tensor<2x8x24xf32>, %w: tensor<4x96x24xf32>, %u: tensor<32x96xf32>, %sum: tensor<4x96x24xf32>,
                     %order: tensor<32xi32>, %inverse: tensor<2x8x2xi32>, %offsets: tensor<5xi32>)
    -> (tensor<32x24xf32>, tensor<4x96x24xf32>, tensor<4x24x96xf32>) {
  %dx = nn.grouped_linear_backward_input %u, %w, %offsets
    : (tensor<32x96xf32>, tensor<4x96x24xf32>, tensor<5xi32>) -> tensor<32x24xf32>
  %dw = nn.grouped_linear_backward_weight %x, %u, %offsets rows of input %order, %inverse
    : (tensor<2x8x24xf32>, tensor<32x96xf32>, tensor<5xi32>, tensor<32xi32>, tensor<2x8x2xi32>) -> tensor<4x96x24xf32>
  %s = nn.accumulate %sum, %dw : tensor<4x96x24xf32>
  %dv = nn.grouped_linear_backward_weight %u, %x, %offsets rows of dout %order, %inverse
    : (tensor<32x96xf32>, tensor<2x8x24xf32>, tensor<5xi32>, tensor<32xi32>, tensor<2x8x2xi32>) -> tensor<4x24x96xf32>
  return %dx, %s, %dv : tensor<32x24xf32>, tensor<4x96x24xf32>, tensor<4x24x96xf32>
}

// LOOPS: func private @choose_experts
// LOOPS:   rt.choose_experts
// LOOPS: func private @sort_rows
// LOOPS:   rt.sort_rows

// A library has no GEMMs of groups: they are kernels, of which equal ones are
// one. Sums that are added to are in place.

// LIBRARY-LABEL: func.func @forward(
//       LIBRARY:   %[[S:.*]]:3 = rt.launch @sort_rows
//       LIBRARY:   rt.launch @[[$FORWARD:grouped_product_32x96x24_of_4_transpose_b_gather_a_2]](%{{.*}}, %{{.*}}, %[[S]]#2, %[[S]]#0) {flops
// LIBRARY-LABEL: func.func @gradients(
//   LIBRARY-NOT:   rt.gemm
//       LIBRARY:   rt.launch @grouped_product_32x24x96_of_4(
//       LIBRARY:   rt.launch @[[$SUM:grouped_product_96x24x32_of_4_transpose_a_gather_b_2_add]](
//       LIBRARY:   rt.launch @grouped_product_24x96x32_of_4_transpose_a_gather_a_2(
//       LIBRARY: func.func private @[[$FORWARD]](
//  LIBRARY-NEXT:   rt.gemm %{{.*}}, %{{.*}} groups(%{{.*}}) order(%{{.*}}) gather a slots 2 transpose_b m 32 n 96 k 24
//       LIBRARY: func.func private @[[$SUM]]({{.*}}, %{{.*}}: tensor<4x96x24xf32> {rt.in_place = 0 : i64})
