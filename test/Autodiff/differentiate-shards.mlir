// RUN: reprise-opt %s -split-input-file --reprise-differentiate | FileCheck %s

// The moves between words come in pairs, one the derivative of the other.

// I to R: each rank has its own part of the gradient. Nothing of the move is
// left in the step.

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   %[[W:[^:]*]]: tensor<2x4xf32>
//   CHECK-NOT:   nn.replicate
//  CHECK-NEXT:   nn.gelu %[[W]]
//       CHECK:   nn.backward
//       CHECK:   %[[D:.*]] = nn.gelu_backward %[[W]]
//  CHECK-NEXT:   %[[SUM:.*]] = nn.all_reduce %[[D]] over "tp" : tensor<2x4xf32>
//  CHECK-NEXT:   nn.accumulate %{{.*}}, %[[SUM]]
func.func @forward(%w: tensor<2x4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<f32> {
  %r = nn.replicate %w over "tp" : tensor<2x4xf32>
  %y = nn.gelu %r tanh : tensor<2x4xf32>
  %loss = nn.mean %y : (tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// P to I: each term has the gradient of the sum.

// CHECK-LABEL: func.func @step(
//       CHECK:   nn.all_reduce
//       CHECK:   nn.backward
//       CHECK:   %[[D:.*]] = nn.broadcast
//   CHECK-NOT:   nn.all_reduce
//       CHECK:   nn.accumulate %{{.*}}, %[[D]]
func.func @forward(%w: tensor<2x4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<f32> {
  %y = nn.all_reduce %w over "tp" : tensor<2x4xf32>
  %loss = nn.mean %y : (tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Of groups in two runs there are two terms of each of two sums: those of the
// first are operands 0 and 2, and each has its gradient.

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   %[[W:[^:]*]]: tensor<2x4xf32> {nn.parameter
//  CHECK-SAME:   %[[V:[^:]*]]: tensor<8xf32> {nn.parameter
//       CHECK:   %[[SUMS:.*]]:2 = nn.all_reduce
//       CHECK:   nn.backward
//       CHECK:   %[[DB:.*]] = nn.gelu_backward %[[SUMS]]#1
//       CHECK:   %[[DA:.*]] = nn.gelu_backward %[[SUMS]]#0
//   CHECK-NOT:   nn.all_reduce
//   CHECK-DAG:   %[[V2:.*]] = nn.gelu_backward %[[V]], %[[DB]]
//   CHECK-DAG:   %[[DV:.*]] = nn.add %[[DB]], %[[V2]]
//   CHECK-DAG:   nn.accumulate %{{.*}}, %[[DV]]
//   CHECK-DAG:   %[[W2:.*]] = nn.gelu_backward %[[W]], %[[DA]]
//   CHECK-DAG:   %[[DW:.*]] = nn.add %[[DA]], %[[W2]]
//   CHECK-DAG:   nn.accumulate %{{.*}}, %[[DW]]
func.func @forward(%w: tensor<2x4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}, %v: tensor<8xf32> {nn.parameter = #nn.parameter<name = "v", init = zeros>}) -> tensor<f32> {
  %a = nn.gelu %w tanh : tensor<2x4xf32>
  %b = nn.gelu %v tanh : tensor<8xf32>
  %y:2 = nn.all_reduce %w, %v, %a, %b over "tp" {nn.reduction_groups = 3 : i64} : tensor<2x4xf32>, tensor<8xf32>, tensor<2x4xf32>, tensor<8xf32>
  %f = nn.gelu %y#0 tanh : tensor<2x4xf32>
  %g = nn.gelu %y#1 tanh : tensor<8xf32>
  %first = nn.mean %f : (tensor<2x4xf32>) -> tensor<f32>
  %second = nn.mean %g : (tensor<8xf32>) -> tensor<f32>
  %loss = nn.add %first, %second : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// P to S, and back from S to R.

// CHECK-LABEL: func.func @step(
//       CHECK:   nn.backward
//       CHECK:   %[[D:.*]] = nn.broadcast {{.*}} -> tensor<2x2xf32>
//  CHECK-NEXT:   %[[ALL:.*]] = nn.all_gather %[[D]] to R over "tp" dim 1 : (tensor<2x2xf32>) -> tensor<2x4xf32>
//  CHECK-NEXT:   nn.accumulate %{{.*}}, %[[ALL]]
func.func @forward(%w: tensor<2x4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<f32> {
  %y = nn.reduce_scatter %w over "tp" dim 1 : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %loss = nn.mean %y : (tensor<2x2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// S to R, and back from P to S.

// CHECK-LABEL: func.func @step(
//       CHECK:   nn.backward
//       CHECK:   %[[D:.*]] = nn.broadcast {{.*}} -> tensor<4x4xf32>
//  CHECK-NEXT:   %[[PART:.*]] = nn.reduce_scatter %[[D]] over "tp" dim 0 : (tensor<4x4xf32>) -> tensor<2x4xf32>
//  CHECK-NEXT:   nn.accumulate %{{.*}}, %[[PART]]
func.func @forward(%w: tensor<2x4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<f32> {
  %y = nn.all_gather %w to R over "tp" dim 0 : (tensor<2x4xf32>) -> tensor<4x4xf32>
  %loss = nn.mean %y : (tensor<4x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// S to I, and back from I to S.

// CHECK-LABEL: func.func @step(
//       CHECK:   nn.backward
//       CHECK:   %[[D:.*]] = nn.broadcast {{.*}} -> tensor<4x4xf32>
//  CHECK-NEXT:   %[[PART:.*]] = nn.slice %[[D]] over "tp" dim 0 : (tensor<4x4xf32>) -> tensor<2x4xf32>
//  CHECK-NEXT:   nn.accumulate %{{.*}}, %[[PART]]
func.func @forward(%w: tensor<2x4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<f32> {
  %y = nn.all_gather %w to I over "tp" dim 0 : (tensor<2x4xf32>) -> tensor<4x4xf32>
  %loss = nn.mean %y : (tensor<4x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// I to S, and back from S to I.

// CHECK-LABEL: func.func @step(
//       CHECK:   nn.backward
//       CHECK:   %[[D:.*]] = nn.broadcast {{.*}} -> tensor<2x2xf32>
//  CHECK-NEXT:   %[[ALL:.*]] = nn.all_gather %[[D]] to I over "tp" dim 1 : (tensor<2x2xf32>) -> tensor<2x4xf32>
//  CHECK-NEXT:   nn.accumulate %{{.*}}, %[[ALL]]
func.func @forward(%w: tensor<2x4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<f32> {
  %y = nn.slice %w over "tp" dim 1 : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %loss = nn.mean %y : (tensor<2x2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Head and loss of a rank's part of the vocabulary: the gradient goes through
// the sum of hits, and through the rank's part of the log-sum-exps.

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   %[[X:[^:]*]]: tensor<2x3x5xf32>
//       CHECK:   %[[LSE:.*]], %{{.*}} = nn.cross_entropy_part
//       CHECK:   %[[PARTS:.*]] = nn.all_gather %[[LSE]]
//       CHECK:   %[[JOINED:.*]] = nn.join_lse %[[PARTS]]
//       CHECK:   nn.backward
//       CHECK:   %[[D:.*]] = nn.broadcast
//  CHECK-NEXT:   %[[DHIT:.*]] = nn.scale %[[D]] by -1.000000e+00
//  CHECK-NEXT:   %[[DPARTS:.*]] = nn.join_lse_backward %[[PARTS]], %[[JOINED]], %[[D]]
//  CHECK-NEXT:   %[[DLSE:.*]] = nn.slice %[[DPARTS]] over "tp" dim 0 : (tensor<4x3xf32>) -> tensor<2x3xf32>
//  CHECK-NEXT:   nn.cross_entropy_part_backward %[[X]], %{{.*}}, %[[LSE]], %[[DLSE]], %[[DHIT]] over "tp"
func.func @forward(%x: tensor<2x3x5xf32> {nn.parameter = #nn.parameter<name = "x", init = zeros>},
                   %targets: tensor<2x3xi32> {nn.input = "targets"}) -> tensor<f32> {
  %lse, %hit = nn.cross_entropy_part %x, %targets over "tp" : (tensor<2x3x5xf32>, tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %parts = nn.all_gather %lse to I over "tp" dim 0 : (tensor<2x3xf32>) -> tensor<4x3xf32>
  %joined = nn.join_lse %parts : (tensor<4x3xf32>) -> tensor<2x3xf32>
  %hits = nn.all_reduce %hit over "tp" : tensor<2x3xf32>
  %less = nn.scale %hits by -1.0 : tensor<2x3xf32>
  %losses = nn.add %joined, %less : tensor<2x3xf32>
  %loss = nn.mean %losses : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Ids have no gradient, and a hit that nothing reads has a gradient of zero.

// CHECK-LABEL: func.func @step(
//       CHECK:   nn.backward
//   CHECK-DAG:   %[[ZERO:.*]] = nn.constant 0.000000e+00 : tensor<2x3xf32>
//   CHECK-DAG:   %[[DLSE:.*]] = nn.broadcast
//       CHECK:   %[[DX:.*]] = nn.cross_entropy_part_backward %{{.*}}, %{{.*}}, %{{.*}}, %[[DLSE]], %[[ZERO]] over "tp"
//       CHECK:   %[[DB:.*]] = nn.sum_rows %[[DX]]
//       CHECK:   nn.embedding_part_backward %{{.*}}, %[[DX]] over "tp" : (tensor<2x3xi32>, tensor<2x3x5xf32>) -> tensor<7x5xf32>
func.func @forward(%ids: tensor<2x3xi32> {nn.input = "tokens"},
                   %table: tensor<7x5xf32> {nn.parameter = #nn.parameter<name = "table", init = zeros>},
                   %b: tensor<5xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>}) -> tensor<f32> {
  %e = nn.embedding_part %ids, %table over "tp" : (tensor<2x3xi32>, tensor<7x5xf32>) -> tensor<2x3x5xf32>
  %x = nn.add_bias %e, %b : (tensor<2x3x5xf32>, tensor<5xf32>) -> tensor<2x3x5xf32>
  %lse, %hit = nn.cross_entropy_part %x, %ids over "tp" : (tensor<2x3x5xf32>, tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %loss = nn.mean %lse : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
