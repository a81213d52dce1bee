// RUN: reprise-opt %s -reprise-emit-cuda -split-input-file -verify-diagnostics
// RUN: not reprise-opt %s -reprise-emit-cuda=chip=sm_75 2>&1 | FileCheck %s

// CHECK: error: needs a chip that is one of sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100, sm_100a, sm_103a, sm_120, sm_120a, but got 'sm_75'

// Shuffles exchange words of 32 bits.

func.func private @wide(%x: tensor<5x40xi64>) -> tensor<5xi64> attributes {rt.kernel} {
  %zero = arith.constant 0 : i64
  %er = tensor.empty() : tensor<5xi64>
  %zr = linalg.fill ins(%zero : i64) outs(%er : tensor<5xi64>) -> tensor<5xi64>
  // expected-error @below {{needs row reductions of f32 or i32, but got 'i64'}}
  %r = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<5x40xi64>) outs(%zr : tensor<5xi64>) {
  ^bb0(%a: i64, %o: i64):
    %t = arith.addi %o, %a : i64
    linalg.yield %t : i64
  } -> tensor<5xi64>
  return %r : tensor<5xi64>
}

// -----

// Parts of a column start from nothing, which a difference does not have.

func.func private @differences(%x: tensor<5x40xf32>, %old: tensor<40xf32>) -> tensor<40xf32> attributes {rt.kernel} {
  // expected-error @below {{needs column reductions of f32 by an op with a neutral element, but got 'arith.subf' of 'f32'}}
  %c = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>], iterator_types = ["reduction", "parallel"]}
    ins(%x : tensor<5x40xf32>) outs(%old : tensor<40xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.subf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<40xf32>
  return %c : tensor<40xf32>
}

// -----

func.func private @sums(%x: tensor<40xbf16>) -> tensor<1xf32> attributes {rt.kernel} {
  // expected-error @below {{needs elements of f32, but got 'tensor<40xbf16>'}}
  %s = rt.block_sums %x : (tensor<40xbf16>) -> tensor<1xf32>
  return %s : tensor<1xf32>
}

// -----

// One thread writes what all of a kernel share, and there is no such thread.

func.func private @shared(%x: tensor<5x40xf32>, %s: tensor<1xf32>) -> (tensor<5x40xf32>, tensor<40xf32>) attributes {rt.kernel} {
  %ex = tensor.empty() : tensor<5x40xf32>
  %ec = tensor.empty() : tensor<40xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<5x40xf32>) outs(%ex : tensor<5x40xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<5x40xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(c) -> (c)>], iterator_types = ["parallel"]} outs(%ec : tensor<40xf32>) {
  ^bb0(%o: f32):
    %one = arith.constant 1.0 : f32
    linalg.yield %one : f32
  } -> tensor<40xf32>
  // expected-error @below {{returns in #1 a value of which there is one for each column; tasks that share it would all write it}}
  return %y, %c : tensor<5x40xf32>, tensor<40xf32>
}
