// RUN: reprise-opt %s -split-input-file --reprise-overlap-collectives | FileCheck %s
// RUN: reprise-opt %s -split-input-file --reprise-overlap-collectives --reprise-plan-memory --reprise-verify-plan \
// RUN:   | FileCheck %s --check-prefix=PLAN

// Between rows that go to their experts and who reads them comes the first
// GEMM of what follows and needs nothing of them, a shared expert's; beside
// rows that come back runs the second one, with the launch that it needs. What
// is read first is not: it needs them.

// CHECK-LABEL: func.func @step
//       CHECK:   %[[X:.*]] = rt.launch @rows
//  CHECK-NEXT:   %[[GOING:.*]] = rt.send_rows %[[X]], %{{.*}} over "ep" ranks 2 {rt.begun = 0 : i64}
//  CHECK-NEXT:   %[[US:.*]] = rt.gemm
//  CHECK-NEXT:   %[[THERE:.*]] = rt.wait 0 for(%[[GOING]])
//  CHECK-NEXT:   %[[Y:.*]] = rt.launch @experts(%[[THERE]])
//  CHECK-NEXT:   %[[COMING:.*]] = rt.return_rows %[[Y]], %{{.*}} over "ep" ranks 2 {rt.begun = 1 : i64}
//  CHECK-NEXT:   %[[GS:.*]] = rt.launch @act(%[[US]])
//  CHECK-NEXT:   %[[YS:.*]] = rt.gemm %[[GS]]
//  CHECK-NEXT:   %[[HOME:.*]] = rt.wait 1 for(%[[COMING]])
//  CHECK-NEXT:   %[[SUM:.*]] = rt.launch @combine(%[[HOME]])
//  CHECK-NEXT:   rt.launch @both(%[[SUM]], %[[YS]])
// PLAN-LABEL: func.func @step
//       PLAN:   rt.send_rows {{.*}} {rt.begun = 0
//       PLAN:   rt.return_rows {{.*}} {rt.begun = 1
module attributes {nn.mesh = #nn.mesh<ep = 2>} {
  func.func private @rows(%x: tensor<8x16xf32>) -> tensor<8x16xf32> attributes {rt.kernel} {
    return %x : tensor<8x16xf32>
  }
  func.func private @experts(%x: tensor<16x16xf32>) -> tensor<16x16xf32> attributes {rt.kernel} {
    return %x : tensor<16x16xf32>
  }
  func.func private @combine(%x: tensor<8x16xf32>) -> tensor<8x16xf32> attributes {rt.kernel} {
    return %x : tensor<8x16xf32>
  }
  func.func private @act(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {rt.kernel} {
    return %x : tensor<8x8xf32>
  }
  func.func private @both(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> tensor<8x16xf32> attributes {rt.kernel} {
    return %x : tensor<8x16xf32>
  }
  func.func private @offsets(tensor<8x16xf32>) -> tensor<2x5xi32> attributes {rt.kernel}
  func.func private @large(tensor<8x16xf32>) -> tensor<4096xf32> attributes {rt.kernel}
  func.func private @small(tensor<4096xf32>) -> tensor<8x16xf32> attributes {rt.kernel}
  func.func @step(%x0: tensor<8x16xf32> {nn.parameter = #nn.parameter<name = "x", init = zeros>},
                  %w: tensor<16x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>},
                  %v: tensor<8x16xf32> {nn.parameter = #nn.parameter<name = "v", init = zeros>}) {
    %all = rt.launch @offsets(%x0) : (tensor<8x16xf32>) -> tensor<2x5xi32>
    // The peak is somewhere else.
    %l = rt.launch @large(%x0) : (tensor<8x16xf32>) -> tensor<4096xf32>
    %x1 = rt.launch @small(%l) : (tensor<4096xf32>) -> tensor<8x16xf32>
    %xp = rt.launch @rows(%x1) : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %there = rt.send_rows %xp, %all over "ep" ranks 2 : (tensor<8x16xf32>, tensor<2x5xi32>) -> tensor<16x16xf32>
    %y = rt.launch @experts(%there) : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %home = rt.return_rows %y, %all over "ep" ranks 2 : (tensor<16x16xf32>, tensor<2x5xi32>) -> tensor<8x16xf32>
    %sum = rt.launch @combine(%home) : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %us = rt.gemm %x1, %w m 8 n 8 k 16 lda 16 ldb 8 ldc 8 : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
    %gs = rt.launch @act(%us) : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %ys = rt.gemm %gs, %v m 8 n 16 k 8 lda 8 ldb 16 ldc 16 : (tensor<8x8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %z = rt.launch @both(%sum, %ys) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    return
  }
}
