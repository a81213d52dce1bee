// RUN: reprise-opt %s -split-input-file --reprise-plan-memory --reprise-verify-plan | FileCheck %s

// Every kind of argument. The arena holds parameters, gradients, first moments,
// second moments, inputs, in each the order of the arguments: 5 floats take 64
// bytes, 20 take 128.

//       CHECK: rt.plan = #rt.plan<[<device, bytes = 832, least = 832, begin = 832, peak = 0, bound = 0,
//  CHECK-SAME:   [<parameters, 192>, <gradients, 192>, <optimizer_state, 384>, <inputs_and_outputs, 64>, <activations, 0>]>]>
// CHECK-LABEL: func.func @step() attributes {nn.micro_batches = 2 : i64} {
//  CHECK-NEXT:   rt.buffer at <device, 768> {rt.role = "lr"} : memref<f32>
//  CHECK-NEXT:   rt.buffer at <device, 384> {rt.state = #rt.state<kind = moment1, parameter = "b", init = zeros>} : memref<20xf32>
//  CHECK-NEXT:   rt.buffer at <device, 576> {rt.state = #rt.state<kind = moment2, parameter = "a", init = zeros>} : memref<5xf32>
//  CHECK-NEXT:   rt.buffer at <device, 192> {rt.state = #rt.state<kind = gradient, parameter = "b", init = zeros>} : memref<20xf32>
//  CHECK-NEXT:   rt.buffer at <device, 512> {rt.state = #rt.state<kind = moment1, parameter = "a", init = zeros>} : memref<5xf32>
//  CHECK-NEXT:   rt.buffer at <device, 320> {rt.state = #rt.state<kind = gradient, parameter = "a", init = zeros>} : memref<5xf32>
//  CHECK-NEXT:   rt.buffer at <device, 640> {rt.state = #rt.state<kind = moment2, parameter = "b", init = zeros>} : memref<20xf32>
//  CHECK-NEXT:   rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "a", init = ones>} : memref<5xf32>
//  CHECK-NEXT:   rt.buffer at <device, 64> {rt.state = #rt.state<kind = parameter, parameter = "b", init = normal, std = 5.000000e-01 : f32>} : memref<20xf32>
//  CHECK-NEXT:   return
func.func @step(%lr: tensor<f32> {nn.input = "lr"}, %mb: tensor<20xf32> {nn.moment1 = "b"}, %va: tensor<5xf32> {nn.moment2 = "a"},
                %gb: tensor<20xf32> {nn.gradient = "b"}, %ma: tensor<5xf32> {nn.moment1 = "a"}, %ga: tensor<5xf32> {nn.gradient = "a"},
                %vb: tensor<20xf32> {nn.moment2 = "b"},
                %a: tensor<5xf32> {nn.parameter = #nn.parameter<name = "a", init = ones>},
                %b: tensor<20xf32> {nn.parameter = #nn.parameter<name = "b", init = normal, std = 0.5 : f32>})
    attributes {nn.micro_batches = 2 : i64} {
  return
}

// -----

// %c gets the bytes of %a, which died at %b; %d is alive with both of what it
// reads: three buffers of 64 bytes.

// CHECK-LABEL: module attributes {rt.plan = #rt.plan<[<device, bytes = 256, least = {{[0-9]+}}, begin = 64, peak = 192, bound = 192,
//       CHECK: func.func @step() {
//  CHECK-NEXT:   %[[W:.*]] = rt.buffer at <device, 0> {rt.state
//  CHECK-NEXT:   %[[A:.*]] = rt.buffer at <device, [[OFFSET:[0-9]+]]> : memref<16xf32>
//  CHECK-NEXT:   rt.launch @k(%[[W]]) to(%[[A]])
//  CHECK-NEXT:   %[[B:.*]] = rt.buffer at
//  CHECK-NEXT:   rt.launch @k(%[[A]]) to(%[[B]])
//  CHECK-NEXT:   %[[C:.*]] = rt.buffer at <device, [[OFFSET]]> : memref<16xf32>
//  CHECK-NEXT:   rt.launch @k(%[[B]]) to(%[[C]])
//  CHECK-NEXT:   %[[D:.*]] = rt.buffer at
//  CHECK-NEXT:   rt.launch @sum(%[[B]], %[[C]]) to(%[[D]])
//  CHECK-NEXT:   return
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
func.func private @sum(tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
func.func @step(%w: tensor<16xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  %a = rt.launch @k(%w) : (tensor<16xf32>) -> tensor<16xf32>
  %b = rt.launch @k(%a) : (tensor<16xf32>) -> tensor<16xf32>
  %c = rt.launch @k(%b) : (tensor<16xf32>) -> tensor<16xf32>
  %d = rt.launch @sum(%b, %c) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

// Where the kernel may work in place, %b does so on %a; %a itself does not take
// the bytes of a parameter, though nothing reads that later.

// CHECK-LABEL: module attributes {rt.plan = #rt.plan<[<device, bytes = 128, {{.*}} begin = 64, {{.*}} bound = 64,
//       CHECK: func.func @step() {
//  CHECK-NEXT:   %[[W:.*]] = rt.buffer at <device, 0> {rt.state
//  CHECK-NEXT:   %[[A:.*]] = rt.buffer at <device, 64>
//  CHECK-NEXT:   rt.launch @k(%[[W]]) to(%[[A]])
//  CHECK-NEXT:   %[[B:.*]] = rt.buffer at <device, 64>
//  CHECK-NEXT:   rt.launch @k(%[[A]]) to(%[[B]])
//  CHECK-NEXT:   return
func.func private @k(tensor<16xf32> {rt.may_alias = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
func.func @step(%w: tensor<16xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  %a = rt.launch @k(%w) : (tensor<16xf32>) -> tensor<16xf32>
  %b = rt.launch @k(%a) : (tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

// Not in place: %b, because %a is read once more; %c, because @sum reads %a as
// its other operand too. %d is, in the bytes of %c.

// CHECK-LABEL: module attributes {rt.plan = #rt.plan<[<device, bytes = 192, {{.*}} begin = 64, {{.*}} bound = 128,
//       CHECK: func.func @step() {
//  CHECK-NEXT:   %[[W:.*]] = rt.buffer at <device, 0> {rt.state
//  CHECK-NEXT:   %[[A:.*]] = rt.buffer at <device, [[A_AT:[0-9]+]]>
//  CHECK-NEXT:   rt.launch @k(%[[W]]) to(%[[A]])
//  CHECK-NEXT:   %[[B:.*]] = rt.buffer at <device, [[B_AT:[0-9]+]]>
//  CHECK-NEXT:   rt.launch @k(%[[A]]) to(%[[B]])
//  CHECK-NEXT:   %[[C:.*]] = rt.buffer at <device, [[B_AT]]>
//  CHECK-NEXT:   rt.launch @sum(%[[A]], %[[A]]) to(%[[C]])
//  CHECK-NEXT:   %[[D:.*]] = rt.buffer at <device, [[B_AT]]>
//  CHECK-NEXT:   rt.launch @k(%[[C]]) to(%[[D]])
//  CHECK-NEXT:   return
func.func private @k(tensor<16xf32> {rt.may_alias = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
func.func private @sum(tensor<16xf32> {rt.may_alias = 0 : i64}, tensor<16xf32> {rt.may_alias = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
func.func @step(%w: tensor<16xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  %a = rt.launch @k(%w) : (tensor<16xf32>) -> tensor<16xf32>
  %b = rt.launch @k(%a) : (tensor<16xf32>) -> tensor<16xf32>
  %c = rt.launch @sum(%a, %a) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %d = rt.launch @k(%c) : (tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

// Each of two results takes the bytes of its operand. Of two operands that could
// give theirs to one result, the first does.

//       CHECK: func.func @step() {
//       CHECK:   rt.launch @make(%{{.*}}) to(%[[A:.*]]) :
//       CHECK:   %[[B:.*]] = rt.buffer
//  CHECK-NEXT:   rt.launch @make(%{{.*}}) to(%[[B]]) :
//  CHECK-NEXT:   %[[C:.*]] = rt.buffer at <device, [[C_AT:[0-9]+]]>
//  CHECK-NEXT:   %[[D:.*]] = rt.buffer at <device, [[D_AT:[0-9]+]]>
//  CHECK-NEXT:   rt.launch @both(%[[A]], %[[B]]) to(%[[C]], %[[D]])
//  CHECK-NEXT:   %[[E:.*]] = rt.buffer at <device, [[D_AT]]>
//  CHECK-NEXT:   rt.launch @sum(%[[D]], %[[C]]) to(%[[E]])
//  CHECK-NEXT:   return
func.func private @make(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
func.func private @both(tensor<16xf32> {rt.may_alias = 0 : i64}, tensor<16xf32> {rt.may_alias = 1 : i64})
    -> (tensor<16xf32>, tensor<16xf32>) attributes {rt.kernel}
func.func private @sum(tensor<16xf32> {rt.may_alias = 0 : i64}, tensor<16xf32> {rt.may_alias = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
func.func @step(%w: tensor<16xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  %a = rt.launch @make(%w) : (tensor<16xf32>) -> tensor<16xf32>
  %b = rt.launch @make(%w) : (tensor<16xf32>) -> tensor<16xf32>
  %c:2 = rt.launch @both(%a, %b) : (tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>)
  %e = rt.launch @sum(%c#1, %c#0) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

// A GEMM of 4 x 4 x 4 packs one block of 24 + 32 columns of 4 floats, 896
// bytes, for as long as it runs: both GEMMs use the same. The second adds to
// the gradient, where it is. Names and other discardable attributes stay.

// CHECK-LABEL: module attributes {rt.plan = #rt.plan<[<device, bytes = 1088, {{.*}} begin = 128, {{.*}} bound = 960,
//       CHECK: func.func @step() {
//  CHECK-NEXT:   %[[W:.*]] = rt.buffer at <device, 0> {rt.state
//  CHECK-NEXT:   %[[G:.*]] = rt.buffer at <device, 64> {rt.state
//  CHECK-NEXT:   %[[A:.*]] = rt.buffer
//  CHECK-NEXT:   %[[S:.*]] = rt.buffer at <device, [[OFFSET:[0-9]+]]> : memref<224xf32>
//  CHECK-NEXT:   rt.gemm %[[W]], %[[W]] to(%[[A]]) workspace(%[[S]]) transpose_b m 4 n 4 k 4 lda 4 ldb 4 ldc 4 {rt.name = "layer0.mlp.u"}
//  CHECK-NEXT:   %[[G1:.*]] = rt.buffer at <device, 64> : memref<4x4xf32>
//  CHECK-NEXT:   %[[S1:.*]] = rt.buffer at <device, [[OFFSET]]> : memref<224xf32>
//  CHECK-NEXT:   rt.gemm %[[A]], %[[W]] to(%[[G1]]) workspace(%[[S1]]) accumulate m 4
//  CHECK-NEXT:   return
func.func @step(%w: tensor<4x4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}, %g: tensor<4x4xf32> {nn.gradient = "w"})
    -> (tensor<4x4xf32> {nn.gradient = "w"}) {
  %a = rt.gemm %w, %w transpose_b m 4 n 4 k 4 lda 4 ldb 4 ldc 4 {rt.name = "layer0.mlp.u"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = rt.gemm %a, %w addend(%g) m 4 n 4 k 4 lda 4 ldb 4 ldc 4 : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %b : tensor<4x4xf32>
}

// -----

// A gradient whose argument nobody reads starts from nothing, and so does what a
// GEMM beside makes: here the first is added to, by a GEMM and by a kernel
// in place, in the bytes it has from the beginning. No operand gives its bytes
// to it, though the kernel would allow it. Both are alive with the workspace.

// CHECK-LABEL: rt.plan = #rt.plan<[<device, bytes = 1088, least = 1088, begin = 64, peak = 896, bound = 896,
//  CHECK-SAME:   <gradients, 128>, {{.*}} <inputs_and_outputs, 0>, <activations, 896>]
//       CHECK: func.func @step() {
//  CHECK-NEXT:   %[[W:.*]] = rt.buffer at <device, 0> {rt.state
//  CHECK-NEXT:   %[[G1:.*]] = rt.buffer at <device, 960> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<4x4xf32>
//  CHECK-NEXT:   %[[B:.*]] = rt.buffer at <device, 1024> {rt.state = #rt.state<kind = gradient, parameter = "b", init = none>} : memref<4xf32>
//  CHECK-NEXT:   %[[A:.*]] = rt.buffer at <device, {{[0-9]+}}> : memref<4x4xf32>
//  CHECK-NEXT:   rt.launch @k(%[[W]]) to(%[[A]])
//  CHECK-NEXT:   rt.launch @k(%[[A]]) to(%[[G1]])
//  CHECK-NEXT:   %[[G2:.*]] = rt.buffer at <device, 960> : memref<4x4xf32>
//       CHECK:   rt.gemm %[[W]], %[[W]] to(%[[G2]]) aux(%[[B]]) {{.*}} accumulate
//  CHECK-NEXT:   %[[G3:.*]] = rt.buffer at <device, 960> : memref<4x4xf32>
//  CHECK-NEXT:   rt.launch @add(%[[W]], %[[G2]]) to(%[[G3]])
//  CHECK-NEXT:   return
func.func private @k(tensor<4x4xf32> {rt.may_alias = 0 : i64}) -> tensor<4x4xf32> attributes {rt.kernel}
func.func private @add(tensor<4x4xf32>, tensor<4x4xf32> {rt.in_place = 0 : i64}) -> tensor<4x4xf32> attributes {rt.kernel}
func.func @step(%w: tensor<4x4xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}, %g: tensor<4x4xf32> {nn.gradient = "w"}, %h: tensor<4xf32> {nn.gradient = "b"})
    -> (tensor<4x4xf32> {nn.gradient = "w"}, tensor<4xf32> {nn.gradient = "b"}) {
  %a = rt.launch @k(%w) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = rt.launch @k(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %c:2 = rt.gemm %w, %w addend(%b) transpose_a epilogue sums_of_b m 4 n 4 k 4 lda 4 ldb 4 ldc 4 : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)
  %d = rt.launch @add(%w, %c#0) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %d, %c#1 : tensor<4x4xf32>, tensor<4xf32>
}

// -----

// Bytes that are free from there on: both gradients are made when nothing reads
// %a any more. One lies in its bytes, the other begins there and ends beyond all
// activations: alive at the end are 64 bytes of %b, 192 and 64 of gradients. What is
// only added to is there all the time.

// CHECK-LABEL: rt.plan = #rt.plan<[<device, bytes = 640, least = 640, begin = 320, peak = 192, bound = 192,
//  CHECK-SAME:   [<parameters, 256>, <gradients, 192>, {{.*}} <activations, 192>]
//       CHECK: func.func @step() {
//       CHECK:   %[[GW:.*]] = rt.buffer at <device, 384> {rt.state = #rt.state<kind = gradient, parameter = "w", init = none>} : memref<16xf32>
//  CHECK-NEXT:   %[[GV:.*]] = rt.buffer at <device, 448> {rt.state = #rt.state<kind = gradient, parameter = "v", init = none>} : memref<48xf32>
//  CHECK-NEXT:   rt.buffer at <device, 256> {rt.state = #rt.state<kind = gradient, parameter = "u", init = zeros>} : memref<16xf32>
//  CHECK-NEXT:   %[[A:.*]] = rt.buffer at <device, 384> : memref<32xf32>
//       CHECK:   %[[B:.*]] = rt.buffer at <device, 320> : memref<16xf32>
//  CHECK-NEXT:   rt.launch @sum(%[[A]]) to(%[[B]])
//  CHECK-NEXT:   rt.launch @grow(%[[B]]) to(%[[GV]])
//  CHECK-NEXT:   rt.launch @k(%[[B]]) to(%[[GW]])
//  CHECK-NEXT:   %[[GU:.*]] = rt.buffer at <device, 256> : memref<16xf32>
//  CHECK-NEXT:   rt.launch @add(%{{.*}}, %[[B]]) to(%[[GU]])
//  CHECK-NEXT:   return
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
func.func private @wide(tensor<16xf32>) -> tensor<32xf32> attributes {rt.kernel}
func.func private @sum(tensor<32xf32>) -> tensor<16xf32> attributes {rt.kernel}
func.func private @grow(tensor<16xf32>) -> tensor<48xf32> attributes {rt.kernel}
func.func private @add(tensor<16xf32> {rt.in_place = 0 : i64}, tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
func.func @step(%w: tensor<16xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}, %v: tensor<48xf32> {nn.parameter = #nn.parameter<name = "v", init = ones>},
                %gw: tensor<16xf32> {nn.gradient = "w"}, %gv: tensor<48xf32> {nn.gradient = "v"}, %gu: tensor<16xf32> {nn.gradient = "u"})
    -> (tensor<16xf32> {nn.gradient = "w"}, tensor<48xf32> {nn.gradient = "v"}, tensor<16xf32> {nn.gradient = "u"}) {
  %a = rt.launch @wide(%w) : (tensor<16xf32>) -> tensor<32xf32>
  %b = rt.launch @sum(%a) : (tensor<32xf32>) -> tensor<16xf32>
  %c = rt.launch @grow(%b) : (tensor<16xf32>) -> tensor<48xf32>
  %d = rt.launch @k(%b) : (tensor<16xf32>) -> tensor<16xf32>
  %e = rt.launch @add(%gu, %b) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  return %d, %c, %e : tensor<16xf32>, tensor<48xf32>, tensor<16xf32>
}

// -----

// States change in place. The running loss is an input and an output in the
// same bytes; the norm is made within the step, gets bytes of its own beside the
// inputs, and not those of %n, which its kernel could have used.

// CHECK-LABEL: <inputs_and_outputs, 128>
//       CHECK: func.func @step() {
//  CHECK-NEXT:   %[[W:.*]] = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter
//  CHECK-NEXT:   %[[SUM:.*]] = rt.buffer at <device, 64> {rt.role = "loss"} : memref<f32>
//  CHECK-NEXT:   %[[SUM1:.*]] = rt.buffer at <device, 64> : memref<f32>
//  CHECK-NEXT:   rt.launch @accumulate(%[[SUM]], %[[W]]) to(%[[SUM1]]) ids [3]
//  CHECK-NEXT:   rt.update
//  CHECK-NEXT:   %[[N:.*]] = rt.buffer at <device, 192> : memref<f32>
//  CHECK-NEXT:   rt.launch @squares(%[[W]]) to(%[[N]])
//  CHECK-NEXT:   %[[NORM:.*]] = rt.buffer at <device, 128> {rt.role = "grad_norm"} : memref<f32>
//  CHECK-NEXT:   rt.launch @root(%[[N]]) to(%[[NORM]])
//  CHECK-NEXT:   %[[W1:.*]] = rt.buffer at <device, 0> : memref<f32>
//  CHECK-NEXT:   rt.launch @update(%[[W]], %[[NORM]]) to(%[[W1]])
//  CHECK-NEXT:   return
func.func private @accumulate(tensor<f32> {rt.in_place = 0 : i64}, tensor<f32>) -> tensor<f32> attributes {rt.kernel}
func.func private @squares(tensor<f32>) -> tensor<f32> attributes {rt.kernel}
func.func private @root(tensor<f32> {rt.may_alias = 0 : i64}) -> tensor<f32> attributes {rt.kernel}
func.func private @update(tensor<f32> {rt.in_place = 0 : i64}, tensor<f32>) -> tensor<f32> attributes {rt.kernel}
func.func @step(%w: tensor<f32> {nn.parameter = #nn.parameter<name = "w", init = ones>}, %sum: tensor<f32> {nn.input = "loss_sum"})
    -> (tensor<f32> {nn.output = "loss"}, tensor<f32> {nn.output = "grad_norm"}, tensor<f32> {nn.parameter = "w"}) {
  %sum1 = rt.launch @accumulate(%sum, %w) ids [3] : (tensor<f32>, tensor<f32>) -> tensor<f32>
  rt.update
  %n = rt.launch @squares(%w) : (tensor<f32>) -> tensor<f32>
  %norm = rt.launch @root(%n) : (tensor<f32>) -> tensor<f32>
  %w1 = rt.launch @update(%w, %norm) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %sum1, %norm, %w1 : tensor<f32>, tensor<f32>, tensor<f32>
}

// -----

// Without a running loss among the arguments the loss is an output like others.

//       CHECK: func.func @step() {
//  CHECK-NEXT:   rt.buffer at <device, 0> {rt.state
//  CHECK-NEXT:   rt.buffer at <device, 64> {rt.role = "loss"} : memref<f32>
//  CHECK-NEXT:   rt.launch @k
func.func private @k(tensor<f32>) -> tensor<f32> attributes {rt.kernel}
func.func @step(%w: tensor<f32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) -> (tensor<f32> {nn.output = "loss"}) {
  %loss = rt.launch @k(%w) : (tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}

// -----

// Beside a step: the parameter lies where that has it, all else where
// its activations do. The arena ends where the schedule that needs most does:
// @sample, with the position and two values, and not the step, with two.

// CHECK-LABEL: rt.plan = #rt.plan<[<device, bytes = 256, least = 256, begin = 64, peak = 192, bound = 192, [<parameters, 64>, {{.*}} <activations, 192>]
//       CHECK: func.func @step() {
//       CHECK:   rt.buffer at <device, 0> {rt.state
//       CHECK: func.func @sample() {
//  CHECK-NEXT:   %[[P:.*]] = rt.buffer at <device, {{64|128|192}}> {rt.role = "position"} : memref<16xi32>
//  CHECK-NEXT:   %[[W:.*]] = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
//  CHECK-NEXT:   %[[A:.*]] = rt.buffer at <device, {{64|128|192}}> : memref<16xf32>
//  CHECK-NEXT:   rt.launch @take(%[[W]], %[[P]]) to(%[[A]])
//  CHECK-NEXT:   %[[B:.*]] = rt.buffer at <device, {{64|128|192}}> : memref<16xf32>
//  CHECK-NEXT:   rt.launch @take(%[[A]], %[[P]]) to(%[[B]])
//  CHECK-NEXT:   %[[LOGITS:.*]] = rt.buffer at <device, {{64|128|192}}> {rt.role = "logits"} : memref<16xf32>
//  CHECK-NEXT:   rt.launch @k(%[[B]]) to(%[[LOGITS]])
//  CHECK-NEXT:   return
func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
func.func private @take(tensor<16xf32>, tensor<16xi32>) -> tensor<16xf32> attributes {rt.kernel}
func.func @step(%w: tensor<16xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  %a = rt.launch @k(%w) : (tensor<16xf32>) -> tensor<16xf32>
  %b = rt.launch @k(%a) : (tensor<16xf32>) -> tensor<16xf32>
  return
}
func.func @sample(%position: tensor<16xi32> {nn.input = "position"},
                  %w: tensor<16xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>})
    -> (tensor<16xf32> {nn.output = "logits"}) {
  %a = rt.launch @take(%w, %position) : (tensor<16xf32>, tensor<16xi32>) -> tensor<16xf32>
  %b = rt.launch @take(%a, %position) : (tensor<16xf32>, tensor<16xi32>) -> tensor<16xf32>
  %logits = rt.launch @k(%b) : (tensor<16xf32>) -> tensor<16xf32>
  return %logits : tensor<16xf32>
}

// -----

// A larger alignment moves every offset. The arena ends with
// the last byte in use. What is measured is a remark.

// RUN: reprise-opt %s -split-input-file --pass-pipeline='builtin.module(reprise-plan-memory{alignment=4096},reprise-verify-plan)' \
// RUN: | FileCheck %s --check-prefix=PAGES

// RUN: reprise-opt %s -split-input-file --reprise-plan-memory --remarks-filter=Memory --remark-policy=all 2>&1 >/dev/null \
// RUN: | FileCheck %s --check-prefix=REMARK

// REMARK: remark: [Passed] Planned | Category:Memory | Function=step | arena=1088, bound=960, peak=960

// PAGES-LABEL: bytes = 12288, least = 12288, begin = 8192, peak = 4096, bound = 4096, [<parameters, 4096>, {{.*}}, <activations, 4096>]
//       PAGES: func.func @step() {
//  PAGES-NEXT:   rt.buffer at <device, 4096> {rt.role = "lr"}
//  PAGES-NEXT:   rt.buffer at <device, 0> {rt.state
//  PAGES-NEXT:   rt.buffer at <device, 8192> : memref<f32>
//  PAGES-NEXT:   rt.launch @k
func.func private @k(tensor<f32>) -> tensor<f32> attributes {rt.kernel}
func.func @step(%lr: tensor<f32> {nn.input = "lr"}, %w: tensor<f32> {nn.parameter = #nn.parameter<name = "w", init = ones>}) {
  %a = rt.launch @k(%w) : (tensor<f32>) -> tensor<f32>
  return
}

// -----

// A parameter takes along where it is published, and a table of angles the
// frequencies it is made of, 10000^0 and 10000^(-2/4). The table lies with what
// the step is given.

// CHECK:      <inputs_and_outputs, 192>
// CHECK:      func.func @step()
// CHECK-NEXT:   rt.buffer at <device, 128> {rt.rotary = #rt.rotary<frequencies = [1.000000e+00, 0.00999999977], scale = 1.000000e+00 : f32>} : memref<8x4xf32>
// CHECK-NEXT:   rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "k", init = ones, hub = "qkv", part = 1, parts = 3>} : memref<16xf32>
// CHECK-NEXT:   rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "k", init = zeros>} : memref<16xf32>
// CHECK-NEXT:   rt.buffer at <device, 256> {rt.role = "lr"} : memref<f32>
func.func @step(%rotary: tensor<8x4xf32> {nn.rotary = #nn.rotary<theta = 1.0e4 : f64>},
                %k: tensor<16xf32> {nn.parameter = #nn.parameter<name = "k", init = ones, hub = "qkv", part = 1, parts = 3>},
                %gk: tensor<16xf32> {nn.gradient = "k"}, %lr: tensor<f32> {nn.input = "lr"}) {
  return
}

// -----

// The same workspace for every GEMM, whatever its shape, where the target's
// library asks for it.

// RUN: reprise-opt %s -split-input-file --pass-pipeline='builtin.module(reprise-plan-memory{alignment=256 gemm-workspace=4096},reprise-verify-plan)' \
// RUN: | FileCheck %s --check-prefix=LIBRARY

// LIBRARY:     module attributes {rt.alignment = 256 : i64, rt.gemm_workspace = 4096 : i64
// LIBRARY:     rt.gemm {{.*}} workspace(%{{.*}}) m 16 n 8 k 4
// LIBRARY-SAME:  memref<1024xf32>
func.func private @read(tensor<16x8xf32>) -> tensor<f32> attributes {rt.kernel}
func.func @step(%a: tensor<16x4xf32> {nn.parameter = #nn.parameter<name = "a", init = ones>},
                %b: tensor<4x8xf32> {nn.parameter = #nn.parameter<name = "b", init = ones>}) {
  %c = rt.gemm %a, %b m 16 n 8 k 4 lda 4 ldb 8 ldc 8 : (tensor<16x4xf32>, tensor<4x8xf32>) -> tensor<16x8xf32>
  %s = rt.launch @read(%c) : (tensor<16x8xf32>) -> tensor<f32>
  return
}

// -----

// A working copy is of two bytes an element, among the parameters; the update
// writes both in place. What nobody trains has one too.

// CHECK-LABEL: [<parameters, 256>,
//       CHECK: func.func @step() {
//  CHECK-NEXT:   %[[W:.*]] = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
//  CHECK-NEXT:   rt.buffer at <device, 64> {rt.state = #rt.state<kind = parameter, parameter = "f", init = ones>} : memref<16xf32>
//  CHECK-NEXT:   %[[WH:.*]] = rt.buffer at <device, 128> {rt.state = #rt.state<kind = working, parameter = "w", init = zeros>} : memref<16xbf16>
//  CHECK-NEXT:   rt.buffer at <device, 192> {rt.state = #rt.state<kind = working, parameter = "f", init = zeros>} : memref<16xbf16>
//  CHECK-NEXT:   rt.update
//  CHECK-NEXT:   %[[W1:.*]] = rt.buffer at <device, 0> : memref<16xf32>
//  CHECK-NEXT:   %[[WH1:.*]] = rt.buffer at <device, 128> : memref<16xbf16>
//  CHECK-NEXT:   rt.launch @adamw(%[[W]], %[[WH]]) to(%[[W1]], %[[WH1]])
func.func private @adamw(tensor<16xf32> {rt.in_place = 0 : i64}, tensor<16xbf16> {rt.in_place = 1 : i64}) -> (tensor<16xf32>, tensor<16xbf16>) attributes {rt.kernel}
func.func @step(%w: tensor<16xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>},
                %f: tensor<16xf32> {nn.parameter = #nn.parameter<name = "f", init = ones, frozen = true>},
                %wh: tensor<16xbf16> {nn.working = "w"}, %fh: tensor<16xbf16> {nn.working = "f"})
    -> (tensor<16xf32> {nn.parameter = "w"}, tensor<16xbf16> {nn.working = "w"}) {
  rt.update
  %w1, %wh1 = rt.launch @adamw(%w, %wh) : (tensor<16xf32>, tensor<16xbf16>) -> (tensor<16xf32>, tensor<16xbf16>)
  return %w1, %wh1 : tensor<16xf32>, tensor<16xbf16>
}
