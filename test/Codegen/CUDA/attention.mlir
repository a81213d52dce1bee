// RUN: reprise-opt %s -reprise-lower-cuda -o %t && reprise-device %t --chip=sm_80 | FileCheck %s

// bf16: a tile of the next step is on its way while this one is multiplied, and
// what was added up stays in registers. Nothing of the size of the sequence
// squared, and nothing on the stack.

// CHECK-LABEL: .visible .entry forward(
//       CHECK: .reqntid 128
//       CHECK: .minnctapersm 4
//   CHECK-NOT: .local
//   CHECK-DAG: cp.async.cg.shared.global
//   CHECK-DAG: cp.async.commit_group
//   CHECK-DAG: cp.async.wait_group 1
//   CHECK-DAG: bar.sync
//   CHECK-DAG: ldmatrix.sync.aligned.m8n8.x4.shared.b16
//   CHECK-DAG: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
//   CHECK-DAG: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
//   CHECK-DAG: shfl.sync.bfly.b32
//   CHECK-DAG: ex2.approx.ftz.f32
//   CHECK-DAG: cvt.rn.bf16x2.f32
//   CHECK-NOT: {{(atom|[^a]red)\.}}
//       CHECK: ret;
func.func private @forward(%q: tensor<2x256x256xbf16>, %k: tensor<2x256x128xbf16>, %v: tensor<2x256x128xbf16>, %r: tensor<4xi32>)
    -> (tensor<2x256x256xbf16>, tensor<2x4x256xf32>) attributes {rt.kernel} {
  %o, %l = rt.attention %q, %k, %v, %r heads 4 kv_heads 2 scale 0.125 rate 0.0 stream 0
    : (tensor<2x256x256xbf16>, tensor<2x256x128xbf16>, tensor<2x256x128xbf16>, tensor<4xi32>) -> (tensor<2x256x256xbf16>, tensor<2x4x256xf32>)
  return %o, %l : tensor<2x256x256xbf16>, tensor<2x4x256xf32>
}

// Blocks that own keys, then blocks that own queries; no block adds to what
// another has. Random words are drawn where they are needed: 10 rounds of two
// products of 32 by 32 bits.

// CHECK-LABEL: .visible .entry backward(
//       CHECK: .reqntid 128
//       CHECK: .minnctapersm 2
//   CHECK-NOT: .local
//       CHECK: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
//       CHECK: mul.wide.u32 {{.*}}, -845247145;
//   CHECK-NOT: {{(atom|[^a]red)\.}}
//       CHECK: ret;
func.func private @backward(%q: tensor<2x256x256xbf16>, %k: tensor<2x256x128xbf16>, %v: tensor<2x256x128xbf16>, %o: tensor<2x256x256xbf16>,
    %l: tensor<2x4x256xf32>, %d: tensor<2x256x256xbf16>, %r: tensor<4xi32>)
    -> (tensor<2x256x256xbf16>, tensor<2x256x128xbf16>, tensor<2x256x128xbf16>) attributes {rt.kernel} {
  %dq, %dk, %dv = rt.attention_backward %q, %k, %v, %o, %l, %d, %r heads 4 kv_heads 2 scale 0.125 rate 0.1 stream 0
    : (tensor<2x256x256xbf16>, tensor<2x256x128xbf16>, tensor<2x256x128xbf16>, tensor<2x256x256xbf16>, tensor<2x4x256xf32>, tensor<2x256x256xbf16>, tensor<4xi32>)
      -> (tensor<2x256x256xbf16>, tensor<2x256x128xbf16>, tensor<2x256x128xbf16>)
  return %dq, %dk, %dv : tensor<2x256x256xbf16>, tensor<2x256x128xbf16>, tensor<2x256x128xbf16>
}

// f32 stays f32: every product is a fused multiply-add. Heads of 15 columns
// begin anywhere, so they are copied element by element.

// CHECK-LABEL: .visible .entry narrow(
//   CHECK-NOT: {{mma|tf32|cp.async.c[ag]}}
//       CHECK: st.shared.b32
//   CHECK-NOT: {{mma|tf32|cp.async.c[ag]}}
//       CHECK: fma.rn.f32
//   CHECK-NOT: {{mma|tf32|cp.async.c[ag]}}
//       CHECK: ret;
func.func private @narrow(%q: tensor<1x70x30xf32>, %k: tensor<1x70x30xf32>, %v: tensor<1x70x30xf32>, %r: tensor<4xi32>)
    -> (tensor<1x70x30xf32>, tensor<1x2x70xf32>) attributes {rt.kernel} {
  %o, %l = rt.attention %q, %k, %v, %r heads 2 scale 0.25 rate 0.0 stream 0
    : (tensor<1x70x30xf32>, tensor<1x70x30xf32>, tensor<1x70x30xf32>, tensor<4xi32>) -> (tensor<1x70x30xf32>, tensor<1x2x70xf32>)
  return %o, %l : tensor<1x70x30xf32>, tensor<1x2x70xf32>
}
