module attributes {remat.request = #remat.request<granularity = "full", method = "uniform">} {
  func.func @step(%x: tensor<8xf32>) -> tensor<8xf32> {
    %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "u">} : tensor<8xf32>
    nn.backward
    %d = nn.gelu_backward %u, %x tanh : tensor<8xf32>
    return %d : tensor<8xf32>
  }
}
