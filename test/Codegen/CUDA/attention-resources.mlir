// Attention of GPT-2 and of Llama, and the widest heads, for every chip.

// REQUIRES: ptxas
// RUN: reprise-opt %s -reprise-lower-cuda -o %t
// RUN: reprise-device %t --to=resources --chip=sm_80 | FileCheck %s
// RUN: reprise-device %t --to=resources --chip=sm_90a | FileCheck %s
// RUN: reprise-device %t --to=resources --chip=sm_100a | FileCheck %s
// RUN: reprise-device %t --to=resources --chip=sm_120 | FileCheck %s

// CHECK-DAG: llama for {{sm_.*}} registers, 0 bytes spilled, 0 bytes of stack
// CHECK-DAG: llama_backward for {{sm_.*}} registers, 0 bytes spilled, 0 bytes of stack
// CHECK-DAG: gpt2_dropout for {{sm_.*}} registers, 0 bytes spilled, 0 bytes of stack
// CHECK-DAG: gpt2_backward for {{sm_.*}} registers, 0 bytes spilled, 0 bytes of stack
// CHECK-DAG: full for {{sm_.*}} registers, 0 bytes spilled, 0 bytes of stack
// CHECK-DAG: wide for {{sm_.*}} registers, 0 bytes spilled, 0 bytes of stack

!llama = tensor<1x8192x4096xbf16>
!llamaKeys = tensor<1x8192x1024xbf16>
!gpt2 = tensor<8x1024x768xbf16>
!full = tensor<8x1024x768xf32>
!wide = tensor<1x64x256xbf16>
!rng = tensor<4xi32>

func.func private @llama(%q: !llama, %k: !llamaKeys, %v: !llamaKeys, %r: !rng) -> (!llama, tensor<1x32x8192xf32>) attributes {rt.kernel} {
  %o, %l = rt.attention %q, %k, %v, %r heads 32 kv_heads 8 scale 8.838835e-02 rate 0.0 stream 0
    : (!llama, !llamaKeys, !llamaKeys, !rng) -> (!llama, tensor<1x32x8192xf32>)
  return %o, %l : !llama, tensor<1x32x8192xf32>
}

func.func private @llama_backward(%q: !llama, %k: !llamaKeys, %v: !llamaKeys, %o: !llama, %l: tensor<1x32x8192xf32>, %d: !llama, %r: !rng)
    -> (!llama, !llamaKeys, !llamaKeys) attributes {rt.kernel} {
  %dq, %dk, %dv = rt.attention_backward %q, %k, %v, %o, %l, %d, %r heads 32 kv_heads 8 scale 8.838835e-02 rate 0.0 stream 0
    : (!llama, !llamaKeys, !llamaKeys, !llama, tensor<1x32x8192xf32>, !llama, !rng) -> (!llama, !llamaKeys, !llamaKeys)
  return %dq, %dk, %dv : !llama, !llamaKeys, !llamaKeys
}

func.func private @gpt2_dropout(%q: !gpt2, %k: !gpt2, %v: !gpt2, %r: !rng) -> (!gpt2, tensor<8x12x1024xf32>) attributes {rt.kernel} {
  %o, %l = rt.attention %q, %k, %v, %r heads 12 scale 0.125 rate 0.1 stream 0
    : (!gpt2, !gpt2, !gpt2, !rng) -> (!gpt2, tensor<8x12x1024xf32>)
  return %o, %l : !gpt2, tensor<8x12x1024xf32>
}

func.func private @gpt2_backward(%q: !gpt2, %k: !gpt2, %v: !gpt2, %o: !gpt2, %l: tensor<8x12x1024xf32>, %d: !gpt2, %r: !rng)
    -> (!gpt2, !gpt2, !gpt2) attributes {rt.kernel} {
  %dq, %dk, %dv = rt.attention_backward %q, %k, %v, %o, %l, %d, %r heads 12 scale 0.125 rate 0.0 stream 0
    : (!gpt2, !gpt2, !gpt2, !gpt2, tensor<8x12x1024xf32>, !gpt2, !rng) -> (!gpt2, !gpt2, !gpt2)
  return %dq, %dk, %dv : !gpt2, !gpt2, !gpt2
}

func.func private @full(%q: !full, %k: !full, %v: !full, %r: !rng) -> (!full, tensor<8x12x1024xf32>) attributes {rt.kernel} {
  %o, %l = rt.attention %q, %k, %v, %r heads 12 scale 0.125 rate 0.0 stream 0
    : (!full, !full, !full, !rng) -> (!full, tensor<8x12x1024xf32>)
  return %o, %l : !full, tensor<8x12x1024xf32>
}

func.func private @wide(%q: !wide, %k: !wide, %v: !wide, %r: !rng) -> (!wide, tensor<1x1x64xf32>) attributes {rt.kernel} {
  %o, %l = rt.attention %q, %k, %v, %r heads 1 scale 0.0625 rate 0.0 stream 0
    : (!wide, !wide, !wide, !rng) -> (!wide, tensor<1x1x64xf32>)
  return %o, %l : !wide, tensor<1x1x64xf32>
}
