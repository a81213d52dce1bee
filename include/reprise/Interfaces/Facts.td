//===- Facts.td - What ops say about themselves ------------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_INTERFACES_FACTS
#define REPRISE_INTERFACES_FACTS

include "mlir/IR/OpBase.td"

// What a pass wants to know of an op, so that it need not know the op.

def NamedResults : OpInterface<"NamedResults"> {
  let cppNamespace = "::reprise";
  let description = [{
    An op whose results after the first have names of their own.
  }];
  let methods = [
    InterfaceMethod<[{
      What follows the name of the first result to name result `number`, 1 or
      more: ".rstd".
    }], "::llvm::StringRef", "getResultSuffix", (ins "unsigned":$number)>,
  ];
}

def RecomputedInGradient : OpInterface<"RecomputedInGradient"> {
  let cppNamespace = "::reprise";
  let description = [{
    An op with one result, which the loop of its gradient can make again on its
    way: it has all operands of the op at hand.
  }];
  let methods = [
    InterfaceMethod<[{
      Whether `gradient` is this op's, over the same operands.
    }], "bool", "isRecomputedIn", (ins "::mlir::Operation *":$gradient)>,
  ];
}

def GemmGradient : OpInterface<"GemmGradient"> {
  let cppNamespace = "::reprise";
  let description = [{
    A GEMM that makes a gradient of a linear layer.
  }];
  let methods = [
    InterfaceMethod<[{
      Whether it is that of the weight, which only the optimizer reads, and not
      that of the input, which the backward pass goes on from.
    }], "bool", "isOfWeight">,
    InterfaceMethod<[{
      Whether it is a gradient of the linear layer `linear`, made of `cotangent`,
      the gradient of the layer's result.
    }], "bool", "isGradientOf",
    (ins "::mlir::Operation *":$linear, "::mlir::Value":$cotangent)>,
  ];
}

def BiasGradient : OpInterface<"BiasGradient"> {
  let cppNamespace = "::reprise";
  let description = [{
    An op that makes the gradient of a bias: the sum of all rows of its operand.
  }];
  let methods = [
    InterfaceMethod<[{ The rows. }], "::mlir::Value", "getRows">,
  ];
}

def GradientMark : OpInterface<"GradientMark"> {
  let cppNamespace = "::reprise";
  let description = [{
    An op that is there for its gradient alone: its result is its operand.
  }];
  let methods = [
    InterfaceMethod<[{ That operand. }], "::mlir::Value", "getMarked">,
  ];
}

def InferenceForm : OpInterface<"InferenceForm"> {
  let cppNamespace = "::reprise";
  let description = [{
    An op that does less where nothing is trained.
  }];
  let methods = [
    InterfaceMethod<[{
      The operand that is its result then; null if it still does something.
    }], "::mlir::Value", "getPassedOn", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<[{ Makes it do that. }], "void", "setInference", (ins),
    [{}], [{ (void)$_op; }]>,
  ];
}

def TextRows : OpInterface<"TextRows"> {
  let cppNamespace = "::reprise";
  let description = [{
    An op that puts rows of all texts of a batch into an order of its own.
  }];
  let methods = [
    InterfaceMethod<[{
      The results that have an element for each of these rows; behind them, the
      first may have more.
    }], "::llvm::SmallVector<::mlir::Value>", "getTextResults">,
    InterfaceMethod<[{ How many rows all texts have. }], "int64_t",
    "getNumTextRows">,
    InterfaceMethod<[{
      Makes it take all rows, where the texts become one and rows are few.
    }], "void", "setOneText">,
  ];
}

def RunningSum : OpInterface<"RunningSum"> {
  let cppNamespace = "::reprise";
  let description = [{
    An op whose result is a sum with one more term, and may take its place.
  }];
  let methods = [
    InterfaceMethod<[{ The sum so far. }], "::mlir::Value", "getSum">,
    InterfaceMethod<[{ What is added to it. }], "::mlir::Value", "getTerm">,
    InterfaceMethod<[{ Makes it add to `sum`. }], "void", "setSum",
    (ins "::mlir::Value":$sum)>,
  ];
}

def SumCarrier : OpInterface<"SumCarrier"> {
  let cppNamespace = "::reprise";
  let description = [{
    An op whose results go on from sums that operands are.
  }];
  let methods = [
    InterfaceMethod<[{
      The operand that result `number` goes on from.
    }], "::mlir::Value", "getSumBefore", (ins "unsigned":$number)>,
  ];
}

def ParameterUpdate : OpInterface<"ParameterUpdate"> {
  let cppNamespace = "::reprise";
  let description = [{
    What the optimizer does with one parameter, once a step.
  }];
  let methods = [
    InterfaceMethod<[{ The parameter before. }], "::mlir::Value", "getParameter">,
    InterfaceMethod<[{ Its gradient, or the share of it. }], "::mlir::Value",
    "getGradient">,
  ];
}

def InPlaceUpdate : OpInterface<"InPlaceUpdate"> {
  let cppNamespace = "::reprise";
  let description = [{
    An op that makes the next states of some of its operands.
  }];
  let methods = [
    InterfaceMethod<[{
      Operands, each with the result that may take its place, when nothing else
      reads it; in an order that the op chooses.
    }], "::llvm::SmallVector<std::pair<::mlir::Value, ::mlir::Value>>",
    "getUpdates">,
    InterfaceMethod<[{
      What a launch of many such ops is called, if it is launched together with
      others.
    }], "::llvm::StringRef", "getJointName", (ins), [{}], [{ return {}; }]>,
  ];
}

def RowChunks : OpInterface<"RowChunks"> {
  let cppNamespace = "::reprise";
  let description = [{
    An op that works on some of its rows at a time, and may be told on how many.
  }];
  let methods = [
    InterfaceMethod<[{ The rows of a chunk. }], "int64_t", "getChunkRows">,
    InterfaceMethod<[{ Makes chunks have `rows` rows. }], "void",
    "setChunkRows", (ins "int64_t":$rows)>,
    InterfaceMethod<[{ All its rows. }], "int64_t", "getAllRows">,
    InterfaceMethod<[{
      What the rows of a chunk are a multiple of.
    }], "int64_t", "getRowMultiple">,
  ];
}

def LogitsLoss : OpInterface<"LogitsLoss"> {
  let cppNamespace = "::reprise";
  let description = [{
    An op that makes losses of logits, or of a part of their columns what losses
    are made of.
  }];
  let methods = [
    InterfaceMethod<[{ The logits. }],
    "::mlir::TypedValue<::mlir::RankedTensorType>", "getLogits">,
    InterfaceMethod<[{ The target of each row. }], "::mlir::Value",
    "getTargets">,
    InterfaceMethod<[{
      How many columns count, or null if all do.
    }], "::mlir::IntegerAttr", "getClassesAttr">,
    InterfaceMethod<[{
      Whether `op` makes the gradient of the logits from these losses.
    }], "bool", "isGradient", (ins "::mlir::Operation *":$op)>,
  ];
}

def ClassRows : OpInterface<"ClassRows"> {
  let cppNamespace = "::reprise";
  let description = [{
    An op that may read or make what has a row for each class, `[V, K]`, or a
    column for each, `[..., V]`, and can do the same with further ones, which are
    padding.
  }];
  let methods = [
    InterfaceMethod<[{
      Tells `found` which of its values have rows or columns of classes, since
      its operand or result `value` has. False if further ones would change what
      it makes of the others.
    }], "bool", "followClasses",
    (ins "::mlir::Value":$value, "bool":$areColumns,
         "::llvm::function_ref<void(::mlir::Value, bool)>":$found)>,
    InterfaceMethod<[{
      The table of all classes that losses are made with, if it makes losses.
    }], "::mlir::Value", "getClassTable", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<[{
      Says that `classes` rows or columns count, where it has to know and has not
      been told.
    }], "void", "setNumClasses", (ins "int64_t":$classes), [{}],
    [{ (void)classes; }]>,
  ];
}

def ResidualPart : OpInterface<"ResidualPart"> {
  let cppNamespace = "::reprise";
  let description = [{
    An op that frameworks run in the one kernel that adds to the residual
    stream: the sum, or what may stand in front of it.
  }];
  let methods = [
    InterfaceMethod<[{ Whether it is the sum. }], "bool", "isResidualSum">,
  ];
}

def SharedModelExchange : OpInterface<"SharedModelExchange"> {
  let cppNamespace = "::reprise";
  let description = [{
    An exchange between ranks that share layers.
  }];
  let methods = [
    InterfaceMethod<[{
      Whether Megatron runs it beside GEMMs of the backward pass, where it is
      in the backward pass; or one like it, where it is in the forward pass.
    }], "bool", "runsBesideGemms", (ins "bool":$isForward)>,
  ];
}

def ConstantNumber : OpInterface<"ConstantNumber"> {
  let cppNamespace = "::reprise";
  let description = [{
    An op that makes the same number in every element.
  }];
  let methods = [
    InterfaceMethod<[{ The number. }], "::mlir::FloatAttr", "getNumber">,
  ];
}

def Rounding : OpInterface<"Rounding"> {
  let cppNamespace = "::reprise";
  let description = [{
    An op that rounds its operand to another element type, and does nothing else.
  }];
  let methods = [
    InterfaceMethod<[{ That operand. }], "::mlir::Value", "getRounded">,
  ];
}

def Lookup : OpInterface<"Lookup"> {
  let cppNamespace = "::reprise";
  let description = [{
    An op that takes rows of a table. From a table of f32 it makes rows of bf16 as
    from one that is rounded.
  }];
  let methods = [
    InterfaceMethod<[{ The number of the operand that is the table. }],
    "unsigned", "getTableNumber">,
  ];
}

def OwnShare : OpInterface<"OwnShare"> {
  let cppNamespace = "::reprise";
  let description = [{
    An op that takes the share that a rank has of a value.
  }];
  let methods = [
    InterfaceMethod<[{ That value. }], "::mlir::Value", "getWhole">,
  ];
}

def LayerPart : OpInterface<"LayerPart"> {
  let cppNamespace = "::reprise";
  let description = [{
    An op that tells what a layer is like: its widths, heads and experts.
  }];
  let methods = [
    InterfaceMethod<[{
      Adds to `shape` what the op, of its layer, tells of it.
    }], "void", "describeLayer", (ins "::reprise::LayerShape &":$shape)>,
  ];
}

#endif // REPRISE_INTERFACES_FACTS
