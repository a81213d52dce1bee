// Values of several types cross borders: sums over layers beside hidden states, and
// what is made of them behind the last layer that adds to them. Those that depend on
// nothing that is trained have no gradient. Values of one type have a lane, and their
// gradients another.
// RUN: reprise-opt %s -reprise-cut-chunks | FileCheck %s
// RUN: reprise-opt %s -pass-pipeline='builtin.module(reprise-derive-inference,reprise-cut-chunks,reprise-make-schedule,builtin.module(reprise-differentiate),reprise-unroll-stages)' | FileCheck %s -check-prefix=STAGES
// RUN: reprise-opt %s -pass-pipeline='builtin.module(reprise-cut-chunks,reprise-make-schedule)' | FileCheck %s -check-prefix=TABLE

#scope0 = #nn.scope<layer = 0, module = "mlp", value = "x">
#scope1 = #nn.scope<layer = 1, module = "mlp", value = "x">
#scope2 = #nn.scope<layer = 2, module = "mlp", value = "x">
#loss = #nn.scope<layer = -1, module = "loss", value = "">

module attributes {nn.mesh = #nn.mesh<pp = 4>, nn.chunk_layers = array<i64: 1, 1, 1, 0>, nn.schedule = "1f1b"} {
  func.func @forward(%ids: tensor<2x4xi32> {nn.input = "tokens"}, %targets: tensor<2x4xi32> {nn.input = "targets"},
                     %table: tensor<7x3xf32> {nn.parameter = #nn.parameter<name = "table", init = zeros, frozen = true>},
                     %a: tensor<3x3xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros>},
                     %b: tensor<3x3xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>},
                     %c: tensor<3x3xf32> {nn.parameter = #nn.parameter<name = "c", init = zeros>}) -> tensor<f32>
      attributes {nn.micro_batches = 2 : i64} {
    %e = nn.embedding %ids, %table : (tensor<2x4xi32>, tensor<7x3xf32>) -> tensor<2x4x3xf32>
    %i0 = nn.choose_experts %e {nn.scope = #scope0} : (tensor<2x4x3xf32>) -> tensor<2x4x2xi32>
    %x0 = nn.linear %e, %a in_out {nn.scope = #scope0} : (tensor<2x4x3xf32>, tensor<3x3xf32>) -> tensor<2x4x3xf32>
    %x1 = nn.linear %x0, %b in_out {nn.scope = #scope1} : (tensor<2x4x3xf32>, tensor<3x3xf32>) -> tensor<2x4x3xf32>
    %i1 = nn.choose_experts %x1 {nn.scope = #scope1} : (tensor<2x4x3xf32>) -> tensor<2x4x2xi32>
    %x2 = nn.linear %x1, %c in_out {nn.scope = #scope2} : (tensor<2x4x3xf32>, tensor<3x3xf32>) -> tensor<2x4x3xf32>
    %n0 = nn.count_choices %i0 {nn.scope = #loss} : (tensor<2x4x2xi32>) -> tensor<3xf32>
    %s0 = nn.row_logsumexp %e {nn.scope = #loss} : (tensor<2x4x3xf32>) -> tensor<2x4xf32>
    %p0 = nn.sum_probabilities %e, %s0 {nn.scope = #loss} : (tensor<2x4x3xf32>, tensor<2x4xf32>) -> tensor<3xf32>
    %n1 = nn.count_choices %i1 {nn.scope = #loss} : (tensor<2x4x2xi32>) -> tensor<3xf32>
    %n = nn.add %n0, %n1 {nn.scope = #loss} : tensor<3xf32>
    %s1 = nn.row_logsumexp %x1 {nn.scope = #loss} : (tensor<2x4x3xf32>) -> tensor<2x4xf32>
    %p1 = nn.sum_probabilities %x1, %s1 {nn.scope = #loss} : (tensor<2x4x3xf32>, tensor<2x4xf32>) -> tensor<3xf32>
    %p = nn.add %p0, %p1 {nn.scope = #loss} : tensor<3xf32>
    %aux = nn.balance_loss %n, %p by 0.5 {nn.scope = #loss} : (tensor<3xf32>, tensor<3xf32>) -> tensor<f32>
    %losses, %lse = nn.cross_entropy %x2, %targets : (tensor<2x4x3xf32>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
    %lm = nn.mean %losses : (tensor<2x4xf32>) -> tensor<f32>
    %all = nn.add %lm, %aux {nn.scope = #loss} : tensor<f32>
    return %all : tensor<f32>
  }
}

// CHECK-LABEL: module @chunk0
// CHECK:         -> (tensor<2x4x3xf32> {nn.output = "border"}, tensor<3xf32> {nn.output = "border"}, tensor<3xf32> {nn.output = "border"})
// CHECK:         %[[N0:.*]] = nn.count_choices
// CHECK:         %[[P0:.*]] = nn.sum_probabilities
// CHECK-NEXT:    return %{{.*}}, %[[N0]], %[[P0]] :
// CHECK-LABEL: module @chunk1
// CHECK:         %{{[a-z0-9]*}}: tensor<2x4x3xf32> {nn.input = "border"}, %[[N:[a-z0-9]*]]: tensor<3xf32> {nn.input = "border", nn.untrained}, %[[P:[a-z0-9]*]]: tensor<3xf32> {nn.input = "border", nn.untrained})
// CHECK-SAME:      -> (tensor<2x4x3xf32> {nn.output = "border"}, tensor<f32> {nn.output = "border"})
// CHECK:         nn.add %[[N]]
// CHECK:         nn.add %[[P]]
// CHECK-NEXT:    %[[AUX:.*]] = nn.balance_loss
// CHECK-NEXT:    return %{{.*}}, %[[AUX]] :
// CHECK-LABEL: module @chunk2
// CHECK:         %[[AUX:[a-z0-9]*]]: tensor<f32> {nn.input = "border"}) ->
// CHECK:         return %{{.*}}, %[[AUX]] :
// CHECK-LABEL: module @chunk3
// CHECK:         %[[AUX:[a-z0-9]*]]: tensor<f32> {nn.input = "border"}) -> tensor<f32>
// CHECK:         nn.add %{{.*}}, %[[AUX]]

// The first chunk makes sums of what is frozen, and gets no gradient of them.
//
// STAGES-LABEL: module @stage0
// STAGES:         nn.send %{{.*}} to 1 over "pp" lane 0 places 2 : tensor<2x4x3xf32>
// STAGES-NEXT:    nn.send %{{.*}} to 1 over "pp" lane 3 places 4 : tensor<3xf32>
// STAGES-NEXT:    nn.send %{{.*}} to 1 over "pp" lane 3 places 4 : tensor<3xf32>
// STAGES:         nn.receive from 1 over "pp" lane 1 places 2 : tensor<2x4x3xf32>
// STAGES-NOT:     nn.receive {{.*}} tensor<3xf32>
// STAGES:       func.func @evaluate
// STAGES:         nn.send %{{.*}} to 1 over "pp" lane 0 places 2
// STAGES-NEXT:    nn.send %{{.*}} to 1 over "pp" lane 3 places 4
// STAGES-NEXT:    nn.send %{{.*}} to 1 over "pp" lane 3 places 4
// STAGES-LABEL: module @stage1
// STAGES:         nn.receive from 0 over "pp" lane 3 places 4 : tensor<3xf32>
// STAGES:         nn.send %{{.*}} to 2 over "pp" lane 5 places 2 : tensor<f32>
// STAGES:         %[[DAUX:.*]] = nn.receive from 2 over "pp" lane 6 places 2 : tensor<f32>
// STAGES:         nn.balance_loss_backward %{{.*}}, %[[DAUX]]
// STAGES-LABEL: module @stage2
// STAGES:         %[[AUX:.*]] = nn.receive from 1 over "pp" lane 5 places 2 : tensor<f32>
// STAGES:         nn.send %[[AUX]] to 3 over "pp" lane 5 places 2 : tensor<f32>
// STAGES:         %[[DAUX:.*]] = nn.receive from 3 over "pp" lane 6 places 2 : tensor<f32>
// STAGES:         nn.send %[[DAUX]] to 1 over "pp" lane 6 places 2 : tensor<f32>
// STAGES:       func.func @evaluate
// STAGES:         %[[AUX:.*]] = nn.receive from 1 over "pp" lane 5 places 2 : tensor<f32>
// STAGES:         nn.send %[[AUX]] to 3 over "pp" lane 5 places 2 : tensor<f32>

// TABLE:     pipe.send activation chunk 0 micro_batch 0 slot 0 to 1 bytes 120
// TABLE:     pipe.receive gradient chunk 0 micro_batch 0 slot 0 from 1 bytes 96
// TABLE:     pipe.send activation chunk 1 micro_batch 0 slot 0 to 2 bytes 100
// TABLE:     pipe.receive gradient chunk 1 micro_batch 0 slot 0 from 2 bytes 100
// TABLE:     pipe.send gradient chunk 1 micro_batch 0 slot 0 to 0 bytes 96
