// Each schedule, on two stages, passes the proof.
// RUN: reprise-opt %s -split-input-file -reprise-make-schedule='schedule=1f1b stages=2 micro-batches=2 border-bytes=96 tied-bytes=64' -reprise-verify-schedule | FileCheck %s
// RUN: reprise-opt %s -reprise-make-schedule='schedule=gpipe stages=2 micro-batches=2' -reprise-verify-schedule | FileCheck %s -check-prefix=GPIPE
// RUN: reprise-opt %s -reprise-make-schedule='schedule=interleaved stages=2 virtual-stages=2 micro-batches=4 micro-batch-group=4' -reprise-verify-schedule | FileCheck %s -check-prefix=GROUPS
// RUN: reprise-opt %s -reprise-make-schedule='schedule=zb-h1 stages=2 micro-batches=3' -reprise-verify-schedule | FileCheck %s -check-prefix=ZERO
// RUN: reprise-opt %s -reprise-make-schedule -reprise-verify-schedule | FileCheck %s -check-prefix=ONE
// RUN: reprise-opt %s -reprise-verify-schedule | FileCheck %s -check-prefix=NOTHING

module {}

// The first stage has both micro-batches at one time, the last one of them. A
// micro-batch keeps its slots, and the next one takes others.
//
// CHECK:      pipe.schedule "1f1b" virtual_stages 1 micro_batches 2 {
// CHECK-NEXT:   pipe.group "ends" stages [0, 1]
// CHECK-NEXT:   pipe.group "all" stages [0, 1]
// CHECK-NEXT:   pipe.stage 0 slots [2] gradient_slots 2 {
// CHECK-NEXT:     pipe.forward chunk 0 micro_batch 0 slot 0
// CHECK-NEXT:     pipe.send activation chunk 0 micro_batch 0 slot 0 to 1 bytes 96
// CHECK-NEXT:     pipe.forward chunk 0 micro_batch 1 slot 1
// CHECK-NEXT:     pipe.send activation chunk 0 micro_batch 1 slot 1 to 1 bytes 96
// CHECK-NEXT:     pipe.receive gradient chunk 0 micro_batch 0 slot 0 from 1 bytes 96
// CHECK-NEXT:     pipe.backward chunk 0 micro_batch 0 slot 0 gradient_slot 0
// CHECK-NEXT:     pipe.receive gradient chunk 0 micro_batch 1 slot 1 from 1 bytes 96
// CHECK-NEXT:     pipe.backward chunk 0 micro_batch 1 slot 1 gradient_slot 1
// CHECK-NEXT:     pipe.reduce over "ends" bytes 64
// CHECK-NEXT:     pipe.reduce over "all" bytes 8
// CHECK-NEXT:     pipe.update
// CHECK-NEXT:   }
// CHECK-NEXT:   pipe.stage 1 slots [1] gradient_slots 2 {
// CHECK-NEXT:     pipe.receive activation chunk 1 micro_batch 0 slot 0 from 0 bytes 96
// CHECK-NEXT:     pipe.forward chunk 1 micro_batch 0 slot 0
// CHECK-NEXT:     pipe.backward chunk 1 micro_batch 0 slot 0 gradient_slot 0
// CHECK-NEXT:     pipe.send gradient chunk 1 micro_batch 0 slot 0 to 0 bytes 96
// CHECK-NEXT:     pipe.receive activation chunk 1 micro_batch 1 slot 0 from 0 bytes 96
// CHECK:          pipe.send gradient chunk 1 micro_batch 1 slot 1 to 0 bytes 96
// CHECK-NEXT:     pipe.reduce over "ends" bytes 64
// CHECK-NEXT:     pipe.reduce over "all" bytes 8
// CHECK-NEXT:     pipe.update

// GPIPE:     pipe.stage 1 slots [2]
// GPIPE:       pipe.forward chunk 1 micro_batch 0
// GPIPE:       pipe.forward chunk 1 micro_batch 1
// GPIPE:       pipe.backward chunk 1 micro_batch 0
// GPIPE:       pipe.backward chunk 1 micro_batch 1

// Four micro-batches go through a chunk before the next begins: more gradients
// wait for stage 0 than there are stages.
//
// GROUPS:     pipe.schedule "interleaved" virtual_stages 2 micro_batches 4 in_groups_of 4 {
// GROUPS:       pipe.stage 0 slots [4, 3] gradient_slots 3 {
// GROUPS:         pipe.receive activation chunk 2 micro_batch 0 slot 0 from 1
// GROUPS:       pipe.stage 1
// GROUPS:         pipe.send activation chunk 1 micro_batch 0 slot 0 to 0
// GROUPS:         pipe.send gradient chunk 3 micro_batch 0 slot 0 to 0

// The last stage is one micro-batch late with the gradients of weights.
//
// ZERO:       pipe.stage 1 slots [2] gradient_slots 2 {
// ZERO:         pipe.backward chunk 1 micro_batch 0
// ZERO:         pipe.forward chunk 1 micro_batch 1
// ZERO:         pipe.backward chunk 1 micro_batch 1
// ZERO:         pipe.backward_weight chunk 1 micro_batch 0
// ZERO:         pipe.forward chunk 1 micro_batch 2

// ONE:        pipe.schedule "1f1b" virtual_stages 1 micro_batches 1 {
// ONE-NEXT:     pipe.stage 0 slots [1] gradient_slots 0 {
// ONE-NEXT:       pipe.forward chunk 0 micro_batch 0 slot 0
// ONE-NEXT:       pipe.backward chunk 0 micro_batch 0 slot 0
// ONE-NEXT:       pipe.update

// NOTHING-NOT: pipe.
