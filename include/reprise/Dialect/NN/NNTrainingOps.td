//===- NNTrainingOps.td - Loss, phases, optimizer ----------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_NNTRAININGOPS
#define REPRISE_DIALECT_NN_NNTRAININGOPS

include "reprise/Dialect/NN/NNBase.td"

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

def NN_CrossEntropyOp : NN_PureOp<"cross_entropy", [
    NN_Vjp, AllTypesMatch<["losses", "lse"]> /* C1 */]> {
  let summary = "Cross-entropy of each row's logits with its target";
  let description = [{
    `lse[b,t] = ln(sum over v of exp(logits[b,t,v]))`,
    `losses[b,t] = lse[b,t] - logits[b,t,targets[b,t]]`. Targets must be below `V`.

    With `classes`, the columns from that one on count for nothing: the rows of a table
    were padded, and no target names them.

    * (C1) `losses` has the type of `lse`.
    * (C2) `logits` is `[B, T, V]`, `targets` and `losses` `[B, T]`.
    * (C3) `classes` is from 1 to `V`.

    Example:

    ```mlir
    %losses, %lse = nn.cross_entropy %logits, %targets
      : (tensor<2x8x307xf32>, tensor<2x8xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
    ```
  }];
  let arguments = (ins NN_Tensor:$logits, NN_Ids:$targets, OptionalAttr<I64Attr>:$classes);
  let results = (outs NN_F32Tensor:$losses, NN_F32Tensor:$lse);
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$types, "::mlir::Value":$logits,
                                 "::mlir::Value":$targets), [{
    build($_builder, $_state, types, logits, targets, /*classes=*/::mlir::IntegerAttr());
  }]>];
  let assemblyFormat = [{
    $logits `,` $targets (`classes` $classes^)? attr-dict `:` functional-type(operands, results)
  }];
}

def NN_CrossEntropyBackwardOp : NN_PureOp<"cross_entropy_backward", [
    AllTypesMatch<["logits", "dlogits"]>, AllTypesMatch<["lse", "dlosses"]> /* C1 */]> {
  let summary = "Gradient of nn.cross_entropy";
  let description = [{
    `dlogits[b,t,v] = (exp(logits[b,t,v] - lse[b,t]) - (v = targets[b,t])) * dlosses[b,t]`,
    and zero from `classes` on.

    * (C1) `dlogits` has the type of `logits`, `dlosses` that of `lse`.
    * (C2) `logits` is `[B, T, V]`, `targets` and `lse` `[B, T]`.
    * (C3) `classes` is from 1 to `V`.

    Example:

    ```mlir
    %dlogits = nn.cross_entropy_backward %logits, %targets, %lse, %dlosses
      : (tensor<2x8x307xf32>, tensor<2x8xi32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8x307xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$logits, NN_Ids:$targets, NN_F32Tensor:$lse,
                       NN_F32Tensor:$dlosses, OptionalAttr<I64Attr>:$classes);
  let results = (outs NN_Tensor:$dlogits);
  let assemblyFormat = [{
    $logits `,` $targets `,` $lse `,` $dlosses (`classes` $classes^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_LinearCrossEntropyOp : NN_Op<"linear_cross_entropy", [
    AlwaysSpeculatable, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<CostModel, ["getFlops", "isGemm"]>,
    AllElementTypesMatch<["input", "weight"]> /* C1 */]> {
  let summary = "Output projection, cross-entropy and their gradients, some rows at a time";
  let description = [{
    `nn.cross_entropy` of `logits = input * W` for each row, in chunks of `rows` rows:
    of the logits there is one chunk at a time.

    With `by`, the gradient of every loss, `dlogits` are those of `nn.cross_entropy_backward`,
    and each chunk's gradients are made while it is there: `dinput` as by
    `nn.linear_backward_input`, if that word stands there; and with `sum`, `new_sum = sum + dW`, `dW` as by
    `nn.linear_backward_weight`. (The gradient of the mean of all losses is known before the
    losses are.) All results have the bits of those ops. `gradients` are `dinput`, if asked
    for, and then `new_sum`. `loss_scope` is the scope of the losses; that of
    the projection is the op's own.

    With `over`, ranks along that axis have equal parts of the vocabulary, in order, as of
    `nn.cross_entropy_part`. In each chunk they exchange the log-sum-exp of each row and the
    logit of its target. `dinput` then is the rank's term of a sum.

    * (C1) `input` is `[B, T, K]`, `weight` `[K, V]` (`in_out`) or `[V, K]` (`out_in`), of
      one element type, which the logits have too; `targets` and `losses` are `[B, T]`.
    * (C2) `rows` is a multiple of the block of a GEMM's sums, 256 or in bf16 1024, and
      at least that.
    * (C3) `gradients` are those asked for, of the types of `input` and `sum`, which is f32 of
      the shape of `weight`; without `by`, none can be, and with it, one has to.
    * (C4) `classes`, as in `nn.cross_entropy`, is from 1 to `V`; with `over`, as in
      `nn.cross_entropy_part`, at least 1.
    * (C5) The axis is one of the `nn.mesh` of the module, if that has one.

    Examples:

    ```mlir
    %losses = nn.linear_cross_entropy %x, %w, %targets out_in rows 256
      : (tensor<2x300x24xf32>, tensor<307x24xf32>, tensor<2x300xi32>) -> tensor<2x300xf32>
    %l, %dx, %dw = nn.linear_cross_entropy %x, %w, %targets sum(%gw) by 1.6e-03 dinput out_in rows 256
      : (tensor<2x300x24xf32>, tensor<307x24xf32>, tensor<2x300xi32>, tensor<307x24xf32>)
        -> (tensor<2x300xf32>, tensor<2x300x24xf32>, tensor<307x24xf32>)
    %m = nn.linear_cross_entropy %x, %w, %targets out_in rows 256 over "tp" classes 613
      : (tensor<2x300x24xf32>, tensor<307x24xf32>, tensor<2x300xi32>) -> tensor<2x300xf32>
    ```

    Source: Hsu et al., Liger Kernel, arXiv:2410.10989, section 3.2.
  }];
  let arguments = (ins NN_Tensor:$input, NN_Tensor:$weight, NN_Ids:$targets,
                       Optional<NN_F32Tensor>:$sum, OptionalAttr<F32Attr>:$factor,
                       UnitAttr:$dinput, NN_WeightLayout:$layout, I64Attr:$rows,
                       OptionalAttr<StrAttr>:$axis,
                       OptionalAttr<NN_ScopeAttr>:$loss_scope, OptionalAttr<I64Attr>:$classes);
  let results = (outs NN_F32Tensor:$losses, Variadic<NN_Tensor>:$gradients);
  let assemblyFormat = [{
    $input `,` $weight `,` $targets (`sum` `(` $sum^ `)`)? (`by` $factor^)? (`dinput` $dinput^)?
    $layout `rows` $rows (`over` $axis^)? (`classes` $classes^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Null where they are not asked for.
    ::mlir::Value getInputGradient();
    ::mlir::Value getNewSum();
    /// The sizes of the chunks, in order.
    ::llvm::SmallVector<int64_t> getChunks();
    /// What `rows` is a multiple of, for logits of `element`.
    static int64_t getRowBlock(::mlir::Type element) { return element.isBF16() ? 1024 : 256; }
  }];
}

def NN_MeanOp : NN_PureOp<"mean", [NN_Vjp]> {
  let summary = "Mean of all elements";
  let description = [{
    Example:

    ```mlir
    %loss = nn.mean %losses : (tensor<2x8xf32>) -> tensor<f32>
    ```
  }];
  let arguments = (ins NN_F32Tensor:$input);
  let results = (outs NN_Scalar:$out);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 0;
}

def NN_BroadcastOp : NN_PureOp<"broadcast"> {
  let summary = "A scalar times a constant, in every element";
  let description = [{
    Example:

    ```mlir
    %dlosses = nn.broadcast %dloss by 6.25e-02 : (tensor<f32>) -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins NN_Scalar:$input, F32Attr:$factor);
  let results = (outs NN_F32Tensor:$out);
  let assemblyFormat = "$input `by` $factor attr-dict `:` functional-type(operands, results)";
  let hasCanonicalizeMethod = 1;
  let hasVerifier = 0;
}

def NN_ConstantOp : NN_PureOp<"constant"> {
  let summary = "The same number in every element";
  let description = [{
    Example:

    ```mlir
    %one = nn.constant 1.0 : tensor<f32>
    ```
  }];
  let arguments = (ins F32Attr:$value);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = "$value attr-dict `:` type($out)";
  let hasVerifier = 0;
}

//===----------------------------------------------------------------------===//
// The phases of a step
//===----------------------------------------------------------------------===//

def NN_ForwardOp : NN_Op<"forward"> {
  let summary = "Everything below runs in the forward phase";
  let description = [{
    A step of a stage of a pipeline goes forward and backward again and again. Phases are told apart
    by the markers between them.

    Example:

    ```mlir
    nn.forward
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def NN_BackwardOp : NN_Op<"backward"> {
  let summary = "Everything below runs in the backward phase";
  let description = [{
    Example:

    ```mlir
    nn.backward
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def NN_UpdateOp : NN_Op<"update"> {
  let summary = "Everything below runs once a step";
  let description = [{
    What is above runs for each micro-batch; values that cross the marker are
    those of the last one.

    Example:

    ```mlir
    nn.update
    ```
  }];
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Gradients and the optimizer
//===----------------------------------------------------------------------===//

def NN_AccumulateOp
    : NN_PureOp<"accumulate", [NN_Pointwise, SameOperandsAndResultType]> {
  let summary = "Adds the contribution of a micro-batch to a running sum";
  let description = [{
    `out = sum + term`. The `sum` of the next micro-batch is this `out`: where `sum` is an
    argument of `@step`, the result replaces it in place. The kernel that makes
    `term` may add into the sum directly; then the terms of its own sums are added
    one by one, in their order, instead of their total. Where the step has one micro-batch,
    the first term may be written over the `sum` of a gradient, which is zero.

    Example:

    ```mlir
    %acc = nn.accumulate %sum, %dw : tensor<24x96xf32>
    ```
  }];
  let arguments = (ins NN_F32Tensor:$sum, NN_F32Tensor:$term);
  let results = (outs NN_F32Tensor:$out);
  let assemblyFormat = "$sum `,` $term attr-dict `:` type($sum)";
  let hasVerifier = 0;
}

def NN_PushOp : NN_PureOp<"push", [
    NN_Pointwise, NN_OneOfMany, SameOperandsAndResultType]> {
  let summary = "Puts a running sum aside, and begins another at zero";
  let description = [{
    `pushed = ((sum + older[0]) + older[1]) + …`, and `rest` is zero. Works in place: `rest` replaces
    `sum`, and `pushed` what is at `place`, which is not read.

    Example:

    ```mlir
    %top, %zero = nn.push %sum, %p0 to %p1 : tensor<24x96xf32>
    ```
  }];
  let arguments = (ins NN_F32Tensor:$sum, Variadic<NN_F32Tensor>:$older, NN_F32Tensor:$place);
  let results = (outs NN_F32Tensor:$pushed, NN_F32Tensor:$rest);
  let assemblyFormat = "$sum (`,` $older^)? `to` $place attr-dict `:` type($sum)";
  let hasVerifier = 0;
}

def NN_GlobalNormOp : NN_PureOp<"global_norm"> {
  let summary = "Euclidean norm of all gradients together";
  let description = [{
    The root of the sum, over the gradients in order, of the sum of the squares of each.

    * (C1) There is at least one gradient.

    Example:

    ```mlir
    %norm = nn.global_norm %g0, %g1 : (tensor<24x96xf32>, tensor<96xf32>) -> tensor<f32>
    ```
  }];
  let arguments = (ins Variadic<NN_F32Tensor>:$gradients);
  let results = (outs NN_Scalar:$norm);
  let assemblyFormat = "$gradients attr-dict `:` functional-type(operands, results)";
}

def NN_ClipScaleOp : NN_PureOp<"clip_scale", [AllTypesMatch<["norm", "scale"]>]> {
  let summary = "What to multiply gradients by, so that their norm is bounded";
  let description = [{
    `min(1, max_norm / (norm + 1e-6))`, or 1 without `max_norm`. If `norm` or `loss` is no
    finite number, neither is `scale`: it is NaN, with which `nn.adamw` changes nothing.

    * (C1) `max_norm` is above 0.

    Examples:

    ```mlir
    %scale = nn.clip_scale %norm with %loss max 1.0 : tensor<f32>, tensor<f32>
    %always = nn.clip_scale %norm : tensor<f32>
    ```

    Source: Pascanu et al., arXiv:1211.5063, section 3.2.
  }];
  let arguments = (ins NN_Scalar:$norm, Optional<NN_Scalar>:$loss,
                       OptionalAttr<F32Attr>:$max_norm);
  let results = (outs NN_Scalar:$scale);
  let assemblyFormat = [{
    $norm (`with` $loss^)? (`max` $max_norm^)? attr-dict `:` type($norm) (`,` type($loss)^)?
  }];
}

def NN_AdamWOp : NN_PureOp<"adamw", [NN_OneOfMany,
    AllTypesMatch<["scale", "lr", "bias_correction1", "bias_correction2"]>,
    AllTypesMatch<["parameter", "gradient", "moment1", "moment2", "new_parameter",
                   "new_moment1", "new_moment2"]> /* C1 */]> {
  let summary = "Adam with decoupled weight decay";
  let description = [{
    With `g = gradient * scale`:

    ```
    new_moment1   = beta1 * moment1 + (1 - beta1) * g
    new_moment2   = beta2 * moment2 + (1 - beta2) * g * g
    new_parameter = parameter - lr * weight_decay * parameter
                  - lr * (new_moment1 / c1) / (sqrt(new_moment2 / c2) + eps)
    ```

    where `c1 = 1 - beta1^t`, `c2 = 1 - beta2^t` in step `t`, from 1. `1 - beta` is
    that of the number given and not of its nearest f32, which near 1 is another. Works in
    place, and leaves the gradient's accumulator at zero where the next step adds to it. If `scale` is NaN,
    parameter and moments stay as they are. With the parameter's `working` copy, `new_working`
    is `new_parameter` rounded to bf16, in its place.

    * (C1) `gradient`, moments and results have the type of `parameter`; `working`
      and `new_working`, there together or not at all, have its shape.
    * (C2) `beta1` and `beta2` are in [0, 1).
    * (C3) `eps` is above 0 and finite, `weight_decay` at least 0 and finite.

    Example:

    ```mlir
    %p1, %m1, %v1 = nn.adamw %p, %g, %m, %v, %scale, %lr, %c1, %c2
      beta1 9.0e-01 beta2 9.5e-01 eps 1.0e-08 weight_decay 1.0e-01 : tensor<24x96xf32>, tensor<f32>
    %p2, %m2, %v2, %w2 = nn.adamw %p, %g, %m, %v, %scale, %lr, %c1, %c2 working(%w)
      beta1 9.0e-01 beta2 9.5e-01 eps 1.0e-08 weight_decay 1.0e-01 : tensor<24x96xf32>, tensor<f32>, tensor<24x96xbf16> to tensor<24x96xbf16>
    ```

    Source: Loshchilov and Hutter, arXiv:1711.05101, algorithm 2.
  }];
  let arguments = (ins NN_F32Tensor:$parameter, NN_F32Tensor:$gradient,
                       NN_F32Tensor:$moment1, NN_F32Tensor:$moment2, NN_Scalar:$scale,
                       NN_Scalar:$lr, NN_Scalar:$bias_correction1,
                       NN_Scalar:$bias_correction2, Optional<NN_TensorOf<[BF16]>>:$working,
                       F64Attr:$beta1, F64Attr:$beta2,
                       F64Attr:$eps, F64Attr:$weight_decay);
  let results = (outs NN_F32Tensor:$new_parameter, NN_F32Tensor:$new_moment1,
                      NN_F32Tensor:$new_moment2, Optional<NN_TensorOf<[BF16]>>:$new_working);
  let assemblyFormat = [{
    $parameter `,` $gradient `,` $moment1 `,` $moment2 `,` $scale `,` $lr `,`
    $bias_correction1 `,` $bias_correction2 (`working` `(` $working^ `)`)? `beta1` $beta1
    `beta2` $beta2 `eps` $eps `weight_decay` $weight_decay attr-dict
    `:` type($parameter) `,` type($scale) (`,` type($working)^ `to` type($new_working))?
  }];
}

#endif // REPRISE_DIALECT_NN_NNTRAININGOPS
