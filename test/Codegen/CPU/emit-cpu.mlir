// RUN: reprise-opt %s -reprise-emit-cpu -cse | FileCheck %s

// Whole vectors are loaded and stored without masks; the 4 elements that are
// left, by the last task alone. A scalar is read once.

// CHECK-LABEL: llvm.func @double(
//  CHECK-SAME:   %[[BUFFERS:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64)
//  CHECK-SAME:   attributes {rt.kernel, rt.tasks = 2 : i64}
//       CHECK:   scf.for %[[TASK:.*]] = %[[BEGIN]] to %[[END]]
//       CHECK:     %[[S:.*]] = llvm.load %{{.*}} : !llvm.ptr -> f32
//       CHECK:     scf.for
//  CHECK-NEXT:       %[[FROM:.*]] = llvm.getelementptr
//  CHECK-NEXT:       %[[A:.*]] = llvm.load %[[FROM]] {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
//  CHECK-NEXT:       %[[B:.*]] = vector.broadcast %[[S]]
//  CHECK-NEXT:       %[[P:.*]] = arith.mulf %[[A]], %[[B]] : vector<16xf32>
//  CHECK-NEXT:       %[[TO:.*]] = llvm.getelementptr
//  CHECK-NEXT:       llvm.store %[[P]], %[[TO]]
//       CHECK:     %[[LAST:.*]] = arith.cmpi eq, %[[TASK]]
//       CHECK:     scf.if %[[LAST]]
//       CHECK:       llvm.intr.masked.load
//       CHECK:       llvm.intr.masked.store
//   CHECK-NOT:       llvm.store
//       CHECK:   llvm.return
func.func private @double(%x: tensor<4100xf32>, %s: tensor<f32>) -> tensor<4100xf32> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<4100xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%x, %s : tensor<4100xf32>, tensor<f32>) outs(%e : tensor<4100xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<4100xf32>
  return %y : tensor<4100xf32>
}

// The random words of 64 elements are 16 blocks of 10 rounds of two products, of
// 64 bits, as lanes of 64 bits for all of them; then those of a block, which lie in
// even lanes or in odd ones, come side by side.

// CHECK-LABEL: llvm.func @words(
//       CHECK:   scf.for
//       CHECK:     scf.for {{.*}} step %c64
// CHECK-COUNT-20:    arith.muli {{.*}} : vector<8xi64>
//   CHECK-NOT:       arith.muli
//       CHECK:       vector.shuffle {{.*}} [0, 8, 2, 10, 4, 12, 6, 14]
//       CHECK:       vector.shuffle {{.*}} [1, 9, 3, 11, 5, 13, 7, 15]
// But two, of the first rounds: of what all blocks share.
// CHECK-COUNT-18:    arith.muli {{.*}} : vector<8xi64>
//   CHECK-NOT:       arith.muli
// CHECK-COUNT-4:     llvm.store {{.*}} : vector<16xi32>, !llvm.ptr
//   CHECK-NOT:   arith.muli {{.*}} : vector
//       CHECK:   llvm.return
func.func private @words() -> tensor<128xi32> attributes {rt.kernel} {
  %seed = arith.constant 7 : i32
  %e = tensor.empty() : tensor<128xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    outs(%e : tensor<128xi32>) {
  ^bb0(%out: i32):
    %i = linalg.index 0 : index
    %w = rt.random_word %i key %seed, %seed step %seed micro_batch %seed stream %seed
    linalg.yield %w : i32
  } -> tensor<128xi32>
  return %y : tensor<128xi32>
}

// The same of parts of 64 and more, which ranks have by turns: a run begins at the
// number in the whole of its first element. Parts of 96 end within runs, and draw a
// block for each element.

// CHECK-LABEL: llvm.func @words_of_parts(
//       CHECK:     scf.for {{.*}} step %c64
//       CHECK:       arith.divui {{.*}} : index
// CHECK-COUNT-38:    arith.muli {{.*}} : vector<8xi64>
//   CHECK-NOT:       arith.muli {{.*}} : vector<8xi64>
//       CHECK:   llvm.return
func.func private @words_of_parts() -> tensor<256xi32> attributes {rt.kernel} {
  %seed = arith.constant 7 : i32
  %id = rt.stream 0
  %size = arith.constant 128 : index
  %e = tensor.empty() : tensor<256xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    outs(%e : tensor<256xi32>) {
  ^bb0(%out: i32):
    %i = linalg.index 0 : index
    %rank = arith.index_cast %id : i32 to index
    %piece = arith.divui %i, %size : index
    %before = arith.muli %piece, %size : index
    %own = arith.muli %rank, %size : index
    %sum = arith.addi %i, %before : index
    %at = arith.addi %sum, %own : index
    %w = rt.random_word %at key %seed, %seed step %seed micro_batch %seed stream %seed
    linalg.yield %w : i32
  } -> tensor<256xi32>
  return %y : tensor<256xi32>
}

// CHECK-LABEL: llvm.func @words_of_odd_parts(
//       CHECK:     scf.for {{.*}} step %c64
// CHECK-COUNT-140:   arith.muli {{.*}} : vector<8xi64>
//       CHECK:   llvm.return
func.func private @words_of_odd_parts() -> tensor<192xi32> attributes {rt.kernel} {
  %seed = arith.constant 7 : i32
  %size = arith.constant 96 : index
  %e = tensor.empty() : tensor<192xi32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    outs(%e : tensor<192xi32>) {
  ^bb0(%out: i32):
    %i = linalg.index 0 : index
    %piece = arith.divui %i, %size : index
    %before = arith.muli %piece, %size : index
    %at = arith.addi %i, %before : index
    %w = rt.random_word %at key %seed, %seed step %seed micro_batch %seed stream %seed
    linalg.yield %w : i32
  } -> tensor<192xi32>
  return %y : tensor<192xi32>
}

// Arrays of different lengths: a task looks up which one it is of. Both have the
// same code, in whole vectors and in what is left.

// CHECK-DAG: llvm.mlir.global internal constant @segments.tasks(dense<[0, 1, 4, 9223372036854775807]> : tensor<4xi64>)
// CHECK-DAG: llvm.mlir.global internal constant @segments.lengths(dense<[5, 10000]> : tensor<2xi64>)
// CHECK-DAG: llvm.mlir.global internal constant @segments.buffers(dense<[0, 3, 1, 2]> : tensor<4xi64>)
// CHECK-LABEL: llvm.func @segments(
//  CHECK-SAME:   attributes {rt.kernel, rt.tasks = 4 : i64}
// CHECK-COUNT-2: arith.addf
//   CHECK-NOT:   arith.addf
//       CHECK:   llvm.return
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

// A matrix that is returned packed goes by pairs of rows, as many as a block
// has, or one: from one end to the other, past the caches, and with a fence.

// CHECK-DAG: llvm.mlir.global internal constant @packs.tasks(dense<[0, 1, 33, 9223372036854775807]> : tensor<4xi64>)
// CHECK-DAG: llvm.mlir.global internal constant @packs.pairs(dense<[21, 1]> : tensor<2xi64>)
// CHECK-DAG: llvm.mlir.global internal constant @packs.cols(dense<[96, 4128]> : tensor<2xi64>)
// CHECK-LABEL: llvm.func @packs(
//  CHECK-SAME:   attributes {rt.kernel, rt.tasks = 33 : i64}
// CHECK-COUNT-2: llvm.load {{.*}} -> vector<8xf32>
//       CHECK:   arith.truncf
//       CHECK:   llvm.store %{{.*}}, %{{.*}} {alignment = 32 : i64, nontemporal} : vector<8xi32>, !llvm.ptr
//   CHECK-NOT:   llvm.store {{.*}}bf16
//       CHECK:   llvm.call_intrinsic "llvm.x86.sse.sfence"()
//  CHECK-NEXT:   llvm.return
func.func private @packs(%x: tensor<32x96xf32>, %y: tensor<64x4128xf32>) -> (tensor<3x16x32x2xbf16>, tensor<129x32x32x2xbf16>) attributes {rt.kernel} {
  %fx = tensor.collapse_shape %x [[0, 1]] : tensor<32x96xf32> into tensor<3072xf32>
  %fy = tensor.collapse_shape %y [[0, 1]] : tensor<64x4128xf32> into tensor<264192xf32>
  %ex = tensor.empty() : tensor<3072xbf16>
  %ey = tensor.empty() : tensor<264192xbf16>
  %x2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%fx : tensor<3072xf32>) outs(%ex : tensor<3072xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %t = arith.truncf %a : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<3072xbf16>
  %y2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%fy : tensor<264192xf32>) outs(%ey : tensor<264192xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %t = arith.truncf %a : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<264192xbf16>
  %rx = tensor.expand_shape %x2 [[0, 1]] output_shape [32, 96] : tensor<3072xbf16> into tensor<32x96xbf16>
  %ry = tensor.expand_shape %y2 [[0, 1]] output_shape [64, 4128] : tensor<264192xbf16> into tensor<64x4128xbf16>
  %px = tensor.empty() : tensor<3x16x32x2xbf16>
  %py = tensor.empty() : tensor<129x32x32x2xbf16>
  %wx = linalg.pack %rx outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [32, 2] into %px : tensor<32x96xbf16> -> tensor<3x16x32x2xbf16>
  %wy = linalg.pack %ry outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [32, 2] into %py : tensor<64x4128xbf16> -> tensor<129x32x32x2xbf16>
  return %wx, %wy : tensor<3x16x32x2xbf16>, tensor<129x32x32x2xbf16>
}

// The sum of a row is known after a pass over it; then comes the pass that needs
// it. What lies between two ops and is no result is not stored: one store each.

#rc = affine_map<(r, c) -> (r, c)>
#r = affine_map<(r, c) -> (r)>

// CHECK-LABEL: llvm.func @share(
//       CHECK:   scf.for
//       CHECK:     scf.for
//       CHECK:       %[[SUMS:.*]]:4 = scf.for {{.*}} iter_args(%[[SUM:[^ ]*]] = {{.*}}, %[[SUM1:[^ ]*]] = {{.*}}, %[[SUM2:[^ ]*]] = {{.*}}, %[[SUM3:[^ ]*]] = {{.*}})
//       CHECK:         %[[X:.*]] = llvm.load
//  CHECK-NEXT:         %[[D:.*]] = arith.addf %[[X]], %[[X]] : vector<16xf32>
//  CHECK-NEXT:         %[[NEXT:.*]] = arith.addf %[[SUM]], %[[D]]
//       CHECK:         %[[NEXT1:.*]] = arith.addf %[[SUM1]],
//       CHECK:         %[[NEXT2:.*]] = arith.addf %[[SUM2]],
//       CHECK:         %[[NEXT3:.*]] = arith.addf %[[SUM3]],
//       CHECK:         scf.yield %[[NEXT]], %[[NEXT1]], %[[NEXT2]], %[[NEXT3]]
// The 8 columns that are left: the other lanes keep their sum.
//       CHECK:       %[[REST:.*]] = arith.addf %[[SUMS]]#0, %{{.*}} : vector<16xf32>
//       CHECK:       %[[FIRST:.*]] = arith.select %{{.*}}, %[[REST]], %[[SUMS]]#0
// The tree: vector v with v + 2, then 1; lane l with l + 8, then 4, 2, 1.
//  CHECK-NEXT:       %[[EVEN:.*]] = arith.addf %[[FIRST]], %[[SUMS]]#2
//  CHECK-NEXT:       %[[ODD:.*]] = arith.addf %[[SUMS]]#1, %[[SUMS]]#3
//  CHECK-NEXT:       %[[ALL:.*]] = arith.addf %[[EVEN]], %[[ODD]]
//       CHECK:       %[[LOW:.*]] = vector.shuffle %[[ALL]], %[[ALL]] [0, 1, 2, 3, 4, 5, 6, 7]
//       CHECK:       %[[HIGH:.*]] = vector.shuffle %[[ALL]], %[[ALL]] [8, 9, 10, 11, 12, 13, 14, 15]
//       CHECK:       arith.addf %[[LOW]], %[[HIGH]] : vector<8xf32>
//       CHECK:       arith.addf %{{.*}} : vector<4xf32>
//       CHECK:       arith.addf %{{.*}} : vector<2xf32>
//       CHECK:       %[[ONE:.*]] = arith.addf %{{.*}} : vector<1xf32>
//       CHECK:       %[[TOTAL:.*]] = vector.extract %[[ONE]][0]
//       CHECK:       scf.for
//       CHECK:         arith.addf
//       CHECK:         %[[T:.*]] = vector.broadcast %[[TOTAL]]
//       CHECK:         arith.divf %{{.*}}, %[[T]]
//       CHECK:         llvm.store
//   CHECK-NOT:         llvm.store
//       CHECK:       llvm.intr.masked.store
//   CHECK-NOT:       llvm.intr.masked.store
//       CHECK:   llvm.return
func.func private @share(%x: tensor<5x136xf32>) -> tensor<5x136xf32> attributes {rt.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x136xf32>
  %er = tensor.empty() : tensor<5xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%er : tensor<5xf32>) -> tensor<5xf32>
  %d = linalg.generic {indexing_maps = [#rc, #rc], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<5x136xf32>) outs(%e : tensor<5x136xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<5x136xf32>
  %sum = linalg.generic {indexing_maps = [#rc, #r], iterator_types = ["parallel", "reduction"]}
    ins(%d : tensor<5x136xf32>) outs(%zeros : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<5xf32>
  %y = linalg.generic {indexing_maps = [#rc, #r, #rc], iterator_types = ["parallel", "parallel"]}
    ins(%d, %sum : tensor<5x136xf32>, tensor<5xf32>) outs(%e : tensor<5x136xf32>) {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %t = arith.divf %a, %s : f32
    linalg.yield %t : f32
  } -> tensor<5x136xf32>
  return %y : tensor<5x136xf32>
}

// A strip of 64 columns is four vectors that walk down the rows side by side; the
// last task has 6 columns in one. The strips of a call walk down a block of rows
// one after the other; before the next block their sums wait on the stack.

// CHECK-LABEL: llvm.func @columns(
//  CHECK-SAME:   rt.tasks = 2 : i64
//       CHECK:   llvm.alloca
//       CHECK:   scf.for
//       CHECK:     scf.for
//       CHECK:       scf.if
//       CHECK:     arith.divui
//       CHECK:     scf.for
//       CHECK:       scf.for
//       CHECK:         scf.if
//       CHECK:           %{{.*}}:4 = scf.for
// CHECK-COUNT-4:           llvm.store
//       CHECK:         } else {
//       CHECK:           %{{.*}} = scf.for {{.*}} -> (vector<16xf32>)
//       CHECK:             llvm.intr.masked.load
//       CHECK:           llvm.store
//       CHECK:     scf.for
//       CHECK:       scf.if
// CHECK-COUNT-4:       llvm.store
//       CHECK:       } else {
//       CHECK:         llvm.intr.masked.store
//       CHECK:   llvm.return
func.func private @columns(%sum: tensor<70xf32> {rt.in_place = 0 : i64}, %x: tensor<9x70xf32>) -> tensor<70xf32> attributes {rt.kernel} {
  %y = linalg.generic {
    indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>],
    iterator_types = ["reduction", "parallel"]
  } ins(%x : tensor<9x70xf32>) outs(%sum : tensor<70xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<70xf32>
  return %y : tensor<70xf32>
}

// Of bf16, the two lines of a strip 16 rows below, and the one of what is left of
// the columns; nothing of what is f32.

// CHECK-LABEL: llvm.func @columns_of_bf16(
//       CHECK:   llvm.load %{{.*}} : !llvm.ptr -> !llvm.ptr
//       CHECK:   %[[X:.*]] = llvm.load %{{.*}} : !llvm.ptr -> !llvm.ptr
//       CHECK:   %[[AHEAD:.*]] = arith.constant 16 : i64
//       CHECK:   %{{.*}}:4 = scf.for %[[R:[^ ]*]] =
//       CHECK:     %[[ROW:.*]] = arith.addi %[[R]], %[[AHEAD]]
//       CHECK:     %[[BELOW:.*]] = arith.muli %[[ROW]], %{{.*}}
//       CHECK:     %[[AT:.*]] = arith.addi %[[BELOW]],
//       CHECK:     %[[LINE:.*]] = llvm.getelementptr %[[X]][%[[AT]]]
//       CHECK:     "llvm.intr.prefetch"(%[[LINE]])
//       CHECK:     llvm.intr.prefetch
//   CHECK-NOT:     llvm.intr.prefetch
//       CHECK:   } else {
//       CHECK:     llvm.intr.prefetch
//   CHECK-NOT:     llvm.intr.prefetch
//       CHECK:   llvm.return
func.func private @columns_of_bf16(%sum: tensor<70xf32> {rt.in_place = 0 : i64}, %x: tensor<9x70xbf16>, %y: tensor<9x70xf32>) -> tensor<70xf32> attributes {rt.kernel} {
  %z = linalg.generic {
    indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>],
    iterator_types = ["reduction", "parallel"]
  } ins(%x, %y : tensor<9x70xbf16>, tensor<9x70xf32>) outs(%sum : tensor<70xf32>) {
  ^bb0(%a: bf16, %b: f32, %o: f32):
    %w = arith.extf %a : bf16 to f32
    %p = arith.mulf %w, %b : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<70xf32>
  return %z : tensor<70xf32>
}

// An exponential that two phases need waits where the result will be: the phase
// of the sum stores it, the last one loads it.

// CHECK-LABEL: llvm.func @normalize(
//       CHECK:   %[[OUT:.*]] = llvm.load %{{.*}} : !llvm.ptr -> !llvm.ptr
//       CHECK:   %[[TO:.*]] = llvm.load %{{.*}} : !llvm.ptr -> !llvm.ptr
//       CHECK:   scf.for {{.*}} iter_args
//       CHECK:     math.exp
//       CHECK:     %[[AT:.*]] = llvm.getelementptr %[[TO]]
//       CHECK:     llvm.store %{{.*}}, %[[AT]]
//       CHECK:   scf.for
//   CHECK-NOT:     math.exp
//       CHECK:     %[[FROM:.*]] = llvm.getelementptr %[[TO]]
//       CHECK:     llvm.load %[[FROM]] {{.*}} vector<16xf32>
//   CHECK-NOT:     math.exp
//       CHECK:   llvm.return
func.func private @normalize(%x: tensor<5x64xf32> {rt.may_alias = 0 : i64}) -> tensor<5x64xf32> attributes {rt.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x64xf32>
  %er = tensor.empty() : tensor<5xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%er : tensor<5xf32>) -> tensor<5xf32>
  %p = linalg.generic {indexing_maps = [#rc, #rc], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<5x64xf32>) outs(%e : tensor<5x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<5x64xf32>
  %sum = linalg.generic {indexing_maps = [#rc, #r], iterator_types = ["parallel", "reduction"]}
    ins(%p : tensor<5x64xf32>) outs(%zeros : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<5xf32>
  %y = linalg.generic {indexing_maps = [#rc, #r, #rc], iterator_types = ["parallel", "parallel"]}
    ins(%p, %sum : tensor<5x64xf32>, tensor<5xf32>) outs(%e : tensor<5x64xf32>) {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %t = arith.divf %a, %s : f32
    linalg.yield %t : f32
  } -> tensor<5x64xf32>
  return %y : tensor<5x64xf32>
}

// The same where the last phase reads the input again, whose buffer that may be:
// the exponential is computed twice.

// CHECK-LABEL: llvm.func @normalize_and_add(
// CHECK-COUNT-2: math.exp
//       CHECK:   llvm.return
func.func private @normalize_and_add(%x: tensor<5x64xf32> {rt.may_alias = 0 : i64}) -> tensor<5x64xf32> attributes {rt.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<5x64xf32>
  %er = tensor.empty() : tensor<5xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%er : tensor<5xf32>) -> tensor<5xf32>
  %p = linalg.generic {indexing_maps = [#rc, #rc], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<5x64xf32>) outs(%e : tensor<5x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<5x64xf32>
  %sum = linalg.generic {indexing_maps = [#rc, #r], iterator_types = ["parallel", "reduction"]}
    ins(%p : tensor<5x64xf32>) outs(%zeros : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<5xf32>
  %y = linalg.generic {indexing_maps = [#rc, #r, #rc, #rc], iterator_types = ["parallel", "parallel"]}
    ins(%p, %sum, %x : tensor<5x64xf32>, tensor<5xf32>, tensor<5x64xf32>) outs(%e : tensor<5x64xf32>) {
  ^bb0(%a: f32, %s: f32, %b: f32, %o: f32):
    %t = arith.divf %a, %s : f32
    %u = arith.addf %t, %b : f32
    linalg.yield %u : f32
  } -> tensor<5x64xf32>
  return %y : tensor<5x64xf32>
}

// 80 queries of each of 2 x 3 heads are two tasks each. While scores are
// computed, the keys and values that come next are asked for; then, in the last
// tile of a task, the queries of the next and where the result will be written.

// CHECK-LABEL: llvm.func @attention(
//  CHECK-SAME:   rt.tasks = 12 : i64
//       CHECK:   %[[LAST:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : i64
//       CHECK:   arith.select %[[LAST]], %{{.*}} : !llvm.ptr
//       CHECK:   "llvm.intr.prefetch"(%{{.*}}) <{cache = 1 : i32, hint = 2 : i32, rw = 0 : i32}>
//       CHECK:   math.exp
//       CHECK:   scf.if %{{.*}} {
//  CHECK-NEXT:     scf.if %[[DIAGONAL:.*]] {
//       CHECK:     "llvm.intr.prefetch"(%{{.*}}) <{cache = 1 : i32, hint = 2 : i32, rw = 0 : i32}>
//       CHECK:   scf.if %[[DIAGONAL]] {
//       CHECK:     "llvm.intr.prefetch"(%{{.*}}) <{cache = 1 : i32, hint = 2 : i32, rw = 1 : i32}>
func.func private @attention(%q: tensor<2x80x24xf32>, %k: tensor<2x80x24xf32>, %v: tensor<2x80x24xf32>, %rng: tensor<4xi32>) -> (tensor<2x80x24xf32>, tensor<2x3x80xf32>) attributes {rt.kernel} {
  %o, %l = rt.attention %q, %k, %v, %rng heads 3 scale 3.5355338e-01 rate 0.0 stream 0
    : (tensor<2x80x24xf32>, tensor<2x80x24xf32>, tensor<2x80x24xf32>, tensor<4xi32>) -> (tensor<2x80x24xf32>, tensor<2x3x80xf32>)
  return %o, %l : tensor<2x80x24xf32>, tensor<2x3x80xf32>
}

// 16 blocks of queries are four tasks, each of which goes over keys once; two
// blocks of eight are one.

// CHECK-LABEL: llvm.func @attention_of_four(
//  CHECK-SAME:   rt.tasks = 4 : i64
func.func private @attention_of_four(%q: tensor<1x1024x24xf32>, %rng: tensor<4xi32>) -> (tensor<1x1024x24xf32>, tensor<1x1x1024xf32>) attributes {rt.kernel} {
  %o, %l = rt.attention %q, %q, %q, %rng heads 1 scale 3.5355338e-01 rate 0.0 stream 0
    : (tensor<1x1024x24xf32>, tensor<1x1024x24xf32>, tensor<1x1024x24xf32>, tensor<4xi32>) -> (tensor<1x1024x24xf32>, tensor<1x1x1024xf32>)
  return %o, %l : tensor<1x1024x24xf32>, tensor<1x1x1024xf32>
}

// CHECK-LABEL: llvm.func @attention_of_two(
//  CHECK-SAME:   rt.tasks = 4 : i64
func.func private @attention_of_two(%q: tensor<1x512x24xf32>, %rng: tensor<4xi32>) -> (tensor<1x512x24xf32>, tensor<1x1x512xf32>) attributes {rt.kernel} {
  %o, %l = rt.attention %q, %q, %q, %rng heads 1 scale 3.5355338e-01 rate 0.0 stream 0
    : (tensor<1x512x24xf32>, tensor<1x512x24xf32>, tensor<1x512x24xf32>, tensor<4xi32>) -> (tensor<1x512x24xf32>, tensor<1x1x512xf32>)
  return %o, %l : tensor<1x512x24xf32>, tensor<1x1x512xf32>
}

// Backward, a task is a head of keys: it walks the heads of queries that share
// them, the blocks of their queries, and those of keys that these see. 2 * 2 = 4
// tasks. The sums of keys and values are on the stack, 2 blocks of 64 rows of 16
// numbers, and written at the end, whatever the type.

// CHECK-LABEL: llvm.func @attention_backward(
//  CHECK-SAME:   rt.tasks = 4 : i64
//   CHECK-DAG:   %[[ALL:.*]] = llvm.mlir.constant(2048 : i64)
//   CHECK-DAG:   %[[SUMS:.*]] = llvm.alloca %[[ALL]] x f32
//       CHECK:   scf.for %[[TASK:[^ ]+]] =
//       CHECK:     scf.for %{{.*}} step %c64
//       CHECK:     %[[FIRST:.*]] = arith.muli %[[TASK]], %
//       CHECK:     %[[END:.*]] = arith.addi %[[FIRST]], %
//       CHECK:     scf.for %[[HEAD:[^ ]+]] = %[[FIRST]] to %[[END]] step
//       CHECK:       scf.for %[[QUERY:[^ ]+]] = %{{.*}} to %{{.*}} step %c64
//       CHECK:         %[[LAST:.*]] = arith.addi %[[QUERY]], %c0
//       CHECK:         %[[BEHIND:.*]] = arith.addi %[[LAST]], %c1
//       CHECK:         scf.for %[[KEY:[^ ]+]] = %{{.*}} to %[[BEHIND]] step %c64
//   CHECK-NOT:           arith.andi
//       CHECK:     scf.for %{{.*}} step %c64
func.func private @attention_backward(%q: tensor<2x80x24xf32>, %k: tensor<2x80x8xf32>, %v: tensor<2x80x8xf32>, %o: tensor<2x80x24xf32>, %l: tensor<2x6x80xf32>, %d: tensor<2x80x24xf32>, %rng: tensor<4xi32>) -> (tensor<2x80x24xf32>, tensor<2x80x8xf32>, tensor<2x80x8xf32>) attributes {rt.kernel} {
  %dq, %dk, %dv = rt.attention_backward %q, %k, %v, %o, %l, %d, %rng heads 6 kv_heads 2 scale 5.0e-01 rate 0.0 stream 0
    : (tensor<2x80x24xf32>, tensor<2x80x8xf32>, tensor<2x80x8xf32>, tensor<2x80x24xf32>, tensor<2x6x80xf32>, tensor<2x80x24xf32>, tensor<4xi32>) -> (tensor<2x80x24xf32>, tensor<2x80x8xf32>, tensor<2x80x8xf32>)
  return %dq, %dk, %dv : tensor<2x80x24xf32>, tensor<2x80x8xf32>, tensor<2x80x8xf32>
}

// Of 16 blocks of queries four go over keys together, up to the last of them.

// CHECK-LABEL: llvm.func @attention_backward_of_four(
//  CHECK-SAME:   rt.tasks = 1 : i64
//       CHECK:   scf.for %[[QUERY:[^ ]+]] = %{{.*}} to %{{.*}} step %c256
//       CHECK:     scf.for %{{.*}} = %c0_i64 to %c4_i64 step %c1_i64
//       CHECK:     %[[LAST:.*]] = arith.addi %[[QUERY]], %c192
//       CHECK:     %[[BEHIND:.*]] = arith.addi %[[LAST]], %c1
//       CHECK:     scf.for %[[KEY:[^ ]+]] = %{{.*}} to %[[BEHIND]] step %c64
//       CHECK:       scf.for %{{.*}} = %{{.*}} to %c4_i64 step %c1_i64
func.func private @attention_backward_of_four(%q: tensor<1x1024x24xf32>, %l: tensor<1x1x1024xf32>, %rng: tensor<4xi32>) -> (tensor<1x1024x24xf32>, tensor<1x1024x24xf32>, tensor<1x1024x24xf32>) attributes {rt.kernel} {
  %dq, %dk, %dv = rt.attention_backward %q, %q, %q, %q, %l, %q, %rng heads 1 scale 5.0e-01 rate 0.0 stream 0
    : (tensor<1x1024x24xf32>, tensor<1x1024x24xf32>, tensor<1x1024x24xf32>, tensor<1x1024x24xf32>, tensor<1x1x1024xf32>, tensor<1x1024x24xf32>, tensor<4xi32>) -> (tensor<1x1024x24xf32>, tensor<1x1024x24xf32>, tensor<1x1024x24xf32>)
  return %dq, %dk, %dv : tensor<1x1024x24xf32>, tensor<1x1024x24xf32>, tensor<1x1024x24xf32>
}

// CHECK-LABEL: llvm.func @attention_backward_bf16(
//  CHECK-SAME:   rt.tasks = 4 : i64
func.func private @attention_backward_bf16(%q: tensor<2x80x24xbf16>, %k: tensor<2x80x8xbf16>, %v: tensor<2x80x8xbf16>, %o: tensor<2x80x24xbf16>, %l: tensor<2x6x80xf32>, %d: tensor<2x80x24xbf16>, %rng: tensor<4xi32>) -> (tensor<2x80x24xbf16>, tensor<2x80x8xbf16>, tensor<2x80x8xbf16>) attributes {rt.kernel} {
  %dq, %dk, %dv = rt.attention_backward %q, %k, %v, %o, %l, %d, %rng heads 6 kv_heads 2 scale 5.0e-01 rate 0.0 stream 0
    : (tensor<2x80x24xbf16>, tensor<2x80x8xbf16>, tensor<2x80x8xbf16>, tensor<2x80x24xbf16>, tensor<2x6x80xf32>, tensor<2x80x24xbf16>, tensor<4xi32>) -> (tensor<2x80x24xbf16>, tensor<2x80x8xbf16>, tensor<2x80x8xbf16>)
  return %dq, %dk, %dv : tensor<2x80x24xbf16>, tensor<2x80x8xbf16>, tensor<2x80x8xbf16>
}

// 257 blocks need more than 2 MiB. In f32 the sums are where they belong, and
// what is the first of a block's is not added to what was there.

// CHECK-LABEL: llvm.func @attention_backward_long(
//  CHECK-SAME:   rt.tasks = 4 : i64
//       CHECK:   scf.for %[[TASK:[^ ]+]] =
//       CHECK:     %[[FIRST:.*]] = arith.muli %[[TASK]], %
//       CHECK:     scf.for %[[HEAD:[^ ]+]] = %[[FIRST]] to
//       CHECK:       %[[IS_FIRST:.*]] = arith.cmpi eq, %[[HEAD]], %[[FIRST]]
//       CHECK:       scf.for %[[QUERY:[^ ]+]] = %{{.*}} to %{{.*}} step %c64
//       CHECK:         scf.for %[[KEY:[^ ]+]] = %{{.*}} to %{{.*}} step %c64
//       CHECK:           %[[IS_NEW:.*]] = arith.andi %[[IS_FIRST]],
//       CHECK:           scf.if %[[IS_NEW]]
func.func private @attention_backward_long(%q: tensor<2x16448x24xf32>, %k: tensor<2x16448x8xf32>, %v: tensor<2x16448x8xf32>, %o: tensor<2x16448x24xf32>, %l: tensor<2x6x16448xf32>, %d: tensor<2x16448x24xf32>, %rng: tensor<4xi32>) -> (tensor<2x16448x24xf32>, tensor<2x16448x8xf32>, tensor<2x16448x8xf32>) attributes {rt.kernel} {
  %dq, %dk, %dv = rt.attention_backward %q, %k, %v, %o, %l, %d, %rng heads 6 kv_heads 2 scale 5.0e-01 rate 0.0 stream 0
    : (tensor<2x16448x24xf32>, tensor<2x16448x8xf32>, tensor<2x16448x8xf32>, tensor<2x16448x24xf32>, tensor<2x6x16448xf32>, tensor<2x16448x24xf32>, tensor<4xi32>) -> (tensor<2x16448x24xf32>, tensor<2x16448x8xf32>, tensor<2x16448x8xf32>)
  return %dq, %dk, %dv : tensor<2x16448x24xf32>, tensor<2x16448x8xf32>, tensor<2x16448x8xf32>
}

// In bf16 no gradient is rounded before it is complete: a task is a block of
// keys, or one of queries. 2 * 2 * 257 + 2 * 6 * 257 = 4112 tasks.

// CHECK-LABEL: llvm.func @attention_backward_long_bf16(
//  CHECK-SAME:   rt.tasks = 4112 : i64
//       CHECK:   scf.for %[[TASK:[^ ]+]] =
//       CHECK:     %[[IS_OF_KEYS:.*]] = arith.cmpi slt, %[[TASK]], %c1028
//       CHECK:     scf.if %[[IS_OF_KEYS]]
//       CHECK:       arith.truncf %{{.*}} : vector<16xf32> to vector<16xbf16>
//       CHECK:     } else {
//       CHECK:       arith.truncf %{{.*}} : vector<16xf32> to vector<16xbf16>
func.func private @attention_backward_long_bf16(%q: tensor<2x16448x24xbf16>, %k: tensor<2x16448x8xbf16>, %v: tensor<2x16448x8xbf16>, %o: tensor<2x16448x24xbf16>, %l: tensor<2x6x16448xf32>, %d: tensor<2x16448x24xbf16>, %rng: tensor<4xi32>) -> (tensor<2x16448x24xbf16>, tensor<2x16448x8xbf16>, tensor<2x16448x8xbf16>) attributes {rt.kernel} {
  %dq, %dk, %dv = rt.attention_backward %q, %k, %v, %o, %l, %d, %rng heads 6 kv_heads 2 scale 5.0e-01 rate 0.0 stream 0
    : (tensor<2x16448x24xbf16>, tensor<2x16448x8xbf16>, tensor<2x16448x8xbf16>, tensor<2x16448x24xbf16>, tensor<2x6x16448xf32>, tensor<2x16448x24xbf16>, tensor<4xi32>) -> (tensor<2x16448x24xbf16>, tensor<2x16448x8xbf16>, tensor<2x16448x8xbf16>)
  return %dq, %dk, %dv : tensor<2x16448x24xbf16>, tensor<2x16448x8xbf16>, tensor<2x16448x8xbf16>
}

// Rows by position: a walk over the batch and in it over the positions, whose
// rows of the table are the first ones. In place, nothing is copied.

// CHECK-LABEL: llvm.func @positions(
//  CHECK-SAME:   rt.tasks = 1 : i64
//       CHECK:   %[[APART:.*]] = llvm.icmp "ne"
//       CHECK:   scf.if %[[APART]]
//       CHECK:   %[[ALL:.*]] = arith.constant 16000 : i64
//       CHECK:   %[[LENGTH:.*]] = arith.constant 8 : i64
//       CHECK:   scf.for %[[START:.*]] = %{{.*}} to %[[ALL]] step %[[LENGTH]]
//       CHECK:     scf.for %[[T:.*]] = %{{.*}} to %[[LENGTH]]
//       CHECK:       %[[ROW:.*]] = arith.addi %[[START]], %[[T]]
//       CHECK:       arith.muli %[[T]],
//       CHECK:       arith.muli %[[ROW]],
//       CHECK:   llvm.return
func.func private @positions(%sum: tensor<16x24xf32> {rt.in_place = 0 : i64}, %d: tensor<2000x8x24xf32>) -> tensor<16x24xf32> attributes {rt.kernel} {
  %t = rt.scatter_add %sum, %d : (tensor<16x24xf32>, tensor<2000x8x24xf32>) -> tensor<16x24xf32>
  return %t : tensor<16x24xf32>
}

// What is no kernel stays.

// CHECK-LABEL: func.func @main()
func.func @main() {
  return
}
