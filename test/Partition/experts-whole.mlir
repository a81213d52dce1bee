// RUN: reprise-opt %s -split-input-file --reprise-annotate-layout=sequence-parallel --reprise-partition | FileCheck %s
// RUN: reprise-opt %s -split-input-file --reprise-annotate-layout --reprise-partition | FileCheck %s --check-prefix=ALL
// RUN: reprise-opt %s -split-input-file --reprise-annotate-layout=sequence-parallel --reprise-partition --reprise-partition-experts | FileCheck %s --check-prefix=SENT
// RUN: reprise-opt %s -split-input-file --reprise-annotate-layout=sequence-parallel | FileCheck %s --check-prefix=WORDS

// Ranks along tp have whole experts, some each: the mesh says so by neighbours along
// ep that are neighbours along tp. A rank chooses for its own positions and has their
// rows; of what is counted it has a part of the sum. The shared expert is cut as other
// linears are, so that its sums meet by themselves.

// CHECK-LABEL: func.func @forward(
//  CHECK-SAME:   tensor<2x4x8xf32> {
//  CHECK-SAME:   %[[WR:[^:]*]]: tensor<4x8xf32> {nn.layout = #nn.layout<tp = R>
//  CHECK-SAME:   %[[WG:[^:]*]]: tensor<4x6x8xf32> {nn.layout = #nn.layout<tp = R>
//  CHECK-SAME:   %[[WD:[^:]*]]: tensor<4x8x6xf32> {nn.layout = #nn.layout<tp = R>
//  CHECK-SAME:   %[[SG:[^:]*]]: tensor<5x8xf32> {nn.layout = #nn.layout<tp = S(0)>
//       CHECK:   %[[N:.*]] = nn.add {{.*}} : tensor<2x2x8xf32>
//  CHECK-NEXT:   %[[R:.*]] = nn.linear %[[N]], %[[WR]] out_in : {{.*}} -> tensor<2x2x4xf32>
//  CHECK-NEXT:   %[[ID:.*]] = nn.choose_experts %[[R]] : (tensor<2x2x4xf32>) -> tensor<2x2x2xi32>
//  CHECK-NEXT:   %[[W:.*]] = nn.expert_weights %[[R]], %[[ID]] normalized : {{.*}} -> tensor<2x2x2xf32>
//  CHECK-NEXT:   %[[O:.*]], %[[P:.*]], %[[E:.*]] = nn.sort_rows %[[ID]] : (tensor<2x2x2xi32>) -> (tensor<8xi32>, tensor<2x2x2xi32>, tensor<5xi32>)
//  CHECK-NEXT:   %[[PW:.*]] = nn.permute %[[W]], %[[O]], %[[P]] : {{.*}} -> tensor<8xf32>
//  CHECK-NEXT:   %[[G:.*]] = nn.grouped_linear %[[N]], %[[WG]], %[[E]] rows %[[O]], %[[P]] : {{.*}} -> tensor<8x6xf32>
//  CHECK-NEXT:   %[[H:.*]] = nn.weighted_swiglu %[[G]], %[[G]], %[[PW]] : (tensor<8x6xf32>
//  CHECK-NEXT:   %[[Y:.*]] = nn.grouped_linear %[[H]], %[[WD]], %[[E]] : {{.*}} -> tensor<8x8xf32>
//  CHECK-NEXT:   %[[YC:.*]] = nn.combine %[[Y]], %[[O]], %[[P]] : {{.*}} -> tensor<2x2x8xf32>
//  CHECK-NEXT:   %[[ALLN:.*]] = nn.all_gather %[[N]] to R over "tp" dim 1
//       CHECK:   %[[YS:.*]] = nn.reduce_scatter {{.*}} over "tp" dim 1
//  CHECK-NEXT:   nn.add %[[YC]], %[[YS]] : tensor<2x2x8xf32>
//       CHECK:   %[[C:.*]] = nn.count_rows %[[E]] : (tensor<5xi32>) -> tensor<4xf32>
//  CHECK-NEXT:   %[[ROWS:.*]] = nn.all_reduce %[[C]] over "tp" : tensor<4xf32>
//  CHECK-NEXT:   %[[CS:.*]] = nn.count_choices %[[ID]] : (tensor<2x2x2xi32>) -> tensor<2x4xf32>
//  CHECK-NEXT:   nn.all_reduce %[[CS]] over "tp" : tensor<2x4xf32>
//  CHECK-NEXT:   %[[RA:.*]] = nn.all_gather %[[R]] to I over "tp" dim 1 : {{.*}} -> tensor<2x4x4xf32>
//  CHECK-NEXT:   nn.expected_rows %[[RA]], %[[ROWS]]

// Without parts of the residual stream experts are told of a rank's own positions all
// the same, and what they make is gathered.

// ALL-LABEL: func.func @forward(
//  ALL-SAME:   %[[WR:[^:]*]]: tensor<4x8xf32> {nn.layout = #nn.layout<tp = I>
//  ALL-SAME:   tensor<4x6x8xf32> {nn.layout = #nn.layout<tp = R>
//       ALL:   %[[N:.*]] = nn.add {{.*}} : tensor<2x4x8xf32>
//  ALL-NEXT:   %[[R:.*]] = nn.linear %[[N]], %[[WR]] out_in : {{.*}} -> tensor<2x4x4xf32>
//  ALL-NEXT:   %[[OWN:.*]] = nn.slice %[[R]] over "tp" dim 1 : {{.*}} -> tensor<2x2x4xf32>
//  ALL-NEXT:   nn.choose_experts %[[OWN]]
//       ALL:   %[[X:.*]] = nn.slice %[[N]] over "tp" dim 1 : {{.*}} -> tensor<2x2x8xf32>
//  ALL-NEXT:   nn.grouped_linear %[[X]]
//       ALL:   %[[YC:.*]] = nn.combine {{.*}} -> tensor<2x2x8xf32>
//  ALL-NEXT:   nn.all_gather %[[YC]] to I over "tp" dim 1 : {{.*}} -> tensor<2x4x8xf32>

// Rows go to the ranks of their experts, of both axes.

// SENT-LABEL: func.func @forward(
//  SENT-SAME:   tensor<1x6x8xf32> {nn.layout = #nn.layout<ep = S(0)>
//  SENT-SAME:   tensor<1x8x6xf32> {nn.layout = #nn.layout<ep = S(0)>
//       SENT:   nn.gather_offsets {{.*}} over "ep" : (tensor<5xi32>) -> (tensor<4x5xi32>, tensor<2xi32>)
//       SENT:   nn.send_rows {{.*}} over "ep" : (tensor<8x8xf32>, tensor<4x5xi32>) -> tensor<16x8xf32>
//       SENT:   nn.return_rows {{.*}} over "ep" : (tensor<16x8xf32>, tensor<4x5xi32>) -> tensor<8x8xf32>

// WORDS-LABEL: func.func @forward(
//       WORDS:   nn.choose_experts {{.*}} {nn.layout = #nn.layout<tp = S(1)>}
//       WORDS:   nn.sort_rows {{.*}} {nn.layout = #nn.layout<tp = V>}
//       WORDS:   nn.grouped_linear {{.*}} {nn.layout = #nn.layout<tp = V>}
//       WORDS:   nn.combine {{.*}} {nn.layout = #nn.layout<tp = S(1)>}
//       WORDS:   nn.count_rows {{.*}} {nn.layout = #nn.layout<tp = I>}
module attributes {nn.mesh = #nn.mesh<dp = 2, tp = 2, ep = 4 step 1>} {
func.func @forward(%a: tensor<2x4x8xf32>,
                   %wr: tensor<4x8xf32> {nn.parameter = #nn.parameter<name = "wr", init = zeros>},
                   %wg: tensor<4x6x8xf32> {nn.parameter = #nn.parameter<name = "wg", init = zeros>},
                   %wd: tensor<4x8x6xf32> {nn.parameter = #nn.parameter<name = "wd", init = zeros>},
                   %sg: tensor<10x8xf32> {nn.parameter = #nn.parameter<name = "sg", init = zeros>},
                   %sd: tensor<8x10xf32> {nn.parameter = #nn.parameter<name = "sd", init = zeros>},
                   %w0: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "w0", init = zeros>},
                   %w1: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "w1", init = zeros>})
    -> (tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %b = nn.linear %a, %w0 out_in : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %c = nn.gelu %b tanh : tensor<2x4x8xf32>
  %d = nn.linear %c, %w1 out_in : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
  %n = nn.add %a, %d : tensor<2x4x8xf32>
  %r = nn.linear %n, %wr out_in : (tensor<2x4x8xf32>, tensor<4x8xf32>) -> tensor<2x4x4xf32>
  %id = nn.choose_experts %r : (tensor<2x4x4xf32>) -> tensor<2x4x2xi32>
  %w = nn.expert_weights %r, %id normalized : (tensor<2x4x4xf32>, tensor<2x4x2xi32>) -> tensor<2x4x2xf32>
  %o, %p, %e = nn.sort_rows %id : (tensor<2x4x2xi32>) -> (tensor<16xi32>, tensor<2x4x2xi32>, tensor<5xi32>)
  %pw = nn.permute %w, %o, %p : (tensor<2x4x2xf32>, tensor<16xi32>, tensor<2x4x2xi32>) -> tensor<16xf32>
  %g = nn.grouped_linear %n, %wg, %e rows %o, %p
    : (tensor<2x4x8xf32>, tensor<4x6x8xf32>, tensor<5xi32>, tensor<16xi32>, tensor<2x4x2xi32>) -> tensor<16x6xf32>
  %h = nn.weighted_swiglu %g, %g, %pw : (tensor<16x6xf32>, tensor<16x6xf32>, tensor<16xf32>) -> tensor<16x6xf32>
  %y = nn.grouped_linear %h, %wd, %e : (tensor<16x6xf32>, tensor<4x8x6xf32>, tensor<5xi32>) -> tensor<16x8xf32>
  %yc = nn.combine %y, %o, %p : (tensor<16x8xf32>, tensor<16xi32>, tensor<2x4x2xi32>) -> tensor<2x4x8xf32>
  %su = nn.linear %n, %sg out_in : (tensor<2x4x8xf32>, tensor<10x8xf32>) -> tensor<2x4x10xf32>
  %s = nn.gelu %su tanh : tensor<2x4x10xf32>
  %ys = nn.linear %s, %sd out_in : (tensor<2x4x10xf32>, tensor<8x10xf32>) -> tensor<2x4x8xf32>
  %both = nn.add %yc, %ys : tensor<2x4x8xf32>
  %x = nn.add %n, %both : tensor<2x4x8xf32>
  %rows = nn.count_rows %e : (tensor<5xi32>) -> tensor<4xf32>
  %each = nn.count_choices %id : (tensor<2x4x2xi32>) -> tensor<2x4xf32>
  %t = nn.expected_rows %r, %rows : (tensor<2x4x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %x, %t, %each : tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}
}
