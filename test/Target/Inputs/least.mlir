// The least module of the phase llvm: one launch, one product, one state, and schedules beside the step.
module attributes {
    nn.train = {adam_beta1 = 0.9, adam_beta2 = 0.95, lr = 0.001, lr_warmup_iters = 0, min_lr = 0.0, seed = 1, train_iters = 10, vocab_size = 7},
    rt.plan = #rt.plan<[<device, bytes = 4096, least = 4096, begin = 0, peak = 4096, bound = 4096, [<activations, 4096>]>]>} {
  func.func @step() {
    %tokens = rt.buffer at <device, 0> {rt.role = "tokens"} : memref<2x4xi32>
    %targets = rt.buffer at <device, 64> {rt.role = "targets"} : memref<2x4xi32>
    %rng = rt.buffer at <device, 128> {rt.role = "rng"} : memref<4xi32>
    %lr = rt.buffer at <device, 192> {rt.role = "lr"} : memref<f32>
    %c1 = rt.buffer at <device, 256> {rt.role = "bias_correction1"} : memref<f32>
    %c2 = rt.buffer at <device, 320> {rt.role = "bias_correction2"} : memref<f32>
    %loss = rt.buffer at <device, 384> {rt.role = "loss"} : memref<f32>
    %norm = rt.buffer at <device, 448> {rt.role = "grad_norm"} : memref<f32>
    %w = rt.buffer at <device, 512> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<1x1x4x4xf32>
    %y = rt.buffer at <device, 576> : memref<4x4xf32>
    %space = rt.buffer at <device, 640> : memref<224xf32>
    rt.gemm %w, %w to(%y) workspace(%space) m 4 n 4 k 4 lda 4 ldb 4 ldc 4 : (memref<1x1x4x4xf32>, memref<1x1x4x4xf32>, memref<4x4xf32>, memref<224xf32>) -> ()
    rt.launch @sum(%y) to (%loss) : (memref<4x4xf32>, memref<f32>) -> ()
    rt.update
    return
  }
  llvm.func @sum(%buffers: !llvm.ptr, %ids: !llvm.ptr, %begin: i64, %end: i64) attributes {rt.kernel, rt.tasks = 1 : i64} {
    llvm.return
  }
  func.func @evaluate() {
    %x = rt.buffer at <device, 576> : memref<4x4xf32>
    %loss = rt.buffer at <device, 640> {rt.role = "eval_loss"} : memref<f32>
    rt.launch @sum(%x) to (%loss) : (memref<4x4xf32>, memref<f32>) -> ()
    return
  }
  func.func @sample() {
    %text = rt.buffer at <device, 576> {rt.role = "sample_tokens"} : memref<1x4xi32>
    %position = rt.buffer at <device, 640> {rt.role = "position"} : memref<1xi32>
    %logits = rt.buffer at <device, 704> {rt.role = "logits"} : memref<1x7xf32>
    rt.launch @sum(%text, %position) to (%logits) : (memref<1x4xi32>, memref<1xi32>, memref<1x7xf32>) -> ()
    return
  }
}
