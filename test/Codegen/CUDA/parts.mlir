// RUN: reprise-opt %s -reprise-emit-cuda | FileCheck %s

// Parts of a buffer begin anywhere: threads have as much side by side as is aligned
// in every launch. A scalar beside them does not count.

#vector = affine_map<(d0) -> (d0)>
#scalar = affine_map<(d0) -> ()>

func.func @step() {
  %whole = rt.buffer at <device, 0> : memref<64xf32>
  %a = rt.buffer at <device, 64> in %whole(memref<64xf32>) : memref<8xf32>
  %b = rt.buffer at <device, 104> in %whole(memref<64xf32>) : memref<8xf32>
  %c = rt.buffer at <device, 140> in %whole(memref<64xf32>) : memref<8xf32>
  %s = rt.buffer at <device, 172> in %whole(memref<64xf32>) : memref<f32>
  rt.launch @anywhere(%s) to(%a) : (memref<f32>, memref<8xf32>) -> ()
  rt.launch @anywhere(%s) to(%c) : (memref<f32>, memref<8xf32>) -> ()
  rt.launch @pairs(%s) to(%b) : (memref<f32>, memref<8xf32>) -> ()
  rt.launch @vectors(%s) to(%a) : (memref<f32>, memref<8xf32>) -> ()
  return
}

// CHECK-LABEL: gpu.func @anywhere(
//       CHECK:   llvm.store %{{.*}} {alignment = 4 : i64} : vector<1xf32>
func.func private @anywhere(%s: tensor<f32>) -> tensor<8xf32> attributes {rt.kernel} {
  %empty = tensor.empty() : tensor<8xf32>
  %filled = linalg.generic {indexing_maps = [#scalar, #vector], iterator_types = ["parallel"]}
      ins(%s : tensor<f32>) outs(%empty : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<8xf32>
  return %filled : tensor<8xf32>
}

// CHECK-LABEL: gpu.func @pairs(
//       CHECK:   llvm.store %{{.*}} {alignment = 8 : i64} : vector<2xf32>
func.func private @pairs(%s: tensor<f32>) -> tensor<8xf32> attributes {rt.kernel} {
  %empty = tensor.empty() : tensor<8xf32>
  %filled = linalg.generic {indexing_maps = [#scalar, #vector], iterator_types = ["parallel"]}
      ins(%s : tensor<f32>) outs(%empty : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<8xf32>
  return %filled : tensor<8xf32>
}

// CHECK-LABEL: gpu.func @vectors(
//       CHECK:   llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>
func.func private @vectors(%s: tensor<f32>) -> tensor<8xf32> attributes {rt.kernel} {
  %empty = tensor.empty() : tensor<8xf32>
  %filled = linalg.generic {indexing_maps = [#scalar, #vector], iterator_types = ["parallel"]}
      ins(%s : tensor<f32>) outs(%empty : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<8xf32>
  return %filled : tensor<8xf32>
}

// Sums of blocks take four numbers at a time, of which they read as many at once.

// CHECK-LABEL: gpu.func @sums(
//       CHECK:   llvm.load %{{.*}} invariant {alignment = 4 : i64} : !llvm.ptr<1> -> vector<4xf32>
//   CHECK-NOT:   alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK-LABEL: gpu.func @whole_sums(
//       CHECK:   llvm.load %{{.*}} invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
func.func @add() {
  %whole = rt.buffer at <device, 512> : memref<64xf32>
  %a = rt.buffer at <device, 516> in %whole(memref<64xf32>) : memref<8xf32>
  %sum = rt.buffer at <device, 1024> : memref<1xf32>
  rt.launch @sums(%a) to(%sum) : (memref<8xf32>, memref<1xf32>) -> ()
  return
}
func.func private @sums(%a: tensor<8xf32>) -> tensor<1xf32> attributes {rt.kernel} {
  %sum = rt.block_sums %a square : (tensor<8xf32>) -> tensor<1xf32>
  return %sum : tensor<1xf32>
}
func.func private @whole_sums(%a: tensor<8xf32>) -> tensor<1xf32> attributes {rt.kernel} {
  %sum = rt.block_sums %a square : (tensor<8xf32>) -> tensor<1xf32>
  return %sum : tensor<1xf32>
}
