// RUN: reprise-opt %s -split-input-file -verify-diagnostics --reprise-verify-plan

// Between its begin and its wait, the bytes of an op in which ranks meet are
// its own.

module attributes {rt.plan = #rt.plan<[<device, bytes = 256, least = 256, begin = 0, peak = 256, bound = 256, [<activations, 256>]>]>} {
  func.func private @make() -> tensor<16xf32> attributes {rt.kernel}
  func.func private @read(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %a = rt.buffer at <device, 0> : memref<16xf32>
    rt.launch @make() to(%a) : (memref<16xf32>) -> ()
    %b = rt.buffer at <device, 0> : memref<16xf32>
    %w = rt.buffer at <device, 64> : memref<16xf32>
    // expected-note@below {{which is begun here}}
    rt.collective all_reduce(%a) to(%b) workspace(%w) over "dp" ranks 2 {rt.begun = 0 : i64}
      : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    %c = rt.buffer at <device, 128> : memref<16xf32>
    // expected-error@below {{reads bytes [0, 64), before the wait for what is made there}}
    rt.launch @read(%b) to(%c) : (memref<16xf32>, memref<16xf32>) -> ()
    %d = rt.buffer at <device, 0> : memref<16xf32>
    rt.wait 0 for(%b) to(%d) workspace(%w) : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 256, least = 256, begin = 0, peak = 256, bound = 256, [<activations, 256>]>]>} {
  func.func private @make() -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %a = rt.buffer at <device, 0> : memref<16xf32>
    rt.launch @make() to(%a) : (memref<16xf32>) -> ()
    %b = rt.buffer at <device, 0> : memref<16xf32>
    %w = rt.buffer at <device, 64> : memref<16xf32>
    // expected-note@below {{which is begun here}}
    rt.collective all_reduce(%a) to(%b) workspace(%w) over "dp" ranks 2 {rt.begun = 0 : i64}
      : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    %c = rt.buffer at <device, 64> : memref<16xf32>
    // expected-error@below {{writes bytes [64, 128), before the wait for what is made there}}
    rt.launch @make() to(%c) : (memref<16xf32>) -> ()
    %d = rt.buffer at <device, 0> : memref<16xf32>
    rt.wait 0 for(%b) to(%d) workspace(%w) : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 256, least = 256, begin = 0, peak = 256, bound = 256, [<activations, 256>]>]>} {
  func.func private @make() -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %a = rt.buffer at <device, 0> : memref<16xf32>
    rt.launch @make() to(%a) : (memref<16xf32>) -> ()
    %b = rt.buffer at <device, 128> : memref<32xf32>
    // expected-note@below {{which is begun here}}
    rt.collective all_gather(%a) to(%b) over "tp" ranks 2 {rt.begun = 0 : i64}
      : (memref<16xf32>, memref<32xf32>) -> ()
    %c = rt.buffer at <device, 0> : memref<16xf32>
    // expected-error@below {{writes bytes [0, 64), before the wait for what still reads them}}
    rt.launch @make() to(%c) : (memref<16xf32>) -> ()
    %d = rt.buffer at <device, 128> : memref<32xf32>
    rt.wait 0 for(%b) keeping(%a) to(%d) : (memref<32xf32>, memref<16xf32>, memref<32xf32>) -> ()
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 256, least = 256, begin = 0, peak = 256, bound = 256, [<activations, 256>]>]>} {
  func.func private @make() -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %a = rt.buffer at <device, 0> : memref<16xf32>
    rt.launch @make() to(%a) : (memref<16xf32>) -> ()
    %b = rt.buffer at <device, 128> : memref<32xf32>
    // expected-note@below {{which is begun here}}
    rt.collective all_gather(%a) to(%b) over "tp" ranks 2 {rt.begun = 0 : i64}
      : (memref<16xf32>, memref<32xf32>) -> ()
    %d = rt.buffer at <device, 128> : memref<32xf32>
    // expected-error@below {{needs the 1 buffers that are made, and to keep the 1 that are read and not written over}}
    rt.wait 0 for(%b) to(%d) : (memref<32xf32>, memref<32xf32>) -> ()
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 256, least = 256, begin = 0, peak = 256, bound = 256, [<activations, 256>]>]>} {
  func.func private @make() -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %a = rt.buffer at <device, 0> : memref<16xf32>
    rt.launch @make() to(%a) : (memref<16xf32>) -> ()
    %b = rt.buffer at <device, 128> : memref<32xf32>
    // expected-error@below {{needs a wait for number 7 above rt.update}}
    rt.collective all_gather(%a) to(%b) over "tp" ranks 2 {rt.begun = 7 : i64}
      : (memref<16xf32>, memref<32xf32>) -> ()
    rt.update
    %d = rt.buffer at <device, 128> : memref<32xf32>
    rt.wait 7 for(%b) keeping(%a) to(%d) : (memref<32xf32>, memref<16xf32>, memref<32xf32>) -> ()
    return
  }
}

// -----

module attributes {rt.plan = #rt.plan<[<device, bytes = 64, least = 64, begin = 0, peak = 64, bound = 64, [<activations, 64>]>]>} {
  func.func private @make() -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %a = rt.buffer at <device, 0> : memref<16xf32>
    rt.launch @make() to(%a) : (memref<16xf32>) -> ()
    %b = rt.buffer at <device, 0> : memref<16xf32>
    // expected-error@below {{needs something that is begun with number 1 above it, but there is nothing}}
    rt.wait 1 for(%a) to(%b) : (memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}

// -----

// In other micro-batches than the last, the sum is not there.

module attributes {rt.plan = #rt.plan<[<device, bytes = 256, least = 256, begin = 0, peak = 256, bound = 256, [<activations, 256>]>]>} {
  func.func private @make() -> tensor<16xf32> attributes {rt.kernel}
  func.func private @read(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %a = rt.buffer at <device, 0> : memref<16xf32>
    rt.launch @make() to(%a) : (memref<16xf32>) -> ()
    // expected-note@below {{this is there}}
    %b = rt.buffer at <device, 0> : memref<16xf32>
    %w = rt.buffer at <device, 64> : memref<16xf32>
    rt.collective all_reduce(%a) to(%b) workspace(%w) over "dp" ranks 2 {rt.begun = 0 : i64, rt.once}
      : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    %d = rt.buffer at <device, 0> : memref<16xf32>
    rt.wait 0 for(%b) to(%d) workspace(%w) {rt.once} : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    %c = rt.buffer at <device, 192> : memref<16xf32>
    // expected-error@below {{needs 'rt.once' to touch bytes [0, 64) above rt.update: the last micro-batch alone has what is there}}
    rt.launch @read(%d) to(%c) : (memref<16xf32>, memref<16xf32>) -> ()
    rt.update
    return
  }
}

// -----

func.func @step() {
  %a = rt.buffer at <device, 0> : memref<16xf32>
  %b = rt.buffer at <device, 64> : memref<32xf32>
  // expected-error@below {{needs 'rt.begun' to be a number from 0 to 2147483647, of type i64, on an op in which ranks meet, but got -1 : i64}}
  rt.collective all_gather(%a) to(%b) over "tp" ranks 2 {rt.begun = -1 : i64} : (memref<16xf32>, memref<32xf32>) -> ()
  return
}

// -----

// expected-error@below {{needs 'rt.once' without a value, on an op in which ranks meet or a wait, but got unit}}
func.func @step() attributes {rt.once} {
  return
}

// -----

func.func @step() {
  %a = rt.buffer at <device, 0> : memref<16xf32>
  %b = rt.buffer at <device, 64> : memref<32xf32>
  // expected-error@below {{needs outputs of the types 'memref<16xf32>', but got 'memref<32xf32>'}}
  rt.wait 0 for(%a) to(%b) : (memref<16xf32>, memref<32xf32>) -> ()
  return
}

// -----

func.func @step() {
  %a = rt.buffer at <device, 0> : memref<16xf32>
  %b = rt.buffer at <device, 64> : memref<32xf32>
  // expected-error@below {{needs 'rt.begun' to be a number from 0 to 2147483647, of type i64, on an op in which ranks meet, but got 0 : ui64}}
  rt.collective all_gather(%a) to(%b) over "tp" ranks 2 {rt.begun = 0 : ui64} : (memref<16xf32>, memref<32xf32>) -> ()
  return
}

// -----

func.func @step() {
  %a = rt.buffer at <device, 0> : memref<16xf32>
  %b = rt.buffer at <device, 64> : memref<32xf32>
  // expected-error@below {{needs 'rt.begun' to be a number from 0 to 2147483647, of type i64, on an op in which ranks meet, but got 36893488147419103232 : i128}}
  rt.collective all_gather(%a) to(%b) over "tp" ranks 2 {rt.begun = 36893488147419103232 : i128} : (memref<16xf32>, memref<32xf32>) -> ()
  return
}

// -----

func.func @step() {
  %a = rt.buffer at <device, 0> : memref<16xf32>
  %b = rt.buffer at <device, 64> : memref<32xf32>
  // expected-error@below {{needs 'rt.begun' to be a number from 0 to 2147483647, of type i64, on an op in which ranks meet, but got 2147483648 : i64}}
  rt.collective all_gather(%a) to(%b) over "tp" ranks 2 {rt.begun = 2147483648 : i64} : (memref<16xf32>, memref<32xf32>) -> ()
  return
}

// -----

// What runs once does so above rt.update, begun or not.

module attributes {rt.plan = #rt.plan<[<device, bytes = 128, least = 128, begin = 0, peak = 128, bound = 128, [<activations, 128>]>]>} {
  func.func private @make() -> tensor<16xf32> attributes {rt.kernel}
  func.func @step() {
    %a = rt.buffer at <device, 0> : memref<16xf32>
    rt.launch @make() to(%a) : (memref<16xf32>) -> ()
    %b = rt.buffer at <device, 0> : memref<16xf32>
    %w = rt.buffer at <device, 64> : memref<16xf32>
    rt.collective all_reduce(%a) to(%b) workspace(%w) over "dp" ranks 2 {rt.once}
      : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    rt.update
    %c = rt.buffer at <device, 0> : memref<16xf32>
    // expected-error@below {{needs to be above rt.update of @step to have 'rt.once', but is in @step below it}}
    rt.collective all_reduce(%b) to(%c) workspace(%w) over "dp" ranks 2 {rt.once}
      : (memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    return
  }
}
