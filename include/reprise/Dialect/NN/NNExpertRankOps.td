//===- NNExpertRankOps.td - Experts on several ranks -------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_NNEXPERTRANKOPS
#define REPRISE_DIALECT_NN_NNEXPERTRANKOPS

include "reprise/Dialect/NN/NNCollectiveOps.td"

// Along an axis of `n` ranks, each has `E/n` of the `E` experts: the one with the
// number `r` those from `r*E/n` on. Rows that a rank has of its tokens, sorted by
// expert, are at home there. They go to the ranks of their experts, and come back:
// all at once, or in `K` rounds, in which an expert has at most `rows` rows. Round
// `k` has those of an expert, in the order in which it has them of all ranks,
// from number `k*rows` on.

def NN_GatherOffsetsOp : NN_CollectiveOp<"gather_offsets", [NN_NeverReplayed]> {
  let summary = "Which rows all ranks along an axis have for each expert";
  let description = [{
    `all[s,:]` are the `offsets` of the rank with the number `s`, as of `nn.sort_rows`. `own` are the
    offsets of the rows that the experts of a rank get from all ranks: with its number `r`,
    `own[e] = sum over s of all[s, r*E/n + e] - all[s, r*E/n]`. As the sort itself, it is done once.

    With `rows`, `own[k,:]` are the offsets of the rows of round `k`.

    * (C1) `offsets` is `[E + 1]`, `all` `[n, E + 1]`, `own` `[E/n + 1]`, and `n` divides `E`.
    * (C2) `axis` is one of the `nn.mesh` of the module, if that has one, of `n` ranks.
    * (C3) `rows` is at least 1, and `own` `[K, E/n + 1]` with it.

    Examples:

    ```mlir
    %all, %own = nn.gather_offsets %offsets over "ep" : (tensor<5xi32>) -> (tensor<2x5xi32>, tensor<3xi32>)
    %all8, %rounds = nn.gather_offsets %offsets over "ep" rows 8 : (tensor<5xi32>) -> (tensor<2x5xi32>, tensor<4x3xi32>)
    ```
  }];
  let arguments = (ins NN_Ids:$offsets, StrAttr:$axis, OptionalAttr<I64Attr>:$rows);
  let results = (outs NN_Ids:$all, NN_Ids:$own);
  let assemblyFormat = [{
    $offsets `over` $axis (`rows` $rows^)? attr-dict `:` functional-type(operands, results)
  }];
}

def NN_RoundOffsetsOp : NN_PureOp<"round_offsets", []> {
  let summary = "The offsets of the rows of one round";
  let description = [{
    `out = own[round,:]`, of what `nn.gather_offsets` makes.

    * (C1) `own` is `[K, E/n + 1]`, `out` `[E/n + 1]`, and `round` is below `K`.

    Example:

    ```mlir
    %second = nn.round_offsets %own round 1 : (tensor<4x3xi32>) -> tensor<3xi32>
    ```
  }];
  let arguments = (ins NN_Ids:$own, I64Attr:$round);
  let results = (outs NN_Ids:$out);
  let assemblyFormat = "$own `round` $round attr-dict `:` functional-type(operands, results)";
}

class NN_RowsOp<string mnemonic>
    : NN_CollectiveOp<mnemonic, [NN_Vjp, AllElementTypesMatch<["input", "out"]> /* C1 */]> {
  let arguments = (ins NN_Tensor:$input, NN_Ids:$all, StrAttr:$axis,
                       OptionalAttr<I64Attr>:$round, OptionalAttr<I64Attr>:$rows);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = [{
    $input `,` $all `over` $axis (`round` $round^)? (`rows` $rows^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_SendRowsOp : NN_RowsOp<"send_rows"> {
  let summary = "Rows go to the ranks of their experts";
  let description = [{
    Row `i` of a rank's `input`, at home there, is one of expert `e` where `all[r,e] <= i < all[r,e+1]`, with
    the rank's number `r`. `out` has the rows of a rank's first expert: those of all ranks, in
    their order and in the order in which they were; behind them the rows of its second expert, and so
    on. What is behind the last of them is zero. With `round`, `out` has only the rows of that
    round. The gradient is `nn.return_rows`.

    * (C1) `input` is `[R, ...]`, `out` `[W, ...]` of the same elements and sizes but the first; `all` is
      `[n, E + 1]`.
    * (C2) `axis` is one of the `nn.mesh` of the module, if that has one, of `n` ranks.
    * (C3) A rank has `W` rows for its experts at most; if it gets more, the run ends.
    * (C4) `round` and `rows` stand together; `round` is at least 0, `rows` at least 1.

    Examples:

    ```mlir
    %there = nn.send_rows %x, %all over "ep" : (tensor<32x24xf32>, tensor<2x5xi32>) -> tensor<64x24xf32>
    %some = nn.send_rows %x, %all over "ep" round 1 rows 8 : (tensor<32x24xf32>, tensor<2x5xi32>) -> tensor<16x24xf32>
    ```

    Source: Lepikhin et al., GShard, arXiv:2006.16668, section 3.3 (the exchange of all ranks with all).
  }];
}

def NN_ReturnRowsOp : NN_RowsOp<"return_rows"> {
  let arguments = (ins NN_Tensor:$input, NN_Ids:$all, Optional<NN_Tensor>:$kept, StrAttr:$axis,
                       OptionalAttr<I64Attr>:$round, OptionalAttr<I64Attr>:$rows);
  let assemblyFormat = [{
    $input `,` $all (`,` $kept^)? `over` $axis (`round` $round^)? (`rows` $rows^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let summary = "Rows come back from the ranks of their experts";
  let description = [{
    `out` has each row of a rank's tokens where `nn.send_rows` took it from, and zeros behind
    them; `input` has it where that put it. With `round` these are the rows of that round, and
    other rows are zero, or those of `kept`, which has zeros in the rows of this round. The
    gradient is `nn.send_rows`.

    * (C1) `input` is `[W, ...]`, `out` `[R, ...]` of the same elements and sizes but the first; `all` is
      `[n, E + 1]`.
    * (C2) `axis` is one of the `nn.mesh` of the module, if that has one, of `n` ranks.
    * (C3) `round` and `rows` stand together; `round` is at least 0, `rows` at least 1. `kept`
      stands with them only and has the type of `out`.

    Example:

    ```mlir
    %home = nn.return_rows %y, %all over "ep" : (tensor<64x24xf32>, tensor<2x5xi32>) -> tensor<32x24xf32>
    ```
  }];
}

#endif // REPRISE_DIALECT_NN_NNEXPERTRANKOPS
