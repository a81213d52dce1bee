// RUN: reprise-opt %s -reprise-lower-cuda -o %t && reprise-device %t --chip=sm_80 | FileCheck %s
// RUN: reprise-device %t --chip=sm_90a | FileCheck %s --check-prefix=GROUP
// RUN: reprise-opt %s -reprise-emit-cuda | FileCheck %s --check-prefix=FORMS

// For sm_90a there is another form, launched alike, under another name until
// PTX is made.

// FORMS: gpu.func @forward({{.*}}rt.block = array<i64: 128, 1, 1>, {{.*}}rt.grid = array<i64: [[GRID:32, 1, 1]]>, {{.*}}rt.shared = {{[0-9]+}} : i64
// FORMS: gpu.func @forward_sm_90a({{.*}}rt.block = array<i64: 128, 1, 1>, {{.*}}rt.chip = "sm_90a", rt.grid = array<i64: [[GRID]]>, rt.instead = "forward", rt.kernel,
// FORMS: gpu.func @backward(
// FORMS: gpu.func @backward_sm_90a(
// FORMS: gpu.func @narrow(
// FORMS-NOT: gpu.func

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

// There four warps multiply together: scores from two matrices in shared
// memory, sums with weights in registers; each time a fence, a group, a wait.
// Rows that threads copied are shown to these products.

// GROUP-NOT: forward_sm_90a
// GROUP-LABEL: .visible .entry forward(
//       GROUP: .reqntid 128
//   GROUP-NOT: .local
//   GROUP-NOT: {{ldmatrix|[^g]mma\.}}
//   GROUP-DAG: cp.async.wait_group 0
//   GROUP-DAG: fence.proxy.async.shared::cta
//   GROUP-DAG: bar.sync
//   GROUP-DAG: wgmma.fence.sync.aligned
//   GROUP-DAG: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{{[^}]*}}}, %rd{{[0-9]+}}, %rd{{[0-9]+}}, 0, 1, 1, 0, 0;
//   GROUP-DAG: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{{[^}]*}}}, %rd{{[0-9]+}}, %rd{{[0-9]+}}, 1, 1, 1, 0, 0;
//   GROUP-DAG: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{{[^}]*}}}, {{{[^}]*}}}, %rd{{[0-9]+}}, 1, 1, 1, 1;
//   GROUP-DAG: wgmma.commit_group.sync.aligned
//   GROUP-DAG: wgmma.wait_group.sync.aligned 0
//   GROUP-NOT: {{ldmatrix|[^g]mma\.}}
//       GROUP: ret;
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

// Gradients of weights are still under way when the scores are there.

// GROUP-LABEL: .visible .entry backward(
//   GROUP-NOT: .local
// GROUP-COUNT-8: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{{[^}]*}}}, %rd
//   GROUP-NOT: wgmma.mma_async
//       GROUP: wgmma.wait_group.sync.aligned 1
//   GROUP-NOT: {{(atom|[^a]red)\.}}
//       GROUP: ret;
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
// GROUP-LABEL: .visible .entry narrow(
//   GROUP-NOT: wgmma
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
