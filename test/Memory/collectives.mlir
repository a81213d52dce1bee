// RUN: reprise-opt %s --reprise-plan-memory --reprise-verify-plan --split-input-file | FileCheck %s

// Sums over ranks take the bytes of what they are of; the workspace is a buffer
// like any other, with a place for each rank.

// CHECK-LABEL: func.func @step
//       CHECK:   %[[G:.*]] = rt.buffer at <device, [[AT:[0-9]+]]> : memref<100xf32>
//       CHECK:   rt.launch @make(%{{.*}}) to(%[[G]])
//       CHECK:   rt.update
//       CHECK:   %[[SUM:.*]] = rt.buffer at <device, [[AT]]> : memref<100xf32>
//       CHECK:   %[[SPACE:.*]] = rt.buffer at <device, {{[0-9]+}}> : memref<102xf32>
//       CHECK:   rt.collective all_reduce(%[[G]]) to(%[[SUM]]) workspace(%[[SPACE]]) over "dp" ranks 3
//       CHECK:   rt.launch @make(%[[SUM]])
module attributes {nn.mesh = #nn.mesh<dp = 3>} {
  func.func private @make(%x: tensor<100xf32>) -> tensor<100xf32> attributes {rt.kernel} {
    return %x : tensor<100xf32>
  }
  func.func @step(%x: tensor<100xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) {
    %g = rt.launch @make(%x) : (tensor<100xf32>) -> tensor<100xf32>
    rt.update
    %sum = rt.collective all_reduce(%g) over "dp" ranks 3 : (tensor<100xf32>) -> tensor<100xf32>
    %y = rt.launch @make(%sum) : (tensor<100xf32>) -> tensor<100xf32>
    return
  }
}

// -----

// Of two terms the sum takes the bytes of the last. The workspace has a place for
// each term of each rank, also where there is one element.

// CHECK-LABEL: func.func @step
//       CHECK:   %[[AT:.*]] = rt.buffer at <device, [[LAST:[0-9]+]]> : memref<1xf32>
//       CHECK:   rt.launch @make(%{{.*}}) to(%[[AT]])
//       CHECK:   rt.update
//       CHECK:   %[[SUM:.*]] = rt.buffer at <device, [[LAST]]> : memref<1xf32>
//       CHECK:   %[[SPACE:.*]] = rt.buffer at <device, {{[0-9]+}}> : memref<6xf32>
//       CHECK:   rt.collective all_reduce(%{{.*}}, %[[AT]]) to(%[[SUM]]) workspace(%[[SPACE]]) over "dp" ranks 3 {rt.groups = 3 : i64}
module attributes {nn.mesh = #nn.mesh<dp = 3>} {
  func.func private @make(%x: tensor<1xf32>) -> tensor<1xf32> attributes {rt.kernel} {
    return %x : tensor<1xf32>
  }
  func.func @step(%x: tensor<1xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) {
    %g = rt.launch @make(%x) : (tensor<1xf32>) -> tensor<1xf32>
    rt.update
    %sum = rt.collective all_reduce(%x, %g) over "dp" ranks 3 {rt.groups = 3 : i64} : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %y = rt.launch @make(%sum) : (tensor<1xf32>) -> tensor<1xf32>
    return
  }
}
