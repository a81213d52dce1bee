// RUN: reprise-opt %s --reprise-annotate-layout --reprise-partition --reprise-partition-experts | FileCheck %s
// RUN: reprise-opt %s --reprise-annotate-layout=sequence-parallel --reprise-partition --reprise-partition-experts | FileCheck %s --check-prefix=SP

// Ranks along ep have other experts, and of each of these ranks along tp a part. All of
// the latter choose alike, so each sends the rows of its tokens to those with its part of
// other experts. What comes back are parts of a sum over tp, and so are gradients of the
// rows and of their weights.

module attributes {nn.mesh = #nn.mesh<dp = 4, tp = 2, ep = 2 step 2, ep_copies = 2 step 4>} {
// CHECK-LABEL: func.func @forward(
//  CHECK-SAME:   %[[WG:[^:]*]]: tensor<2x3x8xf32> {nn.layout = #nn.layout<tp = S(1), ep = S(0), ep_copies = R>
//  CHECK-SAME:   %[[WU:[^:]*]]: tensor<2x3x8xf32> {nn.layout = #nn.layout<tp = S(1), ep = S(0), ep_copies = R>
//  CHECK-SAME:   %[[WD:[^:]*]]: tensor<2x8x3xf32> {nn.layout = #nn.layout<tp = S(2), ep = S(0), ep_copies = R>
//       CHECK:   %[[O:.*]], %[[P:.*]], %[[E:.*]] = nn.sort_rows
//  CHECK-NEXT:   %[[ALL:.*]], %[[OWN:.*]] = nn.gather_offsets %[[E]] over "ep"
//       CHECK:   %[[X:.*]] = nn.replicate %{{.*}} over "tp"
//  CHECK-NEXT:   %[[XR:.*]] = nn.dispatch %[[X]], %[[O]], %[[P]]
//  CHECK-NEXT:   %[[XS:.*]] = nn.send_rows %[[XR]], %[[ALL]] over "ep" : (tensor<16x8xf32>, tensor<2x5xi32>) -> tensor<32x8xf32>
//  CHECK-NEXT:   %[[G:.*]] = nn.grouped_linear %[[XS]], %[[WG]], %[[OWN]] {nn.even_rows = 16 : i64} : {{.*}} -> tensor<32x3xf32>
//  CHECK-NEXT:   %[[U:.*]] = nn.grouped_linear %[[XS]], %[[WU]], %[[OWN]]
//  CHECK-NEXT:   %[[W:.*]] = nn.replicate %{{.*}} over "tp" : tensor<16xf32>
//  CHECK-NEXT:   %[[WS:.*]] = nn.send_rows %[[W]], %[[ALL]] over "ep" : (tensor<16xf32>, tensor<2x5xi32>) -> tensor<32xf32>
//  CHECK-NEXT:   %[[H:.*]] = nn.weighted_swiglu %[[G]], %[[U]], %[[WS]]
//  CHECK-NEXT:   %[[Y:.*]] = nn.grouped_linear %[[H]], %[[WD]], %[[OWN]] {nn.even_rows = 16 : i64} : {{.*}} -> tensor<32x8xf32>
//  CHECK-NEXT:   %[[R:.*]] = nn.return_rows %[[Y]], %[[ALL]] over "ep" : (tensor<32x8xf32>, tensor<2x5xi32>) -> tensor<16x8xf32>
//  CHECK-NEXT:   %[[C:.*]] = nn.combine %[[R]], %[[O]], %[[P]]
//  CHECK-NEXT:   %[[SUM:.*]] = nn.all_reduce %[[C]] over "tp"

// SP:       nn.choose_experts %{{.*}} : (tensor<2x4x4xf32>)
// SP:       %[[X:.*]] = nn.all_gather %{{.*}} to R over "tp" dim 1
// SP-NEXT:  nn.dispatch %[[X]]
// SP-NEXT:  nn.send_rows
// SP:       nn.return_rows
// SP-NEXT:  %[[C:.*]] = nn.combine
// SP-NEXT:  nn.reduce_scatter %[[C]] over "tp" dim 1
func.func @forward(%a: tensor<2x4x8xf32>,
                   %wr: tensor<4x8xf32> {nn.parameter = #nn.parameter<name = "wr", init = zeros>},
                   %wg: tensor<4x6x8xf32> {nn.parameter = #nn.parameter<name = "wg", init = zeros>},
                   %wu: tensor<4x6x8xf32> {nn.parameter = #nn.parameter<name = "wu", init = zeros>},
                   %wd: tensor<4x8x6xf32> {nn.parameter = #nn.parameter<name = "wd", init = zeros>},
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
  %x = nn.add %n, %yc : tensor<2x4x8xf32>
  return %x : tensor<2x4x8xf32>
}
}
