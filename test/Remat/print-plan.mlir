// The plan is the same before and after it is applied.

// RUN: reprise-opt %S/Inputs/gpt-fused.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=mlp,layernorm},reprise-remat-print-plan))' > %t.decided
// RUN: reprise-opt %S/Inputs/gpt-fused.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=mlp,layernorm},reprise-remat-apply,reprise-remat-print-plan))' > %t.applied
// RUN: diff %t.decided %t.applied
// RUN: FileCheck %s < %t.applied

// CHECK:      layer 0: save x0 q k v ctx ctx.lse x1 (388.0 KiB); recompute n1 n2 (132.0 KiB, {{.*}}) for layernorm; recompute u g (512.0 KiB, {{.*}}) for mlp
// CHECK-NEXT: outside layers: save x2 nf nf.mean nf.rstd logits losses.lse (163.0 KiB)
// CHECK-NEXT: in all: save 551.0 KiB, recompute {{.*}}

// RUN: reprise-opt %s --reprise-remat-print-plan | FileCheck %s --check-prefix=SMALL

// SMALL:      layer 3: save u (32 B)
// SMALL-NEXT: in all: save 32 B, recompute 0 FLOP
func.func @step(%x: tensor<8xf32>) -> tensor<8xf32> {
  %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "u">} : tensor<8xf32>
  nn.backward
  %d = nn.gelu_backward %u, %x tanh : tensor<8xf32>
  return %d : tensor<8xf32>
}

// What has no backward phase has no plan to print.
// SMALL-NEXT: module
func.func @forward_only(%x: tensor<8xf32>) -> tensor<8xf32> {
  %u = nn.gelu %x tanh : tensor<8xf32>
  return %u : tensor<8xf32>
}
