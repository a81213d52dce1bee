// RUN: reprise-opt %s -split-input-file -verify-diagnostics --reprise-partition-experts | FileCheck %s

// Experts can have 2 * 8 rows each: three rounds of 7, the last one first. What is made
// in a round is dropped, but for what comes back, which is added up at home. Of 16 rows
// that come if experts are used evenly, an expert has 8: 7 and 1.

// CHECK-LABEL: func.func @forward(
//  CHECK-SAME:   %[[X:[^:]*]]: tensor<2x4x8xf32>
//  CHECK-SAME:   %[[WU:[^:]*]]: tensor<2x6x8xf32>
//  CHECK-SAME:   %[[WD:[^:]*]]: tensor<2x8x6xf32>
//       CHECK:   %[[O:.*]], %[[P:.*]], %[[E:.*]] = nn.sort_rows
//  CHECK-NEXT:   %[[ALL:.*]], %[[OWN:.*]] = nn.gather_offsets %[[E]] over "ep" rows 7 {nn.scope = #nn.scope<layer = 3, module = "moe", value = "pm.gather_offsets">} : (tensor<5xi32>) -> (tensor<2x5xi32>, tensor<3x3xi32>)
//  CHECK-NEXT:   %[[XR:.*]] = nn.dispatch %[[X]], %[[O]], %[[P]] {{.*}}remat.decision = #remat.recompute<segment = 3, label = "rounds">{{.*}} -> tensor<16x8xf32>
//  CHECK-NEXT:   %[[OWN2:.*]] = nn.round_offsets %[[OWN]] round 2 {{.*}}value = "pm.round_offsets">, remat.decision
//  CHECK-NEXT:   %[[X2:.*]] = nn.send_rows %[[XR]], %[[ALL]] over "ep" round 2 rows 7 {nn.even_rows = 1 : i64, {{.*}}remat.decision = {{.*}} : (tensor<16x8xf32>, tensor<2x5xi32>) -> tensor<14x8xf32>
//  CHECK-NEXT:   %[[U2:.*]] = nn.grouped_linear %[[X2]], %[[WU]], %[[OWN2]] {nn.even_rows = 1 : i64, {{.*}}remat.decision = {{.*}} -> tensor<14x6xf32>
//  CHECK-NEXT:   %[[Y2:.*]] = nn.grouped_linear %[[U2]], %[[WD]], %[[OWN2]] {{.*}} -> tensor<14x8xf32>
//  CHECK-NEXT:   %[[R2:.*]] = nn.return_rows %[[Y2]], %[[ALL]] over "ep" round 2 rows 7 {{.*}}value = "y.return_rows.2">
//   CHECK-NOT:   remat.decision
//        CHECK:  : (tensor<14x8xf32>, tensor<2x5xi32>) -> tensor<16x8xf32>
//       CHECK:   %[[OWN1:.*]] = nn.round_offsets %[[OWN]] round 1
//       CHECK:   nn.send_rows %[[XR]], %[[ALL]] over "ep" round 1 rows 7 {nn.even_rows = 2 : i64
//       CHECK:   %[[R1:.*]] = nn.return_rows
//  CHECK-NEXT:   %[[S1:.*]] = nn.add %[[R2]], %[[R1]] {nn.scope = #nn.scope<layer = 3, module = "moe", value = "y.add_rows.1">}
//       CHECK:   %[[OWN0:.*]] = nn.round_offsets %[[OWN]] round 0
//       CHECK:   nn.send_rows %[[XR]], %[[ALL]] over "ep" round 0 rows 7 {nn.even_rows = 14 : i64
//       CHECK:   %[[R0:.*]] = nn.return_rows
//  CHECK-NEXT:   %[[S0:.*]] = nn.add %[[S1]], %[[R0]]
//  CHECK-NEXT:   nn.combine %[[S0]], %[[O]], %[[P]]
module attributes {nn.mesh = #nn.mesh<dp = 2, ep = 2 step 1>, nn.expert_rows = 7 : i64} {
func.func @forward(%n: tensor<2x4x8xf32>, %id: tensor<2x4x2xi32>,
                   %wu: tensor<4x6x8xf32> {nn.parameter = #nn.parameter<name = "wu", init = zeros>},
                   %wd: tensor<4x8x6xf32> {nn.parameter = #nn.parameter<name = "wd", init = zeros>}) -> tensor<2x4x8xf32> {
  %o, %p, %e = nn.sort_rows %id {nn.scope = #nn.scope<layer = 3, module = "moe", value = "pm">} : (tensor<2x4x2xi32>) -> (tensor<16xi32>, tensor<2x4x2xi32>, tensor<5xi32>)
  %u = nn.grouped_linear %n, %wu, %e rows %o, %p {nn.scope = #nn.scope<layer = 3, module = "moe", value = "u">}
    : (tensor<2x4x8xf32>, tensor<4x6x8xf32>, tensor<5xi32>, tensor<16xi32>, tensor<2x4x2xi32>) -> tensor<16x6xf32>
  %y = nn.grouped_linear %u, %wd, %e {nn.scope = #nn.scope<layer = 3, module = "moe", value = "y">} : (tensor<16x6xf32>, tensor<4x8x6xf32>, tensor<5xi32>) -> tensor<16x8xf32>
  %yc = nn.combine %y, %o, %p {nn.scope = #nn.scope<layer = 3, module = "moe", value = "c">} : (tensor<16x8xf32>, tensor<16xi32>, tensor<2x4x2xi32>) -> tensor<2x4x8xf32>
  return %yc : tensor<2x4x8xf32>
}
}

// -----

// With a capacity of 3 an expert has 6 rows at most, which one round has.

// CHECK-LABEL: func.func @forward(
//       CHECK:   nn.gather_offsets %{{.*}} over "ep" :
//   CHECK-NOT:   round
module attributes {nn.mesh = #nn.mesh<dp = 2, ep = 2 step 1>, nn.expert_rows = 6 : i64} {
func.func @forward(%x: tensor<2x4x8xf32>, %id: tensor<2x4x2xi32>,
                   %w: tensor<4x6x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<2x4x6xf32> {
  %o, %p, %e = nn.sort_rows %id capacity 3 : (tensor<2x4x2xi32>) -> (tensor<13xi32>, tensor<2x4x2xi32>, tensor<5xi32>)
  %g = nn.grouped_linear %x, %w, %e rows %o, %p
    : (tensor<2x4x8xf32>, tensor<4x6x8xf32>, tensor<5xi32>, tensor<13xi32>, tensor<2x4x2xi32>) -> tensor<13x6xf32>
  %y = nn.combine %g, %o, %p : (tensor<13x6xf32>, tensor<13xi32>, tensor<2x4x2xi32>) -> tensor<2x4x6xf32>
  return %y : tensor<2x4x6xf32>
}
}

// -----

// With 5 rows a rank has room for those of a round, and the second round for one of each.

// CHECK-LABEL: func.func @forward(
//       CHECK:   nn.gather_offsets %{{.*}} over "ep" rows 5 {{.*}} -> (tensor<2x5xi32>, tensor<2x3xi32>)
//       CHECK:   nn.send_rows {{.*}} round 1 rows 5 {{.*}} -> tensor<10x8xf32>
//       CHECK:   nn.send_rows {{.*}} round 0 rows 5 {{.*}} -> tensor<10x8xf32>
//   CHECK-NOT:   nn.send_rows
module attributes {nn.mesh = #nn.mesh<dp = 2, ep = 2 step 1>, nn.expert_rows = 5 : i64} {
func.func @forward(%x: tensor<2x4x8xf32>, %id: tensor<2x4x2xi32>,
                   %w: tensor<4x6x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<2x4x6xf32> {
  %o, %p, %e = nn.sort_rows %id capacity 3 : (tensor<2x4x2xi32>) -> (tensor<13xi32>, tensor<2x4x2xi32>, tensor<5xi32>)
  %g = nn.grouped_linear %x, %w, %e rows %o, %p
    : (tensor<2x4x8xf32>, tensor<4x6x8xf32>, tensor<5xi32>, tensor<13xi32>, tensor<2x4x2xi32>) -> tensor<13x6xf32>
  %y = nn.combine %g, %o, %p : (tensor<13x6xf32>, tensor<13xi32>, tensor<2x4x2xi32>) -> tensor<2x4x6xf32>
  return %y : tensor<2x4x6xf32>
}
}

// -----

// Every round is part of the program, so their number has a bound: 1026 of 2 * 513 rows.

module attributes {nn.mesh = #nn.mesh<dp = 2, ep = 2 step 1>, nn.expert_rows = 1 : i64} {
func.func @forward(%x: tensor<1x513x8xf32>, %id: tensor<1x513x2xi32>,
                   %w: tensor<4x6x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<1x513x6xf32> {
  // expected-error @+1 {{needs at most 1024 rounds, each of which is compiled, but with 1 rows of an expert it has 1026: 'moe_expert_rows_per_round' needs to be at least 2}}
  %o, %p, %e = nn.sort_rows %id : (tensor<1x513x2xi32>) -> (tensor<1026xi32>, tensor<1x513x2xi32>, tensor<5xi32>)
  %g = nn.grouped_linear %x, %w, %e rows %o, %p
    : (tensor<1x513x8xf32>, tensor<4x6x8xf32>, tensor<5xi32>, tensor<1026xi32>, tensor<1x513x2xi32>) -> tensor<1026x6xf32>
  %y = nn.combine %g, %o, %p : (tensor<1026x6xf32>, tensor<1026xi32>, tensor<1x513x2xi32>) -> tensor<1x513x6xf32>
  return %y : tensor<1x513x6xf32>
}
}

// -----

// 1024 are allowed.

// CHECK-LABEL: func.func @forward(
//       CHECK:   nn.send_rows {{.*}} round 1023 rows 1
module attributes {nn.mesh = #nn.mesh<dp = 2, ep = 2 step 1>, nn.expert_rows = 1 : i64} {
func.func @forward(%x: tensor<1x512x8xf32>, %id: tensor<1x512x2xi32>,
                   %w: tensor<4x6x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<1x512x6xf32> {
  %o, %p, %e = nn.sort_rows %id : (tensor<1x512x2xi32>) -> (tensor<1024xi32>, tensor<1x512x2xi32>, tensor<5xi32>)
  %g = nn.grouped_linear %x, %w, %e rows %o, %p
    : (tensor<1x512x8xf32>, tensor<4x6x8xf32>, tensor<5xi32>, tensor<1024xi32>, tensor<1x512x2xi32>) -> tensor<1024x6xf32>
  %y = nn.combine %g, %o, %p : (tensor<1024x6xf32>, tensor<1024xi32>, tensor<1x512x2xi32>) -> tensor<1x512x6xf32>
  return %y : tensor<1x512x6xf32>
}
}
