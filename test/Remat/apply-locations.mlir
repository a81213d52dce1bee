// A replay is called by the name of its original and `@replay`.

// RUN: reprise-opt %s --reprise-remat-apply --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// CHECK: nn.backward
// CHECK: remat.fence {{.*}} loc("layer0.mlp.x@replay"
// CHECK: nn.gelu {{.*}} loc("layer0.mlp.u@replay"("model.yaml":3:1))
func.func @step(%x: tensor<4xf32>, %d: tensor<4xf32>) -> tensor<4xf32> {
  %k = nn.scale %x by 2.0 : tensor<4xf32> loc("layer0.mlp.x")
  %u = nn.gelu %k tanh {remat.decision = #remat.recompute<segment = 0, label = "mlp">} : tensor<4xf32> loc("layer0.mlp.u"("model.yaml":3:1))
  nn.backward
  %du = nn.gelu_backward %u, %d tanh : tensor<4xf32>
  return %du : tensor<4xf32>
}
