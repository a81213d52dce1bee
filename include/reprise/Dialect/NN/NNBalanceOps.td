//===- NNBalanceOps.td - Balance of experts over a step ----*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_NNBALANCEOPS
#define REPRISE_DIALECT_NN_NNBALANCEOPS

include "reprise/Dialect/NN/NNBase.td"

def NN_RowSharesOp : NN_PureOp<"row_shares", [
    NN_NeverReplayed, AllTypesMatch<["rows", "out"]> /* C1 */]> {
  let summary = "Which share of all rows each expert has";
  let description = [{
    `out[e] = rows[e] / max(sum over i of rows[i], 1)`. The rows are counted and have no gradient.

    In `@forward` the rows can be those of a micro-batch, and be returned as a measure: `nn.so_far`
    names it. `reprise-differentiate` puts the measure's sum as far as the step has come in their place:
    over the ranks along `dp`, and over all micro-batches up to this one. That sum grows with the next
    micro-batch, so shares are made once.

    * (C1) `rows` and `out` are f32 `[E]`.

    Examples:

    ```mlir
    %s = nn.row_shares %n {nn.so_far = "global3"} : tensor<4xf32>
    %t = nn.row_shares %sum : tensor<4xf32>
    ```

    Source: Qiu et al., Demons in the Detail, arXiv:2501.11873, section 3.
  }];
  let arguments = (ins NN_F32Tensor:$rows);
  let results = (outs NN_F32Tensor:$out);
  let assemblyFormat = "$rows attr-dict `:` type($rows)";
}

//===----------------------------------------------------------------------===//
// Of all layers together
//===----------------------------------------------------------------------===//

def NN_RowLogSumExpOp : NN_PureOp<"row_logsumexp"> {
  let summary = "Logarithm of the sum of exponentials of each row";
  let description = [{
    `lse[t] = ln(sum over e of exp(input[t,e]))`. What reads it has its part of the gradient.

    * (C1) `input` is f32 `[..., E]`, `lse` f32 `[...]`.

    Example:

    ```mlir
    %s = nn.row_logsumexp %r : (tensor<2x8x4xf32>) -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins NN_F32Tensor:$input);
  let results = (outs NN_F32Tensor:$lse);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def NN_SumProbabilitiesOp : NN_PureOp<"sum_probabilities", [NN_Vjp]> {
  let summary = "How many tokens each expert may be expected to have";
  let description = [{
    `out[e] = sum over t, in order, of exp(logits[t,e] - lse[t])`, with the `lse` of `logits`
    that nn.row_logsumexp makes: the softmax of `logits`, added up over tokens. The gradient of
    `logits` has the part of `lse`, too.

    * (C1) `logits` is f32 `[..., E]`, `lse` f32 `[...]`, `out` f32 `[E]`.

    Example:

    ```mlir
    %p = nn.sum_probabilities %r, %s : (tensor<2x8x4xf32>, tensor<2x8xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins NN_F32Tensor:$logits, NN_F32Tensor:$lse);
  let results = (outs NN_F32Tensor:$out);
  let assemblyFormat = "$logits `,` $lse attr-dict `:` functional-type(operands, results)";
}

def NN_BalanceLossOp : NN_PureOp<"balance_loss", [NN_Vjp]> {
  let summary = "Large where experts that have many rows are probable";
  let description = [{
    `out = factor * sum over e of rows[e] * sums[e]`. The rows have no gradient.

    * (C1) `rows` and `sums` are f32 `[E]`.
    * (C2) `factor` is finite.

    Example:

    ```mlir
    %l = nn.balance_loss %n, %p by 1.0e-03 : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
    ```

    Source: Fedus et al., Switch Transformers, arXiv:2101.03961, section 2.2.
  }];
  let arguments = (ins NN_F32Tensor:$rows, NN_F32Tensor:$sums, F32Attr:$factor);
  let results = (outs NN_Scalar:$out);
  let assemblyFormat = [{
    $rows `,` $sums `by` $factor attr-dict `:` functional-type(operands, results)
  }];
}

def NN_BalanceLossBackwardOp : NN_PureOp<"balance_loss_backward", [
    AllTypesMatch<["rows", "dsums"]> /* C1 */]> {
  let summary = "Gradient of nn.balance_loss with respect to its sums";
  let description = [{
    `dsums[e] = factor * dout * rows[e]`.

    * (C1) `rows` and `dsums` are f32 `[E]`.
    * (C2) `factor` is finite.

    Example:

    ```mlir
    %dp = nn.balance_loss_backward %n, %dl by 1.0e-03 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins NN_F32Tensor:$rows, NN_Scalar:$dout, F32Attr:$factor);
  let results = (outs NN_F32Tensor:$dsums);
  let assemblyFormat = [{
    $rows `,` $dout `by` $factor attr-dict `:` functional-type(operands, results)
  }];
}

#endif // REPRISE_DIALECT_NN_NNBALANCEOPS
