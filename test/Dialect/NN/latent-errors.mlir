// RUN: reprise-opt %s -verify-diagnostics -split-input-file

func.func @split(%x: tensor<2x8x24xf32>) {
  // expected-error @+1 {{needs 'input' to have the columns of 'left' and 'right', 16 and 9, but got 24}}
  %c, %r = nn.split_columns %x : (tensor<2x8x24xf32>) -> (tensor<2x8x16xf32>, tensor<2x8x9xf32>)
  return
}

// -----

func.func @join(%x: tensor<2x8x16xf32>, %y: tensor<2x7x8xf32>) {
  // expected-error @+1 {{'nn.join_columns' op needs 'right' to be}}
  %z = nn.join_columns %x, %y : (tensor<2x8x16xf32>, tensor<2x7x8xf32>) -> tensor<2x8x24xf32>
  return
}

// -----

func.func @heads(%kv: tensor<2x8x104xf32>, %r: tensor<2x8x8xf32>) {
  // expected-error @+1 {{needs a head count that divides the width, but got 3 heads and the width 104 of 'input'}}
  %k, %v = nn.latent_heads %kv, %r heads 3 : (tensor<2x8x104xf32>, tensor<2x8x8xf32>) -> (tensor<2x8x96xf32>, tensor<2x8x39xf32>)
  return
}

// -----

func.func @no_heads(%kv: tensor<2x8x104xf32>, %r: tensor<2x8x8xf32>) {
  // expected-error @+1 {{needs a head count that divides the width, but got 0 heads and the width 104 of 'input'}}
  %k, %v = nn.latent_heads %kv, %r heads 0 : (tensor<2x8x104xf32>, tensor<2x8x8xf32>) -> (tensor<2x8x96xf32>, tensor<2x8x39xf32>)
  return
}

// -----

func.func @columns(%kv: tensor<2x8x104xf32>, %r: tensor<2x8x8xf32>) {
  // expected-error @+1 {{needs a head of 'input' to have a value's 11 columns and those of its key that are not the 8 shared ones, 16, but got 26}}
  %k, %v = nn.latent_heads %kv, %r heads 4 : (tensor<2x8x104xf32>, tensor<2x8x8xf32>) -> (tensor<2x8x96xf32>, tensor<2x8x44xf32>)
  return
}

// -----

func.func @gradient(%dk: tensor<2x8x96xf32>, %dv: tensor<2x8x40xf32>) {
  // expected-error @+1 {{needs a head of 'dinput' to have}}
  %kv, %r = nn.latent_heads_backward %dk, %dv heads 4 : (tensor<2x8x96xf32>, tensor<2x8x40xf32>) -> (tensor<2x8x100xf32>, tensor<2x8x8xf32>)
  return
}

// -----

func.func @values(%q: tensor<2x8x96xf32>, %v: tensor<2x8x40xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{needs heads of 'value' as wide as those of 'out', but got 4 in 40 columns and 4 in 36}}
  %o, %l = nn.attention %q, %q, %v, %rng heads 4 scale 0.5 rate 0.0 stream 0
    : (tensor<2x8x96xf32>, tensor<2x8x96xf32>, tensor<2x8x40xf32>, tensor<4xi32>) -> (tensor<2x8x36xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @turned(%q: tensor<2x8x96xf32>, %t: tensor<8x16xf32>) {
  // expected-error @+1 {{needs to turn columns of a head, 24 of 4 heads in 96 columns, but got 16 from 10 on}}
  %r = nn.rope %q, %t heads 4 from 10 half_split : (tensor<2x8x96xf32>, tensor<8x16xf32>) -> tensor<2x8x96xf32>
  return
}
