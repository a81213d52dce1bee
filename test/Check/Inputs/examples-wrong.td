let description = [{
  ```mlir
  func.func @shapes(%x: tensor<2x4xf32>, %w: tensor<3x4xf32>) -> tensor<2x4xf32> {
    %y = nn.linear %x, %w in_out : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
  ```

  ```mlir
  %y = nn.linear %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  ```
}];
