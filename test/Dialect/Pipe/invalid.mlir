// RUN: reprise-opt %s -verify-diagnostics -split-input-file

// expected-error @+1 {{'pipe.schedule' op needs at least 1 stage, but has none}}
pipe.schedule "none" virtual_stages 1 micro_batches 1 {
}

// -----

pipe.schedule "order" virtual_stages 1 micro_batches 1 {
  // expected-error @+1 {{'pipe.stage' op needs to be stage 0, the next of its schedule, but is stage 1}}
  pipe.stage 1 slots [1] gradient_slots 0 {
    pipe.update
  }
}

// -----

pipe.schedule "groups" virtual_stages 1 micro_batches 1 {
  pipe.stage 0 slots [1] gradient_slots 0 {
    pipe.update
  }
  // expected-error @+1 {{'pipe.group' op needs to be before the stages}}
  pipe.group "all" stages [0]
}

// -----

pipe.schedule "names" virtual_stages 1 micro_batches 1 {
  pipe.group "all" stages [0]
  // expected-error @+1 {{'pipe.group' op needs a name of its own, but another group is 'all' too}}
  pipe.group "all" stages [0]
  pipe.stage 0 slots [1] gradient_slots 0 {
    pipe.update
  }
}

// -----

pipe.schedule "unknown" virtual_stages 1 micro_batches 1 {
  pipe.group "all" stages [0]
  pipe.stage 0 slots [1] gradient_slots 0 {
    // expected-error @+1 {{'pipe.gather' op needs a group of its schedule, but there is none with the name 'al'}}
    pipe.gather over "al" bytes 8
  }
}

// -----

pipe.schedule "foreign" virtual_stages 1 micro_batches 1 {
  pipe.stage 0 slots [1] gradient_slots 0 {
    // expected-error @+1 {{'arith.constant' op needs to be no part of a stage's list}}
    %one = arith.constant 1 : i32
  }
}

// -----

pipe.schedule "entry" virtual_stages 1 micro_batches 1 {
  // expected-error @+1 {{'pipe.update' op expects parent op 'pipe.stage'}}
  pipe.update
}

// -----

pipe.schedule "number" virtual_stages 1 micro_batches 1 {
  pipe.stage 0 slots [1] gradient_slots 0 {
    // expected-error @+1 {{attribute 'slot' failed to satisfy constraint}}
    pipe.forward chunk 0 micro_batch 0 slot -1
  }
}
