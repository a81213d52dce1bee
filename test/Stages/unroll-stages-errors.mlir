// What cannot become the steps of stages.
// RUN: reprise-opt %s -split-input-file -verify-diagnostics -reprise-unroll-stages

// A table that does not run.
// expected-error @+1 {{needs to run to become steps, but does not; reprise-verify-schedule says where: }}
pipe.schedule "mine" virtual_stages 1 micro_batches 1 {
  pipe.stage 0 slots [1] gradient_slots 0 {
    pipe.forward chunk 7 micro_batch 0 slot 0
    pipe.backward chunk 7 micro_batch 0 slot 0
    pipe.update
  }
}

// -----

// No chunk.
// expected-error @+1 {{needs a module @chunk0 with a function @step, for 1 chunks}}
pipe.schedule "mine" virtual_stages 1 micro_batches 1 {
  pipe.stage 0 slots [1] gradient_slots 0 {
    pipe.forward chunk 0 micro_batch 0 slot 0
    pipe.backward chunk 0 micro_batch 0 slot 0
    pipe.update
  }
}

// -----

// A chunk of other micro-batches.
module @chunk0 {
  // expected-error @+1 {{needs the 1 micro-batches of the schedule, but is for 2}}
  func.func @step() attributes {nn.micro_batches = 2 : i64} {
    nn.backward
    return
  }
}
pipe.schedule "mine" virtual_stages 1 micro_batches 1 {
  pipe.stage 0 slots [1] gradient_slots 0 {
    pipe.forward chunk 0 micro_batch 0 slot 0
    pipe.backward chunk 0 micro_batch 0 slot 0
    pipe.update
  }
}

// -----

// A chunk that is not differentiated.
module @chunk0 {
  // expected-error @+1 {{needs one block with one nn.backward to be a chunk of a pipeline}}
  func.func @step() {
    return
  }
}
pipe.schedule "mine" virtual_stages 1 micro_batches 1 {
  pipe.stage 0 slots [1] gradient_slots 0 {
    pipe.forward chunk 0 micro_batch 0 slot 0
    pipe.backward chunk 0 micro_batch 0 slot 0
    pipe.update
  }
}
