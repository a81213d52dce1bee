// RUN: reprise-opt %s -reprise-emit-cpu | FileCheck %s --implicit-check-not=ldtilecfg
// RUN: reprise-opt %s -reprise-emit-cpu=registers=wide | FileCheck %s
// RUN: reprise-opt %s -reprise-emit-cpu=registers=both | FileCheck %s

// Attention in bf16 has a version with the GEMMs of AMX, whatever processor
// kernels are for, which is called with tile registers configured. Of a block of
// keys that all queries see, scores are a GEMM of 20 terms, with zeros up to
// 32, 64 keys and 64 queries: a row of queries for each pair of terms stays in
// registers, and rows of keys as they lie, 64 bytes apart, pass. Meanwhile the
// next ones are copied. What comes of scores is rounded, in pairs of keys,
// transposed, and times values added to rows of 32 numbers.

// CHECK-LABEL: llvm.func @attention(
//  CHECK-SAME:   rt.amx = @attention.amx,{{.*}} rt.avx512_bf16 = @attention.avx512_bf16, rt.kernel, rt.tasks = 4 : i64
//       CHECK: llvm.func @attention.amx(
//   CHECK-NOT:   rt.kernel
//  CHECK-SAME:   rt.tasks = 4 : i64, target_cpu = "x86-64-v4", target_features = #llvm.target_features<["+avx512bf16", "+amx-tile", "+amx-bf16"]>
//       CHECK:   scf.for %{{[^ ]+}} = %arg2 to %arg3
//       CHECK:     llvm.call_intrinsic "llvm.x86.tileloadd64"(%c4_i8{{[_0-9]*}}, %{{.*}}, %c256_i64
//       CHECK:     scf.for %{{.*}} step %c16_i64
//       CHECK:       llvm.call_intrinsic "llvm.x86.tilezero"(%c0_i8
//       CHECK:       llvm.call_intrinsic "llvm.x86.tileloadd64"(%c2_i8{{[_0-9]*}}, %{{.*}}, %c64_i64
// CHECK-COUNT-2:     llvm.call_intrinsic "llvm.x86.tdpbf16ps"
//   CHECK-NOT:       llvm.call_intrinsic "llvm.x86.tdpbf16ps"
//       CHECK:       llvm.call_intrinsic "llvm.x86.tilestored64"(%c0_i8
//   CHECK-NOT:     arith.cmpi sle, %{{.*}} : vector<16xi32>
//       CHECK:     math.exp2
//       CHECK:     llvm.call_intrinsic "llvm.x86.avx512bf16.cvtne2ps2bf16.512"
//       CHECK:     llvm.intr.masked.load
//  CHECK-SAME:       vector<32xi16>
//       CHECK:     "llvm.intr.prefetch"
//       CHECK:     llvm.call_intrinsic "llvm.x86.tileloadd64"(%c7_i8{{[_0-9]*}}, %{{.*}}, %c128_i64
//       CHECK:     scf.for %{{.*}} step %c16_i64
//       CHECK:       scf.if
//       CHECK:         llvm.call_intrinsic "llvm.x86.tilezero"(%c0_i8
//       CHECK:       else
//       CHECK:         llvm.call_intrinsic "llvm.x86.tileloadd64"(%c0_i8{{[_0-9]*}}, %{{.*}}, %c128_i64
// CHECK-COUNT-4:     llvm.call_intrinsic "llvm.x86.tdpbf16ps"
//       CHECK:       llvm.call_intrinsic "llvm.x86.tilestored64"(%c0_i8

// On the diagonal GEMMs go by 32 rows and 32 columns, and leave out what
// nobody sees. Elements have zeros up to a multiple of 32 keys.

//       CHECK:     llvm.call_intrinsic "llvm.x86.tilezero"(%c0_i8
// CHECK-COUNT-4:   llvm.call_intrinsic "llvm.x86.tdpbf16ps"
//       CHECK:     arith.cmpi sle, %{{.*}} : vector<16xi32>
//       CHECK:     math.exp2
//       CHECK:     llvm.call_intrinsic "llvm.x86.avx512bf16.cvtne2ps2bf16.512"(%[[ZERO:.*]], %[[ZERO]])
//       CHECK:     llvm.call_intrinsic "llvm.x86.tileloadd64"(%c0_i8{{[_0-9]*}}, %{{.*}}, %c128_i64
// CHECK-COUNT-4:   llvm.call_intrinsic "llvm.x86.tdpbf16ps"
//       CHECK:     llvm.call_intrinsic "llvm.x86.avx512bf16.cvtne2ps2bf16.512"
//       CHECK:     vector<32xi16>, vector<32xi1> into !llvm.ptr
//       CHECK:   llvm.return
func.func private @attention(%q: tensor<1x80x40xbf16>, %k: tensor<1x80x40xbf16>, %v: tensor<1x80x40xbf16>, %rng: tensor<4xi32>) -> (tensor<1x80x40xbf16>, tensor<1x2x80xf32>) attributes {rt.kernel} {
  %out, %lse = rt.attention %q, %k, %v, %rng heads 2 scale 1.250000e-01 rate 0.000000e+00 stream 0 : (tensor<1x80x40xbf16>, tensor<1x80x40xbf16>, tensor<1x80x40xbf16>, tensor<4xi32>) -> (tensor<1x80x40xbf16>, tensor<1x2x80xf32>)
  return %out, %lse : tensor<1x80x40xbf16>, tensor<1x2x80xf32>
}

// Backward five GEMMs of a tile, and five on the diagonal. Those that make
// gradients of keys and values add to what the diagonal has begun; those of
// queries to what the first block of keys has. A task is what it is without AMX.

// CHECK-LABEL: llvm.func @backward(
//  CHECK-SAME:   rt.amx = @backward.amx,{{.*}} rt.avx512_bf16 = @backward.avx512_bf16, rt.kernel, rt.tasks = 2 : i64
//       CHECK: llvm.func @backward.amx(
//  CHECK-SAME:   rt.tasks = 2 : i64, target_cpu = "x86-64-v4"
//       CHECK:   "llvm.x86.tilezero"
// CHECK-COUNT-2: "llvm.x86.tdpbf16ps"
//       CHECK:   "llvm.x86.tilezero"
// CHECK-COUNT-2: "llvm.x86.tdpbf16ps"
//       CHECK:   "llvm.x86.avx512bf16.cvtne2ps2bf16.512"
//   CHECK-NOT:   "llvm.x86.tilezero"
// CHECK-COUNT-8: "llvm.x86.tdpbf16ps"
//       CHECK:   scf.if
//       CHECK:     "llvm.x86.tilezero"
//       CHECK:   else
//       CHECK:     "llvm.x86.tileloadd64"
// CHECK-COUNT-4: "llvm.x86.tdpbf16ps"
//       CHECK:   "llvm.x86.tilezero"
// CHECK-COUNT-4: "llvm.x86.tdpbf16ps"
//       CHECK:   "llvm.x86.tilezero"
// CHECK-COUNT-4: "llvm.x86.tdpbf16ps"
//       CHECK:   "llvm.x86.avx512bf16.cvtne2ps2bf16.512"
//       CHECK:   "llvm.x86.tilezero"
// CHECK-COUNT-4: "llvm.x86.tdpbf16ps"
//       CHECK:   "llvm.x86.tilezero"
// CHECK-COUNT-4: "llvm.x86.tdpbf16ps"
//       CHECK:   scf.if
//       CHECK:     "llvm.x86.tilezero"
// CHECK-COUNT-4: "llvm.x86.tdpbf16ps"
//   CHECK-NOT:   "llvm.x86.tdpbf16ps"
func.func private @backward(%q: tensor<1x80x40xbf16>, %k: tensor<1x80x40xbf16>, %v: tensor<1x80x40xbf16>, %o: tensor<1x80x40xbf16>, %l: tensor<1x2x80xf32>, %d: tensor<1x80x40xbf16>, %r: tensor<4xi32>) -> (tensor<1x80x40xbf16>, tensor<1x80x40xbf16>, tensor<1x80x40xbf16>) attributes {rt.kernel} {
  %dq, %dk, %dv = rt.attention_backward %q, %k, %v, %o, %l, %d, %r heads 2 scale 5.000000e-01 rate 0.000000e+00 stream 0
    : (tensor<1x80x40xbf16>, tensor<1x80x40xbf16>, tensor<1x80x40xbf16>, tensor<1x80x40xbf16>, tensor<1x2x80xf32>, tensor<1x80x40xbf16>, tensor<4xi32>) -> (tensor<1x80x40xbf16>, tensor<1x80x40xbf16>, tensor<1x80x40xbf16>)
  return %dq, %dk, %dv : tensor<1x80x40xbf16>, tensor<1x80x40xbf16>, tensor<1x80x40xbf16>
}

// Not of f32, not with blocks of 16, and not where the greatest score is the
// least when it is scaled.

// CHECK-LABEL: llvm.func @f32(
//   CHECK-NOT:   amx
func.func private @f32(%q: tensor<1x64x32xf32>, %rng: tensor<4xi32>) -> (tensor<1x64x32xf32>, tensor<1x1x64xf32>) attributes {rt.kernel} {
  %out, %lse = rt.attention %q, %q, %q, %rng heads 1 scale 1.000000e+00 rate 0.000000e+00 stream 0 : (tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<1x64x32xf32>, tensor<4xi32>) -> (tensor<1x64x32xf32>, tensor<1x1x64xf32>)
  return %out, %lse : tensor<1x64x32xf32>, tensor<1x1x64xf32>
}

// CHECK-LABEL: llvm.func @broad(
//   CHECK-NOT:   amx
func.func private @broad(%q: tensor<1x64x257xbf16>, %rng: tensor<4xi32>) -> (tensor<1x64x257xbf16>, tensor<1x1x64xf32>) attributes {rt.kernel} {
  %out, %lse = rt.attention %q, %q, %q, %rng heads 1 scale 1.000000e+00 rate 0.000000e+00 stream 0 : (tensor<1x64x257xbf16>, tensor<1x64x257xbf16>, tensor<1x64x257xbf16>, tensor<4xi32>) -> (tensor<1x64x257xbf16>, tensor<1x1x64xf32>)
  return %out, %lse : tensor<1x64x257xbf16>, tensor<1x1x64xf32>
}

// CHECK-LABEL: llvm.func @negative(
//   CHECK-NOT:   amx
func.func private @negative(%q: tensor<1x64x32xbf16>, %rng: tensor<4xi32>) -> (tensor<1x64x32xbf16>, tensor<1x1x64xf32>) attributes {rt.kernel} {
  %out, %lse = rt.attention %q, %q, %q, %rng heads 1 scale -1.000000e+00 rate 0.000000e+00 stream 0 : (tensor<1x64x32xbf16>, tensor<1x64x32xbf16>, tensor<1x64x32xbf16>, tensor<4xi32>) -> (tensor<1x64x32xbf16>, tensor<1x1x64xf32>)
  return %out, %lse : tensor<1x64x32xbf16>, tensor<1x1x64xf32>
}
