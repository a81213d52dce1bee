// RUN: reprise-opt %s -cse -canonicalize | FileCheck %s

// Ranks meet in collectives: none is merged with another, dropped or moved
// before another, whatever reads it. What a rank does alone is.

// CHECK-LABEL: func @forward(
//  CHECK-SAME:   %[[X:[^:]*]]: tensor<2x4xf32>
//  CHECK-NEXT:   %[[A:.*]] = nn.all_reduce %[[X]] over "tp"
//  CHECK-NEXT:   %[[B:.*]] = nn.all_reduce %[[X]] over "tp"
//  CHECK-NEXT:   nn.all_gather %[[X]] to R over "tp" dim 0
//  CHECK-NEXT:   nn.reduce_scatter %[[X]] over "tp" dim 1
//  CHECK-NEXT:   nn.all_gather %[[X]] to R over "tp" dim 0
//  CHECK-NEXT:   nn.reduce_scatter %[[X]] over "tp" dim 1
//  CHECK-NEXT:   %[[C:.*]] = nn.slice %[[X]] over "tp" dim 1
//  CHECK-NEXT:   return %[[B]], %[[A]], %[[C]], %[[C]]
func.func @forward(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %a = nn.all_reduce %x over "tp" : tensor<2x4xf32>
  %b = nn.all_reduce %x over "tp" : tensor<2x4xf32>
  %c = nn.all_gather %x to R over "tp" dim 0 : (tensor<2x4xf32>) -> tensor<4x4xf32>
  %d = nn.reduce_scatter %x over "tp" dim 1 : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %e = nn.all_gather %x to R over "tp" dim 0 : (tensor<2x4xf32>) -> tensor<4x4xf32>
  %f = nn.reduce_scatter %x over "tp" dim 1 : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %g = nn.slice %x over "tp" dim 1 : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %h = nn.slice %x over "tp" dim 1 : (tensor<2x4xf32>) -> tensor<2x2xf32>
  return %b, %a, %g, %h : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}
