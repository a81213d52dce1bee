// An activation that the kernel of its own gradient can make again is dropped,
// unless another decider keeps it; what one drops needs no replay of its own. So is a
// copy of more bits.

// RUN: reprise-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(reprise-remat-annotate-free))' | FileCheck %s
// RUN: reprise-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(reprise-remat-annotate-free,reprise-remat-apply,reprise-remat-verify))' | FileCheck %s --check-prefix=APPLY
// RUN: reprise-opt %s -split-input-file -o /dev/null --pass-pipeline='builtin.module(func.func(reprise-remat-annotate-free,reprise-remat-print-plan))' | FileCheck %s --check-prefix=PLAN
// RUN: reprise-opt %s -split-input-file -o /dev/null --pass-pipeline='builtin.module(func.func(reprise-remat-annotate-free,reprise-remat-apply,reprise-remat-print-plan))' | FileCheck %s --check-prefix=PLAN
// RUN: reprise-opt %s -split-input-file -o /dev/null --remarks-filter=Remat --remark-format=emitRemark --pass-pipeline='builtin.module(func.func(reprise-remat-annotate-free))' 2>&1 | FileCheck %s --check-prefix=REMARK

// The reader of g comes first; the gradient, and the value that it reads, move in
// front of it. What comes between stays where it is.

// CHECK-LABEL: func.func @feed_forward
//       CHECK:   nn.gelu {{.*}} remat.decision = #remat.recompute<segment = 3, label = "free">
// APPLY-LABEL: func.func @feed_forward(
//  APPLY-SAME:   %[[U:[^:]*]]: tensor<8xf32>, %[[D:[^:]*]]: tensor<8xf32>
//       APPLY:   nn.backward
//  APPLY-NEXT:   %[[DG:.*]] = nn.scale %[[D]] by 3.0
//  APPLY-NEXT:   %[[F:.*]] = remat.fence %[[U]]
//  APPLY-NEXT:   %[[G:.*]] = nn.gelu %[[F]] tanh {{.*}}remat.free, remat.replay = 3
//  APPLY-NEXT:   %[[DU:.*]] = nn.gelu_backward %[[U]], %[[DG]]
//  APPLY-NEXT:   %[[W:.*]] = nn.add %[[G]], %[[D]]
//  APPLY-NEXT:   %[[B:.*]] = nn.scale %[[D]] by 5.0
//  APPLY-NEXT:   return %[[W]], %[[B]], %[[DU]]
//        PLAN: layer 3: save nothing; free g (32 B)
//        PLAN: in all: save 0 B, recompute 0 FLOP, free 32 B
//      REMARK: remark: [Passed] Free | Category:Remat | Function=feed_forward | Remark=layer3.mlp.g, bytes=32
//      REMARK: remark: [Passed] Free | Category:Remat | Function=gated | Remark=layer0.mlp.g, bytes=32
//      REMARK: remark: [Passed] Free | Category:Remat | Function=squared | Remark=layer0.mlp.g, bytes=32
//      REMARK: remark: [Passed] Free | Category:Remat | Function=decided | Remark=layer1.mlp.g, bytes=32
//      REMARK: remark: [Passed] Free | Category:Remat | Function=decided | Remark=layer2.mlp.g, bytes=32
//      REMARK: remark: [Passed] Free | Category:Remat | Function=read_by_a_replay | Remark=layer0.mlp.g, bytes=32
//      REMARK: remark: [Passed] Free | Category:Remat | Function=wider | Remark=layer0.moe.nf, bytes=32
//      REMARK: remark: [Passed] Free | Category:Remat | Function=wider | Remark=layer1.moe.nf, bytes=32
//  REMARK-NOT: Free |
func.func @feed_forward(%u: tensor<8xf32>, %d: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %g = nn.gelu %u tanh {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "g">} : tensor<8xf32>
  nn.backward
  %w = nn.add %g, %d : tensor<8xf32>
  %b = nn.scale %d by 5.0 : tensor<8xf32>
  %dg = nn.scale %d by 3.0 : tensor<8xf32>
  %du = nn.gelu_backward %u, %dg tanh : tensor<8xf32>
  return %w, %b, %du : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// A gated activation.

// CHECK-LABEL: func.func @gated
//       CHECK:   nn.swiglu {{.*}} label = "free"
// APPLY-LABEL: func.func @gated
//       APPLY:   nn.swiglu {{.*}}remat.free
//  APPLY-NEXT:   nn.swiglu_backward
//  APPLY-NEXT:   nn.add
func.func @gated(%a: tensor<8xf32>, %b: tensor<8xf32>, %d: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %g = nn.swiglu %a, %b {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "g">} : tensor<8xf32>
  nn.backward
  %w = nn.add %g, %d : tensor<8xf32>
  %da, %db = nn.swiglu_backward %a, %b, %d : tensor<8xf32>
  return %w, %da, %db : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @squared
//       CHECK:   nn.squared_relu {{.*}} label = "free"
// APPLY-LABEL: func.func @squared
//       APPLY:   nn.squared_relu {{.*}}remat.free
//  APPLY-NEXT:   nn.squared_relu_backward
//  APPLY-NEXT:   nn.add
func.func @squared(%u: tensor<8xf32>, %d: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %g = nn.squared_relu %u {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "g">} : tensor<8xf32>
  nn.backward
  %w = nn.add %g, %d : tensor<8xf32>
  %du = nn.squared_relu_backward %u, %d : tensor<8xf32>
  return %w, %du : tensor<8xf32>, tensor<8xf32>
}

// -----

// Nothing is free where the gradient needs the reader, where there is none (the
// layer below is frozen), where it is of another form, or outside layers.

// CHECK-LABEL: func.func @not_free
//   CHECK-NOT:   remat.decision
//       CHECK:   return
func.func @not_free(%u: tensor<8xf32>, %d: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %needs = nn.gelu %u tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "g">} : tensor<8xf32>
  %none = nn.gelu %d tanh {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "g">} : tensor<8xf32>
  %v = nn.scale %u by 2.0 : tensor<8xf32>
  %form = nn.gelu %v erf {nn.scope = #nn.scope<layer = 2, module = "mlp", value = "g">} : tensor<8xf32>
  %outside = nn.gelu %v tanh {nn.scope = #nn.scope<module = "head", value = "g">} : tensor<8xf32>
  nn.backward
  %w = nn.add %needs, %d : tensor<8xf32>
  %du = nn.gelu_backward %u, %w tanh : tensor<8xf32>
  %x = nn.add %none, %form : tensor<8xf32>
  %y = nn.add %x, %outside : tensor<8xf32>
  %dv = nn.gelu_backward %v, %y tanh : tensor<8xf32>
  return %w, %du, %x, %y, %dv : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// Others decide first. What is kept because replaying its segment frees nothing
// is free as well, and so is what is dropped, in the segment that it is in.

// CHECK-LABEL: func.func @decided
//       CHECK:   value = "g">, remat.decision = #remat.save<reason = "by hand">
//       CHECK:   value = "g">, remat.decision = #remat.recompute<segment = 1, label = "free">
//       CHECK:   value = "g">, remat.decision = #remat.recompute<segment = 7, label = "free">
func.func @decided(%u: tensor<8xf32>, %d: tensor<8xf32>, %t: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %a = nn.gelu %u tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "g">, remat.decision = #remat.save<reason = "by hand">} : tensor<8xf32>
  %b = nn.gelu %d tanh {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "g">, remat.decision = #remat.save<reason = "idle", segment = 1>} : tensor<8xf32>
  %c = nn.gelu %t tanh {nn.scope = #nn.scope<layer = 2, module = "mlp", value = "g">, remat.decision = #remat.recompute<segment = 7, label = "mlp">} : tensor<8xf32>
  nn.backward
  %v = nn.add %a, %d : tensor<8xf32>
  %w = nn.add %b, %d : tensor<8xf32>
  %z = nn.add %c, %d : tensor<8xf32>
  %du = nn.gelu_backward %u, %d tanh : tensor<8xf32>
  %dd = nn.gelu_backward %d, %u tanh : tensor<8xf32>
  %dt = nn.gelu_backward %t, %d tanh : tensor<8xf32>
  return %v, %w, %z, %du, %dd, %dt : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// A replay of an earlier reader of backward needs g, too: it has a replay of its
// own, which is not free.

// APPLY-LABEL: func.func @read_by_a_replay
//       APPLY:   nn.backward
//       APPLY:   %[[AGAIN:.*]] = nn.swiglu {{.*}}remat.replay = 0 : i64}
//  APPLY-NEXT:   nn.scale %[[AGAIN]]
//       APPLY:   %[[FREE:.*]] = nn.swiglu {{.*}}remat.free
//  APPLY-NEXT:   nn.swiglu_backward
//  APPLY-NEXT:   nn.add %[[FREE]]
//        PLAN: layer 0: save nothing; recompute g y (64 B, {{.*}}) for plan
func.func @read_by_a_replay(%a: tensor<8xf32>, %b: tensor<8xf32>, %d: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %g = nn.swiglu %a, %b {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "g">} : tensor<8xf32>
  %y = nn.scale %g by 2.0 {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "y">, remat.decision = #remat.recompute<segment = 0, label = "plan">} : tensor<8xf32>
  nn.backward
  %e = nn.add %y, %d : tensor<8xf32>
  %w = nn.add %g, %d : tensor<8xf32>
  %da, %db = nn.swiglu_backward %a, %b, %d : tensor<8xf32>
  return %e, %w, %da, %db : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// A copy that only has more bits is made again in front of its first reader, and once
// more for a replay that comes before that. One that rounds is kept, and so is what
// a plan keeps.

// CHECK-LABEL: func.func @wider
//       CHECK:   nn.cast {{.*}}layer = 0, {{.*}}remat.decision = #remat.recompute<segment = 0, label = "free">
//       CHECK:   nn.cast {{.*}}layer = 1, {{.*}}remat.decision = #remat.recompute<segment = 1, label = "free">
//       CHECK:   nn.cast {{.*}}layer = 2, {{.*}}remat.decision = #remat.save<reason = "by hand">
//       CHECK:   nn.cast {{.*}}value = "rounded">} : (tensor<8xf32>) -> tensor<8xbf16>
// APPLY-LABEL: func.func @wider(
//  APPLY-SAME:   tensor<8xbf16>, %{{.*}}, %[[D:[^:]*]]: tensor<8xf32>
//       APPLY:   %[[N:.*]] = nn.add
//       APPLY:   nn.backward
//  APPLY-NEXT:   %[[DR:.*]] = nn.scale %[[D]] by 3.0
//  APPLY-NEXT:   %[[F0:.*]] = remat.fence %[[N]] after %[[DR]]
//  APPLY-NEXT:   %[[C0:.*]] = nn.cast %[[F0]] {{.*}}remat.free, remat.replay = 0
//  APPLY-NEXT:   %[[W:.*]] = nn.add %[[C0]], %[[DR]]
//       APPLY:   %[[AGAIN:.*]] = nn.cast %{{.*}} {{.*}}remat.replay = 1 : i64}
//  APPLY-NEXT:   nn.scale %[[AGAIN]] by 2.0
//       APPLY:   %[[C1:.*]] = nn.cast %{{.*}} {{.*}}remat.free, remat.replay = 1
//  APPLY-NEXT:   nn.add %[[C1]],
//        PLAN: layer 0: save n (16 B); free nf (32 B)
func.func @wider(%a: tensor<8xbf16>, %b: tensor<8xbf16>, %d: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xbf16>) {
  %n = nn.add %a, %b {nn.scope = #nn.scope<layer = 0, module = "layernorm", value = "n">} : tensor<8xbf16>
  %0 = nn.cast %n {nn.scope = #nn.scope<layer = 0, module = "moe", value = "nf">} : (tensor<8xbf16>) -> tensor<8xf32>
  %1 = nn.cast %a {nn.scope = #nn.scope<layer = 1, module = "moe", value = "nf">} : (tensor<8xbf16>) -> tensor<8xf32>
  %r = nn.scale %1 by 2.0 {nn.scope = #nn.scope<layer = 1, module = "moe", value = "r">, remat.decision = #remat.recompute<segment = 1, label = "plan">} : tensor<8xf32>
  %2 = nn.cast %b {nn.scope = #nn.scope<layer = 2, module = "moe", value = "nf">, remat.decision = #remat.save<reason = "by hand">} : (tensor<8xbf16>) -> tensor<8xf32>
  %3 = nn.cast %d {nn.scope = #nn.scope<layer = 3, module = "moe", value = "rounded">} : (tensor<8xf32>) -> tensor<8xbf16>
  nn.backward
  %dr = nn.scale %d by 3.0 : tensor<8xf32>
  %w = nn.add %0, %dr : tensor<8xf32>
  %x = nn.add %r, %dr : tensor<8xf32>
  %y = nn.add %1, %x : tensor<8xf32>
  %z = nn.add %2, %dr : tensor<8xf32>
  %q = nn.add %3, %a : tensor<8xbf16>
  return %w, %x, %y, %z, %q : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xbf16>
}
