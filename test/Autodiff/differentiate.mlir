// RUN: reprise-opt %s -split-input-file --reprise-differentiate | FileCheck %s

// The example of the pass's description. The loss of the step grows by that of
// the micro-batch, and so do the gradients; with one micro-batch the weight is 1.

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   %[[X:[^:]*]]: tensor<2x8xf32>,
//  CHECK-SAME:   %[[W:[^:]*]]: tensor<2x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>},
//  CHECK-SAME:   %[[SUM:[^:]*]]: tensor<f32> {nn.input = "loss_sum"},
//  CHECK-SAME:   %[[GW:[^:]*]]: tensor<2x8xf32> {nn.gradient = "w"})
//  CHECK-SAME:   -> (tensor<f32> {nn.output = "loss"}, tensor<2x8xf32> {nn.gradient = "w"})
//  CHECK-SAME:   nn.micro_batches = 1
//  CHECK-NEXT:   %[[Y:.*]] = nn.add %[[X]], %[[W]]
//  CHECK-NEXT:   %[[LOSS:.*]] = nn.mean %[[Y]]
//  CHECK-NEXT:   %[[PART:.*]] = nn.scale %[[LOSS]] by 1.000000e+00
//  CHECK-NEXT:   %[[TOTAL:.*]] = nn.accumulate %[[SUM]], %[[PART]]
//  CHECK-NEXT:   nn.backward
//  CHECK-NEXT:   %[[SEED:.*]] = nn.constant 1.000000e+00 {nn.scope = #nn.scope<module = "loss", value = "total">}
//  CHECK-NEXT:   %[[DY:.*]] = nn.broadcast %[[SEED]] by 6.250000e-02
//  CHECK-NEXT:   %[[GW1:.*]] = nn.accumulate %[[GW]], %[[DY]]
//  CHECK-NEXT:   return %[[TOTAL]], %[[GW1]]
func.func @forward(%x: tensor<2x8xf32>, %w: tensor<2x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<f32>
    attributes {nn.micro_batches = 1 : i64} {
  %y = nn.add %x, %w : tensor<2x8xf32>
  %loss = nn.mean %y : (tensor<2x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Of 4 micro-batches each counts a quarter, in the loss and in the gradients.

// CHECK-LABEL: func.func @step(
//       CHECK:   %[[LOSS:.*]] = nn.mean
//  CHECK-NEXT:   nn.scale %[[LOSS]] by 2.500000e-01
//       CHECK:   nn.backward
//  CHECK-NEXT:   nn.constant 2.500000e-01
func.func @forward(%w: tensor<8xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) -> tensor<f32>
    attributes {nn.micro_batches = 4 : i64} {
  %loss = nn.mean %w : (tensor<8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A value that is read three times gets the gradients of its last reader first;
// each sum carries the scope of the op whose contribution it adds.

// CHECK-LABEL: func.func @step(
//       CHECK:   nn.backward
//       CHECK:   %[[D:.*]] = nn.broadcast
//  CHECK-NEXT:   %[[D2:.*]] = nn.scale %[[D]] by 2.000000e+00
//  CHECK-NEXT:   %[[BOTH:.*]] = nn.add %[[D]], %[[D2]] {nn.scope = #nn.scope<layer = 2, module = "mlp">}
//  CHECK-NEXT:   %[[D1:.*]] = nn.scale %[[D2]] by 3.000000e+00 {nn.scope = #nn.scope<layer = 1, module = "mlp">}
//  CHECK-NEXT:   %[[ALL:.*]] = nn.add %[[BOTH]], %[[D1]] {nn.scope = #nn.scope<layer = 1, module = "mlp">}
//  CHECK-NEXT:   nn.accumulate %{{.*}}, %[[ALL]] {nn.scope = #nn.scope<layer = 1, module = "mlp">}
//  CHECK-NEXT:   return
func.func @forward(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) -> tensor<f32> {
  %a = nn.scale %w by 3.0 {nn.scope = #nn.scope<layer = 1, module = "mlp">} : tensor<4xf32>
  %b = nn.add %w, %a {nn.scope = #nn.scope<layer = 2, module = "mlp">} : tensor<4xf32>
  %c = nn.scale %b by 2.0 {nn.scope = #nn.scope<layer = 2, module = "mlp">} : tensor<4xf32>
  %d = nn.add %w, %c {nn.scope = #nn.scope<layer = 3, module = "mlp">} : tensor<4xf32>
  %loss = nn.mean %d : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// An op that reads a value twice adds both contributions, that of the first
// operand first.

// CHECK-LABEL: func.func @step(
//       CHECK:   nn.backward
//       CHECK:   %[[D:.*]] = nn.broadcast
//  CHECK-NEXT:   %[[TWICE:.*]] = nn.add %[[D]], %[[D]]
//  CHECK-NEXT:   nn.accumulate %{{.*}}, %[[TWICE]]
//  CHECK-NEXT:   return
func.func @forward(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) -> tensor<f32> {
  %a = nn.add %w, %w : tensor<4xf32>
  %loss = nn.mean %a : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Nothing is computed for a frozen weight, nor for the input that only it and
// data lead to: of both GEMMs' six gradients three are left.

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   %[[X:[^:]*]]: tensor<4x4xf32>, %[[W:[^:]*]]: tensor<4x4xf32> {nn.parameter = #nn.parameter<name = "frozen", init = zeros, frozen = true>},
//  CHECK-SAME:   %[[V:[^:]*]]: tensor<4x4xf32> {nn.parameter = #nn.parameter<name = "v", init = zeros>},
//  CHECK-SAME:   %[[B:[^:]*]]: tensor<4xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>},
//  CHECK-SAME:   {nn.input = "loss_sum"}, %[[GV:[^:]*]]: tensor<4x4xf32> {nn.gradient = "v"}, %[[GB:[^:]*]]: tensor<4xf32> {nn.gradient = "b"})
//  CHECK-NEXT:   %[[H:.*]] = nn.linear %[[X]], %[[W]]
//       CHECK:   nn.backward
//       CHECK:   %[[DY:.*]] = nn.broadcast
//  CHECK-NEXT:   %[[DV:.*]] = nn.linear_backward_weight %[[H]], %[[DY]]
//  CHECK-NEXT:   %[[GV1:.*]] = nn.accumulate %[[GV]], %[[DV]]
//  CHECK-NEXT:   %[[DB:.*]] = nn.sum_rows %[[DY]]
//  CHECK-NEXT:   %[[GB1:.*]] = nn.accumulate %[[GB]], %[[DB]]
//  CHECK-NEXT:   return %{{.*}}, %[[GV1]], %[[GB1]]
func.func @forward(%x: tensor<4x4xf32>,
                   %w: tensor<4x4xf32> {nn.parameter = #nn.parameter<name = "frozen", init = zeros, frozen = true>},
                   %v: tensor<4x4xf32> {nn.parameter = #nn.parameter<name = "v", init = zeros>},
                   %b: tensor<4xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>}) -> tensor<f32> {
  %h = nn.linear %x, %w in_out : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = nn.linear %h, %v, %b in_out : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %loss = nn.mean %y : (tensor<4x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A frozen weight on the way of another one lets the gradient through.

// CHECK-LABEL: func.func @step(
//       CHECK:   nn.backward
//       CHECK:   %[[DY:.*]] = nn.broadcast
//   CHECK-NOT:   backward_weight
//       CHECK:   %[[DE:.*]] = nn.linear_backward_input %[[DY]]
//  CHECK-NEXT:   nn.accumulate %{{.*}}, %[[DE]]
//  CHECK-NEXT:   return
func.func @forward(%e: tensor<4x4xf32> {nn.parameter = #nn.parameter<name = "e", init = zeros>},
                   %w: tensor<4x4xf32> {nn.parameter = #nn.parameter<name = "frozen", init = zeros, frozen = true>}) -> tensor<f32> {
  %y = nn.linear %e, %w in_out : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %loss = nn.mean %y : (tensor<4x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// All frozen: a step without gradients.

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   -> (tensor<f32> {nn.output = "loss"})
//       CHECK:   nn.backward
//  CHECK-NEXT:   nn.constant
//  CHECK-NEXT:   return
func.func @forward(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones, frozen = true>}) -> tensor<f32> {
  %loss = nn.mean %w : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// What does not reach the loss needs no derivative, though it reads a parameter.

// CHECK-LABEL: func.func @step(
//       CHECK:   nn.global_norm
//       CHECK:   nn.backward
//   CHECK-NOT:   norm
//       CHECK:   return
func.func @forward(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) -> tensor<f32> {
  %norm = nn.global_norm %w : (tensor<4xf32>) -> tensor<f32>
  %loss = nn.mean %w : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Backward ops have the location and the scope of the op they belong to.

// RUN: reprise-opt %s -split-input-file --reprise-differentiate --mlir-print-debuginfo --mlir-print-local-scope \
// RUN: | FileCheck %s --check-prefix=LOC

// LOC-LABEL: func.func @step(%{{.*}}: tensor<8xf32> {nn.parameter = #nn.parameter<name = "gelu", init = ones>}
//       LOC:   nn.backward
//       LOC:   nn.gelu_backward {{.*}} {nn.scope = #nn.scope<layer = 7, module = "mlp", value = "g">} : tensor<8xf32> loc("gpt2.yaml":3:5)
//  LOC-NEXT:   nn.accumulate {{.*}} {nn.scope = #nn.scope<layer = 7, module = "mlp", value = "g">} : tensor<8xf32> loc("gpt2.yaml":3:5)
func.func @forward(%w: tensor<8xf32> {nn.parameter = #nn.parameter<name = "gelu", init = ones>}) -> tensor<f32> {
  %g = nn.gelu %w tanh {nn.scope = #nn.scope<layer = 7, module = "mlp", value = "g">} : tensor<8xf32> loc("gpt2.yaml":3:5)
  %loss = nn.mean %g : (tensor<8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
