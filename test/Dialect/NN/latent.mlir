// Latent attention: what copies columns, heads of which some columns are turned,
// and values of another width than keys.

// RUN: reprise-opt %s | FileCheck %s
// RUN: reprise-opt %s -mlir-print-op-generic | reprise-opt | FileCheck %s

// CHECK-LABEL: func @latent(
//  CHECK-NEXT:   nn.split_columns %{{.*}} : (tensor<2x8x24xf32>) -> (tensor<2x8x16xf32>, tensor<2x8x8xf32>)
//  CHECK-NEXT:   nn.rope %{{.*}}, %{{.*}} heads 1 interleaved :
//  CHECK-NEXT:   nn.rope %{{.*}}, %{{.*}} heads 4 from 16 interleaved :
//  CHECK-NEXT:   nn.latent_heads %{{.*}}, %{{.*}} heads 4 : (tensor<2x8x104xf32>, tensor<2x8x8xf32>) -> (tensor<2x8x96xf32>, tensor<2x8x40xf32>)
//  CHECK-NEXT:   nn.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} heads 4 {{.*}} -> (tensor<2x8x40xf32>, tensor<2x4x8xf32>)
//  CHECK-NEXT:   nn.attention_backward {{.*}} -> (tensor<2x8x96xf32>, tensor<2x8x96xf32>, tensor<2x8x40xf32>)
//  CHECK-NEXT:   nn.latent_heads_backward %{{.*}}, %{{.*}} heads 4 : (tensor<2x8x96xf32>, tensor<2x8x40xf32>) -> (tensor<2x8x104xf32>, tensor<2x8x8xf32>)
//  CHECK-NEXT:   nn.rope_backward %{{.*}}, %{{.*}} heads 4 from 16 interleaved :
//  CHECK-NEXT:   nn.join_columns %{{.*}}, %{{.*}} : (tensor<2x8x16xf32>, tensor<2x8x8xf32>) -> tensor<2x8x24xf32>
func.func @latent(%x: tensor<2x8x24xf32>, %q: tensor<2x8x96xf32>, %kv: tensor<2x8x104xf32>, %t: tensor<8x8xf32>, %rng: tensor<4xi32>) {
  %c, %r = nn.split_columns %x : (tensor<2x8x24xf32>) -> (tensor<2x8x16xf32>, tensor<2x8x8xf32>)
  %rr = nn.rope %r, %t heads 1 interleaved : (tensor<2x8x8xf32>, tensor<8x8xf32>) -> tensor<2x8x8xf32>
  %qr = nn.rope %q, %t heads 4 from 16 interleaved : (tensor<2x8x96xf32>, tensor<8x8xf32>) -> tensor<2x8x96xf32>
  %k, %v = nn.latent_heads %kv, %rr heads 4 : (tensor<2x8x104xf32>, tensor<2x8x8xf32>) -> (tensor<2x8x96xf32>, tensor<2x8x40xf32>)
  %ctx, %lse = nn.attention %qr, %k, %v, %rng heads 4 scale 0.5 rate 0.0 stream 0
    : (tensor<2x8x96xf32>, tensor<2x8x96xf32>, tensor<2x8x40xf32>, tensor<4xi32>) -> (tensor<2x8x40xf32>, tensor<2x4x8xf32>)
  %dq, %dk, %dv = nn.attention_backward %qr, %k, %v, %ctx, %lse, %ctx, %rng heads 4 scale 0.5 rate 0.0 stream 0
    : (tensor<2x8x96xf32>, tensor<2x8x96xf32>, tensor<2x8x40xf32>, tensor<2x8x40xf32>, tensor<2x4x8xf32>, tensor<2x8x40xf32>, tensor<4xi32>)
      -> (tensor<2x8x96xf32>, tensor<2x8x96xf32>, tensor<2x8x40xf32>)
  %dkv, %dr = nn.latent_heads_backward %dk, %dv heads 4 : (tensor<2x8x96xf32>, tensor<2x8x40xf32>) -> (tensor<2x8x104xf32>, tensor<2x8x8xf32>)
  %dqr = nn.rope_backward %dq, %t heads 4 from 16 interleaved : (tensor<2x8x96xf32>, tensor<8x8xf32>) -> tensor<2x8x96xf32>
  %dx = nn.join_columns %c, %dr : (tensor<2x8x16xf32>, tensor<2x8x8xf32>) -> tensor<2x8x24xf32>
  return
}
