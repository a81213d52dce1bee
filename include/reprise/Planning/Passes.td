//===- Passes.td - Passes that try the phases behind them --*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_PLANNING_PASSES
#define REPRISE_PLANNING_PASSES

include "mlir/Pass/PassBase.td"

def KeepIdleSegment : Pass<"reprise-keep-idle-segment", "::mlir::ModuleOp"> {
  let summary = "Do not recompute the segment before the loss where that frees nothing";
  let description = [{
    The backward phase of the last layer is the first to run, so the values of
    its segment are there again at once: dropping them frees only what head and
    loss take, or nothing. The pass plans the memory of the program with that
    segment as it is decided, and with all of it kept; if the program needs no
    more bytes then, the segment is kept: its decisions become `#remat.save`,
    with the number of the segment.

    With `leave-open` nothing is planned: where the segment is of so few layers
    that a search for a plan can find it, its decisions are taken away.

    Does nothing where the last layer is not recomputed, and without `@step`.

    Needs: decisions that are not applied yet. Keeps: all results.

    ```mlir
    %u = nn.gelu %x tanh {remat.decision = #remat.recompute<segment = 3, label = "full">} : tensor<8xf32>
    // ==> {remat.decision = #remat.save<reason = "in the segment before the loss, whose replay frees nothing at the peak", segment = 3>}
    ```

    Remarks, category `Remat`: `KeepSegment` or `ReplaySegment`, with `segment`, and
    `bytes`, by which the program would be larger without the replay.
  }];
  let options = [
    Option<"isFree", "free", "bool", /*default=*/"true",
           "Plan with reprise-remat-annotate-free behind it">,
    Option<"leaveOpen", "leave-open", "bool", /*default=*/"false",
           "Take the decisions of the segment away, for a budget to decide">];
  let dependentDialects = ["::reprise::remat::RematDialect"];
  let constructor = "::reprise::planning::createKeepIdleSegment({})";
}

def RematSolve : Pass<"reprise-remat-solve", "::mlir::ModuleOp"> {
  let summary = "Decide what to recompute to meet a budget of bytes";
  let description = [{
    Of all plans whose memory, as it will be planned, is within the budget,
    takes one whose replays take least time, and decides so: `#remat.recompute`
    with label `budget`, or `#remat.save`. Decisions that are there already are
    constraints. What `reprise-remat-annotate-free` drops is left to it.

    `memory-budget` is for all that the program allocates, `activation-budget`
    for what lives within a step. If no plan fits, an error says what the
    smallest needs, and what is alive there.

    Needs: `@step`, decisions not applied yet. Keeps: all results.

    ```mlir
    %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "u">} : tensor<8xf32>
    // ==> {remat.decision = #remat.recompute<segment = 3, label = "budget">}
    ```

    Remarks, category `Remat`: `Solved`, with `budget`, `planned` and `foreseen` (bytes
    of the memory plan, and as the solver saw them before), `nanoseconds` of a
    step's replays, and `bound`, less than which no plan takes.
  }];
  let options = [
    Option<"memoryBudget", "memory-budget", "int64_t", /*default=*/"0",
           "Bytes of the whole device; left out: no such budget">,
    Option<"activationBudget", "activation-budget", "int64_t", /*default=*/"0",
           "Bytes of what lives within a step; left out: no such budget">,
    Option<"machine", "machine", "std::string", /*default=*/"\"cpu\"",
           "Whose costs count: cpu, a100, h100, h200 or b200">,
    Option<"isFree", "free", "bool", /*default=*/"true",
           "Plan with reprise-remat-annotate-free behind it">];
  let dependentDialects = ["::reprise::remat::RematDialect"];
  let constructor = "::reprise::planning::createRematSolve({})";
}

def WriteStep : Pass<"reprise-write-step", "::mlir::ModuleOp"> {
  let summary = "Write the step as a problem for the solvers of plans";
  let description = [{
    Writes launches and values of a step that keeps everything, with bytes and
    seconds, as a `.step` file: the problem that `reprise-remat-solve` solves for
    a budget of activations. Decisions that are there become rules of its values.
    `reprise-memplan --solve` reads it.

    Needs: `@step`, decisions not applied yet. Keeps: the module.

    ```mlir
    %u = nn.gelu %x tanh {nn.scope = #nn.scope<layer = 3, module = "mlp", value = "u">} : tensor<8xf32>
    // writes: forward layer3.mlp.u layer=3 seconds=1.2e-08 reads=argument writes=layer3.mlp.u
    ```
  }];
  let options = [
    Option<"file", "file", "std::string", /*default=*/"\"-\"",
           "Where to; - is standard output">,
    Option<"machine", "machine", "std::string", /*default=*/"\"cpu\"",
           "Whose costs count: cpu, a100, h100, h200 or b200">,
    Option<"gradients", "gradients", "bool", /*default=*/"false",
           "Count gradients that the step writes, as a budget of memory does">,
    Option<"isFree", "free", "bool", /*default=*/"true",
           "Plan with reprise-remat-annotate-free behind it">];
  let dependentDialects = ["::reprise::remat::RematDialect"];
  let constructor = "::reprise::planning::createWriteStep({})";
}

#endif // REPRISE_PLANNING_PASSES
