//===- Partitionable.td - Ops that ranks can share ---------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_INTERFACES_PARTITIONABLE
#define REPRISE_INTERFACES_PARTITIONABLE

include "mlir/IR/OpBase.td"

def Partitionable : OpInterface<"Partitionable"> {
  let cppNamespace = "::reprise";
  let description = [{
    How ranks that share a model may share an op: each has some columns or heads
    of values, some rows, or all. An op without it is done whole by each rank.
  }];
  let methods = [
    InterfaceMethod<[{
      The way, as far as it depends on the op.
    }], "::reprise::PartWay", "getPartWay">,
    InterfaceMethod<[{
      How many of the first operands the first result is cut as, in columns or
      heads: 0 if the op mixes columns.
    }], "unsigned", "getNumColumnOperands", (ins), [{}], [{ return 0; }]>,
    InterfaceMethod<[{
      The dimension of the first result that is cut where that of operand 0 is
      `dim`.
    }], "int64_t", "getResultDim", (ins "int64_t":$dim), [{}],
    [{ return dim; }]>,
    InterfaceMethod<[{
      The dimension of operand `number` that is cut where that of the first
      result is `dim`.
    }], "int64_t", "getOperandDim", (ins "unsigned":$number, "int64_t":$dim),
    [{}], [{ return dim; }]>,
    InterfaceMethod<[{
      Groups of columns that have to stay together: heads of queries, or of what
      a norm is over.
    }], "int64_t", "getNumHeads", (ins), [{}], [{ return 1; }]>,
    InterfaceMethod<[{
      The same of keys and values.
    }], "int64_t", "getNumKeyHeads", (ins), [{}], [{ return 1; }]>,
    InterfaceMethod<[{
      The operands that are in heads of keys and values.
    }], "::llvm::SmallVector<unsigned>", "getKeyHeadOperands", (ins), [{}],
    [{ return {}; }]>,
    InterfaceMethod<[{
      Whether operand 0 are queries, and operand 1 keys.
    }], "bool", "scoresHeads", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<[{
      Whether the result has the heads of operand 0, each made of that head.
    }], "bool", "passesHeads", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<[{
      Of what draws at random for elements: the dimension of what is drawn that
      is cut where that of the first result is `dim`.
    }], "std::optional<int64_t>", "getDrawnDim", (ins "int64_t":$dim), [{}],
    [{ return std::nullopt; }]>,
    InterfaceMethod<[{
      How many of the first results are cut as those operands are.
    }], "unsigned", "getNumColumnResults", (ins), [{}], [{ return 1; }]>,
    InterfaceMethod<[{
      The operands that are whole where the results are cut: each rank reads all of
      them for its own part.
    }], "::llvm::SmallVector<unsigned>", "getSharedOperands", (ins), [{}],
    [{ return {}; }]>,
    InterfaceMethod<[{
      Of a linear: the dimension of operand 1, its weight, along which results are.
    }], "int64_t", "getResultsDim", (ins), [{}], [{ return 0; }]>,
    InterfaceMethod<[{
      The same of terms, of which a result is the sum.
    }], "int64_t", "getTermsDim", (ins), [{}], [{ return 1; }]>,
    InterfaceMethod<[{
      Of a linear: its bias, or -1.
    }], "int64_t", "getBiasOperand", (ins), [{}], [{ return -1; }]>,
    InterfaceMethod<[{
      Of a linear with a weight for each expert: the operand that says which rows are
      whose, and behind it, where rows are tokens, the two that say which.
    }], "::llvm::SmallVector<unsigned>", "getExpertOperands", (ins), [{}],
    [{ return {}; }]>,
    InterfaceMethod<[{
      Of what is done with tokens, or with rows of these: gives the results the types
      that they have for the tokens and rows that the operands have.
    }], "void", "fitTokens", (ins), [{}], [{ return; }]>,
    InterfaceMethod<[{
      Whether the result is the sum of the operands, element by element.
    }], "bool", "addsOperands", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<[{
      Gives the results after the first the types of parts, when the operands
      and the first result have those of one of `ranks` ranks.
    }], "void", "fitResults", (ins "int64_t":$ranks), [{}], [{ (void)ranks; }]>,
  ];
}

#endif // REPRISE_INTERFACES_PARTITIONABLE
