// RUN: reprise-opt %s \
// RUN:   --pass-pipeline='builtin.module(reprise-derive-inference,reprise-differentiate,cse,canonicalize,func.func(reprise-chunk-head{rows=1024}),reprise-add-optimizer)' | FileCheck %s

// A tied table of words, in bf16: both of its gradients are f32, and their sum
// is the parameter's as it is, through the cast. What casts a parameter is an
// argument then, which the update rounds anew. A frozen parameter has such a
// copy, too, and nothing rounds it again. A lookup rounds the rows that it reads.

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   %[[IDS:[^:]*]]: tensor<2x300xi32> {nn.input = "tokens"},
//  CHECK-SAME:   %[[T:[^:]*]]: tensor<7x8xf32> {nn.parameter = #nn.parameter<name = "t", init = zeros, decay = true>},
//  CHECK-SAME:   %{{[^:]*}}: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros, frozen = true>},
//  CHECK-SAME:   %[[B:[^:]*]]: tensor<8xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>},
//  CHECK-SAME:   %[[SUM:[^:]*]]: tensor<f32> {nn.input = "loss_sum"},
//  CHECK-SAME:   %[[GT:[^:]*]]: tensor<7x8xf32> {nn.gradient = "t"}, %[[GB:[^:]*]]: tensor<8xf32> {nn.gradient = "b"},
//  CHECK-SAME:   %[[TH:[^:]*]]: tensor<7x8xbf16> {nn.working = "t"}, %[[WH:[^:]*]]: tensor<8x8xbf16> {nn.working = "w"}, %[[BH:[^:]*]]: tensor<8xbf16> {nn.working = "b"},
//  CHECK-SAME:   %[[LR:[^:]*]]: tensor<f32> {nn.input = "lr"},
//  CHECK-SAME:   tensor<7x8xbf16> {nn.working = "t"}, tensor<8xf32> {nn.parameter = "b"}, tensor<8xf32> {nn.moment1 = "b"}, tensor<8xf32> {nn.moment2 = "b"}, tensor<8xbf16> {nn.working = "b"})
//   CHECK-NOT:   nn.cast
//       CHECK:   %[[X:.*]] = nn.embedding %[[IDS]], %[[T]] : (tensor<2x300xi32>, tensor<7x8xf32>) -> tensor<2x300x8xbf16>
//  CHECK-NEXT:   %[[Y:.*]] = nn.linear %[[X]], %[[WH]], %[[BH]] in_out
//   CHECK-NOT:   nn.cast
//       CHECK:   %{{.*}}, %[[G:.*]]:2 = nn.linear_cross_entropy %[[Y]], %[[TH]], %{{.*}} sum(%[[GT]]) by {{.*}} dinput out_in rows 1024
//  CHECK-SAME:     -> (tensor<2x300xf32>, tensor<2x300x8xbf16>, tensor<7x8xf32>)
//   CHECK-NOT:   nn.cast
//       CHECK:   %[[DB:.*]] = nn.sum_rows %[[G]]#0 : (tensor<2x300x8xbf16>) -> tensor<8xf32>
//       CHECK:   %[[DX:.*]] = nn.linear_backward_input %[[G]]#0, %[[WH]] in_out
//       CHECK:   %[[DT:.*]] = nn.embedding_backward %[[IDS]], %[[DX]] : (tensor<2x300xi32>, tensor<2x300x8xbf16>) -> tensor<7x8xf32>
//  CHECK-NEXT:   %[[GT1:.*]] = nn.accumulate %[[G]]#1, %[[DT]] : tensor<7x8xf32>
//       CHECK:   nn.update
//       CHECK:   %[[T1:.*]], %[[M:.*]], %[[V:.*]], %[[TH1:.*]] = nn.adamw %[[T]], %[[GT1]], {{.*}} working(%[[TH]]) {{.*}} : tensor<7x8xf32>, tensor<f32>, tensor<7x8xbf16> to tensor<7x8xbf16>
//       CHECK:   %[[B1:.*]], %{{.*}}, %{{.*}}, %[[BH1:.*]] = nn.adamw %[[B]], {{.*}} working(%[[BH]]) {{.*}} : tensor<8xf32>, tensor<f32>, tensor<8xbf16> to tensor<8xbf16>
//       CHECK:   return {{.*}}, %[[T1]], %[[M]], %[[V]], %[[TH1]], %[[B1]],

// What only goes forward reads the same copies and, but for rows of the table, no
// parameter that has one; logits are f32 for whoever draws from them.

// CHECK-LABEL: func.func @evaluate(
//  CHECK-SAME:   %{{[^:]*}}: tensor<2x300xi32> {nn.input = "tokens"}, %{{[^:]*}}: tensor<2x300xi32> {nn.input = "targets"},
//  CHECK-SAME:   %{{[^:]*}}: tensor<7x8xf32> {nn.parameter = {{[^}]*}}}, %{{[^:]*}}: tensor<7x8xbf16> {nn.working = "t"}, %{{[^:]*}}: tensor<8x8xbf16> {nn.working = "w"}, %{{[^:]*}}: tensor<8xbf16> {nn.working = "b"})
//   CHECK-NOT:   nn.cast

// CHECK-LABEL: func.func @sample(
//  CHECK-SAME:   %{{[^:]*}}: tensor<1x300xi32> {nn.input = "sample_tokens"}, %{{[^:]*}}: tensor<7x8xf32> {nn.parameter = {{[^}]*}}},
//  CHECK-SAME:   %{{[^:]*}}: tensor<1xi32> {nn.input = "position"}, %{{[^:]*}}: tensor<7x8xbf16> {nn.working = "t"}, %{{[^:]*}}: tensor<8x8xbf16> {nn.working = "w"}, %{{[^:]*}}: tensor<8xbf16> {nn.working = "b"})
//  CHECK-SAME:   -> (tensor<1x7xf32> {nn.output = "logits"})
//       CHECK:   %[[LOGITS:.*]] = nn.linear {{.*}} -> tensor<1x7xbf16>
//  CHECK-NEXT:   %[[SHOWN:.*]] = nn.cast %[[LOGITS]] {nn.scope = #nn.scope<module = "head", value = "logits">} : (tensor<1x7xbf16>) -> tensor<1x7xf32>
//  CHECK-NEXT:   return %[[SHOWN]]
module attributes {nn.train = {adam_beta1 = 0.5, adam_beta2 = 0.25, adam_eps = 0.0625, weight_decay = 0.125, clip_grad = 0.5}} {
  func.func @forward(%tokens: tensor<2x300xi32> {nn.input = "tokens"}, %targets: tensor<2x300xi32> {nn.input = "targets"},
                     %t: tensor<7x8xf32> {nn.parameter = #nn.parameter<name = "t", init = zeros, decay = true>},
                     %w: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros, frozen = true>},
                     %b: tensor<8xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>}) -> tensor<f32> {
    %th = nn.cast %t : (tensor<7x8xf32>) -> tensor<7x8xbf16>
    %wh = nn.cast %w : (tensor<8x8xf32>) -> tensor<8x8xbf16>
    %bh = nn.cast %b : (tensor<8xf32>) -> tensor<8xbf16>
    %x = nn.embedding %tokens, %th : (tensor<2x300xi32>, tensor<7x8xbf16>) -> tensor<2x300x8xbf16>
    %y = nn.linear %x, %wh, %bh in_out : (tensor<2x300x8xbf16>, tensor<8x8xbf16>, tensor<8xbf16>) -> tensor<2x300x8xbf16>
    %logits = nn.linear %y, %th out_in {nn.scope = #nn.scope<module = "head", value = "logits">} : (tensor<2x300x8xbf16>, tensor<7x8xbf16>) -> tensor<2x300x7xbf16>
    %losses, %lse = nn.cross_entropy %logits, %targets : (tensor<2x300x7xbf16>, tensor<2x300xi32>) -> (tensor<2x300xf32>, tensor<2x300xf32>)
    %loss = nn.mean %losses : (tensor<2x300xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}
