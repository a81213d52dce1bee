// Chunks without a parameter to train: gradients go back to the first chunk that
// trains one, and no further.
// RUN: reprise-opt %s -pass-pipeline='builtin.module(reprise-cut-chunks,builtin.module(reprise-differentiate))' | FileCheck %s -check-prefix=STEP
// RUN: reprise-opt %s -pass-pipeline='builtin.module(reprise-cut-chunks,reprise-make-schedule,builtin.module(reprise-differentiate),reprise-unroll-stages)' | FileCheck %s
// RUN: reprise-opt %s -pass-pipeline='builtin.module(reprise-cut-chunks,reprise-make-schedule,builtin.module(reprise-differentiate),reprise-unroll-stages,builtin.module(reprise-add-optimizer))' | FileCheck %s -check-prefix=UPDATE

#scope0 = #nn.scope<layer = 0, module = "mlp", value = "x">
#scope1 = #nn.scope<layer = 1, module = "mlp", value = "x">
#scope2 = #nn.scope<layer = 2, module = "mlp", value = "x">

module attributes {nn.mesh = #nn.mesh<pp = 3>, nn.chunk_layers = array<i64: 1, 1, 1>, nn.schedule = "1f1b",
                   nn.train = {clip_grad = 1.0, adam_beta1 = 0.9, adam_beta2 = 0.95, adam_eps = 1.0e-8, weight_decay = 0.0}} {
  func.func @forward(%ids: tensor<2x4xi32> {nn.input = "tokens"}, %targets: tensor<2x4xi32> {nn.input = "targets"},
                     %table: tensor<7x8xf32> {nn.parameter = #nn.parameter<name = "table", init = zeros, frozen = true>},
                     %a: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros, frozen = true>},
                     %b: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>},
                     %c: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "c", init = zeros, frozen = true>}) -> tensor<f32>
      attributes {nn.micro_batches = 2 : i64} {
    %e = nn.embedding %ids, %table : (tensor<2x4xi32>, tensor<7x8xf32>) -> tensor<2x4x8xf32>
    %x0 = nn.linear %e, %a in_out {nn.scope = #scope0} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %x1 = nn.linear %x0, %b in_out {nn.scope = #scope1} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %x2 = nn.linear %x1, %c in_out {nn.scope = #scope2} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %logits = nn.linear %x2, %table out_in : (tensor<2x4x8xf32>, tensor<7x8xf32>) -> tensor<2x4x7xf32>
    %losses, %lse = nn.cross_entropy %logits, %targets : (tensor<2x4x7xf32>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
    %loss = nn.mean %losses : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// STEP-LABEL: module @chunk0
// STEP-NOT:     border_gradient
// STEP:         nn.backward
// STEP-NEXT:    return
// STEP-LABEL: module @chunk1
// STEP-SAME:    {
// STEP-NEXT:    func.func @step({{.*}}, %{{.*}}: tensor<2x4x8xf32> {nn.input = "border", nn.untrained}, %[[DY:[a-z0-9]*]]: tensor<2x4x8xf32> {nn.input = "border_gradient"}, %{{[a-z0-9]*}}: tensor<8x8xf32> {nn.gradient = "b"})
// STEP-SAME:      -> (tensor<2x4x8xf32> {nn.output = "border"}, tensor<8x8xf32> {nn.gradient = "b"})
// STEP:         nn.backward
// STEP-NEXT:    nn.linear_backward_weight %{{.*}}, %[[DY]]
// STEP-NEXT:    nn.accumulate
// STEP-NEXT:    return
// STEP-LABEL: module @chunk2
// STEP-NEXT:    func.func @step({{.*}}, %{{.*}}: tensor<2x4x8xf32> {nn.input = "border"},
// STEP-SAME:      -> (tensor<f32> {nn.output = "loss"}, tensor<2x4x8xf32> {nn.output = "border_gradient"})
// STEP-NOT:     nn.linear_backward_weight
// STEP:         return

// The first stage waits for nobody.
//
// CHECK-LABEL:   module @stage0
// CHECK-COUNT-2:   nn.send %{{.*}} to 1 over "pp" lane 0
// CHECK-NOT:       nn.receive
// CHECK-LABEL:   module @stage1
// CHECK-NOT:       nn.send %{{.*}} to 0
// CHECK:           nn.receive from 2 over "pp" lane 1
// CHECK-NOT:       nn.send %{{.*}} to 0
// CHECK-LABEL:   module @stage2
// CHECK-COUNT-2:   nn.send %{{.*}} to 1 over "pp" lane 1

// They have no gradient in the norm, and update nothing.
//
// UPDATE-LABEL: module @stage0
// UPDATE:         nn.stages_norm  at [] of 1 over "pp"
// UPDATE-NOT:     nn.adamw
// UPDATE-LABEL: module @stage1
// UPDATE:         nn.stages_norm %{{.*}} at [0] of 1 over "pp"
// UPDATE-COUNT-1: nn.adamw
// UPDATE-LABEL: module @stage2
// UPDATE:         nn.stages_norm  at [] of 1 over "pp"
// UPDATE-NOT:     nn.adamw
