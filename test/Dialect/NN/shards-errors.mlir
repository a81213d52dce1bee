// RUN: reprise-opt %s -verify-diagnostics -split-input-file

// expected-error @+1 {{needs a word of R, I, V, P or S(d), but got Q}}
func.func private @word(tensor<4xf32> {nn.layout = #nn.layout<tp = Q>})

// -----

// expected-error @+1 {{needs axes of pp, dp, tp, kv, kv_copies, ep, ep_copies, but got "pt"}}
func.func private @axis(tensor<4xf32> {nn.layout = #nn.layout<pt = R>})

// -----

// expected-error @+1 {{needs each axis once, but got "tp" again}}
func.func private @twice(tensor<4xf32> {nn.layout = #nn.layout<tp = R, tp = I>})

// -----

// expected-error @+1 {{needs a dimension of at least 0, but got -1}}
func.func private @negative(tensor<4xf32> {nn.layout = #nn.layout<tp = S(-1)>})

// -----

// expected-error @+1 {{needs blocks of a dimension along one axis, but got dimension 1 along "tp" and "ep"}}
func.func private @same(tensor<4x6xf32> {nn.layout = #nn.layout<tp = S(1), kv = S(0), ep = S(1)>})

// -----

func.func @rank_of_op(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{needs a dimension below 2 for 'nn.layout', but got #nn.layout<tp = S(2)> of 'tensor<2x4xf32>'}}
  %y = nn.gelu %x tanh {nn.layout = #nn.layout<tp = S(2)>} : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// expected-error @+1 {{'func.func' op needs a dimension below 1 for 'nn.layout', but got #nn.layout<tp = S(1)> of 'tensor<4xf32>'}}
func.func private @rank(tensor<4xf32> {nn.layout = #nn.layout<tp = S(1)>})

// -----

module attributes {nn.mesh = #nn.mesh<dp = 2>} {
  func.func @no_axis(%x: tensor<2x4xf32>) {
    // expected-error @+1 {{'nn.replicate' op needs an axis of #nn.mesh<dp = 2>, but got "tp"}}
    %y = nn.replicate %x over "tp" : tensor<2x4xf32>
    return
  }
}

// -----

module attributes {nn.mesh = #nn.mesh<tp = 3>} {
  func.func @ranks(%x: tensor<2x4xf32>) {
    // expected-error @+1 {{'nn.all_gather' op needs 'out' to be 'input' 3 times along dimension 1, but got 'tensor<2x8xf32>' and 'tensor<2x4xf32>'}}
    %y = nn.all_gather %x to R over "tp" dim 1 : (tensor<2x4xf32>) -> tensor<2x8xf32>
    return
  }
}

// -----

func.func @no_multiple(%x: tensor<2x4xf32>) {
  // expected-error @+1 {{'nn.reduce_scatter' op needs 'input' to be 'out' some times along dimension 1, but got 'tensor<2x4xf32>' and 'tensor<2x3xf32>'}}
  %y = nn.reduce_scatter %x over "tp" dim 1 : (tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @other_dimension(%x: tensor<2x4xf32>) {
  // expected-error @+1 {{'nn.slice' op needs 'input' to be 'out' some times along dimension 1, but got 'tensor<2x4xf32>' and 'tensor<1x2xf32>'}}
  %y = nn.slice %x over "tp" dim 1 : (tensor<2x4xf32>) -> tensor<1x2xf32>
  return
}

// -----

func.func @dimension(%x: tensor<2x4xf32>) {
  // expected-error @+1 {{'nn.slice' op needs a dimension from 0 to 1, but got 2}}
  %y = nn.slice %x over "tp" dim 2 : (tensor<2x4xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @gathered(%x: tensor<2x4xf32>) {
  // expected-error @+1 {{'nn.all_gather' op needs to make R or I, but got P}}
  %y = nn.all_gather %x to P over "tp" dim 0 : (tensor<2x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @rows(%ids: tensor<2x8xi32>, %table: tensor<7x24xbf16>) {
  // expected-error @+1 {{'nn.embedding_part' op needs rows of 'bf16', but got 'f32'}}
  %x = nn.embedding_part %ids, %table over "tp" : (tensor<2x8xi32>, tensor<7x24xbf16>) -> tensor<2x8x24xf32>
  return
}

// -----

func.func @width(%ids: tensor<2x8xi32>, %table: tensor<7x24xf32>) {
  // expected-error @+1 {{'nn.embedding_part' op needs 'out' to be [B, T, C] with C = 24 from 'table', but got 25 in 'tensor<2x8x25xf32>'}}
  %x = nn.embedding_part %ids, %table over "tp" : (tensor<2x8xi32>, tensor<7x24xf32>) -> tensor<2x8x25xf32>
  return
}

// -----

func.func @targets(%logits: tensor<2x8x7xf32>, %ids: tensor<2x9xi32>) {
  // expected-error @+1 {{'nn.cross_entropy_part' op needs 'targets' to be [B, T] with T = 8 from 'logits', but got 9 in 'tensor<2x9xi32>'}}
  %lse, %hit = nn.cross_entropy_part %logits, %ids over "tp" : (tensor<2x8x7xf32>, tensor<2x9xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @blocks(%parts: tensor<5x8xf32>) {
  // expected-error @+1 {{'nn.join_lse' op needs 'parts' [n*B, T] of 'lse' [B, T], but got 'tensor<5x8xf32>' and 'tensor<2x8xf32>'}}
  %lse = nn.join_lse %parts : (tensor<5x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @bias(%x: tensor<2x8x24xf32>, %b: tensor<8xf32>) {
  // expected-error @+1 {{'nn.add_bias' op needs 'bias' to be [N] with N = 24 from 'input', but got 8 in 'tensor<8xf32>'}}
  %y = nn.add_bias %x, %b : (tensor<2x8x24xf32>, tensor<8xf32>) -> tensor<2x8x24xf32>
  return
}
