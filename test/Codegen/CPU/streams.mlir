// RUN: reprise-opt %s -split-input-file -reprise-emit-cpu | FileCheck %s
// RUN: reprise-opt %s -split-input-file -reprise-emit-cpu=registers=wide | FileCheck %s --check-prefix=WIDE

// A kernel that moves 32 MiB leaves nothing of it in a cache: what it writes goes
// past them, in whole lines, and is there before the launch ends. What is read
// again, may lie where an input was, or is no whole lines does not.

// CHECK-LABEL: llvm.func @large(
//       CHECK:   llvm.store {{.*}} {alignment = 64 : i64, nontemporal} : vector<16xf32>
//   CHECK-NOT:   llvm.store {{.*}} : vector<16xf32>
//       CHECK:   llvm.call_intrinsic "llvm.x86.sse.sfence"
//  CHECK-NEXT:   llvm.return
func.func private @large(%x: tensor<4194304xf32>) -> tensor<4194304xf32> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<4194304xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%x : tensor<4194304xf32>) outs(%e : tensor<4194304xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<4194304xf32>
  return %y : tensor<4194304xf32>
}

// -----

// CHECK-LABEL: llvm.func @small(
//   CHECK-NOT:   nontemporal
//   CHECK-NOT:   sfence
//       CHECK:   llvm.return
func.func private @small(%x: tensor<4194288xf32>) -> tensor<4194288xf32> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<4194288xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%x : tensor<4194288xf32>) outs(%e : tensor<4194288xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<4194288xf32>
  return %y : tensor<4194288xf32>
}

// -----

// CHECK-LABEL: llvm.func @unaligned(
//   CHECK-NOT:   nontemporal
//       CHECK:   llvm.return
func.func private @unaligned(%x: tensor<4194304xf32>) -> tensor<4194304xf32> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<4194304xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%x : tensor<4194304xf32>) outs(%e : tensor<4194304xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<4194304xf32>
  return %y : tensor<4194304xf32>
}
func.func @step() {
  %x = rt.buffer at <device, 0> : memref<4194304xf32>
  %y = rt.buffer at <device, 16777216> : memref<4194304xf32>
  rt.launch @unaligned(%x) to (%y) : (memref<4194304xf32>, memref<4194304xf32>) -> ()
  return
}
func.func @evaluate() {
  %x = rt.buffer at <device, 0> : memref<4194304xf32>
  %y = rt.buffer at <device, 16777248> : memref<4194304xf32>
  rt.launch @unaligned(%x) to (%y) : (memref<4194304xf32>, memref<4194304xf32>) -> ()
  return
}

// -----

// CHECK-LABEL: llvm.func @unplanned(
//   CHECK-NOT:   nontemporal
//       CHECK:   llvm.return
func.func private @unplanned(%x: tensor<4194304xf32>) -> tensor<4194304xf32> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<4194304xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%x : tensor<4194304xf32>) outs(%e : tensor<4194304xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<4194304xf32>
  return %y : tensor<4194304xf32>
}
func.func @step(%x: memref<4194304xf32>, %y: memref<4194304xf32>) {
  rt.launch @unplanned(%x) to (%y) : (memref<4194304xf32>, memref<4194304xf32>) -> ()
  return
}

// -----

// CHECK-LABEL: llvm.func @in_place(
//   CHECK-NOT:   nontemporal
//       CHECK:   llvm.return
func.func private @in_place(%x: tensor<4194304xf32> {rt.in_place = 0 : i64}) -> tensor<4194304xf32> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<4194304xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%x : tensor<4194304xf32>) outs(%e : tensor<4194304xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<4194304xf32>
  return %y : tensor<4194304xf32>
}

// -----

// CHECK-LABEL: llvm.func @may_alias(
//   CHECK-NOT:   nontemporal
//       CHECK:   llvm.return
func.func private @may_alias(%x: tensor<4194304xf32> {rt.may_alias = 0 : i64}) -> tensor<4194304xf32> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<4194304xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%x : tensor<4194304xf32>) outs(%e : tensor<4194304xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<4194304xf32>
  return %y : tensor<4194304xf32>
}

// -----

// Whether it does is in the launches: those of the first schedule.

// CHECK-LABEL: llvm.func @apart(
//       CHECK:   llvm.store {{.*}} {alignment = 64 : i64, nontemporal} : vector<16xf32>
//       CHECK:   llvm.return
func.func private @apart(%x: tensor<4194304xf32> {rt.may_alias = 0 : i64}) -> tensor<4194304xf32> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<4194304xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%x : tensor<4194304xf32>) outs(%e : tensor<4194304xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<4194304xf32>
  return %y : tensor<4194304xf32>
}
func.func @step() {
  %x = rt.buffer at <device, 0> : memref<4194304xf32>
  %y = rt.buffer at <device, 16777216> : memref<4194304xf32>
  %z = rt.buffer at <device, 33554432> : memref<4194304xf32>
  rt.launch @apart(%x) to (%y) : (memref<4194304xf32>, memref<4194304xf32>) -> ()
  rt.launch @apart(%y) to (%z) : (memref<4194304xf32>, memref<4194304xf32>) -> ()
  return
}
func.func @evaluate() {
  %x = rt.buffer at <device, 0> : memref<4194304xf32>
  rt.launch @apart(%x) to (%x) : (memref<4194304xf32>, memref<4194304xf32>) -> ()
  return
}

// -----

// CHECK-LABEL: llvm.func @aliases(
//   CHECK-NOT:   nontemporal
//       CHECK:   llvm.return
func.func private @aliases(%x: tensor<4194304xf32> {rt.may_alias = 0 : i64}) -> tensor<4194304xf32> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<4194304xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%x : tensor<4194304xf32>) outs(%e : tensor<4194304xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<4194304xf32>
  return %y : tensor<4194304xf32>
}
func.func @step() {
  %x = rt.buffer at <device, 0> : memref<4194304xf32>
  %y = rt.buffer at <device, 16777216> : memref<4194304xf32>
  %z = rt.buffer at <device, 16777216> : memref<4194304xf32>
  rt.launch @aliases(%x) to (%y) : (memref<4194304xf32>, memref<4194304xf32>) -> ()
  rt.launch @aliases(%y) to (%z) : (memref<4194304xf32>, memref<4194304xf32>) -> ()
  return
}

// -----

// Rows less their sums: what the second pass writes. Each row is 4104 bytes, then
// 4096.

// CHECK-LABEL: llvm.func @ragged_rows(
//   CHECK-NOT:   nontemporal
//       CHECK:   llvm.return
func.func private @ragged_rows(%x: tensor<4096x1026xf32>) -> tensor<4096x1026xf32> attributes {rt.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = tensor.empty() : tensor<4096xf32>
  %init = linalg.fill ins(%zero : f32) outs(%r : tensor<4096xf32>) -> tensor<4096xf32>
  %s = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%x : tensor<4096x1026xf32>) outs(%init : tensor<4096xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %t = arith.addf %sum, %a : f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  %e = tensor.empty() : tensor<4096x1026xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x, %s : tensor<4096x1026xf32>, tensor<4096xf32>) outs(%e : tensor<4096x1026xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<4096x1026xf32>
  return %y : tensor<4096x1026xf32>
}

// -----

// Of rows that come from memory the next one is asked for behind the sum.

// CHECK-LABEL: llvm.func @rows(
//       CHECK:   scf.for
//       CHECK:   scf.for %[[R:[^ ]*]] =
//   CHECK-NOT:     llvm.intr.prefetch
//       CHECK:     scf.for {{.*}} iter_args(
//   CHECK-NOT:     llvm.intr.prefetch
//       CHECK:     scf.for
//       CHECK:       %[[NEXT:.*]] = arith.addi %[[R]], %c1_i64
//       CHECK:       %[[FIRST:.*]] = arith.muli %[[NEXT]], %c1024_i64
//       CHECK:       %[[AT:.*]] = arith.addi %[[FIRST]], %
//       CHECK:       %[[PLACE:.*]] = llvm.getelementptr %{{.*}}[%[[AT]]]
//       CHECK:       %[[LINE:.*]] = llvm.getelementptr %[[PLACE]][
//       CHECK:       "llvm.intr.prefetch"(%[[LINE]]) <{cache = 1 : i32, hint = 2 : i32, rw = 0 : i32}>
//   CHECK-NOT:       llvm.intr.prefetch
//       CHECK:       llvm.store {{.*}} {alignment = 64 : i64, nontemporal} : vector<16xf32>
//       CHECK:   llvm.call_intrinsic "llvm.x86.sse.sfence"
func.func private @rows(%x: tensor<4096x1024xf32>) -> tensor<4096x1024xf32> attributes {rt.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = tensor.empty() : tensor<4096xf32>
  %init = linalg.fill ins(%zero : f32) outs(%r : tensor<4096xf32>) -> tensor<4096xf32>
  %s = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%x : tensor<4096x1024xf32>) outs(%init : tensor<4096xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %t = arith.addf %sum, %a : f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  %e = tensor.empty() : tensor<4096x1024xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x, %s : tensor<4096x1024xf32>, tensor<4096xf32>) outs(%e : tensor<4096x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<4096x1024xf32>
  return %y : tensor<4096x1024xf32>
}

// -----

// Half as many rows mostly are in a cache.

// CHECK-LABEL: llvm.func @few_rows(
//   CHECK-NOT:   llvm.intr.prefetch
//       CHECK:   llvm.return
func.func private @few_rows(%x: tensor<2048x1024xf32>) -> tensor<2048x1024xf32> attributes {rt.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = tensor.empty() : tensor<2048xf32>
  %init = linalg.fill ins(%zero : f32) outs(%r : tensor<2048xf32>) -> tensor<2048xf32>
  %s = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%x : tensor<2048x1024xf32>) outs(%init : tensor<2048xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %t = arith.addf %sum, %a : f32
    linalg.yield %t : f32
  } -> tensor<2048xf32>
  %e = tensor.empty() : tensor<2048x1024xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x, %s : tensor<2048x1024xf32>, tensor<2048xf32>) outs(%e : tensor<2048x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<2048x1024xf32>
  return %y : tensor<2048x1024xf32>
}

// -----

// Exponentials wait where the quotients go.

// CHECK-LABEL: llvm.func @softmax(
//   CHECK-NOT:   nontemporal
//       CHECK:   llvm.return
func.func private @softmax(%x: tensor<4096x1024xf32>) -> tensor<4096x1024xf32> attributes {rt.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = tensor.empty() : tensor<4096xf32>
  %init = linalg.fill ins(%zero : f32) outs(%r : tensor<4096xf32>) -> tensor<4096xf32>
  %e = tensor.empty() : tensor<4096x1024xf32>
  %p = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x : tensor<4096x1024xf32>) outs(%e : tensor<4096x1024xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = math.exp %a : f32
    linalg.yield %t : f32
  } -> tensor<4096x1024xf32>
  %s = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%p : tensor<4096x1024xf32>) outs(%init : tensor<4096xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %t = arith.addf %sum, %a : f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%p, %s : tensor<4096x1024xf32>, tensor<4096xf32>) outs(%e : tensor<4096x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.divf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<4096x1024xf32>
  return %y : tensor<4096x1024xf32>
}

// -----

// Twice a row may go where its input was; what is left of it does not.

// CHECK-LABEL: llvm.func @two_results(
// CHECK-COUNT-4: llvm.store {{.*}} {alignment = 4 : i64} : vector<16xf32>
//   CHECK-NOT:   nontemporal
//       CHECK:   llvm.store {{.*}} {alignment = 64 : i64, nontemporal} : vector<16xf32>
//   CHECK-NOT:   llvm.store {{.*}} : vector<16xf32>
//       CHECK:   llvm.return
func.func private @two_results(%x: tensor<4096x1024xf32> {rt.may_alias = 0 : i64}) -> (tensor<4096x1024xf32>, tensor<4096x1024xf32>) attributes {rt.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = tensor.empty() : tensor<4096xf32>
  %init = linalg.fill ins(%zero : f32) outs(%r : tensor<4096xf32>) -> tensor<4096xf32>
  %e = tensor.empty() : tensor<4096x1024xf32>
  %d = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x : tensor<4096x1024xf32>) outs(%e : tensor<4096x1024xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<4096x1024xf32>
  %s = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%d : tensor<4096x1024xf32>) outs(%init : tensor<4096xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %t = arith.addf %sum, %a : f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%d, %s : tensor<4096x1024xf32>, tensor<4096xf32>) outs(%e : tensor<4096x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<4096x1024xf32>
  return %d, %y : tensor<4096x1024xf32>, tensor<4096x1024xf32>
}

// -----

// The same where no input may be: it is read again.

// CHECK-LABEL: llvm.func @read_again(
// CHECK-COUNT-4: llvm.store {{.*}} {alignment = 4 : i64} : vector<16xf32>
//   CHECK-NOT:   nontemporal
//       CHECK:   llvm.store {{.*}} {alignment = 64 : i64, nontemporal} : vector<16xf32>
//   CHECK-NOT:   llvm.store {{.*}} : vector<16xf32>
//       CHECK:   llvm.return
func.func private @read_again(%x: tensor<4096x1024xf32>) -> (tensor<4096x1024xf32>, tensor<4096x1024xf32>) attributes {rt.kernel} {
  %zero = arith.constant 0.0 : f32
  %r = tensor.empty() : tensor<4096xf32>
  %init = linalg.fill ins(%zero : f32) outs(%r : tensor<4096xf32>) -> tensor<4096xf32>
  %e = tensor.empty() : tensor<4096x1024xf32>
  %d = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%x : tensor<4096x1024xf32>) outs(%e : tensor<4096x1024xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<4096x1024xf32>
  %s = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%d : tensor<4096x1024xf32>) outs(%init : tensor<4096xf32>) {
  ^bb0(%a: f32, %sum: f32):
    %t = arith.addf %sum, %a : f32
    linalg.yield %t : f32
  } -> tensor<4096xf32>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%d, %s : tensor<4096x1024xf32>, tensor<4096xf32>) outs(%e : tensor<4096x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %t = arith.subf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<4096x1024xf32>
  return %d, %y : tensor<4096x1024xf32>, tensor<4096x1024xf32>
}

// -----

// Of bf16, half a line at a time or, of wide registers, a line.

// CHECK-LABEL: llvm.func @bf16(
//       CHECK:   llvm.store {{.*}} {alignment = 32 : i64, nontemporal} : vector<16xi16>
// WIDE-LABEL: llvm.func @bf16(
//       WIDE:   llvm.store {{.*}} {alignment = 64 : i64, nontemporal} : vector<16xi32>
func.func private @bf16(%x: tensor<8388608xbf16>) -> tensor<8388608xbf16> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<8388608xbf16>
  %y = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  } ins(%x : tensor<8388608xbf16>) outs(%e : tensor<8388608xbf16>) {
  ^bb0(%a: bf16, %out: bf16):
    %w = arith.extf %a : bf16 to f32
    %t = arith.addf %w, %w : f32
    %n = arith.truncf %t : f32 to bf16
    linalg.yield %n : bf16
  } -> tensor<8388608xbf16>
  return %y : tensor<8388608xbf16>
}
