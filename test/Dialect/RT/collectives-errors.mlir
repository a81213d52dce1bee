// RUN: reprise-opt %s --split-input-file --verify-diagnostics

func.func @no_input() {
  // expected-error @+1 {{'rt.collective' op needs an input, but got none}}
  rt.collective all_reduce() over "dp" ranks 2 : () -> ()
  return
}

// -----

func.func @no_ranks(%x: tensor<4xf32>) {
  // expected-error @+1 {{'rt.collective' op needs 1 to 1048576 ranks, but got 0}}
  %s = rt.collective all_reduce(%x) over "dp" ranks 0 : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @two_inputs(%x: tensor<4xf32>) {
  // expected-error @+1 {{'rt.collective' op needs one input, but got 2}}
  %s = rt.collective all_gather(%x, %x) over "tp" ranks 2 dim 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @no_whole(%s: tensor<100xf32>) {
  // expected-error @+1 {{'rt.collective' op needs a share and the whole, but got 1}}
  %w = rt.collective gather_shares(%s) over "dp" ranks 2 : (tensor<100xf32>) -> tensor<100xf32>
  return
}

// -----

// Of 40,000 elements two ranks have two blocks of 16,384 and the rest.
func.func @half(%s: tensor<20000xf32>, %w: tensor<200x200xf32>) {
  // expected-error @+1 {{'rt.collective' op needs a share of 32768 elements of 'tensor<200x200xf32>', but got 'tensor<20000xf32>'}}
  %all = rt.collective gather_shares(%s, %w) over "dp" ranks 2 : (tensor<20000xf32>, tensor<200x200xf32>) -> tensor<200x200xf32>
  return
}

// -----

func.func @other_elements(%s: tensor<100xbf16>, %w: tensor<100xf32>) {
  // expected-error @+1 {{'rt.collective' op needs a share of 100 elements of 'tensor<100xf32>', but got 'tensor<100xbf16>'}}
  %all = rt.collective gather_shares(%s, %w) over "dp" ranks 2 : (tensor<100xbf16>, tensor<100xf32>) -> tensor<100xf32>
  return
}

// -----

func.func @made_of_share(%s: tensor<100xf32>, %w: tensor<10x10xf32>) {
  // expected-error @+1 {{'rt.collective' op needs results of the types 'tensor<10x10xf32>', but got 'tensor<100xf32>'}}
  %all = rt.collective gather_shares(%s, %w) over "dp" ranks 2 : (tensor<100xf32>, tensor<10x10xf32>) -> tensor<100xf32>
  return
}

// -----

func.func @no_workspace() {
  %b = rt.buffer at <device, 0> : memref<100xf32>
  // expected-error @+1 {{'rt.collective' op needs either results, or outputs and a workspace}}
  rt.collective reduce_shares(%b) to(%b) over "dp" ranks 2 : (memref<100xf32>, memref<100xf32>) -> ()
  return
}

// -----

func.func @no_use_for_workspace() {
  %s = rt.buffer at <device, 0> : memref<100xf32>
  %w = rt.buffer at <device, 448> : memref<100xf32>
  // expected-error @+1 {{'rt.collective' op needs either results, or outputs and no workspace}}
  rt.collective gather_shares(%s, %w) to(%w) workspace(%s) over "dp" ranks 2 : (memref<100xf32>, memref<100xf32>, memref<100xf32>, memref<100xf32>) -> ()
  return
}

// -----

func.func @wrong_workspace() {
  %b = rt.buffer at <device, 0> : memref<100xf32>
  %w = rt.buffer at <device, 448> : memref<3xf32>
  // expected-error @+1 {{'rt.collective' op needs a workspace of 100 elements of f32, but got 'memref<3xf32>'}}
  rt.collective reduce_shares(%b) to(%b) workspace(%w) over "dp" ranks 2 : (memref<100xf32>, memref<100xf32>, memref<3xf32>) -> ()
  return
}

// -----

func.func @no_parts(%x: tensor<3x5xf32>) {
  // expected-error @+1 {{'rt.collective' op needs a dimension 1 that 2 ranks have parts of, but got 'tensor<3x5xf32>'}}
  %s = rt.collective reduce_scatter(%x) over "tp" ranks 2 dim 1 : (tensor<3x5xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @integers(%x: tensor<4xi32>) {
  // expected-error @+1 {{'rt.collective' op needs elements of f32, or all of bf16, but got 'tensor<4xi32>'}}
  %s = rt.collective all_reduce(%x) over "dp" ranks 2 : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

// Of three groups a rank has sums of two and of one.
func.func @terms(%x: tensor<4xf32>) {
  // expected-error @+1 {{'rt.collective' op needs 2 inputs, 2 terms of each of 1 sum, but got 1}}
  %s = rt.collective all_reduce(%x) over "dp" ranks 3 {rt.groups = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @types(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error @+1 {{'rt.collective' op needs terms of one type, but got 'tensor<4xf32>' and 'tensor<5xf32>'}}
  %s = rt.collective reduce_shares(%x, %y) over "dp" ranks 3 {rt.groups = 3 : i64} : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @no_groups(%x: tensor<4xf32>) {
  // expected-error @+1 {{'rt.collective' op needs 'rt.groups' of 1 to 1048576, of type i64, on an all_reduce or reduce_shares, but got 0 : i64}}
  %s = rt.collective all_reduce(%x) over "dp" ranks 3 {rt.groups = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @groups_of_parts(%x: tensor<4xf32>) {
  // expected-error @+1 {{'rt.collective' op needs 'rt.groups' of 1 to 1048576, of type i64, on an all_reduce or reduce_shares, but got 3 : i64}}
  %s = rt.collective all_gather(%x) over "dp" ranks 3 dim 0 {rt.groups = 3 : i64} : (tensor<4xf32>) -> tensor<12xf32>
  return
}

// -----

// Times ranks they would be no number any more.
func.func @many_groups(%x: tensor<4xf32>) {
  // expected-error @+1 {{'rt.collective' op needs 'rt.groups' of 1 to 1048576, of type i64, on an all_reduce or reduce_shares, but got 4611686018427387905 : i64}}
  %s = rt.collective all_reduce(%x, %x) over "dp" ranks 4 {rt.groups = 4611686018427387905 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @terms_without_groups(%x: tensor<4xf32>) {
  // expected-error @+1 {{'rt.collective' op needs 1 input, 1 term of each of 1 sum, but got 2}}
  %s = rt.collective all_reduce(%x, %x) over "dp" ranks 3 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}
