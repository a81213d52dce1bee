// RUN: reprise-opt %s -split-input-file --reprise-form-kernels --reprise-verify-kernels | FileCheck %s
// RUN: reprise-opt %s -split-input-file --pass-pipeline='builtin.module(reprise-form-kernels,func.func(convert-nn-to-linalg),reprise-verify-kernels{loops})' | FileCheck %s --check-prefix=LOOPS

// GEMMs of bf16: what is rounded to bf16 and what is a sum in f32.

// CHECK-LABEL: func @products(
func.func @products(%x: tensor<2x8x24xbf16>, %w: tensor<24x96xbf16>, %b: tensor<96xbf16>, %gw: tensor<24x96xf32>) -> (tensor<2x8x24xbf16>, tensor<24x96xf32>) {
  // CHECK: %[[Y:.*]] = rt.gemm {{.*}} : (tensor<2x8x24xbf16>, tensor<24x96xbf16>, tensor<96xbf16>) -> tensor<2x8x96xbf16>
  %y = nn.linear %x, %w, %b in_out : (tensor<2x8x24xbf16>, tensor<24x96xbf16>, tensor<96xbf16>) -> tensor<2x8x96xbf16>
  // CHECK: rt.gemm %[[Y]], {{.*}} : (tensor<2x8x96xbf16>, tensor<24x96xbf16>) -> tensor<2x8x24xbf16>
  %dx = nn.linear_backward_input %y, %w in_out : (tensor<2x8x96xbf16>, tensor<24x96xbf16>) -> tensor<2x8x24xbf16>
  // CHECK: rt.gemm {{.*}} addend(%{{.*}}) {{.*}} : (tensor<2x8x24xbf16>, tensor<2x8x96xbf16>, tensor<24x96xf32>) -> tensor<24x96xf32>
  %dw = nn.linear_backward_weight %x, %y in_out : (tensor<2x8x24xbf16>, tensor<2x8x96xbf16>) -> tensor<24x96xf32>
  %gw1 = nn.accumulate %gw, %dw : tensor<24x96xf32>
  return %dx, %gw1 : tensor<2x8x24xbf16>, tensor<24x96xf32>
}

// -----

// Heads that are repeated are copied; what is summed over heads is rounded once.

// CHECK-LABEL: func @heads(
func.func @heads(%q: tensor<2x8x24xbf16>, %k: tensor<2x8x8xbf16>) -> (tensor<2x8x8xbf16>) {
  // CHECK: %[[K:.*]] = rt.launch @repeat_heads_2_to_6_2x8x8_bf16(%{{.*}}) {{.*}} -> tensor<2x8x24xbf16>
  // CHECK: %[[S:.*]] = rt.gemm %{{.*}}, %[[K]] {{.*}} -> tensor<2x6x8x8xbf16>
  %s = nn.scores %q, %k heads 6 kv_heads 2 scale 0.5 : (tensor<2x8x24xbf16>, tensor<2x8x8xbf16>) -> tensor<2x6x8x8xbf16>
  // CHECK: %[[D:.*]] = rt.gemm %[[S]], {{.*}} : (tensor<2x6x8x8xbf16>, tensor<2x8x24xbf16>) -> tensor<2x8x24xf32>
  // CHECK: rt.launch @sum_heads_6_to_2_2x8x24_bf16(%[[D]]) {{.*}} : (tensor<2x8x24xf32>) -> tensor<2x8x8xbf16>
  %d = nn.context %s, %q heads 6 kv_heads 2 scale 1.0 transposed : (tensor<2x6x8x8xbf16>, tensor<2x8x24xbf16>) -> tensor<2x8x8xbf16>
  return %d : tensor<2x8x8xbf16>
}

// LOOPS-LABEL: func private @sum_heads_6_to_2_2x8x24_bf16(
//       LOOPS:   arith.addf {{.*}} : f32
//       LOOPS:   %[[SUM:.*]] = arith.addf {{.*}} : f32
//  LOOPS-NEXT:   %[[ROUNDED:.*]] = arith.truncf %[[SUM]] : f32 to bf16
//  LOOPS-NEXT:   linalg.yield %[[ROUNDED]] : bf16

// -----

// The working copy is one more result of the update, in place of what was
// there, which is not read: one loop over what there is of the parameter.

// CHECK-LABEL: func @update(
//  CHECK-SAME:   %[[P:[^:]*]]: tensor<8x4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}, %[[G:[^:]*]]: tensor<8x4xf32> {nn.gradient = "w"},
//  CHECK-SAME:   %[[W:[^:]*]]: tensor<8x4xbf16> {nn.working = "w"}
func.func @update(%p: tensor<8x4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}, %g: tensor<8x4xf32> {nn.gradient = "w"},
                  %w: tensor<8x4xbf16> {nn.working = "w"}, %m: tensor<8x4xf32> {nn.moment1 = "w"}, %v: tensor<8x4xf32> {nn.moment2 = "w"}, %s: tensor<f32> {nn.input = "lr"})
    -> (tensor<8x4xf32> {nn.parameter = "w"}, tensor<8x4xf32> {nn.moment1 = "w"}, tensor<8x4xf32> {nn.moment2 = "w"}, tensor<8x4xbf16> {nn.working = "w"}) {
  // CHECK: %[[R:.*]]:5 = rt.launch @adamw_8x4(%[[P]], %[[G]], %{{.*}}, %{{.*}}, %{{.*}}, %[[W]])
  // CHECK: return %[[R]]#0, %[[R]]#1, %[[R]]#2, %[[R]]#3, %[[R]]#4
  %r:4 = nn.adamw %p, %g, %m, %v, %s, %s, %s, %s working(%w)
    beta1 0.5 beta2 0.5 eps 1.0 weight_decay 0.0 : tensor<8x4xf32>, tensor<f32>, tensor<8x4xbf16> to tensor<8x4xbf16>
  return %r#0, %r#1, %r#2, %r#3 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xbf16>
}

// CHECK-LABEL: func private @adamw_8x4(
//  CHECK-SAME:   %{{[^:]*}}: tensor<8x4xbf16> {rt.in_place = 3 : i64})

// LOOPS-LABEL: func private @adamw_8x4(
//       LOOPS:   linalg.generic
//  LOOPS-SAME:     ins({{.*}} : tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<f32>) outs({{.*}} : tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xbf16>, tensor<32xf32>)
//       LOOPS:     %[[STEP:.*]] = arith.subf
//  LOOPS-NEXT:     %[[GOOD:.*]] = arith.cmpf ord
//  LOOPS-NEXT:     %[[NEW:.*]] = arith.select %[[GOOD]], %[[STEP]],
//       LOOPS:     %[[ROUNDED:.*]] = arith.truncf %[[NEW]] : f32 to bf16
//       LOOPS:     linalg.yield %[[NEW]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : f32, f32, f32, bf16, f32
//   LOOPS-NOT:   linalg.generic
//       LOOPS:   return

// -----

// Rows in bf16 are added to sums in f32.

// LOOPS-LABEL: func private @sum_rows_accumulate_
//       LOOPS:   ^bb0(%[[X:.*]]: bf16, %[[SUM:.*]]: f32):
//  LOOPS-NEXT:     %[[XF:.*]] = arith.extf %[[X]] : bf16 to f32
//  LOOPS-NEXT:     %[[NEW:.*]] = arith.addf %[[SUM]], %[[XF]] : f32
//  LOOPS-NEXT:     linalg.yield %[[NEW]] : f32
// LOOPS-LABEL: func private @embedding_backward_accumulate_
//       LOOPS:   rt.scatter_add {{.*}} : (tensor<7x4xf32>, tensor<2x3x4xbf16>, tensor<2x3xi32>) -> tensor<7x4xf32>
// LOOPS-LABEL: func private @cast_2x3x4
//       LOOPS:   arith.truncf {{.*}} : f32 to bf16
func.func @sums(%x: tensor<2x3x4xbf16>, %ids: tensor<2x3xi32>, %gb: tensor<4xf32>, %gt: tensor<7x4xf32>, %y: tensor<2x3x4xf32>) -> (tensor<4xf32>, tensor<7x4xf32>, tensor<2x3x4xbf16>) {
  %db = nn.sum_rows %x : (tensor<2x3x4xbf16>) -> tensor<4xf32>
  %gb1 = nn.accumulate %gb, %db : tensor<4xf32>
  %dt = nn.embedding_backward %ids, %x : (tensor<2x3xi32>, tensor<2x3x4xbf16>) -> tensor<7x4xf32>
  %gt1 = nn.accumulate %gt, %dt : tensor<7x4xf32>
  %h = nn.cast %y : (tensor<2x3x4xf32>) -> tensor<2x3x4xbf16>
  return %gb1, %gt1, %h : tensor<4xf32>, tensor<7x4xf32>, tensor<2x3x4xbf16>
}
