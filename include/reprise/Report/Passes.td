//===- Passes.td - Passes that print reports ---------------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_REPORT_PASSES
#define REPRISE_REPORT_PASSES

include "mlir/Pass/PassBase.td"

def RematExplain : Pass<"reprise-remat-explain", "::mlir::func::FuncOp"> {
  let summary = "Print why each value is kept or recomputed";
  let description = [{
    Prints a table for each class of equal layers to the standard output: every
    value that backward reads, its shape and bytes, what is decided, by which
    rule, what its replay costs in FLOPs and estimated time, which op reads it and
    which option would decide otherwise; then what each label frees, and which of
    them buy nothing. Before or after `reprise-remat-apply`: the same
    decisions give the same text.

    What it takes at the peak is known when memory is planned: `reprisec
    --explain` has a column for that, and prices of other plans.

    Needs: at most one `nn.backward`; without any there is nothing to print. Changes nothing.

    ```mlir
    %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "u">} : tensor<8xf32>
    nn.backward
    %d = nn.gelu_backward %u, %u tanh : tensor<8xf32>
    // prints:
    //   layer 3: keeps 32 B
    //     value  shape  bytes  decision  rule  replay  time
    //       reason                  flips
    //     u      8xf32   32 B  save      -          -     -
    //       gelu_backward reads it  with mlp
    ```

    Remarks, category `Report`: `Saved` and `Recomputed`, one for each value of each
    layer, with the columns of the tables as arguments (times in microseconds);
    `Label`, or `LabelBuysNothing`, for each label, with `bytes`, `flops`,
    `microseconds` and `verdict`.
  }];
}

#endif // REPRISE_REPORT_PASSES
