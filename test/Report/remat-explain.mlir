// The tables are the same before and after the plan is applied. What takes how
// much at the peak is not known here.

// RUN: reprise-opt %S/../Remat/Inputs/gpt-fused.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=mlp,layernorm},reprise-remat-explain))' > %t.decided
// RUN: reprise-opt %S/../Remat/Inputs/gpt-fused.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=mlp,layernorm},reprise-remat-apply,reprise-remat-explain))' > %t.applied
// RUN: diff %t.decided %t.applied
// RUN: reprise-opt %S/../Remat/Inputs/gpt-fused.mlir -o %t.joint.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=mlp,layernorm}))' && \
// RUN: reprise-opt %t.joint.mlir -o /dev/null --remat-explain | diff %t.decided -
// RUN: FileCheck %s < %t.applied

// CHECK:      layer 0: keeps 388.0 KiB, replays {{.*}} MFLOP in about {{[0-9.]+}} us
// CHECK-NEXT:   value shape bytes decision rule replay time{{$}}
// CHECK-NEXT: {{^    reason +flips$}}
// CHECK-NEXT:   x0 2x128x64xf32 64.0 KiB save - - -{{$}}
// CHECK-NEXT:     {{.*}}layer_norm_backward{{.*}} of n1 reads it, and {{.}} more with full
// CHECK-NEXT:   n1 2x128x64xf32 66.0 KiB recompute layernorm {{.*}}FLOP {{.*}} us{{$}}
// CHECK-NEXT:     linear_backward_weight of {{[qkv]}} reads it, and
// CHECK-NEXT:   q 2x128x64xf32 64.0 KiB save
// CHECK-NEXT:     attention_backward of ctx reads it with full
// CHECK:        ctx.lse 2x4x128xf32 4.0 KiB save
// CHECK-NEXT:     {{.*}} with core_attn
// CHECK:        u 2x128x256xf32 {{.*}} recompute mlp {{.*}} us{{$}}
// CHECK-NEXT:     {{.*}} without mlp
// CHECK-NEXT:   g 2x128x256xf32 {{.*}} recompute mlp
// CHECK-NEXT:     linear_backward_weight of y reads it without mlp
// CHECK:      outside layers: keeps 163.0 KiB
// CHECK:      layernorm: frees 132.0 KiB until backward for {{.*}} a micro-batch
// CHECK-NEXT: mlp: frees 512.0 KiB until backward for {{.*}} a micro-batch

// The same as remarks, one for each value and label, for tools to read.

// RUN: reprise-opt %S/../Remat/Inputs/gpt-fused.mlir -o /dev/null --remarks-filter=Report --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=mlp,layernorm},reprise-remat-explain))' 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// REMARK:      remark: [Passed] Recomputed | Category:Report | Function=step | Remark=layer0.layernorm.n1
// REMARK-SAME: layer=0
// REMARK:      remark: [Passed] Saved | Category:Report | Function=step | Remark=layer0.attention.q
// REMARK-SAME: bytes=65536
// REMARK-SAME: flips="with full"
// REMARK:      remark: [Passed] Recomputed | Category:Report | Function=step | Remark=layer0.mlp.u
// REMARK-SAME: bytes=262144
// REMARK-SAME: flips="without mlp"
// REMARK-SAME: flops=8454144
// REMARK-SAME: microseconds=52
// REMARK-SAME: reason="gelu_backward of g reads it, and 1 more"
// REMARK-SAME: rule=mlp
// REMARK:      remark: [Passed] Label | Category:Report | Function=step | Remark=mlp
// REMARK-SAME: bytes=524288

// RUN: reprise-opt %s --mlir-disable-threading --reprise-remat-explain -o /dev/null --remarks-filter=Report --remark-format=yaml --remarks-output-file=%t.yaml
// RUN: FileCheck %s --check-prefix=YAML < %t.yaml
// YAML:      --- !Passed
// YAML-NEXT: Pass: Report
// YAML-NEXT: Name: Saved
// YAML:      Name: LabelBuysNothing
// YAML:      - verdict: 'buys nothing: backward reads no value that it drops (g y)'

// RUN: reprise-opt %s --mlir-disable-threading --reprise-remat-explain -o /dev/null > %t.small
// RUN: FileCheck %s --check-prefix=SMALL < %t.small

// SMALL:      {{^}}layer 3: keeps 32 B
// SMALL-NEXT: {{^}}  value  shape  bytes  decision  rule  replay  time{{$}}
// SMALL-NEXT: {{^}}    reason                  flips{{$}}
// SMALL-NEXT: {{^}}  u      8xf32   32 B  save      -          -     -{{$}}
// SMALL-NEXT: {{^}}    gelu_backward reads it  with mlp{{$}}
func.func @step(%x: tensor<8xf32>) -> tensor<8xf32> {
  %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "u">} : tensor<8xf32>
  nn.backward
  %d = nn.gelu_backward %u, %x tanh : tensor<8xf32>
  return %d : tensor<8xf32>
}

// A decision by hand: backward reads %u, and neither %g nor %y, which a label
// of its own drops.
// SMALL-NEXT: layer 0: keeps 0 B, replays 72 FLOP in about 5.0 us
// SMALL-NEXT:   value shape bytes decision rule replay time
// SMALL-NEXT:     reason flips
// SMALL-NEXT:   u 8xf32 32 B recompute hand 72 FLOP 5.0 us
// SMALL-NEXT:     gelu_backward reads it without hand
// SMALL-NEXT:   not replayed, for backward does not need them: g y
// SMALL-EMPTY:
// SMALL-NEXT: hand: frees 32 B until backward for 72 FLOP a micro-batch, about 5.0 us
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
