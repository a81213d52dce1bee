// RUN: reprise-opt %s --reprise-form-kernels | FileCheck %s
// RUN: reprise-opt %s --reprise-form-kernels --convert-nn-to-linalg --reprise-plan-memory --reprise-verify-plan | FileCheck %s --check-prefix=PLAN

// Ranks with shares of the optimizer's state. The norm is the root of sums of
// squares that ranks add up. What is gathered is made in place of the parameter,
// and zeros are left in all of the sum of the gradient, which the update reads a
// share of.

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   %[[W:[^:]*]]: tensor<200x200xf32> {nn.parameter
//       CHECK:   rt.update
//  CHECK-NEXT:   %[[SUM:.*]] = rt.collective reduce_shares(%{{.*}}) over "dp" ranks 2
//  CHECK-NEXT:   %[[OWN:.*]] = rt.launch @sums_of_squares_3(%[[SUM]])
//  CHECK-NEXT:   %[[ALL:.*]] = rt.collective all_reduce(%[[OWN]]) over "dp" ranks 2
//  CHECK-NEXT:   %[[BLOCKS:.*]] = rt.view %[[ALL]] from 0 : tensor<3xf32> to tensor<3xf32>
//  CHECK-NEXT:   %[[ROW:.*]] = rt.launch @sums_1(%[[BLOCKS]])
//  CHECK-NEXT:   %[[NORM:.*]] = rt.launch @root_of_sum_1(%[[ROW]])
//       CHECK:   %[[WOWN:.*]] = rt.launch @[[TAKE:.*]](%[[W]]) ids [-1]
//       CHECK:   %[[GOWN:.*]] = rt.launch @[[TAKE]](%[[SUM]]) ids [-1]
//       CHECK:   %[[NEW:.*]]:4 = rt.launch @[[UPDATE:.*]](%[[WOWN]], %[[GOWN]], {{.*}}, %[[SUM]])
//  CHECK-NEXT:   %[[W1:.*]] = rt.collective gather_shares(%[[NEW]]#0, %[[W]]) over "dp" ranks 2 {{.*}} : (tensor<32768xf32>, tensor<200x200xf32>) -> tensor<200x200xf32>
//       CHECK:   return %[[NEW]]#3, %[[NORM]], %[[W1]], %[[NEW]]#1, %[[NEW]]#2

//  PLAN-LABEL: func.func @step(
//        PLAN:   %[[W:.*]] = rt.buffer at <device, 0> {{.*}}kind = parameter, parameter = "w"{{.*}} : memref<200x200xf32>
//        PLAN:   %[[G:.*]] = rt.buffer at <device, 160000> {{.*}}kind = gradient, parameter = "w"{{.*}}share = "dp", share_of = [200, 200]{{.*}} : memref<200x200xf32>
//        PLAN:   %[[M:.*]] = rt.buffer {{.*}}kind = moment1, parameter = "w"{{.*}}share = "dp", share_of = [200, 200]{{.*}} : memref<32768xf32>
//        PLAN:   %[[G1:.*]] = rt.buffer at <device, 160000> : memref<200x200xf32>
//        PLAN:   %[[G2:.*]] = rt.buffer at <device, 160000> : memref<200x200xf32>
//        PLAN:   rt.collective reduce_shares(%[[G1]]) to(%[[G2]]) workspace(
//        PLAN:   %[[W1:.*]] = rt.buffer at <device, 0> : memref<200x200xf32>
//        PLAN:   rt.collective gather_shares(%{{.*}}, %[[W]]) to(%[[W1]]) over "dp" ranks 2
module attributes {nn.mesh = #nn.mesh<dp = 2>, nn.distributed_optimizer} {
  func.func @step(%w: tensor<200x200xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>},
                  %g: tensor<200x200xf32> {nn.gradient = "w", nn.share_of = array<i64: 200, 200>},
                  %m: tensor<32768xf32> {nn.moment1 = "w", nn.share_of = array<i64: 200, 200>},
                  %v: tensor<32768xf32> {nn.moment2 = "w", nn.share_of = array<i64: 200, 200>},
                  %lr: tensor<f32> {nn.input = "lr"}, %c1: tensor<f32> {nn.input = "bias_correction1"},
                  %c2: tensor<f32> {nn.input = "bias_correction2"})
      -> (tensor<200x200xf32> {nn.gradient = "w"}, tensor<f32> {nn.output = "grad_norm"}, tensor<200x200xf32> {nn.parameter = "w"},
          tensor<32768xf32> {nn.moment1 = "w"}, tensor<32768xf32> {nn.moment2 = "w"})
      attributes {nn.micro_batches = 2 : i64} {
    nn.backward
    %dw = nn.scale %w by 5.0e-01 : tensor<200x200xf32>
    %g1 = nn.accumulate %g, %dw : tensor<200x200xf32>
    nn.update
    %sum = nn.reduce_shares %g1 over "dp" : tensor<200x200xf32>
    %norm = nn.shares_norm %sum over "dp" : (tensor<200x200xf32>) -> tensor<f32>
    %scale = nn.clip_scale %norm max 1.0 : tensor<f32>
    %wown = nn.take_share %w over "dp" : (tensor<200x200xf32>) -> tensor<32768xf32>
    %gown = nn.take_share %sum over "dp" : (tensor<200x200xf32>) -> tensor<32768xf32>
    %w1, %m1, %v1 = nn.adamw %wown, %gown, %m, %v, %scale, %lr, %c1, %c2
      beta1 9.0e-01 beta2 9.5e-01 eps 1.0e-08 weight_decay 1.0e-01 : tensor<32768xf32>, tensor<f32>
    %all = nn.gather_shares %w1 into %w over "dp" : (tensor<32768xf32>, tensor<200x200xf32>) -> tensor<200x200xf32>
    return %sum, %norm, %all, %m1, %v1 : tensor<200x200xf32>, tensor<f32>, tensor<200x200xf32>, tensor<32768xf32>, tensor<32768xf32>
  }
}
