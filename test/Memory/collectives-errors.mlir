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

func.func @step(%x: tensor<4xi32>) {
  // expected-error@below {{needs elements of f32, or all of bf16, but got 'tensor<4xi32>'}}
  %sum = rt.collective all_reduce(%x) over "dp" ranks 2 : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @step(%x: tensor<4xbf16>, %y: tensor<4xf32>) {
  // expected-error@below {{needs elements of f32, or all of bf16, but got 'tensor<4xf32>'}}
  %sum:2 = rt.collective all_reduce(%x, %y) over "dp" ranks 2
    : (tensor<4xbf16>, tensor<4xf32>) -> (tensor<4xbf16>, tensor<4xf32>)
  return
}

// -----

func.func @step(%x: tensor<4xf32>) {
  // expected-error@below {{needs results of the types 'tensor<8xf32>', but got 'tensor<4xf32>'}}
  %all = rt.collective all_gather(%x) over "tp" ranks 2 : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @step(%x: tensor<5xf32>) {
  // expected-error@below {{needs a dimension 0 that 2 ranks have parts of, but got 'tensor<5xf32>'}}
  %own = rt.collective reduce_scatter(%x) over "tp" ranks 2 : (tensor<5xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @step(%x: tensor<4xf32>) {
  // expected-error@below {{needs a dimension 1 that 2 ranks have parts of, but got 'tensor<4xf32>'}}
  %all = rt.collective all_gather(%x) over "tp" ranks 2 dim 1 : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @step(%x: tensor<4xf32>) {
  // expected-error@below {{needs one input, but got 2}}
  %all:2 = rt.collective all_gather(%x, %x) over "tp" ranks 2 : (tensor<4xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @step() {
  %x = rt.buffer at <device, 0> : memref<4xf32>
  %y = rt.buffer at <device, 64> : memref<8xf32>
  // expected-error@below {{needs either results, or outputs and no workspace}}
  rt.collective all_gather(%x) to (%y) workspace(%x) over "tp" ranks 2
    : (memref<4xf32>, memref<8xf32>, memref<4xf32>) -> ()
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
