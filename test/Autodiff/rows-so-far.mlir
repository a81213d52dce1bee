// Shares of rows are those of all ranks with samples, and of the micro-batches of the
// step up to this one: the rows of a micro-batch are summed over the ranks, and added
// to the measure that has them, whose sum shares are made of. Where the measure counts
// what another one counts, too, that one stays a sum of the rank's own.

// RUN: reprise-opt %s -split-input-file -verify-diagnostics --reprise-differentiate | FileCheck %s
// RUN: sed '/^\/\/ -----/,$d' %s | reprise-opt --reprise-differentiate --reprise-add-optimizer | FileCheck %s --check-prefix=UPDATE

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   %[[O:[^:]*]]: tensor<5xi32>
//  CHECK-SAME:   %[[OWN:[^:]*]]: tensor<4xf32> {nn.measure = "layer0"}
//  CHECK-SAME:   %[[SUM:[^:]*]]: tensor<4xf32> {nn.measure = "global0"}
//       CHECK:   %[[N:.*]] = nn.count_rows %[[O]]
//  CHECK-NEXT:   %[[ALL:.*]] = nn.all_reduce %[[N]] over "dp" {{.*}}value = "global0.all_reduce"
//  CHECK-NEXT:   %[[SO_FAR:.*]] = nn.accumulate %[[SUM]], %[[ALL]]
//  CHECK-NEXT:   %[[SHARES:.*]] = nn.row_shares %[[SO_FAR]] : tensor<4xf32>
//  CHECK-NEXT:   nn.expected_rows %{{.*}}, %[[SHARES]]
//       CHECK:   %[[ROWS:.*]] = nn.accumulate %[[OWN]], %[[N]]
//       CHECK:   nn.backward
//       CHECK:   nn.expected_rows_backward %{{.*}}, %[[SHARES]],
//       CHECK:   return %{{[^,]*}}, %[[ROWS]], %[[SO_FAR]],

// So the update has nothing to add up of it.

// UPDATE: %[[ROWS:.*]] = nn.accumulate {{.*}}value = "layer0"
// UPDATE: nn.update
// UPDATE: nn.all_reduce %{{[^,]*}}, %[[ROWS]], %{{[^,]*}} over "dp" {{.*}} : tensor<f32>, tensor<4xf32>, tensor<2x8x4xf32>
module attributes {nn.mesh = #nn.mesh<dp = 2>, nn.train = {adam_beta1 = 9.0e-01 : f64, adam_beta2 = 9.5e-01 : f64, adam_eps = 1.0e-08 : f64,
                                                           weight_decay = 0.0 : f64, clip_grad = 1.0 : f64}} {
func.func @forward(%r: tensor<2x8x4xf32> {nn.parameter = #nn.parameter<name = "r", init = ones>}, %o: tensor<5xi32>)
    -> (tensor<f32>, tensor<4xf32> {nn.measure = "layer0"}, tensor<4xf32> {nn.measure = "global0"})
    attributes {nn.micro_batches = 4} {
  %n = nn.count_rows %o : (tensor<5xi32>) -> tensor<4xf32>
  %s = nn.row_shares %n {nn.so_far = "global0"} : tensor<4xf32>
  %e = nn.expected_rows %r, %s : (tensor<2x8x4xf32>, tensor<4xf32>) -> tensor<2x8xf32>
  %loss = nn.mean %e : (tensor<2x8xf32>) -> tensor<f32>
  return %loss, %n, %n : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}
}

// -----

// One rank with samples asks no other.

// CHECK-LABEL: func.func @step(
//   CHECK-NOT:   nn.all_reduce
//       CHECK:   %[[SO_FAR:.*]] = nn.accumulate
//  CHECK-NEXT:   nn.row_shares %[[SO_FAR]]
func.func @forward(%r: tensor<2x8x4xf32> {nn.parameter = #nn.parameter<name = "r", init = ones>}, %n: tensor<4xf32>)
    -> (tensor<f32>, tensor<4xf32> {nn.measure = "global0"}) {
  %s = nn.row_shares %n {nn.so_far = "global0"} : tensor<4xf32>
  %e = nn.expected_rows %r, %s : (tensor<2x8x4xf32>, tensor<4xf32>) -> tensor<2x8xf32>
  %loss = nn.mean %e : (tensor<2x8xf32>) -> tensor<f32>
  return %loss, %n : tensor<f32>, tensor<4xf32>
}

// -----

func.func @forward(%r: tensor<f32> {nn.parameter = #nn.parameter<name = "r", init = ones>}, %n: tensor<4xf32>)
    -> (tensor<f32>, tensor<4xf32> {nn.measure = "global1"}) {
  // expected-error @+1 {{'nn.row_shares' op needs its operand 0 to be returned as the measure "global0"}}
  %s = nn.row_shares %n {nn.so_far = "global0"} : tensor<4xf32>
  return %r, %n : tensor<f32>, tensor<4xf32>
}
