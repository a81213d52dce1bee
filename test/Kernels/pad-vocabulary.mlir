// Where a library multiplies (the module has a workspace for its GEMMs), the
// table of an output projection gets rows up to a multiple of 64, unless it has a
// multiple of 8: as a parameter, as its states, in all functions that read it.
// Losses leave these classes out. What else has its shape stays as it is.

// RUN: reprise-opt %s -split-input-file --reprise-pad-vocabulary | FileCheck %s
// RUN: sed 's/attributes {rt.gemm_workspace = 4096 : i64}//' %s | reprise-opt -split-input-file --reprise-pad-vocabulary | FileCheck %s --check-prefix=CPU

// CPU-NOT: nn.rows
// CPU-NOT: classes

module attributes {rt.gemm_workspace = 4096 : i64} {
  // CHECK-LABEL: func.func @step(
  //  CHECK-SAME:   %[[IDS:[a-z0-9]+]]: tensor<1x8xi32> {nn.input = "tokens"}, %[[X:[a-z0-9]+]]: tensor<1x8x4xbf16>,
  //  CHECK-SAME:   %[[T:[a-z0-9]+]]: tensor<128x4xf32> {nn.parameter = #nn.parameter<name = "t", init = zeros>, nn.rows = 67 : i64},
  //  CHECK-SAME:   %[[G:[a-z0-9]+]]: tensor<128x4xf32> {nn.gradient = "t", nn.rows = 67 : i64}, %[[W:[a-z0-9]+]]: tensor<128x4xbf16> {nn.rows = 67 : i64, nn.working = "t"},
  //  CHECK-SAME:   %[[E:[a-z0-9]+]]: tensor<67x4xf32> {nn.gradient = "e"},
  //  CHECK-SAME:   %{{[a-z0-9]+}}: tensor<128x4xf32> {nn.moment1 = "t", nn.rows = 67 : i64}, %{{[a-z0-9]+}}: tensor<128x4xf32> {nn.moment2 = "t", nn.rows = 67 : i64}
  //  CHECK-SAME:   -> (tensor<128x4xf32> {nn.parameter = "t"}, tensor<128x4xf32> {nn.moment1 = "t"}, tensor<128x4xf32> {nn.moment2 = "t"}, tensor<128x4xbf16> {nn.working = "t"}, tensor<67x4xf32> {nn.gradient = "e"}
  //       CHECK:   %[[F:.*]] = remat.fence %[[W]] after %[[X]] : tensor<128x4xbf16>
  //       CHECK:   %[[L:.*]] = nn.linear %[[X]], %[[F]] out_in : (tensor<1x8x4xbf16>, tensor<128x4xbf16>) -> tensor<1x8x128xbf16>
  //       CHECK:   nn.cross_entropy %[[L]], %[[IDS]] classes 67
  //       CHECK:   %[[D:.*]] = nn.cross_entropy_backward %[[L]], {{.*}} classes 67 : {{.*}} -> tensor<1x8x128xbf16>
  //       CHECK:   nn.linear_backward_weight %[[X]], %[[D]] out_in : {{.*}} -> tensor<128x4xf32>
  //       CHECK:   nn.linear_backward_input %[[D]], %[[W]] out_in
  //       CHECK:   nn.embedding_backward {{.*}} -> tensor<128x4xf32>
  //       CHECK:   nn.add {{.*}} : tensor<128x4xf32>
  //       CHECK:   nn.accumulate %[[G]], {{.*}} : tensor<128x4xf32>
  //       CHECK:   nn.embedding_backward {{.*}} -> tensor<67x4xf32>
  //       CHECK:   nn.accumulate %[[E]], {{.*}} : tensor<67x4xf32>
  //       CHECK:   nn.global_norm
  //       CHECK:   nn.adamw %[[T]], {{.*}} : tensor<128x4xf32>, tensor<f32>, tensor<128x4xbf16> to tensor<128x4xbf16>
  func.func @step(%ids: tensor<1x8xi32> {nn.input = "tokens"}, %x: tensor<1x8x4xbf16>,
                  %t: tensor<67x4xf32> {nn.parameter = #nn.parameter<name = "t", init = zeros>},
                  %g: tensor<67x4xf32> {nn.gradient = "t"}, %w: tensor<67x4xbf16> {nn.working = "t"},
                  %e: tensor<67x4xf32> {nn.gradient = "e"},
                  %m: tensor<67x4xf32> {nn.moment1 = "t"}, %v: tensor<67x4xf32> {nn.moment2 = "t"}, %s: tensor<f32> {nn.input = "lr"}, %d: tensor<1x8xf32>)
      -> (tensor<67x4xf32> {nn.parameter = "t"}, tensor<67x4xf32> {nn.moment1 = "t"}, tensor<67x4xf32> {nn.moment2 = "t"}, tensor<67x4xbf16> {nn.working = "t"},
          tensor<67x4xf32> {nn.gradient = "e"}, tensor<1x8xf32>) {
    %f = remat.fence %w after %x : tensor<67x4xbf16>, tensor<1x8x4xbf16>
    %logits = nn.linear %x, %f out_in : (tensor<1x8x4xbf16>, tensor<67x4xbf16>) -> tensor<1x8x67xbf16>
    %l:2 = nn.cross_entropy %logits, %ids : (tensor<1x8x67xbf16>, tensor<1x8xi32>) -> (tensor<1x8xf32>, tensor<1x8xf32>)
    %dlogits = nn.cross_entropy_backward %logits, %ids, %l#1, %d : (tensor<1x8x67xbf16>, tensor<1x8xi32>, tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8x67xbf16>
    %dw = nn.linear_backward_weight %x, %dlogits out_in : (tensor<1x8x4xbf16>, tensor<1x8x67xbf16>) -> tensor<67x4xf32>
    %dx = nn.linear_backward_input %dlogits, %w out_in : (tensor<1x8x67xbf16>, tensor<67x4xbf16>) -> tensor<1x8x4xbf16>
    %dt = nn.embedding_backward %ids, %dx : (tensor<1x8xi32>, tensor<1x8x4xbf16>) -> tensor<67x4xf32>
    %sum = nn.add %dw, %dt : tensor<67x4xf32>
    %g1 = nn.accumulate %g, %sum : tensor<67x4xf32>
    %de = nn.embedding_backward %ids, %x : (tensor<1x8xi32>, tensor<1x8x4xbf16>) -> tensor<67x4xf32>
    %e1 = nn.accumulate %e, %de : tensor<67x4xf32>
    nn.update
    %norm = nn.global_norm %g1, %e1 : (tensor<67x4xf32>, tensor<67x4xf32>) -> tensor<f32>
    %r:4 = nn.adamw %t, %g1, %m, %v, %norm, %s, %s, %s working(%w)
      beta1 0.5 beta2 0.5 eps 1.0 weight_decay 0.0 : tensor<67x4xf32>, tensor<f32>, tensor<67x4xbf16> to tensor<67x4xbf16>
    return %r#0, %r#1, %r#2, %r#3, %e1, %l#0 : tensor<67x4xf32>, tensor<67x4xf32>, tensor<67x4xf32>, tensor<67x4xbf16>, tensor<67x4xf32>, tensor<1x8xf32>
  }
  // CHECK-LABEL: func.func @sample(
  //  CHECK-SAME:   tensor<128x4xbf16> {nn.rows = 67 : i64, nn.working = "t"}) -> (tensor<1x128xf32> {nn.output = "logits"})
  //       CHECK:   nn.cast {{.*}} : (tensor<1x128xbf16>) -> tensor<1x128xf32>
  func.func @sample(%x: tensor<1x4xbf16>, %w: tensor<67x4xbf16> {nn.working = "t"}) -> (tensor<1x67xf32> {nn.output = "logits"}) {
    %logits = nn.linear %x, %w out_in : (tensor<1x4xbf16>, tensor<67x4xbf16>) -> tensor<1x67xbf16>
    %shown = nn.cast %logits : (tensor<1x67xbf16>) -> tensor<1x67xf32>
    return %shown : tensor<1x67xf32>
  }
}

// -----

// A head that is written out in chunks.

module attributes {rt.gemm_workspace = 4096 : i64} {
  // CHECK-LABEL: func.func @step(
  //       CHECK:   nn.linear_cross_entropy {{.*}} out_in rows 256 classes 307
  //  CHECK-SAME:     : (tensor<2x300x24xf32>, tensor<320x24xf32>, tensor<2x300xi32>, tensor<320x24xf32>) -> (tensor<2x300xf32>, tensor<320x24xf32>)
  func.func @step(%x: tensor<2x300x24xf32>, %w: tensor<307x24xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}, %targets: tensor<2x300xi32> {nn.input = "targets"},
                  %g: tensor<307x24xf32> {nn.gradient = "w"}) -> (tensor<2x300xf32>, tensor<307x24xf32> {nn.gradient = "w"}) {
    %l, %dw = nn.linear_cross_entropy %x, %w, %targets sum(%g) by 1.6e-03 out_in rows 256
      : (tensor<2x300x24xf32>, tensor<307x24xf32>, tensor<2x300xi32>, tensor<307x24xf32>) -> (tensor<2x300xf32>, tensor<307x24xf32>)
    return %l, %dw : tensor<2x300xf32>, tensor<307x24xf32>
  }
}

// -----

// What has a multiple of 8 is good enough; a table that something else reads is
// left alone, and so is one that is no parameter.

module attributes {rt.gemm_workspace = 4096 : i64} {
  // CHECK-LABEL: func.func @step(
  //   CHECK-NOT:   nn.rows
  //   CHECK-NOT:   classes
  //       CHECK:   return
  func.func @step(%x: tensor<1x8x4xf32>, %ids: tensor<1x8xi32>,
                  %a: tensor<72x4xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros>},
                  %b: tensor<67x4xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>})
      -> (tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>, tensor<67x4xf32>) {
    %la = nn.linear %x, %a out_in : (tensor<1x8x4xf32>, tensor<72x4xf32>) -> tensor<1x8x72xf32>
    %ca:2 = nn.cross_entropy %la, %ids : (tensor<1x8x72xf32>, tensor<1x8xi32>) -> (tensor<1x8xf32>, tensor<1x8xf32>)
    %lb = nn.linear %x, %b out_in : (tensor<1x8x4xf32>, tensor<67x4xf32>) -> tensor<1x8x67xf32>
    %cb:2 = nn.cross_entropy %lb, %ids : (tensor<1x8x67xf32>, tensor<1x8xi32>) -> (tensor<1x8xf32>, tensor<1x8xf32>)
    %gb = nn.gelu %b tanh : tensor<67x4xf32>
    %lc = nn.linear %x, %gb out_in : (tensor<1x8x4xf32>, tensor<67x4xf32>) -> tensor<1x8x67xf32>
    %cc:2 = nn.cross_entropy %lc, %ids : (tensor<1x8x67xf32>, tensor<1x8xi32>) -> (tensor<1x8xf32>, tensor<1x8xf32>)
    return %ca#0, %cb#0, %cc#0, %gb : tensor<1x8xf32>, tensor<1x8xf32>, tensor<1x8xf32>, tensor<67x4xf32>
  }
}

// -----

// Sums over ranks, one behind another, as of a tied table along dp and pp: each
// result has the rows of its operand.
module attributes {rt.gemm_workspace = 4096 : i64} {
  // CHECK-LABEL: func.func @step(
  //       CHECK:   nn.accumulate {{.*}} : tensor<128x4xf32>
  //       CHECK:   nn.all_reduce {{.*}} over "dp" : tensor<128x4xf32>, tensor<67x4xf32>
  //       CHECK:   nn.all_reduce {{.*}} over "pp" members [0, 1] : tensor<128x4xf32>
  func.func @step(%x: tensor<1x8x4xf32>, %ids: tensor<1x8xi32>,
                  %t: tensor<67x4xf32> {nn.parameter = #nn.parameter<name = "t", init = zeros>},
                  %g: tensor<67x4xf32> {nn.gradient = "t"}, %e: tensor<67x4xf32> {nn.gradient = "e"})
      -> (tensor<67x4xf32> {nn.gradient = "t"}, tensor<67x4xf32> {nn.gradient = "e"}, tensor<1x8xf32>) {
    %logits = nn.linear %x, %t out_in : (tensor<1x8x4xf32>, tensor<67x4xf32>) -> tensor<1x8x67xf32>
    %l:2 = nn.cross_entropy %logits, %ids : (tensor<1x8x67xf32>, tensor<1x8xi32>) -> (tensor<1x8xf32>, tensor<1x8xf32>)
    %dlogits = nn.cross_entropy_backward %logits, %ids, %l#1, %l#0 : (tensor<1x8x67xf32>, tensor<1x8xi32>, tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8x67xf32>
    %dw = nn.linear_backward_weight %x, %dlogits out_in : (tensor<1x8x4xf32>, tensor<1x8x67xf32>) -> tensor<67x4xf32>
    %g1 = nn.accumulate %g, %dw : tensor<67x4xf32>
    nn.update
    %s:2 = nn.all_reduce %g1, %e over "dp" : tensor<67x4xf32>, tensor<67x4xf32>
    %p = nn.all_reduce %s#0 over "pp" members [0, 1] : tensor<67x4xf32>
    return %p, %s#1, %l#0 : tensor<67x4xf32>, tensor<67x4xf32>, tensor<1x8xf32>
  }
}
