// RUN: reprise-opt %s --reprise-form-kernels | FileCheck %s

// Rows that come back in rounds are put among those of other rounds, and nothing adds
// them up. Where two have rows of the same round, or rounds of different sizes, they
// stay apart: their sum is not the one among the other.

module attributes {nn.mesh = #nn.mesh<dp = 2, ep = 2 step 1>} {

// CHECK-LABEL: func.func @step(
//       CHECK:   %[[R2:.*]] = rt.return_rows %{{.*}}, %{{.*}} over "ep" ranks 2 round 2 rows 7 {
//       CHECK:   %[[R1:.*]] = rt.return_rows %{{.*}}, %{{.*}}, %[[R2]] over "ep" ranks 2 round 1 rows 7 keeps
//       CHECK:   %[[R0:.*]] = rt.return_rows %{{.*}}, %{{.*}}, %[[R1]] over "ep" ranks 2 round 0 rows 7 keeps
//   CHECK-NOT:   rt.launch
//       CHECK:   return %[[R0]]
func.func @step(%y: tensor<14x8xf32>, %all: tensor<2x5xi32>) -> tensor<16x8xf32> {
  %2 = nn.return_rows %y, %all over "ep" round 2 rows 7 : (tensor<14x8xf32>, tensor<2x5xi32>) -> tensor<16x8xf32>
  %1 = nn.return_rows %y, %all over "ep" round 1 rows 7 : (tensor<14x8xf32>, tensor<2x5xi32>) -> tensor<16x8xf32>
  %s1 = nn.add %2, %1 : tensor<16x8xf32>
  %0 = nn.return_rows %y, %all over "ep" round 0 rows 7 : (tensor<14x8xf32>, tensor<2x5xi32>) -> tensor<16x8xf32>
  %s0 = nn.add %s1, %0 : tensor<16x8xf32>
  return %s0 : tensor<16x8xf32>
}

// CHECK-LABEL: func.func @twice(
//   CHECK-NOT:   keeps
//       CHECK:   rt.launch @add_16x8
//       CHECK:   return
func.func @twice(%y: tensor<14x8xf32>, %all: tensor<2x5xi32>) -> tensor<16x8xf32> {
  %a = nn.return_rows %y, %all over "ep" round 1 rows 7 : (tensor<14x8xf32>, tensor<2x5xi32>) -> tensor<16x8xf32>
  %b = nn.return_rows %y, %all over "ep" round 1 rows 7 : (tensor<14x8xf32>, tensor<2x5xi32>) -> tensor<16x8xf32>
  %s = nn.add %a, %b : tensor<16x8xf32>
  return %s : tensor<16x8xf32>
}

// Also of a round that is further back.

// CHECK-LABEL: func.func @again(
//       CHECK:   rt.return_rows {{.*}} keeps
//       CHECK:   rt.return_rows %{{[^,]*}}, %{{[^,]*}} over
//       CHECK:   rt.launch @add_16x8
//       CHECK:   return
func.func @again(%y: tensor<14x8xf32>, %all: tensor<2x5xi32>) -> tensor<16x8xf32> {
  %a = nn.return_rows %y, %all over "ep" round 1 rows 7 : (tensor<14x8xf32>, tensor<2x5xi32>) -> tensor<16x8xf32>
  %b = nn.return_rows %y, %all over "ep" round 0 rows 7 : (tensor<14x8xf32>, tensor<2x5xi32>) -> tensor<16x8xf32>
  %ab = nn.add %a, %b : tensor<16x8xf32>
  %c = nn.return_rows %y, %all over "ep" round 1 rows 7 : (tensor<14x8xf32>, tensor<2x5xi32>) -> tensor<16x8xf32>
  %s = nn.add %ab, %c : tensor<16x8xf32>
  return %s : tensor<16x8xf32>
}

// What an argument has may be of any round.

// CHECK-LABEL: func.func @argument(
//       CHECK:   rt.return_rows {{.*}} keeps
//       CHECK:   rt.return_rows %{{[^,]*}}, %{{[^,]*}} over
//       CHECK:   rt.launch @add_16x8
//       CHECK:   return
func.func @argument(%y: tensor<14x8xf32>, %all: tensor<2x5xi32>, %k: tensor<16x8xf32>) -> tensor<16x8xf32> {
  %a = nn.return_rows %y, %all, %k over "ep" round 1 rows 7 : (tensor<14x8xf32>, tensor<2x5xi32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %b = nn.return_rows %y, %all over "ep" round 0 rows 7 : (tensor<14x8xf32>, tensor<2x5xi32>) -> tensor<16x8xf32>
  %s = nn.add %a, %b : tensor<16x8xf32>
  return %s : tensor<16x8xf32>
}

// CHECK-LABEL: func.func @sizes(
//   CHECK-NOT:   keeps
//       CHECK:   rt.launch @add_16x8
//       CHECK:   return
func.func @sizes(%y: tensor<14x8xf32>, %z: tensor<16x8xf32>, %all: tensor<2x5xi32>) -> tensor<16x8xf32> {
  %a = nn.return_rows %y, %all over "ep" round 1 rows 7 : (tensor<14x8xf32>, tensor<2x5xi32>) -> tensor<16x8xf32>
  %b = nn.return_rows %z, %all over "ep" round 0 rows 8 : (tensor<16x8xf32>, tensor<2x5xi32>) -> tensor<16x8xf32>
  %s = nn.add %a, %b : tensor<16x8xf32>
  return %s : tensor<16x8xf32>
}
}
