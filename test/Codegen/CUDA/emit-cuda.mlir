// RUN: reprise-opt %s -reprise-emit-cuda=chip=sm_90a | FileCheck %s

// The schedule finds kernels where they are now.

// CHECK-LABEL: func.func @step
//       CHECK:   rt.launch @double
func.func @step() {
  %x = rt.buffer at <device, 0> : memref<4102xf32>
  %s = rt.buffer at <device, 16640> : memref<f32>
  rt.launch @double(%x, %s) to (%x) : (memref<4102xf32>, memref<f32>, memref<4102xf32>) -> ()
  return
}

// All kernels are in one module, for one chip. A kernel has one argument: its
// buffers and the ids of its random streams. Threads have 16 bytes each; the 4
// elements that are left are one thread's.

// CHECK-LABEL: gpu.module @device [#nvvm.target<{{.*}}chip = "sm_90a">]
// CHECK-LABEL: gpu.func @double(
//  CHECK-SAME:   %[[ARGS:.*]]: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.struct<(array<3 x ptr>, array<0 x i64>)>}) kernel
//  CHECK-SAME:   known_block_size = array<i32: 256, 1, 1>
//  CHECK-SAME:   rt.block = array<i64: 256, 1, 1>, rt.bytes = 32820 : i64, rt.grid = array<i64: 5, 1, 1>, rt.kernel, rt.shared = 0 : i64
//       CHECK:   %[[THERE:.*]] = arith.cmpi slt, {{.*}}
//       CHECK:   llvm.load %{{.*}} invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
//       CHECK:   llvm.load %{{.*}} invariant {alignment = 4 : i64} : !llvm.ptr<1> -> f32
//       CHECK:   scf.if %[[THERE]]
//       CHECK:     llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
//       CHECK:   scf.if
//       CHECK:     llvm.intr.masked.load
//       CHECK:     llvm.intr.masked.store
//   CHECK-NOT:     llvm.store
//       CHECK:   gpu.return
func.func private @double(%x: tensor<4102xf32>, %s: tensor<f32>) -> tensor<4102xf32> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<4102xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%x, %s : tensor<4102xf32>, tensor<f32>) outs(%e : tensor<4102xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<4102xf32>
  return %y : tensor<4102xf32>
}

// A thread of many elements has two chunks, and reads both before it writes. What
// may be overwritten is not read as constant.

// CHECK-LABEL: gpu.func @twice(
//  CHECK-SAME:   rt.grid = array<i64: 8192, 1, 1>
//   CHECK-NOT:   invariant
// CHECK-COUNT-2: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xi16>
//   CHECK-NOT:   llvm.load {{.*}} vector
// CHECK-COUNT-2: llvm.store {{.*}} {alignment = 16 : i64} : vector<8xi16>, !llvm.ptr<1>
//       CHECK:   gpu.return
func.func private @twice(%x: tensor<33554432xbf16> {rt.may_alias = 0 : i64}) -> tensor<33554432xbf16> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<33554432xbf16>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%x : tensor<33554432xbf16>) outs(%e : tensor<33554432xbf16>) {
  ^bb0(%a: bf16, %out: bf16):
    %f = arith.extf %a : bf16 to f32
    %t = arith.addf %f, %f : f32
    %r = arith.truncf %t : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<33554432xbf16>
  return %y : tensor<33554432xbf16>
}

// Four elements share one block of random words: 10 rounds of two products.

// CHECK-LABEL: gpu.func @words(
//  CHECK-SAME:   array<1 x i64>
// CHECK-COUNT-20: arith.mului_extended {{.*}} : i32
//   CHECK-NOT:   arith.mului_extended
//       CHECK:   vector.from_elements {{.*}} : vector<4xi32>
//       CHECK:   gpu.return
func.func private @words() -> tensor<1024xi32> attributes {rt.kernel} {
  %seed = arith.constant 7 : i32
  %id = rt.stream 0
  %e = tensor.empty() : tensor<1024xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    outs(%e : tensor<1024xi32>) {
  ^bb0(%out: i32):
    %i = linalg.index 0 : index
    %w = rt.random_word %i key %seed, %seed step %seed micro_batch %seed stream %id
    linalg.yield %w : i32
  } -> tensor<1024xi32>
  return %y : tensor<1024xi32>
}

// Of parts that ranks have by turns, too, four elements are side by side.

// CHECK-LABEL: gpu.func @words_of_parts(
//       CHECK:   arith.divui {{.*}} : index
// CHECK-COUNT-20: arith.mului_extended {{.*}} : i32
//   CHECK-NOT:   arith.mului_extended
//       CHECK:   vector.from_elements {{.*}} : vector<4xi32>
//       CHECK:   gpu.return
func.func private @words_of_parts() -> tensor<1024xi32> attributes {rt.kernel} {
  %seed = arith.constant 7 : i32
  %size = arith.constant 12 : index
  %e = tensor.empty() : tensor<1024xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    outs(%e : tensor<1024xi32>) {
  ^bb0(%out: i32):
    %i = linalg.index 0 : index
    %piece = arith.divui %i, %size : index
    %before = arith.muli %piece, %size : index
    %at = arith.addi %i, %before : index
    %w = rt.random_word %at key %seed, %seed step %seed micro_batch %seed stream %seed
    linalg.yield %w : i32
  } -> tensor<1024xi32>
  return %y : tensor<1024xi32>
}

// A row of 768 is one warp's: 6 chunks of 4 for each thread, read once and kept
// for the second phase. No shared memory, no barrier.

// CHECK-LABEL: gpu.func @warp_rows(
//  CHECK-SAME:   rt.block = array<i64: 128, 1, 1>
//  CHECK-SAME:   rt.grid = array<i64: 8, 1, 1>
//  CHECK-SAME:   rt.shared = 0 : i64
//   CHECK-NOT:   gpu.barrier
// CHECK-COUNT-6: llvm.load {{.*}} vector<4xf32>
//       CHECK:   gpu.shuffle xor
// CHECK-COUNT-4: gpu.shuffle xor
//   CHECK-NOT:   gpu.shuffle
//   CHECK-NOT:   llvm.load
// CHECK-COUNT-6: llvm.store {{.*}} vector<4xf32>
//   CHECK-NOT:   llvm.store
//       CHECK:   gpu.return
func.func private @warp_rows(%x: tensor<32x768xf32>) -> tensor<32x768xf32> attributes {rt.kernel} {
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<32xf32>
  %e = tensor.empty() : tensor<32x768xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<32xf32>) -> tensor<32xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<32x768xf32>) outs(%z : tensor<32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
    ins(%x, %s : tensor<32x768xf32>, tensor<32xf32>) outs(%e : tensor<32x768xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<32x768xf32>
  return %y : tensor<32x768xf32>
}

// A row of 2048 is 64 threads' and two of them a block's: what warps have is
// combined through shared memory, one word for each.

// CHECK-LABEL: gpu.func @block_rows(
//  CHECK-SAME:   rt.block = array<i64: 128, 1, 1>
//  CHECK-SAME:   rt.grid = array<i64: 16, 1, 1>
//  CHECK-SAME:   rt.shared = 16 : i64
// CHECK-COUNT-5: gpu.shuffle xor
//       CHECK:   llvm.store {{.*}} : f32, !llvm.ptr<3>
//       CHECK:   gpu.barrier
//       CHECK:   llvm.load {{.*}} : !llvm.ptr<3> -> f32
//       CHECK:   gpu.shuffle xor
//   CHECK-NOT:   gpu.shuffle
//       CHECK:   gpu.return
func.func private @block_rows(%x: tensor<32x2048xbf16>) -> tensor<32xf32> attributes {rt.kernel} {
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<32xf32>) -> tensor<32xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<32x2048xbf16>) outs(%z : tensor<32xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %t = arith.addf %o, %f : f32
    linalg.yield %t : f32
  } -> tensor<32xf32>
  return %s : tensor<32xf32>
}

// A row that is too long for registers is read in a loop, by 512 threads, element
// by element as its length is odd.

// CHECK-LABEL: gpu.func @long_rows(
//  CHECK-SAME:   rt.block = array<i64: 512, 1, 1>
//  CHECK-SAME:   rt.grid = array<i64: 3, 1, 1>
//       CHECK:   scf.for {{.*}} iter_args(%{{.*}}) -> (vector<1xf32>)
//       CHECK:     llvm.load %{{.*}} -> vector<1xf32>
//       CHECK:   gpu.barrier
//       CHECK:   gpu.return
func.func private @long_rows(%x: tensor<3x50257xf32>) -> tensor<3xf32> attributes {rt.kernel} {
  %low = arith.constant 0xFF800000 : f32
  %er = tensor.empty() : tensor<3xf32>
  %z = linalg.fill ins(%low : f32) outs(%er : tensor<3xf32>) -> tensor<3xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<3x50257xf32>) outs(%z : tensor<3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<3xf32>
  return %s : tensor<3xf32>
}

// Columns of many rows: a block has part of the rows, the next six of each thread
// under way; the last one of a strip adds what all have left in device memory, to
// what was there before.

// CHECK-LABEL: gpu.func @columns(
//  CHECK-SAME:   rt.grid = array<i64: 516, 1, 1>
// CHECK-COUNT-6:   nvvm.cp.async.commit.group
//   CHECK-NOT:   nvvm.cp.async.commit.group
//       CHECK:   scf.for
//       CHECK:     nvvm.cp.async.wait.group 5
//       CHECK:     llvm.load {{.*}} !llvm.ptr<3> -> vector<8xi16>
//       CHECK:     arith.addf
//       CHECK:     nvvm.cp.async.shared.global {{.*}}, 16, cache = cg, %{{.*}} : !llvm.ptr<3>, !llvm.ptr<1>, i32
//  CHECK-NEXT:     nvvm.cp.async.commit.group
//       CHECK:   gpu.shuffle xor
//       CHECK:   llvm.mlir.addressof @reprise_scratch : !llvm.ptr<1>
//       CHECK:   gpu.barrier
//       CHECK:   llvm.fence syncscope("device") acq_rel
//       CHECK:   llvm.atomicrmw uinc_wrap {{.*}} syncscope("device") monotonic
//       CHECK:   gpu.barrier
//       CHECK:   scf.if
//       CHECK:     llvm.fence
//       CHECK:     gpu.shuffle xor
//       CHECK:     %[[OLD:.*]] = llvm.load {{.*}} -> vector<8xf32>
//       CHECK:     arith.addf %[[OLD]]
//       CHECK:   gpu.return
func.func private @columns(%x: tensor<32768x768xbf16>, %old: tensor<768xf32> {rt.in_place = 0 : i64}) -> tensor<768xf32> attributes {rt.kernel} {
  %s = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>], iterator_types = ["reduction", "parallel"]}
    ins(%x : tensor<32768x768xbf16>) outs(%old : tensor<768xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %t = arith.addf %o, %f : f32
    linalg.yield %t : f32
  } -> tensor<768xf32>
  return %s : tensor<768xf32>
}

// Few rows are one block's.

// CHECK-LABEL: gpu.func @few_rows(
//  CHECK-SAME:   rt.grid = array<i64: 12, 1, 1>
//   CHECK-NOT:   llvm.atomicrmw
//       CHECK:   gpu.return
func.func private @few_rows(%x: tensor<64x384xf32>, %old: tensor<384xf32> {rt.in_place = 0 : i64}) -> tensor<384xf32> attributes {rt.kernel} {
  %s = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>], iterator_types = ["reduction", "parallel"]}
    ins(%x : tensor<64x384xf32>) outs(%old : tensor<384xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<384xf32>
  return %s : tensor<384xf32>
}

// Arrays of different lengths: a block looks up which one it is of.

// CHECK-DAG: llvm.mlir.global internal constant @segments.blocks(dense<[0, 1, 6, 9223372036854775807]> : tensor<4xi64>) {addr_space = 4 : i32
// CHECK-DAG: llvm.mlir.global internal constant @segments.lengths(dense<[5, 10000]> : tensor<2xi64>)
// CHECK-DAG: llvm.mlir.global internal constant @segments.buffers(dense<[0, 3, 1, 2]> : tensor<4xi64>)
// CHECK-LABEL: gpu.func @segments(
//  CHECK-SAME:   rt.grid = array<i64: 6, 1, 1>
//       CHECK:   gpu.return
func.func private @segments(%x: tensor<5xf32>, %y: tensor<10000xf32>) -> (tensor<10000xf32>, tensor<5xf32>) attributes {rt.kernel} {
  %ex = tensor.empty() : tensor<5xf32>
  %ey = tensor.empty() : tensor<10000xf32>
  %x2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%x : tensor<5xf32>) outs(%ex : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<5xf32>
  %y2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%y : tensor<10000xf32>) outs(%ey : tensor<10000xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<10000xf32>
  return %y2, %x2 : tensor<10000xf32>, tensor<5xf32>
}

// A block of threads has 32 rows of the table, 256 columns wide: 2048 ids are
// looked at, then the list of those found is added in order.

// CHECK-LABEL: gpu.func @scatter(
//  CHECK-SAME:   rt.grid = array<i64: 4713, 1, 1>
//  CHECK-SAME:   rt.shared = 41024 : i64
//       CHECK:   scf.for {{.*}} step %{{.*}} iter_args
//       CHECK:     llvm.load %{{.*}} invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xi32>
// CHECK-COUNT-5:   gpu.shuffle xor
//       CHECK:     gpu.barrier
//       CHECK:     scf.for
//       CHECK:       gpu.barrier
//       CHECK:       scf.for
// CHECK-COUNT-8:       arith.extf {{.*}} : bf16 to f32
//   CHECK-NOT:   atomicrmw
//       CHECK:   gpu.return
func.func private @scatter(%t: tensor<50257x768xf32> {rt.in_place = 0 : i64}, %rows: tensor<64x1024x768xbf16>, %ids: tensor<64x1024xi32>) -> tensor<50257x768xf32> attributes {rt.kernel} {
  %y = rt.scatter_add %t, %rows at %ids : (tensor<50257x768xf32>, tensor<64x1024x768xbf16>, tensor<64x1024xi32>) -> tensor<50257x768xf32>
  return %y : tensor<50257x768xf32>
}

// It moves the rows, and reads and writes those of the table that they are added
// to: 3 * 16 * 768 * 4 bytes, and 16 ids.

// CHECK-LABEL: gpu.func @few_ids(
//  CHECK-SAME:   rt.bytes = 147520 : i64
func.func private @few_ids(%t: tensor<50257x768xf32> {rt.in_place = 0 : i64}, %rows: tensor<16x768xf32>, %ids: tensor<16xi32>) -> tensor<50257x768xf32> attributes {rt.kernel} {
  %y = rt.scatter_add %t, %rows at %ids : (tensor<50257x768xf32>, tensor<16x768xf32>, tensor<16xi32>) -> tensor<50257x768xf32>
  return %y : tensor<50257x768xf32>
}

// A block of threads for each block of 16384 numbers.

// CHECK-LABEL: gpu.func @block_sums(
//  CHECK-SAME:   rt.grid = array<i64: 3, 1, 1>
//       CHECK:   scf.for
// CHECK-COUNT-4:   llvm.load {{.*}} -> vector<4xf32>
//       CHECK:   llvm.intr.masked.load
//       CHECK:   gpu.barrier
//       CHECK:   gpu.return
func.func private @block_sums(%x: tensor<20003xf32>, %y: tensor<7xf32>) -> tensor<3xf32> attributes {rt.kernel} {
  %s = rt.block_sums %x, %y square : (tensor<20003xf32>, tensor<7xf32>) -> tensor<3xf32>
  return %s : tensor<3xf32>
}
