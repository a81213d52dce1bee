// RUN: reprise-opt %s | FileCheck %s
// RUN: reprise-opt %s -mlir-print-op-generic | reprise-opt | FileCheck %s

// Activations and what GEMMs read of weights are bf16. Gradients of
// parameters, statistics and losses stay f32, and so do gains and biases of norms.

// CHECK-LABEL: func @activations(
func.func @activations(%ids: tensor<2x8xi32>, %t: tensor<307x24xbf16>, %t32: tensor<307x24xf32>, %p: tensor<16x24xbf16>, %w: tensor<24x96xbf16>, %g: tensor<24xf32>, %b: tensor<96xbf16>, %rotary: tensor<8x8xf32>, %rng: tensor<4xi32>) {
  // CHECK: nn.embedding {{.*}} : (tensor<2x8xi32>, tensor<307x24xbf16>) -> tensor<2x8x24xbf16>
  %e = nn.embedding %ids, %t : (tensor<2x8xi32>, tensor<307x24xbf16>) -> tensor<2x8x24xbf16>
  // CHECK: nn.embedding {{.*}} : (tensor<2x8xi32>, tensor<307x24xf32>) -> tensor<2x8x24xbf16>
  %e32 = nn.embedding %ids, %t32 : (tensor<2x8xi32>, tensor<307x24xf32>) -> tensor<2x8x24xbf16>
  // CHECK: nn.add_positions {{.*}} : (tensor<2x8x24xbf16>, tensor<16x24xbf16>) -> tensor<2x8x24xbf16>
  %x = nn.add_positions %e, %p : (tensor<2x8x24xbf16>, tensor<16x24xbf16>) -> tensor<2x8x24xbf16>
  // CHECK: nn.layer_norm {{.*}} : (tensor<2x8x24xbf16>, tensor<24xf32>, tensor<24xf32>) -> (tensor<2x8x24xbf16>, tensor<2x8xf32>, tensor<2x8xf32>)
  %n, %mean, %rstd = nn.layer_norm %x, %g, %g eps 1.0e-05
    : (tensor<2x8x24xbf16>, tensor<24xf32>, tensor<24xf32>) -> (tensor<2x8x24xbf16>, tensor<2x8xf32>, tensor<2x8xf32>)
  // CHECK: nn.rms_norm {{.*}} : (tensor<2x8x24xbf16>, tensor<24xf32>) -> (tensor<2x8x24xbf16>, tensor<2x8xf32>)
  %r, %rms = nn.rms_norm %x, %g eps 1.0e-05 : (tensor<2x8x24xbf16>, tensor<24xf32>) -> (tensor<2x8x24xbf16>, tensor<2x8xf32>)
  // CHECK: nn.rope {{.*}} : (tensor<2x8x24xbf16>, tensor<8x8xf32>) -> tensor<2x8x24xbf16>
  %q = nn.rope %n, %rotary heads 3 half_split : (tensor<2x8x24xbf16>, tensor<8x8xf32>) -> tensor<2x8x24xbf16>
  // CHECK: nn.attention {{.*}} -> (tensor<2x8x24xbf16>, tensor<2x3x8xf32>)
  %c, %lse = nn.attention %q, %q, %r, %rng heads 3 scale 0.5 rate 0.1 stream 0
    : (tensor<2x8x24xbf16>, tensor<2x8x24xbf16>, tensor<2x8x24xbf16>, tensor<4xi32>) -> (tensor<2x8x24xbf16>, tensor<2x3x8xf32>)
  // CHECK: nn.linear {{.*}} : (tensor<2x8x24xbf16>, tensor<24x96xbf16>, tensor<96xbf16>) -> tensor<2x8x96xbf16>
  %u = nn.linear %c, %w, %b in_out : (tensor<2x8x24xbf16>, tensor<24x96xbf16>, tensor<96xbf16>) -> tensor<2x8x96xbf16>
  // CHECK: nn.gelu {{.*}} : tensor<2x8x96xbf16>
  %v = nn.gelu %u tanh : tensor<2x8x96xbf16>
  // CHECK: nn.cross_entropy {{.*}} : (tensor<2x8x24xbf16>, tensor<2x8xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  %l:2 = nn.cross_entropy %c, %ids : (tensor<2x8x24xbf16>, tensor<2x8xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  return
}

// CHECK-LABEL: func @gradients(
func.func @gradients(%ids: tensor<2x8xi32>, %x: tensor<2x8x24xbf16>, %dy: tensor<2x8x96xbf16>, %m: tensor<2x8xf32>, %w: tensor<307x24xbf16>, %gw: tensor<307x24xf32>) {
  // CHECK: nn.embedding_backward {{.*}} -> tensor<307x24xf32>
  %0 = nn.embedding_backward %ids, %x : (tensor<2x8xi32>, tensor<2x8x24xbf16>) -> tensor<307x24xf32>
  // CHECK: nn.positions_backward {{.*}} -> tensor<16x24xf32>
  %1 = nn.positions_backward %x : (tensor<2x8x24xbf16>) -> tensor<16x24xf32>
  // CHECK: nn.layer_norm_backward_gain {{.*}} -> tensor<24xf32>
  %2 = nn.layer_norm_backward_gain %x, %m, %m, %x : (tensor<2x8x24xbf16>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8x24xbf16>) -> tensor<24xf32>
  // CHECK: nn.rms_norm_backward_gain {{.*}} -> tensor<24xf32>
  %3 = nn.rms_norm_backward_gain %x, %m, %x : (tensor<2x8x24xbf16>, tensor<2x8xf32>, tensor<2x8x24xbf16>) -> tensor<24xf32>
  // CHECK: nn.sum_rows {{.*}} -> tensor<96xf32>
  %4 = nn.sum_rows %dy : (tensor<2x8x96xbf16>) -> tensor<96xf32>
  // CHECK: nn.linear_backward_weight {{.*}} -> tensor<24x96xf32>
  %5 = nn.linear_backward_weight %x, %dy in_out : (tensor<2x8x24xbf16>, tensor<2x8x96xbf16>) -> tensor<24x96xf32>
  // CHECK: nn.linear_cross_entropy {{.*}} -> (tensor<2x8xf32>, tensor<2x8x24xbf16>, tensor<307x24xf32>)
  %l, %dx, %gw1 = nn.linear_cross_entropy %x, %w, %ids sum(%gw) by 0.0625 dinput out_in rows 1024
    : (tensor<2x8x24xbf16>, tensor<307x24xbf16>, tensor<2x8xi32>, tensor<307x24xf32>) -> (tensor<2x8xf32>, tensor<2x8x24xbf16>, tensor<307x24xf32>)
  return
}

// CHECK-LABEL: func @update(
//  CHECK-SAME:   %[[P:.*]]: tensor<24xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}, %[[W:.*]]: tensor<24xbf16> {nn.working = "w"},
func.func @update(%p: tensor<24xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}, %w: tensor<24xbf16> {nn.working = "w"}, %g: tensor<24xf32>, %s: tensor<f32>)
    -> (tensor<24xf32> {nn.parameter = "w"}, tensor<24xbf16> {nn.working = "w"}) {
  // CHECK: nn.adamw %[[P]], {{.*}} working(%[[W]]) beta1 5.000000e-01 beta2 5.000000e-01 eps 1.000000e+00 weight_decay 0.000000e+00 : tensor<24xf32>, tensor<f32>, tensor<24xbf16> to tensor<24xbf16>
  %y:4 = nn.adamw %p, %g, %g, %g, %s, %s, %s, %s working(%w)
    beta1 0.5 beta2 0.5 eps 1.0 weight_decay 0.0 : tensor<24xf32>, tensor<f32>, tensor<24xbf16> to tensor<24xbf16>
  return %y#0, %y#3 : tensor<24xf32>, tensor<24xbf16>
}
