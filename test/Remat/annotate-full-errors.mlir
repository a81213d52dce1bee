// Every refused setting of `full`, with what it got.

// RUN: not reprise-opt %S/Inputs/chain-5.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{num-layers=1}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=NO-METHOD
// NO-METHOD: error: full recompute needs the method uniform or block, but got none

// RUN: not reprise-opt %S/Inputs/chain-5.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=half num-layers=1}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=METHOD
// METHOD: error: full recompute needs the method uniform or block, but got 'half'

// RUN: not reprise-opt %S/Inputs/chain-5.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=uniform}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=NO-LAYERS
// NO-LAYERS: error: full recompute needs a number of layers, those of a segment, but got none

// RUN: not reprise-opt %S/Inputs/chain-5.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=uniform num-layers=0}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=ZERO
// ZERO: error: full recompute needs a number of layers of at least 1, but got 0

// RUN: not reprise-opt %S/Inputs/chain-5.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-annotate-full{method=block num-layers=-1}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: full recompute needs a number of layers of at least 1, but got -1

// A model without layers has no segments.

// RUN: reprise-opt %s -verify-diagnostics --pass-pipeline='builtin.module(func.func(reprise-remat-annotate-full{method=block num-layers=1}))'

// expected-warning @+1 {{full recompute buys nothing: no op of the forward pass is in a layer}}
func.func @no_layers(%x: tensor<4xf32>, %d: tensor<4xf32>) -> tensor<4xf32> {
  %u = nn.gelu %x tanh : tensor<4xf32>
  nn.backward
  %du = nn.gelu_backward %u, %d tanh : tensor<4xf32>
  return %du : tensor<4xf32>
}

// What has no backward phase saves nothing: left alone.
func.func @forward_only(%x: tensor<4xf32>) -> tensor<4xf32> {
  %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "u">} : tensor<4xf32>
  return %u : tensor<4xf32>
}
