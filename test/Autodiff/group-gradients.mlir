// Sums over groups of micro-batches: what waits for others between groups, and
// what the update adds up at the end.

// RUN: reprise-opt %s --reprise-group-gradients --split-input-file | FileCheck %s

// With 6 groups, sums of 4 and of 1 wait for the last.
// CHECK-LABEL: func.func @step
//  CHECK-SAME:   (%[[LOSS:[a-z0-9]+]]: tensor<f32> {nn.input = "loss_sum"}, %[[G:[a-z0-9]+]]: tensor<8xf32> {nn.gradient = "w"},
//  CHECK-SAME:    %[[L0:[a-z0-9]+]]: tensor<f32> {nn.partial = #nn.partial<name = "loss", level = 0>},
//  CHECK-SAME:    %[[L1:[a-z0-9]+]]: tensor<f32> {nn.partial = #nn.partial<name = "loss", level = 1>},
//  CHECK-SAME:    %[[L2:[a-z0-9]+]]: tensor<f32> {nn.partial = #nn.partial<name = "loss", level = 2>},
//  CHECK-SAME:    %[[P0:[a-z0-9]+]]: tensor<8xf32> {nn.partial = #nn.partial<name = "w", level = 0>},
//  CHECK-SAME:    %[[P1:[a-z0-9]+]]: tensor<8xf32> {nn.partial = #nn.partial<name = "w", level = 1>},
//  CHECK-SAME:    %[[P2:[a-z0-9]+]]: tensor<8xf32> {nn.partial = #nn.partial<name = "w", level = 2>})
//       CHECK:   %[[SUM:.*]] = nn.accumulate %[[LOSS]]
//       CHECK:   %[[DW:.*]] = nn.accumulate %[[G]]
//  CHECK-NEXT:   nn.update
//  CHECK-NEXT:   %[[LA:.*]] = nn.accumulate %[[SUM]], %[[L0]]
//  CHECK-NEXT:   %[[LB:.*]] = nn.accumulate %[[LA]], %[[L2]]
//  CHECK-NEXT:   %[[A:.*]] = nn.accumulate %[[DW]], %[[P0]]
//  CHECK-NEXT:   %[[B:.*]] = nn.accumulate %[[A]], %[[P2]]
//  CHECK-NEXT:   return %[[LB]], %[[B]]

// CHECK-LABEL: func.func @push_level_0
//  CHECK-SAME:   (%[[LOSS:[a-z0-9]+]]: tensor<f32> {nn.input = "loss_sum"}, %[[L0:[a-z0-9]+]]: tensor<f32>
//  CHECK-SAME:    %[[G:[a-z0-9]+]]: tensor<8xf32> {nn.gradient = "w"}, %[[P0:[a-z0-9]+]]: tensor<8xf32>
//  CHECK-SAME:   -> (tensor<f32> {nn.partial = #nn.partial<name = "loss", level = 0>}, tensor<f32> {nn.output = "loss"},
//  CHECK-SAME:       tensor<8xf32> {nn.partial = #nn.partial<name = "w", level = 0>}, tensor<8xf32> {nn.gradient = "w"})
//  CHECK-NEXT:   %[[L:.*]], %[[LZ:.*]] = nn.push %[[LOSS]] to %[[L0]]
//  CHECK-NEXT:   %[[P:.*]], %[[Z:.*]] = nn.push %[[G]] to %[[P0]]
//  CHECK-NEXT:   return %[[L]], %[[LZ]], %[[P]], %[[Z]]

// CHECK-LABEL: func.func @push_level_1
//       CHECK:   nn.push %{{.*}}, %{{.*}} to %{{.*}} : tensor<f32>
//       CHECK:   nn.push %[[G:.*]], %[[P0:.*]] to %[[P1:.*]] : tensor<8xf32>

// CHECK-LABEL: func.func @push_level_2
//       CHECK:   nn.push %{{.*}}, %{{.*}}, %{{.*}} to %{{.*}} : tensor<8xf32>
//   CHECK-NOT: func.func

func.func @step(%loss: tensor<f32> {nn.input = "loss_sum"}, %g: tensor<8xf32> {nn.gradient = "w"})
    -> (tensor<f32> {nn.output = "loss"}, tensor<8xf32> {nn.gradient = "w"})
    attributes {nn.micro_batches = 12 : i64, nn.reduction_groups = 6 : i64} {
  %l = nn.constant 1.0 : tensor<f32>
  %sum = nn.accumulate %loss, %l : tensor<f32>
  nn.backward
  %dw = nn.constant 0.5 : tensor<8xf32>
  %new = nn.accumulate %g, %dw : tensor<8xf32>
  return %sum, %new : tensor<f32>, tensor<8xf32>
}

// -----

// One group needs nothing.
// CHECK-LABEL: func.func @step
//   CHECK-NOT:   nn.update
//   CHECK-NOT: func.func
func.func @step(%g: tensor<8xf32> {nn.gradient = "w"}) -> (tensor<8xf32> {nn.gradient = "w"})
    attributes {nn.micro_batches = 12 : i64, nn.reduction_groups = 1 : i64} {
  return %g : tensor<8xf32>
}
