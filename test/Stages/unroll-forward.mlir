// What only goes forward is cut as the step is, and a stage has all of its
// chunks in their order.
// RUN: reprise-opt %s -pass-pipeline='builtin.module(reprise-derive-inference,reprise-cut-chunks,reprise-make-schedule,builtin.module(reprise-differentiate),reprise-unroll-stages)' | FileCheck %s

#scope0 = #nn.scope<layer = 0, module = "mlp", value = "x">
#scope1 = #nn.scope<layer = 1, module = "mlp", value = "x">
#scope2 = #nn.scope<layer = 2, module = "mlp", value = "x">
#scope3 = #nn.scope<layer = 3, module = "mlp", value = "x">
#logits = #nn.scope<layer = -1, module = "head", value = "logits">

module attributes {nn.mesh = #nn.mesh<pp = 2>, nn.chunk_layers = array<i64: 1, 1, 1, 1>, nn.schedule = "interleaved"} {
  func.func @forward(%ids: tensor<2x4xi32> {nn.input = "tokens"}, %targets: tensor<2x4xi32> {nn.input = "targets"},
                     %rng: tensor<4xi32> {nn.input = "rng"},
                     %table: tensor<7x8xf32> {nn.parameter = #nn.parameter<name = "table", init = zeros>},
                     %a: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros>},
                     %b: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>},
                     %c: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "c", init = zeros>},
                     %d: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "d", init = zeros>}) -> tensor<f32>
      attributes {nn.micro_batches = 2 : i64} {
    %e = nn.embedding %ids, %table : (tensor<2x4xi32>, tensor<7x8xf32>) -> tensor<2x4x8xf32>
    %x0 = nn.linear %e, %a in_out {nn.scope = #scope0} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %d0 = nn.dropout %x0, %rng rate 0.1 stream 0 {nn.scope = #scope0} : (tensor<2x4x8xf32>, tensor<4xi32>) -> tensor<2x4x8xf32>
    %x1 = nn.linear %d0, %b in_out {nn.scope = #scope1} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %x2 = nn.linear %x1, %c in_out {nn.scope = #scope2} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %x3 = nn.linear %x2, %d in_out {nn.scope = #scope3} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %l = nn.linear %x3, %table out_in {nn.scope = #logits} : (tensor<2x4x8xf32>, tensor<7x8xf32>) -> tensor<2x4x7xf32>
    %losses, %lse = nn.cross_entropy %l, %targets : (tensor<2x4x7xf32>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
    %loss = nn.mean %losses : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// Inputs are where the step has those of its first micro-batch, parameters as
// the step says. Nothing comes out of a stage that is not the last one.
//
// CHECK-LABEL: module @stage0
// CHECK:       func.func @evaluate(
// CHECK-SAME:    %[[IDS:[a-z0-9]*]]: tensor<2x4xi32> {nn.input = "tokens", nn.micro_batch = 0 : i64},
// CHECK-SAME:    %[[TABLE:[a-z0-9]*]]: tensor<7x8xf32> {nn.order = array<i64: 0, 0>, {{.*}}nn.sum_stages = array<i64: 0, 1>},
// CHECK-SAME:    %[[A:[a-z0-9]*]]: tensor<8x8xf32> {nn.order = array<i64: 1, 1>,
// CHECK-SAME:    %[[C:[a-z0-9]*]]: tensor<8x8xf32> {nn.order = array<i64: 3, 3>, {{[^,]*}}name = "c", init = zeros>}) {
// CHECK-NEXT:    %[[E:.*]] = nn.embedding %[[IDS]], %[[TABLE]]
// CHECK-NEXT:    %[[X0:.*]] = nn.linear %[[E]], %[[A]]
// CHECK-NEXT:    nn.send %[[X0]] to 1 over "pp" lane 0 places 4
// CHECK-NEXT:    %[[X1:.*]] = nn.receive from 1 over "pp" lane 0 places 3
// CHECK-NEXT:    %[[X2:.*]] = nn.linear %[[X1]], %[[C]]
// CHECK-NEXT:    nn.send %[[X2]] to 1 over "pp" lane 0 places 4
// CHECK-NEXT:    return

// A text goes on lanes of its own, one at a time.
//
// CHECK:       func.func @sample(%[[TEXT:[a-z0-9]*]]: tensor<1x4xi32> {nn.input = "sample_tokens"},
// CHECK-NEXT:    nn.embedding %[[TEXT]]
// CHECK:         nn.send %{{.*}} to 1 over "pp" lane 2 places 1 : tensor<1x4x8xf32>
// CHECK:         nn.receive from 1 over "pp" lane 2 places 1 : tensor<1x4x8xf32>
// CHECK:         nn.send %{{.*}} to 1 over "pp" lane 2 places 1

// CHECK-LABEL: module @stage1
// CHECK:       func.func @evaluate(
// CHECK-SAME:    %[[TARGETS:[a-z0-9]*]]: tensor<2x4xi32> {nn.input = "targets", nn.micro_batch = 0 : i64},
// CHECK-SAME:    nn.order = array<i64: 0, -1>, {{[^,]*}}name = "table"
// CHECK-SAME:    -> (tensor<f32> {nn.output = "eval_loss"})
// CHECK-NEXT:    %[[IN:.*]] = nn.receive from 0 over "pp" lane 0 places 4
// CHECK:         nn.send %{{.*}} to 0 over "pp" lane 0 places 3
// CHECK-NEXT:    nn.receive from 0 over "pp" lane 0 places 4
// CHECK:         nn.cross_entropy %{{.*}}, %[[TARGETS]]
// CHECK-NEXT:    %[[LOSS:.*]] = nn.mean
// CHECK-NEXT:    return %[[LOSS]]
// CHECK:       func.func @sample(
// CHECK-SAME:    {nn.input = "position"}
// CHECK-SAME:    -> (tensor<1x7xf32> {nn.output = "logits"})
