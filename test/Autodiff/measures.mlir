// What is shown besides the loss: numbers are means over micro-batches, vectors
// are sums. A bias follows what was counted, once a step. Validation returns the
// loss alone.

// RUN: reprise-opt %s --reprise-derive-inference | FileCheck %s --check-prefix=INFERENCE
// RUN: reprise-opt %s --reprise-differentiate --reprise-add-optimizer | FileCheck %s
// RUN: reprise-opt %s --reprise-differentiate --reprise-group-gradients | FileCheck %s --check-prefix=GROUPS

// INFERENCE-LABEL: func @evaluate(
//       INFERENCE-NOT: count_rows
//       INFERENCE:   return %{{[^,]*}} : tensor<f32>

// CHECK-LABEL: func @step(
//  CHECK-SAME:   %[[W:[^:]*]]: tensor<f32> {nn.parameter =
//  CHECK-SAME:   %[[B:[^:]*]]: tensor<4xf32> {nn.follows = "layer0", nn.parameter =
//  CHECK-SAME:   %[[O:[^:]*]]: tensor<5xi32>
//  CHECK-SAME:   %{{[^:]*}}: tensor<f32> {nn.input = "loss_sum"}
//  CHECK-SAME:   %[[PART:[^:]*]]: tensor<f32> {nn.measure = "part"}
//  CHECK-SAME:   %[[SUM:[^:]*]]: tensor<4xf32> {nn.measure = "layer0"}
//  CHECK-SAME:   -> (tensor<f32> {nn.output = "loss"}, tensor<f32> {nn.measure = "part"}, tensor<4xf32> {nn.measure = "layer0"},
//       CHECK:   %[[N:.*]] = nn.count_rows %[[O]]
//       CHECK:   %[[SCALED:.*]] = nn.scale %[[W]] by 2.500000e-01
//       CHECK:   %[[NEXT:.*]] = nn.accumulate %[[PART]], %[[SCALED]]
//       CHECK:   %[[ROWS:.*]] = nn.accumulate %[[SUM]], %[[N]]
//       CHECK:   nn.backward
//       CHECK:   nn.update
//       CHECK:   %[[SCALE:.*]] = nn.clip_scale
//       CHECK:   nn.adamw
//       CHECK:   %[[NEW:.*]] = nn.balance_bias %[[B]], %[[ROWS]], %[[SCALE]] rate 5.000000e-01
//       CHECK:   return %{{[^,]*}}, %[[NEXT]], %[[ROWS]], {{.*}}, %[[NEW]] :

// GROUPS-LABEL: func @push_level_0(
//      GROUPS-DAG: tensor<4xf32> {nn.measure = "layer0"}
//      GROUPS-DAG: tensor<4xf32> {nn.partial = #nn.partial<name = "layer0", level = 0>}
module attributes {nn.train = {adam_beta1 = 9.0e-01 : f64, adam_beta2 = 9.5e-01 : f64, adam_eps = 1.0e-08 : f64,
                               weight_decay = 0.0 : f64, clip_grad = 1.0 : f64,
                               moe_router_bias_update_rate = 5.0e-01 : f64}} {
func.func @forward(%w: tensor<f32> {nn.parameter = #nn.parameter<name = "w", init = ones>},
                   %b: tensor<4xf32> {nn.follows = "layer0", nn.parameter = #nn.parameter<name = "b", init = zeros, frozen = true>},
                   %o: tensor<5xi32>)
    -> (tensor<f32>, tensor<f32> {nn.measure = "part"}, tensor<4xf32> {nn.measure = "layer0"})
    attributes {nn.micro_batches = 4, nn.reduction_groups = 2} {
  %n = nn.count_rows %o : (tensor<5xi32>) -> tensor<4xf32>
  %loss = nn.add %w, %w : tensor<f32>
  return %loss, %w, %n : tensor<f32>, tensor<f32>, tensor<4xf32>
}
}
