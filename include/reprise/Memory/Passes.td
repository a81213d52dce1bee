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

def PlanMemory : Pass<"reprise-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Give every tensor of the schedule its bytes in one arena";
  let description = [{
    Turns `@step` from tensor form into buffer form. The arena holds, in this
    order, the parameters, their gradients, the two moments, the inputs, and
    then everything that lives within a step, packed so that buffers share bytes where
    their lives do not overlap.

    * A result that its kernel makes in place (`rt.in_place`), and the result of a product
      with an addend, take the buffer of that operand, which nothing may read later.
    * A result that may alias an operand (`rt.may_alias`) takes its buffer if the operand is a
      value of the step, is read by nothing later, and by this op only there.
    * A product gets its workspace for as long as it runs.

    The arguments of `@step` become `rt.buffer`s with `rt.state` or `rt.role`, its
    results must already be in the buffers of the arguments whose role they
    have. The outputs of the step get bytes of their own. The module gets `rt.plan`:
    the size of the arena, its categories, and the bound that packing was measured
    against.

    Needs: tensor form, one block. Offsets are multiples of `alignment` bytes.

    Remarks, category `Memory`: `Planned`, with `arena`, `peak` and `bound` in bytes.

    ```mlir
    func.func private @gelu_16(%x: tensor<16xf32> {rt.may_alias = 0 : i64}) -> tensor<16xf32> attributes {rt.kernel} {
      %y = nn.gelu %x tanh : tensor<16xf32>
      return %y : tensor<16xf32>
    }
    func.func @step(%w: tensor<16xf32> {nn.parameter = #nn.parameter<name = "w", init = ones>},
                    %sum: tensor<16xf32> {nn.gradient = "w"}) -> (tensor<16xf32> {nn.gradient = "w"}) {
      %y = rt.launch @gelu_16(%w) : (tensor<16xf32>) -> tensor<16xf32>
      return %sum : tensor<16xf32>
    }
    // ==> %w = rt.buffer at 0 {rt.state = #rt.state<…>} : memref<16xf32>
    //     %sum = rt.buffer at 64 {rt.state = …} : memref<16xf32>
    //     %y = rt.buffer at 128 : memref<16xf32>
    //     rt.launch @gelu_16(%w) to (%y) : (memref<16xf32>, memref<16xf32>) -> ()
    ```
  }];
  let options = [
    Option<"alignment", "alignment", "int64_t", /*default=*/"64",
           "Offsets are multiples of this many bytes">,
  ];
  let dependentDialects = ["::reprise::rt::RTDialect"];
}

def VerifyPlan : Pass<"reprise-verify-plan", "::mlir::ModuleOp"> {
  let summary = "Prove that no two live buffers share a byte";
  let description = [{
    Runs over the schedule in buffer form and checks, from the bytes alone: every
    read finds the value that the last write to these bytes left, and no launch
    writes bytes that a later reader of another value still needs; every buffer lies within the
    arena; the arena is no larger than the last byte in use; categories add up to it. Shares no
    code with the planner.

    ```mlir
    module attributes {rt.plan = {arena = 128 : i64, categories = {activations = 128 : i64}}} {
      func.func private @k(tensor<16xf32>) -> tensor<16xf32> attributes {rt.kernel}
      func.func @step() {
        %a = rt.buffer at 0 {rt.role = "loss_sum"} : memref<16xf32>
        %b = rt.buffer at 64 : memref<16xf32>
        rt.launch @k(%a) to (%b) : (memref<16xf32>, memref<16xf32>) -> ()
        return
      }
    }
    ```
  }];
}

#endif // REPRISE_MEMORY_PASSES
