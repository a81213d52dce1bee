// RUN: reprise-opt %s -reprise-emit-cpu=registers=both | FileCheck %s
// RUN: reprise-opt %s -reprise-emit-cpu=registers=wide | FileCheck %s --check-prefix=ONE --implicit-check-not=rt.avx512 --implicit-check-not=target_cpu
// RUN: reprise-opt %s -reprise-emit-cpu | FileCheck %s --check-prefix=ONE --implicit-check-not=rt.avx512 --implicit-check-not=target_cpu

// What computes for long has a second version, which says what it is for; it
// is no kernel that could be launched by itself.

// CHECK-LABEL: llvm.func @exponential(
//  CHECK-SAME:   attributes {rt.avx512 = @exponential.avx512, rt.kernel, rt.tasks = 2 : i64}
//       CHECK: llvm.func @exponential.avx512(
//   CHECK-NOT:   rt.kernel
//  CHECK-SAME:   attributes {passthrough = {{\[\[}}"min-legal-vector-width", "512"]], prefer_vector_width = "512", rt.tasks = 2 : i64, target_cpu = "x86-64-v4"}
//       CHECK:   math.exp

// ONE-LABEL: llvm.func @exponential(
//  ONE-SAME:   rt.kernel, rt.tasks = 2 : i64}
//       ONE:   math.exp
//   ONE-NOT:   math.exp
func.func private @exponential(%x: tensor<4112xf32>) -> tensor<4112xf32> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<4112xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%x : tensor<4112xf32>) outs(%e : tensor<4112xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<4112xf32>
  return %y : tensor<4112xf32>
}

// What streams memory has not.

// CHECK-LABEL: llvm.func @double(
//  CHECK-SAME:   attributes {rt.kernel, rt.tasks = 2 : i64}
//   CHECK-NOT: @double.avx512
// ONE-LABEL: llvm.func @double(
func.func private @double(%x: tensor<4112xf32>) -> tensor<4112xf32> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<4112xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%x : tensor<4112xf32>) outs(%e : tensor<4112xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<4112xf32>
  return %y : tensor<4112xf32>
}

// Attention has, with larger tiles of GEMMs: 8 rows by 2 vectors of sums in
// place of 4 by 1.

// CHECK-LABEL: llvm.func @attention(
//  CHECK-SAME:   rt.avx512 = @attention.avx512
//       CHECK: llvm.func @attention.avx512(
//  CHECK-SAME:   target_cpu = "x86-64-v4"
//       CHECK:   step %c8
func.func private @attention(%q: tensor<1x64x32xf32>, %k: tensor<1x64x32xf32>, %v: tensor<1x64x32xf32>, %rng: tensor<4xi32>) -> (tensor<1x64x32xf32>, tensor<1x1x64xf32>) attributes {rt.kernel} {
  %out, %lse = rt.attention %q, %k, %v, %rng heads 1 scale 1.000000e+00 rate 0.000000e+00 stream 0 : (tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<4xi32>) -> (tensor<1x64x32xf32>, tensor<1x1x64xf32>)
  return %out, %lse : tensor<1x64x32xf32>, tensor<1x1x64xf32>
}

// Of bf16 wide registers have two at a time, the even elements first: the halves
// of words, in which they are loaded and stored.

// CHECK-LABEL: llvm.func @exponential_bf16(
//       CHECK:   math.exp {{.*}} : vector<16xf32>
//       CHECK: llvm.func @exponential_bf16.avx512(
//       CHECK:   %[[WORDS:.*]] = llvm.load {{.*}} -> vector<16xi32>
//       CHECK:   %[[EVEN:.*]] = arith.trunci %[[WORDS]]
//       CHECK:   %[[HIGH:.*]] = arith.shrui %[[WORDS]]
//       CHECK:   %[[ODD:.*]] = arith.trunci %[[HIGH]]
//       CHECK:   vector.shuffle %[[EVEN]], %[[ODD]] [0, 1, 2,
//       CHECK:   math.exp {{.*}} : vector<32xf32>
//       CHECK:   arith.ori {{.*}} : vector<16xi32>
//       CHECK:   math.exp {{.*}} : vector<16xf32>
func.func private @exponential_bf16(%x: tensor<4112xbf16>) -> tensor<4112xbf16> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<4112xbf16>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%x : tensor<4112xbf16>) outs(%e : tensor<4112xbf16>) {
  ^bb0(%a: bf16, %out: bf16):
    %f = arith.extf %a : bf16 to f32
    %t = math.exp %f : f32
    %r = arith.truncf %t : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<4112xbf16>
  return %y : tensor<4112xbf16>
}
