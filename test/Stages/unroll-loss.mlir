// A loss that no op of the chunk makes is what the stage begins with.
// RUN: reprise-opt %s -reprise-unroll-stages | FileCheck %s

// CHECK-LABEL: module @stage0
// CHECK:       func.func @step(
// CHECK-SAME:    %[[SUM:[a-z0-9]*]]: tensor<2xf32> {nn.gradient = "a"},
// CHECK-SAME:    %[[LOSS:[a-z0-9]*]]: tensor<f32> {nn.input = "loss_sum"})
// CHECK:         nn.forward
// CHECK-NEXT:    nn.backward
// CHECK-NEXT:    nn.update
// CHECK-NEXT:    return %[[LOSS]], %[[SUM]]
module @chunk0 {
  func.func @step(%a: tensor<2xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros>},
                  %sum: tensor<2xf32> {nn.gradient = "a"}, %loss: tensor<f32> {nn.input = "loss_sum"})
      -> (tensor<f32> {nn.output = "loss"}, tensor<2xf32> {nn.gradient = "a"}) {
    nn.backward
    return %loss, %sum : tensor<f32>, tensor<2xf32>
  }
}
pipe.schedule "mine" virtual_stages 1 micro_batches 1 {
  pipe.stage 0 slots [1] gradient_slots 0 {
    pipe.forward chunk 0 micro_batch 0 slot 0
    pipe.backward chunk 0 micro_batch 0 slot 0
    pipe.update
  }
}
