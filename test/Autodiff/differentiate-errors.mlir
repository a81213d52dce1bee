// RUN: reprise-opt %s -split-input-file -verify-diagnostics --reprise-differentiate

// expected-error@below {{needs a function @forward to differentiate}}
module {}

// -----

// expected-error@below {{needs one block to differentiate, but got 0}}
func.func private @forward() -> tensor<f32>

// -----

// expected-error@below {{needs one block to differentiate, but got 2}}
func.func @forward(%loss: tensor<f32>) -> tensor<f32> {
  llvm.br ^next
^next:
  return %loss : tensor<f32>
}

// -----

// expected-error@below {{needs the name @step to be free for its result}}
func.func @forward(%loss: tensor<f32>) -> tensor<f32> {
  return %loss : tensor<f32>
}
// expected-note@below {{this has it}}
func.func private @step()

// -----

func.func @forward(%loss: tensor<f32>) -> tensor<f32> {
  // expected-error@below {{'llvm.unreachable' op needs to be the return of the loss}}
  llvm.unreachable
}

// -----

func.func @forward(%loss: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error@below {{needs to return the loss alone, a tensor<f32>}}
  return %loss : tensor<2xf32>
}

// -----

func.func @forward(%loss: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  // expected-error@below {{needs to return the loss, a tensor<f32>, and behind it measures, but result #1 has no 'nn.measure'}}
  return %loss, %loss : tensor<f32>, tensor<f32>
}

// -----

// expected-error@below {{needs a name of its own for each parameter, but arguments #0 and #2 are both 'w'}}
func.func @forward(%w: tensor<f32> {nn.parameter = #nn.parameter<name = "w", init = ones>}, %x: tensor<f32>,
                   %v: tensor<f32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) -> tensor<f32> {
  %loss = nn.add %w, %v : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A parameter that the loss does not depend on would train to nothing.

// expected-error@below {{needs the loss to depend on the parameter 'v', but it does not; freeze it}}
func.func @forward(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>},
                   %v: tensor<4xf32> {nn.parameter = #nn.parameter<name = "v", init = ones>}) -> tensor<f32> {
  %dead = nn.add %w, %v : tensor<4xf32>
  %loss = nn.mean %w : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @forward(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) -> tensor<f32> {
  // expected-error@below {{needs a derivative, since the loss depends through it on a trainable parameter, but has none}}
  %norm = nn.global_norm %w : (tensor<4xf32>) -> tensor<f32>
  return %norm : tensor<f32>
}

// -----

// A derivative with respect to one result only.

func.func @forward(%x: tensor<1x4x8xf32> {nn.parameter = #nn.parameter<name = "x", init = ones>}, %rng: tensor<4xi32>) -> tensor<f32> {
  // expected-error@below {{has no derivative of its log-sum-exp}}
  %ctx, %lse = nn.attention %x, %x, %x, %rng heads 2 scale 5.0e-01 rate 0.0 stream 0
    : (tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<1x4x8xf32>, tensor<4xi32>) -> (tensor<1x4x8xf32>, tensor<1x2x4xf32>)
  %a = nn.mean %ctx : (tensor<1x4x8xf32>) -> tensor<f32>
  %b = nn.mean %lse : (tensor<1x2x4xf32>) -> tensor<f32>
  %loss = nn.add %a, %b : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// What a region reads is no operand of its op.

func.func @forward(%w: tensor<f32> {nn.parameter = #nn.parameter<name = "w", init = ones>}, %flag: i1) -> tensor<f32> {
  // expected-error@below {{'scf.if' op needs to be written out without regions, where uses of parameters would go unseen}}
  %loss = scf.if %flag -> tensor<f32> {
    scf.yield %w : tensor<f32>
  } else {
    %twice = nn.add %w, %w : tensor<f32>
    scf.yield %twice : tensor<f32>
  }
  return %loss : tensor<f32>
}

// -----

func.func @forward(%w: tensor<f32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) -> tensor<f32> {
  // expected-error@below {{needs to be in @step, but is in @forward}}
  nn.backward
  return %w : tensor<f32>
}

// -----

// A table of angles is not trained.

func.func @forward(%x: tensor<1x4x8xf32>, %angles: tensor<4x4xf32> {nn.parameter = #nn.parameter<name = "angles", init = ones>}) -> tensor<f32> {
  // expected-error@below {{has no derivative with respect to operand #1}}
  %y = nn.rope %x, %angles heads 2 half_split : (tensor<1x4x8xf32>, tensor<4x4xf32>) -> tensor<1x4x8xf32>
  %loss = nn.mean %y : (tensor<1x4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

func.func @forward(%x: tensor<4x8xf32>, %g: tensor<8xf32> {nn.parameter = #nn.parameter<name = "g", init = ones>}) -> tensor<f32> {
  // expected-error@below {{has no derivative of its rstd}}
  %y, %rstd = nn.rms_norm %x, %g eps 1.0 : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
  %loss = nn.mean %rstd : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// What a chunk gets it reads.

// expected-error@below {{needs what the chunk before passes on to be read, but it is not}}
func.func @forward(%w: tensor<f32> {nn.parameter = #nn.parameter<name = "w", init = ones>}, %x: tensor<2xf32> {nn.input = "border"}) -> tensor<f32> {
  return %w : tensor<f32>
}

// -----

// A split of which half is of no use has no derivative.
func.func @forward(%tokens: tensor<2x3xi32> {nn.input = "tokens"}, %targets: tensor<2x3xi32> {nn.input = "targets"},
                   %rng: tensor<4xi32> {nn.input = "rng"},
                   %x: tensor<2x3x7xf32> {nn.parameter = #nn.parameter<name = "x", init = zeros>}) -> tensor<f32> {
  // expected-error@below {{needs both results to be of use to have a derivative, but got one alone}}
  %l, %r = nn.split_columns %x : (tensor<2x3x7xf32>) -> (tensor<2x3x5xf32>, tensor<2x3x2xf32>)
  %losses, %lse = nn.cross_entropy %l, %targets : (tensor<2x3x5xf32>, tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %loss = nn.mean %losses : (tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
