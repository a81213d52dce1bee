// Megatron's words for a split, and what is wrong with others.
// RUN: reprise-opt %s -reprise-cut-chunks='stages=2 virtual-stages=2 layout=E|(t,|)*2,L' | FileCheck %s
// RUN: reprise-opt %s -reprise-cut-chunks='stages=2 virtual-stages=2 layout=Et|||tL' | FileCheck %s -check-prefix=HOLLOW
// RUN: not reprise-opt %s -reprise-cut-chunks='stages=2 layout=Et|t' 2>&1 | FileCheck %s -check-prefix=END
// RUN: not reprise-opt %s -reprise-cut-chunks='stages=2 layout=EtE|tL' 2>&1 | FileCheck %s -check-prefix=TWICE
// RUN: not reprise-opt %s -reprise-cut-chunks='stages=2 layout=Et|mtL' 2>&1 | FileCheck %s -check-prefix=MTP
// RUN: not reprise-opt %s -reprise-cut-chunks='stages=2 layout=Et|xL' 2>&1 | FileCheck %s -check-prefix=LETTER
// RUN: not reprise-opt %s -reprise-cut-chunks='stages=2 layout=Et|t*L' 2>&1 | FileCheck %s -check-prefix=TIMES
// RUN: not reprise-opt %s -reprise-cut-chunks='stages=2 layout=E(t|tL' 2>&1 | FileCheck %s -check-prefix=OPEN
// RUN: not reprise-opt %s -reprise-cut-chunks='stages=2 layout=E(t|)*99999tL' 2>&1 | FileCheck %s -check-prefix=MANY
// RUN: not reprise-opt %s -reprise-cut-chunks='stages=2 layout=Et|t|L' 2>&1 | FileCheck %s -check-prefix=CHUNKS
// RUN: not reprise-opt %s -reprise-cut-chunks='stages=2 layout=Et|ttL' 2>&1 | FileCheck %s -check-prefix=LAYERS
// RUN: not reprise-opt %s -reprise-cut-chunks='stages=2 layers=1,1 layout=Et|tL' 2>&1 | FileCheck %s -check-prefix=BOTH

// CHECK:      module @chunk0
// CHECK:        nn.add {{.*}} "e"
// CHECK-NEXT:   return
// CHECK:      module @chunk1
// CHECK:        nn.add {{.*}}layer = 0,
// CHECK-NEXT:   return
// CHECK:      module @chunk2
// CHECK:        nn.add {{.*}}layer = 1,
// CHECK-NEXT:   return
// CHECK:      module @chunk3
// CHECK:        nn.add {{.*}} "f"
// CHECK-NEXT:   nn.mean

// Chunks without layers pass on what they get.
// HOLLOW:      module @chunk0
// HOLLOW:        layer = 0,
// HOLLOW:      module @chunk1
// HOLLOW-NEXT:   func.func @forward(%[[X1:.*]]: tensor<1x4x4xf32> {nn.input = "border"}) -> (tensor<1x4x4xf32> {nn.output = "border"})
// HOLLOW-NEXT:   return %[[X1]]
// HOLLOW:      module @chunk2
// HOLLOW-NEXT:   func.func @forward(%[[X2:.*]]: tensor<1x4x4xf32> {nn.input = "border"}) -> (tensor<1x4x4xf32> {nn.output = "border"})
// HOLLOW-NEXT:   return %[[X2]]
// HOLLOW:      module @chunk3
// HOLLOW:        layer = 1,

// END: error: needs E once, as the first letter, and L once, as the last, but got 'Et|t'
// TWICE: error: needs E once, as the first letter, and L once, as the last, but got 'EtE|tL'
// MTP: error: needs each m behind all t, in the chunk of L, but got 'Et|mtL'
// LETTER: error: needs the letters E, t, m and L, and | between chunks, but got 'x' in 'Et|xL'
// TIMES: error: needs a number behind each '*', but got 'Et|t*L'
// OPEN: error: needs a ')' for each '(', but got 'E(t|tL'
// MANY: error: needs at most 65536 letters in all, but got more in 'E(t|)*99999tL'
// CHUNKS: error: needs a number of layers for each of the 2 chunks, but got 3 numbers
// LAYERS: error: needs chunks of 2 layers in all, but got 3
// BOTH: error: needs 'layers' or 'layout', but got both
func.func @forward(%ids: tensor<1x4xi32> {nn.input = "tokens"}, %t: tensor<3x4xf32> {nn.parameter = #nn.parameter<name = "t", init = zeros>}, %e: tensor<1x4x4xf32> {nn.parameter = #nn.parameter<name = "e", init = zeros>},
                   %a: tensor<1x4x4xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros>},
                   %b: tensor<1x4x4xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>},
                   %f: tensor<1x4x4xf32> {nn.parameter = #nn.parameter<name = "f", init = zeros>}) -> tensor<f32> {
  %x = nn.embedding %ids, %t : (tensor<1x4xi32>, tensor<3x4xf32>) -> tensor<1x4x4xf32>
  %0 = nn.add %x, %e {nn.scope = #nn.scope<module = "embedding", value = "e">} : tensor<1x4x4xf32>
  %1 = nn.add %0, %a {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "y">} : tensor<1x4x4xf32>
  %2 = nn.add %1, %b {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "y">} : tensor<1x4x4xf32>
  %3 = nn.add %2, %f {nn.scope = #nn.scope<module = "head", value = "f">} : tensor<1x4x4xf32>
  %loss = nn.mean %3 : (tensor<1x4x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
