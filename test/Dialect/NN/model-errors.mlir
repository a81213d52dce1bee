// RUN: reprise-opt %s -verify-diagnostics -split-input-file

// Every constraint, by its number in the op's description.

// Types: ranked, static, not empty, f32 or bf16.

func.func @types_dynamic(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{'nn.gelu' op operand #0 must be non-empty statically shaped tensor of 32-bit float or bfloat16 type values, but got 'tensor<?x4xf32>'}}
  %y = nn.gelu %x tanh : tensor<?x4xf32>
  return
}

// -----

func.func @types_empty(%x: tensor<0x4xf32>) {
  // expected-error @+1 {{'nn.gelu' op operand #0 must be non-empty statically shaped tensor of 32-bit float or bfloat16 type values, but got 'tensor<0x4xf32>'}}
  %y = nn.gelu %x tanh : tensor<0x4xf32>
  return
}

// -----

func.func @types_element(%x: tensor<4xf64>) {
  // expected-error @+1 {{'nn.gelu' op operand #0 must be non-empty statically shaped tensor of 32-bit float or bfloat16 type values, but got 'tensor<4xf64>'}}
  %y = nn.gelu %x tanh : tensor<4xf64>
  return
}

// -----

func.func @types_rng(%x: tensor<4xf32>, %rng: tensor<3xi32>) {
  // expected-error @+1 {{'nn.dropout' op operand #1 must be tensor<4xi32> of seed (low, high), step and micro-batch, but got 'tensor<3xi32>'}}
  %y = nn.dropout %x, %rng rate 0.1 stream 0 : (tensor<4xf32>, tensor<3xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @types_bf16_gradient(%x: tensor<4xbf16>) {
  // expected-error @+1 {{'nn.accumulate' op operand #0 must be non-empty statically shaped tensor of 32-bit float values, but got 'tensor<4xbf16>'}}
  %y = nn.accumulate %x, %x : tensor<4xbf16>
  return
}

// -----

// nn.embedding.

func.func @embedding_c1(%ids: tensor<2x8xi32>, %t: tensor<307x24xbf16>) {
  // expected-error @+1 {{'nn.embedding' op needs rows of 'bf16', but got 'f32'}}
  %y = nn.embedding %ids, %t : (tensor<2x8xi32>, tensor<307x24xbf16>) -> tensor<2x8x24xf32>
  return
}

// -----

func.func @embedding_c2_rank(%ids: tensor<2x8x1xi32>, %t: tensor<307x24xf32>) {
  // expected-error @+1 {{'nn.embedding' op needs 'ids' to be [B, T], but got 'tensor<2x8x1xi32>'}}
  %y = nn.embedding %ids, %t : (tensor<2x8x1xi32>, tensor<307x24xf32>) -> tensor<2x8x24xf32>
  return
}

// -----

func.func @embedding_c2_width(%ids: tensor<2x8xi32>, %t: tensor<307x24xf32>) {
  // expected-error @+1 {{'nn.embedding' op needs 'out' to be [B, T, C] with C = 24 from 'table', but got 23 in 'tensor<2x8x23xf32>'}}
  %y = nn.embedding %ids, %t : (tensor<2x8xi32>, tensor<307x24xf32>) -> tensor<2x8x23xf32>
  return
}

// -----

func.func @embedding_backward_c1(%ids: tensor<2x8xi32>, %d: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'nn.embedding_backward' op result #0 must be non-empty statically shaped tensor of 32-bit float values, but got 'tensor<307x24xbf16>'}}
  %y = nn.embedding_backward %ids, %d
    : (tensor<2x8xi32>, tensor<2x8x24xf32>) -> tensor<307x24xbf16>
  return
}

// -----

func.func @embedding_backward_c2(%ids: tensor<2x7xi32>, %d: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'nn.embedding_backward' op needs 'dout' to be [B, T, C] with T = 7 from 'ids', but got 8 in 'tensor<2x8x24xf32>'}}
  %y = nn.embedding_backward %ids, %d
    : (tensor<2x7xi32>, tensor<2x8x24xf32>) -> tensor<307x24xf32>
  return
}

// -----

// nn.add_positions.

func.func @add_positions_c1(%x: tensor<2x8x24xf32>, %t: tensor<16x24xbf16>) {
  // expected-error @+1 {{'nn.add_positions' op failed to verify that all of {input, table} have same element type}}
  %y = nn.add_positions %x, %t : (tensor<2x8x24xf32>, tensor<16x24xbf16>) -> tensor<2x8x24xf32>
  return
}

// -----

func.func @add_positions_c2(%x: tensor<2x8x24xf32>, %t: tensor<16x25xf32>) {
  // expected-error @+1 {{'nn.add_positions' op needs 'table' to be [P, C] with C = 24 from 'input', but got 25 in 'tensor<16x25xf32>'}}
  %y = nn.add_positions %x, %t : (tensor<2x8x24xf32>, tensor<16x25xf32>) -> tensor<2x8x24xf32>
  return
}

// -----

func.func @add_positions_c3(%x: tensor<2x8x24xf32>, %t: tensor<7x24xf32>) {
  // expected-error @+1 {{'nn.add_positions' op needs a row of 'table' for each of the 8 positions, but got 7 rows}}
  %y = nn.add_positions %x, %t : (tensor<2x8x24xf32>, tensor<7x24xf32>) -> tensor<2x8x24xf32>
  return
}

// -----

func.func @take_position_c1(%x: tensor<2x8x24xf32>, %p: tensor<2xi32>) {
  // expected-error @+1 {{'nn.take_position' op failed to verify that all of {input, out} have same element type}}
  %y = nn.take_position %x, %p : (tensor<2x8x24xf32>, tensor<2xi32>) -> tensor<2x24xbf16>
  return
}

// -----

func.func @take_position_c2(%x: tensor<2x8x24xf32>, %p: tensor<3xi32>) {
  // expected-error @+1 {{'nn.take_position' op needs 'position' to be [B] with B = 2 from 'input', but got 3 in 'tensor<3xi32>'}}
  %y = nn.take_position %x, %p : (tensor<2x8x24xf32>, tensor<3xi32>) -> tensor<2x24xf32>
  return
}

// -----

func.func @crop_positions_c1(%x: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'nn.crop_positions' op failed to verify that all of {input, out} have same element type}}
  %y = nn.crop_positions %x from 1 : (tensor<2x8x24xf32>) -> tensor<2x7x24xbf16>
  return
}

// -----

func.func @crop_positions_c2(%x: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'nn.crop_positions' op needs 'out' to be [B, U, C] with C = 24 from 'input', but got 23 in 'tensor<2x7x23xf32>'}}
  %y = nn.crop_positions %x from 1 : (tensor<2x8x24xf32>) -> tensor<2x7x23xf32>
  return
}

// -----

func.func @crop_positions_c2_ids(%x: tensor<2x8xi32>) {
  // expected-error @+1 {{'nn.crop_positions' op needs 'out' to be [B, U] with B = 2 from 'input', but got 3 in 'tensor<3x7xi32>'}}
  %y = nn.crop_positions %x from 1 : (tensor<2x8xi32>) -> tensor<3x7xi32>
  return
}

// -----

func.func @crop_positions_c3(%x: tensor<2x8xi32>) {
  // expected-error @+1 {{'nn.crop_positions' op needs the 7 positions of 'out' to be of the 8 of 'input', but they begin at 2}}
  %y = nn.crop_positions %x from 2 : (tensor<2x8xi32>) -> tensor<2x7xi32>
  return
}

// -----

func.func @crop_positions_c3_below(%x: tensor<2x8xi32>) {
  // expected-error @+1 {{'nn.crop_positions' op needs the 7 positions of 'out' to be of the 8 of 'input', but they begin at -1}}
  %y = nn.crop_positions %x from -1 : (tensor<2x8xi32>) -> tensor<2x7xi32>
  return
}

// -----

func.func @pad_positions_c1(%x: tensor<2x7x24xf32>) {
  // expected-error @+1 {{'nn.pad_positions' op failed to verify that all of {input, out} have same element type}}
  %y = nn.pad_positions %x from 1 : (tensor<2x7x24xf32>) -> tensor<2x8x24xbf16>
  return
}

// -----

func.func @pad_positions_c2(%x: tensor<2x7xf32>) {
  // expected-error @+1 {{'nn.pad_positions' op needs 'input' to be [B, U, C], but got 'tensor<2x7xf32>'}}
  %y = nn.pad_positions %x from 1 : (tensor<2x7xf32>) -> tensor<2x8x24xf32>
  return
}

// -----

func.func @pad_positions_c3(%x: tensor<2x7x24xf32>) {
  // expected-error @+1 {{'nn.pad_positions' op needs the 7 positions of 'input' to be of the 6 of 'out', but they begin at 0}}
  %y = nn.pad_positions %x from 0 : (tensor<2x7x24xf32>) -> tensor<2x6x24xf32>
  return
}

// -----

func.func @positions_backward_c1(%d: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'nn.positions_backward' op result #0 must be non-empty statically shaped tensor of 32-bit float values, but got 'tensor<16x24xbf16>'}}
  %y = nn.positions_backward %d : (tensor<2x8x24xf32>) -> tensor<16x24xbf16>
  return
}

// -----

func.func @positions_backward_c2(%d: tensor<8x24xf32>) {
  // expected-error @+1 {{'nn.positions_backward' op needs 'dout' to be [B, T, C], but got 'tensor<8x24xf32>'}}
  %y = nn.positions_backward %d : (tensor<8x24xf32>) -> tensor<16x24xf32>
  return
}

// -----

func.func @positions_backward_c3(%d: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'nn.positions_backward' op needs a row of 'dtable' for each of the 8 positions, but got 7 rows}}
  %y = nn.positions_backward %d : (tensor<2x8x24xf32>) -> tensor<7x24xf32>
  return
}

// -----

// nn.layer_norm.

func.func @layer_norm_c1(%x: tensor<2x8x24xf32>, %g: tensor<24xf32>, %m: tensor<2x8xf32>, %b: tensor<24xbf16>) {
  // expected-error @+1 {{'nn.layer_norm' op operand #2 must be non-empty statically shaped tensor of 32-bit float values, but got 'tensor<24xbf16>'}}
  %y:3 = nn.layer_norm %x, %g, %b eps 1.0
    : (tensor<2x8x24xf32>, tensor<24xf32>, tensor<24xbf16>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @layer_norm_c2_gain(%x: tensor<2x8x24xf32>, %g: tensor<23xf32>) {
  // expected-error @+1 {{'nn.layer_norm' op needs 'gain' to be [C] with C = 24 from 'input', but got 23 in 'tensor<23xf32>'}}
  %y:3 = nn.layer_norm %x, %g, %g eps 1.0
    : (tensor<2x8x24xf32>, tensor<23xf32>, tensor<23xf32>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @layer_norm_c2_mean(%x: tensor<2x8x24xf32>, %g: tensor<24xf32>, %m: tensor<2x8xf32>) {
  // expected-error @+1 {{'nn.layer_norm' op needs 'mean' to be [...] with ... = [2, 8] from 'input', but got [16] in 'tensor<16xf32>'}}
  %y:3 = nn.layer_norm %x, %g, %g eps 1.0
    : (tensor<2x8x24xf32>, tensor<24xf32>, tensor<24xf32>) -> (tensor<2x8x24xf32>, tensor<16xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @layer_norm_c2_row(%x: tensor<24xf32>, %g: tensor<24xf32>) {
  // expected-error @+1 {{'nn.layer_norm' op needs 'input' to be [..., C], but got 'tensor<24xf32>'}}
  %y:3 = nn.layer_norm %x, %g, %g eps 1.0
    : (tensor<24xf32>, tensor<24xf32>, tensor<24xf32>) -> (tensor<24xf32>, tensor<1xf32>, tensor<1xf32>)
  return
}

// -----

func.func @layer_norm_c3(%x: tensor<2x8x24xf32>, %g: tensor<24xf32>, %m: tensor<2x8xf32>) {
  // expected-error @+1 {{'nn.layer_norm' op needs a finite 'eps' above 0, but got 0.000000e+00 : f32}}
  %y:3 = nn.layer_norm %x, %g, %g eps 0.0
    : (tensor<2x8x24xf32>, tensor<24xf32>, tensor<24xf32>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @layer_norm_backward_c1(%x: tensor<2x8x24xf32>, %g: tensor<24xf32>, %m: tensor<2x8xf32>, %d: tensor<2x9x24xf32>) {
  // expected-error @+1 {{'nn.layer_norm_backward' op failed to verify that all of {input, dout, dinput} have same type}}
  %y = nn.layer_norm_backward %x, %g, %m, %m, %d
    : (tensor<2x8x24xf32>, tensor<24xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x9x24xf32>) -> tensor<2x8x24xf32>
  return
}

// -----

func.func @layer_norm_backward_c2(%x: tensor<2x8x24xf32>, %g: tensor<24xf32>, %m: tensor<2x8xf32>, %r: tensor<2x7xf32>) {
  // expected-error @+1 {{'nn.layer_norm_backward' op needs 'rstd' to be [...] with ... = [2, 8] from 'input', but got [2, 7] in 'tensor<2x7xf32>'}}
  %y = nn.layer_norm_backward %x, %g, %m, %r, %x
    : (tensor<2x8x24xf32>, tensor<24xf32>, tensor<2x8xf32>, tensor<2x7xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>
  return
}

// -----

func.func @layer_norm_backward_gain_c1(%x: tensor<2x8x24xf32>, %g: tensor<24xf32>, %m: tensor<2x8xf32>) {
  // expected-error @+1 {{'nn.layer_norm_backward_gain' op result #0 must be non-empty statically shaped tensor of 32-bit float values, but got 'tensor<24xbf16>'}}
  %y = nn.layer_norm_backward_gain %x, %m, %m, %x
    : (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8x24xf32>) -> tensor<24xbf16>
  return
}

// -----

func.func @layer_norm_backward_gain_c2(%x: tensor<2x8x24xf32>, %g: tensor<24xf32>, %m: tensor<2x8xf32>) {
  // expected-error @+1 {{'nn.layer_norm_backward_gain' op needs 'dgain' to be [C] with C = 24 from 'input', but got 8 in 'tensor<8xf32>'}}
  %y = nn.layer_norm_backward_gain %x, %m, %m, %x
    : (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8x24xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @sum_rows_c1(%x: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'nn.sum_rows' op result #0 must be non-empty statically shaped tensor of 32-bit float values, but got 'tensor<24xbf16>'}}
  %y = nn.sum_rows %x : (tensor<2x8x24xf32>) -> tensor<24xbf16>
  return
}

// -----

func.func @sum_rows_c2(%x: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'nn.sum_rows' op needs 'out' to be [C], but got 'tensor<8x24xf32>'}}
  %y = nn.sum_rows %x : (tensor<2x8x24xf32>) -> tensor<8x24xf32>
  return
}

// -----

// nn.rms_norm.

func.func @rms_norm_c1(%x: tensor<2x8x24xf32>, %g: tensor<24xbf16>) {
  // expected-error @+1 {{'nn.rms_norm' op operand #1 must be non-empty statically shaped tensor of 32-bit float values, but got 'tensor<24xbf16>'}}
  %y:2 = nn.rms_norm %x, %g eps 1.0 : (tensor<2x8x24xf32>, tensor<24xbf16>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @rms_norm_c2(%x: tensor<2x8x24xf32>, %g: tensor<9xf32>) {
  // expected-error @+1 {{'nn.rms_norm' op needs a width of 'gain' that divides that of 'input', but got 9 and 24}}
  %y:2 = nn.rms_norm %x, %g eps 1.0 : (tensor<2x8x24xf32>, tensor<9xf32>) -> (tensor<2x8x24xf32>, tensor<2x8x3xf32>)
  return
}

// -----

func.func @rms_norm_c2_wide(%x: tensor<2x8x24xf32>, %g: tensor<48xf32>) {
  // expected-error @+1 {{'nn.rms_norm' op needs a width of 'gain' that divides that of 'input', but got 48 and 24}}
  %y:2 = nn.rms_norm %x, %g eps 1.0 : (tensor<2x8x24xf32>, tensor<48xf32>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @rms_norm_c2_rank(%x: tensor<24xf32>, %g: tensor<24xf32>) {
  // expected-error @+1 {{'nn.rms_norm' op needs 'input' to be [..., H*D], but got 'tensor<24xf32>'}}
  %y:2 = nn.rms_norm %x, %g eps 1.0 : (tensor<24xf32>, tensor<24xf32>) -> (tensor<24xf32>, tensor<f32>)
  return
}

// -----

func.func @rms_norm_c3(%x: tensor<2x8x24xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{'nn.rms_norm' op needs 'rstd' to be 'tensor<2x8x3xf32>' with H = 3 and D = 8, but got 'tensor<2x8xf32>'}}
  %y:2 = nn.rms_norm %x, %g eps 1.0 : (tensor<2x8x24xf32>, tensor<8xf32>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @rms_norm_c3_one(%x: tensor<2x8x24xf32>, %g: tensor<24xf32>) {
  // expected-error @+1 {{'nn.rms_norm' op needs 'rstd' to be 'tensor<2x8xf32>' with H = 1 and D = 24, but got 'tensor<2x8x1xf32>'}}
  %y:2 = nn.rms_norm %x, %g eps 1.0 : (tensor<2x8x24xf32>, tensor<24xf32>) -> (tensor<2x8x24xf32>, tensor<2x8x1xf32>)
  return
}

// -----

func.func @rms_norm_c4(%x: tensor<2x8x24xf32>, %g: tensor<24xf32>) {
  // expected-error @+1 {{'nn.rms_norm' op needs a finite 'eps' above 0, but got -1.000000e+00 : f32}}
  %y:2 = nn.rms_norm %x, %g eps -1.0 : (tensor<2x8x24xf32>, tensor<24xf32>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @rms_norm_backward_c1(%x: tensor<2x8x24xf32>, %g: tensor<24xf32>, %r: tensor<2x8xf32>, %d: tensor<2x9x24xf32>) {
  // expected-error @+1 {{'nn.rms_norm_backward' op failed to verify that all of {input, dout, dinput} have same type}}
  %y = nn.rms_norm_backward %x, %g, %r, %d : (tensor<2x8x24xf32>, tensor<24xf32>, tensor<2x8xf32>, tensor<2x9x24xf32>) -> tensor<2x8x24xf32>
  return
}

// -----

func.func @rms_norm_backward_c2(%x: tensor<2x8x24xf32>, %g: tensor<10xf32>, %r: tensor<2x8xf32>) {
  // expected-error @+1 {{'nn.rms_norm_backward' op needs a width of 'gain' that divides that of 'input', but got 10 and 24}}
  %y = nn.rms_norm_backward %x, %g, %r, %x : (tensor<2x8x24xf32>, tensor<10xf32>, tensor<2x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>
  return
}

// -----

func.func @rms_norm_backward_c3(%x: tensor<2x8x24xf32>, %g: tensor<12xf32>, %r: tensor<2x8x3xf32>) {
  // expected-error @+1 {{'nn.rms_norm_backward' op needs 'rstd' to be 'tensor<2x8x2xf32>' with H = 2 and D = 12, but got 'tensor<2x8x3xf32>'}}
  %y = nn.rms_norm_backward %x, %g, %r, %x : (tensor<2x8x24xf32>, tensor<12xf32>, tensor<2x8x3xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>
  return
}

// -----

func.func @rms_norm_backward_gain_c1(%x: tensor<2x8x24xf32>, %r: tensor<2x8xf32>) {
  // expected-error @+1 {{'nn.rms_norm_backward_gain' op result #0 must be non-empty statically shaped tensor of 32-bit float values, but got 'tensor<24xbf16>'}}
  %y = nn.rms_norm_backward_gain %x, %r, %x : (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8x24xf32>) -> tensor<24xbf16>
  return
}

// -----

func.func @rms_norm_backward_gain_c2(%x: tensor<2x8x24xf32>, %r: tensor<2x8xf32>) {
  // expected-error @+1 {{'nn.rms_norm_backward_gain' op needs a width of 'dgain' that divides that of 'input', but got 7 and 24}}
  %y = nn.rms_norm_backward_gain %x, %r, %x : (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8x24xf32>) -> tensor<7xf32>
  return
}

// -----

func.func @rms_norm_backward_gain_c3(%x: tensor<2x8x24xf32>, %r: tensor<2x8xf32>) {
  // expected-error @+1 {{'nn.rms_norm_backward_gain' op needs 'rstd' to be 'tensor<2x8x4xf32>' with H = 4 and D = 6, but got 'tensor<2x8xf32>'}}
  %y = nn.rms_norm_backward_gain %x, %r, %x : (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8x24xf32>) -> tensor<6xf32>
  return
}

// -----

// nn.linear.

func.func @linear_c1(%x: tensor<2x8x24xf32>, %w: tensor<24x96xbf16>) {
  // expected-error @+1 {{'nn.linear' op failed to verify that all of {input, weight, out} have same element type}}
  %y = nn.linear %x, %w in_out : (tensor<2x8x24xf32>, tensor<24x96xbf16>) -> tensor<2x8x96xf32>
  return
}

// -----

func.func @linear_c1_bias(%x: tensor<2x8x24xf32>, %w: tensor<24x96xf32>, %b: tensor<96xbf16>) {
  // expected-error @+1 {{'nn.linear' op needs a bias of 'f32' like the input, but got 'tensor<96xbf16>'}}
  %y = nn.linear %x, %w, %b in_out
    : (tensor<2x8x24xf32>, tensor<24x96xf32>, tensor<96xbf16>) -> tensor<2x8x96xf32>
  return
}

// -----

func.func @linear_c2_layout(%x: tensor<2x8x24xf32>, %w: tensor<24x96xf32>) {
  // expected-error @+1 {{'nn.linear' op needs 'weight' to be [N, K] with K = 24 from 'input', but got 96 in 'tensor<24x96xf32>'}}
  %y = nn.linear %x, %w out_in : (tensor<2x8x24xf32>, tensor<24x96xf32>) -> tensor<2x8x96xf32>
  return
}

// -----

func.func @linear_c2_bias(%x: tensor<2x8x24xf32>, %w: tensor<24x96xf32>, %b: tensor<24xf32>) {
  // expected-error @+1 {{'nn.linear' op needs 'bias' to be [N] with N = 96 from 'weight', but got 24 in 'tensor<24xf32>'}}
  %y = nn.linear %x, %w, %b in_out
    : (tensor<2x8x24xf32>, tensor<24x96xf32>, tensor<24xf32>) -> tensor<2x8x96xf32>
  return
}

// -----

func.func @linear_c2_rows(%x: tensor<2x8x24xf32>, %w: tensor<24x96xf32>) {
  // expected-error @+1 {{'nn.linear' op needs 'out' to be [..., N] with ... = [2, 8] from 'input', but got [16] in 'tensor<16x96xf32>'}}
  %y = nn.linear %x, %w in_out : (tensor<2x8x24xf32>, tensor<24x96xf32>) -> tensor<16x96xf32>
  return
}

// -----

func.func @linear_backward_input_c1(%d: tensor<2x8x96xf32>, %w: tensor<24x96xf32>) {
  // expected-error @+1 {{'nn.linear_backward_input' op failed to verify that all of {dout, weight, dinput} have same element type}}
  %y = nn.linear_backward_input %d, %w in_out
    : (tensor<2x8x96xf32>, tensor<24x96xf32>) -> tensor<2x8x24xbf16>
  return
}

// -----

func.func @linear_backward_input_c2(%d: tensor<2x8x96xf32>, %w: tensor<24x96xf32>) {
  // expected-error @+1 {{'nn.linear_backward_input' op needs 'weight' to be [N, K] with N = 96 from 'dout', but got 24 in 'tensor<24x96xf32>'}}
  %y = nn.linear_backward_input %d, %w out_in
    : (tensor<2x8x96xf32>, tensor<24x96xf32>) -> tensor<2x8x24xf32>
  return
}

// -----

func.func @linear_backward_weight_c1_sum(%x: tensor<2x8x24xbf16>, %d: tensor<2x8x96xbf16>) {
  // expected-error @+1 {{'nn.linear_backward_weight' op result #0 must be non-empty statically shaped tensor of 32-bit float values, but got 'tensor<24x96xbf16>'}}
  %y = nn.linear_backward_weight %x, %d in_out
    : (tensor<2x8x24xbf16>, tensor<2x8x96xbf16>) -> tensor<24x96xbf16>
  return
}

// -----

func.func @linear_backward_weight_c1(%x: tensor<2x8x24xf32>, %d: tensor<2x8x96xbf16>) {
  // expected-error @+1 {{'nn.linear_backward_weight' op failed to verify that all of {input, dout} have same element type}}
  %y = nn.linear_backward_weight %x, %d in_out
    : (tensor<2x8x24xf32>, tensor<2x8x96xbf16>) -> tensor<24x96xf32>
  return
}

// -----

func.func @linear_backward_weight_c2(%x: tensor<2x8x24xf32>, %d: tensor<3x8x96xf32>) {
  // expected-error @+1 {{'nn.linear_backward_weight' op needs 'dout' to be [..., N] with ... = [2, 8] from 'input', but got [3, 8] in 'tensor<3x8x96xf32>'}}
  %y = nn.linear_backward_weight %x, %d in_out
    : (tensor<2x8x24xf32>, tensor<3x8x96xf32>) -> tensor<24x96xf32>
  return
}

// -----

// Pointwise ops.

func.func @add_types(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @+1 {{'nn.add' op requires the same type for all operands and results}}
  %z = "nn.add"(%x, %y) : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @cast_shape(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.cast' op requires the same shape for all operands and results}}
  %y = nn.cast %x : (tensor<4xf32>) -> tensor<2x2xbf16>
  return
}

// -----

func.func @dropout_c1(%x: tensor<4xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.dropout' op failed to verify that all of {input, out} have same type}}
  %y = nn.dropout %x, %rng rate 0.1 stream 0 : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xbf16>
  return
}

// -----

func.func @dropout_c2_one(%x: tensor<4xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.dropout' op needs a rate in [0, 1), but got 1.000000e+00 : f32}}
  %y = nn.dropout %x, %rng rate 1.0 stream 0 : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @dropout_c2_negative(%x: tensor<4xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.dropout' op needs a rate in [0, 1), but got -1.000000e-01 : f32}}
  %y = nn.dropout %x, %rng rate -0.1 stream 0 : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @dropout_c2_nan(%x: tensor<4xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.dropout' op needs a rate in [0, 1), but got 0x7FC00000 : f32}}
  %y = nn.dropout %x, %rng rate 0x7FC00000 stream 0
    : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @dropout_c3_negative(%x: tensor<4xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.dropout' op needs a stream in [0, 2^32), but got -1}}
  %y = nn.dropout %x, %rng rate 0.1 stream -1 : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  return
}

// -----

func.func @dropout_c3_large(%x: tensor<4xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.dropout' op needs a stream in [0, 2^32), but got 4294967296}}
  %y = nn.dropout %x, %rng rate 0.1 stream 4294967296
    : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  return
}

// -----

// 2^17 * 2^17 = 2^34 elements are one row too few here.

func.func @dropout_c4(%x: tensor<131073x131072xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.dropout' op needs at most 17179869184 elements to draw for, but got 17180000256}}
  %y = nn.dropout %x, %rng rate 0.1 stream 0
    : (tensor<131073x131072xf32>, tensor<4xi32>) -> tensor<131073x131072xf32>
  return
}

// -----

// A count beyond 2^60 is taken for 2^60.

func.func @dropout_c4_overflow(%x: tensor<4294967296x4294967296xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.dropout' op needs at most 17179869184 elements to draw for, but got 1152921504606846976}}
  %y = nn.dropout %x, %rng rate 0.1 stream 0
    : (tensor<4294967296x4294967296xf32>, tensor<4xi32>) -> tensor<4294967296x4294967296xf32>
  return
}

// -----

func.func @squared_relu_backward(%x: tensor<4xf32>, %dy: tensor<4xbf16>) {
  // expected-error @+1 {{'nn.squared_relu_backward' op requires the same type for all operands and results}}
  %dx = "nn.squared_relu_backward"(%x, %dy) : (tensor<4xf32>, tensor<4xbf16>) -> tensor<4xf32>
  return
}

// -----

func.func @squared_relu_of_ids(%x: tensor<4xi32>) {
  // expected-error @+1 {{'nn.squared_relu' op operand #0 must be non-empty statically shaped tensor of 32-bit float or bfloat16 type values, but got 'tensor<4xi32>'}}
  %y = nn.squared_relu %x : tensor<4xi32>
  return
}
