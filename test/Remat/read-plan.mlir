// Rules of a plan file become decisions. Later rules win.

// RUN: split-file %s %t
// DEFINE: %{file} =
// DEFINE: %{model} = %S/Inputs/gpt-unfused.mlir
// DEFINE: %{plan} = reprise-opt %{model} -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-read-plan{file=%t/%{file}},reprise-remat-apply,reprise-remat-verify,reprise-remat-print-plan))'
// DEFINE: %{decide} = reprise-opt %{model} --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-read-plan{file=%t/%{file}}))'

// REDEFINE: %{file} = none.yaml
// RUN: %{decide} | FileCheck %s --check-prefix=NONE
// NONE-NOT: remat.decision

// All but the attention's output, which is kept beside what enters the layer.
// REDEFINE: %{file} = but-attention.yaml
// RUN: %{plan} | FileCheck %s --check-prefix=BUT
// BUT:      layer 0: save x0 ctx ({{.*}}); recompute n1 q k v s p pd a ad x1 n2 u g ({{.*}}) for plan{{$}}
// BUT-NEXT: outside layers: save x2 nf nf.mean nf.rstd logits losses.lse

// Labels are those of selective recompute.
// REDEFINE: %{file} = labels.yaml
// RUN: %{plan} | FileCheck %s --check-prefix=LABELS
// LABELS: layer 0: save x0 q k v ctx x1 n2 n2.mean n2.rstd u ({{.*}}); recompute n1 ({{.*}}) for mine; recompute s p pd ({{.*}}) for core_attn; recompute g ({{.*}}) for plan{{$}}

// One result of an op: the mean is kept, the deviation is not.
// REDEFINE: %{file} = result.yaml
// RUN: %{decide} | FileCheck %s --check-prefix=RESULT
// RESULT: nn.layer_norm {{.*}} value = "n1">, remat.decision = #remat.recompute<segment = 7, label = "plan", results = [2]>
// RESULT: nn.linear {{.*}} value = "q">, remat.decision = #remat.save<reason = "by hand">
// RESULT: nn.linear {{.*}} value = "k">, remat.decision = #remat.save<reason = "plan">
// RESULT: nn.layer_norm {{.*}} value = "nf">, remat.decision = #remat.recompute<segment = 1, label = "plan">

// What enters layers has the name x0 in each of them.
// REDEFINE: %{model} = %S/Inputs/chain-5.mlir
// REDEFINE: %{file} = input.yaml
// RUN: %{decide} | FileCheck %s --check-prefix=INPUT
// INPUT:      func.func @step({{.*}} remat.chunks = #remat.chunks<stages = 2, layers = [3, 2]>
// INPUT:      nn.scale {{.*}} value = "x0">, remat.decision = #remat.save<reason = "plan">
// INPUT:      layer = 0, {{.*}} value = "x2">, remat.decision = #remat.save<reason = "plan">
// INPUT:      layer = 1, {{.*}} value = "x2">, remat.decision = #remat.recompute<segment = 0, label = "plan">
// INPUT:      layer = 2, {{.*}} value = "x2">, remat.decision = #remat.save<reason = "plan">

// Whole layers in one segment: their residual stream is inside.
// REDEFINE: %{file} = segment.yaml
// RUN: %{plan} | FileCheck %s --check-prefix=SEGMENT
// SEGMENT: layer 0: save x0 (16 B); recompute u g x2
// SEGMENT: layer 1: save nothing; recompute u (
// SEGMENT: layers 2-4: save x0 u

// Nothing to plan for without a backward phase; the file is not even read.
// RUN: reprise-opt %S/Inputs/chain-5.mlir --pass-pipeline='builtin.module(func.func(reprise-remat-read-plan{file=%t/no-such-file}))' | FileCheck %s --check-prefix=NONE

//--- none.yaml
rules: []
//--- but-attention.yaml
rules: [{recompute: all, except: ctx}]
//--- labels.yaml
name: a mixture
rules:
- {recompute: [core_attn, mlp]}
- layers: [0]
  save: u
- {recompute: g}
- {recompute: n1, label: mine}
//--- result.yaml
rules:
- {recompute: n1.rstd, segment: 7}
- {save: [q, k], reason: by hand}
- {save: k}
- {layers: outside, recompute: nf}
//--- input.yaml
chunks: {stages: 2, layers: [3, 2]}
rules:
- {layers: 0-3, save: x0}
- {layers: 2, recompute: x0, segment: 0}
//--- segment.yaml
rules: [{layers: 0-1, recompute: all, segment: 0}]
