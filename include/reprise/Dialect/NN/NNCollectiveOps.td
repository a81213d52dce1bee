//===- NNCollectiveOps.td - Ranks and their collectives ----*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_NNCOLLECTIVEOPS
#define REPRISE_DIALECT_NN_NNCOLLECTIVEOPS

include "reprise/Dialect/NN/NNBase.td"

def NN_MeshAttr : NN_Attr<"Mesh", "mesh"> {
  let summary = "The ranks of a program, on named axes";
  let description = [{
    On a module as `nn.mesh`. Ranks are numbered along the last axis first. Every rank runs the
    same functions; along `dp` ranks have samples of their own.

    An axis with a `step` is part of another one and adds no ranks: from one of its ranks to
    the next, numbers of ranks differ by the step. So in the second example the ranks 0 to 3
    along `tp` have the numbers 0, 0, 1, 1 along `kv` and 0, 1, 0, 1 along `kv_copies`.

    * (C1) Axes are those that a mesh can have, each once, with 1 rank or more, and there are at
      most 2^20 ranks.
    * (C2) An axis with a step lies within one without, or, if it is `ep` or `ep_copies`, within `dp` and `tp`
      together: `n` ranks at a step of `k` times that one's own, where `n * k` divides its ranks.

    Examples: `#nn.mesh<dp = 2>`, `#nn.mesh<tp = 4, kv = 2 step 2, kv_copies = 2 step 1>`
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$names,
                        ArrayRefParameter<"int64_t">:$sizes,
                        ArrayRefParameter<"int64_t">:$steps);
  let builders = [
    /// Of axes that are no part of others.
    AttrBuilder<(ins "::llvm::ArrayRef<::mlir::StringAttr>":$names,
                     "::llvm::ArrayRef<int64_t>":$sizes), [{
      return $_get($_ctxt, names, sizes, ::llvm::SmallVector<int64_t>(sizes.size(), 0));
    }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The ranks along an axis; 1 for one that the mesh does not have.
    int64_t getSize(::llvm::StringRef axis) const;
    /// From one rank along an axis to the next; 0 for an axis that the mesh does not have.
    int64_t getStride(::llvm::StringRef axis) const;
    /// The number of a rank along an axis.
    int64_t getCoordinate(int64_t rank, ::llvm::StringRef axis) const;
    int64_t getNumRanks() const;
  }];
}

/// The order of an axis' collectives: ranks meet in each of them.
def NN_NetworkResource : Resource<"::reprise::nn::NetworkResource">;

/// Something that the ranks along an axis do together: it stays where it is, and
/// is neither merged with another nor dropped.
class NN_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat(traits, [
        MemoryEffects<[MemRead<NN_NetworkResource>, MemWrite<NN_NetworkResource>]>,
        DeclareOpInterfaceMethods<CostModel, ["getFlops"]>])> {
  let hasVerifier = 1;
}

def NN_AllReduceOp : NN_CollectiveOp<"all_reduce", [
    NN_Vjp, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "Sums over the ranks along an axis";
  let description = [{
    Result `i` is the sum of operand `i` of all ranks along `axis`, element by element, by the binary tree that splits
    `n` terms, in order of the ranks, at the largest power of two below `n`: `((0 + 1) + (2 + 3)) + 4`. Each addition
    rounds to f32, and a sum of bf16 is rounded once more, to bf16. That is from `P` to `I`: the gradient of the sum is
    that of each operand. With `nn.reduction_groups` ranks have a term for each run of their groups, as the dialect says.

    * (C1) There is an operand, and as many results, of the same types; or as many operands for each as there are runs.
    * (C2) `axis` is one of the `nn.mesh` of the module, if that has one.
    * (C3) With `members`, the sum is that of these ranks along the axis alone, and only they have the
      op: two or more, ascending, equally far from each other.

    Examples:

    ```mlir
    %sums:2 = nn.all_reduce %dw, %db over "dp" : tensor<24x96xf32>, tensor<96xf32>
    %tied = nn.all_reduce %dw over "pp" members [0, 3] : tensor<24x96xf32>
    ```
  }];
  let arguments = (ins Variadic<NN_Tensor>:$values, StrAttr:$axis,
                       OptionalAttr<DenseI64ArrayAttr>:$members);
  let results = (outs Variadic<NN_Tensor>:$sums);
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$values, "::mlir::StringAttr":$axis), [{
    build($_builder, $_state, values, axis, ::mlir::DenseI64ArrayAttr());
  }]>];
  let assemblyFormat = [{
    $values `over` $axis (`members` $members^)? attr-dict `:` type($values)
  }];
}

//===----------------------------------------------------------------------===//
// Shares
//===----------------------------------------------------------------------===//
//
// A value of N elements, seen flat, is cut into shares of
// S = min(N, 16384 * ceil(ceil(N / 16384) / n)) elements for n ranks: the rank
// with number r has elements [r * S, (r + 1) * S), of which the last ranks may
// have fewer or none. Shares begin where blocks of `rt.block_sums` do.

def NN_ReduceSharesOp : NN_CollectiveOp<"reduce_shares", [
    DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "A rank's share of sums over the ranks along an axis";
  let description = [{
    Result `i` has the rank's share of what `nn.all_reduce` makes of operand `i`, to the last bit, and
    zeros elsewhere. The share of the rank with number `r` of `n` along `axis`, of a value of `N` elements, is
    the elements from `r S` up to `(r + 1) S`, if there are so many, where `S` is the smaller of `N` and
    `16384 ceil(ceil(N / 16384) / n)`.

    * (C1) There is an operand, and as many results, of the same types; or several terms of each, as of `nn.all_reduce`.
    * (C2) `axis` is one of the `nn.mesh` of the module, if that has one.

    Example:

    ```mlir
    %own:2 = nn.reduce_shares %dw, %db over "dp" : tensor<24x96xf32>, tensor<96xf32>
    ```

    Source: Rajbhandari et al., arXiv:1910.02054, section 5.1 (states that ranks have shares of).
  }];
  let arguments = (ins Variadic<NN_Tensor>:$values, StrAttr:$axis);
  let results = (outs Variadic<NN_Tensor>:$sums);
  let assemblyFormat = "$values `over` $axis attr-dict `:` type($values)";
}

def NN_GatherSharesOp : NN_CollectiveOp<"gather_shares", [
    AllTypesMatch<["whole", "out"]> /* C1 */]> {
  let summary = "The shares of all ranks along an axis, where they belong";
  let description = [{
    `out` has of each rank its share, as `nn.reduce_shares` says which it is. Works in place of `whole`,
    which is not read.

    * (C1) `out` has the type of `whole`.
    * (C2) `axis` is one of the `nn.mesh` of the module, if that has one.
    * (C3) `share` has the element type of `whole` and one dimension, of the size of a share.

    Example:

    ```mlir
    %w1 = nn.gather_shares %share into %w over "dp" : (tensor<16384xf32>, tensor<100x200xf32>) -> tensor<100x200xf32>
    ```
  }];
  let arguments = (ins NN_Tensor:$share, NN_Tensor:$whole, StrAttr:$axis);
  let results = (outs NN_Tensor:$out);
  let assemblyFormat = [{
    $share `into` $whole `over` $axis attr-dict `:` functional-type(operands, results)
  }];
}

def NN_SharesNormOp : NN_CollectiveOp<"shares_norm"> {
  let summary = "Euclidean norm of all gradients, of which ranks have shares";
  let description = [{
    What `nn.global_norm` makes of the sums of `gradients` over all ranks along `axis`, of which each
    rank has its share and zeros elsewhere, to the last bit: ranks add up the sums of the squares of blocks, of
    which each has all or nothing.

    * (C1) There is at least one gradient.
    * (C2) `axis` is one of the `nn.mesh` of the module, if that has one.

    Example:

    ```mlir
    %norm = nn.shares_norm %g0, %g1 over "dp" : (tensor<24x96xf32>, tensor<96xf32>) -> tensor<f32>
    ```
  }];
  let arguments = (ins Variadic<NN_F32Tensor>:$gradients, StrAttr:$axis);
  let results = (outs NN_Scalar:$norm);
  let assemblyFormat = [{
    $gradients `over` $axis attr-dict `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

class NN_TransferOp<string mnemonic> : NN_CollectiveOp<mnemonic> {
  dag transfer = (ins StrAttr:$axis, I64Attr:$peer, I64Attr:$lane, I64Attr:$places);
}

def NN_SendOp : NN_TransferOp<"send"> {
  let summary = "Passes a value on to another rank along an axis";
  let description = [{
    The rank with the number `peer` along `axis`, and the rank's own numbers along all others, gets the
    value by `nn.receive`. What is sent on a lane arrives in the order in which it was sent, and lanes
    do not wait for each other. The op waits only while `places` values that were sent on the lane before are
    still to be received.

    * (C1) `axis` is one of the `nn.mesh` of the module, if that has one, and `peer` a rank along it.
    * (C2) `lane` is at least 0, `places` at least 1.

    Example:

    ```mlir
    nn.send %x to 1 over "pp" lane 0 places 2 : tensor<2x8x24xf32>
    ```
  }];
  let arguments = !con((ins NN_Tensor:$value), transfer);
  let assemblyFormat = [{
    $value `to` $peer `over` $axis `lane` $lane `places` $places attr-dict `:` type($value)
  }];
}

def NN_ReceiveOp : NN_TransferOp<"receive"> {
  let summary = "Waits for a value of another rank along an axis";
  let description = [{
    The counterpart of `nn.send`, whose lane, places and type are the same.

    * (C1) `axis` is one of the `nn.mesh` of the module, if that has one, and `peer` a rank along it.
    * (C2) `lane` is at least 0, `places` at least 1.

    Example:

    ```mlir
    %x = nn.receive from 0 over "pp" lane 0 places 2 : tensor<2x8x24xf32>
    ```
  }];
  let arguments = transfer;
  let results = (outs NN_Tensor:$value);
  let assemblyFormat = [{
    `from` $peer `over` $axis `lane` $lane `places` $places attr-dict `:` type($value)
  }];
}

def NN_StagesNormOp : NN_CollectiveOp<"stages_norm"> {
  let summary = "Euclidean norm of all gradients, of which stages have some";
  let description = [{
    What `nn.global_norm` makes of `count` gradients, to the last bit. Each is on one of the ranks along
    `axis`: gradient `i` is number `places[i]`.

    * (C1) There is a place for each gradient; places ascend, and are below `count`, which is at least 1.
    * (C2) `axis` is one of the `nn.mesh` of the module, if that has one.

    Example:

    ```mlir
    %norm = nn.stages_norm %g0, %g1 at [0, 5] of 7 over "pp" : (tensor<24x96xf32>, tensor<96xf32>) -> tensor<f32>
    ```
  }];
  let arguments = (ins Variadic<NN_F32Tensor>:$gradients, DenseI64ArrayAttr:$places,
                       I64Attr:$count, StrAttr:$axis);
  let results = (outs NN_Scalar:$norm);
  let assemblyFormat = [{
    $gradients `at` $places `of` $count `over` $axis attr-dict `:` functional-type(operands, results)
  }];
}

#endif // REPRISE_DIALECT_NN_NNCOLLECTIVEOPS
