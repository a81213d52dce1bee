// With `share` ranks keep a part each of what enters a segment: it is taken behind
// the last reader of the forward pass, and gathered for the first one of backward.

// DEFINE: %{passes} =
// DEFINE: %{run} = reprise-opt %s --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=uniform num-layers=1 share=tp}%{passes}))'

// RUN: %{run} | FileCheck %s --check-prefix=DECIDE
// DECIDE-LABEL: func.func @step
// DECIDE: value = "x0">, remat.decision = #remat.share<axis = "tp", segment = 0>
// DECIDE: layer = 0, {{.*}}"x2">, remat.decision = #remat.share<axis = "tp", segment = 1>
// DECIDE: layer = 1, {{.*}}"x2">, remat.decision = #remat.save<reason = "read outside every segment">

// What is gathered serves the replays of its segment and the gradient that reads
// it. Nothing of the backward pass reads the whole of before.
// REDEFINE: %{passes} = ,reprise-remat-apply,reprise-remat-verify
// RUN: %{run} | FileCheck %s
// CHECK-LABEL: func.func @step
//       CHECK:   %[[X0:.*]] = nn.scale %{{.*}} by 2.0
//       CHECK:   %[[U0:.*]] = nn.linear %[[X0]]
//       CHECK:   %[[X1:.*]] = nn.add %[[X0]]
//  CHECK-NEXT:   %[[PART0:.*]] = nn.slice %[[X0]] over "tp" dim 1 {nn.scope = #nn.scope<module = "embedding", value = "x0.slice">, remat.share} : (tensor<3x4xf32>) -> tensor<3x2xf32>
//       CHECK:   nn.linear %[[X1]]
//       CHECK:   nn.add %[[X1]]
//       CHECK:   %[[PART1:.*]] = nn.slice %[[X1]] over "tp" dim 1 {{.*}}layer = 0, {{.*}}value = "x2.slice">, remat.share}
//       CHECK:   nn.backward
//       CHECK:   %[[FENCE1:.*]] = remat.fence %[[PART1]] after
//  CHECK-NEXT:   %[[ALL1:.*]] = nn.all_gather %[[FENCE1]] to I over "tp" dim 1 {{.*}}value = "x2.all_gather">, remat.replay = 1 : i64}
//  CHECK-NEXT:   nn.linear %[[ALL1]]{{.*}} remat.replay = 1
//       CHECK:   nn.linear_backward_weight %[[ALL1]]
//       CHECK:   %[[FENCE0:.*]] = remat.fence %[[PART0]] after
//  CHECK-NEXT:   %[[ALL0:.*]] = nn.all_gather %[[FENCE0]] to I over "tp" dim 1 {{.*}}remat.replay = 0 : i64}
//       CHECK:   nn.linear_backward_weight %[[ALL0]]
//   CHECK-NOT:   nn.all_gather
//       CHECK:   return

// The same plan before it is applied and behind: a half of 48 bytes is kept.
// REDEFINE: %{passes} = ,reprise-remat-print-plan
// RUN: %{run} -o /dev/null | FileCheck %s --check-prefix=PLAN
// REDEFINE: %{passes} = ,reprise-remat-apply,reprise-remat-print-plan
// RUN: %{run} -o /dev/null | FileCheck %s --check-prefix=PLAN
// PLAN:      layers 0-1: share x0 (24 B each) over tp; recompute u (
// PLAN-NEXT: outside layers: save x2 (48 B)
// PLAN-NEXT: in all: save 96 B,

// Each decision is a remark.
// REDEFINE: %{passes} = ,reprise-remat-apply
// RUN: %{run} -o /dev/null --remarks-filter=Remat 2>&1 | FileCheck %s --check-prefix=REMARK
// REMARK:      [Passed] Share | Category:Remat | Function=step | Remark=layer0.residual.x2
// REMARK-SAME: bytes=24

// Without ranks along the axis, and where these do not divide what is kept.
// RUN: not reprise-opt %S/Inputs/chain-5.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=uniform num-layers=1 share=tp}))' 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: chain-5.mlir:2:1: error: full recompute needs several ranks along 'tp' that share inputs of segments, but there is 1
// RUN: sed 's/tp = 2/tp = 5/' %s > %t.mlir
// RUN: not reprise-opt %t.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=uniform num-layers=1 share=tp}))' 2>&1 | FileCheck %s --check-prefix=INDIVISIBLE
// INDIVISIBLE: error: needs a dimension that the 5 ranks along tp divide, for each to keep a part of embedding.x0, but got 'tensor<3x4xf32>'

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
func.func @forward(%p: tensor<3x4xf32> {nn.parameter = #nn.parameter<name = "p", init = zeros>},
                   %w: tensor<4x4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<f32>
    attributes {nn.micro_batches = 1 : i64} {
  %x0 = nn.scale %p by 2.0 {nn.scope = #nn.scope<module = "embedding", value = "x0">} : tensor<3x4xf32>
  %u0 = nn.linear %x0, %w in_out {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "u">} : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %g0 = nn.gelu %u0 tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "g">} : tensor<3x4xf32>
  %x1 = nn.add %x0, %g0 {nn.scope = #nn.scope<layer = 0, module = "residual", value = "x2">} : tensor<3x4xf32>
  %u1 = nn.linear %x1, %w in_out {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "u">} : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %g1 = nn.gelu %u1 tanh {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "g">} : tensor<3x4xf32>
  %x2 = nn.add %x1, %g1 {nn.scope = #nn.scope<layer = 1, module = "residual", value = "x2">} : tensor<3x4xf32>
  %y = nn.linear %x2, %w in_out {nn.scope = #nn.scope<module = "head", value = "logits">} : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %loss = nn.mean %y {nn.scope = #nn.scope<module = "loss", value = "loss">} : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
