// `cse` and `canonicalize` leave every replay as it is, and not for the
// attributes of replays: they are taken away before.

// RUN: reprise-opt %S/Inputs/gpt-unfused.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=uniform num-layers=1},reprise-remat-apply))' \
// RUN: | sed -E -e 's/(, )?remat\.(replay|decision) = (#remat\.[a-z]+<[^>]*>|[0-9]+ : i64)//' > %t.bare
// RUN: reprise-opt %t.bare --cse --canonicalize | FileCheck %s
// RUN: FileCheck %s --check-prefix=BARE < %t.bare

// BARE-NOT: remat.{{replay|decision}}

// CHECK:         nn.backward
// CHECK:         %[[X0:.*]] = remat.fence
// CHECK-NEXT:    %[[N1:.*]], %{{.*}}, %{{.*}} = nn.layer_norm %[[X0]]
// CHECK-COUNT-3: nn.linear %[[N1]]
// CHECK-NEXT:    nn.scores
// CHECK-NEXT:    nn.softmax
// CHECK-NEXT:    nn.dropout {{.*}} stream 1
// CHECK-NEXT:    %[[CTX:.*]] = nn.context
// CHECK-NEXT:    nn.linear %[[CTX]]
// CHECK-NEXT:    %[[AD:.*]] = nn.dropout {{.*}} stream 2
// CHECK-NEXT:    %[[X1:.*]] = nn.add %[[X0]], %[[AD]]
// CHECK-NEXT:    %[[N2:.*]], %{{.*}}, %{{.*}} = nn.layer_norm %[[X1]]
// CHECK-NEXT:    %[[U:.*]] = nn.linear %[[N2]]
// CHECK-NEXT:    %[[G:.*]] = nn.gelu %[[U]]
// CHECK-NEXT:    nn.linear_backward_weight %[[G]]
