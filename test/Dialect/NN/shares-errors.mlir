// RUN: reprise-opt %s --split-input-file --verify-diagnostics

module attributes {nn.mesh = #nn.mesh<dp = 2>} {
  func.func @size(%w: tensor<200x200xf32>) {
    // expected-error @+1 {{'nn.take_share' op needs 'out' to have one dimension and 32768 of the 40000 elements of 'input', but got 'tensor<20000xf32>'}}
    %own = nn.take_share %w over "dp" : (tensor<200x200xf32>) -> tensor<20000xf32>
    return
  }
}

// -----

module attributes {nn.mesh = #nn.mesh<dp = 3>} {
  func.func @flat(%w: tensor<200x200xf32>, %s: tensor<128x128xf32>) {
    // expected-error @+1 {{'nn.gather_shares' op needs 'share' to have one dimension and 16384 of the 40000 elements of 'whole', but got 'tensor<128x128xf32>'}}
    %all = nn.gather_shares %s into %w over "dp" : (tensor<128x128xf32>, tensor<200x200xf32>) -> tensor<200x200xf32>
    return
  }
}

// -----

func.func @elements(%w: tensor<40xbf16>, %s: tensor<40xf32>) {
  // expected-error @+1 {{'nn.gather_shares' op needs 'share' to have elements as 'whole', but got 'tensor<40xf32>' and 'tensor<40xbf16>'}}
  %all = nn.gather_shares %s into %w over "dp" : (tensor<40xf32>, tensor<40xbf16>) -> tensor<40xbf16>
  return
}

// -----

module attributes {nn.mesh = #nn.mesh<dp = 2>} {
  func.func @axis(%w: tensor<40xf32>) {
    // expected-error @+1 {{'nn.reduce_shares' op needs an axis of #nn.mesh<dp = 2>, but got "tp"}}
    %s = nn.reduce_shares %w over "tp" : tensor<40xf32>
    return
  }
}

// -----

func.func @none() {
  // expected-error @+1 {{'nn.shares_norm' op needs a gradient, but got none}}
  %norm = "nn.shares_norm"() {axis = "dp"} : () -> tensor<f32>
  return
}

// -----

// expected-error @+1 {{op has no use for the attribute 'nn.distributed_optimizer' with value 1 : i64}}
module attributes {nn.distributed_optimizer = 1} {
}

// -----

// expected-error @+1 {{'func.func' op needs the shape of a whole, with 'tensor<4xf32>' or more elements, for 'nn.share_of', but got -5}}
func.func @sizes(%m: tensor<4xf32> {nn.moment1 = "w", nn.share_of = array<i64: -5>}) {
  return
}

// -----

// expected-error @+1 {{'func.func' op needs the shape of a whole, with 'tensor<4xf32>' or more elements, for 'nn.share_of', but got 4611686018427387904, 4}}
func.func @overflow(%m: tensor<4xf32> {nn.layout = #nn.layout<tp = S(0)>, nn.moment1 = "w", nn.share_of = array<i64: 4611686018427387904, 4>}) {
  return
}
