// RUN: reprise-opt %s -verify-diagnostics -split-input-file

// Every constraint, by its number in the op's description.

func.func @buffer_offset() {
  // expected-error @+1 {{needs an offset of at least 0, but got -64}}
  %b = rt.buffer at <device, -64> : memref<16xf32>
  return
}

// -----

func.func private @gelu(%x: tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel} {
  return %x : tensor<16xf32>
}

func.func @launch_c1_both(%x: tensor<16xf32>, %b: memref<16xf32>) {
  // expected-error @+1 {{'rt.launch' op needs either results or outputs, but got 1 results and 1 outputs}}
  %y = rt.launch @gelu(%x) to (%b) : (tensor<16xf32>, memref<16xf32>) -> tensor<16xf32>
  return
}

// -----

func.func private @gelu(%x: tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel} {
  return %x : tensor<16xf32>
}

func.func @launch_c1_mixed(%x: tensor<16xf32>, %b: memref<16xf32>) {
  // expected-error @+1 {{'rt.launch' op needs all operands to be buffers, but got 'tensor<16xf32>' as operand #0}}
  rt.launch @gelu(%x) to (%b) : (tensor<16xf32>, memref<16xf32>) -> ()
  return
}

// -----

func.func private @gelu(%x: tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel} {
  return %x : tensor<16xf32>
}

func.func @launch_c1_tensors(%b: memref<16xf32>) {
  // expected-error @+1 {{'rt.launch' op needs all operands to be tensors, but got 'memref<16xf32>' as operand #0}}
  %y = rt.launch @gelu(%b) : (memref<16xf32>) -> tensor<16xf32>
  return
}

// -----

func.func private @other(tensor<16xf32>) -> tensor<16xf32>

func.func @launch_c2(%x: tensor<16xf32>) {
  // expected-error @+1 {{'rt.launch' op needs a function with 'rt.kernel', but got '@other'}}
  %y = rt.launch @other(%x) : (tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

func.func @launch_c2_missing(%x: tensor<16xf32>) {
  // expected-error @+1 {{'rt.launch' op needs a function with 'rt.kernel', but got '@other'}}
  %y = rt.launch @other(%x) : (tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

func.func private @gelu(%x: tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel} {
  return %x : tensor<16xf32>
}

func.func @launch_c3_inputs(%x: tensor<16xf32>) {
  // expected-error @+1 {{'rt.launch' op needs as many inputs as '@gelu', 1, but got 2}}
  %y = rt.launch @gelu(%x, %x) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

func.func private @gelu(%x: tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel} {
  return %x : tensor<16xf32>
}

func.func @launch_c3_input(%x: tensor<4x4xf32>) {
  // expected-error @+1 {{'rt.launch' op needs input #0 of '@gelu' like 'tensor<16xf32>', but got 'tensor<4x4xf32>'}}
  %y = rt.launch @gelu(%x) : (tensor<4x4xf32>) -> tensor<16xf32>
  return
}

// -----

func.func private @gelu(%x: tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel} {
  return %x : tensor<16xf32>
}

func.func @launch_c3_output(%x: memref<16xf32>, %y: memref<16xi32>) {
  // expected-error @+1 {{'rt.launch' op needs output #0 of '@gelu' like 'tensor<16xf32>', but got 'memref<16xi32>'}}
  rt.launch @gelu(%x) to (%y) : (memref<16xf32>, memref<16xi32>) -> ()
  return
}

// -----

func.func private @scalar(f32) attributes {rt.kernel}

func.func @launch_c3_scalar(%x: memref<1xf32>) {
  // expected-error @+1 {{'rt.launch' op needs input #0 of '@scalar' like 'f32', but got 'memref<1xf32>'}}
  rt.launch @scalar(%x) : (memref<1xf32>) -> ()
  return
}

// -----

func.func private @gelu(%x: tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel} {
  return %x : tensor<16xf32>
}

func.func @launch_c4(%x: tensor<16xf32>) {
  // expected-error @+1 {{'rt.launch' op needs 'flops' of at least 0, but got -1}}
  %y = rt.launch @gelu(%x) {flops = -1} : (tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

// A GEMM of [16, 24] and [24, 96].

func.func @gemm_c1(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs m, n and k of at least 1, but got 16, 96 and 0}}
  %c = rt.gemm %a, %b m 16 n 96 k 0 lda 24 ldb 96 ldc 96
    : (tensor<16x24xf32>, tensor<24x96xf32>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c1_batch_rank(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs two batch dimensions, but got 1}}
  %c = rt.gemm %a, %b m 16 n 96 k 24 lda 24 ldb 96 ldc 96 batch [2] strides [0], [0], [0]
    : (tensor<16x24xf32>, tensor<24x96xf32>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c1_batch(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs batch dimensions of at least 1, but got 1 and 0}}
  %c = rt.gemm %a, %b m 16 n 96 k 24 lda 24 ldb 96 ldc 96 batch [1, 0] strides [0, 0], [0, 0], [0, 0]
    : (tensor<16x24xf32>, tensor<24x96xf32>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c2(%a: tensor<16x24xbf16>, %b: tensor<24x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs 'b' to be 'bf16' like 'a', but got 'tensor<24x96xf32>'}}
  %c = rt.gemm %a, %b m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<16x24xbf16>, tensor<24x96xf32>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c2_a(%a: tensor<16x24xf16>, %b: tensor<24x96xf16>) {
  // expected-error @+1 {{'rt.gemm' op needs 'a' to be f32 or bf16, but got 'tensor<16x24xf16>'}}
  %c = rt.gemm %a, %b m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<16x24xf16>, tensor<24x96xf16>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c2_c(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs 'c' to be f32, but got 'tensor<16x96xbf16>'}}
  %c = rt.gemm %a, %b m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<16x24xf32>, tensor<24x96xf32>) -> tensor<16x96xbf16>
  return
}

// -----

func.func @gemm_c2_c_bf16(%a: tensor<16x24xbf16>, %b: tensor<24x96xbf16>) {
  // expected-error @+1 {{'rt.gemm' op needs 'c' to be f32 or bf16, but got 'tensor<16x96xf16>'}}
  %c = rt.gemm %a, %b m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<16x24xbf16>, tensor<24x96xbf16>) -> tensor<16x96xf16>
  return
}

// -----

func.func @gemm_c2_sum(%a: tensor<16x24xbf16>, %b: tensor<24x96xbf16>, %c0: tensor<16x96xbf16>) {
  // expected-error @+1 {{'rt.gemm' op needs 'c' to be f32 to be added to, but got 'tensor<16x96xbf16>'}}
  %c = rt.gemm %a, %b addend(%c0) m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<16x24xbf16>, tensor<24x96xbf16>, tensor<16x96xbf16>) -> tensor<16x96xbf16>
  return
}

// -----

func.func @gemm_c2_bias(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>, %bias: tensor<96xbf16>) {
  // expected-error @+1 {{'rt.gemm' op needs a bias of 96 elements of 'f32', but got 'tensor<96xbf16>'}}
  %c = rt.gemm %a, %b bias(%bias) m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<16x24xf32>, tensor<24x96xf32>, tensor<96xbf16>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c3_neither(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs either a result or an output, but got neither}}
  rt.gemm %a, %b m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<16x24xf32>, tensor<24x96xf32>) -> ()
  return
}

// -----

func.func @gemm_c3_both(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>, %o: memref<16x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs either a result or an output, but got both}}
  %c = rt.gemm %a, %b to(%o) m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<16x24xf32>, tensor<24x96xf32>, memref<16x96xf32>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c3_tensors(%a: tensor<16x24xf32>, %b: memref<24x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs all operands to be tensors, but got 'memref<24x96xf32>' as operand #1}}
  %c = rt.gemm %a, %b m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<16x24xf32>, memref<24x96xf32>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c3_addend(%a: memref<16x24xf32>, %b: memref<24x96xf32>, %c: memref<16x96xf32>, %d: tensor<16x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs all operands to be buffers, but got 'tensor<16x96xf32>' as operand #2}}
  rt.gemm %a, %b addend(%d) to(%c) m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (memref<16x24xf32>, memref<24x96xf32>, tensor<16x96xf32>, memref<16x96xf32>) -> ()
  return
}

// -----

func.func @gemm_c3_accumulate(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs an addend instead of 'accumulate' with a result}}
  %c = rt.gemm %a, %b accumulate m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<16x24xf32>, tensor<24x96xf32>) -> tensor<16x96xf32>
  return
}

// -----

// 4 * 24 * (24 + 96) bytes: rows in panels of 24, columns of 32.

func.func @gemm_c3_workspace(%a: memref<16x24xf32>, %b: memref<24x96xf32>, %c: memref<16x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs a workspace of 11520 bytes with an output, but got none}}
  rt.gemm %a, %b to(%c) m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (memref<16x24xf32>, memref<24x96xf32>, memref<16x96xf32>) -> ()
  return
}

// -----

func.func @gemm_c4_row(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs a row stride of at least 96 for 'b', but got 95}}
  %c = rt.gemm %a, %b m 16 n 96 k 24 lda 24 ldb 95 ldc 96
    : (tensor<16x24xf32>, tensor<24x96xf32>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c4_transposed(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs a row stride of at least 16 for 'a', but got 15}}
  %c = rt.gemm %a, %b transpose_a m 16 n 96 k 24 lda 15 ldb 96 ldc 96
    : (tensor<16x24xf32>, tensor<24x96xf32>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c4_batch(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs 2 batch strides for 'a', but got 1}}
  %c = rt.gemm %a, %b m 16 n 96 k 24 lda 24 ldb 96 ldc 96 batch [1, 1] strides [0], [0, 0], [0, 0]
    : (tensor<16x24xf32>, tensor<24x96xf32>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c4_batch_negative(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs batch strides of at least 0 for 'c', but got -1}}
  %c = rt.gemm %a, %b m 16 n 96 k 24 lda 24 ldb 96 ldc 96 batch [1, 2] strides [0, 0], [0, 0], [0, -1]
    : (tensor<16x24xf32>, tensor<24x96xf32>) -> tensor<16x96xf32>
  return
}

// -----

// 16 * 24 + 24 elements.

func.func @gemm_c5_rows(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs more than 407 elements in 'a', but got 384 in 'tensor<16x24xf32>'}}
  %c = rt.gemm %a, %b m 17 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<16x24xf32>, tensor<24x96xf32>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c5_batch(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs more than 3071 elements in 'c', but got 1536 in 'tensor<16x96xf32>'}}
  %c = rt.gemm %a, %b m 16 n 96 k 24 lda 24 ldb 96 ldc 96 batch [1, 2] strides [0, 0], [0, 0], [0, 1536]
    : (tensor<16x24xf32>, tensor<24x96xf32>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c5_bias(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>, %bias: tensor<24xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs a bias of 96 elements of 'f32', but got 'tensor<24xf32>'}}
  %c = rt.gemm %a, %b bias(%bias) m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<16x24xf32>, tensor<24x96xf32>, tensor<24xf32>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c5_addend(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>, %d: tensor<2x8x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs an addend of the result's type 'tensor<16x96xf32>', but got 'tensor<2x8x96xf32>'}}
  %c = rt.gemm %a, %b addend(%d) m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<16x24xf32>, tensor<24x96xf32>, tensor<2x8x96xf32>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c6(%a: memref<16x24xf32>, %b: memref<24x96xf32>, %c: memref<16x96xf32>, %w: memref<2879xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs a workspace of 11520 bytes, but got 11516 in 'memref<2879xf32>'}}
  rt.gemm %a, %b to(%c) workspace(%w) m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (memref<16x24xf32>, memref<24x96xf32>, memref<16x96xf32>, memref<2879xf32>) -> ()
  return
}

// -----

func.func @gemm_c7_none(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs an auxiliary output for an epilogue, and none without, but got 1 results and no 'aux'}}
  %c = rt.gemm %a, %b epilogue sums_of_a m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<16x24xf32>, tensor<24x96xf32>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c7_count(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs 'c' and an auxiliary output of 16 elements to be f32, but got 'tensor<16x96xf32>' and 'tensor<96xf32>'}}
  %c:2 = rt.gemm %a, %b epilogue sums_of_a m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<16x24xf32>, tensor<24x96xf32>) -> (tensor<16x96xf32>, tensor<96xf32>)
  return
}

// -----

func.func @gemm_c7_squares(%a: tensor<33x24xbf16>, %b: tensor<24x96xbf16>) {
  // expected-error @+1 {{'rt.gemm' op needs 'c' and an auxiliary output of 27 elements to be f32, but got 'tensor<33x96xf32>' and 'tensor<1x3xf32>'}}
  %c:2 = rt.gemm %a, %b epilogue squares_of_c m 33 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<33x24xbf16>, tensor<24x96xbf16>) -> (tensor<33x96xf32>, tensor<1x3xf32>)
  return
}

// -----

func.func @gemm_c7_rounded_squares(%a: tensor<33x24xbf16>, %b: tensor<24x96xbf16>) {
  // expected-error @+1 {{'rt.gemm' op needs 'c' and an auxiliary output of 27 elements to be f32, but got 'tensor<33x96xbf16>' and 'tensor<9x3xf32>'}}
  %c:2 = rt.gemm %a, %b epilogue squares_of_c m 33 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<33x24xbf16>, tensor<24x96xbf16>) -> (tensor<33x96xbf16>, tensor<9x3xf32>)
  return
}

// -----

func.func @gemm_c7_bf16(%a: tensor<16x24xbf16>, %b: tensor<24x96xbf16>) {
  // expected-error @+1 {{'rt.gemm' op needs 'c' and an auxiliary output of 96 elements to be f32, but got 'tensor<16x96xbf16>' and 'tensor<96xf32>'}}
  %c:2 = rt.gemm %a, %b epilogue sums_of_b m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<16x24xbf16>, tensor<24x96xbf16>) -> (tensor<16x96xbf16>, tensor<96xf32>)
  return
}

// -----

func.func @gemm_c7_a(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs 'transpose_a' for sums_of_a, and no 'transpose_b' for sums_of_b, as libraries do, but got sums_of_a without 'transpose_a'}}
  %c:2 = rt.gemm %a, %b epilogue sums_of_a m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<16x24xf32>, tensor<24x96xf32>) -> (tensor<16x96xf32>, tensor<16xf32>)
  return
}

// -----

func.func @gemm_c7_b(%a: tensor<16x24xf32>, %b: tensor<96x24xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs 'transpose_a' for sums_of_a, and no 'transpose_b' for sums_of_b, as libraries do, but got sums_of_b with 'transpose_b'}}
  %c:2 = rt.gemm %a, %b transpose_b epilogue sums_of_b m 16 n 96 k 24 lda 24 ldb 24 ldc 96
    : (tensor<16x24xf32>, tensor<96x24xf32>) -> (tensor<16x96xf32>, tensor<96xf32>)
  return
}

// -----

func.func @gemm_c7_bias(%a: tensor<16x24xf32>, %b: tensor<24x96xf32>, %bias: tensor<96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs no bias, no batch and an alpha of 1 with an epilogue}}
  %c:2 = rt.gemm %a, %b bias(%bias) epilogue sums_of_b m 16 n 96 k 24 lda 24 ldb 96 ldc 96
    : (tensor<16x24xf32>, tensor<24x96xf32>, tensor<96xf32>) -> (tensor<16x96xf32>, tensor<96xf32>)
  return
}

// -----

func.func @gemm_c8_sizes(%a: tensor<16x48xbf16>, %b: tensor<3x24x32x2xbf16>) {
  // expected-error @+1 {{'rt.gemm' op needs multiples of 32 rows and 32 columns of bf16 to be packed, but got 48x96x'bf16'}}
  %c = rt.gemm %a, %b packed_b m 16 n 96 k 48 lda 48 ldb 48 ldc 96
    : (tensor<16x48xbf16>, tensor<3x24x32x2xbf16>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c8_type(%a: tensor<16x64xf32>, %b: tensor<3x32x32x2xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs multiples of 32 rows and 32 columns of bf16 to be packed, but got 64x96x'f32'}}
  %c = rt.gemm %a, %b packed_b m 16 n 96 k 64 lda 64 ldb 64 ldc 96
    : (tensor<16x64xf32>, tensor<3x32x32x2xf32>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c8_shape(%a: tensor<16x64xbf16>, %b: tensor<3x32x32x2xbf16>) {
  // expected-error @+1 {{'rt.gemm' op needs 'b' to have the shape [2, 48, 32, 2] to be 96x64 packed, but got 'tensor<3x32x32x2xbf16>'}}
  %c = rt.gemm %a, %b transpose_b packed_b m 16 n 96 k 64 lda 64 ldb 96 ldc 96
    : (tensor<16x64xbf16>, tensor<3x32x32x2xbf16>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c8_stride(%a: tensor<16x64xbf16>, %b: tensor<3x32x32x2xbf16>) {
  // expected-error @+1 {{'rt.gemm' op needs 'ldb' 64 and no batch to be packed, but got 96}}
  %c = rt.gemm %a, %b packed_b m 16 n 96 k 64 lda 64 ldb 96 ldc 96
    : (tensor<16x64xbf16>, tensor<3x32x32x2xbf16>) -> tensor<16x96xf32>
  return
}

// -----

func.func @gemm_c8_batch(%a: tensor<16x64xbf16>, %b: tensor<3x32x32x2xbf16>) {
  // expected-error @+1 {{'rt.gemm' op needs 'ldb' 64 and no batch to be packed, but got 64 and a batch}}
  %c = rt.gemm %a, %b packed_b m 8 n 96 k 64 lda 64 ldb 64 ldc 96 batch [2, 1] strides [512, 0], [0, 0], [768, 0]
    : (tensor<16x64xbf16>, tensor<3x32x32x2xbf16>) -> tensor<16x96xf32>
  return
}

// -----

func.func @attention_c1_query(%q: tensor<2x8x24xf16>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'rt.attention' op needs 'query' to be [B, T, H*D] of f32 or bf16, but got 'tensor<2x8x24xf16>'}}
  %y:2 = rt.attention %q, %q, %q, %rng heads 3 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf16>, tensor<2x8x24xf16>, tensor<2x8x24xf16>, tensor<4xi32>) -> (tensor<2x8x24xf16>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @attention_c1_mixed(%q: tensor<2x8x24xbf16>, %k: tensor<2x8x24xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'rt.attention' op needs 'key' to be [2, 8, 24] of 'bf16', but got 'tensor<2x8x24xf32>'}}
  %y:2 = rt.attention %q, %k, %k, %rng heads 3 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xbf16>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xbf16>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @attention_c1(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>, %k: tensor<2x9x24xf32>) {
  // expected-error @+1 {{'rt.attention' op needs 'key' to be [2, 8, 24] of 'f32', but got 'tensor<2x9x24xf32>'}}
  %y:2 = rt.attention %q, %k, %q, %rng heads 3 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x9x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @attention_c1_out(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'rt.attention' op needs 'value' to be [2, 8, 12] of 'f32', but got 'tensor<2x8x24xf32>'}}
  %y:2 = rt.attention %q, %q, %q, %rng heads 3 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x12xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @attention_c1_kv(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'rt.attention' op needs 'key' to be [2, 8, 8] of 'f32', but got 'tensor<2x8x24xf32>'}}
  %y:2 = rt.attention %q, %q, %q, %rng heads 6 kv_heads 2 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_c3_kv(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'rt.attention' op needs 'kv_heads' to divide the head count, but got 4 and 6 heads}}
  %y:2 = rt.attention %q, %q, %q, %rng heads 6 kv_heads 4 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_c2(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'rt.attention' op needs 'lse' to be [2, 3, 8] of f32, but got 'tensor<2x8x3xf32>'}}
  %y:2 = rt.attention %q, %q, %q, %rng heads 3 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x8x3xf32>)
  return
}

// -----

func.func @attention_c2_rng(%q: tensor<2x8x24xf32>, %rng: tensor<3xi32>) {
  // expected-error @+1 {{'rt.attention' op needs 'rng' to be 4 elements of i32, but got 'tensor<3xi32>'}}
  %y:2 = rt.attention %q, %q, %q, %rng heads 3 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<3xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @attention_c3(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'rt.attention' op needs a head count that divides the width, but got 5 heads and the width 24}}
  %y:2 = rt.attention %q, %q, %q, %rng heads 5 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @attention_c4_rate(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'rt.attention' op needs a rate in [0, 1), but got 1.000000e+00 : f32}}
  %y:2 = rt.attention %q, %q, %q, %rng heads 3 scale 1.0 rate 1.0 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @attention_c4_stream(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'rt.attention' op needs the position of a stream, at least 0, but got -1}}
  %y:2 = rt.attention %q, %q, %q, %rng heads 3 scale 1.0 rate 0.1 stream -1
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @attention_backward_c1(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>, %l: tensor<2x3x8xf32>) {
  // expected-error @+1 {{'rt.attention_backward' op needs 'dvalue' to be 'tensor<2x8x24xf32>', but got 'tensor<2x8x12xf32>'}}
  %y:3 = rt.attention_backward %q, %q, %q, %q, %l, %q, %rng heads 3 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x3x8xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x12xf32>)
  return
}

// -----

func.func @scatter_add_c1_sum(%t: tensor<307xf32>, %i: tensor<2x8xi32>, %r: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'rt.scatter_add' op needs 'sum' to be [V, C] of f32, but got 'tensor<307xf32>'}}
  %y = rt.scatter_add %t, %r at %i : (tensor<307xf32>, tensor<2x8x24xf32>, tensor<2x8xi32>) -> tensor<307xf32>
  return
}

// -----

func.func @scatter_add_c1_out(%t: tensor<307x24xf32>, %i: tensor<2x8xi32>, %r: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'rt.scatter_add' op needs 'out' of the type of 'sum', 'tensor<307x24xf32>', but got 'tensor<306x24xf32>'}}
  %y = rt.scatter_add %t, %r at %i : (tensor<307x24xf32>, tensor<2x8x24xf32>, tensor<2x8xi32>) -> tensor<306x24xf32>
  return
}

// -----

func.func @scatter_add_c2_ids(%t: tensor<307x24xf32>, %i: tensor<2x8xi64>, %r: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'rt.scatter_add' op needs 'ids' to be i32, but got 'tensor<2x8xi64>'}}
  %y = rt.scatter_add %t, %r at %i : (tensor<307x24xf32>, tensor<2x8x24xf32>, tensor<2x8xi64>) -> tensor<307x24xf32>
  return
}

// -----

func.func @scatter_add_c2_rows(%t: tensor<307x24xf32>, %i: tensor<2x8xi32>, %r: tensor<2x7x24xf32>) {
  // expected-error @+1 {{'rt.scatter_add' op needs 16 rows of 24 columns of f32 or bf16, but got 'tensor<2x7x24xf32>'}}
  %y = rt.scatter_add %t, %r at %i : (tensor<307x24xf32>, tensor<2x7x24xf32>, tensor<2x8xi32>) -> tensor<307x24xf32>
  return
}

// -----

func.func @scatter_add_c3_rank(%t: tensor<307x24xf32>, %r: tensor<16x24xf32>) {
  // expected-error @+1 {{'rt.scatter_add' op needs 'rows' without ids to be [B, T, 24] of f32 or bf16 with T of at most 307, but got 'tensor<16x24xf32>'}}
  %y = rt.scatter_add %t, %r : (tensor<307x24xf32>, tensor<16x24xf32>) -> tensor<307x24xf32>
  return
}

// -----

func.func @scatter_add_c3_length(%t: tensor<307x24xf32>, %r: tensor<2x308x24xf32>) {
  // expected-error @+1 {{'rt.scatter_add' op needs 'rows' without ids to be [B, T, 24] of f32 or bf16 with T of at most 307, but got 'tensor<2x308x24xf32>'}}
  %y = rt.scatter_add %t, %r : (tensor<307x24xf32>, tensor<2x308x24xf32>) -> tensor<307x24xf32>
  return
}

// -----

func.func @block_sums_c1(%g: tensor<16385xf32>) {
  // expected-error @+1 {{'rt.block_sums' op needs a result of 2 elements, one for each block of 16384, but got 'tensor<1xf32>'}}
  %s = rt.block_sums %g : (tensor<16385xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @stream() {
  // expected-error @+1 {{'rt.stream' op attribute 'index' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %i = rt.stream -1
  return
}

// -----

// Attributes.

func.func @role() {
  // expected-error @+1 {{'rt.buffer' op needs 'rt.role' to be tokens, targets, rng, lr, bias_correction1, bias_correction2, loss, grad_norm, sample_tokens, position, logits, eval_loss or batches, but got "los"}}
  %b = rt.buffer at <device, 0> {rt.role = "los"} : memref<f32>
  return
}

// -----

func.func @state() {
  // expected-error @+1 {{'rt.buffer' op needs 'rt.state' to be an #rt.state, but got "w"}}
  %b = rt.buffer at <device, 0> {rt.state = "w"} : memref<f32>
  return
}

// -----

func.func @state_name() {
  // expected-error @+1 {{needs a parameter name, but got an empty one}}
  %b = rt.buffer at <device, 0> {rt.state = #rt.state<kind = gradient, parameter = "", init = zeros>} : memref<f32>
  return
}

// -----

func.func @state_none() {
  // expected-error @+1 {{needs a gradient for init none, but got a moment1}}
  %b = rt.buffer at <device, 0> {rt.state = #rt.state<kind = moment1, parameter = "w", init = none>} : memref<f32>
  return
}

// -----

func.func @state_std() {
  // expected-error @+1 {{needs 'std' with init normal and only there, but got none with init normal}}
  %b = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = normal>} : memref<f32>
  return
}

// -----

func.func @state_part() {
  // expected-error @+1 {{needs a part from 0 to one below the number of parts, but got part 3 of 3}}
  %b = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = zeros, hub = "qkv", part = 3, parts = 3>} : memref<f32>
  return
}

// -----

func.func @state_hub() {
  // expected-error @+1 {{needs the published tensor that it is part 1 of 3 of, but got no 'hub'}}
  %b = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = zeros, part = 1, parts = 3>} : memref<f32>
  return
}

// -----

func.func @state_stack() {
  // expected-error @+1 {{needs one '*' in 'hub' at most, and no parts with it, but got 'a.*' and 2 parts}}
  %b = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = zeros, hub = "a.*", parts = 2>} : memref<2x4xf32>
  return
}

// -----

func.func @cut_extent() {
  // expected-error @+2 {{needs an axis, a dimension of at least 0 and an extent of at least 1, but got 'tp', 0 and 0}}
  // expected-error @+1 {{failed to parse RT_StateAttr parameter 'cuts'}}
  %b = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = zeros, cuts = [<"tp", dim = 0, extent = 0>]>} : memref<2x4xf32>
  return
}

// -----

func.func @cut_order() {
  // expected-error @+1 {{needs cuts in the order of dimensions, each of which is cut once, but got dimension 0 behind 1}}
  %b = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = zeros, cuts = [<"tp", dim = 1, extent = 8>, <"ep", dim = 0, extent = 4>]>} : memref<2x4xf32>
  return
}

// -----

func.func @cut_axis() {
  // expected-error @+1 {{needs cuts along axes that are there once, but got 'tp' again}}
  %b = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = zeros, cuts = [<"tp", dim = 0, extent = 4>, <"tp", dim = 1, extent = 8>]>} : memref<2x4xf32>
  return
}

// -----

// What it had in place of 'cuts'.
func.func @cut_alone() {
  // expected-error @+1 {{duplicate or unknown struct parameter name: axis}}
  %b = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = zeros, axis = "tp", dim = 0, extent = 4>} : memref<2x4xf32>
  return
}

// -----

func.func @rotary_empty() {
  // expected-error @+1 {{needs at least one frequency, but got none}}
  %b = rt.buffer at <device, 0> {rt.rotary = #rt.rotary<frequencies = [], scale = 1.0 : f32>} : memref<8x4xf32>
  return
}

// -----

func.func @rotary_infinite() {
  // expected-error @+1 {{needs finite frequencies, but got INF}}
  %b = rt.buffer at <device, 0> {rt.rotary = #rt.rotary<frequencies = [1.0, 1.0e40], scale = 1.0 : f32>} : memref<8x4xf32>
  return
}

// -----

func.func @rotary_scale() {
  // expected-error @+1 {{needs a finite 'scale' in f32, but got 1.000000e+00 : f64}}
  %b = rt.buffer at <device, 0> {rt.rotary = #rt.rotary<frequencies = [1.0, 0.1], scale = 1.0 : f64>} : memref<8x4xf32>
  return
}

// -----

func.func @rotary_kind() {
  // expected-error @+1 {{needs 'rt.rotary' to be an #rt.rotary of an rt.buffer, but got 1 : i64}}
  %b = rt.buffer at <device, 0> {rt.rotary = 1} : memref<8x4xf32>
  return
}

// -----

func.func @rotary_role() {
  // expected-error @+1 {{needs to be one thing, but has 'rt.rotary' and 'rt.role'}}
  %b = rt.buffer at <device, 0> {rt.role = "lr", rt.rotary = #rt.rotary<frequencies = [1.0, 0.1], scale = 1.0 : f32>} : memref<8x4xf32>
  return
}

// -----

func.func @rotary_width() {
  // expected-error @+1 {{needs a table of f32 [T, 4] for 2 frequencies, but got 'memref<8x6xf32>'}}
  %b = rt.buffer at <device, 0> {rt.rotary = #rt.rotary<frequencies = [1.0, 0.1], scale = 1.0 : f32>} : memref<8x6xf32>
  return
}

// -----

// expected-error @+1 {{'func.func' op needs 'rt.tasks' of at least 1, but got 0 : i64}}
func.func private @tasks() attributes {rt.kernel, rt.tasks = 0}

// -----

// expected-error @+1 {{'func.func' op has no use for the attribute 'rt.kernl' with value unit}}
func.func private @unknown() attributes {rt.kernl}

// -----

func.func @buffer_c1() {
  %b = rt.buffer at <device, 64> : memref<16xf32>
  // expected-error @+1 {{needs to lie within the 64 bytes from 64 on that it is part of, but has 32 bytes from 100 on}}
  %c = rt.buffer at <device, 100> in %b(memref<16xf32>) : memref<8xf32>
  return
}

// -----

func.func @buffer_c1_before() {
  %b = rt.buffer at <device, 64> : memref<16xf32>
  // expected-error @+1 {{needs to lie within the 64 bytes from 64 on that it is part of, but has 32 bytes from 60 on}}
  %c = rt.buffer at <device, 60> in %b(memref<16xf32>) : memref<8xf32>
  return
}

// -----

func.func @buffer_c1_type() {
  %b = rt.buffer at <device, 64> : memref<16xf32>
  // expected-error @+1 {{needs the element type, an integer or float, of what it is part of, 'memref<16xf32>', but got 'memref<8xi32>'}}
  %c = rt.buffer at <device, 64> in %b(memref<16xf32>) : memref<8xi32>
  return
}

// -----

func.func @buffer_c1_no_buffer(%b: memref<16xf32>) {
  // expected-error @+1 {{needs an rt.buffer to be part of, but got}}
  %c = rt.buffer at <device, 64> in %b(memref<16xf32>) : memref<8xf32>
  return
}

// -----

func.func @view_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{needs 8 elements of 'f32' from 25 on, but got 'tensor<4x8xf32>'}}
  %v = rt.view %x from 25 : tensor<4x8xf32> to tensor<8xf32>
  return
}

// -----

func.func @view_c1_type(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{needs 8 elements of 'i32' from 0 on, but got 'tensor<4x8xf32>'}}
  %v = rt.view %x from 0 : tensor<4x8xf32> to tensor<8xi32>
  return
}

// -----

func.func @join_c1(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{needs parts of 96 elements in all, but got 64}}
  %v = rt.join %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<96xf32>
  return
}

// -----

func.func @join_c1_type(%x: tensor<4x8xi32>) {
  // expected-error @+1 {{needs parts of 'f32', but got 'tensor<4x8xi32>'}}
  %v = rt.join %x : (tensor<4x8xi32>) -> tensor<32xf32>
  return
}

// -----

// expected-error @+1 {{needs 'rt.instead' and 'rt.chip' to be the names of a kernel and of a chip, but got "attention"}}
func.func private @attention_of_one_chip() attributes {rt.kernel, rt.instead = "attention"}

// -----

// expected-error @+1 {{needs 'rt.instead' to be the name of a kernel beside it that is there for all chips, but got "nope"}}
func.func private @attention_of_one_chip() attributes {rt.kernel, rt.instead = "nope", rt.chip = "sm_90a"}

// -----

func.func private @attention() attributes {rt.kernel}
func.func private @attention_of_one_chip() attributes {rt.kernel, rt.instead = "attention", rt.chip = "sm_90a"}
// expected-error @+1 {{needs 'rt.instead' to be the name of a kernel beside it that is there for all chips, but got "attention_of_one_chip"}}
func.func private @attention_of_another_chip() attributes {rt.kernel, rt.instead = "attention_of_one_chip", rt.chip = "sm_100a"}

// -----

// A place for each result and for a workspace, each a number of bytes or -1.

func.func private @k(tensor<4xf32>) -> tensor<4xf32> attributes {rt.kernel}
func.func @step(%x: tensor<4xf32>) {
  // expected-error @+1 {{'rt.launch' op needs 'rt.known_offsets' to be 2 numbers from -1 to 1152921504606846976, for each result and the workspace of a launch or a GEMM, but got array<i64: 64>}}
  %y = rt.launch @k(%x) {rt.known_offsets = array<i64: 64>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func private @k(tensor<4xf32>) -> tensor<4xf32> attributes {rt.kernel}
func.func @step(%x: tensor<4xf32>) {
  // expected-error @+1 {{'rt.launch' op needs 'rt.known_offsets' to be 2 numbers from -1 to 1152921504606846976, for each result and the workspace of a launch or a GEMM, but got array<i64: -2, 0>}}
  %y = rt.launch @k(%x) {rt.known_offsets = array<i64: -2, 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{'builtin.module' op needs 'rt.known_offsets' to be 1 numbers}}
module attributes {rt.known_offsets = array<i64: 0>} {
}
