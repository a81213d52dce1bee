// RUN: reprise-opt %s -split-input-file \
// RUN:   --pass-pipeline='builtin.module(func.func(convert-nn-to-linalg),reprise-verify-kernels{loops})' \
// RUN: | FileCheck %s

// A group is one loop over all elements. Scalars are read by a map without
// dimensions.

// CHECK-DAG: #[[$N:.*]] = affine_map<(d0) -> (d0)>
// CHECK-DAG: #[[$ONE:.*]] = affine_map<(d0) -> ()>

// CHECK-LABEL: func private @scale_add_broadcast(
//  CHECK-SAME:   %[[X:[^:]*]]: tensor<2x8xf32>, %[[S:[^:]*]]: tensor<f32>)
func.func private @scale_add_broadcast(%x: tensor<2x8xf32>, %s: tensor<f32>) -> tensor<2x8xf32> attributes {rt.kernel} {
  // CHECK:      %[[FLAT:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0, 1]] : tensor<2x8xf32> into tensor<16xf32>
  // CHECK:      %[[OUT:.*]] = linalg.generic {indexing_maps = [#[[$N]], #[[$ONE]], #[[$N]]], iterator_types = ["parallel"]}
  // CHECK-SAME:   ins(%[[FLAT]], %[[S]] : tensor<16xf32>, tensor<f32>) outs(%{{.*}} : tensor<16xf32>)
  // CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %{{.*}}: f32):
  // CHECK-DAG:    %[[HALF:.*]] = arith.constant 5.000000e-01 : f32
  // CHECK-DAG:    %[[QUARTER:.*]] = arith.constant 2.500000e-01 : f32
  // CHECK-DAG:    %[[HALVED:.*]] = arith.mulf %[[HALF]], %[[A]] : f32
  // CHECK-DAG:    %[[WIDE:.*]] = arith.mulf %[[QUARTER]], %[[B]] : f32
  // CHECK:        %[[SUM:.*]] = arith.addf %[[HALVED]], %[[WIDE]] : f32
  // CHECK-NEXT:   linalg.yield %[[SUM]] : f32
  // CHECK:      %[[BACK:.*]] = tensor.expand_shape %[[OUT]] {{\[\[}}0, 1]] output_shape [2, 8]
  // CHECK-NEXT: return %[[BACK]]
  %h = nn.scale %x by 5.0e-01 : tensor<2x8xf32>
  %w = nn.broadcast %s by 2.5e-01 : (tensor<f32>) -> tensor<2x8xf32>
  %z = nn.add %h, %w : tensor<2x8xf32>
  return %z : tensor<2x8xf32>
}

// -----

// In bf16 the result of each op is rounded, inside the loop too.

// CHECK-LABEL: func private @rounding(
func.func private @rounding(%x: tensor<4xbf16>, %y: tensor<4xbf16>) -> tensor<4xbf16> attributes {rt.kernel} {
  // CHECK:      ^bb0(%[[X:.*]]: bf16, %[[Y:.*]]: bf16, %{{.*}}: bf16):
  // CHECK-DAG:    %[[XF:.*]] = arith.extf %[[X]] : bf16 to f32
  // CHECK-DAG:    %[[YF:.*]] = arith.extf %[[Y]] : bf16 to f32
  // CHECK:        %[[SUM:.*]] = arith.addf %[[XF]], %[[YF]] : f32
  // CHECK-NEXT:   %[[STORED:.*]] = arith.truncf %[[SUM]] : f32 to bf16
  // CHECK-NEXT:   %[[READ:.*]] = arith.extf %[[STORED]] : bf16 to f32
  // CHECK:        arith.mulf %{{.*}}, %[[READ]] : f32
  %s = nn.add %x, %y : tensor<4xbf16>
  %h = nn.scale %s by 5.0e-01 : tensor<4xbf16>
  return %h : tensor<4xbf16>
}

// -----

// A quarter is dropped: 2^30 = 1073741824 of the words; 1 / (1 - 1/4) =
// 1.33333337.

// CHECK-LABEL: func private @dropout(
//  CHECK-SAME:   %{{.*}}: tensor<8xf32>, %[[RNG:[^:]*]]: tensor<4xi32>)
func.func private @dropout(%x: tensor<8xf32>, %rng: tensor<4xi32>) -> tensor<8xf32> attributes {rt.kernel} {
  // CHECK-COUNT-4: tensor.extract %[[RNG]]
  // CHECK:         %[[STREAM:.*]] = rt.stream 2
  // CHECK:         linalg.generic
  // CHECK:           %[[E:.*]] = linalg.index 0 : index
  // CHECK:           %[[WORD:.*]] = rt.random_word %[[E]] key %{{.*}}, %{{.*}} step %{{.*}} micro_batch %{{.*}} stream %[[STREAM]]
  // CHECK:           %[[KEEP:.*]] = arith.cmpi uge, %[[WORD]], %{{.*}} : i32
  // CHECK:           %[[SCALED:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
  // CHECK:           arith.select %[[KEEP]], %[[SCALED]], %{{.*}} : f32
  %y = nn.dropout %x, %rng rate 2.5e-01 stream 2 : (tensor<8xf32>, tensor<4xi32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// AdamW writes its states and sets the gradient to zero in one loop.

// CHECK-LABEL: func private @adamw(
func.func private @adamw(%p: tensor<4xf32> {rt.in_place = 0 : i64}, %g: tensor<4xf32> {rt.in_place = 3 : i64}, %m: tensor<4xf32> {rt.in_place = 1 : i64},
    %v: tensor<4xf32> {rt.in_place = 2 : i64}, %scale: tensor<f32>, %lr: tensor<f32>, %c1: tensor<f32>, %c2: tensor<f32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {rt.kernel} {
  // CHECK:     %[[R:.*]]:4 = linalg.generic
  // CHECK:       math.sqrt
  // CHECK:       %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
  // CHECK:       linalg.yield %{{.*}}, %{{.*}}, %{{.*}}, %[[ZERO]] : f32, f32, f32, f32
  // CHECK-NOT: linalg.generic
  // CHECK:     return %[[R]]#0, %[[R]]#1, %[[R]]#2, %[[R]]#3
  %p1, %m1, %v1 = nn.adamw %p, %g, %m, %v, %scale, %lr, %c1, %c2 beta1 9.0e-01 beta2 9.5e-01 eps 1.0e-08 weight_decay 1.0e-01 : tensor<4xf32>, tensor<f32>
  %zero = nn.constant 0.0 : tensor<4xf32>
  return %p1, %m1, %v1, %zero : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A norm goes over each row of the same matrix: sum, mean, squares, root,
// result.

// CHECK-DAG: #[[$RC:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$R:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[$C:.*]] = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func private @layer_norm(
func.func private @layer_norm(%x: tensor<2x8x24xf32>, %g: tensor<24xf32>, %b: tensor<24xf32>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8xf32>) attributes {rt.kernel} {
  // CHECK: %[[X:.*]] = tensor.collapse_shape %{{.*}} {{\[\[}}0, 1], [2]] : tensor<2x8x24xf32> into tensor<16x24xf32>
  // CHECK: linalg.generic {indexing_maps = [#[[$RC]], #[[$R]]], iterator_types = ["parallel", "reduction"]} ins(%[[X]] : {{.*}}) outs(%{{.*}} : tensor<16xf32>)
  // CHECK: %[[MEAN:.*]] = linalg.generic {{.*}} iterator_types = ["parallel"]}
  // CHECK: linalg.generic {indexing_maps = [#[[$RC]], #[[$R]], #[[$R]]], iterator_types = ["parallel", "reduction"]} ins(%[[X]], %[[MEAN]] :
  // CHECK: %[[RSTD:.*]] = linalg.generic {{.*}} iterator_types = ["parallel"]}
  // CHECK: linalg.generic {indexing_maps = [#[[$RC]], #[[$R]], #[[$R]], #[[$C]], #[[$C]], #[[$RC]]], iterator_types = ["parallel", "parallel"]} ins(%[[X]], %[[MEAN]], %[[RSTD]],
  %y, %mean, %rstd = nn.layer_norm %x, %g, %b eps 1.0e-05
    : (tensor<2x8x24xf32>, tensor<24xf32>, tensor<24xf32>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
  return %y, %mean, %rstd : tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// A column reduction that accumulates starts from the old sum; one that does
// not, from zero.

// CHECK-DAG: #[[$RC:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$C:.*]] = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func private @sum_rows(
//  CHECK-SAME:   %{{.*}}: tensor<2x8x24xf32>, %[[SUM:[^:]*]]: tensor<24xf32>
func.func private @sum_rows(%x: tensor<2x8x24xf32>, %sum: tensor<24xf32> {rt.in_place = 0 : i64}) -> (tensor<24xf32>, tensor<24xf32>) attributes {rt.kernel} {
  // CHECK: %[[ACC:.*]] = linalg.generic {indexing_maps = [#[[$RC]], #[[$C]]], iterator_types = ["reduction", "parallel"]} ins(%{{.*}} : tensor<16x24xf32>) outs(%[[SUM]] : tensor<24xf32>)
  %t = nn.sum_rows %x : (tensor<2x8x24xf32>) -> tensor<24xf32>
  %acc = nn.accumulate %sum, %t : tensor<24xf32>
  // CHECK: %[[ZERO:.*]] = linalg.fill
  // CHECK: %[[NEW:.*]] = linalg.generic {{.*}} outs(%[[ZERO]] : tensor<24xf32>)
  // CHECK: return %[[ACC]], %[[NEW]]
  %u = nn.sum_rows %x : (tensor<2x8x24xf32>) -> tensor<24xf32>
  return %acc, %u : tensor<24xf32>, tensor<24xf32>
}

// -----

// Softmax leaves out what comes after the row's position, which is its number
// modulo the length.

// CHECK-LABEL: func private @softmax(
func.func private @softmax(%s: tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32> attributes {rt.kernel} {
  // CHECK: linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<48xf32>)
  // CHECK: linalg.generic
  // CHECK:   %[[ROW:.*]] = linalg.index 0
  // CHECK:   %[[COL:.*]] = linalg.index 1
  // CHECK:   %[[I:.*]] = arith.remui %[[ROW]], %{{.*}} : index
  // CHECK:   %[[C:.*]] = arith.index_cast %[[COL]] : index to i32
  // CHECK:   %[[P:.*]] = arith.index_cast %[[I]] : index to i32
  // CHECK:   %[[SEEN:.*]] = arith.cmpi ule, %[[C]], %[[P]] : i32
  // CHECK:   %[[S:.*]] = arith.select %[[SEEN]], %{{.*}}, %{{.*}} : f32
  // CHECK:   arith.maxnumf %{{.*}}, %[[S]] : f32
  // CHECK: %[[E:.*]] = linalg.generic
  // CHECK:   math.exp
  // CHECK:   arith.select
  // CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[E]] :
  // CHECK:   arith.addf
  // CHECK: %[[INVERSE:.*]] = linalg.generic {{.*}} ins(%[[SUM]] :
  // CHECK:   arith.divf
  // CHECK: linalg.generic {{.*}} ins(%[[E]], %[[INVERSE]] :
  // CHECK:   arith.mulf
  %p = nn.softmax %s : tensor<2x3x8x8xf32>
  return %p : tensor<2x3x8x8xf32>
}

// -----

// The loss takes the one logit of each row that its target names.

// CHECK-LABEL: func private @cross_entropy(
func.func private @cross_entropy(%x: tensor<2x8x307xf32>, %t: tensor<2x8xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) attributes {rt.kernel} {
  // CHECK: %[[X:.*]] = tensor.collapse_shape
  // CHECK: arith.maxnumf
  // CHECK: math.exp
  // CHECK-NOT: arith.select
  // CHECK: %[[ROW:.*]] = linalg.index 0
  // CHECK: %[[TARGET:.*]] = arith.index_cast %{{.*}} : i32 to index
  // CHECK: tensor.extract %[[X]][%[[ROW]], %[[TARGET]]]
  // CHECK: math.log
  %l, %lse = nn.cross_entropy %x, %t : (tensor<2x8x307xf32>, tensor<2x8xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  return %l, %lse : tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// The loss and its gradient in one kernel have one exponential.

// CHECK-LABEL: func private @loss_and_gradient(
func.func private @loss_and_gradient(%x: tensor<2x8x307xf32> {rt.may_alias = 2 : i64}, %t: tensor<2x8xi32>, %d: tensor<2x8xf32>)
    -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8x307xf32>) attributes {rt.kernel} {
  // CHECK: math.exp
  // CHECK-NOT: math.exp
  // CHECK: tensor.extract
  // CHECK-NOT: {{math.exp|tensor.extract}}
  // CHECK: return
  %l, %lse = nn.cross_entropy %x, %t : (tensor<2x8x307xf32>, tensor<2x8xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  %dx = nn.cross_entropy_backward %x, %t, %lse, %d : (tensor<2x8x307xf32>, tensor<2x8xi32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8x307xf32>
  return %l, %lse, %dx : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8x307xf32>
}

// -----

// Tables are read by row and column.

// CHECK-LABEL: func private @tables(
//  CHECK-SAME:   %{{.*}}: tensor<2x8xi32>, %[[WTE:[^:]*]]: tensor<307x24xf32>, %[[WPE:[^:]*]]: tensor<16x24xf32>)
func.func private @tables(%ids: tensor<2x8xi32>, %wte: tensor<307x24xf32>, %wpe: tensor<16x24xf32>) -> tensor<2x8x24xf32> attributes {rt.kernel} {
  // CHECK: ^bb0(%[[ID:.*]]: i32, %{{.*}}: f32):
  // CHECK:   %[[ROW:.*]] = arith.index_cast %[[ID]] : i32 to index
  // CHECK:   %[[COL:.*]] = linalg.index 1 : index
  // CHECK:   tensor.extract %[[WTE]][%[[ROW]], %[[COL]]]
  // CHECK:   %[[POSITION:.*]] = arith.remui
  // CHECK:   tensor.extract %[[WPE]][%[[POSITION]],
  %x = nn.embedding %ids, %wte : (tensor<2x8xi32>, tensor<307x24xf32>) -> tensor<2x8x24xf32>
  %y = nn.add_positions %x, %wpe : (tensor<2x8x24xf32>, tensor<16x24xf32>) -> tensor<2x8x24xf32>
  return %y : tensor<2x8x24xf32>
}

// -----

// A position of each row of the batch: row b * T + position[b] of all rows.

// CHECK-LABEL: func private @position(
//  CHECK-SAME:   %[[X:[^:]*]]: tensor<2x8x24xf32>, %[[AT:[^:]*]]: tensor<2xi32>)
func.func private @position(%x: tensor<2x8x24xf32>, %at: tensor<2xi32>) -> tensor<2x24xf32> attributes {rt.kernel} {
  // CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[X]] {{.*}} into tensor<16x24xf32>
  // CHECK: linalg.generic {{.*}} ins(%[[AT]] : tensor<2xi32>)
  // CHECK: ^bb0(%[[P:.*]]: i32, %{{.*}}: f32):
  // CHECK:   %[[B:.*]] = linalg.index 0 : index
  // CHECK:   %[[T:.*]] = arith.constant 8 : index
  // CHECK:   %[[FIRST:.*]] = arith.muli %[[B]], %[[T]] : index
  // CHECK:   %[[POSITION:.*]] = arith.index_cast %[[P]] : i32 to index
  // CHECK:   %[[ROW:.*]] = arith.addi %[[FIRST]], %[[POSITION]] : index
  // CHECK:   tensor.extract %[[ROWS]][%[[ROW]],
  %y = nn.take_position %x, %at : (tensor<2x8x24xf32>, tensor<2xi32>) -> tensor<2x24xf32>
  return %y : tensor<2x24xf32>
}

// -----

// What is no loop nest, with the kernel's own numbers of streams.

// CHECK-LABEL: func private @others(
func.func private @others(%q: tensor<2x8x24xf32>, %ids: tensor<2x8xi32>, %rng: tensor<4xi32>, %sum: tensor<307x24xf32> {rt.in_place = 2 : i64})
    -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>, tensor<307x24xf32>) attributes {rt.kernel} {
  // CHECK: rt.attention %{{.*}} heads 3 scale 5.000000e-01 rate 1.000000e-01 stream 0
  %ctx, %lse = nn.attention %q, %q, %q, %rng heads 3 scale 5.0e-01 rate 1.0e-01 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)
  // CHECK: rt.scatter_add %{{.*}}, %{{.*}} at %{{.*}} : (tensor<307x24xf32>, tensor<2x8x24xf32>, tensor<2x8xi32>)
  %t = nn.embedding_backward %ids, %ctx : (tensor<2x8xi32>, tensor<2x8x24xf32>) -> tensor<307x24xf32>
  %acc = nn.accumulate %sum, %t : tensor<307x24xf32>
  return %ctx, %lse, %acc : tensor<2x8x24xf32>, tensor<2x3x8xf32>, tensor<307x24xf32>
}

// -----

// A table of positions takes rows by their position: the old sum, or zeros,
// and then one op whatever the batch.

// CHECK-LABEL: func private @positions(
//  CHECK-SAME:   %[[D:[^:]*]]: tensor<2000x8x24xf32>, %[[SUM:[^:]*]]: tensor<16x24xf32>
func.func private @positions(%d: tensor<2000x8x24xf32>, %sum: tensor<16x24xf32> {rt.in_place = 0 : i64}) -> (tensor<16x24xf32>, tensor<16x24xf32>) attributes {rt.kernel} {
  // CHECK-NEXT: %[[ACC:.*]] = rt.scatter_add %[[SUM]], %[[D]] : (tensor<16x24xf32>, tensor<2000x8x24xf32>) -> tensor<16x24xf32>
  %t = nn.positions_backward %d : (tensor<2000x8x24xf32>) -> tensor<16x24xf32>
  %acc = nn.accumulate %sum, %t : tensor<16x24xf32>
  // CHECK: %[[ZERO:.*]] = linalg.fill
  // CHECK-NEXT: %[[NEW:.*]] = rt.scatter_add %[[ZERO]], %[[D]] :
  // CHECK-NEXT: return %[[ACC]], %[[NEW]]
  %u = nn.positions_backward %d : (tensor<2000x8x24xf32>) -> tensor<16x24xf32>
  return %acc, %u : tensor<16x24xf32>, tensor<16x24xf32>
}

// -----

// The schedule itself is left alone.

// CHECK-LABEL: func @not_a_kernel(
func.func @not_a_kernel(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NEXT: return
  return %x : tensor<4xf32>
}

// -----

// A norm of heads: 2*8 rows of three heads are 48 rows of 8, which share one
// gain; 1 / sqrt(sum / 8 + eps) for each.

// CHECK-DAG: #[[$RC:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$R:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[$C:.*]] = affine_map<(d0, d1) -> (d1)>

// CHECK-LABEL: func private @rms_norm(
//  CHECK-SAME:   %[[IN:[^:]*]]: tensor<2x8x24xf32>, %[[GAIN:[^:]*]]: tensor<8xf32>)
func.func private @rms_norm(%x: tensor<2x8x24xf32>, %g: tensor<8xf32>) -> (tensor<2x8x24xf32>, tensor<2x8x3xf32>) attributes {rt.kernel} {
  // CHECK:      %[[ALL:.*]] = tensor.collapse_shape %[[IN]] {{\[\[}}0, 1, 2]]
  // CHECK-NEXT: %[[X:.*]] = tensor.expand_shape %[[ALL]] {{\[\[}}0, 1]] output_shape [48, 8]
  // CHECK:      linalg.generic {indexing_maps = [#[[$RC]], #[[$R]]], iterator_types = ["parallel", "reduction"]} ins(%[[X]] : {{.*}}) outs(%{{.*}} : tensor<48xf32>)
  // CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[SUM:.*]]: f32):
  // CHECK-NEXT:   %[[SQUARE:.*]] = arith.mulf %[[A]], %[[A]]
  // CHECK-NEXT:   arith.addf %[[SUM]], %[[SQUARE]]
  // CHECK:      %[[RSTD:.*]] = linalg.generic {{.*}} iterator_types = ["parallel"]}
  // CHECK:        arith.constant 8.000000e+00
  // CHECK:        math.sqrt
  // CHECK:      linalg.generic {indexing_maps = [#[[$RC]], #[[$R]], #[[$C]], #[[$RC]]], iterator_types = ["parallel", "parallel"]} ins(%[[X]], %[[RSTD]], %[[GAIN]] :
  // CHECK:      tensor.expand_shape %[[RSTD]] {{\[\[}}0, 1, 2]] output_shape [2, 8, 3]
  %y, %rstd = nn.rms_norm %x, %g eps 1.0e-06 : (tensor<2x8x24xf32>, tensor<8xf32>) -> (tensor<2x8x24xf32>, tensor<2x8x3xf32>)
  return %y, %rstd : tensor<2x8x24xf32>, tensor<2x8x3xf32>
}

// Its gain's gradient adds up the 48 rows in order, from the old sum on.

// CHECK-LABEL: func private @rms_norm_backward_gain(
//  CHECK-SAME:   %[[SUM:[^:]*]]: tensor<8xf32> {rt.in_place
func.func private @rms_norm_backward_gain(%x: tensor<2x8x24xf32>, %rstd: tensor<2x8x3xf32>, %dy: tensor<2x8x24xf32>, %sum: tensor<8xf32> {rt.in_place = 0 : i64}) -> tensor<8xf32> attributes {rt.kernel} {
  // CHECK: %[[NEW:.*]] = linalg.generic {indexing_maps = [#[[$RC]], #[[$R]], #[[$RC]], #[[$C]]], iterator_types = ["reduction", "parallel"]}
  // CHECK-SAME: tensor<48x8xf32>, tensor<48xf32>, tensor<48x8xf32>) outs(%[[SUM]] :
  // CHECK: return %[[NEW]]
  %dg = nn.rms_norm_backward_gain %x, %rstd, %dy : (tensor<2x8x24xf32>, tensor<2x8x3xf32>, tensor<2x8x24xf32>) -> tensor<8xf32>
  %new = nn.accumulate %sum, %dg : tensor<8xf32>
  return %new : tensor<8xf32>
}

// -----

// Half of a head is a row, and what it is turned with is the row beside it: of
// 2*8 tokens with 3 heads in halves of 4 there are 96 rows. Every 6 rows are a
// position, of 8; its cosines and sines are rows too. The left half takes the
// sine with a minus.

// CHECK-LABEL: func private @rope(
func.func private @rope(%x: tensor<2x8x24xf32>, %r: tensor<8x8xf32>) -> tensor<2x8x24xf32> attributes {rt.kernel} {
  // CHECK-DAG: %[[X:.*]] = tensor.expand_shape %{{.*}} output_shape [96, 4]
  // CHECK-DAG: %[[ANGLES:.*]] = tensor.expand_shape %{{.*}} output_shape [16, 4]
  // CHECK:     ^bb0(%[[A:.*]]: f32, %{{.*}}: f32):
  // CHECK-DAG:   %[[ROW:.*]] = linalg.index 0
  // CHECK-DAG:   %[[COL:.*]] = linalg.index 1
  // CHECK:       %[[SIX:.*]] = arith.constant 6
  // CHECK-NEXT:  %[[TOKEN:.*]] = arith.divui %[[ROW]], %[[SIX]]
  // CHECK:       %[[POSITION:.*]] = arith.remui %[[TOKEN]], %c8
  // CHECK:       %[[COSINES:.*]] = arith.muli %[[POSITION]],
  // CHECK-NEXT:  %[[SINES:.*]] = arith.addi %[[COSINES]],
  // CHECK-NEXT:  %[[COSINE:.*]] = tensor.extract %[[ANGLES]][%[[COSINES]], %[[COL]]]
  // CHECK-NEXT:  %[[SINE:.*]] = tensor.extract %[[ANGLES]][%[[SINES]], %[[COL]]]
  // CHECK:       %[[LEFT:.*]] = arith.cmpi eq,
  // CHECK-NEXT:  %[[BESIDE:.*]] = arith.xori %[[ROW]],
  // CHECK-NEXT:  %[[PARTNER:.*]] = tensor.extract %[[X]][%[[BESIDE]], %[[COL]]]
  // CHECK-NEXT:  %[[OPPOSITE:.*]] = arith.negf %[[SINE]]
  // CHECK-NEXT:  %[[TURN:.*]] = arith.select %[[LEFT]], %[[OPPOSITE]], %[[SINE]]
  // CHECK-NEXT:  %[[KEPT:.*]] = arith.mulf %[[A]], %[[COSINE]]
  // CHECK-NEXT:  %[[TURNED:.*]] = arith.mulf %[[PARTNER]], %[[TURN]]
  // CHECK-NEXT:  arith.addf %[[KEPT]], %[[TURNED]]
  %y = nn.rope %x, %r heads 3 half_split : (tensor<2x8x24xf32>, tensor<8x8xf32>) -> tensor<2x8x24xf32>
  return %y : tensor<2x8x24xf32>
}

// Interleaved, a row is a pair. Backward, the right one takes the minus.

// CHECK-LABEL: func private @rope_backward(
func.func private @rope_backward(%d: tensor<2x8x24xf32>, %r: tensor<8x8xf32>) -> tensor<2x8x24xf32> attributes {rt.kernel} {
  // CHECK:       %[[X:.*]] = tensor.expand_shape %{{.*}} output_shape [192, 2]
  // CHECK:       %[[LEFT:.*]] = arith.cmpi eq, %{{.*}}, %c0
  // CHECK:       %[[A:.*]] = tensor.extract %[[X]][%{{.*}}, %c0
  // CHECK-NEXT:  %[[B:.*]] = tensor.extract %[[X]][%{{.*}}, %c1]
  // CHECK-NEXT:  arith.select %[[LEFT]], %[[B]], %[[A]]
  // CHECK-NEXT:  %[[OPPOSITE:.*]] = arith.negf %[[SINE:.*]] : f32
  // CHECK-NEXT:  arith.select %[[LEFT]], %[[SINE]], %[[OPPOSITE]]
  %dx = nn.rope_backward %d, %r heads 3 interleaved : (tensor<2x8x24xf32>, tensor<8x8xf32>) -> tensor<2x8x24xf32>
  return %dx : tensor<2x8x24xf32>
}

// -----

// A squared ReLU and its gradient in one loop; what is not a number stays so.

// CHECK-LABEL: func private @squared_relu(
func.func private @squared_relu(%u: tensor<4x6xf32>, %d: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) attributes {rt.kernel} {
  // CHECK:     %[[R:.*]]:2 = linalg.generic
  // CHECK:     ^bb0(%[[U:.*]]: f32, %[[D:.*]]: f32, %{{.*}}: f32, %{{.*}}: f32):
  // CHECK:       %[[P:.*]] = arith.maximumf %[[U]], %{{.*}} : f32
  // CHECK-NEXT:  %[[G:.*]] = arith.mulf %[[P]], %[[P]] : f32
  // CHECK:       %[[S:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
  // CHECK-NEXT:  %[[DU:.*]] = arith.mulf %[[D]], %[[S]] : f32
  // CHECK-NEXT:  linalg.yield %[[G]], %[[DU]]
  // CHECK-NOT: linalg.generic
  %g = nn.squared_relu %u : tensor<4x6xf32>
  %du = nn.squared_relu_backward %u, %d : tensor<4x6xf32>
  return %g, %du : tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// Both gradients of a gate come from one loop, and from one exponential.

// CHECK-LABEL: func private @swiglu_backward(
func.func private @swiglu_backward(%g: tensor<4x6xf32>, %u: tensor<4x6xf32>, %d: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) attributes {rt.kernel} {
  // CHECK:     %[[R:.*]]:2 = linalg.generic
  // CHECK:     ^bb0(%[[G:.*]]: f32, %[[U:.*]]: f32, %[[D:.*]]: f32, %{{.*}}: f32, %{{.*}}: f32):
  // CHECK:       math.exp
  // CHECK:       %[[S:.*]] = arith.divf
  // CHECK-NEXT:  %[[SILU:.*]] = arith.mulf %[[G]], %[[S]]
  // CHECK:       %[[REST:.*]] = arith.subf %{{.*}}, %[[S]]
  // CHECK-NEXT:  %[[BEND:.*]] = arith.mulf %[[SILU]], %[[REST]]
  // CHECK-NEXT:  %[[SLOPE:.*]] = arith.addf %[[S]], %[[BEND]]
  // CHECK-NEXT:  %[[DU:.*]] = arith.mulf %[[D]], %[[U]]
  // CHECK-NEXT:  %[[DGATE:.*]] = arith.mulf %[[DU]], %[[SLOPE]]
  // CHECK-NEXT:  %[[DUP:.*]] = arith.mulf %[[D]], %[[SILU]]
  // CHECK-NEXT:  linalg.yield %[[DGATE]], %[[DUP]]
  // CHECK-NOT: linalg.generic
  %dg, %du = nn.swiglu_backward %g, %u, %d : tensor<4x6xf32>
  return %dg, %du : tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// Heads of keys that are shared stay so.

// CHECK-LABEL: func private @shared_keys(
func.func private @shared_keys(%q: tensor<2x8x24xf32>, %k: tensor<2x8x8xf32>, %rng: tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x6x8xf32>) attributes {rt.kernel} {
  // CHECK: rt.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} heads 6 kv_heads 2 scale
  %ctx, %lse = nn.attention %q, %k, %k, %rng heads 6 kv_heads 2 scale 0.5 rate 0.0 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x6x8xf32>)
  return %ctx, %lse : tensor<2x8x24xf32>, tensor<2x6x8xf32>
}
