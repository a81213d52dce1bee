// RUN: reprise-opt %s -split-input-file -verify-diagnostics --reprise-plan-memory

// A value that is read once more cannot be summed in place.

func.func private @make(%x: tensor<4xf32>) -> tensor<4xf32> attributes {rt.kernel} {
  return %x : tensor<4xf32>
}
func.func @step(%x: tensor<4xf32> {nn.gradient = "w"}) {
  %g = rt.launch @make(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@below {{needs to be the last to read}}
  %sum = rt.collective all_reduce(%g) over "dp" ranks 3 : (tensor<4xf32>) -> tensor<4xf32>
  %y = rt.launch @make(%g) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @step(%x: tensor<4xf32> {nn.gradient = "w"}) {
  // expected-error@below {{needs 1 to 1048576 ranks, but got 0}}
  %sum = rt.collective all_reduce(%x) over "dp" ranks 0 : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @step(%x: tensor<4xf32> {nn.gradient = "w"}) {
  // expected-error@below {{needs results of the types 'tensor<4xf32>', but got 'tensor<5xf32>'}}
  %sum = rt.collective all_reduce(%x) over "dp" ranks 2 : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @step(%x: tensor<4xbf16>) {
  // expected-error@below {{needs elements of f32, but got 'tensor<4xbf16>'}}
  %sum = rt.collective all_reduce(%x) over "dp" ranks 2 : (tensor<4xbf16>) -> tensor<4xbf16>
  return
}

// -----

func.func @step() {
  %x = rt.buffer at <device, 0> : memref<4xf32>
  %w = rt.buffer at <device, 64> : memref<4xf32>
  // expected-error@below {{needs a workspace of 6 elements of f32, but got 'memref<4xf32>'}}
  rt.collective all_reduce(%x) to (%x) workspace(%w) over "dp" ranks 3
    : (memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()
  return
}
