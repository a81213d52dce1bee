// RUN: reprise-opt %s --reprise-annotate-layout --reprise-partition | FileCheck %s

// Without ranks along the axis there is nothing to say.

// CHECK-LABEL: func.func @forward(
//   CHECK-NOT:   nn.layout
//       CHECK:   nn.gelu
//   CHECK-NOT:   nn.layout
module attributes {nn.mesh = #nn.mesh<dp = 2, tp = 1>} {
func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = nn.gelu %x tanh : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
}
