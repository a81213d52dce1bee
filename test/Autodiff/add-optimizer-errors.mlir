// RUN: reprise-opt %s -split-input-file -verify-diagnostics --reprise-add-optimizer

// expected-error@below {{needs a function @step to optimize}}
module {}

// -----

// expected-error@below {{needs one block to append to, but got 0}}
func.func private @step()

// -----

func.func @step() {
  // expected-error@below {{'llvm.unreachable' op needs to be the return of the gradients}}
  llvm.unreachable
}

// -----

// expected-error@below {{needs the hyper-parameters, 'nn.train', on the module}}
module {
  func.func @step() {
    return
  }
}

// -----

// expected-error@below {{needs a number 'adam_beta2' in the module's 'nn.train'}}
// expected-error@below {{needs a number 'clip_grad' in the module's 'nn.train'}}
module attributes {nn.train = {adam_beta1 = 0.5, adam_eps = 0.0625, weight_decay = 0.125}} {
  func.func @step(%w: tensor<f32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> (tensor<f32> {nn.gradient = "w"}) {
    return %w : tensor<f32>
  }
}

// -----

module attributes {nn.train = {adam_beta1 = 0.5, adam_beta2 = 0.25, adam_eps = 0.0625, weight_decay = 0.125, clip_grad = 0.0}} {
  // expected-error@below {{needs a gradient of the parameter 'v' among the results of @step}}
  func.func @step(%w: tensor<f32> {nn.parameter = #nn.parameter<name = "w", init = zeros>},
                  %v: tensor<f32> {nn.parameter = #nn.parameter<name = "v", init = zeros>}) -> (tensor<f32> {nn.gradient = "w"}) {
    return %w : tensor<f32>
  }
}

// -----

module attributes {nn.train = {adam_beta1 = 0.5, adam_beta2 = 0.25, adam_eps = 0.0625, weight_decay = 0.125, clip_grad = 0.0}} {
  // expected-error@below {{needs a trainable parameter, but all are frozen}}
  func.func @step(%w: tensor<f32> {nn.parameter = #nn.parameter<name = "w", init = zeros, frozen = true>}) {
    return
  }
}

// -----

module attributes {nn.train = {adam_beta1 = 0.5, adam_beta2 = 0.25, adam_eps = 0.0625, weight_decay = 0.125, clip_grad = 0.0}} {
  func.func @step(%w: tensor<f32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> (tensor<f32> {nn.gradient = "w"}) {
    nn.update
    // expected-error@below {{needs to be appended once, but is there before}}
    %p, %m, %v = nn.adamw %w, %w, %w, %w, %w, %w, %w, %w beta1 0.5 beta2 0.5 eps 1.0 weight_decay 0.5 : tensor<f32>, tensor<f32>
    return %w : tensor<f32>
  }
}

// -----

// The norm is that of all chunks.

module attributes {nn.train = {adam_beta1 = 0.5, adam_beta2 = 0.25, adam_eps = 0.0625, weight_decay = 0.125, clip_grad = 0.0}} {
  // expected-error@below {{needs the step of a whole model, since its norm is that of all gradients, but got that of a chunk}}
  func.func @step(%w: tensor<f32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}, %x: tensor<f32> {nn.input = "border"})
      -> (tensor<f32> {nn.gradient = "w"}) {
    return %x : tensor<f32>
  }
}

// -----

// A term is measured, and so is the number that it is a term of.

module attributes {nn.train = {adam_beta1 = 9.0e-01, adam_beta2 = 9.5e-01, adam_eps = 1.0e-08, weight_decay = 0.0, clip_grad = 1.0}} {
  // expected-error@below {{needs result #1 to be a measure, as a term of 'z', and that to be one, a tensor<f32>}}
  func.func @step(%a: tensor<4xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros>}, %g: tensor<4xf32> {nn.gradient = "a"})
      -> (tensor<f32> {nn.output = "loss"}, tensor<f32> {nn.term = "z"}, tensor<4xf32> {nn.gradient = "a"}) attributes {nn.micro_batches = 1} {
    %z = nn.mean %a : (tensor<4xf32>) -> tensor<f32>
    %q = nn.add %g, %a : tensor<4xf32>
    return %z, %z, %q : tensor<f32>, tensor<f32>, tensor<4xf32>
  }
}

// -----

module attributes {nn.train = {adam_beta1 = 9.0e-01, adam_beta2 = 9.5e-01, adam_eps = 1.0e-08, weight_decay = 0.0, clip_grad = 1.0}} {
  // expected-error@below {{needs result #1 to be a measure, as a term of 'z', and that to be one, a tensor<f32>}}
  func.func @step(%a: tensor<4xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros>}, %g: tensor<4xf32> {nn.gradient = "a"})
      -> (tensor<f32> {nn.output = "loss"}, tensor<f32> {nn.measure = "z.1", nn.term = "z"}, tensor<4xf32> {nn.gradient = "a"}) attributes {nn.micro_batches = 1} {
    %z = nn.mean %a : (tensor<4xf32>) -> tensor<f32>
    %q = nn.add %g, %a : tensor<4xf32>
    return %z, %z, %q : tensor<f32>, tensor<f32>, tensor<4xf32>
  }
}
