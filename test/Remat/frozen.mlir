// Gradients exist where a trainable parameter needs them, and so do replays: with
// the lower layers frozen, full recompute replays the upper ones alone. The
// frozen first scale is like an embedding under layers that learn.

// RUN: reprise-opt %s -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=uniform num-layers=1},reprise-remat-apply,reprise-remat-verify,reprise-remat-print-plan))' \
// RUN: | FileCheck %s
// CHECK:      layer 1: save x0 (16 B); recompute b u (32 B, 40 FLOP) for full
// CHECK-NEXT: layer 2: save x0 (16 B); recompute u (16 B, 36 FLOP) for full
// CHECK-NOT:  layer 0

// In one segment, layer 1 is rebuilt from what enters layer 0: that is replayed
// for what layer 1 reads of it, and nothing of it for a gradient of its own.

// RUN: reprise-opt %s --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=uniform num-layers=3},reprise-remat-apply,reprise-remat-verify))' \
// RUN: | FileCheck %s --check-prefix=ONE
// ONE-LABEL: func.func @step
// ONE:       nn.backward
// ONE:       nn.add {{.*}}<layer = 0, {{.*}} value = "x2">, remat.replay = 0
// ONE-NOT:   nn.gelu_backward {{.*}}<layer = 0,
// ONE:       return

// The first layer alone is recomputed, and learns nothing: no replay.

// RUN: reprise-opt %s -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=block num-layers=1},reprise-remat-apply,reprise-remat-verify,reprise-remat-print-plan))' \
// RUN: | FileCheck %s --check-prefix=BLOCK
// BLOCK-NOT: recompute u
// BLOCK:     in all: save {{.*}}, recompute 0 FLOP

func.func @forward(%e: tensor<4xf32> {nn.parameter = #nn.parameter<name = "wte", init = zeros, frozen = true>},
                   %p: tensor<4xf32> {nn.parameter = #nn.parameter<name = "h.1", init = zeros>}) -> tensor<f32>
    attributes {nn.micro_batches = 1 : i64} {
  %x0 = nn.scale %e by 2.0 {nn.scope = #nn.scope<module = "embedding", value = "x0">} : tensor<4xf32>
  %u0 = nn.gelu %x0 tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "u">} : tensor<4xf32>
  %g0 = nn.gelu %u0 tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "g">} : tensor<4xf32>
  %x1 = nn.add %x0, %g0 {nn.scope = #nn.scope<layer = 0, module = "residual", value = "x2">} : tensor<4xf32>
  %b1 = nn.add %x1, %p {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "b">} : tensor<4xf32>
  %u1 = nn.gelu %b1 tanh {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "u">} : tensor<4xf32>
  %g1 = nn.gelu %u1 tanh {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "g">} : tensor<4xf32>
  %x2 = nn.add %x1, %g1 {nn.scope = #nn.scope<layer = 1, module = "residual", value = "x2">} : tensor<4xf32>
  %u2 = nn.gelu %x2 tanh {nn.scope = #nn.scope<layer = 2, module = "mlp", value = "u">} : tensor<4xf32>
  %g2 = nn.gelu %u2 tanh {nn.scope = #nn.scope<layer = 2, module = "mlp", value = "g">} : tensor<4xf32>
  %x3 = nn.add %x2, %g2 {nn.scope = #nn.scope<layer = 2, module = "residual", value = "x2">} : tensor<4xf32>
  %h = nn.gelu %x3 tanh {nn.scope = #nn.scope<module = "head", value = "logits">} : tensor<4xf32>
  %loss = nn.mean %h {nn.scope = #nn.scope<module = "loss", value = "loss">} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
