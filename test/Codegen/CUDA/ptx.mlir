// RUN: reprise-opt %s -reprise-lower-cuda=chip=sm_80 -o %t
// RUN: reprise-device %t --chip=sm_80 | FileCheck %s --check-prefixes=CHECK,SM80
// RUN: reprise-device %t --chip=sm_120 | FileCheck %s --check-prefixes=CHECK,SM120
// RUN: not reprise-device %t --chip=sm_70 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not reprise-device %t --chip=sm_100a --ptx-version=80 2>&1 | FileCheck %s --check-prefix=VERSION
// RUN: reprise-device %t --chip=sm_100a --ptx-version=88 | FileCheck %s --check-prefix=NEWER
// RUN: not reprise-device %s 2>&1 | FileCheck %s --check-prefix=PHASE

// CHIP: error: needs a chip that is one of sm_80, {{.*}}sm_120a, but got 'sm_70'
// VERSION: error: needs a version of PTX for sm_100a that is one of 8.6, 8.7, 8.8, 9.0, but got 8.0
// NEWER: .version 8.8
// NEWER-NEXT: .target sm_100a
// PHASE: error: needs a gpu.module '@device'

// Accesses of 16 bytes, shuffles among the threads of a warp, only those fused
// multiply-adds that the formula has. Arguments are read where the launch has put
// them.

// SM80: .version 7.8
// SM80-NEXT: .target sm_80
// SM120: .version 8.7
// SM120-NEXT: .target sm_120
// CHECK-LABEL: .visible .entry softmax(
//       CHECK:   .param .align 8 .b8 softmax_param_0[16]
//       CHECK: .reqntid 128
//   CHECK-NOT: .local
//       CHECK:   ld.param.b64 {{.*}}, [softmax_param_0];
//   CHECK-NOT:   {{(mul|add|fma).f32}}
//       CHECK:   ld.global.nc.v4.b32
//       CHECK:   fma.rn.{{f32|f32x2}}
//       CHECK:   ex2.approx.ftz.f32
//   CHECK-NOT:   {{(mul|add|fma).f32}}
//       CHECK:   shfl.sync.bfly.b32 {{.*}}, 16, 31, -1;
//       CHECK:   div.full.f32
//       CHECK:   cvt.rn.bf16x2.f32
//       CHECK:   st.global.v4.b32
//       CHECK:   ret;
func.func private @softmax(%x: tensor<64x512xbf16>) -> tensor<64x512xbf16> attributes {rt.kernel} {
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<64xf32>
  %e = tensor.empty() : tensor<64x512xbf16>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<64xf32>) -> tensor<64xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<64x512xbf16>) outs(%z : tensor<64xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %f = arith.extf %a : bf16 to f32
    %p = math.exp %f : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
    ins(%x, %s : tensor<64x512xbf16>, tensor<64xf32>) outs(%e : tensor<64x512xbf16>) {
  ^bb0(%a: bf16, %b: f32, %o: bf16):
    %f = arith.extf %a : bf16 to f32
    %p = math.exp %f : f32
    %t = arith.divf %p, %b : f32
    %r = arith.truncf %t : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<64x512xbf16>
  return %y : tensor<64x512xbf16>
}
