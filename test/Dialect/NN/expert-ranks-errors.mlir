// RUN: reprise-opt %s -split-input-file -verify-diagnostics

module attributes {nn.mesh = #nn.mesh<dp = 2, ep = 2 step 1>} {
  func.func @offsets(%o: tensor<5xi32>) {
    // expected-error @+1 {{'nn.gather_offsets' op needs 'offsets' to be [E + 1] and 'own' [E/n + 1] of 'tensor<2x5xi32>', but got 'tensor<5xi32>' and 'tensor<2xi32>'}}
    %all, %own = nn.gather_offsets %o over "ep" : (tensor<5xi32>) -> (tensor<2x5xi32>, tensor<2xi32>)
    return
  }
}

// -----

module attributes {nn.mesh = #nn.mesh<dp = 4, ep = 4 step 1>} {
  func.func @ranks(%o: tensor<5xi32>) {
    // expected-error @+1 {{'nn.gather_offsets' op needs offsets of the 4 ranks along "ep", but got 'tensor<2x5xi32>'}}
    %all, %own = nn.gather_offsets %o over "ep" : (tensor<5xi32>) -> (tensor<2x5xi32>, tensor<3xi32>)
    return
  }
}

// -----

func.func @divide(%o: tensor<2x6xi32>, %x: tensor<16x8xf32>) {
  // expected-error @+1 {{'nn.send_rows' op needs 'all' to be [n, E + 1] with n that divides E, but got 'tensor<2x6xi32>'}}
  %a = nn.send_rows %x, %o over "ep" : (tensor<16x8xf32>, tensor<2x6xi32>) -> tensor<32x8xf32>
  return
}

// -----

func.func @sizes(%o: tensor<2x5xi32>, %x: tensor<32x8xf32>) {
  // expected-error @+1 {{'nn.return_rows' op needs rows of equal sizes, but got 'tensor<32x8xf32>' and 'tensor<16x9xf32>'}}
  %a = nn.return_rows %x, %o over "ep" : (tensor<32x8xf32>, tensor<2x5xi32>) -> tensor<16x9xf32>
  return
}

// -----

module attributes {nn.mesh = #nn.mesh<dp = 2>} {
  func.func @axis(%o: tensor<2x5xi32>, %x: tensor<16x8xf32>) {
    // expected-error @+1 {{'nn.send_rows' op needs an axis of #nn.mesh<dp = 2>, but got "ep"}}
    %a = nn.send_rows %x, %o over "ep" : (tensor<16x8xf32>, tensor<2x5xi32>) -> tensor<32x8xf32>
    return
  }
}
