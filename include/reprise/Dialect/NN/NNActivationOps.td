//===- NNActivationOps.td - Functions of one element -------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_NNACTIVATIONOPS
#define REPRISE_DIALECT_NN_NNACTIVATIONOPS

include "reprise/Dialect/NN/NNBase.td"

def NN_SquaredReluOp
    : NN_PureOp<"squared_relu", [NN_Vjp, NN_Pointwise, SameOperandsAndResultType]> {
  let summary = "Rectified linear unit, squared";
  let description = [{
    `out = max(input, 0)^2`; what is not a number stays so.

    Example:

    ```mlir
    %g = nn.squared_relu %u : tensor<2x8x96xf32>
    ```

    Source: So et al., Primer: Searching for Efficient Transformers for Language Modeling,
    arXiv:2109.08668.
  }];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = "$input attr-dict `:` type($input)";
  let hasVerifier = 0;
}

def NN_SquaredReluBackwardOp
    : NN_PureOp<"squared_relu_backward", [NN_Pointwise, SameOperandsAndResultType]> {
  let summary = "Gradient of nn.squared_relu";
  let description = [{
    `dinput = dout * 2 max(input, 0)`.

    Example:

    ```mlir
    %du = nn.squared_relu_backward %u, %dg : tensor<2x8x96xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, NN_Tensor:$dout);
  let results = (outs NN_Tensor:$dinput);
  let assemblyFormat = "$input `,` $dout attr-dict `:` type($input)";
  let hasVerifier = 0;
}

#endif // REPRISE_DIALECT_NN_NNACTIVATIONOPS
