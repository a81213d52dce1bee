// RUN: reprise-opt %s -verify-diagnostics -split-input-file

// Scopes.

func.func @scope_module(%x: tensor<4xf32>) {
  // expected-error @+1 {{needs a module of embedding, layernorm, attention, core_attn, mlp, moe, moe_act, shared_experts, mla_up_proj, mtp, residual, head, loss or optimizer, but got 'mpl'}}
  %y = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 3, module = "mpl">} : tensor<4xf32>
  return
}

// -----

func.func @scope_layer(%x: tensor<4xf32>) {
  // expected-error @+1 {{needs a layer from 0 to 1048575, but got -2}}
  %y = nn.gelu %x tanh {nn.scope = #nn.scope<layer = -2, module = "mlp">} : tensor<4xf32>
  return
}

// -----

func.func @scope_kind(%x: tensor<4xf32>) {
  // expected-error @+1 {{'nn.gelu' op needs #nn.scope for 'nn.scope', but got "mlp"}}
  %y = nn.gelu %x tanh {nn.scope = "mlp"} : tensor<4xf32>
  return
}

// -----

// Parameters.

// expected-error @+1 {{needs a parameter name, but got an empty one}}
func.func private @parameter_name(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "", init = zeros>})

// -----

// expected-error @+1 {{needs 'std' with init normal and only there, but got none with init normal}}
func.func private @parameter_no_std(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = normal>})

// -----

// expected-error @+1 {{needs 'std' with init normal and only there, but got one with init zeros}}
func.func private @parameter_std(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros, std = 1.0 : f32>})

// -----

// expected-error @+1 {{needs a standard deviation of at least 0 that is finite in f32, but got -1.000000e+00}}
func.func private @parameter_negative_std(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = normal, std = -1.0 : f32>})

// -----

// expected-error @+1 {{'func.func' op needs a tensor of f32 for 'nn.parameter', but got 'tensor<4xbf16>'}}
func.func private @parameter_type(%w: tensor<4xbf16> {nn.parameter = #nn.parameter<name = "w", init = zeros>})

// -----

// expected-error @+1 {{needs a part below the number of parts, but got part 3 of 3}}
func.func private @parameter_part(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros, hub = "c_attn", part = 3, parts = 3>})

// -----

// expected-error @+1 {{needs a part below the number of parts, but got part -1 of 1}}
func.func private @parameter_negative_part(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros, part = -1>})

// -----

// expected-error @+1 {{needs a part below the number of parts, but got part 0 of 0}}
func.func private @parameter_parts(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros, parts = 0>})

// -----

// expected-error @+1 {{needs the published tensor that it is part 1 of 3 of, but got no 'hub'}}
func.func private @parameter_hub(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros, part = 1, parts = 3>})

// -----

// expected-error @+1 {{needs one '*' in 'hub' at most, and no parts with it, but got 'a.*.b.*' and 1 parts}}
func.func private @parameter_stacks(%w: tensor<4x4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros, hub = "a.*.b.*">})

// -----

// expected-error @+1 {{needs one '*' in 'hub' at most, and no parts with it, but got 'a.*.b' and 2 parts}}
func.func private @parameter_stack_of_parts(%w: tensor<4x4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros, hub = "a.*.b", parts = 2>})

// -----

// expected-error @+1 {{needs a standard deviation of at least 0 that is finite in f32, but got 1.000000e+39}}
func.func private @parameter_large_std(%w: tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = normal, std = 1.0e39 : f64>})

// -----

// expected-error @+1 {{needs a tensor of a static shape for 'nn.gradient', but got 'tensor<*xf32>'}}
func.func private @gradient_rank(%w: tensor<*xf32> {nn.gradient = "w"})

// -----

// expected-error @+1 {{needs a tensor of a static shape for 'nn.gradient', but got 'tensor<?xf32>'}}
func.func private @gradient_dynamic(%w: tensor<?xf32> {nn.gradient = "w"})

// -----

// expected-error @+1 {{needs a tensor of a static shape for 'nn.gradient', but got 'f32'}}
func.func private @gradient_scalar(%w: f32 {nn.gradient = "w"})

// -----

// expected-error @+1 {{needs the name of a parameter for 'nn.gradient', but got an empty one}}
func.func private @gradient_name(%w: tensor<4xf32> {nn.gradient = ""})

// -----

// An argument says how a parameter starts, a result only which one it is.

// expected-error @+1 {{'func.func' op has an argument with no use for the attribute 'nn.parameter' with value "w"}}
func.func private @parameter_argument(%w: tensor<4xf32> {nn.parameter = "w"})

// -----

// expected-error @+1 {{'func.func' op has a result with no use for the attribute 'nn.parameter' with value #nn.parameter<name = "w", init = zeros>}}
func.func private @parameter_result() -> (tensor<4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>})

// -----

// Tables of angles.

// expected-error @+1 {{'func.func' op needs a table [T, D] of f32 with an even D from 2 to 1048576 for 'nn.rotary', but got 'tensor<8x7xf32>'}}
func.func private @rotary_odd(%r: tensor<8x7xf32> {nn.rotary = #nn.rotary<theta = 1.0e+04 : f64>})

// -----

// expected-error @+1 {{'func.func' op needs a table [T, D] of f32 with an even D from 2 to 1048576 for 'nn.rotary', but got 'tensor<8xf32>'}}
func.func private @rotary_rank(%r: tensor<8xf32> {nn.rotary = #nn.rotary<theta = 1.0e+04 : f64>})

// -----

// expected-error @+1 {{'func.func' op needs a table [T, D] of f32 with an even D from 2 to 1048576 for 'nn.rotary', but got 'tensor<8x8xbf16>'}}
func.func private @rotary_type(%r: tensor<8x8xbf16> {nn.rotary = #nn.rotary<theta = 1.0e+04 : f64>})

// -----

// expected-error @+1 {{needs a table [T, D] of f32 with an even D from 2 to 1048576 for 'nn.rotary', but got 'tensor<8x0xf32>'}}
func.func private @rotary_empty(%r: tensor<8x0xf32> {nn.rotary = #nn.rotary<theta = 1.0e+04 : f64>})

// -----

// expected-error @+1 {{needs frequencies that are finite in f32, but gets INF from #nn.rotary<theta = 1.000000e+04 : f64, type = linear, factor = 1.000000e-300 : f64>}}
func.func private @rotary_frequency(%r: tensor<8x4xf32> {nn.rotary = #nn.rotary<theta = 1.0e4 : f64, type = linear, factor = 1.0e-300 : f64>})

// -----

// expected-error @+1 {{needs a scale that is finite in f32, but gets INF}}
func.func private @rotary_scale(%r: tensor<8x4xf32> {nn.rotary = #nn.rotary<theta = 1.0e4 : f64, type = yarn, factor = 2.0 : f64, original_max_position_embeddings = 8, attention_factor = 1.0e300 : f64>})

// -----

// expected-error @+1 {{'func.func' op has a result with no use for the attribute 'nn.rotary' with value #nn.rotary<theta = 1.000000e+04 : f64>}}
func.func private @rotary_result() -> (tensor<8x8xf32> {nn.rotary = #nn.rotary<theta = 1.0e+04 : f64>})

// -----

// expected-error @+1 {{'func.func' op has an argument with no use for the attribute 'nn.rotary' with value "llama3"}}
func.func private @rotary_kind(%r: tensor<8x8xf32> {nn.rotary = "llama3"})

// -----

// expected-error @+1 {{needs a finite 'theta' above 1, but got 1.000000e+00 : f64}}
func.func private @rotary_theta(%r: tensor<8x8xf32> {nn.rotary = #nn.rotary<theta = 1.0 : f64>})

// -----

// expected-error @+1 {{has no use for 'factor' with type default, but got one}}
func.func private @rotary_default_factor(%r: tensor<8x8xf32> {nn.rotary = #nn.rotary<theta = 1.0e+04 : f64, factor = 2.0 : f64>})

// -----

// expected-error @+1 {{needs 'factor' with type linear, but got none}}
func.func private @rotary_linear(%r: tensor<8x8xf32> {nn.rotary = #nn.rotary<theta = 1.0e+04 : f64, type = linear>})

// -----

// expected-error @+1 {{needs a finite 'factor' above 0, but got 0.000000e+00 : f64}}
func.func private @rotary_factor(%r: tensor<8x8xf32> {nn.rotary = #nn.rotary<theta = 1.0e+04 : f64, type = linear, factor = 0.0 : f64>})

// -----

// expected-error @+1 {{needs 'original_max_position_embeddings' to be left out with type linear, but got 4096}}
func.func private @rotary_linear_length(%r: tensor<8x8xf32> {nn.rotary = #nn.rotary<theta = 1.0e+04 : f64, type = linear, factor = 2.0 : f64, original_max_position_embeddings = 4096>})

// -----

// expected-error @+1 {{needs 'high_freq_factor' with type llama3, but got none}}
func.func private @rotary_llama3(%r: tensor<8x8xf32> {nn.rotary = #nn.rotary<theta = 1.0e+04 : f64, type = llama3, factor = 2.0 : f64, low_freq_factor = 1.0 : f64, original_max_position_embeddings = 4096>})

// -----

// expected-error @+1 {{needs a 'low_freq_factor' below 'high_freq_factor', but got 4.000000e+00 : f64 and 4.000000e+00 : f64}}
func.func private @rotary_llama3_factors(%r: tensor<8x8xf32> {nn.rotary = #nn.rotary<theta = 1.0e+04 : f64, type = llama3, factor = 2.0 : f64, low_freq_factor = 4.0 : f64, high_freq_factor = 4.0 : f64, original_max_position_embeddings = 4096>})

// -----

// expected-error @+1 {{has no use for 'beta_fast' with type llama3, but got one}}
func.func private @rotary_llama3_beta(%r: tensor<8x8xf32> {nn.rotary = #nn.rotary<theta = 1.0e+04 : f64, type = llama3, factor = 2.0 : f64, low_freq_factor = 1.0 : f64, high_freq_factor = 4.0 : f64, original_max_position_embeddings = 4096, beta_fast = 32.0 : f64>})

// -----

// expected-error @+1 {{needs 'original_max_position_embeddings' to be at least 1 with type yarn, but got 0}}
func.func private @rotary_yarn(%r: tensor<8x8xf32> {nn.rotary = #nn.rotary<theta = 1.0e+04 : f64, type = yarn, factor = 2.0 : f64>})

// -----

// expected-error @+1 {{has no use for 'truncate' with type default, but got false}}
func.func private @rotary_truncate(%r: tensor<8x8xf32> {nn.rotary = #nn.rotary<theta = 1.0e+04 : f64, truncate = false>})

// -----

// Other state.

// expected-error @+1 {{'func.func' op needs a tensor of f32 for 'nn.gradient', but got 'tensor<4xbf16>'}}
func.func private @gradient_type(%g: tensor<4xbf16> {nn.gradient = "w"})

// -----

// expected-error @+1 {{'func.func' op needs a tensor of bf16 for 'nn.working', but got 'tensor<4xf32>'}}
func.func private @working_type(%w: tensor<4xf32> {nn.working = "w"})

// -----

// expected-error @+1 {{'func.func' op has an argument with no use for the attribute 'nn.moment1' with value 1 : i64}}
func.func private @moment_kind(%g: tensor<4xf32> {nn.moment1 = 1})

// -----

// Inputs and outputs.

// expected-error @+1 {{'func.func' op needs 'nn.input' to be tokens, targets, sample_tokens, position, rng, lr, bias_correction1, bias_correction2, loss_sum, border or border_gradient, but got 'token'}}
func.func private @input_word(%ids: tensor<2x8xi32> {nn.input = "token"})

// -----

// expected-error @+1 {{'func.func' op needs ids [B, T] of i32 for 'tokens', but got 'tensor<16xi32>'}}
func.func private @input_ids(%ids: tensor<16xi32> {nn.input = "tokens"})

// -----

// expected-error @+1 {{'func.func' op needs ids [B, T] of i32 for 'targets', but got 'tensor<2x8xi64>'}}
func.func private @input_targets(%ids: tensor<2x8xi64> {nn.input = "targets"})

// -----

// expected-error @+1 {{'func.func' op needs a position [B] of i32 for 'position', but got 'tensor<i32>'}}
func.func private @input_position(%position: tensor<i32> {nn.input = "position"})

// -----

// expected-error @+1 {{'func.func' op needs tensor<4xi32> for 'rng', but got 'tensor<2xi32>'}}
func.func private @input_rng(%rng: tensor<2xi32> {nn.input = "rng"})

// -----

// expected-error @+1 {{'func.func' op needs tensor<f32> for 'lr', but got 'tensor<1xf32>'}}
func.func private @input_scalar(%lr: tensor<1xf32> {nn.input = "lr"})

// -----

// expected-error @+1 {{'func.func' op needs 'nn.output' to be loss, grad_norm, eval_loss, logits, border or border_gradient, but got 'norm'}}
func.func private @output_word() -> (tensor<f32> {nn.output = "norm"})

// -----

// expected-error @+1 {{'func.func' op has an argument with no use for the attribute 'nn.output' with value "loss"}}
func.func private @output_argument(%loss: tensor<f32> {nn.output = "loss"})

// -----

// Functions and modules.

// expected-error @+1 {{'func.func' op needs a count of 1 to 1048576 for 'nn.micro_batches', but got 0 : i64}}
func.func private @micro_batches() attributes {nn.micro_batches = 0}

// -----

// expected-error @+1 {{'builtin.module' op has no use for the attribute 'nn.model' with value 1 : i64}}
module attributes {nn.model = 1} {
}

// -----

// expected-error @+1 {{'func.func' op has no use for the attribute 'nn.trian' with value unit}}
func.func private @unknown() attributes {nn.trian}

// -----

// expected-error @+1 {{needs a floating-point number of at least 0 for 'lr' in 'nn.train', but got 5 : i64}}
module attributes {nn.train = {lr = 5 : i64}} {}

// -----

// expected-error @+1 {{needs a floating-point number of at least 0 and below 1 for 'adam_beta2' in 'nn.train', but got 1.000000e+00 : f64}}
module attributes {nn.train = {adam_beta2 = 1.0 : f64}} {}

// -----

// expected-error @+1 {{needs a whole number of at least 1 for 'train_iters' in 'nn.train', but got 0 : i64}}
module attributes {nn.train = {train_iters = 0 : i64}} {}

// -----

// expected-error @+1 {{needs constant, linear or cosine for 'lr_decay_style' in 'nn.train', but got "x"}}
module attributes {nn.train = {lr_decay_style = "x"}} {}

// -----

// expected-error @+1 {{needs 'nn.rows' from 1 to the rows that are there, but got 8 of 'tensor<7x4xf32>'}}
func.func @rows(%w: tensor<7x4xf32> {nn.gradient = "w", nn.rows = 8 : i64}) {
  return
}
