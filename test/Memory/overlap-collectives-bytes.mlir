// RUN: reprise-opt %s -split-input-file --reprise-overlap-collectives | FileCheck %s
// RUN: reprise-opt %s -split-input-file --reprise-overlap-collectives --reprise-plan-memory --reprise-verify-plan \
// RUN:   | FileCheck %s --check-prefix=PLAN

// All that is under way at one time has one workspace, of the largest: begun as
// early, the small sum would have that of the large one at the peak.

// CHECK-LABEL: func.func @step
//       CHECK:   rt.launch @peak
//       CHECK:   rt.launch @big()
//  CHECK-NEXT:   rt.collective all_reduce{{.*}} {rt.begun = 0 : i64} : (tensor<6000xf32>)
//       CHECK:   rt.wait 0
//       CHECK:   rt.collective all_reduce(%{{.*}}) over "tp" ranks 2 : (tensor<100xf32>)
//  PLAN-LABEL: module attributes
//   PLAN-SAME:   bound = 80064,
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func private @small() -> tensor<100xf32> attributes {rt.kernel}
  func.func private @big() -> tensor<6000xf32> attributes {rt.kernel}
  func.func private @peak() -> tensor<20000xf32> attributes {rt.kernel}
  func.func private @eat(tensor<20000xf32>) -> tensor<10xf32> attributes {rt.kernel}
  func.func private @mid() -> tensor<15000xf32> attributes {rt.kernel}
  func.func private @eatmid(tensor<15000xf32>) -> tensor<10xf32> attributes {rt.kernel}
  func.func private @read(tensor<6000xf32>, tensor<10xf32>) -> tensor<10xf32> attributes {rt.kernel}
  func.func private @end(tensor<100xf32>, tensor<10xf32>, tensor<10xf32>) -> tensor<10xf32> attributes {rt.kernel}
  func.func @step() {
    %p = rt.launch @peak() : () -> tensor<20000xf32>
    %e = rt.launch @eat(%p) : (tensor<20000xf32>) -> tensor<10xf32>
    %a = rt.launch @small() : () -> tensor<100xf32>
    %m = rt.launch @mid() : () -> tensor<15000xf32>
    %f = rt.launch @eatmid(%m) : (tensor<15000xf32>) -> tensor<10xf32>
    %b = rt.launch @big() : () -> tensor<6000xf32>
    %c = rt.launch @small() : () -> tensor<100xf32>
    %y = rt.collective all_reduce(%b) over "tp" ranks 2 : (tensor<6000xf32>) -> tensor<6000xf32>
    %r = rt.launch @read(%y, %f) : (tensor<6000xf32>, tensor<10xf32>) -> tensor<10xf32>
    %x = rt.collective all_reduce(%a) over "tp" ranks 2 : (tensor<100xf32>) -> tensor<100xf32>
    %z = rt.launch @end(%x, %r, %e) : (tensor<100xf32>, tensor<10xf32>, tensor<10xf32>) -> tensor<10xf32>
    return
  }
}

// -----

// The peak has room for one workspace, which is enough for two sums.

// CHECK-LABEL: func.func @step
//       CHECK:   rt.collective all_reduce{{.*}}rt.begun = 0
//       CHECK:   rt.collective all_reduce{{.*}}rt.begun = 1
//       CHECK:   rt.launch @work
//       CHECK:   rt.update
//  PLAN-LABEL: module attributes
//   PLAN-SAME:   bound = 12160,
module attributes {nn.mesh = #nn.mesh<dp = 2>} {
  func.func private @make() -> tensor<1000xf32> attributes {rt.kernel}
  func.func private @work() -> tensor<1xf32> attributes {rt.kernel}
  func.func private @both(tensor<1000xf32>, tensor<1000xf32>) -> tensor<1xf32> attributes {rt.kernel}
  func.func @step() {
    %g = rt.launch @make() : () -> tensor<1000xf32>
    %h = rt.launch @make() : () -> tensor<1000xf32>
    %w = rt.launch @work() : () -> tensor<1xf32>
    rt.update
    %sum:2 = rt.collective all_reduce(%g, %h) over "dp" ranks 2
      : (tensor<1000xf32>, tensor<1000xf32>) -> (tensor<1000xf32>, tensor<1000xf32>)
    %y = rt.launch @both(%sum#0, %sum#1) : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1xf32>
    return
  }
}

// -----

// What can't be begun stays one sum.

// CHECK-LABEL: func.func @step
//   CHECK-NOT:   rt.begun
//       CHECK:   rt.collective all_reduce(%{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}) over "dp" ranks 2 :
//   CHECK-NOT:   rt.collective
//       CHECK:   return
module attributes {nn.mesh = #nn.mesh<dp = 2>} {
  func.func private @make() -> tensor<1000xf32> attributes {rt.kernel}
  func.func private @peak() -> tensor<20000xf32> attributes {rt.kernel}
  func.func private @all(tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>) -> tensor<1xf32> attributes {rt.kernel}
  func.func @step() {
    %g = rt.launch @make() : () -> tensor<1000xf32>
    %h = rt.launch @make() : () -> tensor<1000xf32>
    %p = rt.launch @peak() : () -> tensor<20000xf32>
    rt.update
    %l = rt.launch @make() : () -> tensor<1000xf32>
    %sum:3 = rt.collective all_reduce(%h, %g, %l) over "dp" ranks 2
      : (tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>) -> (tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>)
    %y = rt.launch @all(%sum#0, %sum#1, %sum#2) : (tensor<1000xf32>, tensor<1000xf32>, tensor<1000xf32>) -> tensor<1xf32>
    return
  }
}

// -----

// Shares are gathered into bytes whose readers come first.

// CHECK-LABEL: func.func @step
//       CHECK:   rt.update
//  CHECK-NEXT:   %[[SHARE:.*]] = rt.launch @make
//  CHECK-NEXT:   %[[OLD:.*]] = rt.launch @read(%[[W:[a-z0-9]+]])
//  CHECK-NEXT:   rt.collective gather_shares(%[[SHARE]], %[[W]]) {{.*}}rt.begun = 0
//  CHECK-NEXT:   rt.launch @read(%[[OLD]])
//  CHECK-NEXT:   rt.wait 0
module attributes {nn.mesh = #nn.mesh<dp = 2>} {
  func.func private @make() -> tensor<100xf32> attributes {rt.kernel}
  func.func private @read(%x: tensor<100xf32>) -> tensor<100xf32> attributes {rt.kernel} { return %x : tensor<100xf32> }
  func.func private @peak() -> tensor<20000xf32> attributes {rt.kernel}
  func.func @step(%w: tensor<100xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> (tensor<100xf32> {nn.parameter = "w"}) {
    %p = rt.launch @peak() : () -> tensor<20000xf32>
    %g = rt.launch @read(%w) : (tensor<100xf32>) -> tensor<100xf32>
    rt.update
    %s = rt.launch @make() : () -> tensor<100xf32>
    %r = rt.launch @read(%w) : (tensor<100xf32>) -> tensor<100xf32>
    %all = rt.collective gather_shares(%s, %w) over "dp" ranks 2 : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xf32>
    %q = rt.launch @read(%r) : (tensor<100xf32>) -> tensor<100xf32>
    return %all : tensor<100xf32>
  }
}

// -----

// The update begins no earlier than that, whatever it is of.

// CHECK-LABEL: func.func @step
//  CHECK-NEXT:   rt.launch @make
//  CHECK-NEXT:   rt.update
//  CHECK-NEXT:   rt.collective gather_shares({{.*}}rt.begun = 0
//  CHECK-NEXT:   rt.launch @read
//  CHECK-NEXT:   rt.wait 0
module attributes {nn.mesh = #nn.mesh<dp = 2>} {
  func.func private @make() -> tensor<100xf32> attributes {rt.kernel}
  func.func private @read(%x: tensor<100xf32>) -> tensor<100xf32> attributes {rt.kernel} { return %x : tensor<100xf32> }
  func.func @step(%s: tensor<100xf32> {nn.parameter = #nn.parameter<name = "s", init = zeros>},
                  %w: tensor<100xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>})
      -> (tensor<100xf32> {nn.parameter = "w"}) {
    %x = rt.launch @make() : () -> tensor<100xf32>
    rt.update
    %all = rt.collective gather_shares(%s, %w) over "dp" ranks 2 : (tensor<100xf32>, tensor<100xf32>) -> tensor<100xf32>
    %q = rt.launch @read(%x) : (tensor<100xf32>) -> tensor<100xf32>
    return %all : tensor<100xf32>
  }
}

// -----

// Who reads a view of what is summed in place comes first.

// CHECK-LABEL: func.func @step
//       CHECK:   %[[VIEW:.*]] = rt.view
//  CHECK-NEXT:   rt.launch @half(%[[VIEW]])
//  CHECK-NEXT:   rt.collective all_reduce({{.*}}rt.begun = 0
//  CHECK-NEXT:   rt.launch @half
//  CHECK-NEXT:   rt.wait 0
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func private @make() -> tensor<100xf32> attributes {rt.kernel}
  func.func private @half(%x: tensor<50xf32>) -> tensor<50xf32> attributes {rt.kernel} { return %x : tensor<50xf32> }
  func.func private @read(%x: tensor<100xf32>) -> tensor<100xf32> attributes {rt.kernel} { return %x : tensor<100xf32> }
  func.func private @peak() -> tensor<20000xf32> attributes {rt.kernel}
  func.func private @eat(tensor<20000xf32>) -> tensor<10xf32> attributes {rt.kernel}
  func.func @step() {
    %pk = rt.launch @peak() : () -> tensor<20000xf32>
    %ek = rt.launch @eat(%pk) : (tensor<20000xf32>) -> tensor<10xf32>
    %a = rt.launch @make() : () -> tensor<100xf32>
    %v = rt.view %a from 0 : tensor<100xf32> to tensor<50xf32>
    %h = rt.launch @half(%v) : (tensor<50xf32>) -> tensor<50xf32>
    %s = rt.collective all_reduce(%a) over "tp" ranks 2 : (tensor<100xf32>) -> tensor<100xf32>
    %q = rt.launch @half(%h) : (tensor<50xf32>) -> tensor<50xf32>
    %e = rt.launch @read(%s) : (tensor<100xf32>) -> tensor<100xf32>
    return
  }
}

// -----

// What is kept is a view of something: the wait is before that is written over.

// CHECK-LABEL: func.func @step
//       CHECK:   rt.collective all_gather(%[[VIEW:[a-z0-9]+]]) {{.*}}rt.begun = 0
//  CHECK-NEXT:   rt.launch @make
//  CHECK-NEXT:   rt.wait 0 for({{.*}}) keeping(%[[VIEW]])
//  CHECK-NEXT:   rt.launch @over
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func private @peak() -> tensor<20000xf32> attributes {rt.kernel}
  func.func private @eat(tensor<20000xf32>) -> tensor<10xf32> attributes {rt.kernel}
  func.func private @make() -> tensor<128xf32> attributes {rt.kernel}
  func.func private @over(%x: tensor<128xf32> {rt.in_place = 0 : i64}) -> tensor<128xf32> attributes {rt.kernel} { return %x : tensor<128xf32> }
  func.func private @use(tensor<128xf32>, tensor<128xf32>) -> tensor<10xf32> attributes {rt.kernel}
  func.func @step() {
    %pk = rt.launch @peak() : () -> tensor<20000xf32>
    %ek = rt.launch @eat(%pk) : (tensor<20000xf32>) -> tensor<10xf32>
    %w = rt.launch @make() : () -> tensor<128xf32>
    %v = rt.view %w from 0 : tensor<128xf32> to tensor<64xf32>
    %all = rt.collective all_gather(%v) over "tp" ranks 2 : (tensor<64xf32>) -> tensor<128xf32>
    %o = rt.launch @make() : () -> tensor<128xf32>
    %n = rt.launch @over(%w) : (tensor<128xf32>) -> tensor<128xf32>
    %u = rt.launch @use(%all, %n) : (tensor<128xf32>, tensor<128xf32>) -> tensor<10xf32>
    return
  }
}

// -----

// What is begun already keeps its number.

// CHECK-LABEL: func.func @step
//       CHECK:   rt.begun = 5
//       CHECK:   rt.begun = 6
//       CHECK:   rt.wait 5
//  CHECK-NEXT:   rt.wait 6
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func private @make() -> tensor<64xf32> attributes {rt.kernel}
  func.func private @read(%x: tensor<128xf32>) -> tensor<128xf32> attributes {rt.kernel} { return %x : tensor<128xf32> }
  func.func private @peak() -> tensor<20000xf32> attributes {rt.kernel}
  func.func private @eat(tensor<20000xf32>) -> tensor<10xf32> attributes {rt.kernel}
  func.func @step() {
    %pk = rt.launch @peak() : () -> tensor<20000xf32>
    %ek = rt.launch @eat(%pk) : (tensor<20000xf32>) -> tensor<10xf32>
    %a = rt.launch @make() : () -> tensor<64xf32>
    %g = rt.collective all_gather(%a) over "tp" ranks 2 {rt.begun = 5 : i64} : (tensor<64xf32>) -> tensor<128xf32>
    %b = rt.launch @make() : () -> tensor<64xf32>
    %c = rt.launch @make() : () -> tensor<64xf32>
    %h = rt.collective all_gather(%b) over "tp" ranks 2 : (tensor<64xf32>) -> tensor<128xf32>
    %w = rt.wait 5 for(%g) keeping(%a) : (tensor<128xf32>, tensor<64xf32>) -> tensor<128xf32>
    %q = rt.launch @read(%h) : (tensor<128xf32>) -> tensor<128xf32>
    %r = rt.launch @read(%w) : (tensor<128xf32>) -> tensor<128xf32>
    return
  }
}

// -----

// Nothing has bytes.

// PLAN-LABEL: func.func @step
//       PLAN:   rt.collective all_reduce({{.*}}rt.begun = 0
//       PLAN:   rt.wait 0
//       PLAN:   rt.collective all_gather({{.*}}rt.begun = 1
//       PLAN:   rt.wait 1 for({{.*}}) keeping(
module attributes {nn.mesh = #nn.mesh<tp = 2>} {
  func.func private @make() -> tensor<0xf32> attributes {rt.kernel}
  func.func private @peak() -> tensor<20000xf32> attributes {rt.kernel}
  func.func private @work() -> tensor<100xf32> attributes {rt.kernel}
  func.func private @read(tensor<0xf32>) -> tensor<10xf32> attributes {rt.kernel}
  func.func @step() {
    %p = rt.launch @peak() : () -> tensor<20000xf32>
    %a = rt.launch @make() : () -> tensor<0xf32>
    %b = rt.launch @work() : () -> tensor<100xf32>
    %s = rt.collective all_reduce(%a) over "tp" ranks 2 : (tensor<0xf32>) -> tensor<0xf32>
    %r = rt.launch @read(%s) : (tensor<0xf32>) -> tensor<10xf32>
    %c = rt.launch @make() : () -> tensor<0xf32>
    %d = rt.launch @work() : () -> tensor<100xf32>
    %g = rt.collective all_gather(%c) over "tp" ranks 2 : (tensor<0xf32>) -> tensor<0xf32>
    %e = rt.launch @read(%g) : (tensor<0xf32>) -> tensor<10xf32>
    return
  }
}
