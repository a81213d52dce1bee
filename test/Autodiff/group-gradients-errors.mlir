// RUN: reprise-opt %s --reprise-group-gradients --split-input-file --verify-diagnostics

// expected-error@below {{needs one block that returns, without nn.update, for its sums to be grouped}}
func.func @step(%g: tensor<8xf32> {nn.gradient = "w"}) -> (tensor<8xf32> {nn.gradient = "w"})
    attributes {nn.micro_batches = 4 : i64, nn.reduction_groups = 2 : i64} {
  nn.update
  return %g : tensor<8xf32>
}

// -----

// expected-error@below {{needs a number that divides 'nn.micro_batches' for 'nn.reduction_groups', but got 3 : i64 with 4}}
func.func @step() attributes {nn.micro_batches = 4 : i64, nn.reduction_groups = 3 : i64} {
  return
}

// -----

// expected-error@below {{needs a number that divides 'nn.micro_batches' for 'nn.reduction_groups', but got 3 : i64}}
func.func @step() attributes {nn.reduction_groups = 3 : i64} {
  return
}

// -----

// expected-error@below {{needs a level of 0 to 20, but got 21}}
func.func @step(%p: tensor<f32> {nn.partial = #nn.partial<name = "w", level = 21>}) {
  return
}

// -----

// expected-error@below {{needs the name of a parameter, or 'loss', but got an empty one}}
func.func @step(%p: tensor<f32> {nn.partial = #nn.partial<name = "", level = 1>}) {
  return
}

// -----

// expected-error@below {{needs a tensor of f32 for 'nn.partial', but got 'tensor<8xbf16>'}}
func.func @step(%p: tensor<8xbf16> {nn.partial = #nn.partial<name = "w", level = 1>}) {
  return
}
