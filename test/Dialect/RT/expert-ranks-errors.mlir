// RUN: reprise-opt %s -split-input-file -verify-diagnostics

func.func @offsets(%o: tensor<5xi32>) {
  // expected-error @+1 {{needs offsets of 4 experts, and of those of a rank, but got 'tensor<5xi32>' and 'tensor<4xi32>'}}
  %a:2 = rt.gather_offsets %o over "ep" ranks 2 : (tensor<5xi32>) -> (tensor<2x5xi32>, tensor<4xi32>)
  return
}

// -----

func.func @two(%o: tensor<5xi32>) {
  // expected-error @+1 {{needs 1 input and either 2 results or outputs, but got 1 and 1}}
  %a = rt.gather_offsets %o over "ep" ranks 2 : (tensor<5xi32>) -> tensor<2x5xi32>
  return
}

// -----

func.func @inputs(%x: tensor<16x8xf32>) {
  // expected-error @+1 {{needs 2 inputs and either 1 result or output, but got 1 and 1}}
  %a = rt.send_rows %x over "ep" ranks 2 : (tensor<16x8xf32>) -> tensor<32x8xf32>
  return
}

// -----

func.func @sizes(%x: tensor<16x8xf32>, %o: tensor<2x5xi32>) {
  // expected-error @+1 {{needs rows of equal sizes, but got 'tensor<16x8xf32>' and 'tensor<32x9xf32>'}}
  %a = rt.send_rows %x, %o over "ep" ranks 2 : (tensor<16x8xf32>, tensor<2x5xi32>) -> tensor<32x9xf32>
  return
}

// -----

module attributes {rt.gemm_workspace = 1024 : i64} {
  func.func @slots(%x: memref<16x8xf32>, %o: memref<2x5xi32>, %y: memref<32x8xf32>) {
    // expected-error @+1 {{needs a workspace of 1024 bytes on a GPU, but got 0}}
    rt.send_rows %x, %o to(%y) over "ep" ranks 2
      : (memref<16x8xf32>, memref<2x5xi32>, memref<32x8xf32>) -> ()
    return
  }
}

// -----

module attributes {rt.gemm_workspace = 1024 : i64} {
  func.func @twice(%x: memref<32x8xf32>, %o: memref<2x5xi32>, %y: memref<16x8xf32>, %w: memref<256xf32>) {
    // expected-error @+1 {{needs a workspace of 2048 bytes on a GPU, but got 1024}}
    rt.return_rows %x, %o to(%y) workspace(%w) over "ep" ranks 2
      : (memref<32x8xf32>, memref<2x5xi32>, memref<16x8xf32>, memref<256xf32>) -> ()
    return
  }
}

// -----

module attributes {rt.gemm_workspace = 1024 : i64} {
  func.func @odd(%x: memref<16x8xf32>, %o: memref<2x5xi32>, %y: memref<33x8xf32>, %w: memref<264xf32>) {
    // expected-error @+1 {{needs rows that 2 ranks divide on a GPU, but got}}
    rt.send_rows %x, %o to(%y) workspace(%w) over "ep" ranks 2
      : (memref<16x8xf32>, memref<2x5xi32>, memref<33x8xf32>, memref<264xf32>) -> ()
    return
  }
}

// -----

func.func @rounds(%x: tensor<16x8xf32>, %o: tensor<2x5xi32>) {
  // expected-error @+1 {{needs 'round' of at least 0 together with 'rows' of at least 1, and 'keeps' with these only}}
  %a = rt.send_rows %x, %o over "ep" ranks 2 rows 8 : (tensor<16x8xf32>, tensor<2x5xi32>) -> tensor<32x8xf32>
  return
}

// -----

func.func @keeps(%x: tensor<16x8xf32>, %o: tensor<2x5xi32>) {
  // expected-error @+1 {{needs 3 inputs and either 1 result or output, but got 2 and 1}}
  %a = rt.return_rows %x, %o over "ep" ranks 2 round 1 rows 8 keeps : (tensor<16x8xf32>, tensor<2x5xi32>) -> tensor<32x8xf32>
  return
}

// -----

func.func @type(%x: tensor<16x8xf32>, %o: tensor<2x5xi32>, %k: tensor<31x8xf32>) {
  // expected-error @+1 {{needs to keep rows of 'tensor<32x8xf32>', but got 'tensor<31x8xf32>'}}
  %a = rt.return_rows %x, %o, %k over "ep" ranks 2 round 1 rows 8 keeps : (tensor<16x8xf32>, tensor<2x5xi32>, tensor<31x8xf32>) -> tensor<32x8xf32>
  return
}

// -----

func.func @own(%o: tensor<5xi32>) {
  // expected-error @+1 {{needs offsets of 4 experts, and of those of a rank, but got 'tensor<5xi32>' and 'tensor<3xi32>'}}
  %a:2 = rt.gather_offsets %o over "ep" ranks 2 rows 8 : (tensor<5xi32>) -> (tensor<2x5xi32>, tensor<3xi32>)
  return
}

// -----

module attributes {rt.gemm_workspace = 1024 : i64} {
  func.func @gpu(%x: memref<16x8xf32>, %o: memref<2x5xi32>, %y: memref<32x8xf32>, %w: memref<256xf32>) {
    // expected-error @+1 {{needs all rows at once on a GPU, but got round 1}}
    rt.send_rows %x, %o to(%y) workspace(%w) over "ep" ranks 2 round 1 rows 8
      : (memref<16x8xf32>, memref<2x5xi32>, memref<32x8xf32>, memref<256xf32>) -> ()
    return
  }
}

// -----

func.func @f(%o: tensor<5xi32>) {
  // expected-error @+1 {{'rt.gather_offsets' op needs offsets of 4 experts, and of those of a rank, but got}}
  %all, %own = rt.gather_offsets %o over "ep" ranks 2 rows 0 : (tensor<5xi32>) -> (tensor<2x5xi32>, tensor<4x3xi32>)
  return
}
