// Terms of a measure are added in the order of micro-batches, as on one device.
// RUN: reprise-opt %s -verify-diagnostics -reprise-unroll-stages

module attributes {nn.gradient_counts = array<i64: 3, 0, 0, 0, 0>, nn.measures = ["z.layer0", "z.layer1", "rows0"], nn.mesh = #nn.mesh<pp = 2>, nn.train = {adam_beta1 = 9.000000e-01 : f64, adam_beta2 = 0.94999999999999996 : f64, adam_eps = 1.000000e-08 : f64, clip_grad = 1.000000e+00 : f64, weight_decay = 0.000000e+00 : f64}} {
  module @chunk0 attributes {nn.gradient_counts = array<i64: 3, 0, 0, 0, 0>, nn.measures = ["z.layer0", "z.layer1", "rows0"], nn.mesh = #nn.mesh<pp = 2>, nn.train = {adam_beta1 = 9.000000e-01 : f64, adam_beta2 = 0.94999999999999996 : f64, adam_eps = 1.000000e-08 : f64, clip_grad = 1.000000e+00 : f64, weight_decay = 0.000000e+00 : f64}} {
    func.func @step(%arg0: tensor<1x4xi32> {nn.input = "tokens"}, %arg1: tensor<3x4xf32> {nn.order = array<i64: 0, 0>, nn.parameter = #nn.parameter<name = "t", init = zeros>}, %arg2: tensor<1x4x4xf32> {nn.order = array<i64: 1, 1>, nn.parameter = #nn.parameter<name = "a", init = zeros>}, %arg3: tensor<f32> {nn.measure = "z.layer0"}, %arg4: tensor<4xf32> {nn.measure = "rows0"}, %arg5: tensor<f32> {nn.measure = "z"}, %arg6: tensor<1x4x4xf32> {nn.input = "border_gradient"}, %arg7: tensor<3x4xf32> {nn.gradient = "t"}, %arg8: tensor<1x4x4xf32> {nn.gradient = "a"}) -> (tensor<1x4x4xf32> {nn.output = "border"}, tensor<f32> {nn.measure = "z.layer0", nn.term = "z"}, tensor<4xf32> {nn.measure = "rows0"}, tensor<f32> {nn.measure = "z"}, tensor<3x4xf32> {nn.gradient = "t"}, tensor<1x4x4xf32> {nn.gradient = "a"}) attributes {nn.micro_batches = 4 : i64, nn.reduction_groups = 2 : i64} {
      %0 = nn.embedding %arg0, %arg1 : (tensor<1x4xi32>, tensor<3x4xf32>) -> tensor<1x4x4xf32>
      %1 = nn.add %0, %arg2 {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "y">} : tensor<1x4x4xf32>
      %2 = nn.choose_experts %1 {nn.scope = #nn.scope<layer = 0, module = "moe", value = "id">} : (tensor<1x4x4xf32>) -> tensor<1x4x2xi32>
      %3 = nn.mean %1 {nn.scope = #nn.scope<module = "loss", value = "z0">} : (tensor<1x4x4xf32>) -> tensor<f32>
      %4 = nn.count_choices %2 {nn.scope = #nn.scope<module = "loss", value = "n">} : (tensor<1x4x2xi32>) -> tensor<4xf32>
      %5 = nn.scale %3 by 2.500000e-01 {nn.scope = #nn.scope<module = "loss", value = "z.layer0">} : tensor<f32>
      %6 = nn.accumulate %arg3, %5 {nn.scope = #nn.scope<module = "loss", value = "z.layer0">} : tensor<f32>
      %7 = nn.accumulate %arg4, %4 {nn.scope = #nn.scope<module = "loss", value = "rows0">} : tensor<4xf32>
      nn.backward
      %8 = nn.constant 2.500000e-01 {nn.scope = #nn.scope<module = "loss", value = "total">} : tensor<f32>
      %9 = nn.broadcast %8 by 6.250000e-02 {nn.scope = #nn.scope<module = "loss", value = "z0">} : (tensor<f32>) -> tensor<1x4x4xf32>
      %10 = nn.add %arg6, %9 {nn.scope = #nn.scope<module = "loss", value = "z0">} : tensor<1x4x4xf32>
      %11 = nn.accumulate %arg8, %10 {nn.scope = #nn.scope<module = "loss", value = "z0">} : tensor<1x4x4xf32>
      %12 = nn.embedding_backward %arg0, %10 : (tensor<1x4xi32>, tensor<1x4x4xf32>) -> tensor<3x4xf32>
      %13 = nn.accumulate %arg7, %12 : tensor<3x4xf32>
      return %1, %6, %7, %arg5, %13, %11 : tensor<1x4x4xf32>, tensor<f32>, tensor<4xf32>, tensor<f32>, tensor<3x4xf32>, tensor<1x4x4xf32>
    }
  }
  module @chunk1 attributes {nn.gradient_counts = array<i64: 3, 0, 0, 0, 0>, nn.measures = ["z.layer0", "z.layer1", "rows0"], nn.mesh = #nn.mesh<pp = 2>, nn.train = {adam_beta1 = 9.000000e-01 : f64, adam_beta2 = 0.94999999999999996 : f64, adam_eps = 1.000000e-08 : f64, clip_grad = 1.000000e+00 : f64, weight_decay = 0.000000e+00 : f64}} {
    func.func @step(%arg0: tensor<1x4x4xf32> {nn.order = array<i64: 2, 2>, nn.parameter = #nn.parameter<name = "b", init = zeros>}, %arg1: tensor<1x4x4xf32> {nn.input = "border"}, %arg2: tensor<f32> {nn.input = "loss_sum"}, %arg3: tensor<f32> {nn.measure = "z.layer1"}, %arg4: tensor<f32> {nn.measure = "z"}, %arg5: tensor<1x4x4xf32> {nn.gradient = "b"}) -> (tensor<f32> {nn.output = "loss"}, tensor<f32> {nn.measure = "z.layer1", nn.term = "z"}, tensor<f32> {nn.measure = "z"}, tensor<1x4x4xf32> {nn.gradient = "b"}, tensor<1x4x4xf32> {nn.output = "border_gradient"}) attributes {nn.micro_batches = 4 : i64, nn.reduction_groups = 2 : i64} {
      %0 = nn.add %arg1, %arg0 {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "y">} : tensor<1x4x4xf32>
      %1 = nn.mean %0 {nn.scope = #nn.scope<module = "loss", value = "z1">} : (tensor<1x4x4xf32>) -> tensor<f32>
      %2 = nn.mean %0 {nn.scope = #nn.scope<module = "loss", value = "loss">} : (tensor<1x4x4xf32>) -> tensor<f32>
      %3 = nn.scale %2 by 2.500000e-01 {nn.scope = #nn.scope<module = "loss", value = "total">} : tensor<f32>
      %4 = nn.accumulate %arg2, %3 {nn.scope = #nn.scope<module = "loss", value = "total">} : tensor<f32>
      %5 = nn.scale %1 by 2.500000e-01 {nn.scope = #nn.scope<module = "loss", value = "z.layer1">} : tensor<f32>
      %6 = nn.accumulate %arg3, %5 {nn.scope = #nn.scope<module = "loss", value = "z.layer1">} : tensor<f32>
      nn.backward
      %7 = nn.constant 2.500000e-01 {nn.scope = #nn.scope<module = "loss", value = "total">} : tensor<f32>
      %8 = nn.constant 2.500000e-01 {nn.scope = #nn.scope<module = "loss", value = "total">} : tensor<f32>
      %9 = nn.broadcast %7 by 6.250000e-02 {nn.scope = #nn.scope<module = "loss", value = "loss">} : (tensor<f32>) -> tensor<1x4x4xf32>
      %10 = nn.broadcast %8 by 6.250000e-02 {nn.scope = #nn.scope<module = "loss", value = "z1">} : (tensor<f32>) -> tensor<1x4x4xf32>
      %11 = nn.add %9, %10 {nn.scope = #nn.scope<module = "loss", value = "z1">} : tensor<1x4x4xf32>
      %12 = nn.accumulate %arg5, %11 {nn.scope = #nn.scope<module = "loss", value = "z1">} : tensor<1x4x4xf32>
      return %4, %6, %arg4, %12, %11 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<1x4x4xf32>, tensor<1x4x4xf32>
    }
  }
  pipe.schedule "gpipe" virtual_stages 1 micro_batches 4 {
    pipe.group "all" stages [0, 1]
    pipe.stage 0 slots [4] gradient_slots 2 {
      // expected-error @+1 {{needs micro-batches in their order, since it measures, but got micro-batch 1 behind 0 others}}
      pipe.forward chunk 0 micro_batch 1 slot 1
      pipe.forward chunk 0 micro_batch 0 slot 0
      pipe.send activation chunk 0 micro_batch 0 slot 0 to 1 bytes 1
      pipe.send activation chunk 0 micro_batch 1 slot 1 to 1 bytes 1
      pipe.forward chunk 0 micro_batch 2 slot 2
      pipe.send activation chunk 0 micro_batch 2 slot 2 to 1 bytes 1
      pipe.forward chunk 0 micro_batch 3 slot 3
      pipe.send activation chunk 0 micro_batch 3 slot 3 to 1 bytes 1
      pipe.receive gradient chunk 0 micro_batch 0 slot 0 from 1 bytes 1
      pipe.backward chunk 0 micro_batch 0 slot 0 gradient_slot 0
      pipe.receive gradient chunk 0 micro_batch 1 slot 1 from 1 bytes 1
      pipe.backward chunk 0 micro_batch 1 slot 1 gradient_slot 1
      pipe.receive gradient chunk 0 micro_batch 2 slot 0 from 1 bytes 1
      pipe.backward chunk 0 micro_batch 2 slot 2 gradient_slot 0
      pipe.receive gradient chunk 0 micro_batch 3 slot 1 from 1 bytes 1
      pipe.backward chunk 0 micro_batch 3 slot 3 gradient_slot 1
      pipe.reduce over "all" bytes 8
      pipe.update
    }
    pipe.stage 1 slots [4] gradient_slots 2 {
      pipe.receive activation chunk 1 micro_batch 0 slot 0 from 0 bytes 1
      pipe.forward chunk 1 micro_batch 0 slot 0
      pipe.receive activation chunk 1 micro_batch 1 slot 1 from 0 bytes 1
      pipe.forward chunk 1 micro_batch 1 slot 1
      pipe.receive activation chunk 1 micro_batch 2 slot 2 from 0 bytes 1
      pipe.forward chunk 1 micro_batch 2 slot 2
      pipe.receive activation chunk 1 micro_batch 3 slot 3 from 0 bytes 1
      pipe.forward chunk 1 micro_batch 3 slot 3
      pipe.backward chunk 1 micro_batch 0 slot 0 gradient_slot 0
      pipe.send gradient chunk 1 micro_batch 0 slot 0 to 0 bytes 1
      pipe.backward chunk 1 micro_batch 1 slot 1 gradient_slot 1
      pipe.send gradient chunk 1 micro_batch 1 slot 1 to 0 bytes 1
      pipe.backward chunk 1 micro_batch 2 slot 2 gradient_slot 0
      pipe.send gradient chunk 1 micro_batch 2 slot 0 to 0 bytes 1
      pipe.backward chunk 1 micro_batch 3 slot 3 gradient_slot 1
      pipe.send gradient chunk 1 micro_batch 3 slot 1 to 0 bytes 1
      pipe.reduce over "all" bytes 8
      pipe.update
    }
  }
}
