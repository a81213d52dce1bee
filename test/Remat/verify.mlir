// What the verifier of applied recomputation refuses, after a step that it
// accepts.

// RUN: reprise-opt %s -split-input-file -verify-diagnostics --reprise-remat-verify

func.func @accepted(%x: tensor<4xf32>, %d: tensor<4xf32>) -> tensor<4xf32> {
  %k = nn.scale %x by 2.0 : tensor<4xf32>
  %u = nn.gelu %k tanh {remat.decision = #remat.recompute<segment = 0, label = "mlp">} : tensor<4xf32>
  nn.backward
  %dy = nn.scale %d by 2.0 : tensor<4xf32>
  %f = remat.fence %k after %dy : tensor<4xf32>, tensor<4xf32>
  %r = nn.gelu %f tanh {remat.replay = 0 : i64} : tensor<4xf32>
  %du = nn.gelu_backward %r, %dy tanh : tensor<4xf32>
  return %du : tensor<4xf32>
}

// -----

func.func @V1(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{the backward phase begins here}}
  nn.backward
  // expected-error @+1 {{'nn.gelu' op needs to be above nn.backward to have a decision on its results}}
  %u = nn.gelu %x tanh {remat.decision = #remat.save} : tensor<4xf32>
  return %u : tensor<4xf32>
}

// -----

func.func @V2(%x: tensor<4xf32>, %d: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{it is computed, and decided on, here}}
  %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "u">, remat.decision = #remat.recompute<segment = 1, label = "mlp">} : tensor<4xf32>
  nn.backward
  // expected-error @+1 {{'nn.gelu_backward' op needs a kept or replayed value in the backward phase, but got layer1.mlp.u, which is dropped}}
  %du = nn.gelu_backward %u, %d tanh : tensor<4xf32>
  return %du : tensor<4xf32>
}

// -----

// A fence is no way around it.

func.func @V2_fence(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{it is computed, and decided on, here}}
  %u = nn.gelu %x tanh {remat.decision = #remat.recompute<segment = 1, label = "mlp">} : tensor<4xf32>
  nn.backward
  // expected-error @+1 {{'remat.fence' op needs a kept or replayed value in the backward phase, but got nn.gelu, which is dropped}}
  %f = remat.fence %u : tensor<4xf32>
  return %f : tensor<4xf32>
}

// -----

func.func @V3_above(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'nn.gelu' op needs to be below nn.backward to be a replay}}
  %u = nn.gelu %x tanh {remat.replay = 0 : i64} : tensor<4xf32>
  nn.backward
  return %u : tensor<4xf32>
}

// -----

func.func @V3_update(%x: tensor<4xf32>) -> tensor<4xf32> {
  %u = nn.gelu %x tanh {remat.decision = #remat.recompute<segment = 0, label = "mlp">} : tensor<4xf32>
  nn.backward
  nn.update
  %f = remat.fence %x : tensor<4xf32>
  // expected-error @+1 {{'nn.gelu' op needs to be above nn.update to be a replay}}
  %r = nn.gelu %f tanh {remat.replay = 0 : i64} : tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func @V4(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{it is computed here}}
  %k = nn.scale %x by 2.0 : tensor<4xf32>
  %u = nn.gelu %k tanh {remat.decision = #remat.recompute<segment = 0, label = "mlp">} : tensor<4xf32>
  nn.backward
  // expected-error @+1 {{'nn.gelu' op needs a replayed value, a fence or an argument as operand 0, but got a result of 'nn.scale'}}
  %r = nn.gelu %k tanh {remat.replay = 0 : i64} : tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

// Another stream would be another mask.

func.func @V5_attribute(%x: tensor<4xf32>, %rng: tensor<4xi32>) -> tensor<4xf32> {
  // expected-note @+1 {{the original is here}}
  %u = nn.dropout %x, %rng rate 5.0e-01 stream 7 {remat.decision = #remat.recompute<segment = 0, label = "mlp">} : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  nn.backward
  %f = remat.fence %x : tensor<4xf32>
  // expected-error @+1 {{'nn.dropout' op needs the attribute 'stream' of its original, 7 : i64, but got 8 : i64}}
  %r = nn.dropout %f, %rng rate 5.0e-01 stream 8 {remat.replay = 0 : i64} : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func @V5_operand(%x: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{the original is here}}
  %u = nn.gelu %x tanh {remat.decision = #remat.recompute<segment = 0, label = "mlp">} : tensor<4xf32>
  nn.backward
  %f = remat.fence %z : tensor<4xf32>
  // expected-error @+1 {{'nn.gelu' op needs the operands of its original, again or behind a fence, but operand 0 is another}}
  %r = nn.gelu %f tanh {remat.replay = 0 : i64} : tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func @V5_nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
  nn.backward
  %f = remat.fence %x : tensor<4xf32>
  // expected-error @+1 {{'nn.gelu' op needs an original in the forward phase to be a replay of, with scope layer1.mlp.u, but there is none}}
  %r = nn.gelu %f tanh {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "u">, remat.replay = 0 : i64} : tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func @V6_segment(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{the original is here}}
  %u = nn.gelu %x tanh {remat.decision = #remat.recompute<segment = 0, label = "mlp">} : tensor<4xf32>
  nn.backward
  %f = remat.fence %x : tensor<4xf32>
  // expected-error @+1 {{'nn.gelu' op replays segment 1, but its original is in segment 0}}
  %r = nn.gelu %f tanh {remat.replay = 1 : i64} : tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func @V6_kept(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{the original is here}}
  %u = nn.gelu %x tanh : tensor<4xf32>
  nn.backward
  %f = remat.fence %x : tensor<4xf32>
  // expected-error @+1 {{'nn.gelu' op replays segment 1, but its original is kept}}
  %r = nn.gelu %f tanh {remat.replay = 1 : i64} : tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func @V7(%x: tensor<4xf32>) -> tensor<4xf32> {
  %u = nn.gelu %x tanh {remat.decision = #remat.recompute<segment = 0, label = "mlp">} : tensor<4xf32>
  nn.backward
  %f = remat.fence %x : tensor<4xf32>
  // expected-note @+1 {{the first one is here}}
  %r = nn.gelu %f tanh {remat.replay = 0 : i64} : tensor<4xf32>
  // expected-error @+1 {{'nn.gelu' op needs to be the only replay of its original}}
  %s = nn.gelu %f tanh {remat.replay = 0 : i64} : tensor<4xf32>
  %t = nn.add %r, %s : tensor<4xf32>
  return %t : tensor<4xf32>
}

// -----

func.func @V8(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{this one is there before}}
  %k = nn.scale %x by 2.0 : tensor<4xf32>
  nn.backward
  // expected-error @+1 {{'remat.fence' op needs to wait for a value of the backward phase}}
  %f = remat.fence %x after %k : tensor<4xf32>, tensor<4xf32>
  return %f : tensor<4xf32>
}
