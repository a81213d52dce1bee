// RUN: reprise-opt %s | FileCheck %s
// RUN: reprise-opt %s -mlir-print-op-generic | reprise-opt | FileCheck %s

// Every op as its description shows it, custom form and generic form to custom.

// CHECK-LABEL: func @embeddings(
//  CHECK-SAME:   %[[IDS:.*]]: tensor<2x8xi32>, %[[TABLE:.*]]: tensor<307x24xf32>, %[[POS:.*]]: tensor<16x24xf32>
func.func @embeddings(%ids: tensor<2x8xi32>, %table: tensor<307x24xf32>, %positions: tensor<16x24xf32>, %position: tensor<2xi32>) {
  // CHECK: %[[X:.*]] = nn.embedding %[[IDS]], %[[TABLE]] : (tensor<2x8xi32>, tensor<307x24xf32>) -> tensor<2x8x24xf32>
  %x = nn.embedding %ids, %table : (tensor<2x8xi32>, tensor<307x24xf32>) -> tensor<2x8x24xf32>
  // CHECK: nn.embedding_backward %[[IDS]], %[[X]] : (tensor<2x8xi32>, tensor<2x8x24xf32>) -> tensor<307x24xf32>
  %dtable = nn.embedding_backward %ids, %x : (tensor<2x8xi32>, tensor<2x8x24xf32>) -> tensor<307x24xf32>
  // CHECK: %[[Y:.*]] = nn.add_positions %[[X]], %[[POS]] : (tensor<2x8x24xf32>, tensor<16x24xf32>) -> tensor<2x8x24xf32>
  %y = nn.add_positions %x, %positions : (tensor<2x8x24xf32>, tensor<16x24xf32>) -> tensor<2x8x24xf32>
  // CHECK: nn.take_position %[[Y]], %{{.*}} : (tensor<2x8x24xf32>, tensor<2xi32>) -> tensor<2x24xf32>
  %at = nn.take_position %y, %position : (tensor<2x8x24xf32>, tensor<2xi32>) -> tensor<2x24xf32>
  // CHECK: %[[SOME:.*]] = nn.crop_positions %[[Y]] from 3 : (tensor<2x8x24xf32>) -> tensor<2x5x24xf32>
  %some = nn.crop_positions %y from 3 : (tensor<2x8x24xf32>) -> tensor<2x5x24xf32>
  // CHECK: nn.crop_positions %[[IDS]] from 1 : (tensor<2x8xi32>) -> tensor<2x7xi32>
  %further = nn.crop_positions %ids from 1 : (tensor<2x8xi32>) -> tensor<2x7xi32>
  // CHECK: nn.pad_positions %[[SOME]] from 3 : (tensor<2x5x24xf32>) -> tensor<2x8x24xf32>
  %all = nn.pad_positions %some from 3 : (tensor<2x5x24xf32>) -> tensor<2x8x24xf32>
  // CHECK: nn.positions_backward %[[Y]] : (tensor<2x8x24xf32>) -> tensor<16x24xf32>
  %dpositions = nn.positions_backward %y : (tensor<2x8x24xf32>) -> tensor<16x24xf32>
  return
}

// CHECK-LABEL: func @layer_norm(
//  CHECK-SAME:   %[[X:.*]]: tensor<2x8x24xf32>, %[[GAIN:.*]]: tensor<24xf32>, %[[BIAS:.*]]: tensor<24xf32>
func.func @layer_norm(%x: tensor<2x8x24xf32>, %gain: tensor<24xf32>, %bias: tensor<24xf32>) {
  // CHECK: %[[Y:.*]], %[[MEAN:.*]], %[[RSTD:.*]] = nn.layer_norm %[[X]], %[[GAIN]], %[[BIAS]] eps 9.99999974E-6
  // CHECK-SAME: : (tensor<2x8x24xf32>, tensor<24xf32>, tensor<24xf32>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
  %y, %mean, %rstd = nn.layer_norm %x, %gain, %bias eps 1.0e-05
    : (tensor<2x8x24xf32>, tensor<24xf32>, tensor<24xf32>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
  // CHECK: nn.layer_norm_backward %[[X]], %[[GAIN]], %[[MEAN]], %[[RSTD]], %[[Y]]
  // CHECK-SAME: : (tensor<2x8x24xf32>, tensor<24xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>
  %dx = nn.layer_norm_backward %x, %gain, %mean, %rstd, %y
    : (tensor<2x8x24xf32>, tensor<24xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>
  // CHECK: nn.layer_norm_backward_gain %[[X]], %[[MEAN]], %[[RSTD]], %[[Y]]
  // CHECK-SAME: : (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8x24xf32>) -> tensor<24xf32>
  %dgain = nn.layer_norm_backward_gain %x, %mean, %rstd, %y
    : (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8x24xf32>) -> tensor<24xf32>
  // CHECK: nn.sum_rows %[[Y]] : (tensor<2x8x24xf32>) -> tensor<24xf32>
  %dbias = nn.sum_rows %y : (tensor<2x8x24xf32>) -> tensor<24xf32>
  return
}

// Over whole rows, and over the heads in a row.

// CHECK-LABEL: func @rms_norm(
//  CHECK-SAME:   %[[X:.*]]: tensor<2x8x24xf32>, %[[GAIN:.*]]: tensor<24xf32>, %[[HEAD_GAIN:.*]]: tensor<8xf32>
func.func @rms_norm(%x: tensor<2x8x24xf32>, %gain: tensor<24xf32>, %head_gain: tensor<8xf32>) {
  // CHECK: %[[Y:.*]], %[[RSTD:.*]] = nn.rms_norm %[[X]], %[[GAIN]] eps 9.99999997E-7 : (tensor<2x8x24xf32>, tensor<24xf32>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>)
  %y, %rstd = nn.rms_norm %x, %gain eps 1.0e-06 : (tensor<2x8x24xf32>, tensor<24xf32>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>)
  // CHECK: nn.rms_norm_backward %[[X]], %[[GAIN]], %[[RSTD]], %[[Y]] : (tensor<2x8x24xf32>, tensor<24xf32>, tensor<2x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>
  %dx = nn.rms_norm_backward %x, %gain, %rstd, %y : (tensor<2x8x24xf32>, tensor<24xf32>, tensor<2x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>
  // CHECK: nn.rms_norm_backward_gain %[[X]], %[[RSTD]], %[[Y]] : (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8x24xf32>) -> tensor<24xf32>
  %dgain = nn.rms_norm_backward_gain %x, %rstd, %y : (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8x24xf32>) -> tensor<24xf32>
  // CHECK: %{{.*}}, %[[RSTDH:.*]] = nn.rms_norm %[[X]], %[[HEAD_GAIN]] eps 9.99999997E-7 : (tensor<2x8x24xf32>, tensor<8xf32>) -> (tensor<2x8x24xf32>, tensor<2x8x3xf32>)
  %yh, %rstdh = nn.rms_norm %x, %head_gain eps 1.0e-06 : (tensor<2x8x24xf32>, tensor<8xf32>) -> (tensor<2x8x24xf32>, tensor<2x8x3xf32>)
  // CHECK: nn.rms_norm_backward_gain %[[X]], %[[RSTDH]], %[[Y]] : (tensor<2x8x24xf32>, tensor<2x8x3xf32>, tensor<2x8x24xf32>) -> tensor<8xf32>
  %dgainh = nn.rms_norm_backward_gain %x, %rstdh, %y : (tensor<2x8x24xf32>, tensor<2x8x3xf32>, tensor<2x8x24xf32>) -> tensor<8xf32>
  return
}

// CHECK-LABEL: func @rope(
//  CHECK-SAME:   %[[Q:.*]]: tensor<2x8x32xf32>, %[[ROTARY:.*]]: tensor<8x8xf32>
func.func @rope(%q: tensor<2x8x32xf32>, %rotary: tensor<8x8xf32>) {
  // CHECK: %[[QR:.*]] = nn.rope %[[Q]], %[[ROTARY]] heads 4 half_split : (tensor<2x8x32xf32>, tensor<8x8xf32>) -> tensor<2x8x32xf32>
  %qr = nn.rope %q, %rotary heads 4 half_split : (tensor<2x8x32xf32>, tensor<8x8xf32>) -> tensor<2x8x32xf32>
  // CHECK: nn.rope_backward %[[QR]], %[[ROTARY]] heads 4 interleaved : (tensor<2x8x32xf32>, tensor<8x8xf32>) -> tensor<2x8x32xf32>
  %dq = nn.rope_backward %qr, %rotary heads 4 interleaved : (tensor<2x8x32xf32>, tensor<8x8xf32>) -> tensor<2x8x32xf32>
  return
}

// A bias is optional; the weight is stored either way.

// CHECK-LABEL: func @linear(
//  CHECK-SAME:   %[[X:.*]]: tensor<2x8x24xf32>, %[[W:.*]]: tensor<24x96xf32>, %[[B:.*]]: tensor<96xf32>, %[[V:.*]]: tensor<307x24xf32>
func.func @linear(%x: tensor<2x8x24xf32>, %w: tensor<24x96xf32>, %b: tensor<96xf32>, %v: tensor<307x24xf32>) {
  // CHECK: %[[Y:.*]] = nn.linear %[[X]], %[[W]], %[[B]] in_out : (tensor<2x8x24xf32>, tensor<24x96xf32>, tensor<96xf32>) -> tensor<2x8x96xf32>
  %y = nn.linear %x, %w, %b in_out : (tensor<2x8x24xf32>, tensor<24x96xf32>, tensor<96xf32>) -> tensor<2x8x96xf32>
  // CHECK: nn.linear_backward_input %[[Y]], %[[W]] in_out : (tensor<2x8x96xf32>, tensor<24x96xf32>) -> tensor<2x8x24xf32>
  %dx = nn.linear_backward_input %y, %w in_out : (tensor<2x8x96xf32>, tensor<24x96xf32>) -> tensor<2x8x24xf32>
  // CHECK: nn.linear_backward_weight %[[X]], %[[Y]] in_out : (tensor<2x8x24xf32>, tensor<2x8x96xf32>) -> tensor<24x96xf32>
  %dw = nn.linear_backward_weight %x, %y in_out : (tensor<2x8x24xf32>, tensor<2x8x96xf32>) -> tensor<24x96xf32>
  // CHECK: %[[L:.*]] = nn.linear %[[X]], %[[V]] out_in : (tensor<2x8x24xf32>, tensor<307x24xf32>) -> tensor<2x8x307xf32>
  %l = nn.linear %x, %v out_in : (tensor<2x8x24xf32>, tensor<307x24xf32>) -> tensor<2x8x307xf32>
  // CHECK: nn.linear_backward_input %[[L]], %[[V]] out_in : (tensor<2x8x307xf32>, tensor<307x24xf32>) -> tensor<2x8x24xf32>
  %dxl = nn.linear_backward_input %l, %v out_in : (tensor<2x8x307xf32>, tensor<307x24xf32>) -> tensor<2x8x24xf32>
  // CHECK: nn.linear_backward_weight %[[X]], %[[L]] out_in : (tensor<2x8x24xf32>, tensor<2x8x307xf32>) -> tensor<307x24xf32>
  %dv = nn.linear_backward_weight %x, %l out_in : (tensor<2x8x24xf32>, tensor<2x8x307xf32>) -> tensor<307x24xf32>
  return
}

// CHECK-LABEL: func @pointwise(
//  CHECK-SAME:   %[[U:.*]]: tensor<2x8x96xf32>, %[[RNG:.*]]: tensor<4xi32>
func.func @pointwise(%u: tensor<2x8x96xf32>, %rng: tensor<4xi32>) {
  // CHECK: %[[G:.*]] = nn.gelu %[[U]] tanh : tensor<2x8x96xf32>
  %g = nn.gelu %u tanh : tensor<2x8x96xf32>
  // CHECK: nn.gelu %[[U]] erf : tensor<2x8x96xf32>
  %e = nn.gelu %u erf : tensor<2x8x96xf32>
  // CHECK: nn.gelu_backward %[[U]], %[[G]] tanh : tensor<2x8x96xf32>
  %du = nn.gelu_backward %u, %g tanh : tensor<2x8x96xf32>
  // CHECK: nn.squared_relu %[[U]] : tensor<2x8x96xf32>
  %r = nn.squared_relu %u : tensor<2x8x96xf32>
  // CHECK: nn.squared_relu_backward %[[U]], %[[G]] : tensor<2x8x96xf32>
  %dr = nn.squared_relu_backward %u, %g : tensor<2x8x96xf32>
  // CHECK: nn.swiglu %[[U]], %[[G]] : tensor<2x8x96xf32>
  %sg = nn.swiglu %u, %g : tensor<2x8x96xf32>
  // CHECK: nn.swiglu_backward %[[U]], %[[G]], %[[U]] : tensor<2x8x96xf32>
  %dgate, %dup = nn.swiglu_backward %u, %g, %u : tensor<2x8x96xf32>
  // CHECK: nn.add %[[U]], %[[G]] : tensor<2x8x96xf32>
  %z = nn.add %u, %g : tensor<2x8x96xf32>
  // CHECK: nn.scale %[[U]] by 2.500000e-01 : tensor<2x8x96xf32>
  %s = nn.scale %u by 2.5e-01 : tensor<2x8x96xf32>
  // CHECK: nn.dropout %[[U]], %[[RNG]] rate 1.000000e-01 stream 3 : (tensor<2x8x96xf32>, tensor<4xi32>) -> tensor<2x8x96xf32>
  %d = nn.dropout %u, %rng rate 1.0e-01 stream 3 : (tensor<2x8x96xf32>, tensor<4xi32>) -> tensor<2x8x96xf32>
  // CHECK: %[[H:.*]] = nn.cast %[[U]] : (tensor<2x8x96xf32>) -> tensor<2x8x96xbf16>
  %h = nn.cast %u : (tensor<2x8x96xf32>) -> tensor<2x8x96xbf16>
  // CHECK: nn.cast %[[H]] : (tensor<2x8x96xbf16>) -> tensor<2x8x96xf32>
  %f = nn.cast %h : (tensor<2x8x96xbf16>) -> tensor<2x8x96xf32>
  return
}

// CHECK-LABEL: func @attention(
//  CHECK-SAME:   %[[Q:.*]]: tensor<2x8x24xf32>, %[[K:.*]]: tensor<2x8x24xf32>, %[[V:.*]]: tensor<2x8x24xf32>, %[[RNG:.*]]: tensor<4xi32>
func.func @attention(%q: tensor<2x8x24xf32>, %k: tensor<2x8x24xf32>, %v: tensor<2x8x24xf32>, %rng: tensor<4xi32>) {
  // CHECK: %[[CTX:.*]], %[[LSE:.*]] = nn.attention %[[Q]], %[[K]], %[[V]], %[[RNG]] heads 3 scale 0.353553385 rate 1.000000e-01 stream 2
  // CHECK-SAME: : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)
  %ctx, %lse = nn.attention %q, %k, %v, %rng heads 3 scale 3.5355338e-01 rate 1.0e-01 stream 2
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)
  // CHECK: nn.attention_backward %[[Q]], %[[K]], %[[V]], %[[CTX]], %[[LSE]], %[[CTX]], %[[RNG]] heads 3 scale 0.353553385 rate 1.000000e-01 stream 2
  // CHECK-SAME: -> (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>)
  %dq, %dk, %dv = nn.attention_backward %q, %k, %v, %ctx, %lse, %ctx, %rng heads 3 scale 3.5355338e-01 rate 1.0e-01 stream 2
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x3x8xf32>, tensor<2x8x24xf32>, tensor<4xi32>)
      -> (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>)
  return
}

// CHECK-LABEL: func @unfused_attention(
//  CHECK-SAME:   %[[Q:.*]]: tensor<2x8x24xf32>, %[[K:.*]]: tensor<2x8x24xf32>
func.func @unfused_attention(%q: tensor<2x8x24xf32>, %k: tensor<2x8x24xf32>) {
  // CHECK: %[[S:.*]] = nn.scores %[[Q]], %[[K]] heads 3 scale 2.500000e-01 : (tensor<2x8x24xf32>, tensor<2x8x24xf32>) -> tensor<2x3x8x8xf32>
  %s = nn.scores %q, %k heads 3 scale 2.5e-01 : (tensor<2x8x24xf32>, tensor<2x8x24xf32>) -> tensor<2x3x8x8xf32>
  // CHECK: %[[P:.*]] = nn.softmax %[[S]] : tensor<2x3x8x8xf32>
  %p = nn.softmax %s : tensor<2x3x8x8xf32>
  // CHECK: nn.softmax_backward %[[P]], %[[S]] : tensor<2x3x8x8xf32>
  %ds = nn.softmax_backward %p, %s : tensor<2x3x8x8xf32>
  // CHECK: nn.context %[[P]], %[[Q]] heads 3 scale 1.000000e+00 : (tensor<2x3x8x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>
  %ctx = nn.context %p, %q heads 3 scale 1.0 : (tensor<2x3x8x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>
  // CHECK: nn.context %[[P]], %[[Q]] heads 3 scale 1.000000e+00 transposed : (tensor<2x3x8x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>
  %dv = nn.context %p, %q heads 3 scale 1.0 transposed : (tensor<2x3x8x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>
  return
}

// Three heads of the query share one of keys and values.

// CHECK-LABEL: func @grouped_attention(
//  CHECK-SAME:   %[[Q:.*]]: tensor<2x8x24xf32>, %[[K:.*]]: tensor<2x8x8xf32>, %[[RNG:.*]]: tensor<4xi32>
func.func @grouped_attention(%q: tensor<2x8x24xf32>, %k: tensor<2x8x8xf32>, %rng: tensor<4xi32>) {
  // CHECK: %[[CTX:.*]], %[[LSE:.*]] = nn.attention %[[Q]], %[[K]], %[[K]], %[[RNG]] heads 6 kv_heads 2 scale 5.000000e-01 rate 0.000000e+00 stream 0
  // CHECK-SAME: : (tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x6x8xf32>)
  %ctx, %lse = nn.attention %q, %k, %k, %rng heads 6 kv_heads 2 scale 0.5 rate 0.0 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x6x8xf32>)
  // CHECK: nn.attention_backward %[[Q]], %[[K]], %[[K]], %[[CTX]], %[[LSE]], %[[CTX]], %[[RNG]] heads 6 kv_heads 2 scale 5.000000e-01 rate 0.000000e+00 stream 0
  // CHECK-SAME: -> (tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>)
  %dq, %dk, %dv = nn.attention_backward %q, %k, %k, %ctx, %lse, %ctx, %rng heads 6 kv_heads 2 scale 0.5 rate 0.0 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<2x8x24xf32>, tensor<2x6x8xf32>, tensor<2x8x24xf32>, tensor<4xi32>)
      -> (tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>)
  // CHECK: %[[S:.*]] = nn.scores %[[Q]], %[[K]] heads 6 kv_heads 2 scale 5.000000e-01 : (tensor<2x8x24xf32>, tensor<2x8x8xf32>) -> tensor<2x6x8x8xf32>
  %s = nn.scores %q, %k heads 6 kv_heads 2 scale 0.5 : (tensor<2x8x24xf32>, tensor<2x8x8xf32>) -> tensor<2x6x8x8xf32>
  // CHECK: nn.context %[[S]], %[[K]] heads 6 kv_heads 2 scale 1.000000e+00 : (tensor<2x6x8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x24xf32>
  %c = nn.context %s, %k heads 6 kv_heads 2 scale 1.0 : (tensor<2x6x8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x24xf32>
  // CHECK: nn.context %[[S]], %[[Q]] heads 6 kv_heads 2 scale 1.000000e+00 transposed : (tensor<2x6x8x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x8xf32>
  %t = nn.context %s, %q heads 6 kv_heads 2 scale 1.0 transposed : (tensor<2x6x8x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x8xf32>
  return
}

// CHECK-LABEL: func @loss(
//  CHECK-SAME:   %[[LOGITS:.*]]: tensor<2x8x307xf32>, %[[TARGETS:.*]]: tensor<2x8xi32>
func.func @loss(%logits: tensor<2x8x307xf32>, %targets: tensor<2x8xi32>) {
  // CHECK: %[[LOSSES:.*]], %[[LSE:.*]] = nn.cross_entropy %[[LOGITS]], %[[TARGETS]] : (tensor<2x8x307xf32>, tensor<2x8xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  %losses, %lse = nn.cross_entropy %logits, %targets : (tensor<2x8x307xf32>, tensor<2x8xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  // CHECK: %[[LOSS:.*]] = nn.mean %[[LOSSES]] : (tensor<2x8xf32>) -> tensor<f32>
  %loss = nn.mean %losses : (tensor<2x8xf32>) -> tensor<f32>
  // CHECK: nn.training_term %[[LOSS]], %[[LOSS]] by 1.000000e-01 : tensor<f32>
  %more = nn.training_term %loss, %loss by 1.0e-01 : tensor<f32>
  // CHECK: nn.backward
  nn.backward
  // CHECK: %[[ONE:.*]] = nn.constant 1.000000e+00 : tensor<f32>
  %one = nn.constant 1.0 : tensor<f32>
  // CHECK: %[[DLOSSES:.*]] = nn.broadcast %[[ONE]] by 6.250000e-02 : (tensor<f32>) -> tensor<2x8xf32>
  %dlosses = nn.broadcast %one by 6.25e-02 : (tensor<f32>) -> tensor<2x8xf32>
  // CHECK: nn.cross_entropy_backward %[[LOGITS]], %[[TARGETS]], %[[LSE]], %[[DLOSSES]]
  // CHECK-SAME: : (tensor<2x8x307xf32>, tensor<2x8xi32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8x307xf32>
  %dlogits = nn.cross_entropy_backward %logits, %targets, %lse, %dlosses
    : (tensor<2x8x307xf32>, tensor<2x8xi32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8x307xf32>
  // CHECK: nn.cross_entropy %[[LOGITS]], %[[TARGETS]] classes 300 :
  %l:2 = nn.cross_entropy %logits, %targets classes 300 : (tensor<2x8x307xf32>, tensor<2x8xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  // CHECK: nn.cross_entropy_backward {{.*}} classes 300 :
  %d = nn.cross_entropy_backward %logits, %targets, %l#1, %dlosses classes 300
    : (tensor<2x8x307xf32>, tensor<2x8xi32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8x307xf32>
  return
}

// CHECK-LABEL: func @optimizer(
//  CHECK-SAME:   %[[P:.*]]: tensor<24x96xf32>, %[[G:.*]]: tensor<24x96xf32>, %[[M:.*]]: tensor<24x96xf32>, %[[V:.*]]: tensor<24x96xf32>, %[[LR:.*]]: tensor<f32>
func.func @optimizer(%p: tensor<24x96xf32>, %g: tensor<24x96xf32>, %m: tensor<24x96xf32>, %v: tensor<24x96xf32>, %lr: tensor<f32>) {
  // CHECK: %[[ACC:.*]] = nn.accumulate %[[G]], %[[M]] : tensor<24x96xf32>
  %acc = nn.accumulate %g, %m : tensor<24x96xf32>
  // CHECK: nn.push %[[G]] to %[[M]] : tensor<24x96xf32>
  %pushed, %rest = nn.push %g to %m : tensor<24x96xf32>
  // CHECK: nn.push %[[G]], %[[ACC]] to %[[M]] : tensor<24x96xf32>
  %more, %zero = nn.push %g, %acc to %m : tensor<24x96xf32>
  // CHECK: nn.update
  nn.update
  // CHECK: %[[NORM:.*]] = nn.global_norm %[[ACC]], %[[G]] : (tensor<24x96xf32>, tensor<24x96xf32>) -> tensor<f32>
  %norm = nn.global_norm %acc, %g : (tensor<24x96xf32>, tensor<24x96xf32>) -> tensor<f32>
  // CHECK: %[[SCALE:.*]] = nn.clip_scale %[[NORM]] max 1.000000e+00 : tensor<f32>
  %scale = nn.clip_scale %norm max 1.0 : tensor<f32>
  // CHECK: nn.clip_scale %[[NORM]] with %[[LR]] : tensor<f32>, tensor<f32>
  %unclipped = nn.clip_scale %norm with %lr : tensor<f32>, tensor<f32>
  // CHECK: nn.adamw %[[P]], %[[ACC]], %[[M]], %[[V]], %[[SCALE]], %[[LR]], %[[LR]], %[[LR]] beta1 9.000000e-01 beta2 0.94999999999999996 eps 1.000000e-08 weight_decay 1.000000e-01 : tensor<24x96xf32>, tensor<f32>
  %p1, %m1, %v1 = nn.adamw %p, %acc, %m, %v, %scale, %lr, %lr, %lr
    beta1 9.0e-01 beta2 9.5e-01 eps 1.0e-08 weight_decay 1.0e-01 : tensor<24x96xf32>, tensor<f32>
  return
}

// The smallest shapes there are.

// CHECK-LABEL: func @ones(
func.func @ones(%ids: tensor<1x1xi32>, %x: tensor<1x1x1xf32>, %one: tensor<1xf32>, %w: tensor<1x1xf32>, %rng: tensor<4xi32>) {
  // CHECK: nn.linear {{.*}} in_out
  %y = nn.linear %x, %w, %one in_out : (tensor<1x1x1xf32>, tensor<1x1xf32>, tensor<1xf32>) -> tensor<1x1x1xf32>
  // CHECK: nn.layer_norm
  %n, %mean, %rstd = nn.layer_norm %x, %one, %one eps 1.0 : (tensor<1x1x1xf32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<1x1x1xf32>, tensor<1x1xf32>, tensor<1x1xf32>)
  // CHECK: nn.attention {{.*}} heads 1 scale 1.000000e+00 rate 0.000000e+00 stream 0
  %ctx, %lse = nn.attention %x, %x, %x, %rng heads 1 scale 1.0 rate 0.0 stream 0
    : (tensor<1x1x1xf32>, tensor<1x1x1xf32>, tensor<1x1x1xf32>, tensor<4xi32>) -> (tensor<1x1x1xf32>, tensor<1x1x1xf32>)
  return
}

// Rows may have one leading dimension or three.

// CHECK-LABEL: func @leading_dimensions(
func.func @leading_dimensions(%x: tensor<16x24xf32>, %z: tensor<2x3x4x24xf32>, %gain: tensor<24xf32>) {
  // CHECK: nn.sum_rows {{.*}} : (tensor<16x24xf32>) -> tensor<24xf32>
  %s = nn.sum_rows %x : (tensor<16x24xf32>) -> tensor<24xf32>
  // CHECK: nn.layer_norm {{.*}} -> (tensor<2x3x4x24xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>)
  %n, %mean, %rstd = nn.layer_norm %z, %gain, %s eps 1.0
    : (tensor<2x3x4x24xf32>, tensor<24xf32>, tensor<24xf32>) -> (tensor<2x3x4x24xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>)
  return
}

// CHECK-LABEL: func @linear_cross_entropy(
//  CHECK-SAME:   %[[X:.*]]: tensor<2x300x24xf32>, %[[W:.*]]: tensor<307x24xf32>, %[[T:.*]]: tensor<2x300xi32>, %[[GW:.*]]: tensor<307x24xf32>)
func.func @linear_cross_entropy(%x: tensor<2x300x24xf32>, %w: tensor<307x24xf32>, %targets: tensor<2x300xi32>, %gw: tensor<307x24xf32>) {
  // CHECK: nn.linear_cross_entropy %[[X]], %[[W]], %[[T]] out_in rows 256 : (tensor<2x300x24xf32>, tensor<307x24xf32>, tensor<2x300xi32>) -> tensor<2x300xf32>
  %losses = nn.linear_cross_entropy %x, %w, %targets out_in rows 256
    : (tensor<2x300x24xf32>, tensor<307x24xf32>, tensor<2x300xi32>) -> tensor<2x300xf32>
  // CHECK: nn.linear_cross_entropy %[[X]], %[[W]], %[[T]] sum(%[[GW]]) by 1.600000e-03 dinput out_in rows 256 :
  // CHECK-SAME: -> (tensor<2x300xf32>, tensor<2x300x24xf32>, tensor<307x24xf32>)
  %l, %dx, %dw = nn.linear_cross_entropy %x, %w, %targets sum(%gw) by 1.6e-03 dinput out_in rows 256
    : (tensor<2x300x24xf32>, tensor<307x24xf32>, tensor<2x300xi32>, tensor<307x24xf32>)
      -> (tensor<2x300xf32>, tensor<2x300x24xf32>, tensor<307x24xf32>)
  return
}
