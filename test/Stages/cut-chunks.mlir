// A module for each chunk, with what it reads, and one value that crosses.
// RUN: reprise-opt %s -reprise-cut-chunks='stages=2 layout=Et|ttL' | FileCheck %s
// RUN: reprise-opt %s -reprise-cut-chunks='stages=2 layers=1,2' | FileCheck %s
// RUN: reprise-opt %s -reprise-cut-chunks='stages=3' | FileCheck %s -check-prefix=THREE
// RUN: reprise-opt %s -reprise-cut-chunks='stages=2 virtual-stages=2 layout=E|t|tt|L' | FileCheck %s -check-prefix=ENDS
// RUN: reprise-opt %s -reprise-cut-chunks | FileCheck %s -check-prefix=ONE
// RUN: reprise-opt %s -pass-pipeline='builtin.module(reprise-cut-chunks{stages=2 layers=1,2},builtin.module(reprise-differentiate))' | FileCheck %s -check-prefix=STEP

#scope0 = #nn.scope<layer = 0, module = "mlp", value = "x">
#scope1 = #nn.scope<layer = 1, module = "mlp", value = "x">
#scope2 = #nn.scope<layer = 2, module = "mlp", value = "x">

module attributes {nn.train = {clip_grad = 1.0}} {
  func.func @forward(%ids: tensor<2x4xi32> {nn.input = "tokens"}, %targets: tensor<2x4xi32> {nn.input = "targets"}, %rng: tensor<4xi32> {nn.input = "rng"},
                     %table: tensor<7x8xf32> {nn.parameter = #nn.parameter<name = "table", init = zeros>},
                     %a: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros>},
                     %b: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>},
                     %c: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "c", init = zeros>}) -> tensor<f32>
      attributes {nn.micro_batches = 3 : i64} {
    %double = nn.scale %b by 2.0 : tensor<8x8xf32>
    %e = nn.embedding %ids, %table : (tensor<2x4xi32>, tensor<7x8xf32>) -> tensor<2x4x8xf32>
    %x0 = nn.linear %e, %a in_out {nn.scope = #scope0} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %y1 = nn.linear %x0, %double in_out {nn.scope = #scope1} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %x1 = nn.add %x0, %y1 {nn.scope = #scope1} : tensor<2x4x8xf32>
    %x2 = nn.linear %x1, %c in_out {nn.scope = #scope2} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %logits = nn.linear %x2, %table out_in : (tensor<2x4x8xf32>, tensor<7x8xf32>) -> tensor<2x4x7xf32>
    %losses, %lse = nn.cross_entropy %logits, %targets : (tensor<2x4x7xf32>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
    %loss = nn.mean %losses : (tensor<2x4xf32>) -> tensor<f32>
    return %loss : tensor<f32>
  }
}

// Both ends have the table. What is made of a parameter alone is where it is
// read. The first chunk has the inputs that nothing reads.
//
// CHECK-LABEL: module attributes {nn.gradient_counts = array<i64: 4, 0, 0, 0, 0>, nn.train
// CHECK:       module @chunk0 attributes {nn.gradient_counts = array<i64: 4, 0, 0, 0, 0>, nn.train = {clip_grad = 1.0
// CHECK-NEXT:    func.func @forward(%[[IDS:.*]]: tensor<2x4xi32> {nn.input = "tokens"}, %{{.*}}: tensor<4xi32> {nn.input = "rng"}, %[[TABLE:.*]]: tensor<7x8xf32> {{.*}}"table"{{.*}}, %[[A:.*]]: tensor<8x8xf32> {{.*}}"a"
// CHECK-SAME:      -> (tensor<2x4x8xf32> {nn.output = "border"}) attributes {nn.micro_batches = 3 : i64}
// CHECK-NEXT:      %[[E:.*]] = nn.embedding %[[IDS]], %[[TABLE]]
// CHECK-NEXT:      %[[X0:.*]] = nn.linear %[[E]], %[[A]]
// CHECK-NEXT:      return %[[X0]]
// CHECK:       module @chunk1 attributes {nn.gradient_counts = array<i64: 4, 0, 0, 0, 0>, nn.train = {clip_grad = 1.0
// CHECK-NEXT:    func.func @forward(%[[TARGETS:[a-z0-9]*]]: tensor<2x4xi32> {nn.input = "targets"}, %{{.*}}"table"{{.*}}"b"{{.*}}"c"{{.*}}, %[[BORDER:[a-z0-9]*]]: tensor<2x4x8xf32> {nn.input = "border"}) -> tensor<f32>
// CHECK-NEXT:      %[[DOUBLE:.*]] = nn.scale
// CHECK-NEXT:      %[[Y1:.*]] = nn.linear %[[BORDER]], %[[DOUBLE]]
// CHECK-NEXT:      nn.add %[[BORDER]], %[[Y1]]
// CHECK:           %[[LOSS:.*]] = nn.mean
// CHECK-NEXT:      return %[[LOSS]]
// CHECK-NOT:   module

// THREE:         module @chunk0
// THREE-COUNT-1: nn.linear
// THREE:         module @chunk1
// THREE-NOT:     "table"
// THREE:         nn.add
// THREE-NEXT:    return
// THREE:         module @chunk2

// The first chunk has the embedding alone, the last one head and loss.
//
// ENDS:      module @chunk0
// ENDS:        nn.embedding
// ENDS-NEXT:   return
// ENDS:      module @chunk2
// ENDS:        nn.add
// ENDS-NEXT:   nn.linear
// ENDS-NEXT:   return
// ENDS:      module @chunk3
// ENDS:        nn.linear {{.*}} out_in
// ENDS-NEXT:   nn.cross_entropy

// ONE-NOT: module @

// Each chunk has a backward pass of its own. The loss counts 1/3.
//
// STEP:      module @chunk0
// STEP-NEXT:   func.func @step({{.*}}, %[[DX0:[a-z0-9]*]]: tensor<2x4x8xf32> {nn.input = "border_gradient"},
// STEP-SAME:     ) -> (tensor<2x4x8xf32> {nn.output = "border"}, tensor<7x8xf32> {nn.gradient = "table"}, tensor<8x8xf32> {nn.gradient = "a"})
// STEP:        %[[X0:.*]] = nn.linear
// STEP-NEXT:   nn.backward
// STEP:        nn.linear_backward_weight %{{.*}}, %[[DX0]]
// STEP:        return %[[X0]]
// STEP:      module @chunk1
// STEP-NEXT:   func.func @step({{.*}}, %[[BORDER:[a-z0-9]*]]: tensor<2x4x8xf32> {nn.input = "border"}, %{{.*}}: tensor<f32> {nn.input = "loss_sum"}
// STEP-SAME:     ) -> (tensor<f32> {nn.output = "loss"}, tensor<7x8xf32> {nn.gradient = "table"}, tensor<8x8xf32> {nn.gradient = "b"}, tensor<8x8xf32> {nn.gradient = "c"}, tensor<2x4x8xf32> {nn.output = "border_gradient"})
// STEP:        nn.scale %{{.*}} by 0.333
// STEP:        %[[DX1:.*]] = nn.linear_backward_input
// STEP:        %[[DX:.*]] = nn.add
// STEP:        return %{{.*}}, %[[DX]] :
