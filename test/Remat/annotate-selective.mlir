// `selective`: each label drops its region, and only that. The values that are
// kept are those of Megatron's own scheme, but for the dropout masks, which are
// drawn again, never stored.

// Nothing asked for, nothing recomputed: 8 values of 64 KiB, two of 512 KiB,
// two of 256 KiB, four statistics of 1 KiB.

// RUN: reprise-opt %S/Inputs/gpt-unfused.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=},reprise-remat-apply,reprise-remat-verify,reprise-remat-print-plan))' \
// RUN: | FileCheck %s --check-prefix=NONE
// NONE:      layer 0: save x0 n1 n1.mean n1.rstd q k v p pd ctx x1 n2 n2.mean n2.rstd u g (2.0 MiB){{$}}
// NONE-NEXT: outside layers: save x2 nf nf.mean nf.rstd logits losses.lse (163.0 KiB)
// NONE-NEXT: in all: save 2.2 MiB, recompute 0 FLOP

// Without an option it is core_attn: p and pd go. s is no longer there to
// rebuild them from, so it is replayed as well; ctx stays.

// RUN: reprise-opt %S/Inputs/gpt-unfused.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective,reprise-remat-apply,reprise-remat-verify,reprise-remat-print-plan))' \
// RUN: | FileCheck %s --check-prefix=CORE
// RUN: reprise-opt %S/Inputs/gpt-unfused.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=core_attn},reprise-remat-apply,reprise-remat-verify,reprise-remat-print-plan))' \
// RUN: | FileCheck %s --check-prefix=CORE
// CORE: layer 0: save x0 n1 n1.mean n1.rstd q k v ctx x1 n2 n2.mean n2.rstd u g (1.0 MiB); recompute s p pd (1.5 MiB, 4.8 MFLOP) for core_attn{{$}}

// mlp: u and g go; n2, the region's input, stays; y is not replayed, backward
// never reads it.

// RUN: reprise-opt %S/Inputs/gpt-unfused.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=mlp},reprise-remat-apply,reprise-remat-verify,reprise-remat-print-plan))' \
// RUN: | FileCheck %s --check-prefix=MLP
// MLP: layer 0: save x0 n1 n1.mean n1.rstd q k v p pd ctx x1 n2 n2.mean n2.rstd (1.5 MiB); recompute u g (512.0 KiB, 9.0 MFLOP) for mlp{{$}}

// layernorm: n1 and n2 go with their statistics; the final norm is in no layer
// and stays.

// RUN: reprise-opt %S/Inputs/gpt-unfused.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=layernorm},reprise-remat-apply,reprise-remat-verify,reprise-remat-print-plan))' \
// RUN: | FileCheck %s --check-prefix=NORM
// NORM:      layer 0: save x0 q k v p pd ctx x1 u g (1.9 MiB); recompute n1 n2 (132.0 KiB, {{.*}}) for layernorm{{$}}
// NORM-NEXT: outside layers: save x2 nf nf.mean nf.rstd

// All three: n2 is rebuilt once, for mlp and for the norm's own gradient.

// RUN: reprise-opt %S/Inputs/gpt-unfused.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=layernorm,core_attn,mlp},reprise-remat-apply,reprise-remat-verify,reprise-remat-print-plan))' \
// RUN: | FileCheck %s --check-prefix=ALL
// ALL: layer 0: save x0 q k v ctx x1 (384.0 KiB); recompute n1 n2 (132.0 KiB, {{.*}}) for layernorm; recompute s p pd (1.5 MiB, {{.*}}) for core_attn; recompute u g (512.0 KiB, {{.*}}) for mlp{{$}}

// No GEMM with a weight is replayed for core_attn.

// RUN: reprise-opt %S/Inputs/gpt-unfused.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective,reprise-remat-apply))' \
// RUN: | FileCheck %s --check-prefix=WEIGHTS
// WEIGHTS:     nn.softmax {{.*}} remat.decision = #remat.recompute<segment = 0, label = "core_attn">
// WEIGHTS:     nn.context {{.*}} remat.decision = #remat.save<reason = "output of core_attn">
// WEIGHTS:     nn.backward
// WEIGHTS-NOT: nn.linear {{.*}}remat.replay

// Fused attention has the log-sum-exp only to give, and says so.

// RUN: reprise-opt %S/Inputs/gpt-fused.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective,reprise-remat-apply,reprise-remat-verify,reprise-remat-print-plan))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=FUSED
// FUSED:     warning: recompute label 'core_attn' buys nothing worth its time with fused attention: it frees only the log-sum-exp, 4096 bytes a layer, for {{[0-9]+}} FLOPs a layer; recompute_modules with mlp and layernorm, or recompute_granularity full, free more
// FUSED:     layer 0: save x0 n1 n1.mean n1.rstd q k v ctx x1 n2 n2.mean n2.rstd u g (1.0 MiB); recompute ctx.lse (4.0 KiB, {{.*}}) for core_attn{{$}}
// FUSED:     %[[CTX:.*]], %{{.*}} = nn.attention {{.*}} results = [1]>
// FUSED:     nn.backward
// FUSED:     %{{.*}}, %[[LSE:.*]] = nn.attention {{.*}} remat.replay = 0 : i64
// FUSED:     nn.attention_backward %{{.*}}, %{{.*}}, %{{.*}}, %[[CTX]], %[[LSE]],

// A decision by hand stays: g is kept, and u is still replayed for the
// gradient of the activation.

// RUN: reprise-opt %s --pass-pipeline='builtin.module(func.func(reprise-remat-annotate-selective{modules=mlp},reprise-remat-apply,reprise-remat-verify))' \
// RUN: | FileCheck %s --check-prefix=HAND

// HAND-LABEL: func.func @by_hand
//       HAND:   %[[U:.*]] = nn.gelu {{.*}}remat.decision = #remat.recompute<segment = 5, label = "mlp">
//  HAND-NEXT:   %[[G:.*]] = nn.gelu %[[U]] {{.*}}remat.decision = #remat.save<reason = "by hand">
//       HAND:   nn.backward
//  HAND-NEXT:   %[[DG:.*]] = nn.gelu_backward %[[G]]
//  HAND-NEXT:   remat.fence
//  HAND-NEXT:   %[[UR:.*]] = nn.gelu {{.*}}remat.replay = 5 : i64
//  HAND-NEXT:   nn.gelu_backward %[[UR]], %[[DG]]
func.func @by_hand(%x: tensor<4xf32>, %d: tensor<4xf32>) -> tensor<4xf32> {
  %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 5, module = "mlp", value = "u">} : tensor<4xf32>
  %g = nn.gelu %u tanh {nn.scope = #nn.scope<layer = 5, module = "mlp", value = "g">, remat.decision = #remat.save<reason = "by hand">} : tensor<4xf32>
  nn.backward
  %dg = nn.gelu_backward %g, %d tanh : tensor<4xf32>
  %du = nn.gelu_backward %u, %dg tanh : tensor<4xf32>
  return %du : tensor<4xf32>
}
