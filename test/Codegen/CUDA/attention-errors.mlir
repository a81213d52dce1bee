// RUN: reprise-opt %s -reprise-emit-cuda -split-input-file -verify-diagnostics

func.func private @wide(%q: tensor<1x8x264xf32>, %k: tensor<1x8x264xf32>, %v: tensor<1x8x264xf32>, %r: tensor<4xi32>)
    -> (tensor<1x8x264xf32>, tensor<1x1x8xf32>) attributes {rt.kernel} {
  // expected-error @below {{'rt.attention' op needs a head width of at most 256, whose tiles fit into 101376 bytes of shared memory, but got 264}}
  %o, %l = rt.attention %q, %k, %v, %r heads 1 scale 0.125 rate 0.0 stream 0
    : (tensor<1x8x264xf32>, tensor<1x8x264xf32>, tensor<1x8x264xf32>, tensor<4xi32>) -> (tensor<1x8x264xf32>, tensor<1x1x8xf32>)
  return %o, %l : tensor<1x8x264xf32>, tensor<1x1x8xf32>
}

// -----

func.func private @flat(%q: tensor<1x8x8xf32>, %k: tensor<1x8x8xf32>, %v: tensor<1x8x8xf32>, %r: tensor<4xi32>)
    -> (tensor<1x8x8xf32>, tensor<1x1x8xf32>) attributes {rt.kernel} {
  // expected-error @below {{'rt.attention' op needs a scale above 0, but got 0.000000e+00}}
  %o, %l = rt.attention %q, %k, %v, %r heads 1 scale 0.0 rate 0.0 stream 0
    : (tensor<1x8x8xf32>, tensor<1x8x8xf32>, tensor<1x8x8xf32>, tensor<4xi32>) -> (tensor<1x8x8xf32>, tensor<1x1x8xf32>)
  return %o, %l : tensor<1x8x8xf32>, tensor<1x1x8xf32>
}
