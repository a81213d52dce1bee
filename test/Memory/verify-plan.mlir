// RUN: reprise-opt %s -split-input-file -verify-diagnostics --reprise-verify-plan

// A plan that holds: %b in place of %a, where the kernel allows it; %c and the
// GEMM's result in bytes that are free by then; a gradient that is added to,
// a parameter that is updated, an output that the step makes.

module attributes {rt.plan = #rt.plan<[<device, bytes = 1344, least = 1344, begin = 256, peak = 1088, bound = 1088, [<parameters, 64>, <gradients, 64>, <inputs_and_outputs, 128>, <activations, 1088>]>]>} {
  func.func private @k(tensor<4x4xf32> {rt.may_alias = 0 : i64}) -> tensor<4x4xf32> attributes {rt.kernel}
  func.func private @update(tensor<4x4xf32> {rt.in_place = 0 : i64}, tensor<4x4xf32> {rt.in_place = 1 : i64}, tensor<f32>)
      -> (tensor<4x4xf32>, tensor<4x4xf32>) attributes {rt.kernel}
  func.func private @norm(tensor<4x4xf32>) -> tensor<f32> attributes {rt.kernel}
  func.func @step() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<4x4xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<4x4xf32>
    %lr = rt.buffer at <device, 128> {rt.role = "lr"} : memref<f32>
    %a = rt.buffer at <device, 256> : memref<4x4xf32>
    rt.launch @k(%w) to (%a) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    %b = rt.buffer at <device, 256> : memref<4x4xf32>
    rt.launch @k(%a) to (%b) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    %c = rt.buffer at <device, 320> : memref<4x4xf32>
    rt.launch @k(%b) to (%c) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    %g1 = rt.buffer at <device, 64> : memref<4x4xf32>
    %s = rt.buffer at <device, 448> : memref<224xf32>
    rt.gemm %c, %w to (%g1) workspace(%s) accumulate m 4 n 4 k 4 lda 4 ldb 4 ldc 4
      : (memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>, memref<224xf32>) -> ()
    rt.update
    %norm = rt.buffer at <device, 192> {rt.role = "grad_norm"} : memref<f32>
    rt.launch @norm(%g1) to (%norm) : (memref<4x4xf32>, memref<f32>) -> ()
    %w1 = rt.buffer at <device, 0> : memref<4x4xf32>
    %g2 = rt.buffer at <device, 64> : memref<4x4xf32>
    rt.launch @update(%w, %g1, %lr) to (%w1, %g2) : (memref<4x4xf32>, memref<4x4xf32>, memref<f32>, memref<4x4xf32>, memref<4x4xf32>) -> ()
    return
  }
}

// -----

// Nothing planned: nothing to refuse.

module attributes {rt.plan = #rt.plan<[<device, bytes = 0, least = 0, begin = 0, peak = 0, bound = 0, []>]>} {
  func.func @step() {
    return
  }
}

// -----

// Beside the step: the parameter is where the step has it, and all else over
// the step's activations; the logits are there at the end, in bytes that the
// position had.

module attributes {rt.plan = #rt.plan<[<device, bytes = 256, least = 256, begin = 128, peak = 128, bound = 128, [<parameters, 64>, <gradients, 64>, <activations, 128>]>]>} {
  func.func private @k(tensor<4x4xf32>) -> tensor<4x4xf32> attributes {rt.kernel}
  func.func private @take(tensor<4x4xf32>, tensor<16xi32>) -> tensor<4x4xf32> attributes {rt.kernel}
  func.func @step() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<4x4xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<4x4xf32>
    %a = rt.buffer at <device, 128> : memref<4x4xf32>
    rt.launch @k(%w) to (%a) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    return
  }
  func.func @sample() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<4x4xf32>
    %position = rt.buffer at <device, 128> {rt.role = "position"} : memref<16xi32>
    %a = rt.buffer at <device, 192> : memref<4x4xf32>
    rt.launch @take(%w, %position) to (%a) : (memref<4x4xf32>, memref<16xi32>, memref<4x4xf32>) -> ()
    %logits = rt.buffer at <device, 128> {rt.role = "logits"} : memref<4x4xf32>
    rt.launch @k(%a) to (%logits) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    return
  }
}

//===----------------------------------------------------------------------===//
// The arena
//===----------------------------------------------------------------------===//

// -----

// expected-error@below {{needs a schedule @step to verify}}
module attributes {rt.plan = #rt.plan<[<device, bytes = 0, least = 0, begin = 0, peak = 0, bound = 0, []>]>} {}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 0, least = 0, begin = 0, peak = 0, bound = 0, []>]>} {
  func.func @step() {
    return
  }
  // expected-error@below {{needs to be a kernel, or @step, @evaluate, @sample or @push_level_0 and so on, to be verified}}
  func.func @other() {
    return
  }
}

// -----

// expected-error@below {{needs 'rt.plan' on the module}}
func.func @step() {
  return
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 0, peak = 128, bound = 128, [<activations, 128>]>]>} {
  func.func @step() {
    // expected-error@below {{needs to lie within the arena of 128 bytes, but has 64 bytes from 80 on}}
    %a = rt.buffer at <device, 80> : memref<16xf32>
    return
  }
}

// -----

// The largest offset there is: no sum of it overflows.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 0, peak = 128, bound = 128, [<activations, 128>]>]>} {
  func.func @step() {
    // expected-error@below {{needs to lie within the arena of 128 bytes, but has 64 bytes from 9223372036854775807 on}}
    %a = rt.buffer at <device, 9223372036854775807> : memref<16xf32>
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 0, peak = 128, bound = 128, [<activations, 128>]>]>} {
  func.func @step() {
    // expected-error@below {{needs an offset that is a multiple of its element's 4 bytes, but got 2}}
    %a = rt.buffer at <device, 2> : memref<16xf32>
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 0, peak = 128, bound = 128, [<activations, 128>]>]>} {
  func.func @step() {
    // expected-error@below {{needs to lie within the arena of 128 bytes, but has 9223372036854775807 bytes from 0 on}}
    %a = rt.buffer at <device, 0> : memref<4611686018427387904xf32>
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 0, peak = 128, bound = 128, [<activations, 128>]>]>} {
  func.func @step() {
    // expected-error@below {{needs elements of integers or floats, but got 'index'}}
    %a = rt.buffer at <device, 0> : memref<4xindex>
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 0, peak = 128, bound = 128, [<activations, 128>]>]>} {
  // expected-error@below {{needs an arena that ends with its last buffer, at 64, rounded up to the alignment of 64, but it has 128 bytes}}
  func.func @step() {
    %a = rt.buffer at <device, 0> : memref<16xf32>
    return
  }
}

// -----

// Counted in the wrong place; two buffers in the same bytes count once.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 32, peak = 96, bound = 96, [<parameters, 32>, <activations, 96>]>]>} {
  // expected-error@below {{needs the bytes of all its buffers, 64, in the category 'parameters', but got 32}}
  func.func @step() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    %a = rt.buffer at <device, 64> : memref<16xf32>
    %b = rt.buffer at <device, 64> : memref<16xf32>
    return
  }
}

// -----

// The second one begins in a gap and ends in the first.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 128, peak = 0, bound = 0, [<parameters, 64>, <gradients, 64>]>]>} {
  func.func @step() {
    // expected-note@below {{which is here}}
    %w = rt.buffer at <device, 64> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    // expected-error@below {{needs bytes of its own for the gradient of 'w', but shares some with the parameter of 'w'}}
    %g = rt.buffer at <device, 32> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    return
  }
}

//===----------------------------------------------------------------------===//
// Reads
//===----------------------------------------------------------------------===//

// -----

// %b was put over the last 16 bytes of %a, which is read once more.

module attributes {rt.plan = #rt.plan<[<device, bytes = 176, least = 176, begin = 64, peak = 112, bound = 112, [<inputs_and_outputs, 64>, <activations, 112>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %lr = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    // expected-note@below {{the value that is read}}
    %a = rt.buffer at <device, 64> : memref<16xf32>
    rt.launch @k(%lr) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    // expected-note@below {{the value that is there}}
    %b = rt.buffer at <device, 112> : memref<16xf32>
    rt.launch @k(%lr) to (%b) : (memref<16xf32>, memref<16xf32>) -> ()
    // expected-error@below {{reads bytes [64, 128), which do not hold this value any more}}
    rt.launch @k(%a) to (%b) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// The same bytes, but the value before: a parameter that has been updated.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 64, peak = 64, bound = 64, [<parameters, 64>, <activations, 64>]>]>} {
  func.func private @update(tensor<16xf32> {rt.in_place = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    rt.update
    // expected-note@below {{the value that is read}}
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    // expected-note@below {{the value that is there}}
    %w1 = rt.buffer at <device, 0> : memref<16xf32>
    rt.launch @update(%w) to (%w1) : (memref<16xf32>, memref<16xf32>) -> ()
    %a = rt.buffer at <device, 64> : memref<16xf32>
    // expected-error@below {{reads bytes [0, 64), which do not hold this value any more}}
    rt.launch @k(%w) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 0, peak = 128, bound = 128, [<activations, 128>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    // expected-note@below {{the value that is read}}
    %a = rt.buffer at <device, 0> : memref<16xf32>
    %b = rt.buffer at <device, 64> : memref<16xf32>
    // expected-error@below {{reads bytes [0, 64), which nothing has written}}
    rt.launch @k(%a) to (%b) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// A GEMM's scratch memory is a write as well.

module attributes {rt.plan = #rt.plan<[<device, bytes = 1024, least = 1024, begin = 64, peak = 960, bound = 960, [<inputs_and_outputs, 64>, <activations, 960>]>]>} {
  func.func private @k(tensor<4x4xf32>) -> tensor<4x4xf32> attributes {rt.kernel}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<4x4xf32>
    // expected-note@below {{the value that is read}}
    %a = rt.buffer at <device, 64> : memref<4x4xf32>
    rt.launch @k(%x) to (%a) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    %b = rt.buffer at <device, 960> : memref<4x4xf32>
    // expected-note@below {{the value that is there}}
    %s = rt.buffer at <device, 64> : memref<224xf32>
    rt.gemm %x, %x to (%b) workspace(%s) m 4 n 4 k 4 lda 4 ldb 4 ldc 4 : (memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>, memref<224xf32>) -> ()
    // expected-error@below {{reads bytes [64, 128), which do not hold this value any more}}
    rt.launch @k(%a) to (%b) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    return
  }
}

// -----

// What a GEMM adds to must be there.

module attributes {rt.plan = #rt.plan<[<device, bytes = 1024, least = 1024, begin = 64, peak = 960, bound = 960, [<inputs_and_outputs, 64>, <activations, 960>]>]>} {
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<4x4xf32>
    %b = rt.buffer at <device, 960> : memref<4x4xf32>
    %s = rt.buffer at <device, 64> : memref<224xf32>
    // expected-error@below {{adds to bytes [960, 1024), which do not hold one value to add to}}
    rt.gemm %x, %x to (%b) workspace(%s) accumulate m 4 n 4 k 4 lda 4 ldb 4 ldc 4 : (memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>, memref<224xf32>) -> ()
    return
  }
}

//===----------------------------------------------------------------------===//
// One op's inputs and outputs
//===----------------------------------------------------------------------===//

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 64, peak = 64, bound = 64, [<inputs_and_outputs, 64>, <activations, 64>]>]>} {
  func.func private @k(tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {rt.kernel}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<8xf32>
    %a = rt.buffer at <device, 64> : memref<8xf32>
    %b = rt.buffer at <device, 80> : memref<8xf32>
    // expected-error@below {{writes two outputs to the same bytes, [64, 96) and [80, 112)}}
    rt.launch @k(%x) to (%a, %b) : (memref<8xf32>, memref<8xf32>, memref<8xf32>) -> ()
    return
  }
}

// -----

// In place, with a kernel that does not allow it.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 64, peak = 64, bound = 64, [<inputs_and_outputs, 64>, <activations, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    %a = rt.buffer at <device, 64> : memref<16xf32>
    rt.launch @k(%x) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    %b = rt.buffer at <device, 64> : memref<16xf32>
    // expected-error@below {{writes output #0 to [64, 128), over its input #0 in [64, 128), which it still reads}}
    rt.launch @k(%a) to (%b) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// In place, where another argument of the kernel allows it.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 64, peak = 64, bound = 64, [<inputs_and_outputs, 64>, <activations, 64>]>]>} {
  func.func private @k(tensor<16xf32>, tensor<16xf32> {rt.may_alias = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    %a = rt.buffer at <device, 64> : memref<16xf32>
    rt.launch @k(%x, %x) to (%a) : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    %b = rt.buffer at <device, 64> : memref<16xf32>
    // expected-error@below {{writes output #0 to [64, 128), over its input #0 in [64, 128), which it still reads}}
    rt.launch @k(%a, %x) to (%b) : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// An element further on is another element.

module attributes {rt.plan = #rt.plan<[<device, bytes = 132, least = 132, begin = 64, peak = 68, bound = 68, [<inputs_and_outputs, 64>, <activations, 68>]>]>} {
  func.func private @k(tensor<16xf32> {rt.may_alias = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    %a = rt.buffer at <device, 64> : memref<16xf32>
    rt.launch @k(%x) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    %b = rt.buffer at <device, 68> : memref<16xf32>
    // expected-error@below {{writes output #0 to [68, 132), over its input #0 in [64, 128); they may share all bytes or none}}
    rt.launch @k(%a) to (%b) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 1024, least = 1024, begin = 64, peak = 960, bound = 960, [<inputs_and_outputs, 64>, <activations, 960>]>]>} {
  func.func private @k(tensor<4x4xf32>) -> tensor<4x4xf32> attributes {rt.kernel}
  func.func @step() {
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<4x4xf32>
    %a = rt.buffer at <device, 64> : memref<4x4xf32>
    rt.launch @k(%x) to (%a) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    %b = rt.buffer at <device, 64> : memref<4x4xf32>
    %s = rt.buffer at <device, 128> : memref<224xf32>
    // expected-error@below {{writes output #0 to [64, 128), over its input #1 in [64, 128), which it still reads}}
    rt.gemm %x, %a to (%b) workspace(%s) m 4 n 4 k 4 lda 4 ldb 4 ldc 4 : (memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>, memref<224xf32>) -> ()
    return
  }
}

// -----

// The kernel counts on finding its old value where the new one goes.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 64, peak = 64, bound = 64, [<gradients, 64>, <activations, 64>]>]>} {
  func.func private @k(tensor<16xf32> {rt.in_place = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %g = rt.buffer at <device, 0> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %a = rt.buffer at <device, 64> : memref<16xf32>
    // expected-error@below {{needs output #0 in place of input #0, in [0, 64), but it is in [64, 128)}}
    rt.launch @k(%g) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 64, least = 64, begin = 64, peak = 0, bound = 0, [<gradients, 64>]>]>} {
  func.func private @k(tensor<16xf32> {rt.in_place = 2 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %g = rt.buffer at <device, 0> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    // expected-error@below {{needs 'rt.in_place' of its kernel to be one of 1 outputs, but got 2}}
    rt.launch @k(%g) to (%g) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 0, least = 0, begin = 0, peak = 0, bound = 0, []>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step(%x: tensor<16xf32>) {
    // expected-error@below {{needs to be a launch, a GEMM, a collective or a transfer on rt.buffers by now}}
    %y = rt.launch @k(%x) : (tensor<16xf32>) -> tensor<16xf32>
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 0, least = 0, begin = 0, peak = 0, bound = 0, []>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step(%x: memref<16xf32>) {
    // expected-error@below {{needs to be a launch, a GEMM, a collective or a transfer on rt.buffers by now}}
    rt.launch @k(%x) to (%x) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

//===----------------------------------------------------------------------===//
// What outlives the step
//===----------------------------------------------------------------------===//

// -----

// A part of a state.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 128, peak = 0, bound = 0, [<parameters, 64>, <inputs_and_outputs, 64>]>]>} {
  func.func private @k(tensor<8xf32>) -> tensor<8xf32> attributes {rt.kernel}
  func.func @step() {
    rt.update
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    %x = rt.buffer at <device, 64> {rt.role = "lr"} : memref<8xf32>
    %a = rt.buffer at <device, 32> : memref<8xf32>
    // expected-error@below {{writes bytes [32, 64) over the parameter of 'w' in [0, 64), which outlives the step}}
    rt.launch @k(%x) to (%a) : (memref<8xf32>, memref<8xf32>) -> ()
    return
  }
}

// -----

// All of it, but not from its old value.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 128, peak = 0, bound = 0, [<optimizer_state, 64>, <inputs_and_outputs, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    rt.update
    %m = rt.buffer at <device, 0> {rt.state = #rt.state<kind = moment1, parameter = "w", init = zeros>} : memref<16xf32>
    %x = rt.buffer at <device, 64> {rt.role = "lr"} : memref<16xf32>
    %a = rt.buffer at <device, 0> : memref<16xf32>
    // expected-error@below {{writes bytes [0, 64) over the moment1 of 'w' in [0, 64), which outlives the step}}
    rt.launch @k(%x) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// Nor a gradient that is there from step to step.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 128, peak = 0, bound = 0, [<gradients, 64>, <inputs_and_outputs, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %g = rt.buffer at <device, 0> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %x = rt.buffer at <device, 64> {rt.role = "lr"} : memref<16xf32>
    %a = rt.buffer at <device, 0> : memref<16xf32>
    // expected-error@below {{writes bytes [0, 64) over the gradient of 'w' in [0, 64), which outlives the step}}
    rt.launch @k(%x) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// What a step adds to has to be zero when the next one begins.

module attributes {rt.plan = #rt.plan<[<device, bytes = 64, least = 64, begin = 64, peak = 0, bound = 0, [<gradients, 64>]>]>} {
  func.func private @add(tensor<16xf32> {rt.in_place = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    // expected-error@below {{needs the gradient of 'w', to which the step adds, to be replaced below rt.update: the next step adds to what is left there}}
    %g = rt.buffer at <device, 0> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %g1 = rt.buffer at <device, 0> : memref<16xf32>
    rt.launch @add(%g) to (%g1) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.update
    return
  }
}

// -----

// The same of a GEMM.

module attributes {rt.plan = #rt.plan<[<device, bytes = 1024, least = 1024, begin = 128, peak = 896, bound = 896, [<gradients, 64>, <inputs_and_outputs, 64>, <activations, 896>]>]>} {
  func.func @step() {
    // expected-error@below {{needs the gradient of 'w', to which the step adds, to be replaced below rt.update}}
    %g = rt.buffer at <device, 0> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<4x4xf32>
    %x = rt.buffer at <device, 64> {rt.role = "lr"} : memref<4x4xf32>
    %b = rt.buffer at <device, 0> : memref<4x4xf32>
    %s = rt.buffer at <device, 128> : memref<224xf32>
    rt.gemm %x, %x to (%b) workspace(%s) accumulate m 4 n 4 k 4 lda 4 ldb 4 ldc 4 : (memref<4x4xf32>, memref<4x4xf32>, memref<4x4xf32>, memref<224xf32>) -> ()
    rt.update
    return
  }
}

// -----

// A gradient that lies elsewhere.

module attributes {rt.plan = #rt.plan<[<device, bytes = 192, least = 192, begin = 128, peak = 64, bound = 64, [<gradients, 64>, <inputs_and_outputs, 64>, <activations, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    // expected-error@below {{needs the gradient of 'w' to be made in bytes [0, 64), but nothing writes them}}
    %g = rt.buffer at <device, 0> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %x = rt.buffer at <device, 64> {rt.role = "lr"} : memref<16xf32>
    %a = rt.buffer at <device, 128> : memref<16xf32>
    rt.launch @k(%x) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.update
    return
  }
}

// -----

// Across the border of two states.

module attributes {rt.plan = #rt.plan<[<device, bytes = 192, least = 192, begin = 192, peak = 0, bound = 0, [<parameters, 64>, <gradients, 64>, <inputs_and_outputs, 64>]>]>} {
  func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    %x = rt.buffer at <device, 128> {rt.role = "lr"} : memref<16xf32>
    %a = rt.buffer at <device, 32> : memref<16xf32>
    // expected-error@below {{writes bytes [32, 96) over the parameter of 'w' in [0, 64), which outlives the step}}
    rt.launch @k(%x) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// In place, but too early: the next micro-batch would see it.

module attributes {rt.plan = #rt.plan<[<device, bytes = 64, least = 64, begin = 64, peak = 0, bound = 0, [<parameters, 64>]>]>} {
  func.func private @k(tensor<16xf32> {rt.in_place = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    %w1 = rt.buffer at <device, 0> : memref<16xf32>
    // expected-error@below {{writes the parameter of 'w' above rt.update, where the next micro-batch needs it}}
    rt.launch @k(%w) to (%w1) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.update
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 64, least = 64, begin = 64, peak = 0, bound = 0, [<parameters, 64>]>]>} {
  func.func private @k(tensor<32xbf16> {rt.in_place = 0 : i64}) -> tensor<32xbf16> attributes {rt.kernel}
  func.func @step() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = working, parameter = "w", init = zeros>} : memref<32xbf16>
    %w1 = rt.buffer at <device, 0> : memref<32xbf16>
    // expected-error@below {{writes the working copy of 'w' above rt.update, where the next micro-batch needs it}}
    rt.launch @k(%w) to (%w1) : (memref<32xbf16>, memref<32xbf16>) -> ()
    rt.update
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 64, least = 64, begin = 64, peak = 0, bound = 0, [<inputs_and_outputs, 64>]>]>} {
  func.func private @k(tensor<16xf32> {rt.in_place = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    rt.update
    %x = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
    %y = rt.buffer at <device, 0> : memref<16xf32>
    // expected-error@below {{writes the input 'lr'}}
    rt.launch @k(%x) to (%y) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 64, least = 64, begin = 64, peak = 0, bound = 0, [<inputs_and_outputs, 64>]>]>} {
  func.func private @k(tensor<4x4xf32> {rt.in_place = 0 : i64}) -> tensor<4x4xf32> attributes {rt.kernel}
  func.func @step() {
    rt.update
    %x = rt.buffer at <device, 0> {rt.rotary = #rt.rotary<frequencies = [1.0, 0.01], scale = 1.0 : f32>} : memref<4x4xf32>
    %y = rt.buffer at <device, 0> : memref<4x4xf32>
    // expected-error@below {{writes the rotary table, which is given}}
    rt.launch @k(%x) to (%y) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    return
  }
}

//===----------------------------------------------------------------------===//
// Beside the step
//===----------------------------------------------------------------------===//

// -----

// What a schedule shares with the step is the same thing there.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 64, peak = 64, bound = 64, [<parameters, 64>, <activations, 64>]>]>} {
  func.func @step() {
    // expected-note@below {{this is there}}
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<4x4xf32>
    %a = rt.buffer at <device, 64> : memref<4x4xf32>
    return
  }
  func.func @evaluate() {
    // expected-error@below {{needs bytes [0, 64) to be the parameter of 'v' in @step too, but they are not}}
    %v = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "v", init = ones>} : memref<4x4xf32>
    return
  }
}

// -----

// Gradients stay as the step left them.

module attributes {rt.plan = #rt.plan<[<device, bytes = 192, least = 192, begin = 128, peak = 64, bound = 64, [<parameters, 64>, <gradients, 64>, <activations, 64>]>]>} {
  func.func private @k(tensor<4x4xf32>) -> tensor<4x4xf32> attributes {rt.kernel}
  func.func @step() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<4x4xf32>
    %g = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<4x4xf32>
    %a = rt.buffer at <device, 128> : memref<4x4xf32>
    return
  }
  func.func @evaluate() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<4x4xf32>
    %a = rt.buffer at <device, 64> : memref<4x4xf32>
    // expected-error@below {{writes bytes [64, 128) over the gradient of 'w' in [64, 128), which @evaluate may only read}}
    rt.launch @k(%w) to (%a) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    return
  }
}

// -----

// The runtime writes a position before the schedule runs.

module attributes {rt.plan = #rt.plan<[<device, bytes = 64, least = 64, begin = 64, peak = 0, bound = 0, [<parameters, 64>]>]>} {
  func.func @step() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<4x4xf32>
    return
  }
  func.func @sample() {
    // expected-error@below {{needs bytes of its own for 'position', but shares some with the parameter of 'w'}}
    %position = rt.buffer at <device, 16> {rt.role = "position"} : memref<4xi32>
    return
  }
}

// -----

// And reads the logits behind it.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 64, peak = 64, bound = 64, [<parameters, 64>, <activations, 64>]>]>} {
  func.func private @k(tensor<4x4xf32>) -> tensor<4x4xf32> attributes {rt.kernel}
  func.func @step() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<4x4xf32>
    return
  }
  func.func @sample() {
    %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<4x4xf32>
    // expected-error@below {{needs bytes [64, 128) to hold 'logits' at the end, but they were written over}}
    %logits = rt.buffer at <device, 64> {rt.role = "logits"} : memref<4x4xf32>
    rt.launch @k(%w) to (%logits) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    %a = rt.buffer at <device, 64> : memref<4x4xf32>
    rt.launch @k(%w) to (%a) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 64, least = 64, begin = 0, peak = 64, bound = 64, [<activations, 64>]>]>} {
  func.func @step() {
    return
  }
  func.func @evaluate() {
    // expected-error@below {{needs bytes [0, 64) to hold 'eval_loss' at the end, but they were never written}}
    %loss = rt.buffer at <device, 0> {rt.role = "eval_loss"} : memref<4x4xf32>
    return
  }
}

// -----

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

// A value is made in parts, and read in others.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 0, peak = 128, bound = 128, [<activations, 128>]>]>} {
  func.func private @make() -> tensor<8xf32> attributes {rt.kernel} {
    %c = nn.constant 1.0 : tensor<8xf32>
    return %c : tensor<8xf32>
  }
  func.func private @k(%x: tensor<8xf32>) -> tensor<8xf32> attributes {rt.kernel} {
    return %x : tensor<8xf32>
  }
  func.func @step() {
    %a = rt.buffer at <device, 0> : memref<16xf32>
    %a0 = rt.buffer at <device, 0> in %a(memref<16xf32>) : memref<8xf32>
    rt.launch @make() to (%a0) : (memref<8xf32>) -> ()
    %a1 = rt.buffer at <device, 32> in %a(memref<16xf32>) : memref<8xf32>
    rt.launch @make() to (%a1) : (memref<8xf32>) -> ()
    %v = rt.buffer at <device, 16> in %a(memref<16xf32>) : memref<8xf32>
    %b = rt.buffer at <device, 64> : memref<8xf32>
    rt.launch @k(%v) to (%b) : (memref<8xf32>, memref<8xf32>) -> ()
    return
  }
}

// -----

// One of the parts is not there yet.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 0, peak = 128, bound = 128, [<activations, 128>]>]>} {
  func.func private @make() -> tensor<8xf32> attributes {rt.kernel} {
    %c = nn.constant 1.0 : tensor<8xf32>
    return %c : tensor<8xf32>
  }
  func.func private @k(%x: tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel} {
    return %x : tensor<16xf32>
  }
  func.func @step() {
    // expected-note@below {{the value that is read}}
    %a = rt.buffer at <device, 0> : memref<16xf32>
    %a0 = rt.buffer at <device, 0> in %a(memref<16xf32>) : memref<8xf32>
    rt.launch @make() to (%a0) : (memref<8xf32>) -> ()
    %b = rt.buffer at <device, 64> : memref<16xf32>
    // expected-error@below {{reads bytes [0, 64), which nothing has written}}
    rt.launch @k(%a) to (%b) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// A part of a value that is there does not change.

module attributes {rt.plan = #rt.plan<[<device, bytes = 64, least = 64, begin = 0, peak = 64, bound = 64, [<activations, 64>]>]>} {
  func.func private @make() -> tensor<8xf32> attributes {rt.kernel} {
    %c = nn.constant 1.0 : tensor<8xf32>
    return %c : tensor<8xf32>
  }
  func.func @step() {
    %a = rt.buffer at <device, 0> : memref<16xf32>
    %a0 = rt.buffer at <device, 0> in %a(memref<16xf32>) : memref<8xf32>
    rt.launch @make() to (%a0) : (memref<8xf32>) -> ()
    %a1 = rt.buffer at <device, 16> in %a(memref<16xf32>) : memref<8xf32>
    // expected-error@below {{writes bytes [16, 48) of the value in [0, 64) a second time}}
    rt.launch @make() to (%a1) : (memref<8xf32>) -> ()
    return
  }
}

// -----

// What has no body is no schedule.

module attributes {rt.plan = #rt.plan<[<device, bytes = 0, least = 0, begin = 0, peak = 0, bound = 0, []>]>} {
  func.func @step() {
    return
  }
  func.func private @evaluate()
}
