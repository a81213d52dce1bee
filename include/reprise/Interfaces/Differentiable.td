//===- Differentiable.td - Ops that know gradients ---------*- tablegen -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_INTERFACES_DIFFERENTIABLE
#define REPRISE_INTERFACES_DIFFERENTIABLE

include "mlir/IR/OpBase.td"

def Differentiable : OpInterface<"Differentiable"> {
  let cppNamespace = "::reprise";
  let description = [{
    An op that builds its own vector-Jacobian product.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the ops that turn the cotangents of the results into those of the
      operands, at the builder's insertion point.

      `cotangents` has an entry for each result, null where nothing
      differentiable reads the result. `needed` has an entry for each operand;
      `gradients[i]` is set to a value of the type of operand `i` for every `i`
      with `needed[i]`, and the builder makes no op for the others. Fails with a
      diagnostic where the op has no derivative with respect to an operand.
    }], "::llvm::LogicalResult", "buildVjp",
    (ins "::mlir::OpBuilder &":$builder,
         "::llvm::ArrayRef<::mlir::Value>":$cotangents,
         "::llvm::ArrayRef<bool>":$needed,
         "::llvm::MutableArrayRef<::mlir::Value>":$gradients)>,
  ];
}

#endif // REPRISE_INTERFACES_DIFFERENTIABLE
