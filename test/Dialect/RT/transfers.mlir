// What is passed to another rank, before memory is planned and after.
// RUN: reprise-opt %s | reprise-opt | FileCheck %s

// CHECK-LABEL: func.func @tensors
//  CHECK-NEXT:   %[[X:.*]] = rt.receive from 0 over "pp" lane 0 places 2 : () -> tensor<2x4xf32>
//  CHECK-NEXT:   rt.send %[[X]] to 2 over "pp" lane 0 places 2 : tensor<2x4xf32>
func.func @tensors() {
  %x = rt.receive from 0 over "pp" lane 0 places 2 : () -> tensor<2x4xf32>
  rt.send %x to 2 over "pp" lane 0 places 2 : tensor<2x4xf32>
  return
}

// CHECK-LABEL: func.func @buffers
//  CHECK-NEXT:   rt.receive to(%[[B:.*]]) from 0 over "pp" lane 1 places 1 : (memref<2x4xf32>) -> ()
//  CHECK-NEXT:   rt.send %[[B]] to 2 over "pp" lane 1 places 1 : memref<2x4xf32>
//  CHECK-NEXT:   rt.collective all_reduce(%[[B]]) to(%[[B]]) workspace(%{{.*}}) over "pp" ranks 2 members [0, 3]
func.func @buffers(%b: memref<2x4xf32>, %w: memref<8xf32>) {
  rt.receive to(%b) from 0 over "pp" lane 1 places 1 : (memref<2x4xf32>) -> ()
  rt.send %b to 2 over "pp" lane 1 places 1 : memref<2x4xf32>
  rt.collective all_reduce(%b) to(%b) workspace(%w) over "pp" ranks 2 members [0, 3] : (memref<2x4xf32>, memref<2x4xf32>, memref<8xf32>) -> ()
  return
}
