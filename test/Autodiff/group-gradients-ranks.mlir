// Sums over groups of micro-batches and over ranks: of each run of groups, 2^k of
// each rank, a rank has a branch of the tree, and all these are added at once.

// RUN: reprise-opt %s --reprise-group-gradients --reprise-add-optimizer --split-input-file | FileCheck %s
// RUN: sed 's/nn.mesh =/nn.distributed_optimizer, &/' %s \
// RUN:   | reprise-opt --reprise-group-gradients --reprise-add-optimizer --split-input-file | FileCheck %s --check-prefix=SHARES

// Of six groups of a rank the last two are a run, and the four before these, which
// wait at level 2.
// CHECK-LABEL: func.func @step
//  CHECK-SAME:   %[[G:[a-z0-9]+]]: tensor<8xf32> {nn.gradient = "w"}, %[[P0:[a-z0-9]+]]: tensor<8xf32> {nn.partial = #nn.partial<name = "w", level = 0>},
//  CHECK-SAME:   %[[P2:[a-z0-9]+]]: tensor<8xf32> {nn.partial = #nn.partial<name = "w", level = 2>}
//       CHECK:   %[[NEW:.*]] = nn.accumulate %[[G]],
//  CHECK-NEXT:   nn.update
//  CHECK-NEXT:   %[[LAST:.*]] = nn.accumulate %[[NEW]], %[[P0]]
//  CHECK-NEXT:   %[[SUM:.*]] = nn.all_reduce %[[P2]], %[[LAST]] over "dp" {nn.reduction_groups = 6 : i64,
//  CHECK-NEXT:   nn.global_norm %[[SUM]]
//   CHECK-NOT:   nn.accumulate
// SHARES-LABEL: func.func @step
//       SHARES:   %[[SUM:.*]] = nn.reduce_shares %{{.*}}, %{{.*}} over "dp" {nn.reduction_groups = 6 : i64,
//  SHARES-NEXT:   nn.shares_norm %[[SUM]]
module attributes {nn.mesh = #nn.mesh<dp = 2>, nn.train = {adam_beta1 = 0.5, adam_beta2 = 0.25, adam_eps = 0.0625, weight_decay = 0.0, clip_grad = 0.0}} {
  func.func @step(%w: tensor<8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}, %g: tensor<8xf32> {nn.gradient = "w"})
      -> (tensor<8xf32> {nn.gradient = "w"}) attributes {nn.micro_batches = 6 : i64, nn.reduction_groups = 6 : i64} {
    nn.backward
    %new = nn.accumulate %g, %w : tensor<8xf32>
    return %new : tensor<8xf32>
  }
}

// -----

// Seven are three runs, of four groups, of two and of one.
// CHECK-LABEL: func.func @step
//  CHECK-SAME:   %[[P1:[a-z0-9]+]]: tensor<8xf32> {nn.partial = #nn.partial<name = "w", level = 1>},
//  CHECK-SAME:   %[[P2:[a-z0-9]+]]: tensor<8xf32> {nn.partial = #nn.partial<name = "w", level = 2>}
//       CHECK:   %[[LAST:.*]] = nn.accumulate
//  CHECK-NEXT:   nn.update
//  CHECK-NEXT:   %[[SUM:.*]] = nn.all_reduce %[[P2]], %[[P1]], %[[LAST]] over "dp" {nn.reduction_groups = 7 : i64,
//  CHECK-NEXT:   nn.global_norm %[[SUM]]
module attributes {nn.mesh = #nn.mesh<dp = 4>, nn.train = {adam_beta1 = 0.5, adam_beta2 = 0.25, adam_eps = 0.0625, weight_decay = 0.0, clip_grad = 0.0}} {
  func.func @step(%w: tensor<8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}, %g: tensor<8xf32> {nn.gradient = "w"})
      -> (tensor<8xf32> {nn.gradient = "w"}) attributes {nn.micro_batches = 7 : i64, nn.reduction_groups = 7 : i64} {
    nn.backward
    %new = nn.accumulate %g, %w : tensor<8xf32>
    return %new : tensor<8xf32>
  }
}

// -----

// Four are one, and what waits is the rank's own to add.
// CHECK-LABEL: func.func @step
//       CHECK:   nn.update
//  CHECK-NEXT:   nn.accumulate
//  CHECK-NEXT:   %[[ALL:.*]] = nn.accumulate
//  CHECK-NEXT:   %[[SUM:.*]] = nn.all_reduce %[[ALL]] over "dp"
//  CHECK-NEXT:   nn.global_norm %[[SUM]]
module attributes {nn.mesh = #nn.mesh<dp = 3>, nn.train = {adam_beta1 = 0.5, adam_beta2 = 0.25, adam_eps = 0.0625, weight_decay = 0.0, clip_grad = 0.0}} {
  func.func @step(%w: tensor<8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}, %g: tensor<8xf32> {nn.gradient = "w"})
      -> (tensor<8xf32> {nn.gradient = "w"}) attributes {nn.micro_batches = 4 : i64, nn.reduction_groups = 4 : i64} {
    nn.backward
    %new = nn.accumulate %g, %w : tensor<8xf32>
    return %new : tensor<8xf32>
  }
}
