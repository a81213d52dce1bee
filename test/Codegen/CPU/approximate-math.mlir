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
// of integers and of what keeps them in bounds; and one of two additions.

// CHECK-LABEL: llvm.func @wide(
//       CHECK:   %[[MASK:.*]] = llvm.bitcast %{{.*}} : vector<16xi1> to i16
//       CHECK:   %[[E:.*]] = llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"(%{{.*}}, %{{.*}}, %{{.*}}, %[[MASK]], %{{.*}})
//   CHECK-NOT:   arith.shli
//       CHECK:   %[[BITS:.*]] = arith.bitcast %[[E]]
//       CHECK:   %[[UP:.*]] = arith.addi %[[BITS]]
//       CHECK:   %[[DOWN:.*]] = arith.addi %[[BITS]]
//       CHECK:   arith.select %{{.*}}, %[[UP]], %[[DOWN]]
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
//       CHECK:   %[[N:.*]] = math.roundeven
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
