// RUN: reprise-opt %s -split-input-file -verify-diagnostics --reprise-partition-experts | FileCheck %s

// Rows go to the ranks of their experts with their weights, and come back one by one;
// what tokens share goes once.

// CHECK-LABEL: func.func @forward(
//  CHECK-SAME:   %[[X:[^:]*]]: tensor<2x4x8xf32>
//  CHECK-SAME:   %[[WG:[^:]*]]: tensor<2x6x8xf32> {nn.layout = #nn.layout<ep = S(0), ep_copies = R>
//  CHECK-SAME:   %[[WU:[^:]*]]: tensor<2x6x8xf32> {nn.layout = #nn.layout<ep = S(0), ep_copies = R>
//  CHECK-SAME:   %[[WD:[^:]*]]: tensor<2x8x6xf32> {nn.layout = #nn.layout<ep = S(0), ep_copies = R>
//       CHECK:   %[[O:.*]], %[[P:.*]], %[[E:.*]] = nn.sort_rows
//  CHECK-NEXT:   %[[ALL:.*]], %[[OWN:.*]] = nn.gather_offsets %[[E]] over "ep" {nn.scope = #nn.scope<layer = 0, module = "moe", value = "pm.gather_offsets">} : (tensor<5xi32>) -> (tensor<2x5xi32>, tensor<3xi32>)
//  CHECK-NEXT:   %[[W:.*]] = nn.permute
//  CHECK-NEXT:   %[[XR:.*]] = nn.dispatch %[[X]], %[[O]], %[[P]] : {{.*}} -> tensor<16x8xf32>
//  CHECK-NEXT:   %[[XS:.*]] = nn.send_rows %[[XR]], %[[ALL]] over "ep" : (tensor<16x8xf32>, tensor<2x5xi32>) -> tensor<32x8xf32>
//  CHECK-NEXT:   %[[G:.*]] = nn.grouped_linear %[[XS]], %[[WG]], %[[OWN]] {nn.even_rows = 16 : i64} : {{.*}} -> tensor<32x6xf32>
//  CHECK-NEXT:   %[[U:.*]] = nn.grouped_linear %[[XS]], %[[WU]], %[[OWN]]
//  CHECK-NEXT:   %[[WS:.*]] = nn.send_rows %[[W]], %[[ALL]] over "ep" : (tensor<16xf32>, tensor<2x5xi32>) -> tensor<32xf32>
//  CHECK-NEXT:   %[[H:.*]] = nn.weighted_swiglu %[[G]], %[[U]], %[[WS]] : (tensor<32x6xf32>, tensor<32x6xf32>, tensor<32xf32>) -> tensor<32x6xf32>
//  CHECK-NEXT:   %[[Y:.*]] = nn.grouped_linear %[[H]], %[[WD]], %[[OWN]]
//  CHECK-NEXT:   %[[R:.*]] = nn.return_rows %[[Y]], %[[ALL]] over "ep" : (tensor<32x8xf32>, tensor<2x5xi32>) -> tensor<16x8xf32>
//  CHECK-NEXT:   nn.combine %[[R]], %[[O]], %[[P]]
module attributes {nn.mesh = #nn.mesh<dp = 4, ep = 2 step 1, ep_copies = 2 step 2>} {
func.func @forward(%n: tensor<2x4x8xf32>, %id: tensor<2x4x2xi32>, %w: tensor<2x4x2xf32>,
                   %wg: tensor<4x6x8xf32> {nn.parameter = #nn.parameter<name = "wg", init = zeros>},
                   %wu: tensor<4x6x8xf32> {nn.parameter = #nn.parameter<name = "wu", init = zeros>},
                   %wd: tensor<4x8x6xf32> {nn.parameter = #nn.parameter<name = "wd", init = zeros>}) -> tensor<2x4x8xf32> {
  %o, %p, %e = nn.sort_rows %id {nn.scope = #nn.scope<layer = 0, module = "moe", value = "pm">} : (tensor<2x4x2xi32>) -> (tensor<16xi32>, tensor<2x4x2xi32>, tensor<5xi32>)
  %pw = nn.permute %w, %o, %p : (tensor<2x4x2xf32>, tensor<16xi32>, tensor<2x4x2xi32>) -> tensor<16xf32>
  %g = nn.grouped_linear %n, %wg, %e rows %o, %p
    : (tensor<2x4x8xf32>, tensor<4x6x8xf32>, tensor<5xi32>, tensor<16xi32>, tensor<2x4x2xi32>) -> tensor<16x6xf32>
  %u = nn.grouped_linear %n, %wu, %e rows %o, %p
    : (tensor<2x4x8xf32>, tensor<4x6x8xf32>, tensor<5xi32>, tensor<16xi32>, tensor<2x4x2xi32>) -> tensor<16x6xf32>
  %h = nn.weighted_swiglu %g, %u, %pw : (tensor<16x6xf32>, tensor<16x6xf32>, tensor<16xf32>) -> tensor<16x6xf32>
  %y = nn.grouped_linear %h, %wd, %e : (tensor<16x6xf32>, tensor<4x8x6xf32>, tensor<5xi32>) -> tensor<16x8xf32>
  %yc = nn.combine %y, %o, %p : (tensor<16x8xf32>, tensor<16xi32>, tensor<2x4x2xi32>) -> tensor<2x4x8xf32>
  return %yc : tensor<2x4x8xf32>
}
}

// -----

// With a capacity of 3 a rank has room for those rows of its two experts, from each of
// two ranks.

// CHECK-LABEL: func.func @forward(
//       CHECK: nn.cast {{.*}} -> tensor<2x6x8xbf16>
//       CHECK: nn.send_rows {{.*}} -> tensor<12x8xbf16>
//       CHECK: nn.return_rows {{.*}} -> tensor<13x6xbf16>
module attributes {nn.mesh = #nn.mesh<dp = 2, ep = 2 step 1>} {
func.func @forward(%x: tensor<2x4x8xbf16>, %id: tensor<2x4x2xi32>,
                   %w: tensor<4x6x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<2x4x6xbf16> {
  %wg = nn.cast %w : (tensor<4x6x8xf32>) -> tensor<4x6x8xbf16>
  %o, %p, %e = nn.sort_rows %id capacity 3 : (tensor<2x4x2xi32>) -> (tensor<13xi32>, tensor<2x4x2xi32>, tensor<5xi32>)
  %g = nn.grouped_linear %x, %wg, %e rows %o, %p
    : (tensor<2x4x8xbf16>, tensor<4x6x8xbf16>, tensor<5xi32>, tensor<13xi32>, tensor<2x4x2xi32>) -> tensor<13x6xbf16>
  %y = nn.combine %g, %o, %p : (tensor<13x6xbf16>, tensor<13xi32>, tensor<2x4x2xi32>) -> tensor<2x4x6xbf16>
  return %y : tensor<2x4x6xbf16>
}
}

// -----

module attributes {nn.mesh = #nn.mesh<dp = 2, ep = 2 step 1>} {
func.func @forward(%x: tensor<1x4x8xf32>, %i: tensor<1x4x1xi32>,
                   %w: tensor<3x6x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<4x6xf32> {
  %o, %p, %e = nn.sort_rows %i : (tensor<1x4x1xi32>) -> (tensor<4xi32>, tensor<1x4x1xi32>, tensor<4xi32>)
  // expected-error @+1 {{needs experts that the 2 ranks along 'ep' divide, but got 3}}
  %r = nn.grouped_linear %x, %w, %e rows %o, %p
    : (tensor<1x4x8xf32>, tensor<3x6x8xf32>, tensor<4xi32>, tensor<4xi32>, tensor<1x4x1xi32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
}

// -----

module attributes {nn.mesh = #nn.mesh<dp = 2, ep = 2 step 1>} {
func.func @forward(%x: tensor<4x8xf32>, %e: tensor<5xi32>,
                   %w: tensor<4x6x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<4x6xf32> {
  // expected-error @+1 {{needs rows of tokens, sorted by nn.sort_rows, to be on 2 ranks along 'ep'}}
  %r = nn.grouped_linear %x, %w, %e : (tensor<4x8xf32>, tensor<4x6x8xf32>, tensor<5xi32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
}

// -----

module attributes {nn.mesh = #nn.mesh<dp = 2, ep = 2 step 1>} {
func.func @forward(%x: tensor<1x4x8xf32>, %i: tensor<1x4x1xi32>,
                   %w: tensor<2x6x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<4x6xf32> {
  %o, %p, %e = nn.sort_rows %i : (tensor<1x4x1xi32>) -> (tensor<4xi32>, tensor<1x4x1xi32>, tensor<3xi32>)
  %d = nn.add %w, %w : tensor<2x6x8xf32>
  // expected-error @+1 {{needs the weights of experts to be a parameter, to be on 2 ranks along 'ep'}}
  %r = nn.grouped_linear %x, %d, %e rows %o, %p
    : (tensor<1x4x8xf32>, tensor<2x6x8xf32>, tensor<3xi32>, tensor<4xi32>, tensor<1x4x1xi32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
}

// -----

// Rows of two sorts lie in two orders where their experts are.
module attributes {nn.mesh = #nn.mesh<dp = 2, ep = 2 step 1>} {
func.func @forward(%x: tensor<2x4x8xf32>, %id: tensor<2x4x2xi32>, %id2: tensor<2x4x2xi32>,
                   %w: tensor<4x6x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>},
                   %v: tensor<4x6x8xf32> {nn.parameter = #nn.parameter<name = "v", init = zeros>}) -> tensor<2x4x6xf32> {
  %o, %p, %e = nn.sort_rows %id : (tensor<2x4x2xi32>) -> (tensor<16xi32>, tensor<2x4x2xi32>, tensor<5xi32>)
  %o2, %p2, %e2 = nn.sort_rows %id2 : (tensor<2x4x2xi32>) -> (tensor<16xi32>, tensor<2x4x2xi32>, tensor<5xi32>)
  %g = nn.grouped_linear %x, %w, %e rows %o, %p : (tensor<2x4x8xf32>, tensor<4x6x8xf32>, tensor<5xi32>, tensor<16xi32>, tensor<2x4x2xi32>) -> tensor<16x6xf32>
  %u = nn.grouped_linear %x, %v, %e2 rows %o2, %p2 : (tensor<2x4x8xf32>, tensor<4x6x8xf32>, tensor<5xi32>, tensor<16xi32>, tensor<2x4x2xi32>) -> tensor<16x6xf32>
  // expected-error @+1 {{'nn.add' op needs rows that one nn.sort_rows has sorted, to be on 2 ranks along 'ep'}}
  %s = nn.add %g, %u : tensor<16x6xf32>
  %y = nn.combine %s, %o, %p : (tensor<16x6xf32>, tensor<16xi32>, tensor<2x4x2xi32>) -> tensor<2x4x6xf32>
  return %y : tensor<2x4x6xf32>
}
}
