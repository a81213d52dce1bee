// RUN: reprise-opt %s -split-input-file --reprise-plan-memory='most-launches=4' --reprise-verify-plan | FileCheck %s

// A device is given at most four launches at a time: of six micro-batches of one
// launch, three. Inputs take 128, 128 and 64 bytes; behind those of the first
// micro-batch are two more, and three for those that come next: 5 * 320.

//       CHECK: rt.most_launches = 4 : i64
//  CHECK-SAME: <inputs_and_outputs, 2112>
// CHECK-LABEL: func.func @step()
//   CHECK-DAG:   rt.buffer at <device, 0> {rt.role = "tokens"} : memref<2x9xi32>
//   CHECK-DAG:   rt.buffer at <device, 128> {rt.role = "targets"} : memref<2x9xi32>
//   CHECK-DAG:   rt.buffer at <device, 256> {rt.role = "rng"} : memref<4xi32>
//   CHECK-DAG:   rt.buffer at <device, 320> {rt.role = "batches"} : memref<1600xi8>
//   CHECK-DAG:   rt.buffer at <device, 1920> {rt.role = "lr"} : memref<f32>
//   CHECK-DAG:   rt.buffer at <device, 1984> {rt.rotary = {{.*}} : memref<3x4xf32>
//   CHECK-DAG:   rt.buffer at <device, 2048> {rt.role = "bias_correction1"} : memref<f32>
//       CHECK:   rt.launch
func.func private @k(tensor<2x9xi32>) -> tensor<18xf32> attributes {rt.kernel}
func.func @step(%lr: tensor<f32> {nn.input = "lr"}, %tokens: tensor<2x9xi32> {nn.input = "tokens"},
                %table: tensor<3x4xf32> {nn.rotary = #nn.rotary<theta = 1.0e+04>},
                %targets: tensor<2x9xi32> {nn.input = "targets"}, %c1: tensor<f32> {nn.input = "bias_correction1"},
                %rng: tensor<4xi32> {nn.input = "rng"}) attributes {nn.micro_batches = 6 : i64} {
  %y = rt.launch @k(%tokens) : (tensor<2x9xi32>) -> tensor<18xf32>
  rt.update
  %z = rt.launch @k(%targets) : (tensor<2x9xi32>) -> tensor<18xf32>
  return
}

// -----

// More launches than that in one micro-batch: one at a time, and the next one.

// CHECK-LABEL: func.func @step()
//       CHECK:   rt.buffer at <device, 128> {rt.role = "batches"} : memref<128xi8>
func.func private @k(tensor<2x9xi32>) -> tensor<18xf32> attributes {rt.kernel}
func.func @step(%tokens: tensor<2x9xi32> {nn.input = "tokens"}) attributes {nn.micro_batches = 5 : i64} {
  %a = rt.launch @k(%tokens) : (tensor<2x9xi32>) -> tensor<18xf32>
  %b = rt.launch @k(%tokens) : (tensor<2x9xi32>) -> tensor<18xf32>
  %c = rt.launch @k(%tokens) : (tensor<2x9xi32>) -> tensor<18xf32>
  return
}

// -----

// No micro-batches: the number of further places is one.

// CHECK-LABEL: func.func @step()
//       CHECK:   rt.buffer at <device, 128> {rt.role = "batches"} : memref<128xi8>
func.func @step(%tokens: tensor<2x9xi32> {nn.input = "tokens"}) {
  return
}
