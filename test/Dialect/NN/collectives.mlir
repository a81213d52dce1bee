// RUN: reprise-opt %s -split-input-file --canonicalize --cse | FileCheck %s

// Ranks meet in a collective: it stays, also when nobody reads it or another
// one is the same, and so does the order.

// CHECK: module attributes {nn.mesh = #nn.mesh<dp = 2>}
module attributes {nn.mesh = #nn.mesh<dp = 2>} {
  // CHECK-LABEL: @stays
  //  CHECK-NEXT:   %[[A:.*]] = nn.all_reduce %arg0 over "dp" : tensor<4xf32>
  //  CHECK-NEXT:   nn.all_reduce %arg1, %arg0 over "dp" : tensor<2x3xf32>, tensor<4xf32>
  //  CHECK-NEXT:   %[[B:.*]] = nn.all_reduce %arg0 over "dp" : tensor<4xf32>
  //  CHECK-NEXT:   return %[[A]], %[[B]]
  func.func @stays(%x: tensor<4xf32>, %y: tensor<2x3xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %a = nn.all_reduce %x over "dp" : tensor<4xf32>
    %unread:2 = nn.all_reduce %y, %x over "dp" : tensor<2x3xf32>, tensor<4xf32>
    %b = nn.all_reduce %x over "dp" : tensor<4xf32>
    return %a, %b : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// Parts of axes: every fourth of 8 ranks, and the four neighbours between these.

// CHECK: module attributes {nn.mesh = #nn.mesh<tp = 8, kv = 2 step 4, kv_copies = 4 step 1>}
module attributes {nn.mesh = #nn.mesh<tp = 8, kv = 2 step 4, kv_copies = 4 step 1>} {
  // CHECK: nn.all_reduce %arg0 over "kv_copies" : tensor<4xf32>
  // CHECK: nn.all_gather %arg0 to I over "kv" dim 0 : (tensor<4xf32>) -> tensor<8xf32>
  func.func @parts(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<8xf32>) {
    %a = nn.all_reduce %x over "kv_copies" : tensor<4xf32>
    %b = nn.all_gather %x to I over "kv" dim 0 : (tensor<4xf32>) -> tensor<8xf32>
    return %a, %b : tensor<4xf32>, tensor<8xf32>
  }
}

// -----

// Every second of 6 ranks along an axis where another one counts first.

// CHECK: module attributes {nn.mesh = #nn.mesh<dp = 6, tp = 2, kv = 3 step 4>}
module attributes {nn.mesh = #nn.mesh<dp = 6, tp = 2, kv = 3 step 4>} {
}
