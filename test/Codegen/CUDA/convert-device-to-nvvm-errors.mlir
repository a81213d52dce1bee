// RUN: reprise-opt %s -pass-pipeline='builtin.module(gpu.module(convert-device-to-nvvm))' -verify-diagnostics

// An arc tangent would come from a library.

gpu.module @device {
  gpu.func @k(%x: f32) -> f32 {
    // expected-error @below {{needs code of its own in a kernel, which is linked with no library}}
    %y = math.atan2 %x, %x : f32
    gpu.return %y : f32
  }
}
