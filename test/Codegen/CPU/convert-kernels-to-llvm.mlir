// RUN: reprise-opt %s -pass-pipeline='builtin.module(llvm.func(convert-kernels-to-llvm))' -split-input-file -verify-diagnostics | FileCheck %s

// Sums keep their order: no fast-math flag comes in.

// CHECK-LABEL: llvm.func @sum(
//       CHECK:   llvm.fadd %{{.*}}, %{{.*}} : vector<16xf32>
//       CHECK:   llvm.shufflevector
//       CHECK:   llvm.intr.fma(
//   CHECK-NOT:   fastmath
//       CHECK:   llvm.return
llvm.func @sum(%x: vector<16xf32>, %y: vector<16xf32>) -> vector<8xf32> {
  %0 = arith.addf %x, %y : vector<16xf32>
  %1 = vector.shuffle %0, %0 [0, 1, 2, 3, 4, 5, 6, 7] : vector<16xf32>, vector<16xf32>
  %2 = math.fma %1, %1, %1 : vector<8xf32>
  llvm.return %2 : vector<8xf32>
}

// -----

llvm.func @foreign() {
  // expected-error @below {{failed to legalize operation 'rt.stream'}}
  %id = rt.stream 0
  llvm.return
}
