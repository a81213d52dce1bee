// The step of a stage: inputs of each micro-batch lie apart, what is received has
// bytes of its own, and those of a value that was sent are free behind that.
// RUN: reprise-opt %s -reprise-plan-memory -reprise-verify-plan | FileCheck %s

// CHECK:       rt.plan
// CHECK-LABEL: func.func @step
// CHECK-DAG:     %[[IDS0:.*]] = rt.buffer at <device, {{[0-9]+}}> {rt.micro_batch = 0 : i64, rt.role = "tokens"} : memref<2x4xi32>
// CHECK-DAG:     %[[IDS1:.*]] = rt.buffer at <device, {{[0-9]+}}> {rt.micro_batch = 1 : i64, rt.role = "tokens"} : memref<2x4xi32>
// CHECK-DAG:     rt.buffer at <device, {{[0-9]+}}> {rt.order = 3 : i64, rt.state = #rt.state<kind = parameter, parameter = "w"
// CHECK:         %[[X0:.*]] = rt.buffer at <device, [[PLACE:[0-9]+]]> : memref<4096xf32>
// CHECK-NEXT:    rt.receive to(%[[X0]]) from 0 over "pp" lane 0 places 1 : (memref<4096xf32>) -> ()
// CHECK:         rt.send %[[Y0:.*]] to 2 over "pp" lane 0 places 1 : memref<4096xf32>
// CHECK:         %[[X1:.*]] = rt.buffer at <device, [[PLACE]]> : memref<4096xf32>
// CHECK-NEXT:    rt.receive to(%[[X1]]) from 0
module attributes {nn.mesh = #nn.mesh<pp = 3>, nn.stage = 1 : i64} {
  func.func private @add(%x: tensor<4096xf32>, %w: tensor<4096xf32>) -> tensor<4096xf32> attributes {rt.kernel} {
    %y = nn.add %x, %w : tensor<4096xf32>
    return %y : tensor<4096xf32>
  }
  func.func @step(%ids0: tensor<2x4xi32> {nn.input = "tokens", nn.micro_batch = 0 : i64},
                  %ids1: tensor<2x4xi32> {nn.input = "tokens", nn.micro_batch = 1 : i64},
                  %w: tensor<4096xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>, nn.order = array<i64: 3, 1>})
      attributes {nn.micro_batches = 2 : i64} {
    %x0 = rt.receive from 0 over "pp" lane 0 places 1 : () -> tensor<4096xf32>
    %y0 = rt.launch @add(%x0, %w) {flops = 4096 : i64} : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
    rt.send %y0 to 2 over "pp" lane 0 places 1 : tensor<4096xf32>
    %x1 = rt.receive from 0 over "pp" lane 0 places 1 : () -> tensor<4096xf32>
    %y1 = rt.launch @add(%x1, %w) {flops = 4096 : i64} : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
    rt.send %y1 to 2 over "pp" lane 0 places 1 : tensor<4096xf32>
    return
  }
}
