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

#endif // REPRISE_DIALECT_NN_NNBALANCEOPS
