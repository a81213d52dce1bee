// RUN: reprise-opt %s -verify-diagnostics -split-input-file --reprise-annotate-layout=sequence-parallel

// What the ranks do not divide, each with its numbers.

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%q: tensor<2x4x12xf32>, %rng: tensor<4xi32> {nn.input = "rng"}) -> tensor<2x4x12xf32> {
    // expected-error @+1 {{'nn.attention' op needs heads that the 2 ranks along 'tp' divide, but got 3}}
    %c, %lse = nn.attention %q, %q, %q, %rng heads 3 scale 1.0 rate 0.0 stream 0
      : (tensor<2x4x12xf32>, tensor<2x4x12xf32>, tensor<2x4x12xf32>, tensor<4xi32>) -> (tensor<2x4x12xf32>, tensor<2x3x4xf32>)
    return %c : tensor<2x4x12xf32>
  }
}

// -----

module attributes {nn.mesh = #nn.mesh<tp = 4>} {
  func.func @forward(%q: tensor<2x4x36xf32>, %k: tensor<2x4x18xf32>) -> tensor<2x12x4x4xf32> {
    // expected-error @+1 {{'nn.scores' op needs heads of keys and values that the 4 ranks along 'tp' divide, or that divide these, but got 6}}
    %s = nn.scores %q, %k heads 12 kv_heads 6 scale 1.0 : (tensor<2x4x36xf32>, tensor<2x4x18xf32>) -> tensor<2x12x4x4xf32>
    return %s : tensor<2x12x4x4xf32>
  }
}

// -----

// Two kinds of layers: four ranks by two, and eight ranks by two.

module attributes {nn.mesh = #nn.mesh<tp = 8>} {
  func.func @forward(%x: tensor<2x4x8xf32>, %wq: tensor<8x16xf32>, %w2: tensor<8x4xf32>, %w4: tensor<8x8xf32>, %wo: tensor<16x8xf32>) -> tensor<2x4x8xf32> {
    %q = nn.linear %x, %wq in_out : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    %k2 = nn.linear %x, %w2 in_out : (tensor<2x4x8xf32>, tensor<8x4xf32>) -> tensor<2x4x4xf32>
    // expected-error @+1 {{'nn.scores' op needs as many heads of keys and values as the rest of the model, 4, to be on 8 ranks along 'tp', but got 2}}
    %s = nn.scores %q, %k2 heads 8 kv_heads 2 scale 1.0 : (tensor<2x4x16xf32>, tensor<2x4x4xf32>) -> tensor<2x8x4x4xf32>
    %p = nn.softmax %s : tensor<2x8x4x4xf32>
    %v = nn.linear %x, %w4 in_out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %c = nn.context %p, %v heads 8 kv_heads 4 scale 1.0 : (tensor<2x8x4x4xf32>, tensor<2x4x8xf32>) -> tensor<2x4x16xf32>
    %y = nn.linear %c, %wo in_out : (tensor<2x4x16xf32>, tensor<16x8xf32>) -> tensor<2x4x8xf32>
    return %y : tensor<2x4x8xf32>
  }
}

// -----

// One value as keys of four heads and of two.

module attributes {nn.mesh = #nn.mesh<tp = 4>} {
  func.func @forward(%x: tensor<2x4x8xf32>, %wq: tensor<8x8xf32>, %wk: tensor<8x4xf32>, %wo: tensor<8x8xf32>) -> tensor<2x4x8xf32> {
    %q = nn.linear %x, %wq in_out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %k = nn.linear %x, %wk in_out : (tensor<2x4x8xf32>, tensor<8x4xf32>) -> tensor<2x4x4xf32>
    // expected-error @+1 {{'nn.scores' op needs heads that 2 ranks along 'tp' have copies of, but what else reads them needs 1}}
    %s = nn.scores %q, %k heads 4 kv_heads 2 scale 1.0 : (tensor<2x4x8xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4x4xf32>
    %p = nn.softmax %s : tensor<2x4x4x4xf32>
    %c = nn.context %p, %k heads 4 kv_heads 4 scale 1.0 : (tensor<2x4x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
    %y = nn.linear %c, %wk out_in : (tensor<2x4x4xf32>, tensor<8x4xf32>) -> tensor<2x4x8xf32>
    return %y : tensor<2x4x8xf32>
  }
}

// -----

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  // expected-error @+1 {{'func.func' op needs a sequence that the 2 ranks along 'tp' divide, but got 5}}
  func.func @forward(%ids: tensor<2x5xi32> {nn.input = "tokens"}, %x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%x: tensor<2x4x8xf32>, %u: tensor<8x7xf32> {nn.parameter = #nn.parameter<name = "u", init = zeros>},
                     %d: tensor<7x8xf32> {nn.parameter = #nn.parameter<name = "d", init = zeros>}) -> tensor<2x4x8xf32> {
    // expected-error @+1 {{'nn.linear' op needs columns that the 2 ranks along 'tp' divide, but got 7}}
    %h = nn.linear %x, %u in_out : (tensor<2x4x8xf32>, tensor<8x7xf32>) -> tensor<2x4x7xf32>
    %y = nn.linear %h, %d in_out : (tensor<2x4x7xf32>, tensor<7x8xf32>) -> tensor<2x4x8xf32>
    return %y : tensor<2x4x8xf32>
  }
}

// -----

// The norm of all heads needs all of them.

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%q: tensor<2x4x12xf32>, %g: tensor<12xf32>, %t: tensor<4x6xf32> {nn.rotary = #nn.rotary<theta = 100.0 : f64>}) -> tensor<2x2x4x4xf32> {
    // expected-error @+1 {{'nn.rms_norm' op needs to be the norm of each head, since heads are on 2 ranks along 'tp', but it is that of all 12 columns}}
    %n, %rstd = nn.rms_norm %q, %g eps 1.0e-06 : (tensor<2x4x12xf32>, tensor<12xf32>) -> (tensor<2x4x12xf32>, tensor<2x4xf32>)
    %r = nn.rope %n, %t heads 2 half_split : (tensor<2x4x12xf32>, tensor<4x6xf32>) -> tensor<2x4x12xf32>
    %s = nn.scores %r, %q heads 2 scale 1.0 : (tensor<2x4x12xf32>, tensor<2x4x12xf32>) -> tensor<2x2x4x4xf32>
    return %s : tensor<2x2x4x4xf32>
  }
}

// -----

// One table by rows and by columns.

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%ids: tensor<2x4xi32> {nn.input = "tokens"}, %w: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<2x4x8xf32> {
    // expected-note @+1 {{this reads it, too}}
    %x = nn.embedding %ids, %w : (tensor<2x4xi32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    // expected-error @+1 {{'nn.linear' op needs argument #1 in another part than what else reads it}}
    %y = nn.linear %x, %w in_out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    return %y : tensor<2x4x8xf32>
  }
}

// -----

// expected-error @+1 {{needs 2 ranks or more along 'tp' for sequence parallelism, but got 1}}
module attributes {nn.mesh = #nn.mesh<dp = 2>} {
  func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

// expected-error @+1 {{needs a function @forward to annotate}}
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
}

// -----

// Whole experts, of which ranks along tp have rows of their own positions.

module attributes {nn.mesh = #nn.mesh<tp = 2, ep = 2 step 1>} {
  func.func @forward(%r: tensor<2x5x4xf32>) -> tensor<2x5x2xi32> {
    // expected-error @+1 {{'nn.choose_experts' op needs positions that the 2 ranks along 'tp' divide, but got 5}}
    %id = nn.choose_experts %r : (tensor<2x5x4xf32>) -> tensor<2x5x2xi32>
    return %id : tensor<2x5x2xi32>
  }
}

// -----

module attributes {nn.mesh = #nn.mesh<tp = 2, ep = 2 step 1>} {
  func.func @forward(%r: tensor<2x4x4xf32>) -> tensor<13xi32> {
    %id = nn.choose_experts %r : (tensor<2x4x4xf32>) -> tensor<2x4x2xi32>
    // expected-error @+1 {{'nn.sort_rows' op needs experts without a capacity, since each of 2 ranks along 'tp' sorts its own tokens, but got 3}}
    %o, %p, %e = nn.sort_rows %id capacity 3 : (tensor<2x4x2xi32>) -> (tensor<13xi32>, tensor<2x4x2xi32>, tensor<5xi32>)
    return %o : tensor<13xi32>
  }
}
