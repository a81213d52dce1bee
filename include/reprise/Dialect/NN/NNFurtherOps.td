//===- NNFurtherOps.td - Prediction of further tokens ------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_NNFURTHEROPS
#define REPRISE_DIALECT_NN_NNFURTHEROPS

include "reprise/Dialect/NN/NNBase.td"

// A layer that predicts a token behind the next reads and predicts tokens of
// later positions. A text has these for all of its positions but the last.

def NN_CropPositionsOp : NN_PureOp<"crop_positions", [
    NN_Vjp, AllElementTypesMatch<["input", "out"]> /* C1 */]> {
  let summary = "Some neighbouring positions of each row of the batch";
  let description = [{
    `out[b,t,...] = input[b,from+t,...]`. Its gradient is `nn.pad_positions`, with zeros for the
    positions that are left out.

    * (C1) `out` has the element type of `input`.
    * (C2) `input` is `[B, T, C]` and `out` `[B, U, C]`, or `[B, T]` and `[B, U]`.
    * (C3) `from` is at least 0, and `from + U` at most `T`.

    Example:

    ```mlir
    %further = nn.crop_positions %targets from 1 : (tensor<2x8xi32>) -> tensor<2x7xi32>
    ```
  }];
  let arguments = (ins AnyTypeOf<[NN_Tensor, NN_Ids]>:$input, I64Attr:$from);
  let results = (outs AnyTypeOf<[NN_Tensor, NN_Ids]>:$out);
  let assemblyFormat = "$input `from` $from attr-dict `:` functional-type(operands, results)";
}

def NN_PadPositionsOp : NN_PureOp<"pad_positions", [
    NN_Vjp, AllElementTypesMatch<["input", "out"]> /* C1 */]> {
  let summary = "Further positions of each row of the batch, which are zero";
  let description = [{
    `out[b,from+t,:] = input[b,t,:]` for `t < U`, and zero at other positions. Its gradient is
    `nn.crop_positions`.

    * (C1) `out` has the element type of `input`.
    * (C2) `input` is `[B, U, C]` and `out` `[B, T, C]`.
    * (C3) `from` is at least 0, and `from + U` at most `T`.

    Example:

    ```mlir
    %dx = nn.pad_positions %dy from 0 : (tensor<2x7x24xf32>) -> tensor<2x8x24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, I64Attr:$from);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = "$input `from` $from attr-dict `:` functional-type(operands, results)";
}

def NN_TrainingTermOp
    : NN_PureOp<"training_term", [NN_Vjp, NN_Pointwise, SameOperandsAndResultType]> {
  let summary = "A loss, and a term that only training has";
  let description = [{
    `out = loss + factor * term`; where nothing is trained, `loss`.

    Example:

    ```mlir
    %sum = nn.training_term %loss, %term by 1.0e-01 : tensor<f32>
    ```
  }];
  let arguments = (ins NN_Scalar:$loss, NN_Scalar:$term, F32Attr:$factor);
  let results = (outs NN_Scalar:$out);
  let assemblyFormat = "$loss `,` $term `by` $factor attr-dict `:` type($loss)";
  let hasVerifier = 0;
}

#endif // REPRISE_DIALECT_NN_NNFURTHEROPS
