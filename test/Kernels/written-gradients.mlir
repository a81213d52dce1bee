// In a step of one micro-batch the first term of a gradient is written, and
// nobody reads what was there: the update leaves no zeros. With more, all is
// added to the sums, which the update leaves at zero.

// RUN: reprise-opt %s -split-input-file --reprise-form-kernels --reprise-verify-kernels | FileCheck %s
// RUN: sed 's/nn.micro_batches = 1/nn.micro_batches = 2/' %s | reprise-opt -split-input-file --reprise-form-kernels --reprise-verify-kernels | FileCheck %s --check-prefix=MORE
// RUN: reprise-opt %s -split-input-file --pass-pipeline='builtin.module(reprise-form-kernels,func.func(convert-nn-to-linalg),reprise-verify-kernels{loops},reprise-plan-memory,reprise-verify-plan)' | FileCheck %s --check-prefix=PLAN
// RUN: sed 's/nn.micro_batches = 1/nn.micro_batches = 2/' %s | reprise-opt -split-input-file --pass-pipeline='builtin.module(reprise-form-kernels,func.func(convert-nn-to-linalg),reprise-verify-kernels{loops},reprise-plan-memory,reprise-verify-plan)' -o /dev/null

// A GEMM, a column sum, a pointwise sum. What is frozen has no gradient.

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   %[[GW:[a-z0-9]+]]: tensor<4x8xf32> {nn.gradient = "w"}, %[[GB:[a-z0-9]+]]: tensor<8xf32> {nn.gradient = "b"}, %[[GS:[a-z0-9]+]]: tensor<16x8xf32> {nn.gradient = "s"}
//       CHECK:   %[[W:.*]]:2 = rt.gemm %{{.*}}, %[[DY:.*]] transpose_a epilogue squares_of_c m 4 n 8 k 16 lda 4 ldb 8 ldc 8
//  CHECK-NEXT:   %[[B:.*]] = rt.launch @sum_rows_16x8(%[[DY]])
//  CHECK-NEXT:   %[[S:.*]] = rt.launch @scale_add_16x8(%[[DY]])
//  CHECK-NEXT:   rt.update
//  CHECK-NEXT:   rt.launch @sums_of_squares_2(%[[B]], %[[S]])
//       CHECK:   rt.launch @sums_3(%[[W]]#1, %{{.*}}, %{{.*}})
//       CHECK:   %[[NEW:.*]]:9 = rt.launch @adamw_16x8(
//  CHECK-NEXT:   return %[[W]]#0, %[[B]], %[[S]], %{{.*}}, %[[NEW]]#0,

// CHECK-LABEL: func.func private @adamw_16x8(
//  CHECK-SAME:   %{{.*}}: tensor<4x8xf32> {rt.in_place = 0 : i64}, %{{.*}}: tensor<4x8xf32>, %{{.*}}: tensor<4x8xf32> {rt.in_place = 1 : i64}, %{{.*}}: tensor<4x8xf32> {rt.in_place = 2 : i64}
//   CHECK-NOT:   nn.constant
//       CHECK:   return

//  MORE-LABEL: func.func @step(
//   MORE-SAME:   %[[GW:[a-z0-9]+]]: tensor<4x8xf32> {nn.gradient = "w"}, %[[GB:[a-z0-9]+]]: tensor<8xf32> {nn.gradient = "b"}, %[[GS:[a-z0-9]+]]: tensor<16x8xf32> {nn.gradient = "s"}
//        MORE:   rt.gemm %{{.*}}, %{{.*}} addend(%[[GW]])
//   MORE-NEXT:   rt.launch @sum_rows_accumulate_16x8(%{{.*}}, %[[GB]])
//   MORE-NEXT:   rt.launch @scale_add_accumulate_16x8(%{{.*}}, %[[GS]])
//        MORE:   %[[NEW:.*]]:12 = rt.launch @adamw_16x8(
//   MORE-NEXT:   return %[[NEW]]#3, %[[NEW]]#7, %[[NEW]]#11,

//  PLAN-LABEL: func.func @step()
//        PLAN:   %[[W:.*]] = rt.buffer at <device, {{.*}}> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none
//        PLAN:   %[[B:.*]] = rt.buffer at <device, {{.*}}> {rt.state = #rt.state<kind = gradient, parameter = "b", init = none
//        PLAN:   %[[S:.*]] = rt.buffer at <device, {{.*}}> {rt.state = #rt.state<kind = gradient, parameter = "s", init = none
//        PLAN:   rt.gemm {{.*}} to(%[[W]]) {{.*}}transpose_a epilogue squares_of_c m 4
//   PLAN-NEXT:   rt.launch @sum_rows_16x8(%{{.*}}) to(%[[B]])
//   PLAN-NEXT:   rt.launch @scale_add_16x8(%{{.*}}) to(%[[S]])
func.func @step(%x: tensor<16x4xf32> {nn.parameter = #nn.parameter<name = "x", init = ones, frozen = true>}, %w: tensor<4x8xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>},
    %b: tensor<8xf32> {nn.parameter = #nn.parameter<name = "b", init = ones>}, %s: tensor<16x8xf32> {nn.parameter = #nn.parameter<name = "s", init = ones>},
    %frozen: tensor<16x8xf32> {nn.parameter = #nn.parameter<name = "f", init = ones, frozen = true>},
    %gw: tensor<4x8xf32> {nn.gradient = "w"}, %gb: tensor<8xf32> {nn.gradient = "b"}, %gs: tensor<16x8xf32> {nn.gradient = "s"},
    %mw: tensor<4x8xf32> {nn.moment1 = "w"}, %vw: tensor<4x8xf32> {nn.moment2 = "w"}, %mb: tensor<8xf32> {nn.moment1 = "b"}, %vb: tensor<8xf32> {nn.moment2 = "b"},
    %ms: tensor<16x8xf32> {nn.moment1 = "s"}, %vs: tensor<16x8xf32> {nn.moment2 = "s"}, %lr: tensor<f32> {nn.input = "lr"})
    -> (tensor<4x8xf32> {nn.gradient = "w"}, tensor<8xf32> {nn.gradient = "b"}, tensor<16x8xf32> {nn.gradient = "s"}, tensor<f32> {nn.output = "grad_norm"},
        tensor<4x8xf32> {nn.parameter = "w"}, tensor<4x8xf32> {nn.moment1 = "w"}, tensor<4x8xf32> {nn.moment2 = "w"},
        tensor<8xf32> {nn.parameter = "b"}, tensor<8xf32> {nn.moment1 = "b"}, tensor<8xf32> {nn.moment2 = "b"},
        tensor<16x8xf32> {nn.parameter = "s"}, tensor<16x8xf32> {nn.moment1 = "s"}, tensor<16x8xf32> {nn.moment2 = "s"}) attributes {nn.micro_batches = 1 : i64} {
  %y = nn.linear %x, %w, %b in_out : (tensor<16x4xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<16x8xf32>
  %z = nn.add %y, %frozen : tensor<16x8xf32>
  nn.backward
  %dy = nn.gelu_backward %z, %s tanh : tensor<16x8xf32>
  %dw = nn.linear_backward_weight %x, %dy in_out : (tensor<16x4xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %gw1 = nn.accumulate %gw, %dw : tensor<4x8xf32>
  %db = nn.sum_rows %dy : (tensor<16x8xf32>) -> tensor<8xf32>
  %gb1 = nn.accumulate %gb, %db : tensor<8xf32>
  %half = nn.scale %dy by 5.0e-01 : tensor<16x8xf32>
  %ds = nn.add %half, %dy : tensor<16x8xf32>
  %gs1 = nn.accumulate %gs, %ds : tensor<16x8xf32>
  nn.update
  %norm = nn.global_norm %gw1, %gb1, %gs1 : (tensor<4x8xf32>, tensor<8xf32>, tensor<16x8xf32>) -> tensor<f32>
  %w1, %mw1, %vw1 = nn.adamw %w, %gw1, %mw, %vw, %norm, %lr, %lr, %lr beta1 9.0e-01 beta2 9.5e-01 eps 1.0e-08 weight_decay 0.0 : tensor<4x8xf32>, tensor<f32>
  %b1, %mb1, %vb1 = nn.adamw %b, %gb1, %mb, %vb, %norm, %lr, %lr, %lr beta1 9.0e-01 beta2 9.5e-01 eps 1.0e-08 weight_decay 0.0 : tensor<8xf32>, tensor<f32>
  %s1, %ms1, %vs1 = nn.adamw %s, %gs1, %ms, %vs, %norm, %lr, %lr, %lr beta1 9.0e-01 beta2 9.5e-01 eps 1.0e-08 weight_decay 0.0 : tensor<16x8xf32>, tensor<f32>
  return %gw1, %gb1, %gs1, %norm, %w1, %mw1, %vw1, %b1, %mb1, %vb1, %s1, %ms1, %vs1
    : tensor<4x8xf32>, tensor<8xf32>, tensor<16x8xf32>, tensor<f32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>,
      tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>
}

// -----

// Chunks of a tied head: the first writes, the others add, then the rows of the
// embedding. The table of positions is only ever added to: it alone gets zeros.

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   %[[GT:[a-z0-9]+]]: tensor<7x8xf32> {nn.gradient = "t"}, %[[GP:[a-z0-9]+]]: tensor<300x8xf32> {nn.gradient = "p"}
//       CHECK:   %[[T0:.*]] = rt.gemm %{{.*}}, %{{.*}} transpose_a m 7 n 8 k 256
//       CHECK:   %[[T1:.*]] = rt.gemm %{{.*}}, %{{.*}} addend(%[[T0]]) transpose_a m 7 n 8 k 256
//       CHECK:   %[[T2:.*]] = rt.gemm %{{.*}}, %{{.*}} addend(%[[T1]]) transpose_a m 7 n 8 k 88
//       CHECK:   %[[T3:.*]] = rt.launch @embedding_backward_accumulate_2x300x8(%{{.*}}, %{{.*}}, %[[T2]])
//       CHECK:   %[[P:.*]] = rt.launch @positions_backward_accumulate_2x300x8(%{{.*}}, %[[GP]])
//       CHECK:   %[[NEW:.*]]:7 = rt.launch @adamw_300x8(%{{[a-z0-9]+}}, %[[T3]], %{{.*}}, %[[P]], %{{.*}})
//  CHECK-NEXT:   return %[[T3]], %[[NEW]]#6,
// CHECK-LABEL: func.func private @adamw_300x8(
//       CHECK:   nn.adamw
//  CHECK-NEXT:   nn.adamw
//  CHECK-NEXT:   nn.constant 0.000000e+00 : tensor<300x8xf32>

//  MORE-LABEL: func.func @step(
//   MORE-SAME:   %[[GT:[a-z0-9]+]]: tensor<7x8xf32> {nn.gradient = "t"}
//        MORE:   rt.gemm %{{.*}}, %{{.*}} addend(%[[GT]]) transpose_a m 7 n 8 k 256
//        MORE:   rt.launch @embedding_backward_accumulate_2x300x8(
//        MORE:   %[[NEW:.*]]:8 = rt.launch @adamw_300x8(
//   MORE-NEXT:   return %[[NEW]]#3, %[[NEW]]#7,

//  PLAN-LABEL: func.func @step()
//        PLAN:   %[[T0:.*]] = rt.buffer at <device, [[#T_AT:]]> {rt.state = #rt.state<kind = gradient, parameter = "t", init = none
//        PLAN:   rt.buffer at <device, {{.*}}> {rt.state = #rt.state<kind = gradient, parameter = "p", init = zeros
//        PLAN:   rt.gemm {{.*}} to(%[[T0]]) workspace(%{{.*}}) transpose_a m 7 n 8 k 256
//        PLAN:   %[[T1:.*]] = rt.buffer at <device, [[#T_AT]]> : memref<7x8xf32>
//        PLAN:   rt.gemm {{.*}} to(%[[T1]]) workspace(%{{.*}}) transpose_a accumulate m 7 n 8 k 256
//        PLAN:   %[[T2:.*]] = rt.buffer at <device, [[#T_AT]]> : memref<7x8xf32>
//        PLAN:   rt.gemm {{.*}} to(%[[T2]]) {{.*}} accumulate m 7 n 8 k 88
//        PLAN:   %[[T3:.*]] = rt.buffer at <device, [[#T_AT]]> : memref<7x8xf32>
//   PLAN-NEXT:   rt.launch @embedding_backward_accumulate_2x300x8(%{{.*}}, %[[T2]]) to(%[[T3]])
func.func @step(%ids: tensor<2x300xi32> {nn.input = "tokens"}, %targets: tensor<2x300xi32> {nn.input = "targets"},
    %t: tensor<7x8xf32> {nn.parameter = #nn.parameter<name = "t", init = zeros>}, %p: tensor<300x8xf32> {nn.parameter = #nn.parameter<name = "p", init = zeros>},
    %gt: tensor<7x8xf32> {nn.gradient = "t"}, %gp: tensor<300x8xf32> {nn.gradient = "p"}, %mt: tensor<7x8xf32> {nn.moment1 = "t"}, %vt: tensor<7x8xf32> {nn.moment2 = "t"},
    %mp: tensor<300x8xf32> {nn.moment1 = "p"}, %vp: tensor<300x8xf32> {nn.moment2 = "p"}, %lr: tensor<f32> {nn.input = "lr"})
    -> (tensor<7x8xf32> {nn.gradient = "t"}, tensor<300x8xf32> {nn.gradient = "p"}, tensor<7x8xf32> {nn.parameter = "t"}, tensor<7x8xf32> {nn.moment1 = "t"},
        tensor<7x8xf32> {nn.moment2 = "t"}, tensor<300x8xf32> {nn.parameter = "p"}, tensor<300x8xf32> {nn.moment1 = "p"}, tensor<300x8xf32> {nn.moment2 = "p"})
    attributes {nn.micro_batches = 1 : i64} {
  %e = nn.embedding %ids, %t : (tensor<2x300xi32>, tensor<7x8xf32>) -> tensor<2x300x8xf32>
  %x = nn.add_positions %e, %p : (tensor<2x300x8xf32>, tensor<300x8xf32>) -> tensor<2x300x8xf32>
  nn.backward
  %losses, %dx, %gt1 = nn.linear_cross_entropy %x, %t, %targets sum(%gt) by 1.6e-03 dinput out_in rows 256
    : (tensor<2x300x8xf32>, tensor<7x8xf32>, tensor<2x300xi32>, tensor<7x8xf32>) -> (tensor<2x300xf32>, tensor<2x300x8xf32>, tensor<7x8xf32>)
  %dt = nn.embedding_backward %ids, %dx : (tensor<2x300xi32>, tensor<2x300x8xf32>) -> tensor<7x8xf32>
  %gt2 = nn.accumulate %gt1, %dt : tensor<7x8xf32>
  %dp = nn.positions_backward %dx : (tensor<2x300x8xf32>) -> tensor<300x8xf32>
  %gp1 = nn.accumulate %gp, %dp : tensor<300x8xf32>
  nn.update
  %t1, %mt1, %vt1 = nn.adamw %t, %gt2, %mt, %vt, %lr, %lr, %lr, %lr beta1 9.0e-01 beta2 9.5e-01 eps 1.0e-08 weight_decay 0.0 : tensor<7x8xf32>, tensor<f32>
  %p1, %mp1, %vp1 = nn.adamw %p, %gp1, %mp, %vp, %lr, %lr, %lr, %lr beta1 9.0e-01 beta2 9.5e-01 eps 1.0e-08 weight_decay 0.0 : tensor<300x8xf32>, tensor<f32>
  return %gt2, %gp1, %t1, %mt1, %vt1, %p1, %mp1, %vp1
    : tensor<7x8xf32>, tensor<300x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>, tensor<300x8xf32>, tensor<300x8xf32>, tensor<300x8xf32>
}

// -----

// An untied table is only added to, whatever else is. A tied one whose rows come
// first is, too: the GEMM adds to them. A term of two gradients is written
// for the first and added for the second. One without micro_batches has one.

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   %[[GE:[a-z0-9]+]]: tensor<7x8xf32> {nn.gradient = "e"}, %[[GT:[a-z0-9]+]]: tensor<7x8xf32> {nn.gradient = "t"}, %[[GA:[a-z0-9]+]]: tensor<7x8xf32> {nn.gradient = "a"}, %[[GB:[a-z0-9]+]]: tensor<7x8xf32> {nn.gradient = "b"}
//       CHECK:   %[[E:.*]] = rt.launch @embedding_backward_accumulate_7x8(%{{.*}}, %{{.*}}, %[[GE]])
//       CHECK:   %[[T:.*]] = rt.launch @embedding_backward_accumulate_7x8(%{{.*}}, %{{.*}}, %[[GT]])
//       CHECK:   %[[T1:.*]] = rt.gemm %{{.*}}, %{{.*}} addend(%[[T]])
//       CHECK:   %[[A:.*]] = rt.gemm %{{.*}}, %{{.*}} transpose_a m 7
//       CHECK:   %[[B:.*]] = rt.launch @accumulate_7x8(%[[GB]], %[[A]])
//       CHECK:   return %[[E]], %[[T1]], %[[A]], %[[B]]
func.func @step(%ids: tensor<2x2xi32> {nn.input = "tokens"}, %x: tensor<2x2x8xf32> {nn.parameter = #nn.parameter<name = "x", init = ones, frozen = true>},
    %dl: tensor<2x2x7xf32> {nn.parameter = #nn.parameter<name = "dl", init = ones, frozen = true>},
    %ge: tensor<7x8xf32> {nn.gradient = "e"}, %gt: tensor<7x8xf32> {nn.gradient = "t"}, %ga: tensor<7x8xf32> {nn.gradient = "a"}, %gb: tensor<7x8xf32> {nn.gradient = "b"})
    -> (tensor<7x8xf32> {nn.gradient = "e"}, tensor<7x8xf32> {nn.gradient = "t"}, tensor<7x8xf32> {nn.gradient = "a"}, tensor<7x8xf32> {nn.gradient = "b"}) {
  nn.backward
  %de = nn.embedding_backward %ids, %x : (tensor<2x2xi32>, tensor<2x2x8xf32>) -> tensor<7x8xf32>
  %ge1 = nn.accumulate %ge, %de : tensor<7x8xf32>
  %rows = nn.embedding_backward %ids, %x : (tensor<2x2xi32>, tensor<2x2x8xf32>) -> tensor<7x8xf32>
  %head = nn.linear_backward_weight %x, %dl out_in : (tensor<2x2x8xf32>, tensor<2x2x7xf32>) -> tensor<7x8xf32>
  %dt = nn.add %rows, %head : tensor<7x8xf32>
  %gt1 = nn.accumulate %gt, %dt : tensor<7x8xf32>
  %da = nn.linear_backward_weight %x, %dl out_in : (tensor<2x2x8xf32>, tensor<2x2x7xf32>) -> tensor<7x8xf32>
  %ga1 = nn.accumulate %ga, %da : tensor<7x8xf32>
  %gb1 = nn.accumulate %gb, %da : tensor<7x8xf32>
  return %ge1, %gt1, %ga1, %gb1 : tensor<7x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>, tensor<7x8xf32>
}
