// The tables are the same before and after the plan is applied. What takes how
// much at the peak is not known here.

// RUN: reprise-opt %S/../Remat/Inputs/gpt-fused.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=mlp,layernorm},reprise-remat-explain))' > %t.decided
// RUN: reprise-opt %S/../Remat/Inputs/gpt-fused.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=mlp,layernorm},reprise-remat-apply,reprise-remat-explain))' > %t.applied
// RUN: diff %t.decided %t.applied
// RUN: FileCheck %s < %t.applied

// CHECK:      layer 0: keeps 388.0 KiB, replays {{.*}} MFLOP
// CHECK-NEXT:   value    shape             bytes  decision   rule replay  reason
// CHECK-NEXT:   x0       2x128x64xf32   64.0 KiB  save       -     {{.*}}layer_norm_backward{{.*}} of n1 reads it, and
// CHECK-NEXT:   n1       2x128x64xf32   66.0 KiB  recompute  layernorm  {{.*}}FLOP  linear_backward_weight of {{[qkv]}} reads it, and
// CHECK-NEXT:   q        2x128x64xf32   64.0 KiB  save       -          {{.*}}  attention_backward of ctx reads it
// CHECK:        ctx.lse  2x4x128xf32     4.0 KiB  save
// CHECK:        u        2x128x256xf32 {{.*}} recompute  mlp
// CHECK-NEXT:   g        2x128x256xf32 {{.*}} recompute  mlp {{.*}} linear_backward_weight of y reads it
// CHECK:      outside layers: keeps 163.0 KiB
// CHECK:      layernorm: frees 132.0 KiB until backward for {{.*}} a micro-batch
// CHECK-NEXT: mlp: frees 512.0 KiB until backward for {{.*}} a micro-batch

// RUN: reprise-opt %s --mlir-disable-threading --reprise-remat-explain -o /dev/null > %t.small
// RUN: FileCheck %s --check-prefix=SMALL < %t.small

// SMALL:      {{^}}layer 3: keeps 32 B
// SMALL-NEXT:   value  shape  bytes  decision  rule  replay  reason
// SMALL-NEXT:   u      8xf32   32 B  save      -          -  gelu_backward reads it
func.func @step(%x: tensor<8xf32>) -> tensor<8xf32> {
  %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "u">} : tensor<8xf32>
  nn.backward
  %d = nn.gelu_backward %u, %x tanh : tensor<8xf32>
  return %d : tensor<8xf32>
}

// A decision by hand: backward reads %u, and neither %g nor %y, which a label
// of its own drops.
// SMALL-NEXT: layer 0: keeps 0 B, replays 72 FLOP
// SMALL-NEXT:   value  shape  bytes  decision   rule   replay  reason
// SMALL-NEXT:   u      8xf32   32 B  recompute  hand  72 FLOP  gelu_backward reads it
// SMALL-NEXT:   not replayed, for backward does not need them: g y
// SMALL-EMPTY:
// SMALL-NEXT: hand: frees 32 B until backward for 72 FLOP a micro-batch
// SMALL-NEXT: other: buys nothing: backward reads no value that it drops (g y)
func.func @hand(%x: tensor<8xf32>) -> tensor<8xf32> {
  %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "u">, remat.decision = #remat.recompute<segment = 0, label = "hand">} : tensor<8xf32>
  %g = nn.gelu %u tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "g">, remat.decision = #remat.recompute<segment = 0, label = "other">} : tensor<8xf32>
  %y = nn.gelu %g tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "y">, remat.decision = #remat.recompute<segment = 0, label = "other">} : tensor<8xf32>
  nn.backward
  %d = nn.gelu_backward %u, %x tanh : tensor<8xf32>
  return %d : tensor<8xf32>
}

// What has no backward phase keeps nothing.
// SMALL-NOT: layer
func.func @forward_only(%x: tensor<8xf32>) -> tensor<8xf32> {
  %u = nn.gelu %x tanh : tensor<8xf32>
  return %u : tensor<8xf32>
}
