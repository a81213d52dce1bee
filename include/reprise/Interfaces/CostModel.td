//===- CostModel.td - What an op costs ---------------------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_INTERFACES_COSTMODEL
#define REPRISE_INTERFACES_COSTMODEL

include "mlir/IR/OpBase.td"

def CostModel : OpInterface<"CostModel"> {
  let cppNamespace = "::reprise";
  let description = [{
    What running an op costs, from its types alone: the price of a replay.
  }];
  let methods = [
    InterfaceMethod<[{
      Floating-point operations: a multiply and an add count two, any other
      arithmetic or transcendental function counts one.
    }], "int64_t", "getFlops">,
    InterfaceMethod<[{
      Bytes read and written when the op runs alone: all operands and results.
    }], "int64_t", "getBytes", (ins), [{}], [{
      return ::reprise::getOperandAndResultBytes($_op);
    }]>,
    InterfaceMethod<[{
      Whether the op multiplies matrices, which a library can run.
    }], "bool", "isGemm", (ins), [{}], [{ return false; }]>,
  ];
}

#endif // REPRISE_INTERFACES_COSTMODEL
