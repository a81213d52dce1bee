// What cannot be cut, each with its numbers.
// RUN: reprise-opt %s -split-input-file -verify-diagnostics -reprise-cut-chunks='stages=2'

// expected-error @+1 {{needs a function @forward to cut}}
module {}

// -----

// What tells rows apart crosses no border.
#scope0 = #nn.scope<layer = 0, module = "moe", value = "ids">
#scope1 = #nn.scope<layer = 1, module = "mlp", value = "x">
func.func @forward(%ids: tensor<1x4xi32> {nn.input = "tokens"}, %t: tensor<3x4xf32> {nn.parameter = #nn.parameter<name = "t", init = zeros>}) -> tensor<f32> {
  %x = nn.embedding %ids, %t : (tensor<1x4xi32>, tensor<3x4xf32>) -> tensor<1x4x4xf32>
  // expected-error @+1 {{'nn.choose_experts' op needs f32 or bf16 to cross from chunk 0 to the next, but got 'tensor<1x4x1xi32>'}}
  %i = nn.choose_experts %x {nn.scope = #scope0} : (tensor<1x4x4xf32>) -> tensor<1x4x1xi32>
  %w = nn.expert_weights %x, %i {nn.scope = #scope1} : (tensor<1x4x4xf32>, tensor<1x4x1xi32>) -> tensor<1x4x1xf32>
  %loss = nn.mean %w : (tensor<1x4x1xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The second chunk reads nothing of the first.
#scope0 = #nn.scope<layer = 0, module = "mlp", value = "x">
#scope1 = #nn.scope<layer = 1, module = "mlp", value = "x">
// expected-error @+1 {{needs a value to cross from chunk 0 to the next, but got none}}
func.func @forward(%ids: tensor<1x4xi32> {nn.input = "tokens"}, %t: tensor<3x4xf32> {nn.parameter = #nn.parameter<name = "t", init = zeros>}) -> tensor<f32> {
  %x = nn.embedding %ids, %t : (tensor<1x4xi32>, tensor<3x4xf32>) -> tensor<1x4x4xf32>
  %y = nn.add %x, %x {nn.scope = #scope0} : tensor<1x4x4xf32>
  %u = nn.embedding %ids, %t {nn.scope = #scope1} : (tensor<1x4xi32>, tensor<3x4xf32>) -> tensor<1x4x4xf32>
  %loss = nn.mean %u : (tensor<1x4x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Nothing is trained.
#scope0 = #nn.scope<layer = 0, module = "mlp", value = "x">
#scope1 = #nn.scope<layer = 1, module = "mlp", value = "x">
// expected-error @+1 {{needs a parameter to train, but all are frozen}}
func.func @forward(%ids: tensor<1x4xi32> {nn.input = "tokens"}, %t: tensor<3x4xf32> {nn.parameter = #nn.parameter<name = "t", init = zeros, frozen = true>}, %a: tensor<1x4x4xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros, frozen = true>},
                   %b: tensor<1x4x4xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros, frozen = true>}) -> tensor<f32> {
  %x = nn.embedding %ids, %t : (tensor<1x4xi32>, tensor<3x4xf32>) -> tensor<1x4x4xf32>
  %y = nn.add %x, %a {nn.scope = #scope0} : tensor<1x4x4xf32>
  %z = nn.add %y, %b {nn.scope = #scope1} : tensor<1x4x4xf32>
  %loss = nn.mean %z : (tensor<1x4x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Layers the other way round.
#scope0 = #nn.scope<layer = 0, module = "mlp", value = "x">
#scope1 = #nn.scope<layer = 1, module = "mlp", value = "x">
func.func @forward(%ids: tensor<1x4xi32> {nn.input = "tokens"}, %t: tensor<3x4xf32> {nn.parameter = #nn.parameter<name = "t", init = zeros>}, %a: tensor<1x4x4xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros>}) -> tensor<f32> {
  %x = nn.embedding %ids, %t : (tensor<1x4xi32>, tensor<3x4xf32>) -> tensor<1x4x4xf32>
  %y = nn.add %x, %a {nn.scope = #scope1} : tensor<1x4x4xf32>
  // expected-error @+1 {{'nn.add' op needs values of chunks up to its own, 0, but reads one of chunk 1}}
  %z = nn.add %y, %a {nn.scope = #scope0} : tensor<1x4x4xf32>
  %loss = nn.mean %z : (tensor<1x4x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

#scope0 = #nn.scope<layer = 0, module = "mlp", value = "x">
// expected-error @+1 {{needs a layer for each of the 2 chunks of 2 pipeline stages, but got 1 layers}}
func.func @forward(%ids: tensor<1x4xi32> {nn.input = "tokens"}, %t: tensor<3x4xf32> {nn.parameter = #nn.parameter<name = "t", init = zeros>}, %a: tensor<1x4x4xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros>}) -> tensor<f32> {
  %x = nn.embedding %ids, %t : (tensor<1x4xi32>, tensor<3x4xf32>) -> tensor<1x4x4xf32>
  %y = nn.add %x, %a {nn.scope = #scope0} : tensor<1x4x4xf32>
  %loss = nn.mean %y : (tensor<1x4x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @forward(%x: tensor<f32> {nn.input = "loss_sum"}) -> tensor<f32> {
  return %x : tensor<f32>
}
// expected-error @+1 {{'func.func' op needs to be made of chunks later, but is beside the @forward that is to be cut}}
func.func private @evaluate()
