// What no schedule can be made of.
// RUN: not reprise-opt %s -split-input-file -reprise-make-schedule='schedule=1f2b' 2>&1 | FileCheck %s -check-prefix=NAME
// RUN: not reprise-opt %s -split-input-file -reprise-make-schedule='schedule=1f1b stages=2 virtual-stages=2' 2>&1 | FileCheck %s -check-prefix=VIRTUAL
// RUN: not reprise-opt %s -split-input-file -reprise-make-schedule='schedule=interleaved stages=4 virtual-stages=2 micro-batches=6' 2>&1 | FileCheck %s -check-prefix=REST
// RUN: not reprise-opt %s -split-input-file -reprise-make-schedule='border-bytes=0' 2>&1 | FileCheck %s -check-prefix=BYTES
// RUN: not reprise-opt %s -split-input-file -reprise-make-schedule='stages=-1' 2>&1 | FileCheck %s -check-prefix=STAGES
// RUN: not reprise-opt %s -split-input-file -reprise-make-schedule='stages=4000 micro-batches=4000' 2>&1 | FileCheck %s -check-prefix=TASKS

// NAME: make-schedule-errors.mlir:[[#@LINE+6]]:1: error: needs one of 'gpipe', '1f1b', 'interleaved', 'zb-h1' for 'schedule', but got '1f2b'
// VIRTUAL: error: needs 1 virtual stage for the schedule 1f1b, but got 2; 'interleaved' has several
// REST: error: needs at least 4 micro-batches in the last group, the stages, but got 2, the rest of 6 in groups of 4
// BYTES: error: needs at least 1 byte that crosses a border, and 0 of a table on both ends, but got 0 and 0
// STAGES: error: needs at least 1 for the number of pipeline stages, but got -1
// TASKS: error: needs at most 1048576 micro-batches through chunks, but got 4000 through 1 on each of 4000 stages
module {}

// -----

// NAME: error: 'pipe.schedule' op needs to be the only schedule, but another is to be made beside it
pipe.schedule "1f1b" virtual_stages 1 micro_batches 1 {
  pipe.stage 0 slots [1] gradient_slots 0 {
    pipe.update
  }
}

// -----

// NAME: error: needs as many chunks on each of 2 stages, but got 3 of 'nn.chunk_layers'
module attributes {nn.chunk_layers = array<i64: 1, 1, 1>, nn.mesh = #nn.mesh<pp = 2>} {
  module @chunk0 { func.func @forward(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> } }
  module @chunk1 { func.func @forward(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> } }
  module @chunk2 { func.func @forward(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> } }
}

// -----

// NAME: error: 'func.func' op needs to return what crosses the border to the next chunk, but returns nothing
module attributes {nn.chunk_layers = array<i64: 1, 1>, nn.mesh = #nn.mesh<pp = 2>} {
  module @chunk0 { func.func @forward(%x: tensor<2xf32>) { return } }
  module @chunk1 { func.func @forward(%x: tensor<2xf32>) { return } }
}
