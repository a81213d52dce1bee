// Layers are spread over pipeline stages; policies for whole layers begin anew
// in each chunk, and the plan says what a stage keeps in flight.

// RUN: reprise-opt %S/Inputs/chain-5.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-split-layers{stages=2}))' \
// RUN: | FileCheck %s --check-prefix=TWO
// TWO: func.func @step({{.*}}remat.chunks = #remat.chunks<stages = 2, layers = [3, 2]>

// RUN: reprise-opt %S/Inputs/chain-5.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-split-layers{stages=2 virtual-stages=2}))' \
// RUN: | FileCheck %s --check-prefix=FOUR
// FOUR: remat.chunks = #remat.chunks<stages = 2, layers = [2, 1, 1, 1]>

// RUN: reprise-opt %S/Inputs/chain-5.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-split-layers{stages=2 layers=1,4}))' \
// RUN: | FileCheck %s --check-prefix=LAYOUT
// LAYOUT: remat.chunks = #remat.chunks<stages = 2, layers = [1, 4]>

// The first layer of each chunk, in a segment of its own; the micro-batch is in
// flight on both stages. x is 16 bytes, and so is u; the head keeps 16 more.

// RUN: reprise-opt %S/Inputs/chain-5.mlir -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-split-layers{stages=2},reprise-remat-annotate-full{method=block num-layers=1},reprise-remat-print-plan))' \
// RUN: | FileCheck %s --check-prefix=BLOCK
// BLOCK:      layers 0, 3: save x0 (16 B each); recompute u (16 B, 36 FLOP each) for full
// BLOCK-NEXT: layers 1-2, 4: save x0 u (32 B each)
// BLOCK-NEXT: outside layers: save x2 (16 B)
// BLOCK-NEXT: in all: save 144 B, recompute 72 FLOP
// BLOCK-NEXT: stage 0: layers 0-2, 1 micro-batch of 80 B: 80 B in flight
// BLOCK-NEXT: stage 1: layers 3-4, 1 micro-batch of 64 B: 64 B in flight

// Segments of two layers in chunks of three and two: [0, 1], [2], [3, 4]. The
// second begins with what the first one would have replayed.

// RUN: reprise-opt %S/Inputs/chain-5.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-split-layers{stages=2},reprise-remat-annotate-full{method=uniform num-layers=2}))' \
// RUN: | FileCheck %s --check-prefix=UNIFORM
// UNIFORM: layer = 0, {{.*}}"x2">, remat.decision = #remat.recompute<segment = 0, label = "full">
// UNIFORM: layer = 1, {{.*}}"x2">, remat.decision = #remat.save<reason = "input of segment 1">
// UNIFORM: layer = 2, {{.*}}"u">, remat.decision = #remat.recompute<segment = 1, label = "full">
// UNIFORM: layer = 2, {{.*}}"x2">, remat.decision = #remat.save<reason = "input of segment 2">
// UNIFORM: layer = 3, {{.*}}"x2">, remat.decision = #remat.recompute<segment = 2, label = "full">

// Four micro-batches, two chunks on each of two stages: the schedule has begun 5
// chunks on stage 0 when the first of them is done, 3 of chunk 0.

// RUN: sed 's/nn.micro_batches = 1/nn.micro_batches = 4/' %S/Inputs/chain-5.mlir \
// RUN: | reprise-opt -o /dev/null --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-split-layers{stages=2 virtual-stages=2},reprise-remat-print-plan))' \
// RUN: | FileCheck %s --check-prefix=INTERLEAVED
// INTERLEAVED: stage 0: layers 0-1, 4 micro-batches of 64 B; layer 3, 1 micro-batch of 32 B: 288 B in flight
// INTERLEAVED: stage 1: layer 2, 2 micro-batches of 32 B; layer 4, 1 micro-batch of 48 B: 112 B in flight

// Refusals.

// RUN: not reprise-opt %S/Inputs/chain-5.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-split-layers{stages=0}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=ZERO
// ZERO: error: needs at least 1 pipeline stage and 1 virtual stage, but got 0 and 1
// RUN: not reprise-opt %S/Inputs/chain-5.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-split-layers{virtual-stages=2}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=ALONE
// ALONE: error: needs more than 1 pipeline stage to have virtual stages, but got 2 virtual stages
// RUN: not reprise-opt %S/Inputs/chain-5.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-split-layers{stages=3 virtual-stages=2}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=FEW
// FEW: error: needs a layer for each of the 6 chunks of 3 pipeline stages, but got 5 layers
// RUN: not reprise-opt %S/Inputs/chain-5.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-split-layers{stages=2 layers=1,2,2}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=COUNT
// COUNT: error: needs a number of layers for each of the 2 chunks, but got 3 numbers
// RUN: not reprise-opt %S/Inputs/chain-5.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-split-layers{stages=2 layers=1,3}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=SUM
// SUM: error: needs chunks of 5 layers in all, but got 4
// RUN: not reprise-opt %S/Inputs/chain-5.mlir --pass-pipeline='builtin.module(reprise-differentiate,func.func(reprise-remat-split-layers{stages=2 layers=-1,6}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=SIZE
// SIZE: error: needs chunks of 0 to 5 layers, but got -1

// Chunks by hand that are of another model, or whose stages wait forever.

// RUN: not reprise-opt %s -split-input-file -o /dev/null --pass-pipeline='builtin.module(func.func(reprise-remat-print-plan))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=HAND
// RUN: not reprise-opt %s -split-input-file -o /dev/null --pass-pipeline='builtin.module(func.func(reprise-remat-annotate-full{method=block num-layers=1}))' 2>&1 \
// RUN: | FileCheck %s --check-prefix=HAND-FULL
// HAND: error: needs 'remat.chunks' of the 1 layers of the forward pass, but got chunks of 4 in all
// HAND-FULL: error: needs 'remat.chunks' of the 1 layers of the forward pass, but got chunks of 4 in all
func.func @other(%x: tensor<4xf32>) -> tensor<4xf32> attributes {remat.chunks = #remat.chunks<stages = 2, layers = [2, 2]>} {
  %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "u">} : tensor<4xf32>
  nn.backward
  %d = nn.gelu_backward %u, %u tanh : tensor<4xf32>
  return %d : tensor<4xf32>
}

// -----

// HAND: error: needs a multiple of its 4 pipeline stages as micro-batches, for 3 chunks on each stage wait for each other forever with 5
func.func @forever(%x: tensor<4xf32>) -> tensor<4xf32> attributes {nn.micro_batches = 5 : i64, remat.chunks = #remat.chunks<stages = 4, layers = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]>} {
  %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "u">} : tensor<4xf32>
  nn.backward
  %d = nn.gelu_backward %u, %u tanh : tensor<4xf32>
  return %d : tensor<4xf32>
}

// -----

// HAND: error: has no pipeline: needs at most 16777216 tasks, but got more with 1048576 micro-batches
func.func @long(%x: tensor<4xf32>) -> tensor<4xf32> attributes {nn.micro_batches = 1048576 : i64, remat.chunks = #remat.chunks<stages = 20, layers = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]>} {
  %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "u">} : tensor<4xf32>
  nn.backward
  %d = nn.gelu_backward %u, %u tanh : tensor<4xf32>
  return %d : tensor<4xf32>
}
