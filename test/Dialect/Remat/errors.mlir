// RUN: reprise-opt %s -verify-diagnostics -split-input-file

func.func @fence_type(%x: tensor<4xf32>) {
  // expected-error @+1 {{'remat.fence' op failed to verify that all of {value, out} have same type}}
  %y = "remat.fence"(%x) : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @decision_kind(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.gelu' op needs #remat.save, #remat.recompute or #remat.share for 'remat.decision', but got "save"}}
  %y = nn.gelu %x tanh {remat.decision = "save"} : tensor<4xf32>
  return
}

// -----

func.func @decision_segment(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.gelu' op needs a segment of at least 0 to recompute in, but got -1}}
  %y = nn.gelu %x tanh {remat.decision = #remat.recompute<segment = -1, label = "mlp">} : tensor<4xf32>
  return
}

// -----

func.func @decision_results(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.gelu' op needs rising numbers of its 1 results to recompute, but got 1 after 0}}
  %y = nn.gelu %x tanh {remat.decision = #remat.recompute<segment = 0, label = "mlp", results = [0, 1]>} : tensor<4xf32>
  return
}

// -----

func.func @decision_first_result(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.gelu' op needs rising numbers of its 1 results to recompute, but got -1 first}}
  %y = nn.gelu %x tanh {remat.decision = #remat.recompute<segment = 0, label = "mlp", results = [-1]>} : tensor<4xf32>
  return
}

// -----

func.func @share_segment(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.gelu' op needs a segment of at least 0 to gather in, but got -1}}
  %y = nn.gelu %x tanh {remat.decision = #remat.share<axis = "tp", segment = -1>} : tensor<4xf32>
  return
}

// -----

func.func @share_results(%x: tensor<2x4xf32>, %g: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{'nn.layer_norm' op needs one result to share, but has 3}}
  %y, %mean, %rstd = nn.layer_norm %x, %g, %b eps 1.0e-5 {remat.decision = #remat.share<axis = "tp", segment = 0>}
    : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

// expected-error @+1 {{'func.func' op needs #remat.share with a segment of at least 0 as 'remat.decision' for what remat says of argument 0, but got 'remat.decision' with value #remat.save}}
func.func @argument(%x: tensor<4xf32> {remat.decision = #remat.save}) {
  return
}

// -----

func.func @share_part(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.gelu' op needs a unit for 'remat.share', but got 1 : i64}}
  %y = nn.gelu %x tanh {remat.share = 1} : tensor<4xf32>
  return
}

// -----

func.func @replay_kind(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.gelu' op needs the number of a segment, an i64 of at least 0, for 'remat.replay', but got unit}}
  %y = nn.gelu %x tanh {remat.replay} : tensor<4xf32>
  return
}

// -----

func.func @replay_segment(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.gelu' op needs the number of a segment, an i64 of at least 0, for 'remat.replay', but got -2 : i64}}
  %y = nn.gelu %x tanh {remat.replay = -2} : tensor<4xf32>
  return
}

// -----

func.func @unknown(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.gelu' op has no use for the attribute 'remat.decison' with value #remat.save}}
  %y = nn.gelu %x tanh {remat.decison = #remat.save} : tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{'func.func' op needs #remat.chunks for 'remat.chunks', but got 2}}
func.func private @chunks_kind() attributes {remat.chunks = 2 : i64}

// -----

// expected-error @+1 {{'func.func' op needs at least 1 pipeline stage, but got 0}}
func.func private @chunks_stages() attributes {remat.chunks = #remat.chunks<stages = 0, layers = [1]>}

// -----

// expected-error @+1 {{'func.func' op needs as many chunks on each of 2 pipeline stages, but got 3 in all}}
func.func private @chunks_count() attributes {remat.chunks = #remat.chunks<stages = 2, layers = [1, 1, 1]>}

// -----

// expected-error @+1 {{'func.func' op needs chunks of at least 0 layers, but got -1}}
func.func private @chunks_layers() attributes {remat.chunks = #remat.chunks<stages = 2, layers = [1, -1]>}

// -----

func.func @id_kind(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.gelu' op needs the number of an op, an i64 of at least 0, for 'remat.id', but got -1 : i64}}
  %y = nn.gelu %x tanh {remat.id = -1} : tensor<4xf32>
  return
}

// -----

func.func @ids_kind(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.gelu' op needs numbers of ops, i64 of at least 0, for 'remat.ids', but got array<i64: 2, -1>}}
  %y = nn.gelu %x tanh {remat.ids = array<i64: 2, -1>} : tensor<4xf32>
  return
}

// -----

func.func @ids_none(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.gelu' op needs numbers of ops, i64 of at least 0, for 'remat.ids', but got array<i64>}}
  %y = nn.gelu %x tanh {remat.ids = array<i64>} : tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{needs the granularity "none", "selective", "full" or "plan", but got "some"}}
module attributes {remat.request = #remat.request<granularity = "some">} {}

// -----

// expected-error @+1 {{needs the method "uniform" or "block" with the granularity "full" alone, but got "" with "full"}}
module attributes {remat.request = #remat.request<granularity = "full">} {}

// -----

// expected-error @+1 {{needs the method "uniform" or "block" with the granularity "full" alone, but got "block" with "none"}}
module attributes {remat.request = #remat.request<granularity = "none", method = "block">} {}

// -----

// expected-error @+1 {{needs at least 0 layers, with the granularity "full" alone, but got -1 with "full"}}
module attributes {remat.request = #remat.request<granularity = "full", method = "block", layers = -1>} {}

// -----

// expected-error @+1 {{needs strings as modules, with the granularity "selective" alone, but got [2] with "selective"}}
module attributes {remat.request = #remat.request<granularity = "selective", modules = [2]>} {}

// -----

// expected-error @+1 {{needs a file with the granularity "plan" alone, but got "" with "plan"}}
module attributes {remat.request = #remat.request<granularity = "plan">} {}

// -----

// expected-error @+1 {{'func.func' op needs #remat.request on a module for 'remat.request', but got}}
func.func private @request() attributes {remat.request = #remat.request<granularity = "none">}

// -----

// expected-error @+1 {{needs as many chunks on each of 2 pipeline stages, but got 1 in all}}
module attributes {remat.request = #remat.request<granularity = "none", chunks = <stages = 2, layers = [1]>>} {}
