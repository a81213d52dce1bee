// One remark for each decision, with what it frees or keeps and what it costs.

// RUN: reprise-opt %S/Inputs/chain-5.mlir -o /dev/null --remarks-filter=Remat --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=block num-layers=1}))' 2>&1 \
// RUN: | FileCheck %s

// Backward reads u; x2 enters the next layer; g is in the segment, but dead.

// CHECK:       remark: [Passed] Save | Category:Remat | Function=step | Remark=embedding.x0
// CHECK-SAME:  bytes=16
// CHECK-SAME:  reason="in no layer"
// CHECK:       remark: [Passed] Recompute | Category:Remat | Function=step | Remark=layer0.mlp.u
// CHECK-SAME:  bytes=16
// CHECK-SAME:  flops=36
// CHECK-SAME:  label=full
// CHECK-SAME:  segment=0
// CHECK:       remark: [Passed] Recompute | Category:Remat | Function=step | Remark=layer0.mlp.g
// CHECK-SAME:  bytes=0
// CHECK-SAME:  flops=0
// CHECK:       remark: [Passed] Save | Category:Remat | Function=step | Remark=layer0.residual.x2
// CHECK-SAME:  bytes=16
// CHECK-SAME:  reason="read outside every segment"
