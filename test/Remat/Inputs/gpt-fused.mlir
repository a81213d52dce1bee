// A GPT of one layer with fused attention and dropout: batch 2, sequence 128,
// width 64, 4 heads, feed-forward width 256, vocabulary 32. A value [2,128,64]
// is 64 KiB, probabilities are 512 KiB, u and g 256 KiB each.
func.func @forward(
    %tokens: tensor<2x128xi32> {nn.input = "tokens"},
    %targets: tensor<2x128xi32> {nn.input = "targets"},
    %rng: tensor<4xi32> {nn.input = "rng"},
    %wte: tensor<32x64xf32> {nn.parameter = #nn.parameter<name = "wte", init = zeros>},
    %g1: tensor<64xf32> {nn.parameter = #nn.parameter<name = "g1", init = zeros>},
    %b1: tensor<64xf32> {nn.parameter = #nn.parameter<name = "b1", init = zeros>},
    %g2: tensor<64xf32> {nn.parameter = #nn.parameter<name = "g2", init = zeros>},
    %b2: tensor<64xf32> {nn.parameter = #nn.parameter<name = "b2", init = zeros>},
    %wq: tensor<64x64xf32> {nn.parameter = #nn.parameter<name = "wq", init = zeros>},
    %bq: tensor<64xf32> {nn.parameter = #nn.parameter<name = "bq", init = zeros>},
    %wk: tensor<64x64xf32> {nn.parameter = #nn.parameter<name = "wk", init = zeros>},
    %bk: tensor<64xf32> {nn.parameter = #nn.parameter<name = "bk", init = zeros>},
    %wv: tensor<64x64xf32> {nn.parameter = #nn.parameter<name = "wv", init = zeros>},
    %bv: tensor<64xf32> {nn.parameter = #nn.parameter<name = "bv", init = zeros>},
    %wo: tensor<64x64xf32> {nn.parameter = #nn.parameter<name = "wo", init = zeros>},
    %bo: tensor<64xf32> {nn.parameter = #nn.parameter<name = "bo", init = zeros>},
    %w1: tensor<64x256xf32> {nn.parameter = #nn.parameter<name = "w1", init = zeros>},
    %bf: tensor<256xf32> {nn.parameter = #nn.parameter<name = "bf", init = zeros>},
    %w2: tensor<256x64xf32> {nn.parameter = #nn.parameter<name = "w2", init = zeros>},
    %bp: tensor<64xf32> {nn.parameter = #nn.parameter<name = "bp", init = zeros>},
    %gfinal: tensor<64xf32> {nn.parameter = #nn.parameter<name = "gfinal", init = zeros>},
    %bfinal: tensor<64xf32> {nn.parameter = #nn.parameter<name = "bfinal", init = zeros>}) -> tensor<f32>
    attributes {nn.micro_batches = 1 : i64} {
  %x0 = nn.embedding %tokens, %wte {nn.scope = #nn.scope<module = "embedding", value = "x0">} : (tensor<2x128xi32>, tensor<32x64xf32>) -> tensor<2x128x64xf32>
  %n1, %n1_mean, %n1_rstd = nn.layer_norm %x0, %g1, %b1 eps 1.0e-05 {nn.scope = #nn.scope<layer = 0, module = "layernorm", value = "n1">} : (tensor<2x128x64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<2x128x64xf32>, tensor<2x128xf32>, tensor<2x128xf32>)
  %q = nn.linear %n1, %wq, %bq in_out {nn.scope = #nn.scope<layer = 0, module = "attention", value = "q">} : (tensor<2x128x64xf32>, tensor<64x64xf32>, tensor<64xf32>) -> tensor<2x128x64xf32>
  %k = nn.linear %n1, %wk, %bk in_out {nn.scope = #nn.scope<layer = 0, module = "attention", value = "k">} : (tensor<2x128x64xf32>, tensor<64x64xf32>, tensor<64xf32>) -> tensor<2x128x64xf32>
  %v = nn.linear %n1, %wv, %bv in_out {nn.scope = #nn.scope<layer = 0, module = "attention", value = "v">} : (tensor<2x128x64xf32>, tensor<64x64xf32>, tensor<64xf32>) -> tensor<2x128x64xf32>
  %ctx, %lse = nn.attention %q, %k, %v, %rng heads 4 scale 2.5e-01 rate 1.0e-01 stream 1 {nn.scope = #nn.scope<layer = 0, module = "core_attn", value = "ctx">} : (tensor<2x128x64xf32>, tensor<2x128x64xf32>, tensor<2x128x64xf32>, tensor<4xi32>) -> (tensor<2x128x64xf32>, tensor<2x4x128xf32>)
  %a = nn.linear %ctx, %wo, %bo in_out {nn.scope = #nn.scope<layer = 0, module = "attention", value = "a">} : (tensor<2x128x64xf32>, tensor<64x64xf32>, tensor<64xf32>) -> tensor<2x128x64xf32>
  %ad = nn.dropout %a, %rng rate 1.0e-01 stream 2 {nn.scope = #nn.scope<layer = 0, module = "residual", value = "ad">} : (tensor<2x128x64xf32>, tensor<4xi32>) -> tensor<2x128x64xf32>
  %x1 = nn.add %x0, %ad {nn.scope = #nn.scope<layer = 0, module = "residual", value = "x1">} : tensor<2x128x64xf32>
  %n2, %n2_mean, %n2_rstd = nn.layer_norm %x1, %g2, %b2 eps 1.0e-05 {nn.scope = #nn.scope<layer = 0, module = "layernorm", value = "n2">} : (tensor<2x128x64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<2x128x64xf32>, tensor<2x128xf32>, tensor<2x128xf32>)
  %u = nn.linear %n2, %w1, %bf in_out {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "u">} : (tensor<2x128x64xf32>, tensor<64x256xf32>, tensor<256xf32>) -> tensor<2x128x256xf32>
  %g = nn.gelu %u tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "g">} : tensor<2x128x256xf32>
  %y = nn.linear %g, %w2, %bp in_out {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "y">} : (tensor<2x128x256xf32>, tensor<256x64xf32>, tensor<64xf32>) -> tensor<2x128x64xf32>
  %yd = nn.dropout %y, %rng rate 1.0e-01 stream 3 {nn.scope = #nn.scope<layer = 0, module = "residual", value = "yd">} : (tensor<2x128x64xf32>, tensor<4xi32>) -> tensor<2x128x64xf32>
  %x2 = nn.add %x1, %yd {nn.scope = #nn.scope<layer = 0, module = "residual", value = "x2">} : tensor<2x128x64xf32>
  %nf, %nf_mean, %nf_rstd = nn.layer_norm %x2, %gfinal, %bfinal eps 1.0e-05 {nn.scope = #nn.scope<module = "layernorm", value = "nf">} : (tensor<2x128x64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<2x128x64xf32>, tensor<2x128xf32>, tensor<2x128xf32>)
  %logits = nn.linear %nf, %wte out_in {nn.scope = #nn.scope<module = "head", value = "logits">} : (tensor<2x128x64xf32>, tensor<32x64xf32>) -> tensor<2x128x32xf32>
  %losses, %loss_lse = nn.cross_entropy %logits, %targets {nn.scope = #nn.scope<module = "loss", value = "losses">} : (tensor<2x128x32xf32>, tensor<2x128xi32>) -> (tensor<2x128xf32>, tensor<2x128xf32>)
  %loss = nn.mean %losses {nn.scope = #nn.scope<module = "loss", value = "loss">} : (tensor<2x128xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
