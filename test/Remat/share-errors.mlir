// Decisions to share that cannot be applied, and what the verifier refuses behind.

// RUN: reprise-opt %s -split-input-file -verify-diagnostics --reprise-remat-verify

// A step that is accepted.
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
func.func @accepted(%x: tensor<4xf32>, %d: tensor<4xf32>) -> tensor<4xf32> {
  %k = nn.scale %x by 2.0 {remat.decision = #remat.share<axis = "tp", segment = 1, reason = "by hand">} : tensor<4xf32>
  %part = nn.slice %k over "tp" dim 0 {remat.share} : (tensor<4xf32>) -> tensor<2xf32>
  nn.backward
  %dy = nn.scale %d by 2.0 : tensor<4xf32>
  %f = remat.fence %part after %dy : tensor<2xf32>, tensor<4xf32>
  %all = nn.all_gather %f to I over "tp" dim 0 {remat.replay = 1 : i64} : (tensor<2xf32>) -> tensor<4xf32>
  %du = nn.gelu_backward %all, %dy tanh : tensor<4xf32>
  return %du : tensor<4xf32>
}
}

// -----

module attributes {nn.mesh = #nn.mesh<dp = 2>} {
func.func @one_rank(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{needs several ranks along 'tp' to be shared, but there is 1}}
  %k = nn.scale %x by 2.0 {remat.decision = #remat.share<axis = "tp", segment = 1>} : tensor<4xf32>
  nn.backward
  return %x : tensor<4xf32>
}
}

// -----

module attributes {nn.mesh = #nn.mesh<tp = 4>} {
func.func @indivisible(%x: tensor<1x6xf32>) -> tensor<1x6xf32> {
  // expected-error @+1 {{needs a dimension that the 4 ranks along tp divide, for each to keep a part of nn.scale, but got 'tensor<1x6xf32>'}}
  %k = nn.scale %x by 2.0 {remat.decision = #remat.share<axis = "tp", segment = 1>} : tensor<1x6xf32>
  nn.backward
  return %x : tensor<1x6xf32>
}
}

// -----

// Ranks that do not have the same value would gather another one.

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
func.func @part(%x: tensor<8xf32>) -> tensor<8xf32> {
  %own = nn.slice %x over "tp" dim 0 : (tensor<8xf32>) -> tensor<4xf32>
  // expected-error @+1 {{needs to be the same on all ranks along 'tp' to be shared, but each has its own}}
  %k = nn.scale %own by 2.0 {remat.decision = #remat.share<axis = "tp", segment = 1>} : tensor<4xf32>
  nn.backward
  return %x : tensor<8xf32>
}
}

// -----

// A sum over all ranks makes the same of parts, one over some of them does not.

module attributes {nn.mesh = #nn.mesh<tp = 4, kv = 2 step 2, kv_copies = 2 step 1>} {
func.func @sums(%x: tensor<8xf32> {nn.layout = #nn.layout<kv = S(0)>}) -> tensor<8xf32> {
  %all = nn.all_reduce %x over "tp" : tensor<8xf32>
  %same = nn.scale %all by 2.0 {remat.decision = #remat.share<axis = "tp", segment = 1>} : tensor<8xf32>
  %some = nn.all_reduce %x over "kv_copies" : tensor<8xf32>
  // expected-error @+1 {{needs to be the same on all ranks along 'tp' to be shared, but each has its own}}
  %k = nn.scale %some by 2.0 {remat.decision = #remat.share<axis = "tp", segment = 1>} : tensor<8xf32>
  nn.backward
  return %x : tensor<8xf32>
}
}

// -----

// Where ranks share positions, so does what a chunk of a pipeline gets.

module attributes {nn.mesh = #nn.mesh<tp = 2>, nn.sequence_parallel} {
// expected-error @+1 {{needs to be the same on all ranks along 'tp' to be shared, but each has its own}}
func.func @border(%x: tensor<8xf32> {nn.input = "border", remat.decision = #remat.share<axis = "tp", segment = 1>}) -> tensor<8xf32> {
  nn.backward
  return %x : tensor<8xf32>
}
}

// -----

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
func.func @whole_is_read(%x: tensor<4xf32>, %d: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{it is computed, and decided on, here}}
  %k = nn.scale %x by 2.0 {remat.decision = #remat.share<axis = "tp", segment = 1>} : tensor<4xf32>
  nn.backward
  // expected-error @+1 {{'nn.gelu_backward' op needs a kept or replayed value in the backward phase, but got nn.scale, which ranks keep parts of}}
  %du = nn.gelu_backward %k, %d tanh : tensor<4xf32>
  return %du : tensor<4xf32>
}
}

// -----

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
func.func @part_of_kept(%x: tensor<4xf32>) -> tensor<4xf32> {
  %k = nn.scale %x by 2.0 : tensor<4xf32>
  // expected-error @+1 {{'nn.slice' op needs to take a part of a value that is decided to be shared, along its axis, to have 'remat.share'}}
  %part = nn.slice %k over "tp" dim 0 {remat.share} : (tensor<4xf32>) -> tensor<2xf32>
  nn.backward
  return %x : tensor<4xf32>
}
}

// -----

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
func.func @segment(%x: tensor<4xf32>, %d: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{the original is here}}
  %k = nn.scale %x by 2.0 {remat.decision = #remat.share<axis = "tp", segment = 1>} : tensor<4xf32>
  %part = nn.slice %k over "tp" dim 0 {remat.share} : (tensor<4xf32>) -> tensor<2xf32>
  nn.backward
  %f = remat.fence %part : tensor<2xf32>
  // expected-error @+1 {{'nn.all_gather' op replays segment 2, but its original is in segment 1}}
  %all = nn.all_gather %f to I over "tp" dim 0 {remat.replay = 2 : i64} : (tensor<2xf32>) -> tensor<4xf32>
  %du = nn.gelu_backward %all, %d tanh : tensor<4xf32>
  return %du : tensor<4xf32>
}
}

// -----

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
func.func @twice(%x: tensor<4xf32>, %d: tensor<4xf32>) -> tensor<4xf32> {
  %k = nn.scale %x by 2.0 {remat.decision = #remat.share<axis = "tp", segment = 1>} : tensor<4xf32>
  %part = nn.slice %k over "tp" dim 0 {remat.share} : (tensor<4xf32>) -> tensor<2xf32>
  nn.backward
  %f = remat.fence %part : tensor<2xf32>
  // expected-note @+1 {{the first one is here}}
  %all = nn.all_gather %f to I over "tp" dim 0 {remat.replay = 1 : i64} : (tensor<2xf32>) -> tensor<4xf32>
  // expected-error @+1 {{'nn.all_gather' op needs to be the only one of its parts}}
  %again = nn.all_gather %f to I over "tp" dim 0 {remat.replay = 1 : i64} : (tensor<2xf32>) -> tensor<4xf32>
  %du = nn.gelu_backward %all, %again tanh : tensor<4xf32>
  return %du : tensor<4xf32>
}
}
