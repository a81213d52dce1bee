// RUN: reprise-opt %s --split-input-file --verify-diagnostics --reprise-verify-plan

// The step of a stage has all micro-batches, which add to one sum of gradients.

// Each adds once, and the norm is of all of them.

module attributes {nn.stage = 0 : i64, rt.plan = #rt.plan<[<device, bytes = 320, least = 320, begin = 128, peak = 192, bound = 192, [<parameters, 64>, <gradients, 64>, <activations, 192>]>]>} {
  func.func private @make(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @add(tensor<16xf32>, tensor<16xf32> {rt.in_place = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @update(tensor<16xf32> {rt.in_place = 0 : i64}, tensor<16xf32> {rt.in_place = 1 : i64}, tensor<16xf32>)
      -> (tensor<16xf32>, tensor<16xf32>) attributes {rt.kernel}
  func.func @step() attributes {nn.micro_batches = 2 : i64} {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %x0 = rt.buffer at <device, 128> : memref<16xf32>
    %x1 = rt.buffer at <device, 192> : memref<16xf32>
    %norm = rt.buffer at <device, 256> : memref<16xf32>
    %sum = rt.buffer at <device, 64> : memref<16xf32>
    %all = rt.buffer at <device, 64> : memref<16xf32>
    %next = rt.buffer at <device, 0> : memref<16xf32>
    %zero = rt.buffer at <device, 64> : memref<16xf32>
    rt.launch @make(%w) to (%x0) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @make(%w) to (%x1) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @add(%x0, %g) to (%sum) : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @add(%x1, %sum) to (%all) : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    rt.update
    rt.launch @make(%all) to (%norm) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @update(%w, %all, %norm) to (%next, %zero) : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// One adds twice, in place of the other.

module attributes {nn.stage = 0 : i64, rt.plan = #rt.plan<[<device, bytes = 320, least = 320, begin = 128, peak = 192, bound = 192, [<parameters, 64>, <gradients, 64>, <activations, 192>]>]>} {
  func.func private @make(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @add(tensor<16xf32>, tensor<16xf32> {rt.in_place = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @update(tensor<16xf32> {rt.in_place = 0 : i64}, tensor<16xf32> {rt.in_place = 1 : i64}, tensor<16xf32>)
      -> (tensor<16xf32>, tensor<16xf32>) attributes {rt.kernel}
  func.func @step() attributes {nn.micro_batches = 2 : i64} {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %x0 = rt.buffer at <device, 128> : memref<16xf32>
    %x1 = rt.buffer at <device, 192> : memref<16xf32>
    %norm = rt.buffer at <device, 256> : memref<16xf32>
    %sum = rt.buffer at <device, 64> : memref<16xf32>
    %all = rt.buffer at <device, 64> : memref<16xf32>
    %next = rt.buffer at <device, 0> : memref<16xf32>
    %zero = rt.buffer at <device, 64> : memref<16xf32>
    rt.launch @make(%w) to (%x0) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @make(%w) to (%x1) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @add(%x0, %g) to (%sum) : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    // expected-error@below {{adds to the gradient of 'w' in [64, 128) what was added to it before}}
    rt.launch @add(%x0, %sum) to (%all) : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    rt.update
    rt.launch @make(%all) to (%norm) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @update(%w, %all, %norm) to (%next, %zero) : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// One is left out.

module attributes {nn.stage = 0 : i64, rt.plan = #rt.plan<[<device, bytes = 320, least = 320, begin = 128, peak = 192, bound = 192, [<parameters, 64>, <gradients, 64>, <activations, 192>]>]>} {
  func.func private @make(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @add(tensor<16xf32>, tensor<16xf32> {rt.in_place = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @update(tensor<16xf32> {rt.in_place = 0 : i64}, tensor<16xf32> {rt.in_place = 1 : i64}, tensor<16xf32>)
      -> (tensor<16xf32>, tensor<16xf32>) attributes {rt.kernel}
  func.func @step() attributes {nn.micro_batches = 2 : i64} {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    // expected-error@below {{needs each of 2 micro-batches to add to the gradient of 'w' as often, but they do so 1 times in all}}
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %x0 = rt.buffer at <device, 128> : memref<16xf32>
    %x1 = rt.buffer at <device, 192> : memref<16xf32>
    %norm = rt.buffer at <device, 256> : memref<16xf32>
    %sum = rt.buffer at <device, 64> : memref<16xf32>
    %all = rt.buffer at <device, 64> : memref<16xf32>
    %next = rt.buffer at <device, 0> : memref<16xf32>
    %zero = rt.buffer at <device, 64> : memref<16xf32>
    rt.launch @make(%w) to (%x0) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @make(%w) to (%x1) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @add(%x0, %g) to (%all) : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    rt.update
    rt.launch @make(%all) to (%norm) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @update(%w, %all, %norm) to (%next, %zero) : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// None adds.

module attributes {nn.stage = 0 : i64, rt.plan = #rt.plan<[<device, bytes = 320, least = 320, begin = 128, peak = 192, bound = 192, [<parameters, 64>, <gradients, 64>, <activations, 192>]>]>} {
  func.func private @make(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @add(tensor<16xf32>, tensor<16xf32> {rt.in_place = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @update(tensor<16xf32> {rt.in_place = 0 : i64}, tensor<16xf32> {rt.in_place = 1 : i64}, tensor<16xf32>)
      -> (tensor<16xf32>, tensor<16xf32>) attributes {rt.kernel}
  func.func @step() attributes {nn.micro_batches = 2 : i64} {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    // expected-error@below {{needs each of 2 micro-batches to add to the gradient of 'w' as often, but they do so 0 times in all}}
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %x0 = rt.buffer at <device, 128> : memref<16xf32>
    %x1 = rt.buffer at <device, 192> : memref<16xf32>
    %norm = rt.buffer at <device, 256> : memref<16xf32>
    %sum = rt.buffer at <device, 64> : memref<16xf32>
    %all = rt.buffer at <device, 64> : memref<16xf32>
    %next = rt.buffer at <device, 0> : memref<16xf32>
    %zero = rt.buffer at <device, 64> : memref<16xf32>
    rt.launch @make(%w) to (%x0) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @make(%w) to (%x1) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.update
    rt.launch @make(%g) to (%norm) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @update(%w, %g, %norm) to (%next, %zero) : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// The sum is read before the last one has added.

module attributes {nn.stage = 0 : i64, rt.plan = #rt.plan<[<device, bytes = 320, least = 320, begin = 128, peak = 192, bound = 192, [<parameters, 64>, <gradients, 64>, <activations, 192>]>]>} {
  func.func private @make(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @add(tensor<16xf32>, tensor<16xf32> {rt.in_place = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @update(tensor<16xf32> {rt.in_place = 0 : i64}, tensor<16xf32> {rt.in_place = 1 : i64}, tensor<16xf32>)
      -> (tensor<16xf32>, tensor<16xf32>) attributes {rt.kernel}
  func.func @step() attributes {nn.micro_batches = 2 : i64} {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %x0 = rt.buffer at <device, 128> : memref<16xf32>
    %x1 = rt.buffer at <device, 192> : memref<16xf32>
    %norm = rt.buffer at <device, 256> : memref<16xf32>
    %sum = rt.buffer at <device, 64> : memref<16xf32>
    %all = rt.buffer at <device, 64> : memref<16xf32>
    %next = rt.buffer at <device, 0> : memref<16xf32>
    %zero = rt.buffer at <device, 64> : memref<16xf32>
    rt.launch @make(%w) to (%x0) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @make(%w) to (%x1) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @add(%x0, %g) to (%sum) : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    // expected-note@below {{here}}
    rt.launch @make(%sum) to (%norm) : (memref<16xf32>, memref<16xf32>) -> ()
    // expected-error@below {{adds to the gradient of 'w' in [64, 128), which was read as a whole before}}
    rt.launch @add(%x1, %sum) to (%all) : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    rt.update
    rt.launch @update(%w, %all, %norm) to (%next, %zero) : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// So it is where stages sum what both have of a table, behind the norm.

module attributes {nn.mesh = #nn.mesh<pp = 2>, nn.stage = 0 : i64, rt.plan = #rt.plan<[<device, bytes = 320, least = 320, begin = 128, peak = 192, bound = 192, [<parameters, 64>, <gradients, 64>, <activations, 192>]>]>} {
  func.func private @make(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @add(tensor<16xf32>, tensor<16xf32> {rt.in_place = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @update(tensor<16xf32> {rt.in_place = 0 : i64}, tensor<16xf32> {rt.in_place = 1 : i64}, tensor<16xf32>)
      -> (tensor<16xf32>, tensor<16xf32>) attributes {rt.kernel}
  func.func @step() attributes {nn.micro_batches = 2 : i64} {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %x0 = rt.buffer at <device, 128> : memref<16xf32>
    %x1 = rt.buffer at <device, 192> : memref<16xf32>
    %norm = rt.buffer at <device, 256> : memref<16xf32>
    %sum = rt.buffer at <device, 64> : memref<16xf32>
    %all = rt.buffer at <device, 64> : memref<16xf32>
    %next = rt.buffer at <device, 0> : memref<16xf32>
    %zero = rt.buffer at <device, 64> : memref<16xf32>
    rt.launch @make(%w) to (%x0) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @make(%w) to (%x1) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @add(%x0, %g) to (%sum) : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @add(%x1, %sum) to (%all) : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    %both = rt.buffer at <device, 64> : memref<16xf32>
    %room = rt.buffer at <device, 128> : memref<16xf32>
    rt.update
    // expected-note@below {{here}}
    rt.launch @make(%all) to (%norm) : (memref<16xf32>, memref<16xf32>) -> ()
    // expected-error@below {{adds to the gradient of 'w' in [64, 128), which was read as a whole before}}
    rt.collective all_reduce(%all) to(%both) workspace(%room) over "pp" ranks 2 : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @update(%w, %both, %norm) to (%next, %zero) : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}
