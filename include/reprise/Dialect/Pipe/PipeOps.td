//===- PipeOps.td - What the stages of a pipeline run ------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_PIPE_PIPEOPS
#define REPRISE_DIALECT_PIPE_PIPEOPS

include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Pipe_Dialect : Dialect {
  let name = "pipe";
  let cppNamespace = "::reprise::pipe";
  let summary = "Tables of what the stages of a pipeline run";
  let description = [{
    A `pipe.schedule` has a list of entries for each stage. A stage runs its list from the first
    entry to the last; an entry waits for what it needs from others. Chunk `c` of the model is on
    stage `c mod p` of `p`.

    Values that wait are in slots. A slot of a chunk has what a micro-batch has there, from its
    input to the end of its last backward task. The output that is sent on is part of it. A gradient
    slot of a stage has the gradient of a chunk's output before `pipe.backward`, and that of its
    input behind it. `pipe.send` begins to send and does not wait; an entry that writes a slot
    waits until all that is sent from it has been received.

    `reprise-verify-schedule` proves that a table runs.
  }];
}

class Pipe_Op<string mnemonic, list<Trait> traits = []> : Op<Pipe_Dialect, mnemonic, traits>;

def Pipe_Count : ConfinedAttr<I64Attr, [IntMinValue<0>]>;

def Pipe_Payload : I32EnumAttr<"Payload", "What crosses a border between chunks", [
    I32EnumAttrCase<"Activation", 0, "activation">, I32EnumAttrCase<"Gradient", 1, "gradient">]> {
  let cppNamespace = "::reprise::pipe";
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

def Pipe_ScheduleOp : Pipe_Op<"schedule", [NoTerminator, SingleBlock]> {
  let summary = "What all stages do in a step";
  let description = [{
    The name is for people. Each stage has `virtual_stages` chunks, and a step has `micro_batches`.
    `in_groups_of`: so many micro-batches go through the chunks of a stage before others begin.
    Groups come first, then the stages in the order of their numbers.

    Example:

    ```mlir
    pipe.schedule "1f1b" virtual_stages 1 micro_batches 1 {
      pipe.group "all" stages [0, 1]
      pipe.stage 0 slots [1] gradient_slots 1 {
        pipe.forward chunk 0 micro_batch 0 slot 0
        pipe.send activation chunk 0 micro_batch 0 slot 0 to 1 bytes 96
        pipe.receive gradient chunk 0 micro_batch 0 slot 0 from 1 bytes 96
        pipe.backward chunk 0 micro_batch 0 slot 0 gradient_slot 0
        pipe.reduce over "all" bytes 8
        pipe.update
      }
      pipe.stage 1 slots [1] gradient_slots 1 {
        pipe.receive activation chunk 1 micro_batch 0 slot 0 from 0 bytes 96
        pipe.forward chunk 1 micro_batch 0 slot 0
        pipe.backward chunk 1 micro_batch 0 slot 0 gradient_slot 0
        pipe.send gradient chunk 1 micro_batch 0 slot 0 to 0 bytes 96
        pipe.reduce over "all" bytes 8
        pipe.update
      }
    }
    ```
  }];
  let arguments = (ins StrAttr:$name, Pipe_Count:$virtual_stages, Pipe_Count:$micro_batches,
                       OptionalAttr<Pipe_Count>:$micro_batch_group);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $name `virtual_stages` $virtual_stages `micro_batches` $micro_batches
    (`in_groups_of` $micro_batch_group^)? $body attr-dict
  }];
  let hasRegionVerifier = 1;
}

def Pipe_GroupOp : Pipe_Op<"group", [HasParent<"ScheduleOp">]> {
  let summary = "Stages that do something together";
  let description = [{
    The stages ascend.

    Example: `pipe.group "ends" stages [0, 3]`
  }];
  let arguments = (ins StrAttr:$name, DenseI64ArrayAttr:$stages);
  let assemblyFormat = "$name `stages` $stages attr-dict";
}

def Pipe_StageOp : Pipe_Op<"stage", [NoTerminator, SingleBlock, HasParent<"ScheduleOp">]> {
  let summary = "The list of a stage";
  let description = [{
    `slots` has the number of slots for each chunk of the stage.

    Example: `pipe.schedule` has two.
  }];
  let arguments = (ins Pipe_Count:$number, DenseI64ArrayAttr:$slots, Pipe_Count:$gradient_slots);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$number `slots` $slots `gradient_slots` $gradient_slots $body attr-dict";
  let hasRegionVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

class Pipe_Entry<string mnemonic> : Pipe_Op<mnemonic, [HasParent<"StageOp">]>;

class Pipe_Task<string mnemonic> : Pipe_Entry<mnemonic> {
  let arguments = (ins Pipe_Count:$chunk, Pipe_Count:$micro_batch, Pipe_Count:$slot);
  let assemblyFormat = "`chunk` $chunk `micro_batch` $micro_batch `slot` $slot attr-dict";
}

def Pipe_ForwardOp : Pipe_Task<"forward"> {
  let summary = "The forward pass of a micro-batch through a chunk";
  let description = [{
    The first chunk reads the micro-batch, others the input in the slot. What backward tasks need is
    in the slot behind it.

    Example: `pipe.forward chunk 0 micro_batch 3 slot 1`
  }];
}

def Pipe_BackwardOp : Pipe_Entry<"backward"> {
  let summary = "The backward pass of a micro-batch through a chunk";
  let description = [{
    Makes the gradient of the input of the chunk, and adds to the gradients of its weights, unless
    the stage has `pipe.backward_weight` for that. The gradient slot is missing where nothing
    crosses a border.

    Example: `pipe.backward chunk 0 micro_batch 3 slot 1 gradient_slot 0`
  }];
  let arguments = (ins Pipe_Count:$chunk, Pipe_Count:$micro_batch, Pipe_Count:$slot,
                       OptionalAttr<Pipe_Count>:$gradient_slot);
  let assemblyFormat = [{
    `chunk` $chunk `micro_batch` $micro_batch `slot` $slot (`gradient_slot` $gradient_slot^)? attr-dict
  }];
}

def Pipe_BackwardWeightOp : Pipe_Task<"backward_weight"> {
  let summary = "Adds to the gradients of the weights of a chunk";
  let description = [{
    Reads what `pipe.backward` left in the slot, which is free behind it.

    Example: `pipe.backward_weight chunk 0 micro_batch 3 slot 1`
  }];
}

class Pipe_Transfer<string mnemonic, string direction> : Pipe_Entry<mnemonic> {
  let arguments = (ins Pipe_Payload:$payload, Pipe_Count:$chunk, Pipe_Count:$micro_batch,
                       Pipe_Count:$slot, Pipe_Count:$peer, Pipe_Count:$bytes);
  let assemblyFormat = "$payload `chunk` $chunk `micro_batch` $micro_batch `slot` $slot `"
                       # direction # "` $peer `bytes` $bytes attr-dict";
}

def Pipe_SendOp : Pipe_Transfer<"send", "to"> {
  let summary = "Begins to send what a chunk has made to the stage of the chunk beside it";
  let description = [{
    The activation goes to the chunk behind, out of a slot of the chunk. The gradient goes to the
    chunk before, out of a gradient slot of the stage.

    Example: `pipe.send gradient chunk 2 micro_batch 0 slot 1 to 0 bytes 4096`
  }];
}

def Pipe_ReceiveOp : Pipe_Transfer<"receive", "from"> {
  let summary = "Waits for what a chunk needs from the stage of the chunk beside it";
  let description = [{
    The counterpart of `pipe.send`, for the chunk that reads it.

    Example: `pipe.receive activation chunk 2 micro_batch 0 slot 1 from 1 bytes 4096`
  }];
}

class Pipe_Together<string mnemonic> : Pipe_Entry<mnemonic> {
  let arguments = (ins StrAttr:$group, Pipe_Count:$bytes);
  let assemblyFormat = "`over` $group `bytes` $bytes attr-dict";
}

def Pipe_ReduceOp : Pipe_Together<"reduce"> {
  let summary = "A sum over the members of a group";
  let description = [{
    Example: `pipe.reduce over "all" bytes 8`
  }];
}

def Pipe_GatherOp : Pipe_Together<"gather"> {
  let summary = "The parts that the members of a group have become the whole";
  let description = [{
    Example: `pipe.gather over "ends" bytes 4096`
  }];
}

def Pipe_UpdateOp : Pipe_Entry<"update"> {
  let summary = "Norm, clipping and optimizer: the last entry of a stage";
  let description = [{
    Example: `pipe.update`
  }];
  let assemblyFormat = "attr-dict";
}

#endif // REPRISE_DIALECT_PIPE_PIPEOPS
