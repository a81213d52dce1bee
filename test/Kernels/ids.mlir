// Planning numbers the ops of a step (`remat.id`) and asks the schedule for the
// numbers (`remat.ids`): a launch has those of its ops in their order, a GEMM its
// own, and a replay has that of its original. Kernels have none, so that equal
// ones stay one.

// RUN: reprise-opt %s --pass-pipeline='builtin.module(func.func(reprise-remat-annotate-free,reprise-remat-apply,reprise-remat-verify),reprise-pad-vocabulary,reprise-form-kernels)' | FileCheck %s

func.func @step(%x: tensor<2x4xf32>, %w1: tensor<4x8xf32>, %w2: tensor<8x4xf32>, %d: tensor<2x4xf32>)
    -> (tensor<8x4xf32>, tensor<4x8xf32>) {
  // CHECK-NOT: remat.id =
  // CHECK:      rt.launch @scale_add_2x4({{.*}}remat.ids = array<i64: 0, 1>
  // CHECK-NEXT: rt.gemm {{.*}}remat.ids = array<i64: 2>, rt.name
  // CHECK-NEXT: rt.launch @gelu_2x8({{.*}}remat.ids = array<i64: 3>, rt.name
  // CHECK-NEXT: rt.gemm {{.*}}remat.ids = array<i64: 4>
  // CHECK-NEXT: rt.launch @scale_2x4{{.*}}({{.*}}remat.ids = array<i64: 6>
  // CHECK-NEXT: rt.gemm {{.*}}remat.ids = array<i64: 7>
  // CHECK-NEXT: rt.gemm {{.*}}remat.ids = array<i64: 2>, remat.replay = 3
  // CHECK-NEXT: rt.launch @gelu_2x8({{.*}}remat.ids = array<i64: 3>, remat.replay = 3
  // CHECK-NEXT: rt.gemm {{.*}}remat.ids = array<i64: 8>
  // CHECK-NEXT: rt.launch @gelu_backward_2x8({{.*}}remat.ids = array<i64: 9>
  // CHECK-NEXT: rt.gemm {{.*}}remat.ids = array<i64: 10>
  // CHECK-NEXT: return
  // CHECK-NOT: remat.id
  %n1 = nn.scale %x by 2.0 {remat.id = 0} : tensor<2x4xf32>
  %n2 = nn.add %n1, %x {remat.id = 1} : tensor<2x4xf32>
  %u = nn.linear %n2, %w1 in_out {remat.id = 2, remat.decision = #remat.recompute<segment = 3, label = "mlp">} : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %g = nn.gelu %u tanh {remat.id = 3, remat.decision = #remat.recompute<segment = 3, label = "mlp">} : tensor<2x8xf32>
  %y = nn.linear %g, %w2 in_out {remat.id = 4, remat.decision = #remat.recompute<segment = 3, label = "mlp">} : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  nn.backward {remat.id = 5}
  %dy = nn.scale %d by 3.0 {remat.id = 6} : tensor<2x4xf32>
  %dg = nn.linear_backward_input %dy, %w2 in_out {remat.id = 7} : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
  %dw2 = nn.linear_backward_weight %g, %dy in_out {remat.id = 8} : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
  %du = nn.gelu_backward %u, %dg tanh {remat.id = 9} : tensor<2x8xf32>
  %dw1 = nn.linear_backward_weight %n2, %du in_out {remat.id = 10} : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  return %dw2, %dw1 : tensor<8x4xf32>, tensor<4x8xf32>
}
