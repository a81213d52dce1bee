// What a chunk of a pipeline gets from the one before is an argument, and may be
// shared: behind its last reader of the forward pass, or before all ops if there
// is none.

// RUN: reprise-opt %s --pass-pipeline='builtin.module(func.func(reprise-remat-apply,reprise-remat-verify))' | FileCheck %s

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
// CHECK-LABEL: func.func @read_twice
//       CHECK:   nn.gelu %arg0 tanh
//  CHECK-NEXT:   %[[PART:.*]] = nn.slice %arg0 over "tp" dim 0 {nn.scope = #nn.scope<layer = 2, module = "mlp", value = "x0.slice">, remat.share} : (tensor<4xf32>) -> tensor<2xf32>
//  CHECK-NEXT:   nn.backward
//       CHECK:   %[[FENCE:.*]] = remat.fence %[[PART]] after
//  CHECK-NEXT:   %[[ALL:.*]] = nn.all_gather %[[FENCE]] to I over "tp" dim 0 {{.*}}remat.replay = 2 : i64}
//  CHECK-NEXT:   nn.gelu_backward %[[ALL]]
func.func @read_twice(%x: tensor<4xf32> {nn.input = "border", remat.decision = #remat.share<axis = "tp", segment = 2>},
                      %d: tensor<4xf32>) -> tensor<4xf32> {
  %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 2, module = "mlp", value = "u">} : tensor<4xf32>
  nn.backward
  %dy = nn.add %d, %u : tensor<4xf32>
  %du = nn.gelu_backward %x, %dy tanh : tensor<4xf32>
  return %du : tensor<4xf32>
}

// CHECK-LABEL: func.func @read_in_backward
//  CHECK-NEXT:   nn.slice %arg0 over "tp" dim 0 {remat.share}
//  CHECK-NEXT:   nn.linear
//       CHECK:   nn.backward
//       CHECK:   %[[ALL:.*]] = nn.all_gather
//  CHECK-NEXT:   nn.gelu_backward %[[ALL]]
func.func @read_in_backward(%x: tensor<4xf32> {nn.input = "border", remat.decision = #remat.share<axis = "tp", segment = 2>},
                            %a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %u = nn.linear %a, %a in_out : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  nn.backward
  %du = nn.gelu_backward %x, %x tanh : tensor<4xf32>
  return %u : tensor<4x4xf32>
}
}
