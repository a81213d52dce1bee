// RUN: reprise-opt %s -split-input-file --reprise-overlap-collectives | FileCheck %s
// RUN: reprise-opt %s -split-input-file --reprise-overlap-collectives --reprise-plan-memory --reprise-verify-plan \
// RUN:   | FileCheck %s --check-prefix=PLAN

// A sum of gradients begins where the backward pass has made them, ends where
// the update begins, and runs in the last micro-batch alone. The last part,
// behind which nothing is computed, stays where it was.

// CHECK-LABEL: func.func @step
//       CHECK:   %[[G:.*]] = rt.launch @make
//  CHECK-NEXT:   %[[GOING:.*]] = rt.collective all_reduce(%[[G]]) over "dp" ranks 2 {rt.begun = 0 : i64, rt.once}
//  CHECK-NEXT:   %[[H:.*]] = rt.launch @make
//  CHECK-NEXT:   %[[SUM:.*]] = rt.wait 0 for(%[[GOING]]) {rt.once}
//  CHECK-NEXT:   rt.update
//  CHECK-NEXT:   %[[REST:.*]] = rt.collective all_reduce(%[[H]]) over "dp" ranks 2 :
//  CHECK-NEXT:   rt.launch @both(%[[SUM]], %[[REST]])

// On buffers, the sum is in one place from its terms to the wait, and the
// workspace is there all the time.
// PLAN-LABEL: func.func @step
//       PLAN:   rt.launch @make({{.*}}) to(%[[G:.*]]) :
//       PLAN:   rt.collective all_reduce(%[[G]]) to(%[[GOING:.*]]) workspace(%[[SPACE:.*]]) over "dp"
//  PLAN-SAME:     rt.begun = 0
//       PLAN:   rt.launch @make
//       PLAN:   rt.wait 0 for(%[[GOING]]) to(%{{.*}}) workspace(%{{.*}})
//       PLAN:   rt.update
module attributes {nn.mesh = #nn.mesh<dp = 2>} {
  func.func private @make(%x: tensor<100xf32>) -> tensor<100xf32> attributes {rt.kernel} {
    return %x : tensor<100xf32>
  }
  func.func private @both(%x: tensor<100xf32>, %y: tensor<100xf32>) -> tensor<100xf32> attributes {rt.kernel} {
    return %x : tensor<100xf32>
  }
  func.func @step(%x: tensor<100xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) {
    %g = rt.launch @make(%x) : (tensor<100xf32>) -> tensor<100xf32>
    %h = rt.launch @make(%x) : (tensor<100xf32>) -> tensor<100xf32>
    rt.update
    %sum:2 = rt.collective all_reduce(%h, %g) over "dp" ranks 2
      : (tensor<100xf32>, tensor<100xf32>) -> (tensor<100xf32>, tensor<100xf32>)
    %y = rt.launch @both(%sum#1, %sum#0) : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xf32>
    return
  }
}

// -----

// What is gathered begins where its part is there, and is waited for where it
// is read; the part is kept up to then. What nothing runs beside stays.

// CHECK-LABEL: func.func @step
//       CHECK:   %[[PART:.*]] = rt.launch @part
//  CHECK-NEXT:   %[[GOING:.*]] = rt.collective all_gather(%[[PART]]) over "tp" ranks 2 {rt.begun = 0 : i64}
//  CHECK-NEXT:   %[[OTHER:.*]] = rt.launch @part
//  CHECK-NEXT:   %[[ALL:.*]] = rt.wait 0 for(%[[GOING]]) keeping(%[[PART]]) :
//  CHECK-NEXT:   %[[READ:.*]] = rt.launch @whole(%[[ALL]])
//  CHECK-NEXT:   rt.collective reduce_scatter(%[[READ]]) over "tp" ranks 2 :
//  CHECK-NEXT:   rt.launch @part
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func private @part(%x: tensor<64xf32>) -> tensor<64xf32> attributes {rt.kernel} {
    return %x : tensor<64xf32>
  }
  func.func private @whole(%x: tensor<128xf32>) -> tensor<128xf32> attributes {rt.kernel} {
    return %x : tensor<128xf32>
  }
  func.func @step(%x: tensor<64xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) {
    %a = rt.launch @part(%x) : (tensor<64xf32>) -> tensor<64xf32>
    %b = rt.launch @part(%x) : (tensor<64xf32>) -> tensor<64xf32>
    %all = rt.collective all_gather(%a) over "tp" ranks 2 : (tensor<64xf32>) -> tensor<128xf32>
    %read = rt.launch @whole(%all) : (tensor<128xf32>) -> tensor<128xf32>
    %own = rt.collective reduce_scatter(%read) over "tp" ranks 2 : (tensor<128xf32>) -> tensor<64xf32>
    %end = rt.launch @part(%own) : (tensor<64xf32>) -> tensor<64xf32>
    return
  }
}

// -----

// Not at the price of a higher peak: here the whole would be there at the peak.

// CHECK-LABEL: func.func @step
//   CHECK-NOT:   rt.begun
//   CHECK-NOT:   rt.wait
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func private @part(%x: tensor<64xf32>) -> tensor<64xf32> attributes {rt.kernel} {
    return %x : tensor<64xf32>
  }
  func.func private @large(tensor<64xf32>) -> tensor<256xf32> attributes {rt.kernel}
  func.func private @small(tensor<256xf32>) -> tensor<64xf32> attributes {rt.kernel}
  func.func private @whole(%x: tensor<128xf32>) -> tensor<128xf32> attributes {rt.kernel} {
    return %x : tensor<128xf32>
  }
  func.func @step(%x: tensor<64xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) {
    %a = rt.launch @part(%x) : (tensor<64xf32>) -> tensor<64xf32>
    %l = rt.launch @large(%x) : (tensor<64xf32>) -> tensor<256xf32>
    %s = rt.launch @small(%l) : (tensor<256xf32>) -> tensor<64xf32>
    %all = rt.collective all_gather(%a) over "tp" ranks 2 : (tensor<64xf32>) -> tensor<128xf32>
    %read = rt.launch @whole(%all) : (tensor<128xf32>) -> tensor<128xf32>
    return
  }
}

// -----

// CHECK-LABEL: module attributes
//  CHECK-SAME: rt.no_overlap
//   CHECK-NOT:   rt.begun
module attributes {nn.mesh = #nn.mesh<dp = 2>, rt.no_overlap} {
  func.func private @make(%x: tensor<100xf32>) -> tensor<100xf32> attributes {rt.kernel} {
    return %x : tensor<100xf32>
  }
  func.func @step(%x: tensor<100xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) {
    %g = rt.launch @make(%x) : (tensor<100xf32>) -> tensor<100xf32>
    %h = rt.launch @make(%x) : (tensor<100xf32>) -> tensor<100xf32>
    rt.update
    %sum = rt.collective all_reduce(%g) over "dp" ranks 2 : (tensor<100xf32>) -> tensor<100xf32>
    return
  }
}
