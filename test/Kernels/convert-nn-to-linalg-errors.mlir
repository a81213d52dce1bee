// RUN: reprise-opt %s -verify-diagnostics --pass-pipeline='builtin.module(func.func(convert-nn-to-linalg))'

func.func private @product(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {rt.kernel} {
  // expected-error @+1 {{needs a form as loops to be in the kernel @product, but has none}}
  %y = nn.linear %x, %x in_out : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
