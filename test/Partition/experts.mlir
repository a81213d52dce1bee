// RUN: reprise-opt %s --reprise-annotate-layout --reprise-partition | FileCheck %s
// RUN: reprise-opt %s --reprise-annotate-layout=sequence-parallel --reprise-partition | FileCheck %s --check-prefix=SP

// Each expert is cut along its width. Who goes where is decided once, by all ranks
// alike: along the sequence each scores its own positions, and what they have is
// gathered before the choice. What the experts make of a token, and what the shared
// one makes, are added before ranks meet. The weight of a row is that of all of its
// columns.

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
// CHECK-LABEL: func.func @forward(
//  CHECK-SAME:   tensor<2x4x8xf32> {
//  CHECK-SAME:   %[[WR:[^:]*]]: tensor<4x8xf32> {nn.layout = #nn.layout<tp = I>
//  CHECK-SAME:   %[[WG:[^:]*]]: tensor<4x3x8xf32> {nn.layout = #nn.layout<tp = S(1)>
//  CHECK-SAME:   %[[WU:[^:]*]]: tensor<4x3x8xf32> {nn.layout = #nn.layout<tp = S(1)>
//  CHECK-SAME:   %[[WD:[^:]*]]: tensor<4x8x3xf32> {nn.layout = #nn.layout<tp = S(2)>
//  CHECK-SAME:   %[[SG:[^:]*]]: tensor<5x8xf32> {nn.layout = #nn.layout<tp = S(0)>
//       CHECK:   %[[N:.*]] = nn.add
//  CHECK-NEXT:   %[[R:.*]] = nn.linear %[[N]], %[[WR]] out_in : {{.*}} -> tensor<2x4x4xf32>
//  CHECK-NEXT:   %[[ID:.*]] = nn.choose_experts %[[R]]
//  CHECK-NEXT:   %[[W:.*]] = nn.expert_weights %[[R]], %[[ID]]
//  CHECK-NEXT:   %[[O:.*]], %[[P:.*]], %[[E:.*]] = nn.sort_rows %[[ID]]
//  CHECK-NEXT:   %[[PW:.*]] = nn.permute %[[W]]
//  CHECK-NEXT:   %[[X:.*]] = nn.replicate %[[N]] over "tp"
//  CHECK-NEXT:   %[[G:.*]] = nn.grouped_linear %[[X]], %[[WG]], %[[E]] rows %[[O]], %[[P]] : {{.*}} -> tensor<16x3xf32>
//  CHECK-NEXT:   %[[U:.*]] = nn.grouped_linear %[[X]], %[[WU]]
//  CHECK-NEXT:   %[[WX:.*]] = nn.replicate %[[PW]] over "tp" : tensor<16xf32>
//  CHECK-NEXT:   %[[H:.*]] = nn.weighted_swiglu %[[G]], %[[U]], %[[WX]]
//  CHECK-NEXT:   %[[Y:.*]] = nn.grouped_linear %[[H]], %[[WD]], %[[E]] : (tensor<16x3xf32>, tensor<4x8x3xf32>, tensor<5xi32>) -> tensor<16x8xf32>
//  CHECK-NEXT:   %[[YC:.*]] = nn.combine %[[Y]]
//  CHECK-NEXT:   %[[SU:.*]] = nn.linear %[[X]], %[[SG]] out_in : {{.*}} -> tensor<2x4x5xf32>
//  CHECK-NEXT:   %[[S:.*]] = nn.gelu %[[SU]]
//  CHECK-NEXT:   %[[YS:.*]] = nn.linear %[[S]]
//  CHECK-NEXT:   %[[BOTH:.*]] = nn.add %[[YC]], %[[YS]]
//  CHECK-NEXT:   %[[SUM:.*]] = nn.all_reduce %[[BOTH]] over "tp"
//  CHECK-NEXT:   nn.add %[[N]], %[[SUM]]

// SP-LABEL: func.func @forward(
//  SP-SAME:   %[[WR:[^:]*]]: tensor<4x8xf32> {nn.layout = #nn.layout<tp = R>
//       SP:   %[[N:.*]] = nn.add {{.*}} : tensor<2x2x8xf32>
//  SP-NEXT:   %[[OWN:.*]] = nn.linear %[[N]], %[[WR]] out_in : {{.*}} -> tensor<2x2x4xf32>
//  SP-NEXT:   %[[R:.*]] = nn.all_gather %[[OWN]] to I over "tp" dim 1 : {{.*}} -> tensor<2x4x4xf32>
//  SP-NEXT:   nn.choose_experts %[[R]]
//  SP-NEXT:   nn.expert_weights %[[R]]
//       SP:   %[[X:.*]] = nn.all_gather %[[N]] to R over "tp" dim 1
//  SP-NEXT:   nn.grouped_linear %[[X]]
//       SP:   %[[BOTH:.*]] = nn.add {{.*}} : tensor<2x4x8xf32>
//  SP-NEXT:   %[[SUM:.*]] = nn.reduce_scatter %[[BOTH]] over "tp" dim 1
//  SP-NEXT:   nn.add %[[N]], %[[SUM]]
func.func @forward(%a: tensor<2x4x8xf32>,
                   %wr: tensor<4x8xf32> {nn.parameter = #nn.parameter<name = "wr", init = zeros>},
                   %wg: tensor<4x6x8xf32> {nn.parameter = #nn.parameter<name = "wg", init = zeros>},
                   %wu: tensor<4x6x8xf32> {nn.parameter = #nn.parameter<name = "wu", init = zeros>},
                   %wd: tensor<4x8x6xf32> {nn.parameter = #nn.parameter<name = "wd", init = zeros>},
                   %sg: tensor<10x8xf32> {nn.parameter = #nn.parameter<name = "sg", init = zeros>},
                   %sd: tensor<8x10xf32> {nn.parameter = #nn.parameter<name = "sd", init = zeros>},
                   %w0: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "w0", init = zeros>},
                   %w1: tensor<8x8xf32> {nn.parameter = #nn.parameter<name = "w1", init = zeros>})
    -> tensor<2x4x8xf32> {
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
  %u = nn.grouped_linear %n, %wu, %e rows %o, %p
    : (tensor<2x4x8xf32>, tensor<4x6x8xf32>, tensor<5xi32>, tensor<16xi32>, tensor<2x4x2xi32>) -> tensor<16x6xf32>
  %h = nn.weighted_swiglu %g, %u, %pw : (tensor<16x6xf32>, tensor<16x6xf32>, tensor<16xf32>) -> tensor<16x6xf32>
  %y = nn.grouped_linear %h, %wd, %e : (tensor<16x6xf32>, tensor<4x8x6xf32>, tensor<5xi32>) -> tensor<16x8xf32>
  %yc = nn.combine %y, %o, %p : (tensor<16x8xf32>, tensor<16xi32>, tensor<2x4x2xi32>) -> tensor<2x4x8xf32>
  %su = nn.linear %n, %sg out_in : (tensor<2x4x8xf32>, tensor<10x8xf32>) -> tensor<2x4x10xf32>
  %s = nn.gelu %su tanh : tensor<2x4x10xf32>
  %ys = nn.linear %s, %sd out_in : (tensor<2x4x10xf32>, tensor<8x10xf32>) -> tensor<2x4x8xf32>
  %both = nn.add %yc, %ys : tensor<2x4x8xf32>
  %x = nn.add %n, %both : tensor<2x4x8xf32>
  return %x : tensor<2x4x8xf32>
}
}
