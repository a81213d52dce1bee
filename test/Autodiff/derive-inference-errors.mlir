// RUN: reprise-opt %s -split-input-file -verify-diagnostics --reprise-derive-inference

// expected-error@below {{needs a function @forward to derive from}}
module {
}

// -----

// expected-error@below {{needs one block to derive from, but got 0}}
func.func private @forward() -> tensor<f32>

// -----

// expected-error@below {{needs one block to derive from, but got 2}}
func.func @forward(%loss: tensor<f32>) -> tensor<f32> {
  llvm.br ^next
^next:
  return %loss : tensor<f32>
}

// -----

func.func @forward(%loss: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  // expected-error@below {{'func.return' op needs to be the return of the loss, and behind it of measures alone}}
  return %loss, %loss : tensor<f32>, tensor<f32>
}

// -----

func.func @forward(%loss: tensor<f32>, %c: i1) -> tensor<f32> {
  // expected-error@below {{'scf.if' op needs to be written out without regions}}
  %x = scf.if %c -> tensor<f32> {
    scf.yield %loss : tensor<f32>
  } else {
    scf.yield %loss : tensor<f32>
  }
  return %x : tensor<f32>
}

// -----

// expected-note@below {{this has it}}
func.func @sample() {
  return
}
// expected-error@below {{needs the name @sample to be free for what it makes}}
func.func @forward(%loss: tensor<f32>) -> tensor<f32> {
  return %loss : tensor<f32>
}
