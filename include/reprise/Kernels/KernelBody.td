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

// These are attached to the ops of nn in lib/Kernels, since nn knows neither loops
// nor schedules. An op has one of the first three if it becomes loops, and one of
// the last two if it becomes something else.

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
    InterfaceMethod<[{
      Whether it can write its result over old bytes, and not only add to a sum
      that is there.
    }], "bool", "canWrite">,
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
    InterfaceMethod<[{
      Whether each element of operands of a result's shape has been read when
      that element of the result is written. (Pointwise and rowwise ops need not
      say so.)
    }], "bool", "readsBeforeWriting", (ins), [{}], [{ return false; }]>,
  ];
}

def GradientBeside : OpInterface<"GradientBeside"> {
  let cppNamespace = "::reprise::kernels";
  let description = [{
    A loss whose gradient, if it comes right behind, is made in the same loops.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the loops of both, and returns its results and behind them those of
      `gradient`, flattened.
    }], "::llvm::SmallVector<::mlir::Value>", "buildWithGradient",
    (ins "::reprise::kernels::LoopBuilder &":$loops,
         "::mlir::Operation *":$gradient)>,
  ];
}

def GemmBody : OpInterface<"GemmBody"> {
  let cppNamespace = "::reprise::kernels";
  let description = [{
    A GEMM, which becomes an rt.gemm.
  }];
  let methods = [
    InterfaceMethod<[{ The GEMM, as rt.gemm has it. }],
    "::reprise::kernels::Gemm", "describe">,
    InterfaceMethod<[{
      The heads of keys that heads of queries share in it, if any do.
    }], "::std::optional<::reprise::kernels::SharedHeads>", "getSharedHeads",
    (ins), [{}], [{ return ::std::nullopt; }]>,
    InterfaceMethod<[{
      Whether it can start from an old sum: nothing has to come behind the sum.
    }], "bool", "canStartFromSum", (ins), [{}], [{ return true; }]>,
    InterfaceMethod<[{
      The operand whose rows a library adds up beside it, or null.
    }], "::mlir::Value", "getSummedRows", (ins), [{}], [{ return {}; }]>,
  ];
}

def ScheduleBody : OpInterface<"ScheduleBody"> {
  let cppNamespace = "::reprise::kernels";
  let description = [{
    An op that becomes several launches, or an exchange of ranks.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds what it becomes, and lets its readers read that.
    }], "void", "buildSchedule",
    (ins "::reprise::kernels::ScheduleBuilder &":$schedule)>,
    InterfaceMethod<[{
      Whether it reads sums of the squares of its operands, which a GEMM may
      make beside these.
    }], "bool", "readsSquares", (ins), [{}], [{ return false; }]>,
  ];
}

#endif // REPRISE_KERNELS_KERNELBODY
