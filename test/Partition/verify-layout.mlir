// RUN: reprise-opt %s -split-input-file -verify-diagnostics --reprise-verify-layout

// From the words of arguments on, each op makes parts of what one rank would make.

#f = #nn.parameter<name = "w", init = zeros>
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%x: tensor<2x4xf32>, %w: tensor<3x4xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = S(0)>},
                     %b: tensor<3xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = S(0)>},
                     %v: tensor<4x3xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = S(1)>}) -> tensor<2x4xf32> {
    %own = nn.replicate %x over "tp" : tensor<2x4xf32>
    %h = nn.linear %own, %w, %b out_in : (tensor<2x4xf32>, tensor<3x4xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    %g = nn.gelu %h tanh : tensor<2x3xf32>
    %y = nn.linear %g, %v out_in : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
    %z = nn.add %y, %y : tensor<2x4xf32>
    %sum = nn.all_reduce %z over "tp" : tensor<2x4xf32>
    return %sum : tensor<2x4xf32>
  }
}

// -----

// One rank has no words.

func.func @forward(%x: tensor<2x4xf32> {nn.layout = #nn.layout<tp = P>}) -> tensor<2x4xf32> {
  %g = nn.gelu %x tanh : tensor<2x4xf32>
  return %g : tensor<2x4xf32>
}

// -----

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%x: tensor<2x4xf32> {nn.layout = #nn.layout<tp = P>}) -> tensor<2x4xf32> {
    // expected-error @+1 {{'nn.gelu' op needs a whole sum, in which it is not linear, along 'tp' as operand #0, but got P}}
    %g = nn.gelu %x tanh : tensor<2x4xf32>
    %s = nn.all_reduce %g over "tp" : tensor<2x4xf32>
    return %s : tensor<2x4xf32>
  }
}

// -----

// Each rank would add the whole.

#f = #nn.parameter<name = "w", init = zeros>
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%p: tensor<2x4xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = P>}, %x: tensor<2x4xf32> {nn.parameter = #f}) -> tensor<2x4xf32> {
    // expected-error @+1 {{'nn.add' op needs P, as what it is added to, along 'tp' as operand #1, but got I}}
    %y = nn.add %p, %x : tensor<2x4xf32>
    %s = nn.all_reduce %y over "tp" : tensor<2x4xf32>
    return %s : tensor<2x4xf32>
  }
}

// -----

#f = #nn.parameter<name = "w", init = zeros>
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%x: tensor<2x3xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = S(1)>},
                     %v: tensor<4x3xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = S(1)>}, %b: tensor<4xf32> {nn.parameter = #f}) -> tensor<2x4xf32> {
    // expected-error @+1 {{'nn.linear' op needs nothing, since each rank would add it to its terms, along 'tp' as operand #2, but got I}}
    %y = nn.linear %x, %v, %b out_in : (tensor<2x3xf32>, tensor<4x3xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %s = nn.all_reduce %y over "tp" : tensor<2x4xf32>
    return %s : tensor<2x4xf32>
  }
}

// -----

// The gradient of what a column linear reads is a part of a sum.

#f = #nn.parameter<name = "w", init = zeros>
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%x: tensor<2x4xf32> {nn.parameter = #f}, %w: tensor<3x4xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = S(0)>}) -> tensor<2x6xf32> {
    // expected-error @+1 {{'nn.linear' op needs R, which each rank reads for a part of its own, along 'tp' as operand #0, but got I}}
    %h = nn.linear %x, %w out_in : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
    %a = nn.all_gather %h to I over "tp" dim 1 : (tensor<2x3xf32>) -> tensor<2x6xf32>
    return %a : tensor<2x6xf32>
  }
}

// -----

// So is that of a gain for some of the positions.

#f = #nn.parameter<name = "w", init = zeros>
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%x: tensor<2x4x8xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = S(1)>}, %g: tensor<8xf32> {nn.parameter = #f}) -> tensor<2x8x8xf32> {
    // expected-error @+1 {{'nn.rms_norm' op needs R, which each rank reads for a part of its own, along 'tp' as operand #1, but got I}}
    %n, %r = nn.rms_norm %x, %g eps 1.0e-06 : (tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
    %a = nn.all_gather %n to I over "tp" dim 1 : (tensor<2x4x8xf32>) -> tensor<2x8x8xf32>
    return %a : tensor<2x8x8xf32>
  }
}

// -----

// Two uses: one of all ranks, and one of each.

#f = #nn.parameter<name = "w", init = zeros>
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%x: tensor<4xf32> {nn.parameter = #f}, %y: tensor<4xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = R>}) -> tensor<4xf32> {
    // expected-error @+1 {{'nn.add' op needs R, as what is beside it, along 'tp' as operand #0, but got I}}
    %z = nn.add %x, %y : tensor<4xf32>
    return %z : tensor<4xf32>
  }
}

// -----

// A norm of all columns, of which a rank has some; and positions that look at others.

#f = #nn.parameter<name = "w", init = zeros>
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%x: tensor<2x4x8xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = S(2)>}, %g: tensor<8xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = S(0)>}) -> tensor<2x4x16xf32> {
    // expected-error @+1 {{'nn.layer_norm' op keeps no parts of operands apart that ranks along 'tp' have so: S(2) S(0) S(0)}}
    %n, %m, %r = nn.layer_norm %x, %g, %g eps 1.0e-06 : (tensor<2x4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
    %a = nn.all_gather %n to I over "tp" dim 2 : (tensor<2x4x8xf32>) -> tensor<2x4x16xf32>
    return %a : tensor<2x4x16xf32>
  }
}

// -----

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%q: tensor<2x4x8xf32> {nn.layout = #nn.layout<tp = S(1)>}) -> tensor<2x2x4x4xf32> {
    // expected-error @+1 {{'nn.scores' op keeps no parts of operands apart that ranks along 'tp' have so: S(1) S(1)}}
    %s = nn.scores %q, %q heads 2 scale 1.0 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x2x4x4xf32>
    return %s : tensor<2x2x4x4xf32>
  }
}

// -----

// Moves begin somewhere.

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{'nn.all_reduce' op needs P along 'tp' as operand #0, but got I}}
    %s = nn.all_reduce %x over "tp" : tensor<4xf32>
    return %s : tensor<4xf32>
  }
}

// -----

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%x: tensor<2x4xf32> {nn.layout = #nn.layout<tp = S(0)>}) -> tensor<2x8xf32> {
    // expected-error @+1 {{'nn.all_gather' op needs S(1) along 'tp' as operand #0, but got S(0)}}
    %s = nn.all_gather %x to I over "tp" dim 1 : (tensor<2x4xf32>) -> tensor<2x8xf32>
    return %s : tensor<2x8xf32>
  }
}

// -----

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%x: tensor<2x4xf32> {nn.layout = #nn.layout<tp = P>}) -> tensor<2x2xf32> {
    // expected-error @+1 {{'nn.slice' op needs I along 'tp' as operand #0, but got P}}
    %s = nn.slice %x over "tp" dim 1 : (tensor<2x4xf32>) -> tensor<2x2xf32>
    return %s : tensor<2x2xf32>
  }
}

// -----

// The loss is one number.

module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%x: tensor<4xf32> {nn.layout = #nn.layout<tp = R>}) -> tensor<f32> {
    %m = nn.mean %x : (tensor<4xf32>) -> tensor<f32>
    // expected-error @+1 {{needs I along 'tp' as result #0, one number for all ranks, but got R}}
    return %m : tensor<f32>
  }
}

// -----

// Ranks would draw alike for different positions.

#f = #nn.parameter<name = "w", init = zeros>
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%x: tensor<2x4x8xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = S(1)>}, %rng: tensor<4xi32> {nn.input = "rng"}) -> tensor<2x8x8xf32> {
    // expected-error @+1 {{'nn.dropout' op needs to draw for its part along 'tp' of dimension 1, but draws on all ranks alike}}
    %d = nn.dropout %x, %rng rate 0.5 stream 0 : (tensor<2x4x8xf32>, tensor<4xi32>) -> tensor<2x4x8xf32>
    %a = nn.all_gather %d to I over "tp" dim 1 : (tensor<2x4x8xf32>) -> tensor<2x8x8xf32>
    return %a : tensor<2x8x8xf32>
  }
}

// -----

#f = #nn.parameter<name = "w", init = zeros>
module attributes {nn.mesh = #nn.mesh<dp = 2, tp = 2>} {
  func.func @forward(%x: tensor<2x4x8xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = S(1)>}, %rng: tensor<4xi32> {nn.input = "rng"}) -> tensor<2x8x8xf32> {
    // expected-error @+1 {{'nn.dropout' op needs to draw for its part along 'tp' of dimension 1}}
    %d = nn.dropout %x, %rng rate 0.5 stream 0 part <axis = "dp", dim = 1, ranks = 2> : (tensor<2x4x8xf32>, tensor<4xi32>) -> tensor<2x4x8xf32>
    %a = nn.all_gather %d to I over "tp" dim 1 : (tensor<2x4x8xf32>) -> tensor<2x8x8xf32>
    return %a : tensor<2x8x8xf32>
  }
}

// -----

// They would draw differently for the same ones.

#f = #nn.parameter<name = "w", init = zeros>
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%x: tensor<2x4x8xf32> {nn.parameter = #f}, %rng: tensor<4xi32> {nn.input = "rng"}) -> tensor<2x4x8xf32> {
    // expected-error @+1 {{'nn.dropout' op draws for its part along 'tp' what all ranks need to draw alike}}
    %d = nn.dropout %x, %rng rate 0.5 stream 0 {part = #nn.part<axis = "tp", dim = 1, ranks = 2>} : (tensor<2x4x8xf32>, tensor<4xi32>) -> tensor<2x4x8xf32>
    return %d : tensor<2x4x8xf32>
  }
}

// -----

// Other ranks' terms are along another axis.

#f = #nn.parameter<name = "w", init = zeros>
module attributes {nn.mesh = #nn.mesh<dp = 2, tp = 2>} {
  func.func @forward(%x: tensor<4xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = P>}) -> tensor<4xf32> {
    // expected-error @+1 {{'nn.all_reduce' op needs I, R or S, to be moved along 'dp', along 'tp' as operand #0, but got P}}
    %s = nn.all_reduce %x over "dp" : tensor<4xf32>
    return %s : tensor<4xf32>
  }
}

// -----

// Each rank would add it: that it has no gradient does not matter.

#f = #nn.parameter<name = "w", init = zeros>
#z = #nn.parameter<name = "z", init = zeros, frozen = true>
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%p: tensor<2x4xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = P>}, %x: tensor<2x4xf32> {nn.parameter = #z}) -> tensor<2x4xf32> {
    // expected-error @+1 {{'nn.add' op needs P, as what it is added to, along 'tp' as operand #1, but got I}}
    %y = nn.add %p, %x : tensor<2x4xf32>
    %s = nn.all_reduce %y over "tp" : tensor<2x4xf32>
    return %s : tensor<2x4xf32>
  }
}

// -----

// Rank 1 has block 1 of one, and block 0 of the other.

#f = #nn.parameter<name = "w", init = zeros>
module attributes {nn.mesh = #nn.mesh<tp = 4, kv = 2, kv_copies = 2>} {
  func.func @forward(%q: tensor<2x4x4xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = S(2)>}, %k: tensor<2x4x4xf32> {nn.parameter = #f, nn.layout = #nn.layout<kv = S(2), kv_copies = R>}) -> tensor<2x4x16xf32> {
    // expected-error @+1 {{'nn.add' op keeps no parts of operands apart that ranks along 'tp' have so: S(2) S(2) in 2 copies}}
    %h = nn.add %q, %k : tensor<2x4x4xf32>
    %a = nn.all_gather %h to I over "tp" dim 2 : (tensor<2x4x4xf32>) -> tensor<2x4x16xf32>
    return %a : tensor<2x4x16xf32>
  }
}

// -----

// Weights are of positions: columns need all of them, and positions their own.

#f = #nn.parameter<name = "w", init = zeros>
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func @forward(%g: tensor<2x4x8xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = S(2)>}, %x: tensor<2x4x8xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = S(1)>},
                     %w: tensor<2x4xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = R>}, %v: tensor<2x4xf32> {nn.parameter = #f, nn.layout = #nn.layout<tp = S(1)>}) {
    %columns = nn.weighted_swiglu %g, %g, %w : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4x8xf32>
    %positions = nn.weighted_swiglu %x, %x, %v : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4x8xf32>
    // expected-error @+1 {{'nn.weighted_swiglu' op keeps no parts of operands apart that ranks along 'tp' have so: S(1) S(1) R}}
    %others = nn.weighted_swiglu %x, %x, %w : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4xf32>) -> tensor<2x4x8xf32>
    return
  }
}

// -----

// A rule of the update may be of a value that nothing makes.

module attributes {nn.mesh = #nn.mesh<dp = 2>} {
  func.func @step(%a: tensor<4xf32>, %s: tensor<f32>) -> tensor<4xf32> {
    nn.update
    %c = nn.constant 1.0 : tensor<4xf32>
    %p, %m, %v = nn.adamw %c, %a, %a, %a, %s, %s, %s, %s
      beta1 9.0e-01 beta2 9.5e-01 eps 1.0e-08 weight_decay 1.0e-01 : tensor<4xf32>, tensor<f32>
    return %p : tensor<4xf32>
  }
}
