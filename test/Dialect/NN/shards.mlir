// RUN: reprise-opt %s | FileCheck %s
// RUN: reprise-opt %s -mlir-print-op-generic | reprise-opt | FileCheck %s

// Two ranks share a model, beside two that have samples of their own.

// CHECK: module attributes {nn.mesh = #nn.mesh<dp = 2, tp = 2>}
module attributes {nn.mesh = #nn.mesh<dp = 2, tp = 2>} {

// CHECK-LABEL: func @moves(
//  CHECK-NEXT:   nn.replicate %{{.*}} over "tp" : tensor<2x8x24xf32>
//  CHECK-NEXT:   nn.all_reduce %{{.*}} over "tp" : tensor<2x8x24xbf16>
//  CHECK-NEXT:   nn.all_gather %{{.*}} to R over "tp" dim 1 : (tensor<2x4x24xf32>) -> tensor<2x8x24xf32>
//  CHECK-NEXT:   nn.all_gather %{{.*}} to I over "dp" dim 0 : (tensor<2x4x24xf32>) -> tensor<4x4x24xf32>
//  CHECK-NEXT:   nn.reduce_scatter %{{.*}} over "tp" dim 2 : (tensor<2x8x24xf32>) -> tensor<2x8x12xf32>
//  CHECK-NEXT:   nn.slice %{{.*}} over "tp" dim 1 : (tensor<2x8x24xf32>) -> tensor<2x4x24xf32>
func.func @moves(%x: tensor<2x8x24xf32>, %h: tensor<2x8x24xbf16>, %part: tensor<2x4x24xf32>) {
  %a = nn.replicate %x over "tp" : tensor<2x8x24xf32>
  %b = nn.all_reduce %h over "tp" : tensor<2x8x24xbf16>
  %c = nn.all_gather %part to R over "tp" dim 1 : (tensor<2x4x24xf32>) -> tensor<2x8x24xf32>
  %d = nn.all_gather %part to I over "dp" dim 0 : (tensor<2x4x24xf32>) -> tensor<4x4x24xf32>
  %e = nn.reduce_scatter %x over "tp" dim 2 : (tensor<2x8x24xf32>) -> tensor<2x8x12xf32>
  %f = nn.slice %x over "tp" dim 1 : (tensor<2x8x24xf32>) -> tensor<2x4x24xf32>
  return
}

// CHECK-LABEL: func @vocabulary(
//  CHECK-NEXT:   nn.embedding_part %{{.*}}, %{{.*}} over "tp" : (tensor<2x8xi32>, tensor<154x24xf32>) -> tensor<2x8x24xbf16>
//  CHECK-NEXT:   nn.embedding_part_backward %{{.*}}, %{{.*}} over "tp" : (tensor<2x8xi32>, tensor<2x8x24xf32>) -> tensor<154x24xf32>
//  CHECK-NEXT:   nn.cross_entropy_part %{{.*}}, %{{.*}} over "tp"
//  CHECK-NEXT:   nn.cross_entropy_part_backward %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} over "tp"
//  CHECK-NEXT:   nn.join_lse %{{.*}} : (tensor<4x8xf32>) -> tensor<2x8xf32>
//  CHECK-NEXT:   nn.join_lse_backward %{{.*}}, %{{.*}}, %{{.*}}
//  CHECK-NEXT:   nn.add_bias %{{.*}}, %{{.*}} : (tensor<2x8x24xf32>, tensor<24xf32>) -> tensor<2x8x24xf32>
func.func @vocabulary(%ids: tensor<2x8xi32>, %table: tensor<154x24xf32>, %x: tensor<2x8x24xf32>, %logits: tensor<2x8x154xf32>,
                      %parts: tensor<4x8xf32>, %c: tensor<24xf32>) {
  %e = nn.embedding_part %ids, %table over "tp" : (tensor<2x8xi32>, tensor<154x24xf32>) -> tensor<2x8x24xbf16>
  %d = nn.embedding_part_backward %ids, %x over "tp" : (tensor<2x8xi32>, tensor<2x8x24xf32>) -> tensor<154x24xf32>
  %lse, %hit = nn.cross_entropy_part %logits, %ids over "tp"
    : (tensor<2x8x154xf32>, tensor<2x8xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  %dl = nn.cross_entropy_part_backward %logits, %ids, %lse, %hit, %hit over "tp"
    : (tensor<2x8x154xf32>, tensor<2x8xi32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8x154xf32>
  %j = nn.join_lse %parts : (tensor<4x8xf32>) -> tensor<2x8xf32>
  %dj = nn.join_lse_backward %parts, %j, %j : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  %y = nn.add_bias %x, %c : (tensor<2x8x24xf32>, tensor<24xf32>) -> tensor<2x8x24xf32>
  return
}

// CHECK-LABEL: func private @layouts(
//  CHECK-SAME:   {nn.layout = #nn.layout<tp = S(1)>}
//  CHECK-SAME:   {nn.layout = #nn.layout<dp = V, tp = R>}
//  CHECK-SAME:   {nn.layout = #nn.layout<tp = P>}
//  CHECK-SAME:   {nn.layout = #nn.layout<tp = I>}
func.func private @layouts(tensor<2x4xf32> {nn.layout = #nn.layout<tp = S(1)>}, tensor<4xf32> {nn.layout = #nn.layout<dp = V, tp = R>},
                           tensor<4xf32> {nn.layout = #nn.layout<tp = P>}, tensor<4xf32> {nn.layout = #nn.layout<tp = I>})
}
