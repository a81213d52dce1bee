//===- NNAttentionOps.td - Attention, fused and unfused ----*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_NNATTENTIONOPS
#define REPRISE_DIALECT_NN_NNATTENTIONOPS

include "reprise/Dialect/NN/NNBase.td"

//===----------------------------------------------------------------------===//
// Fused
//===----------------------------------------------------------------------===//

def NN_AttentionOp : NN_PureOp<"attention", [
    NN_Vjp, AllElementTypesMatch<["query", "key", "value", "out"]> /* C1 */]> {
  let summary = "Causal scaled dot-product attention with dropout, fused";
  let description = [{
    For batch `b`, head `h` and position `i`, over the positions `j <= i`, and
    with `g = h / (H/G)`, rounded down:

    ```
    s[j]     = scale * dot(query[b,i,h,:], key[b,j,g,:])
    lse[b,h,i] = ln(sum_j exp(s[j]))
    out[b,i,h,:] = sum_j dropout(exp(s[j] - lse)) * value[b,j,g,:]
    ```

    So `H/G` neighbouring heads of `query` share a head of `key` and `value`.
    Without `kv_heads`, `G` is `H`. A head of values may have another width than one of keys.

    Dropout is that of `nn.dropout` with element index `((b*H + h)*T + i)*T + j`. With `part` the
    heads are part of those of all ranks, which count there.
    Nothing of size `T*T` is stored.

    * (C1) `key`, `value` and `out` have the element type of `query`.
    * (C2) `query` is `[B, T, H*D]`, `key` `[B, T, G*D]`, `value` `[B, T, G*V]`, `out` `[B, T, H*V]`,
      `lse` `[B, H, T]`, with `heads` for `H` and `kv_heads` for `G`.
    * (C3) `heads` is at least 1 and divides the width; `kv_heads` is at least 1
      and divides `heads`.
    * (C4) `rate`, `stream`, the `B*H*T*T` elements and `part`, along dimension 1 of these, are as
      in `nn.dropout`.

    Example:

    ```mlir
    %ctx, %lse = nn.attention %q, %k, %v, %rng heads 3 scale 3.5355338e-01 rate 1.0e-01 stream 2
      : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)
    %ctxg, %lseg = nn.attention %q, %kg, %vg, %rng heads 6 kv_heads 2 scale 0.5 rate 0.0 stream 0
      : (tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x6x8xf32>)
    %ctxv, %lsev = nn.attention %q, %k, %vn, %rng heads 3 scale 0.5 rate 0.0 stream 0
      : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x15xf32>, tensor<4xi32>) -> (tensor<2x8x15xf32>, tensor<2x3x8xf32>)
    ```

    Sources: Dao, FlashAttention-2, arXiv:2307.08691, section 3.1; Ainslie et al.,
    GQA, arXiv:2305.13245, section 2.2.
  }];
  let arguments = (ins NN_Tensor:$query, NN_Tensor:$key, NN_Tensor:$value, NN_Rng:$rng,
                       I64Attr:$heads, OptionalAttr<I64Attr>:$kv_heads, F32Attr:$scale,
                       F32Attr:$rate, I64Attr:$stream, OptionalAttr<NN_PartAttr>:$part);
  let results = (outs NN_Tensor:$out, NN_F32Tensor:$lse);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $rng `heads` $heads (`kv_heads` $kv_heads^)?
    `scale` $scale `rate` $rate `stream` $stream (`part` $part^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Heads of keys and values: as many as `heads` unless `kv_heads` says less.
    int64_t getKeyHeads() {
      return getKvHeads() ? int64_t(*getKvHeads()) : int64_t(getHeads());
    }
  }];
}

def NN_AttentionBackwardOp : NN_PureOp<"attention_backward", [
    AllTypesMatch<["query", "dquery"]>, AllTypesMatch<["key", "dkey"]>,
    AllTypesMatch<["value", "dvalue"]>, AllTypesMatch<["out", "dout"]>,
    AllElementTypesMatch<["query", "key", "value", "out"]> /* C1 */]> {
  let summary = "Gradient of nn.attention";
  let description = [{
    With `p[i,j] = exp(s[i,j] - lse[i])`, mask factor `m[i,j]` (0 or
    `1/(1-rate)`) and `delta[i] = dot(dout[i,:], out[i,:])`:

    ```
    dp[i,j] = m[i,j] * dot(dout[i,:], value[j,:])
    ds[i,j] = p[i,j] * (dp[i,j] - delta[i])
    dquery[i,:] = scale * sum_j ds[i,j] * key[j,:]
    dkey[j,:]   = scale * sum_i ds[i,j] * query[i,:]
    dvalue[j,:] = sum_i m[i,j] * p[i,j] * dout[i,:]
    ```

    With `kv_heads`, `dkey` and `dvalue` are sums over the heads that share them,
    added in ascending order.

    * (C1) Each gradient has the type of what it is of; all have one element type.
    * (C2) `query` is `[B, T, H*D]`, `key` `[B, T, G*D]`, `value` `[B, T, G*V]`, `out` `[B, T, H*V]`,
      `lse` `[B, H, T]`, with `heads` for `H` and `kv_heads` for `G`.
    * (C3) `heads` is at least 1 and divides the width; `kv_heads` is at least 1
      and divides `heads`.
    * (C4) `rate`, `stream`, the `B*H*T*T` elements and `part`, along dimension 1 of these, are as
      in `nn.dropout`.

    Example:

    ```mlir
    %dq, %dk, %dv = nn.attention_backward %q, %k, %v, %ctx, %lse, %dctx, %rng heads 3 scale 3.5355338e-01 rate 1.0e-01 stream 2
      : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x3x8xf32>, tensor<2x8x24xf32>, tensor<4xi32>)
        -> (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>)
    ```

    Source: Dao, FlashAttention-2, arXiv:2307.08691, section 3.2.
  }];
  let arguments = (ins NN_Tensor:$query, NN_Tensor:$key, NN_Tensor:$value, NN_Tensor:$out,
                       NN_F32Tensor:$lse, NN_Tensor:$dout, NN_Rng:$rng, I64Attr:$heads,
                       OptionalAttr<I64Attr>:$kv_heads, F32Attr:$scale, F32Attr:$rate,
                       I64Attr:$stream, OptionalAttr<NN_PartAttr>:$part);
  let results = (outs NN_Tensor:$dquery, NN_Tensor:$dkey, NN_Tensor:$dvalue);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $out `,` $lse `,` $dout `,` $rng `heads` $heads
    (`kv_heads` $kv_heads^)? `scale` $scale `rate` $rate `stream` $stream (`part` $part^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Heads of keys and values: as many as `heads` unless `kv_heads` says less.
    int64_t getKeyHeads() {
      return getKvHeads() ? int64_t(*getKvHeads()) : int64_t(getHeads());
    }
  }];
}

//===----------------------------------------------------------------------===//
// Unfused
//===----------------------------------------------------------------------===//

def NN_ScoresOp : NN_GemmOp<"scores", [
    NN_Vjp, AllElementTypesMatch<["lhs", "rhs", "out"]> /* C1 */]> {
  let summary = "Inner products of rows, head by head";
  let description = [{
    `out[b,h,i,j] = scale * dot(lhs[b,i,h,:], rhs[b,j,g,:])`, for every `i` and `j`;
    heads `h` and `g` as in `nn.attention`.

    * (C1) `rhs` and `out` have the element type of `lhs`.
    * (C2) `lhs` is `[B, T, H*D]`, `rhs` `[B, T, G*D]`, `out` `[B, H, T, T]`, with
      `heads` for `H` and `kv_heads` for `G`.
    * (C3) `heads` is at least 1 and divides the width; `kv_heads` is at least 1
      and divides `heads`.

    Example:

    ```mlir
    %s = nn.scores %q, %k heads 3 scale 3.5355338e-01 : (tensor<2x8x24xf32>, tensor<2x8x24xf32>) -> tensor<2x3x8x8xf32>
    %sg = nn.scores %q, %kg heads 6 kv_heads 2 scale 0.5 : (tensor<2x8x24xf32>, tensor<2x8x8xf32>) -> tensor<2x6x8x8xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$lhs, NN_Tensor:$rhs, I64Attr:$heads,
                       OptionalAttr<I64Attr>:$kv_heads, F32Attr:$scale);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = [{
    $lhs `,` $rhs `heads` $heads (`kv_heads` $kv_heads^)? `scale` $scale attr-dict
    `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Heads of keys and values: as many as `heads` unless `kv_heads` says less.
    int64_t getKeyHeads() {
      return getKvHeads() ? int64_t(*getKvHeads()) : int64_t(getHeads());
    }
  }];
}

def NN_ContextOp : NN_GemmOp<"context", [
    NN_Vjp, AllElementTypesMatch<["probs", "rows", "out"]> /* C1 */]> {
  let summary = "Sums of rows weighted by probabilities, head by head";
  let description = [{
    `out[b,i,h,:] = scale * sum over j of probs[b,h,i,j] * rows[b,j,g,:]`, heads `h`
    and `g` as in `nn.attention`; with `transposed`, the other way round:
    `out[b,i,g,:] = scale * sum over the h of g, in order, and j of
    probs[b,h,j,i] * rows[b,j,h,:]`.

    * (C1) `probs` and `out` have the element type of `rows`.
    * (C2) `rows` is `[B, T, G*D]` and `out` `[B, T, H*D]`, with `transposed` each
      is the other; `probs` is `[B, H, T, T]`, with `heads` for `H` and `kv_heads`
      for `G`.
    * (C3) `heads` is at least 1 and divides the width; `kv_heads` is at least 1
      and divides `heads`.

    Example:

    ```mlir
    %ctx = nn.context %p, %v heads 3 scale 1.0 : (tensor<2x3x8x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>
    %dv = nn.context %p, %dctx heads 3 scale 1.0 transposed : (tensor<2x3x8x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>
    %dvg = nn.context %pg, %dctx heads 6 kv_heads 2 scale 1.0 transposed : (tensor<2x6x8x8xf32>, tensor<2x8x24xf32>) -> tensor<2x8x8xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$probs, NN_Tensor:$rows, I64Attr:$heads,
                       OptionalAttr<I64Attr>:$kv_heads, F32Attr:$scale, UnitAttr:$transposed);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = [{
    $probs `,` $rows `heads` $heads (`kv_heads` $kv_heads^)? `scale` $scale
    (`transposed` $transposed^)? attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    /// Heads of keys and values: as many as `heads` unless `kv_heads` says less.
    int64_t getKeyHeads() {
      return getKvHeads() ? int64_t(*getKvHeads()) : int64_t(getHeads());
    }
  }];
}

def NN_SoftmaxOp : NN_PureOp<"softmax", [NN_Vjp, NN_Rowwise, SameOperandsAndResultType]> {
  let summary = "Causal softmax over the last dimension";
  let description = [{
    Over the positions `j <= i`:
    `out[b,h,i,j] = exp(input[b,h,i,j] - max) / sum_j exp(input[b,h,i,j] - max)`,
    and 0 for `j > i`.

    * (C1) `input` is `[B, H, T, T]`.

    Example:

    ```mlir
    %p = nn.softmax %s : tensor<2x3x8x8xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = "$input attr-dict `:` type($input)";
}

def NN_SoftmaxBackwardOp
    : NN_PureOp<"softmax_backward", [NN_Rowwise, SameOperandsAndResultType]> {
  let summary = "Gradient of nn.softmax";
  let description = [{
    For every row: `dinput = probs * (dout - sum(dout * probs))`.

    * (C1) `probs` is `[B, H, T, T]`.

    Example:

    ```mlir
    %ds = nn.softmax_backward %p, %dp : tensor<2x3x8x8xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$probs, NN_Tensor:$dout);
  let results = (outs NN_Tensor:$dinput);
  let assemblyFormat = "$probs `,` $dout attr-dict `:` type($probs)";
}

#endif // REPRISE_DIALECT_NN_NNATTENTIONOPS
