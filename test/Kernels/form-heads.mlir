// RUN: reprise-opt %s --reprise-form-kernels --reprise-verify-kernels | FileCheck %s
// RUN: reprise-opt %s --pass-pipeline='builtin.module(reprise-form-kernels,func.func(convert-nn-to-linalg),reprise-verify-kernels{loops},reprise-plan-memory,reprise-verify-plan)' \
// RUN: | FileCheck %s --check-prefix=PLAN

// 600 rows in chunks of 256, 256 and 88: a GEMM for the logits, one kernel
// for losses and gradient, in the bytes of the logits, a GEMM that is the
// gradient of the weight or added to it, one for part of the gradient of the input.

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   %[[X:.*]]: tensor<2x300x8xf32> {{{.*}}}, %[[TARGETS:.*]]: tensor<2x300xi32> {{{.*}}}, %[[W:.*]]: tensor<7x8xf32> {{{.*}}}, %[[GW:.*]]: tensor<7x8xf32> {{{.*}}}, %[[GX:.*]]: tensor<2x300x8xf32> {{{.*}}})
//  CHECK-NEXT:   %[[X0:.*]] = rt.view %[[X]] from 0 : tensor<2x300x8xf32> to tensor<1x256x8xf32>
//  CHECK-NEXT:   %[[T0:.*]] = rt.view %[[TARGETS]] from 0 : tensor<2x300xi32> to tensor<1x256xi32>
//  CHECK-NEXT:   %[[LOGITS0:.*]] = rt.gemm %[[X0]], %[[W]] transpose_b m 256 n 7 k 8 {{.*}}rt.name = "head.logits.backward"
//  CHECK-NEXT:   %[[C0:.*]] = rt.launch @constant_1x256()
//  CHECK-NEXT:   %[[L0:.*]]:2 = rt.launch @cross_entropy_cross_entropy_backward_1x256x7(%[[LOGITS0]], %[[T0]], %[[C0]]) {{.*}}rt.name = "loss.losses.backward"
//  CHECK-NEXT:   %[[G0:.*]] = rt.gemm %[[L0]]#1, %[[X0]] transpose_a m 7 n 8 k 256 {{.*}}rt.name = "head.logits.backward_weight"
//  CHECK-NEXT:   %[[DX0:.*]] = rt.gemm %[[L0]]#1, %[[W]] m 256 n 8 k 7 {{.*}}rt.name = "head.logits.backward_input"
//  CHECK-NEXT:   %[[X1:.*]] = rt.view %[[X]] from 2048 :
//  CHECK-NEXT:   %[[T1:.*]] = rt.view %[[TARGETS]] from 256 :
//       CHECK:   %[[L1:.*]]:2 = rt.launch @cross_entropy_cross_entropy_backward_1x256x7(
//  CHECK-NEXT:   %[[G1:.*]] = rt.gemm %[[L1]]#1, %[[X1]] addend(%[[G0]])
//  CHECK-NEXT:   %[[DX1:.*]] = rt.gemm
//  CHECK-NEXT:   %[[X2:.*]] = rt.view %[[X]] from 4096 : tensor<2x300x8xf32> to tensor<1x88x8xf32>
//       CHECK:   %[[L2:.*]]:2 = rt.launch
//  CHECK-NEXT:   %[[G2:.*]] = rt.gemm %[[L2]]#1, %[[X2]] addend(%[[G1]])
//  CHECK-NEXT:   %[[DX2:.*]] = rt.gemm
//  CHECK-NEXT:   %[[LOSSES:.*]] = rt.join %[[L0]]#0, %[[L1]]#0, %[[L2]]#0 :
//  CHECK-NEXT:   %[[DX:.*]] = rt.join %[[DX0]], %[[DX1]], %[[DX2]] :
//  CHECK-NEXT:   %[[LOSS:.*]] = rt.launch @mean_2x300(%[[LOSSES]])
//  CHECK-NEXT:   %[[GX1:.*]] = rt.launch @accumulate_2x300x8(%[[GX]], %[[DX]])
//  CHECK-NEXT:   return %[[LOSS]], %[[GX1]], %[[G2]]

// Parts lie in the bytes of their whole.

//  PLAN-LABEL: func.func @step()
//        PLAN:   %[[XB:.*]] = rt.buffer at <device, [[#X:]]> {{.*}}kind = parameter, parameter = "x"{{.*}} : memref<2x300x8xf32>
//        PLAN:   rt.buffer at <device, [[#X]]> in %[[XB]](memref<2x300x8xf32>) : memref<1x256x8xf32>
//        PLAN:   %[[LB:.*]] = rt.buffer at <device, [[#L:]]> : memref<2x300xf32>
//   PLAN-NEXT:   rt.buffer at <device, [[#L]]> in %[[LB]](memref<2x300xf32>) : memref<1x256xf32>
//        PLAN:   rt.buffer at <device, [[#X + 8192]]> in %[[XB]](memref<2x300x8xf32>) : memref<1x256x8xf32>
//        PLAN:   rt.buffer at <device, [[#L + 1024]]> in %[[LB]](memref<2x300xf32>) : memref<1x256xf32>
//        PLAN:   rt.buffer at <device, [[#X + 16384]]> in %[[XB]](memref<2x300x8xf32>) : memref<1x88x8xf32>
//        PLAN:   rt.buffer at <device, [[#L + 2048]]> in %[[LB]](memref<2x300xf32>) : memref<1x88xf32>
//        PLAN:   rt.launch @mean_2x300(%[[LB]])
func.func @step(%x: tensor<2x300x8xf32> {nn.parameter = #nn.parameter<name = "x", init = zeros>}, %targets: tensor<2x300xi32> {nn.input = "targets"},
                %w: tensor<7x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}, %gw: tensor<7x8xf32> {nn.gradient = "w"},
                %gx: tensor<2x300x8xf32> {nn.gradient = "x"})
    -> (tensor<f32> {nn.output = "loss"}, tensor<2x300x8xf32> {nn.gradient = "x"}, tensor<7x8xf32> {nn.gradient = "w"}) {
  nn.backward
  %losses, %dx, %gw1 = nn.linear_cross_entropy %x, %w, %targets sum(%gw) by 1.6e-03 dinput out_in rows 256
      {loss_scope = #nn.scope<module = "loss", value = "losses">, nn.scope = #nn.scope<module = "head", value = "logits">}
    : (tensor<2x300x8xf32>, tensor<7x8xf32>, tensor<2x300xi32>, tensor<7x8xf32>) -> (tensor<2x300xf32>, tensor<2x300x8xf32>, tensor<7x8xf32>)
  %loss = nn.mean %losses : (tensor<2x300xf32>) -> tensor<f32>
  %gx1 = nn.accumulate %gx, %dx : tensor<2x300x8xf32>
  return %loss, %gx1, %gw1 : tensor<f32>, tensor<2x300x8xf32>, tensor<7x8xf32>
}

// Without gradients there are the losses alone, in one chunk where it holds all.

// CHECK-LABEL: func.func @evaluate(
//       CHECK:   %[[LOGITS:.*]] = rt.gemm {{.*}} m 600 n 7 k 8
//  CHECK-NEXT:   %[[LOSSES:.*]]:2 = rt.launch @cross_entropy_1x600x7(
//  CHECK-NEXT:   %[[ALL:.*]] = rt.join %[[LOSSES]]#0 : (tensor<1x600xf32>) -> tensor<2x300xf32>
//  CHECK-NEXT:   rt.launch @mean_2x300(%[[ALL]])
func.func @evaluate(%x: tensor<2x300x8xf32> {nn.parameter = #nn.parameter<name = "x", init = zeros>}, %targets: tensor<2x300xi32> {nn.input = "targets"},
                    %w: tensor<7x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> (tensor<f32> {nn.output = "eval_loss"}) {
  %losses = nn.linear_cross_entropy %x, %w, %targets out_in rows 1024
    : (tensor<2x300x8xf32>, tensor<7x8xf32>, tensor<2x300xi32>) -> tensor<2x300xf32>
  %loss = nn.mean %losses : (tensor<2x300xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

//       CHECK: func.func private @cross_entropy_cross_entropy_backward_1x256x7(%{{.*}}: tensor<1x256x7xf32> {rt.may_alias = 1 : i64}, %{{.*}}: tensor<1x256xi32>, %{{.*}}: tensor<1x256xf32>)
//  CHECK-NEXT:   %[[LOSSES:.*]], %[[LSE:.*]] = nn.cross_entropy
//  CHECK-NEXT:   %[[DLOGITS:.*]] = nn.cross_entropy_backward %{{.*}}, %{{.*}}, %[[LSE]], %{{.*}}
//  CHECK-NEXT:   return %[[LOSSES]], %[[DLOGITS]]
