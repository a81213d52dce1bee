//===- Passes.td - Passes that make stages of a model ------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_STAGES_PASSES
#define REPRISE_STAGES_PASSES

include "mlir/Pass/PassBase.td"

def CutChunks : Pass<"reprise-cut-chunks", "::mlir::ModuleOp"> {
  let summary = "Make a module of each chunk of the model";
  let description = [{
    Cuts `@forward` where layers end. In its place there is a module for each chunk, `@chunk0`,
    `@chunk1`, …, with the attributes of the whole and a `@forward` of its own. That has the ops of
    the chunk and the arguments that these read. It returns what crosses to the next chunk, each
    `nn.output = "border"`, in the order in which it is read first; these are the last arguments there,
    `nn.input = "border"`. The last chunk returns the loss. A parameter that two chunks read is an
    argument of both, with the same name, and what nothing reads is one of the first. What depends on
    no parameter that is trained has `nn.untrained`: its gradient is not asked for.

    Ops of a layer, by `nn.scope`, are in the chunk of the layer. Of the others, those behind a
    layer, or that read targets, are in the last chunk, and those that read other samples in the
    first. Those of the module `loss` are where the latest that they read is: terms of the loss and
    counts (`nn.measure`) are results of the chunk of their layer. What is made of parameters alone,
    each chunk that reads it makes itself.

    `layers` are those of each chunk, in order. `layout` says the same as Megatron's
    `pipeline_model_parallel_layout` does: `Et|(tt|)*2tL`, with `E` for the embedding, `t` for a
    layer, `m` in front of `L` for one that predicts further tokens, `L` for the loss. Without both,
    they are those of `nn.chunk_layers` on the module, for the stages of
    `nn.mesh`, or sizes differ by one at most. One chunk is no cut.

    `@evaluate` and `@sample`, if they are there, are cut in the same way.

    Refused: a border that nothing crosses, or integers, a model without a parameter to train, other
    functions beside these.

    ```mlir
    // with stages=2
    func.func @forward(%a: tensor<2x8xf32> {nn.parameter = #nn.parameter<name = "a", init = zeros>},
                       %b: tensor<2x8xf32> {nn.parameter = #nn.parameter<name = "b", init = zeros>}) -> tensor<f32> {
      %y = nn.add %a, %a {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "y">} : tensor<2x8xf32>
      %z = nn.add %y, %b {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "z">} : tensor<2x8xf32>
      %loss = nn.mean %z : (tensor<2x8xf32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
    // ==>
    //   module @chunk0
    //     @forward(%a) -> (tensor<2x8xf32> {nn.output = "border"}): %y
    //   module @chunk1
    //     @forward(%b, %y: tensor<2x8xf32> {nn.input = "border"}) -> tensor<f32>: %z, %loss
    ```
  }];
  let options = [
    Option<"stages", "stages", "int64_t", /*default=*/"1", "Stages of the pipeline">,
    Option<"virtualStages", "virtual-stages", "int64_t", /*default=*/"1", "Chunks of each stage">,
    ListOption<"layers", "layers", "int64_t", "Layers of each chunk">,
    Option<"layout", "layout", "std::string", /*default=*/"", "The same in Megatron's words">];
  let dependentDialects = ["::reprise::nn::NNDialect"];
}

def MakeSchedule : Pass<"reprise-make-schedule", "::mlir::ModuleOp"> {
  let summary = "Write the table of a pipeline's schedule";
  let description = [{
    Appends a `pipe.schedule` to the module. Of a module with `nn.chunk_layers` the options are those of
    its chunks, of `nn.mesh` and of `nn.schedule`. Everything is received right before it is read, and
    sent as soon as it is there. Gradients are added in ascending micro-batches. Behind all tasks
    the first and the last stage sum the gradient of the table that both have, if there is one, and
    all stages what the norm needs.

    | schedule | virtual stages | what a stage does |
    |---|---|---|
    | `gpipe` | 1 | all forward tasks, then all backward tasks |
    | `1f1b` | 1 | forward tasks for the stages behind it, then forward and backward in turn |
    | `interleaved` | any | the same, with groups of micro-batches going through all of its chunks |
    | `zb-h1` | 1 | as 1F1B, with the gradients of weights in its gaps |

    Refused: a module that has a schedule; virtual stages that the schedule has no place for;
    groups of less micro-batches than there are stages, or of more than a step has, or whose rest is
    less than the stages.

    ```mlir
    // with schedule=1f1b stages=2 micro-batches=1 border-bytes=96
    module {}
    // ==>
    //   pipe.schedule "1f1b" virtual_stages 1 micro_batches 1 {
    //     pipe.group "all" stages [0, 1]
    //     pipe.stage 0 slots [1] gradient_slots 1 {
    //       pipe.forward chunk 0 micro_batch 0 slot 0
    //       pipe.send activation chunk 0 micro_batch 0 slot 0 to 1 bytes 96
    //       …
    ```
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", /*default=*/"\"1f1b\"",
           "gpipe, 1f1b, interleaved or zb-h1">,
    Option<"stages", "stages", "int64_t", /*default=*/"1", "Stages of the pipeline">,
    Option<"virtualStages", "virtual-stages", "int64_t", /*default=*/"1", "Chunks of each stage">,
    Option<"microBatches", "micro-batches", "int64_t", /*default=*/"1", "Micro-batches of a step">,
    Option<"microBatchGroup", "micro-batch-group", "int64_t", /*default=*/"0",
           "Micro-batches that go through all chunks of a stage before others begin; 0: as many as stages">,
    Option<"borderBytes", "border-bytes", "int64_t", /*default=*/"1",
           "Bytes of what crosses a border between chunks">,
    Option<"tiedBytes", "tied-bytes", "int64_t", /*default=*/"0",
           "Bytes of the gradient that the first and the last stage both make; 0: none">];
  let dependentDialects = ["::reprise::pipe::PipeDialect"];
}

def VerifySchedule : Pass<"reprise-verify-schedule", "::mlir::ModuleOp"> {
  let summary = "Prove that the tables of a pipeline's schedule run";
  let description = [{
    Refuses a `pipe.schedule`, by the stage and the entry, unless however fast stages and engines
    are:

    * every chunk goes forward and backward once with each micro-batch, from what the chunks beside
      it have made for that micro-batch, and adds to its gradients in ascending micro-batches;
    * no slot is written while something in it is still read, and a chunk has as many slots as it
      has micro-batches at one time;
    * what is received from another stage is what that sent, in order and in bytes, activations and
      gradients apart;
    * the members of a group do the same things together, in one order;
    * no stage waits forever.

    Changes nothing.

    ```mlir
    pipe.schedule "mine" virtual_stages 1 micro_batches 1 {
      pipe.stage 0 slots [1] gradient_slots 0 {
        pipe.forward chunk 0 micro_batch 0 slot 0
        pipe.backward chunk 0 micro_batch 0 slot 0
        pipe.update
      }
    }
    ```
  }];
}

def UnrollStages : Pass<"reprise-unroll-stages", "::mlir::ModuleOp"> {
  let summary = "Make the step of each stage of a pipeline from its list";
  let description = [{
    In the place of the chunks and of the `pipe.schedule` there is a module for each stage, `@stage0`,
    `@stage1`, …, with a function `@step`. That has the ops of each entry of the stage's list, one
    after another:

    | entry | ops |
    |---|---|
    | `pipe.forward` | `nn.forward`, and those of the chunk's step above `nn.backward` |
    | `pipe.backward` | `nn.backward`, and those below; if the stage has `pipe.backward_weight`, those that the gradient of the input needs |
    | `pipe.backward_weight` | `nn.backward`, and all others below |
    | `pipe.send`, `pipe.receive` | `nn.send`, `nn.receive`, on lane 0 what goes on, on lane 1 what goes back; nothing of a gradient that neither chunk beside the border has |

    Behind the last micro-batch of each of its `nn.reduction_groups` but the last one, `nn.push` puts sums aside.

    With `pipe.only_stages` on the module there are modules for these stages and no other.

    `@evaluate` and `@sample` of a stage have all of its chunks in their order, between `nn.receive` and
    `nn.send`, on lane 0 and on lane 2.

    A step has the inputs of all its micro-batches, each with `nn.micro_batch`. It has the parameters of the
    chunks of the stage, and their sums of gradients, to which one task after another adds. Optimizer,
    norm and sums over stages are left to `reprise-add-optimizer`; for those `nn.sum_stages` is on the
    parameters that the first and the last chunk train.

    A module without chunks and a `pipe.schedule` is left as it is. Refused: a table that
    `reprise-verify-schedule` refuses, or of other stages than `nn.mesh` has, or with other bytes than
    what crosses a border; a second one; chunks that are not there or of other micro-batches; a
    parameter that is trained on two chunks other than the first and the last.

    ```mlir
    // with two chunks, of a step for 1 micro-batch each, and the table of 1F1B
    // ==>
    //   module @stage0 attributes {nn.stage = 0}
    //     func.func @step(%tokens {nn.input = "tokens", nn.micro_batch = 0}, …)
    //       nn.forward
    //       …
    //       nn.send %x to 1 over "pp" lane 0 places 1
    //       %dx = nn.receive from 1 over "pp" lane 1 places 1
    //       nn.backward
    //       …
    ```
  }];
  let dependentDialects = ["::reprise::nn::NNDialect"];
}

#endif // REPRISE_STAGES_PASSES
