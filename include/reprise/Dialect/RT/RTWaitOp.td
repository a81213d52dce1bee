//===- RTWaitOp.td - The end of what ranks have begun ------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_RT_RTWAITOP
#define REPRISE_DIALECT_RT_RTWAITOP

def RT_WaitOp : RT_Op<"wait", [
    AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Waits for what ranks have begun to do together";
  let description = [{
    An op in which ranks meet, with `rt.begun = number`, only begins where it stands: what it makes is
    not there before the wait of that number. Up to then nothing may write what it reads, nor touch
    what it makes. The wait has what is made in the same bytes, and keeps what the op reads and does not
    write over. What is begun runs one after another, so the workspaces of those that are under way at
    one time may be in the same bytes.

    With `rt.once` on both they run in the last micro-batch of a step alone: it is the gradients of all
    that are summed.

    * (C1) All operands are tensors and there are results; or all are buffers and there are outputs.
    * (C2) Results, or outputs, have the types of `made`, of which there is at least one.
    * (C3) `number` is at least 0.

    Examples:

    ```mlir
    %going = rt.collective all_reduce(%dw) over "dp" ranks 2 {rt.begun = 0 : i64}
      : (tensor<24x96xf32>) -> tensor<24x96xf32>
    %sum = rt.wait 0 for(%going) : (tensor<24x96xf32>) -> tensor<24x96xf32>
    rt.wait 1 for(%b0) keeping(%b1) to(%b2) : (memref<96xf32>, memref<48xf32>, memref<96xf32>) -> ()
    ```
  }];
  let arguments = (ins I64Attr:$number, Variadic<RT_Buffer>:$made, Variadic<RT_Buffer>:$kept,
                       Variadic<AnyStaticShapeMemRef>:$outputs,
                       Optional<AnyStaticShapeMemRef>:$workspace);
  let results = (outs Variadic<AnyStaticShapeTensor>:$results);
  let assemblyFormat = [{
    $number `for` `(` $made `)` (`keeping` `(` $kept^ `)`)? (`to` `(` $outputs^ `)`)?
    (`workspace` `(` $workspace^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // REPRISE_DIALECT_RT_RTWAITOP
