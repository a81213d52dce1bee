// RUN: reprise-opt %s -split-input-file --reprise-annotate-layout --reprise-partition | FileCheck %s
// RUN: reprise-opt %s -split-input-file --reprise-annotate-layout=sequence-parallel --reprise-partition | FileCheck %s --check-prefix=SP

// What heads and MLP of a rank read comes to it once, in one form or the other;
// what they add to the residual stream is summed, and the bias comes behind.
// Each rank has half of the heads of keys; with one left, its statistics are
// those of rows.

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
// CHECK-LABEL: func.func @forward(
//  CHECK-SAME:   %[[X:[^:]*]]: tensor<2x4x8xf32> {{[^)]*}}%[[WQ:[^:]*]]: tensor<8x12xf32> {nn.layout = #nn.layout<tp = S(1)>
//  CHECK-SAME:   %[[BQ:[^:]*]]: tensor<12xf32> {nn.layout = #nn.layout<tp = S(0)>
//  CHECK-SAME:   %[[WK:[^:]*]]: tensor<8x6xf32>
//  CHECK-SAME:   %[[GK:[^:]*]]: tensor<6xf32> {nn.layout = #nn.layout<tp = R>
//  CHECK-SAME:   %[[WO:[^:]*]]: tensor<12x8xf32> {nn.layout = #nn.layout<tp = S(0)>
//  CHECK-SAME:   %[[BO:[^:]*]]: tensor<8xf32> {nn.layout = #nn.layout<tp = I>
//  CHECK-SAME:   -> tensor<2x4x8xf32>
//  CHECK-NEXT:   %[[N:.*]], %{{.*}} = nn.rms_norm %[[X]]
//  CHECK-NEXT:   %[[R:.*]] = nn.replicate %[[N]] over "tp" {nn.scope = #nn.scope<layer = 1, module = "attention">} : tensor<2x4x8xf32>
//  CHECK-NEXT:   %[[Q:.*]] = nn.linear %[[R]], %[[WQ]], %[[BQ]] in_out {nn.scope = #nn.scope<layer = 1, module = "attention", value = "q">} : {{.*}} -> tensor<2x4x12xf32>
//  CHECK-NEXT:   %[[K:.*]] = nn.linear %[[R]], %[[WK]] in_out : {{.*}} -> tensor<2x4x6xf32>
//  CHECK-NEXT:   %[[KN:.*]], %{{.*}} = nn.rms_norm %[[K]], %[[GK]] eps {{.*}} : (tensor<2x4x6xf32>, tensor<6xf32>) -> (tensor<2x4x6xf32>, tensor<2x4xf32>)
//  CHECK-NEXT:   %[[QR:.*]] = nn.rope %[[Q]], %{{.*}} heads 2 half_split : (tensor<2x4x12xf32>, tensor<4x6xf32>)
//  CHECK-NEXT:   %[[C:.*]], %{{.*}} = nn.attention %[[QR]], %[[KN]], %[[K]], %{{.*}} heads 2 kv_heads 1 {{.*}} -> (tensor<2x4x12xf32>, tensor<2x2x4xf32>)
//  CHECK-NEXT:   %[[P:.*]] = nn.linear %[[C]], %[[WO]] in_out {nn.scope = #nn.scope<layer = 1, module = "attention", value = "a">} : (tensor<2x4x12xf32>, tensor<12x8xf32>) -> tensor<2x4x8xf32>
//  CHECK-NEXT:   %[[S:.*]] = nn.all_reduce %[[P]] over "tp" {nn.scope = #nn.scope<layer = 1, module = "attention", value = "a.all_reduce">} : tensor<2x4x8xf32>
//  CHECK-NEXT:   %[[B:.*]] = nn.add_bias %[[S]], %[[BO]] {nn.scope = #nn.scope<layer = 1, module = "attention", value = "a.add_bias">}
//  CHECK-NEXT:   %[[Y:.*]] = nn.add %[[X]], %[[B]]
//  CHECK-NEXT:   return %[[Y]]

// SP-LABEL: func.func @forward(
//       SP:   %[[N:.*]], %{{.*}} = nn.rms_norm
//  SP-NEXT:   %[[R:.*]] = nn.replicate %[[N]] over "tp"
//  SP-NEXT:   nn.linear %[[R]]
//       SP:   nn.attention
//  SP-NEXT:   %[[P:.*]] = nn.linear
//  SP-NEXT:   %[[S:.*]] = nn.reduce_scatter %[[P]] over "tp" dim 1 {{.*}} : (tensor<2x4x8xf32>) -> tensor<2x2x8xf32>
//  SP-NEXT:   %[[B:.*]] = nn.add_bias %[[S]]
//  SP-NEXT:   %[[OWN:.*]] = nn.slice %{{.*}} over "tp" dim 1 : (tensor<2x4x8xf32>) -> tensor<2x2x8xf32>
//  SP-NEXT:   %[[Y:.*]] = nn.add %[[OWN]], %[[B]] : tensor<2x2x8xf32>
//  SP-NEXT:   %[[ALL:.*]] = nn.all_gather %[[Y]] to I over "tp" dim 1
//  SP-NEXT:   return %[[ALL]]
func.func @forward(%x: tensor<2x4x8xf32>, %rng: tensor<4xi32> {nn.input = "rng"},
                   %t: tensor<4x6xf32> {nn.rotary = #nn.rotary<theta = 100.0 : f64>},
                   %g: tensor<8xf32> {nn.parameter = #nn.parameter<name = "g", init = ones>},
                   %wq: tensor<8x24xf32> {nn.parameter = #nn.parameter<name = "wq", init = zeros>},
                   %bq: tensor<24xf32> {nn.parameter = #nn.parameter<name = "bq", init = zeros>},
                   %wk: tensor<8x12xf32> {nn.parameter = #nn.parameter<name = "wk", init = zeros>},
                   %gk: tensor<6xf32> {nn.parameter = #nn.parameter<name = "gk", init = ones>},
                   %wo: tensor<24x8xf32> {nn.parameter = #nn.parameter<name = "wo", init = zeros>},
                   %bo: tensor<8xf32> {nn.parameter = #nn.parameter<name = "bo", init = zeros>}) -> tensor<2x4x8xf32> {
  %n, %rstd = nn.rms_norm %x, %g eps 1.0e-06 : (tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
  %q = nn.linear %n, %wq, %bq in_out {nn.scope = #nn.scope<layer = 1, module = "attention", value = "q">}
    : (tensor<2x4x8xf32>, tensor<8x24xf32>, tensor<24xf32>) -> tensor<2x4x24xf32>
  %k = nn.linear %n, %wk in_out : (tensor<2x4x8xf32>, tensor<8x12xf32>) -> tensor<2x4x12xf32>
  %kn, %rstdk = nn.rms_norm %k, %gk eps 1.0e-06 : (tensor<2x4x12xf32>, tensor<6xf32>) -> (tensor<2x4x12xf32>, tensor<2x4x2xf32>)
  %qr = nn.rope %q, %t heads 4 half_split : (tensor<2x4x24xf32>, tensor<4x6xf32>) -> tensor<2x4x24xf32>
  %c, %lse = nn.attention %qr, %kn, %k, %rng heads 4 kv_heads 2 scale 1.0 rate 0.0 stream 0
    : (tensor<2x4x24xf32>, tensor<2x4x12xf32>, tensor<2x4x12xf32>, tensor<4xi32>) -> (tensor<2x4x24xf32>, tensor<2x4x4xf32>)
  %o = nn.linear %c, %wo, %bo in_out {nn.scope = #nn.scope<layer = 1, module = "attention", value = "a">}
    : (tensor<2x4x24xf32>, tensor<24x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %y = nn.add %x, %o : tensor<2x4x8xf32>
  return %y : tensor<2x4x8xf32>
}
}

// -----

// A tied table in bf16: rows that a rank does not have are zeros, and of head
// and loss a rank has its part of the vocabulary.

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
// CHECK-LABEL: func.func @forward(
//  CHECK-SAME:   %[[IDS:[^:]*]]: tensor<2x4xi32> {{[^)]*}}%[[W:[^:]*]]: tensor<5x8xf32> {nn.layout = #nn.layout<tp = S(0)>
//  CHECK-NEXT:   %[[C:.*]] = nn.cast %[[W]] : (tensor<5x8xf32>) -> tensor<5x8xbf16>
//  CHECK-NEXT:   %[[E:.*]] = nn.embedding_part %[[IDS]], %[[C]] over "tp" : (tensor<2x4xi32>, tensor<5x8xbf16>) -> tensor<2x4x8xbf16>
//  CHECK-NEXT:   %[[X:.*]] = nn.all_reduce %[[E]] over "tp" : tensor<2x4x8xbf16>
//  CHECK-NEXT:   %[[R:.*]] = nn.replicate %[[X]] over "tp"
//  CHECK-NEXT:   %[[L:.*]] = nn.linear %[[R]], %[[C]] out_in : {{.*}} -> tensor<2x4x5xbf16>
//  CHECK-NEXT:   %[[LSE:.*]], %[[HIT:.*]] = nn.cross_entropy_part %[[L]], %{{.*}} over "tp"
//  CHECK-NEXT:   %[[PARTS:.*]] = nn.all_gather %[[LSE]] to I over "tp" dim 0 : (tensor<2x4xf32>) -> tensor<4x4xf32>
//  CHECK-NEXT:   %[[HITS:.*]] = nn.all_reduce %[[HIT]] over "tp" : tensor<2x4xf32>
//  CHECK-NEXT:   %[[ALL:.*]] = nn.join_lse %[[PARTS]] : (tensor<4x4xf32>) -> tensor<2x4xf32>
//  CHECK-NEXT:   %[[LESS:.*]] = nn.scale %[[HITS]] by -1.000000e+00
//  CHECK-NEXT:   %[[LOSSES:.*]] = nn.add %[[ALL]], %[[LESS]]
//  CHECK-NEXT:   nn.mean %[[LOSSES]]

// SP-LABEL: func.func @forward(
//       SP:   %[[E:.*]] = nn.embedding_part
//  SP-NEXT:   %[[X:.*]] = nn.reduce_scatter %[[E]] over "tp" dim 1
//  SP-NEXT:   %[[R:.*]] = nn.all_gather %[[X]] to R over "tp" dim 1
//  SP-NEXT:   nn.linear %[[R]]
func.func @forward(%ids: tensor<2x4xi32> {nn.input = "tokens"}, %targets: tensor<2x4xi32> {nn.input = "targets"},
                   %w: tensor<10x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<f32> {
  %c = nn.cast %w : (tensor<10x8xf32>) -> tensor<10x8xbf16>
  %x = nn.embedding %ids, %c : (tensor<2x4xi32>, tensor<10x8xbf16>) -> tensor<2x4x8xbf16>
  %l = nn.linear %x, %c out_in : (tensor<2x4x8xbf16>, tensor<10x8xbf16>) -> tensor<2x4x10xbf16>
  %losses, %lse = nn.cross_entropy %l, %targets : (tensor<2x4x10xbf16>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  %loss = nn.mean %losses : (tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

// -----

// Any vocabulary is shared: parts are equal, and columns that are no words count
// for nothing in the loss. The whole has fewer rows than the parts together.

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
// CHECK-LABEL: func.func @forward(
//  CHECK-SAME:   tensor<5x8xf32> {nn.layout = #nn.layout<tp = S(0)>, {{.*}}nn.whole = 9 : i64
//       CHECK:   nn.embedding_part %{{.*}}, %{{.*}} over "tp" : (tensor<2x4xi32>, tensor<5x8xbf16>)
//       CHECK:   nn.cross_entropy_part %{{.*}}, %{{.*}} over "tp" classes 9 : (tensor<2x4x5xbf16>, tensor<2x4xi32>)

// SP-LABEL: func.func @forward(
//       SP:   classes 9
func.func @forward(%ids: tensor<2x4xi32> {nn.input = "tokens"}, %targets: tensor<2x4xi32> {nn.input = "targets"},
                   %w: tensor<9x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<f32> {
  %c = nn.cast %w : (tensor<9x8xf32>) -> tensor<9x8xbf16>
  %x = nn.embedding %ids, %c : (tensor<2x4xi32>, tensor<9x8xbf16>) -> tensor<2x4x8xbf16>
  %l = nn.linear %x, %c out_in : (tensor<2x4x8xbf16>, tensor<9x8xbf16>) -> tensor<2x4x9xbf16>
  %losses, %lse = nn.cross_entropy %l, %targets : (tensor<2x4x9xbf16>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  %loss = nn.mean %losses : (tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}

// -----

// Positions are added to whole rows.

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
// SP-LABEL: func.func @forward(
//       SP:   %[[E:.*]] = nn.embedding_part
//  SP-NEXT:   %[[X:.*]] = nn.all_reduce %[[E]] over "tp"
//  SP-NEXT:   %[[P:.*]] = nn.add_positions %[[X]]
//  SP-NEXT:   %[[OWN:.*]] = nn.slice %[[P]] over "tp" dim 1 : (tensor<2x4x8xf32>) -> tensor<2x2x8xf32>
//  SP-NEXT:   %{{.*}}, %{{.*}}, %{{.*}} = nn.layer_norm %[[OWN]]{{.*}} -> (tensor<2x2x8xf32>, tensor<2x2xf32>, tensor<2x2xf32>)
func.func @forward(%ids: tensor<2x4xi32> {nn.input = "tokens"},
                   %w: tensor<10x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>},
                   %p: tensor<7x8xf32> {nn.parameter = #nn.parameter<name = "p", init = zeros>},
                   %g: tensor<8xf32> {nn.parameter = #nn.parameter<name = "g", init = zeros>}) -> tensor<2x4x8xf32> {
  %e = nn.embedding %ids, %w : (tensor<2x4xi32>, tensor<10x8xf32>) -> tensor<2x4x8xf32>
  %x = nn.add_positions %e, %p : (tensor<2x4x8xf32>, tensor<7x8xf32>) -> tensor<2x4x8xf32>
  %n, %mean, %rstd = nn.layer_norm %x, %g, %g eps 1.0e-05 : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
  return %n : tensor<2x4x8xf32>
}
}

// -----

// Two heads of keys and values on four ranks: a rank has the one that its heads of
// queries go with, from a part of the weight that its neighbour has, too. All read
// one input.

module attributes {nn.mesh = #nn.mesh<tp = 4>} {
//       CHECK: nn.mesh = #nn.mesh<tp = 4, kv = 2 step 2, kv_copies = 2 step 1>
//  CHECK-NEXT: func.func @forward(
//  CHECK-SAME:   %[[X:[^:]*]]: tensor<2x4x8xf32> {{[^)]*}}%[[WQ:[^:]*]]: tensor<8x6xf32>
//  CHECK-SAME:   %[[WK:[^:]*]]: tensor<8x6xf32> {nn.layout = #nn.layout<kv = S(1), kv_copies = R>
//  CHECK-NOT:    nn.whole
//       CHECK:   %[[R:.*]] = nn.replicate %[[X]] over "tp"
//  CHECK-NEXT:   %[[Q:.*]] = nn.linear %[[R]], %[[WQ]]
//  CHECK-NEXT:   %[[K:.*]] = nn.linear %[[R]], %[[WK]] in_out : {{.*}} -> tensor<2x4x6xf32>
//  CHECK-NEXT:   %[[ROT:.*]] = nn.rope %[[K]], %{{.*}} heads 1 half_split : (tensor<2x4x6xf32>
//  CHECK-NEXT:   %{{.*}}, %{{.*}} = nn.attention %[[Q]], %[[ROT]], %[[K]], %{{.*}} heads 1 kv_heads 1 {{.*}} -> (tensor<2x4x6xf32>, tensor<2x1x4xf32>)

//       SP: nn.mesh = #nn.mesh<tp = 4, kv = 2 step 2, kv_copies = 2 step 1>
//       SP:   nn.attention %{{.*}} heads 1 kv_heads 1
//       SP:   nn.reduce_scatter %{{.*}} over "tp" dim 1
func.func @forward(%x: tensor<2x4x8xf32>, %rng: tensor<4xi32> {nn.input = "rng"},
                   %wq: tensor<8x24xf32> {nn.parameter = #nn.parameter<name = "wq", init = zeros>},
                   %wk: tensor<8x12xf32> {nn.parameter = #nn.parameter<name = "wk", init = zeros>},
                   %wo: tensor<24x8xf32> {nn.parameter = #nn.parameter<name = "wo", init = zeros>},
                   %t: tensor<4x6xf32> {nn.rotary = #nn.rotary<theta = 100.0 : f64>}) -> tensor<2x4x8xf32> {
  %q = nn.linear %x, %wq in_out : (tensor<2x4x8xf32>, tensor<8x24xf32>) -> tensor<2x4x24xf32>
  %k = nn.linear %x, %wk in_out : (tensor<2x4x8xf32>, tensor<8x12xf32>) -> tensor<2x4x12xf32>
  %r = nn.rope %k, %t heads 2 half_split : (tensor<2x4x12xf32>, tensor<4x6xf32>) -> tensor<2x4x12xf32>
  %c, %lse = nn.attention %q, %r, %k, %rng heads 4 kv_heads 2 scale 1.0 rate 0.0 stream 0
    : (tensor<2x4x24xf32>, tensor<2x4x12xf32>, tensor<2x4x12xf32>, tensor<4xi32>) -> (tensor<2x4x24xf32>, tensor<2x4x4xf32>)
  %o = nn.linear %c, %wo in_out : (tensor<2x4x24xf32>, tensor<24x8xf32>) -> tensor<2x4x8xf32>
  return %o : tensor<2x4x8xf32>
}
}
