// RUN: reprise-opt %s -split-input-file -verify-diagnostics --reprise-verify-plan

// The same bytes of two arenas are different bytes.

module attributes {rt.plan = #rt.plan<[
    <device, bytes = 128, least = 128, begin = 64, peak = 64, bound = 64, [<inputs_and_outputs, 64>, <activations, 64>]>,
    <host, bytes = 128, least = 128, begin = 0, peak = 128, bound = 128, [<activations, 128>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %lr = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    %a = rt.buffer at <host, 0> : memref<16xf32>
    rt.launch @k(%lr) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    %b = rt.buffer at <host, 64> : memref<16xf32>
    rt.launch @k(%a) to (%b) : (memref<16xf32>, memref<16xf32>) -> ()
    %c = rt.buffer at <device, 64> : memref<16xf32>
    rt.launch @k(%b) to (%c) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[
    <device, bytes = 64, least = 64, begin = 64, peak = 0, bound = 0, [<inputs_and_outputs, 64>]>,
    <host, bytes = 64, least = 64, begin = 0, peak = 64, bound = 64, [<activations, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %lr = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    // expected-note@below {{the value that is read}}
    %a = rt.buffer at <host, 0> : memref<16xf32>
    rt.launch @k(%lr) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    // expected-note@below {{the value that is there}}
    %b = rt.buffer at <host, 0> : memref<16xf32>
    rt.launch @k(%lr) to (%b) : (memref<16xf32>, memref<16xf32>) -> ()
    %c = rt.buffer at <host, 0> : memref<16xf32>
    // expected-error@below {{reads bytes [0, 64) of the host, which do not hold this value any more}}
    rt.launch @k(%a) to (%c) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// Written at an offset, read at the same one of the other space.

module attributes {rt.plan = #rt.plan<[
    <device, bytes = 64, least = 64, begin = 0, peak = 64, bound = 64, [<activations, 64>]>,
    <host, bytes = 64, least = 64, begin = 0, peak = 64, bound = 64, [<activations, 64>]>]>} {
  func.func private @make() -> tensor<16xf32> attributes {rt.kernel}
  func.func private @k(tensor<16xf32>) -> () attributes {rt.kernel}
  func.func @step() {
    %a = rt.buffer at <device, 0> : memref<16xf32>
    rt.launch @make() to (%a) : (memref<16xf32>) -> ()
    // expected-note@below {{the value that is read}}
    %b = rt.buffer at <host, 0> : memref<16xf32>
    // expected-error@below {{reads bytes [0, 64) of the host, which nothing has written}}
    rt.launch @k(%b) : (memref<16xf32>) -> ()
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 0, least = 0, begin = 0, peak = 0, bound = 0, []>]>} {
  func.func @step() {
    // expected-error@below {{needs an arena of its space, host, in 'rt.plan' of the module, but there is none}}
    %a = rt.buffer at <host, 0> : memref<16xf32>
    return
  }
}

// -----

// Each arena is checked: its buffers fit, its categories count them, and it
// ends with the last one.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 0, peak = 128, bound = 128, [<activations, 128>]>,
    <host, bytes = 64, least = 64, begin = 0, peak = 64, bound = 64, [<activations, 64>]>]>} {
  func.func @step() {
    %a = rt.buffer at <device, 64> : memref<16xf32>
    // expected-error@below {{needs to lie within the arena of 64 bytes, but has 64 bytes from 64 on}}
    %b = rt.buffer at <host, 64> : memref<16xf32>
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 64, least = 64, begin = 64, peak = 0, bound = 0, [<parameters, 64>]>,
    <host, bytes = 64, least = 64, begin = 0, peak = 64, bound = 64, [<activations, 64>]>]>} {
  // expected-error@below {{needs the bytes of all its buffers, 64, in the category 'parameters', but got 0}}
  func.func @step() {
    %w = rt.buffer at <host, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 64, least = 64, begin = 0, peak = 64, bound = 64, [<activations, 64>]>,
    <host, bytes = 128, least = 128, begin = 0, peak = 128, bound = 128, [<activations, 128>]>]>} {
  // expected-error@below {{needs an arena that ends with its last buffer, at 64, rounded up to the alignment of 64, but it has 128 bytes}}
  func.func @step() {
    %a = rt.buffer at <device, 0> : memref<16xf32>
    %b = rt.buffer at <host, 0> : memref<16xf32>
    return
  }
}
