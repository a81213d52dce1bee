//===- Passes.td - Passes that decide on recomputation -----*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_REMAT_PASSES
#define REPRISE_REMAT_PASSES

include "mlir/Pass/PassBase.td"

def AnnotateFull : Pass<"reprise-remat-annotate-full", "::mlir::func::FuncOp"> {
  let summary = "Decide to recompute whole layers, in segments";
  let description = [{
    Puts the layers of the model into segments and writes `remat.decision` on
    every op of the forward pass; nothing moves. With N = `num-layers`:

    * `uniform`: segments of N layers, the last one shorter if need be. Every
      layer is recomputed.
    * `block`: the first N layers are a segment each; the others keep everything,
      but for what `reprise-remat-annotate-free` may take.

    What a segment's layers compute is dropped, but for what other layers or the
    head read: the residual stream between two segments is kept. So are
    embedding, final norm, output layer and loss. An op that has a decision
    already keeps it. With `remat.chunks` each chunk is cut by itself.

    With `share` the ranks along that axis keep a part each of the input of a
    segment, if they have the same one, nothing else of the model reads it, and
    its type has dimensions. What a chunk of a pipeline gets from the one before
    is decided on as an argument.

    Needs: `nn.scope` on the ops of layers; a function without `nn.backward` is
    left alone, for it saves nothing. With `share`, a mesh with several ranks along
    the axis, and inputs of which these divide a dimension. Keeps: all results.

    ```mlir
    // num-layers=1 method=uniform
    %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "u">} : tensor<8xf32>
    %y = nn.gelu %u tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "y">} : tensor<8xf32>
    %z = nn.gelu %y tanh {nn.scope = #nn.scope<layer = 1, module = "mlp", value = "u">} : tensor<8xf32>
    // ==> on %u: remat.decision = #remat.recompute<segment = 0, label = "full">
    //     on %y: remat.decision = #remat.save<reason = "input of segment 1">
    ```

    Remarks, category `Remat`: `Recompute` and `Save`, one for each decision, with
    `bytes` (what is no longer kept for backward, or is) and `flops` (of its replay).
  }];
  let options = [
    Option<"method", "method", "std::string", /*default=*/"",
           "uniform: segments of num-layers layers; block: the first num-layers layers, one by one">,
    Option<"numLayers", "num-layers", "int64_t",
           /*default=*/"::reprise::remat::kUnsetNumLayers",
           "uniform: layers of a segment; block: how many layers to recompute; at least 1">,
    Option<"share", "share", "std::string", /*default=*/"",
           "Axis of the mesh along which ranks share inputs of segments">];
  let dependentDialects = ["::reprise::remat::RematDialect"];
}

def AnnotateSelective
    : Pass<"reprise-remat-annotate-selective", "::mlir::func::FuncOp"> {
  let summary = "Decide to recompute parts of every layer, by their names";
  let description = [{
    Writes `remat.decision` on the ops of the regions that `modules` names, in
    every layer; a layer is a segment. Nothing moves.

    | label | dropped | kept |
    |---|---|---|
    | `core_attn` | what is between q, k, v and the context; with fused attention the log-sum-exp | q, k, v and the context |
    | `core_attn_out` | the same, and the context | q, k, v |
    | `mlp` | what is inside the feed-forward block: `u`, `g` | its input, its output |
    | `layernorm` | the norms' outputs `n1`, `n2`, and their statistics | the residual stream |
    | `moe` | what is inside experts, and the weights of rows | its input, its output, which experts were chosen |
    | `moe_act` | what is between the GEMMs of experts, `g` | `gt`, `u` and the weights of rows |
    | `shared_experts` | what is inside the expert that all tokens share | its input, its output |
    | `mla_up_proj` | queries, keys and values of latent attention, and what they are made by | the latents, and the columns that keys have in common |

    A label that frees nothing in this model is a warning; a label that is not
    known, or needs a part that the model does not have, is an error. Without any label
    nothing is recomputed. An op that has a decision already keeps it.

    Needs: `nn.scope` on the ops of layers; a function without `nn.backward` is
    left alone, for it saves nothing. Keeps: all results.

    ```mlir
    // modules=mlp
    %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "u">} : tensor<8xf32>
    %y = nn.scale %u by 2.0 {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "y">} : tensor<8xf32>
    %z = nn.add %x, %y {nn.scope = #nn.scope<layer = 3, module = "residual", value = "x2">} : tensor<8xf32>
    // ==> on %u: remat.decision = #remat.recompute<segment = 3, label = "mlp">
    ```

    Remarks, category `Remat`: `Recompute` and `Save`, one for each decision, with
    `bytes` (what is no longer kept for backward, or is) and `flops` (of its replay).
  }];
  let options = [
    Option<"modules", "modules", "std::string", /*default=*/"\"core_attn\"",
           "Comma-separated labels of what to recompute; may be empty">];
  let dependentDialects = ["::reprise::remat::RematDialect"];
}

def SplitLayers : Pass<"reprise-remat-split-layers", "::mlir::func::FuncOp"> {
  let summary = "Spread the layers of a step over pipeline stages";
  let description = [{
    Writes `remat.chunks` on a function with `nn.backward`; nothing else. Chunks
    follow each other in the model and go round the stages. Without `layers`,
    their sizes differ by one at most, the larger ones first.

    It is what deciders and reports go by, before them; the step itself stays
    that of one device.

    ```mlir
    // stages=2, of a model of 5 layers
    func.func @step() attributes {remat.chunks = #remat.chunks<stages = 2, layers = [3, 2]>} {
      return
    }
    ```
  }];
  let options = [
    Option<"stages", "stages", "int64_t", /*default=*/"1",
           "Stages of the pipeline; at least 1">,
    Option<"virtualStages", "virtual-stages", "int64_t", /*default=*/"1",
           "Chunks on each stage; at least 1, and 1 without a pipeline">,
    ListOption<"layers", "layers", "int64_t",
               "How many layers each chunk has, in the order of the model">];
  let dependentDialects = ["::reprise::remat::RematDialect"];
}

def ReadPlan : Pass<"reprise-remat-read-plan", "::mlir::func::FuncOp"> {
  let summary = "Decide as a plan file says";
  let description = [{
    Writes `remat.decision` as the rules of a plan file say; later rules win.
    Values and layers that no rule is about have none. An op that has a decision
    already keeps it. Writes `remat.chunks` if the file has chunks.

    Needs: `nn.scope` on the ops that rules are about; a function without
    `nn.backward` is left alone. Keeps: all results.

    ```mlir
    // a rule of the file: {layers: 0-3, recompute: all, except: ctx}
    %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "u">} : tensor<8xf32>
    %y = nn.scale %u by 2.0 {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "y">} : tensor<8xf32>
    // ==> on both: remat.decision = #remat.recompute<segment = 3, label = "plan">
    ```

    Remarks, category `Remat`: `Recompute` and `Save`, one for each decision, with
    `bytes` (what is no longer kept for backward, or is) and `flops` (of its replay).
  }];
  let options = [
    Option<"file", "file", "std::string", /*default=*/"",
           "The plan: YAML, docs/remat.md has the form">];
  let dependentDialects = ["::reprise::remat::RematDialect"];
}

def AnnotateFree : Pass<"reprise-remat-annotate-free", "::mlir::func::FuncOp"> {
  let summary = "Drop values that a kernel of backward makes again on its way";
  let description = [{
    The gradient of an activation reads what the activation reads, element by
    element, and computes nearly all of it: its kernel can write the activation
    too, for the price of the write. So the activation need not be kept:
    `nn.gelu`, `nn.squared_relu` and `nn.swiglu` of layers, where backward reads
    the result, and reads it (the gradient of the weight behind it) where the gradient may come
    first. Nothing moves here; `reprise-remat-apply` moves that gradient.

    An `nn.cast` that only makes a value wider need not be kept either: it is made
    again in front of its first reader in backward, of the value that it widens.

    What another decider keeps stays, unless it is kept with its segment only
    because replays free nothing at the peak. What another decider drops is made
    on the way instead of being replayed, and stays in its segment.

    Needs: `nn.scope` on the ops of layers. Keeps: all results.

    ```mlir
    %g = nn.gelu %u tanh {nn.scope = #nn.scope<layer = 0, module = "mlp", value = "g">} : tensor<8xf32>
    nn.backward
    %w = nn.scale %g by 2.0 : tensor<8xf32>
    %du = nn.gelu_backward %u, %d tanh : tensor<8xf32>
    // ==> on %g: remat.decision = #remat.recompute<segment = 0, label = "free">
    ```

    Remarks, category `Remat`: `Free`, with `bytes`.
  }];
  let dependentDialects = ["::reprise::remat::RematDialect"];
}

def Apply : Pass<"reprise-remat-apply", "::mlir::func::FuncOp"> {
  let summary = "Replay dropped values where the backward phase reads them";
  let description = [{
    Goes through the backward phase in order. Where an op reads a value that is
    decided as `#remat.recompute`, the ops that it takes to rebuild it are
    cloned in front of the reader: as late as possible, each op once, and only
    what is read (a GEMM whose result backward never reads is not replayed).
    A replay reads replayed values; parameters and inputs as they are; kept
    values behind a `remat.fence` on a gradient that the reader reads, so that
    nothing merges the replay with its original or moves it forward. An op that
    would read parameters and inputs only gets a fence on its first operand.

    What is decided as `free` is replayed in front of the gradient of its op, with
    `remat.free`, for both to become one kernel; that gradient, and what it reads,
    moves in front of the first reader of the value if it is not there. Where
    that cannot be, it is an ordinary replay. A cast that is `free` is replayed in
    front of the first reader of its result.

    Of what is decided as `#remat.share` an `nn.slice` takes the rank's part behind
    the last reader of the forward pass: the value's first dimension that the ranks
    divide is cut. In front of the first reader of the backward pass an
    `nn.all_gather` of the part, which is read behind a fence, makes the value again.

    A replay has the scope of its original and its attributes, hence its random
    stream, but for `remat.replay = SEGMENT` in place of the decision, and `@replay`
    after the name in its location. Decisions stay where they are.

    Needs: one `nn.backward`; decisions on ops above it, without side effects; no
    reader of a dropped value below `nn.update` or in `return`. Keeps: all results, bit for bit.

    ```mlir
    %u = nn.gelu %x tanh {remat.decision = #remat.recompute<segment = 0, label = "mlp">} : tensor<8xf32>
    %y = nn.gelu %u tanh : tensor<8xf32>
    nn.backward
    %du = nn.gelu_backward %u, %y tanh : tensor<8xf32>
    %dx = nn.gelu_backward %u, %du tanh : tensor<8xf32>
    // ==>
    //   nn.backward
    //   %0 = remat.fence %x : tensor<8xf32>
    //   %1 = nn.gelu %0 tanh {remat.replay = 0 : i64} : tensor<8xf32>
    //   %du = nn.gelu_backward %1, %y tanh : tensor<8xf32>
    //   %dx = nn.gelu_backward %1, %du tanh : tensor<8xf32>
    ```
  }];
  let dependentDialects = ["::reprise::remat::RematDialect"];
}

def Verify : Pass<"reprise-remat-verify", "::mlir::func::FuncOp"> {
  let summary = "Check that what is applied is what was decided";
  let description = [{
    * (V1) Decisions are on ops above `nn.backward`, without side effects; what is
      shared is the same on all ranks of the axis.
    * (V2) Nothing below `nn.backward` reads a dropped or a shared value.
    * (V3) Replays are below `nn.backward`, and above `nn.update`.
    * (V4) A replay reads replays, fences, and arguments of the function.
    * (V5) A replay is an op of the forward pass again: same op, attributes
      (hence random stream) and operands, but for fences and replays.
    * (V6) That op is decided as recompute, with the segment of the replay.
    * (V7) No op is replayed twice, but for once more on the way of its gradient.
    * (V8) A fence waits for values of the backward phase.
    * (V9) For (V5) and (V6), an `nn.all_gather` of the part that an `nn.slice` with
      `remat.share` has taken is a replay of the value which is decided as shared.

    ```mlir
    %u = nn.gelu %x tanh {remat.decision = #remat.recompute<segment = 0, label = "mlp">} : tensor<8xf32>
    nn.backward
    %0 = remat.fence %x : tensor<8xf32>
    %1 = nn.gelu %0 tanh {remat.replay = 0 : i64} : tensor<8xf32>
    ```
  }];
}

def PrintPlan : Pass<"reprise-remat-print-plan", "::mlir::func::FuncOp"> {
  let summary = "Print what is kept and what is recomputed, layer by layer";
  let description = [{
    Prints the effective plan to the standard output, before or after
    `reprise-remat-apply`: the same decisions give the same text. Layers that
    are alike share a line.

    ```mlir
    %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "u">} : tensor<8xf32>
    nn.backward
    %d = nn.gelu_backward %u, %u tanh : tensor<8xf32>
    // prints: layer 3: save u (32 B)
    ```
  }];
}

#endif // REPRISE_REMAT_PASSES
