// RUN: reprise-opt %s -reprise-emit-cuda | FileCheck %s

// Sums over ranks get a kernel for each number of terms and each type, which no
// launch names. What is gathered gets none, and neither does a sum of one term.

// CHECK-LABEL: func.func @step
//   CHECK-NOT:   rt.launch
func.func @step() {
  %x = rt.buffer at <device, 0> : memref<6xf32>
  %y = rt.buffer at <device, 256> : memref<2xf32>
  %h = rt.buffer at <device, 512> : memref<6xbf16>
  %w = rt.buffer at <device, 768> : memref<6xf32>
  %v = rt.buffer at <device, 1024> : memref<3xf32>
  rt.collective all_reduce(%x) to(%x) workspace(%w) over "dp" ranks 3 : (memref<6xf32>, memref<6xf32>, memref<6xf32>) -> ()
  rt.collective reduce_scatter(%x) to(%y) workspace(%w) over "dp" ranks 3 : (memref<6xf32>, memref<2xf32>, memref<6xf32>) -> ()
  rt.collective all_gather(%y) to(%x) over "dp" ranks 3 : (memref<2xf32>, memref<6xf32>) -> ()
  rt.collective all_reduce(%h) to(%h) workspace(%v) over "dp" ranks 3 : (memref<6xbf16>, memref<6xbf16>, memref<3xf32>) -> ()
  return
}

// Buffers are the terms and then the sum; the id is how many elements they have.

//       CHECK: gpu.func @reprise_sum_3xf32(
//  CHECK-SAME:   !llvm.struct<(array<4 x ptr>, array<1 x i64>)>
//  CHECK-SAME:   rt.block = array<i64: 256, 1, 1>
//       CHECK:   %[[A:.*]] = llvm.load %{{.*}} : !llvm.ptr<1> -> f32
//       CHECK:   %[[B:.*]] = llvm.load %{{.*}} : !llvm.ptr<1> -> f32
//       CHECK:   %[[C:.*]] = llvm.load %{{.*}} : !llvm.ptr<1> -> f32
//       CHECK:   %[[AB:.*]] = arith.addf %[[A]], %[[B]] : f32
//       CHECK:   %[[SUM:.*]] = arith.addf %[[AB]], %[[C]] : f32
//       CHECK:   scf.if
//       CHECK:     llvm.store %[[SUM]]

// Sums are f32, rounded once.

//       CHECK: gpu.func @reprise_sum_3xbf16(
//       CHECK:   arith.extf %{{.*}} : bf16 to f32
//       CHECK:   %[[AB:.*]] = arith.addf
//       CHECK:   %[[SUM:.*]] = arith.addf %[[AB]], %{{.*}} : f32
//       CHECK:   scf.if
//       CHECK:     arith.truncf %[[SUM]] : f32 to bf16
//   CHECK-NOT: gpu.func
