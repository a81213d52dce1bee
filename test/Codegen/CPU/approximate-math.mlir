// RUN: reprise-opt %s -pass-pipeline='builtin.module(llvm.func(reprise-approximate-math))' | FileCheck %s

// No transcendental is left to a library, whose result may differ from machine
// to machine or between a scalar and a vector.

// CHECK-LABEL: llvm.func @transcendentals(
//   CHECK-NOT:   math.{{exp|exp2|log|tanh|erf}}
//       CHECK:   math.fma {{.*}} : vector<16xf32>
//   CHECK-NOT:   math.{{exp|exp2|log|tanh|erf}}
//       CHECK:   llvm.return
llvm.func @transcendentals(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.exp %x : vector<16xf32>
  %1 = math.log %0 : vector<16xf32>
  %2 = math.tanh %1 : vector<16xf32>
  %3 = math.erf %2 : vector<16xf32>
  %4 = math.exp2 %3 : vector<16xf32>
  llvm.return %4 : vector<16xf32>
}

// CHECK-LABEL: llvm.func @rsqrt(
//  CHECK-SAME:   %[[X:.*]]: vector<16xf32>
//  CHECK-NEXT:   %[[ONE:.*]] = arith.constant dense<1.000000e+00>
//  CHECK-NEXT:   %[[ROOT:.*]] = math.sqrt %[[X]]
//  CHECK-NEXT:   %[[R:.*]] = arith.divf %[[ONE]], %[[ROOT]]
//  CHECK-NEXT:   llvm.return %[[R]]
llvm.func @rsqrt(%x: vector<16xf32>) -> vector<16xf32> {
  %r = math.rsqrt %x : vector<16xf32>
  llvm.return %r : vector<16xf32>
}

// Without instructions of its own, LLVM would call a library for each lane.

// CHECK-LABEL: llvm.func @round_to_bf16(
//   CHECK-NOT:   arith.truncf
//       CHECK:   llvm.return
llvm.func @round_to_bf16(%x: vector<16xf32>) -> vector<16xbf16> {
  %r = arith.truncf %x : vector<16xf32> to vector<16xbf16>
  llvm.return %r : vector<16xbf16>
}

// With 32 registers of 16 lanes and masks: what scales by powers of two, in place
// of integers and of what keeps them in bounds; and one of two numbers, added to
// what is a number.

// CHECK-LABEL: llvm.func @wide(
//       CHECK:   %[[MASK:.*]] = llvm.bitcast %{{.*}} : vector<16xi1> to i16
//       CHECK:   %[[E:.*]] = llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"(%{{.*}}, %{{.*}}, %{{.*}}, %[[MASK]], %{{.*}})
//   CHECK-NOT:   arith.shli
//       CHECK:   %[[BITS:.*]] = arith.bitcast %[[E]]
//       CHECK:   %[[UP:.*]] = arith.select
//       CHECK:   %[[IS_NUMBER:.*]] = arith.cmpf ord, %[[E]], %[[E]]
//       CHECK:   %[[SUM:.*]] = arith.addi %[[BITS]], %[[UP]]
//       CHECK:   arith.select %[[IS_NUMBER]], %[[SUM]], %{{.*}}
//       CHECK:   arith.shrui {{.*}} : vector<16xi32>
//   CHECK-NOT:   arith.truncf
//       CHECK:   llvm.return
llvm.func @wide(%x: vector<16xf32>) -> vector<16xbf16> attributes {prefer_vector_width = "512"} {
  %e = math.exp %x : vector<16xf32>
  %r = arith.truncf %e : vector<16xf32> to vector<16xbf16>
  llvm.return %r : vector<16xbf16>
}

// What is below the normal numbers is 0 by a mask, but where nobody sees it.

// CHECK-LABEL: llvm.func @wide_exp2(
//   CHECK-DAG:   %[[ALL:.*]] = arith.constant -1 : i16
//       CHECK:   %[[R:.*]] = llvm.call_intrinsic "llvm.x86.avx512.mask.reduce.ps.512"(%[[X:[^,]*]], %{{.*}}, %{{.*}}, %[[ALL]], %{{.*}})
//       CHECK:   %[[N:.*]] = arith.subf %[[X]], %[[R]]
//       CHECK:   %[[D:.*]] = llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"(%{{.*}}, %[[N]], %{{.*}}, %[[ALL]], %{{.*}})
//       CHECK:   %[[SUM:.*]] = arith.addf %{{.*}}, %[[D]]
//       CHECK:   %[[MASK:.*]] = llvm.bitcast %{{.*}} : vector<16xi1> to i16
//       CHECK:   llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"(%{{.*}}, %{{.*}}, %{{.*}}, %[[MASK]], %{{.*}})
llvm.func @wide_exp2(%x: vector<16xf32>) -> vector<16xf32> attributes {prefer_vector_width = "512"} {
  %one = arith.constant dense<1.0> : vector<16xf32>
  %0 = math.exp2 %x : vector<16xf32>
  %1 = arith.addf %one, %0 : vector<16xf32>
  %2 = math.exp2 %1 : vector<16xf32>
  llvm.return %2 : vector<16xf32>
}

// What takes two registers is taken apart for such instructions alone.

// CHECK-LABEL: llvm.func @two_registers(
//       CHECK:   vector.shuffle {{.*}} [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] : vector<32xf32>, vector<32xf32>
//       CHECK:   "llvm.x86.avx512.mask.reduce.ps.512"
//       CHECK:   vector.shuffle {{.*}} [16, 17, {{.*}}, 31] : vector<32xf32>, vector<32xf32>
//       CHECK:   "llvm.x86.avx512.mask.reduce.ps.512"
//       CHECK:   math.fma {{.*}} : vector<32xf32>
// CHECK-COUNT-2:   "llvm.x86.avx512.mask.scalef.ps.512"
//       CHECK:   %[[LOW:.*]] = arith.trunci {{.*}} : vector<16xi32> to vector<16xi16>
//       CHECK:   %[[HIGH:.*]] = arith.trunci {{.*}} : vector<16xi32> to vector<16xi16>
//       CHECK:   vector.shuffle %[[LOW]], %[[HIGH]]
llvm.func @two_registers(%x: vector<32xf32>) -> vector<32xbf16> attributes {prefer_vector_width = "512"} {
  %e = math.exp2 %x : vector<32xf32>
  %r = arith.truncf %e : vector<32xf32> to vector<32xbf16>
  llvm.return %r : vector<32xbf16>
}

// The greatest element so far is a number, so what is greater is one too, and
// no test is needed for either; of any two numbers it is.

// CHECK-LABEL: llvm.func @greatest(
//       CHECK:   scf.for {{.*}} iter_args(%[[SO_FAR:.*]] = %{{.*}}, %[[LAST:.*]] = %{{.*}})
//   CHECK-NOT:     arith.maxnumf
//       CHECK:     %[[IS_GREATER:.*]] = arith.cmpf ogt, %[[X:.*]], %[[SO_FAR]]
//       CHECK:     arith.select %[[IS_GREATER]], %[[X]], %[[SO_FAR]]
//       CHECK:     arith.maxnumf %[[LAST]],
llvm.func @greatest(%x: vector<16xf32>, %from: i64, %to: i64, %step: i64) -> vector<16xf32> {
  %lowest = arith.constant 0xFF800000 : f32
  %none = vector.broadcast %lowest : f32 to vector<16xf32>
  %r:2 = scf.for %i = %from to %to step %step iter_args(%a = %none, %b = %x) -> (vector<16xf32>, vector<16xf32>) : i64 {
    %c = arith.maxnumf %a, %x : vector<16xf32>
    %d = arith.maxnumf %b, %x : vector<16xf32>
    scf.yield %c, %d : vector<16xf32>, vector<16xf32>
  }
  %s = arith.addf %r#0, %r#1 : vector<16xf32>
  llvm.return %s : vector<16xf32>
}

// An accumulator that turns out to be perhaps no number is not taken for one
// when it is looked at again.

// CHECK-LABEL: llvm.func @perhaps_none(
//       CHECK:   %[[M:.*]] = scf.for
//       CHECK:   %[[X:.*]] = arith.maxnumf %[[M]], %[[M]]
//       CHECK:   arith.maxnumf %[[X]],
llvm.func @perhaps_none(%a: f32, %b: f32, %to: i64) -> f32 {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %m = scf.for %i = %c0 to %to step %c1 iter_args(%so_far = %a) -> (f32) : i64 {
    %t = arith.mulf %so_far, %a : f32
    scf.yield %t : f32
  }
  %x = arith.maxnumf %m, %m : f32
  %y = arith.maxnumf %x, %b : f32
  llvm.return %y : f32
}

// Three registers are three, and what is no whole number of them is left to
// LLVM, with nothing for one register alone.

// CHECK-LABEL: llvm.func @three_registers(
// CHECK-COUNT-3: llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
//     CHECK-NOT: llvm.call_intrinsic
//         CHECK: llvm.return %{{.*}} : vector<48xf32>
llvm.func @three_registers(%x: vector<48xf32>) -> vector<48xf32> attributes {prefer_vector_width = "512"} {
  %e = math.exp %x : vector<48xf32>
  llvm.return %e : vector<48xf32>
}

// CHECK-LABEL: llvm.func @no_whole_registers(
//   CHECK-NOT:   llvm.call_intrinsic
//       CHECK:   llvm.return %{{.*}} : vector<17xbf16>
llvm.func @no_whole_registers(%x: vector<17xf32>) -> vector<17xbf16> attributes {prefer_vector_width = "512"} {
  %e = math.exp %x : vector<17xf32>
  %r = arith.truncf %e : vector<17xf32> to vector<17xbf16>
  llvm.return %r : vector<17xbf16>
}
