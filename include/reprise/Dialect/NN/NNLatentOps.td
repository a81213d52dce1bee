//===- NNLatentOps.td - Multi-head latent attention --------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_NNLATENTOPS
#define REPRISE_DIALECT_NN_NNLATENTOPS

include "reprise/Dialect/NN/NNBase.td"

// Keys and values of latent attention are made from a few columns of each
// position, the latent, but for columns of a key that turn with the position,
// which all heads share. Of the heads `H`, a key has `N` columns of its own and
// the `R` shared ones, a value `V`.

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

def NN_SplitColumnsOp : NN_PureOp<"split_columns", [
    NN_Vjp, AllElementTypesMatch<["input", "left", "right"]> /* C1 */]> {
  let summary = "The first columns and the last";
  let description = [{
    `left[t,:] = input[t, 0..L-1]` and `right[t,:] = input[t, L..L+R-1]`. Its gradient is
    `nn.join_columns`.

    * (C1) `left` and `right` have the element type of `input`.
    * (C2) `input` is `[..., L+R]`, `left` `[..., L]`, `right` `[..., R]`.

    Example:

    ```mlir
    %c, %k = nn.split_columns %x : (tensor<2x8x24xf32>) -> (tensor<2x8x16xf32>, tensor<2x8x8xf32>)
    ```
  }];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$left, NN_Tensor:$right);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def NN_JoinColumnsOp : NN_PureOp<"join_columns", [
    NN_Vjp, AllElementTypesMatch<["left", "right", "out"]> /* C1 */]> {
  let summary = "Columns of two values side by side";
  let description = [{
    `out[t, 0..L-1] = left[t,:]` and `out[t, L..L+R-1] = right[t,:]`. Its gradient is
    `nn.split_columns`.

    * (C1) `right` and `out` have the element type of `left`.
    * (C2) `out` is `[..., L+R]`, `left` `[..., L]`, `right` `[..., R]`.

    Example:

    ```mlir
    %dx = nn.join_columns %dc, %dk : (tensor<2x8x16xf32>, tensor<2x8x8xf32>) -> tensor<2x8x24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$left, NN_Tensor:$right);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = "$left `,` $right attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Heads
//===----------------------------------------------------------------------===//

def NN_LatentHeadsOp : NN_PureOp<"latent_heads", [
    NN_Vjp, AllElementTypesMatch<["input", "shared", "key", "value"]> /* C1 */]> {
  let summary = "Keys and values of latent attention";
  let description = [{
    Of each head `h` of `input`, what the latent is projected to, the first `N` columns begin a key,
    whose others all heads share, and the last `V` are a value:

    ```
    key[t,h,:]   = input[t,h, 0..N-1], shared[t,:]
    value[t,h,:] = input[t,h, N..N+V-1]
    ```

    * (C1) All values have one element type.
    * (C2) `input` is `[..., H*(N+V)]`, `shared` `[..., R]`, `key` `[..., H*(N+R)]` and `value`
      `[..., H*V]`, with `heads` for `H`.
    * (C3) `heads`, `N`, `R` and `V` are at least 1.

    Example:

    ```mlir
    %k, %v = nn.latent_heads %kv, %kr heads 4
      : (tensor<2x8x128xf32>, tensor<2x8x8xf32>) -> (tensor<2x8x96xf32>, tensor<2x8x64xf32>)
    ```

    Source: DeepSeek-V2, arXiv:2405.04434, section 2.1.
  }];
  let arguments = (ins NN_Tensor:$input, NN_Tensor:$shared, I64Attr:$heads);
  let results = (outs NN_Tensor:$key, NN_Tensor:$value);
  let assemblyFormat = [{
    $input `,` $shared `heads` $heads attr-dict `:` functional-type(operands, results)
  }];
}

def NN_LatentHeadsBackwardOp : NN_PureOp<"latent_heads_backward", [
    AllElementTypesMatch<["dkey", "dvalue", "dinput", "dshared"]> /* C1 */]> {
  let summary = "Gradient of nn.latent_heads";
  let description = [{
    ```
    dinput[t,h,:] = dkey[t,h, 0..N-1], dvalue[t,h,:]
    dshared[t,:]  = sum over h, in order, of dkey[t,h, N..N+R-1]
    ```

    The sum is in f32 and rounded once.

    * (C1) All values have one element type.
    * (C2) `dkey` is `[..., H*(N+R)]`, `dvalue` `[..., H*V]`, `dinput` `[..., H*(N+V)]` and `dshared`
      `[..., R]`, with `heads` for `H`.
    * (C3) `heads`, `N`, `R` and `V` are at least 1.

    Example:

    ```mlir
    %dkv, %dkr = nn.latent_heads_backward %dk, %dv heads 4
      : (tensor<2x8x96xf32>, tensor<2x8x64xf32>) -> (tensor<2x8x128xf32>, tensor<2x8x8xf32>)
    ```
  }];
  let arguments = (ins NN_Tensor:$dkey, NN_Tensor:$dvalue, I64Attr:$heads);
  let results = (outs NN_Tensor:$dinput, NN_Tensor:$dshared);
  let assemblyFormat = [{
    $dkey `,` $dvalue `heads` $heads attr-dict `:` functional-type(operands, results)
  }];
}

#endif // REPRISE_DIALECT_NN_NNLATENTOPS
