// What a llama keeps and replays: norms have one statistic, those of queries and
// keys one for each head; nothing is kept for turning back but the table; a gate
// is one value more of the feed-forward width. Of 16 rows, x0 has 24 columns
// (1.5 KiB), k and v 8 (512 B), gt, u and g 32 (2 KiB).

// RUN: reprise-opt %S/Inputs/llama.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=layernorm},reprise-remat-apply,reprise-remat-verify,reprise-remat-print-plan))' \
// RUN: | FileCheck %s --check-prefix=NORMS

// Two norms of 384 elements and 16 rows: 2 * (4 * 384 + 4 * 16) FLOPs.
// NORMS:      layer 0: save x0 q k v qn.rstd kn.rstd qr kr ctx ctx.lse x1 gt u g (15.9 KiB); recompute n1 n2 (3.1 KiB, 3.2 kFLOP) for layernorm
// NORMS-NEXT: outside layers: save x2 nf nf.rstd logits losses.lse (6.9 KiB)

// RUN: reprise-opt %S/Inputs/llama.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-selective{modules=mlp},reprise-remat-apply,reprise-remat-verify,reprise-remat-print-plan))' \
// RUN: | FileCheck %s --check-prefix=MLP

// Two GEMMs of 2 * 16 * 24 * 32 FLOPs, and 6 for each of 512 gated elements.
// MLP:        layer 0: save x0 n1 n1.rstd q k v qn.rstd kn.rstd qr kr ctx ctx.lse x1 n2 n2.rstd (13.0 KiB); recompute gt u g (6.0 KiB, 52.2 kFLOP) for mlp

// RUN: reprise-opt %S/Inputs/llama.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=uniform num-layers=1},reprise-remat-apply,reprise-remat-verify,reprise-remat-print-plan))' \
// RUN: | FileCheck %s --check-prefix=FULL

// FULL:       layer 0: save x0 (1.5 KiB); recompute n1 q k v qn kn qr kr ctx a x1 n2 gt u g (21.0 KiB, {{.*}}) for full
