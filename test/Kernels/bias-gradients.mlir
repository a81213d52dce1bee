// Where a library multiplies (the module has a workspace for its GEMMs), the
// gradient of a bias comes out beside that of its weight, and one launch behind
// the backward pass adds many to their sums. On the CPU, and where
// that is asked for, it is a kernel of its own.

// RUN: reprise-opt %s -split-input-file --reprise-form-kernels --reprise-verify-kernels | FileCheck %s
// RUN: sed 's/attributes {rt.gemm_workspace = 4096 : i64}//' %s | reprise-opt -split-input-file --reprise-form-kernels | FileCheck %s --check-prefixes=CPU,OWN
// RUN: sed 's/{rt.gemm_workspace = 4096 : i64}/{rt.gemm_workspace = 4096 : i64, rt.bias_kernels}/' %s | reprise-opt -split-input-file --reprise-form-kernels | FileCheck %s --check-prefix=CPU
// RUN: reprise-opt %s -split-input-file --pass-pipeline='builtin.module(reprise-form-kernels,func.func(convert-nn-to-linalg),reprise-verify-kernels{loops})' | FileCheck %s --check-prefix=LOOPS

// CPU-LABEL: func @both(
// CPU-NOT:   epilogue
// CPU:       @sum_rows_accumulate
// CPU-NOT:   epilogue
// CPU:       @sum_rows_accumulate
module attributes {rt.gemm_workspace = 4096 : i64} {
  // CHECK-LABEL: func @both(
  //  CHECK-SAME:   %[[X:[a-z0-9]+]]: tensor<16x4xbf16>, %[[DY:[a-z0-9]+]]: tensor<16x8xbf16>, %[[DZ:[a-z0-9]+]]: tensor<16x4xbf16>,
  //  CHECK-SAME:   %[[GW:[a-z0-9]+]]: tensor<4x8xf32>, %[[GB:[a-z0-9]+]]: tensor<8xf32>, %[[GV:[a-z0-9]+]]: tensor<4x4xf32>, %[[GC:[a-z0-9]+]]: tensor<4xf32>
  //       CHECK:   %[[W:.*]]:2 = rt.gemm %[[X]], %[[DY]] addend(%[[GW]]) transpose_a epilogue sums_of_b m 4 n 8 k 16
  //  CHECK-SAME:     -> (tensor<4x8xf32>, tensor<8xf32>)
  //  CHECK-NEXT:   %[[V:.*]]:2 = rt.gemm %[[DZ]], %[[X]] addend(%[[GV]]) transpose_a epilogue sums_of_a m 4 n 4 k 16
  //  CHECK-SAME:     -> (tensor<4x4xf32>, tensor<4xf32>)
  //  CHECK-NEXT:   %[[S:.*]]:2 = rt.launch @accumulate_8(%[[GB]], %[[W]]#1, %[[GC]], %[[V]]#1) {flops = 12 : i64, rt.name = "bias_gradients"}
  //  CHECK-NEXT:   return %[[W]]#0, %[[S]]#0, %[[V]]#0, %[[S]]#1
  // CHECK-LABEL: func private @accumulate_8(
  //  CHECK-SAME:   %{{.*}}: tensor<8xf32> {rt.in_place = 0 : i64}, %{{.*}}: tensor<8xf32>, %{{.*}}: tensor<4xf32> {rt.in_place = 1 : i64}, %{{.*}}: tensor<4xf32>)
  // LOOPS-LABEL: func private @accumulate_8(
  // LOOPS-COUNT-2: linalg.generic
  // LOOPS-NOT:   linalg.generic
  // LOOPS:       return
  func.func @both(%x: tensor<16x4xbf16>, %dy: tensor<16x8xbf16>, %dz: tensor<16x4xbf16>, %gw: tensor<4x8xf32>, %gb: tensor<8xf32>, %gv: tensor<4x4xf32>, %gc: tensor<4xf32>)
      -> (tensor<4x8xf32>, tensor<8xf32>, tensor<4x4xf32>, tensor<4xf32>) {
    %dw = nn.linear_backward_weight %x, %dy in_out : (tensor<16x4xbf16>, tensor<16x8xbf16>) -> tensor<4x8xf32>
    %gw1 = nn.accumulate %gw, %dw : tensor<4x8xf32>
    %db = nn.sum_rows %dy : (tensor<16x8xbf16>) -> tensor<8xf32>
    %gb1 = nn.accumulate %gb, %db : tensor<8xf32>
    %dv = nn.linear_backward_weight %x, %dz out_in : (tensor<16x4xbf16>, tensor<16x4xbf16>) -> tensor<4x4xf32>
    %gv1 = nn.accumulate %gv, %dv : tensor<4x4xf32>
    %dc = nn.sum_rows %dz : (tensor<16x4xbf16>) -> tensor<4xf32>
    %gc1 = nn.accumulate %gc, %dc : tensor<4xf32>
    return %gw1, %gb1, %gv1, %gc1 : tensor<4x8xf32>, tensor<8xf32>, tensor<4x4xf32>, tensor<4xf32>
  }
}

// -----

// The additions come before the update, which reads the sums. A weight that is
// frozen has no gradient, so its bias's is a kernel of its own, as is a sum that
// something reads before.

module attributes {rt.gemm_workspace = 4096 : i64} {
  // CHECK-LABEL: func @some(
  //       CHECK:   rt.launch @sum_rows_accumulate_16x8(%{{.*}}, %[[B:[a-z0-9]+]])
  //       CHECK:   rt.gemm
  //   CHECK-NOT:     epilogue
  //       CHECK:   rt.launch @sum_rows_accumulate_16x4
  //       CHECK:   rt.launch @scale_4
  //       CHECK:   rt.gemm {{.*}} epilogue sums_of_b
  //       CHECK:   rt.launch @gelu_16x8
  //  CHECK-NEXT:   rt.launch @accumulate_8
  //  CHECK-NEXT:   rt.update
  func.func @some(%x: tensor<16x4xf32>, %dy: tensor<16x8xf32>, %dz: tensor<16x4xf32>, %du: tensor<16x8xf32>, %gb: tensor<8xf32>, %gc: tensor<4xf32>, %gd: tensor<8xf32>)
      -> (tensor<8xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<16x8xf32>) {
    %db = nn.sum_rows %dy : (tensor<16x8xf32>) -> tensor<8xf32>
    %gb1 = nn.accumulate %gb, %db : tensor<8xf32>
    %dv = nn.linear_backward_weight %x, %dz in_out : (tensor<16x4xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
    %dc = nn.sum_rows %dz : (tensor<16x4xf32>) -> tensor<4xf32>
    %gc1 = nn.accumulate %gc, %dc : tensor<4xf32>
    %gc2 = nn.scale %gc1 by 2.0 : tensor<4xf32>
    %dw = nn.linear_backward_weight %x, %du in_out : (tensor<16x4xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %dd = nn.sum_rows %du : (tensor<16x8xf32>) -> tensor<8xf32>
    %gd1 = nn.accumulate %gd, %dd : tensor<8xf32>
    %g = nn.gelu %du tanh : tensor<16x8xf32>
    nn.update
    return %gb1, %dv, %gc2, %dw, %gd1, %g : tensor<8xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<16x8xf32>
  }
}

// -----

// With one micro-batch the library writes the gradients of biases where they
// belong, and nothing is added. GEMMs of our own make squares alone.

// CPU-LABEL: func @one(
// OWN-NOT:   epilogue sums
// OWN:       epilogue squares_of_c
// CPU-NOT:   epilogue
// CPU:       @sum_rows_16x8(
// CPU-NOT:   epilogue
// CPU:       rt.update
module attributes {rt.gemm_workspace = 4096 : i64} {
  // CHECK-LABEL: func @one(
  //       CHECK:   %[[W:.*]]:2 = rt.gemm %{{.*}}, %{{.*}} transpose_a epilogue sums_of_b m 4 n 8 k 16
  //   CHECK-NOT:   accumulate
  //       CHECK:   rt.update
  //  CHECK-NEXT:   %[[NORM:.*]] = rt.launch @sums_of_squares_2(%[[W]]#0, %[[W]]#1)
  //       CHECK:   return %[[W]]#0, %[[W]]#1
  func.func @one(%x: tensor<16x4xf32>, %dy: tensor<16x8xf32>, %gw: tensor<4x8xf32> {nn.gradient = "w"}, %gb: tensor<8xf32> {nn.gradient = "b"})
      -> (tensor<4x8xf32> {nn.gradient = "w"}, tensor<8xf32> {nn.gradient = "b"}, tensor<f32>) attributes {nn.micro_batches = 1 : i64} {
    %dw = nn.linear_backward_weight %x, %dy in_out : (tensor<16x4xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %gw1 = nn.accumulate %gw, %dw : tensor<4x8xf32>
    %db = nn.sum_rows %dy : (tensor<16x8xf32>) -> tensor<8xf32>
    %gb1 = nn.accumulate %gb, %db : tensor<8xf32>
    nn.update
    %norm = nn.global_norm %gw1, %gb1 : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<f32>
    return %gw1, %gb1, %norm : tensor<4x8xf32>, tensor<8xf32>, tensor<f32>
  }
}
