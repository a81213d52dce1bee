//===- Passes.td - Passes that plan memory -----------------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_MEMORY_PASSES
#define REPRISE_MEMORY_PASSES

include "mlir/Pass/PassBase.td"

def OverlapCollectives : Pass<"reprise-overlap-collectives", "::mlir::ModuleOp"> {
  let summary = "Let ranks meet while they compute";
  let description = [{
    In `@step` ops in which ranks meet begin as soon as what they read is there (`rt.begun`), and an
    `rt.wait` stands before the first op that reads what they make, or writes over what they keep.
    That is done where something is computed in between.

    * A sum of gradients in the update is taken apart by the order in which the backward pass makes
      them, into some 16 parts of like bytes. They begin there, end where the update begins, and run
      once, in the last micro-batch (`rt.once`). Sums of values that the update itself makes, such as
      those of several reduction groups, stay where they are. Each element is the same sum of the
      same terms.
    * A value that is gathered again from a part that a plan keeps begins at most two GEMMs early.
    * Shares of parameters are gathered from where they are made up to the end of the step.
    * Ops along `pp`, or of some ranks of an axis, stay as they are.

    The most bytes that are alive at one time do not grow: an op that would raise them stays as it
    is. Its workspace is alive for longer, which all that is under way at one time have in common;
    so are its results, from where it begins, and its operands, up to the wait. Ops are looked at in
    their order, so the outcome depends on the schedule alone, which all ranks share.

    A module with `rt.no_overlap` stays as it is.

    Needs: tensor form. Keeps: all bits; the order of all else.

    Remarks, category `Memory`: `Overlapped`, with the ops that are `begun`, and those `refused` for
    their bytes.

    ```mlir
    %g = rt.launch @backward(%x) : (tensor<16xf32>) -> tensor<16xf32>
    %h = rt.launch @backward(%y) : (tensor<16xf32>) -> tensor<16xf32>
    rt.update
    %sum:2 = rt.collective all_reduce(%g, %h) over "dp" ranks 2
      : (tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>)
    // ==> %g = rt.launch @backward(%x) : …
    //     %going = rt.collective all_reduce(%g) over "dp" ranks 2 {rt.begun = 0 : i64, rt.once} : …
    //     %h = rt.launch @backward(%y) : …
    //     %sum = rt.wait 0 for(%going) {rt.once} : …
    //     rt.update
    //     %rest = rt.collective all_reduce(%h) over "dp" ranks 2 : …
    ```
  }];
  let dependentDialects = ["::reprise::rt::RTDialect"];
}

def PlanMemory : Pass<"reprise-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Give every tensor of the schedule its bytes in one arena";
  let description = [{
    Turns `@step` from tensor form into buffer form. The arena holds, in this
    order, the parameters, the accumulated gradients, the two moments, the inputs and
    outputs, and then everything that lives within a step, packed so that buffers share bytes
    where their lives do not overlap.

    * A result that its kernel makes in place (`rt.in_place`), and the result of a GEMM
      with an addend, take the buffer of that operand, which nothing may read later and
      the op only there.
    * What `@step` returns in place of a gradient's argument that nothing reads is made in that
      argument's buffer, from the first value on that takes it in turn. Such a gradient has
      `init = none`, and lives from that value to the end. Activations are packed by themselves, and
      such gradients lie in bytes that they leave free from there on, or behind them; where that needs
      more than is alive at one time, both are packed together, unless the module has
      `rt.activations_first`. The category `activations` is the bytes of activations packed by
      themselves, `gradients` what the arena needs beyond.
    * A result that may alias an operand (`rt.may_alias`) takes its buffer if the operand is a
      value of the step, is read by nothing later, and by this op only there. Results of
      `@step` keep bytes of their own.
    * A GEMM gets its workspace for as long as it runs.
    * With `rt.known_offsets` on an op its results and its workspace get the offsets that a like
      schedule has for them, in bytes from the beginning of activations (-1: none). Other buffers lie
      among them, unless two are in each other's way. A result that may alias an operand does not
      where their offsets differ. Where others do not fit below the known ones, the schedule is packed
      by itself, too.

    The arguments of `@step` become `rt.buffer`s with `rt.state` or `rt.role`; its
    results that replace a state must already be in the buffer of that state.
    An output that is made within the step gets bytes of its own beside the inputs. The module
    gets `rt.plan`: the size of the arena, its categories, and the bounds that packing was
    measured against.

    With `rt.most_launches` on the module, inputs of a micro-batch come first among inputs and
    outputs, and behind them `rt.role = "batches"`, places for those of further ones.

    `@evaluate` and `@sample`, if they are there, get their bytes in the same arena. Arguments
    with the attributes of one of `@step`'s are its buffers. Everything else, inputs and
    outputs of their own included, is packed by itself from where the activations of
    `@step` begin: between two steps nothing lives there. The arena has room for the schedule that
    needs most.

    Needs: tensor form, one block each; in `@evaluate` and `@sample` no states but those of
    `@step`. Offsets are multiples of `alignment` bytes.

    Remarks, category `Memory`: `Planned` for each schedule, with `arena`, `peak` and `bound` in bytes.

    ```mlir
    func.func private @gelu_16(%x: tensor<16xf32> {rt.may_alias = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel} {
      %y = nn.gelu %x tanh : tensor<16xf32>
      return %y : tensor<16xf32>
    }
    func.func @step(%w: tensor<16xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>},
                    %gw: tensor<16xf32> {nn.gradient = "w"}) -> (tensor<16xf32> {nn.gradient = "w"}) {
      %y = rt.launch @gelu_16(%w) : (tensor<16xf32>) -> tensor<16xf32>
      return %gw : tensor<16xf32>
    }
    // ==> %w = rt.buffer at <device, 0> {rt.state = #rt.state<kind = parameter, parameter = "w", init = ones>} : memref<16xf32>
    //     %gw = rt.buffer at <device, 64> {rt.state = #rt.state<kind = gradient, parameter = "w", init = zeros>} : memref<16xf32>
    //     %y = rt.buffer at <device, 128> : memref<16xf32>
    //     rt.launch @gelu_16(%w) to (%y) : (memref<16xf32>, memref<16xf32>) -> ()
    ```
  }];
  let options = [
    Option<"alignment", "alignment", "int64_t", /*default=*/"0",
           "Offsets are multiples of this many bytes, recorded as rt.alignment; 0: those that "
           "are recorded, or 64">,
    Option<"gemmWorkspace", "gemm-workspace", "int64_t", /*default=*/"0",
           "Bytes of workspace of every GEMM, recorded as rt.gemm_workspace; 0: what "
           "each needs on the CPU">,
    Option<"mostLaunches", "most-launches", "int64_t", /*default=*/"0",
           "Launches that a device is given at a time, recorded as rt.most_launches; 0: the "
           "arena has room for the inputs of one micro-batch alone">,
  ];
  let dependentDialects = ["::reprise::rt::RTDialect"];
}

def VerifyPlan : Pass<"reprise-verify-plan", "::mlir::ModuleOp"> {
  let summary = "Prove that no two live buffers share a byte";
  let description = [{
    Walks the schedule in buffer form and follows who wrote each byte of the arena.
    Shares no code with the planner.

    * Every buffer lies within the arena, at a multiple of its element's size. The arena
      ends with the last buffer; its categories add up to it, and each has room for its buffers.
    * States and roles have bytes of their own, but for gradients with `init = none`.
    * A read finds all bytes as they were last written through the buffer that is read. What
      a GEMM adds to is one whole value. A part of a buffer counts as that buffer; what
      is made in parts is written once.
    * An output never shares bytes with another output, and with an input only where the
      kernel's `rt.in_place` or `rt.may_alias` says so, and then all of them. What is
      `rt.in_place` does share them.
    * What outlives the step changes as a whole and in place: gradients and the loss
      anywhere, parameters and moments below `rt.update`, where no other micro-batch reads
      them, inputs never.
    * A gradient with `init = none`, of a step of one micro-batch, is not there when it begins. It is written as a
      whole, once, through its own buffer, over nothing that is read later; from then on to the end of the
      step it changes from its old value only.
    * From where ranks begin something (`rt.begun`) to its `rt.wait` nothing else touches its results
      and workspace, or writes its operands. Both stand above `rt.update`, or below. All that is begun
      may have one workspace. Above `rt.update` only ops with `rt.once` touch results of ops with it.
    * A step with an update makes all gradients where they are, and replaces those below `rt.update` to
      which it has added.
    * `@evaluate` and `@sample` have states, rotary tables and shared inputs exactly where `@step`
      has them, and write none of these bytes; what they put out is there at the end.

    ```mlir
    module attributes {rt.plan = #rt.plan<[<device, bytes = 192, least = 192, begin = 64, peak = 128, bound = 128, [<inputs_and_outputs, 64>, <activations, 128>]>]>} {
      func.func private @k(tensor<16xf32> {rt.may_alias = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel}
      func.func @step() {
        %lr = rt.buffer at <device, 0> {rt.role = "lr"} : memref<16xf32>
        %a = rt.buffer at <device, 64> : memref<16xf32>
        rt.launch @k(%lr) to (%a) : (memref<16xf32>, memref<16xf32>) -> ()
        %b = rt.buffer at <device, 64> : memref<16xf32> // in place of %a
        rt.launch @k(%a) to (%b) : (memref<16xf32>, memref<16xf32>) -> ()
        %c = rt.buffer at <device, 128> : memref<16xf32>
        rt.launch @k(%b) to (%c) : (memref<16xf32>, memref<16xf32>) -> ()
        return
      }
    }
    ```
  }];
}

#endif // REPRISE_MEMORY_PASSES
