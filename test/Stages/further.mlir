// What predicts further tokens is in the last chunk, with the embedding of the targets:
// the first and the last chunk have the table. Of a layout it is an m.

// RUN: reprise-opt %s --reprise-cut-chunks='stages=2 layout=Et|mL' | FileCheck %s
// RUN: reprise-opt %s --reprise-cut-chunks='stages=2 layers=1,1' | FileCheck %s
// RUN: not reprise-opt %s --reprise-cut-chunks='stages=2 layout=Etm|L' 2>&1 | FileCheck %s --check-prefix=ELSEWHERE
// RUN: not reprise-opt %s --reprise-cut-chunks='stages=2 layout=E|mtL' 2>&1 | FileCheck %s --check-prefix=BEFORE

// CHECK-LABEL: module @chunk0
//       CHECK:   nn.parameter = #nn.parameter<name = "table"
//   CHECK-NOT:   nn.input = "targets"
//   CHECK-NOT:   "e1"
// CHECK-LABEL: module @chunk1
//       CHECK:   nn.input = "targets"{{.*}}nn.parameter = #nn.parameter<name = "table"
//       CHECK:   nn.embedding {{.*}}"e1"
//       CHECK:   nn.add {{.*}}layer = 1
//       CHECK:   nn.crop_positions {{.*}}"targets1"

// ELSEWHERE: error: needs each m behind all t, in the chunk of L, but got 'Etm|L'
// BEFORE: error: needs each m behind all t, in the chunk of L, but got 'E|mtL'
func.func @forward(%ids: tensor<1x4xi32> {nn.input = "tokens"}, %targets: tensor<1x4xi32> {nn.input = "targets"},
                   %t: tensor<3x4xf32> {nn.parameter = #nn.parameter<name = "table", init = zeros>},
                   %a: tensor<1x4x4xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros>}) -> tensor<f32> {
  %x = nn.embedding %ids, %t {nn.scope = #nn.scope<module = "embedding", value = "e">} : (tensor<1x4xi32>, tensor<3x4xf32>) -> tensor<1x4x4xf32>
  %0 = nn.add %x, %a {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "y">} : tensor<1x4x4xf32>
  %e = nn.embedding %targets, %t {nn.scope = #nn.scope<module = "embedding", value = "e1">} : (tensor<1x4xi32>, tensor<3x4xf32>) -> tensor<1x4x4xf32>
  %1 = nn.add %0, %e {nn.scope = #nn.scope<layer = 1, module = "mtp", value = "y">} : tensor<1x4x4xf32>
  %some = nn.crop_positions %1 from 0 {nn.scope = #nn.scope<module = "head", value = "nfc1">} : (tensor<1x4x4xf32>) -> tensor<1x3x4xf32>
  %further = nn.crop_positions %targets from 1 {nn.scope = #nn.scope<module = "loss", value = "targets1">} : (tensor<1x4xi32>) -> tensor<1x3xi32>
  %losses, %lse = nn.cross_entropy %some, %further {nn.scope = #nn.scope<module = "loss", value = "losses1">} : (tensor<1x3x4xf32>, tensor<1x3xi32>) -> (tensor<1x3xf32>, tensor<1x3xf32>)
  %loss = nn.mean %losses {nn.scope = #nn.scope<module = "loss", value = "loss">} : (tensor<1x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
