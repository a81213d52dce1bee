//===- Passes.td - Passes that form kernels ----------------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_KERNELS_PASSES
#define REPRISE_KERNELS_PASSES

include "mlir/Pass/PassBase.td"

def PadVocabulary : Pass<"reprise-pad-vocabulary", "::mlir::ModuleOp"> {
  let summary = "Give the output projection a width that a library multiplies well";
  let description = [{
    Where a library multiplies (the module has `rt.gemm_workspace`), rows of logits begin at
    multiples of 16 bytes only if their number is a multiple of 8, and tensor cores need that. The table that the output projection of
    `@step` reads, if it has another number of rows, gets rows of zeros up to a multiple of 64 in all
    functions, with its gradient, moments and working copy; logits get as many columns, which
    `classes` leaves out of losses and gradients. `nn.rows` says what the table has been: what the runtime
    starts from, saves and shows.

    A table that something else reads than embedding, projection, their gradients and the update
    stays as it is.

    Needs: `@step` with its update. Keeps: the order of all ops; what losses and gradients mean.

    ```mlir
    %logits = nn.linear %x, %t out_in : (tensor<1x8x24xf32>, tensor<307x24xf32>) -> tensor<1x8x307xf32>
    %losses, %lse = nn.cross_entropy %logits, %targets : (tensor<1x8x307xf32>, tensor<1x8xi32>) -> (tensor<1x8xf32>, tensor<1x8xf32>)
    // ==> %t: tensor<320x24xf32> {nn.parameter = …, nn.rows = 307 : i64}
    //     %logits = nn.linear %x, %t out_in : (tensor<1x8x24xf32>, tensor<320x24xf32>) -> tensor<1x8x320xf32>
    //     %losses, %lse = nn.cross_entropy %logits, %targets classes 307 : …
    ```
  }];
}

def FormKernels : Pass<"reprise-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Turn a step into a schedule of launches and GEMMs";
  let description = [{
    Every function that is not a kernel becomes a schedule: its ops, in their
    order, as `rt.launch` and `rt.gemm` on tensors.

    * A GEMM is an `rt.gemm`; an `nn.accumulate` of a GEMM that nothing
      else reads becomes its addend.
    * Neighbours in the schedule that are pointwise (`nn::Pointwise`), of one shape, each reading the one
      before or another of the group, are one kernel. One of them may go over rows (`nn::Rowwise`: a norm,
      a softmax, their gradients) if all elements are of one type and it is no replay. What only the group reads is no
      result of it. A replay and an original are never in one group.
    * `nn.accumulate` joins the column reduction or embedding gradient that makes its
      term, at that op's place. Where the term is a sum of such (a tied weight),
      each is accumulated by itself, in their order. In a step of one micro-batch
      (`nn.micro_batches`) the first term stands for the sum of an argument with `nn.gradient` and what is added to that,
      and nothing reads the argument; unless it adds rows to those of a table.
    * Neighbours that reduce the columns of rows of one shape, and read some of them in common, are one kernel:
      the gradients of a norm's gain and bias. None starts from a sum that another ends with.
    * Where a library multiplies (the module has `rt.gemm_workspace`, and not `rt.bias_kernels`), an `nn.sum_rows` of what a gradient
      of a weight reads, later in the schedule, whose result, or the running sum it is added to, nothing reads in the backward pass,
      is that GEMM's epilogue. These additions move behind the backward pass; up to 64 are one kernel.
    * `nn.adamw`, up to 16 side by side, is one kernel, in place, which also sets
      accumulators of gradients to zero to which the step adds: those zeros take the gradients' places among the
      function's results.
    * `nn.linear_cross_entropy` is written out chunk by chunk, on `rt.view`s of its operands, with
      one kernel for the losses and their gradient; `rt.join` makes its results of the chunks'.
    * `nn.global_norm` is two kernels: sums of squares of blocks, then the root of their sum. On the CPU a gradient
      of a weight that a GEMM writes last is not read for that: the GEMM has the epilogue `squares_of_c`,
      and a third kernel sums what that makes.
    * Every other op is a kernel of its own.
    * `remat.fence` becomes its value and `nn.backward` goes: from here on the order of the
      schedule holds, and nothing merges equal ops any more.

    Kernels that are equal but for locations, scopes and streams of randomness are
    one function; a launch gives the streams as `ids`. Argument attributes: `rt.in_place`,
    and `rt.may_alias = R` where the argument's buffer may be that of result
    `R` if it is dead after the launch: each of its elements is read before that of the result is written.
    A launch or GEMM carries `rt.name`, `flops` and, if it is one, `remat.replay`.

    Needs: functions of one block. Keeps: the order of the schedule, but for additions to gradients of biases; all bits.

    ```mlir
    func.func @step(%x: tensor<2x8x24xf32>, %y: tensor<2x8x24xf32>, %rng: tensor<4xi32>) -> tensor<2x8x24xf32> {
      %yd = nn.dropout %y, %rng rate 1.0e-01 stream 3 : (tensor<2x8x24xf32>, tensor<4xi32>) -> tensor<2x8x24xf32>
      %z = nn.add %x, %yd {nn.scope = #nn.scope<layer = 0, module = "residual", value = "x1">} : tensor<2x8x24xf32>
      return %z : tensor<2x8x24xf32>
    }
    // ==> %z = rt.launch @dropout_add_2x8x24(%y, %rng, %x) ids [3] {flops = 768 : i64, rt.name = "layer0.residual.x1"} : …
    // func.func private @dropout_add_2x8x24(%arg0: tensor<2x8x24xf32> {rt.may_alias = 0 : i64}, …) attributes {rt.kernel} {
    //   %0 = nn.dropout %arg0, %arg1 rate 1.0e-01 stream 0 : …
    //   %1 = nn.add %arg2, %0 : …
    //   return %1 : …
    // }
    ```
  }];
  let options = [Option<"rowsApart", "rows-apart", "bool", /*default=*/"false",
                        "Leave what goes over rows in the forward pass alone, as a replay may run it, "
                        "and what a replay may come before; launch replays as the forward pass does">];
  let dependentDialects = ["::reprise::rt::RTDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def ConvertNNToLinalg : Pass<"convert-nn-to-linalg", "::mlir::func::FuncOp"> {
  let summary = "Write out what kernels compute";
  let description = [{
    Bodies of kernels become `linalg.generic` on flattened shapes, in three forms:

    | loops | iterators | operands |
    |---|---|---|
    | elements `[n]` | parallel | `(n)`, scalars `()` |
    | elements of rows `[rows, cols]` | parallel, parallel | `(r, c)`, `(r)`, `(c)`, `()` |
    | a reduction | parallel, reduction or reduction, parallel | the same, the result `(r)` or `(c)` |

    The accumulator of a reduction starts at zero (`linalg.fill`) or, where the kernel
    accumulates, at the old sum. Tables are read by `tensor.extract` with the column as
    last index. A pointwise group is one `linalg.generic`. Attention,
    and adding rows to a table of words or of positions, become `rt.attention`,
    `rt.attention_backward` and `rt.scatter_add`.

    Arithmetic is f32. Operands in bf16 are extended where they are read, and the result of each
    `nn` op is rounded to its element type, in a group too: so fusing never changes bits. Random
    numbers are `rt.random_word`, on the stream that `rt.stream` names.

    Functions without `rt.kernel` are left alone. An op that has no such form is an error.

    ```mlir
    func.func private @add(%x: tensor<2x8xf32>, %y: tensor<2x8xf32>) -> tensor<2x8xf32> attributes {rt.kernel} {
      %z = nn.add %x, %y : tensor<2x8xf32>
      return %z : tensor<2x8xf32>
    }
    // ==> %0 = tensor.collapse_shape %x [[0, 1]] : tensor<2x8xf32> into tensor<16xf32>
    //     %1 = tensor.collapse_shape %y [[0, 1]] : tensor<2x8xf32> into tensor<16xf32>
    //     %2 = tensor.empty() : tensor<16xf32>
    //     %3 = linalg.generic {…} ins(%0, %1) outs(%2) { … arith.addf … }
    //     %4 = tensor.expand_shape %3 [[0, 1]] output_shape [2, 8] : tensor<16xf32> into tensor<2x8xf32>
    ```
  }];
  let dependentDialects = ["::reprise::rt::RTDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
}

def PackWeights : Pass<"reprise-pack-weights", "::mlir::ModuleOp"> {
  let summary = "Let the optimizer write weights as GEMMs read them";
  let description = [{
    A working copy in bf16 that GEMMs alone read, each as all of its `B`, becomes `packed_b` of
    these: panels of 32 columns of pairs of rows. The kernel that rounds the
    parameter to it writes it so (`linalg.pack`). Tiles of AMX then read a weight
    where it is, and fetch the next part meanwhile; without, each GEMM would first read it in
    short pieces, wait for them, and write panels of its own.

    A copy is packed in all schedules or in none. It stays as it is if something else reads it, such as a lookup or
    a GEMM of a part of it, if its rows or columns are no multiple of 32, or if another launch of the kernel that writes it has
    a copy in its place that stays. Nothing is packed where a library multiplies (the module has `rt.gemm_workspace`)
    or buffers do not begin at cache lines (`rt.alignment`).

    Needs: kernels as `convert-nn-to-linalg` leaves them. Keeps: all bits; the bytes of each copy.

    ```mlir
    func.func @step(%x: tensor<4x64xbf16>, %w: tensor<64x96xbf16> {nn.working = "w"}) -> tensor<4x96xbf16> {
      %y = rt.gemm %x, %w m 4 n 96 k 64 lda 64 ldb 96 ldc 96 : (tensor<4x64xbf16>, tensor<64x96xbf16>) -> tensor<4x96xbf16>
      return %y : tensor<4x96xbf16>
    }
    // ==> %w: tensor<3x32x32x2xbf16> {nn.working = "w"}
    //     %y = rt.gemm %x, %w packed_b m 4 n 96 k 64 lda 64 ldb 64 ldc 96 : …
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def VerifyKernels : Pass<"reprise-verify-kernels", "::mlir::ModuleOp"> {
  let summary = "Refuse what forming kernels should have removed";
  let description = [{
    No function that is not a kernel has an op of `nn` or `remat`; every argument of a kernel
    with `rt.in_place` or `rt.may_alias` has the type of the result it names, and no two
    share one result's buffer in place. With `loops`, which is for after
    `convert-nn-to-linalg`, no kernel has an op of `nn` either.

    ```mlir
    func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = nn.add %x, %x : tensor<4xf32> // error: needs to be in a kernel by now, but is in the schedule @step
      return %y : tensor<4xf32>
    }
    ```
  }];
  let options = [Option<"loops", "loops", "bool", /*default=*/"false",
                        "Kernels are loops already">];
}

#endif // REPRISE_KERNELS_PASSES
