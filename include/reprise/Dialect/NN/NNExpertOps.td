//===- NNExpertOps.td - Mixtures of experts ----------------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_NNEXPERTOPS
#define REPRISE_DIALECT_NN_NNEXPERTOPS

include "reprise/Dialect/NN/NNBase.td"

// The letters here: `E` experts, `S` slots, the experts that a token goes to, `R`
// rows, one for each token and slot, `[...]` the tokens. No token is dropped, so
// all shapes are known; which rows belong to which expert is data. Rows are sorted
// by expert, and for each expert by token:
//
//   ids     [..., S]  the experts of a token, ascending
//   order   [R]       of a row, token * S + slot
//   inverse [..., S]  of a token and slot, the row
//   offsets [E + 1]   expert e has the rows from offsets[e] to offsets[e + 1]
//
// Where experts have a capacity, R is the most rows that they can have together,
// and one more. Rows from offsets[E] on are of no expert: GEMMs make zeros of
// them, and do not read them. Places that are dropped have the last of them.

//===----------------------------------------------------------------------===//
// Routing
//===----------------------------------------------------------------------===//

def NN_ChooseExpertsOp : NN_PureOp<"choose_experts", [NN_NeverReplayed]> {
  let summary = "The experts that each token goes to";
  let description = [{
    With scores `c[t,:] = logits[t,:]`, or with `sigmoid` `1 / (1 + exp(-logits[t,:]))`, plus
    `bias` if there is one, `ids[t,:]` are the indices of the `S` largest scores, in ascending
    order; of equal ones those with the lower index. What is not a number is taken
    for the lowest f32, as is what is below it.

    With `groups`, `G` runs of `E/G` experts each are groups, and experts are those of the `K`
    groups whose scores are largest alone: a group's score is its largest, or with `by_two` the
    sum of its two largest; of equal groups those with the lower index are taken.

    The choice has no gradient, nor has `bias`, and it is made once: a replay could choose others,
    for which nothing has been kept.

    * (C1) `logits` is f32 `[..., E]`, `ids` `[..., S]`, `bias` f32 `[E]`.
    * (C2) `S <= E`.
    * (C3) `groups` `G` divides `E`, `keep` `K` is from 1 to `G`, and `S <= K * E/G`; with `by_two`
      `E/G` is at least 2. All three stand together.

    Example:

    ```mlir
    %ids = nn.choose_experts %r : (tensor<2x8x4xf32>) -> tensor<2x8x2xi32>
    %jds = nn.choose_experts %s bias %b sigmoid groups 4 keep 2 by_two
      : (tensor<2x8x16xf32>, tensor<16xf32>) -> tensor<2x8x3xi32>
    ```

    Sources: Shazeer et al., arXiv:1701.06538, section 2.1; DeepSeek-V2, arXiv:2405.04434, section
    2.2.2 (groups); DeepSeek-V3, arXiv:2412.19437, section 2.1.2 (bias).
  }];
  let arguments = (ins NN_F32Tensor:$logits, Optional<NN_F32Tensor>:$bias, UnitAttr:$sigmoid,
                       OptionalAttr<I64Attr>:$groups, OptionalAttr<I64Attr>:$keep,
                       UnitAttr:$by_two);
  let results = (outs NN_Ids:$ids);
  let assemblyFormat = [{
    $logits (`bias` $bias^)? (`sigmoid` $sigmoid^)? (`groups` $groups^)? (`keep` $keep^)?
    (`by_two` $by_two^)? attr-dict `:` functional-type(operands, results)
  }];
}

def NN_ExpertWeightsOp : NN_PureOp<"expert_weights", [NN_Vjp]> {
  let summary = "The weights of the experts that each token goes to";
  let description = [{
    With `p` the softmax of `logits[t,:]`, `weights[t,j] = p[ids[t,j]]`. With
    `normalized` these are divided by their sum, which makes them the softmax of the logits
    that were chosen. With `sigmoid`, `p[i] = 1 / (1 + exp(-logits[t,i]))` instead, and with
    `normalized` the divisor is the sum plus `1e-20`. Then `weights` is times `scale`, 1 if it is not
    there. Sums go over ascending indices. Ids must be below `E`, all different.

    * (C1) `logits` is f32 `[..., E]`, `ids` and `weights` `[..., S]`, `weights` f32.
    * (C2) `S <= E`.
    * (C3) `scale` is finite and above 0.

    Example:

    ```mlir
    %w = nn.expert_weights %r, %ids normalized : (tensor<2x8x4xf32>, tensor<2x8x2xi32>) -> tensor<2x8x2xf32>
    %v = nn.expert_weights %r, %ids sigmoid normalized scale 2.5
      : (tensor<2x8x4xf32>, tensor<2x8x2xi32>) -> tensor<2x8x2xf32>
    ```

    Sources: Jiang et al., Mixtral of Experts, arXiv:2401.04088, section 2.1; DeepSeek-V3,
    arXiv:2412.19437, section 2.1.2.
  }];
  let arguments = (ins NN_F32Tensor:$logits, NN_Ids:$ids, UnitAttr:$sigmoid, UnitAttr:$normalized,
                       OptionalAttr<F32Attr>:$scale);
  let results = (outs NN_F32Tensor:$weights);
  let assemblyFormat = [{
    $logits `,` $ids (`sigmoid` $sigmoid^)? (`normalized` $normalized^)? (`scale` $scale^)?
    attr-dict `:` functional-type(operands, results)
  }];
}

def NN_ExpertWeightsBackwardOp : NN_PureOp<"expert_weights_backward", [
    AllTypesMatch<["logits", "dlogits"]> /* C1 */]> {
  let summary = "Gradient of nn.expert_weights with respect to its logits";
  let description = [{
    With `w` what `nn.expert_weights` makes without `scale`, `g = scale * dweights`, and
    `d = sum over j of g[t,j] * w[t,j]`:

    * with `normalized` `dlogits[t,ids[t,j]] = w[t,j] * (g[t,j] - d)` and zero elsewhere;
    * without it `dlogits[t,i] = p[i] * (q[i] - d)`, where `q[ids[t,j]] = g[t,j]` and zero elsewhere;
    * with `sigmoid`, whose divisor is `n`, `dlogits[t,ids[t,j]] = (g[t,j] - d) / n * p * (1 - p)`
      of `p[ids[t,j]]`, or without `normalized` `g[t,j] * p * (1 - p)`, and zero elsewhere.

    Constraints:

    * (C1) `logits` and `dlogits` are f32 `[..., E]`, `ids` and `dweights` `[..., S]`.
    * (C2) `S <= E`.
    * (C3) `scale` is finite and above 0.

    Example:

    ```mlir
    %dr = nn.expert_weights_backward %r, %ids, %dw normalized
      : (tensor<2x8x4xf32>, tensor<2x8x2xi32>, tensor<2x8x2xf32>) -> tensor<2x8x4xf32>
    ```
  }];
  let arguments = (ins NN_F32Tensor:$logits, NN_Ids:$ids, NN_F32Tensor:$dweights,
                       UnitAttr:$sigmoid, UnitAttr:$normalized, OptionalAttr<F32Attr>:$scale);
  let results = (outs NN_F32Tensor:$dlogits);
  let assemblyFormat = [{
    $logits `,` $ids `,` $dweights (`sigmoid` $sigmoid^)? (`normalized` $normalized^)?
    (`scale` $scale^)? attr-dict `:` functional-type(operands, results)
  }];
}

def NN_SortRowsOp : NN_PureOp<"sort_rows", [NN_NeverReplayed]> {
  let summary = "Sorts rows by their expert";
  let description = [{
    A row for each of `ids`, sorted by its id and then by its place in `ids`:
    `order` has the places of the rows, `inverse` the rows of the places, and
    `offsets[e]` is the number of ids below `e`. As `nn.choose_experts`, it is done once.

    With `capacity` `C` an expert has `C` rows at most: those of its first places, or with
    `weights` those of the places with the largest of these (no sign counts, and what is not a number
    is above all numbers), of equal ones the first. The other places are dropped: their `inverse` is
    the last row, which is of no expert. Rows of no expert have 0 in `order`.

    * (C1) `ids` and `inverse` are `[..., S]`, `order` `[R]`, one for each id, `offsets`
      `[E + 1]` with `E` of at least 1.
    * (C2) With `capacity`, at least 1, `R` is one more than the smaller of the number of ids and
      `E * C`.
    * (C3) `weights` is f32 `[..., S]`, and is there with `capacity` alone.

    Examples:

    ```mlir
    %order, %inverse, %offsets = nn.sort_rows %ids : (tensor<2x8x2xi32>) -> (tensor<32xi32>, tensor<2x8x2xi32>, tensor<5xi32>)
    %some, %places, %ends = nn.sort_rows %ids by %w capacity 6
      : (tensor<2x8x2xi32>, tensor<2x8x2xf32>) -> (tensor<25xi32>, tensor<2x8x2xi32>, tensor<5xi32>)
    ```

    Source: Fedus et al., Switch Transformers, arXiv:2101.03961, section 2.2 (capacity).
  }];
  let arguments = (ins NN_Ids:$ids, Optional<NN_F32Tensor>:$weights,
                       OptionalAttr<I64Attr>:$capacity);
  let results = (outs NN_Ids:$order, NN_Ids:$inverse, NN_Ids:$offsets);
  let assemblyFormat = [{
    $ids (`by` $weights^)? (`capacity` $capacity^)? attr-dict `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Rows and tokens
//===----------------------------------------------------------------------===//

def NN_PermuteOp : NN_PureOp<"permute", [
    NN_Vjp, AllElementTypesMatch<["input", "out"]> /* C1 */]> {
  let summary = "Numbers in another order";
  let description = [{
    `out[i] = input[order[i]]`, of what is seen as flat; `inverse` is the inverse of `order`.
    Its gradient is the same op with the two exchanged.

    * (C1) `input` and `out` have one element type; `out` has the shape of `order`, `input` that of
      `inverse`. One of these two has one dimension and at most one element more than the other.

    Example:

    ```mlir
    %wr = nn.permute %w, %order, %inverse : (tensor<2x8x2xf32>, tensor<32xi32>, tensor<2x8x2xi32>) -> tensor<32xf32>
    ```
  }];
  let arguments = (ins NN_F32Tensor:$input, NN_Ids:$order, NN_Ids:$inverse);
  let results = (outs NN_F32Tensor:$out);
  let assemblyFormat = [{
    $input `,` $order `,` $inverse attr-dict `:` functional-type(operands, results)
  }];
}

def NN_DispatchOp : NN_PureOp<"dispatch", [
    NN_Vjp, AllElementTypesMatch<["input", "out"]> /* C1 */]> {
  let summary = "The token of each row";
  let description = [{
    `out[r,:] = input[order[r] / S,:]`. Its gradient is `nn.combine`.

    * (C1) `input` is `[..., C]`, `order` `[R]`, `inverse` `[..., S]` of `R - 1` elements or more, `out`
      `[R, C]` of the elements of `input`.

    Example:

    ```mlir
    %xr = nn.dispatch %x, %order, %inverse
      : (tensor<2x8x24xf32>, tensor<32xi32>, tensor<2x8x2xi32>) -> tensor<32x24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, NN_Ids:$order, NN_Ids:$inverse);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = [{
    $input `,` $order `,` $inverse attr-dict `:` functional-type(operands, results)
  }];
}

def NN_CombineOp : NN_PureOp<"combine", [
    NN_Vjp, AllElementTypesMatch<["input", "out"]> /* C1 */]> {
  let summary = "The sum of the rows of each token";
  let description = [{
    `out[t,:] = sum over j, in order, of input[inverse[t,j],:]`, in f32, rounded once. Its
    gradient is `nn.dispatch`.

    * (C1) `input` is `[R, C]`, `order` `[R]`, `inverse` `[..., S]` of `R - 1` elements or more, `out`
      `[..., C]` of the elements of `input`.

    Example:

    ```mlir
    %y = nn.combine %yr, %order, %inverse
      : (tensor<32x24xf32>, tensor<32xi32>, tensor<2x8x2xi32>) -> tensor<2x8x24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, NN_Ids:$order, NN_Ids:$inverse);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = [{
    $input `,` $order `,` $inverse attr-dict `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// GEMMs
//===----------------------------------------------------------------------===//

def NN_GroupedLinearOp : NN_GemmOp<"grouped_linear", [
    AttrSizedOperandSegments, NN_Vjp,
    AllElementTypesMatch<["input", "weight", "out"]> /* C1 */]> {
  let summary = "Rows times the weight of their expert";
  let description = [{
    `out[r,n] = sum over k of x[r,k] * W[e,n,k]` for each row `r` of each expert `e`, where
    `x` is `input`; or, with `rows`, `x[r,:] = input[order[r] / S,:]`, as of `nn.dispatch`,
    and that value need not exist. Rows of no expert are zero.

    * (C1) `weight` and `out` have the element type of `input`.
    * (C2) `weight` is `[E, N, K]`, `offsets` `[E + 1]`, `out` `[R, N]`, `input` `[R, K]`, or
      with `rows` `[..., K]`.
    * (C3) `order` is `[R]` and `inverse` `[..., S]` of `R - 1` elements or more.

    Example:

    ```mlir
    %u = nn.grouped_linear %x, %w, %offsets rows %order, %inverse
      : (tensor<2x8x24xf32>, tensor<4x96x24xf32>, tensor<5xi32>, tensor<32xi32>, tensor<2x8x2xi32>) -> tensor<32x96xf32>
    %yr = nn.grouped_linear %g, %v, %offsets
      : (tensor<32x96xf32>, tensor<4x24x96xf32>, tensor<5xi32>) -> tensor<32x24xf32>
    ```

    Source: Gale et al., MegaBlocks, arXiv:2211.15841, section 4.
  }];
  let arguments = (ins NN_Tensor:$input, NN_Tensor:$weight, NN_Ids:$offsets,
                       Optional<NN_Ids>:$order, Optional<NN_Ids>:$inverse);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = [{
    $input `,` $weight `,` $offsets (`rows` $order^ `,` $inverse)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_GroupedLinearBackwardInputOp : NN_GemmOp<"grouped_linear_backward_input", [
    AttrSizedOperandSegments,
    AllElementTypesMatch<["dout", "weight", "dinput"]> /* C1 */]> {
  let summary = "Gradient of nn.grouped_linear with respect to its rows";
  let description = [{
    `dinput[r,k] = sum over n of d[r,n] * W[e,n,k]` for each row `r` of each expert `e`, where
    `d` is `dout`; or, with `rows`, `d[r,:] = dout[order[r] / S,:]`. Rows of no expert are zero.

    * (C1) `weight` and `dinput` have the element type of `dout`.
    * (C2) `weight` is `[E, N, K]`, `offsets` `[E + 1]`, `dinput` `[R, K]`, `dout` `[R, N]`, or
      with `rows` `[..., N]`.
    * (C3) `order` is `[R]` and `inverse` `[..., S]` of `R - 1` elements or more.

    Example:

    ```mlir
    %dx = nn.grouped_linear_backward_input %du, %w, %offsets
      : (tensor<32x96xf32>, tensor<4x96x24xf32>, tensor<5xi32>) -> tensor<32x24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$dout, NN_Tensor:$weight, NN_Ids:$offsets,
                       Optional<NN_Ids>:$order, Optional<NN_Ids>:$inverse);
  let results = (outs NN_Tensor:$dinput);
  let assemblyFormat = [{
    $dout `,` $weight `,` $offsets (`rows` $order^ `,` $inverse)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_GatheredRows : I32EnumAttr<"GatheredRows", "Of which operand rows are tokens", [
    I32EnumAttrCase<"Input", 0, "input">, I32EnumAttrCase<"Dout", 1, "dout">]> {
  let cppNamespace = "::reprise::nn";
}

def NN_GroupedLinearBackwardWeightOp : NN_GemmOp<"grouped_linear_backward_weight", [
    AttrSizedOperandSegments, AllElementTypesMatch<["input", "dout"]> /* C1 */]> {
  let summary = "Gradient of nn.grouped_linear with respect to its weight";
  let description = [{
    `dW[e,n,k] = sum over the rows r of expert e of d[r,n] * x[r,k]`; zero for an expert
    without rows. `x` is `input` and `d` `dout`; but with `rows of input`
    `x[r,:] = input[order[r] / S,:]`, and with `rows of dout` the same of `d`.

    * (C1) `dout` has the element type of `input`; `dweight` is f32.
    * (C2) `dweight` is `[E, N, K]`, `offsets` `[E + 1]`, `input` `[R, K]` and `dout` `[R, N]`,
      but `[..., K]` or `[..., N]` where its rows are tokens.
    * (C3) `order` is `[R]` and `inverse` `[..., S]` of `R - 1` elements or more, and are there with `rows`.

    Example:

    ```mlir
    %dw = nn.grouped_linear_backward_weight %x, %du, %offsets rows of input %order, %inverse
      : (tensor<2x8x24xf32>, tensor<32x96xf32>, tensor<5xi32>, tensor<32xi32>, tensor<2x8x2xi32>) -> tensor<4x96x24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, NN_Tensor:$dout, NN_Ids:$offsets,
                       Optional<NN_Ids>:$order, Optional<NN_Ids>:$inverse,
                       OptionalAttr<NN_GatheredRows>:$gathered);
  let results = (outs NN_F32Tensor:$dweight);
  let assemblyFormat = [{
    $input `,` $dout `,` $offsets (`rows` `of` $gathered^ $order `,` $inverse)? attr-dict
    `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Activation
//===----------------------------------------------------------------------===//

def NN_WeightedSwiGLUOp : NN_PureOp<"weighted_swiglu", [
    NN_Rowwise,
    NN_Vjp, AllTypesMatch<["gate", "up", "out"]> /* C1 */]> {
  let summary = "nn.swiglu times the weight of the row";
  let description = [{
    `out[r,:] = gate[r,:] * sigmoid(gate[r,:]) * up[r,:] * weight[r]` for each row `r`. The weight
    of an expert comes before its last GEMM, which is linear: so nothing that this makes is
    needed for the gradient of the weight.

    * (C1) `up` and `out` have the type of `gate`, `weight` is f32.
    * (C2) `gate` is `[..., F]`, `weight` `[...]`.

    Example:

    ```mlir
    %g = nn.weighted_swiglu %gt, %u, %wr : (tensor<32x96xf32>, tensor<32x96xf32>, tensor<32xf32>) -> tensor<32x96xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$gate, NN_Tensor:$up, NN_F32Tensor:$weight);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = [{
    $gate `,` $up `,` $weight attr-dict `:` functional-type(operands, results)
  }];
}

def NN_WeightedSwiGLUBackwardOp : NN_PureOp<"weighted_swiglu_backward", [
    NN_Rowwise,
    AllTypesMatch<["gate", "up", "dout", "dgate", "dup"]>, AllTypesMatch<["weight", "dweight"]> /* C1 */]> {
  let summary = "Gradient of nn.weighted_swiglu";
  let description = [{
    With `s = sigmoid(gate)` and `d = dout * weight[r]`:

    ```
    dgate      = d * up * (s + gate * s * (1 - s))
    dup        = d * gate * s
    dweight[r] = sum over the row of dout * gate * s * up
    ```

    * (C1) `up`, `dout`, `dgate` and `dup` have the type of `gate`; `weight` and `dweight`
      are f32.
    * (C2) `gate` is `[..., F]`, `weight` `[...]`.

    Example:

    ```mlir
    %dgt, %du, %dwr = nn.weighted_swiglu_backward %gt, %u, %wr, %dg
      : (tensor<32x96xf32>, tensor<32x96xf32>, tensor<32xf32>, tensor<32x96xf32>) -> (tensor<32x96xf32>, tensor<32x96xf32>, tensor<32xf32>)
    ```
  }];
  let arguments = (ins NN_Tensor:$gate, NN_Tensor:$up, NN_F32Tensor:$weight, NN_Tensor:$dout);
  let results = (outs NN_Tensor:$dgate, NN_Tensor:$dup, NN_F32Tensor:$dweight);
  let assemblyFormat = [{
    $gate `,` $up `,` $weight `,` $dout attr-dict `:` functional-type(operands, results)
  }];
}

def NN_GateWeightOp : NN_PureOp<"gate_weight", [NN_Vjp]> {
  let summary = "The weight of the expert that all tokens share";
  let description = [{
    `weight[t] = sigmoid(input[t,0])`, with `sigmoid(x) = 1 / (1 + exp(-x))`.

    * (C1) `input` is `[..., 1]`, `weight` f32 `[...]`.

    Example:

    ```mlir
    %w = nn.gate_weight %x : (tensor<2x8x1xf32>) -> tensor<2x8xf32>
    ```

    Source: Hugging Face's Qwen2MoeSparseMoeBlock.
  }];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_F32Tensor:$weight);
  let assemblyFormat = "$input attr-dict `:` functional-type(operands, results)";
}

def NN_GateWeightBackwardOp : NN_PureOp<"gate_weight_backward", [
    AllTypesMatch<["weight", "dweight"]> /* C1 */]> {
  let summary = "Gradient of nn.gate_weight";
  let description = [{
    `dinput[t,0] = dweight[t] * weight[t] * (1 - weight[t])`.

    * (C1) `weight` and `dweight` are f32 `[...]`, `dinput` `[..., 1]`.

    Example:

    ```mlir
    %dx = nn.gate_weight_backward %w, %dw : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8x1xf32>
    ```
  }];
  let arguments = (ins NN_F32Tensor:$weight, NN_F32Tensor:$dweight);
  let results = (outs NN_Tensor:$dinput);
  let assemblyFormat = [{
    $weight `,` $dweight attr-dict `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Balance
//===----------------------------------------------------------------------===//

def NN_CountRowsOp : NN_PureOp<"count_rows"> {
  let summary = "How many rows each expert has, in all layers";
  let description = [{
    `rows[e] = sum over all offsets o of o[e + 1] - o[e]`. It has no gradient.

    * (C1) `rows` is f32 `[E]`, each of the `offsets`, at least one, `[E + 1]`.

    Example:

    ```mlir
    %n = nn.count_rows %o, %p : (tensor<5xi32>, tensor<5xi32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<NN_Ids>:$offsets);
  let results = (outs NN_F32Tensor:$rows);
  let assemblyFormat = "$offsets attr-dict `:` functional-type(operands, results)";
}

def NN_CountChoicesOp : NN_PureOp<"count_choices"> {
  let summary = "How often each expert is chosen";
  let description = [{
    `rows[e]` is the number of `ids` that are `e`; or `rows[b,e]` that of `ids[b,...]`. It has no gradient.

    * (C1) `rows` is f32 `[E]`, or f32 `[B, E]` where `ids` is `[B, T, S]`.

    Example:

    ```mlir
    %n = nn.count_choices %ids : (tensor<2x8x2xi32>) -> tensor<4xf32>
    %m = nn.count_choices %ids : (tensor<2x8x2xi32>) -> tensor<2x4xf32>
    ```
  }];
  let arguments = (ins NN_Ids:$ids);
  let results = (outs NN_F32Tensor:$rows);
  let assemblyFormat = "$ids attr-dict `:` functional-type(operands, results)";
}

def NN_ExpectedRowsOp : NN_PureOp<"expected_rows", [NN_Vjp]> {
  let summary = "How many rows the expert of a token may be expected to have";
  let description = [{
    `out[t] = sum over e of p[t,e] * rows[e]`, with `p[t,:]` the softmax of `logits[t,:]`, or with
    `sigmoid` `s[t,e] / (sum over i of s[t,i] + 1e-20)` of `s = 1 / (1 + exp(-logits))`: the
    larger, the less evenly experts are used. Sequences may each have `rows` of their own. These have
    no gradient.

    * (C1) `logits` is f32 `[..., E]`, `rows` f32 `[E]`, or f32 `[B, E]` where `logits` is `[B, T, E]`,
      `out` f32 `[...]`.

    Examples:

    ```mlir
    %l = nn.expected_rows %r, %n : (tensor<2x8x4xf32>, tensor<4xf32>) -> tensor<2x8xf32>
    %k = nn.expected_rows %r, %m sigmoid : (tensor<2x8x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
    ```

    Sources: Fedus et al., Switch Transformers, arXiv:2101.03961, section 2.2; DeepSeek-V3,
    arXiv:2412.19437, section 2.1.2 (of a sequence).
  }];
  let arguments = (ins NN_F32Tensor:$logits, NN_F32Tensor:$rows, UnitAttr:$sigmoid);
  let results = (outs NN_F32Tensor:$out);
  let assemblyFormat = [{
    $logits `,` $rows (`sigmoid` $sigmoid^)? attr-dict `:` functional-type(operands, results)
  }];
}

def NN_ExpectedRowsBackwardOp : NN_PureOp<"expected_rows_backward", [
    AllTypesMatch<["logits", "dlogits"]> /* C1 */]> {
  let summary = "Gradient of nn.expected_rows with respect to its logits";
  let description = [{
    With `p`, `s` and `out` as there, `dlogits[t,e] = dout[t] * p[t,e] * (rows[e] - out[t])`, and with
    `sigmoid` this times `1 - s[t,e]`.

    * (C1) `logits` and `dlogits` are f32 `[..., E]`, `rows` f32 `[E]`, or f32 `[B, E]` where `logits`
      is `[B, T, E]`, `dout` f32 `[...]`.

    Example:

    ```mlir
    %dr = nn.expected_rows_backward %r, %n, %dl
      : (tensor<2x8x4xf32>, tensor<4xf32>, tensor<2x8xf32>) -> tensor<2x8x4xf32>
    ```
  }];
  let arguments = (ins NN_F32Tensor:$logits, NN_F32Tensor:$rows, NN_F32Tensor:$dout,
                       UnitAttr:$sigmoid);
  let results = (outs NN_F32Tensor:$dlogits);
  let assemblyFormat = [{
    $logits `,` $rows `,` $dout (`sigmoid` $sigmoid^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_SquaredLogSumExpOp : NN_PureOp<"squared_logsumexp", [NN_Vjp]> {
  let summary = "How far the logits of a token are from probabilities";
  let description = [{
    `out[t] = ln(sum over e of exp(logits[t,e]))^2`, which is zero where the exponentials add up to 1.

    * (C1) `logits` is f32 `[..., E]`, `out` f32 `[...]`.

    Example:

    ```mlir
    %z = nn.squared_logsumexp %r : (tensor<2x8x4xf32>) -> tensor<2x8xf32>
    ```

    Source: Zoph et al., ST-MoE, arXiv:2202.08906, section 3.2.
  }];
  let arguments = (ins NN_F32Tensor:$logits);
  let results = (outs NN_F32Tensor:$out);
  let assemblyFormat = "$logits attr-dict `:` functional-type(operands, results)";
}

def NN_SquaredLogSumExpBackwardOp : NN_PureOp<"squared_logsumexp_backward", [
    AllTypesMatch<["logits", "dlogits"]> /* C1 */]> {
  let summary = "Gradient of nn.squared_logsumexp";
  let description = [{
    With `p[t,:]` the softmax of `logits[t,:]`,
    `dlogits[t,e] = 2 * dout[t] * ln(sum over i of exp(logits[t,i])) * p[t,e]`.

    * (C1) `logits` and `dlogits` are f32 `[..., E]`, `dout` f32 `[...]`.

    Example:

    ```mlir
    %dr = nn.squared_logsumexp_backward %r, %dz : (tensor<2x8x4xf32>, tensor<2x8xf32>) -> tensor<2x8x4xf32>
    ```
  }];
  let arguments = (ins NN_F32Tensor:$logits, NN_F32Tensor:$dout);
  let results = (outs NN_F32Tensor:$dlogits);
  let assemblyFormat = "$logits `,` $dout attr-dict `:` functional-type(operands, results)";
}

def NN_BalanceBiasOp : NN_PureOp<"balance_bias", [
    AllTypesMatch<["bias", "rows", "new_bias"]> /* C1 */]> {
  let summary = "Favours experts that have few rows";
  let description = [{
    `new_bias[e] = bias[e] + rate * sign(mean - rows[e])`, with the mean of all `rows` and zero as the
    sign of zero. If `scale` is NaN, the bias stays as it is. Works in place.

    * (C1) All tensors are f32 `[E]`.
    * (C2) `rate` is at least 0 and finite.

    Example:

    ```mlir
    %b1 = nn.balance_bias %b, %n, %scale rate 1.0e-03 : tensor<4xf32>, tensor<f32>
    ```

    Source: Wang et al., arXiv:2408.15664, section 3.
  }];
  let arguments = (ins NN_F32Tensor:$bias, NN_F32Tensor:$rows, NN_Scalar:$scale, F32Attr:$rate);
  let results = (outs NN_F32Tensor:$new_bias);
  let assemblyFormat = [{
    $bias `,` $rows `,` $scale `rate` $rate attr-dict `:` type($bias) `,` type($scale)
  }];
}

#endif // REPRISE_DIALECT_NN_NNEXPERTOPS
