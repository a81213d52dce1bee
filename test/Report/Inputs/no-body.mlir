func.func private @step(tensor<8xf32>) -> tensor<8xf32>
