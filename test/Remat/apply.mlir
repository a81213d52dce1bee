// Replays stand in front of their first reader, hold what is read and nothing
// else, and read kept values behind a fence.

// RUN: reprise-opt %s -split-input-file --reprise-remat-apply --reprise-remat-verify | FileCheck %s

// Applied once more, nothing changes.

// RUN: reprise-opt %s -split-input-file --reprise-remat-apply --reprise-remat-apply --reprise-remat-verify | FileCheck %s

// A feed-forward block: u and g are rebuilt when the first of backward's ops
// reads g; y, which no op of the backward phase reads, is not. The fence waits
// for the gradient that this op reads, not for its kept operand.

// CHECK-LABEL: func.func @mlp
//  CHECK-SAME:   %[[N2:.*]]: tensor<2x4xf32>, %[[W1:.*]]: tensor<4x8xf32>, %[[W2:.*]]: tensor<8x4xf32>, %[[DY:.*]]: tensor<2x4xf32>
func.func @mlp(%x: tensor<2x4xf32>, %w1: tensor<4x8xf32>, %w2: tensor<8x4xf32>, %d: tensor<2x4xf32>)
    -> (tensor<8x4xf32>, tensor<4x8xf32>) {
  // CHECK:      %[[KEPT:.*]] = nn.scale
  // CHECK-NEXT: %[[U:.*]] = nn.linear {{.*}}remat.decision
  // CHECK-NEXT: %[[G:.*]] = nn.gelu %[[U]] {{.*}}remat.decision
  // CHECK-NEXT: nn.linear %[[G]], {{.*}}remat.decision
  // CHECK-NEXT: nn.backward
  // CHECK-NEXT: %[[DY2:.*]] = nn.scale
  // CHECK-NEXT: %[[DG:.*]] = nn.linear_backward_input %[[DY2]]
  // CHECK-NEXT: %[[FENCE:.*]] = remat.fence %[[KEPT]] after %[[DY2]] : tensor<2x4xf32>, tensor<2x4xf32>
  // CHECK-NEXT: %[[UR:.*]] = nn.linear %[[FENCE]], %[[W1]] in_out {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "u">, remat.replay = 3 : i64}
  // CHECK-NEXT: %[[GR:.*]] = nn.gelu %[[UR]] tanh {remat.replay = 3 : i64}
  // CHECK-NEXT: nn.linear_backward_weight %[[GR]], %[[DY2]]
  // CHECK-NEXT: %[[DU:.*]] = nn.gelu_backward %[[UR]], %[[DG]]
  // CHECK-NEXT: nn.linear_backward_weight %[[KEPT]], %[[DU]]
  // CHECK-NEXT: return
  %n2 = nn.scale %x by 2.0 : tensor<2x4xf32>
  %u = nn.linear %n2, %w1 in_out {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "u">, remat.decision = #remat.recompute<segment = 3, label = "mlp">} : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %g = nn.gelu %u tanh {remat.decision = #remat.recompute<segment = 3, label = "mlp">} : tensor<2x8xf32>
  %y = nn.linear %g, %w2 in_out {remat.decision = #remat.recompute<segment = 3, label = "mlp">} : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  nn.backward
  %dy = nn.scale %d by 3.0 : tensor<2x4xf32>
  %dg = nn.linear_backward_input %dy, %w2 in_out : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<2x8xf32>
  %dw2 = nn.linear_backward_weight %g, %dy in_out : (tensor<2x8xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
  %du = nn.gelu_backward %u, %dg tanh : tensor<2x8xf32>
  %dw1 = nn.linear_backward_weight %n2, %du in_out : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  return %dw2, %dw1 : tensor<8x4xf32>, tensor<4x8xf32>
}

// -----

// A replay of an op that reads arguments alone is tied by a fence on the first;
// a dropout draws its mask from the same stream again. Without a gradient
// before it, the fence waits for nothing.

// CHECK-LABEL: func.func @arguments_only
//  CHECK-SAME:   %[[X:.*]]: tensor<4xf32>, %[[RNG:.*]]: tensor<4xi32>
func.func @arguments_only(%x: tensor<4xf32>, %rng: tensor<4xi32>, %d: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK:      nn.backward
  // CHECK-NEXT: %[[FENCE:.*]] = remat.fence %[[X]] : tensor<4xf32>
  // CHECK-NEXT: %[[AGAIN:.*]] = nn.dropout %[[FENCE]], %[[RNG]] rate 5.000000e-01 stream 7 {remat.replay = 0 : i64}
  // CHECK-NEXT: nn.gelu_backward %[[AGAIN]]
  %u = nn.dropout %x, %rng rate 5.0e-01 stream 7 {remat.decision = #remat.recompute<segment = 0, label = "mlp">} : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  nn.backward
  %du = nn.gelu_backward %u, %d tanh : tensor<4xf32>
  return %du : tensor<4xf32>
}

// -----

// Of an op with several results some may be dropped: the others are read from
// the original, and are no reason to replay.

// CHECK-LABEL: func.func @some_results
func.func @some_results(%q: tensor<1x4x8xf32>, %rng: tensor<4xi32>, %d: tensor<1x4x8xf32>)
    -> (tensor<1x4x8xf32>, tensor<1x4x8xf32>) {
  // CHECK:      %[[CTX:.*]], %{{.*}} = nn.attention
  // CHECK-NEXT: nn.backward
  // CHECK-NEXT: %[[D:.*]] = nn.gelu_backward %[[CTX]]
  // CHECK-NEXT: %[[Q:.*]] = remat.fence %{{.*}} after %[[D]]
  // CHECK-NEXT: %{{.*}}, %[[LSE:.*]] = nn.attention %[[Q]], {{.*}} {remat.replay = 0 : i64}
  // CHECK-NEXT: nn.attention_backward %{{.*}}, %{{.*}}, %{{.*}}, %[[CTX]], %[[LSE]], %[[D]]
  %ctx, %lse = nn.attention %q, %q, %q, %rng heads 2 scale 5.0e-01 rate 0.0 stream 0 {remat.decision = #remat.recompute<segment = 0, label = "core_attn", results = [1]>}
    : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<4xi32>) -> (tensor<1x4x8xf32>, tensor<1x2x4xf32>)
  nn.backward
  %dctx = nn.gelu_backward %ctx, %d tanh : tensor<1x4x8xf32>
  %dq, %dk, %dv = nn.attention_backward %q, %q, %q, %ctx, %lse, %dctx, %rng heads 2 scale 5.0e-01 rate 0.0 stream 0
    : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x2x4xf32>, tensor<1x4x8xf32>, tensor<4xi32>)
      -> (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>)
  return %dctx, %dq : tensor<1x4x8xf32>, tensor<1x4x8xf32>
}

// -----

// Two labels of one segment: what the first reader rebuilt serves the second.

// CHECK-LABEL: func.func @shared
func.func @shared(%x: tensor<4xf32>, %d: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK:      %[[X:.*]] = nn.scale
  // CHECK:      nn.backward
  // CHECK-NEXT: remat.fence %[[X]]
  // CHECK-NEXT: %[[N:.*]] = nn.gelu
  // CHECK-NEXT: %[[U:.*]] = nn.gelu %[[N]]
  // CHECK-NEXT: %[[DU:.*]] = nn.gelu_backward %[[U]]
  // CHECK-NEXT: nn.gelu_backward %[[N]], %[[DU]]
  // CHECK-NEXT: return
  %k = nn.scale %x by 2.0 : tensor<4xf32>
  %n = nn.gelu %k tanh {remat.decision = #remat.recompute<segment = 0, label = "layernorm">} : tensor<4xf32>
  %u = nn.gelu %n tanh {remat.decision = #remat.recompute<segment = 0, label = "mlp">} : tensor<4xf32>
  nn.backward
  %du = nn.gelu_backward %u, %d tanh : tensor<4xf32>
  %dn = nn.gelu_backward %n, %du tanh : tensor<4xf32>
  return %du, %dn : tensor<4xf32>, tensor<4xf32>
}

// -----

// Nothing decided, or no backward phase: nothing happens.

// CHECK-LABEL: func.func @nothing_dropped
func.func @nothing_dropped(%x: tensor<4xf32>, %d: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: %[[U:.*]] = nn.gelu
  // CHECK-NEXT: nn.backward
  // CHECK-NEXT: nn.gelu_backward %[[U]]
  %u = nn.gelu %x tanh {remat.decision = #remat.save} : tensor<4xf32>
  nn.backward
  %du = nn.gelu_backward %u, %d tanh : tensor<4xf32>
  return %du : tensor<4xf32>
}

// CHECK-LABEL: func.func @forward_only
func.func @forward_only(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: nn.gelu
  // CHECK-NEXT: return
  %u = nn.gelu %x tanh {remat.decision = #remat.recompute<segment = 0, label = "full">} : tensor<4xf32>
  return %u : tensor<4xf32>
}
