// RUN: reprise-opt %s -verify-diagnostics -split-input-file

// Sizes of arenas that cannot be, and parts in another space than their whole.

// expected-error @+1 {{needs at least 0 bytes of activations, but got -1}}
module attributes {category = #rt.category<activations, -1>} {}

// -----

// expected-error @+1 {{needs 0 <= begin <= least <= bytes, but got begin 0, least 65 and bytes 64}}
module attributes {arena = #rt.arena<device, bytes = 64, least = 65, begin = 0, peak = 64, bound = 64, [<activations, 64>]>} {}

// -----

// expected-error @+1 {{needs 0 <= begin <= least <= bytes, but got begin 65, least 64 and bytes 64}}
module attributes {arena = #rt.arena<device, bytes = 64, least = 64, begin = 65, peak = 0, bound = 0, [<activations, 64>]>} {}

// -----

// expected-error @+1 {{needs 0 <= bound <= peak, and a peak of at most 64 bytes, those behind begin, but got bound 64 and peak 65}}
module attributes {arena = #rt.arena<device, bytes = 128, least = 128, begin = 64, peak = 65, bound = 64, [<activations, 128>]>} {}

// -----

// expected-error @+1 {{needs 0 <= bound <= peak, and a peak of at most 64 bytes, those behind begin, but got bound 64 and peak 63}}
module attributes {arena = #rt.arena<device, bytes = 64, least = 64, begin = 0, peak = 63, bound = 64, [<activations, 64>]>} {}

// -----

// expected-error @+1 {{needs each category once, but gradients is there again}}
module attributes {arena = #rt.arena<device, bytes = 64, least = 64, begin = 64, peak = 0, bound = 0, [<gradients, 32>, <gradients, 32>]>} {}

// -----

// expected-error @+1 {{needs categories that add up to the host's arena of 128 bytes, but got 96}}
module attributes {arena = #rt.arena<host, bytes = 128, least = 128, begin = 64, peak = 64, bound = 64, [<parameters, 32>, <activations, 64>]>} {}

// -----

// expected-error @+1 {{needs one arena for each space, but device has another one}}
module attributes {rt.plan = #rt.plan<[<device, bytes = 0, least = 0, begin = 0, peak = 0, bound = 0, []>, <device, bytes = 0, least = 0, begin = 0, peak = 0, bound = 0, []>]>} {}

// -----

// expected-error @+1 {{needs 'rt.plan' to be an #rt.plan, but got}}
module attributes {rt.plan = {arena = 64 : i64}} {}

// -----

func.func @part_in_another_space() {
  %a = rt.buffer at <device, 0> : memref<16xf32>
  // expected-error @+1 {{needs the space of what it is part of, device, but got host}}
  %b = rt.buffer at <host, 0> in %a(memref<16xf32>) : memref<8xf32>
  return
}

// -----

func.func @view_in_another_space(%x: tensor<16xf32, #rt.space<host>>) {
  // expected-error @+1 {{needs a part in the space of 'tensor<16xf32, #rt.space<host>>', but got 'tensor<8xf32>'}}
  %y = rt.view %x from 0 : tensor<16xf32, #rt.space<host>> to tensor<8xf32>
  return
}

// -----

func.func @join_of_two_spaces(%x: tensor<16xf32, #rt.space<host>>, %y: tensor<16xf32>) {
  // expected-error @+1 {{needs parts in the space of 'tensor<32xf32>', but got 'tensor<16xf32, #rt.space<host>>'}}
  %z = rt.join %x, %y : (tensor<16xf32, #rt.space<host>>, tensor<16xf32>) -> tensor<32xf32>
  return
}
