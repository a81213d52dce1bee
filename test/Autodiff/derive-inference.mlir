// RUN: reprise-opt %s -split-input-file --reprise-derive-inference | FileCheck %s

// The loss without dropout, and the logits of one position of one text. What
// was in @forward stays; scopes and locations are those of the originals.

// CHECK-LABEL: func.func @forward(
//       CHECK:   nn.dropout
//       CHECK:   return

// CHECK-LABEL: func.func @evaluate(
//  CHECK-SAME:   %[[TOKENS:[^:]*]]: tensor<2x4xi32> {nn.input = "tokens"},
//  CHECK-SAME:   %[[TARGETS:[^:]*]]: tensor<2x4xi32> {nn.input = "targets"},
//  CHECK-SAME:   %[[RNG:[^:]*]]: tensor<4xi32> {nn.input = "rng"},
//  CHECK-SAME:   %[[W:[^:]*]]: tensor<7x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>},
//  CHECK-SAME:   %[[B:[^:]*]]: tensor<7xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>})
//  CHECK-SAME:   -> (tensor<f32> {nn.output = "eval_loss"}) {
//  CHECK-NEXT:   %[[X:.*]] = nn.embedding %[[TOKENS]], %[[W]] {nn.scope = #nn.scope<module = "embedding", value = "e">}
//  CHECK-NEXT:   %[[CTX:[^,]*]], %{{.*}} = nn.attention %[[X]], %[[X]], %[[X]], %[[RNG]] heads 2 scale 5.000000e-01 rate 0.000000e+00 stream 1
//  CHECK-NEXT:   %[[LOGITS:.*]] = nn.linear %[[CTX]], %[[W]], %[[B]] out_in
//  CHECK-NEXT:   %[[LOSSES:[^,]*]], %{{.*}} = nn.cross_entropy %[[LOGITS]], %[[TARGETS]]
//  CHECK-NEXT:   %[[LOSS:.*]] = nn.mean %[[LOSSES]]
//  CHECK-NEXT:   return %[[LOSS]]

// CHECK-LABEL: func.func @sample(
//  CHECK-SAME:   %[[TOKENS:[^:]*]]: tensor<1x4xi32> {nn.input = "sample_tokens"},
//  CHECK-SAME:   %[[RNG:[^:]*]]: tensor<4xi32> {nn.input = "rng"},
//  CHECK-SAME:   %[[W:[^:]*]]: tensor<7x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>},
//  CHECK-SAME:   %[[B:[^:]*]]: tensor<7xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>},
//  CHECK-SAME:   %[[POSITION:[^:]*]]: tensor<1xi32> {nn.input = "position"})
//  CHECK-SAME:   -> (tensor<1x7xf32> {nn.output = "logits"}) {
//  CHECK-NEXT:   %[[X:.*]] = nn.embedding %[[TOKENS]], %[[W]]{{.*}} -> tensor<1x4x8xf32>
//  CHECK-NEXT:   %[[CTX:[^,]*]], %{{.*}} = nn.attention {{.*}} -> (tensor<1x4x8xf32>, tensor<1x2x4xf32>)
//  CHECK-NEXT:   %[[LAST:.*]] = nn.take_position %[[CTX]], %[[POSITION]] {nn.scope = #nn.scope<module = "head", value = "position">}
//  CHECK-NEXT:   %[[LOGITS:.*]] = nn.linear %[[LAST]], %[[W]], %[[B]] out_in {nn.scope = #nn.scope<module = "head", value = "logits">} : (tensor<1x8xf32>, tensor<7x8xf32>, tensor<7xf32>) -> tensor<1x7xf32>
//  CHECK-NEXT:   return %[[LOGITS]]
func.func @forward(%tokens: tensor<2x4xi32> {nn.input = "tokens"},
                   %targets: tensor<2x4xi32> {nn.input = "targets"},
                   %rng: tensor<4xi32> {nn.input = "rng"},
                   %w: tensor<7x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>},
                   %b: tensor<7xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>}) -> tensor<f32>
    attributes {nn.micro_batches = 2 : i64} {
  %e = nn.embedding %tokens, %w {nn.scope = #nn.scope<module = "embedding", value = "e">}
    : (tensor<2x4xi32>, tensor<7x8xf32>) -> tensor<2x4x8xf32>
  %x = nn.dropout %e, %rng rate 0.1 stream 0 : (tensor<2x4x8xf32>, tensor<4xi32>) -> tensor<2x4x8xf32>
  %ctx, %slse = nn.attention %x, %x, %x, %rng heads 2 scale 0.5 rate 0.1 stream 1
    : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<4xi32>) -> (tensor<2x4x8xf32>, tensor<2x2x4xf32>)
  %logits = nn.linear %ctx, %w, %b out_in {nn.scope = #nn.scope<module = "head", value = "logits">}
    : (tensor<2x4x8xf32>, tensor<7x8xf32>, tensor<7xf32>) -> tensor<2x4x7xf32>
  %losses, %lse = nn.cross_entropy %logits, %targets
    : (tensor<2x4x7xf32>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  %loss = nn.mean %losses : (tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Dropouts on top of each other all go, and so do arguments and ops that no
// result needs. Without a head there is nothing to sample.

// CHECK-LABEL: func.func @evaluate(
//  CHECK-SAME:   %[[W:[^:]*]]: tensor<8xf32>
//   CHECK-NOT:   nn.input
//  CHECK-SAME:   {
//  CHECK-NEXT:   %[[LOSS:.*]] = nn.mean %[[W]]
//  CHECK-NEXT:   return %[[LOSS]]
//   CHECK-NOT: func.func @sample
func.func @forward(%rng: tensor<4xi32> {nn.input = "rng"},
                   %w: tensor<8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>},
                   %v: tensor<8xf32> {nn.parameter = #nn.parameter<name = "v", init = zeros>}) -> tensor<f32> {
  %a = nn.dropout %w, %rng rate 0.1 stream 0 : (tensor<8xf32>, tensor<4xi32>) -> tensor<8xf32>
  %b = nn.dropout %a, %rng rate 0.1 stream 1 : (tensor<8xf32>, tensor<4xi32>) -> tensor<8xf32>
  %unread = nn.add %b, %v : tensor<8xf32>
  %loss = nn.mean %b : (tensor<8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Which of two heads would be meant is not known.

// CHECK-LABEL: func.func @evaluate(
//   CHECK-NOT: func.func @sample
func.func @forward(%x: tensor<2x4x8xf32> {nn.parameter = #nn.parameter<name = "x", init = zeros>},
                   %w: tensor<7x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>},
                   %targets: tensor<2x4xi32> {nn.input = "targets"}) -> tensor<f32> {
  %a = nn.linear %x, %w out_in {nn.scope = #nn.scope<module = "head", value = "logits">}
    : (tensor<2x4x8xf32>, tensor<7x8xf32>) -> tensor<2x4x7xf32>
  %b = nn.linear %x, %w out_in {nn.scope = #nn.scope<module = "head", value = "logits">}
    : (tensor<2x4x8xf32>, tensor<7x8xf32>) -> tensor<2x4x7xf32>
  %both = nn.add %a, %b : tensor<2x4x7xf32>
  %losses, %lse = nn.cross_entropy %both, %targets
    : (tensor<2x4x7xf32>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  %loss = nn.mean %losses : (tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// The unfused form: scores are of one text, too. A table is none, though it has
// as many rows as there are texts.

// CHECK-LABEL: func.func @sample(
//  CHECK-SAME:   tensor<1x2xi32> {nn.input = "sample_tokens"}
//       CHECK:   %[[E:.*]] = nn.embedding {{.*}} : (tensor<1x2xi32>, tensor<2x8xf32>) -> tensor<1x2x8xf32>
//  CHECK-NEXT:   %[[P:.*]] = nn.add_positions %[[E]], %{{.*}} : (tensor<1x2x8xf32>, tensor<2x8xf32>) -> tensor<1x2x8xf32>
//  CHECK-NEXT:   %[[N:.*]], %{{.*}} = nn.rms_norm {{.*}} -> (tensor<1x2x8xf32>, tensor<1x2xf32>)
//  CHECK-NEXT:   %[[S:.*]] = nn.scores {{.*}} -> tensor<1x2x2x2xf32>
//  CHECK-NEXT:   %[[SM:.*]] = nn.softmax %[[S]] : tensor<1x2x2x2xf32>
//  CHECK-NEXT:   %[[CTX:.*]] = nn.context %[[SM]], %[[N]] {{.*}} -> tensor<1x2x8xf32>
//  CHECK-NEXT:   nn.take_position %[[CTX]], %{{.*}} : (tensor<1x2x8xf32>, tensor<1xi32>) -> tensor<1x8xf32>
func.func @forward(%tokens: tensor<2x2xi32> {nn.input = "tokens"},
                   %targets: tensor<2x2xi32> {nn.input = "targets"},
                   %rng: tensor<4xi32> {nn.input = "rng"},
                   %w: tensor<2x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>},
                   %g: tensor<8xf32> {nn.parameter = #nn.parameter<name = "g", init = ones>}) -> tensor<f32> {
  %e = nn.embedding %tokens, %w : (tensor<2x2xi32>, tensor<2x8xf32>) -> tensor<2x2x8xf32>
  %x = nn.add_positions %e, %w : (tensor<2x2x8xf32>, tensor<2x8xf32>) -> tensor<2x2x8xf32>
  %n, %rstd = nn.rms_norm %x, %g eps 1.0e-06 : (tensor<2x2x8xf32>, tensor<8xf32>) -> (tensor<2x2x8xf32>, tensor<2x2xf32>)
  %s = nn.scores %n, %n heads 2 scale 0.5 : (tensor<2x2x8xf32>, tensor<2x2x8xf32>) -> tensor<2x2x2x2xf32>
  %p = nn.softmax %s : tensor<2x2x2x2xf32>
  %pd = nn.dropout %p, %rng rate 0.1 stream 0 : (tensor<2x2x2x2xf32>, tensor<4xi32>) -> tensor<2x2x2x2xf32>
  %ctx = nn.context %pd, %n heads 2 scale 1.0 : (tensor<2x2x2x2xf32>, tensor<2x2x8xf32>) -> tensor<2x2x8xf32>
  %logits = nn.linear %ctx, %w out_in {nn.scope = #nn.scope<module = "head", value = "logits">}
    : (tensor<2x2x8xf32>, tensor<2x8xf32>) -> tensor<2x2x2xf32>
  %losses, %lse = nn.cross_entropy %logits, %targets
    : (tensor<2x2x2xf32>, tensor<2x2xi32>) -> (tensor<2x2xf32>, tensor<2x2xf32>)
  %loss = nn.mean %losses : (tensor<2x2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// What is learned for each text of the batch leaves no model of one text.

// CHECK-LABEL: func.func @evaluate(
//   CHECK-NOT: func.func @sample
func.func @forward(%tokens: tensor<2x4xi32> {nn.input = "tokens"},
                   %targets: tensor<2x4xi32> {nn.input = "targets"},
                   %x: tensor<2x4x8xf32> {nn.parameter = #nn.parameter<name = "x", init = zeros>},
                   %w: tensor<7x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<f32> {
  %e = nn.embedding %tokens, %w : (tensor<2x4xi32>, tensor<7x8xf32>) -> tensor<2x4x8xf32>
  %y = nn.add %e, %x : tensor<2x4x8xf32>
  %logits = nn.linear %y, %w out_in {nn.scope = #nn.scope<module = "head", value = "logits">}
    : (tensor<2x4x8xf32>, tensor<7x8xf32>) -> tensor<2x4x7xf32>
  %losses, %lse = nn.cross_entropy %logits, %targets
    : (tensor<2x4x7xf32>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  %loss = nn.mean %losses : (tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A term of training alone is not in the loss of validation, nor what it needs.

// CHECK-LABEL: func.func @evaluate(
//  CHECK-SAME:   %[[TARGETS:[^:]*]]: tensor<2x4xi32> {nn.input = "targets"},
//  CHECK-SAME:   %[[X:[^:]*]]: tensor<2x4x7xf32> {nn.parameter = #nn.parameter<name = "x", init = zeros>})
//  CHECK-NEXT:   %[[LOSSES:[^,]*]], %{{.*}} = nn.cross_entropy %[[X]], %[[TARGETS]]
//  CHECK-NEXT:   %[[LOSS:.*]] = nn.mean %[[LOSSES]]
//  CHECK-NEXT:   return %[[LOSS]]
func.func @forward(%targets: tensor<2x4xi32> {nn.input = "targets"},
                   %x: tensor<2x4x7xf32> {nn.parameter = #nn.parameter<name = "x", init = zeros>},
                   %y: tensor<2x3x7xf32> {nn.parameter = #nn.parameter<name = "y", init = zeros>}) -> tensor<f32> {
  %losses, %lse = nn.cross_entropy %x, %targets : (tensor<2x4x7xf32>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  %loss = nn.mean %losses : (tensor<2x4xf32>) -> tensor<f32>
  %further = nn.crop_positions %targets from 1 : (tensor<2x4xi32>) -> tensor<2x3xi32>
  %more, %m = nn.cross_entropy %y, %further : (tensor<2x3x7xf32>, tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %term = nn.mean %more : (tensor<2x3xf32>) -> tensor<f32>
  %sum = nn.training_term %loss, %term by 1.0e-01 : tensor<f32>
  return %sum : tensor<f32>
}
