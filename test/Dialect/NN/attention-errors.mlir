// RUN: reprise-opt %s -verify-diagnostics -split-input-file

// Every constraint, by its number in the op's description.

// nn.attention.

func.func @attention_c1(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.attention' op failed to verify that all of {query, key, value, out} have same element type}}
  %y:2 = nn.attention %q, %q, %q, %rng heads 3 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xbf16>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @attention_c1_value(%q: tensor<2x8x24xf32>, %k: tensor<2x8x8xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.attention' op needs heads of 'value' as wide as those of 'out', but got 1 in 24 columns and 3 in 24}}
  %y:2 = nn.attention %q, %k, %q, %rng heads 3 kv_heads 1 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @attention_c2_query(%q: tensor<2x3x8x8xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.attention' op needs 'query' to be [B, T, H*D], but got 'tensor<2x3x8x8xf32>'}}
  %y:2 = nn.attention %q, %q, %q, %rng heads 3 scale 1.0 rate 0.1 stream 0
    : (tensor<2x3x8x8xf32>, tensor<2x3x8x8xf32>, tensor<2x3x8x8xf32>, tensor<4xi32>) -> (tensor<2x3x8x8xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @attention_c2_key(%q: tensor<2x8x24xf32>, %k: tensor<2x8x12xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.attention' op needs 'key' to be [B, T, G*D] with G*D = 8 from 'kv_heads', but got 12 in 'tensor<2x8x12xf32>'}}
  %y:2 = nn.attention %q, %k, %k, %rng heads 6 kv_heads 2 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x12xf32>, tensor<2x8x12xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x6x8xf32>)
  return
}

// -----

// Without kv_heads there is a head of keys for each of the query.

func.func @attention_c2_all_heads(%q: tensor<2x8x24xf32>, %k: tensor<2x8x8xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.attention' op needs 'key' to be [B, T, G*D] with G*D = 24 from 'heads', but got 8 in 'tensor<2x8x8xf32>'}}
  %y:2 = nn.attention %q, %k, %k, %rng heads 6 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_c2_heads(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.attention' op needs 'lse' to be [B, H, T] with H = 4 from 'heads', but got 3 in 'tensor<2x3x8xf32>'}}
  %y:2 = nn.attention %q, %q, %q, %rng heads 4 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @attention_c3(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.attention' op needs a head count that divides the width, but got 5 heads and the width 24 of 'query'}}
  %y:2 = nn.attention %q, %q, %q, %rng heads 5 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @attention_c3_zero(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.attention' op needs a head count that divides the width, but got 0 heads and the width 24 of 'query'}}
  %y:2 = nn.attention %q, %q, %q, %rng heads 0 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @attention_c3_key_heads(%q: tensor<2x8x24xf32>, %k: tensor<2x8x16xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.attention' op needs a key head count that divides the head count, but got 4 key heads and 6 heads}}
  %y:2 = nn.attention %q, %k, %k, %rng heads 6 kv_heads 4 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_c3_no_key_heads(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.attention' op needs a key head count that divides the head count, but got 0 key heads and 6 heads}}
  %y:2 = nn.attention %q, %q, %q, %rng heads 6 kv_heads 0 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x6x8xf32>)
  return
}

// -----

func.func @attention_c4_rate(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.attention' op needs a rate in [0, 1), but got 1.500000e+00 : f32}}
  %y:2 = nn.attention %q, %q, %q, %rng heads 3 scale 1.0 rate 1.5 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)
  return
}

// -----

func.func @attention_c4_stream(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.attention' op needs a stream in [0, 2^32), but got -2}}
  %y:2 = nn.attention %q, %q, %q, %rng heads 3 scale 1.0 rate 0.1 stream -2
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)
  return
}

// -----

// B*H*T*T = 1 * 2 * 2^17 * 2^17 = 2^35.

func.func @attention_c4_elements(%q: tensor<1x131072x2xf32>, %rng: tensor<4xi32>) {
  // expected-error @+1 {{'nn.attention' op needs at most 17179869184 elements to draw for, but got 34359738368}}
  %y:2 = nn.attention %q, %q, %q, %rng heads 2 scale 1.0 rate 0.1 stream 0
    : (tensor<1x131072x2xf32>, tensor<1x131072x2xf32>, tensor<1x131072x2xf32>, tensor<4xi32>) -> (tensor<1x131072x2xf32>, tensor<1x2x131072xf32>)
  return
}

// -----

// nn.attention_backward.

func.func @attention_backward_c1(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>, %l: tensor<2x3x8xf32>) {
  // expected-error @+1 {{'nn.attention_backward' op failed to verify that all of {query, dquery} have same type}}
  %y:3 = nn.attention_backward %q, %q, %q, %q, %l, %q, %rng heads 3 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x3x8xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x12xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>)
  return
}

// -----

func.func @attention_backward_c1_key(%q: tensor<2x8x24xf32>, %k: tensor<2x8x8xf32>, %rng: tensor<4xi32>, %l: tensor<2x6x8xf32>) {
  // expected-error @+1 {{'nn.attention_backward' op failed to verify that all of {key, dkey} have same type}}
  %y:3 = nn.attention_backward %q, %k, %k, %q, %l, %q, %rng heads 6 kv_heads 2 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<2x8x24xf32>, tensor<2x6x8xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x8xf32>)
  return
}

// -----

func.func @attention_backward_c2(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>, %l: tensor<2x3x9xf32>) {
  // expected-error @+1 {{'nn.attention_backward' op needs 'lse' to be [B, H, T] with T = 8 from 'query', but got 9 in 'tensor<2x3x9xf32>'}}
  %y:3 = nn.attention_backward %q, %q, %q, %q, %l, %q, %rng heads 3 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x3x9xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>)
  return
}

// -----

func.func @attention_backward_c3(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>, %l: tensor<2x3x8xf32>) {
  // expected-error @+1 {{'nn.attention_backward' op needs a head count that divides the width, but got -3 heads and the width 24 of 'query'}}
  %y:3 = nn.attention_backward %q, %q, %q, %q, %l, %q, %rng heads -3 scale 1.0 rate 0.1 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x3x8xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>)
  return
}

// -----

func.func @attention_backward_c4(%q: tensor<2x8x24xf32>, %rng: tensor<4xi32>, %l: tensor<2x3x8xf32>) {
  // expected-error @+1 {{'nn.attention_backward' op needs a rate in [0, 1), but got 1.000000e+00 : f32}}
  %y:3 = nn.attention_backward %q, %q, %q, %q, %l, %q, %rng heads 3 scale 1.0 rate 1.0 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x3x8xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>)
  return
}

// -----

// nn.scores.

func.func @scores_c1(%l: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'nn.scores' op failed to verify that all of {lhs, rhs, out} have same element type}}
  %y = nn.scores %l, %l heads 3 scale 1.0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>) -> tensor<2x3x8x8xbf16>
  return
}

// -----

func.func @scores_c2(%l: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'nn.scores' op needs 'out' to be [B, H, T, T] with T = 8 from 'lhs', but got 9 in 'tensor<2x3x8x9xf32>'}}
  %y = nn.scores %l, %l heads 3 scale 1.0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>) -> tensor<2x3x8x9xf32>
  return
}

// -----

func.func @scores_c2_groups(%l: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'nn.scores' op needs 'rhs' to be [B, T, G*D] with G*D = 12 from 'kv_heads', but got 24 in 'tensor<2x8x24xf32>'}}
  %y = nn.scores %l, %l heads 6 kv_heads 3 scale 1.0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>) -> tensor<2x6x8x8xf32>
  return
}

// -----

func.func @scores_c3(%l: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'nn.scores' op needs a head count that divides the width, but got 7 heads and the width 24 of 'lhs'}}
  %y = nn.scores %l, %l heads 7 scale 1.0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>) -> tensor<2x3x8x8xf32>
  return
}

// -----

// nn.context.

func.func @context_c1(%p: tensor<2x3x8x8xf32>, %r: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'nn.context' op failed to verify that all of {probs, rows, out} have same element type}}
  %y = nn.context %p, %r heads 3 scale 1.0
    : (tensor<2x3x8x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xbf16>
  return
}

// -----

func.func @context_c2(%p: tensor<2x3x9x8xf32>, %r: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'nn.context' op needs 'probs' to be [B, H, T, T] with T = 8 from 'out', but got 9 in 'tensor<2x3x9x8xf32>'}}
  %y = nn.context %p, %r heads 3 scale 1.0
    : (tensor<2x3x9x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>
  return
}

// -----

// The wide rows are those of the output; transposed, those that are read.

func.func @context_c2_groups(%p: tensor<2x6x8x8xf32>, %r: tensor<2x8x8xf32>) {
  // expected-error @+1 {{'nn.context' op needs 'rows' to be [B, T, G*D] with G*D = 12 from 'kv_heads', but got 8 in 'tensor<2x8x8xf32>'}}
  %y = nn.context %p, %r heads 6 kv_heads 3 scale 1.0
    : (tensor<2x6x8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x24xf32>
  return
}

// -----

func.func @context_c2_transposed(%p: tensor<2x6x8x8xf32>, %r: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'nn.context' op needs 'out' to be [B, T, G*D] with G*D = 12 from 'kv_heads', but got 8 in 'tensor<2x8x8xf32>'}}
  %y = nn.context %p, %r heads 6 kv_heads 3 scale 1.0 transposed
    : (tensor<2x6x8x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x8xf32>
  return
}

// -----

func.func @context_c3(%p: tensor<2x3x8x8xf32>, %r: tensor<2x8x24xf32>) {
  // expected-error @+1 {{'nn.context' op needs a head count that divides the width, but got 48 heads and the width 24 of 'out'}}
  %y = nn.context %p, %r heads 48 scale 1.0
    : (tensor<2x3x8x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>
  return
}

// -----

// nn.softmax.

func.func @softmax_c1(%s: tensor<2x3x8x9xf32>) {
  // expected-error @+1 {{'nn.softmax' op needs 'input' to be [B, H, T, T] with T = 8 from 'input', but got 9 in 'tensor<2x3x8x9xf32>'}}
  %y = nn.softmax %s : tensor<2x3x8x9xf32>
  return
}

// -----

func.func @softmax_backward_c1(%p: tensor<3x8x8xf32>) {
  // expected-error @+1 {{'nn.softmax_backward' op needs 'probs' to be [B, H, T, T], but got 'tensor<3x8x8xf32>'}}
  %y = nn.softmax_backward %p, %p : tensor<3x8x8xf32>
  return
}
