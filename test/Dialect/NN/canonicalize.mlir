// RUN: reprise-opt %s -canonicalize -split-input-file | FileCheck %s
// RUN: reprise-opt %s -cse -split-input-file | FileCheck %s --check-prefix=CSE

// What is equal bit for bit is folded, and nothing else.

// CHECK-LABEL: func @identities(
//  CHECK-SAME:   %[[X:[a-z0-9]+]]: tensor<2x4xf32>
//  CHECK-NEXT:   return %[[X]], %[[X]], %[[X]]
// CSE-LABEL: func @identities(
func.func @identities(%x: tensor<2x4xf32>, %rng: tensor<4xi32>)
    -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %scaled = nn.scale %x by 1.0 : tensor<2x4xf32>
  %dropped = nn.dropout %x, %rng rate 0.0 stream 0 : (tensor<2x4xf32>, tensor<4xi32>) -> tensor<2x4xf32>
  %cast = nn.cast %x : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %scaled, %dropped, %cast : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// 0.5 * 0.25 = 0.125. The scope goes on; 3 * 0.1f rounds once.

// CHECK-LABEL: func @constants(
//  CHECK-DAG:   %[[A:.*]] = nn.constant 1.250000e-01 {nn.scope = #nn.scope<module = "loss">} : tensor<2x8xf32>
//  CHECK-DAG:   %[[B:.*]] = nn.constant 3.000000e-01 : tensor<4xf32>
//      CHECK:   return %[[A]], %[[B]]
// CSE-LABEL: func @constants(
func.func @constants() -> (tensor<2x8xf32>, tensor<4xf32>) {
  %half = nn.constant 0.5 : tensor<f32>
  %a = nn.broadcast %half by 0.25 {nn.scope = #nn.scope<module = "loss">} : (tensor<f32>) -> tensor<2x8xf32>
  %three = nn.constant 3.0 : tensor<f32>
  %b = nn.broadcast %three by 0.1 : (tensor<f32>) -> tensor<4xf32>
  return %a, %b : tensor<2x8xf32>, tensor<4xf32>
}

// -----

// Two factors in a row round twice, f32 to bf16 and back rounds: all stay. So
// does a sum with zero, which turns -0 to 0.

// CHECK-LABEL: func @rounding_stays(
//  CHECK-SAME:   %[[X:.*]]: tensor<4xf32>, %[[S:.*]]: tensor<f32>
//  CHECK-DAG:   %[[ZERO:.*]] = nn.constant 0.000000e+00 : tensor<4xf32>
//  CHECK-DAG:   %[[A:.*]] = nn.scale %[[X]] by 1.000000e-01
//  CHECK-DAG:   %[[B:.*]] = nn.scale %[[A]] by 3.000000e+00
//  CHECK-DAG:   %[[C:.*]] = nn.cast %[[X]]
//  CHECK-DAG:   %[[D:.*]] = nn.cast %[[C]]
//  CHECK-DAG:   %[[E:.*]] = nn.add %[[X]], %[[ZERO]]
//  CHECK-DAG:   %[[F:.*]] = nn.broadcast %[[S]] by 1.000000e+00
//      CHECK:   return %[[B]], %[[D]], %[[E]], %[[F]]
// CSE-LABEL: func @rounding_stays(
func.func @rounding_stays(%x: tensor<4xf32>, %s: tensor<f32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %zero = nn.constant 0.0 : tensor<4xf32>
  %a = nn.scale %x by 0.1 : tensor<4xf32>
  %b = nn.scale %a by 3.0 : tensor<4xf32>
  %c = nn.cast %x : (tensor<4xf32>) -> tensor<4xbf16>
  %d = nn.cast %c : (tensor<4xbf16>) -> tensor<4xf32>
  %e = nn.add %x, %zero : tensor<4xf32>
  %f = nn.broadcast %s by 1.0 : (tensor<f32>) -> tensor<4xf32>
  return %b, %d, %e, %f : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// What nothing reads goes; the marks of the phases stay.

// CHECK-LABEL: func @dead(
//  CHECK-NEXT:   nn.backward
//  CHECK-NEXT:   nn.update
//  CHECK-NEXT:   return
// CSE-LABEL: func @dead(
func.func @dead(%x: tensor<4xf32>) {
  %a = nn.gelu %x tanh : tensor<4xf32>
  nn.backward
  %b = nn.add %a, %x : tensor<4xf32>
  nn.update
  return
}

// -----

// Equal ops are one op, and CSE knows it across the marks of the phases.

// CHECK-LABEL: func @equal(
// CSE-LABEL: func @equal(
//  CSE-SAME:   %[[X:.*]]: tensor<4xf32>
//  CSE-NEXT:   %[[G:.*]] = nn.gelu %[[X]] tanh
//  CSE-NEXT:   nn.backward
//  CSE-NEXT:   %[[E:.*]] = nn.gelu %[[X]] erf
//  CSE-NEXT:   return %[[G]], %[[G]], %[[E]]
func.func @equal(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = nn.gelu %x tanh : tensor<4xf32>
  nn.backward
  %b = nn.gelu %x tanh : tensor<4xf32>
  %c = nn.gelu %x erf : tensor<4xf32>
  return %a, %b, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Streams of randomness tell dropouts apart.

// CHECK-LABEL: func @streams(
// CSE-LABEL: func @streams(
//  CSE-SAME:   %[[X:.*]]: tensor<4xf32>, %[[RNG:.*]]: tensor<4xi32>
//  CSE-NEXT:   %[[A:.*]] = nn.dropout %[[X]], %[[RNG]] rate 1.000000e-01 stream 0
//  CSE-NEXT:   %[[B:.*]] = nn.dropout %[[X]], %[[RNG]] rate 1.000000e-01 stream 1
//  CSE-NEXT:   return %[[A]], %[[B]], %[[A]]
func.func @streams(%x: tensor<4xf32>, %rng: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a = nn.dropout %x, %rng rate 0.1 stream 0 : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  %b = nn.dropout %x, %rng rate 0.1 stream 1 : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  %c = nn.dropout %x, %rng rate 0.1 stream 0 : (tensor<4xf32>, tensor<4xi32>) -> tensor<4xf32>
  return %a, %b, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
