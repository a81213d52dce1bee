//===- RTExpertOps.td - Mixtures of experts ----------------*- tablegen -*-===//
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

#ifndef REPRISE_DIALECT_RT_RTEXPERTOPS
#define REPRISE_DIALECT_RT_RTEXPERTOPS

def RT_ChooseExpertsOp : RT_KernelOp<"choose_experts"> {
  let summary = "The experts that each token goes to";
  let description = [{
    As `nn.choose_experts`.

    * (C1) `logits` is f32 `[..., E]`, `ids` i32 `[..., S]` with `S <= E`, `bias` f32 `[E]`.
    * (C2) `groups` `G` divides `E`, `keep` `K` is from 1 to `G`, and `S <= K * E/G`; with `by_two`
      `E/G` is at least 2. All three stand together.

    Example:

    ```mlir
    %ids = rt.choose_experts %r : (tensor<2x8x4xf32>) -> tensor<2x8x2xi32>
    %jds = rt.choose_experts %s bias %b sigmoid groups 4 keep 2 by_two
      : (tensor<2x8x16xf32>, tensor<16xf32>) -> tensor<2x8x3xi32>
    ```
  }];
  let arguments = (ins RT_Buffer:$logits, Optional<RT_Buffer>:$bias, UnitAttr:$sigmoid,
                       OptionalAttr<I64Attr>:$groups, OptionalAttr<I64Attr>:$keep,
                       UnitAttr:$by_two);
  let results = (outs RT_Buffer:$ids);
  let assemblyFormat = [{
    $logits (`bias` $bias^)? (`sigmoid` $sigmoid^)? (`groups` $groups^)? (`keep` $keep^)?
    (`by_two` $by_two^)? attr-dict `:` functional-type(operands, results)
  }];
}

def RT_ExpertWeightsOp : RT_KernelOp<"expert_weights"> {
  let summary = "The weights of the experts that each token goes to";
  let description = [{
    As `nn.expert_weights`.

    * (C1) `logits` is f32 `[..., E]`, `ids` i32 and `weights` f32 `[..., S]` with `S <= E`.

    Example:

    ```mlir
    %w = rt.expert_weights %r, %ids normalized : (tensor<2x8x4xf32>, tensor<2x8x2xi32>) -> tensor<2x8x2xf32>
    %v = rt.expert_weights %r, %ids sigmoid normalized scale 2.5
      : (tensor<2x8x4xf32>, tensor<2x8x2xi32>) -> tensor<2x8x2xf32>
    ```
  }];
  let arguments = (ins RT_Buffer:$logits, RT_Buffer:$ids, UnitAttr:$sigmoid, UnitAttr:$normalized,
                       OptionalAttr<F32Attr>:$scale);
  let results = (outs RT_Buffer:$weights);
  let assemblyFormat = [{
    $logits `,` $ids (`sigmoid` $sigmoid^)? (`normalized` $normalized^)? (`scale` $scale^)?
    attr-dict `:` functional-type(operands, results)
  }];
}

def RT_ExpertWeightsBackwardOp : RT_KernelOp<"expert_weights_backward"> {
  let summary = "Gradient of rt.expert_weights";
  let description = [{
    As `nn.expert_weights_backward`.

    * (C1) `logits` and `dlogits` are f32 `[..., E]`, `ids` i32 and `dweights` f32 `[..., S]`
      with `S <= E`.

    Example:

    ```mlir
    %dr = rt.expert_weights_backward %r, %ids, %dw normalized
      : (tensor<2x8x4xf32>, tensor<2x8x2xi32>, tensor<2x8x2xf32>) -> tensor<2x8x4xf32>
    ```
  }];
  let arguments = (ins RT_Buffer:$logits, RT_Buffer:$ids, RT_Buffer:$dweights,
                       UnitAttr:$sigmoid, UnitAttr:$normalized, OptionalAttr<F32Attr>:$scale);
  let results = (outs RT_Buffer:$dlogits);
  let assemblyFormat = [{
    $logits `,` $ids `,` $dweights (`sigmoid` $sigmoid^)? (`normalized` $normalized^)?
    (`scale` $scale^)? attr-dict `:` functional-type(operands, results)
  }];
}

def RT_SortRowsOp : RT_KernelOp<"sort_rows"> {
  let summary = "Sorts rows by their expert";
  let description = [{
    As `nn.sort_rows`: a stable sort by counting.

    * (C1) `ids` and `inverse` are i32 of one shape, `order` i32 `[R]` with an element for each,
      `offsets` i32 of at least two elements.
    * (C2) With `capacity` `C`, at least 1, `R` is one more than the smaller of the number of ids and
      `E * C`.
    * (C3) `weights` is f32 with an element for each id, and is there with `capacity` alone.

    Examples:

    ```mlir
    %order, %inverse, %offsets = rt.sort_rows %ids : (tensor<2x8x2xi32>) -> (tensor<32xi32>, tensor<2x8x2xi32>, tensor<5xi32>)
    %some, %places, %ends = rt.sort_rows %ids by %w capacity 6
      : (tensor<2x8x2xi32>, tensor<2x8x2xf32>) -> (tensor<25xi32>, tensor<2x8x2xi32>, tensor<5xi32>)
    ```
  }];
  let arguments = (ins RT_Buffer:$ids, Optional<RT_Buffer>:$weights, OptionalAttr<I64Attr>:$capacity);
  let results = (outs RT_Buffer:$order, RT_Buffer:$inverse, RT_Buffer:$offsets);
  let assemblyFormat = [{
    $ids (`by` $weights^)? (`capacity` $capacity^)? attr-dict `:` functional-type(operands, results)
  }];
}

def RT_CountRowsOp : RT_KernelOp<"count_rows"> {
  let summary = "How many rows each expert has, in all layers";
  let description = [{
    As `nn.count_rows`.

    * (C1) `rows` is f32 `[E]`, each of the `offsets`, at least one, i32 `[E + 1]`.

    Example:

    ```mlir
    %n = rt.count_rows %o, %p : (tensor<5xi32>, tensor<5xi32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<RT_Buffer>:$offsets);
  let results = (outs RT_Buffer:$rows);
  let assemblyFormat = "$offsets attr-dict `:` functional-type(operands, results)";
}

def RT_CountChoicesOp : RT_KernelOp<"count_choices"> {
  let summary = "How often each expert is chosen";
  let description = [{
    As `nn.count_choices`.

    * (C1) `rows` is f32 `[E]` or `[B, E]`, where `B` divides the number of `ids`, which are i32.

    Example:

    ```mlir
    %n = rt.count_choices %ids : (tensor<2x8x2xi32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins RT_Buffer:$ids);
  let results = (outs RT_Buffer:$rows);
  let assemblyFormat = "$ids attr-dict `:` functional-type(operands, results)";
}

#endif // REPRISE_DIALECT_RT_RTEXPERTOPS
