// The step of each stage: the ops of its entries in order, and what is sent.
// RUN: reprise-opt %s -pass-pipeline='builtin.module(reprise-cut-chunks,reprise-make-schedule,builtin.module(reprise-differentiate),reprise-unroll-stages)' | FileCheck %s
// RUN: reprise-opt %s -pass-pipeline='builtin.module(reprise-cut-chunks,reprise-make-schedule,builtin.module(reprise-differentiate),reprise-unroll-stages,builtin.module(reprise-add-optimizer))' | FileCheck %s -check-prefix=UPDATE

#scope0 = #nn.scope<layer = 0, module = "mlp", value = "x">
#scope1 = #nn.scope<layer = 1, module = "mlp", value = "x">

module attributes {nn.mesh = #nn.mesh<pp = 2>, nn.chunk_layers = array<i64: 1, 1>, nn.schedule = "1f1b",
                   nn.train = {clip_grad = 1.0, adam_beta1 = 0.9, adam_beta2 = 0.95, adam_eps = 1.0e-8, weight_decay = 0.0}} {
  func.func @forward(%ids: tensor<2x4xi32> {nn.input = "tokens"}, %targets: tensor<2x4xi32> {nn.input = "targets"},
                     %table: tensor<7x8xf32> {nn.parameter = #nn.parameter<name = "table", init = zeros>},
                     %a: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros>},
                     %b: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>}) -> tensor<f32>
      attributes {nn.micro_batches = 2 : i64} {
    %e = nn.embedding %ids, %table : (tensor<2x4xi32>, tensor<7x8xf32>) -> tensor<2x4x8xf32>
    %x0 = nn.linear %e, %a in_out {nn.scope = #scope0} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %x1 = nn.linear %x0, %b in_out {nn.scope = #scope1} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %logits = nn.linear %x1, %table out_in : (tensor<2x4x8xf32>, tensor<7x8xf32>) -> tensor<2x4x7xf32>
    %losses, %lse = nn.cross_entropy %logits, %targets : (tensor<2x4x7xf32>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
    %loss = nn.mean %losses : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// The first stage goes forward twice before it goes back. It has the inputs of
// both micro-batches.
//
// CHECK-NOT:   pipe.
// CHECK-LABEL: module @stage0 attributes {{.*}}nn.stage = 0
// CHECK-NEXT:    func.func @step(
// CHECK-SAME:      %[[IDS0:[a-z0-9]*]]: tensor<2x4xi32> {nn.input = "tokens", nn.micro_batch = 0 : i64},
// CHECK-SAME:      %[[IDS1:[a-z0-9]*]]: tensor<2x4xi32> {nn.input = "tokens", nn.micro_batch = 1 : i64},
// CHECK-SAME:      {nn.input = "targets", nn.micro_batch = 0 : i64}, {{.*}}{nn.input = "targets", nn.micro_batch = 1 : i64},
// CHECK-SAME:      %[[TABLE:[a-z0-9]*]]: tensor<7x8xf32> {nn.order = array<i64: 0, 0>, {{[^,]*}}name = "table", init = zeros>, nn.sum_stages = array<i64: 0, 1>}
// CHECK-SAME:      %[[A:[a-z0-9]*]]: tensor<8x8xf32> {nn.order = array<i64: 1, 1>
// CHECK-SAME:      %[[DTABLE:[a-z0-9]*]]: tensor<7x8xf32> {nn.gradient = "table"}, %[[DA:[a-z0-9]*]]: tensor<8x8xf32> {nn.gradient = "a"},
// CHECK-SAME:      %[[LOSS:[a-z0-9]*]]: tensor<f32> {nn.input = "loss_sum"})
// CHECK-NEXT:    nn.forward
// CHECK-NEXT:    %[[E0:.*]] = nn.embedding %[[IDS0]], %[[TABLE]]
// CHECK-NEXT:    %[[X0:.*]] = nn.linear %[[E0]], %[[A]]
// CHECK-NEXT:    nn.send %[[X0]] to 1 over "pp" lane 0 places 2
// CHECK-NEXT:    nn.forward
// CHECK-NEXT:    %[[E1:.*]] = nn.embedding %[[IDS1]], %[[TABLE]]
// CHECK-NEXT:    %[[X1:.*]] = nn.linear %[[E1]], %[[A]]
// CHECK-NEXT:    nn.send %[[X1]] to 1 over "pp" lane 0 places 2
// CHECK-NEXT:    %[[DX0:.*]] = nn.receive from 1 over "pp" lane 1 places 2
// CHECK-NEXT:    nn.backward
// CHECK:         %[[DA0:.*]] = nn.accumulate %[[DA]],
// CHECK:         %[[DTABLE0:.*]] = nn.accumulate %[[DTABLE]],
// CHECK-NEXT:    %[[DX1:.*]] = nn.receive from 1 over "pp" lane 1 places 2
// CHECK-NEXT:    nn.backward
// CHECK:         %[[DA1:.*]] = nn.accumulate %[[DA0]],
// CHECK:         %[[DTABLE1:.*]] = nn.accumulate %[[DTABLE0]],
// CHECK-NEXT:    nn.update
// CHECK-NEXT:    return %[[LOSS]], %[[DTABLE1]], %[[DA1]]

// The last stage goes back right away. Its copy of the table has no place in the
// norm.
//
// CHECK-LABEL: module @stage1 attributes {{.*}}nn.stage = 1
// CHECK:         nn.order = array<i64: 0, -1>, {{[^,]*}}name = "table"
// CHECK-SAME:    nn.order = array<i64: 2, 2>, {{[^,]*}}name = "b"
// CHECK-NEXT:    %[[IN0:.*]] = nn.receive from 0 over "pp" lane 0 places 2
// CHECK-NEXT:    nn.forward
// CHECK-NEXT:    nn.linear %[[IN0]]
// CHECK:         %[[LOSS0:.*]] = nn.accumulate
// CHECK-NEXT:    nn.backward
// CHECK:         nn.send %{{.*}} to 0 over "pp" lane 1 places 2
// CHECK-NEXT:    %[[IN1:.*]] = nn.receive from 0 over "pp" lane 0 places 2
// CHECK-NEXT:    nn.forward
// CHECK-NEXT:    nn.linear %[[IN1]]
// CHECK:         nn.accumulate %[[LOSS0]],

// Both ends sum the gradients of the table behind all else that is summed. The
// norm is that of the three gradients of both stages, each once.
//
// UPDATE-LABEL: module @stage0
// UPDATE:         nn.update
// UPDATE-NEXT:    nn.all_reduce %{{.*}} over "pp" members [0, 1] {nn.scope = {{.*}}} : tensor<7x8xf32>
// UPDATE-NEXT:        nn.all_reduce %{{.*}} over "pp" {nn.scope = {{.*}}} : tensor<f32>
// UPDATE-NEXT:    nn.stages_norm %{{.*}}, %{{.*}} at [0, 1] of 3 over "pp"
// UPDATE-COUNT-2: nn.adamw
// UPDATE-LABEL: module @stage1
// UPDATE:         nn.all_reduce %{{.*}} over "pp" members [0, 1]
// UPDATE:         nn.stages_norm %{{.*}} at [2] of 3 over "pp"
// UPDATE-COUNT-2: nn.adamw
