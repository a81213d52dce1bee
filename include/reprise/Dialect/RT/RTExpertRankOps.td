//===- RTExpertRankOps.td - Rows of experts on their way ---*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_RT_RTEXPERTRANKOPS
#define REPRISE_DIALECT_RT_RTEXPERTRANKOPS

class RT_RowsOp<string mnemonic> : RT_Op<mnemonic, [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let arguments = (ins Variadic<RT_Buffer>:$inputs, Variadic<AnyStaticShapeMemRef>:$outputs,
                       Optional<AnyStaticShapeMemRef>:$workspace, StrAttr:$axis, I64Attr:$ranks,
                       OptionalAttr<I64Attr>:$round, OptionalAttr<I64Attr>:$rows, UnitAttr:$keeps);
  let results = (outs Variadic<AnyStaticShapeTensor>:$results);
  let assemblyFormat = [{
    $inputs (`to` `(` $outputs^ `)`)? (`workspace` `(` $workspace^ `)`)? `over` $axis `ranks` $ranks
    (`round` $round^)? (`rows` $rows^)? (`keeps` $keeps^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def RT_GatherOffsetsOp : RT_RowsOp<"gather_offsets"> {
  let summary = "Which rows all ranks along an axis have for each expert";
  let description = [{
    As `nn.gather_offsets`: the input are a rank's offsets, result or output 0 those of all, 1 its own,
    with `rows` of each round.

    * (C1) All operands are tensors and there are results; or all are buffers and there are outputs.
    * (C2) Types are those of `nn.gather_offsets` for `ranks` ranks.

    Examples:

    ```mlir
    %all_offsets:2 = rt.gather_offsets %o over "ep" ranks 2 : (tensor<5xi32>) -> (tensor<2x5xi32>, tensor<3xi32>)
    rt.gather_offsets %b0 to(%b1, %b2) over "ep" ranks 2
      : (memref<5xi32>, memref<2x5xi32>, memref<3xi32>) -> ()
    ```
  }];
}

def RT_SendRowsOp : RT_RowsOp<"send_rows"> {
  let summary = "Rows go to the ranks of their experts";
  let description = [{
    As `nn.send_rows`, whose operands are the inputs. On GPUs the host knows no offsets: rows go in
    slots of one size, and there is a workspace for those of all ranks.

    * (C1) All operands are tensors and there are results; or all are buffers and there are outputs.
    * (C2) Types are those of `nn.send_rows` for `ranks` ranks.
    * (C3) On buffers of a GPU, whose module has `rt.gemm_workspace`, the workspace has that room.

    Example:

    ```mlir
    %there = rt.send_rows %rows, %all over "ep" ranks 2 : (tensor<32x24xf32>, tensor<2x5xi32>) -> tensor<64x24xf32>
    ```
  }];
}

def RT_ReturnRowsOp : RT_RowsOp<"return_rows"> {
  let summary = "Rows come back from the ranks of their experts";
  let description = [{
    As `nn.return_rows`, whose operands are the inputs. On GPUs there is a workspace, for the slots
    of all ranks twice: what is sent from, and what is received into.

    With `keeps`, of one round after others: rows that are not of this round are those of a third
    input, in whose bytes the result or output is made.

    * (C1) All operands are tensors and there are results; or all are buffers and there are outputs.
    * (C2) Types are those of `nn.return_rows` for `ranks` ranks.
    * (C3) On buffers of a GPU, whose module has `rt.gemm_workspace`, the workspace has that room.
    * (C4) `keeps` stands with `round`; the third input, which is there with it alone, has the type of
      the result or output.

    Examples:

    ```mlir
    %home = rt.return_rows %rows, %all over "ep" ranks 2 : (tensor<64x24xf32>, tensor<2x5xi32>) -> tensor<32x24xf32>
    %more = rt.return_rows %some, %all, %home over "ep" ranks 2 round 1 rows 8 keeps
      : (tensor<16x24xf32>, tensor<2x5xi32>, tensor<32x24xf32>) -> tensor<32x24xf32>
    ```
  }];
}

#endif // REPRISE_DIALECT_RT_RTEXPERTRANKOPS
