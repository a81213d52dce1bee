// RUN: reprise-opt %s -split-input-file --reprise-differentiate --reprise-add-optimizer | FileCheck %s

// A frozen embedding, tied to the head: the gradient flows through the head down
// to the weight that is trained, and no further. The table has no gradient, no
// accumulator, no moments and no update.

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   %[[E:[^:]*]]: tensor<7x4xf32> {nn.parameter = #nn.parameter<name = "e", init = zeros, frozen = true>}
//   CHECK-NOT:   nn.gradient = "e"
//   CHECK-NOT:   nn.moment1 = "e"
//   CHECK-NOT:   nn.moment2 = "e"
//       CHECK:   -> (tensor<f32> {nn.output = "loss"}, tensor<4x4xf32> {nn.gradient = "w"}, tensor<f32> {nn.output = "grad_norm"}, tensor<4x4xf32> {nn.parameter = "w"}, tensor<4x4xf32> {nn.moment1 = "w"}, tensor<4x4xf32> {nn.moment2 = "w"})
//       CHECK:   %[[X:.*]] = nn.embedding
//       CHECK:   nn.backward
//       CHECK:   %[[DL:.*]] = nn.cross_entropy_backward
//  CHECK-NEXT:   %[[DY:.*]] = nn.linear_backward_input %[[DL]], %[[E]] out_in
//  CHECK-NEXT:   %[[DW:.*]] = nn.linear_backward_weight %[[X]], %[[DY]] in_out
//  CHECK-NEXT:   nn.accumulate %{{.*}}, %[[DW]]
//  CHECK-NEXT:   nn.update
//  CHECK-NEXT:   nn.global_norm %{{[^,]*}} {{.*}} : (tensor<4x4xf32>) -> tensor<f32>
//  CHECK-NEXT:   nn.clip_scale
//  CHECK-NEXT:   nn.adamw {{.*}} : tensor<4x4xf32>, tensor<f32>
//  CHECK-NEXT:   return
module attributes {nn.train = {adam_beta1 = 0.5, adam_beta2 = 0.25, adam_eps = 0.0625, weight_decay = 0.125, clip_grad = 0.5}} {
  func.func @forward(%tokens: tensor<2x3xi32> {nn.input = "tokens"}, %targets: tensor<2x3xi32> {nn.input = "targets"},
                     %e: tensor<7x4xf32> {nn.parameter = #nn.parameter<name = "e", init = zeros, frozen = true>},
                     %w: tensor<4x4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros, decay = true>}) -> tensor<f32> {
    %x = nn.embedding %tokens, %e : (tensor<2x3xi32>, tensor<7x4xf32>) -> tensor<2x3x4xf32>
    %y = nn.linear %x, %w in_out : (tensor<2x3x4xf32>, tensor<4x4xf32>) -> tensor<2x3x4xf32>
    %logits = nn.linear %y, %e out_in : (tensor<2x3x4xf32>, tensor<7x4xf32>) -> tensor<2x3x7xf32>
    %losses, %lse = nn.cross_entropy %logits, %targets : (tensor<2x3x7xf32>, tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
    %loss = nn.mean %losses : (tensor<2x3xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// -----

// The lowest layers are all frozen: nothing is built for them, also not for the
// residual that passes them by. Of layer 1, the first that trains, the norm's
// input has no use for a gradient either.

// CHECK-LABEL: func.func @step(
//       CHECK:   nn.backward
//   CHECK-NOT:   layer = 0
//   CHECK-NOT:   embedding
//   CHECK-NOT:   nn.rms_norm_backward %
//       CHECK:   nn.add {{.*}}layer = 1
//   CHECK-NOT:   layer = 0
//       CHECK:   nn.rms_norm_backward_gain
//   CHECK-NOT:   layer = 0
//   CHECK-NOT:   nn.rms_norm_backward %
//       CHECK:   nn.update
//       CHECK:   nn.global_norm %{{[^,]*}}, %{{[^,]*}} {{.*}} : (tensor<4xf32>, tensor<4x4xf32>)
module attributes {nn.train = {adam_beta1 = 0.5, adam_beta2 = 0.25, adam_eps = 0.0625, weight_decay = 0.125, clip_grad = 0.5}} {
  func.func @forward(%tokens: tensor<2x3xi32> {nn.input = "tokens"},
                     %e: tensor<7x4xf32> {nn.parameter = #nn.parameter<name = "e", init = zeros, frozen = true>},
                     %g0: tensor<4xf32> {nn.parameter = #nn.parameter<name = "g0", init = ones, frozen = true>},
                     %w0: tensor<4x4xf32> {nn.parameter = #nn.parameter<name = "w0", init = zeros, frozen = true>},
                     %g1: tensor<4xf32> {nn.parameter = #nn.parameter<name = "g1", init = ones>},
                     %w1: tensor<4x4xf32> {nn.parameter = #nn.parameter<name = "w1", init = zeros>}) -> tensor<f32> {
    %x = nn.embedding %tokens, %e {nn.scope = #nn.scope<module = "embedding">} : (tensor<2x3xi32>, tensor<7x4xf32>) -> tensor<2x3x4xf32>
    %n0, %r0 = nn.rms_norm %x, %g0 eps 1.0 {nn.scope = #nn.scope<layer = 0, module = "layernorm">} : (tensor<2x3x4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>)
    %y0 = nn.linear %n0, %w0 in_out {nn.scope = #nn.scope<layer = 0, module = "mlp">} : (tensor<2x3x4xf32>, tensor<4x4xf32>) -> tensor<2x3x4xf32>
    %x1 = nn.add %x, %y0 {nn.scope = #nn.scope<layer = 0, module = "residual">} : tensor<2x3x4xf32>
    %n1, %r1 = nn.rms_norm %x1, %g1 eps 1.0 {nn.scope = #nn.scope<layer = 1, module = "layernorm">} : (tensor<2x3x4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>)
    %y1 = nn.linear %n1, %w1 in_out {nn.scope = #nn.scope<layer = 1, module = "mlp">} : (tensor<2x3x4xf32>, tensor<4x4xf32>) -> tensor<2x3x4xf32>
    %z1 = nn.swiglu %n1, %y1 {nn.scope = #nn.scope<layer = 1, module = "mlp">} : tensor<2x3x4xf32>
    %x2 = nn.add %x1, %z1 {nn.scope = #nn.scope<layer = 1, module = "residual">} : tensor<2x3x4xf32>
    %loss = nn.mean %x2 : (tensor<2x3x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
