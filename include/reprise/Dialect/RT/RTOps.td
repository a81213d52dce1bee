//===- RTOps.td - What the machine does --------------------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_RT_RTOPS
#define REPRISE_DIALECT_RT_RTOPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def RT_Dialect : Dialect {
  let name = "rt";
  let cppNamespace = "::reprise::rt";
  let summary = "Launches and GEMMs on planned buffers: what the machine does";
  let description = [{
    Straight-line order is the schedule. The ops exist in two forms: on tensors,
    with results, before memory is planned; and on views of one arena (memref),
    with destination operands and no results, after.

    A kernel is a private function with the attribute `rt.kernel`; its arguments
    are the buffers it reads, its results those it writes. Ops in it that draw
    random numbers name their stream by position: stream `i` of a kernel is
    `ids[i]` of the launch, so that equal layers share a kernel. What depends on the rank's place
    names it in the same way, by `rt.coordinate = I : i64` on an op of `nn`: the id `-1 - a` is the
    rank's number along axis `a` of `nn.mesh`. Argument
    attribute `rt.in_place = R : i64` of a kernel: the buffer of this argument is
    that of result `R` (it must be dead after the launch). An op of `@step` may
    carry `rt.name`, what the person who reads a profile calls it, and a launch of several ops
    `rt.made_by`, for each output the name of the op that makes it.

    After memory is planned, an `rt.buffer` that is more than a value of the step
    says what it is: `rt.state = #rt.state<…>`, `rt.rotary = #rt.rotary<…>`, or
    `rt.role`, one of `tokens`, `targets`, `rng`, `lr`, `bias_correction1`,
    `bias_correction2`, `loss` and `grad_norm`, and outside `@step` `sample_tokens`,
    `position`, `logits` and `eval_loss`. `rt.micro_batch = I` beside `tokens`, `targets` and `rng` says of which
    micro-batch of a step of many they are. With `batches` it is bytes for `tokens`, `targets` and `rng` of
    further micro-batches, behind those of the first: see `rt.most_launches`. Every value has an `rt.buffer` of its own, also where it is made
    in place. The sizes of the arenas are `rt.plan = #rt.plan<…>` of the module. With `rt.gemm_workspace = BYTES` on a module every GEMM has a
    workspace of so many bytes, whatever its shape: what a library of the target asks for. With `rt.bias_kernels` beside it
    the library is not asked for gradients of biases. With
    `rt.alignment = BYTES` buffers begin at multiples of that. With `rt.activations_first` activations are packed
    by themselves, also where written gradients could then take less. With `rt.most_launches = N` a step is
    given to a device M micro-batches at a time, M being the largest divisor of
    `nn.micro_batches` with which these have at most N launches, or 1: the arena has M places for the inputs of
    a micro-batch, one after another, and M more for those that come next.

    An emitted kernel, a function of pointers, carries `rt.tasks`: the number of
    independent tasks of a launch, and perhaps `rt.avx512`: the function that does the same tasks, to the same bits,
    on a processor with 32 registers of 16 lanes, `rt.avx512_bf16`: the one that multiplies pairs of bf16, and `rt.amx`: by tile registers, each to bits of its own. One for a GPU is in a module of its own and carries
    `rt.grid` and `rt.block`, the blocks of a launch and the threads of a block, `rt.shared`, the
    bytes of dynamic shared memory of a block, and `rt.bytes`, the least that a launch
    reads and writes.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

def RT_StateKind : I32EnumAttr<"StateKind", "What a tensor that lives from step to step is", [
    I32EnumAttrCase<"Parameter", 0, "parameter">, I32EnumAttrCase<"Gradient", 1, "gradient">,
    I32EnumAttrCase<"Moment1", 2, "moment1">, I32EnumAttrCase<"Moment2", 3, "moment2">,
    I32EnumAttrCase<"Working", 4, "working">, I32EnumAttrCase<"Partial", 5, "partial">,
    I32EnumAttrCase<"Measure", 6, "measure">]> {
  let cppNamespace = "::reprise::rt";
  let genSpecializedAttr = 0;
}

def RT_StateInit : I32EnumAttr<"StateInit", "How a state starts", [
    I32EnumAttrCase<"Zeros", 0, "zeros">, I32EnumAttrCase<"Ones", 1, "ones">,
    I32EnumAttrCase<"Normal", 2, "normal">, I32EnumAttrCase<"None", 3, "none">]> {
  let cppNamespace = "::reprise::rt";
  let genSpecializedAttr = 0;
}

def RT_CutAttr : AttrDef<RT_Dialect, "Cut"> {
  let mnemonic = "cut";
  let summary = "A dimension that ranks have parts of";
  let description = [{
    Rank `c` along `axis` has of dimension `dim` of the whole, which has `extent` elements there, those
    from `c` times the tensor's own size on, and zeros behind them.

    Example: `#rt.cut<"ep", dim = 0, extent = 8>`
  }];
  let parameters = (ins StringRefParameter<>:$axis, "int64_t":$dim, "int64_t":$extent);
  let assemblyFormat = "`<` $axis `,` struct($dim, $extent) `>`";
  let genVerifyDecl = 1;
}

/// `[<…>, <…>]`, of dimensions in their order.
def RT_Cuts : OptionalArrayRefParameter<"::reprise::rt::CutAttr"> {
  let parser = "parseCuts($_parser)";
  let printer = "printCuts($_printer, $_self)";
}

def RT_StateAttr : AttrDef<RT_Dialect, "State"> {
  let mnemonic = "state";
  let summary = "A tensor that lives from step to step";
  let description = [{
    `parameter` is the name of the parameter it belongs to; `std` the standard
    deviation of `init = normal`. A gradient with `init = none` is made by the step: before that there is
    nothing, or something else, in its bytes. The numbers of both enumerations are those of
    `reprise/ABI/Model.def`. A parameter that is published under another name is
    block `part` of `parts` equal blocks, along the last dimension, of the tensor `hub`. With a `*`
    in `hub` it is a stack: there is a tensor for each index of the first dimension, with that in place
    of the `*`, and `parts` is 1.
    `kind = working` is the parameter rounded to bf16, which the step reads; all others are f32.
    `kind = partial` is the sum of gradients of `2^level` groups of micro-batches, or of their losses (`parameter = "loss"`).
    `kind = measure` is what is shown of a step, zero before it; `parameter` is its name.
    With `rows`, only so many rows of the buffer are the tensor; further ones stay zero.

    With `cuts`, ranks have parts: each cut says so of one dimension. `part` is one of the whole.
    They are in the order of dimensions, and no dimension or axis is there twice.

    With `share`, ranks along that axis have shares of the tensor that all this is said of, whose shape is
    `share_of`; which they are says `nn.reduce_shares`. The buffer has one dimension and is the rank's share,
    with zeros behind what it has; or it has that shape, and the share lies where it belongs.

    Examples: `#rt.state<kind = moment1, parameter = "transformer.ln_f.bias", init = zeros>`,
    `#rt.state<kind = parameter, parameter = "h.0.attn.q.weight", init = ones, hub = "h.0.attn.c_attn.weight", part = 0, parts = 3>`,
    `#rt.state<kind = moment2, parameter = "wte.weight", init = zeros, cuts = [<"tp", dim = 0, extent = 307>]>`,
    `#rt.state<kind = moment1, parameter = "wte.weight", init = zeros, share = "dp", share_of = [307, 96]>`
  }];
  let parameters = (ins EnumParameter<RT_StateKind>:$kind, StringRefParameter<>:$parameter,
                        EnumParameter<RT_StateInit>:$init,
                        OptionalParameter<"::mlir::FloatAttr">:$std,
                        StringRefParameter<"", [{""}]>:$hub,
                        DefaultValuedParameter<"int64_t", "0">:$part,
                        DefaultValuedParameter<"int64_t", "1">:$parts,
                        DefaultValuedParameter<"int64_t", "0">:$rows,
                        RT_Cuts:$cuts,
                        StringRefParameter<"", [{""}]>:$share,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$share_of,
                        DefaultValuedParameter<"int64_t", "0">:$level);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def RT_RotaryAttr : AttrDef<RT_Dialect, "Rotary"> {
  let mnemonic = "rotary";
  let summary = "The constant table of a rotary position embedding";
  let description = [{
    On a buffer of f32 `[T, D]`: row `t` is `scale * cos(t * f)` for each of the
    `D / 2` frequencies `f`, then `scale * sin(t * f)`. The runtime writes it at start.

    Example: `#rt.rotary<frequencies = [1.0, 0.01], scale = 1.0 : f32>`
  }];
  let parameters = (ins "::mlir::DenseF32ArrayAttr":$frequencies, "::mlir::FloatAttr":$scale);
  let assemblyFormat = [{
    `<` `frequencies` `=` custom<ExactFloats>($frequencies) `,` `scale` `=` $scale `>`
  }];
  let genVerifyDecl = 1;
}

def RT_Space : I32EnumAttr<"Space", "A memory that buffers are in", [
    I32EnumAttrCase<"Device", 0, "device">, I32EnumAttrCase<"Host", 1, "host">]> {
  let cppNamespace = "::reprise::rt";
  let genSpecializedAttr = 0;
}

def RT_SpaceAttr : EnumAttr<RT_Dialect, RT_Space, "space"> {
  let summary = "The memory of a value that has no place yet";
  let description = [{
    The encoding of a tensor. `device` is the memory of the processor that runs the schedule, and
    the space of tensors without an encoding; `host` is that of the machine beside it. Each space
    has an arena of its own.

    Example: `tensor<16xf32, #rt.space<host>>`
  }];
  let assemblyFormat = "`<` $value `>`";
}

def RT_PlaceAttr : AttrDef<RT_Dialect, "Place"> {
  let mnemonic = "place";
  let summary = "Where a buffer begins";
  let description = [{
    Byte `offset`, at least 0, of the arena of `space`.

    Example: `#rt.place<device, 37748736>`
  }];
  let parameters = (ins EnumParameter<RT_Space>:$space, "int64_t":$offset);
  let assemblyFormat = "`<` $space `,` $offset `>`";
  let genVerifyDecl = 1;
}

def RT_Category : I32EnumAttr<"Category", "A part of an arena, in the order of its bytes", [
    I32EnumAttrCase<"Parameters", 0, "parameters">,
    I32EnumAttrCase<"Gradients", 1, "gradients">,
    I32EnumAttrCase<"OptimizerState", 2, "optimizer_state">,
    I32EnumAttrCase<"InputsAndOutputs", 3, "inputs_and_outputs">,
    I32EnumAttrCase<"Activations", 4, "activations">]> {
  let cppNamespace = "::reprise::rt";
  let genSpecializedAttr = 0;
}

def RT_CategoryAttr : AttrDef<RT_Dialect, "CategoryBytes"> {
  let mnemonic = "category";
  let summary = "The bytes of a category in an arena";
  let description = [{
    `bytes` is at least 0. `optimizer_state` and `inputs_and_outputs` are shown to people as
    `optimizer state` and `inputs and outputs`.

    Example: `#rt.category<optimizer_state, 384>`
  }];
  let parameters = (ins EnumParameter<RT_Category>:$category, "int64_t":$bytes);
  let assemblyFormat = "`<` $category `,` $bytes `>`";
  let genVerifyDecl = 1;
}

def RT_ArenaAttr : AttrDef<RT_Dialect, "Arena"> {
  let mnemonic = "arena";
  let summary = "The sizes of the arena of one space";
  let description = [{
    | parameter | bytes |
    |---|---|
    | `bytes` | the whole arena |
    | `least` | no arena of these values is smaller: what is there all the time, and the most of all else that is alive at one time |
    | `begin` | the offset of the first activation |
    | `peak` | of activations, packed by themselves |
    | `bound` | the most bytes of activations that are alive at one time |

    * (C1) `bound <= peak <= bytes - begin`, and `begin <= least <= bytes`; none is below 0.
    * (C2) No category is there twice, and all add up to `bytes`.

    Example:
    `#rt.arena<device, bytes = 192, least = 192, begin = 64, peak = 128, bound = 128, [<parameters, 64>, <activations, 128>]>`
  }];
  let parameters = (ins EnumParameter<RT_Space>:$space, "int64_t":$bytes, "int64_t":$least,
                        "int64_t":$begin, "int64_t":$peak, "int64_t":$bound,
                        OptionalArrayRefParameter<"::reprise::rt::CategoryBytesAttr">:$categories);
  let assemblyFormat = [{
    `<` $space `,` struct($bytes, $least, $begin, $peak, $bound) `,` `[` (`]`) : ($categories^ `]`)? `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The bytes of `category`, 0 if the arena has none.
    int64_t getBytesOf(Category category) const;
  }];
}

def RT_PlanAttr : AttrDef<RT_Dialect, "Plan"> {
  let mnemonic = "plan";
  let summary = "The arenas of a program";
  let description = [{
    * (C1) There is one arena for each space at most.

    Example: `#rt.plan<[<device, bytes = 64, least = 64, begin = 0, peak = 64, bound = 64, [<activations, 64>]>]>`
  }];
  let parameters = (ins OptionalArrayRefParameter<"::reprise::rt::ArenaAttr">:$arenas);
  let assemblyFormat = "`<` `[` (`]`) : ($arenas^ `]`)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The arena of `space`, or null.
    ArenaAttr getArena(Space space) const;
  }];
}

def RT_Epilogue : I32EnumAttr<"Epilogue", "What a GEMM makes beside C", [
    I32EnumAttrCase<"SumsOfA", 1, "sums_of_a">, I32EnumAttrCase<"SumsOfB", 2, "sums_of_b">,
    I32EnumAttrCase<"SquaresOfC", 3, "squares_of_c">]> {
  let cppNamespace = "::reprise::rt";
}

def RT_Gather : I32EnumAttr<"Gather", "The operand of a GEMM whose rows are found elsewhere", [
    I32EnumAttrCase<"A", 1, "a">, I32EnumAttrCase<"B", 2, "b">]> {
  let cppNamespace = "::reprise::rt";
}

def RT_Collective : I32EnumAttr<"Collective", "What ranks do together", [
    I32EnumAttrCase<"AllReduce", 0, "all_reduce">, I32EnumAttrCase<"AllGather", 1, "all_gather">,
    I32EnumAttrCase<"ReduceScatter", 2, "reduce_scatter">,
    I32EnumAttrCase<"ReduceShares", 3, "reduce_shares">, I32EnumAttrCase<"GatherShares", 4, "gather_shares">]> {
  let cppNamespace = "::reprise::rt";
}

//===----------------------------------------------------------------------===//
// Types and base classes
//===----------------------------------------------------------------------===//

def RT_Buffer : AnyTypeOf<[AnyStaticShapeTensor, AnyStaticShapeMemRef]>;

class RT_Op<string mnemonic, list<Trait> traits = []> : Op<RT_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

def RT_BufferOp : RT_Op<"buffer", [Pure]> {
  let summary = "A view of the arena";
  let description = [{
    The bytes of the arena that the type needs, from its place on. With `in`, part of that
    buffer: an op that writes it writes part of that value.

    * (C1) A part lies within its whole, in the same space, and has its element type.

    Examples:

    ```mlir
    %b = rt.buffer at <device, 37748736> : memref<2x8x96xf32>
    %c = rt.buffer at <device, 37749504> in %b(memref<2x8x96xf32>) : memref<8x96xf32>
    ```
  }];
  let arguments = (ins RT_PlaceAttr:$place,
                       Optional<AnyStaticShapeMemRef>:$whole);
  let results = (outs AnyStaticShapeMemRef:$out);
  let assemblyFormat = [{
    `at` $place (`in` $whole^ `(` type($whole) `)`)? attr-dict `:` type($out)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The buffer that this is part of, or itself.
    BufferOp getRoot();
    /// The arena, and the byte of it where the buffer begins.
    ::reprise::rt::Space getSpace() { return getPlace().getSpace(); }
    int64_t getOffset() { return getPlace().getOffset(); }
  }];
}

def RT_ViewOp : RT_Op<"view", [Pure]> {
  let summary = "Part of a tensor";
  let description = [{
    The elements from `first` on, in row-major order. Once memory is planned, it
    is an `rt.buffer` in that of `input`.

    * (C1) `out` has the element type and the space of `input`, which has all its elements.

    Example:

    ```mlir
    %v = rt.view %x from 192 : tensor<2x8x24xf32> to tensor<1x8x24xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$input,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$first);
  let results = (outs AnyStaticShapeTensor:$out);
  let assemblyFormat = "$input `from` $first attr-dict `:` type($input) `to` type($out)";
  let hasVerifier = 1;
}

def RT_JoinOp : RT_Op<"join", [Pure]> {
  let summary = "A tensor made in parts";
  let description = [{
    The elements of `parts`, one after another. Nothing is copied: once memory is planned,
    each part is made where it belongs in the whole.

    * (C1) `parts` have the element type and the space of `out` and together as many elements.

    Example:

    ```mlir
    %y = rt.join %a, %b : (tensor<1x8x24xf32>, tensor<1x8x24xf32>) -> tensor<2x8x24xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyStaticShapeTensor>:$parts);
  let results = (outs AnyStaticShapeTensor:$out);
  let assemblyFormat = "$parts attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def RT_LaunchOp : RT_Op<"launch", [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Runs a kernel";
  let description = [{
    `ids` are the random streams of the kernel's ops, and from -1 down axes along which they ask
    for the rank's number. `flops` is the work of the launch.

    * (C1) All operands are tensors, or all are buffers and there is no result.
    * (C2) `kernel` is a function with `rt.kernel`.
    * (C3) Inputs, and outputs or results, have the shapes and element types of
      the kernel's arguments and results.
    * (C4) `flops` is at least 0.

    Example:

    ```mlir
    func.func private @gelu(%x: tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel} {
      %y = nn.gelu %x tanh : tensor<16xf32>
      return %y : tensor<16xf32>
    }
    func.func @tensors(%x: tensor<16xf32>) -> tensor<16xf32> {
      %y = rt.launch @gelu(%x) : (tensor<16xf32>) -> tensor<16xf32>
      return %y : tensor<16xf32>
    }
    func.func @buffers() {
      %b0 = rt.buffer at <device, 0> : memref<16xf32>
      %b1 = rt.buffer at <device, 64> : memref<16xf32>
      rt.launch @gelu(%b0) to (%b1) : (memref<16xf32>, memref<16xf32>) -> ()
      return
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<RT_Buffer>:$inputs,
                       Variadic<RT_Buffer>:$outputs,
                       OptionalAttr<DenseI64ArrayAttr>:$ids,
                       DefaultValuedAttr<I64Attr, "0">:$flops);
  let results = (outs Variadic<AnyStaticShapeTensor>:$results);
  let assemblyFormat = [{
    $kernel `(` $inputs `)` (`to` `(` $outputs^ `)`)? (`ids` $ids^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def RT_GemmOp : RT_Op<"gemm", [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "A GEMM, or a batch of them";
  let description = [{
    `C[i,j] = alpha * sum over p of A[i,p] * B[p,j] (+ bias[j]) (+ C0[i,j])`, for
    every index of two batch dimensions, on buffers seen as flat arrays. `A` is
    stored `[m, k]` with row stride `lda`, or `[k, m]` with `transpose_a`; `B` is
    `[k, n]`, or `[n, k]` with `transpose_b`; `C` is `[m, n]`. Strides count
    elements. With `addend` the GEMM is added to `C0`, in place: buffer form has
    `C0` as output and `accumulate`.

    With an `epilogue`, a GEMM makes `aux` beside `C`:

    | epilogue | `aux` |
    |---|---|
    | `sums_of_a` | `[m]`: the sum over `p` of `A[i,p]` |
    | `sums_of_b` | `[n]`: the sum over `p` of `B[p,j]` |
    | `squares_of_c` | `[ceil(m/4), ceil(n/32)]`: the sums of the squares of blocks of `C` |

    Where `A` or `B` is the gradient of a linear layer's result, and `C` that of its
    weight, its sums are the gradient of the bias.
    A library makes these sums. The CPU's GEMMs make the squares, with `addend` those of what is added up, and
    in the last micro-batch alone: they are for the update, which reads the norm of all gradients.

    With `packed_b` the matrix that `B` is stored as, of `rows` and `cols`, lies in panels of 32 columns
    of pairs of rows, `[cols/32, rows/2, 32, 2]`, and `ldb` is its rows: element `(r, c)` is at
    `[c/32, r/2, c%32, r%2]`. So tiles of AMX read a weight where it is.

    With `offsets`, rows belong to groups, whose sizes are data: group `e` has the rows from
    `offsets[e]` on and below `offsets[e + 1]`. With `transpose_a` these are the rows that a sum goes
    over, `k` in all, and there is a `C` for each group, one behind the other: zero, or what is
    added to, for a group without rows. Otherwise these are the rows of `A` and `C`, `m` in all, and
    there is a `B` for each group, and zeros in the rows of `C` from `offsets[groups]` on. With `gather`
    row `r` of that operand is row `order[r] / slots` of its buffer.

    The order of summation depends on `m, n, k` alone, in a group on its rows: see `RepriseGemm` in
    `reprise/ABI/Gemm.def`.

    * (C1) `m`, `n` and `k` are at least 1, and so are the two sizes of `batch`.
    * (C2) `a` and `b` are both f32 or both bf16. `C` is f32, or bf16 where `a`
      and `b` are and nothing is added to it; `bias` has its type. Sums are f32,
      rounded once at the end.
    * (C3) Either there is a result and all operands are tensors, without
      `workspace` and `accumulate`; or there are `output` and `workspace` and all
      operands are buffers, without `addend`.
    * (C4) A row stride is at least the row's length. With `batch`, `a`, `b` and
      `C` have two batch strides each, of at least 0; without, none.
    * (C5) `a`, `b` and `C` have every element that is read or written, `bias` has
      `n`, and `addend` has the type of the result.
    * (C6) `workspace` has the bytes of `getWorkspaceBytes()`.
    * (C7) There is an `aux`, with as many elements as its `epilogue` says and the type of `C`,
      which is f32, if there is an `epilogue`; then there is no `batch` and no `bias`, and `alpha` is 1.
      Libraries add up what lies side by side: `sums_of_a` has `transpose_a`, `sums_of_b` no `transpose_b`.
    * (C8) With `packed_b`, `b` is bf16 of the shape above, whole and alone: `ldb` is `k`, or `n` with
      `transpose_b`, both that and the other size are multiples of 32, and there is no `batch`.
    * (C9) With `offsets`, i32 of at least two elements, there are no `batch`, `bias`, `epilogue` and
      `packed_b`, and `alpha` is 1. `gather`, `order` and `slots` are there together and only then;
      `order` is i32 with an element for each row, and `slots` is at least 1. `b` is gathered with
      `transpose_a` alone.

    Example:

    ```mlir
    %c = rt.gemm %a, %b bias(%bias) m 16 n 96 k 24 lda 24 ldb 96 ldc 96
      : (tensor<2x8x24xf32>, tensor<24x96xf32>, tensor<96xf32>) -> tensor<2x8x96xf32>
    %h = rt.gemm %x, %w bias(%rounded) m 16 n 96 k 24 lda 24 ldb 96 ldc 96
      : (tensor<2x8x24xbf16>, tensor<24x96xbf16>, tensor<96xbf16>) -> tensor<2x8x96xbf16>
    %dw, %db = rt.gemm %x, %h transpose_a epilogue sums_of_b m 24 n 96 k 16 lda 24 ldb 96 ldc 96
      : (tensor<2x8x24xbf16>, tensor<2x8x96xbf16>) -> (tensor<24x96xf32>, tensor<96xf32>)
    %y = rt.gemm %h, %packed packed_b m 16 n 64 k 96 lda 96 ldb 96 ldc 64
      : (tensor<2x8x96xbf16>, tensor<2x48x32x2xbf16>) -> tensor<2x8x64xbf16>
    %dv, %squares = rt.gemm %x, %h transpose_a epilogue squares_of_c m 24 n 96 k 16 lda 24 ldb 96 ldc 96
      : (tensor<2x8x24xbf16>, tensor<2x8x96xbf16>) -> (tensor<24x96xf32>, tensor<6x3xf32>)
    %u = rt.gemm %x, %experts groups(%offsets) gather a order(%order) slots 2 transpose_b m 32 n 96 k 24 lda 24 ldb 24 ldc 96
      : (tensor<2x8x24xbf16>, tensor<4x96x24xbf16>, tensor<5xi32>, tensor<32xi32>) -> tensor<32x96xbf16>
    ```
  }];
  let arguments = (ins RT_Buffer:$a, RT_Buffer:$b, Optional<RT_Buffer>:$bias,
                       Optional<RT_Buffer>:$offsets, Optional<RT_Buffer>:$order,
                       Optional<AnyStaticShapeTensor>:$addend,
                       Optional<AnyStaticShapeMemRef>:$output,
                       Optional<AnyStaticShapeMemRef>:$aux,
                       Optional<AnyStaticShapeMemRef>:$workspace,
                       I64Attr:$m, I64Attr:$n, I64Attr:$k,
                       I64Attr:$lda, I64Attr:$ldb, I64Attr:$ldc,
                       OptionalAttr<DenseI64ArrayAttr>:$batch,
                       OptionalAttr<DenseI64ArrayAttr>:$stride_a,
                       OptionalAttr<DenseI64ArrayAttr>:$stride_b,
                       OptionalAttr<DenseI64ArrayAttr>:$stride_c,
                       DefaultValuedAttr<F32Attr, "1.0">:$alpha,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b, UnitAttr:$accumulate,
                       OptionalAttr<RT_Epilogue>:$epilogue, UnitAttr:$packed_b,
                       OptionalAttr<RT_Gather>:$gather, OptionalAttr<I64Attr>:$slots);
  let results = (outs Variadic<AnyStaticShapeTensor>:$made);
  let assemblyFormat = [{
    $a `,` $b oilist(`bias` `(` $bias `)` | `groups` `(` $offsets `)` | `order` `(` $order `)`
      | `gather` $gather | `slots` $slots | `addend` `(` $addend `)` | `to` `(` $output `)`
      | `aux` `(` $aux `)` | `workspace` `(` $workspace `)` | `transpose_a` $transpose_a | `transpose_b` $transpose_b
      | `accumulate` $accumulate | `epilogue` $epilogue | `packed_b` $packed_b)
    `m` $m `n` $n `k` $k `lda` $lda `ldb` $ldb `ldc` $ldc
    (`batch` $batch^ `strides` $stride_a `,` $stride_b `,` $stride_c)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Floating-point operations of all GEMMs of the batch.
    int64_t getFlops();
    /// GEMMs in the batch.
    int64_t getBatchCount();
    /// Groups that rows belong to; 0 without.
    int64_t getGroupCount();
    /// Rows of all groups.
    int64_t getGroupedRows() { return getTransposeA() ? getK() : getM(); }
    /// What `order` is below: the slots of all rows of what is gathered; 0 without.
    int64_t getPlaces();
    /// `C` on tensors, or null.
    ::mlir::Value getResult() {
      return getMade().empty() ? ::mlir::Value() : ::mlir::Value(getMade().front());
    }
    /// What the epilogue makes, on tensors or in a buffer, or null.
    ::mlir::Value getAuxiliary() {
      return getMade().size() > 1 ? ::mlir::Value(getMade()[1]) : ::mlir::Value(getAux());
    }
    /// The type of `C`, the result or the output.
    ::mlir::ShapedType getCType();
    /// Bytes that the GEMM needs beside its operands: what its module says
    /// with `rt.gemm_workspace`, or else the packed panels of the CPU.
    int64_t getWorkspaceBytes();
  }];
}

def RT_CollectiveOp : RT_Op<"collective", [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Something that the ranks along an axis do together";
  let description = [{
    | kind | result or output |
    |---|---|
    | `all_reduce` | `i` is the sum of input `i` over the `ranks` ranks along `axis`, as of `nn.all_reduce`, and has its bytes; with `rt.groups`, of the terms `i`, `m + i` and so on of `m` sums, in the bytes of the last |
    | `all_gather` | the inputs of all ranks, one behind the other in dimension `dim` |
    | `reduce_scatter` | the rank's own block of dimension `dim` of the sum of the inputs |
    | `reduce_shares` | `i` has the rank's share of the sum of input `i`, as of `nn.reduce_shares`, and its bytes |
    | `gather_shares` | the inputs 0 of all ranks, their shares, in the bytes of input 1, which is not read |

    The workspace is for what comes from other ranks at a time, to be summed. Ranks meet in their
    collectives in the order of the schedule, which is the same for all.

    * (C1) All operands are tensors and there are results; or all are buffers and there are
      outputs, a workspace if there are sums, and no result.
    * (C2) There is an input, and but for `all_reduce` and `reduce_shares`, which have as many for each sum as `rt.groups` is the
      sum of powers of two, no other, for `gather_shares` one; `ranks` is at least 1.
    * (C3) The workspace has `getWorkspaceElements()` elements of f32.
    * (C4) Elements are f32 or bf16, of one type. Results or outputs are of the types of the inputs, for
      `gather_shares` of that of input 1, of which input 0 has the elements of a share; for
      `all_gather` and `reduce_scatter`, with `ranks` times as many, or so many times fewer, in dimension `dim`.
    * (C5) `members`, as of `nn.all_reduce`, are `ranks` of the ranks along the axis.

    Examples:

    ```mlir
    %sums:2 = rt.collective all_reduce(%dw, %db) over "dp" ranks 2
      : (tensor<24x96xf32>, tensor<96xf32>) -> (tensor<24x96xf32>, tensor<96xf32>)
    rt.collective all_reduce(%b0) to (%b1) workspace(%b2) over "dp" ranks 2
      : (memref<96xf32>, memref<96xf32>, memref<96xf32>) -> ()
    %all = rt.collective all_gather(%part) over "tp" ranks 2 dim 1 : (tensor<2x4x24xf32>) -> tensor<2x8x24xf32>
    %all_shares = rt.collective gather_shares(%share, %w) over "dp" ranks 2
      : (tensor<16384xf32>, tensor<100x200xf32>) -> tensor<100x200xf32>
    %own = rt.collective reduce_scatter(%x) over "tp" ranks 2 dim 1 : (tensor<2x8x24xf32>) -> tensor<2x4x24xf32>
    ```
  }];
  let arguments = (ins RT_Collective:$kind, Variadic<RT_Buffer>:$inputs,
                       Variadic<AnyStaticShapeMemRef>:$outputs,
                       Optional<AnyStaticShapeMemRef>:$workspace, StrAttr:$axis,
                       I64Attr:$ranks, DefaultValuedAttr<I64Attr, "0">:$dim,
                       OptionalAttr<DenseI64ArrayAttr>:$members);
  let results = (outs Variadic<AnyStaticShapeTensor>:$results);
  let assemblyFormat = [{
    $kind `(` $inputs `)` (`to` `(` $outputs^ `)`)? (`workspace` `(` $workspace^ `)`)?
    `over` $axis `ranks` $ranks (`dim` $dim^)? (`members` $members^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether it adds up, and needs a workspace for that.
    bool isSum();
    /// Whether each result or output `i` is in the bytes of input `i`.
    bool isInPlace();
    /// The result or output that has the bytes of an input, or -1.
    int64_t getMadeInPlaceOf(unsigned input);
    /// Elements of f32 in the workspace: a place for each rank, of as many as are exchanged at a
    /// time and no more than there are. 0 for what adds nothing.
    int64_t getWorkspaceElements();
    /// The blocks of one rank in the value that has those of all: how many there are, and the
    /// elements of each. All of it is one block but for pieces of a dimension behind others.
    int64_t getNumBlocks();
    int64_t getBlockElements();
    /// Additions of one rank, if all add up an equal share.
    int64_t getFlops();
  }];
}

def RT_UpdateOp : RT_Op<"update"> {
  let summary = "Everything below runs once a step";
  let description = [{
    What is above runs for each micro-batch.

    Example:

    ```mlir
    rt.update
    ```
  }];
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// What kernels do that is no loop nest of linalg
//===----------------------------------------------------------------------===//

class RT_KernelOp<string mnemonic> : RT_Op<mnemonic, [Pure]> {
  let hasVerifier = 1;
}

def RT_AttentionOp : RT_KernelOp<"attention"> {
  let summary = "Fused causal attention, forward";
  let description = [{
    As `nn.attention`; `stream` is the position of the random stream among the
    launch's ids. With `ranks`, the heads are block `ids[coordinate]` of so many.

    * (C1) `query` is `[B, T, H*D]` of f32 or bf16, with `heads` for `H`; of its elements are `key`
      `[B, T, G*D]`, `value` `[B, T, G*V]` and `out` `[B, T, H*V]`, with `kv_heads`, or else `heads`, for `G`.
    * (C2) `lse` is f32 `[B, H, T]`; `rng` has 4 elements.
    * (C3) `heads` is at least 1 and divides the width; `kv_heads` is at least 1
      and divides `heads`.
    * (C4) `rate` is in [0, 1), `stream` at least 0. There are both `coordinate`, at least 0, and
      `ranks`, at least 1, or neither.

    Example:

    ```mlir
    %ctx, %lse = rt.attention %q, %k, %v, %rng heads 3 scale 3.5355338e-01 rate 1.0e-01 stream 0
      : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x3x8xf32>)
    %ctxh, %lseh = rt.attention %qh, %kh, %vh, %rng heads 3 scale 3.5355338e-01 rate 0.0 stream 0
      : (tensor<2x8x24xbf16>, tensor<2x8x24xbf16>, tensor<2x8x24xbf16>, tensor<4xi32>) -> (tensor<2x8x24xbf16>, tensor<2x3x8xf32>)
    %ctxg, %lseg = rt.attention %q, %kg, %vg, %rng heads 6 kv_heads 2 scale 5.0e-01 rate 0.0 stream 0
      : (tensor<2x8x24xf32>, tensor<2x8x8xf32>, tensor<2x8x8xf32>, tensor<4xi32>) -> (tensor<2x8x24xf32>, tensor<2x6x8xf32>)
    ```
  }];
  let arguments = (ins RT_Buffer:$query, RT_Buffer:$key, RT_Buffer:$value, RT_Buffer:$rng,
                       I64Attr:$heads, OptionalAttr<I64Attr>:$kv_heads, F32Attr:$scale,
                       F32Attr:$rate, I64Attr:$stream, OptionalAttr<I64Attr>:$ranks,
                       OptionalAttr<I64Attr>:$coordinate);
  let results = (outs RT_Buffer:$out, RT_Buffer:$lse);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $rng `heads` $heads (`kv_heads` $kv_heads^)?
    `scale` $scale `rate` $rate `stream` $stream (`ranks` $ranks^)? (`coordinate` $coordinate^)?
    attr-dict `:` functional-type(operands, results)
  }];
}

def RT_AttentionBackwardOp : RT_KernelOp<"attention_backward"> {
  let summary = "Fused causal attention, backward";
  let description = [{
    As `nn.attention_backward`; `stream` as in `rt.attention`.

    * (C1) As in `rt.attention`; `dquery` has the type of `query`, `dkey` that of `key`, `dvalue` that
      of `value`, `dout` that of `out`.
    * (C2)-(C4) as in `rt.attention`.

    Example:

    ```mlir
    %dq, %dk, %dv = rt.attention_backward %q, %k, %v, %ctx, %lse, %dctx, %rng heads 3 scale 3.5355338e-01 rate 1.0e-01 stream 0
      : (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x3x8xf32>, tensor<2x8x24xf32>, tensor<4xi32>)
        -> (tensor<2x8x24xf32>, tensor<2x8x24xf32>, tensor<2x8x24xf32>)
    ```
  }];
  let arguments = (ins RT_Buffer:$query, RT_Buffer:$key, RT_Buffer:$value, RT_Buffer:$out,
                       RT_Buffer:$lse, RT_Buffer:$dout, RT_Buffer:$rng, I64Attr:$heads,
                       OptionalAttr<I64Attr>:$kv_heads, F32Attr:$scale, F32Attr:$rate,
                       I64Attr:$stream, OptionalAttr<I64Attr>:$ranks,
                       OptionalAttr<I64Attr>:$coordinate);
  let results = (outs RT_Buffer:$dquery, RT_Buffer:$dkey, RT_Buffer:$dvalue);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $out `,` $lse `,` $dout `,` $rng `heads` $heads
    (`kv_heads` $kv_heads^)? `scale` $scale `rate` $rate `stream` $stream
    (`ranks` $ranks^)? (`coordinate` $coordinate^)? attr-dict `:` functional-type(operands, results)
  }];
}

include "reprise/Dialect/RT/RTExpertOps.td"
include "reprise/Dialect/RT/RTLatentOps.td"

def RT_ScatterAddOp : RT_KernelOp<"scatter_add"> {
  let summary = "Adds rows to the rows of a table, in order";
  let description = [{
    `out = sum`, then for every row `r` in order `out[ids[r],:] += rows[r,:]`.
    Without `ids`, row `r` goes to its position, `r mod T`; what the table has
    beyond `T` stays as it is. With `coordinate` the table is block `ids[coordinate]` of `V` rows of
    a longer one, which the ids are of: rows for other blocks are left out. In place: `out` has the
    buffer of `sum`.

    * (C1) `out` has the type of `sum`, f32 `[V, C]`.
    * (C2) With `ids`, `rows` is `[..., C]` of f32 or bf16, with a row for each of the i32 `ids`.
    * (C3) Without, `rows` is `[B, T, C]` of f32 or bf16, with `T <= V`, and there is no `coordinate`.

    Example:

    ```mlir
    %t1 = rt.scatter_add %t0, %rows at %ids : (tensor<307x24xf32>, tensor<2x8x24xf32>, tensor<2x8xi32>) -> tensor<307x24xf32>
    %p1 = rt.scatter_add %p0, %rows : (tensor<16x24xf32>, tensor<2x8x24xf32>) -> tensor<16x24xf32>
    ```
  }];
  let arguments = (ins RT_Buffer:$sum, RT_Buffer:$rows, Optional<RT_Buffer>:$ids,
                       OptionalAttr<I64Attr>:$coordinate);
  let results = (outs RT_Buffer:$out);
  let assemblyFormat = [{
    $sum `,` $rows (`at` $ids^)? (`coordinate` $coordinate^)? attr-dict `:` functional-type(operands, results)
  }];
}

def RT_BlockSumsOp : RT_KernelOp<"block_sums"> {
  let summary = "Sums of the blocks of a few arrays";
  let description = [{
    Every operand is cut into blocks of 16384 elements, the last one shorter; `out`
    has an element for each block of all operands, in order: the sum of its elements, or with
    `square` of their squares, as 64 strided partial sums and the fixed tree.

    * (C1) `out` has as many elements as all operands have blocks.

    Example:

    ```mlir
    %s = rt.block_sums %g0, %g1 square : (tensor<24x960xf32>, tensor<96xf32>) -> tensor<3xf32>
    ```
  }];
  let arguments = (ins Variadic<RT_Buffer>:$inputs, UnitAttr:$square);
  let results = (outs RT_Buffer:$out);
  let assemblyFormat = [{
    $inputs (`square` $square^)? attr-dict `:` functional-type(operands, results)
  }];
  let extraClassDeclaration = [{
    static constexpr int64_t kBlock = 16384;
  }];
}

def RT_StreamOp : RT_KernelOp<"stream"> {
  let summary = "An id of the launch";
  let description = [{
    `ids[index]` of the launch: a random stream, the second word of the counter; or the rank's number
    along an axis.

    Example:

    ```mlir
    %id = rt.stream 0
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$index);
  let results = (outs I32:$out);
  let assemblyFormat = "$index attr-dict";
  let hasVerifier = 0;
}

def RT_RandomWordOp : RT_KernelOp<"random_word"> {
  let summary = "The random word of an element";
  let description = [{
    `reprisePhilox` of `reprise/ABI/Philox.h`: word `element mod 4` of the block
    `element / 4`, which four neighbours share. An op rather than its arithmetic, so that a
    target may compute a block once for all four.

    Example:

    ```mlir
    %word = rt.random_word %element key %low, %high step %step micro_batch %micro stream %id
    ```
  }];
  let arguments = (ins Index:$element, I32:$seed_low, I32:$seed_high, I32:$step,
                       I32:$micro_batch, I32:$stream);
  let results = (outs I32:$out);
  let assemblyFormat = [{
    $element `key` $seed_low `,` $seed_high `step` $step `micro_batch` $micro_batch
    `stream` $stream attr-dict
  }];
  let hasVerifier = 0;
}

include "reprise/Dialect/RT/RTTransferOps.td"
include "reprise/Dialect/RT/RTExpertRankOps.td"
include "reprise/Dialect/RT/RTWaitOp.td"

#endif // REPRISE_DIALECT_RT_RTOPS
