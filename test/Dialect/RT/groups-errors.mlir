// RUN: reprise-opt %s -split-input-file -verify-diagnostics

// A kernel of a GPU has tiles of so many bytes as its elements have.
func.func @c2_format(%a: tensor<32x24xf16>, %w: tensor<4x96x24xf16>, %o: tensor<5xi32>) {
  // expected-error @+1 {{'rt.gemm' op needs 'a' to be f32 or bf16, but got 'tensor<32x24xf16>'}}
  %u = rt.gemm %a, %w groups(%o) transpose_b m 32 n 96 k 24 lda 24 ldb 24 ldc 96
    : (tensor<32x24xf16>, tensor<4x96x24xf16>, tensor<5xi32>) -> tensor<32x96xf32>
  return
}

// -----

func.func @c2_formats(%a: tensor<32x24xbf16>, %w: tensor<4x96x24xf16>, %o: tensor<5xi32>) {
  // expected-error @+1 {{'rt.gemm' op needs 'b' to be 'bf16' like 'a', but got 'tensor<4x96x24xf16>'}}
  %u = rt.gemm %a, %w groups(%o) transpose_b m 32 n 96 k 24 lda 24 ldb 24 ldc 96
    : (tensor<32x24xbf16>, tensor<4x96x24xf16>, tensor<5xi32>) -> tensor<32x96xf32>
  return
}

// -----

func.func @c9_offsets(%a: tensor<32x24xf32>, %w: tensor<4x96x24xf32>, %o: tensor<1xi32>) {
  // expected-error @+1 {{'rt.gemm' op needs 'offsets' to be i32 of at least 2 elements, but got 'tensor<1xi32>'}}
  %u = rt.gemm %a, %w groups(%o) transpose_b m 32 n 96 k 24 lda 24 ldb 24 ldc 96
    : (tensor<32x24xf32>, tensor<4x96x24xf32>, tensor<1xi32>) -> tensor<32x96xf32>
  return
}

// -----

func.func @c9_order_alone(%a: tensor<32x24xf32>, %w: tensor<4x96x24xf32>, %o: tensor<5xi32>, %r: tensor<32xi32>) {
  // expected-error @+1 {{'rt.gemm' op needs gather, order and slots together}}
  %u = rt.gemm %a, %w groups(%o) order(%r) transpose_b m 32 n 96 k 24 lda 24 ldb 24 ldc 96
    : (tensor<32x24xf32>, tensor<4x96x24xf32>, tensor<5xi32>, tensor<32xi32>) -> tensor<32x96xf32>
  return
}

// -----

func.func @c9_no_groups(%a: tensor<16x24xf32>, %w: tensor<96x24xf32>, %r: tensor<32xi32>) {
  // expected-error @+1 {{'rt.gemm' op needs groups to gather rows}}
  %u = rt.gemm %a, %w order(%r) gather a slots 2 transpose_b m 32 n 96 k 24 lda 24 ldb 24 ldc 96
    : (tensor<16x24xf32>, tensor<96x24xf32>, tensor<32xi32>) -> tensor<32x96xf32>
  return
}

// -----

func.func @c9_slots(%a: tensor<2x8x24xf32>, %w: tensor<4x96x24xf32>, %o: tensor<5xi32>, %r: tensor<32xi32>) {
  // expected-error @+1 {{'rt.gemm' op needs slots of at least 1, but got 0}}
  %u = rt.gemm %a, %w groups(%o) order(%r) gather a slots 0 transpose_b m 32 n 96 k 24 lda 24 ldb 24 ldc 96
    : (tensor<2x8x24xf32>, tensor<4x96x24xf32>, tensor<5xi32>, tensor<32xi32>) -> tensor<32x96xf32>
  return
}

// -----

func.func @c9_gather_b(%a: tensor<32x24xf32>, %w: tensor<4x96x24xf32>, %o: tensor<5xi32>, %r: tensor<32xi32>) {
  // expected-error @+1 {{'rt.gemm' op needs 'transpose_a' to gather 'b'}}
  %u = rt.gemm %a, %w groups(%o) order(%r) gather b slots 1 transpose_b m 32 n 96 k 24 lda 24 ldb 24 ldc 96
    : (tensor<32x24xf32>, tensor<4x96x24xf32>, tensor<5xi32>, tensor<32xi32>) -> tensor<32x96xf32>
  return
}

// -----

func.func @c9_bias(%a: tensor<32x24xf32>, %w: tensor<4x96x24xf32>, %o: tensor<5xi32>, %b: tensor<96xf32>) {
  // expected-error @+1 {{'rt.gemm' op needs no batch, no bias, no epilogue, no packed_b and an alpha of 1 with groups}}
  %u = rt.gemm %a, %w bias(%b) groups(%o) transpose_b m 32 n 96 k 24 lda 24 ldb 24 ldc 96
    : (tensor<32x24xf32>, tensor<4x96x24xf32>, tensor<96xf32>, tensor<5xi32>) -> tensor<32x96xf32>
  return
}

// -----

// A matrix for each group, of which there is one less than offsets.
func.func @c5_experts(%a: tensor<32x24xf32>, %w: tensor<3x96x24xf32>, %o: tensor<5xi32>) {
  // expected-error @+1 {{'rt.gemm' op needs 9216 elements in 'b', but got 6912}}
  %u = rt.gemm %a, %w groups(%o) transpose_b m 32 n 96 k 24 lda 24 ldb 24 ldc 96
    : (tensor<32x24xf32>, tensor<3x96x24xf32>, tensor<5xi32>) -> tensor<32x96xf32>
  return
}

// -----

func.func @slots_and_experts(%r: tensor<2x8x4xf32>) {
  // expected-error @+1 {{'rt.choose_experts' op needs 'ids' to be i32 [..., S] with S of at most 4, but got 'tensor<2x8x5xi32>'}}
  %ids = rt.choose_experts %r : (tensor<2x8x4xf32>) -> tensor<2x8x5xi32>
  return
}

// -----

func.func @order(%i: tensor<2x8x2xi32>) {
  // expected-error @+1 {{'rt.sort_rows' op needs 'order' to be of 32 elements, but got 'tensor<31xi32>'}}
  %a, %b, %c = rt.sort_rows %i : (tensor<2x8x2xi32>) -> (tensor<31xi32>, tensor<2x8x2xi32>, tensor<5xi32>)
  return
}

// -----

func.func @capacity(%i: tensor<2x8x2xi32>, %w: tensor<2x8x2xf32>) {
  // expected-error @+1 {{'rt.sort_rows' op needs 'order' to be of 13 elements, but got 'tensor<32xi32>'}}
  %a, %b, %c = rt.sort_rows %i by %w capacity 3 : (tensor<2x8x2xi32>, tensor<2x8x2xf32>) -> (tensor<32xi32>, tensor<2x8x2xi32>, tensor<5xi32>)
  return
}

// -----

func.func @weights(%i: tensor<2x8x2xi32>, %w: tensor<2x8x1xf32>) {
  // expected-error @+1 {{'rt.sort_rows' op needs 'weights' to be f32 with an element for each id, and a capacity, but got 'tensor<2x8x1xf32>'}}
  %a, %b, %c = rt.sort_rows %i by %w capacity 3 : (tensor<2x8x2xi32>, tensor<2x8x1xf32>) -> (tensor<13xi32>, tensor<2x8x2xi32>, tensor<5xi32>)
  return
}

// -----

func.func @choices(%i: tensor<2x8x2xi32>) {
  // expected-error @+1 {{'rt.count_choices' op needs 'rows' to be f32 [E] or [B, E], where B divides the number of ids, which are i32, but got 'tensor<3x4xf32>' and 'tensor<2x8x2xi32>'}}
  %n = rt.count_choices %i : (tensor<2x8x2xi32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @rows(%o: tensor<5xi32>, %p: tensor<4xi32>) {
  // expected-error @+1 {{'rt.count_rows' op needs 'offsets' to be i32 [E + 1] with E = 4, but got 'tensor<4xi32>'}}
  %n = rt.count_rows %o, %p : (tensor<5xi32>, tensor<4xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @c9_sums(%a: tensor<32x24xbf16>, %d: tensor<32x96xbf16>, %o: tensor<5xi32>) {
  // expected-error @+1 {{'rt.gemm' op needs 'c' to be f32 with 'transpose_a' and groups, whose rows are summed in parts, but got 'tensor<4x24x96xbf16>'}}
  %w = rt.gemm %a, %d groups(%o) transpose_a m 24 n 96 k 32 lda 24 ldb 96 ldc 96
    : (tensor<32x24xbf16>, tensor<32x96xbf16>, tensor<5xi32>) -> tensor<4x24x96xbf16>
  return
}

// -----

func.func @c9_both(%a: tensor<32x24xf32>, %d: tensor<96x32xf32>, %o: tensor<5xi32>) {
  // expected-error @+1 {{'rt.gemm' op needs no 'transpose_b' with 'transpose_a' and groups}}
  %w = rt.gemm %a, %d groups(%o) transpose_a transpose_b m 24 n 96 k 32 lda 24 ldb 32 ldc 96
    : (tensor<32x24xf32>, tensor<96x32xf32>, tensor<5xi32>) -> tensor<4x24x96xf32>
  return
}

// -----

func.func @choose_c1(%r: tensor<8x12xf32>, %b: tensor<11xf32>) {
  // expected-error @+1 {{'rt.choose_experts' op needs 'bias' to be f32 [12], but got 'tensor<11xf32>'}}
  %i = rt.choose_experts %r bias %b : (tensor<8x12xf32>, tensor<11xf32>) -> tensor<8x2xi32>
  return
}

// -----

func.func @choose_c2(%r: tensor<8x12xf32>) {
  // expected-error @+1 {{'rt.choose_experts' op needs equal groups, of which those kept have experts for all slots, but got 12 experts, 3 groups, of which 1 are kept, and 5 slots}}
  %i = rt.choose_experts %r groups 3 keep 1 : (tensor<8x12xf32>) -> tensor<8x5xi32>
  return
}

// -----

func.func @choose_c2_alone(%r: tensor<8x12xf32>) {
  // expected-error @+1 {{needs equal groups, of which those kept have experts for all slots, but got 12 experts, 3 groups, of which 0 are kept, and 5 slots}}
  %i = rt.choose_experts %r groups 3 : (tensor<8x12xf32>) -> tensor<8x5xi32>
  return
}

// -----

func.func @split_c1(%x: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'rt.split_columns' op needs 'input' to have 16 and 9 columns, but got 24}}
  %c, %k = rt.split_columns %x : (tensor<2x8x24xf32>) -> (tensor<2x8x16xf32>, tensor<2x8x9xf32>)
  return
}

// -----

func.func @join_c1(%x: tensor<2x8x16xf32>, %y: tensor<2x8x8xbf16>) {
  // expected-error @+1 {{'rt.join_columns' op needs 'right' to be f32 or bf16 of the rows of 'out', 'tensor<2x8x24xf32>', but got 'tensor<2x8x8xbf16>'}}
  %z = rt.join_columns %x, %y : (tensor<2x8x16xf32>, tensor<2x8x8xbf16>) -> tensor<2x8x24xf32>
  return
}

// -----

func.func @heads_c1(%kv: tensor<2x8x128xf32>, %r: tensor<2x8x8xf32>) {
  // expected-error @+1 {{'rt.latent_heads' op needs columns of 4 heads, of which keys have 8 in common, but got 128, 92 of keys and 64 of values}}
  %k, %v = rt.latent_heads %kv, %r heads 4 : (tensor<2x8x128xf32>, tensor<2x8x8xf32>) -> (tensor<2x8x92xf32>, tensor<2x8x64xf32>)
  return
}

// -----

func.func @heads_backward_c1(%dk: tensor<2x8x96xf32>, %dv: tensor<2x8x64xf32>) {
  // expected-error @+1 {{'rt.latent_heads_backward' op needs columns of 0 heads}}
  %kv, %r = rt.latent_heads_backward %dk, %dv heads 0 : (tensor<2x8x96xf32>, tensor<2x8x64xf32>) -> (tensor<2x8x128xf32>, tensor<2x8x8xf32>)
  return
}
