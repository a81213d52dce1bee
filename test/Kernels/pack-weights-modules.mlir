// One pass goes over the stages of a pipeline, one after another: what it knows of
// one is not there in the next.
// RUN: reprise-opt %s --mlir-disable-threading --pass-pipeline='builtin.module(builtin.module(reprise-pack-weights))' | FileCheck %s

// CHECK-COUNT-3: packed_b m 4 n 96 k 64
module {
  module @stage0 {
    func.func @step(%x: tensor<4x64xbf16>, %p: tensor<64x96xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}, %w: tensor<64x96xbf16> {nn.working = "w"})
        -> (tensor<4x96xbf16>, tensor<64x96xf32> {nn.parameter = "w"}, tensor<64x96xbf16> {nn.working = "w"}) {
      %y = rt.gemm %x, %w m 4 n 96 k 64 lda 64 ldb 96 ldc 96 : (tensor<4x64xbf16>, tensor<64x96xbf16>) -> tensor<4x96xbf16>
      rt.update
      %n:2 = rt.launch @round(%p, %w) : (tensor<64x96xf32>, tensor<64x96xbf16>) -> (tensor<64x96xf32>, tensor<64x96xbf16>)
      return %y, %n#0, %n#1 : tensor<4x96xbf16>, tensor<64x96xf32>, tensor<64x96xbf16>
    }
    func.func private @round(%p: tensor<64x96xf32> {rt.in_place = 0 : i64}, %w: tensor<64x96xbf16> {rt.in_place = 1 : i64}) -> (tensor<64x96xf32>, tensor<64x96xbf16>) attributes {rt.kernel} {
      %flat = tensor.collapse_shape %p [[0, 1]] : tensor<64x96xf32> into tensor<6144xf32>
      %e0 = tensor.empty() : tensor<6144xf32>
      %e1 = tensor.empty() : tensor<6144xbf16>
      %r:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%flat : tensor<6144xf32>) outs(%e0, %e1 : tensor<6144xf32>, tensor<6144xbf16>) {
      ^bb0(%a: f32, %o0: f32, %o1: bf16):
        %b = arith.truncf %a : f32 to bf16
        linalg.yield %a, %b : f32, bf16
      } -> (tensor<6144xf32>, tensor<6144xbf16>)
      %0 = tensor.expand_shape %r#0 [[0, 1]] output_shape [64, 96] : tensor<6144xf32> into tensor<64x96xf32>
      %1 = tensor.expand_shape %r#1 [[0, 1]] output_shape [64, 96] : tensor<6144xbf16> into tensor<64x96xbf16>
      return %0, %1 : tensor<64x96xf32>, tensor<64x96xbf16>
    }
  }
  module @stage1 {
    func.func @step(%x: tensor<4x64xbf16>, %p: tensor<64x96xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}, %w: tensor<64x96xbf16> {nn.working = "w"})
        -> (tensor<4x96xbf16>, tensor<64x96xf32> {nn.parameter = "w"}, tensor<64x96xbf16> {nn.working = "w"}) {
      %y = rt.gemm %x, %w m 4 n 96 k 64 lda 64 ldb 96 ldc 96 : (tensor<4x64xbf16>, tensor<64x96xbf16>) -> tensor<4x96xbf16>
      rt.update
      %n:2 = rt.launch @round(%p, %w) : (tensor<64x96xf32>, tensor<64x96xbf16>) -> (tensor<64x96xf32>, tensor<64x96xbf16>)
      return %y, %n#0, %n#1 : tensor<4x96xbf16>, tensor<64x96xf32>, tensor<64x96xbf16>
    }
    func.func private @round(%p: tensor<64x96xf32> {rt.in_place = 0 : i64}, %w: tensor<64x96xbf16> {rt.in_place = 1 : i64}) -> (tensor<64x96xf32>, tensor<64x96xbf16>) attributes {rt.kernel} {
      %flat = tensor.collapse_shape %p [[0, 1]] : tensor<64x96xf32> into tensor<6144xf32>
      %e0 = tensor.empty() : tensor<6144xf32>
      %e1 = tensor.empty() : tensor<6144xbf16>
      %r:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%flat : tensor<6144xf32>) outs(%e0, %e1 : tensor<6144xf32>, tensor<6144xbf16>) {
      ^bb0(%a: f32, %o0: f32, %o1: bf16):
        %b = arith.truncf %a : f32 to bf16
        linalg.yield %a, %b : f32, bf16
      } -> (tensor<6144xf32>, tensor<6144xbf16>)
      %0 = tensor.expand_shape %r#0 [[0, 1]] output_shape [64, 96] : tensor<6144xf32> into tensor<64x96xf32>
      %1 = tensor.expand_shape %r#1 [[0, 1]] output_shape [64, 96] : tensor<6144xbf16> into tensor<64x96xbf16>
      return %0, %1 : tensor<64x96xf32>, tensor<64x96xbf16>
    }
  }
  module @stage2 {
    func.func @step(%x: tensor<4x64xbf16>, %p: tensor<64x96xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}, %w: tensor<64x96xbf16> {nn.working = "w"})
        -> (tensor<4x96xbf16>, tensor<64x96xf32> {nn.parameter = "w"}, tensor<64x96xbf16> {nn.working = "w"}) {
      %y = rt.gemm %x, %w m 4 n 96 k 64 lda 64 ldb 96 ldc 96 : (tensor<4x64xbf16>, tensor<64x96xbf16>) -> tensor<4x96xbf16>
      rt.update
      %n:2 = rt.launch @round(%p, %w) : (tensor<64x96xf32>, tensor<64x96xbf16>) -> (tensor<64x96xf32>, tensor<64x96xbf16>)
      return %y, %n#0, %n#1 : tensor<4x96xbf16>, tensor<64x96xf32>, tensor<64x96xbf16>
    }
    func.func private @round(%p: tensor<64x96xf32> {rt.in_place = 0 : i64}, %w: tensor<64x96xbf16> {rt.in_place = 1 : i64}) -> (tensor<64x96xf32>, tensor<64x96xbf16>) attributes {rt.kernel} {
      %flat = tensor.collapse_shape %p [[0, 1]] : tensor<64x96xf32> into tensor<6144xf32>
      %e0 = tensor.empty() : tensor<6144xf32>
      %e1 = tensor.empty() : tensor<6144xbf16>
      %r:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
        ins(%flat : tensor<6144xf32>) outs(%e0, %e1 : tensor<6144xf32>, tensor<6144xbf16>) {
      ^bb0(%a: f32, %o0: f32, %o1: bf16):
        %b = arith.truncf %a : f32 to bf16
        linalg.yield %a, %b : f32, bf16
      } -> (tensor<6144xf32>, tensor<6144xbf16>)
      %0 = tensor.expand_shape %r#0 [[0, 1]] output_shape [64, 96] : tensor<6144xf32> into tensor<64x96xf32>
      %1 = tensor.expand_shape %r#1 [[0, 1]] output_shape [64, 96] : tensor<6144xbf16> into tensor<64x96xbf16>
      return %0, %1 : tensor<64x96xf32>, tensor<64x96xbf16>
    }
  }
}
