//===- NNShardOps.td - Parts of values and what makes them -*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_NNSHARDOPS
#define REPRISE_DIALECT_NN_NNSHARDOPS

include "reprise/Dialect/NN/NNCollectiveOps.td"

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

def NN_Word : I32EnumAttr<"Word", "How a value is spread along an axis", [
    I32EnumAttrCase<"Replicated", 0, "R">, I32EnumAttrCase<"Invariant", 1, "I">,
    I32EnumAttrCase<"Varying", 2, "V">, I32EnumAttrCase<"Partial", 3, "P">,
    I32EnumAttrCase<"Shard", 4, "S">]> {
  let cppNamespace = "::reprise::nn";
}

def NN_LayoutAttr : NN_Attr<"Layout", "layout"> {
  let summary = "How a value is spread over the ranks, a word for each axis";
  let description = [{
    Along an axis a value is, by its word:

    | word | ranks hold | their gradients |
    |---|---|---|
    | `R` | the same, each for a use of its own | parts of a sum |
    | `I` | the same, for the same use | the same |
    | `V` | values of their own | of their own |
    | `P` | parts of a sum | the same |
    | `S(d)` | in order of the ranks, equal blocks of dimension `d` | blocks too |

    On an argument of `@forward` and `@step` as `nn.layout`, where a checkpoint finds the whole
    parameter by it; on an op, before `reprise-partition`, of its first result. An axis that is
    not named has the word `I`.

    * (C1) Each axis is named once, and is one of those that a mesh can have.
    * (C2) The dimension is not negative.

    Example: `#nn.layout<tp = S(1)>`

    Source: spmd_types of PyTorch, whose words these are.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$names,
                        ArrayRefParameter<"::reprise::nn::Word">:$words,
                        ArrayRefParameter<"int64_t">:$dims);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The word of one axis; `dim` counts for `S` alone.
    static LayoutAttr get(::mlir::MLIRContext *context, ::llvm::StringRef axis, Word word,
                          int64_t dim = 0);
    /// That along an axis; `I` for one that is not named.
    Word getWord(::llvm::StringRef axis) const;
    /// The dimension that is cut along an axis, or -1.
    int64_t getShardDim(::llvm::StringRef axis) const;
  }];
}

//===----------------------------------------------------------------------===//
// From one word to another
//===----------------------------------------------------------------------===//

def NN_AllGatherOp : NN_CollectiveOp<"all_gather", [
    NN_Vjp, AllElementTypesMatch<["input", "out"]> /* C1 */]> {
  let summary = "The parts of all ranks along an axis, one behind the other";
  let description = [{
    `out` is the operands of the `n` ranks along `axis`, in their order, one behind the other in
    dimension `dim`: from `S(dim)` to `word`. What comes of it is the ranks' own for `R`, so its
    gradients are parts of a sum and the operand's is their `nn.reduce_scatter`; for `I` it is
    the same on all ranks, and the operand's gradient is an `nn.slice` of it.

    * (C1) `out` has the element type of `input`.
    * (C2) `axis` is one of the `nn.mesh` of the module, if that has one.
    * (C3) `out` has `n` times the size of `input` in dimension `dim` (without a mesh, any
      multiple) and the sizes of `input` in all others.
    * (C4) `word` is `R` or `I`.

    Example:

    ```mlir
    %x = nn.all_gather %part to R over "tp" dim 1 : (tensor<2x4x24xf32>) -> tensor<2x8x24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, NN_Word:$word, StrAttr:$axis, I64Attr:$dim);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = [{
    $input `to` $word `over` $axis `dim` $dim attr-dict `:` functional-type(operands, results)
  }];
}

def NN_ReduceScatterOp : NN_CollectiveOp<"reduce_scatter", [
    NN_Vjp, AllElementTypesMatch<["input", "out"]> /* C1 */]> {
  let summary = "A rank's part of the sum over the ranks along an axis";
  let description = [{
    Of the sum of all operands, by the tree of `nn.all_reduce`, each of the `n` ranks has its
    block of dimension `dim`, in order of the ranks: from `P` to `S(dim)`. The gradient is an
    `nn.all_gather` to `R`.

    * (C1) `out` has the element type of `input`.
    * (C2) `axis` is one of the `nn.mesh` of the module, if that has one.
    * (C3) `input` has `n` times the size of `out` in dimension `dim` (without a mesh, any
      multiple) and the sizes of `out` in all others.

    Example:

    ```mlir
    %part = nn.reduce_scatter %x over "tp" dim 1 : (tensor<2x8x24xf32>) -> tensor<2x4x24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, StrAttr:$axis, I64Attr:$dim);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = [{
    $input `over` $axis `dim` $dim attr-dict `:` functional-type(operands, results)
  }];
}

/// Something that a rank does by itself with what is its own along an axis.
class NN_ShardOp<string mnemonic, list<Trait> traits = []>
    : NN_PureOp<mnemonic, traits>;

def NN_TakeShareOp : NN_ShardOp<"take_share", [
    AllElementTypesMatch<["input", "out"]> /* C1 */]> {
  let summary = "A rank's own share of a value";
  let description = [{
    The elements of `input` that are the rank's share along `axis`, as `nn.reduce_shares` says which
    these are, and zeros behind them.

    * (C1) `out` has the element type of `input`.
    * (C2) `axis` is one of the `nn.mesh` of the module, if that has one.
    * (C3) `out` has one dimension, of the size of a share.

    Example:

    ```mlir
    %own = nn.take_share %w over "dp" : (tensor<100x200xf32>) -> tensor<16384xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, StrAttr:$axis);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = "$input `over` $axis attr-dict `:` functional-type(operands, results)";
}

def NN_SliceOp : NN_ShardOp<"slice", [
    NN_Vjp, AllElementTypesMatch<["input", "out"]> /* C1 */]> {
  let summary = "A rank's own part of a value that all ranks have";
  let description = [{
    Of the `n` equal blocks of dimension `dim`, that of the rank's number along `axis`: from `I`
    to `S(dim)`, without communication. The gradient is an `nn.all_gather` to `I`.

    * (C1) `out` has the element type of `input`.
    * (C2) `axis` is one of the `nn.mesh` of the module, if that has one.
    * (C3) `input` has `n` times the size of `out` in dimension `dim` (without a mesh, any
      multiple) and the sizes of `out` in all others.

    Example:

    ```mlir
    %part = nn.slice %x over "tp" dim 1 : (tensor<2x8x24xf32>) -> tensor<2x4x24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, StrAttr:$axis, I64Attr:$dim);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = [{
    $input `over` $axis `dim` $dim attr-dict `:` functional-type(operands, results)
  }];
}

def NN_ReplicateOp : NN_ShardOp<"replicate", [NN_Vjp, SameOperandsAndResultType]> {
  let summary = "From here on, each rank uses a value in its own way";
  let description = [{
    `out` is `input`: from `I` to `R`. It is there for its gradient, the `nn.all_reduce` of
    the parts that the ranks have; `reprise-differentiate` leaves nothing of it in the step.

    * (C1) `axis` is one of the `nn.mesh` of the module, if that has one.

    Example:

    ```mlir
    %y = nn.replicate %x over "tp" : tensor<2x8x24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, StrAttr:$axis);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = "$input `over` $axis attr-dict `:` type($input)";
}

//===----------------------------------------------------------------------===//
// On parts of a vocabulary
//===----------------------------------------------------------------------===//

def NN_EmbeddingPartOp : NN_ShardOp<"embedding_part", [NN_Vjp]> {
  let summary = "Rows of a rank's part of a table";
  let description = [{
    The table is cut along `axis` in equal blocks of `V` rows; the rank with number `r` has
    those from `r*V` on. `out[b,t,:] = table[ids[b,t] - r*V,:]` where there is such a row, and
    0 elsewhere: a part of a sum, that of all ranks is `nn.embedding` of the whole table.

    * (C1) `out` has the element type of `table`, or is bf16 of one of f32.
    * (C2) `ids` is `[B, T]`, `table` `[V, C]`, `out` `[B, T, C]`.
    * (C3) `axis` is one of the `nn.mesh` of the module, if that has one.

    Example:

    ```mlir
    %x = nn.embedding_part %ids, %table over "tp" : (tensor<2x8xi32>, tensor<154x24xf32>) -> tensor<2x8x24xf32>
    ```
  }];
  let arguments = (ins NN_Ids:$ids, NN_Tensor:$table, StrAttr:$axis);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = [{
    $ids `,` $table `over` $axis attr-dict `:` functional-type(operands, results)
  }];
}

def NN_EmbeddingPartBackwardOp : NN_ShardOp<"embedding_part_backward"> {
  let summary = "Gradient of a rank's part of an embedding table";
  let description = [{
    The rows from `r*V` on of the `dtable` of `nn.embedding_backward`, for the rank with
    number `r` along `axis`.

    * (C1) `dtable` is f32, as is the gradient of any parameter.
    * (C2) `ids` is `[B, T]`, `dout` `[B, T, C]`, `dtable` `[V, C]`.
    * (C3) `axis` is one of the `nn.mesh` of the module, if that has one.

    Example:

    ```mlir
    %dtable = nn.embedding_part_backward %ids, %dx over "tp" : (tensor<2x8xi32>, tensor<2x8x24xf32>) -> tensor<154x24xf32>
    ```
  }];
  let arguments = (ins NN_Ids:$ids, NN_Tensor:$dout, StrAttr:$axis);
  let results = (outs NN_F32Tensor:$dtable);
  let assemblyFormat = [{
    $ids `,` $dout `over` $axis attr-dict `:` functional-type(operands, results)
  }];
}

def NN_CrossEntropyPartOp : NN_ShardOp<"cross_entropy_part", [
    NN_Vjp, AllTypesMatch<["lse", "hit"]> /* C1 */]> {
  let summary = "What a rank's part of the logits adds to each row's cross-entropy";
  let description = [{
    The vocabulary is cut along `axis` in equal blocks of `V`; the rank with number `r` has the
    logits from `r*V` on.

    ```
    lse[b,t] = ln(sum over v of exp(logits[b,t,v]))
    hit[b,t] = logits[b,t,targets[b,t] - r*V], or 0 where that is no column
    ```

    The loss of a row is the log-sum-exp of the `lse` of all ranks less the sum of their `hit`.
    With `classes`, columns from that one on of the whole are none: their logits count for
    nothing. A rank may have no other, and then an `lse` of minus infinity.

    * (C1) `lse` has the type of `hit`.
    * (C2) `logits` is `[B, T, V]`, `targets` and `lse` `[B, T]`.
    * (C3) `axis` is one of the `nn.mesh` of the module, if that has one.
    * (C4) `classes` is at least 1.

    Example:

    ```mlir
    %lse, %hit = nn.cross_entropy_part %logits, %targets over "tp"
      : (tensor<2x8x154xf32>, tensor<2x8xi32>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
    ```
  }];
  let arguments = (ins NN_Tensor:$logits, NN_Ids:$targets, StrAttr:$axis,
                       OptionalAttr<I64Attr>:$classes);
  let results = (outs NN_F32Tensor:$lse, NN_F32Tensor:$hit);
  let assemblyFormat = [{
    $logits `,` $targets `over` $axis (`classes` $classes^)? attr-dict `:` functional-type(operands, results)
  }];
}

def NN_CrossEntropyPartBackwardOp : NN_ShardOp<"cross_entropy_part_backward", [
    AllTypesMatch<["logits", "dlogits"]>, AllTypesMatch<["lse", "dlse", "dhit"]> /* C1 */]> {
  let summary = "Gradient of nn.cross_entropy_part";
  let description = [{
    `dlogits[b,t,v] = exp(logits[b,t,v] - lse[b,t]) * dlse[b,t] + (r*V + v = targets[b,t]) * dhit[b,t]`
    for the rank with number `r` along `axis`, and 0 in columns that are no classes.

    * (C1) `dlogits` has the type of `logits`; `dlse` and `dhit` that of `lse`.
    * (C2) `logits` is `[B, T, V]`, `targets` and `lse` `[B, T]`.
    * (C3) `axis` is one of the `nn.mesh` of the module, if that has one.

    Example:

    ```mlir
    %dlogits = nn.cross_entropy_part_backward %logits, %targets, %lse, %dlse, %dhit over "tp"
      : (tensor<2x8x154xf32>, tensor<2x8xi32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8x154xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$logits, NN_Ids:$targets, NN_F32Tensor:$lse,
                       NN_F32Tensor:$dlse, NN_F32Tensor:$dhit, StrAttr:$axis,
                       OptionalAttr<I64Attr>:$classes);
  let results = (outs NN_Tensor:$dlogits);
  let assemblyFormat = [{
    $logits `,` $targets `,` $lse `,` $dlse `,` $dhit `over` $axis (`classes` $classes^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def NN_JoinLseOp : NN_ShardOp<"join_lse", [NN_Vjp]> {
  let summary = "The log-sum-exp of a row from those of its parts";
  let description = [{
    `lse[b,t] = ln(sum over r of exp(parts[r*B + b,t]))`: `parts` has the rows of one rank
    behind those of the other.

    * (C1) `lse` is `[B, T]`, `parts` `[n*B, T]`.

    Example:

    ```mlir
    %lse = nn.join_lse %parts : (tensor<4x8xf32>) -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins NN_F32Tensor:$parts);
  let results = (outs NN_F32Tensor:$lse);
  let assemblyFormat = "$parts attr-dict `:` functional-type(operands, results)";
}

def NN_JoinLseBackwardOp : NN_ShardOp<"join_lse_backward", [
    AllTypesMatch<["parts", "dparts"]>, AllTypesMatch<["lse", "dlse"]> /* C1 */]> {
  let summary = "Gradient of nn.join_lse";
  let description = [{
    `dparts[r*B + b,t] = exp(parts[r*B + b,t] - lse[b,t]) * dlse[b,t]`.

    * (C1) `dparts` has the type of `parts`, `dlse` that of `lse`.
    * (C2) `lse` is `[B, T]`, `parts` `[n*B, T]`.

    Example:

    ```mlir
    %dparts = nn.join_lse_backward %parts, %lse, %dlse : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins NN_F32Tensor:$parts, NN_F32Tensor:$lse, NN_F32Tensor:$dlse);
  let results = (outs NN_F32Tensor:$dparts);
  let assemblyFormat = [{
    $parts `,` $lse `,` $dlse attr-dict `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Behind a sum over ranks
//===----------------------------------------------------------------------===//

def NN_AddBiasOp : NN_PureOp<"add_bias", [
    NN_Vjp, NN_Rowwise, AllTypesMatch<["input", "out"]>,
    AllElementTypesMatch<["input", "bias"]> /* C1 */]> {
  let summary = "Adds a row to every row";
  let description = [{
    `out[..., n] = input[..., n] + bias[n]`: for a bias that is added once, behind the sum over
    ranks of the GEMM's parts.

    * (C1) `out` has the type of `input`, `bias` its element type.
    * (C2) `input` is `[..., N]`, `bias` `[N]`.

    Example:

    ```mlir
    %y = nn.add_bias %x, %b : (tensor<2x8x24xf32>, tensor<24xf32>) -> tensor<2x8x24xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$input, NN_Tensor:$bias);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = "$input `,` $bias attr-dict `:` functional-type(operands, results)";
}

#endif // REPRISE_DIALECT_NN_NNSHARDOPS
