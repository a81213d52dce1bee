// RUN: reprise-opt %s --split-input-file --verify-diagnostics --reprise-verify-plan

// What puts sums over micro-batches aside puts each into the partial sum of its
// level, and begins another.

// A sum in its place.

module attributes {rt.plan = #rt.plan<[<device, bytes = 320, least = 320, begin = 256, peak = 64, bound = 64, [<parameters, 64>, <gradients, 192>, <activations, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @push(tensor<16xf32> {rt.in_place = 1 : i64}, tensor<16xf32> {rt.in_place = 0 : i64})
      -> (tensor<16xf32>, tensor<16xf32>) attributes {rt.kernel}
  func.func private @copy(tensor<16xf32>, tensor<16xf32> {rt.in_place = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %p0 = rt.buffer at <device, 128> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros>} : memref<16xf32>
    %p1 = rt.buffer at <device, 192> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros, level = 1>} : memref<16xf32>
    %a = rt.buffer at <device, 256> : memref<16xf32>
    rt.launch @k(%w) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
  func.func @push_level_0() {
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %p0 = rt.buffer at <device, 128> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros>} : memref<16xf32>
    %pushed = rt.buffer at <device, 128> : memref<16xf32>
    %rest = rt.buffer at <device, 64> : memref<16xf32>
    rt.launch @push(%g, %p0) to (%pushed, %rest) : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// The sums of another level wait for others.

module attributes {rt.plan = #rt.plan<[<device, bytes = 320, least = 320, begin = 256, peak = 64, bound = 64, [<parameters, 64>, <gradients, 192>, <activations, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @push(tensor<16xf32> {rt.in_place = 1 : i64}, tensor<16xf32> {rt.in_place = 0 : i64})
      -> (tensor<16xf32>, tensor<16xf32>) attributes {rt.kernel}
  func.func private @copy(tensor<16xf32>, tensor<16xf32> {rt.in_place = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %p0 = rt.buffer at <device, 128> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros>} : memref<16xf32>
    %p1 = rt.buffer at <device, 192> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros, level = 1>} : memref<16xf32>
    %a = rt.buffer at <device, 256> : memref<16xf32>
    rt.launch @k(%w) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
  func.func @push_level_1() {
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %p0 = rt.buffer at <device, 128> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros>} : memref<16xf32>
    %pushed = rt.buffer at <device, 128> : memref<16xf32>
    %rest = rt.buffer at <device, 64> : memref<16xf32>
    // expected-error@below {{writes bytes [128, 192) over the partial of 'w' in [128, 192), which @push_level_1 may only read}}
    rt.launch @push(%g, %p0) to (%pushed, %rest) : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// A running sum that stays would be added twice.

module attributes {rt.plan = #rt.plan<[<device, bytes = 320, least = 320, begin = 256, peak = 64, bound = 64, [<parameters, 64>, <gradients, 192>, <activations, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @push(tensor<16xf32> {rt.in_place = 1 : i64}, tensor<16xf32> {rt.in_place = 0 : i64})
      -> (tensor<16xf32>, tensor<16xf32>) attributes {rt.kernel}
  func.func private @copy(tensor<16xf32>, tensor<16xf32> {rt.in_place = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %p0 = rt.buffer at <device, 128> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros>} : memref<16xf32>
    %p1 = rt.buffer at <device, 192> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros, level = 1>} : memref<16xf32>
    %a = rt.buffer at <device, 256> : memref<16xf32>
    rt.launch @k(%w) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
  // expected-error@below {{needs to change the gradient of 'w' in [64, 128), as all that is summed over micro-batches, but does not}}
  func.func @push_level_0() {
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %p0 = rt.buffer at <device, 128> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros>} : memref<16xf32>
    %pushed = rt.buffer at <device, 128> : memref<16xf32>
    rt.launch @copy(%g, %p0) to (%pushed) : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// What goes forward alone changes no sum.

module attributes {rt.plan = #rt.plan<[<device, bytes = 320, least = 320, begin = 256, peak = 64, bound = 64, [<parameters, 64>, <gradients, 192>, <activations, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @push(tensor<16xf32> {rt.in_place = 1 : i64}, tensor<16xf32> {rt.in_place = 0 : i64})
      -> (tensor<16xf32>, tensor<16xf32>) attributes {rt.kernel}
  func.func private @copy(tensor<16xf32>, tensor<16xf32> {rt.in_place = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %p0 = rt.buffer at <device, 128> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros>} : memref<16xf32>
    %p1 = rt.buffer at <device, 192> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros, level = 1>} : memref<16xf32>
    %a = rt.buffer at <device, 256> : memref<16xf32>
    rt.launch @k(%w) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
  func.func @evaluate() {
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %p0 = rt.buffer at <device, 128> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros>} : memref<16xf32>
    %pushed = rt.buffer at <device, 128> : memref<16xf32>
    %rest = rt.buffer at <device, 64> : memref<16xf32>
    // expected-error@below {{writes bytes [128, 192) over the partial of 'w' in [128, 192), which @evaluate may only read}}
    rt.launch @push(%g, %p0) to (%pushed, %rest) : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// Nothing else puts sums aside.

module attributes {rt.plan = #rt.plan<[<device, bytes = 320, least = 320, begin = 256, peak = 64, bound = 64, [<parameters, 64>, <gradients, 192>, <activations, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @push(tensor<16xf32> {rt.in_place = 1 : i64}, tensor<16xf32> {rt.in_place = 0 : i64})
      -> (tensor<16xf32>, tensor<16xf32>) attributes {rt.kernel}
  func.func private @copy(tensor<16xf32>, tensor<16xf32> {rt.in_place = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %p0 = rt.buffer at <device, 128> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros>} : memref<16xf32>
    %p1 = rt.buffer at <device, 192> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros, level = 1>} : memref<16xf32>
    %a = rt.buffer at <device, 256> : memref<16xf32>
    rt.launch @k(%w) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
  // expected-error@below {{needs to be a kernel, or @step, @evaluate, @sample or @push_level_0 and so on, to be verified}}
  func.func @push_level() {
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %p0 = rt.buffer at <device, 128> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros>} : memref<16xf32>
    %pushed = rt.buffer at <device, 128> : memref<16xf32>
    %rest = rt.buffer at <device, 64> : memref<16xf32>
    rt.launch @push(%g, %p0) to (%pushed, %rest) : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// What is below its level comes with it.

module attributes {rt.plan = #rt.plan<[<device, bytes = 320, least = 320, begin = 256, peak = 64, bound = 64, [<parameters, 64>, <gradients, 192>, <activations, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @push(tensor<16xf32> {rt.in_place = 1 : i64}, tensor<16xf32> {rt.in_place = 0 : i64})
      -> (tensor<16xf32>, tensor<16xf32>) attributes {rt.kernel}
  func.func private @copy(tensor<16xf32>, tensor<16xf32> {rt.in_place = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %p0 = rt.buffer at <device, 128> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros>} : memref<16xf32>
    %p1 = rt.buffer at <device, 192> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros, level = 1>} : memref<16xf32>
    %a = rt.buffer at <device, 256> : memref<16xf32>
    rt.launch @k(%w) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
  // expected-error@below {{needs to add the partial of 'w', level 0, in [128, 192)}}
  func.func @push_level_1() {
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %p1 = rt.buffer at <device, 192> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros, level = 1>} : memref<16xf32>
    %pushed = rt.buffer at <device, 192> : memref<16xf32>
    %rest = rt.buffer at <device, 64> : memref<16xf32>
    rt.launch @push(%g, %p1) to (%pushed, %rest) : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// With two groups, sums of the first wait for those of the last.

module attributes {rt.plan = #rt.plan<[<device, bytes = 320, least = 320, begin = 256, peak = 64, bound = 64, [<parameters, 64>, <gradients, 192>, <activations, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @push(tensor<16xf32> {rt.in_place = 1 : i64}, tensor<16xf32> {rt.in_place = 0 : i64})
      -> (tensor<16xf32>, tensor<16xf32>) attributes {rt.kernel}
  func.func private @copy(tensor<16xf32>, tensor<16xf32> {rt.in_place = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  // expected-error@below {{needs to add the partial of 'w', level 0, in [128, 192)}}
  func.func @step() attributes {nn.micro_batches = 2 : i64, nn.reduction_groups = 2 : i64} {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %p0 = rt.buffer at <device, 128> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros>} : memref<16xf32>
    %p1 = rt.buffer at <device, 192> {rt.state = #rt.state<kind = partial, parameter = "w", init = zeros, level = 1>} : memref<16xf32>
    %a = rt.buffer at <device, 256> : memref<16xf32>
    rt.launch @k(%w) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}
