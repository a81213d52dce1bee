// RUN: reprise-opt %s -verify-diagnostics -split-input-file

// Every constraint, by its number in the op's description.

// nn.cross_entropy.

func.func @cross_entropy_c1(%l: tensor<2x8x307xf32>, %t: tensor<2x8xi32>, %f: tensor<2x8xf32>) {
  // expected-error @+1 {{'nn.cross_entropy' op failed to verify that all of {losses, lse} have same type}}
  %y:2 = nn.cross_entropy %l, %t
    : (tensor<2x8x307xf32>, tensor<2x8xi32>) -> (tensor<2x8xf32>, tensor<16xf32>)
  return
}

// -----

func.func @cross_entropy_c2(%l: tensor<2x8x307xf32>, %t: tensor<2x9xi32>) {
  // expected-error @+1 {{'nn.cross_entropy' op needs 'targets' to be [B, T] with T = 8 from 'logits', but got 9 in 'tensor<2x9xi32>'}}
  %y:2 = nn.cross_entropy %l, %t
    : (tensor<2x8x307xf32>, tensor<2x9xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @cross_entropy_c2_losses(%l: tensor<2x8x307xf32>, %t: tensor<2x8xi32>, %f: tensor<2x8xf32>) {
  // expected-error @+1 {{'nn.cross_entropy' op needs 'losses' to be [B, T], but got 'tensor<16xf32>'}}
  %y:2 = nn.cross_entropy %l, %t
    : (tensor<2x8x307xf32>, tensor<2x8xi32>) -> (tensor<16xf32>, tensor<16xf32>)
  return
}

// -----

func.func @cross_entropy_backward_c1(%l: tensor<2x8x307xf32>, %t: tensor<2x8xi32>, %f: tensor<2x8xf32>, %d: tensor<16xf32>) {
  // expected-error @+1 {{'nn.cross_entropy_backward' op failed to verify that all of {lse, dlosses} have same type}}
  %y = nn.cross_entropy_backward %l, %t, %f, %d
    : (tensor<2x8x307xf32>, tensor<2x8xi32>, tensor<2x8xf32>, tensor<16xf32>) -> tensor<2x8x307xf32>
  return
}

// -----

func.func @cross_entropy_backward_c2(%l: tensor<2x8x307xf32>, %t: tensor<2x8xi32>, %f: tensor<3x8xf32>) {
  // expected-error @+1 {{'nn.cross_entropy_backward' op needs 'lse' to be [B, T] with B = 2 from 'logits', but got 3 in 'tensor<3x8xf32>'}}
  %y = nn.cross_entropy_backward %l, %t, %f, %f
    : (tensor<2x8x307xf32>, tensor<2x8xi32>, tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<2x8x307xf32>
  return
}

// -----

func.func @mean_scalar(%x: tensor<2x8xf32>) {
  // expected-error @+1 {{'nn.mean' op result #0 must be 0D tensor of 32-bit float values, but got 'tensor<1xf32>'}}
  %y = nn.mean %x : (tensor<2x8xf32>) -> tensor<1xf32>
  return
}

// -----

// The optimizer.

func.func @global_norm_c1() {
  // expected-error @+1 {{'nn.global_norm' op needs at least one gradient, but got none}}
  %y = nn.global_norm : () -> tensor<f32>
  return
}

// -----

func.func @clip_scale_c1(%n: tensor<f32>) {
  // expected-error @+1 {{'nn.clip_scale' op needs a largest norm above 0, but got 0.000000e+00 : f32}}
  %y = nn.clip_scale %n max 0.0 : tensor<f32>
  return
}

// -----

func.func @adamw_c1(%p: tensor<4xf32>, %s: tensor<f32>, %g: tensor<5xf32>) {
  // expected-error @+1 {{'nn.adamw' op failed to verify that all of {parameter, gradient, moment1, moment2, new_parameter, new_moment1, new_moment2} have same type}}
  %y:3 = "nn.adamw"(%p, %g, %p, %p, %s, %s, %s, %s) {beta1 = 0.5 : f64, beta2 = 0.5 : f64, eps = 1.0 : f64, weight_decay = 0.0 : f64}
    : (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @adamw_c2(%p: tensor<4xf32>, %s: tensor<f32>) {
  // expected-error @+1 {{'nn.adamw' op needs 'beta1' and 'beta2' in [0, 1), but got 1.000000e+00 : f64}}
  %y:3 = nn.adamw %p, %p, %p, %p, %s, %s, %s, %s beta1 0.5 beta2 1.0 eps 1.0 weight_decay 0.0
    : tensor<4xf32>, tensor<f32>
  return
}

// -----

func.func @adamw_c3_eps(%p: tensor<4xf32>, %s: tensor<f32>) {
  // expected-error @+1 {{'nn.adamw' op needs a finite 'eps' above 0, but got -1.000000e+00 : f64}}
  %y:3 = nn.adamw %p, %p, %p, %p, %s, %s, %s, %s beta1 0.5 beta2 0.5 eps -1.0 weight_decay 0.0
    : tensor<4xf32>, tensor<f32>
  return
}

// -----

func.func @adamw_c3_decay(%p: tensor<4xf32>, %s: tensor<f32>) {
  // expected-error @+1 {{'nn.adamw' op needs a finite weight decay of at least 0, but got 0x7FF0000000000000 : f64}}
  %y:3 = nn.adamw %p, %p, %p, %p, %s, %s, %s, %s beta1 0.5 beta2 0.5 eps 1.0 weight_decay 0x7FF0000000000000
    : tensor<4xf32>, tensor<f32>
  return
}

// -----

func.func @linear_cross_entropy_c1(%x: tensor<2x300x8xf32>, %w: tensor<7x9xf32>, %t: tensor<2x300xi32>) {
  // expected-error @+1 {{'nn.linear_cross_entropy' op needs}}
  %l = nn.linear_cross_entropy %x, %w, %t out_in rows 256 : (tensor<2x300x8xf32>, tensor<7x9xf32>, tensor<2x300xi32>) -> tensor<2x300xf32>
  return
}

// -----

func.func @linear_cross_entropy_c2(%x: tensor<2x300x8xf32>, %w: tensor<7x8xf32>, %t: tensor<2x300xi32>) {
  // expected-error @+1 {{needs rows that are a multiple of 256, and at least that, but got 300}}
  %l = nn.linear_cross_entropy %x, %w, %t out_in rows 300 : (tensor<2x300x8xf32>, tensor<7x8xf32>, tensor<2x300xi32>) -> tensor<2x300xf32>
  return
}

// -----

func.func @linear_cross_entropy_c2_zero(%x: tensor<2x300x8xf32>, %w: tensor<7x8xf32>, %t: tensor<2x300xi32>) {
  // expected-error @+1 {{needs rows that are a multiple of 256, and at least that, but got 0}}
  %l = nn.linear_cross_entropy %x, %w, %t out_in rows 0 : (tensor<2x300x8xf32>, tensor<7x8xf32>, tensor<2x300xi32>) -> tensor<2x300xf32>
  return
}

// -----

func.func @linear_cross_entropy_c3_without(%x: tensor<2x300x8xf32>, %w: tensor<7x8xf32>, %t: tensor<2x300xi32>) {
  // expected-error @+1 {{needs the gradient of the losses, 'by', with 'dinput' or 'sum' and only there, but got none with 1 of them}}
  %l, %dx = nn.linear_cross_entropy %x, %w, %t dinput out_in rows 256
    : (tensor<2x300x8xf32>, tensor<7x8xf32>, tensor<2x300xi32>) -> (tensor<2x300xf32>, tensor<2x300x8xf32>)
  return
}

// -----

func.func @linear_cross_entropy_c3_nothing(%x: tensor<2x300x8xf32>, %w: tensor<7x8xf32>, %t: tensor<2x300xi32>) {
  // expected-error @+1 {{needs the gradient of the losses, 'by', with 'dinput' or 'sum' and only there, but got one with 0 of them}}
  %l = nn.linear_cross_entropy %x, %w, %t by 0.5 out_in rows 256
    : (tensor<2x300x8xf32>, tensor<7x8xf32>, tensor<2x300xi32>) -> tensor<2x300xf32>
  return
}

// -----

func.func @linear_cross_entropy_c3_sum(%x: tensor<2x300x8xf32>, %w: tensor<7x8xf32>, %t: tensor<2x300xi32>, %s: tensor<8x7xf32>) {
  // expected-error @+1 {{needs a sum of the shape of the weight, 'tensor<7x8xf32>', but got 'tensor<8x7xf32>'}}
  %l, %dw = nn.linear_cross_entropy %x, %w, %t sum(%s) by 0.5 out_in rows 256
    : (tensor<2x300x8xf32>, tensor<7x8xf32>, tensor<2x300xi32>, tensor<8x7xf32>) -> (tensor<2x300xf32>, tensor<7x8xf32>)
  return
}

// -----

func.func @linear_cross_entropy_c3_count(%x: tensor<2x300x8xf32>, %w: tensor<7x8xf32>, %t: tensor<2x300xi32>) {
  // expected-error @+1 {{needs 1 gradients, those asked for, but got 0}}
  %l = nn.linear_cross_entropy %x, %w, %t by 0.5 dinput out_in rows 256
    : (tensor<2x300x8xf32>, tensor<7x8xf32>, tensor<2x300xi32>) -> tensor<2x300xf32>
  return
}

// -----

func.func @linear_cross_entropy_c3_type(%x: tensor<2x300x8xf32>, %w: tensor<7x8xf32>, %t: tensor<2x300xi32>) {
  // expected-error @+1 {{needs a gradient of type 'tensor<2x300x8xf32>', but got 'tensor<600x8xf32>'}}
  %l, %dx = nn.linear_cross_entropy %x, %w, %t by 0.5 dinput out_in rows 256
    : (tensor<2x300x8xf32>, tensor<7x8xf32>, tensor<2x300xi32>) -> (tensor<2x300xf32>, tensor<600x8xf32>)
  return
}

// -----

func.func @adamw_c1_working(%p: tensor<24x96xf32>, %s: tensor<f32>, %w: tensor<24x96xbf16>) {
  // expected-error @+1 {{'nn.adamw' op needs a working copy and a new one, or neither, but got no new one}}
  %y:3 = "nn.adamw"(%p, %p, %p, %p, %s, %s, %s, %s, %w) <{beta1 = 0.5, beta2 = 0.5, eps = 1.0, weight_decay = 0.0}>
    : (tensor<24x96xf32>, tensor<24x96xf32>, tensor<24x96xf32>, tensor<24x96xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<24x96xbf16>)
      -> (tensor<24x96xf32>, tensor<24x96xf32>, tensor<24x96xf32>)
  return
}

// -----

func.func @adamw_c1_shape(%p: tensor<24x96xf32>, %s: tensor<f32>, %w: tensor<96x24xbf16>) {
  // expected-error @+1 {{'nn.adamw' op needs working copies of the shape of the parameter, 'tensor<24x96xf32>', but got 'tensor<96x24xbf16>'}}
  %y:4 = nn.adamw %p, %p, %p, %p, %s, %s, %s, %s working(%w)
    beta1 0.5 beta2 0.5 eps 1.0 weight_decay 0.0 : tensor<24x96xf32>, tensor<f32>, tensor<96x24xbf16> to tensor<24x96xbf16>
  return
}

// -----

func.func @cross_entropy_c3(%x: tensor<2x8x307xf32>, %t: tensor<2x8xi32>) {
  // expected-error @+1 {{'nn.cross_entropy' op needs 'classes' from 1 to 307, but got 308}}
  %l:2 = nn.cross_entropy %x, %t classes 308 : (tensor<2x8x307xf32>, tensor<2x8xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @cross_entropy_backward_c3(%x: tensor<2x8x307xf32>, %t: tensor<2x8xi32>, %l: tensor<2x8xf32>) {
  // expected-error @+1 {{'nn.cross_entropy_backward' op needs 'classes' from 1 to 307, but got 0}}
  %d = nn.cross_entropy_backward %x, %t, %l, %l classes 0 : (tensor<2x8x307xf32>, tensor<2x8xi32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8x307xf32>
  return
}

// -----

func.func @linear_cross_entropy_c4(%x: tensor<2x300x8xf32>, %w: tensor<7x8xf32>, %t: tensor<2x300xi32>) {
  // expected-error @+1 {{'nn.linear_cross_entropy' op needs 'classes' from 1 to 7, but got 8}}
  %l = nn.linear_cross_entropy %x, %w, %t out_in rows 256 classes 8 : (tensor<2x300x8xf32>, tensor<7x8xf32>, tensor<2x300xi32>) -> tensor<2x300xf32>
  return
}
