// RUN: reprise-opt %s -split-input-file -verify-diagnostics --reprise-plan-memory --reprise-verify-plan | FileCheck %s

// Each space has an arena of its own, and its values are packed by themselves.
// On the host %a and %c share 64 bytes, behind the 64 of the moment; %b is
// alive with both, but on the device.

//       CHECK: rt.plan = #rt.plan<[
//  CHECK-SAME:   <device, bytes = 128, least = 128, begin = 64, peak = 64, bound = 64, [<parameters, 64>, {{.*}}, <activations, 64>]>,
//  CHECK-SAME:   <host, bytes = 128, least = 128, begin = 64, peak = 64, bound = 64, [{{.*}} <optimizer_state, 64>, {{.*}}, <activations, 64>]>]>
// CHECK-LABEL: func.func @step() {
//  CHECK-NEXT:   %[[W:.*]] = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter
//  CHECK-NEXT:   rt.buffer at <host, 0> {rt.state = #rt.state<kind = moment1
//  CHECK-NEXT:   %[[A:.*]] = rt.buffer at <host, 64> : memref<16xf32>
//  CHECK-NEXT:   rt.launch @store(%[[W]]) to(%[[A]])
//  CHECK-NEXT:   %[[B:.*]] = rt.buffer at <device, 64> : memref<16xf32>
//  CHECK-NEXT:   rt.launch @load(%[[A]]) to(%[[B]])
//  CHECK-NEXT:   %[[C:.*]] = rt.buffer at <host, 64> : memref<16xf32>
//  CHECK-NEXT:   rt.launch @store(%[[B]]) to(%[[C]])
//  CHECK-NEXT:   return
func.func private @store(tensor<16xf32>) -> tensor<16xf32, #rt.space<host>> attributes {rt.kernel}
func.func private @load(tensor<16xf32, #rt.space<host>>) -> tensor<16xf32> attributes {rt.kernel}
func.func @step(%w: tensor<16xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>},
                %m: tensor<16xf32, #rt.space<host>> {nn.moment1 = "w"}) {
  %a = rt.launch @store(%w) : (tensor<16xf32>) -> tensor<16xf32, #rt.space<host>>
  %b = rt.launch @load(%a) : (tensor<16xf32, #rt.space<host>>) -> tensor<16xf32>
  %c = rt.launch @store(%b) : (tensor<16xf32>) -> tensor<16xf32, #rt.space<host>>
  return
}

// -----

// Parts lie in the space of the whole.

// CHECK-LABEL: func.func @step() {
//       CHECK:   %[[X:.*]] = rt.buffer at <host, 0> : memref<16xf32>
//       CHECK:   rt.launch @make() to(%[[X]])
//       CHECK:   rt.buffer at <host, 32> in %[[X]](memref<16xf32>) : memref<8xf32>
func.func private @make() -> tensor<16xf32, #rt.space<host>> attributes {rt.kernel}
func.func private @half(tensor<8xf32, #rt.space<host>>) -> tensor<8xf32> attributes {rt.kernel}
func.func @step() {
  %x = rt.launch @make() : () -> tensor<16xf32, #rt.space<host>>
  %v = rt.view %x from 8 : tensor<16xf32, #rt.space<host>> to tensor<8xf32, #rt.space<host>>
  %y = rt.launch @half(%v) : (tensor<8xf32, #rt.space<host>>) -> tensor<8xf32>
  return
}

// -----

// What runs beside the step has its own values where the activations of the
// step begin, in each space.

// CHECK-LABEL: func.func @evaluate() {
//       CHECK:   rt.buffer at <device, 64> : memref<16xf32>
//       CHECK:   rt.buffer at <host, 0> : memref<16xf32>
func.func private @load(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
func.func private @store(tensor<16xf32>) -> tensor<16xf32, #rt.space<host>> attributes {rt.kernel}
func.func @step(%w: tensor<16xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  return
}
func.func @evaluate(%w: tensor<16xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  %a = rt.launch @load(%w) : (tensor<16xf32>) -> tensor<16xf32>
  %b = rt.launch @store(%a) : (tensor<16xf32>) -> tensor<16xf32, #rt.space<host>>
  return
}

// -----

// expected-error@below {{needs no encoding but an #rt.space, to be planned, but got 'tensor<16xf32, "there">'}}
func.func @step(%w: tensor<16xf32, "there"> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  return
}
