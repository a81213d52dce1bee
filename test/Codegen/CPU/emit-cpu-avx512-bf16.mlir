// RUN: reprise-opt %s -reprise-emit-cpu | FileCheck %s
// RUN: reprise-opt %s -reprise-emit-cpu=registers=wide | FileCheck %s
// RUN: reprise-opt %s -reprise-emit-cpu=registers=both | FileCheck %s

// Attention in bf16 has a version for pairs of bf16, whatever processor
// kernels are for. Of a block of keys that all queries see, a score is a sum
// of 20 terms, ten words, with zeros up to 16: words of keys, the element for
// all lanes, times rows of queries, 8 rows by 2 vectors. What comes of scores is
// rounded, in pairs of keys, which are elements of the second GEMM as they
// lie: 32 words, beginning from nothing for the first block.

// CHECK-LABEL: llvm.func @attention(
//  CHECK-SAME:   rt.avx512_bf16 = @attention.avx512_bf16, rt.kernel, rt.tasks = 4 : i64
//       CHECK: llvm.func @attention.avx512_bf16(
//   CHECK-NOT:   rt.kernel
//  CHECK-SAME:   rt.tasks = 4 : i64, target_cpu = "x86-64-v4", target_features = #llvm.target_features<["+avx512bf16"]>
//       CHECK:   scf.for %{{[^ ]+}} = %arg2 to %arg3
//       CHECK:     arith.shrui %c32_i64{{.*}}, %c1_i64
//       CHECK:       llvm.load {{.*}} -> vector<16xi32>
//       CHECK:       llvm.load {{.*}} -> i32
// CHECK-COUNT-16:   llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
//   CHECK-NOT:       llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
//       CHECK:     math.exp2
//       CHECK:     llvm.call_intrinsic "llvm.x86.avx512bf16.cvtne2ps2bf16.512"
//       CHECK:     scf.if
//       CHECK:       else
//       CHECK:     arith.shrui %c64_i64{{.*}}, %c1_i64
// CHECK-COUNT-16:   llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
//   CHECK-NOT:     llvm.x86.tile
//       CHECK:   llvm.return
func.func private @attention(%q: tensor<1x80x40xbf16>, %k: tensor<1x80x40xbf16>, %v: tensor<1x80x40xbf16>, %rng: tensor<4xi32>) -> (tensor<1x80x40xbf16>, tensor<1x2x80xf32>) attributes {rt.kernel} {
  %out, %lse = rt.attention %q, %k, %v, %rng heads 2 scale 1.250000e-01 rate 0.000000e+00 stream 0 : (tensor<1x80x40xbf16>, tensor<1x80x40xbf16>, tensor<1x80x40xbf16>, tensor<4xi32>) -> (tensor<1x80x40xbf16>, tensor<1x2x80xf32>)
  return %out, %lse : tensor<1x80x40xbf16>, tensor<1x2x80xf32>
}

// Not of f32.

// CHECK-LABEL: llvm.func @f32(
//   CHECK-NOT:   pairs
func.func private @f32(%q: tensor<1x64x32xf32>, %rng: tensor<4xi32>) -> (tensor<1x64x32xf32>, tensor<1x1x64xf32>) attributes {rt.kernel} {
  %out, %lse = rt.attention %q, %q, %q, %rng heads 1 scale 1.000000e+00 rate 0.000000e+00 stream 0 : (tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<4xi32>) -> (tensor<1x64x32xf32>, tensor<1x1x64xf32>)
  return %out, %lse : tensor<1x64x32xf32>, tensor<1x1x64xf32>
}
