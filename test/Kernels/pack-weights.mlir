// RUN: reprise-opt %s -split-input-file --pass-pipeline='builtin.module(reprise-pack-weights)' | FileCheck %s
// RUN: sed 's/^module {/module attributes {rt.gemm_workspace = 4096 : i64} {/' %s | reprise-opt -split-input-file --reprise-pack-weights | FileCheck %s --check-prefix=PLAIN
// RUN: sed 's/^module {/module attributes {rt.alignment = 32 : i64} {/' %s | reprise-opt -split-input-file --reprise-pack-weights | FileCheck %s --check-prefix=PLAIN

// A library packs for itself; packed lines are written whole.

// PLAIN-NOT: packed_b

// What GEMMs alone read is packed, transposed or not, in all schedules; the
// update writes it so. Other states of the parameter stay as they are.

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   %[[W:[^:]*]]: tensor<3x32x32x2xbf16> {nn.working = "w"}
//  CHECK-SAME:   -> (tensor<4x96xbf16>, tensor<4x64xbf16>, tensor<64x96xf32> {nn.parameter = "w"}, tensor<3x32x32x2xbf16> {nn.working = "w"})
//       CHECK:   rt.gemm %{{.*}}, %[[W]] packed_b m 4 n 96 k 64 lda 64 ldb 64 ldc 96
//       CHECK:   rt.gemm %{{.*}}, %[[W]] transpose_b packed_b m 4 n 64 k 96 lda 96 ldb 64 ldc 64
//       CHECK:   rt.launch @round({{.*}}) {{.*}} -> (tensor<64x96xf32>, tensor<3x32x32x2xbf16>)
// CHECK-LABEL: func.func @evaluate(
//  CHECK-SAME:   %[[W:[^:]*]]: tensor<3x32x32x2xbf16> {nn.working = "w"}
//       CHECK:   rt.gemm %{{.*}}, %[[W]] packed_b m 1 n 96 k 64 lda 64 ldb 64 ldc 96
// CHECK-LABEL: func.func private @round(
//  CHECK-SAME:   %{{[^:]*}}: tensor<3x32x32x2xbf16> {rt.in_place = 1 : i64}
//       CHECK:   %[[ROWS:.*]] = tensor.expand_shape %{{.*}} output_shape [64, 96] : tensor<6144xbf16> into tensor<64x96xbf16>
//       CHECK:   %[[PACKED:.*]] = linalg.pack %[[ROWS]] outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [32, 2] into %{{.*}} : tensor<64x96xbf16> -> tensor<3x32x32x2xbf16>
//       CHECK:   return %{{.*}}, %[[PACKED]]

module {
  func.func @step(%x: tensor<4x64xbf16>, %p: tensor<64x96xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}, %w: tensor<64x96xbf16> {nn.working = "w"})
      -> (tensor<4x96xbf16>, tensor<4x64xbf16>, tensor<64x96xf32> {nn.parameter = "w"}, tensor<64x96xbf16> {nn.working = "w"}) {
    %y = rt.gemm %x, %w m 4 n 96 k 64 lda 64 ldb 96 ldc 96 : (tensor<4x64xbf16>, tensor<64x96xbf16>) -> tensor<4x96xbf16>
    %dx = rt.gemm %y, %w transpose_b m 4 n 64 k 96 lda 96 ldb 96 ldc 64 : (tensor<4x96xbf16>, tensor<64x96xbf16>) -> tensor<4x64xbf16>
    rt.update
    %n:2 = rt.launch @round(%p, %w) : (tensor<64x96xf32>, tensor<64x96xbf16>) -> (tensor<64x96xf32>, tensor<64x96xbf16>)
    return %y, %dx, %n#0, %n#1 : tensor<4x96xbf16>, tensor<4x64xbf16>, tensor<64x96xf32>, tensor<64x96xbf16>
  }
  func.func @evaluate(%x: tensor<1x64xbf16>, %w: tensor<64x96xbf16> {nn.working = "w"}) -> tensor<1x96xbf16> {
    %y = rt.gemm %x, %w m 1 n 96 k 64 lda 64 ldb 96 ldc 96 : (tensor<1x64xbf16>, tensor<64x96xbf16>) -> tensor<1x96xbf16>
    return %y : tensor<1x96xbf16>
  }
  func.func private @round(%p: tensor<64x96xf32> {rt.in_place = 0 : i64}, %w: tensor<64x96xbf16> {rt.in_place = 1 : i64}) -> (tensor<64x96xf32>, tensor<64x96xbf16>) attributes {rt.kernel} {
    %flat = tensor.collapse_shape %p [[0, 1]] : tensor<64x96xf32> into tensor<6144xf32>
    %e0 = tensor.empty() : tensor<6144xf32>
    %e1 = tensor.empty() : tensor<6144xbf16>
    %r:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%flat : tensor<6144xf32>) outs(%e0, %e1 : tensor<6144xf32>, tensor<6144xbf16>) {
    ^bb0(%a: f32, %o0: f32, %o1: bf16):
      %b = arith.truncf %a : f32 to bf16
      linalg.yield %a, %b : f32, bf16
    } -> (tensor<6144xf32>, tensor<6144xbf16>)
    %0 = tensor.expand_shape %r#0 [[0, 1]] output_shape [64, 96] : tensor<6144xf32> into tensor<64x96xf32>
    %1 = tensor.expand_shape %r#1 [[0, 1]] output_shape [64, 96] : tensor<6144xbf16> into tensor<64x96xbf16>
    return %0, %1 : tensor<64x96xf32>, tensor<64x96xbf16>
  }
}

// -----

// What something else reads, as one schedule alone does, stays: A, a bias, a
// part, a batch, a launch. So does what is no multiple of 32, and f32.

// CHECK-LABEL: func.func @step(
//   CHECK-NOT:   packed_b
// CHECK-LABEL: func.func @evaluate(
//   CHECK-NOT:   packed_b
// CHECK-LABEL: func.func @sample(
//       CHECK:   rt.gemm %{{.*}}, %{{.*}} packed_b
//   CHECK-NOT:   packed_b
module {
  func.func @step(%x: tensor<64x64xbf16>, %a: tensor<64x64xbf16> {nn.working = "a"}, %c: tensor<64x64xbf16> {nn.working = "c"}, %d: tensor<64x64xbf16> {nn.working = "d"},
                  %e: tensor<64x64xbf16> {nn.working = "e"}, %f: tensor<64x48xbf16> {nn.working = "f"}, %g: tensor<40x64xbf16> {nn.working = "g"})
      -> (tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x32xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x48xbf16>, tensor<64x64xbf16>) {
    %0 = rt.gemm %a, %x m 64 n 64 k 64 lda 64 ldb 64 ldc 64 : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
    %1 = rt.gemm %x, %a m 64 n 64 k 64 lda 64 ldb 64 ldc 64 : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
    %2 = rt.gemm %x, %c m 64 n 32 k 64 lda 64 ldb 64 ldc 32 : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x32xbf16>
    %3 = rt.gemm %x, %d m 32 n 64 k 64 lda 64 ldb 64 ldc 64 batch [2, 1] strides [2048, 0], [0, 0], [2048, 0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
    %4 = rt.gemm %x, %e m 64 n 64 k 64 lda 64 ldb 64 ldc 64 : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
    %5 = rt.gemm %x, %f m 64 n 48 k 64 lda 64 ldb 48 ldc 48 : (tensor<64x64xbf16>, tensor<64x48xbf16>) -> tensor<64x48xbf16>
    %6 = rt.gemm %x, %g m 64 n 64 k 40 lda 64 ldb 64 ldc 64 : (tensor<64x64xbf16>, tensor<40x64xbf16>) -> tensor<64x64xbf16>
    return %0, %1, %2, %3, %4, %5, %6 : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x32xbf16>, tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x48xbf16>, tensor<64x64xbf16>
  }
  func.func @evaluate(%e: tensor<64x64xbf16> {nn.working = "e"}) -> tensor<64x64xbf16> {
    %0 = rt.launch @copy(%e) : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
    return %0 : tensor<64x64xbf16>
  }
  func.func @sample(%x: tensor<64x64xbf16>, %h: tensor<64x64xbf16> {nn.working = "h"}, %y: tensor<64x64xbf16>) -> (tensor<64x64xbf16>, tensor<64x64xbf16>) {
    %0 = rt.gemm %x, %h m 64 n 64 k 64 lda 64 ldb 64 ldc 64 : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
    %1 = rt.gemm %x, %y m 64 n 64 k 64 lda 64 ldb 64 ldc 64 : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
    return %0, %1 : tensor<64x64xbf16>, tensor<64x64xbf16>
  }
  func.func private @copy(%x: tensor<64x64xbf16>) -> tensor<64x64xbf16> attributes {rt.kernel} {
    %flat = tensor.collapse_shape %x [[0, 1]] : tensor<64x64xbf16> into tensor<4096xbf16>
    %e = tensor.empty() : tensor<4096xbf16>
    %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%flat : tensor<4096xbf16>) outs(%e : tensor<4096xbf16>) {
    ^bb0(%a: bf16, %o: bf16):
      linalg.yield %a : bf16
    } -> tensor<4096xbf16>
    %0 = tensor.expand_shape %r [[0, 1]] output_shape [64, 64] : tensor<4096xbf16> into tensor<64x64xbf16>
    return %0 : tensor<64x64xbf16>
  }
}

// -----

// One kernel updates three weights. That of the first launch is read by another
// kernel, too, and takes the second along, whose update is the same kernel; the
// third has one of its own.

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   tensor<32x32xbf16> {nn.working = "a"}, %{{[^:]*}}: tensor<32x32xbf16> {nn.working = "b"}, %{{[^:]*}}: tensor<1x16x32x2xbf16> {nn.working = "c"}
//   CHECK-NOT:   packed_b
//       CHECK:   rt.launch @one(
//       CHECK:   rt.launch @one(
//       CHECK:   rt.gemm %{{.*}}, %{{.*}} packed_b
//       CHECK:   rt.launch @other({{.*}} -> tensor<1x16x32x2xbf16>
// CHECK-LABEL: func.func private @one(
//   CHECK-NOT:   linalg.pack
// CHECK-LABEL: func.func private @other(
//       CHECK:   linalg.pack
module {
  func.func @step(%p: tensor<32x32xf32>, %a: tensor<32x32xbf16> {nn.working = "a"}, %b: tensor<32x32xbf16> {nn.working = "b"}, %c: tensor<32x32xbf16> {nn.working = "c"})
      -> (tensor<32x32xbf16> {nn.working = "a"}, tensor<32x32xbf16> {nn.working = "b"}, tensor<32x32xbf16> {nn.working = "c"}, tensor<32x32xbf16>, tensor<32x32xbf16>) {
    %x = rt.launch @copy(%a) : (tensor<32x32xbf16>) -> tensor<32x32xbf16>
    %y = rt.gemm %x, %b m 32 n 32 k 32 lda 32 ldb 32 ldc 32 : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
    %0 = rt.launch @one(%p, %a) : (tensor<32x32xf32>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
    %1 = rt.launch @one(%p, %b) : (tensor<32x32xf32>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
    %z = rt.gemm %y, %c m 32 n 32 k 32 lda 32 ldb 32 ldc 32 : (tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
    %2 = rt.launch @other(%p, %c) : (tensor<32x32xf32>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
    return %0, %1, %2, %y, %z : tensor<32x32xbf16>, tensor<32x32xbf16>, tensor<32x32xbf16>, tensor<32x32xbf16>, tensor<32x32xbf16>
  }
  func.func private @copy(%x: tensor<32x32xbf16>) -> tensor<32x32xbf16> attributes {rt.kernel} {
    return %x : tensor<32x32xbf16>
  }
  func.func private @one(%p: tensor<32x32xf32>, %w: tensor<32x32xbf16> {rt.in_place = 0 : i64}) -> tensor<32x32xbf16> attributes {rt.kernel} {
    %flat = tensor.collapse_shape %p [[0, 1]] : tensor<32x32xf32> into tensor<1024xf32>
    %e = tensor.empty() : tensor<1024xbf16>
    %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%flat : tensor<1024xf32>) outs(%e : tensor<1024xbf16>) {
    ^bb0(%a: f32, %o: bf16):
      %b = arith.truncf %a : f32 to bf16
      linalg.yield %b : bf16
    } -> tensor<1024xbf16>
    %0 = tensor.expand_shape %r [[0, 1]] output_shape [32, 32] : tensor<1024xbf16> into tensor<32x32xbf16>
    return %0 : tensor<32x32xbf16>
  }
  func.func private @other(%p: tensor<32x32xf32>, %w: tensor<32x32xbf16> {rt.in_place = 0 : i64}) -> tensor<32x32xbf16> attributes {rt.kernel} {
    %flat = tensor.collapse_shape %p [[0, 1]] : tensor<32x32xf32> into tensor<1024xf32>
    %e = tensor.empty() : tensor<1024xbf16>
    %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%flat : tensor<1024xf32>) outs(%e : tensor<1024xbf16>) {
    ^bb0(%a: f32, %o: bf16):
      %n = arith.negf %a : f32
      %b = arith.truncf %n : f32 to bf16
      linalg.yield %b : bf16
    } -> tensor<1024xbf16>
    %0 = tensor.expand_shape %r [[0, 1]] output_shape [32, 32] : tensor<1024xbf16> into tensor<32x32xbf16>
    return %0 : tensor<32x32xbf16>
  }
}

// -----

// What is no text of ours stays as it is, too: a copy in a buffer, a kernel that
// is declared, makes the copy of an index, in place of a result there is not or
// of one that has another's place, a new copy from elsewhere.

// CHECK-LABEL: func.func @step(
//   CHECK-NOT:   x32x2xbf16
module {
  func.func @step(%p: tensor<32x32xf32>, %a: memref<32x32xbf16> {nn.working = "a"}, %b: tensor<32x32xbf16> {nn.working = "b"}, %c: tensor<32x32xbf16> {nn.working = "c"},
                  %d: tensor<32x32xbf16> {nn.working = "d"}, %e: tensor<32x32xbf16> {nn.working = "e"}, %f: tensor<32x32xbf16> {nn.working = "f"})
      -> (tensor<32x32xbf16> {nn.working = "b"}, tensor<32x32xbf16> {nn.working = "c"}, tensor<32x32xbf16> {nn.working = "d"}, tensor<32x32xbf16> {nn.working = "e"}, tensor<32x32xbf16> {nn.working = "f"}) {
    %0 = rt.launch @declared(%p, %b) : (tensor<32x32xf32>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
    %1 = rt.launch @numbers(%p, %c) : (tensor<32x32xf32>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
    %2 = rt.launch @nowhere(%p, %d) : (tensor<32x32xf32>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
    %3 = rt.launch @shared(%p, %f, %f) : (tensor<32x32xf32>, tensor<32x32xbf16>, tensor<32x32xbf16>) -> tensor<32x32xbf16>
    return %0, %1, %2, %2, %3 : tensor<32x32xbf16>, tensor<32x32xbf16>, tensor<32x32xbf16>, tensor<32x32xbf16>, tensor<32x32xbf16>
  }
  func.func private @shared(%p: tensor<32x32xf32>, %w: tensor<32x32xbf16> {rt.in_place = 0 : i64}, %v: tensor<32x32xbf16> {rt.in_place = 0 : i64}) -> tensor<32x32xbf16> attributes {rt.kernel} {
    %flat = tensor.collapse_shape %p [[0, 1]] : tensor<32x32xf32> into tensor<1024xf32>
    %e = tensor.empty() : tensor<1024xbf16>
    %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%flat : tensor<1024xf32>) outs(%e : tensor<1024xbf16>) {
    ^bb0(%a: f32, %o: bf16):
      %b = arith.truncf %a : f32 to bf16
      linalg.yield %b : bf16
    } -> tensor<1024xbf16>
    %0 = tensor.expand_shape %r [[0, 1]] output_shape [32, 32] : tensor<1024xbf16> into tensor<32x32xbf16>
    return %0 : tensor<32x32xbf16>
  }
  func.func private @declared(%p: tensor<32x32xf32>, %w: tensor<32x32xbf16> {rt.in_place = 0 : i64}) -> tensor<32x32xbf16> attributes {rt.kernel}
  func.func private @numbers(%p: tensor<32x32xf32>, %w: tensor<32x32xbf16> {rt.in_place = 0 : i64}) -> tensor<32x32xbf16> attributes {rt.kernel} {
    %e = tensor.empty() : tensor<1024xbf16>
    %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<1024xbf16>) {
    ^bb0(%o: bf16):
      %i = linalg.index 0 : index
      %n = arith.index_cast %i : index to i32
      %b = arith.sitofp %n : i32 to bf16
      linalg.yield %b : bf16
    } -> tensor<1024xbf16>
    %0 = tensor.expand_shape %r [[0, 1]] output_shape [32, 32] : tensor<1024xbf16> into tensor<32x32xbf16>
    return %0 : tensor<32x32xbf16>
  }
  func.func private @nowhere(%p: tensor<32x32xf32>, %w: tensor<32x32xbf16> {rt.in_place = 7 : i64}) -> tensor<32x32xbf16> attributes {rt.kernel} {
    return %w : tensor<32x32xbf16>
  }
}
