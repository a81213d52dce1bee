// RUN: reprise-opt %s --reprise-remat-apply --reprise-remat-verify | FileCheck %s

// Ranks meet once more for a replay, all alike: the part is kept and not what was
// gathered from it. A sum that backward does not read is not made again.

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
// CHECK-LABEL: func.func @step
//       CHECK:   %[[PART:.*]] = nn.scale
//       CHECK:   nn.all_gather %[[PART]]
//       CHECK:   nn.reduce_scatter
//       CHECK:   nn.backward
//       CHECK:   %[[FENCE:.*]] = remat.fence %[[PART]] after
//  CHECK-NEXT:   %[[ALL:.*]] = nn.all_gather %[[FENCE]] to R over "tp" dim 0 {remat.replay = 3 : i64}
//  CHECK-NEXT:   nn.linear_backward_weight %[[ALL]]
//   CHECK-NOT:   nn.reduce_scatter
//       CHECK:   return
func.func @step(%x: tensor<2x4xf32>, %w: tensor<4x8xf32>, %d: tensor<2x8xf32>) -> (tensor<4x8xf32>, tensor<2x8xf32>) {
  %part = nn.scale %x by 2.0 : tensor<2x4xf32>
  %all = nn.all_gather %part to R over "tp" dim 0 {remat.decision = #remat.recompute<segment = 3, label = "full">}
    : (tensor<2x4xf32>) -> tensor<4x4xf32>
  %u = nn.linear %all, %w in_out {remat.decision = #remat.recompute<segment = 3, label = "full">}
    : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = nn.reduce_scatter %u over "tp" dim 0 {remat.decision = #remat.recompute<segment = 3, label = "full">}
    : (tensor<4x8xf32>) -> tensor<2x8xf32>
  nn.backward
  %dy = nn.scale %d by 3.0 : tensor<2x8xf32>
  %du = nn.all_gather %dy to R over "tp" dim 0 : (tensor<2x8xf32>) -> tensor<4x8xf32>
  %dw = nn.linear_backward_weight %all, %du in_out : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %dw, %dy : tensor<4x8xf32>, tensor<2x8xf32>
}
}
