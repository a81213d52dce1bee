// RUN: reprise-opt %s --reprise-annotate-layout --reprise-partition | FileCheck %s
// RUN: reprise-opt %s --reprise-annotate-layout=sequence-parallel --reprise-partition | FileCheck %s --check-prefix=SP

// Ranks have heads of latent attention: what the latent is projected to, keys and
// values of it. The latent itself, and the columns of a key that all heads share, are
// whole; along the sequence it is the latent that is gathered.

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
// CHECK-LABEL: func.func @forward(
//  CHECK-SAME:   tensor<2x4x8xf32> {
//  CHECK-SAME:   tensor<12x8xf32> {nn.layout = #nn.layout<tp = S(0)>
//  CHECK-SAME:   %[[DOWN:[^:]*]]: tensor<7x8xf32> {nn.layout = #nn.layout<tp = I>
//  CHECK-SAME:   tensor<5xf32> {nn.layout = #nn.layout<tp = I>
//  CHECK-SAME:   tensor<14x5xf32> {nn.layout = #nn.layout<tp = S(0)>
//  CHECK-SAME:   tensor<8x6xf32> {nn.layout = #nn.layout<tp = S(1)>
//       CHECK:   %[[KVA:.*]] = nn.linear %{{.*}}, %[[DOWN]]
//  CHECK-NEXT:   %[[C:.*]], %[[KR:.*]] = nn.split_columns %[[KVA]]
//  CHECK-NEXT:   %[[CN:.*]], %{{.*}} = nn.rms_norm %[[C]]
//  CHECK-NEXT:   %[[CR:.*]] = nn.replicate %[[CN]] over "tp"
//  CHECK-NEXT:   %[[KV:.*]] = nn.linear %[[CR]], {{.*}} -> tensor<2x4x14xf32>
//  CHECK-NEXT:   nn.rope {{.*}} heads 2
//  CHECK-NEXT:   %[[T:.*]] = nn.rope %[[KR]], {{.*}} heads 1
//  CHECK-NEXT:   %[[TR:.*]] = nn.replicate %[[T]] over "tp"
//  CHECK-NEXT:   nn.latent_heads %[[KV]], %[[TR]] heads 2 : {{.*}} -> (tensor<2x4x12xf32>, tensor<2x4x6xf32>)
//  CHECK-NEXT:   nn.attention {{.*}} heads 2
//  CHECK-NEXT:   nn.linear {{.*}} (tensor<2x4x6xf32>, tensor<8x6xf32>) -> tensor<2x4x8xf32>
//  CHECK-NEXT:   nn.all_reduce

// SP-LABEL: func.func @forward(
//       SP:   %[[KVA:.*]] = nn.linear {{.*}} -> tensor<2x2x7xf32>
//  SP-NEXT:   %[[C:.*]], %[[KR:.*]] = nn.split_columns %[[KVA]] : (tensor<2x2x7xf32>) -> (tensor<2x2x5xf32>, tensor<2x2x2xf32>)
//  SP-NEXT:   %[[CN:.*]], %{{.*}} = nn.rms_norm %[[C]]
//  SP-NEXT:   nn.all_gather %[[CN]] to R over "tp" dim 1 : (tensor<2x2x5xf32>) -> tensor<2x4x5xf32>
//       SP:   nn.all_gather %[[KR]] to I over "tp" dim 1 : (tensor<2x2x2xf32>) -> tensor<2x4x2xf32>
//       SP:   nn.attention
//       SP:   nn.reduce_scatter
func.func @forward(%a: tensor<2x4x8xf32>,
                   %wq: tensor<24x8xf32> {nn.parameter = #nn.parameter<name = "wq", init = zeros>},
                   %wa: tensor<7x8xf32> {nn.parameter = #nn.parameter<name = "wa", init = zeros>},
                   %gc: tensor<5xf32> {nn.parameter = #nn.parameter<name = "gc", init = ones>},
                   %wb: tensor<28x5xf32> {nn.parameter = #nn.parameter<name = "wb", init = zeros>},
                   %wo: tensor<8x12xf32> {nn.parameter = #nn.parameter<name = "wo", init = zeros>},
                   %w0: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "w0", init = zeros>},
                   %w1: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "w1", init = zeros>},
                   %t: tensor<4x2xf32>, %rng: tensor<4xi32>) -> tensor<2x4x8xf32> {
  %b = nn.linear %a, %w0 out_in : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %c = nn.gelu %b tanh : tensor<2x4x8xf32>
  %d = nn.linear %c, %w1 out_in : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %n = nn.add %a, %d : tensor<2x4x8xf32>
  %q = nn.linear %n, %wq out_in : (tensor<2x4x8xf32>, tensor<24x8xf32>) -> tensor<2x4x24xf32>
  %kva = nn.linear %n, %wa out_in : (tensor<2x4x8xf32>, tensor<7x8xf32>) -> tensor<2x4x7xf32>
  %ckv, %kr = nn.split_columns %kva : (tensor<2x4x7xf32>) -> (tensor<2x4x5xf32>, tensor<2x4x2xf32>)
  %kvn, %rstd = nn.rms_norm %ckv, %gc eps 1.0e-06 : (tensor<2x4x5xf32>, tensor<5xf32>) -> (tensor<2x4x5xf32>, tensor<2x4xf32>)
  %kv = nn.linear %kvn, %wb out_in : (tensor<2x4x5xf32>, tensor<28x5xf32>) -> tensor<2x4x28xf32>
  %qr = nn.rope %q, %t heads 4 from 4 half_split : (tensor<2x4x24xf32>, tensor<4x2xf32>) -> tensor<2x4x24xf32>
  %krr = nn.rope %kr, %t heads 1 half_split : (tensor<2x4x2xf32>, tensor<4x2xf32>) -> tensor<2x4x2xf32>
  %k, %v = nn.latent_heads %kv, %krr heads 4 : (tensor<2x4x28xf32>, tensor<2x4x2xf32>) -> (tensor<2x4x24xf32>, tensor<2x4x12xf32>)
  %x, %lse = nn.attention %qr, %k, %v, %rng heads 4 scale 5.0e-01 rate 0.0 stream 0
    : (tensor<2x4x24xf32>, tensor<2x4x24xf32>, tensor<2x4x12xf32>, tensor<4xi32>) -> (tensor<2x4x12xf32>, tensor<2x4x4xf32>)
  %y = nn.linear %x, %wo out_in : (tensor<2x4x12xf32>, tensor<8x12xf32>) -> tensor<2x4x8xf32>
  %z = nn.add %n, %y : tensor<2x4x8xf32>
  return %z : tensor<2x4x8xf32>
}
}
