// RUN: reprise-opt %s -split-input-file --reprise-annotate-layout | FileCheck %s
// RUN: reprise-opt %s -split-input-file --reprise-annotate-layout=sequence-parallel | FileCheck %s --check-prefix=SP

// A block between a tied table's two ends. Queries, keys and values are on the
// ranks by heads, what the MLP has inside by columns; the biases of the row
// linears are added once.

module attributes {nn.mesh = #nn.mesh<dp = 3, tp = 2>} {
// CHECK-LABEL: func.func @forward(
//  CHECK-SAME:   %[[IDS:.*]]: tensor<2x4xi32> {nn.input = "tokens", nn.layout = #nn.layout<tp = I>},
//  CHECK-SAME:   {nn.layout = #nn.layout<tp = S(0)>, nn.parameter = #nn.parameter<name = "wte", init = zeros>},
//  CHECK-SAME:   {nn.layout = #nn.layout<tp = I>, nn.parameter = #nn.parameter<name = "wpe", init = zeros>},
//  CHECK-SAME:   {nn.layout = #nn.layout<tp = I>, nn.parameter = #nn.parameter<name = "g", init = ones>},
//  CHECK-SAME:   {nn.layout = #nn.layout<tp = S(1)>, nn.parameter = #nn.parameter<name = "wq", init = zeros>},
//  CHECK-SAME:   {nn.layout = #nn.layout<tp = S(0)>, nn.parameter = #nn.parameter<name = "bq", init = zeros>},
//  CHECK-SAME:   {nn.layout = #nn.layout<tp = S(1)>, nn.parameter = #nn.parameter<name = "wk", init = zeros>},
//  CHECK-SAME:   {nn.layout = #nn.layout<tp = R>, nn.parameter = #nn.parameter<name = "gk", init = ones>},
//  CHECK-SAME:   {nn.layout = #nn.layout<tp = S(0)>, nn.parameter = #nn.parameter<name = "wo", init = zeros>},
//  CHECK-SAME:   {nn.layout = #nn.layout<tp = I>, nn.parameter = #nn.parameter<name = "bo", init = zeros>})
//       CHECK:   nn.embedding {{.*}} {nn.layout = #nn.layout<tp = I>}
//       CHECK:   nn.add_positions {{.*}} {nn.layout = #nn.layout<tp = I>}
//       CHECK:   nn.rms_norm {{.*}} {nn.layout = #nn.layout<tp = I>}
//       CHECK:   nn.linear {{.*}} {nn.layout = #nn.layout<tp = S(2)>}
//       CHECK:   nn.linear {{.*}} {nn.layout = #nn.layout<tp = S(2)>}
//       CHECK:   nn.rms_norm {{.*}} {nn.layout = #nn.layout<tp = S(2)>}
//       CHECK:   nn.scores {{.*}} {nn.layout = #nn.layout<tp = S(1)>}
//       CHECK:   nn.softmax {{.*}} {nn.layout = #nn.layout<tp = S(1)>}
//       CHECK:   nn.context {{.*}} {nn.layout = #nn.layout<tp = S(2)>}
//       CHECK:   nn.linear {{.*}} {nn.layout = #nn.layout<tp = I>}
//       CHECK:   nn.add {{.*}} {nn.layout = #nn.layout<tp = I>}
//       CHECK:   nn.linear {{.*}} {nn.layout = #nn.layout<tp = S(2)>}
//       CHECK:   nn.cross_entropy {{.*}} {nn.layout = #nn.layout<tp = I>}
//       CHECK:   nn.mean {{.*}} {nn.layout = #nn.layout<tp = I>}

// Along the sequence, gains and the biases behind sums have gradients from a
// rank's own positions.

// SP-LABEL: func.func @forward(
//  SP-SAME:   {nn.layout = #nn.layout<tp = S(0)>, nn.parameter = #nn.parameter<name = "wte"
//  SP-SAME:   {nn.layout = #nn.layout<tp = I>, nn.parameter = #nn.parameter<name = "wpe"
//  SP-SAME:   {nn.layout = #nn.layout<tp = R>, nn.parameter = #nn.parameter<name = "g"
//  SP-SAME:   {nn.layout = #nn.layout<tp = R>, nn.parameter = #nn.parameter<name = "gk"
//  SP-SAME:   {nn.layout = #nn.layout<tp = R>, nn.parameter = #nn.parameter<name = "bo"
//       SP:   nn.embedding {{.*}} {nn.layout = #nn.layout<tp = I>}
//       SP:   nn.add_positions {{.*}} {nn.layout = #nn.layout<tp = S(1)>}
//       SP:   nn.rms_norm {{.*}} {nn.layout = #nn.layout<tp = S(1)>}
//       SP:   nn.context {{.*}} {nn.layout = #nn.layout<tp = S(2)>}
//       SP:   nn.linear {{.*}} {nn.layout = #nn.layout<tp = S(1)>}
//       SP:   nn.add {{.*}} {nn.layout = #nn.layout<tp = S(1)>}
//       SP:   nn.linear {{.*}} {nn.layout = #nn.layout<tp = S(2)>}
//       SP:   nn.cross_entropy {{.*}} {nn.layout = #nn.layout<tp = I>}
func.func @forward(%ids: tensor<2x4xi32> {nn.input = "tokens"},
                   %wte: tensor<10x8xf32> {nn.parameter = #nn.parameter<name = "wte", init = zeros>},
                   %wpe: tensor<5x8xf32> {nn.parameter = #nn.parameter<name = "wpe", init = zeros>},
                   %g: tensor<8xf32> {nn.parameter = #nn.parameter<name = "g", init = ones>},
                   %wq: tensor<8x12xf32> {nn.parameter = #nn.parameter<name = "wq", init = zeros>},
                   %bq: tensor<12xf32> {nn.parameter = #nn.parameter<name = "bq", init = zeros>},
                   %wk: tensor<8x12xf32> {nn.parameter = #nn.parameter<name = "wk", init = zeros>},
                   %gk: tensor<6xf32> {nn.parameter = #nn.parameter<name = "gk", init = ones>},
                   %wo: tensor<12x8xf32> {nn.parameter = #nn.parameter<name = "wo", init = zeros>},
                   %bo: tensor<8xf32> {nn.parameter = #nn.parameter<name = "bo", init = zeros>}) -> tensor<f32> {
  %e = nn.embedding %ids, %wte : (tensor<2x4xi32>, tensor<10x8xf32>) -> tensor<2x4x8xf32>
  %x = nn.add_positions %e, %wpe : (tensor<2x4x8xf32>, tensor<5x8xf32>) -> tensor<2x4x8xf32>
  %n, %rstd = nn.rms_norm %x, %g eps 1.0e-06 : (tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
  %q = nn.linear %n, %wq, %bq in_out : (tensor<2x4x8xf32>, tensor<8x12xf32>, tensor<12xf32>) -> tensor<2x4x12xf32>
  %k = nn.linear %n, %wk in_out : (tensor<2x4x8xf32>, tensor<8x12xf32>) -> tensor<2x4x12xf32>
  %kn, %rstdk = nn.rms_norm %k, %gk eps 1.0e-06 : (tensor<2x4x12xf32>, tensor<6xf32>) -> (tensor<2x4x12xf32>, tensor<2x4x2xf32>)
  %s = nn.scores %q, %kn heads 2 scale 1.0 : (tensor<2x4x12xf32>, tensor<2x4x12xf32>) -> tensor<2x2x4x4xf32>
  %p = nn.softmax %s : tensor<2x2x4x4xf32>
  %c = nn.context %p, %k heads 2 scale 1.0 : (tensor<2x2x4x4xf32>, tensor<2x4x12xf32>) -> tensor<2x4x12xf32>
  %o = nn.linear %c, %wo, %bo in_out : (tensor<2x4x12xf32>, tensor<12x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %y = nn.add %x, %o : tensor<2x4x8xf32>
  %l = nn.linear %y, %wte out_in : (tensor<2x4x8xf32>, tensor<10x8xf32>) -> tensor<2x4x10xf32>
  %losses, %lse = nn.cross_entropy %l, %ids : (tensor<2x4x10xf32>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  %loss = nn.mean %losses : (tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

// -----

// Linears in a row take turns, by columns and by rows, and the last one, which
// nothing sums up, is whole; so is one whose result is read as it is. The gate
// is of two column linears, or of none.

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
// CHECK-LABEL: func.func @forward(
//       CHECK:   %[[A:.*]] = nn.linear {{.*}} {nn.layout = #nn.layout<tp = S(2)>}
//       CHECK:   %[[B:.*]] = nn.linear %[[A]], {{.*}} {nn.layout = #nn.layout<tp = I>}
//       CHECK:   %[[C:.*]] = nn.linear %[[B]], {{.*}} {nn.layout = #nn.layout<tp = I>}
//       CHECK:   %[[D:.*]] = nn.linear %[[C]], {{.*}} {nn.layout = #nn.layout<tp = I>}
//       CHECK:   nn.swiglu {{.*}} {nn.layout = #nn.layout<tp = I>}
//       CHECK:   nn.linear {{.*}} {nn.layout = #nn.layout<tp = I>}
func.func @forward(%x: tensor<2x4x8xf32>,
                   %w: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>},
                   %v: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "v", init = zeros>},
                   %u: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "u", init = zeros>}) -> tensor<f32> {
  %a = nn.linear %x, %w in_out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %b = nn.linear %a, %v in_out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %c = nn.linear %b, %u in_out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %d = nn.linear %c, %u in_out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %s = nn.swiglu %d, %x : tensor<2x4x8xf32>
  %t = nn.linear %s, %u in_out : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %sum = nn.add %t, %c : tensor<2x4x8xf32>
  %loss = nn.mean %sum : (tensor<2x4x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

// -----

// Two heads of keys and values on four ranks: two neighbours have the same one,
// each for heads of queries of its own. One head is whole on all of them.

// CHECK: nn.mesh = #nn.mesh<dp = 3, tp = 4, kv = 2 step 2, kv_copies = 2 step 1>
module attributes {nn.mesh = #nn.mesh<dp = 3, tp = 4>} {
// CHECK-LABEL: func.func @forward(
//  CHECK-SAME:   {nn.layout = #nn.layout<tp = S(1)>, nn.parameter = #nn.parameter<name = "wq", init = zeros>},
//  CHECK-SAME:   {nn.layout = #nn.layout<kv = S(1), kv_copies = R>, nn.parameter = #nn.parameter<name = "wk", init = zeros>},
//  CHECK-SAME:   {nn.layout = #nn.layout<kv = S(0), kv_copies = R>, nn.parameter = #nn.parameter<name = "bk", init = zeros>},
//  CHECK-SAME:   {nn.layout = #nn.layout<tp = R>, nn.parameter = #nn.parameter<name = "gk", init = ones>},
//  CHECK-SAME:   {nn.layout = #nn.layout<tp = R>, nn.parameter = #nn.parameter<name = "wv", init = zeros>},
//       CHECK:   nn.linear {{.*}} {nn.layout = #nn.layout<tp = S(2)>}
//       CHECK:   nn.linear {{.*}} {nn.layout = #nn.layout<kv = S(2), kv_copies = R>}
//       CHECK:   nn.rms_norm {{.*}} {nn.layout = #nn.layout<kv = S(2), kv_copies = R>}
//       CHECK:   nn.rope {{.*}} {nn.layout = #nn.layout<kv = S(2), kv_copies = R>}
//       CHECK:   nn.scores {{.*}} {nn.layout = #nn.layout<tp = S(1)>}
//       CHECK:   nn.linear {{.*}} {nn.layout = #nn.layout<tp = R>}
//       CHECK:   nn.context {{.*}} {nn.layout = #nn.layout<tp = S(2)>}
func.func @forward(%x: tensor<2x4x8xf32>,
                   %wq: tensor<8x24xf32> {nn.parameter = #nn.parameter<name = "wq", init = zeros>},
                   %wk: tensor<8x12xf32> {nn.parameter = #nn.parameter<name = "wk", init = zeros>},
                   %bk: tensor<12xf32> {nn.parameter = #nn.parameter<name = "bk", init = zeros>},
                   %gk: tensor<6xf32> {nn.parameter = #nn.parameter<name = "gk", init = ones>},
                   %wv: tensor<8x6xf32> {nn.parameter = #nn.parameter<name = "wv", init = zeros>},
                   %wo: tensor<24x8xf32> {nn.parameter = #nn.parameter<name = "wo", init = zeros>},
                   %t: tensor<4x6xf32> {nn.rotary = #nn.rotary<theta = 100.0 : f64>}) -> tensor<2x4x8xf32> {
  %q = nn.linear %x, %wq in_out : (tensor<2x4x8xf32>, tensor<8x24xf32>) -> tensor<2x4x24xf32>
  %k = nn.linear %x, %wk, %bk in_out : (tensor<2x4x8xf32>, tensor<8x12xf32>, tensor<12xf32>) -> tensor<2x4x12xf32>
  %n, %rstd = nn.rms_norm %k, %gk eps 1.0e-06 : (tensor<2x4x12xf32>, tensor<6xf32>) -> (tensor<2x4x12xf32>, tensor<2x4x2xf32>)
  %r = nn.rope %n, %t heads 2 half_split : (tensor<2x4x12xf32>, tensor<4x6xf32>) -> tensor<2x4x12xf32>
  %s = nn.scores %q, %r heads 4 kv_heads 2 scale 1.0 : (tensor<2x4x24xf32>, tensor<2x4x12xf32>) -> tensor<2x4x4x4xf32>
  %p = nn.softmax %s : tensor<2x4x4x4xf32>
  %v = nn.linear %x, %wv in_out : (tensor<2x4x8xf32>, tensor<8x6xf32>) -> tensor<2x4x6xf32>
  %c = nn.context %p, %v heads 4 kv_heads 1 scale 1.0 : (tensor<2x4x4x4xf32>, tensor<2x4x6xf32>) -> tensor<2x4x24xf32>
  %o = nn.linear %c, %wo in_out : (tensor<2x4x24xf32>, tensor<24x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}
}

// -----

// An activation keeps columns apart.

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
// CHECK-LABEL: func.func @forward(
//       CHECK:   nn.linear {{.*}} {nn.layout = #nn.layout<tp = S(2)>}
//       CHECK:   nn.squared_relu {{.*}} {nn.layout = #nn.layout<tp = S(2)>}
//       CHECK:   nn.linear {{.*}} {nn.layout = #nn.layout<tp = I>}
func.func @forward(%x: tensor<2x4x8xf32>,
                   %u: tensor<8x6xf32> {nn.parameter = #nn.parameter<name = "u", init = zeros>},
                   %d: tensor<6x8xf32> {nn.parameter = #nn.parameter<name = "d", init = zeros>}) -> tensor<2x4x8xf32> {
  %h = nn.linear %x, %u in_out : (tensor<2x4x8xf32>, tensor<8x6xf32>) -> tensor<2x4x6xf32>
  %g = nn.squared_relu %h : tensor<2x4x6xf32>
  %y = nn.linear %g, %d in_out : (tensor<2x4x6xf32>, tensor<6x8xf32>) -> tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}
}
