//===- Passes.td - Passes that try the phases behind them --*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_PIPELINES_PASSES
#define REPRISE_PIPELINES_PASSES

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
           "Plan with reprise-remat-annotate-free behind it">];
  let dependentDialects = ["::reprise::remat::RematDialect"];
}

#endif // REPRISE_PIPELINES_PASSES
