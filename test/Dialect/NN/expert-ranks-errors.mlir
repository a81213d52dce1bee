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

// -----

func.func @rounds(%o: tensor<5xi32>) {
  // expected-error @+1 {{'nn.gather_offsets' op needs 'offsets' to be [E + 1] and 'own' [K, E/n + 1] of 'tensor<2x5xi32>', but got 'tensor<5xi32>' and 'tensor<3xi32>'}}
  %all, %own = nn.gather_offsets %o over "ep" rows 8 : (tensor<5xi32>) -> (tensor<2x5xi32>, tensor<3xi32>)
  return
}

// -----

func.func @no_rows(%o: tensor<5xi32>) {
  // expected-error @+1 {{'nn.gather_offsets' op needs 'rows' of at least 1, but got 0}}
  %all, %own = nn.gather_offsets %o over "ep" rows 0 : (tensor<5xi32>) -> (tensor<2x5xi32>, tensor<4x3xi32>)
  return
}

// -----

func.func @which(%own: tensor<4x3xi32>) {
  // expected-error @+1 {{needs 'own' to be [K, E/n + 1], 'out' [E/n + 1] and 'round' below K, but got 'tensor<4x3xi32>', 'tensor<3xi32>' and 4}}
  %offsets = nn.round_offsets %own round 4 : (tensor<4x3xi32>) -> tensor<3xi32>
  return
}

// -----

func.func @together(%o: tensor<2x5xi32>, %x: tensor<16x8xf32>) {
  // expected-error @+1 {{'nn.send_rows' op needs 'round' of at least 0 together with 'rows' of at least 1}}
  %a = nn.send_rows %x, %o over "ep" round 1 : (tensor<16x8xf32>, tensor<2x5xi32>) -> tensor<32x8xf32>
  return
}

// -----

func.func @kept(%o: tensor<2x5xi32>, %x: tensor<8x8xf32>, %y: tensor<16x8xf32>) {
  // expected-error @+1 {{'nn.return_rows' op needs 'kept' with 'round' only, and of type 'tensor<16x8xf32>', but got 'tensor<16x8xf32>'}}
  %a = nn.return_rows %x, %o, %y over "ep" : (tensor<8x8xf32>, tensor<2x5xi32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  return
}

// -----

// expected-error @+1 {{needs a number of at least 1 for 'nn.expert_rows', but got 0 : i64}}
module attributes {nn.expert_rows = 0 : i64} {
}
