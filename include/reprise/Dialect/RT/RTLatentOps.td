//===- RTLatentOps.td - Multi-head latent attention --------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of RTOps.td, which has what these are made of.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_RT_RTLATENTOPS
#define REPRISE_DIALECT_RT_RTLATENTOPS

def RT_SplitColumnsOp : RT_KernelOp<"split_columns"> {
  let summary = "The first columns and the last";
  let description = [{
    As `nn.split_columns`.

    * (C1) `input` is f32 or bf16 `[..., L+R]`, `left` `[..., L]` and `right` `[..., R]` of its elements.

    Example:

    ```mlir
    %c, %k = rt.split_columns %x : (tensor<2x8x24xf32>) -> (tensor<2x8x16xf32>, tensor<2x8x8xf32>)
    ```
  }];
  let arguments = (ins RT_Buffer:$input);
  let results = (outs RT_Buffer:$left, RT_Buffer:$right);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def RT_JoinColumnsOp : RT_KernelOp<"join_columns"> {
  let summary = "Columns of two values side by side";
  let description = [{
    As `nn.join_columns`.

    * (C1) `out` is f32 or bf16 `[..., L+R]`, `left` `[..., L]` and `right` `[..., R]` of its elements.

    Example:

    ```mlir
    %dx = rt.join_columns %dc, %dk : (tensor<2x8x16xf32>, tensor<2x8x8xf32>) -> tensor<2x8x24xf32>
    ```
  }];
  let arguments = (ins RT_Buffer:$left, RT_Buffer:$right);
  let results = (outs RT_Buffer:$out);
  let assemblyFormat = "$left `,` $right attr-dict `:` functional-type(operands, results)";
}

def RT_LatentHeadsOp : RT_KernelOp<"latent_heads"> {
  let summary = "Keys and values of latent attention";
  let description = [{
    As `nn.latent_heads`.

    * (C1) `input` is f32 or bf16 `[..., H*(N+V)]`, with `heads` for `H`; of its elements are `shared`
      `[..., R]`, `key` `[..., H*(N+R)]` and `value` `[..., H*V]`.

    Example:

    ```mlir
    %k, %v = rt.latent_heads %kv, %kr heads 4
      : (tensor<2x8x128xf32>, tensor<2x8x8xf32>) -> (tensor<2x8x96xf32>, tensor<2x8x64xf32>)
    ```
  }];
  let arguments = (ins RT_Buffer:$input, RT_Buffer:$shared, I64Attr:$heads);
  let results = (outs RT_Buffer:$key, RT_Buffer:$value);
  let assemblyFormat = [{
    $input `,` $shared `heads` $heads attr-dict `:` functional-type(operands, results)
  }];
}

def RT_LatentHeadsBackwardOp : RT_KernelOp<"latent_heads_backward"> {
  let summary = "Gradient of rt.latent_heads";
  let description = [{
    As `nn.latent_heads_backward`.

    * (C1) `dkey` is f32 or bf16 `[..., H*(N+R)]`, with `heads` for `H`; of its elements are `dvalue`
      `[..., H*V]`, `dinput` `[..., H*(N+V)]` and `dshared` `[..., R]`.

    Example:

    ```mlir
    %dkv, %dkr = rt.latent_heads_backward %dk, %dv heads 4
      : (tensor<2x8x96xf32>, tensor<2x8x64xf32>) -> (tensor<2x8x128xf32>, tensor<2x8x8xf32>)
    ```
  }];
  let arguments = (ins RT_Buffer:$dkey, RT_Buffer:$dvalue, I64Attr:$heads);
  let results = (outs RT_Buffer:$dinput, RT_Buffer:$dshared);
  let assemblyFormat = [{
    $dkey `,` $dvalue `heads` $heads attr-dict `:` functional-type(operands, results)
  }];
}

#endif // REPRISE_DIALECT_RT_RTLATENTOPS
