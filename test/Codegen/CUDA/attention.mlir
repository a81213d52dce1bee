// RUN: reprise-opt %s -reprise-lower-cuda -o %t && reprise-device %t --chip=sm_80 | FileCheck %s
// RUN: reprise-device %t --chip=sm_90a > %t.ptx && FileCheck %s --check-prefix=GROUP --input-file=%t.ptx
// RUN: sed -E 's/\{[^}]*\}/{}/g; s/%%rd[0-9]+/%%rd/g' %t.ptx | grep -oE 'entry [a-z]+|wgmma\.[^;]*|fence\.proxy\.[^;]*|bar\.sync|cp\.async\.wait_group.*[0-9]' | uniq -c > %t.order
// RUN: FileCheck %s --check-prefix=ORDER --input-file=%t.order
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

// There four warps multiply together.

// GROUP-NOT: forward_sm_90a
// GROUP-LABEL: .visible .entry forward(
//       GROUP: .reqntid 128
//   GROUP-NOT: {{\.local|ldmatrix|[^g]mma\.}}
//       GROUP: ret;

// Rows that threads copied are shown to these GEMMs before the barrier that
// is before them. A GEMM is a fence, four instructions of 16 terms each and
// the end of their group: of two matrices in shared memory (scores, where the
// first instruction has no sums), or with weights in registers. Nothing else is
// between them, and the wait is next. Blocks of the program are not in the order
// in which they run: scores come after the barrier.

// ORDER:      1 entry forward
// ORDER-NEXT: 1 wgmma.fence.sync.aligned
// ORDER-NEXT: 4 wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {}, {}, %rd, 1, 1, 1, 1
// ORDER-NEXT: 1 wgmma.commit_group.sync.aligned
// ORDER-NEXT: 1 wgmma.wait_group.sync.aligned 0
// ORDER-NEXT: 1 cp.async.wait_group 0
// ORDER-NEXT: 1 fence.proxy.async.shared::cta
// ORDER-NEXT: 1 bar.sync
// ORDER-NEXT: 1 wgmma.fence.sync.aligned
// ORDER-NEXT: 1 wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {}, %rd, %rd, 0, 1, 1, 0, 0
// ORDER-NEXT: 3 wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {}, %rd, %rd, 1, 1, 1, 0, 0
// ORDER-NEXT: 1 wgmma.commit_group.sync.aligned
// ORDER-NEXT: 1 wgmma.wait_group.sync.aligned 0
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

// Gradients of weights are still under way when the scores are there (a wait for
// all groups but one), and are waited for before sums of either begin. Of own
// keys, what is written beside the GEMMs is shared by a barrier; of own
// queries, it is there before the first tile.

// GROUP-LABEL: .visible .entry backward(
//   GROUP-NOT: .local
//   GROUP-NOT: {{(atom|[^a]red)\.}}
//       GROUP: ret;

// ORDER-NEXT: 1 entry backward
// ORDER-NEXT: 1 wgmma.wait_group.sync.aligned 0
// ORDER-NEXT: 1 wgmma.fence.sync.aligned
// ORDER-NEXT: 4 wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {}, {}, %rd, 1, 1, 1, 1
// ORDER-NEXT: 1 wgmma.commit_group.sync.aligned
// ORDER-NEXT: 1 wgmma.fence.sync.aligned
// ORDER-NEXT: 4 wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {}, {}, %rd, 1, 1, 1, 1
// ORDER-NEXT: 1 wgmma.commit_group.sync.aligned
// ORDER-NEXT: 1 wgmma.wait_group.sync.aligned 0
// ORDER-NEXT: 1 cp.async.wait_group 0
// ORDER-NEXT: 1 fence.proxy.async.shared::cta
// ORDER-NEXT: 1 bar.sync
// ORDER-NEXT: 1 wgmma.fence.sync.aligned
// ORDER-NEXT: 1 wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {}, %rd, %rd, 0, 1, 1, 0, 0
// ORDER-NEXT: 3 wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {}, %rd, %rd, 1, 1, 1, 0, 0
// ORDER-NEXT: 1 wgmma.commit_group.sync.aligned
// ORDER-NEXT: 1 wgmma.fence.sync.aligned
// ORDER-NEXT: 1 wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {}, %rd, %rd, 0, 1, 1, 0, 0
// ORDER-NEXT: 3 wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {}, %rd, %rd, 1, 1, 1, 0, 0
// ORDER-NEXT: 1 wgmma.commit_group.sync.aligned
// ORDER-NEXT: 1 bar.sync
// ORDER-NEXT: 1 wgmma.wait_group.sync.aligned 1
// ORDER-NEXT: 1 cp.async.wait_group 1
// ORDER-NEXT: 2 bar.sync
// ORDER-NEXT: 1 wgmma.wait_group.sync.aligned 0
// ORDER-NEXT: 1 wgmma.fence.sync.aligned
// ORDER-NEXT: 4 wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {}, {}, %rd, 1, 1, 1, 1
// ORDER-NEXT: 1 wgmma.commit_group.sync.aligned
// ORDER-NEXT: 1 wgmma.wait_group.sync.aligned 0
// ORDER-NEXT: 1 cp.async.wait_group 0
// ORDER-NEXT: 1 fence.proxy.async.shared::cta
// ORDER-NEXT: 1 bar.sync
// ORDER-NEXT: 1 wgmma.fence.sync.aligned
// ORDER-NEXT: 1 wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {}, %rd, %rd, 0, 1, 1, 0, 0
// ORDER-NEXT: 3 wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {}, %rd, %rd, 1, 1, 1, 0, 0
// ORDER-NEXT: 1 wgmma.commit_group.sync.aligned
// ORDER-NEXT: 1 wgmma.fence.sync.aligned
// ORDER-NEXT: 1 wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {}, %rd, %rd, 0, 1, 1, 0, 0
// ORDER-NEXT: 3 wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {}, %rd, %rd, 1, 1, 1, 0, 0
// ORDER-NEXT: 1 wgmma.commit_group.sync.aligned
// ORDER-NEXT: 1 wgmma.wait_group.sync.aligned 1
// ORDER-NEXT: 1 entry narrow
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
