// A chunk returns what it measures, and each stage adds up what all of them do: zero
// where it has no part. Terms of the loss begin their gradient where they are made, and
// are added once a step, in the order of the model, whichever stages have them.

// RUN: split-file %s %t
// RUN: reprise-opt %t/layers.mlir --reprise-cut-chunks='stages=2' | FileCheck %s --check-prefix=CUT
// DEFINE: %{unroll} = reprise-opt --pass-pipeline='builtin.module(reprise-cut-chunks{stages=2},reprise-make-schedule{stages=2 border-bytes=64},builtin.module(reprise-differentiate),reprise-unroll-stages,builtin.module(reprise-add-optimizer))'
// RUN: %{unroll} %t/layers.mlir | FileCheck %s

// CUT-LABEL: module @chunk0
//       CUT:   -> (tensor<1x4x4xf32> {nn.output = "border"}, tensor<f32> {nn.measure = "z.layer0", nn.term = "z"}, tensor<4xf32> {nn.measure = "rows0"})
//       CUT:   %[[X:.*]] = nn.add {{.*}}layer = 0
//       CUT:   %[[Z:.*]] = nn.mean %[[X]] {{.*}}"z0"
//       CUT:   return %[[X]], %[[Z]], %{{.*}}
// CUT-LABEL: module @chunk1
//       CUT:   -> (tensor<f32>, tensor<f32> {nn.measure = "z.layer1", nn.term = "z"})
//       CUT:   return %{{.*}}, %[[Z:.*]] :

// CHECK-LABEL: module @stage0
//  CHECK-SAME:   nn.measures = ["z.layer0", "z.layer1", "rows0"]
//       CHECK:   %[[L:[^:]*]]: tensor<f32> {nn.input = "loss_sum"}, %[[M0:[^:]*]]: tensor<f32> {nn.measure = "z.layer0"}, %[[M1:[^:]*]]: tensor<f32> {nn.measure = "z.layer1"}, %[[ROWS:[^:]*]]: tensor<4xf32> {nn.measure = "rows0"}, %[[TOTAL:[^:]*]]: tensor<f32> {nn.measure = "z"}
//       CHECK:   nn.forward
//       CHECK:   %[[Z:.*]] = nn.mean {{.*}}"z0"
//       CHECK:   %[[SCALED:.*]] = nn.scale %[[Z]] by 1.000000e+00
//       CHECK:   %[[SUM0:.*]] = nn.accumulate %[[M0]], %[[SCALED]]
//       CHECK:   %[[SUM:.*]] = nn.accumulate %[[ROWS]], %{{.*}}
//       CHECK:   %[[BACK:.*]] = nn.receive
//       CHECK:   nn.backward
//       CHECK:   nn.add %[[BACK]], %{{.*}} {{.*}}"z0"
//       CHECK:   nn.update
//       CHECK:   %[[ALL:.*]]:5 = nn.all_reduce %[[L]], %[[SUM0]], %[[M1]], %[[SUM]], %[[TOTAL]] over "pp"
//       CHECK:   %[[TERMS:.*]] = nn.add %[[ALL]]#1, %[[ALL]]#2
//       CHECK:   %[[SHOWN:.*]] = nn.accumulate %[[ALL]]#4, %[[TERMS]]
//       CHECK:   %[[LOSS:.*]] = nn.accumulate %[[ALL]]#0, %[[TERMS]]
//       CHECK:   nn.clip_scale %{{.*}} with %[[LOSS]]
//       CHECK:   return %[[LOSS]], %[[ALL]]#1, %[[ALL]]#2, %[[ALL]]#3, %[[SHOWN]],

// CHECK-LABEL: module @stage1
//       CHECK:   nn.update
//       CHECK:   nn.all_reduce %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} over "pp" {{.*}} : tensor<f32>, tensor<f32>, tensor<f32>, tensor<4xf32>, tensor<f32>
//--- layers.mlir
module attributes {nn.mesh = #nn.mesh<pp = 2>, nn.train = {adam_beta1 = 9.0e-01 : f64, adam_beta2 = 9.5e-01 : f64, adam_eps = 1.0e-08 : f64,
                                                           weight_decay = 0.0 : f64, clip_grad = 1.0 : f64}} {
func.func @forward(%ids: tensor<1x4xi32> {nn.input = "tokens"}, %t: tensor<3x4xf32> {nn.parameter = #nn.parameter<name = "t", init = zeros>},
                   %a: tensor<1x4x4xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros>},
                   %b: tensor<1x4x4xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>})
    -> (tensor<f32>, tensor<f32> {nn.measure = "z.layer0", nn.term = "z"}, tensor<f32> {nn.measure = "z.layer1", nn.term = "z"}, tensor<4xf32> {nn.measure = "rows0"})
    attributes {nn.micro_batches = 1} {
  %x = nn.embedding %ids, %t : (tensor<1x4xi32>, tensor<3x4xf32>) -> tensor<1x4x4xf32>
  %0 = nn.add %x, %a {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "y">} : tensor<1x4x4xf32>
  %ids0 = nn.choose_experts %0 {nn.scope = #nn.scope<layer = 0, module = "moe", value = "id">} : (tensor<1x4x4xf32>) -> tensor<1x4x2xi32>
  %1 = nn.add %0, %b {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "y">} : tensor<1x4x4xf32>
  %z0 = nn.mean %0 {nn.scope = #nn.scope<module = "loss", value = "z0">} : (tensor<1x4x4xf32>) -> tensor<f32>
  %z1 = nn.mean %1 {nn.scope = #nn.scope<module = "loss", value = "z1">} : (tensor<1x4x4xf32>) -> tensor<f32>
  %n = nn.count_choices %ids0 {nn.scope = #nn.scope<module = "loss", value = "n">} : (tensor<1x4x2xi32>) -> tensor<4xf32>
  %loss = nn.mean %1 {nn.scope = #nn.scope<module = "loss", value = "loss">} : (tensor<1x4x4xf32>) -> tensor<f32>
  return %loss, %z0, %z1, %n : tensor<f32>, tensor<f32>, tensor<f32>, tensor<4xf32>
}
}

// What is measured of parameters alone, and a parameter itself, the last chunk returns.

// RUN: reprise-opt %t/parameters.mlir --reprise-cut-chunks='stages=2' | FileCheck %s --check-prefix=PARAMETERS
// RUN: %{unroll} %t/parameters.mlir | FileCheck %s --check-prefix=STEP
// PARAMETERS-LABEL: module @chunk0
//   PARAMETERS-NOT:   nn.measure =
// PARAMETERS-LABEL: module @chunk1
//       PARAMETERS:   %[[W:[^:]*]]: tensor<4xf32> {{{[^}]*}}name = "w", {{.*}} -> (tensor<f32>, tensor<f32> {nn.measure = "mean"}, tensor<4xf32> {nn.measure = "itself"})
//       PARAMETERS:   %[[MEAN:.*]] = nn.mean %[[W]]
//       PARAMETERS:   return %{{.*}}, %[[MEAN]], %[[W]]
// STEP-LABEL: module @stage1
//       STEP:   nn.mean %{{.*}} : (tensor<4xf32>)
//       STEP:   nn.update

//--- parameters.mlir
module attributes {nn.mesh = #nn.mesh<pp = 2>, nn.train = {adam_beta1 = 9.0e-01 : f64, adam_beta2 = 9.5e-01 : f64, adam_eps = 1.0e-08 : f64,
                                                           weight_decay = 0.0 : f64, clip_grad = 1.0 : f64}} {
func.func @forward(%ids: tensor<1x4xi32> {nn.input = "tokens"}, %t: tensor<3x4xf32> {nn.parameter = #nn.parameter<name = "t", init = zeros>},
                   %a: tensor<1x4x4xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros>},
                   %w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros, frozen = true>})
    -> (tensor<f32>, tensor<f32> {nn.measure = "mean"}, tensor<4xf32> {nn.measure = "itself"})
    attributes {nn.micro_batches = 1} {
  %mean = nn.mean %w {nn.scope = #nn.scope<module = "loss", value = "mean">} : (tensor<4xf32>) -> tensor<f32>
  %x = nn.embedding %ids, %t : (tensor<1x4xi32>, tensor<3x4xf32>) -> tensor<1x4x4xf32>
  %0 = nn.add %x, %a {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "y">} : tensor<1x4x4xf32>
  %1 = nn.add %0, %a {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "y">} : tensor<1x4x4xf32>
  %loss = nn.mean %1 {nn.scope = #nn.scope<module = "loss", value = "loss">} : (tensor<1x4x4xf32>) -> tensor<f32>
  return %loss, %mean, %w : tensor<f32>, tensor<f32>, tensor<4xf32>
}
}
