// RUN: reprise-opt %s -verify-diagnostics -split-input-file

// Every constraint of nn.rope, by its number in the op's description.

func.func @rope_c1(%q: tensor<2x8x32xf32>, %r: tensor<8x8xf32>) {
  // expected-error @+1 {{'nn.rope' op failed to verify that all of {input, out} have same type}}
  %y = nn.rope %q, %r heads 4 half_split : (tensor<2x8x32xf32>, tensor<8x8xf32>) -> tensor<2x8x16xf32>
  return
}

// -----

func.func @rope_c2_length(%q: tensor<2x8x32xf32>, %r: tensor<9x8xf32>) {
  // expected-error @+1 {{'nn.rope' op needs 'rotary' to be [T, R] with T = 8 from 'input', but got 9 in 'tensor<9x8xf32>'}}
  %y = nn.rope %q, %r heads 4 half_split : (tensor<2x8x32xf32>, tensor<9x8xf32>) -> tensor<2x8x32xf32>
  return
}

// -----

func.func @rope_c2_width(%q: tensor<2x8x32xf32>, %r: tensor<8x10xf32>) {
  // expected-error @+1 {{'nn.rope' op needs to turn columns of a head, 8 of 4 heads in 32 columns, but got 10 from 0 on}}
  %y = nn.rope %q, %r heads 4 half_split : (tensor<2x8x32xf32>, tensor<8x10xf32>) -> tensor<2x8x32xf32>
  return
}

// -----

func.func @rope_c3(%q: tensor<2x8x32xf32>, %r: tensor<8x8xf32>) {
  // expected-error @+1 {{'nn.rope' op needs a head count that divides the width, but got 5 heads and the width 32 of 'input'}}
  %y = nn.rope %q, %r heads 5 half_split : (tensor<2x8x32xf32>, tensor<8x8xf32>) -> tensor<2x8x32xf32>
  return
}

// -----

func.func @rope_c4(%q: tensor<2x8x21xf32>, %r: tensor<8x7xf32>) {
  // expected-error @+1 {{'nn.rope' op needs an even number of columns to turn, but got 7}}
  %y = nn.rope %q, %r heads 3 interleaved : (tensor<2x8x21xf32>, tensor<8x7xf32>) -> tensor<2x8x21xf32>
  return
}

// -----

func.func @rope_style(%q: tensor<2x8x32xf32>, %r: tensor<8x8xf32>) {
  // expected-error @+1 {{expected string or keyword containing one of the following enum values for attribute 'style' [half_split, interleaved]}}
  %y = nn.rope %q, %r heads 4 split : (tensor<2x8x32xf32>, tensor<8x8xf32>) -> tensor<2x8x32xf32>
  return
}

// -----

func.func @rope_backward_c1(%q: tensor<2x8x32xf32>, %r: tensor<8x8xf32>) {
  // expected-error @+1 {{'nn.rope_backward' op failed to verify that all of {dout, dinput} have same type}}
  %y = nn.rope_backward %q, %r heads 4 half_split : (tensor<2x8x32xf32>, tensor<8x8xf32>) -> tensor<2x9x32xf32>
  return
}

// -----

func.func @rope_backward_c2(%q: tensor<8x32xf32>, %r: tensor<8x8xf32>) {
  // expected-error @+1 {{'nn.rope_backward' op needs 'dout' to be [B, T, H*D], but got 'tensor<8x32xf32>'}}
  %y = nn.rope_backward %q, %r heads 4 half_split : (tensor<8x32xf32>, tensor<8x8xf32>) -> tensor<8x32xf32>
  return
}

// -----

func.func @rope_backward_c3(%q: tensor<2x8x32xf32>, %r: tensor<8x8xf32>) {
  // expected-error @+1 {{'nn.rope_backward' op needs a head count that divides the width, but got 0 heads and the width 32 of 'dout'}}
  %y = nn.rope_backward %q, %r heads 0 half_split : (tensor<2x8x32xf32>, tensor<8x8xf32>) -> tensor<2x8x32xf32>
  return
}

// -----

func.func @rope_backward_c4(%q: tensor<2x8x6xf32>, %r: tensor<8x3xf32>) {
  // expected-error @+1 {{'nn.rope_backward' op needs an even number of columns to turn, but got 3}}
  %y = nn.rope_backward %q, %r heads 2 half_split : (tensor<2x8x6xf32>, tensor<8x3xf32>) -> tensor<2x8x6xf32>
  return
}
