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

    Example: `#nn.mesh<dp = 2>`
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$names,
                        ArrayRefParameter<"int64_t">:$sizes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The ranks along an axis; 1 for one that the mesh does not have.
    int64_t getSize(::llvm::StringRef axis) const;
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
    Result `i` is the sum of operand `i` of all ranks along `axis`, element by element, by the binary
    tree that splits `n` terms, in order of the ranks, at the largest power of two below `n`:
    `((0 + 1) + (2 + 3)) + 4`. Each addition rounds to f32, and a sum of bf16 is rounded once more, to
    bf16. That is from `P` to `I`: the gradient of the sum is that of each operand.

    * (C1) There is an operand, and as many results, of the same types.
    * (C2) `axis` is one of the `nn.mesh` of the module, if that has one.

    Example:

    ```mlir
    %sums:2 = nn.all_reduce %dw, %db over "dp" : tensor<24x96xf32>, tensor<96xf32>
    ```
  }];
  let arguments = (ins Variadic<NN_Tensor>:$values, StrAttr:$axis);
  let results = (outs Variadic<NN_Tensor>:$sums);
  let assemblyFormat = "$values `over` $axis attr-dict `:` type($values)";
}

#endif // REPRISE_DIALECT_NN_NNCOLLECTIVEOPS
