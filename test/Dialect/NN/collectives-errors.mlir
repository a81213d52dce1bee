// RUN: reprise-opt %s -split-input-file -verify-diagnostics

// expected-error@below {{needs an axis, but got none}}
module attributes {nn.mesh = #nn.mesh<>} {}

// -----

// expected-error@below {{needs axes of pp, dp, tp, kv, kv_copies, ep, ep_copies, but got "rows"}}
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

// An axis with a step is part of one without, of ranks that are so far apart.

// expected-error@below {{needs "kv" within an axis without a step, but got 2 ranks at a step of 4}}
module attributes {nn.mesh = #nn.mesh<dp = 3, tp = 4, kv = 2 step 4>} {}

// -----

// expected-error@below {{needs "kv" within an axis without a step, but got 4 ranks at a step of 2}}
module attributes {nn.mesh = #nn.mesh<dp = 2, tp = 4, kv = 4 step 2>} {}

// -----

// Ranks of experts can be among those along dp and tp together, and of no other axes.

module attributes {nn.mesh = #nn.mesh<pp = 2, dp = 2, tp = 2, ep = 4 step 1>} {}

// -----

// expected-error@below {{needs "ep" within an axis without a step, but got 8 ranks at a step of 1}}
module attributes {nn.mesh = #nn.mesh<pp = 2, dp = 2, tp = 2, ep = 8 step 1>} {}

// -----

// expected-error@below {{needs "ep" within an axis without a step, but got 4 ranks at a step of 1}}
module attributes {nn.mesh = #nn.mesh<dp = 3, tp = 2, ep = 4 step 1>} {}

// -----

// expected-error@below {{needs "kv" within an axis without a step, but got 2 ranks at a step of 3}}
module attributes {nn.mesh = #nn.mesh<tp = 4, kv = 2 step 3>} {}

// -----

// expected-error@+1 {{needs a step of at least 1, but got 0}}
module attributes {nn.mesh = #nn.mesh<tp = 4, kv = 2 step 0>} {}

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

// -----

// Of three groups a rank has sums of two and of one.
func.func @terms(%x: tensor<4xf32>) {
  // expected-error@below {{needs 2 terms of each sum for 3 groups of a rank, but got 3 in all}}
  %s = nn.all_reduce %x, %x, %x over "dp" {nn.reduction_groups = 3 : i64} : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @types(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error@below {{needs terms of one type, but got 'tensor<4xf32>' and 'tensor<5xf32>'}}
  %s = nn.reduce_shares %x, %y over "dp" {nn.reduction_groups = 3 : i64} : tensor<4xf32>, tensor<5xf32>
  return
}

// -----

func.func @groups(%x: tensor<4xf32>) {
  // expected-error@below {{needs a number of 1 to 1048576 for 'nn.reduction_groups', but got 0 : i64}}
  %s = nn.all_reduce %x over "dp" {nn.reduction_groups = 0 : i64} : tensor<4xf32>
  return
}

// -----

func.func @many_groups(%x: tensor<4xf32>) {
  // expected-error@below {{needs a number of 1 to 1048576 for 'nn.reduction_groups', but got 4611686018427387905 : i64}}
  %s = nn.all_reduce %x, %x over "dp" {nn.reduction_groups = 4611686018427387905 : i64} : tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @no_result(%x: tensor<4xf32>) {
  // expected-error@below {{needs a result for each sum, 1 with 2 terms for 3 groups of a rank, but got 0}}
  "nn.all_reduce"(%x, %x) {axis = "dp", nn.reduction_groups = 3 : i64} : (tensor<4xf32>, tensor<4xf32>) -> ()
  return
}
