// RUN: reprise-opt %s | FileCheck %s
// RUN: reprise-opt %s -mlir-print-op-generic | reprise-opt | FileCheck %s

// CHECK-LABEL: func @routing(
//  CHECK-NEXT:   nn.choose_experts %{{.*}} : (tensor<2x8x4xf32>) -> tensor<2x8x2xi32>
//  CHECK-NEXT:   nn.expert_weights %{{.*}}, %{{.*}} normalized : (tensor<2x8x4xf32>, tensor<2x8x2xi32>) -> tensor<2x8x2xf32>
//  CHECK-NEXT:   nn.expert_weights %{{.*}}, %{{.*}} : (tensor<2x8x4xf32>, tensor<2x8x2xi32>) -> tensor<2x8x2xf32>
//  CHECK-NEXT:   nn.expert_weights_backward %{{.*}}, %{{.*}}, %{{.*}} normalized :
//  CHECK-NEXT:   nn.sort_rows %{{.*}} : (tensor<2x8x2xi32>) -> (tensor<32xi32>, tensor<2x8x2xi32>, tensor<5xi32>)
//  CHECK-NEXT:   nn.permute %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x8x2xf32>, tensor<32xi32>, tensor<2x8x2xi32>) -> tensor<32xf32>
func.func @routing(%r: tensor<2x8x4xf32>, %d: tensor<2x8x2xf32>) {
  %ids = nn.choose_experts %r : (tensor<2x8x4xf32>) -> tensor<2x8x2xi32>
  %w = nn.expert_weights %r, %ids normalized : (tensor<2x8x4xf32>, tensor<2x8x2xi32>) -> tensor<2x8x2xf32>
  %v = nn.expert_weights %r, %ids : (tensor<2x8x4xf32>, tensor<2x8x2xi32>) -> tensor<2x8x2xf32>
  %dr = nn.expert_weights_backward %r, %ids, %d normalized
    : (tensor<2x8x4xf32>, tensor<2x8x2xi32>, tensor<2x8x2xf32>) -> tensor<2x8x4xf32>
  %order, %inverse, %offsets = nn.sort_rows %ids : (tensor<2x8x2xi32>) -> (tensor<32xi32>, tensor<2x8x2xi32>, tensor<5xi32>)
  %p = nn.permute %w, %order, %inverse : (tensor<2x8x2xf32>, tensor<32xi32>, tensor<2x8x2xi32>) -> tensor<32xf32>
  return
}

// CHECK-LABEL: func @groups(
//  CHECK-NEXT:   nn.choose_experts %{{.*}} bias %{{.*}} sigmoid groups 4 keep 2 by_two : (tensor<2x8x16xf32>, tensor<16xf32>) -> tensor<2x8x3xi32>
//  CHECK-NEXT:   nn.choose_experts %{{.*}} groups 4 keep 1 : (tensor<2x8x16xf32>) -> tensor<2x8x4xi32>
//  CHECK-NEXT:   nn.expert_weights %{{.*}}, %{{.*}} sigmoid normalized scale 2.500000e+00 : (tensor<2x8x16xf32>, tensor<2x8x3xi32>) -> tensor<2x8x3xf32>
//  CHECK-NEXT:   nn.expert_weights_backward %{{.*}}, %{{.*}}, %{{.*}} sigmoid scale 2.500000e+00 :
func.func @groups(%r: tensor<2x8x16xf32>, %b: tensor<16xf32>) {
  %ids = nn.choose_experts %r bias %b sigmoid groups 4 keep 2 by_two : (tensor<2x8x16xf32>, tensor<16xf32>) -> tensor<2x8x3xi32>
  %all = nn.choose_experts %r groups 4 keep 1 : (tensor<2x8x16xf32>) -> tensor<2x8x4xi32>
  %w = nn.expert_weights %r, %ids sigmoid normalized scale 2.5 : (tensor<2x8x16xf32>, tensor<2x8x3xi32>) -> tensor<2x8x3xf32>
  %dr = nn.expert_weights_backward %r, %ids, %w sigmoid scale 2.5
    : (tensor<2x8x16xf32>, tensor<2x8x3xi32>, tensor<2x8x3xf32>) -> tensor<2x8x16xf32>
  return
}

// CHECK-LABEL: func @rows(
//  CHECK-NEXT:   nn.dispatch %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x8x24xf32>, tensor<32xi32>, tensor<2x8x2xi32>) -> tensor<32x24xf32>
//  CHECK-NEXT:   nn.grouped_linear %{{.*}}, %{{.*}}, %{{.*}} rows %{{.*}}, %{{.*}} :
//  CHECK-NEXT:   nn.weighted_swiglu %{{.*}}, %{{.*}}, %{{.*}} : (tensor<32x96xf32>, tensor<32x96xf32>, tensor<32xf32>) -> tensor<32x96xf32>
//  CHECK-NEXT:   nn.grouped_linear %{{.*}}, %{{.*}}, %{{.*}} : (tensor<32x96xf32>, tensor<4x24x96xf32>, tensor<5xi32>) -> tensor<32x24xf32>
//  CHECK-NEXT:   nn.combine %{{.*}}, %{{.*}}, %{{.*}} : (tensor<32x24xf32>, tensor<32xi32>, tensor<2x8x2xi32>) -> tensor<2x8x24xf32>
//  CHECK-NEXT:   nn.weighted_swiglu_backward
//  CHECK-NEXT:   nn.grouped_linear_backward_input %{{.*}}, %{{.*}}, %{{.*}} : (tensor<32x96xf32>, tensor<4x96x24xf32>, tensor<5xi32>) -> tensor<32x24xf32>
//  CHECK-NEXT:   nn.grouped_linear_backward_weight %{{.*}}, %{{.*}}, %{{.*}} rows of input %{{.*}}, %{{.*}} :
//  CHECK-NEXT:   nn.grouped_linear_backward_weight %{{.*}}, %{{.*}}, %{{.*}} rows of dout %{{.*}}, %{{.*}} :
func.func @rows(%x: tensor<2x8x24xf32>, %up: tensor<4x96x24xf32>, %down: tensor<4x24x96xf32>, %w: tensor<32xf32>,
                %order: tensor<32xi32>, %inverse: tensor<2x8x2xi32>, %offsets: tensor<5xi32>) {
  %xr = nn.dispatch %x, %order, %inverse
    : (tensor<2x8x24xf32>, tensor<32xi32>, tensor<2x8x2xi32>) -> tensor<32x24xf32>
  %u = nn.grouped_linear %x, %up, %offsets rows %order, %inverse
    : (tensor<2x8x24xf32>, tensor<4x96x24xf32>, tensor<5xi32>, tensor<32xi32>, tensor<2x8x2xi32>) -> tensor<32x96xf32>
  %g = nn.weighted_swiglu %u, %u, %w : (tensor<32x96xf32>, tensor<32x96xf32>, tensor<32xf32>) -> tensor<32x96xf32>
  %y = nn.grouped_linear %g, %down, %offsets : (tensor<32x96xf32>, tensor<4x24x96xf32>, tensor<5xi32>) -> tensor<32x24xf32>
  %z = nn.combine %y, %order, %inverse : (tensor<32x24xf32>, tensor<32xi32>, tensor<2x8x2xi32>) -> tensor<2x8x24xf32>
  %dg, %du, %dw = nn.weighted_swiglu_backward %u, %u, %w, %g
    : (tensor<32x96xf32>, tensor<32x96xf32>, tensor<32xf32>, tensor<32x96xf32>) -> (tensor<32x96xf32>, tensor<32x96xf32>, tensor<32xf32>)
  %dx = nn.grouped_linear_backward_input %du, %up, %offsets
    : (tensor<32x96xf32>, tensor<4x96x24xf32>, tensor<5xi32>) -> tensor<32x24xf32>
  %dup = nn.grouped_linear_backward_weight %x, %du, %offsets rows of input %order, %inverse
    : (tensor<2x8x24xf32>, tensor<32x96xf32>, tensor<5xi32>, tensor<32xi32>, tensor<2x8x2xi32>) -> tensor<4x96x24xf32>
  %ddown = nn.grouped_linear_backward_weight %g, %x, %offsets rows of dout %order, %inverse
    : (tensor<32x96xf32>, tensor<2x8x24xf32>, tensor<5xi32>, tensor<32xi32>, tensor<2x8x2xi32>) -> tensor<4x24x96xf32>
  return
}

// CHECK-LABEL: func @shared(
//  CHECK-NEXT:   nn.gate_weight %{{.*}} : (tensor<2x8x1xbf16>) -> tensor<2x8xf32>
//  CHECK-NEXT:   nn.weighted_swiglu %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x8x24xbf16>, tensor<2x8x24xbf16>, tensor<2x8xf32>) -> tensor<2x8x24xbf16>
//  CHECK-NEXT:   nn.gate_weight_backward %{{.*}}, %{{.*}} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8x1xbf16>
func.func @shared(%x: tensor<2x8x1xbf16>, %u: tensor<2x8x24xbf16>, %d: tensor<2x8xf32>) {
  %w = nn.gate_weight %x : (tensor<2x8x1xbf16>) -> tensor<2x8xf32>
  %g = nn.weighted_swiglu %u, %u, %w : (tensor<2x8x24xbf16>, tensor<2x8x24xbf16>, tensor<2x8xf32>) -> tensor<2x8x24xbf16>
  %dx = nn.gate_weight_backward %w, %d : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8x1xbf16>
  return
}

// CHECK-LABEL: func @balance(
//  CHECK-NEXT:   nn.count_rows %{{.*}}, %{{.*}} : (tensor<5xi32>, tensor<5xi32>) -> tensor<4xf32>
//  CHECK-NEXT:   nn.expected_rows %{{.*}}, %{{.*}} : (tensor<2x8x4xf32>, tensor<4xf32>) -> tensor<2x8xf32>
//  CHECK-NEXT:   nn.expected_rows_backward %{{.*}}, %{{.*}}, %{{.*}} :
//  CHECK-NEXT:   nn.count_choices %{{.*}} : (tensor<2x8x2xi32>) -> tensor<2x4xf32>
//  CHECK-NEXT:   nn.expected_rows %{{.*}}, %{{.*}} sigmoid : (tensor<2x8x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
//  CHECK-NEXT:   nn.expected_rows_backward %{{.*}}, %{{.*}}, %{{.*}} sigmoid :
//  CHECK-NEXT:   nn.squared_logsumexp %{{.*}} : (tensor<2x8x4xf32>) -> tensor<2x8xf32>
//  CHECK-NEXT:   nn.squared_logsumexp_backward %{{.*}}, %{{.*}} : (tensor<2x8x4xf32>, tensor<2x8xf32>) -> tensor<2x8x4xf32>
//  CHECK-NEXT:   nn.row_shares %{{.*}} {nn.so_far = "global0"} : tensor<4xf32>
//  CHECK-NEXT:   nn.row_shares %{{.*}} : tensor<4xf32>
//  CHECK-NEXT:   nn.balance_bias %{{.*}}, %{{.*}}, %{{.*}} rate 1.000000e-03 : tensor<4xf32>, tensor<f32>
func.func @balance(%r: tensor<2x8x4xf32>, %o: tensor<5xi32>, %p: tensor<5xi32>, %i: tensor<2x8x2xi32>, %scale: tensor<f32>) {
  %n = nn.count_rows %o, %p : (tensor<5xi32>, tensor<5xi32>) -> tensor<4xf32>
  %l = nn.expected_rows %r, %n : (tensor<2x8x4xf32>, tensor<4xf32>) -> tensor<2x8xf32>
  %d = nn.expected_rows_backward %r, %n, %l : (tensor<2x8x4xf32>, tensor<4xf32>, tensor<2x8xf32>) -> tensor<2x8x4xf32>
  %c = nn.count_choices %i : (tensor<2x8x2xi32>) -> tensor<2x4xf32>
  %k = nn.expected_rows %r, %c sigmoid : (tensor<2x8x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
  %e = nn.expected_rows_backward %r, %c, %k sigmoid : (tensor<2x8x4xf32>, tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<2x8x4xf32>
  %z = nn.squared_logsumexp %r : (tensor<2x8x4xf32>) -> tensor<2x8xf32>
  %y = nn.squared_logsumexp_backward %r, %z : (tensor<2x8x4xf32>, tensor<2x8xf32>) -> tensor<2x8x4xf32>
  %s = nn.row_shares %n {nn.so_far = "global0"} : tensor<4xf32>
  %t = nn.row_shares %n : tensor<4xf32>
  %b = nn.balance_bias %n, %n, %scale rate 1.0e-03 : tensor<4xf32>, tensor<f32>
  return
}

// CHECK-LABEL: func @balance_of_model(
//  CHECK-NEXT:   nn.row_logsumexp %{{.*}} : (tensor<2x8x4xf32>) -> tensor<2x8xf32>
//  CHECK-NEXT:   nn.sum_probabilities %{{.*}}, %{{.*}} : (tensor<2x8x4xf32>, tensor<2x8xf32>) -> tensor<4xf32>
//  CHECK-NEXT:   nn.balance_loss %{{.*}}, %{{.*}} by 1.250000e-01 : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
//  CHECK-NEXT:   nn.balance_loss_backward %{{.*}}, %{{.*}} by 1.250000e-01 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
func.func @balance_of_model(%r: tensor<2x8x4xf32>, %n: tensor<4xf32>) {
  %s = nn.row_logsumexp %r : (tensor<2x8x4xf32>) -> tensor<2x8xf32>
  %p = nn.sum_probabilities %r, %s : (tensor<2x8x4xf32>, tensor<2x8xf32>) -> tensor<4xf32>
  %l = nn.balance_loss %n, %p by 0.125 : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  %d = nn.balance_loss_backward %n, %l by 0.125 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return
}

// CHECK-LABEL: func @capacity(
//  CHECK-NEXT:   nn.sort_rows %{{.*}} capacity 3 : (tensor<2x8x2xi32>) -> (tensor<13xi32>, tensor<2x8x2xi32>, tensor<5xi32>)
//  CHECK-NEXT:   nn.sort_rows %{{.*}} by %{{.*}} capacity 100 : (tensor<2x8x2xi32>, tensor<2x8x2xf32>) -> (tensor<33xi32>, tensor<2x8x2xi32>, tensor<5xi32>)
//  CHECK-NEXT:   nn.permute %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x8x2xf32>, tensor<13xi32>, tensor<2x8x2xi32>) -> tensor<13xf32>
func.func @capacity(%i: tensor<2x8x2xi32>, %w: tensor<2x8x2xf32>) {
  %order, %inverse, %offsets = nn.sort_rows %i capacity 3 : (tensor<2x8x2xi32>) -> (tensor<13xi32>, tensor<2x8x2xi32>, tensor<5xi32>)
  %a, %b, %c = nn.sort_rows %i by %w capacity 100 : (tensor<2x8x2xi32>, tensor<2x8x2xf32>) -> (tensor<33xi32>, tensor<2x8x2xi32>, tensor<5xi32>)
  %wr = nn.permute %w, %order, %inverse : (tensor<2x8x2xf32>, tensor<13xi32>, tensor<2x8x2xi32>) -> tensor<13xf32>
  return
}
