// RUN: reprise-opt %s -split-input-file -verify-diagnostics --reprise-partition

// Without words each rank would compute everything.

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
    // expected-error @+1 {{needs 'nn.layout', which reprise-annotate-layout gives, to be on 2 ranks along 'tp'}}
    %y = nn.gelu %x tanh : tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
}

// -----

module attributes {nn.mesh = #nn.mesh<tp = 3>} {
  func.func @forward(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
    // expected-error @+1 {{needs a size of dimension 1 that the 3 ranks along 'tp' divide for #nn.layout<tp = S(1)>, but got 'tensor<2x4xf32>'}}
    %y = nn.gelu %x tanh {nn.layout = #nn.layout<tp = S(1)>} : tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
}

// -----

module attributes {nn.mesh = #nn.mesh<tp = 3>} {
  // expected-error @+1 {{needs a size of dimension 0 that the 3 ranks along 'tp' divide for #nn.layout<tp = S(0)>, but got 'tensor<2x4xf32>'}}
  func.func @forward(%x: tensor<2x4xf32> {nn.layout = #nn.layout<tp = S(0)>}) -> tensor<2x4xf32> {
    return %x : tensor<2x4xf32>
  }
}

// -----

// expected-error @+1 {{needs a function @forward to partition}}
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
}

// -----

// Rows of a rank's own tokens mean nothing to what is of all of them.

module attributes {nn.mesh = #nn.mesh<tp = 2, ep = 2 step 1>} {
  func.func @forward(%r: tensor<2x4x4xf32> {nn.layout = #nn.layout<tp = I>}, %rows: tensor<8xf32> {nn.layout = #nn.layout<tp = V>}) -> tensor<f32> {
    // expected-error @+1 {{'nn.mean' op needs rows of all tokens, but each of 2 ranks along 'tp' has those of its own}}
    %m = nn.mean %rows {nn.layout = #nn.layout<tp = I>} : (tensor<8xf32>) -> tensor<f32>
    return %m : tensor<f32>
  }
}
