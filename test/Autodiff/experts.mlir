// RUN: reprise-opt %s -split-input-file --pass-pipeline='builtin.module(reprise-derive-inference,reprise-differentiate,canonicalize)' | FileCheck %s

// The gradient of a token's output is read where it is, and no value has a copy
// for each row.

// CHECK-LABEL: func @step(
//       CHECK:   %[[ORDER:.*]], %[[INVERSE:.*]], %[[OFFSETS:.*]] = nn.sort_rows
//       CHECK:   nn.backward
//   CHECK-NOT:   nn.dispatch
//       CHECK:   nn.grouped_linear_backward_weight %{{.*}}, %[[DY:.*]], %[[OFFSETS]] rows of dout %[[ORDER]], %[[INVERSE]]
//       CHECK:   nn.grouped_linear_backward_input %[[DY]], %{{.*}}, %[[OFFSETS]] rows %[[ORDER]], %[[INVERSE]]
//       CHECK:   %[[DGT:.*]], %[[DU:.*]], %[[DWR:.*]] = nn.weighted_swiglu_backward
//   CHECK-NOT:   nn.dispatch
//       CHECK:   nn.permute %[[DWR]], %[[INVERSE]], %[[ORDER]] : (tensor<12xf32>, tensor<3x4x1xi32>, tensor<12xi32>) -> tensor<3x4x1xf32>
//       CHECK:   nn.expert_weights_backward

// Of one text there are as many rows as it has tokens and slots; offsets are one
// more than experts, though these happen to be as many as texts.

// CHECK-LABEL: func @sample(
//       CHECK:   nn.choose_experts %{{.*}} : (tensor<1x4x2xf32>) -> tensor<1x4x1xi32>
//       CHECK:   nn.sort_rows %{{.*}} : (tensor<1x4x1xi32>) -> (tensor<4xi32>, tensor<1x4x1xi32>, tensor<3xi32>)
//       CHECK:   nn.permute %{{.*}} : (tensor<1x4x1xf32>, tensor<4xi32>, tensor<1x4x1xi32>) -> tensor<4xf32>
//       CHECK:   nn.grouped_linear %{{.*}} : (tensor<1x4x6xf32>, tensor<2x8x6xf32>, tensor<3xi32>, tensor<4xi32>, tensor<1x4x1xi32>) -> tensor<4x8xf32>
//       CHECK:   nn.weighted_swiglu %{{.*}} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x8xf32>
//       CHECK:   nn.combine %{{.*}} : (tensor<4x6xf32>, tensor<4xi32>, tensor<1x4x1xi32>) -> tensor<1x4x6xf32>
func.func @forward(%tokens: tensor<3x4xi32> {nn.input = "tokens"}, %targets: tensor<3x4xi32> {nn.input = "targets"},
    %table: tensor<7x6xf32> {nn.parameter = #nn.parameter<name = "table", init = zeros>},
    %router: tensor<2x6xf32> {nn.parameter = #nn.parameter<name = "router", init = zeros>},
    %gate: tensor<2x8x6xf32> {nn.parameter = #nn.parameter<name = "gate", init = zeros>},
    %down: tensor<2x6x8xf32> {nn.parameter = #nn.parameter<name = "down", init = zeros>}) -> tensor<f32> {
  %x = nn.embedding %tokens, %table : (tensor<3x4xi32>, tensor<7x6xf32>) -> tensor<3x4x6xf32>
  %r = nn.linear %x, %router out_in : (tensor<3x4x6xf32>, tensor<2x6xf32>) -> tensor<3x4x2xf32>
  %ids = nn.choose_experts %r : (tensor<3x4x2xf32>) -> tensor<3x4x1xi32>
  %w = nn.expert_weights %r, %ids : (tensor<3x4x2xf32>, tensor<3x4x1xi32>) -> tensor<3x4x1xf32>
  %order, %inverse, %offsets = nn.sort_rows %ids : (tensor<3x4x1xi32>) -> (tensor<12xi32>, tensor<3x4x1xi32>, tensor<3xi32>)
  %wr = nn.permute %w, %order, %inverse : (tensor<3x4x1xf32>, tensor<12xi32>, tensor<3x4x1xi32>) -> tensor<12xf32>
  %gt = nn.grouped_linear %x, %gate, %offsets rows %order, %inverse
    : (tensor<3x4x6xf32>, tensor<2x8x6xf32>, tensor<3xi32>, tensor<12xi32>, tensor<3x4x1xi32>) -> tensor<12x8xf32>
  %g = nn.weighted_swiglu %gt, %gt, %wr : (tensor<12x8xf32>, tensor<12x8xf32>, tensor<12xf32>) -> tensor<12x8xf32>
  %yr = nn.grouped_linear %g, %down, %offsets : (tensor<12x8xf32>, tensor<2x6x8xf32>, tensor<3xi32>) -> tensor<12x6xf32>
  %y = nn.combine %yr, %order, %inverse : (tensor<12x6xf32>, tensor<12xi32>, tensor<3x4x1xi32>) -> tensor<3x4x6xf32>
  %logits = nn.linear %y, %table out_in {nn.scope = #nn.scope<module = "head", value = "logits">} : (tensor<3x4x6xf32>, tensor<7x6xf32>) -> tensor<3x4x7xf32>
  %losses, %lse = nn.cross_entropy %logits, %targets : (tensor<3x4x7xf32>, tensor<3x4xi32>) -> (tensor<3x4xf32>, tensor<3x4xf32>)
  %loss = nn.mean %losses : (tensor<3x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
