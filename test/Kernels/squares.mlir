// The norm does not read gradients that a GEMM writes last on the CPU: that
// GEMM sums squares of blocks of 4 rows and 32 columns on its way.

// RUN: reprise-opt %s -split-input-file --reprise-form-kernels --reprise-verify-kernels | FileCheck %s
// RUN: reprise-opt %s -split-input-file --pass-pipeline='builtin.module(reprise-form-kernels,func.func(convert-nn-to-linalg),reprise-verify-kernels{loops},reprise-plan-memory)' | FileCheck %s --check-prefix=PLAN
// RUN: sed '/nn.cast/d; s/%\([a-z]*\)16/%\1/g; s/bf16/f32/g' %s | reprise-opt -split-input-file --reprise-form-kernels --reprise-verify-kernels | FileCheck %s
// RUN: sed 's/^module {/module attributes {rt.gemm_workspace = 4096 : i64} {/' %s | reprise-opt -split-input-file --reprise-form-kernels | FileCheck %s --check-prefix=PLAIN

// A library does not do that.

// PLAIN-NOT: squares_of_c

// One that something is added to behind its GEMM is read, as is one that no
// GEMM makes. Of the others there are 10 x 3 and 8 x 2 sums. Of several
// GEMMs that add to a sum it is the last one.

// CHECK-LABEL: func @step(
//       CHECK:   %[[W:.*]]:2 = rt.gemm %{{.*}}, %{{.*}} transpose_a epilogue squares_of_c m 40 n 96 k 16
//  CHECK-SAME:     -> (tensor<40x96xf32>, tensor<10x3xf32>)
//       CHECK:   %[[U:.*]] = rt.gemm %{{.*}}, %{{.*}} addend(%{{.*}}) transpose_a m 40 n 96
//  CHECK-SAME:     -> tensor<40x96xf32>
//       CHECK:   %[[T:.*]] = rt.launch @embedding_backward_accumulate_40x96(%{{.*}}, %{{.*}}, %[[U]])
//       CHECK:   %[[V:.*]] = rt.gemm %{{.*}}, %{{.*}} addend(%{{.*}}) transpose_a m 32 n 40
//       CHECK:   %[[V2:.*]]:2 = rt.gemm %{{.*}}, %{{.*}} addend(%[[V]]) transpose_a epilogue squares_of_c m 32 n 40
//  CHECK-SAME:     -> (tensor<32x40xf32>, tensor<8x2xf32>)
//       CHECK:   rt.update
//  CHECK-NEXT:   %[[REST:.*]] = rt.launch @sums_of_squares_2(%[[T]], %{{.*}}) {flops = 7872 : i64, rt.name = "global_norm"}
//  CHECK-NEXT:   %[[OF_T:.*]] = rt.view %[[REST]] from 0 : tensor<2xf32> to tensor<1xf32>
//  CHECK-NEXT:   %[[OF_B:.*]] = rt.view %[[REST]] from 1 : tensor<2xf32> to tensor<1xf32>
//  CHECK-NEXT:   %[[SUMS:.*]] = rt.launch @sums_4(%[[W]]#1, %[[OF_T]], %[[V2]]#1, %[[OF_B]]) {flops = 48 : i64, rt.name = "global_norm"}
//  CHECK-NEXT:   rt.launch @root_of_sum_4(%[[SUMS]])

// CHECK-LABEL: func private @sums_of_squares_2(
//       CHECK:   rt.block_sums %{{.*}}, %{{.*}} square :
// CHECK-LABEL: func private @sums_4(
//       CHECK:   rt.block_sums %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} :

//  PLAN-LABEL: func.func @step()
//        PLAN:   rt.gemm {{.*}} aux(%[[W:[0-9]+]]) workspace(%{{[0-9]+}}) transpose_a accumulate epilogue squares_of_c m 40
//        PLAN:   rt.gemm {{.*}} aux(%[[V:[0-9]+]]) workspace(%{{[0-9]+}}) transpose_a accumulate epilogue squares_of_c m 32
//        PLAN:   rt.launch @sums_4(%[[W]], %{{.*}}, %[[V]], %{{.*}}) to(
module {
  func.func @step(%x: tensor<16x40xf32> {nn.parameter = #nn.parameter<name = "x", init = ones, frozen = true>}, %dy: tensor<16x96xf32> {nn.parameter = #nn.parameter<name = "dy", init = ones, frozen = true>},
      %z: tensor<16x32xf32> {nn.parameter = #nn.parameter<name = "z", init = ones, frozen = true>}, %ids: tensor<4x4xi32> {nn.input = "tokens"}, %r: tensor<4x4x96xf32> {nn.parameter = #nn.parameter<name = "r", init = ones, frozen = true>},
      %gw: tensor<40x96xf32> {nn.gradient = "w"}, %gt: tensor<40x96xf32> {nn.gradient = "t"}, %gv: tensor<32x40xf32> {nn.gradient = "v"}, %gb: tensor<96xf32> {nn.gradient = "b"})
      -> (tensor<f32> {nn.output = "grad_norm"}, tensor<40x96xf32> {nn.gradient = "w"}, tensor<40x96xf32> {nn.gradient = "t"}, tensor<32x40xf32> {nn.gradient = "v"}, tensor<96xf32> {nn.gradient = "b"}) attributes {nn.micro_batches = 2 : i64} {
    %x16 = nn.cast %x : (tensor<16x40xf32>) -> tensor<16x40xbf16>
    %dy16 = nn.cast %dy : (tensor<16x96xf32>) -> tensor<16x96xbf16>
    %z16 = nn.cast %z : (tensor<16x32xf32>) -> tensor<16x32xbf16>
    %r16 = nn.cast %r : (tensor<4x4x96xf32>) -> tensor<4x4x96xbf16>
    %dw = nn.linear_backward_weight %x16, %dy16 in_out : (tensor<16x40xbf16>, tensor<16x96xbf16>) -> tensor<40x96xf32>
    %gw1 = nn.accumulate %gw, %dw : tensor<40x96xf32>
    %db = nn.sum_rows %dy16 : (tensor<16x96xbf16>) -> tensor<96xf32>
    %gb1 = nn.accumulate %gb, %db : tensor<96xf32>
    %du = nn.linear_backward_weight %x16, %dy16 in_out : (tensor<16x40xbf16>, tensor<16x96xbf16>) -> tensor<40x96xf32>
    %dt = nn.embedding_backward %ids, %r16 : (tensor<4x4xi32>, tensor<4x4x96xbf16>) -> tensor<40x96xf32>
    %gt1 = nn.accumulate %gt, %du : tensor<40x96xf32>
    %gt2 = nn.accumulate %gt1, %dt : tensor<40x96xf32>
    %dv = nn.linear_backward_weight %z16, %x16 in_out : (tensor<16x32xbf16>, tensor<16x40xbf16>) -> tensor<32x40xf32>
    %gv1 = nn.accumulate %gv, %dv : tensor<32x40xf32>
    %dv2 = nn.linear_backward_weight %x16, %z16 out_in : (tensor<16x40xbf16>, tensor<16x32xbf16>) -> tensor<32x40xf32>
    %gv2 = nn.accumulate %gv1, %dv2 : tensor<32x40xf32>
    nn.update
    %norm = nn.global_norm %gw1, %gt2, %gv2, %gb1 : (tensor<40x96xf32>, tensor<40x96xf32>, tensor<32x40xf32>, tensor<96xf32>) -> tensor<f32>
    return %norm, %gw1, %gt2, %gv2, %gb1 : tensor<f32>, tensor<40x96xf32>, tensor<40x96xf32>, tensor<32x40xf32>, tensor<96xf32>
  }
}
