// RUN: reprise-opt %s --reprise-form-kernels --split-input-file | FileCheck %s

// A collective is an entry of the schedule by itself, between what makes its
// values and what reads the sums. Squares of a gradient that is still a part of
// a sum are no use to the norm.

// CHECK-LABEL: func.func @step(
//       CHECK:   %[[G:.*]] = rt.gemm
//   CHECK-NOT:   epilogue
//       CHECK:   rt.update
//  CHECK-NEXT:   %[[SUM:.*]] = rt.collective all_reduce(%[[G]]) over "dp" ranks 3 {
//  CHECK-SAME:     rt.name = "optimizer.sum_over_ranks"
//  CHECK-SAME:     : (tensor<16x32xf32>) -> tensor<16x32xf32>
//       CHECK:   rt.launch @sums_of_squares_{{[0-9]+}}(%[[SUM]])
module attributes {nn.mesh = #nn.mesh<dp = 3>} {
  func.func @step(%x: tensor<2x8x16xf32>, %dy: tensor<2x8x32xf32>)
      -> (tensor<16x32xf32>, tensor<f32>) {
    nn.backward
    %g = nn.linear_backward_weight %x, %dy in_out
      : (tensor<2x8x16xf32>, tensor<2x8x32xf32>) -> tensor<16x32xf32>
    nn.update
    %sum = nn.all_reduce %g over "dp" {nn.scope = #nn.scope<module = "optimizer", value = "sum_over_ranks">}
      : tensor<16x32xf32>
    %norm = nn.global_norm %sum : (tensor<16x32xf32>) -> tensor<f32>
    return %sum, %norm : tensor<16x32xf32>, tensor<f32>
  }
}

// -----

// A rank that has groups in two runs has two terms of each sum.

// CHECK-LABEL: func.func @step(
//       CHECK:   rt.collective all_reduce(%[[A:.*]], %[[B:.*]], %[[C:.*]], %[[D:.*]]) over "dp" ranks 3 {{{.*}}rt.groups = 5 : i64{{.*}}}
//  CHECK-SAME:     -> (tensor<8xf32>, tensor<4xf32>)
module attributes {nn.mesh = #nn.mesh<dp = 3>} {
  func.func @step(%a: tensor<8xf32>, %b: tensor<4xf32>, %c: tensor<8xf32>, %d: tensor<4xf32>)
      -> (tensor<8xf32>, tensor<4xf32>) {
    nn.backward
    nn.update
    %sums:2 = nn.all_reduce %a, %b, %c, %d over "dp" {nn.reduction_groups = 5 : i64,
      nn.scope = #nn.scope<module = "optimizer", value = "sum_over_ranks">}
      : tensor<8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<4xf32>
    return %sums#0, %sums#1 : tensor<8xf32>, tensor<4xf32>
  }
}
