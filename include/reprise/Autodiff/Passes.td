//===- Passes.td - Passes that build the step --------------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_AUTODIFF_PASSES
#define REPRISE_AUTODIFF_PASSES

include "mlir/Pass/PassBase.td"

def DeriveInference : Pass<"reprise-derive-inference", "::mlir::ModuleOp"> {
  let summary = "Copy what validation and sampling need from the forward pass";
  let description = [{
    Puts beside `@forward`, on the same parameters:

    * `@evaluate`, which returns the loss, `nn.output = "eval_loss"`;
    * `@sample`, which takes one text, a batch of 1: the argument with its tokens is
      `nn.input = "sample_tokens"`, one more is `nn.input = "position"`. It returns the logits of
      that position, `nn.output = "logits"`. The head is one `nn.linear` with the value `logits`
      in its scope, on `[B, T, C]`; it projects the row that `nn.take_position` picks and no
      other. Whatever is made of tokens has the texts in its first dimension. Without a head, with
      more than one, or where a pointwise op mixes texts with what is none, there is no `@sample`.

    Each has the ops that its result needs, and the arguments that these read, in
    their order. There is no dropout: `nn.dropout` is left out, and the rate of
    attention is 0. `@forward` stays as it is.

    Needs: `@forward` of one block, without regions, that returns one value; `@evaluate`
    and `@sample` free.

    ```mlir
    func.func @forward(%tokens: tensor<2x4xi32> {nn.input = "tokens"}, %targets: tensor<2x4xi32> {nn.input = "targets"},
                       %rng: tensor<4xi32> {nn.input = "rng"},
                       %w: tensor<7x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<f32> {
      %x = nn.embedding %tokens, %w : (tensor<2x4xi32>, tensor<7x8xf32>) -> tensor<2x4x8xf32>
      %y = nn.dropout %x, %rng rate 1.0e-01 stream 0 : (tensor<2x4x8xf32>, tensor<4xi32>) -> tensor<2x4x8xf32>
      %logits = nn.linear %y, %w out_in {nn.scope = #nn.scope<module = "head", value = "logits">}
        : (tensor<2x4x8xf32>, tensor<7x8xf32>) -> tensor<2x4x7xf32>
      %losses, %lse = nn.cross_entropy %logits, %targets
        : (tensor<2x4x7xf32>, tensor<2x4xi32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
      %loss = nn.mean %losses : (tensor<2x4xf32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
    // ==> @evaluate(%tokens, %targets, %w): %x, %logits of %x, %losses, %loss
    //     @sample(%tokens: tensor<1x4xi32> {nn.input = "sample_tokens"}, %w, %position: tensor<1xi32> {nn.input = "position"})
    //   %x = nn.embedding %tokens, %w : (tensor<1x4xi32>, tensor<7x8xf32>) -> tensor<1x4x8xf32>
    //   %last = nn.take_position %x, %position : (tensor<1x4x8xf32>, tensor<1xi32>) -> tensor<1x8xf32>
    //   %logits = nn.linear %last, %w out_in : (tensor<1x8xf32>, tensor<7x8xf32>) -> tensor<1x7xf32>
    //   return %logits
    ```
  }];
  let dependentDialects = ["::reprise::nn::NNDialect"];
}

def Differentiate : Pass<"reprise-differentiate", "::mlir::ModuleOp"> {
  let summary = "Append the backward pass to the forward pass";
  let description = [{
    Turns `@forward`, which returns the loss of one micro-batch, into `@step`:
    the forward ops, `nn.backward`, the vector-Jacobian product of each op in
    reverse order, and for each parameter that is not frozen an
    `nn.accumulate` onto a new argument with `nn.gradient`. Gradients exist
    exactly where a trainable parameter needs them. `@step` returns the loss, summed
    over the micro-batches with weight `1 / nn.micro_batches`, and the gradients.
    Backward ops carry the location and scope of the op they belong to.

    Contributions to one value are added in the order in which backward reaches
    its uses, from the last to the first.

    `@forward` may be that of a chunk of a model, as `reprise-cut-chunks` makes it. What it passes
    on, `nn.output = "border"`, is returned in the place of the loss, and its gradient is a new
    argument `nn.input = "border_gradient"`. That of its `nn.input = "border"` is returned as
    `nn.output = "border_gradient"`. Beside `nn.untrained` it is not made, and if the chunk has no
    parameter to train either, what it passes on has no gradient.

    Needs: `@forward` of one block, without regions, that returns the loss alone; each
    parameter has a name of its own; ops on the way from a trainable parameter to the loss
    are `Differentiable`. A parameter that does not reach the loss is an error.

    ```mlir
    func.func @forward(%x: tensor<2x8xf32>, %w: tensor<2x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>}) -> tensor<f32>
        attributes {nn.micro_batches = 1 : i64} {
      %y = nn.add %x, %w : tensor<2x8xf32>
      %loss = nn.mean %y : (tensor<2x8xf32>) -> tensor<f32>
      return %loss : tensor<f32>
    }
    // ==> @step(%x, %w, %sum: tensor<f32> {nn.input = "loss_sum"}, %gw: tensor<2x8xf32> {nn.gradient = "w"})
    //   %y = nn.add %x, %w : tensor<2x8xf32>
    //   %loss = nn.mean %y : (tensor<2x8xf32>) -> tensor<f32>
    //   %part = nn.scale %loss by 1.0 : tensor<f32>
    //   %total = nn.accumulate %sum, %part : tensor<f32>
    //   nn.backward
    //   %seed = nn.constant 1.0 : tensor<f32>
    //   %dy = nn.broadcast %seed by 6.25e-02 : (tensor<f32>) -> tensor<2x8xf32>
    //   %gw1 = nn.accumulate %gw, %dy : tensor<2x8xf32>
    //   return %total, %gw1
    ```
  }];
  let dependentDialects = ["::reprise::nn::NNDialect"];
}

def ChunkHead : Pass<"reprise-chunk-head", "::mlir::func::FuncOp"> {
  let summary = "Compute output projection and loss some rows at a time";
  let description = [{
    Makes one `nn.linear_cross_entropy` of an `nn.linear` whose logits only an `nn.cross_entropy`
    and its gradient read: of the logits, the largest value of most models, there is
    then one chunk of rows at a time. It stands where the gradient stood, below `nn.backward`: it
    makes the losses and, chunk by chunk, the gradients of the input and of the weight, which
    it adds to the running sum. What reads the losses comes behind it. Where nothing
    goes backward, it makes the losses alone.

    `rows` is a multiple of 256, of 1024 in bf16, and 0 leaves all as it is. Unless it is given, it is
    `head_chunk_rows` of the module's `nn.train`, and unless that is there, for logits
    of at least 16 MiB, a quarter of the rows, from 1024 to 4096 of them.

    Where ranks have parts of the vocabulary, what `reprise-partition` makes of the loss, and its
    gradient, are such a pair, too: the op has their axis, and ranks meet in each chunk.

    Left alone: a projection with a bias; logits that something else reads; a
    gradient of the losses that is no constant; a gradient of the weight that is not the
    first term of a sum in an argument.

    Needs: after `reprise-differentiate`, canonical. Keeps: all bits.

    ```mlir
    func.func @step(%x: tensor<2x300x8xf32>, %targets: tensor<2x300xi32>, %w: tensor<7x8xf32>, %gw: tensor<7x8xf32>)
        -> (tensor<f32>, tensor<2x300x8xf32>, tensor<7x8xf32>) {
      %logits = nn.linear %x, %w out_in : (tensor<2x300x8xf32>, tensor<7x8xf32>) -> tensor<2x300x7xf32>
      %losses, %lse = nn.cross_entropy %logits, %targets
        : (tensor<2x300x7xf32>, tensor<2x300xi32>) -> (tensor<2x300xf32>, tensor<2x300xf32>)
      %loss = nn.mean %losses : (tensor<2x300xf32>) -> tensor<f32>
      nn.backward
      %dlosses = nn.constant 1.6e-03 : tensor<2x300xf32>
      %dlogits = nn.cross_entropy_backward %logits, %targets, %lse, %dlosses
        : (tensor<2x300x7xf32>, tensor<2x300xi32>, tensor<2x300xf32>, tensor<2x300xf32>) -> tensor<2x300x7xf32>
      %dw = nn.linear_backward_weight %x, %dlogits out_in : (tensor<2x300x8xf32>, tensor<2x300x7xf32>) -> tensor<7x8xf32>
      %gw1 = nn.accumulate %gw, %dw : tensor<7x8xf32>
      %dx = nn.linear_backward_input %dlogits, %w out_in : (tensor<2x300x7xf32>, tensor<7x8xf32>) -> tensor<2x300x8xf32>
      return %loss, %dx, %gw1 : tensor<f32>, tensor<2x300x8xf32>, tensor<7x8xf32>
    }
    // ==> with rows=256
    //   nn.backward
    //   %losses, %dx, %gw1 = nn.linear_cross_entropy %x, %w, %targets sum(%gw) by 1.6e-03 dinput out_in rows 256 : …
    //   %loss = nn.mean %losses : (tensor<2x300xf32>) -> tensor<f32>
    ```

    Remarks, category `Autodiff`: `Chunked`, with `rows`, `chunks`, and the `bytes` of the
    logits of one chunk and of the `whole`.
  }];
  let options = [
    Option<"rows", "rows", "int64_t", /*default=*/"-1",
           "Rows of a chunk, a multiple of 256, of 1024 in bf16; 0: do nothing; -1: as the model says">];
  let dependentDialects = ["::reprise::nn::NNDialect"];
}

def GroupGradients : Pass<"reprise-group-gradients", "::mlir::ModuleOp"> {
  let summary = "Add up the gradients of groups of micro-batches by a tree";
  let description = [{
    Where `@step` says `nn.reduction_groups = G` above 1, makes the functions `@push_level_0` to
    `@push_level_L` for the `L + 1` levels of partial sums that `G` groups need, the next whole number from the binary
    logarithm of `G` on, and appends `nn.update` to `@step`, and below it the sum of what still waits then.
    Partial sums become arguments. What is summed are the gradients and the loss that the
    step returns.

    Needs: no `nn.update` yet.

    ```mlir
    func.func @step(%gw: tensor<8xf32> {nn.gradient = "w"}) -> (tensor<8xf32> {nn.gradient = "w"})
        attributes {nn.micro_batches = 4 : i64, nn.reduction_groups = 2 : i64} {
      nn.backward
      %dw = nn.constant 5.0e-01 : tensor<8xf32>
      %gw1 = nn.accumulate %gw, %dw : tensor<8xf32>
      return %gw1 : tensor<8xf32>
    }
    // ==>
    // func.func @step(%gw: …, %p: tensor<8xf32> {nn.partial = #nn.partial<name = "w", level = 0>}) … {
    //   …
    //   nn.update
    //   %gw2 = nn.accumulate %gw1, %p : tensor<8xf32>
    //   return %gw2 : tensor<8xf32>
    // }
    // func.func @push_level_0(%gw: …, %p: …) … {
    //   %pushed, %rest = nn.push %gw to %p : tensor<8xf32>
    //   return %pushed, %rest : tensor<8xf32>, tensor<8xf32>
    // }
    ```
  }];
  let dependentDialects = ["::reprise::nn::NNDialect"];
}

def AddOptimizer : Pass<"reprise-add-optimizer", "::mlir::ModuleOp"> {
  let summary = "Append clipping and AdamW to the step";
  let description = [{
    Appends to `@step`: `nn.update` unless it is there, the norm of all gradients, clipping, and
    `nn.adamw` for each parameter with a gradient; the moments, the learning rate and
    the bias corrections become arguments. Hyper-parameters come from the
    module's `nn.train`: `adam_beta1`, `adam_beta2`, `adam_eps`, `weight_decay`
    and `clip_grad` (0: gradients are not clipped). Where the norm, or the loss that the step
    returns, is no finite number, the update changes nothing. Weight decay applies to
    parameters with `decay`.
    The norm becomes the result `nn.output = "grad_norm"`.

    An `nn.cast` of a parameter to bf16, in `@step`, `@evaluate` and `@sample`, becomes an
    argument `nn.working = "NAME"`, which the parameter's `nn.adamw` rounds anew. Of a frozen
    parameter nothing does. An `nn.embedding` reads the parameter itself, and rounds its rows.

    Ranks with samples of their own sum the loss and gradients first, by `nn.all_reduce`. Where
    `nn.reduction_groups` on `@step` is a sum of several powers of two, a rank has a term for each, what was summed
    of so many groups, a run: the op has the terms of all runs, and `nn.reduction_groups` too, as it adds them up
    by the tree over the groups of all ranks.

    With `nn.distributed_optimizer` on the module and ranks along `dp`, each has a share of the moments:
    `nn.reduce_shares` sums its shares of the gradients, `nn.shares_norm` makes the norm, `nn.adamw` updates the
    share of a parameter, and `nn.gather_shares` gives it to the others, as it does with that of the working copy.
    A parameter that is read through its working copy alone is a share itself, and so is its argument.

    Needs: a gradient among the results of `@step` for every parameter that is not
    frozen, and one such parameter at least; no `nn.adamw` yet.

    ```mlir
    module attributes {nn.train = {adam_beta1 = 9.0e-01, adam_beta2 = 9.5e-01, adam_eps = 1.0e-08, weight_decay = 1.0e-01, clip_grad = 1.0}} {
      func.func @step(%w: tensor<2x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros, decay = true>},
                      %gw: tensor<2x8xf32> {nn.gradient = "w"}) -> (tensor<2x8xf32> {nn.gradient = "w"}) {
        nn.backward
        %dw = nn.constant 5.0e-01 : tensor<2x8xf32>
        %gw1 = nn.accumulate %gw, %dw : tensor<2x8xf32>
        return %gw1 : tensor<2x8xf32>
      }
    }
    // ==>
    //   nn.update
    //   %norm = nn.global_norm %gw1 : (tensor<2x8xf32>) -> tensor<f32>
    //   %scale = nn.clip_scale %norm max 1.0 : tensor<f32>
    //   %w1, %m1, %v1 = nn.adamw %w, %gw1, %m, %v, %scale, %lr, %c1, %c2 beta1 9.0e-01 … weight_decay 1.0e-01 : …
    //   return %gw1, %norm, %w1, %m1, %v1
    ```
  }];
  let dependentDialects = ["::reprise::nn::NNDialect"];
}

#endif // REPRISE_AUTODIFF_PASSES
