// RUN: reprise-opt %s --reprise-form-kernels --reprise-verify-kernels | FileCheck %s
// RUN: reprise-opt %s --pass-pipeline='builtin.module(reprise-form-kernels,func.func(convert-nn-to-linalg),reprise-verify-kernels{loops=true})' \
// RUN:   | FileCheck %s --check-prefix=LOOPS

// One program for all ranks: what a kernel does for the rank's part depends on the
// rank's number, which is an id of the launch, -2 for the second axis of the mesh.
// A stream comes before it. Collectives stand by themselves, and nothing is left
// of a rank's own use.

module attributes {nn.mesh = #nn.mesh<dp = 2, tp = 2>} {

// CHECK-LABEL: func.func @step(
//  CHECK-NEXT:   %[[PART:.*]] = rt.launch @slice_2x8x24(%{{.*}}) ids [-2] {
//  CHECK-NEXT:   %[[ALL:.*]] = rt.collective all_gather(%[[PART]]) over "tp" ranks 2 dim 1 {
//  CHECK-SAME:     : (tensor<2x4x24xf32>) -> tensor<2x8x24xf32>
//  CHECK-NEXT:   rt.collective reduce_scatter(%[[ALL]]) over "tp" ranks 2 dim 1 {
//  CHECK-SAME:     : (tensor<2x8x24xf32>) -> tensor<2x4x24xf32>
//  CHECK-NEXT:   rt.launch @dropout_2x4x24(%[[PART]], %{{.*}}) ids [7, -2]
//  CHECK-NEXT:   rt.launch @attention_2x8x24(%{{.*}}) ids [9, -2]
//  CHECK-NEXT:   return
func.func @step(%x: tensor<2x8x24xf32>, %rng: tensor<4xi32>)
    -> (tensor<2x4x24xf32>, tensor<2x4x24xf32>, tensor<2x8x24xf32>) {
  %part = nn.slice %x over "tp" dim 1 : (tensor<2x8x24xf32>) -> tensor<2x4x24xf32>
  %all = nn.all_gather %part to R over "tp" dim 1 : (tensor<2x4x24xf32>) -> tensor<2x8x24xf32>
  %own = nn.reduce_scatter %all over "tp" dim 1 : (tensor<2x8x24xf32>) -> tensor<2x4x24xf32>
  %kept = nn.dropout %part, %rng rate 0.1 stream 7 part <axis = "tp", dim = 1, ranks = 2>
    : (tensor<2x4x24xf32>, tensor<4xi32>) -> tensor<2x4x24xf32>
  %use = nn.replicate %x over "tp" : tensor<2x8x24xf32>
  %ctx, %lse = nn.attention %use, %x, %x, %rng heads 3 scale 0.5 rate 0.1 stream 9 part <axis = "tp", dim = 1, ranks = 2>
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)
  return %own, %kept, %ctx : tensor<2x4x24xf32>, tensor<2x4x24xf32>, tensor<2x8x24xf32>
}

// CHECK-LABEL: func.func @vocabulary(
//       CHECK:   rt.launch @embedding_part_154x24(%{{.*}}) ids [-2]
//       CHECK:   rt.launch @embedding_part_backward_154x24(%{{.*}}) ids [-2]
//       CHECK:   rt.launch @cross_entropy_part_2x8x154(%{{.*}}) ids [-2]
//       CHECK:   rt.launch @cross_entropy_part_backward_2x8x154(%{{.*}}) ids [-2]
//       CHECK:   rt.launch @join_lse_4x8(%{{.*}}) {
//       CHECK:   rt.launch @join_lse_backward_4x8(%{{.*}}) {
//       CHECK:   rt.launch @add_bias_2x8x24(%{{.*}}) {
func.func @vocabulary(%ids: tensor<2x8xi32>, %table: tensor<154x24xf32>, %x: tensor<2x8x24xf32>, %logits: tensor<2x8x154xf32>,
                      %parts: tensor<4x8xf32>, %c: tensor<24xf32>)
    -> (tensor<2x8x24xbf16>, tensor<154x24xf32>, tensor<2x8x154xf32>, tensor<4x8xf32>, tensor<2x8x24xf32>) {
  %e = nn.embedding_part %ids, %table over "tp" : (tensor<2x8xi32>, tensor<154x24xf32>) -> tensor<2x8x24xbf16>
  %d = nn.embedding_part_backward %ids, %x over "tp" : (tensor<2x8xi32>, tensor<2x8x24xf32>) -> tensor<154x24xf32>
  %lse, %hit = nn.cross_entropy_part %logits, %ids over "tp" classes 300
    : (tensor<2x8x154xf32>, tensor<2x8xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  %dl = nn.cross_entropy_part_backward %logits, %ids, %lse, %hit, %hit over "tp" classes 300
    : (tensor<2x8x154xf32>, tensor<2x8xi32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8x154xf32>
  %j = nn.join_lse %parts : (tensor<4x8xf32>) -> tensor<2x8xf32>
  %dj = nn.join_lse_backward %parts, %j, %j : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  %y = nn.add_bias %x, %c : (tensor<2x8x24xf32>, tensor<24xf32>) -> tensor<2x8x24xf32>
  return %e, %d, %dl, %dj, %y : tensor<2x8x24xbf16>, tensor<154x24xf32>, tensor<2x8x154xf32>, tensor<4x8xf32>, tensor<2x8x24xf32>
}
}

// The whole of a part has a row of pieces for each of its rows: here of 4 x 24
// elements, two of them for each entry of the batch.

// LOOPS-LABEL: func.func private @slice_2x8x24(
//       LOOPS:   %[[WHOLE:.*]] = tensor.expand_shape %{{.*}} : tensor<384xf32> into tensor<4x96xf32>
//       LOOPS:   %[[RANK:.*]] = rt.stream 0
//       LOOPS:   linalg.generic
//       LOOPS:     %[[ROW:.*]] = linalg.index 0
//       LOOPS:     %[[FIRST:.*]] = arith.muli %[[ROW]], %c2
//       LOOPS:     %[[OWN:.*]] = arith.index_cast %[[RANK]]
//       LOOPS:     %[[PIECE:.*]] = arith.addi %[[FIRST]], %[[OWN]]
//       LOOPS:     tensor.extract %[[WHOLE]][%[[PIECE]],

// The element that is drawn for: (e / 96 * 2 + rank) * 96 + e mod 96.

// LOOPS-LABEL: func.func private @dropout_2x4x24(
//       LOOPS:   rt.stream 0
//       LOOPS:   %[[RANK:.*]] = rt.stream 1
//       LOOPS:     %[[E:.*]] = linalg.index 0
//       LOOPS:     %[[PIECE:.*]] = arith.divui %[[E]], %c96
//       LOOPS:     %[[BEFORE:.*]] = arith.muli %[[PIECE]], %c96
//       LOOPS:     %[[OWN:.*]] = arith.muli %{{.*}}, %c96
//       LOOPS:     %[[SUM:.*]] = arith.addi %[[E]], %[[BEFORE]]
//       LOOPS:     %[[ALL:.*]] = arith.addi %[[SUM]], %[[OWN]]
//       LOOPS:     rt.random_word %[[ALL]]

// LOOPS-LABEL: func.func private @attention_2x8x24(
//       LOOPS:   rt.attention {{.*}} stream 0 ranks 2 coordinate 1

// Ids below the part wrap around, and are not below its size.

// LOOPS-LABEL: func.func private @embedding_part_154x24(
//       LOOPS:   %[[BEGIN:.*]] = arith.muli %{{.*}}, %c154_i32
//       LOOPS:     %[[OWN:.*]] = arith.subi %{{.*}}, %[[BEGIN]]
//       LOOPS:     arith.cmpi ult, %[[OWN]], %c154_i32

// LOOPS-LABEL: func.func private @embedding_part_backward_154x24(
//       LOOPS:   rt.scatter_add {{.*}} coordinate 0
