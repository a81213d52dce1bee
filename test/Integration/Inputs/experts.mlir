// Two layers of experts, five of which each token has two, one behind the other
// without attention. In the second layer weights are not normalized, and all
// logits are zero at first: the first two experts have all tokens.

module attributes {nn.model = "experts 2x24", nn.train = {adam_beta1 = 9.000000e-01 : f64, adam_beta2 = 0.95 : f64, adam_eps = 1.000000e-08 : f64, clip_grad = 1.000000e+00 : f64, lr = 1.000000e-03 : f64, lr_decay_style = "constant", lr_warmup_iters = 0 : i64, min_lr = 0.000000e+00 : f64, optimizer = "adamw", precision = "fp32", seed = 1234 : i64, train_iters = 10 : i64, vocab_size = 307 : i64, weight_decay = 1.000000e-01 : f64}} {
func.func @forward(
    %tokens: tensor<3x13xi32> {nn.input = "tokens"},
    %targets: tensor<3x13xi32> {nn.input = "targets"},
    %rng: tensor<4xi32> {nn.input = "rng"},
    %table: tensor<307x24xf32> {nn.parameter = #nn.parameter<name = "embedding.weight", init = normal, std = 5.0e-01 : f32, decay = true>},
    %gain0: tensor<24xf32> {nn.parameter = #nn.parameter<name = "layers.0.norm.weight", init = ones>},
    %router0: tensor<5x24xf32> {nn.parameter = #nn.parameter<name = "layers.0.router.weight", init = normal, std = 5.0e-01 : f32, decay = true>},
    %gate0: tensor<5x50x24xf32> {nn.parameter = #nn.parameter<name = "layers.0.experts.gate.weight", init = normal, std = 2.0e-01 : f32, decay = true>},
    %up0: tensor<5x50x24xf32> {nn.parameter = #nn.parameter<name = "layers.0.experts.up.weight", init = normal, std = 2.0e-01 : f32, decay = true>},
    %down0: tensor<5x24x50xf32> {nn.parameter = #nn.parameter<name = "layers.0.experts.down.weight", init = normal, std = 2.0e-01 : f32, decay = true>},
    %gain1: tensor<24xf32> {nn.parameter = #nn.parameter<name = "layers.1.norm.weight", init = ones>},
    %router1: tensor<5x24xf32> {nn.parameter = #nn.parameter<name = "layers.1.router.weight", init = zeros, decay = true>},
    %gate1: tensor<5x50x24xf32> {nn.parameter = #nn.parameter<name = "layers.1.experts.gate.weight", init = normal, std = 2.0e-01 : f32, decay = true>},
    %up1: tensor<5x50x24xf32> {nn.parameter = #nn.parameter<name = "layers.1.experts.up.weight", init = normal, std = 2.0e-01 : f32, decay = true>},
    %down1: tensor<5x24x50xf32> {nn.parameter = #nn.parameter<name = "layers.1.experts.down.weight", init = normal, std = 2.0e-01 : f32, decay = true>},
    %gain: tensor<24xf32> {nn.parameter = #nn.parameter<name = "norm.weight", init = ones>}) -> tensor<f32> attributes {nn.micro_batches = 2 : i64} {
  %x0 = nn.embedding %tokens, %table {nn.scope = #nn.scope<module = "embedding", value = "e">} : (tensor<3x13xi32>, tensor<307x24xf32>) -> tensor<3x13x24xf32>
  %n0, %rstd0 = nn.rms_norm %x0, %gain0 eps 1.0e-06 {nn.scope = #nn.scope<layer = 0, module = "layernorm", value = "n2">} : (tensor<3x13x24xf32>, tensor<24xf32>) -> (tensor<3x13x24xf32>, tensor<3x13xf32>)
  %r0 = nn.linear %n0, %router0 out_in {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "r">} : (tensor<3x13x24xf32>, tensor<5x24xf32>) -> tensor<3x13x5xf32>
  %id0 = nn.choose_experts %r0 {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "id">} : (tensor<3x13x5xf32>) -> tensor<3x13x2xi32>
  %w0 = nn.expert_weights %r0, %id0 normalized {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "w">} : (tensor<3x13x5xf32>, tensor<3x13x2xi32>) -> tensor<3x13x2xf32>
  %order0, %inverse0, %offsets0 = nn.sort_rows %id0 {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "pm">} : (tensor<3x13x2xi32>) -> (tensor<78xi32>, tensor<3x13x2xi32>, tensor<6xi32>)
  %wr0 = nn.permute %w0, %order0, %inverse0 {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "wr">} : (tensor<3x13x2xf32>, tensor<78xi32>, tensor<3x13x2xi32>) -> tensor<78xf32>
  %gt0 = nn.grouped_linear %n0, %gate0, %offsets0 rows %order0, %inverse0 {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "gt">} : (tensor<3x13x24xf32>, tensor<5x50x24xf32>, tensor<6xi32>, tensor<78xi32>, tensor<3x13x2xi32>) -> tensor<78x50xf32>
  %u0 = nn.grouped_linear %n0, %up0, %offsets0 rows %order0, %inverse0 {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "u">} : (tensor<3x13x24xf32>, tensor<5x50x24xf32>, tensor<6xi32>, tensor<78xi32>, tensor<3x13x2xi32>) -> tensor<78x50xf32>
  %g0 = nn.weighted_swiglu %gt0, %u0, %wr0 {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "g">} : (tensor<78x50xf32>, tensor<78x50xf32>, tensor<78xf32>) -> tensor<78x50xf32>
  %yr0 = nn.grouped_linear %g0, %down0, %offsets0 {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "yr">} : (tensor<78x50xf32>, tensor<5x24x50xf32>, tensor<6xi32>) -> tensor<78x24xf32>
  %y0 = nn.combine %yr0, %order0, %inverse0 {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "y">} : (tensor<78x24xf32>, tensor<78xi32>, tensor<3x13x2xi32>) -> tensor<3x13x24xf32>
  %x1 = nn.add %x0, %y0 {nn.scope = #nn.scope<layer = 0, module = "residual", value = "x2">} : tensor<3x13x24xf32>
  %n1, %rstd1 = nn.rms_norm %x1, %gain1 eps 1.0e-06 {nn.scope = #nn.scope<layer = 1, module = "layernorm", value = "n2">} : (tensor<3x13x24xf32>, tensor<24xf32>) -> (tensor<3x13x24xf32>, tensor<3x13xf32>)
  %r1 = nn.linear %n1, %router1 out_in {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "r">} : (tensor<3x13x24xf32>, tensor<5x24xf32>) -> tensor<3x13x5xf32>
  %id1 = nn.choose_experts %r1 {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "id">} : (tensor<3x13x5xf32>) -> tensor<3x13x2xi32>
  %w1 = nn.expert_weights %r1, %id1 {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "w">} : (tensor<3x13x5xf32>, tensor<3x13x2xi32>) -> tensor<3x13x2xf32>
  %order1, %inverse1, %offsets1 = nn.sort_rows %id1 {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "pm">} : (tensor<3x13x2xi32>) -> (tensor<78xi32>, tensor<3x13x2xi32>, tensor<6xi32>)
  %wr1 = nn.permute %w1, %order1, %inverse1 {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "wr">} : (tensor<3x13x2xf32>, tensor<78xi32>, tensor<3x13x2xi32>) -> tensor<78xf32>
  %gt1 = nn.grouped_linear %n1, %gate1, %offsets1 rows %order1, %inverse1 {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "gt">} : (tensor<3x13x24xf32>, tensor<5x50x24xf32>, tensor<6xi32>, tensor<78xi32>, tensor<3x13x2xi32>) -> tensor<78x50xf32>
  %u1 = nn.grouped_linear %n1, %up1, %offsets1 rows %order1, %inverse1 {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "u">} : (tensor<3x13x24xf32>, tensor<5x50x24xf32>, tensor<6xi32>, tensor<78xi32>, tensor<3x13x2xi32>) -> tensor<78x50xf32>
  %g1 = nn.weighted_swiglu %gt1, %u1, %wr1 {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "g">} : (tensor<78x50xf32>, tensor<78x50xf32>, tensor<78xf32>) -> tensor<78x50xf32>
  %yr1 = nn.grouped_linear %g1, %down1, %offsets1 {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "yr">} : (tensor<78x50xf32>, tensor<5x24x50xf32>, tensor<6xi32>) -> tensor<78x24xf32>
  %y1 = nn.combine %yr1, %order1, %inverse1 {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "y">} : (tensor<78x24xf32>, tensor<78xi32>, tensor<3x13x2xi32>) -> tensor<3x13x24xf32>
  %x2 = nn.add %x1, %y1 {nn.scope = #nn.scope<layer = 1, module = "residual", value = "x2">} : tensor<3x13x24xf32>
  %n, %rstd = nn.rms_norm %x2, %gain eps 1.0e-06 {nn.scope = #nn.scope<module = "layernorm", value = "nf">} : (tensor<3x13x24xf32>, tensor<24xf32>) -> (tensor<3x13x24xf32>, tensor<3x13xf32>)
  %logits = nn.linear %n, %table out_in {nn.scope = #nn.scope<module = "head", value = "logits">} : (tensor<3x13x24xf32>, tensor<307x24xf32>) -> tensor<3x13x307xf32>
  %losses, %lse = nn.cross_entropy %logits, %targets {nn.scope = #nn.scope<module = "loss", value = "losses">} : (tensor<3x13x307xf32>, tensor<3x13xi32>) -> (tensor<3x13xf32>, tensor<3x13xf32>)
  %loss = nn.mean %losses {nn.scope = #nn.scope<module = "loss", value = "loss">} : (tensor<3x13xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
}
