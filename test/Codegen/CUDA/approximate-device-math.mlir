// RUN: reprise-opt %s -pass-pipeline='builtin.module(gpu.module(reprise-approximate-device-math))' | FileCheck %s

gpu.module @device {

// 2^y, y the nearest to x log2(e), times what y lacks.

// CHECK-LABEL: gpu.func @exp(
//       CHECK:   arith.maximumf
//       CHECK:   arith.minimumf
//       CHECK:   %[[Y:.*]] = arith.mulf
// CHECK-COUNT-2: math.fma
//   CHECK-DAG:   %[[A:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[Y]]) : (f32) -> f32
//   CHECK-DAG:   %[[B:.*]] = math.fma
//       CHECK:   arith.mulf %[[A]], %[[B]]
//   CHECK-NOT:   ex2
gpu.func @exp(%x: f32) -> f32 {
  %r = math.exp %x : f32
  gpu.return %r : f32
}

// The same for each lane.

// CHECK-LABEL: gpu.func @lanes(
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"
//       CHECK:   vector.from_elements
gpu.func @lanes(%x: vector<2xf32>) -> vector<2xf32> {
  %r = math.rsqrt %x : vector<2xf32>
  gpu.return %r : vector<2xf32>
}

// CHECK-LABEL: gpu.func @exp2(
//  CHECK-NEXT:   llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
//  CHECK-NEXT:   gpu.return
gpu.func @exp2(%x: f32) -> f32 {
  %r = math.exp2 %x : f32
  gpu.return %r : f32
}

// What there are no instructions for is a polynomial; a square root is exact.

// CHECK-LABEL: gpu.func @others(
//   CHECK-NOT:   math.log
//   CHECK-NOT:   math.erf
//       CHECK:   math.sqrt
gpu.func @others(%x: f32) -> f32 {
  %a = math.log %x : f32
  %b = math.erf %a : f32
  %c = math.sqrt %b : f32
  gpu.return %c : f32
}

// CHECK-LABEL: gpu.func @div(
//       CHECK:   llvm.call_intrinsic "llvm.nvvm.div.full"(%{{.*}}, %{{.*}}) : (f32, f32) -> f32
//       CHECK:   arith.divf %{{.*}} : f64
gpu.func @div(%x: f32, %y: f64) -> (f32, f64) {
  %a = arith.divf %x, %x : f32
  %b = arith.divf %y, %y : f64
  gpu.return %a, %b : f32, f64
}
}
