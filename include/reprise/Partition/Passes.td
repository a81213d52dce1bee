//===- Passes.td - Passes that share a model among ranks ---*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_PARTITION_PASSES
#define REPRISE_PARTITION_PASSES

include "mlir/Pass/PassBase.td"

def AnnotateLayout : Pass<"reprise-annotate-layout", "::mlir::ModuleOp"> {
  let summary = "Decide how each value of the forward pass is spread over ranks";
  let description = [{
    Gives each argument and op of `@forward` the attribute `nn.layout`, with a word for `tp`.

    * Values that only ops which keep heads or columns apart lead from `nn.linear` to `nn.linear`,
      or to the loss, are cut by columns, `S`. Such ops are `nn.rope`, attention in both forms,
      `nn.latent_heads`, `nn.gelu`, `nn.squared_relu`, `nn.swiglu`, `nn.weighted_swiglu`,
      `nn.rms_norm` of heads, and `nn.dropout`, `nn.cast` and `nn.scale`.
    * A linear whose result is cut has its weight cut by its results (a column linear), one
      whose input is cut by its inputs (a row linear). So are the weights of all experts of an
      `nn.grouped_linear`. The rows of a table of `nn.embedding` are cut.
    * What a row linear without a bias makes, or an `nn.embedding`, stays parts of a sum, `P`, if all
      that reads it is an `nn.combine`, an `nn.pad_positions`, or an `nn.add` to another one of these.
    * Positions that an `nn.crop_positions` takes of parts are `R` if column linears alone read
      them, and otherwise `I`.
    * All else is whole, `I`; with `sequence-parallel`, or `nn.sequence_parallel` on the module, the
      values along the residual stream are cut in their second dimension, `S(1)`.
    * A parameter that is whole and has gradients from parts of its uses is `R`.
    * Fewer heads of keys and values than ranks: neighbours have copies of the same heads, each for
      heads of queries of its own. What has these heads is `S` along `kv` and `R` along `kv_copies`,
      two parts of `tp` that the mesh gets; one head for all is `R` along `tp`.

    * Where the mesh has an axis `ep` whose step the ranks along `tp` do not divide, experts are
      whole: a rank has rows of its own positions. Tokens from the choice of experts to `nn.combine` are
      `S(1)`, rows sorted by expert `V`, and weights of experts `R`.

    Without ranks along `tp` nothing is done. Refused: heads, columns or, with `sequence-parallel`,
    the sequence where the ranks do not divide them; heads of keys that the ranks do not divide, nor
    they the ranks, or of which layers have different numbers below that of the ranks; a norm of
    all heads at once; `sequence-parallel` without ranks along `tp`. Any vocabulary is shared.

    ```mlir
    module attributes {nn.mesh = #nn.mesh<tp = 2>} {
      func.func @forward(%x: tensor<2x4x8xf32>, %u: tensor<8x6xf32> {nn.parameter = #nn.parameter<name = "u", init = zeros>},
                         %d: tensor<6x8xf32> {nn.parameter = #nn.parameter<name = "d", init = zeros>}) -> tensor<2x4x8xf32> {
        %h = nn.linear %x, %u in_out : (tensor<2x4x8xf32>, tensor<8x6xf32>) -> tensor<2x4x6xf32>
        %g = nn.gelu %h tanh : tensor<2x4x6xf32>
        %y = nn.linear %g, %d in_out : (tensor<2x4x6xf32>, tensor<6x8xf32>) -> tensor<2x4x8xf32>
        return %y : tensor<2x4x8xf32>
      }
    }
    // ==> %u: S(1), %d: S(0), %h, %g: S(2), %x, %y: I
    ```
  }];
  let options = [
    Option<"sequenceParallel", "sequence-parallel", "bool", /*default=*/"false",
           "Cut the residual stream along the sequence">];
  let dependentDialects = ["::reprise::nn::NNDialect"];
}

def Partition : Pass<"reprise-partition", "::mlir::ModuleOp"> {
  let summary = "Make the forward pass that of one rank";
  let description = [{
    Gives each value of `@forward` the shape of a rank's part by `nn.layout`, and puts a collective,
    or an `nn.slice` or `nn.replicate`, wherever an op reads another layout than there is; what
    several ops read so is made once. Of a sum over ranks the bias is added behind it, once.
    Arguments keep their `nn.layout`. Where ranks do not divide the vocabulary, parts of a table are
    larger: its argument says with `nn.whole` how many rows there are, and the loss leaves columns
    out that are no classes. Dropout on a part gets its `part`, by which it draws what it
    would draw for the whole.

    Differentiation comes afterwards: backward's collectives are derivatives of these. The
    gradient of an `R` parameter is summed over `tp` by `reprise-add-optimizer`.

    Needs: `reprise-annotate-layout`; before `reprise-derive-inference` and `reprise-differentiate`.

    ```mlir
    module attributes {nn.mesh = #nn.mesh<tp = 2>} {
      func.func @forward(%x: tensor<2x4x8xf32>, %w: tensor<6x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>, nn.layout = #nn.layout<tp = S(0)>})
          -> tensor<2x4x6xf32> {
        %h = nn.linear %x, %w out_in {nn.layout = #nn.layout<tp = S(2)>} : (tensor<2x4x8xf32>, tensor<6x8xf32>) -> tensor<2x4x6xf32>
        %g = nn.gelu %h tanh : tensor<2x4x6xf32>
        return %g : tensor<2x4x6xf32>
      }
    }
    // ==> @forward(%x, %w: tensor<3x8xf32> {…, nn.layout = #nn.layout<tp = S(0)>})
    //   %own = nn.replicate %x over "tp" : tensor<2x4x8xf32>
    //   %h = nn.linear %own, %w out_in : (tensor<2x4x8xf32>, tensor<3x8xf32>) -> tensor<2x4x3xf32>
    //   %all = nn.all_gather %h to I over "tp" dim 2 : (tensor<2x4x3xf32>) -> tensor<2x4x6xf32>
    //   %g = nn.gelu %all tanh : tensor<2x4x6xf32>
    ```
  }];
  let dependentDialects = ["::reprise::nn::NNDialect"];
}

def PartitionExperts : Pass<"reprise-partition-experts", "::mlir::ModuleOp"> {
  let summary = "Send rows to the ranks of their experts";
  let description = [{
    Where the mesh has an axis `ep`, a part of `dp` or of `dp` and `tp` together, each of its `n`
    ranks has the weights of `E/n` experts, in order. GEMMs of rows with the weights of their experts are done there, as is what
    only goes on from these row by row: the pass makes a value of the rows of tokens, puts an
    `nn.send_rows` where these go and an `nn.return_rows` where they come back, and an
    `nn.gather_offsets` behind each sort, so that all ranks know how many rows go where. Each row comes
    back by itself, so that the sum of a token's rows does not depend on who made them.

    A rank has room for all rows that can come: of each rank's `T` tokens with `S` slots
    `T * min(S, E/n)`, or with a capacity `C` no more than `C * E/n`.

    Weights of experts are `S(0)` along `ep`, and `R` along `ep_copies`, the ranks that have the same
    ones.

    With `nn.expert_rows = R` on the module it goes on in rounds, in which an expert has at most `R`
    rows, and a rank room for those of its experts: as many rounds as the most rows need that an
    expert can get. Where that is one, there are none. What comes back is added up at home, where
    other rounds have zeros. The last round comes first, so that gradients, which go the other way,
    are added up by ascending rows. What is made in a round is to be recomputed under every plan
    (the label `rounds`).

    So it does with `@forward`, `@evaluate` and `@sample`, each of which has rows of its own.

    Needs: `reprise-partition`, if ranks share the model, and `reprise-derive-inference`; before
    `reprise-differentiate`. Refused: experts that the ranks do not divide, weights of experts that are
    no parameter or in parts already.

    ```mlir
    module attributes {nn.mesh = #nn.mesh<dp = 2, ep = 2 step 1>} {
      func.func @forward(%x: tensor<1x4x8xf32>, %i: tensor<1x4x1xi32>, %w: tensor<4x6x8xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>})
          -> tensor<1x4x6xf32> {
        %o, %p, %e = nn.sort_rows %i : (tensor<1x4x1xi32>) -> (tensor<4xi32>, tensor<1x4x1xi32>, tensor<5xi32>)
        %r = nn.grouped_linear %x, %w, %e rows %o, %p
          : (tensor<1x4x8xf32>, tensor<4x6x8xf32>, tensor<5xi32>, tensor<4xi32>, tensor<1x4x1xi32>) -> tensor<4x6xf32>
        %y = nn.combine %r, %o, %p : (tensor<4x6xf32>, tensor<4xi32>, tensor<1x4x1xi32>) -> tensor<1x4x6xf32>
        return %y : tensor<1x4x6xf32>
      }
    }
    // ==> %w: tensor<2x6x8xf32> {…, nn.layout = #nn.layout<ep = S(0)>}
    //   %all, %own = nn.gather_offsets %e over "ep" : (tensor<5xi32>) -> (tensor<2x5xi32>, tensor<3xi32>)
    //   %d = nn.dispatch %x, %o, %p : (tensor<1x4x8xf32>, tensor<4xi32>, tensor<1x4x1xi32>) -> tensor<4x8xf32>
    //   %s = nn.send_rows %d, %all over "ep" : (tensor<4x8xf32>, tensor<2x5xi32>) -> tensor<8x8xf32>
    //   %r = nn.grouped_linear %s, %w, %own : (tensor<8x8xf32>, tensor<2x6x8xf32>, tensor<3xi32>) -> tensor<8x6xf32>
    //   %h = nn.return_rows %r, %all over "ep" : (tensor<8x6xf32>, tensor<2x5xi32>) -> tensor<4x6xf32>
    // ==> with nn.expert_rows = 2 of the 8 that an expert can have, here the last of four rounds
    //   %all, %own = nn.gather_offsets %e over "ep" rows 2 : (tensor<5xi32>) -> (tensor<2x5xi32>, tensor<4x3xi32>)
    //   %own3 = nn.round_offsets %own round 3 : (tensor<4x3xi32>) -> tensor<3xi32>
    //   %s3 = nn.send_rows %d, %all over "ep" round 3 rows 2 : (tensor<4x8xf32>, tensor<2x5xi32>) -> tensor<4x8xf32>
    //   %r3 = nn.grouped_linear %s3, %w, %own3 : (tensor<4x8xf32>, tensor<2x6x8xf32>, tensor<3xi32>) -> tensor<4x6xf32>
    //   %h3 = nn.return_rows %r3, %all over "ep" round 3 rows 2 : (tensor<4x6xf32>, tensor<2x5xi32>) -> tensor<4x6xf32>
    ```
  }];
  let dependentDialects = ["::reprise::nn::NNDialect"];
}

def VerifyLayout : Pass<"reprise-verify-layout", "::mlir::ModuleOp"> {
  let summary = "Prove that ranks make parts of one model";
  let description = [{
    Goes from the words of arguments, `nn.layout`, through a rank's `@forward` by rules that each op
    has for itself: they know nothing of how `reprise-annotate-layout` chooses and where
    `reprise-partition` puts moves. What it proves along `tp`:

    * What ranks have parts of a sum of, `P`, is read by what is linear in it alone, and each move
      begins at the word that it needs.
    * Ranks have parts along dimensions that an op keeps apart, and draw for these at random.
    * What is read for parts is in parts or `R`, so that its gradient is summed. Ids and other data
      have none.
    * The results are `I`: the loss is one number.

    Of a `@step` with an update: the gradient of each parameter is summed over ranks along exactly the
    axes along which it is a part of a sum, once, before the update reads it. These are the axis of
    the samples, those along which the parameter is `R`, and `pp` if two stages have it. The loss is
    summed along `dp`.

    Without `nn.mesh` there is nothing to prove. Changes nothing.

    ```mlir
    module attributes {nn.mesh = #nn.mesh<tp = 2>} {
      func.func @forward(%x: tensor<2x4xf32>, %w: tensor<3x4xf32> {nn.parameter = #nn.parameter<name = "w", init = zeros>, nn.layout = #nn.layout<tp = S(0)>},
                         %v: tensor<4x3xf32> {nn.parameter = #nn.parameter<name = "v", init = zeros>, nn.layout = #nn.layout<tp = S(1)>}) -> tensor<2x4xf32> {
        %own = nn.replicate %x over "tp" : tensor<2x4xf32>
        %h = nn.linear %own, %w out_in : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
        %y = nn.linear %h, %v out_in : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
        %sum = nn.all_reduce %y over "tp" : tensor<2x4xf32>
        return %sum : tensor<2x4xf32>
      }
    }
    // %own: R, %h: S(1), %y: P, %sum: I
    ```
  }];
}

#endif // REPRISE_PARTITION_PASSES
