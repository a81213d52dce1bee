// RUN: reprise-opt %s | FileCheck %s
// RUN: reprise-opt %s -mlir-print-op-generic | reprise-opt | FileCheck %s

// Every op as its description shows it, the schedule in both of its forms.

// CHECK: module attributes {rt.plan = #rt.plan<[<device, bytes = 192, least = 192, begin = 64, peak = 128, bound = 128, [<parameters, 64>, <activations, 128>]>,
// CHECK-SAME: <host, bytes = 0, least = 0, begin = 0, peak = 0, bound = 0, []>]>}
module attributes {rt.plan = #rt.plan<[
    <device, bytes = 192, least = 192, begin = 64, peak = 128, bound = 128, [<parameters, 64>, <activations, 128>]>,
    <host, bytes = 0, least = 0, begin = 0, peak = 0, bound = 0, []>]>} {

// CHECK-LABEL: func private @gelu(
//  CHECK-SAME:   attributes {rt.kernel}
func.func private @gelu(%x: tensor<16xf32> {rt.may_alias = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel} {
  %y = nn.gelu %x tanh : tensor<16xf32>
  return %y : tensor<16xf32>
}

func.func private @dropout(%x: tensor<16xf32>, %rng: tensor<4xi32>) -> tensor<16xf32> attributes {rt.kernel} {
  // CHECK: rt.stream 0
  %stream = rt.stream 0
  %element = arith.constant 5 : index
  // CHECK: rt.random_word %{{.*}} key %[[ID:.*]], %[[ID]] step %[[ID]] micro_batch %[[ID]] stream %[[ID]]
  %word = rt.random_word %element key %stream, %stream step %stream micro_batch %stream stream %stream
  return %x : tensor<16xf32>
}

// An emitted kernel: nothing to compare a launch with.

// CHECK: func.func private @emitted(memref<?xi64>) attributes {rt.kernel, rt.tasks = 4 : i64}
func.func private @emitted(memref<?xi64>) attributes {rt.kernel, rt.tasks = 4}

// CHECK-LABEL: func @tensors(
//  CHECK-SAME:   %[[X:.*]]: tensor<16xf32>, %[[RNG:.*]]: tensor<4xi32>
func.func @tensors(%x: tensor<16xf32>, %rng: tensor<4xi32>) -> tensor<16xf32> {
  // CHECK: %[[Y:.*]] = rt.launch @gelu(%[[X]]) {rt.name = "layer0.mlp.g"} : (tensor<16xf32>) -> tensor<16xf32>
  %y = rt.launch @gelu(%x) {rt.name = "layer0.mlp.g"} : (tensor<16xf32>) -> tensor<16xf32>
  // CHECK: rt.launch @dropout(%[[Y]], %[[RNG]]) ids [7] {flops = 16 : i64} : (tensor<16xf32>, tensor<4xi32>) -> tensor<16xf32>
  %z = rt.launch @dropout(%y, %rng) ids [7] {flops = 16} : (tensor<16xf32>, tensor<4xi32>) -> tensor<16xf32>
  return %z : tensor<16xf32>
}

// CHECK-LABEL: func @buffers(
func.func @buffers() {
  // CHECK: %[[B0:.*]] = rt.buffer at <device, 0> {rt.role = "loss"} : memref<16xf32>
  %b0 = rt.buffer at <device, 0> {rt.role = "loss"} : memref<16xf32>
  // CHECK: %[[B1:.*]] = rt.buffer at <device, 64> {rt.state = #rt.state<kind = moment1, parameter = "w", init = zeros>} : memref<16xf32>
  %b1 = rt.buffer at <device, 64> {rt.state = #rt.state<kind = moment1, parameter = "w", init = zeros>} : memref<16xf32>
  // CHECK: rt.buffer at <device, 128> {rt.state = #rt.state<kind = parameter, parameter = "w", init = normal, std = 2.000000e-02 : f32>}
  %b2 = rt.buffer at <device, 128> {rt.state = #rt.state<kind = parameter, parameter = "w", init = normal, std = 2.0e-02 : f32>} : memref<16xf32>
  // CHECK: rt.buffer at <device, 192> {rt.state = #rt.state<kind = parameter, parameter = "q", init = ones, hub = "qkv", part = 2, parts = 3>}
  %b3 = rt.buffer at <device, 192> {rt.state = #rt.state<kind = parameter, parameter = "q", init = ones, hub = "qkv", part = 2, parts = 3>} : memref<16xf32>
  // CHECK: rt.buffer at <device, 256> {rt.state = #rt.state<kind = moment1, parameter = "e", init = zeros, cuts = [<"ep", dim = 0, extent = 4>, <"tp", dim = 1, extent = 16>], share = "ep_copies", share_of = [2, 8]>}
  rt.buffer at <device, 256> {rt.state = #rt.state<kind = moment1, parameter = "e", init = zeros, cuts = [<"ep", dim = 0, extent = 4>, <"tp", dim = 1, extent = 16>], share = "ep_copies", share_of = [2, 8]>} : memref<2x8xf32>
  // CHECK: rt.buffer at <device, 256> {rt.rotary = #rt.rotary<frequencies = [1.000000e+00, 0.251188636], scale = 1.250000e+00 : f32>} : memref<8x4xf32>
  %b4 = rt.buffer at <device, 256> {rt.rotary = #rt.rotary<frequencies = [1.0, 0.251188636], scale = 1.25 : f32>} : memref<8x4xf32>
  // CHECK: rt.buffer at <host, 64> : memref<16xf32>
  %b5 = rt.buffer at <host, 64> : memref<16xf32>
  // CHECK: rt.launch @gelu(%[[B0]]) to(%[[B1]]) : (memref<16xf32>, memref<16xf32>) -> ()
  rt.launch @gelu(%b0) to (%b1) : (memref<16xf32>, memref<16xf32>) -> ()
  // CHECK: rt.launch @emitted(%[[B0]]) to(%[[B1]]) : (memref<16xf32>, memref<16xf32>) -> ()
  rt.launch @emitted(%b0) to (%b1) : (memref<16xf32>, memref<16xf32>) -> ()
  // CHECK: rt.update
  rt.update
  return
}

// [2*8, 24] times [24, 96].

// CHECK-LABEL: func @gemm(
//  CHECK-SAME:   %[[A:.*]]: tensor<2x8x24xf32>, %[[B:.*]]: tensor<24x96xf32>, %[[BIAS:.*]]: tensor<96xf32>, %[[C:.*]]: tensor<2x8x96xf32>
func.func @gemm(%a: tensor<2x8x24xf32>, %b: tensor<24x96xf32>, %bias: tensor<96xf32>, %c: tensor<2x8x96xf32>) {
  // CHECK: rt.gemm %[[A]], %[[B]] bias(%[[BIAS]]) m 16 n 96 k 24 lda 24 ldb 96 ldc 96
  // CHECK-SAME: : (tensor<2x8x24xf32>, tensor<24x96xf32>, tensor<96xf32>) -> tensor<2x8x96xf32>
  %0 = rt.gemm %a, %b bias(%bias) m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<2x8x24xf32>, tensor<24x96xf32>, tensor<96xf32>) -> tensor<2x8x96xf32>
  // CHECK: rt.gemm %[[A]], %[[B]] addend(%[[C]]) m 16 n 96 k 24 lda 24 ldb 96 ldc 96 {alpha = 5.000000e-01 : f32}
  // CHECK-SAME: : (tensor<2x8x24xf32>, tensor<24x96xf32>, tensor<2x8x96xf32>) -> tensor<2x8x96xf32>
  %1 = rt.gemm %a, %b addend(%c) m 16 n 96 k 24 lda 24 ldb 96 ldc 96 {alpha = 0.5 : f32}
    : (tensor<2x8x24xf32>, tensor<24x96xf32>, tensor<2x8x96xf32>) -> tensor<2x8x96xf32>
  return
}

// Scores of 2 * 3 heads: [8, 8] times [8, 8] transposed, in columns of 24.

// CHECK-LABEL: func @batch(
func.func @batch(%q: tensor<2x8x24xf32>, %k: tensor<2x8x24xf32>) {
  // CHECK: rt.gemm %{{.*}}, %{{.*}} transpose_b m 8 n 8 k 8 lda 24 ldb 24 ldc 8 batch [2, 3] strides [192, 8], [192, 8], [192, 64]
  %s = rt.gemm %q, %k transpose_b m 8 n 8 k 8 lda 24 ldb 24 ldc 8
    batch [2, 3] strides [192, 8], [192, 8], [192, 64]
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>) -> tensor<2x3x8x8xf32>
  return
}

// The workspace of 24 [24, 24] panels: 4 * 24 * (24 + 32) = 5376 bytes.

// CHECK-LABEL: func @gemm_buffers(
func.func @gemm_buffers() {
  %a = rt.buffer at <device, 0> : memref<24x24xf32>
  %c = rt.buffer at <device, 2304> : memref<24x24xf32>
  %w = rt.buffer at <device, 4608> : memref<1344xf32>
  // CHECK: rt.gemm %[[A:.*]], %[[A]] to(%{{.*}}) workspace(%{{.*}}) transpose_a accumulate m 24 n 24 k 24 lda 24 ldb 24 ldc 24
  // CHECK-SAME: : (memref<24x24xf32>, memref<24x24xf32>, memref<24x24xf32>, memref<1344xf32>) -> ()
  rt.gemm %a, %a to(%c) workspace(%w) transpose_a accumulate m 24 n 24 k 24 lda 24 ldb 24 ldc 24
    : (memref<24x24xf32>, memref<24x24xf32>, memref<24x24xf32>, memref<1344xf32>) -> ()
  return
}

// CHECK-LABEL: func @attention(
func.func @attention(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>) {
  // CHECK: rt.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} heads 3 scale 5.000000e-01 rate 1.000000e-01 stream 0
  %ctx, %lse = rt.attention %q, %q, %q, %rng heads 3 scale 0.5 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)
  // CHECK: rt.attention_backward {{.*}} heads 3 scale 5.000000e-01 rate 1.000000e-01 stream 0
  %dq, %dk, %dv = rt.attention_backward %q, %q, %q, %ctx, %lse, %ctx, %rng heads 3 scale 0.5 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x3x8xf32>, tensor<2x8x24xf32>, tensor<4xi32>)
      -> (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>)
  return
}

// CHECK-LABEL: func @shared_keys(
func.func @shared_keys(%q: tensor<2x8x24xf32>, %k: tensor<2x8x8xf32>, %rng: tensor<4xi32>) {
  // CHECK: rt.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} heads 6 kv_heads 2 scale
  %ctx, %lse = rt.attention %q, %k, %k, %rng heads 6 kv_heads 2 scale 0.5 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x6x8xf32>)
  // CHECK: rt.attention_backward {{.*}} heads 6 kv_heads 2 scale
  %dq, %dk, %dv = rt.attention_backward %q, %k, %k, %ctx, %lse, %ctx, %rng heads 6 kv_heads 2 scale 0.5 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<2x8x24xf32>, tensor<2x6x8xf32>, tensor<2x8x24xf32>, tensor<4xi32>)
      -> (tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>)
  return
}

// Activations in bf16; sums, of gradients too, stay f32.

// CHECK-LABEL: func @bf16(
func.func @bf16(%q: tensor<2x8x24xbf16>, %w: tensor<24x96xbf16>, %bias: tensor<96xbf16>, %rng: tensor<4xi32>, %t: tensor<307x24xf32>, %ids: tensor<2x8xi32>, %dw: tensor<24x96xf32>, %packed: tensor<2x48x32x2xbf16>) {
  // CHECK: rt.gemm {{.*}} : (tensor<2x8x24xbf16>, tensor<24x96xbf16>, tensor<96xbf16>) -> tensor<2x8x96xbf16>
  %y = rt.gemm %q, %w bias(%bias) m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<2x8x24xbf16>, tensor<24x96xbf16>, tensor<96xbf16>) -> tensor<2x8x96xbf16>
  // CHECK: rt.gemm {{.*}} packed_b m 16 n 64 k 96 lda 96 ldb 96 ldc 64 : (tensor<2x8x96xbf16>, tensor<2x48x32x2xbf16>) -> tensor<2x8x64xbf16>
  %z = rt.gemm %y, %packed packed_b m 16 n 64 k 96 lda 96 ldb 96 ldc 64
    : (tensor<2x8x96xbf16>, tensor<2x48x32x2xbf16>) -> tensor<2x8x64xbf16>
  // CHECK: rt.gemm {{.*}} transpose_b packed_b m 16 n 96 k 64 lda 64 ldb 96 ldc 96 {{.*}}
  %y2 = rt.gemm %z, %packed transpose_b packed_b m 16 n 96 k 64 lda 64 ldb 96 ldc 96
    : (tensor<2x8x64xbf16>, tensor<2x48x32x2xbf16>) -> tensor<2x8x96xbf16>
  // CHECK: rt.gemm {{.*}} addend(%{{.*}}) transpose_a {{.*}} -> tensor<24x96xf32>
  %dw1 = rt.gemm %q, %y addend(%dw) transpose_a m 24 n 96 k 16 lda 24 ldb 96 ldc 96
    : (tensor<2x8x24xbf16>, tensor<2x8x96xbf16>, tensor<24x96xf32>) -> tensor<24x96xf32>
  // CHECK: rt.gemm {{.*}} transpose_a epilogue sums_of_b m 24 n 96 k 16 {{.*}} -> (tensor<24x96xf32>, tensor<96xf32>)
  %dw2:2 = rt.gemm %q, %y transpose_a epilogue sums_of_b m 24 n 96 k 16 lda 24 ldb 96 ldc 96
    : (tensor<2x8x24xbf16>, tensor<2x8x96xbf16>) -> (tensor<24x96xf32>, tensor<96xf32>)
  // CHECK: rt.gemm {{.*}} transpose_a epilogue squares_of_c m 24 n 96 k 16 {{.*}} -> (tensor<24x96xf32>, tensor<6x3xf32>)
  %dw3:2 = rt.gemm %q, %y addend(%dw) transpose_a epilogue squares_of_c m 24 n 96 k 16 lda 24 ldb 96 ldc 96
    : (tensor<2x8x24xbf16>, tensor<2x8x96xbf16>, tensor<24x96xf32>) -> (tensor<24x96xf32>, tensor<6x3xf32>)
  // CHECK: rt.attention {{.*}} -> (tensor<2x8x24xbf16>, tensor<2x3x8xf32>)
  %ctx, %lse = rt.attention %q, %q, %q, %rng heads 3 scale 0.5 rate 0.1 stream 0
    : (tensor<2x8x24xbf16>, tensor<2x8x24xbf16>, tensor<2x8x24xbf16>, tensor<4xi32>) -> (tensor<2x8x24xbf16>, tensor<2x3x8xf32>)
  // CHECK: rt.scatter_add {{.*}} : (tensor<307x24xf32>, tensor<2x8x24xbf16>, tensor<2x8xi32>) -> tensor<307x24xf32>
  %t1 = rt.scatter_add %t, %ctx at %ids : (tensor<307x24xf32>, tensor<2x8x24xbf16>, tensor<2x8xi32>) -> tensor<307x24xf32>
  return
}

// 24 * 960 = 23040 elements are two blocks of 16384, 96 are one.

// CHECK-LABEL: func @sums(
func.func @sums(%t: tensor<307x24xf32>, %p: tensor<16x24xf32>, %ids: tensor<2x8xi32>, %rows: tensor<2x8x24xf32>, %g0: tensor<24x960xf32>, %g1: tensor<96xf32>) {
  // CHECK: rt.scatter_add %{{.*}}, %{{.*}} at %{{.*}} : (tensor<307x24xf32>, tensor<2x8x24xf32>, tensor<2x8xi32>) -> tensor<307x24xf32>
  %t1 = rt.scatter_add %t, %rows at %ids : (tensor<307x24xf32>, tensor<2x8x24xf32>, tensor<2x8xi32>) -> tensor<307x24xf32>
  // CHECK: rt.scatter_add %{{.*}}, %{{.*}} : (tensor<16x24xf32>, tensor<2x8x24xf32>) -> tensor<16x24xf32>
  %p1 = rt.scatter_add %p, %rows : (tensor<16x24xf32>, tensor<2x8x24xf32>) -> tensor<16x24xf32>
  // CHECK: rt.block_sums %{{.*}}, %{{.*}} square : (tensor<24x960xf32>, tensor<96xf32>) -> tensor<3xf32>
  %s = rt.block_sums %g0, %g1 square : (tensor<24x960xf32>, tensor<96xf32>) -> tensor<3xf32>
  // CHECK: rt.block_sums %{{.*}} : (tensor<96xf32>) -> tensor<1xf32>
  %r = rt.block_sums %g1 : (tensor<96xf32>) -> tensor<1xf32>
  return
}

// CHECK-LABEL: func @parts(
func.func @parts(%x: tensor<2x8x24xf32>) -> tensor<2x8x24xf32> {
  // CHECK: %[[B:.*]] = rt.buffer at <device, 64> : memref<2x8x24xf32>
  %b = rt.buffer at <device, 64> : memref<2x8x24xf32>
  // CHECK: rt.buffer at <device, 832> in %[[B]](memref<2x8x24xf32>) : memref<8x24xf32>
  %c = rt.buffer at <device, 832> in %b(memref<2x8x24xf32>) : memref<8x24xf32>
  // CHECK: %[[V:.*]] = rt.view %{{.*}} from 192 : tensor<2x8x24xf32> to tensor<1x8x24xf32>
  %v = rt.view %x from 192 : tensor<2x8x24xf32> to tensor<1x8x24xf32>
  // CHECK: rt.join %[[V]], %[[V]] : (tensor<1x8x24xf32>, tensor<1x8x24xf32>) -> tensor<2x8x24xf32>
  %y = rt.join %v, %v : (tensor<1x8x24xf32>, tensor<1x8x24xf32>) -> tensor<2x8x24xf32>
  return %y : tensor<2x8x24xf32>
}

}
