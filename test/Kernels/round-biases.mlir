// Where a library multiplies (the module has a workspace for its products), the
// bias of a bf16 product is bf16, too: rounded once, by a kernel of its own,
// for all products that add it. What else there is stays as it is.

// RUN: reprise-opt %s --reprise-round-biases | FileCheck %s
// RUN: sed 's/attributes {rt.gemm_workspace = 4096 : i64}/attributes {rt.alignment = 256 : i64}/' %s | reprise-opt --reprise-round-biases | FileCheck %s --check-prefix=CPU

// CPU-NOT: @round_bias

module attributes {rt.gemm_workspace = 4096 : i64} {
  // CHECK-LABEL: func.func @step(
  // CHECK-SAME:    %[[B:[a-z0-9]+]]: tensor<8xf32>
  // CHECK:         %[[R:.*]] = rt.launch @round_bias_8(%[[B]]) {rt.name = "layer0.mlp.u.bias"} : (tensor<8xf32>) -> tensor<8xbf16>
  // CHECK-NEXT:    rt.gemm {{.*}} bias(%[[R]]) {{.*}} -> tensor<16x8xbf16>
  // CHECK-NEXT:    rt.gemm {{.*}} bias(%[[B]]) {{.*}} -> tensor<16x8xf32>
  // CHECK-NEXT:    rt.gemm {{.*}} bias(%[[R]]) {{.*}} -> tensor<16x8xbf16>
  func.func @step(%x: tensor<16x4xbf16>,
                  %w: tensor<4x8xbf16>,
                  %b: tensor<8xf32>) {
    %u = rt.gemm %x, %w bias(%b) m 16 n 8 k 4 lda 4 ldb 8 ldc 8 {rt.name = "layer0.mlp.u"}
      : (tensor<16x4xbf16>, tensor<4x8xbf16>, tensor<8xf32>) -> tensor<16x8xbf16>
    %s = rt.gemm %x, %w bias(%b) m 16 n 8 k 4 lda 4 ldb 8 ldc 8
      : (tensor<16x4xbf16>, tensor<4x8xbf16>, tensor<8xf32>) -> tensor<16x8xf32>
    %r = rt.gemm %x, %w bias(%b) m 16 n 8 k 4 lda 4 ldb 8 ldc 8 {rt.name = "layer0.mlp.u@replay"}
      : (tensor<16x4xbf16>, tensor<4x8xbf16>, tensor<8xf32>) -> tensor<16x8xbf16>
    return
  }
  // CHECK:      func.func private @round_bias_8(%[[X:.*]]: tensor<8xf32>) -> tensor<8xbf16> attributes {rt.kernel}
  // CHECK-NEXT:   nn.cast %[[X]]
}
