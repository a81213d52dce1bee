// RUN: reprise-opt %s -split-input-file -verify-diagnostics

module attributes {nn.mesh = #nn.mesh<pp = 2>} {
  func.func @peer(%x: tensor<4xf32>) {
    // expected-error @+1 {{'nn.send' op needs a peer from 0 to 1 along 'pp', but got 2}}
    nn.send %x to 2 over "pp" lane 0 places 1 : tensor<4xf32>
    return
  }
}

// -----

module attributes {nn.mesh = #nn.mesh<pp = 2>} {
  func.func @axis(%x: tensor<4xf32>) {
    // expected-error @+1 {{needs an axis of #nn.mesh<pp = 2>, but got "dp"}}
    nn.send %x to 1 over "dp" lane 0 places 1 : tensor<4xf32>
    return
  }
}

// -----

func.func @places() {
  // expected-error @+1 {{'nn.receive' op needs a lane of at least 0 and at least 1 place, but got 1 and 0}}
  %x = nn.receive from 0 over "pp" lane 1 places 0 : tensor<4xf32>
  return
}

// -----

func.func @lane(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.send' op needs a lane of at least 0 and at least 1 place, but got -1 and 1}}
  nn.send %x to 0 over "pp" lane -1 places 1 : tensor<4xf32>
  return
}

// -----

func.func @ascending(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.stages_norm' op needs places that ascend for its 2 gradients, of 4, but got 2, 2}}
  %n = nn.stages_norm %x, %x at [2, 2] of 4 over "pp" : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @count(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.stages_norm' op needs places that ascend for its 1 gradients, of 4, but got 4}}
  %n = nn.stages_norm %x at [4] of 4 over "pp" : (tensor<4xf32>) -> tensor<f32>
  return
}

// -----

module attributes {nn.mesh = #nn.mesh<pp = 4>} {
  func.func @members(%x: tensor<4xf32>) {
    // expected-error @+1 {{needs two or more members that ascend, equally far from each other, of the 4 ranks along 'pp', but got 0, 1, 3}}
    %s = nn.all_reduce %x over "pp" members [0, 1, 3] : tensor<4xf32>
    return
  }
}

// -----

module attributes {nn.mesh = #nn.mesh<pp = 4>} {
  func.func @far(%x: tensor<4xf32>) {
    // expected-error @+1 {{of the 4 ranks along 'pp', but got 0, 4}}
    %s = nn.all_reduce %x over "pp" members [0, 4] : tensor<4xf32>
    return
  }
}

// -----

// expected-error @+1 {{needs a number of at least 0 for 'nn.stage', but got -1}}
module attributes {nn.stage = -1 : i64} {}

// -----

// expected-error @+1 {{needs 5 numbers of at least 0 for 'nn.gradient_counts', but got array<i64: 1>}}
module attributes {nn.gradient_counts = array<i64: 1>} {}

// -----

// expected-error @+1 {{needs numbers of at least 0 for 'nn.chunk_layers', but got array<i64: 1, -1>}}
module attributes {nn.chunk_layers = array<i64: 1, -1>} {}

// -----

// expected-error @+1 {{needs the number of a parameter and the place of its gradient for 'nn.order', but got array<i64: 0>}}
func.func @order(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>, nn.order = array<i64: 0>}) {
  return
}

// -----

// expected-error @+1 {{needs two stages that ascend for 'nn.sum_stages', but got array<i64: 1, 1>}}
func.func @step(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>, nn.sum_stages = array<i64: 1, 1>}) {
  return
}

// -----

module attributes {nn.mesh = #nn.mesh<pp = 2>} {
  func.func @shares(%x: tensor<4xf32>) {
    // expected-error @+1 {{needs an axis of #nn.mesh<pp = 2>, but got "dp"}}
    %n = nn.stages_norm %x at [0] of 4 over "pp" {nn.shares = "dp"} : (tensor<4xf32>) -> tensor<f32>
    return
  }
}
