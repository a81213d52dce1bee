// RUN: reprise-opt %s -split-input-file -verify-diagnostics

func.func @peer(%x: tensor<4xf32>) {
  // expected-error @+1 {{'rt.send' op needs a peer and a lane of at least 0 and at least 1 place, but got -1, 0 and 1}}
  rt.send %x to -1 over "pp" lane 0 places 1 : tensor<4xf32>
  return
}

// -----

func.func @places() {
  // expected-error @+1 {{'rt.receive' op needs a peer and a lane of at least 0 and at least 1 place, but got 0, 0 and 0}}
  %x = rt.receive from 0 over "pp" lane 0 places 0 : () -> tensor<4xf32>
  return
}

// -----

func.func @form() {
  // expected-error @+1 {{'rt.receive' op needs either a result or an output}}
  rt.receive from 0 over "pp" lane 0 places 1 : () -> ()
  return
}

// -----

func.func @members(%x: tensor<4xf32>) {
  // expected-error @+1 {{needs 3 members, but got 0, 2}}
  %s = rt.collective all_reduce(%x) over "pp" ranks 3 members [0, 2] : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @number() {
  // expected-error @+1 {{needs 'rt.micro_batch' of at least 0 beside 'rt.role', but got -1}}
  %b = rt.buffer at <device, 0> {rt.role = "tokens", rt.micro_batch = -1 : i64} : memref<2x4xi32>
  return
}

// -----

func.func @beside() {
  // expected-error @+1 {{needs 'rt.order' of at least 0 beside 'rt.state', but got 0}}
  %b = rt.buffer at <device, 0> {rt.order = 0 : i64} : memref<2x4xf32>
  return
}
