// RUN: reprise-opt %s --convert-nn-to-linalg --reprise-emit-cpu --canonicalize --cse | FileCheck %s

// A sum joins the norm that reads it: the first pass over a row stores the sum
// and adds up its squares, the second reads the sum and no input.

// CHECK-LABEL: llvm.func @add_rms_norm(
//       CHECK:   %[[X:.*]] = llvm.load %{{.*}} -> !llvm.ptr
//       CHECK:   %[[Y:.*]] = llvm.load %{{.*}} -> !llvm.ptr
//       CHECK:   %[[G:.*]] = llvm.load %{{.*}} -> !llvm.ptr
//       CHECK:   %[[S:.*]] = llvm.load %{{.*}} -> !llvm.ptr
//       CHECK:   scf.for
//       CHECK:     %{{.*}}:4 = scf.for
//       CHECK:       %[[AT_X:.*]] = llvm.getelementptr %[[X]][
//       CHECK:       %[[A:.*]] = llvm.load %[[AT_X]] {{.*}} -> vector<16xf32>
//       CHECK:       %[[AT_Y:.*]] = llvm.getelementptr %[[Y]][
//       CHECK:       %[[B:.*]] = llvm.load %[[AT_Y]] {{.*}} -> vector<16xf32>
//       CHECK:       %[[SUM:.*]] = arith.addf %[[A]], %[[B]] : vector<16xf32>
//       CHECK:       arith.mulf %[[SUM]], %[[SUM]]
//       CHECK:       %[[AT_S:.*]] = llvm.getelementptr %[[S]][
//       CHECK:       llvm.store %[[SUM]], %[[AT_S]]
//       CHECK:     math.sqrt
//   CHECK-NOT:     llvm.getelementptr %[[X]][
//       CHECK:     scf.for
//   CHECK-NOT:       llvm.getelementptr %[[X]][
//   CHECK-NOT:       llvm.getelementptr %[[Y]][
//       CHECK:       llvm.getelementptr %[[S]][
//   CHECK-NOT:       llvm.getelementptr %[[X]][
//   CHECK-NOT:       llvm.getelementptr %[[Y]][
//       CHECK:   llvm.return
func.func private @add_rms_norm(%x: tensor<6x128xf32> {rt.may_alias = 0 : i64}, %y: tensor<6x128xf32>, %g: tensor<128xf32>)
    -> (tensor<6x128xf32>, tensor<6x128xf32>, tensor<6xf32>) attributes {rt.kernel} {
  %s = nn.add %x, %y : tensor<6x128xf32>
  %n, %rstd = nn.rms_norm %s, %g eps 1.0e-06 : (tensor<6x128xf32>, tensor<128xf32>) -> (tensor<6x128xf32>, tensor<6xf32>)
  return %s, %n, %rstd : tensor<6x128xf32>, tensor<6x128xf32>, tensor<6xf32>
}

// The gradient of a loss takes the place of the logits, and the exponentials wait
// there: the logit of a row's target is read before.

// CHECK-LABEL: llvm.func @loss_and_gradient(
//       CHECK:   %[[X:.*]] = llvm.load %{{.*}} -> !llvm.ptr
//       CHECK:   scf.for
//       CHECK:     %[[AT:.*]] = llvm.getelementptr %[[X]][
//       CHECK:     %[[PICKED:.*]] = llvm.load %[[AT]] {{.*}} -> f32
//       CHECK:     scf.for
//   CHECK-NOT:       arith.addf
//       CHECK:       arith.maxnumf
//       CHECK:     scf.for
// CHECK-COUNT-4:       math.exp
//   CHECK-NOT:     math.exp
//       CHECK:     math.log
//       CHECK:     arith.subf %{{.*}}, %[[PICKED]] : f32
//   CHECK-NOT:     math.exp
//       CHECK:   llvm.return
func.func private @loss_and_gradient(%x: tensor<2x3x128xf32> {rt.may_alias = 1 : i64}, %t: tensor<2x3xi32>, %d: tensor<2x3xf32>)
    -> (tensor<2x3xf32>, tensor<2x3x128xf32>) attributes {rt.kernel} {
  %l, %lse = nn.cross_entropy %x, %t : (tensor<2x3x128xf32>, tensor<2x3xi32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %dx = nn.cross_entropy_backward %x, %t, %lse, %d : (tensor<2x3x128xf32>, tensor<2x3xi32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3x128xf32>
  return %l, %dx : tensor<2x3xf32>, tensor<2x3x128xf32>
}
