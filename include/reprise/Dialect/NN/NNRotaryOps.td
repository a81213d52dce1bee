//===- NNRotaryOps.td - Rotary positions -------------------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_NNROTARYOPS
#define REPRISE_DIALECT_NN_NNROTARYOPS

include "reprise/Dialect/NN/NNBase.td"

//===----------------------------------------------------------------------===//
// Where angles come from
//===----------------------------------------------------------------------===//

def NN_RotaryType : I32EnumAttr<"RotaryType", "How frequencies are stretched for longer texts", [
    I32EnumAttrCase<"Default", 0, "default">, I32EnumAttrCase<"Linear", 1, "linear">,
    I32EnumAttrCase<"Llama3", 2, "llama3">, I32EnumAttrCase<"Yarn", 3, "yarn">]> {
  let cppNamespace = "::reprise::nn";
  let genSpecializedAttr = 0;
}

def NN_RotaryTypeParameter : EnumParameter<NN_RotaryType> {
  let defaultValue = "::reprise::nn::RotaryType::Default";
}

def NN_RotaryAttr : NN_Attr<"Rotary", "rotary"> {
  let summary = "A table of rotary angles: the frequency of each pair of columns";
  let description = [{
    Row `t` of the table `[T, D]` is `cos(t * f[j]) * scale` for the `D/2` pairs
    `j`, then `sin(t * f[j]) * scale`. Pair `j` turns by `b[j] = theta^(-2j/D)` a
    position; with `L = original_max_position_embeddings`, `f` and `scale` are:

    ```
    default  f = b
    linear   f = b / factor
    llama3   f = b                            where 2 pi / b < L / high_freq_factor
             f = b / factor                   where 2 pi / b > L / low_freq_factor
             f = (1 - s) * b / factor + s * b elsewhere, with
                 s = (L * b / (2 pi) - low_freq_factor) / (high_freq_factor - low_freq_factor)
    yarn     f = r * b / factor + (1 - r) * b with r = (j - low) / (high - low), in [0, 1],
                 low  = max(floor(c(beta_fast)), 0), high = min(ceil(c(beta_slow)), D - 1),
                 c(n) = D * ln(L / (2 pi n)) / (2 ln theta)
             scale = attention_factor
    ```

    `truncate = false` leaves floor and ceil out; where `low = high`, 0.001 is added
    to `high`. `beta_fast` is 32 and `beta_slow` 1 unless given. Without an
    `attention_factor` it is `m(mscale) / m(mscale_all_dim)` if both are given,
    otherwise `m(1)`, with `m(x) = 0.1 x ln(factor) + 1`, and 1 for a factor of at most 1.
    `scale` is 1 for the other types.

    `f` is rounded to f32, `t * f[j]` too; cosine and sine of that are f64 until
    they are stored. That is what published weights were trained with.

    Each type needs its numbers and has no use for those of another.

    Example: `#nn.rotary<theta = 5.0e+05 : f64, type = llama3, factor = 8.0 : f64, low_freq_factor = 1.0 : f64, high_freq_factor = 4.0 : f64, original_max_position_embeddings = 8192>`

    Sources: Su et al., RoFormer, arXiv:2104.09864, section 3.2; Chen et al.,
    arXiv:2306.15595, section 2.3 (linear); Peng et al., YaRN, arXiv:2309.00071,
    sections 3.2 and 3.4.
  }];
  let parameters = (ins "::mlir::FloatAttr":$theta,
                        NN_RotaryTypeParameter:$type,
                        OptionalParameter<"::mlir::FloatAttr">:$factor,
                        OptionalParameter<"::mlir::FloatAttr">:$low_freq_factor,
                        OptionalParameter<"::mlir::FloatAttr">:$high_freq_factor,
                        DefaultValuedParameter<"int64_t", "0">:$original_max_position_embeddings,
                        OptionalParameter<"::mlir::FloatAttr">:$beta_fast,
                        OptionalParameter<"::mlir::FloatAttr">:$beta_slow,
                        DefaultValuedParameter<"bool", "true">:$truncate,
                        OptionalParameter<"::mlir::FloatAttr">:$attention_factor,
                        OptionalParameter<"::mlir::FloatAttr">:$mscale,
                        OptionalParameter<"::mlir::FloatAttr">:$mscale_all_dim);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def NN_RopeStyle : I32EnumAttr<"RopeStyle", "Which columns of a head are a pair", [
    I32EnumAttrCase<"HalfSplit", 0, "half_split">,
    I32EnumAttrCase<"Interleaved", 1, "interleaved">]> {
  let cppNamespace = "::reprise::nn";
}

//===----------------------------------------------------------------------===//
// Rotation
//===----------------------------------------------------------------------===//

def NN_RopeOp : NN_PureOp<"rope", [
    NN_Vjp, AllTypesMatch<["input", "out"]> /* C1 */]> {
  let summary = "Turns pairs of columns by an angle that grows with the position";
  let description = [{
    Of the `R` columns of a head from column `from` on, 0 if that is not there, pair `j < R/2` are
    `(l, r)` = `(j, j + R/2)` for `half_split` and `(2j, 2j + 1)` for `interleaved`. For position `t`,
    with `c = rotary[t,j]` and `s = rotary[t, R/2 + j]`:

    ```
    out[l] = input[l] * c - input[r] * s
    out[r] = input[r] * c + input[l] * s
    ```

    Other columns stay as they are. `rotary` is a table of `nn.rotary`; it is not trained.

    * (C1) `out` has the type of `input`.
    * (C2) `input` is `[B, T, H*D]`, `rotary` `[T, R]`, with `heads` for `H`.
    * (C3) `heads` is at least 1 and divides the width.
    * (C4) `R` is even, `from` at least 0, and `from + R` at most `D`.

    Example:

    ```mlir
    %qr = nn.rope %q, %rotary heads 4 half_split : (tensor<2x8x32xf32>, tensor<8x8xf32>) -> tensor<2x8x32xf32>
    %qs = nn.rope %q, %narrow heads 4 from 4 interleaved : (tensor<2x8x32xf32>, tensor<8x4xf32>) -> tensor<2x8x32xf32>
    ```

    Source: Su et al., RoFormer, arXiv:2104.09864, section 3.2.2.
  }];
  let arguments = (ins NN_Tensor:$input, NN_F32Tensor:$rotary, I64Attr:$heads,
                       OptionalAttr<I64Attr>:$from, NN_RopeStyle:$style);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = [{
    $input `,` $rotary `heads` $heads (`from` $from^)? $style attr-dict `:` functional-type(operands, results)
  }];
}

def NN_RopeBackwardOp : NN_PureOp<"rope_backward", [
    AllTypesMatch<["dout", "dinput"]> /* C1 */]> {
  let summary = "Gradient of nn.rope: turns by the opposite angle";
  let description = [{
    With the pairs and factors of `nn.rope`:

    ```
    dinput[l] = dout[l] * c + dout[r] * s
    dinput[r] = dout[r] * c - dout[l] * s
    ```

    * (C1) `dinput` has the type of `dout`.
    * (C2) `dout` is `[B, T, H*D]`, `rotary` `[T, R]`, with `heads` for `H`.
    * (C3) `heads` is at least 1 and divides the width.
    * (C4) `R` is even, `from` at least 0, and `from + R` at most `D`.

    Example:

    ```mlir
    %dq = nn.rope_backward %dqr, %rotary heads 4 half_split : (tensor<2x8x32xf32>, tensor<8x8xf32>) -> tensor<2x8x32xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$dout, NN_F32Tensor:$rotary, I64Attr:$heads,
                       OptionalAttr<I64Attr>:$from, NN_RopeStyle:$style);
  let results = (outs NN_Tensor:$dinput);
  let assemblyFormat = [{
    $dout `,` $rotary `heads` $heads (`from` $from^)? $style attr-dict `:` functional-type(operands, results)
  }];
}

#endif // REPRISE_DIALECT_NN_NNROTARYOPS
