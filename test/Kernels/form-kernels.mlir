// RUN: reprise-opt %s -split-input-file --reprise-form-kernels --reprise-verify-kernels | FileCheck %s
// RUN: reprise-opt %s -split-input-file --reprise-form-kernels=rows-apart --reprise-verify-kernels | FileCheck %s --check-prefix=APART

// Neighbours that are pointwise become one kernel with what others read as
// results; the streams of its random numbers are the launch's ids, and a scope
// is its name. The other way round is another kernel.

// CHECK-LABEL: func @pointwise(
//  CHECK-SAME:   %[[X:[^:]*]]: tensor<2x8xf32>, %[[Y:[^:]*]]: tensor<2x8xf32>, %[[RNG:[^:]*]]: tensor<4xi32>)
func.func @pointwise(%x: tensor<2x8xf32>, %y: tensor<2x8xf32>, %rng: tensor<4xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  // CHECK-NEXT: %[[R:.*]]:2 = rt.launch @dropout_add_gelu_2x8(%[[Y]], %[[RNG]], %[[X]]) ids [7]
  // CHECK-SAME:   flops = {{[0-9]+}} : i64, rt.made_by = ["layer3.residual.x2", "layer3.mlp.g"], rt.name = "layer3.mlp.g"
  // CHECK-NEXT: return %[[R]]#0, %[[R]]#1
  %yd = nn.dropout %y, %rng rate 2.5e-01 stream 7 {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "yd">}
    : (tensor<2x8xf32>, tensor<4xi32>) -> tensor<2x8xf32>
  %z = nn.add %x, %yd {nn.scope = #nn.scope<layer = 3, module = "residual", value = "x2">} : tensor<2x8xf32>
  %g = nn.gelu %z tanh {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "g">} : tensor<2x8xf32>
  return %z, %g : tensor<2x8xf32>, tensor<2x8xf32>
}

// Each argument that may be overwritten has a result of its own to become.
// CHECK-LABEL: func private @dropout_add_gelu_2x8(
//  CHECK-SAME:   %[[Y:[^:]*]]: tensor<2x8xf32> {rt.may_alias = 0 : i64}, %[[RNG:[^:]*]]: tensor<4xi32>, %[[X:[^:]*]]: tensor<2x8xf32> {rt.may_alias = 1 : i64})
//  CHECK-SAME:   attributes {rt.kernel}
//  CHECK-NEXT:   %[[YD:.*]] = nn.dropout %[[Y]], %[[RNG]] rate 2.500000e-01 stream 0 :
//  CHECK-NEXT:   %[[Z:.*]] = nn.add %[[X]], %[[YD]] : tensor<2x8xf32>
//  CHECK-NEXT:   %[[G:.*]] = nn.gelu %[[Z]] tanh : tensor<2x8xf32>
//  CHECK-NEXT:   return %[[Z]], %[[G]]

// -----

// What is not connected, of another shape, or on the other side of a GEMM
// or a phase stays apart.

// CHECK-LABEL: func @apart(
func.func @apart(%x: tensor<4xf32>, %y: tensor<4xf32>, %w: tensor<4x4xf32>, %s: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x4xf32>, tensor<f32>) {
  // CHECK-NEXT: rt.launch @gelu_4(
  // CHECK-NEXT: rt.launch @add_4(
  // CHECK-NEXT: rt.launch @add_4x4(
  // CHECK-NEXT: rt.gemm
  // CHECK-NEXT: rt.launch @scale_4x4(
  // CHECK-NEXT: rt.launch @scale_4x4_2(
  // CHECK-NEXT: rt.launch @scale_scalar(
  // CHECK-NEXT: return
  %a = nn.gelu %x tanh : tensor<4xf32>
  %b = nn.add %x, %y : tensor<4xf32>
  %c = nn.add %w, %w : tensor<4x4xf32>
  %d = nn.linear %c, %w in_out : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = nn.scale %d by 2.5e-01 : tensor<4x4xf32>
  nn.backward
  %f = nn.scale %e by 5.0e-01 : tensor<4x4xf32>
  %t = nn.scale %s by 5.0e-01 : tensor<f32>
  return %a, %b, %b, %f, %t : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x4xf32>, tensor<f32>
}

// -----

// Equal layers share their kernels, whatever their scopes and streams; another
// constant or another sharing of results is another kernel.

// CHECK-LABEL: func @layers(
func.func @layers(%x: tensor<4x6xf32>, %g: tensor<6xf32>, %b: tensor<6xf32>, %rng: tensor<4xi32>) -> tensor<4x6xf32> {
  // CHECK-NEXT: rt.launch @layer_norm_dropout_4x6({{.*}} ids [1] {{.*}}rt.name = "layer0.layernorm.n1"
  // CHECK-NEXT: rt.launch @layer_norm_dropout_4x6({{.*}} ids [2] {{.*}}rt.name = "layer1.layernorm.n1"
  // CHECK-NEXT: rt.launch @layer_norm_4x6(
  // CHECK-NEXT: return
  %n0, %m0, %r0 = nn.layer_norm %x, %g, %b eps 1.0e-05 {nn.scope = #nn.scope<layer = 0, module = "layernorm", value = "n1">}
    : (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<4xf32>, tensor<4xf32>)
  %d0 = nn.dropout %n0, %rng rate 1.0e-01 stream 1 {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "yd">}
    : (tensor<4x6xf32>, tensor<4xi32>) -> tensor<4x6xf32>
  %n1, %m1, %r1 = nn.layer_norm %d0, %g, %b eps 1.0e-05 {nn.scope = #nn.scope<layer = 1, module = "layernorm", value = "n1">}
    : (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<4xf32>, tensor<4xf32>)
  %d1 = nn.dropout %n1, %rng rate 1.0e-01 stream 2 {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "yd">}
    : (tensor<4x6xf32>, tensor<4xi32>) -> tensor<4x6xf32>
  %n2, %m2, %r2 = nn.layer_norm %d1, %g, %b eps 1.0e-06
    : (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<4xf32>, tensor<4xf32>)
  return %n2 : tensor<4x6xf32>
}

// CHECK:     func private @layer_norm_dropout_4x6(%{{.*}}: tensor<4x6xf32> {rt.may_alias = 2 : i64}, %{{.*}}: tensor<6xf32>, %{{.*}}: tensor<6xf32>, %{{.*}}: tensor<4xi32>)
// CHECK:     func private @layer_norm_4x6(%{{.*}}: tensor<4x6xf32> {rt.may_alias = 0 : i64}, %{{.*}}: tensor<6xf32>, %{{.*}}: tensor<6xf32>)
// CHECK-NOT: func private

// -----

// A replay is in one launch with another if the forward pass has them in one,
// where launches are to be those of any plan.

// CHECK-LABEL: func @replays(
// APART-LABEL: func @replays(
func.func @replays(%x: tensor<8xf32>, %w: tensor<8x8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x8xf32>) {
  // CHECK-NEXT: rt.launch @add_gelu_8(
  // CHECK-NEXT: rt.launch @scale_8x8(
  // CHECK-NEXT: rt.launch @add_8(
  // APART-NEXT: rt.launch @add_gelu_8(
  // APART-NEXT: rt.launch @scale_8x8(
  // APART-NEXT: rt.launch @add_8(
  %a = nn.add %x, %x {nn.scope = #nn.scope<layer = 0, module = "residual", value = "x1">} : tensor<8xf32>
  %b = nn.gelu %a tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "g">} : tensor<8xf32>
  %s = nn.scale %w by 5.0e-01 {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "s">} : tensor<8x8xf32>
  %c = nn.add %b, %x {nn.scope = #nn.scope<layer = 0, module = "residual", value = "x2">} : tensor<8xf32>
  nn.backward
  // CHECK-NEXT: rt.launch @add_gelu_add_8({{.*}}rt.name = "layer0.residual.x2@replay"}
  // APART-NEXT: rt.launch @add_gelu_8({{.*}}rt.name = "layer0.mlp.g@replay"}
  // APART-NEXT: rt.launch @add_8({{.*}}rt.name = "layer0.residual.x2@replay"}
  %ra = nn.add %x, %x {nn.scope = #nn.scope<layer = 0, module = "residual", value = "x1">, remat.replay = 0 : i64} : tensor<8xf32>
  %rb = nn.gelu %ra tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "g">, remat.replay = 0 : i64} : tensor<8xf32>
  %rc = nn.add %rb, %x {nn.scope = #nn.scope<layer = 0, module = "residual", value = "x2">, remat.replay = 0 : i64} : tensor<8xf32>
  return %b, %c, %rc, %s : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x8xf32>
}

// -----

// A replay of losses right before their gradient is one launch with it; apart,
// it is one of its own, as each replay of rows is.

// CHECK-LABEL: func @replayed_losses(
// APART-LABEL: func @replayed_losses(
func.func @replayed_losses(%x: tensor<1x2x8xf32>, %t: tensor<1x2xi32>, %d: tensor<1x2xf32>) -> tensor<1x2x8xf32> {
  nn.backward
  // CHECK-NEXT: rt.launch @cross_entropy_cross_entropy_backward_1x2x8({{.*}}rt.name = "loss.losses.backward"}
  // CHECK-NEXT: return
  // APART-NEXT: rt.launch @cross_entropy_1x2x8({{.*}}rt.name = "loss.losses@replay"}
  // APART-NEXT: rt.launch @cross_entropy_backward_1x2x8({{.*}}rt.name = "loss.losses.backward"}
  // APART-NEXT: return
  %losses, %lse = nn.cross_entropy %x, %t {nn.scope = #nn.scope<layer = -1, module = "loss", value = "losses">, remat.replay = 0 : i64}
    : (tensor<1x2x8xf32>, tensor<1x2xi32>) -> (tensor<1x2xf32>, tensor<1x2xf32>)
  %g = nn.cross_entropy_backward %x, %t, %lse, %d {nn.scope = #nn.scope<layer = -1, module = "loss", value = "losses">}
    : (tensor<1x2x8xf32>, tensor<1x2xi32>, tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2x8xf32>
  return %g : tensor<1x2x8xf32>
}

// -----

// What goes over rows takes in what is pointwise before it and behind it, one
// such op to a launch; and says what makes each result. Each of two inputs may
// become a result. A replay of rows is alone, and so is all that goes over rows
// where nothing may join it.

// CHECK-LABEL: func @rows(
//  CHECK-SAME:   %[[X:[^:]*]]: tensor<2x4x8xf32>, %[[Y:[^:]*]]: tensor<2x4x8xf32>, %[[G:[^:]*]]: tensor<8xf32>, %[[B:[^:]*]]: tensor<8xf32>, %[[RNG:[^:]*]]: tensor<4xi32>, %[[DN:[^:]*]]: tensor<2x4x8xf32>)
// APART-LABEL: func @rows(
func.func @rows(%x: tensor<2x4x8xf32>, %y: tensor<2x4x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>, %rng: tensor<4xi32>, %dn: tensor<2x4x8xf32>)
    -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) {
  // CHECK-NEXT: %[[N:.*]]:4 = rt.launch @dropout_add_layer_norm_2x4x8(%[[Y]], %[[RNG]], %[[X]], %[[G]], %[[B]]) ids [3] {flops = {{[0-9]+}} : i64,
  // CHECK-SAME:   rt.made_by = ["layer0.residual.x1", "layer0.layernorm.n2", "layer0.layernorm.n2", "layer0.layernorm.n2"], rt.name = "layer0.layernorm.n2"}
  // APART-NEXT: rt.launch @dropout_add_2x4x8(
  // APART-NEXT: rt.launch @layer_norm_2x4x8(
  %yd = nn.dropout %y, %rng rate 1.0e-01 stream 3 {nn.scope = #nn.scope<layer = 0, module = "residual", value = "ad">}
    : (tensor<2x4x8xf32>, tensor<4xi32>) -> tensor<2x4x8xf32>
  %x1 = nn.add %x, %yd {nn.scope = #nn.scope<layer = 0, module = "residual", value = "x1">} : tensor<2x4x8xf32>
  %n, %mean, %rstd = nn.layer_norm %x1, %g, %b eps 1.0e-05 {nn.scope = #nn.scope<layer = 0, module = "layernorm", value = "n2">}
    : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
  // CHECK-NEXT: rt.launch @layer_norm_2x4x8(%[[N]]#1,
  // APART-NEXT: rt.launch @layer_norm_2x4x8(
  %m, %mean2, %rstd2 = nn.layer_norm %n, %g, %b eps 1.0e-05
    : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
  nn.backward
  // CHECK-NEXT: rt.launch @layer_norm_2x4x8(%[[N]]#1, {{.*}}rt.name = "layer0.layernorm.n3@replay"}
  // CHECK-NEXT: rt.launch @gelu_2x4x8({{.*}}rt.name = "layer0.mlp.g@replay"}
  // APART-NEXT: rt.launch @layer_norm_2x4x8(
  // APART-NEXT: rt.launch @gelu_2x4x8(
  %again, %mean3, %rstd3 = nn.layer_norm %n, %g, %b eps 1.0e-05 {nn.scope = #nn.scope<layer = 0, module = "layernorm", value = "n3">, remat.replay = 0 : i64}
    : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
  %gelu = nn.gelu %again tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "g">, remat.replay = 0 : i64} : tensor<2x4x8xf32>
  // CHECK-NEXT: rt.launch @layer_norm_backward_add_dropout_2x4x8(%[[N]]#0, %[[G]], %[[N]]#2, %[[N]]#3, %[[DN]], %[[Y]], %[[RNG]]) ids [3] {flops = {{[0-9]+}} : i64,
  // CHECK-SAME:   rt.made_by = ["layer0.layernorm.n2.backward", "layer0.residual.ad.backward"], rt.name = "layer0.layernorm.n2.backward"}
  // CHECK-NEXT: return
  // APART-NEXT: rt.launch @layer_norm_backward_add_dropout_2x4x8(
  %dx = nn.layer_norm_backward %x1, %g, %mean, %rstd, %dn {nn.scope = #nn.scope<layer = 0, module = "layernorm", value = "n2">}
    : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %sum = nn.add %y, %dx {nn.scope = #nn.scope<layer = 0, module = "layernorm", value = "n2">} : tensor<2x4x8xf32>
  %dyd = nn.dropout %sum, %rng rate 1.0e-01 stream 3 {nn.scope = #nn.scope<layer = 0, module = "residual", value = "ad">}
    : (tensor<2x4x8xf32>, tensor<4xi32>) -> tensor<2x4x8xf32>
  return %x1, %m, %gelu, %sum, %dyd : tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>
}

// CHECK: func private @dropout_add_layer_norm_2x4x8(%{{.*}}: tensor<2x4x8xf32> {rt.may_alias = 0 : i64}, %{{.*}}: tensor<4xi32>, %{{.*}}: tensor<2x4x8xf32> {rt.may_alias = 1 : i64}, %{{.*}}: tensor<8xf32>, %{{.*}}: tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>)

// -----

// Rows of bf16 are cut up otherwise than those of f32, so a cast joins no op
// that goes over them; nor does what reads nothing of the group.

// CHECK-LABEL: func @types(
func.func @types(%x: tensor<4x6xf32>, %y: tensor<4x6xbf16>, %g: tensor<6xf32>) -> (tensor<4x6xbf16>, tensor<4x6xbf16>) {
  // CHECK-NEXT: rt.launch @cast_add_4x6_bf16(
  // CHECK-NEXT: rt.launch @rms_norm_4x6_bf16(
  // CHECK-NEXT: rt.launch @scale_4x6_bf16(
  // CHECK-NEXT: return
  %z = nn.cast %x : (tensor<4x6xf32>) -> tensor<4x6xbf16>
  %s = nn.add %z, %y : tensor<4x6xbf16>
  %n, %rstd = nn.rms_norm %s, %g eps 1.0e-06 : (tensor<4x6xbf16>, tensor<6xf32>) -> (tensor<4x6xbf16>, tensor<4xf32>)
  %a = nn.scale %y by 5.0e-01 : tensor<4x6xbf16>
  return %n, %a : tensor<4x6xbf16>, tensor<4x6xbf16>
}

// -----

// Both layouts of a weight, forward and backward; operands are read as they
// lie.

// CHECK-LABEL: func @products(
//  CHECK-SAME:   %[[X:[^:]*]]: tensor<2x8x24xf32>, %[[W:[^:]*]]: tensor<24x96xf32>, %[[V:[^:]*]]: tensor<96x24xf32>, %[[B:[^:]*]]: tensor<96xf32>, %[[DY:[^:]*]]: tensor<2x8x96xf32>)
func.func @products(%x: tensor<2x8x24xf32>, %w: tensor<24x96xf32>, %v: tensor<96x24xf32>, %b: tensor<96xf32>, %dy: tensor<2x8x96xf32>) -> (
    tensor<2x8x96xf32>, tensor<2x8x96xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<24x96xf32>, tensor<96x24xf32>) {
  // CHECK-NEXT: rt.gemm %[[X]], %[[W]] bias(%[[B]]) m 16 n 96 k 24 lda 24 ldb 96 ldc 96 {rt.name = "layer0.mlp.u"}
  // CHECK-NEXT: rt.gemm %[[X]], %[[V]] transpose_b m 16 n 96 k 24 lda 24 ldb 24 ldc 96 {rt.name = "linear"}
  %y0 = nn.linear %x, %w, %b in_out {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "u">}
    : (tensor<2x8x24xf32>, tensor<24x96xf32>, tensor<96xf32>) -> tensor<2x8x96xf32>
  %y1 = nn.linear %x, %v out_in : (tensor<2x8x24xf32>, tensor<96x24xf32>) -> tensor<2x8x96xf32>
  nn.backward
  // CHECK-NEXT: rt.gemm %[[DY]], %[[W]] transpose_b m 16 n 24 k 96 lda 96 ldb 96 ldc 24 {rt.name = "layer0.mlp.u.backward_input"}
  // CHECK-NEXT: rt.gemm %[[DY]], %[[V]] m 16 n 24 k 96 lda 96 ldb 24 ldc 24
  // CHECK-NEXT: rt.gemm %[[X]], %[[DY]] transpose_a m 24 n 96 k 16 lda 24 ldb 96 ldc 96
  // CHECK-NEXT: rt.gemm %[[DY]], %[[X]] transpose_a m 96 n 24 k 16 lda 96 ldb 24 ldc 24
  // CHECK-NEXT: return
  %dx0 = nn.linear_backward_input %dy, %w in_out {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "u">}
    : (tensor<2x8x96xf32>, tensor<24x96xf32>) -> tensor<2x8x24xf32>
  %dx1 = nn.linear_backward_input %dy, %v out_in : (tensor<2x8x96xf32>, tensor<96x24xf32>) -> tensor<2x8x24xf32>
  %dw0 = nn.linear_backward_weight %x, %dy in_out : (tensor<2x8x24xf32>, tensor<2x8x96xf32>) -> tensor<24x96xf32>
  %dw1 = nn.linear_backward_weight %x, %dy out_in : (tensor<2x8x24xf32>, tensor<2x8x96xf32>) -> tensor<96x24xf32>
  return %y0, %y1, %dx0, %dx1, %dw0, %dw1 : tensor<2x8x96xf32>, tensor<2x8x96xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<24x96xf32>, tensor<96x24xf32>
}

// -----

// Attention without fusing: 2 batches of 3 heads of width 8; a head is a
// column block of rows of 24, a probability matrix lies by itself.

// CHECK-LABEL: func @heads(
//  CHECK-SAME:   %[[Q:[^:]*]]: tensor<2x5x24xf32>, %[[K:[^:]*]]: tensor<2x5x24xf32>, %[[P:[^:]*]]: tensor<2x3x5x5xf32>)
func.func @heads(%q: tensor<2x5x24xf32>, %k: tensor<2x5x24xf32>, %p: tensor<2x3x5x5xf32>) -> (tensor<2x3x5x5xf32>, tensor<2x5x24xf32>, tensor<2x5x24xf32>) {
  // CHECK-NEXT: rt.gemm %[[Q]], %[[K]] transpose_b m 5 n 5 k 8 lda 24 ldb 24 ldc 5 batch [2, 3] strides [120, 8], [120, 8], [75, 25] {alpha = 5.000000e-01 : f32,
  // CHECK-NEXT: rt.gemm %[[P]], %[[K]] m 5 n 8 k 5 lda 5 ldb 24 ldc 24 batch [2, 3] strides [75, 25], [120, 8], [120, 8] {rt.name
  // CHECK-NEXT: rt.gemm %[[P]], %[[K]] transpose_a m 5 n 8 k 5 lda 5 ldb 24 ldc 24 batch [2, 3] strides [75, 25], [120, 8], [120, 8]
  %s = nn.scores %q, %k heads 3 scale 5.0e-01 : (tensor<2x5x24xf32>, tensor<2x5x24xf32>) -> tensor<2x3x5x5xf32>
  %c = nn.context %p, %k heads 3 scale 1.0 : (tensor<2x3x5x5xf32>, tensor<2x5x24xf32>) -> tensor<2x5x24xf32>
  %t = nn.context %p, %k heads 3 scale 1.0 transposed : (tensor<2x3x5x5xf32>, tensor<2x5x24xf32>) -> tensor<2x5x24xf32>
  return %s, %c, %t : tensor<2x3x5x5xf32>, tensor<2x5x24xf32>, tensor<2x5x24xf32>
}

// -----

// A gradient is added to the old sum by what makes it, in place, where it is
// made; where the sum or the term has another reader, by a kernel.

// CHECK-LABEL: func @accumulate(
//  CHECK-SAME:   %[[X:[^:]*]]: tensor<8x4xf32>, %[[DY:[^:]*]]: tensor<8x6xf32>, %[[DZ:[^:]*]]: tensor<8x6xf32>, %[[SW:[^:]*]]: tensor<4x6xf32>, %[[SB:[^:]*]]: tensor<6xf32>, %[[SC:[^:]*]]: tensor<6xf32>)
func.func @accumulate(%x: tensor<8x4xf32>, %dy: tensor<8x6xf32>, %dz: tensor<8x6xf32>, %sw: tensor<4x6xf32>, %sb: tensor<6xf32>, %sc: tensor<6xf32>)
    -> (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
  nn.backward
  // CHECK-NEXT: %[[W:.*]] = rt.gemm %[[X]], %[[DY]] addend(%[[SW]]) transpose_a m 4 n 6 k 8
  %dw = nn.linear_backward_weight %x, %dy in_out : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  // CHECK-NEXT: %[[B:.*]] = rt.launch @sum_rows_accumulate_8x6(%[[DY]], %[[SB]])
  // CHECK-SAME:   rt.name = "sum_rows.backward_bias"
  %db = nn.sum_rows %dy : (tensor<8x6xf32>) -> tensor<6xf32>
  // CHECK-NEXT: %[[C:.*]] = rt.launch @sum_rows_8x6(%[[DZ]])
  // CHECK-NEXT: %[[C1:.*]] = rt.launch @accumulate_6(%[[SC]], %[[C]])
  %dc = nn.sum_rows %dz : (tensor<8x6xf32>) -> tensor<6xf32>
  // CHECK-NEXT: return %[[W]], %[[B]], %[[C1]], %[[C]]
  %w1 = nn.accumulate %sw, %dw : tensor<4x6xf32>
  %b1 = nn.accumulate %sb, %db : tensor<6xf32>
  %c1 = nn.accumulate %sc, %dc : tensor<6xf32>
  return %w1, %b1, %c1, %dc : tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
}

// CHECK-LABEL: func private @sum_rows_accumulate_8x6(
//  CHECK-SAME:   %[[DY:[^:]*]]: tensor<8x6xf32>, %[[SUM:[^:]*]]: tensor<6xf32> {rt.in_place = 0 : i64})
//  CHECK-NEXT:   %[[DB:.*]] = nn.sum_rows %[[DY]]
//  CHECK-NEXT:   nn.accumulate %[[SUM]], %[[DB]]
//       CHECK: func private @accumulate_6(%{{.*}}: tensor<6xf32> {rt.in_place = 0 : i64}, %{{.*}}: tensor<6xf32>)

// -----

// Sums of columns of the same rows are one launch, which adds to the old sums
// where there are some. Each value has the name of the op that makes it.

// CHECK-LABEL: func @columns(
//  CHECK-SAME:   %[[X:[^:]*]]: tensor<2x4x6xf32>, %[[MEAN:[^:]*]]: tensor<2x4xf32>, %[[RSTD:[^:]*]]: tensor<2x4xf32>, %[[DY:[^:]*]]: tensor<2x4x6xf32>, %[[SG:[^:]*]]: tensor<6xf32>, %[[SB:[^:]*]]: tensor<6xf32>)
func.func @columns(%x: tensor<2x4x6xf32>, %mean: tensor<2x4xf32>, %rstd: tensor<2x4xf32>, %dy: tensor<2x4x6xf32>, %sg: tensor<6xf32>, %sb: tensor<6xf32>)
    -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
  nn.backward
  // CHECK-NEXT: %[[A:.*]]:2 = rt.launch @layer_norm_backward_gain_accumulate_sum_rows_accumulate_2x4x6(%[[X]], %[[MEAN]], %[[RSTD]], %[[DY]], %[[SG]], %[[SB]])
  // CHECK-SAME:   flops = 252 : i64, rt.made_by = ["layer0.layernorm.n1.backward_gain", "layer0.layernorm.n1.backward_bias"], rt.name = "layer0.layernorm.n1.backward_gain"}
  %dg = nn.layer_norm_backward_gain %x, %mean, %rstd, %dy {nn.scope = #nn.scope<layer = 0, module = "layernorm", value = "n1">}
    : (tensor<2x4x6xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4x6xf32>) -> tensor<6xf32>
  %g1 = nn.accumulate %sg, %dg : tensor<6xf32>
  %db = nn.sum_rows %dy {nn.scope = #nn.scope<layer = 0, module = "layernorm", value = "n1">} : (tensor<2x4x6xf32>) -> tensor<6xf32>
  %b1 = nn.accumulate %sb, %db : tensor<6xf32>
  // What adds to a sum of the launch comes behind it, and may have others beside it.
  // CHECK-NEXT: %[[B:.*]]:2 = rt.launch @sum_rows_accumulate_rms_norm_backward_gain_2x4x6(%[[X]], %[[A]]#0, %[[RSTD]], %[[DY]])
  // CHECK-SAME:   rt.made_by = ["sum_rows.backward_bias", "rms_norm_backward_gain.backward_gain"], rt.name = "sum_rows.backward_bias"}
  %dx = nn.sum_rows %x : (tensor<2x4x6xf32>) -> tensor<6xf32>
  %g2 = nn.accumulate %g1, %dx : tensor<6xf32>
  %dr = nn.rms_norm_backward_gain %x, %rstd, %dy : (tensor<2x4x6xf32>, tensor<2x4xf32>, tensor<2x4x6xf32>) -> tensor<6xf32>
  // CHECK-NEXT: %[[S:.*]] = rt.launch @scale_6(%[[B]]#1)
  // CHECK-NEXT: return %[[B]]#0, %[[A]]#1, %[[B]]#1, %[[S]]
  %ds = nn.scale %dr by 2.0 : tensor<6xf32>
  return %g2, %b1, %dr, %ds : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
}

// -----

// Not so where rows are others, or cut up otherwise, or one reads what the other
// sums.

// CHECK-LABEL: func @columns_behind(
//  CHECK-NEXT:   rt.launch @sum_rows_6x6(
//  CHECK-NEXT:   rt.launch @layer_norm_backward_gain_6x6(
func.func @columns_behind(%x: tensor<6x6xf32>, %rstd: tensor<6xf32>, %dy: tensor<6x6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  nn.backward
  %a = nn.sum_rows %dy : (tensor<6x6xf32>) -> tensor<6xf32>
  %g = nn.layer_norm_backward_gain %x, %a, %rstd, %dy : (tensor<6x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6x6xf32>) -> tensor<6xf32>
  return %a, %g : tensor<6xf32>, tensor<6xf32>
}

// -----

// CHECK-LABEL: func @columns_apart(
//  CHECK-NEXT:   rt.launch @sum_rows_2x4x6(
//  CHECK-NEXT:   rt.launch @sum_rows_2x4x6(
//  CHECK-NEXT:   rt.launch @rms_norm_backward_gain_2x4x6(
//  CHECK-NEXT:   return
func.func @columns_apart(%x: tensor<2x4x6xf32>, %rstd: tensor<2x4x2xf32>, %dy: tensor<2x4x6xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<3xf32>) {
  nn.backward
  %a = nn.sum_rows %x : (tensor<2x4x6xf32>) -> tensor<6xf32>
  %b = nn.sum_rows %dy : (tensor<2x4x6xf32>) -> tensor<6xf32>
  %c = nn.rms_norm_backward_gain %x, %rstd, %dy : (tensor<2x4x6xf32>, tensor<2x4x2xf32>, tensor<2x4x6xf32>) -> tensor<3xf32>
  return %a, %b, %c : tensor<6xf32>, tensor<6xf32>, tensor<3xf32>
}

// -----

// The gradient of a tied table is a sum, of which each term is accumulated
// where it is made: no table of terms exists.

// CHECK-LABEL: func @tied(
//  CHECK-SAME:   %[[IDS:[^:]*]]: tensor<2x4xi32>, %[[X:[^:]*]]: tensor<2x4x6xf32>, %[[DL:[^:]*]]: tensor<2x4x9xf32>, %[[SUM:[^:]*]]: tensor<9x6xf32>)
func.func @tied(%ids: tensor<2x4xi32>, %x: tensor<2x4x6xf32>, %dl: tensor<2x4x9xf32>, %sum: tensor<9x6xf32>) -> tensor<9x6xf32> {
  nn.backward
  // CHECK-NEXT: %[[HEAD:.*]] = rt.gemm %[[DL]], %[[X]] addend(%[[SUM]]) transpose_a m 9 n 6 k 8
  // CHECK-NEXT: %[[BOTH:.*]] = rt.launch @embedding_backward_accumulate_9x6(%[[IDS]], %[[X]], %[[HEAD]])
  // CHECK-NEXT: return %[[BOTH]]
  %head = nn.linear_backward_weight %x, %dl out_in : (tensor<2x4x6xf32>, tensor<2x4x9xf32>) -> tensor<9x6xf32>
  %table = nn.embedding_backward %ids, %x : (tensor<2x4xi32>, tensor<2x4x6xf32>) -> tensor<9x6xf32>
  %term = nn.add %head, %table : tensor<9x6xf32>
  %acc = nn.accumulate %sum, %term : tensor<9x6xf32>
  return %acc : tensor<9x6xf32>
}

// -----

// Replays: the fence is gone, the replay is a launch of the same kernel with
// its own name, and joins no group with what is no replay.

// CHECK-LABEL: func @replay(
//  CHECK-SAME:   %[[N:[^:]*]]: tensor<4x4xf32>, %[[W:[^:]*]]: tensor<4x4xf32>, %[[DG:[^:]*]]: tensor<4x4xf32>)
func.func @replay(%n: tensor<4x4xf32>, %w: tensor<4x4xf32>, %dg: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  // CHECK-NEXT: %[[U:.*]] = rt.gemm %[[N]], %[[W]] m 4 n 4 k 4 lda 4 ldb 4 ldc 4 {rt.name = "layer3.mlp.u"}
  // CHECK-NEXT: %[[G:.*]] = rt.launch @gelu_4x4(%[[U]]) {flops = {{[0-9]+}} : i64, rt.name = "layer3.mlp.g"}
  %u = nn.linear %n, %w in_out {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "u">} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %g = nn.gelu %u tanh {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "g">} : tensor<4x4xf32>
  nn.backward
  // CHECK-NEXT: %[[UR:.*]] = rt.gemm %[[N]], %[[W]] m 4 n 4 k 4 lda 4 ldb 4 ldc 4 {remat.replay = 3 : i64, rt.name = "layer3.mlp.u@replay"}
  // CHECK-NEXT: %[[GR:.*]] = rt.launch @gelu_4x4(%[[UR]]) {flops = {{[0-9]+}} : i64, remat.replay = 3 : i64, rt.name = "layer3.mlp.g@replay"}
  // CHECK-NEXT: %[[S:.*]] = rt.launch @add_4x4(%[[GR]], %[[DG]]) {{.*}}rt.name = "add.backward"
  // CHECK-NEXT: return %[[G]], %[[S]]
  %nr = remat.fence %n after %dg : tensor<4x4xf32>, tensor<4x4xf32>
  %ur = nn.linear %nr, %w in_out {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "u">, remat.replay = 3 : i64}
    : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %gr = nn.gelu %ur tanh {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "g">, remat.replay = 3 : i64} : tensor<4x4xf32>
  %s = nn.add %gr, %dg : tensor<4x4xf32>
  return %g, %s : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// The update: the norm in launches over 3 blocks of at most 16384, over the blocks
// of each gradient, and over the gradients; all parameters in one, states in
// place, and gradients of zero for the next step in place of the sums.

// CHECK-LABEL: func @step(
//  CHECK-SAME:   %[[P:[^:]*]]: tensor<20x1000xf32> {nn.parameter = {{[^}]*}}}, %[[G:[^:]*]]: tensor<20x1000xf32> {nn.gradient = "p"}, %[[M:[^:]*]]: tensor<20x1000xf32> {nn.moment1 = "p"}, %[[V:[^:]*]]: tensor<20x1000xf32> {nn.moment2 = "p"}, %[[Q:[^:]*]]: tensor<4xf32> {{{[^}]*}}}, %[[H:[^:]*]]: tensor<4xf32> {nn.gradient = "q"}
//  CHECK-SAME:   -> (tensor<20x1000xf32> {nn.gradient = "p"}, tensor<f32> {nn.output = "grad_norm"}, tensor<20x1000xf32> {nn.parameter = "p"}, tensor<20x1000xf32> {nn.moment1 = "p"}, tensor<20x1000xf32> {nn.moment2 = "p"}, tensor<4xf32> {nn.gradient = "q"})
func.func @step(%p: tensor<20x1000xf32> {nn.parameter = #nn.parameter<name = "p", init = zeros>}, %g: tensor<20x1000xf32> {nn.gradient = "p"},
    %m: tensor<20x1000xf32> {nn.moment1 = "p"}, %v: tensor<20x1000xf32> {nn.moment2 = "p"}, %q: tensor<4xf32> {nn.parameter = #nn.parameter<name = "q", init = zeros>},
    %h: tensor<4xf32> {nn.gradient = "q"}, %dp: tensor<20x1000xf32>, %lr: tensor<f32>, %c1: tensor<f32>, %c2: tensor<f32>)
    -> (tensor<20x1000xf32> {nn.gradient = "p"}, tensor<f32> {nn.output = "grad_norm"}, tensor<20x1000xf32> {nn.parameter = "p"},
        tensor<20x1000xf32> {nn.moment1 = "p"}, tensor<20x1000xf32> {nn.moment2 = "p"}) {
  // CHECK-NEXT: %[[G1:.*]] = rt.launch @accumulate_20x1000(%[[G]],
  %g1 = nn.accumulate %g, %dp : tensor<20x1000xf32>
  // CHECK-NEXT: rt.update
  nn.update
  // CHECK-NEXT: %[[SUMS:.*]] = rt.launch @sums_of_squares_3(%[[G1]], %{{.*}}) {flops = 40008 : i64, rt.name = "global_norm"} : {{.*}} -> tensor<3xf32>
  // CHECK-NEXT: %[[OF_P:.*]] = rt.view %[[SUMS]] from 0 : tensor<3xf32> to tensor<2xf32>
  // CHECK-NEXT: %[[OF_Q:.*]] = rt.view %[[SUMS]] from 2 : tensor<3xf32> to tensor<1xf32>
  // CHECK-NEXT: %[[ROW:.*]] = rt.launch @sums_2(%[[OF_P]], %[[OF_Q]]) {{.*}} -> tensor<2xf32>
  // CHECK-NEXT: %[[NORM:.*]] = rt.launch @root_of_sum_2(%[[ROW]]) {{.*}} -> tensor<f32>
  // CHECK-NEXT: %[[SCALE:.*]] = rt.launch @clip_scale_scalar(%[[NORM]])
  %norm = nn.global_norm %g1, %h : (tensor<20x1000xf32>, tensor<4xf32>) -> tensor<f32>
  %scale = nn.clip_scale %norm max 1.0 : tensor<f32>
  // CHECK-NEXT: %[[NEW:.*]]:8 = rt.launch @adamw_20x1000(%[[P]], %[[G1]], %[[M]], %[[V]], %[[SCALE]], {{.*}}, %[[Q]], %[[H]]) {{.*}}rt.name = "optimizer"}
  // CHECK-NEXT: return %[[NEW]]#3, %[[NORM]], %[[NEW]]#0, %[[NEW]]#1, %[[NEW]]#2, %[[NEW]]#7
  %p1, %m1, %v1 = nn.adamw %p, %g1, %m, %v, %scale, %lr, %c1, %c2 beta1 9.0e-01 beta2 9.5e-01 eps 1.0e-08 weight_decay 1.0e-01 : tensor<20x1000xf32>, tensor<f32>
  %q1, %n1, %w1 = nn.adamw %q, %h, %h, %h, %scale, %lr, %c1, %c2 beta1 9.0e-01 beta2 9.5e-01 eps 1.0e-08 weight_decay 0.0 : tensor<4xf32>, tensor<f32>
  return %g1, %norm, %p1, %m1, %v1 : tensor<20x1000xf32>, tensor<f32>, tensor<20x1000xf32>, tensor<20x1000xf32>, tensor<20x1000xf32>
}

// CHECK-LABEL: func private @sums_of_squares_3(
//       CHECK:   rt.block_sums %{{.*}}, %{{.*}} square
// CHECK-LABEL: func private @adamw_20x1000(
//  CHECK-SAME:   tensor<20x1000xf32> {rt.in_place = 0 : i64}, %{{.*}}: tensor<20x1000xf32> {rt.in_place = 3 : i64}, %{{.*}}: tensor<20x1000xf32> {rt.in_place = 1 : i64}, %{{.*}}: tensor<20x1000xf32> {rt.in_place = 2 : i64}, %{{.*}}: tensor<f32>,
//  CHECK-SAME:   tensor<4xf32> {rt.in_place = 4 : i64}, %{{.*}}: tensor<4xf32> {rt.in_place = 5 : i64})
//       CHECK:   nn.adamw
//       CHECK:   nn.constant 0.000000e+00 : tensor<20x1000xf32>
//       CHECK:   nn.adamw
//       CHECK:   nn.constant 0.000000e+00 : tensor<4xf32>

// -----

// A GEMM has as many heads of keys as of queries: where these share them,
// keys are repeated before, by one kernel for all layers, and gradients of keys
// summed afterwards, (2*9*24 - 2*9*8) = 288 additions. Of 6 heads, 0 to 2 read
// head 0 of the 2.

// CHECK-LABEL: func @shared_heads(
//  CHECK-SAME:   %[[Q:[^:]*]]: tensor<2x9x24xf32>, %[[K:[^:]*]]: tensor<2x9x8xf32>, %[[P:[^:]*]]: tensor<2x6x9x9xf32>)
func.func @shared_heads(%q: tensor<2x9x24xf32>, %k: tensor<2x9x8xf32>, %p: tensor<2x6x9x9xf32>) -> (tensor<2x6x9x9xf32>, tensor<2x9x24xf32>, tensor<2x9x8xf32>) {
  // CHECK-NEXT: %[[K6:.*]] = rt.launch @repeat_heads_2_to_6_2x9x8(%[[K]]) {rt.name = "layer0.core_attn.s"} : (tensor<2x9x8xf32>) -> tensor<2x9x24xf32>
  // CHECK-NEXT: rt.gemm %[[Q]], %[[K6]] transpose_b m 9 n 9 k 4 lda 24 ldb 24 ldc 9 batch [2, 6] strides [216, 4], [216, 4], [486, 81]
  // CHECK-NEXT: %[[V6:.*]] = rt.launch @repeat_heads_2_to_6_2x9x8(%[[K]])
  // CHECK-NEXT: rt.gemm %[[P]], %[[V6]] m 9 n 4 k 9 lda 9 ldb 24 ldc 24 batch [2, 6] strides [486, 81], [216, 4], [216, 4]
  %s = nn.scores %q, %k heads 6 kv_heads 2 scale 2.5e-01 {nn.scope = #nn.scope<layer = 0, module = "core_attn", value = "s">}
    : (tensor<2x9x24xf32>, tensor<2x9x8xf32>) -> tensor<2x6x9x9xf32>
  %ctx = nn.context %p, %k heads 6 kv_heads 2 scale 1.0 : (tensor<2x6x9x9xf32>, tensor<2x9x8xf32>) -> tensor<2x9x24xf32>
  nn.backward
  // CHECK-NEXT: %[[DV6:.*]] = rt.gemm %[[P]], %[[Q]] transpose_a m 9 n 4 k 9 lda 9 ldb 24 ldc 24 batch [2, 6] strides [486, 81], [216, 4], [216, 4]
  // CHECK-NEXT: rt.launch @sum_heads_6_to_2_2x9x24(%[[DV6]]) {flops = 288 : i64, rt.name = "layer0.core_attn.ctx.backward"} : (tensor<2x9x24xf32>) -> tensor<2x9x8xf32>
  // CHECK-NEXT: return
  %dv = nn.context %p, %q heads 6 kv_heads 2 scale 1.0 transposed {nn.scope = #nn.scope<layer = 0, module = "core_attn", value = "ctx">}
    : (tensor<2x6x9x9xf32>, tensor<2x9x24xf32>) -> tensor<2x9x8xf32>
  return %s, %ctx, %dv : tensor<2x6x9x9xf32>, tensor<2x9x24xf32>, tensor<2x9x8xf32>
}

// CHECK-LABEL: func private @repeat_heads_2_to_6_2x9x8(
//       CHECK:   %[[K:.*]] = tensor.expand_shape %{{.*}} output_shape [36, 4]
//       CHECK:     %[[ROW:.*]] = linalg.index 0
//       CHECK:     %[[SHARED:.*]] = arith.divui %[[ROW]], %c3
//       CHECK:     tensor.extract %[[K]][%[[SHARED]],

// In ascending order.
// CHECK-LABEL: func private @sum_heads_6_to_2_2x9x24(
//       CHECK:     %[[FIRST:.*]] = arith.muli %{{.*}}, %c3
//       CHECK:     %[[A:.*]] = tensor.extract %{{.*}}[%[[FIRST]],
//       CHECK:     %[[B:.*]] = tensor.extract
//  CHECK-NEXT:     %[[AB:.*]] = arith.addf %[[A]], %[[B]]
//       CHECK:     %[[C:.*]] = tensor.extract
//  CHECK-NEXT:     %[[ABC:.*]] = arith.addf %[[AB]], %[[C]]
//  CHECK-NEXT:     linalg.yield %[[ABC]]

// -----

// What a norm reads and what a gate reads may become what they make; a rotation
// reads across its rows.

// CHECK-LABEL: func @sharing(
func.func @sharing(%x: tensor<2x4x8xf32>, %g: tensor<8xf32>, %u: tensor<2x4x8xf32>, %r: tensor<4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>) {
  %n, %rstd = nn.rms_norm %x, %g eps 1.0e-06 : (tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
  %t = nn.rope %n, %r heads 1 half_split : (tensor<2x4x8xf32>, tensor<4x8xf32>) -> tensor<2x4x8xf32>
  nn.backward
  %dg, %du = nn.swiglu_backward %t, %u, %x : tensor<2x4x8xf32>
  return %dg, %du : tensor<2x4x8xf32>, tensor<2x4x8xf32>
}
// CHECK: func private @rms_norm_2x4x8(%{{.*}}: tensor<2x4x8xf32> {rt.may_alias = 0 : i64}, %{{.*}}: tensor<8xf32>)
// CHECK: func private @rope_2x4x8(%{{.*}}: tensor<2x4x8xf32>, %{{.*}}: tensor<4x8xf32>)
// CHECK: func private @swiglu_backward_2x4x8(%{{.*}}: tensor<2x4x8xf32> {rt.may_alias = 0 : i64}, %{{.*}}: tensor<2x4x8xf32> {rt.may_alias = 1 : i64}, %{{.*}}: tensor<2x4x8xf32> {rt.may_alias = 0 : i64})

// -----

// A constant behind nn.adamw that is no zero is not what is left of a gradient.

// CHECK-LABEL: func.func @step(
//       CHECK:   %[[W:.*]] = rt.gemm
//       CHECK:   %[[NEW:.*]]:3 = rt.launch @adamw_4x8(
//  CHECK-NEXT:   %[[C:.*]] = rt.launch @constant_4x8()
//  CHECK-NEXT:   return %[[W]], %[[C]], %[[NEW]]#0,
func.func @step(%x: tensor<16x4xf32> {nn.parameter = #nn.parameter<name = "x", init = ones, frozen = true>}, %dy: tensor<16x8xf32> {nn.parameter = #nn.parameter<name = "dy", init = ones, frozen = true>},
    %w: tensor<4x8xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}, %gw: tensor<4x8xf32> {nn.gradient = "w"},
    %mw: tensor<4x8xf32> {nn.moment1 = "w"}, %vw: tensor<4x8xf32> {nn.moment2 = "w"}, %lr: tensor<f32> {nn.input = "lr"})
    -> (tensor<4x8xf32> {nn.gradient = "w"}, tensor<4x8xf32> {nn.output = "logits"}, tensor<4x8xf32> {nn.parameter = "w"}, tensor<4x8xf32> {nn.moment1 = "w"}, tensor<4x8xf32> {nn.moment2 = "w"})
    attributes {nn.micro_batches = 1 : i64} {
  nn.backward
  %dw = nn.linear_backward_weight %x, %dy in_out : (tensor<16x4xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  %gw1 = nn.accumulate %gw, %dw : tensor<4x8xf32>
  nn.update
  %w1, %mw1, %vw1 = nn.adamw %w, %gw1, %mw, %vw, %lr, %lr, %lr, %lr beta1 9.0e-01 beta2 9.5e-01 eps 1.0e-08 weight_decay 0.0 : tensor<4x8xf32>, tensor<f32>
  %c = nn.constant 5.0e+00 : tensor<4x8xf32>
  return %gw1, %c, %w1, %mw1, %vw1 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
