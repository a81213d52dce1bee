// One layer of a llama with norms of queries and keys: of 6 heads as wide as 4,
// three share a head of keys and values.

func.func @forward(
    %tokens: tensor<2x8xi32> {nn.input = "tokens"},
    %targets: tensor<2x8xi32> {nn.input = "targets"},
    %rng: tensor<4xi32> {nn.input = "rng"},
    %rotary: tensor<8x4xf32> {nn.rotary = #nn.rotary<theta = 1.0e+04 : f64>},
    %embed: tensor<61x24xf32> {nn.parameter = #nn.parameter<name = "embed", init = normal, std = 2.0e-02 : f32>},
    %n1_g: tensor<24xf32> {nn.parameter = #nn.parameter<name = "n1.g", init = ones>},
    %wq: tensor<24x24xf32> {nn.parameter = #nn.parameter<name = "wq", init = normal, std = 2.0e-02 : f32>},
    %wk: tensor<8x24xf32> {nn.parameter = #nn.parameter<name = "wk", init = normal, std = 2.0e-02 : f32>},
    %wv: tensor<8x24xf32> {nn.parameter = #nn.parameter<name = "wv", init = normal, std = 2.0e-02 : f32>},
    %qn_g: tensor<4xf32> {nn.parameter = #nn.parameter<name = "qn.g", init = ones>},
    %kn_g: tensor<4xf32> {nn.parameter = #nn.parameter<name = "kn.g", init = ones>},
    %wo: tensor<24x24xf32> {nn.parameter = #nn.parameter<name = "wo", init = normal, std = 2.0e-02 : f32>},
    %n2_g: tensor<24xf32> {nn.parameter = #nn.parameter<name = "n2.g", init = ones>},
    %wg: tensor<32x24xf32> {nn.parameter = #nn.parameter<name = "wg", init = normal, std = 2.0e-02 : f32>},
    %wu: tensor<32x24xf32> {nn.parameter = #nn.parameter<name = "wu", init = normal, std = 2.0e-02 : f32>},
    %wd: tensor<24x32xf32> {nn.parameter = #nn.parameter<name = "wd", init = normal, std = 2.0e-02 : f32>},
    %nf_g: tensor<24xf32> {nn.parameter = #nn.parameter<name = "nf.g", init = ones>},
    %lm_head: tensor<61x24xf32> {nn.parameter = #nn.parameter<name = "lm_head", init = normal, std = 2.0e-02 : f32>}) -> tensor<f32> {
  %x0 = nn.embedding %tokens, %embed {nn.scope = #nn.scope<module = "embedding", value = "x0">} : (tensor<2x8xi32>, tensor<61x24xf32>) -> tensor<2x8x24xf32>
  %n1, %n1_rstd = nn.rms_norm %x0, %n1_g eps 1.0e-06 {nn.scope = #nn.scope<layer = 0, module = "layernorm", value = "n1">} : (tensor<2x8x24xf32>, tensor<24xf32>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>)
  %q = nn.linear %n1, %wq out_in {nn.scope = #nn.scope<layer = 0, module = "attention", value = "q">} : (tensor<2x8x24xf32>, tensor<24x24xf32>) -> tensor<2x8x24xf32>
  %k = nn.linear %n1, %wk out_in {nn.scope = #nn.scope<layer = 0, module = "attention", value = "k">} : (tensor<2x8x24xf32>, tensor<8x24xf32>) -> tensor<2x8x8xf32>
  %v = nn.linear %n1, %wv out_in {nn.scope = #nn.scope<layer = 0, module = "attention", value = "v">} : (tensor<2x8x24xf32>, tensor<8x24xf32>) -> tensor<2x8x8xf32>
  %qn, %qn_rstd = nn.rms_norm %q, %qn_g eps 1.0e-06 {nn.scope = #nn.scope<layer = 0, module = "attention", value = "qn">} : (tensor<2x8x24xf32>, tensor<4xf32>) -> (tensor<2x8x24xf32>, tensor<2x8x6xf32>)
  %kn, %kn_rstd = nn.rms_norm %k, %kn_g eps 1.0e-06 {nn.scope = #nn.scope<layer = 0, module = "attention", value = "kn">} : (tensor<2x8x8xf32>, tensor<4xf32>) -> (tensor<2x8x8xf32>, tensor<2x8x2xf32>)
  %qr = nn.rope %qn, %rotary heads 6 half_split {nn.scope = #nn.scope<layer = 0, module = "attention", value = "qr">} : (tensor<2x8x24xf32>, tensor<8x4xf32>) -> tensor<2x8x24xf32>
  %kr = nn.rope %kn, %rotary heads 2 half_split {nn.scope = #nn.scope<layer = 0, module = "attention", value = "kr">} : (tensor<2x8x8xf32>, tensor<8x4xf32>) -> tensor<2x8x8xf32>
  %ctx, %lse = nn.attention %qr, %kr, %v, %rng heads 6 kv_heads 2 scale 0.5 rate 0.0 stream 0 {nn.scope = #nn.scope<layer = 0, module = "core_attn", value = "ctx">} : (tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x6x8xf32>)
  %a = nn.linear %ctx, %wo out_in {nn.scope = #nn.scope<layer = 0, module = "attention", value = "a">} : (tensor<2x8x24xf32>, tensor<24x24xf32>) -> tensor<2x8x24xf32>
  %x1 = nn.add %x0, %a {nn.scope = #nn.scope<layer = 0, module = "residual", value = "x1">} : tensor<2x8x24xf32>
  %n2, %n2_rstd = nn.rms_norm %x1, %n2_g eps 1.0e-06 {nn.scope = #nn.scope<layer = 0, module = "layernorm", value = "n2">} : (tensor<2x8x24xf32>, tensor<24xf32>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>)
  %gt = nn.linear %n2, %wg out_in {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "gt">} : (tensor<2x8x24xf32>, tensor<32x24xf32>) -> tensor<2x8x32xf32>
  %u = nn.linear %n2, %wu out_in {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "u">} : (tensor<2x8x24xf32>, tensor<32x24xf32>) -> tensor<2x8x32xf32>
  %g = nn.swiglu %gt, %u {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "g">} : tensor<2x8x32xf32>
  %y = nn.linear %g, %wd out_in {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "y">} : (tensor<2x8x32xf32>, tensor<24x32xf32>) -> tensor<2x8x24xf32>
  %x2 = nn.add %x1, %y {nn.scope = #nn.scope<layer = 0, module = "residual", value = "x2">} : tensor<2x8x24xf32>
  %nf, %nf_rstd = nn.rms_norm %x2, %nf_g eps 1.0e-06 {nn.scope = #nn.scope<module = "layernorm", value = "nf">} : (tensor<2x8x24xf32>, tensor<24xf32>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>)
  %logits = nn.linear %nf, %lm_head out_in {nn.scope = #nn.scope<module = "head", value = "logits">} : (tensor<2x8x24xf32>, tensor<61x24xf32>) -> tensor<2x8x61xf32>
  %losses, %losses_lse = nn.cross_entropy %logits, %targets {nn.scope = #nn.scope<module = "loss", value = "losses">} : (tensor<2x8x61xf32>, tensor<2x8xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  %loss = nn.mean %losses {nn.scope = #nn.scope<module = "loss", value = "loss">} : (tensor<2x8xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
