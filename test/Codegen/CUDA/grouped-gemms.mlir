// RUN: reprise-opt %s -split-input-file -reprise-emit-cuda -verify-diagnostics | FileCheck %s --check-prefix=SHAPE
// RUN: sed '/^ *\/\/ -----/,$d' %s > %t.first && reprise-opt %t.first -reprise-lower-cuda -o %t && reprise-device %t --chip=sm_80 | FileCheck %s

// A GEMM of groups is a kernel. Blocks have 64 rows of a group, as 200 rows of
// four groups are 50 each: three tiles and, for each group and for the rows of
// none, one more. Of 96 columns there is one tile of 128. Terms of two steps are
// on their way while others are multiplied, and no sum leaves the registers.

// SHAPE-LABEL: gpu.func @forward(
//  SHAPE-SAME:   !llvm.struct<(array<5 x ptr>, array<0 x i64>)>
//  SHAPE-SAME:   rt.block = array<i64: 256, 1, 1>
//  SHAPE-SAME:   rt.grid = array<i64: 8, 1, 1>

// CHECK-LABEL: .visible .entry forward(
//   CHECK-NOT: .local
//   CHECK-DAG: cp.async.cg.shared.global
//   CHECK-DAG: cp.async.commit_group
//   CHECK-DAG: cp.async.wait_group 1
//   CHECK-DAG: bar.sync
//   CHECK-DAG: ldmatrix.sync.aligned.m8n8.x4.shared.b16
//   CHECK-DAG: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
//   CHECK-NOT: {{(atom|[^a]red)\.}}
//       CHECK: ret;
func.func private @forward(%x: tensor<100x24xbf16>, %w: tensor<4x96x24xbf16>, %offsets: tensor<5xi32>, %order: tensor<200xi32>) -> tensor<200x96xbf16> attributes {rt.kernel} {
  %y = rt.gemm %x, %w groups(%offsets) gather a order(%order) slots 2 transpose_b m 200 n 96 k 24 lda 24 ldb 24 ldc 96
    : (tensor<100x24xbf16>, tensor<4x96x24xbf16>, tensor<5xi32>, tensor<200xi32>) -> tensor<200x96xbf16>
  return %y : tensor<200x96xbf16>
}

// Sums over rows have the tiles of each group; they are added to what is there,
// in place.

// SHAPE-LABEL: gpu.func @weights(
//  SHAPE-SAME:   rt.block = array<i64: 128, 1, 1>
//  SHAPE-SAME:   rt.grid = array<i64: 4, 1, 1>

// CHECK-LABEL: .visible .entry weights(
//   CHECK-NOT: mma.sync
//       CHECK: fma.rn.f32
//       CHECK: ret;
func.func private @weights(%d: tensor<200x96xf32>, %x: tensor<200x24xf32>, %offsets: tensor<5xi32>, %sum: tensor<4x96x24xf32> {rt.in_place = 0 : i64}) -> tensor<4x96x24xf32> attributes {rt.kernel} {
  %dw = rt.gemm %d, %x groups(%offsets) addend(%sum) transpose_a m 96 n 24 k 200 lda 96 ldb 24 ldc 24
    : (tensor<200x96xf32>, tensor<200x24xf32>, tensor<5xi32>, tensor<4x96x24xf32>) -> tensor<4x96x24xf32>
  return %dw : tensor<4x96x24xf32>
}

// -----

func.func private @plain(%x: tensor<8x24xf32>, %w: tensor<24x96xf32>) -> tensor<8x96xf32> attributes {rt.kernel} {
  // expected-error @below {{needs groups to be a kernel: a library makes other GEMMs}}
  %y = rt.gemm %x, %w m 8 n 96 k 24 lda 24 ldb 96 ldc 96 : (tensor<8x24xf32>, tensor<24x96xf32>) -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}

// -----

func.func private @adds(%x: tensor<8x24xf32>, %w: tensor<1x96x24xf32>, %offsets: tensor<2xi32>, %sum: tensor<8x96xf32> {rt.in_place = 0 : i64}) -> tensor<8x96xf32> attributes {rt.kernel} {
  // expected-error @below {{needs 'transpose_a' to add to what is there on a GPU}}
  %y = rt.gemm %x, %w groups(%offsets) addend(%sum) transpose_b m 8 n 96 k 24 lda 24 ldb 24 ldc 96
    : (tensor<8x24xf32>, tensor<1x96x24xf32>, tensor<2xi32>, tensor<8x96xf32>) -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}

// -----

func.func private @shared(%x: tensor<8x24xf32> {rt.in_place = 0 : i64}, %w: tensor<1x24x24xf32>, %offsets: tensor<2xi32>) -> tensor<8x24xf32> attributes {rt.kernel} {
  // expected-error @below {{needs buffers of its own, but argument #0 of its kernel shares that of a result}}
  %y = rt.gemm %x, %w groups(%offsets) transpose_b m 8 n 24 k 24 lda 24 ldb 24 ldc 24
    : (tensor<8x24xf32>, tensor<1x24x24xf32>, tensor<2xi32>) -> tensor<8x24xf32>
  return %y : tensor<8x24xf32>
}
