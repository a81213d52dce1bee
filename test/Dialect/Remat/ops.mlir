// RUN: reprise-opt %s | FileCheck %s
// RUN: reprise-opt %s -mlir-print-op-generic | reprise-opt | FileCheck %s
// RUN: reprise-opt %s -cse -canonicalize | FileCheck %s --check-prefix=CSE

// CHECK-LABEL: func @fences(
//  CHECK-SAME:   %[[X:.*]]: tensor<2x8x24xf32>, %[[D:.*]]: tensor<2x8x24xf32>, %[[S:.*]]: tensor<f32>
// CSE-LABEL: func @fences(
func.func @fences(%x: tensor<2x8x24xf32>, %d: tensor<2x8x24xf32>, %s: tensor<f32>)
    -> (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>) {
  // CHECK: %[[A:.*]] = remat.fence %[[X]] : tensor<2x8x24xf32>
  %a = remat.fence %x : tensor<2x8x24xf32>
  // CHECK: %[[B:.*]] = remat.fence %[[X]] after %[[D]] : tensor<2x8x24xf32>, tensor<2x8x24xf32>
  %b = remat.fence %x after %d : tensor<2x8x24xf32>, tensor<2x8x24xf32>
  // CHECK: %[[C:.*]] = remat.fence %[[X]] after %[[D]], %[[S]] : tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<f32>
  %c = remat.fence %x after %d, %s : tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<f32>
  // CHECK: return %[[A]], %[[B]], %[[C]]
  return %a, %b, %c : tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>
}

// CHECK-LABEL: func @decisions(
// CSE-LABEL: func @decisions(
func.func @decisions(%x: tensor<2x8x24xf32>, %g: tensor<24xf32>)
    -> (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>) {
  // CHECK: {remat.decision = #remat.recompute<segment = 3, label = "mlp">}
  %u = nn.gelu %x tanh {remat.decision = #remat.recompute<segment = 3, label = "mlp">} : tensor<2x8x24xf32>
  // CHECK: {remat.decision = #remat.recompute<segment = 0, label = "layernorm", results = [0, 2]>}
  %n, %mean, %rstd = nn.layer_norm %x, %g, %g eps 1.0
    {remat.decision = #remat.recompute<segment = 0, label = "layernorm", results = [0, 2]>}
    : (tensor<2x8x24xf32>, tensor<24xf32>, tensor<24xf32>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
  // CHECK: {remat.decision = #remat.save<reason = "outside every segment">}
  %y = nn.add %u, %n {remat.decision = #remat.save<reason = "outside every segment">} : tensor<2x8x24xf32>
  // CHECK: {remat.decision = #remat.save}
  %z = nn.add %y, %n {remat.decision = #remat.save} : tensor<2x8x24xf32>
  return %u, %n, %y, %z : tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>
}

// What is computed from a fence is not taken for what was computed from its
// value; the replay is still there after CSE.

// CHECK-LABEL: func @replay(
// CSE-LABEL: func @replay(
//  CSE-SAME:   %[[X:.*]]: tensor<4xf32>, %[[D:.*]]: tensor<4xf32>
//  CSE-NEXT:   %[[U:.*]] = nn.gelu %[[X]] tanh : tensor<4xf32>
//  CSE-NEXT:   nn.backward
//  CSE-NEXT:   %[[F:.*]] = remat.fence %[[X]] after %[[D]]
//  CSE-NEXT:   %[[R:.*]] = nn.gelu %[[F]] tanh {remat.replay = 0 : i64} : tensor<4xf32>
//  CSE-NEXT:   return %[[U]], %[[R]]
func.func @replay(%x: tensor<4xf32>, %d: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %u = nn.gelu %x tanh : tensor<4xf32>
  nn.backward
  %f = remat.fence %x after %d : tensor<4xf32>, tensor<4xf32>
  // CHECK: nn.gelu %{{.*}} tanh {remat.replay = 0 : i64} : tensor<4xf32>
  %r = nn.gelu %f tanh {remat.replay = 0} : tensor<4xf32>
  return %u, %r : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func private @chunks()
//  CHECK-SAME:   attributes {remat.chunks = #remat.chunks<stages = 2, layers = [2, 2, 2, 1]>}
func.func private @chunks() attributes {remat.chunks = #remat.chunks<stages = 2, layers = [2, 2, 2, 1]>}

// What a description asks for stands on a module.
// CHECK: module attributes {remat.request = #remat.request<granularity = "none">}
module attributes {remat.request = #remat.request<granularity = "none">} {}
// CHECK: module attributes {remat.request = #remat.request<granularity = "selective", modules = ["mlp", "layernorm"], free = false>}
module attributes {remat.request = #remat.request<granularity = "selective", modules = ["mlp", "layernorm"], free = false>} {}
// CHECK: module attributes {remat.request = #remat.request<granularity = "full", method = "block", layers = 2, chunks = <stages = 2, layers = [3, 3]>, keep_last = false, share_saved = true>}
module attributes {remat.request = #remat.request<granularity = "full", method = "block", layers = 2, chunks = <stages = 2, layers = [3, 3]>, keep_last = false, share_saved = true>} {}
// CHECK: module attributes {remat.request = #remat.request<granularity = "plan", file = "by hand.yaml">}
module attributes {remat.request = #remat.request<granularity = "plan", file = "by hand.yaml">} {}
