// RUN: reprise-opt %s -split-input-file -verify-diagnostics --reprise-plan-memory

// expected-error@below {{needs a function @step to plan}}
module {}

// -----

module {
  // expected-error@below {{needs one block that returns to be planned}}
  func.func private @step()
}

// -----

// The offsets of what is larger would overflow.

// expected-error@below {{needs less than 1152921504606846976 bytes in all, but with 'tensor<16777216x16777216x16384xf32>' there are more}}
func.func @step(%x: tensor<16777216x16777216x16384xf32> {nn.gradient = "x"}) {
  return
}

// -----

// expected-error@below {{needs tensors of static shapes, of integers or floats, to be planned, but got 'memref<4xf32>'}}
func.func @step(%x: memref<4xf32>) {
  return
}

// -----

// expected-error@below {{needs a role for every argument, but argument #1 of type 'tensor<4xf32>' has none}}
func.func @step(%lr: tensor<f32> {nn.input = "lr"}, %x: tensor<4xf32>) {
  return
}

// -----

func.func @step(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  // expected-error@below {{'nn.gelu' op needs to be a launch, a GEMM or a collective by now}}
  %y = nn.gelu %w tanh : tensor<4xf32>
  return
}

// -----

// Buffer form is planned already.

func.func private @k(tensor<4xf32>) -> tensor<4xf32> attributes {rt.kernel}
func.func @step() {
  // expected-error@below {{'rt.buffer' op needs to be a launch, a GEMM or a collective by now}}
  %a = rt.buffer at <device, 0> : memref<4xf32>
  rt.launch @k(%a) to (%a) : (memref<4xf32>, memref<4xf32>) -> ()
  return
}

// -----

// In place of what is read later, by a later op or as another operand.

func.func private @k(tensor<4xf32> {rt.in_place = 0 : i64}, tensor<4xf32>) -> tensor<4xf32> attributes {rt.kernel}
func.func @step(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}, %v: tensor<4xf32> {nn.parameter = #nn.parameter<name = "v", init = ones>}) {
  // expected-error@below {{needs to be the last to read operand #0, which it overwrites, but it is read again}}
  %a = rt.launch @k(%w, %v) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = rt.launch @k(%w, %v) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func private @k(tensor<4xf32> {rt.in_place = 0 : i64}, tensor<4xf32>) -> tensor<4xf32> attributes {rt.kernel}
func.func @step(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  // expected-error@below {{needs to be the last to read operand #0, which it overwrites, but it is read again}}
  %a = rt.launch @k(%w, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func private @k(tensor<4xf32> {rt.in_place = 0 : i64}, tensor<4xf32> {rt.in_place = 0 : i64}) -> tensor<4xf32> attributes {rt.kernel}
func.func @step(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}, %v: tensor<4xf32> {nn.parameter = #nn.parameter<name = "v", init = ones>}) {
  // expected-error@below {{needs one operand to be overwritten by each result, but operand #1 is another one}}
  %a = rt.launch @k(%w, %v) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func private @k(tensor<4xf32> {rt.in_place = 1 : i64}) -> tensor<4xf32> attributes {rt.kernel}
func.func @step(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  // expected-error@below {{needs 'rt.in_place' of operand #0 to be a result of type 'tensor<4xf32>', but got 1}}
  %a = rt.launch @k(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func private @k(tensor<4xf32> {rt.may_alias = 0 : i64}) -> tensor<2xf32> attributes {rt.kernel}
func.func @step(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  // expected-error@below {{needs 'rt.may_alias' of operand #0 to be a result of type 'tensor<4xf32>', but got 0}}
  %a = rt.launch @k(%w) : (tensor<4xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @step(%w: tensor<4x4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}, %g: tensor<4x4xf32> {nn.gradient = "w"}) {
  // expected-error@below {{needs to be the last to read operand #2, which it overwrites, but it is read again}}
  %a = rt.gemm %w, %w addend(%g) m 4 n 4 k 4 lda 4 ldb 4 ldc 4 : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = rt.gemm %g, %w m 4 n 4 k 4 lda 4 ldb 4 ldc 4 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @step(%w: tensor<4x4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}, %g: tensor<4x4xf32> {nn.gradient = "w"}) {
  // expected-error@below {{needs to be the last to read operand #2, which it overwrites, but it is read again}}
  %a = rt.gemm %g, %w addend(%g) m 4 n 4 k 4 lda 4 ldb 4 ldc 4 : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

// The next step looks for a state where this step found it.

func.func private @k(tensor<4xf32>) -> tensor<4xf32> attributes {rt.kernel}
// expected-error@below {{needs result #0 to be made in place of the nn.parameter of 'w', but it has other bytes}}
func.func @step(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) -> (tensor<4xf32> {nn.parameter = "w"}) {
  %a = rt.launch @k(%w) : (tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

// expected-error@below {{needs result #1 to be made in place of the nn.moment1 of 'w', but it has other bytes}}
func.func @step(%m: tensor<4xf32> {nn.moment1 = "w"}, %v: tensor<4xf32> {nn.moment2 = "w"})
    -> (tensor<4xf32> {nn.moment1 = "w"}, tensor<4xf32> {nn.moment1 = "w"}) {
  return %m, %v : tensor<4xf32>, tensor<4xf32>
}

// -----

// One value cannot be in the bytes of two gradients.

func.func private @k(tensor<4xf32>) -> tensor<4xf32> attributes {rt.kernel}
// expected-error@below {{needs result #1 to be made in place of the nn.gradient of 'b', but it has other bytes}}
func.func @step(%x: tensor<4xf32> {nn.parameter = #nn.parameter<name = "x", init = ones>}, %ga: tensor<4xf32> {nn.gradient = "a"}, %gb: tensor<4xf32> {nn.gradient = "b"})
    -> (tensor<4xf32> {nn.gradient = "a"}, tensor<4xf32> {nn.gradient = "b"}) {
  %a = rt.launch @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %a, %a : tensor<4xf32>, tensor<4xf32>
}

// -----

// Nor are the bytes of a gradient taken from an argument that something reads,
// or of another shape.

func.func private @k(tensor<4xf32>) -> tensor<4xf32> attributes {rt.kernel}
// expected-error@below {{needs result #0 to be made in place of the nn.gradient of 'a', but it has other bytes}}
func.func @step(%ga: tensor<4xf32> {nn.gradient = "a"}) -> (tensor<4xf32> {nn.gradient = "a"}) {
  %a = rt.launch @k(%ga) : (tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

func.func private @k(tensor<4xf32>) -> tensor<4xf32> attributes {rt.kernel}
// expected-error@below {{needs result #0 to be made in place of the nn.gradient of 'a', but it has other bytes}}
func.func @step(%x: tensor<4xf32> {nn.parameter = #nn.parameter<name = "x", init = ones>}, %ga: tensor<8xf32> {nn.gradient = "a"}) -> (tensor<4xf32> {nn.gradient = "a"}) {
  %a = rt.launch @k(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

// expected-error@below {{needs an argument with nn.gradient of 'w', which result #0 is to replace}}
func.func @step(%m: tensor<4xf32> {nn.moment1 = "w"}) -> (tensor<4xf32> {nn.gradient = "w"}) {
  return %m : tensor<4xf32>
}

// -----

// expected-error@below {{needs result #0 with 'nn.output' "loss" to be a value of the schedule, but it is an argument's}}
func.func @step(%lr: tensor<f32> {nn.input = "lr"}) -> (tensor<f32> {nn.output = "loss"}) {
  return %lr : tensor<f32>
}

// RUN: echo "func.func @step() { return }" | not reprise-opt --pass-pipeline='builtin.module(reprise-plan-memory{alignment=48})' 2>&1 | FileCheck %s

// CHECK: error: needs an alignment that is a power of two, but got 48

// RUN: echo "func.func @step() { return }" | not reprise-opt --pass-pipeline='builtin.module(reprise-plan-memory{gemm-workspace=6})' 2>&1 | FileCheck %s --check-prefix=WORKSPACE

// WORKSPACE: error: 'builtin.module' op needs 'rt.gemm_workspace' to be a multiple of 4 bytes, but got 6

//===----------------------------------------------------------------------===//
// Beside the step
//===----------------------------------------------------------------------===//

// -----

func.func @step(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  return
}
// expected-error@below {{needs argument #0 to be one of @step too, since it outlives a schedule, but that has none with {nn.parameter = #nn.parameter<name = "v", init = ones>}}}
func.func @evaluate(%v: tensor<4xf32> {nn.parameter = #nn.parameter<name = "v", init = ones>}) {
  return
}

// -----

func.func @step(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  return
}
// expected-error@below {{needs argument #0 to have the 16 bytes that @step has for it, but got 20}}
func.func @sample(%w: tensor<5xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  return
}

// -----

func.func @step() {
  return
}
// expected-error@below {{needs one block that returns to be planned}}
func.func private @sample()

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

// -----

func.func @step(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  // expected-error@below {{needs parts that a launch or a GEMM makes for it alone, but got}}
  %y = rt.join %w : (tensor<4xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func private @make() -> tensor<4xf32> attributes {rt.kernel} {
  %c = nn.constant 1.0 : tensor<4xf32>
  return %c : tensor<4xf32>
}
func.func @step() {
  %a = rt.launch @make() : () -> tensor<4xf32>
  // expected-error@below {{needs parts that a launch or a GEMM makes for it alone, but got}}
  %y = rt.join %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func private @make() -> tensor<4x4xf32> attributes {rt.kernel} {
  %c = nn.constant 1.0 : tensor<4x4xf32>
  return %c : tensor<4x4xf32>
}
func.func @step() {
  %a = rt.launch @make() : () -> tensor<4x4xf32>
  %b = rt.launch @make() : () -> tensor<4x4xf32>
  // expected-error@below {{needs operand #2, which it overwrites, and its result to be whole values, but got parts}}
  %c = rt.gemm %a, %a addend(%b) m 4 n 4 k 4 lda 4 ldb 4 ldc 4 : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = rt.join %c : (tensor<4x4xf32>) -> tensor<16xf32>
  return
}

// -----

func.func private @k(tensor<16xbf16>) -> tensor<16xbf16> attributes {rt.kernel}
// expected-error @+1 {{needs result #0 to be made in place of the nn.working of 'w', but it has other bytes}}
func.func @step(%wh: tensor<16xbf16> {nn.working = "w"}) -> (tensor<16xbf16> {nn.working = "w"}) {
  %wh1 = rt.launch @k(%wh) : (tensor<16xbf16>) -> tensor<16xbf16>
  return %wh1 : tensor<16xbf16>
}
