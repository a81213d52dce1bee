// RUN: reprise-opt %s -split-input-file --reprise-add-optimizer | FileCheck %s

// The norm is over all gradients, clipping over all parameters; decay is for
// those that ask for it. A frozen parameter has no part in any of it.

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   %[[W:[^:]*]]: tensor<2x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros, decay = true>},
//  CHECK-SAME:   %[[B:[^:]*]]: tensor<8xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>},
//  CHECK-SAME:   %{{[^:]*}}: tensor<8xf32> {nn.parameter = #nn.parameter<name = "frozen", init = zeros, frozen = true>},
//  CHECK-SAME:   %{{[^:]*}}: tensor<8xf32> {nn.gradient = "b"}, %{{[^:]*}}: tensor<2x8xf32> {nn.gradient = "w"},
//  CHECK-SAME:   %[[LR:[^:]*]]: tensor<f32> {nn.input = "lr"}, %[[C1:[^:]*]]: tensor<f32> {nn.input = "bias_correction1"}, %[[C2:[^:]*]]: tensor<f32> {nn.input = "bias_correction2"},
//  CHECK-SAME:   %[[MW:[^:]*]]: tensor<2x8xf32> {nn.moment1 = "w"}, %[[VW:[^:]*]]: tensor<2x8xf32> {nn.moment2 = "w"},
//  CHECK-SAME:   %[[MB:[^:]*]]: tensor<8xf32> {nn.moment1 = "b"}, %[[VB:[^:]*]]: tensor<8xf32> {nn.moment2 = "b"})
//  CHECK-SAME:   -> (tensor<8xf32> {nn.gradient = "b"}, tensor<2x8xf32> {nn.gradient = "w"}, tensor<f32> {nn.output = "grad_norm"},
//  CHECK-SAME:       tensor<2x8xf32> {nn.parameter = "w"}, tensor<2x8xf32> {nn.moment1 = "w"}, tensor<2x8xf32> {nn.moment2 = "w"},
//  CHECK-SAME:       tensor<8xf32> {nn.parameter = "b"}, tensor<8xf32> {nn.moment1 = "b"}, tensor<8xf32> {nn.moment2 = "b"})
//       CHECK:   nn.backward
//  CHECK-NEXT:   %[[GB:.*]] = nn.scale {{.*}} : tensor<8xf32>
//  CHECK-NEXT:   %[[GW:.*]] = nn.scale {{.*}} : tensor<2x8xf32>
//  CHECK-NEXT:   nn.update
//  CHECK-NEXT:   %[[NORM:.*]] = nn.global_norm %[[GW]], %[[GB]] {nn.scope = #nn.scope<module = "optimizer", value = "grad_norm">}
//  CHECK-NEXT:   %[[SCALE:.*]] = nn.clip_scale %[[NORM]] max 5.000000e-01
//  CHECK-NEXT:   %[[W1:.*]], %[[MW1:.*]], %[[VW1:.*]] = nn.adamw %[[W]], %[[GW]], %[[MW]], %[[VW]], %[[SCALE]], %[[LR]], %[[C1]], %[[C2]]
//  CHECK-SAME:     beta1 5.000000e-01 beta2 2.500000e-01 eps 6.250000e-02 weight_decay 1.250000e-01 {nn.scope = #nn.scope<module = "optimizer", value = "w">}
//  CHECK-NEXT:   %[[B1:.*]], %[[MB1:.*]], %[[VB1:.*]] = nn.adamw %[[B]], %[[GB]], %[[MB]], %[[VB]], %[[SCALE]], %[[LR]], %[[C1]], %[[C2]]
//  CHECK-SAME:     beta1 5.000000e-01 beta2 2.500000e-01 eps 6.250000e-02 weight_decay 0.000000e+00 {nn.scope = #nn.scope<module = "optimizer", value = "b">}
//  CHECK-NEXT:   return %[[GB]], %[[GW]], %[[NORM]], %[[W1]], %[[MW1]], %[[VW1]], %[[B1]], %[[MB1]], %[[VB1]]
module attributes {nn.train = {adam_beta1 = 0.5, adam_beta2 = 0.25, adam_eps = 0.0625, weight_decay = 0.125, clip_grad = 0.5}} {
  func.func @step(%w: tensor<2x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros, decay = true>},
                  %b: tensor<8xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>},
                  %f: tensor<8xf32> {nn.parameter = #nn.parameter<name = "frozen", init = zeros, frozen = true>},
                  %gb: tensor<8xf32> {nn.gradient = "b"}, %gw: tensor<2x8xf32> {nn.gradient = "w"})
      -> (tensor<8xf32> {nn.gradient = "b"}, tensor<2x8xf32> {nn.gradient = "w"}) {
    nn.backward
    %gb1 = nn.scale %gb by 2.0 : tensor<8xf32>
    %gw1 = nn.scale %gw by 2.0 : tensor<2x8xf32>
    return %gb1, %gw1 : tensor<8xf32>, tensor<2x8xf32>
  }
}

// -----

// clip_grad 0: the norm and the loss only say whether there is an update.

// CHECK-LABEL: func.func @step(
//       CHECK:   %[[LOSS:.*]] = nn.scale
//       CHECK:   %[[NORM:.*]] = nn.global_norm
//  CHECK-NEXT:   %[[SCALE:.*]] = nn.clip_scale %[[NORM]] with %[[LOSS]] {{.*}}: tensor<f32>
//  CHECK-NEXT:   nn.adamw %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[SCALE]],
module attributes {nn.train = {adam_beta1 = 0.5, adam_beta2 = 0.25, adam_eps = 0.0625, weight_decay = 0.125, clip_grad = 0.0}} {
  func.func @step(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}, %gw: tensor<4xf32> {nn.gradient = "w"}, %sum: tensor<f32> {nn.input = "loss_sum"})
      -> (tensor<f32> {nn.output = "loss"}, tensor<4xf32> {nn.gradient = "w"}) {
    %loss = nn.scale %sum by 2.0 : tensor<f32>
    return %loss, %gw : tensor<f32>, tensor<4xf32>
  }
}

// -----

// Ranks with samples of their own sum gradients and loss before the norm; the
// step returns the sums.

// CHECK-LABEL: func.func @step(
//       CHECK:   %[[G:.*]] = nn.scale
//       CHECK:   %[[LOSS:.*]] = nn.accumulate
//       CHECK:   nn.update
//  CHECK-NEXT:   %[[SUMS:.*]]:2 = nn.all_reduce %[[LOSS]], %[[G]] over "dp"
//  CHECK-SAME:     {nn.scope = #nn.scope<module = "optimizer", value = "sum_over_ranks">} : tensor<f32>, tensor<8xf32>
//  CHECK-NEXT:   %[[NORM:.*]] = nn.global_norm %[[SUMS]]#1
//  CHECK-NEXT:   nn.clip_scale %[[NORM]] with %[[SUMS]]#0
//  CHECK-NEXT:   nn.adamw %{{.*}}, %[[SUMS]]#1,
//  CHECK-NEXT:   return %[[SUMS]]#0, %[[SUMS]]#1, %[[NORM]]
module attributes {nn.mesh = #nn.mesh<dp = 3>, nn.train = {adam_beta1 = 0.5, adam_beta2 = 0.25, adam_eps = 0.0625, weight_decay = 0.125, clip_grad = 0.5}} {
  func.func @step(%w: tensor<8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>},
                  %loss: tensor<f32> {nn.input = "loss_sum"}, %g: tensor<8xf32> {nn.gradient = "w"})
      -> (tensor<f32> {nn.output = "loss"}, tensor<8xf32> {nn.gradient = "w"}) {
    nn.backward
    %g1 = nn.scale %g by 2.0 : tensor<8xf32>
    %term = nn.constant 1.0 : tensor<f32>
    %total = nn.accumulate %loss, %term : tensor<f32>
    return %total, %g1 : tensor<f32>, tensor<8xf32>
  }
}
