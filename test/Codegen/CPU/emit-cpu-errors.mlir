// RUN: reprise-opt %s -reprise-emit-cpu -split-input-file -verify-diagnostics

// Row sums are complete when a row is, column sums when all rows are: there is no
// one partition into tasks for both.

func.func private @both(%x: tensor<5x40xf32>) -> (tensor<5xf32>, tensor<40xf32>) attributes {rt.kernel} {
  %zero = arith.constant 0.0 : f32
  %er = tensor.empty() : tensor<5xf32>
  %ec = tensor.empty() : tensor<40xf32>
  %zr = linalg.fill ins(%zero : f32) outs(%er : tensor<5xf32>) -> tensor<5xf32>
  %zc = linalg.fill ins(%zero : f32) outs(%ec : tensor<40xf32>) -> tensor<40xf32>
  // expected-note @below {{rows are reduced here}}
  %r = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<5x40xf32>) outs(%zr : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<5xf32>
  // expected-error @below {{reduces columns in a kernel that reduces rows; these need two kernels}}
  %c = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>], iterator_types = ["reduction", "parallel"]}
    ins(%x : tensor<5x40xf32>) outs(%zc : tensor<40xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<40xf32>
  return %r, %c : tensor<5xf32>, tensor<40xf32>
}

// -----

func.func private @spaces(%x: tensor<5x40xf32>, %z: tensor<4x50xf32>) -> (tensor<5x40xf32>, tensor<4x50xf32>) attributes {rt.kernel} {
  %ex = tensor.empty() : tensor<5x40xf32>
  %ez = tensor.empty() : tensor<4x50xf32>
  // expected-note @below {{which is given here}}
  %a = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<5x40xf32>) outs(%ex : tensor<5x40xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<5x40xf32>
  // expected-error @below {{needs the iteration space of its kernel, 5x40, but got 4x50}}
  %b = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
    ins(%z : tensor<4x50xf32>) outs(%ez : tensor<4x50xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<4x50xf32>
  return %a, %b : tensor<5x40xf32>, tensor<4x50xf32>
}

// -----

// 16 lanes would each start from one.

func.func private @start(%x: tensor<5x40xf32>) -> tensor<5xf32> attributes {rt.kernel} {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<5xf32>
  %ones = linalg.fill ins(%one : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
  // expected-error @below {{needs a row reduction that starts from a linalg.fill with a neutral constant}}
  %r = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<5x40xf32>) outs(%ones : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<5xf32>
  return %r : tensor<5xf32>
}

// -----

// A load from another row in each lane.

func.func private @gather(%table: tensor<9x40xf32>, %x: tensor<40xi32>) -> tensor<40xf32> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<40xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%x : tensor<40xi32>) outs(%e : tensor<40xf32>) {
  ^bb0(%id: i32, %o: f32):
    %row = arith.index_cast %id : i32 to index
    %c = linalg.index 0 : index
    // expected-error @below {{needs the column itself as last index and nothing else that varies with the column, but index #0 does}}
    %t = tensor.extract %table[%row, %c] : tensor<9x40xf32>
    linalg.yield %t : f32
  } -> tensor<40xf32>
  return %y : tensor<40xf32>
}

// -----

func.func private @foreign(%x: tensor<5x40xf32>) -> tensor<40x5xf32> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<40x5xf32>
  // expected-error @below {{has no code in a kernel of linalg ops}}
  %y = linalg.transpose ins(%x : tensor<5x40xf32>) outs(%e : tensor<40x5xf32>) permutation = [1, 0]
  return %y : tensor<40x5xf32>
}

// -----

// expected-error @below {{needs 'rt.may_alias' of argument #0 to be one of 1 results, but got -1}}
func.func private @negative(%x: tensor<5x136xf32> {rt.may_alias = -1 : i64}) -> tensor<5x136xf32> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<5x136xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<5x136xf32>) outs(%e : tensor<5x136xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<5x136xf32>
  return %y : tensor<5x136xf32>
}

// -----

func.func private @shared(%q: tensor<2x20x24xf32> {rt.may_alias = 0 : i64}, %rng: tensor<4xi32>) -> (tensor<2x20x24xf32>, tensor<2x3x20xf32>) attributes {rt.kernel} {
  // expected-error @below {{needs buffers of its own, but argument #0 of its kernel shares that of a result}}
  %o, %l = rt.attention %q, %q, %q, %rng heads 3 scale 3.5355338e-01 rate 0.0 stream 0
    : (tensor<2x20x24xf32>, tensor<2x20x24xf32>, tensor<2x20x24xf32>, tensor<4xi32>) -> (tensor<2x20x24xf32>, tensor<2x3x20xf32>)
  return %o, %l : tensor<2x20x24xf32>, tensor<2x3x20xf32>
}

// -----

// What is on the stack grows with the width of a head.

func.func private @wide(%q: tensor<1x20x3618xf32>, %rng: tensor<4xi32>) -> (tensor<1x20x3618xf32>, tensor<1x2x20xf32>) attributes {rt.kernel} {
  // expected-error @below {{needs a head width of at most 1808, for a task to do with 1048576 bytes of stack, but got 1809}}
  %o, %l = rt.attention %q, %q, %q, %rng heads 2 scale 3.5355338e-01 rate 0.0 stream 0
    : (tensor<1x20x3618xf32>, tensor<1x20x3618xf32>, tensor<1x20x3618xf32>, tensor<4xi32>) -> (tensor<1x20x3618xf32>, tensor<1x2x20xf32>)
  return %o, %l : tensor<1x20x3618xf32>, tensor<1x2x20xf32>
}

// -----

func.func private @wide_backward(%q: tensor<1x20x1809xf32>, %l: tensor<1x1x20xf32>, %rng: tensor<4xi32>) -> (tensor<1x20x1809xf32>, tensor<1x20x1809xf32>, tensor<1x20x1809xf32>) attributes {rt.kernel} {
  // expected-error @below {{needs a head width of at most 1808, for a task to do with 1048576 bytes of stack, but got 1809}}
  %dq, %dk, %dv = rt.attention_backward %q, %q, %q, %q, %l, %q, %rng heads 1 scale 3.5355338e-01 rate 0.0 stream 0
    : (tensor<1x20x1809xf32>, tensor<1x20x1809xf32>, tensor<1x20x1809xf32>, tensor<1x20x1809xf32>, tensor<1x1x20xf32>, tensor<1x20x1809xf32>, tensor<4xi32>)
      -> (tensor<1x20x1809xf32>, tensor<1x20x1809xf32>, tensor<1x20x1809xf32>)
  return %dq, %dk, %dv : tensor<1x20x1809xf32>, tensor<1x20x1809xf32>, tensor<1x20x1809xf32>
}

// -----

// Powers would be left to a library.

func.func private @power(%x: tensor<40xf32>) -> tensor<40xf32> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<40xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%x : tensor<40xf32>) outs(%e : tensor<40xf32>) {
  ^bb0(%a: f32, %o: f32):
    // expected-error @below {{has no code inside linalg.generic}}
    %t = math.powf %a, %a : f32
    linalg.yield %t : f32
  } -> tensor<40xf32>
  return %y : tensor<40xf32>
}

// -----

func.func private @nothing(%x: tensor<40xf32>) -> tensor<40xf32> attributes {rt.kernel} {
  %e = tensor.empty() : tensor<40xf32>
  // expected-error @below {{needs operands that are inputs of the kernel, filled with a scalar of their type, or results of linalg.generic, but #0 is none}}
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%e : tensor<40xf32>) outs(%e : tensor<40xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<40xf32>
  return %y : tensor<40xf32>
}

// -----

func.func private @returns(%x: tensor<40xf32>) -> (tensor<40xf32>, tensor<3xf32>) attributes {rt.kernel} {
  %e = tensor.empty() : tensor<3xf32>
  // expected-error @below {{needs to return inputs of the kernel, filled tensors or results of linalg.generic, but #1 is none}}
  return %x, %e : tensor<40xf32>, tensor<3xf32>
}

// -----

// expected-error @below {{needs tensors of static shape that have elements of f32, bf16, i32 or i64, but got 'tensor<5xf64>'}}
func.func private @types(%x: tensor<5xf64>) -> tensor<5xf64> attributes {rt.kernel} {
  return %x : tensor<5xf64>
}

// -----

// expected-error @below {{but got 'tensor<0xf32>'}}
func.func private @none(%x: tensor<0xf32>) -> tensor<0xf32> attributes {rt.kernel} {
  return %x : tensor<0xf32>
}

// -----

// expected-error @below {{needs a body of one block to be a kernel}}
func.func private @declared(%x: tensor<5xf32>) -> tensor<5xf32> attributes {rt.kernel}

// -----

func.func private @segments(%x: tensor<5xf32>, %y: tensor<7xf32>) -> (tensor<5xf32>, tensor<5xf32>) attributes {rt.kernel} {
  %ex = tensor.empty() : tensor<5xf32>
  %ey = tensor.empty() : tensor<7xf32>
  // expected-error @below {{needs its results to be results of the kernel, each once, where loops have different lengths}}
  %a = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%x : tensor<5xf32>) outs(%ex : tensor<5xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<5xf32>
  %b = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%y : tensor<7xf32>) outs(%ey : tensor<7xf32>) {
  ^bb0(%i: f32, %o: f32):
    linalg.yield %i : f32
  } -> tensor<7xf32>
  return %a, %a : tensor<5xf32>, tensor<5xf32>
}

// -----

func.func private @packed_rows(%x: tensor<32x64xf32>) -> tensor<16x64x2x1xbf16> attributes {rt.kernel} {
  %f = tensor.collapse_shape %x [[0, 1]] : tensor<32x64xf32> into tensor<2048xf32>
  %e = tensor.empty() : tensor<2048xbf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%f : tensor<2048xf32>) outs(%e : tensor<2048xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %t = arith.truncf %a : f32 to bf16
    linalg.yield %t : bf16
  } -> tensor<2048xbf16>
  %m = tensor.expand_shape %r [[0, 1]] output_shape [32, 64] : tensor<2048xbf16> into tensor<32x64xbf16>
  %p = tensor.empty() : tensor<16x64x2x1xbf16>
  // expected-error @below {{needs a matrix of bf16 packed as GEMMs read it, [cols/32][rows/2][32][2], but got 'tensor<32x64xbf16>' as 'tensor<16x64x2x1xbf16>'}}
  %w = linalg.pack %m inner_dims_pos = [0, 1] inner_tiles = [2, 1] into %p : tensor<32x64xbf16> -> tensor<16x64x2x1xbf16>
  return %w : tensor<16x64x2x1xbf16>
}

// -----

// expected-error @below {{needs results that its loops make, where these have different lengths or are packed, but #0 is another value}}
func.func private @packed_argument(%m: tensor<32x64xbf16>, %x: tensor<5xf32>) -> (tensor<2x16x32x2xbf16>, tensor<5xf32>) attributes {rt.kernel} {
  %e = tensor.empty() : tensor<5xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%x : tensor<5xf32>) outs(%e : tensor<5xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<5xf32>
  %p = tensor.empty() : tensor<2x16x32x2xbf16>
  %w = linalg.pack %m outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [32, 2] into %p : tensor<32x64xbf16> -> tensor<2x16x32x2xbf16>
  return %w, %y : tensor<2x16x32x2xbf16>, tensor<5xf32>
}

// -----

func.func private @packed_index(%x: tensor<32x64xf32>) -> tensor<2x16x32x2xbf16> attributes {rt.kernel} {
  %f = tensor.collapse_shape %x [[0, 1]] : tensor<32x64xf32> into tensor<2048xf32>
  %e = tensor.empty() : tensor<2048xbf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%f : tensor<2048xf32>) outs(%e : tensor<2048xbf16>) {
  ^bb0(%a: f32, %o: bf16):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %b = arith.sitofp %n : i32 to bf16
    linalg.yield %b : bf16
  } -> tensor<2048xbf16>
  %m = tensor.expand_shape %r [[0, 1]] output_shape [32, 64] : tensor<2048xbf16> into tensor<32x64xbf16>
  %p = tensor.empty() : tensor<2x16x32x2xbf16>
  // expected-error @below {{needs a loop whose elements are the same wherever they are, but got one with an index}}
  %w = linalg.pack %m outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [32, 2] into %p : tensor<32x64xbf16> -> tensor<2x16x32x2xbf16>
  return %w : tensor<2x16x32x2xbf16>
}

// -----

// A kernel of an op's own returns all that the op makes.

func.func private @sort(%i: tensor<2x4x2xi32>) -> tensor<16xi32> attributes {rt.kernel} {
  // expected-error @below {{needs its kernel to return all 3 results, but it returns 1}}
  %a, %b, %c = rt.sort_rows %i : (tensor<2x4x2xi32>) -> (tensor<16xi32>, tensor<2x4x2xi32>, tensor<6xi32>)
  return %a : tensor<16xi32>
}

// -----

// A GEMM of groups is a kernel on a GPU alone.

func.func private @product(%x: tensor<8x24xf32>, %w: tensor<1x96x24xf32>, %offsets: tensor<2xi32>) -> tensor<8x96xf32> attributes {rt.kernel} {
  // expected-error @below {{needs to be in a schedule on a CPU, whose runtime makes GEMMs}}
  %y = rt.gemm %x, %w groups(%offsets) transpose_b m 8 n 96 k 24 lda 24 ldb 24 ldc 96
    : (tensor<8x24xf32>, tensor<1x96x24xf32>, tensor<2xi32>) -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}
