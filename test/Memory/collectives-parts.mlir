// RUN: reprise-opt %s --reprise-plan-memory --reprise-verify-plan | FileCheck %s

// A whole and its parts have bytes of their own. What adds up has a workspace, with
// a place for each rank; of bf16 two numbers are in a word of it.

// CHECK-LABEL: func.func @step
//       CHECK:   %[[G:.*]] = rt.buffer at <device, [[PART:[0-9]+]]> : memref<2x5x8xf32>
//       CHECK:   rt.launch @make(%{{.*}}) to(%[[G]])
//       CHECK:   %[[ALL:.*]] = rt.buffer at <device, {{[0-9]+}}> : memref<2x15x8xf32>
//       CHECK:   rt.collective all_gather(%[[G]]) to(%[[ALL]]) over "tp" ranks 3 dim 1
//       CHECK:   %[[OWN:.*]] = rt.buffer at <device, {{[0-9]+}}> : memref<2x5x8xf32>
//       CHECK:   %[[SPACE:.*]] = rt.buffer at <device, {{[0-9]+}}> : memref<240xf32>
//       CHECK:   rt.collective reduce_scatter(%[[ALL]]) to(%[[OWN]]) workspace(%[[SPACE]]) over "tp" ranks 3 dim 1
//       CHECK:   %[[HALF:.*]] = rt.buffer at <device, {{[0-9]+}}> : memref<120xf32>
//       CHECK:   rt.collective reduce_scatter(%{{.*}}) to(%{{.*}}) workspace(%[[HALF]])
module attributes {nn.mesh = #nn.mesh<tp = 3>} {
  func.func private @make(%x: tensor<2x5x8xf32>) -> tensor<2x5x8xf32> attributes {rt.kernel} {
    return %x : tensor<2x5x8xf32>
  }
  func.func private @round(%x: tensor<2x15x8xf32>) -> tensor<2x15x8xbf16> attributes {rt.kernel} {
    %y = nn.cast %x : (tensor<2x15x8xf32>) -> tensor<2x15x8xbf16>
    return %y : tensor<2x15x8xbf16>
  }
  func.func private @read(%x: tensor<2x5x8xbf16>) -> tensor<2x5x8xbf16> attributes {rt.kernel} {
    return %x : tensor<2x5x8xbf16>
  }
  func.func @step(%x: tensor<2x5x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) {
    %g = rt.launch @make(%x) : (tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
    %all = rt.collective all_gather(%g) over "tp" ranks 3 dim 1 : (tensor<2x5x8xf32>) -> tensor<2x15x8xf32>
    %own = rt.collective reduce_scatter(%all) over "tp" ranks 3 dim 1 : (tensor<2x15x8xf32>) -> tensor<2x5x8xf32>
    %y = rt.launch @make(%own) : (tensor<2x5x8xf32>) -> tensor<2x5x8xf32>
    %half = rt.launch @round(%all) : (tensor<2x15x8xf32>) -> tensor<2x15x8xbf16>
    %less = rt.collective reduce_scatter(%half) over "tp" ranks 3 dim 1 : (tensor<2x15x8xbf16>) -> tensor<2x5x8xbf16>
    %z = rt.launch @read(%less) : (tensor<2x5x8xbf16>) -> tensor<2x5x8xbf16>
    rt.update
    return
  }
}
