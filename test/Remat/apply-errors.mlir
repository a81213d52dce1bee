// Decisions that cannot be applied.

// RUN: reprise-opt %s -split-input-file -verify-diagnostics --reprise-remat-apply

func.func @below(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{the backward phase begins here}}
  nn.backward
  // expected-error @+1 {{'nn.gelu' op needs to be above nn.backward to have a decision on its results}}
  %u = nn.gelu %x tanh {remat.decision = #remat.recompute<segment = 0, label = "mlp">} : tensor<4xf32>
  return %u : tensor<4xf32>
}

// -----

func.func @choice(%r: tensor<2x4xf32>) -> tensor<2x1xi32> {
  // expected-error @+1 {{'nn.choose_experts' op needs to be kept: what it decides is decided once, and a replay could decide otherwise}}
  %ids = nn.choose_experts %r {remat.decision = #remat.recompute<segment = 0, label = "mlp">} : (tensor<2x4xf32>) -> tensor<2x1xi32>
  nn.backward
  return %ids : tensor<2x1xi32>
}

// -----

func.func @side_effect(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'func.call' op needs to be free of side effects to be recomputed: they would happen twice}}
  %u = func.call @log(%x) {remat.decision = #remat.recompute<segment = 0, label = "mlp">} : (tensor<4xf32>) -> tensor<4xf32>
  nn.backward
  return %u : tensor<4xf32>
}
func.func private @log(tensor<4xf32>) -> tensor<4xf32>

// -----

func.func @no_result(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'nn.gelu' op needs a result to drop, but got a decision with 'results' empty}}
  %u = nn.gelu %x tanh {remat.decision = #remat.recompute<segment = 0, label = "mlp", results = []>} : tensor<4xf32>
  nn.backward
  return %u : tensor<4xf32>
}

// -----

// What is returned, or read once a step, is of the last micro-batch: there is
// no gradient to replay it behind.

func.func @returned(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{it is computed, and decided on, here}}
  %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 2, module = "mlp", value = "u">, remat.decision = #remat.recompute<segment = 2, label = "mlp">} : tensor<4xf32>
  nn.backward
  // expected-error @+1 {{needs to read values that are kept, after the last micro-batch's backward phase, but got layer2.mlp.u, which is dropped}}
  return %u : tensor<4xf32>
}

// -----

func.func @updated(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{it is computed, and decided on, here}}
  %u = nn.gelu %x tanh {remat.decision = #remat.recompute<segment = 2, label = "mlp">} : tensor<4xf32>
  nn.backward
  nn.update
  // expected-error @+1 {{but got nn.gelu, which is dropped}}
  %v = nn.gelu %u tanh : tensor<4xf32>
  return %v : tensor<4xf32>
}

// -----

func.func @two_backwards() {
  // expected-note @+1 {{the first one is here}}
  nn.backward
  // expected-error @+1 {{'nn.backward' op needs to be the only one of its function}}
  nn.backward
  return
}

// -----

func.func @regions(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  nn.backward
  // expected-error @+1 {{'scf.if' op needs to have no regions to be part of a step, but got 2}}
  %y = scf.if %c -> tensor<4xf32> {
    scf.yield %x : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
