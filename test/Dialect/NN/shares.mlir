// RUN: reprise-opt %s --cse --canonicalize | FileCheck %s

// Shares round-trip, with and without a mesh, and passes neither merge nor drop
// what ranks do together. Of 40,000 elements two ranks have 32,768 and the rest;
// of 96 the first has all.

// CHECK-LABEL: func.func @shares(
//  CHECK-NEXT:   nn.reduce_shares %[[W:.*]], %[[B:.*]] over "dp" : tensor<200x200xf32>, tensor<96xf32>
//  CHECK-NEXT:   nn.reduce_shares %[[W]], %[[B]] over "dp" : tensor<200x200xf32>, tensor<96xf32>
//  CHECK-NEXT:   nn.shares_norm %[[W]], %[[B]] over "dp" : (tensor<200x200xf32>, tensor<96xf32>) -> tensor<f32>
//  CHECK-NEXT:   %[[OWN:.*]] = nn.take_share %[[W]] over "dp" : (tensor<200x200xf32>) -> tensor<32768xf32>
//  CHECK-NEXT:   nn.gather_shares %[[OWN]] into %[[W]] over "dp" : (tensor<32768xf32>, tensor<200x200xf32>) -> tensor<200x200xf32>
//  CHECK-NEXT:   nn.gather_shares %[[B]] into %[[B]] over "dp" : (tensor<96xf32>, tensor<96xf32>) -> tensor<96xf32>
//  CHECK-NEXT:   return
module attributes {nn.mesh = #nn.mesh<dp = 2>, nn.distributed_optimizer} {
  func.func @shares(%w: tensor<200x200xf32>, %b: tensor<96xf32>) {
    %s:2 = nn.reduce_shares %w, %b over "dp" : tensor<200x200xf32>, tensor<96xf32>
    %t:2 = nn.reduce_shares %w, %b over "dp" : tensor<200x200xf32>, tensor<96xf32>
    %norm = nn.shares_norm %w, %b over "dp" : (tensor<200x200xf32>, tensor<96xf32>) -> tensor<f32>
    %own = nn.take_share %w over "dp" : (tensor<200x200xf32>) -> tensor<32768xf32>
    %dead = nn.take_share %w over "dp" : (tensor<200x200xf32>) -> tensor<32768xf32>
    %w1 = nn.gather_shares %own into %w over "dp" : (tensor<32768xf32>, tensor<200x200xf32>) -> tensor<200x200xf32>
    %b1 = nn.gather_shares %b into %b over "dp" : (tensor<96xf32>, tensor<96xf32>) -> tensor<96xf32>
    return
  }
}
