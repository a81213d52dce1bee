//===- NNModelOps.td - Embeddings, norms, projections ------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_NNMODELOPS
#define REPRISE_DIALECT_NN_NNMODELOPS

include "reprise/Dialect/NN/NNBase.td"

//===----------------------------------------------------------------------===//
// Embeddings
//===----------------------------------------------------------------------===//

def NN_EmbeddingOp : NN_PureOp<"embedding", [NN_Vjp]> {
  let summary = "Rows of a table";
  let description = [{
    `out[b,t,:] = table[ids[b,t],:]`. Ids must be below `V`. Where `out` is bf16
    and `table` f32, rows are rounded: to what they would be in a rounded table.

    * (C1) `out` has the element type of `table`, or is bf16 of one of f32.
    * (C2) `ids` is `[B, T]`, `table` `[V, C]`, `out` `[B, T, C]`.

    Example:

    ```mlir
    %x = nn.embedding %ids, %table : (tensor<2x8xi32>, tensor<307x24xf32>) -> tensor<2x8x24xf32>
    ```
  }];
  let arguments = (ins NN_Ids:$ids, NN_Tensor:$table);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = "$ids `,` $table attr-dict `:` functional-type(operands, results)";
}

def NN_EmbeddingBackwardOp : NN_PureOp<"embedding_backward"> {
  let summary = "Gradient of an embedding table";
  let description = [{
    `dtable[v,:] = sum over the (b,t) with ids[b,t] = v, in row-major order, of
    dout[b,t,:]`; zero for ids that do not occur.

    * (C1) `dtable` is f32, as is the gradient of any parameter.
    * (C2) `ids` is `[B, T]`, `dout` `[B, T, C]`, `dtable` `[V, C]`.

    Example:

    ```mlir
    %dtable = nn.embedding_backward %ids, %dx : (tensor<2x8xi32>, tensor<2x8x24xf32>) -> tensor<307x24xf32>
    ```
  }];
  let arguments = (ins NN_Ids:$ids, NN_Tensor:$dout);
  let results = (outs NN_F32Tensor:$dtable);
  let assemblyFormat = "$ids `,` $dout attr-dict `:` functional-type(operands, results)";
}

def NN_AddPositionsOp : NN_PureOp<"add_positions", [
    NN_Vjp, NN_Rowwise, AllTypesMatch<["input", "out"]>,
    AllElementTypesMatch<["input", "table"]> /* C1 */]> {
  let summary = "Adds a learned embedding of the position";
  let description = [{
    `out[b,t,:] = input[b,t,:] + table[t,:]`.

    * (C1) `out` has the type of `input`, `table` its element type.
    * (C2) `input` is `[B, T, C]`, `table` `[P, C]`.
    * (C3) `T <= P`.

    Example:

    ```mlir
    %y = nn.add_positions %x, %table : (tensor<2x8x24xf32>, tensor<16x24xf32>) -> tensor<2x8x24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, NN_Tensor:$table);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = "$input `,` $table attr-dict `:` functional-type(operands, results)";
}

def NN_PositionsBackwardOp : NN_PureOp<"positions_backward"> {
  let summary = "Gradient of a table of positions";
  let description = [{
    `dtable[t,:] = sum over b, in order, of dout[b,t,:]` for `t < T`, zero for
    the other rows.

    * (C1) `dtable` is f32.
    * (C2) `dout` is `[B, T, C]`, `dtable` `[P, C]`.
    * (C3) `T <= P`.

    Example:

    ```mlir
    %dtable = nn.positions_backward %dy : (tensor<2x8x24xf32>) -> tensor<16x24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$dout);
  let results = (outs NN_F32Tensor:$dtable);
  let assemblyFormat = "$dout attr-dict `:` functional-type(operands, results)";
}

def NN_TakePositionOp : NN_PureOp<"take_position", [
    AllElementTypesMatch<["input", "out"]> /* C1 */]> {
  let summary = "One position of each row of the batch";
  let description = [{
    `out[b,:] = input[b,position[b],:]`. Positions must be below `T`. The op is
    for what only goes forward and has no gradient.

    * (C1) `out` has the element type of `input`.
    * (C2) `input` is `[B, T, C]`, `position` `[B]`, `out` `[B, C]`.

    Example:

    ```mlir
    %last = nn.take_position %x, %position : (tensor<2x8x24xf32>, tensor<2xi32>) -> tensor<2x24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, NN_Ids:$position);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = "$input `,` $position attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Layer normalisation
//===----------------------------------------------------------------------===//

def NN_LayerNormOp : NN_PureOp<"layer_norm", [
    NN_Vjp, NN_Rowwise, AllTypesMatch<["input", "out"]> /* C1 */]> {
  let summary = "Layer normalisation over the last dimension";
  let description = [{
    For every row `x` of `input`, with `C` columns:

    ```
    mean = sum(x) / C
    rstd = 1 / sqrt(sum((x - mean)^2) / C + eps)
    out  = (x - mean) * rstd * gain + bias
    ```

    Backward reads `mean` and `rstd`.

    * (C1) `out` has the type of `input`; all others are f32.
    * (C2) `input` is `[..., C]`, `gain` and `bias` `[C]`, `mean` and `rstd` `[...]`.
    * (C3) `eps` is above 0 and finite.

    Example:

    ```mlir
    %y, %mean, %rstd = nn.layer_norm %x, %gain, %bias eps 1.0e-05
      : (tensor<2x8x24xf32>, tensor<24xf32>, tensor<24xf32>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
    ```

    Source: Ba et al., Layer Normalization, arXiv:1607.06450, section 3.
  }];
  let arguments = (ins NN_Tensor:$input, NN_F32Tensor:$gain, NN_F32Tensor:$bias, F32Attr:$eps);
  let results = (outs NN_Tensor:$out, NN_F32Tensor:$mean, NN_F32Tensor:$rstd);
  let assemblyFormat = [{
    $input `,` $gain `,` $bias `eps` $eps attr-dict `:` functional-type(operands, results)
  }];
}

def NN_LayerNormBackwardOp : NN_PureOp<"layer_norm_backward", [
    NN_Rowwise, AllTypesMatch<["input", "dout", "dinput"]> /* C1 */]> {
  let summary = "Gradient of layer normalisation with respect to its input";
  let description = [{
    With `n = (x - mean) * rstd` and `g = dout * gain`, for every row:

    ```
    dinput = rstd * (g - sum(g) / C - n * sum(g * n) / C)
    ```

    * (C1) `dout` and `dinput` have the type of `input`; all others are f32.
    * (C2) `input` is `[..., C]`, `gain` `[C]`, `mean` and `rstd` `[...]`.

    Example:

    ```mlir
    %dx = nn.layer_norm_backward %x, %gain, %mean, %rstd, %dy
      : (tensor<2x8x24xf32>, tensor<24xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, NN_F32Tensor:$gain, NN_F32Tensor:$mean,
                       NN_F32Tensor:$rstd, NN_Tensor:$dout);
  let results = (outs NN_Tensor:$dinput);
  let assemblyFormat = [{
    $input `,` $gain `,` $mean `,` $rstd `,` $dout attr-dict `:` functional-type(operands, results)
  }];
}

def NN_LayerNormBackwardGainOp : NN_PureOp<"layer_norm_backward_gain", [
    AllTypesMatch<["input", "dout"]> /* C1 */]> {
  let summary = "Gradient of layer normalisation with respect to its gain";
  let description = [{
    `dgain = sum over rows, in order, of dout * (x - mean) * rstd`. (The gradient
    of the bias is `nn.sum_rows` of `dout`.)

    * (C1) `dout` has the type of `input`; all others are f32.
    * (C2) `input` is `[..., C]`, `mean` and `rstd` `[...]`, `dgain` `[C]`.

    Example:

    ```mlir
    %dgain = nn.layer_norm_backward_gain %x, %mean, %rstd, %dy
      : (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8x24xf32>) -> tensor<24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, NN_F32Tensor:$mean, NN_F32Tensor:$rstd,
                       NN_Tensor:$dout);
  let results = (outs NN_F32Tensor:$dgain);
  let assemblyFormat = [{
    $input `,` $mean `,` $rstd `,` $dout attr-dict `:` functional-type(operands, results)
  }];
}

def NN_SumRowsOp : NN_PureOp<"sum_rows"> {
  let summary = "Sum over all dimensions but the last";
  let description = [{
    `out[c] = sum over rows, in order, of input[..., c]`: the gradient of a bias.

    * (C1) `out` is f32.
    * (C2) `input` is `[..., C]`, `out` `[C]`.

    Example:

    ```mlir
    %db = nn.sum_rows %dy : (tensor<2x8x24xf32>) -> tensor<24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_F32Tensor:$out);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// RMS normalisation
//===----------------------------------------------------------------------===//

def NN_RMSNormOp : NN_PureOp<"rms_norm", [
    NN_Vjp, NN_Rowwise, AllTypesMatch<["input", "out"]> /* C1 */]> {
  let summary = "Division by the root of the mean square, over groups of columns";
  let description = [{
    A row of `input` has `H` groups of `D` columns; for each group `x`:

    ```
    rstd = 1 / sqrt(sum(x^2) / D + eps)
    out  = x * rstd * gain
    ```

    With `H = 1` that is the usual norm of a whole row. With more, it is that of
    the heads of queries or keys, which all share one gain. Backward reads `rstd`.

    * (C1) `out` has the type of `input`; all others are f32.
    * (C2) `input` is `[..., H*D]`, `gain` `[D]`; `D` divides the width.
    * (C3) `rstd` is `[...]` if `H = 1`, otherwise `[..., H]`.
    * (C4) `eps` is above 0 and finite.

    Example:

    ```mlir
    %y, %rstd = nn.rms_norm %x, %gain eps 1.0e-06
      : (tensor<2x8x24xf32>, tensor<24xf32>) -> (tensor<2x8x24xf32>, tensor<2x8xf32>)
    %yh, %rstdh = nn.rms_norm %x, %head_gain eps 1.0e-06
      : (tensor<2x8x24xf32>, tensor<8xf32>) -> (tensor<2x8x24xf32>, tensor<2x8x3xf32>)
    ```

    Source: Zhang and Sennrich, Root Mean Square Layer Normalization, arXiv:1910.07467, section 4.
  }];
  let arguments = (ins NN_Tensor:$input, NN_F32Tensor:$gain, F32Attr:$eps);
  let results = (outs NN_Tensor:$out, NN_F32Tensor:$rstd);
  let assemblyFormat = [{
    $input `,` $gain `eps` $eps attr-dict `:` functional-type(operands, results)
  }];
}

def NN_RMSNormBackwardOp : NN_PureOp<"rms_norm_backward", [
    NN_Rowwise, AllTypesMatch<["input", "dout", "dinput"]> /* C1 */]> {
  let summary = "Gradient of nn.rms_norm with respect to its input";
  let description = [{
    With `n = x * rstd` and `g = dout * gain`, for every group of columns:

    ```
    dinput = rstd * (g - n * sum(g * n) / D)
    ```

    * (C1) `dout` and `dinput` have the type of `input`; all others are f32.
    * (C2) `input` is `[..., H*D]`, `gain` `[D]`; `D` divides the width.
    * (C3) `rstd` is `[...]` if `H = 1`, otherwise `[..., H]`.

    Example:

    ```mlir
    %dx = nn.rms_norm_backward %x, %gain, %rstd, %dy
      : (tensor<2x8x24xf32>, tensor<24xf32>, tensor<2x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, NN_F32Tensor:$gain, NN_F32Tensor:$rstd,
                       NN_Tensor:$dout);
  let results = (outs NN_Tensor:$dinput);
  let assemblyFormat = [{
    $input `,` $gain `,` $rstd `,` $dout attr-dict `:` functional-type(operands, results)
  }];
}

def NN_RMSNormBackwardGainOp : NN_PureOp<"rms_norm_backward_gain", [
    AllTypesMatch<["input", "dout"]> /* C1 */]> {
  let summary = "Gradient of nn.rms_norm with respect to its gain";
  let description = [{
    `dgain = sum over rows, and in a row over its groups of columns, in order, of
    dout * x * rstd`.

    * (C1) `dout` has the type of `input`; all others are f32.
    * (C2) `input` is `[..., H*D]`, `dgain` `[D]`; `D` divides the width.
    * (C3) `rstd` is `[...]` if `H = 1`, otherwise `[..., H]`.

    Example:

    ```mlir
    %dgain = nn.rms_norm_backward_gain %x, %rstd, %dy
      : (tensor<2x8x24xf32>, tensor<2x8xf32>, tensor<2x8x24xf32>) -> tensor<24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, NN_F32Tensor:$rstd, NN_Tensor:$dout);
  let results = (outs NN_F32Tensor:$dgain);
  let assemblyFormat = [{
    $input `,` $rstd `,` $dout attr-dict `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Projections
//===----------------------------------------------------------------------===//

def NN_LinearOp : NN_GemmOp<"linear", [
    NN_Vjp, AllElementTypesMatch<["input", "weight", "out"]> /* C1 */]> {
  let summary = "GEMM with a weight, plus a bias";
  let description = [{
    `out[..., n] = sum over k of input[..., k] * W[k, n] + bias[n]`.

    * (C1) `weight`, `bias` and `out` have the element type of `input`.
    * (C2) `input` is `[..., K]`, `weight` `[K, N]` (`in_out`) or `[N, K]`
      (`out_in`), `bias` `[N]`, `out` `[..., N]`.

    Example:

    ```mlir
    %y = nn.linear %x, %w, %b in_out
      : (tensor<2x8x24xf32>, tensor<24x96xf32>, tensor<96xf32>) -> tensor<2x8x96xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, NN_Tensor:$weight, Optional<NN_Tensor>:$bias,
                       NN_WeightLayout:$layout);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = [{
    $input `,` $weight (`,` $bias^)? $layout attr-dict `:` functional-type(operands, results)
  }];
}

def NN_LinearBackwardInputOp : NN_GemmOp<"linear_backward_input", [
    AllElementTypesMatch<["dout", "weight", "dinput"]> /* C1 */]> {
  let summary = "Gradient of nn.linear with respect to its input";
  let description = [{
    `dinput[..., k] = sum over n of dout[..., n] * W[k, n]`.

    * (C1) `weight` and `dinput` have the element type of `dout`.
    * (C2) `dout` is `[..., N]`, `weight` `[K, N]` (`in_out`) or `[N, K]`
      (`out_in`), `dinput` `[..., K]`.

    Example:

    ```mlir
    %dx = nn.linear_backward_input %dy, %w in_out : (tensor<2x8x96xf32>, tensor<24x96xf32>) -> tensor<2x8x24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$dout, NN_Tensor:$weight, NN_WeightLayout:$layout);
  let results = (outs NN_Tensor:$dinput);
  let assemblyFormat = [{
    $dout `,` $weight $layout attr-dict `:` functional-type(operands, results)
  }];
}

def NN_LinearBackwardWeightOp : NN_GemmOp<"linear_backward_weight", [
    AllElementTypesMatch<["input", "dout"]> /* C1 */]> {
  let summary = "Gradient of nn.linear with respect to its weight";
  let description = [{
    `dW[k, n] = sum over rows of input[..., k] * dout[..., n]`.

    * (C1) `dout` has the element type of `input`; `dweight` is f32.
    * (C2) `input` is `[..., K]`, `dout` `[..., N]`, `dweight` `[K, N]`
      (`in_out`) or `[N, K]` (`out_in`).

    Example:

    ```mlir
    %dw = nn.linear_backward_weight %x, %dy in_out : (tensor<2x8x24xf32>, tensor<2x8x96xf32>) -> tensor<24x96xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, NN_Tensor:$dout, NN_WeightLayout:$layout);
  let results = (outs NN_F32Tensor:$dweight);
  let assemblyFormat = [{
    $input `,` $dout $layout attr-dict `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Pointwise
//===----------------------------------------------------------------------===//

def NN_GeluOp : NN_PureOp<"gelu", [NN_Vjp, NN_Pointwise, SameOperandsAndResultType]> {
  let summary = "Gaussian error linear unit";
  let description = [{
    `tanh`: `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`;
    `erf`: `0.5 x (1 + erf(x / sqrt(2)))`.

    Example:

    ```mlir
    %g = nn.gelu %u tanh : tensor<2x8x96xf32>
    ```

    Source: Hendrycks and Gimpel, arXiv:1606.08415, section 2.
  }];
  let arguments = (ins NN_Tensor:$input, NN_GeluForm:$form);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = "$input $form attr-dict `:` type($input)";
  let hasVerifier = 0;
}

def NN_GeluBackwardOp
    : NN_PureOp<"gelu_backward", [NN_Pointwise, SameOperandsAndResultType]> {
  let summary = "Gradient of nn.gelu";
  let description = [{
    `dinput = dout * gelu'(input)`.

    Example:

    ```mlir
    %du = nn.gelu_backward %u, %dg tanh : tensor<2x8x96xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, NN_Tensor:$dout, NN_GeluForm:$form);
  let results = (outs NN_Tensor:$dinput);
  let assemblyFormat = "$input `,` $dout $form attr-dict `:` type($input)";
  let hasVerifier = 0;
}

def NN_SwiGLUOp : NN_PureOp<"swiglu", [NN_Vjp, NN_Pointwise, SameOperandsAndResultType]> {
  let summary = "Gated linear unit with SiLU as its gate";
  let description = [{
    `out = gate * sigmoid(gate) * up`, with `sigmoid(x) = 1 / (1 + exp(-x))`.

    Example:

    ```mlir
    %g = nn.swiglu %gt, %u : tensor<2x8x96xf32>
    ```

    Source: Shazeer, GLU Variants Improve Transformer, arXiv:2002.05202, section 2.
  }];
  let arguments = (ins NN_Tensor:$gate, NN_Tensor:$up);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = "$gate `,` $up attr-dict `:` type($gate)";
  let hasVerifier = 0;
}

def NN_SwiGLUBackwardOp
    : NN_PureOp<"swiglu_backward", [NN_Pointwise, SameOperandsAndResultType]> {
  let summary = "Gradient of nn.swiglu";
  let description = [{
    With `s = sigmoid(gate)`:

    ```
    dgate = dout * up * (s + gate * s * (1 - s))
    dup   = dout * gate * s
    ```

    Example:

    ```mlir
    %dgt, %du = nn.swiglu_backward %gt, %u, %dg : tensor<2x8x96xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$gate, NN_Tensor:$up, NN_Tensor:$dout);
  let results = (outs NN_Tensor:$dgate, NN_Tensor:$dup);
  let assemblyFormat = "$gate `,` $up `,` $dout attr-dict `:` type($gate)";
  let hasVerifier = 0;
}

def NN_AddOp : NN_PureOp<"add", [NN_Vjp, NN_Pointwise, SameOperandsAndResultType]> {
  let summary = "Sum";
  let description = [{
    Example:

    ```mlir
    %z = nn.add %x, %y : tensor<2x8x24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$lhs, NN_Tensor:$rhs);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs)";
  let hasVerifier = 0;
}

def NN_ScaleOp : NN_PureOp<"scale", [NN_Vjp, NN_Pointwise, SameOperandsAndResultType]> {
  let summary = "Product with a constant";
  let description = [{
    Example:

    ```mlir
    %y = nn.scale %x by 2.5e-01 : tensor<2x8x24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, F32Attr:$factor);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = "$input `by` $factor attr-dict `:` type($input)";
  let hasVerifier = 0;
  let hasFolder = 1;
}

def NN_DropoutOp : NN_PureOp<"dropout", [
    NN_Vjp, NN_Pointwise, AllTypesMatch<["input", "out"]> /* C1 */]> {
  let summary = "Sets random elements to zero";
  let description = [{
    Element `e` (row-major) is kept, and divided by `1 - rate`, if the random
    word of (seed, step, micro-batch, `stream`, `e`) is at least `rate * 2^32`;
    otherwise it is zero. The word is Philox4x32-10 with key (seed) and counter
    (e / 4, stream, step, micro-batch), word `e mod 4`, so that a replay, and
    backward, see the same mask without storing it. `stream` is unique to each
    dropout of the model. With `part` the tensor is part of a whole, and `e` the number of the
    element in that: how many ranks have parts changes no mask.

    Its gradient is the same op on the cotangent.

    * (C1) `out` has the type of `input`.
    * (C2) `rate` is in [0, 1).
    * (C3) `stream` is in [0, 2^32): it is a word of the counter.
    * (C4) With a rate, at most 2^34 elements: `e / 4` is a word of the counter. They are those of
      the whole.
    * (C5) `part` is along an axis of the `nn.mesh` of the module, if that has one, with its ranks,
      and along a dimension that there is.

    Examples:

    ```mlir
    %y = nn.dropout %x, %rng rate 1.0e-01 stream 3 : (tensor<2x8x24xf32>, tensor<4xi32>) -> tensor<2x8x24xf32>
    %z = nn.dropout %x, %rng rate 1.0e-01 stream 3 part <axis = "tp", dim = 1, ranks = 2>
      : (tensor<2x8x24xf32>, tensor<4xi32>) -> tensor<2x8x24xf32>
    ```

    Source: Salmon et al., Parallel Random Numbers, SC 2011, section 3.3.
  }];
  let arguments = (ins NN_Tensor:$input, NN_Rng:$rng, F32Attr:$rate, I64Attr:$stream,
                       OptionalAttr<NN_PartAttr>:$part);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = [{
    $input `,` $rng `rate` $rate `stream` $stream (`part` $part^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
}

def NN_CastOp : NN_PureOp<"cast", [NN_Vjp, NN_Pointwise, SameOperandsAndResultShape]> {
  let summary = "Rounds to another element type";
  let description = [{
    To the nearest number, of two as near to the one with an even last bit. A parameter
    that takes part in bf16 is rounded once, to its working copy; a gradient of that copy
    in f32 is the parameter's, unrounded.

    Example:

    ```mlir
    %y = nn.cast %x : (tensor<24xf32>) -> tensor<24xbf16>
    ```
  }];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 0;
  let hasFolder = 1;
}

#endif // REPRISE_DIALECT_NN_NNMODELOPS
