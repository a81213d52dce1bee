// Every refused or useless label.

// RUN: not reprise-opt %S/Inputs/gpt-unfused.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=mlp,atention}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: selective recompute needs labels out of core_attn, core_attn_out, mlp, layernorm, but got 'atention'; the nearest label is '{{[a-z_]+}}'

// RUN: not reprise-opt %S/Inputs/gpt-unfused.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=core-attn}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=NEAR
// NEAR: but got 'core-attn'; the nearest label is 'core_attn'

// RUN: not reprise-opt %S/Inputs/gpt-unfused.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=moe_act}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=MOE-ACT
// MOE-ACT: error: selective recompute label 'moe_act' needs experts, which this model does not have; it can have core_attn, core_attn_out, mlp, layernorm{{$}}

// RUN: not reprise-opt %S/Inputs/gpt-unfused.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=mla_up_proj}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=MLA
// MLA: error: selective recompute label 'mla_up_proj' needs multi-head latent attention, which this model does not have

// RUN: not reprise-opt %S/Inputs/gpt-unfused.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=gdn_norm_out}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=NEWER
// NEWER: error: selective recompute label 'gdn_norm_out' needs gated delta nets, which Megatron Core has on its main branch of August 2026 and Reprise has not

// RUN: reprise-opt %S/Inputs/gpt-unfused.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=moe}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=MOE
// MOE: warning: recompute label 'moe' buys nothing: this model has no experts

// A label whose region no layer has.

// RUN: reprise-opt %S/Inputs/chain-5.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=layernorm}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=USELESS
// USELESS: warning: recompute label 'layernorm' buys nothing: this model has no norms

// A label whose region is there, but is not what backward reads.

// RUN: sed 's/nn.gelu \(%[a-z0-9]*\) tanh/nn.scale \1 by 2.0/' %S/Inputs/chain-5.mlir | reprise-opt -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=mlp}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=UNREAD
// UNREAD: warning: recompute label 'mlp' buys nothing: backward reads no value that it would drop
