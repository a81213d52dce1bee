//===- NNBase.td - The nn dialect, its attributes, types ---*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_NNBASE
#define REPRISE_DIALECT_NN_NNBASE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "reprise/Interfaces/CostModel.td"
include "reprise/Interfaces/Differentiable.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::reprise::nn";
  let summary = "One operation for each thing in a transformer that a person would name";
  let description = [{
    Tensors have static shapes and at least one element; an op computes what its
    formula says, rounds its results to their element type, and has no side
    effect. Constraints are numbered op by op, (C1), (C2), ..., and named so in
    verifiers and tests.

    The letters in the formulas: `B` micro-batch, `T` sequence length, `C` hidden
    width, `H` heads, `G` heads of keys and values, `D` head width, `F` feed-forward
    width, `V` vocabulary, `P` positions, `[...]` one dimension or more. Activations are `[B, T, C]`; what
    attention reads is `[B, T, H*D]`, head `h` in the columns from `h*D` on;
    attention scores are `[B, H, T, T]`.

    A step is one function, `@step`, in three parts. Everything above
    `nn.backward` is the forward pass, everything from there to `nn.update` the
    backward pass; both run once for each of the `nn.micro_batches` of a step.
    What follows `nn.update` runs once a step. Each argument of `@step` has a
    role, given by one attribute:

    | argument attribute | meaning |
    |---|---|
    | `nn.input = "tokens"`, `"targets"` | ids, `tensor<BxTxi32>` |
    | `nn.input = "rng"` | seed (low, high), step, micro-batch: `tensor<4xi32>` |
    | `nn.input = "lr"`, `"bias_correction1"`, `"bias_correction2"` | `tensor<f32>`, this step's learning rate and `1 - beta^t` |
    | `nn.input = "loss_sum"` | `tensor<f32>`, the loss of the micro-batches so far, zero at first |
    | `nn.input = "border"`, `"border_gradient"` | of a [chunk](../schedules.md#chunks): what the chunk before passes on, and the gradient of what it passes on itself |
    | `nn.parameter = #nn.parameter<…>` | a parameter |
    | `nn.rotary = #nn.rotary<…>` | a table of angles for `nn.rope`, `tensor<TxDxf32>`, filled once before the first step |
    | `nn.gradient = "name"` | the sum of the gradients so far of the parameter of that name, zero at first |
    | `nn.partial = #nn.partial<…>` | a sum of gradients that waits for others |
    | `nn.moment1 = "name"`, `nn.moment2 = "name"` | optimizer state |
    | `nn.working = "name"` | the parameter of that name, rounded to bf16 |
    | `nn.measure = "name"` | what is shown of the micro-batches so far, zero at first: a number's mean, or the sum of a vector, in which something is counted; `nn.term = "total"` beside it, on a result of `@forward`, says that it is a term of the loss that is trained, and part of the measure `total`, which is the sum of the terms that say the same |

    With `nn.follows = "name"` beside a frozen `nn.parameter`, a bias, `nn.balance_bias` changes it as the counts of
    that measure say, by `moe_router_bias_update_rate` of `nn.train`.

    With `nn.rows = N` beside one of the six above the last, only the first `N` rows are the parameter's, and what
    the world knows of it; further ones are zeros. With `nn.layout = #nn.layout<…>` ranks have parts of it, of
    equal sizes; with `nn.whole = N` beside that, all together have `N` elements in the dimension that is cut.
    With `nn.share_of = array<i64: …>` ranks along `dp` have shares, as of `nn.reduce_shares`, of a tensor of
    that shape: the argument has one dimension and is the share, or has that shape and room for all shares.

    The step of a stage of a pipeline has all micro-batches of a step, one after another as its table says:
    `nn.micro_batch = I` beside `tokens`, `targets` and `rng` says of which of them they are.

    A result with `nn.parameter = "name"`, with one of the last six attributes, or with
    `nn.output = "loss"` or `"grad_norm"`, is what the argument of the same role becomes in the next step,
    or what is shown.

    Activations are all f32 or all bf16. What adds up is f32 in either case: losses,
    log-sum-exps, statistics of norms, parameters and their states but for the working copy.

    Beside `@step` there may be two functions that only go forward, on the same
    parameters: `@evaluate` returns the loss without dropout, `nn.output = "eval_loss"`,
    and `@sample`, with the arguments `nn.input = "sample_tokens"` (`tensor<1xTxi32>`) and
    `"position"` (`tensor<1xi32>`), the logits of one position of one text,
    `nn.output = "logits"`.

    With `nn.reduction_groups = G` on `@step`, of which its micro-batches are a multiple, these are in `G` groups of equal size, in
    order, and sums over micro-batches are those of groups first. Behind the last micro-batch of group `i`, from 0, of which there is another
    behind it, runs the function `@push_level_L`, where `L` is the number of zeros that `i + 1` ends with in binary. It puts the sums of the last `2^L` groups
    into the partial sums of level `L`, and leaves running sums at zero. So terms are added by the binary tree that splits `G` at the largest power of two below it.
    On a sum over ranks each has `G` groups, in runs of as many as each power of two that adds up to `G`, the largest first, and a term for each run: of `m` results
    number `i` is the sum of the operands `i`, `m + i` and so on of all ranks, by the tree over the groups of all, which in a run have those of one rank behind another's.

    Function attributes: `nn.micro_batches`, `nn.reduction_groups`. Module attributes:
    `nn.model` (a name to show), `nn.train` (the hyper-parameters), `nn.hub_config`
    (the text of the `config.json` that published weights of this model come with), `nn.mesh` (the
    ranks of the program, if it is for more than one), `nn.sequence_parallel` (those along `tp` have
    parts of the positions between layers), `nn.distributed_optimizer` (those along `dp` are to have shares
    of the optimizer's state), `nn.measures` (of a chunk: the names of what the whole model measures, in its order) and
    `nn.train_json` (the section `train` of its description as JSON, each key with its
    value, which checkpoints say and nothing depends on).
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class NN_TensorOf<list<Type> elements>
    : ConfinedType<StaticShapeTensorOf<elements>, [
        CPred<"!::llvm::is_contained(::llvm::cast<::mlir::ShapedType>($_self).getShape(), 0)">],
        "non-empty " # StaticShapeTensorOf<elements>.summary>;

def NN_Tensor : NN_TensorOf<[F32, BF16]>;
def NN_F32Tensor : NN_TensorOf<[F32]>;
def NN_Ids : NN_TensorOf<[I32]>;
def NN_Scalar : 0DTensorOf<[F32]>;

/// Where randomness starts from: see the dialect's description.
def NN_Rng : ConfinedType<StaticShapeTensorOf<[I32]>, [
    CPred<"::llvm::cast<::mlir::ShapedType>($_self).getShape() == ::llvm::ArrayRef<int64_t>(4)">],
    "tensor<4xi32> of seed (low, high), step and micro-batch">;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class NN_Attr<string name, string attrMnemonic> : AttrDef<NN_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def NN_ScopeAttr : NN_Attr<"Scope", "scope"> {
  let summary = "Where in the model an op belongs: what a policy finds it by";
  let description = [{
    `layer` counts from 0 (to 1048575) and is left out for what belongs to no layer. `module`
    is one of `embedding`, `layernorm`, `attention` (projections), `core_attn`,
    `mlp`, `moe` (routing, and the GEMMs of experts), `moe_act` (what is between these),
    `shared_experts`, `mla_up_proj`, `mtp` (what a layer that predicts a further token begins with), `residual`, `head`,
    `loss`, `optimizer`. `value` is the name of the op's first result in the model: `x0, n1, q, k, v, s, p, pd, ctx, a, x1, n2, u, g, y, x2, logits, …`.

    Example: `#nn.scope<layer = 3, module = "mlp", value = "u">`
  }];
  let parameters = (ins DefaultValuedParameter<"int64_t", "-1">:$layer,
                        StringRefParameter<>:$module,
                        StringRefParameter<"", [{""}]>:$value);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def NN_PartialAttr : NN_Attr<"Partial", "partial"> {
  let summary = "A sum of some groups of micro-batches, until it is added to others";
  let description = [{
    Of the gradient of the parameter or of the measure `name`, or of the loss, which is called `loss`; of
    `2^level` groups.

    Example: `#nn.partial<name = "h.0.mlp.c_fc.weight", level = 1>`
  }];
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$level);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def NN_Init : I32EnumAttr<"Init", "How a parameter starts", [
    I32EnumAttrCase<"Zeros", 0, "zeros">, I32EnumAttrCase<"Ones", 1, "ones">,
    I32EnumAttrCase<"Normal", 2, "normal">]> {
  let cppNamespace = "::reprise::nn";
  let genSpecializedAttr = 0;
}

def NN_ParameterAttr : NN_Attr<"Parameter", "parameter"> {
  let summary = "A parameter: its name, how it starts, how it is trained";
  let description = [{
    `init` is `zeros`, `ones` or `normal` with standard deviation `std`, which f32 can hold.
    `decay`: weight decay applies. `frozen`: it has no gradient.

    In published weights it is the tensor `hub` (without one, the tensor of its
    own `name`), or of that tensor's last dimension, cut in `parts` equal blocks,
    block `part`. A `*` in `hub` stands for a number: there is a published tensor for each
    index of the first dimension, with that in its place, and `parts` is 1.

    Example: `#nn.parameter<name = "h.0.mlp.c_fc.weight", init = normal, std = 2.0e-02 : f32, decay = true>`
  }];
  let parameters = (ins StringRefParameter<>:$name,
                        EnumParameter<NN_Init>:$init,
                        OptionalParameter<"::mlir::FloatAttr">:$std,
                        DefaultValuedParameter<"bool", "false">:$decay,
                        DefaultValuedParameter<"bool", "false">:$frozen,
                        StringRefParameter<"", [{""}]>:$hub,
                        DefaultValuedParameter<"int64_t", "0">:$part,
                        DefaultValuedParameter<"int64_t", "1">:$parts);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The published tensor that it is, or is a part of.
    ::llvm::StringRef getHubName() const {
      return getHub().empty() ? getName() : getHub();
    }
  }];
}

def NN_WeightLayout : I32EnumAttr<"WeightLayout", "How a weight is stored", [
    I32EnumAttrCase<"InOut", 0, "in_out">, I32EnumAttrCase<"OutIn", 1, "out_in">]> {
  let cppNamespace = "::reprise::nn";
}

def NN_GeluForm : I32EnumAttr<"GeluForm", "Which GELU", [
    I32EnumAttrCase<"Tanh", 0, "tanh">, I32EnumAttrCase<"Erf", 1, "erf">]> {
  let cppNamespace = "::reprise::nn";
}

//===----------------------------------------------------------------------===//
// Base classes
//===----------------------------------------------------------------------===//

/// Result element i depends on element i of the operands alone (and on scalars):
/// such ops can be fused into one loop, and can work in place.
def NN_Pointwise : NativeOpTrait<"Pointwise"> {
  let cppNamespace = "::reprise::nn";
}

/// Row r of the results, of which the first has the type of an operand, depends on row r of
/// the operands of that type alone (and on others, of other shapes): such an op goes over rows
/// one by one, with what is pointwise before it and behind it in the same loops, and can work
/// in place, since an element is written when it is not read any more.
def NN_Rowwise : NativeOpTrait<"Rowwise"> {
  let cppNamespace = "::reprise::nn";
}

/// Is launched together with others of its kind that follow each other.
def NN_OneOfMany : NativeOpTrait<"OneOfMany"> {
  let cppNamespace = "::reprise::nn";
}

/// Done once, whatever a plan says: another time it could come out otherwise, and what was
/// kept would not fit.
def NN_NeverReplayed : NativeOpTrait<"NeverReplayed"> {
  let cppNamespace = "::reprise::nn";
}

class NN_Op<string mnemonic, list<Trait> traits = []>
    : Op<NN_Dialect, mnemonic, traits>;

class NN_PureOp<string mnemonic, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat(traits, [
        Pure, DeclareOpInterfaceMethods<CostModel, ["getFlops"]>])> {
  let hasVerifier = 1;
}

/// A product of matrices.
class NN_GemmOp<string mnemonic, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat(traits, [
        Pure, DeclareOpInterfaceMethods<CostModel, ["getFlops", "isGemm"]>])> {
  let hasVerifier = 1;
}

def NN_Vjp : DeclareOpInterfaceMethods<Differentiable>;

def NN_PartAttr : NN_Attr<"Part", "part"> {
  let summary = "Which part of a whole a value is, where that matters";
  let description = [{
    Of the `ranks` equal blocks of dimension `dim`, that of the rank's number along `axis`.

    * (C1) `dim` is at least 0 and `ranks` at least 1.

    Example: `#nn.part<axis = "tp", dim = 1, ranks = 2>`
  }];
  let parameters = (ins "::mlir::StringAttr":$axis, "int64_t":$dim, "int64_t":$ranks);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // REPRISE_DIALECT_NN_NNBASE
