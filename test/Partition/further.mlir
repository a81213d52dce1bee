// RUN: reprise-opt %s -split-input-file --reprise-annotate-layout --reprise-partition | FileCheck %s
// RUN: reprise-opt %s -split-input-file --reprise-annotate-layout=sequence-parallel --reprise-partition | FileCheck %s --check-prefix=SP
// RUN: reprise-opt %s -split-input-file --reprise-annotate-layout=sequence-parallel --reprise-partition --reprise-differentiate | FileCheck %s --check-prefix=BACK

// What predicts a further token. Rows that a rank has of a table become those of all
// positions before ranks meet, so that these divide them. Two values side by side are in
// parts as both are, and so is their projection, whose weight is whole. Some positions
// of parts are taken of all of them; what parts of the vocabulary read has its gradient
// added up along all positions again.

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
// CHECK-LABEL: func.func @forward(
//  CHECK-SAME:   %[[TABLE:[^:]*]]: tensor<5x8xf32> {nn.layout = #nn.layout<tp = S(0)>
//  CHECK-SAME:   %[[EH:[^:]*]]: tensor<8x16xf32> {nn.layout = #nn.layout<tp = I>
//       CHECK:   %[[IDS:.*]] = nn.crop_positions %{{.*}} from 1 {{.*}} -> tensor<2x3xi32>
//  CHECK-NEXT:   %[[SOME:.*]] = nn.embedding_part %[[IDS]], %[[TABLE]] over "tp" {{.*}} -> tensor<2x3x8xf32>
//  CHECK-NEXT:   %[[ALL:.*]] = nn.pad_positions %[[SOME]] from 0 {{.*}} -> tensor<2x4x8xf32>
//  CHECK-NEXT:   %[[E:.*]] = nn.all_reduce %[[ALL]] over "tp"
//  CHECK-NEXT:   %[[J:.*]] = nn.join_columns %[[E]], %[[H:.*]] : {{.*}} -> tensor<2x4x16xf32>
//  CHECK-NEXT:   %[[X:.*]] = nn.linear %[[J]], %[[EH]]
//  CHECK-NEXT:   %[[C:.*]] = nn.crop_positions %[[X]] from 0 : (tensor<2x4x8xf32>) -> tensor<2x3x8xf32>
//  CHECK-NEXT:   %[[R:.*]] = nn.replicate %[[C]] over "tp"
//  CHECK-NEXT:   nn.linear %[[R]], %[[TABLE]] out_in : {{.*}} -> tensor<2x3x5xf32>

// SP-LABEL: func.func @forward(
//  SP-SAME:   %[[TABLE:[^:]*]]: tensor<5x8xf32> {nn.layout = #nn.layout<tp = S(0)>
//  SP-SAME:   %[[EH:[^:]*]]: tensor<8x16xf32> {nn.layout = #nn.layout<tp = R>
//       SP:   %[[SOME:.*]] = nn.embedding_part {{.*}} -> tensor<2x3x8xf32>
//  SP-NEXT:   %[[ALL:.*]] = nn.pad_positions %[[SOME]] from 0 {{.*}} -> tensor<2x4x8xf32>
//  SP-NEXT:   %[[E:.*]] = nn.reduce_scatter %[[ALL]] over "tp" dim 1 {{.*}} -> tensor<2x2x8xf32>
//  SP-NEXT:   %[[J:.*]] = nn.join_columns %[[E]], %{{.*}} : (tensor<2x2x8xf32>, tensor<2x2x8xf32>) -> tensor<2x2x16xf32>
//  SP-NEXT:   %[[X:.*]] = nn.linear %[[J]], %[[EH]] out_in : {{.*}} -> tensor<2x2x8xf32>
//  SP-NEXT:   %[[G:.*]] = nn.all_gather %[[X]] to R over "tp" dim 1 {{.*}} -> tensor<2x4x8xf32>
//  SP-NEXT:   %[[C:.*]] = nn.crop_positions %[[G]] from 0 : (tensor<2x4x8xf32>) -> tensor<2x3x8xf32>
//  SP-NEXT:   nn.linear %[[C]], %[[TABLE]] out_in : {{.*}} -> tensor<2x3x5xf32>

// BACK: nn.backward
// BACK: %[[DC:.*]] = nn.linear_backward_input {{.*}} -> tensor<2x3x8xf32>
// BACK: %[[DG:.*]] = nn.pad_positions %[[DC]] from 0 {{.*}} -> tensor<2x4x8xf32>
// BACK: nn.reduce_scatter %[[DG]] over "tp" dim 1
// BACK: %[[DE:.*]], %{{.*}} = nn.split_columns {{.*}} -> (tensor<2x2x8xf32>, tensor<2x2x8xf32>)
// BACK: %[[DALL:.*]] = nn.all_gather %[[DE]] to R over "tp" dim 1
// BACK: %[[DSOME:.*]] = nn.crop_positions %[[DALL]] from 0 {{.*}} -> tensor<2x3x8xf32>
// BACK: nn.embedding_part_backward {{.*}}%[[DSOME]]
func.func @forward(%tokens: tensor<2x4xi32> {nn.input = "tokens"}, %targets: tensor<2x4xi32> {nn.input = "targets"},
                   %table: tensor<10x8xf32> {nn.parameter = #nn.parameter<name = "table", init = zeros>},
                   %eh: tensor<8x16xf32> {nn.parameter = #nn.parameter<name = "eh", init = zeros>}) -> tensor<f32> {
  %h = nn.embedding %tokens, %table : (tensor<2x4xi32>, tensor<10x8xf32>) -> tensor<2x4x8xf32>
  %ids = nn.crop_positions %targets from 1 : (tensor<2x4xi32>) -> tensor<2x3xi32>
  %some = nn.embedding %ids, %table : (tensor<2x3xi32>, tensor<10x8xf32>) -> tensor<2x3x8xf32>
  %e = nn.pad_positions %some from 0 : (tensor<2x3x8xf32>) -> tensor<2x4x8xf32>
  %j = nn.join_columns %e, %h : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x16xf32>
  %x = nn.linear %j, %eh out_in : (tensor<2x4x16xf32>, tensor<8x16xf32>) -> tensor<2x4x8xf32>
  %c = nn.crop_positions %x from 0 : (tensor<2x4x8xf32>) -> tensor<2x3x8xf32>
  %logits = nn.linear %c, %table out_in : (tensor<2x3x8xf32>, tensor<10x8xf32>) -> tensor<2x3x10xf32>
  %losses, %lse = nn.cross_entropy %logits, %ids : (tensor<2x3x10xf32>, tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %loss = nn.mean %losses : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

// -----

// What a router reads, too, and what is read by itself, is the same on all ranks.

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
// SP-LABEL: func.func @forward(
//       SP:   %[[X:.*]] = nn.reduce_scatter
//  SP-NEXT:   %[[ALL:.*]] = nn.all_gather %[[X]] to I over "tp" dim 1
//  SP-NEXT:   %[[C:.*]] = nn.crop_positions %[[ALL]] from 0
//  SP-NEXT:   nn.linear %[[C]], %{{.*}} out_in : {{.*}} -> tensor<2x3x4xf32>
//  SP-NEXT:   %[[R:.*]] = nn.replicate %[[C]] over "tp"
//  SP-NEXT:   %[[U:.*]] = nn.linear %[[R]], {{.*}} -> tensor<2x3x3xf32>
//  SP-NEXT:   %[[G:.*]] = nn.gelu %[[U]]
//  SP-NEXT:   %[[Y:.*]] = nn.linear %[[G]], {{.*}} -> tensor<2x3x8xf32>
//  SP-NEXT:   %[[P:.*]] = nn.pad_positions %[[Y]] from 0
//  SP-NEXT:   %[[S:.*]] = nn.reduce_scatter %[[P]] over "tp" dim 1
//  SP-NEXT:   nn.add %[[X]], %[[S]] : tensor<2x2x8xf32>
func.func @forward(%tokens: tensor<2x4xi32> {nn.input = "tokens"},
                   %table: tensor<10x8xf32> {nn.parameter = #nn.parameter<name = "table", init = zeros>},
                   %wr: tensor<4x8xf32> {nn.parameter = #nn.parameter<name = "wr", init = zeros>},
                   %wu: tensor<6x8xf32> {nn.parameter = #nn.parameter<name = "wu", init = zeros>},
                   %wd: tensor<8x6xf32> {nn.parameter = #nn.parameter<name = "wd", init = zeros>}) -> tensor<f32> {
  %x = nn.embedding %tokens, %table : (tensor<2x4xi32>, tensor<10x8xf32>) -> tensor<2x4x8xf32>
  %c = nn.crop_positions %x from 0 : (tensor<2x4x8xf32>) -> tensor<2x3x8xf32>
  %r = nn.linear %c, %wr out_in : (tensor<2x3x8xf32>, tensor<4x8xf32>) -> tensor<2x3x4xf32>
  %u = nn.linear %c, %wu out_in : (tensor<2x3x8xf32>, tensor<6x8xf32>) -> tensor<2x3x6xf32>
  %g = nn.gelu %u tanh : tensor<2x3x6xf32>
  %y = nn.linear %g, %wd out_in : (tensor<2x3x6xf32>, tensor<8x6xf32>) -> tensor<2x3x8xf32>
  %p = nn.pad_positions %y from 0 : (tensor<2x3x8xf32>) -> tensor<2x4x8xf32>
  %out = nn.add %x, %p : tensor<2x4x8xf32>
  %a = nn.mean %out : (tensor<2x4x8xf32>) -> tensor<f32>
  %b = nn.mean %r : (tensor<2x3x4xf32>) -> tensor<f32>
  %loss = nn.add %a, %b : tensor<f32>
  return %loss : tensor<f32>
}
}
