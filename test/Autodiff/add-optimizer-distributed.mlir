// RUN: reprise-opt %s --reprise-add-optimizer | FileCheck %s

// Ranks along "dp" have shares of the optimizer's state. Of `a`, which is read
// through its working copy alone, the parameter itself is a share; of `e`, which
// is looked up beside GEMMs, lookups read the copy, too; `g` is read as it is,
// and whole on all ranks.

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   %[[A:[^:]*]]: tensor<16384xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros>, nn.share_of = array<i64: 128, 256>}
//  CHECK-SAME:   %[[G:[^:]*]]: tensor<256xf32> {nn.parameter = #nn.parameter<name = "g", init = zeros>}
//  CHECK-SAME:   %{{[^:]*}}: tensor<128x256xf32> {nn.gradient = "a", nn.share_of = array<i64: 128, 256>}
//  CHECK-SAME:   %{{[^:]*}}: tensor<256xf32> {nn.gradient = "g", nn.share_of = array<i64: 256>}
//  CHECK-SAME:   %[[C:[^:]*]]: tensor<128x256xbf16> {nn.working = "a"}
//  CHECK-SAME:   %[[M:[^:]*]]: tensor<16384xf32> {nn.moment1 = "a", nn.share_of = array<i64: 128, 256>}
//  CHECK-SAME:   %[[V:[^:]*]]: tensor<16384xf32> {nn.moment2 = "a", nn.share_of = array<i64: 128, 256>}
//  CHECK-SAME:   %{{[^:]*}}: tensor<256xf32> {nn.moment1 = "g", nn.share_of = array<i64: 256>}
//       CHECK:   nn.linear %{{.*}}, %[[C]] out_in
//       CHECK:   nn.update
//  CHECK-NEXT:   %[[LOSS:.*]] = nn.all_reduce %{{.*}} over "dp"
//  CHECK-NEXT:   %[[SUMS:.*]]:2 = nn.reduce_shares %{{.*}}, %{{.*}} over "dp" {{.*}} : tensor<128x256xf32>, tensor<256xf32>
//  CHECK-NEXT:   %[[NORM:.*]] = nn.shares_norm %[[SUMS]]#0, %[[SUMS]]#1 over "dp"
//  CHECK-NEXT:   %[[SCALE:.*]] = nn.clip_scale %[[NORM]] with %[[LOSS]] max 1.0
//  CHECK-NEXT:   %[[GA:.*]] = nn.take_share %[[SUMS]]#0 over "dp" {{.*}} : (tensor<128x256xf32>) -> tensor<16384xf32>
//  CHECK-NEXT:   %[[CA:.*]] = nn.take_share %[[C]] over "dp" {{.*}} : (tensor<128x256xbf16>) -> tensor<16384xbf16>
//  CHECK-NEXT:   %[[A1:[^,]*]], %[[M1:[^,]*]], %[[V1:[^,]*]], %[[C1:[^,]*]] = nn.adamw %[[A]], %[[GA]], %[[M]], %[[V]], %[[SCALE]], {{.*}} working(%[[CA]])
//  CHECK-NEXT:   %[[C2:.*]] = nn.gather_shares %[[C1]] into %[[C]] over "dp" {{.*}} : (tensor<16384xbf16>, tensor<128x256xbf16>) -> tensor<128x256xbf16>
//  CHECK-NEXT:   %[[GOWN:.*]] = nn.take_share %[[G]] over "dp"
//  CHECK-NEXT:   %[[GG:.*]] = nn.take_share %[[SUMS]]#1 over "dp"
//  CHECK-NEXT:   %[[G1:[^,]*]], {{.*}} = nn.adamw %[[GOWN]], %[[GG]]
//  CHECK-NEXT:   %[[G2:.*]] = nn.gather_shares %[[G1]] into %[[G]] over "dp"
//  CHECK-NEXT:   return %[[LOSS]], %[[SUMS]]#0, %[[SUMS]]#1, %[[NORM]], %[[A1]], %[[M1]], %[[V1]], %[[C2]], %[[G2]]
module attributes {nn.mesh = #nn.mesh<dp = 2>, nn.distributed_optimizer,
                   nn.train = {adam_beta1 = 9.0e-01, adam_beta2 = 9.5e-01, adam_eps = 1.0e-08, weight_decay = 1.0e-01, clip_grad = 1.0}} {
  func.func @step(%ids: tensor<1x2xi32> {nn.input = "tokens"},
                  %a: tensor<128x256xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros>},
                  %g: tensor<256xf32> {nn.parameter = #nn.parameter<name = "g", init = zeros>},
                  %ga: tensor<128x256xf32> {nn.gradient = "a"}, %gg: tensor<256xf32> {nn.gradient = "g"},
                  %sum: tensor<f32> {nn.input = "loss_sum"})
      -> (tensor<f32> {nn.output = "loss"}, tensor<128x256xf32> {nn.gradient = "a"}, tensor<256xf32> {nn.gradient = "g"}) {
    %c = nn.cast %a : (tensor<128x256xf32>) -> tensor<128x256xbf16>
    %e = nn.embedding %ids, %c : (tensor<1x2xi32>, tensor<128x256xbf16>) -> tensor<1x2x256xbf16>
    %y = nn.linear %e, %c out_in : (tensor<1x2x256xbf16>, tensor<128x256xbf16>) -> tensor<1x2x128xbf16>
    nn.backward
    %da = nn.constant 5.0e-01 : tensor<128x256xf32>
    %dg = nn.constant 5.0e-01 : tensor<256xf32>
    %ga1 = nn.accumulate %ga, %da : tensor<128x256xf32>
    %gg1 = nn.accumulate %gg, %dg : tensor<256xf32>
    return %sum, %ga1, %gg1 : tensor<f32>, tensor<128x256xf32>, tensor<256xf32>
  }
}
