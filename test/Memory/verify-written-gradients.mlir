// RUN: reprise-opt %s -split-input-file -verify-diagnostics --reprise-verify-plan

// Gradients that a step makes from nothing, init = none.

// A plan that holds: the gradient has the last half of %a, which nothing reads
// any more, and bytes that nothing else has. Another gradient takes the place of
// %b where that is read last. To the first a GEMM adds, then the update reads
// both. What a step has of micro-batches, if it does not say, is one.

module attributes {rt.plan = #rt.plan<[<device, bytes = 1248, least = 1248, begin = 160, peak = 1088, bound = 1088, [<parameters, 64>, <gradients, 32>, <inputs_and_outputs, 64>, <activations, 1088>]>]>} {
  func.func private @k(tensor<4x4xf32> {rt.may_alias = 0 : i64}) -> tensor<4x4xf32> attributes {rt.kernel}
  func.func private @update(tensor<4x4xf32> {rt.in_place = 0 : i64}, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> attributes {rt.kernel}
  func.func @step() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<4x4xf32>
    %lr = rt.buffer at <device, 64> {rt.role = "lr"} : memref<4x4xf32>
    %g = rt.buffer at <device, 1184> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<4x4xf32>
    %h = rt.buffer at <device, 128> {rt.state = #rt.state<kind = gradient, parameter = "v", init = none>} : memref<4x4xf32>
    %a = rt.buffer at <device, 1152> : memref<4x4xf32>
    rt.launch @k(%w) to (%a) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    %b = rt.buffer at <device, 128> : memref<4x4xf32>
    rt.launch @k(%a) to (%b) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    rt.launch @k(%w) to (%g) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    rt.launch @k(%b) to (%h) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    %g1 = rt.buffer at <device, 1184> : memref<4x4xf32>
    %s = rt.buffer at <device, 192> : memref<224xf32>
    rt.gemm %w, %h to (%g1) workspace(%s) accumulate m 4 n 4 k 4 lda 4 ldb 4 ldc 4 : (memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>, memref<224xf32>) -> ()
    rt.update
    %w1 = rt.buffer at <device, 0> : memref<4x4xf32>
    rt.launch @update(%w, %g1, %h) to (%w1) : (memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>) -> ()
    return
  }
  // Between two steps they hold nothing.
  func.func @evaluate() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<4x4xf32>
    %a = rt.buffer at <device, 128> : memref<4x4xf32>
    rt.launch @k(%w) to (%a) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    %loss = rt.buffer at <device, 1184> {rt.role = "eval_loss"} : memref<4x4xf32>
    rt.launch @k(%a) to (%loss) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    return
  }
}

// -----

// Over a value that is read once more.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 64, peak = 64, bound = 64, [<inputs_and_outputs, 64>, <activations, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    // expected-note@below {{the value that is there}}
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<16xf32>
    // expected-note@below {{the value that is read}}
    %a = rt.buffer at <device, 64> : memref<16xf32>
    rt.launch @k(%x) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @k(%x) to (%g) : (memref<16xf32>, memref<16xf32>) -> ()
    %b = rt.buffer at <device, 64> : memref<16xf32>
    // expected-error@below {{reads bytes [64, 128), which do not hold this value any more}}
    rt.launch @k(%a) to (%b) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// Over a part of one.

module attributes {rt.plan = #rt.plan<[<device, bytes = 160, least = 160, begin = 96, peak = 64, bound = 64, [<gradients, 32>, <inputs_and_outputs, 64>, <activations, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    // expected-note@below {{the value that is there}}
    %g = rt.buffer at <device, 96> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<16xf32>
    // expected-note@below {{the value that is read}}
    %a = rt.buffer at <device, 64> : memref<16xf32>
    rt.launch @k(%x) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @k(%x) to (%g) : (memref<16xf32>, memref<16xf32>) -> ()
    %b = rt.buffer at <device, 64> : memref<16xf32>
    // expected-error@below {{reads bytes [64, 128), which do not hold this value any more}}
    rt.launch @k(%a) to (%b) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// Read before it is made: what the step before has left, or anything else.

module attributes {rt.plan = #rt.plan<[<device, bytes = 192, least = 192, begin = 128, peak = 64, bound = 64, [<gradients, 64>, <inputs_and_outputs, 64>, <activations, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    // expected-note@below {{the value that is read}}
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<16xf32>
    %a = rt.buffer at <device, 128> : memref<16xf32>
    // expected-error@below {{reads bytes [64, 128), which nothing has written}}
    rt.launch @k(%g) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @k(%x) to (%g) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// Added to before it is made.

module attributes {rt.plan = #rt.plan<[<device, bytes = 1024, least = 1024, begin = 128, peak = 896, bound = 896, [<gradients, 64>, <inputs_and_outputs, 64>, <activations, 896>]>]>} {
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<4x4xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<4x4xf32>
    %g1 = rt.buffer at <device, 64> : memref<4x4xf32>
    %s = rt.buffer at <device, 128> : memref<224xf32>
    // expected-error@below {{adds to bytes [64, 128), which do not hold one value to add to}}
    rt.gemm %x, %x to (%g1) workspace(%s) accumulate m 4 n 4 k 4 lda 4 ldb 4 ldc 4 : (memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>, memref<224xf32>) -> ()
    return
  }
}

// -----

// Made twice: the first term is lost.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 128, peak = 0, bound = 0, [<gradients, 64>, <inputs_and_outputs, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<16xf32>
    rt.launch @k(%x) to (%g) : (memref<16xf32>, memref<16xf32>) -> ()
    // expected-error@below {{writes the gradient of 'w' to bytes [64, 128), where the step has made it before}}
    rt.launch @k(%x) to (%g) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// What comes later has its bytes, though the norm has read it: a dump, say,
// looks at the end of the step.

module attributes {rt.plan = #rt.plan<[<device, bytes = 192, least = 192, begin = 128, peak = 64, bound = 64, [<gradients, 64>, <inputs_and_outputs, 64>, <activations, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<16xf32>
    rt.launch @k(%x) to (%g) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.update
    %a = rt.buffer at <device, 128> : memref<16xf32>
    rt.launch @k(%g) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    %b = rt.buffer at <device, 64> : memref<16xf32>
    // expected-error@below {{writes bytes [64, 128) over the gradient of 'w' in [64, 128), which stays to the end of the step}}
    rt.launch @k(%a) to (%b) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// The same of a part.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 128, peak = 0, bound = 0, [<gradients, 64>, <inputs_and_outputs, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @half(tensor<16xf32>) -> tensor<8xf32> attributes {rt.kernel}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<16xf32>
    rt.launch @k(%x) to (%g) : (memref<16xf32>, memref<16xf32>) -> ()
    %b = rt.buffer at <device, 96> : memref<8xf32>
    // expected-error@below {{writes bytes [96, 128) over the gradient of 'w' in [64, 128), which stays to the end of the step}}
    rt.launch @half(%x) to (%b) : (memref<16xf32>, memref<8xf32>) -> ()
    return
  }
}

// -----

// Two gradients in the same bytes.

module attributes {rt.plan = #rt.plan<[<device, bytes = 160, least = 160, begin = 160, peak = 0, bound = 0, [<gradients, 96>, <inputs_and_outputs, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    // expected-note@below {{which is here}}
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<16xf32>
    %h = rt.buffer at <device, 96> {rt.state = #rt.state<kind = gradient, parameter = "v", init = none>} : memref<16xf32>
    rt.launch @k(%x) to (%g) : (memref<16xf32>, memref<16xf32>) -> ()
    // expected-error@below {{writes the gradient of 'v' to bytes [96, 160), over the gradient of 'w' in [64, 128)}}
    rt.launch @k(%x) to (%h) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// In bytes of what outlives the step.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 128, peak = 0, bound = 0, [<parameters, 64>, <inputs_and_outputs, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    // expected-note@below {{which is here}}
    %w = rt.buffer at <device, 64> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<16xf32>
    // expected-error@below {{writes the gradient of 'w' to bytes [64, 128), over the parameter of 'w' in [64, 128)}}
    rt.launch @k(%x) to (%g) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// Half of it.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 128, peak = 0, bound = 0, [<gradients, 64>, <inputs_and_outputs, 64>]>]>} {
  func.func private @half(tensor<16xf32>) -> tensor<8xf32> attributes {rt.kernel}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<16xf32>
    %part = rt.buffer at <device, 64> in %g(memref<16xf32>) : memref<8xf32>
    // expected-error@below {{writes bytes [64, 96) of the gradient of 'w' in [64, 128), which is made as a whole}}
    rt.launch @half(%x) to (%part) : (memref<16xf32>, memref<8xf32>) -> ()
    return
  }
}

// -----

// Not made, or not there: through another buffer it could be any value.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 128, peak = 0, bound = 0, [<gradients, 64>, <inputs_and_outputs, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    // expected-error@below {{needs the gradient of 'w' to be made in bytes [64, 128), but nothing writes them}}
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<16xf32>
    %a = rt.buffer at <device, 64> : memref<16xf32>
    rt.launch @k(%x) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.update
    return
  }
}

// -----

// With more than one micro-batch each would write over those before.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 128, peak = 0, bound = 0, [<gradients, 64>, <inputs_and_outputs, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() attributes {nn.micro_batches = 2 : i64} {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    // expected-error@below {{needs the gradient of 'w' to be there before the step, where each of 2 micro-batches adds to it}}
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<16xf32>
    rt.launch @k(%x) to (%g) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// Between two steps there is no such gradient.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 128, peak = 0, bound = 0, [<gradients, 64>, <inputs_and_outputs, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<16xf32>
    rt.launch @k(%x) to (%g) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
  func.func @evaluate() {
    // expected-error@below {{needs bytes [64, 128) to be the gradient of 'w' in @step too, but they are not}}
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<16xf32>
    return
  }
}

// -----

// What it takes beside other values is counted.

module attributes {rt.plan = #rt.plan<[<device, bytes = 192, least = 192, begin = 128, peak = 64, bound = 64, [<inputs_and_outputs, 128>, <activations, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  // expected-error@below {{needs the bytes of all its buffers, 128, in the categories 'gradients' and 'activations', but got 64}}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    %g = rt.buffer at <device, 128> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<16xf32>
    %a = rt.buffer at <device, 64> : memref<16xf32>
    rt.launch @k(%x) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.launch @k(%x) to (%g) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// Added to what another value has left there.

module attributes {rt.plan = #rt.plan<[<device, bytes = 1088, least = 1088, begin = 64, peak = 1024, bound = 1024, [<inputs_and_outputs, 64>, <activations, 1024>]>]>} {
  func.func private @k(tensor<4x4xf32>) -> tensor<4x4xf32> attributes {rt.kernel}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<4x4xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<4x4xf32>
    %a = rt.buffer at <device, 64> : memref<4x4xf32>
    rt.launch @k(%x) to (%a) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    %s = rt.buffer at <device, 128> : memref<240xf32>
    // expected-error@below {{changes}}
    rt.gemm %x, %x to (%g) workspace(%s) accumulate m 4 n 4 k 4 lda 4 ldb 4 ldc 4 : (memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>, memref<240xf32>) -> ()
    rt.update
    return
  }
}

// -----

// Made where the norm of all gradients has been taken.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 64, peak = 64, bound = 64, [<inputs_and_outputs, 64>, <activations, 64>]>]>} {
  func.func private @k(tensor<4x4xf32>) -> tensor<4x4xf32> attributes {rt.kernel}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<4x4xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<4x4xf32>
    rt.update
    // expected-error@below {{makes}}
    rt.launch @k(%x) to (%g) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    return
  }
}
