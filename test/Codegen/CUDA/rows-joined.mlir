// RUN: reprise-opt %s --convert-nn-to-linalg --reprise-emit-cuda=chip=sm_90a | FileCheck %s

// 32 threads have a row of a norm, whatever is computed beside it: with another
// number the sums over the row would have another order. So a block has four
// rows.

// CHECK-LABEL: gpu.func @norm(
//  CHECK-SAME:   rt.block = array<i64: 128, 1, 1>, {{.*}}rt.grid = array<i64: 2, 1, 1>
func.func private @norm(%x: tensor<8x1536xf32>, %g: tensor<1536xf32>) -> (tensor<8x1536xf32>, tensor<8xf32>) attributes {rt.kernel} {
  %n, %rstd = nn.rms_norm %x, %g eps 1.0e-06 : (tensor<8x1536xf32>, tensor<1536xf32>) -> (tensor<8x1536xf32>, tensor<8xf32>)
  return %n, %rstd : tensor<8x1536xf32>, tensor<8xf32>
}

// CHECK-LABEL: gpu.func @add_norm_add(
//  CHECK-SAME:   rt.block = array<i64: 128, 1, 1>, {{.*}}rt.grid = array<i64: 2, 1, 1>
func.func private @add_norm_add(%x: tensor<8x1536xf32>, %y: tensor<8x1536xf32>, %z: tensor<8x1536xf32>, %g: tensor<1536xf32>)
    -> (tensor<8x1536xf32>, tensor<8x1536xf32>, tensor<8xf32>) attributes {rt.kernel} {
  %s = nn.add %x, %y : tensor<8x1536xf32>
  %n, %rstd = nn.rms_norm %s, %g eps 1.0e-06 : (tensor<8x1536xf32>, tensor<1536xf32>) -> (tensor<8x1536xf32>, tensor<8xf32>)
  %m = nn.add %n, %z : tensor<8x1536xf32>
  return %s, %m, %rstd : tensor<8x1536xf32>, tensor<8x1536xf32>, tensor<8xf32>
}

// What draws random words draws a block for four elements of a row.

// CHECK-LABEL: gpu.func @dropout_norm(
//       CHECK:   vector.from_elements
func.func private @dropout_norm(%x: tensor<8x1536xf32>, %rng: tensor<4xi32>, %g: tensor<1536xf32>)
    -> (tensor<8x1536xf32>, tensor<8xf32>) attributes {rt.kernel} {
  %d = nn.dropout %x, %rng rate 1.0e-01 stream 0 : (tensor<8x1536xf32>, tensor<4xi32>) -> tensor<8x1536xf32>
  %n, %rstd = nn.rms_norm %d, %g eps 1.0e-06 : (tensor<8x1536xf32>, tensor<1536xf32>) -> (tensor<8x1536xf32>, tensor<8xf32>)
  return %n, %rstd : tensor<8x1536xf32>, tensor<8xf32>
}

// So is it with the gradient of a norm, between two sums of gradients.

// CHECK-LABEL: gpu.func @gradient(
//  CHECK-SAME:   rt.block = array<i64: 128, 1, 1>, {{.*}}rt.grid = array<i64: 2, 1, 1>
func.func private @gradient(%x: tensor<8x1024xf32>, %g: tensor<1024xf32>, %rstd: tensor<8xf32>, %dn: tensor<8x1024xf32>) -> tensor<8x1024xf32> attributes {rt.kernel} {
  %dx = nn.rms_norm_backward %x, %g, %rstd, %dn : (tensor<8x1024xf32>, tensor<1024xf32>, tensor<8xf32>, tensor<8x1024xf32>) -> tensor<8x1024xf32>
  return %dx : tensor<8x1024xf32>
}

// CHECK-LABEL: gpu.func @add_gradient_add(
//  CHECK-SAME:   rt.block = array<i64: 128, 1, 1>, {{.*}}rt.grid = array<i64: 2, 1, 1>
func.func private @add_gradient_add(%x: tensor<8x1024xf32>, %g: tensor<1024xf32>, %rstd: tensor<8xf32>, %a: tensor<8x1024xf32>, %b: tensor<8x1024xf32>, %c: tensor<8x1024xf32>)
    -> tensor<8x1024xf32> attributes {rt.kernel} {
  %dn = nn.add %a, %b : tensor<8x1024xf32>
  %dx = nn.rms_norm_backward %x, %g, %rstd, %dn : (tensor<8x1024xf32>, tensor<1024xf32>, tensor<8xf32>, tensor<8x1024xf32>) -> tensor<8x1024xf32>
  %sum = nn.add %c, %dx : tensor<8x1024xf32>
  return %sum : tensor<8x1024xf32>
}
