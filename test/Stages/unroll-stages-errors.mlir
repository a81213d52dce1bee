// What cannot become the steps of stages.
// RUN: reprise-opt %s -split-input-file -verify-diagnostics -reprise-unroll-stages

// A table that does not run, whoever has written it.
pipe.schedule "mine" virtual_stages 1 micro_batches 1 {
  pipe.stage 0 slots [1] gradient_slots 0 {
    // expected-error @+1 {{(stage 0, entry 0) needs a chunk of this stage, the number 0 or that plus a multiple of 1 below 1, but got 7}}
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

// -----

// Chunks without a table.
// expected-error @+1 {{needs a 'pipe.schedule' for its chunks; reprise-make-schedule writes one}}
module {
  module @chunk0 {
    func.func @step() {
      nn.backward
      return
    }
  }
}

// -----

// Two tables.
pipe.schedule "mine" virtual_stages 1 micro_batches 1 {
  pipe.stage 0 slots [1] gradient_slots 0 {
    pipe.forward chunk 0 micro_batch 0 slot 0
    pipe.backward chunk 0 micro_batch 0 slot 0
    pipe.update
  }
}
// expected-error @+1 {{needs to be the only schedule of its module, but another is before it}}
pipe.schedule "yours" virtual_stages 1 micro_batches 1 {
  pipe.stage 0 slots [1] gradient_slots 0 {
    pipe.forward chunk 0 micro_batch 0 slot 0
    pipe.backward chunk 0 micro_batch 0 slot 0
    pipe.update
  }
}

// -----

// A table of one stage for ranks of two.
module attributes {nn.mesh = #nn.mesh<pp = 2>} {
  // expected-error @+1 {{needs the lists of the 2 stages along 'pp' of 'nn.mesh', but has those of 1}}
  pipe.schedule "mine" virtual_stages 1 micro_batches 1 {
    pipe.stage 0 slots [1] gradient_slots 0 {
      pipe.forward chunk 0 micro_batch 0 slot 0
      pipe.backward chunk 0 micro_batch 0 slot 0
      pipe.update
    }
  }
}

// -----

// Of what crosses the border a table, which agrees with itself, has other bytes.
module attributes {nn.mesh = #nn.mesh<pp = 2>} {
  module @chunk0 {
    func.func @step(%a: tensor<4xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros>}) -> (tensor<4xf32> {nn.output = "border"}) {
      %x = nn.add %a, %a : tensor<4xf32>
      nn.backward
      return %x : tensor<4xf32>
    }
  }
  module @chunk1 {
    func.func @step(%x: tensor<4xf32> {nn.input = "border"}) -> (tensor<4xf32> {nn.output = "border_gradient"}) {
      nn.backward
      return %x : tensor<4xf32>
    }
  }
  pipe.schedule "mine" virtual_stages 1 micro_batches 1 {
    pipe.stage 0 slots [1] gradient_slots 1 {
      pipe.forward chunk 0 micro_batch 0 slot 0
      // expected-error @+1 {{needs the 16 bytes of 'tensor<4xf32>', which crosses the border, but says 12}}
      pipe.send activation chunk 0 micro_batch 0 slot 0 to 1 bytes 12
      pipe.receive gradient chunk 0 micro_batch 0 slot 0 from 1 bytes 12
      pipe.backward chunk 0 micro_batch 0 slot 0 gradient_slot 0
      pipe.update
    }
    pipe.stage 1 slots [1] gradient_slots 1 {
      pipe.receive activation chunk 1 micro_batch 0 slot 0 from 0 bytes 12
      pipe.forward chunk 1 micro_batch 0 slot 0
      pipe.backward chunk 1 micro_batch 0 slot 0 gradient_slot 0
      pipe.send gradient chunk 1 micro_batch 0 slot 0 to 0 bytes 12
      pipe.update
    }
  }
}
