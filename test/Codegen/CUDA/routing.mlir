// RUN: reprise-opt %s -split-input-file -reprise-emit-cuda -verify-diagnostics | FileCheck %s --check-prefix=SHAPE
// RUN: sed '/^ *\/\/ -----/,$d' %s > %t.first && reprise-opt %t.first -reprise-lower-cuda -o %t && reprise-device %t --chip=sm_80 | FileCheck %s

// A token has a warp, and four are a block; their scores are in shared memory.

// SHAPE-LABEL: gpu.func @choose(
//  SHAPE-SAME:   rt.block = array<i64: 128, 1, 1>
//  SHAPE-SAME:   rt.grid = array<i64: 5, 1, 1>
//  SHAPE-SAME:   rt.shared = 320 : i64

// CHECK-LABEL: .visible .entry choose(
//   CHECK-NOT: {{\.local|atom\.}}
//       CHECK: shfl.sync.bfly.b32
//       CHECK: vote.sync.ballot.b32
//       CHECK: popc.b32
//       CHECK: ret;
func.func private @choose(%l: tensor<17x16xf32>, %b: tensor<16xf32>) -> tensor<17x3xi32> attributes {rt.kernel} {
  %ids = rt.choose_experts %l bias %b sigmoid groups 4 keep 2 by_two : (tensor<17x16xf32>, tensor<16xf32>) -> tensor<17x3xi32>
  return %ids : tensor<17x3xi32>
}

// An expert has a block, which counts without atomics.

// SHAPE-LABEL: gpu.func @sort(
//  SHAPE-SAME:   rt.block = array<i64: 256, 1, 1>
//  SHAPE-SAME:   rt.grid = array<i64: 4, 1, 1>

// CHECK-LABEL: .visible .entry sort(
//   CHECK-NOT: {{\.local|atom\.}}
//       CHECK: vote.sync.ballot.b32
//       CHECK: ret;
func.func private @sort(%i: tensor<32xi32>) -> (tensor<32xi32>, tensor<32xi32>, tensor<5xi32>) attributes {rt.kernel} {
  %o, %j, %e = rt.sort_rows %i : (tensor<32xi32>) -> (tensor<32xi32>, tensor<32xi32>, tensor<5xi32>)
  return %o, %j, %e : tensor<32xi32>, tensor<32xi32>, tensor<5xi32>
}

// -----

func.func private @many(%l: tensor<2x30000xf32>) -> tensor<2x2xi32> attributes {rt.kernel} {
  // expected-error @below {{needs at most 25344 experts and groups, whose scores fit into 101376 bytes of shared memory, but got 30000}}
  %ids = rt.choose_experts %l : (tensor<2x30000xf32>) -> tensor<2x2xi32>
  return %ids : tensor<2x2xi32>
}

// -----

func.func private @many(%i: tensor<32xi32>) -> (tensor<33xi32>, tensor<32xi32>, tensor<30001xi32>) attributes {rt.kernel} {
  // expected-error @below {{experts with a capacity, whose rows are counted in 101376 bytes of shared memory, but got 30000}}
  %o, %j, %e = rt.sort_rows %i capacity 4 : (tensor<32xi32>) -> (tensor<33xi32>, tensor<32xi32>, tensor<30001xi32>)
  return %o, %j, %e : tensor<33xi32>, tensor<32xi32>, tensor<30001xi32>
}
