//===- RTTransferOps.td - What ranks pass to each other ----*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// RTOps.td, which defines what ops of rt are, ends with this file.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_RT_RTTRANSFEROPS
#define REPRISE_DIALECT_RT_RTTRANSFEROPS

class RT_TransferOp<string mnemonic> : RT_Op<mnemonic, [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  dag transfer = (ins StrAttr:$axis, I64Attr:$peer, I64Attr:$lane, I64Attr:$places);
  let hasVerifier = 1;
}

def RT_SendOp : RT_TransferOp<"send"> {
  let summary = "Passes a value on to another rank along an axis";
  let description = [{
    As `nn.send`. The value may be written over when the op is done.

    * (C1) `peer` and `lane` are at least 0, `places` at least 1.

    Examples:

    ```mlir
    rt.send %x to 1 over "pp" lane 0 places 2 : tensor<2x8x24xf32>
    rt.send %b to 1 over "pp" lane 0 places 2 : memref<2x8x24xf32>
    ```
  }];
  let arguments = !con((ins RT_Buffer:$value), transfer);
  let assemblyFormat = [{
    $value `to` $peer `over` $axis `lane` $lane `places` $places attr-dict `:` type($value)
  }];
}

def RT_ReceiveOp : RT_TransferOp<"receive"> {
  let summary = "Waits for a value of another rank along an axis";
  let description = [{
    As `nn.receive`.

    * (C1) `peer` and `lane` are at least 0, `places` at least 1.
    * (C2) There is either a result or an output.

    Examples:

    ```mlir
    %x = rt.receive from 0 over "pp" lane 0 places 2 : () -> tensor<2x8x24xf32>
    rt.receive to(%b) from 0 over "pp" lane 0 places 2 : (memref<2x8x24xf32>) -> ()
    ```
  }];
  let arguments = !con((ins Optional<AnyStaticShapeMemRef>:$output), transfer);
  let results = (outs Optional<AnyStaticShapeTensor>:$result);
  let assemblyFormat = [{
    (`to` `(` $output^ `)`)? `from` $peer `over` $axis `lane` $lane `places` $places attr-dict
    `:` functional-type(operands, results)
  }];
}

#endif // REPRISE_DIALECT_RT_RTTRANSFEROPS
