// What stages of a pipeline pass to each other.
// RUN: reprise-opt %s | reprise-opt | FileCheck %s

// CHECK-LABEL: module attributes {nn.chunk_layers = array<i64: 0, 3>, nn.gradient_counts = array<i64: 2, 0, 0, 0, 0>, nn.mesh = #nn.mesh<pp = 2>, nn.micro_batch_group = 4 : i64, nn.schedule = "1f1b", nn.stage = 1 : i64}
//       CHECK:   func.func @step(%{{.*}}: tensor<2x4xi32> {nn.input = "tokens", nn.micro_batch = 3 : i64}, %{{.*}}: tensor<96xf32> {nn.order = array<i64: 4, -1>
//  CHECK-NEXT:   nn.forward
//  CHECK-NEXT:   %[[X:.*]] = nn.receive from 0 over "pp" lane 0 places 2 : tensor<96xf32>
//  CHECK-NEXT:   nn.backward
//  CHECK-NEXT:   nn.send %[[X]] to 0 over "pp" lane 1 places 2 : tensor<96xf32>
//  CHECK-NEXT:   %[[SUM:.*]] = nn.all_reduce %[[X]] over "pp" members [0, 1] : tensor<96xf32>
//  CHECK-NEXT:   nn.stages_norm %[[SUM]], %[[X]] at [1, 3] of 4 over "pp" : (tensor<96xf32>, tensor<96xf32>) -> tensor<f32>
//  CHECK-NEXT:   nn.stages_norm at [] of 4 over "pp" : () -> tensor<f32>
module attributes {nn.mesh = #nn.mesh<pp = 2>, nn.stage = 1 : i64, nn.schedule = "1f1b", nn.micro_batch_group = 4 : i64,
                   nn.chunk_layers = array<i64: 0, 3>, nn.gradient_counts = array<i64: 2, 0, 0, 0, 0>} {
  func.func @step(%ids: tensor<2x4xi32> {nn.input = "tokens", nn.micro_batch = 3 : i64},
                  %w: tensor<96xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>, nn.order = array<i64: 4, -1>, nn.sum_stages = array<i64: 0, 1>}) {
    nn.forward
    %x = nn.receive from 0 over "pp" lane 0 places 2 : tensor<96xf32>
    nn.backward
    nn.send %x to 0 over "pp" lane 1 places 2 : tensor<96xf32>
    %sum = nn.all_reduce %x over "pp" members [0, 1] : tensor<96xf32>
    %norm = nn.stages_norm %sum, %x at [1, 3] of 4 over "pp" : (tensor<96xf32>, tensor<96xf32>) -> tensor<f32>
    %none = nn.stages_norm at [] of 4 over "pp" : () -> tensor<f32>
    return
  }
}
