// RUN: reprise-opt %s -split-input-file --reprise-differentiate | FileCheck %s

// The table of angles stays an argument with its description and gets no
// gradient; queries and keys turn back, keys and values get sums over the heads
// that share them.

func.func @forward(%q: tensor<2x8x24xf32> {nn.parameter = #nn.parameter<name = "q", init = zeros>},
                   %k: tensor<2x8x8xf32> {nn.parameter = #nn.parameter<name = "k", init = zeros>},
                   %v: tensor<2x8x8xf32> {nn.parameter = #nn.parameter<name = "v", init = zeros>},
                   %rng: tensor<4xi32> {nn.input = "rng"},
                   %rotary: tensor<8x4xf32> {nn.rotary = #nn.rotary<theta = 1.0e+04 : f64, type = linear, factor = 2.0 : f64>}) -> tensor<f32> {
  %qr = nn.rope %q, %rotary heads 6 half_split : (tensor<2x8x24xf32>, tensor<8x4xf32>) -> tensor<2x8x24xf32>
  %kr = nn.rope %k, %rotary heads 2 interleaved : (tensor<2x8x8xf32>, tensor<8x4xf32>) -> tensor<2x8x8xf32>
  %ctx, %lse = nn.attention %qr, %kr, %v, %rng heads 6 kv_heads 2 scale 0.5 rate 0.0 stream 0
    : (tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x6x8xf32>)
  %loss = nn.mean %ctx : (tensor<2x8x24xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   %[[Q:[^:]*]]: tensor<2x8x24xf32>
//  CHECK-SAME:   %[[ROTARY:[^:]*]]: tensor<8x4xf32> {nn.rotary = #nn.rotary<theta = 1.000000e+04 : f64, type = linear, factor = 2.000000e+00 : f64>}
//       CHECK:   %[[QR:.*]] = nn.rope %[[Q]],
//       CHECK:   %[[KR:.*]] = nn.rope
//       CHECK:   %[[CTX:.*]], %[[LSE:.*]] = nn.attention %[[QR]], %[[KR]], %[[V:.*]], %[[RNG:[^ ]*]] heads
//       CHECK:   nn.backward
//       CHECK:   %[[DCTX:.*]] = nn.broadcast
//  CHECK-NEXT:   %[[DQR:.*]], %[[DKR:.*]], %[[DV:.*]] = nn.attention_backward %[[QR]], %[[KR]], %[[V]], %[[CTX]], %[[LSE]], %[[DCTX]], %[[RNG]]
//  CHECK-SAME:     heads 6 kv_heads 2 scale 5.000000e-01 rate 0.000000e+00 stream 0
//  CHECK-SAME:     -> (tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>)
//  CHECK-NEXT:   nn.accumulate %{{.*}}, %[[DV]]
//  CHECK-NEXT:   %[[DK:.*]] = nn.rope_backward %[[DKR]], %[[ROTARY]] heads 2 interleaved
//  CHECK-NEXT:   nn.accumulate %{{.*}}, %[[DK]]
//  CHECK-NEXT:   %[[DQ:.*]] = nn.rope_backward %[[DQR]], %[[ROTARY]] heads 6 half_split
//  CHECK-NEXT:   nn.accumulate %{{.*}}, %[[DQ]]
//  CHECK-NEXT:   return

// -----

// In parts: what reads keys gets all heads, what is the keys' or values' gets
// those of the keys.

func.func @forward(%q: tensor<2x8x24xf32> {nn.parameter = #nn.parameter<name = "q", init = zeros>},
                   %k: tensor<2x8x8xf32> {nn.parameter = #nn.parameter<name = "k", init = zeros>},
                   %v: tensor<2x8x8xf32> {nn.parameter = #nn.parameter<name = "v", init = zeros>}) -> tensor<f32> {
  %s = nn.scores %q, %k heads 6 kv_heads 2 scale 0.5 : (tensor<2x8x24xf32>, tensor<2x8x8xf32>) -> tensor<2x6x8x8xf32>
  %ctx = nn.context %s, %v heads 6 kv_heads 2 scale 1.0 : (tensor<2x6x8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x24xf32>
  %back = nn.context %s, %ctx heads 6 kv_heads 2 scale 1.0 transposed : (tensor<2x6x8x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x8xf32>
  %loss = nn.mean %back : (tensor<2x8x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func.func @step(
//       CHECK:   %[[S:.*]] = nn.scores %[[Q:.*]], %[[K:[^ ]*]] heads
//       CHECK:   %[[CTX:.*]] = nn.context %[[S]], %[[V:[^ ]*]] heads
//       CHECK:   nn.backward
//       CHECK:   %[[DBACK:.*]] = nn.broadcast
//   CHECK-DAG:   %[[DCTX:.*]] = nn.context %[[S]], %[[DBACK]] heads 6 kv_heads 2 scale 1.000000e+00 : (tensor<2x6x8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x24xf32>
//   CHECK-DAG:   %[[DS0:.*]] = nn.scores %[[CTX]], %[[DBACK]] heads 6 kv_heads 2 scale 1.000000e+00 : (tensor<2x8x24xf32>, tensor<2x8x8xf32>) -> tensor<2x6x8x8xf32>
//   CHECK-DAG:   %[[DV:.*]] = nn.context %[[S]], %[[DCTX]] heads 6 kv_heads 2 scale 1.000000e+00 transposed : (tensor<2x6x8x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x8xf32>
//   CHECK-DAG:   %[[DS1:.*]] = nn.scores %[[DCTX]], %[[V]] heads 6 kv_heads 2 scale 1.000000e+00 : (tensor<2x8x24xf32>, tensor<2x8x8xf32>) -> tensor<2x6x8x8xf32>
//       CHECK:   %[[DS:.*]] = nn.add %[[DS0]], %[[DS1]]
//   CHECK-DAG:   nn.context %[[DS]], %[[K]] heads 6 kv_heads 2 scale 5.000000e-01 : (tensor<2x6x8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x24xf32>
//   CHECK-DAG:   nn.context %[[DS]], %[[Q]] heads 6 kv_heads 2 scale 5.000000e-01 transposed : (tensor<2x6x8x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x8xf32>

// -----

// The norm of whole rows below that of heads, and both below the gate.

func.func @forward(%x: tensor<2x8x24xf32> {nn.parameter = #nn.parameter<name = "x", init = zeros>},
                   %g: tensor<24xf32> {nn.parameter = #nn.parameter<name = "g", init = ones>},
                   %gh: tensor<8xf32> {nn.parameter = #nn.parameter<name = "gh", init = ones>}) -> tensor<f32> {
  %n, %rstd = nn.rms_norm %x, %g eps 1.0e-06 : (tensor<2x8x24xf32>, tensor<24xf32>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>)
  %nh, %rstdh = nn.rms_norm %n, %gh eps 1.0e-06 : (tensor<2x8x24xf32>, tensor<8xf32>) -> (tensor<2x8x24xf32>, tensor<2x8x3xf32>)
  %y = nn.swiglu %nh, %n : tensor<2x8x24xf32>
  %loss = nn.mean %y : (tensor<2x8x24xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   %[[X:[^:]*]]: tensor<2x8x24xf32> {{{[^}]*}}}, %[[G:[^:]*]]: tensor<24xf32> {{{[^}]*}}}, %[[GH:[^:]*]]: tensor<8xf32>
//       CHECK:   %[[N:.*]], %[[RSTD:.*]] = nn.rms_norm %[[X]]
//       CHECK:   %[[NH:.*]], %[[RSTDH:.*]] = nn.rms_norm %[[N]]
//       CHECK:   nn.backward
//       CHECK:   %[[DY:.*]] = nn.broadcast
//  CHECK-NEXT:   %[[DNH:.*]], %[[DUP:.*]] = nn.swiglu_backward %[[NH]], %[[N]], %[[DY]] : tensor<2x8x24xf32>
//  CHECK-NEXT:   %[[DGH:.*]] = nn.rms_norm_backward_gain %[[N]], %[[RSTDH]], %[[DNH]]
//  CHECK-SAME:     (tensor<2x8x24xf32>, tensor<2x8x3xf32>, tensor<2x8x24xf32>) -> tensor<8xf32>
//  CHECK-NEXT:   nn.accumulate %{{.*}}, %[[DGH]]
//  CHECK-NEXT:   %[[DN0:.*]] = nn.rms_norm_backward %[[N]], %[[GH]], %[[RSTDH]], %[[DNH]]
//  CHECK-NEXT:   %[[DN:.*]] = nn.add %[[DUP]], %[[DN0]]
//  CHECK-NEXT:   nn.rms_norm_backward_gain %[[X]], %[[RSTD]], %[[DN]]
//  CHECK-NEXT:   nn.accumulate
//  CHECK-NEXT:   nn.rms_norm_backward %[[X]], %[[G]], %[[RSTD]], %[[DN]]
//  CHECK-NEXT:   nn.accumulate
//  CHECK-NEXT:   return

// -----

// Only what is asked for: the gate alone, and of a norm the gain alone.

func.func @forward(%x: tensor<2x8x24xf32>, %u: tensor<2x8x24xf32>,
                   %g: tensor<24xf32> {nn.parameter = #nn.parameter<name = "g", init = ones>}) -> tensor<f32> {
  %n, %rstd = nn.rms_norm %x, %g eps 1.0e-06 : (tensor<2x8x24xf32>, tensor<24xf32>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>)
  %y = nn.swiglu %n, %u : tensor<2x8x24xf32>
  %loss = nn.mean %y : (tensor<2x8x24xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// CHECK-LABEL: func.func @step(
//       CHECK:   nn.backward
//       CHECK:   %[[DN:.*]], %{{.*}} = nn.swiglu_backward
//  CHECK-NEXT:   %[[DG:.*]] = nn.rms_norm_backward_gain {{.*}}, %[[DN]] :
//  CHECK-NEXT:   nn.accumulate %{{.*}}, %[[DG]]
//  CHECK-NEXT:   return
