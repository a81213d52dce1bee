//===- KernelBody.td - How an op becomes loops -------------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_KERNELS_KERNELBODY
#define REPRISE_KERNELS_KERNELBODY

include "mlir/IR/OpBase.td"

// An op has one of these; they are attached to the ops of nn in lib/Kernels, since
// nn knows no loops.

def ElementBody : OpInterface<"ElementBody"> {
  let cppNamespace = "::reprise::kernels";
  let description = [{
    An op whose results' element i depends on element i of the operands that have
    the results' shape, and on scalars, alone. Such ops share a loop.
  }];
  let methods = [
    InterfaceMethod<[{
      The numbers that it makes of those of its operands. `before` is what
      `buildBefore` built; numbers of operands that are no elements are null.
    }], "::llvm::SmallVector<::reprise::kernels::Scalar>", "buildElement",
    (ins "::mlir::ImplicitLocOpBuilder &":$builder,
         "::llvm::ArrayRef<::reprise::kernels::Scalar>":$operands,
         "::llvm::ArrayRef<::mlir::Value>":$before)>,
    InterfaceMethod<[{
      Builds the values that it needs before the loop.
    }], "::llvm::SmallVector<::mlir::Value>", "buildBefore",
    (ins "::mlir::ImplicitLocOpBuilder &":$builder), [{}], [{ return {}; }]>,
    InterfaceMethod<[{
      Whether the loop reads numbers of `operand`.
    }], "bool", "readsNumbersOf", (ins "::mlir::OpOperand &":$operand), [{}],
    [{ return true; }]>,
  ];
}

def SumBody : OpInterface<"SumBody"> {
  let cppNamespace = "::reprise::kernels";
  let description = [{
    An op that makes its one result by adding up, so that an nn.accumulate of it
    can start from the old sum.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds its loops, and returns its result, in f32; with `sum`, added to it.
    }], "::mlir::Value", "buildSum",
    (ins "::reprise::kernels::LoopBuilder &":$loops, "::mlir::Value":$sum)>,
    InterfaceMethod<[{
      Whether it sums the columns of its first operand, or of what it makes of
      it row by row.
    }], "bool", "sumsColumns">,
  ];
}

def LoopBody : OpInterface<"LoopBody"> {
  let cppNamespace = "::reprise::kernels";
  let description = [{
    Any other op: loops of its own.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds its loops, and returns its results, flattened.
    }], "::llvm::SmallVector<::mlir::Value>", "buildLoops",
    (ins "::reprise::kernels::LoopBuilder &":$loops)>,
  ];
}

#endif // REPRISE_KERNELS_KERNELBODY
