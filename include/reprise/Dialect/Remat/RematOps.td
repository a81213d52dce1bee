//===- RematOps.td - Decisions, and ops that keep them -----*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_REMAT_REMATOPS
#define REPRISE_DIALECT_REMAT_REMATOPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Remat_Dialect : Dialect {
  let name = "remat";
  let cppNamespace = "::reprise::remat";
  let summary = "Rematerialization decisions, and what keeps them";
  let description = [{
    A decision is the attribute `remat.decision` on the op of the forward pass
    that defines the values it is about; an op without one is saved. Deciding and
    applying are separate: deciders write attributes and move nothing, one pass
    applies them. A replayed op carries `remat.replay = SEGMENT`. What a chunk of
    a model gets from the one before can have a decision to share it, as an
    argument.

    `remat.id = N` numbers an op, so that planning finds it again in a schedule:
    replays and what else is made of an op keep its number, and a launch or GEMM
    has those of all ops that it was made of, in their order, each once, as
    `remat.ids = array<i64: N, …>`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
}

def Remat_SaveAttr : AttrDef<Remat_Dialect, "Save"> {
  let mnemonic = "save";
  let summary = "The op's results are kept for backward";
  let description = [{
    `reason` says which rule decided, for a person to read. With `segment`, the
    op is of this segment, which is kept whole: its replay would free nothing.

    Examples: `#remat.save<reason = "outside every segment">`,
    `#remat.save<reason = "frees nothing", segment = 3>`
  }];
  let parameters = (ins StringRefParameter<"", [{""}]>:$reason,
                        DefaultValuedParameter<"int64_t", "-1">:$segment);
  let builders = [AttrBuilder<(ins "::llvm::StringRef":$reason), [{
    return $_get($_ctxt, reason, /*segment=*/-1);
  }]>];
  let assemblyFormat = "(`<` struct(params)^ `>`)?";
}

def Remat_RecomputeAttr : AttrDef<Remat_Dialect, "Recompute"> {
  let mnemonic = "recompute";
  let summary = "The op's results are dropped, and computed again in backward";
  let description = [{
    Ops of one `segment` are replayed together; `label` is the option's word that
    decided (`full`, `core_attn`, `mlp`, `layernorm`, …). With `results`, only
    the results of these numbers are dropped; the op's others are kept.

    Examples: `#remat.recompute<segment = 3, label = "mlp">`,
    `#remat.recompute<segment = 3, label = "core_attn", results = [1]>`
  }];
  let parameters = (ins "int64_t":$segment, StringRefParameter<>:$label,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$results);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Remat_ShareAttr : AttrDef<Remat_Dialect, "Share"> {
  let mnemonic = "share";
  let summary = "Ranks keep a part each of the op's result, and gather it in backward";
  let description = [{
    The ranks along `axis` have the same value. Each keeps an equal part of it for
    backward, made by an `nn.slice` with `remat.share`, and an `nn.all_gather` makes
    it whole again. That gather is replayed with `segment`, whose input the value
    is. `reason` says which rule decided, for a person to read.

    Example: `#remat.share<axis = "tp", segment = 1, reason = "input of segment 1">`
  }];
  let parameters = (ins StringRefParameter<>:$axis, "int64_t":$segment,
                        StringRefParameter<"", [{""}]>:$reason);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Remat_ChunksAttr : AttrDef<Remat_Dialect, "Chunks"> {
  let mnemonic = "chunks";
  let summary = "How the layers of a model are spread over pipeline stages";
  let description = [{
    On a function: chunk `c` of the model has the next `layers[c]` layers, and
    is virtual stage `c / stages` of pipeline stage `c % stages`. A policy for
    whole layers begins anew in each chunk. Without the attribute all layers are
    one chunk.

    Example: `remat.chunks = #remat.chunks<stages = 2, layers = [2, 2, 2, 1]>`
    puts layers 0, 1, 4 and 5 on stage 0.
  }];
  let parameters = (ins "int64_t":$stages, "::mlir::DenseI64ArrayAttr":$layers);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Remat_RequestAttr : AttrDef<Remat_Dialect, "Request"> {
  let mnemonic = "request";
  let summary = "What a description asks of recompute, before it is decided";
  let description = [{
    On a module, as `remat.request`, and kept when it is decided. `granularity`
    is one of

    * `none`: nothing by an option;
    * `selective`: the values of `modules`, which are labels; without it, of
      `core_attn`;
    * `full`: whole layers, by the `method` `uniform` or `block` in segments of
      `layers`;
    * `plan`: what the plan `file` says.

    With `chunks`, layers are spread over stages. `keep_last = false` replays the
    last segment too, `share_saved = true` spreads saved inputs over the ranks of
    a model, and `free = false` makes nothing again that a kernel of the backward
    pass makes on its way.

    Examples: `#remat.request<granularity = "full", method = "uniform", layers = 2>`,
    `#remat.request<granularity = "selective", modules = ["mlp", "layernorm"], free = false>`
  }];
  let parameters = (ins
      StringRefParameter<>:$granularity,
      StringRefParameter<"", [{""}]>:$method,
      DefaultValuedParameter<"int64_t", "0">:$layers,
      OptionalParameter<"::mlir::ArrayAttr">:$modules,
      StringRefParameter<"", [{""}]>:$file,
      OptionalParameter<"::reprise::remat::ChunksAttr">:$chunks,
      DefaultValuedParameter<"bool", "true">:$keep_last,
      DefaultValuedParameter<"bool", "false">:$share_saved,
      DefaultValuedParameter<"bool", "true">:$free);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Remat_FenceOp : Op<Remat_Dialect, "fence", [
    Pure, AllTypesMatch<["value", "out"]>]> {
  let summary = "A saved value, not to be read before another is there";
  let description = [{
    Returns `value`. What is computed from the result cannot be taken for what
    was computed from `value`, by CSE or anything else, nor be moved before the
    values in `after`: a replay begins with fences on what it reads.

    Example:

    ```mlir
    %n2r = remat.fence %n2 after %dx2 : tensor<2x8x24xf32>, tensor<2x8x24xf32>
    ```
  }];
  let arguments = (ins AnyType:$value, Variadic<AnyType>:$after);
  let results = (outs AnyType:$out);
  let assemblyFormat = [{
    $value (`after` $after^)? attr-dict `:` type($value) (`,` type($after)^)?
  }];
}

#endif // REPRISE_DIALECT_REMAT_REMATOPS
