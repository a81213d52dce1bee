// RUN: reprise-opt %s | FileCheck %s

// The roles of the arguments and results of a step, and what an op of the model
// carries, as the dialect's description says.

// CHECK: module attributes {nn.hub_config = "{}", nn.model = "gpt2 2x24", nn.train = {lr = 1.000000e-03 : f64, memory_budget = 1024 : i64}, nn.train_json = "{}"}
module attributes {nn.hub_config = "{}", nn.model = "gpt2 2x24", nn.train = {lr = 1.0e-3, memory_budget = 1024}, nn.train_json = "{}"} {
  // CHECK-LABEL: func @step(
  //  CHECK-SAME:   tensor<2x8xi32> {nn.input = "tokens"}
  //  CHECK-SAME:   tensor<2x8xi32> {nn.input = "targets"}
  //  CHECK-SAME:   tensor<4xi32> {nn.input = "rng"}
  //  CHECK-SAME:   tensor<f32> {nn.input = "lr"}
  //  CHECK-SAME:   tensor<f32> {nn.input = "bias_correction1"}
  //  CHECK-SAME:   tensor<f32> {nn.input = "bias_correction2"}
  //  CHECK-SAME:   tensor<f32> {nn.input = "loss_sum"}
  //  CHECK-SAME:   tensor<24x96xf32> {nn.parameter = #nn.parameter<name = "w", init = normal, std = 2.000000e-02 : f32, decay = true>}
  //  CHECK-SAME:   tensor<96xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>}
  //  CHECK-SAME:   tensor<24xf32> {nn.parameter = #nn.parameter<name = "g", init = ones, frozen = true>}
  //  CHECK-SAME:   tensor<24x96xf32> {nn.gradient = "w"}
  //  CHECK-SAME:   tensor<24x96xf32> {nn.moment1 = "w"}
  //  CHECK-SAME:   tensor<24x96xf32> {nn.moment2 = "w"}
  //  CHECK-SAME:   -> (tensor<f32> {nn.output = "loss"}, tensor<f32> {nn.output = "grad_norm"}, tensor<24x96xf32> {nn.parameter = "w"},
  //  CHECK-SAME:       tensor<24x96xf32> {nn.gradient = "w"}, tensor<24x96xf32> {nn.moment1 = "w"}, tensor<24x96xf32> {nn.moment2 = "w"})
  //  CHECK-SAME:   attributes {nn.micro_batches = 2 : i64}
  func.func @step(
      %tokens: tensor<2x8xi32> {nn.input = "tokens"},
      %targets: tensor<2x8xi32> {nn.input = "targets"},
      %rng: tensor<4xi32> {nn.input = "rng"},
      %lr: tensor<f32> {nn.input = "lr"},
      %c1: tensor<f32> {nn.input = "bias_correction1"},
      %c2: tensor<f32> {nn.input = "bias_correction2"},
      %sum: tensor<f32> {nn.input = "loss_sum"},
      %w: tensor<24x96xf32> {nn.parameter = #nn.parameter<name = "w", init = normal, std = 2.0e-02 : f32, decay = true>},
      %b: tensor<96xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>},
      %g: tensor<24xf32> {nn.parameter = #nn.parameter<name = "g", init = ones, frozen = true>},
      %dw: tensor<24x96xf32> {nn.gradient = "w"},
      %m: tensor<24x96xf32> {nn.moment1 = "w"},
      %v: tensor<24x96xf32> {nn.moment2 = "w"})
      -> (tensor<f32> {nn.output = "loss"}, tensor<f32> {nn.output = "grad_norm"},
          tensor<24x96xf32> {nn.parameter = "w"}, tensor<24x96xf32> {nn.gradient = "w"},
          tensor<24x96xf32> {nn.moment1 = "w"}, tensor<24x96xf32> {nn.moment2 = "w"})
      attributes {nn.micro_batches = 2 : i64} {
    return %sum, %lr, %w, %dw, %m, %v
      : tensor<f32>, tensor<f32>, tensor<24x96xf32>, tensor<24x96xf32>, tensor<24x96xf32>, tensor<24x96xf32>
  }

  // Where a parameter is published under another name, and as a part of it.

  // CHECK-LABEL: func private @published(
  //  CHECK-SAME:   #nn.parameter<name = "h.0.attn.k.weight", init = zeros, hub = "h.0.attn.c_attn.weight", part = 1, parts = 3>
  func.func private @published(%w: tensor<24x24xf32> {nn.parameter = #nn.parameter<
      name = "h.0.attn.k.weight", init = zeros, hub = "h.0.attn.c_attn.weight", part = 1, parts = 3>})

  // Every type of rotary positions with all that it may say; what is default is left out.

  // CHECK-LABEL: func private @rotary(
  //  CHECK-SAME:   tensor<8x4xf32> {nn.rotary = #nn.rotary<theta = 1.000000e+04 : f64>}
  //  CHECK-SAME:   #nn.rotary<theta = 1.000000e+04 : f64, type = linear, factor = 4.000000e+00 : f64>
  //  CHECK-SAME:   #nn.rotary<theta = 5.000000e+05 : f64, type = llama3, factor = 8.000000e+00 : f64, low_freq_factor = 1.000000e+00 : f64, high_freq_factor = 4.000000e+00 : f64, original_max_position_embeddings = 8192>
  //  CHECK-SAME:   #nn.rotary<theta = 1.000000e+04 : f64, type = yarn, factor = 4.000000e+01 : f64, original_max_position_embeddings = 4096, beta_fast = 3.200000e+01 : f64, beta_slow = 1.000000e+00 : f64, truncate = false, attention_factor = 1.000000e+00 : f64, mscale = 1.000000e+00 : f64, mscale_all_dim = 1.000000e+00 : f64>
  func.func private @rotary(
      %default: tensor<8x4xf32> {nn.rotary = #nn.rotary<theta = 1.0e+04 : f64, type = default, truncate = true>},
      %linear: tensor<8x4xf32> {nn.rotary = #nn.rotary<theta = 1.0e+04 : f64, type = linear, factor = 4.0 : f64>},
      %llama3: tensor<8x4xf32> {nn.rotary = #nn.rotary<theta = 5.0e+05 : f64, type = llama3, factor = 8.0 : f64,
        low_freq_factor = 1.0 : f64, high_freq_factor = 4.0 : f64, original_max_position_embeddings = 8192>},
      %yarn: tensor<8x4xf32> {nn.rotary = #nn.rotary<theta = 1.0e+04 : f64, type = yarn, factor = 40.0 : f64,
        original_max_position_embeddings = 4096, beta_fast = 32.0 : f64, beta_slow = 1.0 : f64, truncate = false,
        attention_factor = 1.0 : f64, mscale = 1.0 : f64, mscale_all_dim = 1.0 : f64>})

  // Layer and value are left out where there is none.

  // CHECK-LABEL: func @scopes(
  func.func @scopes(%x: tensor<4xf32>) {
    // CHECK: {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "g">}
    %g = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "g">} : tensor<4xf32>
    // CHECK: {nn.scope = #nn.scope<layer = 0, module = "residual">}
    %y = nn.add %x, %g {nn.scope = #nn.scope<layer = 0, module = "residual">} : tensor<4xf32>
    // CHECK: {nn.scope = #nn.scope<module = "loss">}
    %z = nn.scale %y by 2.0 {nn.scope = #nn.scope<module = "loss">} : tensor<4xf32>
    return
  }
}
