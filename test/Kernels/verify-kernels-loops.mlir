// RUN: reprise-opt %s --reprise-verify-kernels | FileCheck %s
// RUN: reprise-opt %s -verify-diagnostics --pass-pipeline='builtin.module(reprise-verify-kernels{loops})'

// What a kernel may still be before it is written out as loops, and not after.

// CHECK: func private @kernel
func.func private @kernel(%x: tensor<4xf32>) -> tensor<4xf32> attributes {rt.kernel} {
  // expected-error @+1 {{needs to be loops by now, but is in the kernel @kernel}}
  %y = nn.add %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
