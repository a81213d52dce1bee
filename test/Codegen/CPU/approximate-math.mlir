// RUN: reprise-opt %s -pass-pipeline='builtin.module(llvm.func(reprise-approximate-math))' | FileCheck %s

// No transcendental is left to a library, whose result may differ from machine
// to machine or between a scalar and a vector.

// CHECK-LABEL: llvm.func @transcendentals(
//   CHECK-NOT:   math.{{exp|log|tanh|erf}}
//       CHECK:   math.fma {{.*}} : vector<16xf32>
//   CHECK-NOT:   math.{{exp|log|tanh|erf}}
//       CHECK:   llvm.return
llvm.func @transcendentals(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.exp %x : vector<16xf32>
  %1 = math.log %0 : vector<16xf32>
  %2 = math.tanh %1 : vector<16xf32>
  %3 = math.erf %2 : vector<16xf32>
  llvm.return %3 : vector<16xf32>
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

// Random words: lanes 0, 2, ... and 1, 3, ... are products of 64 bits, whose low
// halves are then side by side again, and so are the high ones.

// CHECK-LABEL: llvm.func @wide(
//   CHECK-NOT:   arith.mului_extended
//       CHECK:   arith.muli {{.*}} : vector<8xi64>
//       CHECK:   arith.muli {{.*}} : vector<8xi64>
//       CHECK:   vector.shuffle {{.*}} [0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30]
//       CHECK:   vector.shuffle {{.*}} [1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31]
//       CHECK:   llvm.return
llvm.func @wide(%x: vector<16xi32>, %y: vector<16xi32>) -> vector<16xi32> {
  %low, %high = arith.mului_extended %x, %y : vector<16xi32>
  %r = arith.xori %low, %high : vector<16xi32>
  llvm.return %r : vector<16xi32>
}
