// `full`: layers go into segments; what enters a segment is kept, everything
// inside is dropped, and backward replays what it reads.

// RUN: reprise-opt %s --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=uniform num-layers=2}))' \
// RUN: | FileCheck %s

// CHECK-LABEL: func.func @step
// CHECK: value = "x0">, remat.decision = #remat.save<reason = "in no layer">
// CHECK: layer = 0, {{.*}}"u">, remat.decision = #remat.recompute<segment = 0, label = "full">
// CHECK: layer = 0, {{.*}}"g">, remat.decision = #remat.recompute<segment = 0, label = "full">
// CHECK: layer = 0, {{.*}}"x2">, remat.decision = #remat.recompute<segment = 0, label = "full">
// CHECK: layer = 1, {{.*}}"u">, remat.decision = #remat.recompute<segment = 0, label = "full">
// CHECK: layer = 1, {{.*}}"g">, remat.decision = #remat.recompute<segment = 0, label = "full">
// CHECK: layer = 1, {{.*}}"x2">, remat.decision = #remat.save<reason = "input of segment 1">
// CHECK: layer = 2, {{.*}}"u">, remat.decision = #remat.recompute<segment = 1, label = "full">
// CHECK: layer = 3, {{.*}}"g">, remat.decision = #remat.recompute<segment = 1, label = "full">
// CHECK: layer = 3, {{.*}}"x2">, remat.decision = #remat.save<reason = "read outside every segment">
// CHECK: value = "logits">, remat.decision = #remat.save<reason = "in no layer">
// CHECK: nn.backward
// CHECK-NOT: remat.decision

// A gelu of 4 elements is 9 FLOPs an element, 36; an add is 4. In a segment of
// one layer, backward reads u alone: neither g nor x2 is replayed.

// RUN: reprise-opt %S/Inputs/chain-5.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=uniform num-layers=1},reprise-remat-print-plan))' \
// RUN: | FileCheck %s --check-prefix=ONE
// ONE:      layers 0-4: save x0 (16 B each); recompute u (16 B, 36 FLOP each) for full
// ONE-NEXT: outside layers: save x2 (16 B)
// ONE-NEXT: in all: save 96 B, recompute 180 FLOP

// Five layers in threes: segments [0, 2] and [3, 4]. The last layer of each
// replays u alone, the others what the next one reads.

// RUN: reprise-opt %S/Inputs/chain-5.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=uniform num-layers=3},reprise-remat-print-plan))' \
// RUN: | FileCheck %s --check-prefix=THREE
// THREE:      layers 0, 3: save x0 (16 B each); recompute u g x2 (48 B, 76 FLOP each) for full
// THREE-NEXT: layer 1: save nothing; recompute u g x2 (48 B, 76 FLOP) for full
// THREE-NEXT: layers 2, 4: save nothing; recompute u (16 B, 36 FLOP each) for full

// More layers in a segment than there are: one segment.

// RUN: reprise-opt %S/Inputs/chain-5.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=uniform num-layers=9},reprise-remat-print-plan))' \
// RUN: | FileCheck %s --check-prefix=NINE
// NINE:      layer 0: save x0
// NINE-NEXT: layers 1-3: save nothing; recompute u g x2
// NINE-NEXT: layer 4: save nothing; recompute u (

// `block`: the first layers are recomputed, one by one; the others keep all.

// RUN: reprise-opt %S/Inputs/chain-5.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=block num-layers=2},reprise-remat-print-plan))' \
// RUN: | FileCheck %s --check-prefix=BLOCK
// BLOCK:      layers 0-1: save x0 (16 B each); recompute u (16 B, 36 FLOP each) for full
// BLOCK-NEXT: layers 2-4: save x0 u (32 B each){{$}}

// RUN: reprise-opt %S/Inputs/chain-5.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=block num-layers=9},reprise-remat-print-plan))' \
// RUN: | FileCheck %s --check-prefix=ONE

// A real layer: the attention is replayed for its context and log-sum-exp, the
// second GEMM of the feed-forward block (y) and what follows it is not.

// RUN: reprise-opt %S/Inputs/gpt-fused.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=uniform num-layers=1},reprise-remat-apply,reprise-remat-verify,reprise-remat-print-plan))' \
// RUN: | FileCheck %s --check-prefix=GPT
// GPT: layer 0: save x0 (64.0 KiB); recompute n1 q k v ctx a ad x1 n2 u g (1.1 MiB, {{.*}}) for full

func.func @forward(%p: tensor<4xf32> {nn.parameter = #nn.parameter<name = "p", init = zeros>}) -> tensor<f32>
    attributes {nn.micro_batches = 1 : i64} {
  %x0 = nn.scale %p by 2.0 {nn.scope = #nn.scope<module = "embedding", value = "x0">} : tensor<4xf32>
  %u0 = nn.gelu %x0 tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "u">} : tensor<4xf32>
  %g0 = nn.gelu %u0 tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "g">} : tensor<4xf32>
  %x1 = nn.add %x0, %g0 {nn.scope = #nn.scope<layer = 0, module = "residual", value = "x2">} : tensor<4xf32>
  %u1 = nn.gelu %x1 tanh {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "u">} : tensor<4xf32>
  %g1 = nn.gelu %u1 tanh {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "g">} : tensor<4xf32>
  %x2 = nn.add %x1, %g1 {nn.scope = #nn.scope<layer = 1, module = "residual", value = "x2">} : tensor<4xf32>
  %u2 = nn.gelu %x2 tanh {nn.scope = #nn.scope<layer = 2, module = "mlp", value = "u">} : tensor<4xf32>
  %g2 = nn.gelu %u2 tanh {nn.scope = #nn.scope<layer = 2, module = "mlp", value = "g">} : tensor<4xf32>
  %x3 = nn.add %x2, %g2 {nn.scope = #nn.scope<layer = 2, module = "residual", value = "x2">} : tensor<4xf32>
  %u3 = nn.gelu %x3 tanh {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "u">} : tensor<4xf32>
  %g3 = nn.gelu %u3 tanh {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "g">} : tensor<4xf32>
  %x4 = nn.add %x3, %g3 {nn.scope = #nn.scope<layer = 3, module = "residual", value = "x2">} : tensor<4xf32>
  %h = nn.gelu %x4 tanh {nn.scope = #nn.scope<module = "head", value = "logits">} : tensor<4xf32>
  %loss = nn.mean %h {nn.scope = #nn.scope<module = "loss", value = "loss">} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
