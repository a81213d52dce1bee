// RUN: reprise-opt %s -split-input-file -verify-diagnostics

// expected-error@below {{needs an axis, but got none}}
module attributes {nn.mesh = #nn.mesh<>} {}

// -----

// expected-error@below {{needs axes of pp, dp, tp, but got "rows"}}
module attributes {nn.mesh = #nn.mesh<rows = 2>} {}

// -----

// expected-error@below {{needs each axis once, but got "dp" again}}
module attributes {nn.mesh = #nn.mesh<dp = 2, dp = 3>} {}

// -----

// expected-error@below {{needs 1 to 1048576 ranks in all, but got 0 along "dp"}}
module attributes {nn.mesh = #nn.mesh<dp = 0>} {}

// -----

// expected-error@below {{needs 1 to 1048576 ranks in all, but got 9223372036854775807 along "dp"}}
module attributes {nn.mesh = #nn.mesh<dp = 9223372036854775807>} {}

// -----

// expected-error@below {{has no use for the attribute 'nn.mesh' with value 2 : i64}}
module attributes {nn.mesh = 2} {}

// -----

func.func @f() {
  // expected-error@below {{needs a value to sum, but got none}}
  "nn.all_reduce"() {axis = "dp"} : () -> ()
  return
}

// -----

module attributes {nn.mesh = #nn.mesh<dp = 2>} {
  func.func @f(%x: tensor<4xf32>) {
    // expected-error@below {{needs an axis of #nn.mesh<dp = 2>, but got "tp"}}
    %y = nn.all_reduce %x over "tp" : tensor<4xf32>
    return
  }
}
