// RUN: not reprise-device %s --chip=sm_90a 2>&1 | FileCheck %s

// A kernel in place of another one is for a chip that there is.

// CHECK: error: needs a chip that is one of sm_80, {{.*}}sm_120a, but got 'sm_90b'

gpu.module @device {
  llvm.func @attention() attributes {gpu.kernel, nvvm.kernel, rt.kernel} {
    llvm.return
  }
  llvm.func @attention_sm_90b() attributes {gpu.kernel, nvvm.kernel, rt.chip = "sm_90b", rt.instead = "attention", rt.kernel} {
    llvm.return
  }
}
