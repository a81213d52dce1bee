// What the proof of a table refuses, each in one place of a table that is right.
// RUN: reprise-opt %s -verify-diagnostics -split-input-file -reprise-verify-schedule

pipe.schedule "right" virtual_stages 1 micro_batches 2 {
  pipe.group "all" stages [0, 1]
  pipe.stage 0 slots [2] gradient_slots 1 {
    pipe.forward chunk 0 micro_batch 0 slot 0
    pipe.send activation chunk 0 micro_batch 0 slot 0 to 1 bytes 96
    pipe.forward chunk 0 micro_batch 1 slot 1
    pipe.send activation chunk 0 micro_batch 1 slot 1 to 1 bytes 96
    pipe.receive gradient chunk 0 micro_batch 0 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 0 slot 0 gradient_slot 0
    pipe.receive gradient chunk 0 micro_batch 1 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 1 slot 1 gradient_slot 0
    pipe.reduce over "all" bytes 8
    pipe.update
  }
  pipe.stage 1 slots [1] gradient_slots 1 {
    pipe.receive activation chunk 1 micro_batch 0 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 0 slot 0
    pipe.backward chunk 1 micro_batch 0 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 0 slot 0 to 0 bytes 96
    pipe.receive activation chunk 1 micro_batch 1 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 1 slot 0
    pipe.backward chunk 1 micro_batch 1 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 1 slot 0 to 0 bytes 96
    pipe.reduce over "all" bytes 8
    pipe.update
  }
}

// -----

// A slot that a micro-batch still has.
pipe.schedule "slot" virtual_stages 1 micro_batches 2 {
  pipe.group "all" stages [0, 1]
  pipe.stage 0 slots [2] gradient_slots 1 {
    pipe.forward chunk 0 micro_batch 0 slot 0
    pipe.send activation chunk 0 micro_batch 0 slot 0 to 1 bytes 96
    // expected-error @+1 {{'pipe.forward' op (stage 0, entry 2) writes a slot that still has what is kept of micro-batch 0 on chunk 0}}
    pipe.forward chunk 0 micro_batch 1 slot 0
    pipe.send activation chunk 0 micro_batch 1 slot 1 to 1 bytes 96
    pipe.receive gradient chunk 0 micro_batch 0 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 0 slot 0 gradient_slot 0
    pipe.receive gradient chunk 0 micro_batch 1 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 1 slot 1 gradient_slot 0
    pipe.reduce over "all" bytes 8
    pipe.update
  }
  pipe.stage 1 slots [1] gradient_slots 1 {
    pipe.receive activation chunk 1 micro_batch 0 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 0 slot 0
    pipe.backward chunk 1 micro_batch 0 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 0 slot 0 to 0 bytes 96
    pipe.receive activation chunk 1 micro_batch 1 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 1 slot 0
    pipe.backward chunk 1 micro_batch 1 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 1 slot 0 to 0 bytes 96
    pipe.reduce over "all" bytes 8
    pipe.update
  }
}

// -----

// A send that is missing.
pipe.schedule "unsent" virtual_stages 1 micro_batches 2 {
  pipe.group "all" stages [0, 1]
  pipe.stage 0 slots [2] gradient_slots 1 {
    pipe.forward chunk 0 micro_batch 0 slot 0
    pipe.send activation chunk 0 micro_batch 0 slot 0 to 1 bytes 96
    pipe.forward chunk 0 micro_batch 1 slot 1
    pipe.receive gradient chunk 0 micro_batch 0 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 0 slot 0 gradient_slot 0
    pipe.receive gradient chunk 0 micro_batch 1 slot 0 from 1 bytes 96
    // expected-error @+1 {{'pipe.backward' op (stage 0, entry 6) needs the activation of its micro-batch to be sent, but it is not}}
    pipe.backward chunk 0 micro_batch 1 slot 1 gradient_slot 0
    pipe.reduce over "all" bytes 8
    pipe.update
  }
  pipe.stage 1 slots [1] gradient_slots 1 {
    pipe.receive activation chunk 1 micro_batch 0 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 0 slot 0
    pipe.backward chunk 1 micro_batch 0 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 0 slot 0 to 0 bytes 96
    pipe.receive activation chunk 1 micro_batch 1 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 1 slot 0
    pipe.backward chunk 1 micro_batch 1 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 1 slot 0 to 0 bytes 96
    pipe.reduce over "all" bytes 8
    pipe.update
  }
}

// -----

// Two sizes of one parcel.
pipe.schedule "bytes" virtual_stages 1 micro_batches 2 {
  pipe.group "all" stages [0, 1]
  pipe.stage 0 slots [2] gradient_slots 1 {
    pipe.forward chunk 0 micro_batch 0 slot 0
    pipe.send activation chunk 0 micro_batch 0 slot 0 to 1 bytes 96
    pipe.forward chunk 0 micro_batch 1 slot 1
    pipe.send activation chunk 0 micro_batch 1 slot 1 to 1 bytes 96
    pipe.receive gradient chunk 0 micro_batch 0 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 0 slot 0 gradient_slot 0
    pipe.receive gradient chunk 0 micro_batch 1 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 1 slot 1 gradient_slot 0
    pipe.reduce over "all" bytes 8
    pipe.update
  }
  pipe.stage 1 slots [1] gradient_slots 1 {
    pipe.receive activation chunk 1 micro_batch 0 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 0 slot 0
    pipe.backward chunk 1 micro_batch 0 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 0 slot 0 to 0 bytes 96
    // expected-error @+1 {{'pipe.receive' op (stage 1, entry 4) needs 95 bytes of micro-batch 1 from chunk 0, but entry 3 of stage 0 sends 96 bytes of micro-batch 1 from chunk 0}}
    pipe.receive activation chunk 1 micro_batch 1 slot 0 from 0 bytes 95
    pipe.forward chunk 1 micro_batch 1 slot 0
    pipe.backward chunk 1 micro_batch 1 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 1 slot 0 to 0 bytes 96
    pipe.reduce over "all" bytes 8
    pipe.update
  }
}

// -----

// A backward task before its gradient is there.
pipe.schedule "gradient" virtual_stages 1 micro_batches 2 {
  pipe.group "all" stages [0, 1]
  pipe.stage 0 slots [2] gradient_slots 1 {
    pipe.forward chunk 0 micro_batch 0 slot 0
    pipe.send activation chunk 0 micro_batch 0 slot 0 to 1 bytes 96
    pipe.forward chunk 0 micro_batch 1 slot 1
    pipe.send activation chunk 0 micro_batch 1 slot 1 to 1 bytes 96
    pipe.receive gradient chunk 0 micro_batch 0 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 0 slot 0 gradient_slot 0
    // expected-error @+1 {{'pipe.backward' op (stage 0, entry 6) needs the gradient of the output of micro-batch 1 on chunk 0 in its gradient slot, but there is nothing}}
    pipe.backward chunk 0 micro_batch 1 slot 1 gradient_slot 0
    pipe.reduce over "all" bytes 8
    pipe.update
  }
  pipe.stage 1 slots [1] gradient_slots 1 {
    pipe.receive activation chunk 1 micro_batch 0 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 0 slot 0
    pipe.backward chunk 1 micro_batch 0 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 0 slot 0 to 0 bytes 96
    pipe.receive activation chunk 1 micro_batch 1 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 1 slot 0
    pipe.backward chunk 1 micro_batch 1 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 1 slot 0 to 0 bytes 96
    pipe.reduce over "all" bytes 8
    pipe.update
  }
}

// -----

// The chunk of another stage.
pipe.schedule "stage" virtual_stages 1 micro_batches 2 {
  pipe.group "all" stages [0, 1]
  pipe.stage 0 slots [2] gradient_slots 1 {
    // expected-error @+1 {{'pipe.forward' op (stage 0, entry 0) needs a chunk of this stage, the number 0 or that plus a multiple of 2 below 2, but got 1}}
    pipe.forward chunk 1 micro_batch 0 slot 0
    pipe.send activation chunk 0 micro_batch 0 slot 0 to 1 bytes 96
    pipe.forward chunk 0 micro_batch 1 slot 1
    pipe.send activation chunk 0 micro_batch 1 slot 1 to 1 bytes 96
    pipe.receive gradient chunk 0 micro_batch 0 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 0 slot 0 gradient_slot 0
    pipe.receive gradient chunk 0 micro_batch 1 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 1 slot 1 gradient_slot 0
    pipe.reduce over "all" bytes 8
    pipe.update
  }
  pipe.stage 1 slots [1] gradient_slots 1 {
    pipe.receive activation chunk 1 micro_batch 0 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 0 slot 0
    pipe.backward chunk 1 micro_batch 0 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 0 slot 0 to 0 bytes 96
    pipe.receive activation chunk 1 micro_batch 1 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 1 slot 0
    pipe.backward chunk 1 micro_batch 1 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 1 slot 0 to 0 bytes 96
    pipe.reduce over "all" bytes 8
    pipe.update
  }
}

// -----

// A stage without the chunk beside it.
pipe.schedule "peer" virtual_stages 1 micro_batches 2 {
  pipe.group "all" stages [0, 1]
  pipe.stage 0 slots [2] gradient_slots 1 {
    pipe.forward chunk 0 micro_batch 0 slot 0
    // expected-error @+1 {{'pipe.send' op (stage 0, entry 1) needs stage 1, which has chunk 1, but got stage 0}}
    pipe.send activation chunk 0 micro_batch 0 slot 0 to 0 bytes 96
    pipe.forward chunk 0 micro_batch 1 slot 1
    pipe.send activation chunk 0 micro_batch 1 slot 1 to 1 bytes 96
    pipe.receive gradient chunk 0 micro_batch 0 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 0 slot 0 gradient_slot 0
    pipe.receive gradient chunk 0 micro_batch 1 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 1 slot 1 gradient_slot 0
    pipe.reduce over "all" bytes 8
    pipe.update
  }
  pipe.stage 1 slots [1] gradient_slots 1 {
    pipe.receive activation chunk 1 micro_batch 0 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 0 slot 0
    pipe.backward chunk 1 micro_batch 0 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 0 slot 0 to 0 bytes 96
    pipe.receive activation chunk 1 micro_batch 1 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 1 slot 0
    pipe.backward chunk 1 micro_batch 1 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 1 slot 0 to 0 bytes 96
    pipe.reduce over "all" bytes 8
    pipe.update
  }
}

// -----

// More slots than micro-batches at one time.
pipe.schedule "slots" virtual_stages 1 micro_batches 2 {
  pipe.group "all" stages [0, 1]
  pipe.stage 0 slots [2] gradient_slots 1 {
    pipe.forward chunk 0 micro_batch 0 slot 0
    pipe.send activation chunk 0 micro_batch 0 slot 0 to 1 bytes 96
    pipe.forward chunk 0 micro_batch 1 slot 1
    pipe.send activation chunk 0 micro_batch 1 slot 1 to 1 bytes 96
    pipe.receive gradient chunk 0 micro_batch 0 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 0 slot 0 gradient_slot 0
    pipe.receive gradient chunk 0 micro_batch 1 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 1 slot 1 gradient_slot 0
    pipe.reduce over "all" bytes 8
    pipe.update
  }
  // expected-error @+1 {{'pipe.stage' op (stage 1) needs 1 slots of chunk 1, the most micro-batches that it has at one time, but got 2}}
  pipe.stage 1 slots [2] gradient_slots 1 {
    pipe.receive activation chunk 1 micro_batch 0 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 0 slot 0
    pipe.backward chunk 1 micro_batch 0 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 0 slot 0 to 0 bytes 96
    pipe.receive activation chunk 1 micro_batch 1 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 1 slot 0
    pipe.backward chunk 1 micro_batch 1 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 1 slot 0 to 0 bytes 96
    pipe.reduce over "all" bytes 8
    pipe.update
  }
}

// -----

// Members that do not do the same.
pipe.schedule "group" virtual_stages 1 micro_batches 2 {
  pipe.group "all" stages [0, 1]
  pipe.stage 0 slots [2] gradient_slots 1 {
    pipe.forward chunk 0 micro_batch 0 slot 0
    pipe.send activation chunk 0 micro_batch 0 slot 0 to 1 bytes 96
    pipe.forward chunk 0 micro_batch 1 slot 1
    pipe.send activation chunk 0 micro_batch 1 slot 1 to 1 bytes 96
    pipe.receive gradient chunk 0 micro_batch 0 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 0 slot 0 gradient_slot 0
    pipe.receive gradient chunk 0 micro_batch 1 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 1 slot 1 gradient_slot 0
    pipe.reduce over "all" bytes 8
    pipe.update
  }
  pipe.stage 1 slots [1] gradient_slots 1 {
    pipe.receive activation chunk 1 micro_batch 0 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 0 slot 0
    pipe.backward chunk 1 micro_batch 0 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 0 slot 0 to 0 bytes 96
    pipe.receive activation chunk 1 micro_batch 1 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 1 slot 0
    pipe.backward chunk 1 micro_batch 1 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 1 slot 0 to 0 bytes 96
    // expected-error @+1 {{'pipe.gather' op (stage 1, entry 8) needs to do what entry 8 of stage 0 does, the reduce of the group 'all' with 8 bytes, but is the gather of the group 'all' with 8 bytes}}
    pipe.gather over "all" bytes 8
    pipe.update
  }
}

// -----

// An update that others follow.
pipe.schedule "end" virtual_stages 1 micro_batches 2 {
  pipe.group "all" stages [0, 1]
  pipe.stage 0 slots [2] gradient_slots 1 {
    pipe.forward chunk 0 micro_batch 0 slot 0
    pipe.send activation chunk 0 micro_batch 0 slot 0 to 1 bytes 96
    pipe.forward chunk 0 micro_batch 1 slot 1
    pipe.send activation chunk 0 micro_batch 1 slot 1 to 1 bytes 96
    pipe.receive gradient chunk 0 micro_batch 0 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 0 slot 0 gradient_slot 0
    pipe.receive gradient chunk 0 micro_batch 1 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 1 slot 1 gradient_slot 0
    // expected-error @+1 {{'pipe.update' op (stage 0, entry 8) needs to be the last entry of its stage, but others follow}}
    pipe.update
    pipe.update
  }
  pipe.stage 1 slots [1] gradient_slots 1 {
    pipe.receive activation chunk 1 micro_batch 0 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 0 slot 0
    pipe.backward chunk 1 micro_batch 0 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 0 slot 0 to 0 bytes 96
    pipe.receive activation chunk 1 micro_batch 1 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 1 slot 0
    pipe.backward chunk 1 micro_batch 1 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 1 slot 0 to 0 bytes 96
    pipe.reduce over "all" bytes 8
    pipe.update
  }
}

// -----

// Each stage by itself is right, and both together are not: stage 0 goes back
// with the first micro-batch before it sends the second, stage 1 forward with
// both before it goes back.
pipe.schedule "forever" virtual_stages 1 micro_batches 2 {
  pipe.stage 0 slots [1] gradient_slots 1 {
    pipe.forward chunk 0 micro_batch 0 slot 0
    pipe.send activation chunk 0 micro_batch 0 slot 0 to 1 bytes 96
    // expected-error @+1 {{'pipe.receive' op (stage 0, entry 2) waits forever, since stages wait for each other: for it waits the receive of the activation of micro-batch 1 on chunk 1, entry 2 of stage 1}}
    pipe.receive gradient chunk 0 micro_batch 0 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 0 slot 0 gradient_slot 0
    pipe.forward chunk 0 micro_batch 1 slot 0
    pipe.send activation chunk 0 micro_batch 1 slot 0 to 1 bytes 96
    pipe.receive gradient chunk 0 micro_batch 1 slot 0 from 1 bytes 96
    pipe.backward chunk 0 micro_batch 1 slot 0 gradient_slot 0
    pipe.update
  }
  pipe.stage 1 slots [2] gradient_slots 1 {
    pipe.receive activation chunk 1 micro_batch 0 slot 0 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 0 slot 0
    pipe.receive activation chunk 1 micro_batch 1 slot 1 from 0 bytes 96
    pipe.forward chunk 1 micro_batch 1 slot 1
    pipe.backward chunk 1 micro_batch 0 slot 0 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 0 slot 0 to 0 bytes 96
    pipe.backward chunk 1 micro_batch 1 slot 1 gradient_slot 0
    pipe.send gradient chunk 1 micro_batch 1 slot 0 to 0 bytes 96
    pipe.update
  }
}

// -----

// Sums of gradients have one order.
pipe.schedule "order" virtual_stages 1 micro_batches 2 {
  pipe.stage 0 slots [2] gradient_slots 0 {
    pipe.forward chunk 0 micro_batch 0 slot 0
    pipe.forward chunk 0 micro_batch 1 slot 1
    pipe.backward chunk 0 micro_batch 0 slot 0
    pipe.backward chunk 0 micro_batch 1 slot 1
    // expected-error @+1 {{'pipe.backward_weight' op (stage 0, entry 4) needs micro-batch 0 as the next that chunk 0 adds to its gradients, but got 1}}
    pipe.backward_weight chunk 0 micro_batch 1 slot 1
    pipe.backward_weight chunk 0 micro_batch 0 slot 0
    pipe.update
  }
}

// -----

// And so have losses, also of tables whose gradients are in order.
pipe.schedule "losses" virtual_stages 1 micro_batches 2 {
  pipe.stage 0 slots [2] gradient_slots 0 {
    // expected-error @+1 {{'pipe.forward' op (stage 0, entry 0) needs micro-batch 0 as the next whose loss chunk 0 may add, but got 1}}
    pipe.forward chunk 0 micro_batch 1 slot 1
    pipe.forward chunk 0 micro_batch 0 slot 0
    pipe.backward chunk 0 micro_batch 0 slot 0
    pipe.backward chunk 0 micro_batch 1 slot 1
    pipe.update
  }
}

// -----

// As a head in parts adds it in backward tasks.
pipe.schedule "heads" virtual_stages 1 micro_batches 2 {
  pipe.stage 0 slots [2] gradient_slots 0 {
    pipe.forward chunk 0 micro_batch 0 slot 0
    pipe.forward chunk 0 micro_batch 1 slot 1
    // expected-error @+1 {{'pipe.backward' op (stage 0, entry 2) needs micro-batch 0 as the next whose loss chunk 0 may add, but got 1}}
    pipe.backward chunk 0 micro_batch 1 slot 1
    pipe.backward chunk 0 micro_batch 0 slot 0
    pipe.backward_weight chunk 0 micro_batch 0 slot 0
    pipe.backward_weight chunk 0 micro_batch 1 slot 1
    pipe.update
  }
}

// -----

// expected-error @+1 {{'pipe.schedule' op needs at least 1 for the number of micro-batches, but got 0}}
pipe.schedule "nothing" virtual_stages 1 micro_batches 0 {
  pipe.stage 0 slots [1] gradient_slots 0 {
    pipe.update
  }
}
