// RUN: reprise-opt %s -split-input-file --reprise-add-optimizer | FileCheck %s

// Ranks share a model. Gradients are summed over the ranks with other samples
// first, and then those of a parameter that each uses in its own way, once a step.
// The norm counts what is on all ranks once; of what they have parts of, each gives
// the others the norm of its own.

// CHECK-LABEL: func.func @step(
//       CHECK:   %[[W:.*]] = nn.accumulate
//       CHECK:   %[[G:.*]] = nn.accumulate
//       CHECK:   %[[P:.*]] = nn.accumulate
//  CHECK-NEXT:   nn.update
//  CHECK-NEXT:   %[[SUMS:.*]]:3 = nn.all_reduce %[[W]], %[[G]], %[[P]] over "dp"
//  CHECK-NEXT:   %[[GT:.*]] = nn.all_reduce %[[SUMS]]#1 over "tp" {nn.scope = #nn.scope<module = "optimizer", value = "sum_over_ranks">} : tensor<4xf32>
//  CHECK-NEXT:   %[[OWN:.*]] = nn.global_norm %[[SUMS]]#0 {nn.scope = #nn.scope<module = "optimizer", value = "norm_of_parts">}
//  CHECK-NEXT:   %[[ROW:.*]] = nn.broadcast %[[OWN]] by 1.000000e+00 {{.*}} : (tensor<f32>) -> tensor<1xf32>
//  CHECK-NEXT:   %[[ALL:.*]] = nn.all_gather %[[ROW]] to I over "tp" dim 0 {{.*}} : (tensor<1xf32>) -> tensor<3xf32>
//  CHECK-NEXT:   %[[NORM:.*]] = nn.global_norm %[[GT]], %[[SUMS]]#2, %[[ALL]] {nn.scope = #nn.scope<module = "optimizer", value = "grad_norm">}
//  CHECK-NEXT:   nn.clip_scale %[[NORM]]
module attributes {nn.mesh = #nn.mesh<dp = 2, tp = 3>,
                   nn.train = {adam_beta1 = 9.0e-01, adam_beta2 = 9.5e-01, adam_eps = 1.0e-08, weight_decay = 1.0e-01, clip_grad = 1.0}} {
  func.func @step(%w: tensor<2x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>, nn.layout = #nn.layout<tp = S(0)>},
                  %g: tensor<4xf32> {nn.parameter = #nn.parameter<name = "g", init = zeros>, nn.layout = #nn.layout<tp = R>},
                  %p: tensor<4xf32> {nn.parameter = #nn.parameter<name = "p", init = zeros>, nn.layout = #nn.layout<tp = I>},
                  %gw: tensor<2x8xf32> {nn.gradient = "w"}, %gg: tensor<4xf32> {nn.gradient = "g"}, %gp: tensor<4xf32> {nn.gradient = "p"})
      -> (tensor<2x8xf32> {nn.gradient = "w"}, tensor<4xf32> {nn.gradient = "g"}, tensor<4xf32> {nn.gradient = "p"}) {
    nn.backward
    %dw = nn.constant 5.0e-01 : tensor<2x8xf32>
    %dg = nn.constant 5.0e-01 : tensor<4xf32>
    %gw1 = nn.accumulate %gw, %dw : tensor<2x8xf32>
    %gg1 = nn.accumulate %gg, %dg : tensor<4xf32>
    %gp1 = nn.accumulate %gp, %dg : tensor<4xf32>
    return %gw1, %gg1, %gp1 : tensor<2x8xf32>, tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// Of heads of keys neighbours have the same ones: their gradients are parts of a
// sum, and the norm counts what is on both once.

// CHECK-LABEL: func.func @step(
//       CHECK:   %[[Q:.*]] = nn.accumulate
//       CHECK:   %[[K:.*]] = nn.accumulate
//  CHECK-NEXT:   nn.update
//  CHECK-NEXT:   %[[SUMS:.*]]:2 = nn.all_reduce %[[Q]], %[[K]] over "dp"
//  CHECK-NEXT:   %[[KS:.*]] = nn.all_reduce %[[SUMS]]#1 over "kv_copies"
//  CHECK-NEXT:   %[[OWN:.*]] = nn.global_norm %[[SUMS]]#0
//  CHECK-NEXT:   %[[ROW:.*]] = nn.broadcast %[[OWN]]
//  CHECK-NEXT:   %[[ALL:.*]] = nn.all_gather %[[ROW]] to I over "tp" dim 0 {{.*}} -> tensor<6xf32>
//  CHECK-NEXT:   %[[OWNK:.*]] = nn.global_norm %[[KS]]
//  CHECK-NEXT:   %[[ROWK:.*]] = nn.broadcast %[[OWNK]]
//  CHECK-NEXT:   %[[ALLK:.*]] = nn.all_gather %[[ROWK]] to I over "kv" dim 0 {{.*}} -> tensor<3xf32>
//  CHECK-NEXT:   nn.global_norm %[[ALL]], %[[ALLK]]
module attributes {nn.mesh = #nn.mesh<dp = 2, tp = 6, kv = 3 step 2, kv_copies = 2 step 1>,
                   nn.train = {adam_beta1 = 9.0e-01, adam_beta2 = 9.5e-01, adam_eps = 1.0e-08, weight_decay = 1.0e-01, clip_grad = 1.0}} {
  func.func @step(%q: tensor<2x8xf32> {nn.parameter = #nn.parameter<name = "q", init = zeros>, nn.layout = #nn.layout<tp = S(0)>},
                  %k: tensor<4xf32> {nn.parameter = #nn.parameter<name = "k", init = zeros>, nn.layout = #nn.layout<kv = S(0), kv_copies = R>},
                  %gq: tensor<2x8xf32> {nn.gradient = "q"}, %gk: tensor<4xf32> {nn.gradient = "k"})
      -> (tensor<2x8xf32> {nn.gradient = "q"}, tensor<4xf32> {nn.gradient = "k"}) {
    nn.backward
    %dq = nn.constant 5.0e-01 : tensor<2x8xf32>
    %dk = nn.constant 5.0e-01 : tensor<4xf32>
    %gq1 = nn.accumulate %gq, %dq : tensor<2x8xf32>
    %gk1 = nn.accumulate %gk, %dk : tensor<4xf32>
    return %gq1, %gk1 : tensor<2x8xf32>, tensor<4xf32>
  }
}

// -----

// Of experts a rank has some, and of these a part: those with the same parts have shares.
// Their norms are gathered along both axes. Where no samples are of other ranks,
// nothing of the parameter that all have is shared.

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   %{{[^:]*}}: tensor<2x3x8xf32> {nn.gradient = "e", nn.share_of = array<i64: 2, 3, 8>}
//  CHECK-SAME:   %{{[^:]*}}: tensor<4xf32> {nn.gradient = "g"}
//       CHECK:   nn.update
//  CHECK-NEXT:   %[[E:.*]] = nn.reduce_shares %{{.*}} over "ep_copies" {{.*}} : tensor<2x3x8xf32>
//  CHECK-NEXT:   %[[OWN:.*]] = nn.shares_norm %[[E]] over "ep_copies"
//  CHECK-NEXT:   %[[ROW:.*]] = nn.broadcast %[[OWN]]
//  CHECK-NEXT:   %[[PARTS:.*]] = nn.all_gather %[[ROW]] to I over "tp" dim 0 {{.*}} -> tensor<2xf32>
//  CHECK-NEXT:   %[[ALL:.*]] = nn.all_gather %[[PARTS]] to I over "ep" dim 0 {{.*}} -> tensor<4xf32>
//  CHECK-NEXT:   nn.global_norm %{{.*}}, %[[ALL]] {{.*}} : (tensor<4xf32>, tensor<4xf32>)
module attributes {nn.mesh = #nn.mesh<tp = 2, ep = 2, ep_copies = 2>, nn.distributed_optimizer,
                   nn.train = {adam_beta1 = 9.0e-01, adam_beta2 = 9.5e-01, adam_eps = 1.0e-08, weight_decay = 1.0e-01, clip_grad = 1.0}} {
  func.func @step(%e: tensor<2x3x8xf32> {nn.parameter = #nn.parameter<name = "e", init = zeros>, nn.layout = #nn.layout<tp = S(1), ep = S(0), ep_copies = R>},
                  %g: tensor<4xf32> {nn.parameter = #nn.parameter<name = "g", init = zeros>},
                  %ge: tensor<2x3x8xf32> {nn.gradient = "e"}, %gg: tensor<4xf32> {nn.gradient = "g"})
      -> (tensor<2x3x8xf32> {nn.gradient = "e"}, tensor<4xf32> {nn.gradient = "g"}) {
    nn.backward
    %de = nn.constant 5.0e-01 : tensor<2x3x8xf32>
    %dg = nn.constant 5.0e-01 : tensor<4xf32>
    %ge1 = nn.accumulate %ge, %de : tensor<2x3x8xf32>
    %gg1 = nn.accumulate %gg, %dg : tensor<4xf32>
    return %ge1, %gg1 : tensor<2x3x8xf32>, tensor<4xf32>
  }
}
