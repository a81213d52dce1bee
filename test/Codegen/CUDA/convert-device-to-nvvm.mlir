// RUN: reprise-opt %s -pass-pipeline='builtin.module(gpu.module(convert-device-to-nvvm))' | FileCheck %s

// A kernel keeps its argument where the launch puts it. Arrays in workgroup memory
// are globals; the one without a size is another name for all of it, and is seen
// from outside: as a private one it would be given a byte of its own.

// CHECK-LABEL: gpu.module @device
//   CHECK-DAG: llvm.mlir.global external @reprise_shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
//   CHECK-DAG: llvm.mlir.global internal @{{.*}} {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<4 x f32>
// CHECK-LABEL: llvm.func @k(
//  CHECK-SAME:   !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.struct<(array<2 x ptr>, array<1 x i64>)>, nvvm.grid_constant}
//   CHECK-NOT:   gpu.
//  CHECK-SAME:   nvvm.kernel, nvvm.reqntid = array<i32: 128, 1, 1>, rt.kernel
//       CHECK:   nvvm.read.ptx.sreg.tid.x
//       CHECK:   nvvm.shfl.sync bfly
//       CHECK:   llvm.store %{{.*}} : f32, !llvm.ptr<3>
//       CHECK:   nvvm.barrier
//       CHECK:   llvm.intr.fma
//       CHECK:   llvm.intr.maxnum
//       CHECK:   llvm.inline_asm {{.*}}"bar.arrive
//       CHECK:   llvm.return
gpu.module @device {
  llvm.mlir.global external @reprise_shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
  gpu.func @k(%args: !llvm.ptr {llvm.byval = !llvm.struct<(array<2 x ptr>, array<1 x i64>)>, llvm.align = 8 : i64})
      workgroup(%words: memref<4xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
      kernel attributes {known_block_size = array<i32: 128, 1, 1>, rt.kernel} {
    %c0 = arith.constant 0 : index
    %t = gpu.thread_id x
    %i = arith.index_cast %t : index to i32
    %x = arith.sitofp %i : i32 to f32
    %one = arith.constant 1 : i32
    %width = arith.constant 32 : i32
    %y, %valid = gpu.shuffle xor %x, %one, %width : f32
    memref.store %y, %words[%c0] : memref<4xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %z = math.fma %x, %y, %y : f32
    %to = llvm.mlir.addressof @reprise_shared : !llvm.ptr<3>
    %m = arith.maxnumf %z, %x : f32
    llvm.store %m, %to : f32, !llvm.ptr<3>
    nvvm.barrier.arrive id = %one number_of_threads = %width
    gpu.return
  }
}
