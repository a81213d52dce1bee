// RUN: reprise-opt %s --pass-pipeline='builtin.module(func.func(reprise-chunk-head{rows=256}))' -split-input-file | FileCheck %s
// RUN: reprise-opt %s --pass-pipeline='builtin.module(func.func(reprise-chunk-head{rows=256}))' -split-input-file \
// RUN:   --remarks-filter=Autodiff 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: reprise-opt %s --pass-pipeline='builtin.module(func.func(reprise-chunk-head{rows=0}))' -split-input-file | FileCheck %s --check-prefix=WHOLE

// The weight is tied: its gradient is the first term of a sum, and the second
// is added to what there is with it. What reads the losses comes behind them;
// scopes stay.

// WHOLE-NOT: nn.linear_cross_entropy
// REMARK: [Passed] Chunked | Category:Autodiff | Function=tied | bytes=7168, chunks=3, rows=256, whole=16800

// CHECK-LABEL: func.func @tied(
//  CHECK-SAME:   %[[X:.*]]: tensor<2x300x8xf32>, %[[TARGETS:.*]]: tensor<2x300xi32>, %[[W:.*]]: tensor<7x8xf32>, %[[GW:.*]]: tensor<7x8xf32>, %[[SUM:.*]]: tensor<f32>)
//  CHECK-NEXT:   nn.backward
//  CHECK-NEXT:   %[[L:.*]], %[[G:.*]]:2 = nn.linear_cross_entropy %[[X]], %[[W]], %[[TARGETS]] sum(%[[GW]]) by 1.600000e-03 dinput out_in rows 256
//  CHECK-SAME:     {loss_scope = #nn.scope<module = "loss", value = "losses">, nn.scope = #nn.scope<module = "head", value = "logits">}
//  CHECK-NEXT:   %[[MEAN:.*]] = nn.mean %[[L]]
//  CHECK-NEXT:   %[[TOTAL:.*]] = nn.accumulate %[[SUM]], %[[MEAN]]
//  CHECK-NEXT:   %[[DE:.*]] = nn.embedding_backward %[[TARGETS]], %[[G]]#0
//  CHECK-NEXT:   %[[GW1:.*]] = nn.accumulate %[[G]]#1, %[[DE]]
//  CHECK-NEXT:   return %[[TOTAL]], %[[GW1]]
func.func @tied(%x: tensor<2x300x8xf32>, %targets: tensor<2x300xi32>, %w: tensor<7x8xf32>, %gw: tensor<7x8xf32>, %sum: tensor<f32>)
    -> (tensor<f32>, tensor<7x8xf32>) {
  %logits = nn.linear %x, %w out_in {nn.scope = #nn.scope<module = "head", value = "logits">}
    : (tensor<2x300x8xf32>, tensor<7x8xf32>) -> tensor<2x300x7xf32>
  %losses, %lse = nn.cross_entropy %logits, %targets {nn.scope = #nn.scope<module = "loss", value = "losses">}
    : (tensor<2x300x7xf32>, tensor<2x300xi32>) -> (tensor<2x300xf32>, tensor<2x300xf32>)
  %loss = nn.mean %losses : (tensor<2x300xf32>) -> tensor<f32>
  %total = nn.accumulate %sum, %loss : tensor<f32>
  nn.backward
  %dlosses = nn.constant 1.6e-03 : tensor<2x300xf32>
  %dlogits = nn.cross_entropy_backward %logits, %targets, %lse, %dlosses
    : (tensor<2x300x7xf32>, tensor<2x300xi32>, tensor<2x300xf32>, tensor<2x300xf32>) -> tensor<2x300x7xf32>
  %dw = nn.linear_backward_weight %x, %dlogits out_in : (tensor<2x300x8xf32>, tensor<2x300x7xf32>) -> tensor<7x8xf32>
  %dx = nn.linear_backward_input %dlogits, %w out_in : (tensor<2x300x7xf32>, tensor<7x8xf32>) -> tensor<2x300x8xf32>
  %de = nn.embedding_backward %targets, %dx : (tensor<2x300xi32>, tensor<2x300x8xf32>) -> tensor<7x8xf32>
  %both = nn.add %dw, %de : tensor<7x8xf32>
  %gw1 = nn.accumulate %gw, %both : tensor<7x8xf32>
  return %total, %gw1 : tensor<f32>, tensor<7x8xf32>
}

// -----

// A gradient of the input alone, where the weight is frozen; of the weight
// alone, where nothing below trains; none, where nothing goes backward. Weights
// of both layouts.

// CHECK-LABEL: func.func @input(
//       CHECK:   %{{.*}}, %{{.*}} = nn.linear_cross_entropy %{{.*}}, %{{.*}}, %{{.*}} by 1.600000e-03 dinput in_out rows 256 :
func.func @input(%x: tensor<2x300x8xf32>, %targets: tensor<2x300xi32>, %w: tensor<8x7xf32>) -> (tensor<2x300xf32>, tensor<2x300x8xf32>) {
  %logits = nn.linear %x, %w in_out : (tensor<2x300x8xf32>, tensor<8x7xf32>) -> tensor<2x300x7xf32>
  %losses, %lse = nn.cross_entropy %logits, %targets
    : (tensor<2x300x7xf32>, tensor<2x300xi32>) -> (tensor<2x300xf32>, tensor<2x300xf32>)
  nn.backward
  %dlosses = nn.constant 1.6e-03 : tensor<2x300xf32>
  %dlogits = nn.cross_entropy_backward %logits, %targets, %lse, %dlosses
    : (tensor<2x300x7xf32>, tensor<2x300xi32>, tensor<2x300xf32>, tensor<2x300xf32>) -> tensor<2x300x7xf32>
  %dx = nn.linear_backward_input %dlogits, %w in_out : (tensor<2x300x7xf32>, tensor<8x7xf32>) -> tensor<2x300x8xf32>
  return %losses, %dx : tensor<2x300xf32>, tensor<2x300x8xf32>
}

// CHECK-LABEL: func.func @weight(
//       CHECK:   %{{.*}}, %[[G:.*]] = nn.linear_cross_entropy %{{.*}}, %{{.*}}, %{{.*}} sum(%{{.*}}) by 1.600000e-03 out_in rows 256 :
//  CHECK-NEXT:   return %[[G]]
func.func @weight(%x: tensor<2x300x8xf32>, %targets: tensor<2x300xi32>, %w: tensor<7x8xf32>, %gw: tensor<7x8xf32>) -> tensor<7x8xf32> {
  %logits = nn.linear %x, %w out_in : (tensor<2x300x8xf32>, tensor<7x8xf32>) -> tensor<2x300x7xf32>
  %losses, %lse = nn.cross_entropy %logits, %targets
    : (tensor<2x300x7xf32>, tensor<2x300xi32>) -> (tensor<2x300xf32>, tensor<2x300xf32>)
  nn.backward
  %dlosses = nn.constant 1.6e-03 : tensor<2x300xf32>
  %dlogits = nn.cross_entropy_backward %logits, %targets, %lse, %dlosses
    : (tensor<2x300x7xf32>, tensor<2x300xi32>, tensor<2x300xf32>, tensor<2x300xf32>) -> tensor<2x300x7xf32>
  %dw = nn.linear_backward_weight %x, %dlogits out_in : (tensor<2x300x8xf32>, tensor<2x300x7xf32>) -> tensor<7x8xf32>
  %gw1 = nn.accumulate %gw, %dw : tensor<7x8xf32>
  return %gw1 : tensor<7x8xf32>
}

// CHECK-LABEL: func.func @evaluate(
//  CHECK-NEXT:   %[[L:.*]] = nn.linear_cross_entropy %{{.*}}, %{{.*}}, %{{.*}} out_in rows 256 :
//  CHECK-NEXT:   nn.mean %[[L]]
func.func @evaluate(%x: tensor<2x300x8xf32>, %targets: tensor<2x300xi32>, %w: tensor<7x8xf32>) -> tensor<f32> {
  %logits = nn.linear %x, %w out_in : (tensor<2x300x8xf32>, tensor<7x8xf32>) -> tensor<2x300x7xf32>
  %losses, %lse = nn.cross_entropy %logits, %targets
    : (tensor<2x300x7xf32>, tensor<2x300xi32>) -> (tensor<2x300xf32>, tensor<2x300xf32>)
  %loss = nn.mean %losses : (tensor<2x300xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Left alone: a bias; logits or their log-sum-exp that something else reads.

// CHECK-LABEL: func.func @bias(
//   CHECK-NOT:   nn.linear_cross_entropy
func.func @bias(%x: tensor<2x300x8xf32>, %targets: tensor<2x300xi32>, %w: tensor<7x8xf32>, %b: tensor<7xf32>) -> tensor<2x300xf32> {
  %logits = nn.linear %x, %w, %b out_in : (tensor<2x300x8xf32>, tensor<7x8xf32>, tensor<7xf32>) -> tensor<2x300x7xf32>
  %losses, %lse = nn.cross_entropy %logits, %targets
    : (tensor<2x300x7xf32>, tensor<2x300xi32>) -> (tensor<2x300xf32>, tensor<2x300xf32>)
  return %losses : tensor<2x300xf32>
}

// CHECK-LABEL: func.func @logits_read(
//   CHECK-NOT:   nn.linear_cross_entropy
func.func @logits_read(%x: tensor<2x300x8xf32>, %targets: tensor<2x300xi32>, %w: tensor<7x8xf32>) -> (tensor<2x300xf32>, tensor<2x300x7xf32>) {
  %logits = nn.linear %x, %w out_in : (tensor<2x300x8xf32>, tensor<7x8xf32>) -> tensor<2x300x7xf32>
  %losses, %lse = nn.cross_entropy %logits, %targets
    : (tensor<2x300x7xf32>, tensor<2x300xi32>) -> (tensor<2x300xf32>, tensor<2x300xf32>)
  return %losses, %logits : tensor<2x300xf32>, tensor<2x300x7xf32>
}

// CHECK-LABEL: func.func @lse_read(
//   CHECK-NOT:   nn.linear_cross_entropy
func.func @lse_read(%x: tensor<2x300x8xf32>, %targets: tensor<2x300xi32>, %w: tensor<7x8xf32>) -> (tensor<2x300xf32>, tensor<2x300xf32>) {
  %logits = nn.linear %x, %w out_in : (tensor<2x300x8xf32>, tensor<7x8xf32>) -> tensor<2x300x7xf32>
  %losses, %lse = nn.cross_entropy %logits, %targets
    : (tensor<2x300x7xf32>, tensor<2x300xi32>) -> (tensor<2x300xf32>, tensor<2x300xf32>)
  return %losses, %lse : tensor<2x300xf32>, tensor<2x300xf32>
}

// -----

// Left alone: a gradient of the losses that is no constant; one of the weight
// behind a term that is not added by itself, whose bits would change.

// CHECK-LABEL: func.func @gradient_given(
//   CHECK-NOT:   nn.linear_cross_entropy
func.func @gradient_given(%x: tensor<2x300x8xf32>, %targets: tensor<2x300xi32>, %w: tensor<7x8xf32>, %dlosses: tensor<2x300xf32>)
    -> (tensor<2x300xf32>, tensor<2x300x8xf32>) {
  %logits = nn.linear %x, %w out_in : (tensor<2x300x8xf32>, tensor<7x8xf32>) -> tensor<2x300x7xf32>
  %losses, %lse = nn.cross_entropy %logits, %targets
    : (tensor<2x300x7xf32>, tensor<2x300xi32>) -> (tensor<2x300xf32>, tensor<2x300xf32>)
  nn.backward
  %dlogits = nn.cross_entropy_backward %logits, %targets, %lse, %dlosses
    : (tensor<2x300x7xf32>, tensor<2x300xi32>, tensor<2x300xf32>, tensor<2x300xf32>) -> tensor<2x300x7xf32>
  %dx = nn.linear_backward_input %dlogits, %w out_in : (tensor<2x300x7xf32>, tensor<7x8xf32>) -> tensor<2x300x8xf32>
  return %losses, %dx : tensor<2x300xf32>, tensor<2x300x8xf32>
}

// CHECK-LABEL: func.func @second_term(
//   CHECK-NOT:   nn.linear_cross_entropy
func.func @second_term(%x: tensor<2x300x8xf32>, %targets: tensor<2x300xi32>, %w: tensor<7x8xf32>, %gw: tensor<7x8xf32>, %de: tensor<7x8xf32>) -> tensor<7x8xf32> {
  %logits = nn.linear %x, %w out_in : (tensor<2x300x8xf32>, tensor<7x8xf32>) -> tensor<2x300x7xf32>
  %losses, %lse = nn.cross_entropy %logits, %targets
    : (tensor<2x300x7xf32>, tensor<2x300xi32>) -> (tensor<2x300xf32>, tensor<2x300xf32>)
  nn.backward
  %dlosses = nn.constant 1.6e-03 : tensor<2x300xf32>
  %dlogits = nn.cross_entropy_backward %logits, %targets, %lse, %dlosses
    : (tensor<2x300x7xf32>, tensor<2x300xi32>, tensor<2x300xf32>, tensor<2x300xf32>) -> tensor<2x300x7xf32>
  %dw = nn.linear_backward_weight %x, %dlogits out_in : (tensor<2x300x8xf32>, tensor<2x300x7xf32>) -> tensor<7x8xf32>
  %both = nn.add %de, %dw : tensor<7x8xf32>
  %gw1 = nn.accumulate %gw, %both : tensor<7x8xf32>
  return %gw1 : tensor<7x8xf32>
}

// -----

// Two heads share a weight, which is the table of two lookups, too. The terms of
// its gradient are added where they are made, in that order; the last head comes
// first.

// CHECK-LABEL: func.func @two_heads(
//  CHECK-SAME:   %[[X:.*]]: tensor<2x300x8xf32>, %[[Y:.*]]: tensor<2x299x8xf32>, %[[T:.*]]: tensor<2x300xi32>, %[[S:.*]]: tensor<2x299xi32>, %[[W:.*]]: tensor<7x8xf32>, %[[GW:.*]]: tensor<7x8xf32>)
//       CHECK:   nn.backward
//  CHECK-NEXT:   %[[K:.*]], %[[H:.*]]:2 = nn.linear_cross_entropy %[[Y]], %[[W]], %[[S]] sum(%[[GW]]) by 1.700000e-04 dinput out_in rows 256
//  CHECK-NEXT:   %[[DE1:.*]] = nn.embedding_backward %[[S]], %[[H]]#0
//  CHECK-NEXT:   %[[GW1:.*]] = nn.accumulate %[[H]]#1, %[[DE1]]
//  CHECK-NEXT:   %[[L:.*]], %[[G:.*]]:2 = nn.linear_cross_entropy %[[X]], %[[W]], %[[T]] sum(%[[GW1]]) by 1.600000e-03 dinput out_in rows 256
//  CHECK-NEXT:   %[[DE:.*]] = nn.embedding_backward %[[T]], %[[G]]#0
//  CHECK-NEXT:   %[[GW2:.*]] = nn.accumulate %[[G]]#1, %[[DE]]
//  CHECK-NEXT:   return %[[L]], %[[K]], %[[GW2]]
func.func @two_heads(%x: tensor<2x300x8xf32>, %y: tensor<2x299x8xf32>, %t: tensor<2x300xi32>, %s: tensor<2x299xi32>, %w: tensor<7x8xf32>, %gw: tensor<7x8xf32>)
    -> (tensor<2x300xf32>, tensor<2x299xf32>, tensor<7x8xf32>) {
  %logits = nn.linear %x, %w out_in : (tensor<2x300x8xf32>, tensor<7x8xf32>) -> tensor<2x300x7xf32>
  %losses, %lse = nn.cross_entropy %logits, %t : (tensor<2x300x7xf32>, tensor<2x300xi32>) -> (tensor<2x300xf32>, tensor<2x300xf32>)
  %logits1 = nn.linear %y, %w out_in : (tensor<2x299x8xf32>, tensor<7x8xf32>) -> tensor<2x299x7xf32>
  %losses1, %lse1 = nn.cross_entropy %logits1, %s : (tensor<2x299x7xf32>, tensor<2x299xi32>) -> (tensor<2x299xf32>, tensor<2x299xf32>)
  nn.backward
  %dlosses1 = nn.constant 1.7e-04 : tensor<2x299xf32>
  %dlogits1 = nn.cross_entropy_backward %logits1, %s, %lse1, %dlosses1
    : (tensor<2x299x7xf32>, tensor<2x299xi32>, tensor<2x299xf32>, tensor<2x299xf32>) -> tensor<2x299x7xf32>
  %dw1 = nn.linear_backward_weight %y, %dlogits1 out_in : (tensor<2x299x8xf32>, tensor<2x299x7xf32>) -> tensor<7x8xf32>
  %dy = nn.linear_backward_input %dlogits1, %w out_in : (tensor<2x299x7xf32>, tensor<7x8xf32>) -> tensor<2x299x8xf32>
  %de1 = nn.embedding_backward %s, %dy : (tensor<2x299xi32>, tensor<2x299x8xf32>) -> tensor<7x8xf32>
  %a = nn.add %dw1, %de1 : tensor<7x8xf32>
  %dlosses = nn.constant 1.6e-03 : tensor<2x300xf32>
  %dlogits = nn.cross_entropy_backward %logits, %t, %lse, %dlosses
    : (tensor<2x300x7xf32>, tensor<2x300xi32>, tensor<2x300xf32>, tensor<2x300xf32>) -> tensor<2x300x7xf32>
  %dw = nn.linear_backward_weight %x, %dlogits out_in : (tensor<2x300x8xf32>, tensor<2x300x7xf32>) -> tensor<7x8xf32>
  %b = nn.add %a, %dw : tensor<7x8xf32>
  %dx = nn.linear_backward_input %dlogits, %w out_in : (tensor<2x300x7xf32>, tensor<7x8xf32>) -> tensor<2x300x8xf32>
  %de = nn.embedding_backward %t, %dx : (tensor<2x300xi32>, tensor<2x300x8xf32>) -> tensor<7x8xf32>
  %c = nn.add %b, %de : tensor<7x8xf32>
  %gw1 = nn.accumulate %gw, %c : tensor<7x8xf32>
  return %losses, %losses1, %gw1 : tensor<2x300xf32>, tensor<2x299xf32>, tensor<7x8xf32>
}

// -----

// Ranks have parts of the vocabulary, and the weight's gradient is the rank's own.
// Losses, and what they are made of and lead to, go.

// REMARK: [Passed] Chunked | Category:Autodiff | Function=parts | bytes=4096, chunks=3, rows=256, whole=9600
// CHECK-LABEL: func.func @parts(
//  CHECK-SAME:   %[[X:.*]]: tensor<2x300x8xf32>, %[[TARGETS:.*]]: tensor<2x300xi32>, %[[W:.*]]: tensor<4x8xf32>, %[[GW:.*]]: tensor<4x8xf32>)
//  CHECK-NEXT:   nn.backward
//  CHECK-NEXT:   %[[L:.*]], %[[G:.*]]:2 = nn.linear_cross_entropy %[[X]], %[[W]], %[[TARGETS]] sum(%[[GW]]) by 1.600000e-03 dinput out_in rows 256 over "tp" classes 7
//  CHECK-SAME:     {loss_scope = #nn.scope<module = "loss", value = "losses">, nn.scope = #nn.scope<module = "head", value = "logits">}
//  CHECK-NEXT:   %[[DX:.*]] = nn.all_reduce %[[G]]#0 over "tp"
//  CHECK-NEXT:   return %[[L]], %[[DX]], %[[G]]#1
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
func.func @parts(%x: tensor<2x300x8xf32>, %targets: tensor<2x300xi32>, %w: tensor<4x8xf32>, %gw: tensor<4x8xf32>)
    -> (tensor<2x300xf32>, tensor<2x300x8xf32>, tensor<4x8xf32>) {
  %logits = nn.linear %x, %w out_in {nn.scope = #nn.scope<module = "head", value = "logits">}
    : (tensor<2x300x8xf32>, tensor<4x8xf32>) -> tensor<2x300x4xf32>
  %own, %hit = nn.cross_entropy_part %logits, %targets over "tp" classes 7 {nn.scope = #nn.scope<module = "loss", value = "losses">}
    : (tensor<2x300x4xf32>, tensor<2x300xi32>) -> (tensor<2x300xf32>, tensor<2x300xf32>)
  %all = nn.all_gather %own to I over "tp" dim 0 : (tensor<2x300xf32>) -> tensor<4x300xf32>
  %hits = nn.all_reduce %hit over "tp" : tensor<2x300xf32>
  %lse = nn.join_lse %all : (tensor<4x300xf32>) -> tensor<2x300xf32>
  %less = nn.scale %hits by -1.0 : tensor<2x300xf32>
  %losses = nn.add %lse, %less : tensor<2x300xf32>
  nn.backward
  %dlosses = nn.constant 1.6e-03 : tensor<2x300xf32>
  %dhit = nn.constant -1.6e-03 : tensor<2x300xf32>
  %dall = nn.join_lse_backward %all, %lse, %dlosses : (tensor<4x300xf32>, tensor<2x300xf32>, tensor<2x300xf32>) -> tensor<4x300xf32>
  %down = nn.slice %dall over "tp" dim 0 : (tensor<4x300xf32>) -> tensor<2x300xf32>
  %dlogits = nn.cross_entropy_part_backward %logits, %targets, %own, %down, %dhit over "tp" classes 7
    : (tensor<2x300x4xf32>, tensor<2x300xi32>, tensor<2x300xf32>, tensor<2x300xf32>, tensor<2x300xf32>) -> tensor<2x300x4xf32>
  %dw = nn.linear_backward_weight %x, %dlogits out_in : (tensor<2x300x8xf32>, tensor<2x300x4xf32>) -> tensor<4x8xf32>
  %part = nn.linear_backward_input %dlogits, %w out_in : (tensor<2x300x4xf32>, tensor<4x8xf32>) -> tensor<2x300x8xf32>
  %dx = nn.all_reduce %part over "tp" : tensor<2x300x8xf32>
  %gw1 = nn.accumulate %gw, %dw : tensor<4x8xf32>
  return %losses, %dx, %gw1 : tensor<2x300xf32>, tensor<2x300x8xf32>, tensor<4x8xf32>
}
}

// -----

// Another loss than that of partitioning, and one whose gradient of the targets'
// logits is not that of the losses, stay whole.

// CHECK-LABEL: func.func @twice(
//   CHECK-NOT:   nn.linear_cross_entropy
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
func.func @twice(%x: tensor<2x300x8xf32>, %targets: tensor<2x300xi32>, %w: tensor<4x8xf32>) -> tensor<2x300xf32> {
  %logits = nn.linear %x, %w out_in : (tensor<2x300x8xf32>, tensor<4x8xf32>) -> tensor<2x300x4xf32>
  %own, %hit = nn.cross_entropy_part %logits, %targets over "tp"
    : (tensor<2x300x4xf32>, tensor<2x300xi32>) -> (tensor<2x300xf32>, tensor<2x300xf32>)
  %all = nn.all_gather %own to I over "tp" dim 0 : (tensor<2x300xf32>) -> tensor<4x300xf32>
  %hits = nn.all_reduce %hit over "tp" : tensor<2x300xf32>
  %lse = nn.join_lse %all : (tensor<4x300xf32>) -> tensor<2x300xf32>
  %less = nn.scale %hits by -2.0 : tensor<2x300xf32>
  %losses = nn.add %lse, %less : tensor<2x300xf32>
  return %losses : tensor<2x300xf32>
}

// CHECK-LABEL: func.func @other_gradient(
//   CHECK-NOT:   nn.linear_cross_entropy
//       CHECK:   return
func.func @other_gradient(%x: tensor<2x300x8xf32>, %targets: tensor<2x300xi32>, %w: tensor<4x8xf32>)
    -> (tensor<2x300xf32>, tensor<2x300x8xf32>) {
  %logits = nn.linear %x, %w out_in : (tensor<2x300x8xf32>, tensor<4x8xf32>) -> tensor<2x300x4xf32>
  %own, %hit = nn.cross_entropy_part %logits, %targets over "tp"
    : (tensor<2x300x4xf32>, tensor<2x300xi32>) -> (tensor<2x300xf32>, tensor<2x300xf32>)
  %all = nn.all_gather %own to I over "tp" dim 0 : (tensor<2x300xf32>) -> tensor<4x300xf32>
  %hits = nn.all_reduce %hit over "tp" : tensor<2x300xf32>
  %lse = nn.join_lse %all : (tensor<4x300xf32>) -> tensor<2x300xf32>
  %less = nn.scale %hits by -1.0 : tensor<2x300xf32>
  %losses = nn.add %lse, %less : tensor<2x300xf32>
  nn.backward
  %dlosses = nn.constant 1.6e-03 : tensor<2x300xf32>
  %dall = nn.join_lse_backward %all, %lse, %dlosses : (tensor<4x300xf32>, tensor<2x300xf32>, tensor<2x300xf32>) -> tensor<4x300xf32>
  %down = nn.slice %dall over "tp" dim 0 : (tensor<4x300xf32>) -> tensor<2x300xf32>
  %dlogits = nn.cross_entropy_part_backward %logits, %targets, %own, %down, %dlosses over "tp"
    : (tensor<2x300x4xf32>, tensor<2x300xi32>, tensor<2x300xf32>, tensor<2x300xf32>, tensor<2x300xf32>) -> tensor<2x300x4xf32>
  %dx = nn.linear_backward_input %dlogits, %w out_in : (tensor<2x300x4xf32>, tensor<4x8xf32>) -> tensor<2x300x8xf32>
  return %losses, %dx : tensor<2x300xf32>, tensor<2x300x8xf32>
}
}
