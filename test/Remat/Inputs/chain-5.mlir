// Five layers x + gelu(gelu(x)) of 16 bytes a value, then a head.
func.func @forward(%p: tensor<4xf32> {nn.parameter = #nn.parameter<name = "p", init = zeros>}) -> tensor<f32>
    attributes {nn.micro_batches = 1 : i64} {
  %x0 = nn.scale %p by 2.0 {nn.scope = #nn.scope<module = "embedding", value = "x0">} : tensor<4xf32>
  %u0 = nn.gelu %x0 tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "u">} : tensor<4xf32>
  %g0 = nn.gelu %u0 tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "g">} : tensor<4xf32>
  %x1 = nn.add %x0, %g0 {nn.scope = #nn.scope<layer = 0, module = "residual", value = "x2">} : tensor<4xf32>
  %u1 = nn.gelu %x1 tanh {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "u">} : tensor<4xf32>
  %g1 = nn.gelu %u1 tanh {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "g">} : tensor<4xf32>
  %x2 = nn.add %x1, %g1 {nn.scope = #nn.scope<layer = 1, module = "residual", value = "x2">} : tensor<4xf32>
  %u2 = nn.gelu %x2 tanh {nn.scope = #nn.scope<layer = 2, module = "mlp", value = "u">} : tensor<4xf32>
  %g2 = nn.gelu %u2 tanh {nn.scope = #nn.scope<layer = 2, module = "mlp", value = "g">} : tensor<4xf32>
  %x3 = nn.add %x2, %g2 {nn.scope = #nn.scope<layer = 2, module = "residual", value = "x2">} : tensor<4xf32>
  %u3 = nn.gelu %x3 tanh {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "u">} : tensor<4xf32>
  %g3 = nn.gelu %u3 tanh {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "g">} : tensor<4xf32>
  %x4 = nn.add %x3, %g3 {nn.scope = #nn.scope<layer = 3, module = "residual", value = "x2">} : tensor<4xf32>
  %u4 = nn.gelu %x4 tanh {nn.scope = #nn.scope<layer = 4, module = "mlp", value = "u">} : tensor<4xf32>
  %g4 = nn.gelu %u4 tanh {nn.scope = #nn.scope<layer = 4, module = "mlp", value = "g">} : tensor<4xf32>
  %x5 = nn.add %x4, %g4 {nn.scope = #nn.scope<layer = 4, module = "residual", value = "x2">} : tensor<4xf32>
  %h = nn.gelu %x5 tanh {nn.scope = #nn.scope<module = "head", value = "logits">} : tensor<4xf32>
  %loss = nn.mean %h {nn.scope = #nn.scope<module = "loss", value = "loss">} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
