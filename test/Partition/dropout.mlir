// RUN: reprise-opt %s --reprise-annotate-layout=sequence-parallel --reprise-partition | FileCheck %s

// What draws for a part of a value says which part it is, so that masks are those
// of the whole: positions of dropout along the residual stream, heads of attention.
// Attention that draws nothing has no part.

// CHECK-LABEL: func.func @forward(
//       CHECK:   nn.dropout %{{.*}}, %{{.*}} rate 2.500000e-01 stream 1 part <axis = "tp", dim = 1, ranks = 2>
//  CHECK-SAME:     (tensor<2x2x8xf32>, tensor<4xi32>) -> tensor<2x2x8xf32>
//       CHECK:   nn.attention %{{.*}} heads 1 scale 1.000000e+00 rate 2.500000e-01 stream 2 part <axis = "tp", dim = 1, ranks = 2> :
//       CHECK:   nn.attention %{{.*}} heads 1 scale 1.000000e+00 rate 0.000000e+00 stream 3 :
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%ids: tensor<2x4xi32> {nn.input = "tokens"}, %t: tensor<6x8xf32> {nn.parameter = #nn.parameter<name = "t", init = zeros>},
                     %w: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}, %o: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "o", init = zeros>},
                     %v: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "v", init = zeros>}, %p: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "p", init = zeros>},
                     %rng: tensor<4xi32> {nn.input = "rng"}) -> tensor<2x4x8xf32> {
    %e = nn.embedding %ids, %t : (tensor<2x4xi32>, tensor<6x8xf32>) -> tensor<2x4x8xf32>
    %x = nn.dropout %e, %rng rate 0.25 stream 1 : (tensor<2x4x8xf32>, tensor<4xi32>) -> tensor<2x4x8xf32>
    %q = nn.linear %x, %w in_out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %c, %lse = nn.attention %q, %q, %q, %rng heads 2 scale 1.0 rate 0.25 stream 2
      : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<4xi32>) -> (tensor<2x4x8xf32>, tensor<2x2x4xf32>)
    %y = nn.linear %c, %o in_out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %r = nn.linear %y, %v in_out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %d, %lse2 = nn.attention %r, %r, %r, %rng heads 2 scale 1.0 rate 0.0 stream 3
      : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<4xi32>) -> (tensor<2x4x8xf32>, tensor<2x2x4xf32>)
    %z = nn.linear %d, %p in_out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    return %z : tensor<2x4x8xf32>
  }
}
