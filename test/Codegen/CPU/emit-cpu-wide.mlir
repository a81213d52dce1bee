// RUN: reprise-opt %s -reprise-emit-cpu=registers=both | FileCheck %s
// RUN: reprise-opt %s -reprise-emit-cpu=registers=wide | FileCheck %s --check-prefix=ONE --implicit-check-not=rt.wide --implicit-check-not=target_cpu
// RUN: reprise-opt %s -reprise-emit-cpu | FileCheck %s --check-prefix=ONE --implicit-check-not=rt.wide --implicit-check-not=target_cpu

// What computes for long has a second version, which says what it is for; it
// is no kernel that could be launched by itself.

// CHECK-LABEL: llvm.func @exponential(
//  CHECK-SAME:   attributes {rt.kernel, rt.tasks = 2 : i64, rt.wide = @exponential.wide}
//       CHECK: llvm.func @exponential.wide(
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
//   CHECK-NOT: @double.wide
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

// Attention has, with larger tiles of products: 8 rows by 2 vectors of sums in
// place of 4 by 1.

// CHECK-LABEL: llvm.func @attention(
//  CHECK-SAME:   rt.wide = @attention.wide
//       CHECK: llvm.func @attention.wide(
//  CHECK-SAME:   target_cpu = "x86-64-v4"
//       CHECK:   step %c8
func.func private @attention(%q: tensor<1x64x32xf32>, %k: tensor<1x64x32xf32>, %v: tensor<1x64x32xf32>, %rng: tensor<4xi32>) -> (tensor<1x64x32xf32>, tensor<1x1x64xf32>) attributes {rt.kernel} {
  %out, %lse = rt.attention %q, %k, %v, %rng heads 1 scale 1.000000e+00 rate 0.000000e+00 stream 0 : (tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<4xi32>) -> (tensor<1x64x32xf32>, tensor<1x1x64xf32>)
  return %out, %lse : tensor<1x64x32xf32>, tensor<1x1x64xf32>
}
