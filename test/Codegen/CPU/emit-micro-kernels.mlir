// RUN: reprise-opt %s -reprise-emit-micro-kernels | FileCheck %s
// RUN: reprise-opt %s -reprise-lower-cpu | FileCheck %s --check-prefix=LLVM

// Each for its own processor, four steps at a time and the rest one by one: a
// row of A is broadcast, 6 x 16 is 6 vectors and 12 x 32 is 24.

// CHECK-LABEL: llvm.func @reprise_micro_6x16_v3(
//  CHECK-SAME:   target_cpu = "x86-64-v3"
// Both panels are packed. At some steps a row of C and a row of what comes next
// are fetched, two cache lines of it, and a row of a next panel is copied if
// one is due.
//       CHECK:   %[[SUMS:.*]]:6 = scf.if
//       CHECK:     %[[PACE:.*]] = arith.minsi
//       CHECK:     %[[BETWEEN:.*]] = arith.subi %[[PACE]],
//       CHECK:     scf.for %[[P:[^ ]*]] =
//       CHECK:       %[[REST:.*]] = arith.andi %[[P]], %[[BETWEEN]]
//       CHECK:       %[[DUE:.*]] = arith.cmpi eq, %[[REST]],
//       CHECK:       scf.if %[[DUE]]
//       CHECK:         %[[AT:.*]] = arith.minsi
//       CHECK:         arith.muli %[[AT]],
//       CHECK:         llvm.intr.prefetch{{.*}}hint = 3 : i32, rw = 1 : i32
//   CHECK-NOT:         rw = 1
//       CHECK:         %[[NEXT:.*]] = arith.minsi
//       CHECK:         arith.muli %[[NEXT]],
// CHECK-COUNT-2:         llvm.intr.prefetch{{.*}}hint = 2 : i32, rw = 0 : i32
//   CHECK-NOT:         llvm.intr.prefetch
//       CHECK:         arith.cmpi slt
//       CHECK:         scf.if
//       CHECK:           llvm.load volatile {{.*}} -> i64
//       CHECK:           llvm.store volatile {{.*}} : i64
// CHECK-COUNT-7:           llvm.store volatile {{.*}} : i64
//   CHECK-NOT:           llvm.store
// CHECK-COUNT-24:      math.fma {{.*}} : vector<16xf32>
//   CHECK-NOT:       math.fma
// A is read where it lies: rows 0 to 2 from one address, 3 to 5 from another,
// which nothing is known of.
//       CHECK:   } else {
//       CHECK:     scf.for {{.*}} iter_args({{.*}} = %{{[a-z0-9_]+}}) -> ({{.*}}, !llvm.ptr, !llvm.ptr)
// CHECK-COUNT-24:      math.fma
//   CHECK-NOT:       math.fma
// CHECK-COUNT-2:     llvm.inline_asm "", "=r,0" %
// Or it is copied: six words of each step, behind their use.
//       CHECK:     scf.for
// CHECK-COUNT-6:       math.fma
//       CHECK:       llvm.intr.prefetch{{.*}}hint = 3 : i32, rw = 0 : i32
// CHECK-COUNT-3:       llvm.store volatile {{.*}} : i64
//   CHECK-NOT:       llvm.store
// CHECK-COUNT-18:      math.fma
// CHECK-COUNT-3:       llvm.store volatile {{.*}} : i64
//   CHECK-NOT:       math.fma
// Or transposed, word by word.
//       CHECK:     scf.for {{.*}} iter_args({{.*}} = %{{[a-z0-9_]+}}#0, {{.*}}) -> ({{.*}}, !llvm.ptr, !llvm.ptr)
// CHECK-COUNT-6:       math.fma
// CHECK-COUNT-6:       llvm.store volatile {{.*}} : i32
//   CHECK-NOT:       llvm.store
// CHECK-COUNT-18:      math.fma
// CHECK-COUNT-6:       llvm.store volatile {{.*}} : i32
//   CHECK-NOT:       llvm.store
// CHECK-COUNT-2:     llvm.inline_asm "", "=r,0" %
// What is left of the steps, one by one.
//       CHECK:   scf.for {{.*}} iter_args({{.*}} = %[[SUMS]]#0
// CHECK-COUNT-6:     math.fma
//   CHECK-NOT:     math.fma
// The tile goes past the caches, or it is rounded or not, added to C or not,
// with a bias or not.
// CHECK-COUNT-6:   llvm.store {{.*}} {alignment = 64 : i64, nontemporal} : vector<16xf32>
// CHECK-COUNT-24:  llvm.store {{.*}} : vector<16xi16>
// CHECK-COUNT-24:  llvm.store {{.*}} : vector<16xf32>
//   CHECK-NOT:     llvm.store

// What is left of the rows.
// CHECK-LABEL: llvm.func @reprise_micro_4x16_v3(
//  CHECK-SAME:   target_cpu = "x86-64-v3"
//       CHECK:   %{{.*}}:4 = scf.if
// CHECK-COUNT-16:      math.fma {{.*}} : vector<16xf32>
//   CHECK-NOT:       math.fma
//       CHECK:   } else {

// CHECK-LABEL: llvm.func @reprise_micro_12x32_v4(
//  CHECK-SAME:   passthrough = {{\[\[}}"min-legal-vector-width", "512"]]
//  CHECK-SAME:   prefer_vector_width = "512"
//  CHECK-SAME:   target_cpu = "x86-64-v4"
//       CHECK:   %{{.*}}:24 = scf.for
// CHECK-COUNT-96:     math.fma
// A is read where it lies; or read and copied, 12 words of a row as vectors; or
// transposed a group of steps before its use.
//       CHECK:   %{{.*}}:28 = scf.for
//   CHECK-NOT:     volatile
// CHECK-COUNT-96:     math.fma
//       CHECK:   %{{.*}}:24 = scf.for
// CHECK-COUNT-24:     math.fma
//       CHECK:     llvm.intr.prefetch{{.*}}hint = 3 : i32, rw = 0 : i32
//       CHECK:     llvm.load volatile {{.*}} -> vector<8xf32>
//       CHECK:     llvm.store volatile {{.*}} : vector<8xf32>
//       CHECK:     llvm.load volatile {{.*}} -> vector<4xf32>
//       CHECK:     llvm.store volatile {{.*}} : vector<4xf32>
//   CHECK-NOT:     volatile
// CHECK-COUNT-72:     math.fma
//       CHECK:     vector.shuffle {{.*}} [0, 4, 1, 5] : vector<4xf32>, vector<4xf32>
//       CHECK:     scf.for
//       CHECK:       vector.shuffle {{.*}} [0, 4, 1, 5] : vector<4xf32>, vector<4xf32>
// CHECK-COUNT-96:      math.fma

// Pairs of bf16, one instruction each.
// CHECK-LABEL: llvm.func @reprise_micro_12x32_bf16(
//  CHECK-SAME:   target_features = #llvm.target_features<["+avx512bf16"]>
//       CHECK:   %{{.*}}:24 = scf.for
// Those of a next panel are made of two rows of B.
//       CHECK:     %[[EVEN:.*]] = llvm.load {{.*}} -> vector<32xi16>
//       CHECK:     %[[ODD:.*]] = llvm.load {{.*}} -> vector<32xi16>
//       CHECK:     vector.shuffle %[[EVEN]], %[[ODD]] [0, 32, 1, 33,
//       CHECK:     vector.shuffle %[[EVEN]], %[[ODD]] [16, 48, 17, 49,
// CHECK-COUNT-2:     llvm.store
// CHECK-COUNT-96:     llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"({{.*}}) : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>
//   CHECK-NOT:     llvm.call_intrinsic
// Of A they may be neighbours already: words are read where they lie, or
// transposed. Or they are made of two rows a group of steps before their use,
// if there are any.
//       CHECK:   %{{.*}}:28 = scf.for
// CHECK-COUNT-96:     llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
// CHECK-COUNT-4:     llvm.inline_asm "", "=r,0" %
//       CHECK:   scf.if
//       CHECK:     vector.shuffle {{.*}} [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]
//       CHECK:   %{{.*}}:24 = scf.for
//       CHECK:     vector.shuffle {{.*}} [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]
//       CHECK:     llvm.store {{.*}} : vector<8xi32>
//       CHECK:     vector.shuffle {{.*}} [0, 4, 1, 5, 2, 6, 3, 7]
//       CHECK:     llvm.store {{.*}} : vector<4xi32>
// CHECK-COUNT-2:     "llvm.intr.prefetch"{{.*}}hint = 3 : i32, rw = 0 : i32
// CHECK-COUNT-96:     llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"
//       CHECK:   %{{.*}}:24 = scf.for
//       CHECK:     vector.shuffle {{.*}} [0, 4, 1, 5] : vector<4xi32>, vector<4xi32>

// Tile registers: four sums, two of A, two of B.
// CHECK-LABEL: llvm.func @reprise_micro_32x32_amx(
//  CHECK-SAME:   target_features = #llvm.target_features<["+avx512bf16", "+amx-tile", "+amx-bf16"]>
//       CHECK:   scf.if
// CHECK-COUNT-4:   llvm.call_intrinsic "llvm.x86.tileloadd64"
//       CHECK:   } else {
// CHECK-COUNT-4:   llvm.call_intrinsic "llvm.x86.tilezero"
// A line of C for each four words and, if there is something, two of what comes
// next.
//       CHECK:   scf.if
//       CHECK:     scf.for
//       CHECK:       llvm.call_intrinsic "llvm.x86.tileloadd64"
//       CHECK:       llvm.call_intrinsic "llvm.x86.tileloaddt164"
//       CHECK:       llvm.call_intrinsic "llvm.x86.tileloadd64"
//       CHECK:       llvm.call_intrinsic "llvm.x86.tileloaddt164"
// CHECK-COUNT-12:      "llvm.intr.prefetch"
//   CHECK-NOT:       "llvm.intr.prefetch"
// CHECK-COUNT-4:     llvm.call_intrinsic "llvm.x86.tdpbf16ps"
//   CHECK-NOT:     llvm.call_intrinsic
//       CHECK:   } else {
//       CHECK:     scf.for
// CHECK-COUNT-2:     llvm.call_intrinsic "llvm.x86.tileloaddt164"
// CHECK-COUNT-4:       "llvm.intr.prefetch"
//   CHECK-NOT:       "llvm.intr.prefetch"
// CHECK-COUNT-4:     llvm.call_intrinsic "llvm.x86.tdpbf16ps"
//   CHECK-NOT:     llvm.call_intrinsic
//       CHECK:   scf.if
// CHECK-COUNT-4:   llvm.call_intrinsic "llvm.x86.tilestored64"
//       CHECK:   } else {
// CHECK-COUNT-4:   llvm.call_intrinsic "llvm.x86.tilestored64"
// Eight rows at a time.
//       CHECK:     scf.for
// CHECK-COUNT-16:    arith.mulf
// CHECK-COUNT-16:    llvm.store {{.*}} : vector<16xi16>
// CHECK-COUNT-16:    llvm.store {{.*}} : vector<16xf32>

// LLVM-LABEL: llvm.func @reprise_micro_6x16_v3(
//       LLVM:   llvm.intr.fma
//   LLVM-NOT:   {{math|scf|arith|vector}}.
module {}
