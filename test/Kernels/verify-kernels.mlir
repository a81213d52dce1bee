// RUN: reprise-opt %s -split-input-file -verify-diagnostics --reprise-verify-kernels
// RUN: reprise-opt %s -split-input-file -verify-diagnostics --pass-pipeline='builtin.module(reprise-verify-kernels{loops})'

func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{needs to be in a kernel by now, but is in the schedule @step}}
  %y = nn.add %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{needs to be in a kernel by now, but is in the schedule @step}}
  %y = remat.fence %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// expected-error @+1 {{needs 'rt.in_place' of argument #0 to be one of 1 results, but got 1}}
func.func private @kernel(%x: tensor<4xf32> {rt.in_place = 1 : i64}) -> tensor<4xf32> attributes {rt.kernel} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{needs 'rt.may_alias' of argument #0, a 'tensor<5xf32>', to be a result of that type, but #0 is 'tensor<4xf32>'}}
func.func private @kernel(%x: tensor<5xf32> {rt.may_alias = 0 : i64}, %y: tensor<4xf32>) -> tensor<4xf32> attributes {rt.kernel} {
  return %y : tensor<4xf32>
}

// -----

// expected-error @+1 {{needs one argument in place of result #0, but got #0 and #1}}
func.func private @kernel(%x: tensor<4xf32> {rt.in_place = 0 : i64}, %y: tensor<4xf32> {rt.in_place = 0 : i64}) -> tensor<4xf32> attributes {rt.kernel} {
  return %y : tensor<4xf32>
}
