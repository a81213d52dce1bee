// Groups of micro-batches within the step of a stage: behind the last one of a
// group its sums are put aside, and the next one begins at zero.
// RUN: reprise-opt %s -pass-pipeline='builtin.module(reprise-cut-chunks,reprise-make-schedule,builtin.module(reprise-differentiate),reprise-unroll-stages)' | FileCheck %s
// RUN: reprise-opt %s -pass-pipeline='builtin.module(reprise-cut-chunks,reprise-make-schedule{schedule=zb-h1},builtin.module(reprise-differentiate),reprise-unroll-stages)' | FileCheck %s -check-prefix=SPLIT
// RUN: sed 's/nn.mesh = /pipe.only_stages = array<i64: 1>, &/' %s | reprise-opt -pass-pipeline='builtin.module(reprise-cut-chunks,reprise-make-schedule,builtin.module(reprise-differentiate),reprise-unroll-stages)' | FileCheck %s -check-prefix=ONLY

#scope0 = #nn.scope<layer = 0, module = "mlp", value = "x">
#scope1 = #nn.scope<layer = 1, module = "mlp", value = "x">

module attributes {nn.mesh = #nn.mesh<pp = 2>, nn.chunk_layers = array<i64: 1, 1>} {
  func.func @forward(%ids: tensor<2x4xi32> {nn.input = "tokens"}, %targets: tensor<2x4xi32> {nn.input = "targets"},
                     %table: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "table", init = zeros, frozen = true>},
                     %a: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros>},
                     %b: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>}) -> tensor<f32>
      attributes {nn.micro_batches = 3 : i64, nn.reduction_groups = 3 : i64} {
    %e = nn.embedding %ids, %table : (tensor<2x4xi32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %x0 = nn.linear %e, %a in_out {nn.scope = #scope0} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %x1 = nn.linear %x0, %b in_out {nn.scope = #scope1} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %losses, %lse = nn.cross_entropy %x1, %targets : (tensor<2x4x8xf32>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
    %loss = nn.mean %losses : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// Of three groups the second is put into the first's sum, and that waits for
// the last. The first stage has no loss to put aside.
//
// CHECK-LABEL: module @stage0
// CHECK:       func.func @step(
// CHECK-SAME:    %[[DA:[a-z0-9]*]]: tensor<8x8xf32> {nn.gradient = "a"},
// CHECK-SAME:    %[[A0:[a-z0-9]*]]: tensor<8x8xf32> {nn.partial = #nn.partial<name = "a", level = 0>},
// CHECK-SAME:    %[[A1:[a-z0-9]*]]: tensor<8x8xf32> {nn.partial = #nn.partial<name = "a", level = 1>})
// CHECK-SAME:    nn.reduction_groups = 3
// CHECK:         %[[FIRST:.*]] = nn.accumulate %[[DA]],
// CHECK-NEXT:    %[[WAITS:.*]], %[[NEXT:.*]] = nn.push %[[FIRST]] to %[[A0]]
// CHECK:         %[[SECOND:.*]] = nn.accumulate %[[NEXT]],
// CHECK-NEXT:    %[[BOTH:.*]], %[[LAST:.*]] = nn.push %[[SECOND]], %[[WAITS]] to %[[A1]]
// CHECK:         %[[THIRD:.*]] = nn.accumulate %[[LAST]],
// CHECK-NEXT:    nn.update
// CHECK-NEXT:    %[[SUM:.*]] = nn.accumulate %[[THIRD]], %[[BOTH]]
// CHECK-NEXT:    return %{{.*}}, %[[SUM]]

// CHECK-LABEL: module @stage1
// CHECK:       func.func @step(
// CHECK-SAME:    %[[LOSS:[a-z0-9]*]]: tensor<f32> {nn.input = "loss_sum"},
// CHECK-SAME:    %[[L0:[a-z0-9]*]]: tensor<f32> {nn.partial = #nn.partial<name = "loss", level = 0>},
// CHECK:         %[[FIRST:.*]] = nn.accumulate %[[LOSS]],
// CHECK-NEXT:    nn.push %[[FIRST]] to %[[L0]]

// Where gradients of weights are tasks of their own, these put them aside.
//
// SPLIT-LABEL: module @stage1
// SPLIT-COUNT-4: nn.push
// SPLIT-NOT:     nn.push

// A stage is as it is beside the others.
//
// ONLY-NOT:   module @stage0
// ONLY:       module @stage1
// ONLY:       %[[FIRST:.*]] = nn.accumulate
// ONLY-NEXT:  nn.push %[[FIRST]]
