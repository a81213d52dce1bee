// RUN: reprise-opt %s | reprise-opt | FileCheck %s
// RUN: reprise-opt %s --cse --canonicalize | FileCheck %s

// What ranks do together stays, though nothing is made of it here, and is not merged.

// CHECK-LABEL: func.func @rows
//  CHECK-NEXT:   %[[ALL:.*]], %{{.*}} = nn.gather_offsets %{{.*}} over "ep" : (tensor<5xi32>) -> (tensor<2x5xi32>, tensor<3xi32>)
//  CHECK-NEXT:   nn.send_rows %{{.*}}, %[[ALL]] over "ep" : (tensor<16x8xbf16>, tensor<2x5xi32>) -> tensor<32x8xbf16>
//  CHECK-NEXT:   nn.send_rows %{{.*}}, %[[ALL]] over "ep" : (tensor<16x8xbf16>, tensor<2x5xi32>) -> tensor<32x8xbf16>
//  CHECK-NEXT:   nn.return_rows %{{.*}}, %[[ALL]] over "ep" : (tensor<32xf32>, tensor<2x5xi32>) -> tensor<16xf32>
module attributes {nn.mesh = #nn.mesh<dp = 2, ep = 2 step 1>} {
  func.func @rows(%o: tensor<5xi32>, %x: tensor<16x8xbf16>, %w: tensor<32xf32>) {
    %all, %own = nn.gather_offsets %o over "ep" : (tensor<5xi32>) -> (tensor<2x5xi32>, tensor<3xi32>)
    %a = nn.send_rows %x, %all over "ep" : (tensor<16x8xbf16>, tensor<2x5xi32>) -> tensor<32x8xbf16>
    %b = nn.send_rows %x, %all over "ep" : (tensor<16x8xbf16>, tensor<2x5xi32>) -> tensor<32x8xbf16>
    %c = nn.return_rows %w, %all over "ep" : (tensor<32xf32>, tensor<2x5xi32>) -> tensor<16xf32>
    return
  }
}
