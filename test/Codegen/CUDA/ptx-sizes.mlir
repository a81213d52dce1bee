// Kernels of many buffers are written in a version of PTX that has so many
// parameters; what no version has is said where it is compiled.

// RUN: sed 's/COUNT/512/' %s | reprise-device | FileCheck %s --check-prefix=FEW
// RUN: sed 's/COUNT/513/' %s | reprise-device | FileCheck %s --check-prefix=MANY
// RUN: sed 's/COUNT/513/' %s | reprise-device --chip=sm_100a | FileCheck %s --check-prefix=NEWER
// RUN: sed 's/COUNT/513/' %s | not reprise-device --ptx-version=80 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: sed 's/COUNT/4096/' %s | not reprise-device 2>&1 | FileCheck %s --check-prefix=ALL

// FEW: .version 7.8
// FEW: .param .align 8 .b8 k_param_0[4096]
// MANY: .version 8.1
// MANY: .param .align 8 .b8 k_param_0[4104]
// NEWER: .version 8.6
// OLD: error: 'gpu.module' op needs kernels of at most 4096 bytes of parameters in PTX 8.0, but one has 4104
// ALL: error: 'gpu.module' op needs kernels of at most 32764 bytes of parameters in PTX 8.1, but one has 32768

gpu.module @device {
  llvm.func @k(%args: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.struct<(array<COUNT x ptr>, array<0 x i64>)>, nvvm.grid_constant}) attributes {nvvm.kernel} {
    %from = llvm.load %args : !llvm.ptr -> !llvm.ptr
    %to = llvm.addrspacecast %from : !llvm.ptr to !llvm.ptr<1>
    %value = llvm.mlir.constant(1 : i64) : i64
    llvm.store %value, %to : i64, !llvm.ptr<1>
    llvm.return
  }
}
