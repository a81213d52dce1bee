//===- VerifyKernels.cpp - What forming kernels leaves behind ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Dialect/NN/NNDialect.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Kernels/Passes.h"

namespace reprise::kernels {
#define GEN_PASS_DEF_VERIFYKERNELS
#include "reprise/Kernels/Passes.h.inc"
} // namespace reprise::kernels

using namespace mlir;
using namespace reprise;

namespace {
struct VerifyKernels : public kernels::impl::VerifyKernelsBase<VerifyKernels> {
  using VerifyKernelsBase::VerifyKernelsBase;

  void runOnOperation() override {
    bool isGood = true;
    for (auto function : getOperation().getOps<func::FuncOp>())
      isGood &= succeeded(function->hasAttr(rt::kKernelAttr)
                              ? verifyKernel(function)
                              : verifySchedule(function));
    if (!isGood)
      signalPassFailure();
  }

  LogicalResult verifySchedule(func::FuncOp function);
  LogicalResult verifyKernel(func::FuncOp kernel);
};
} // namespace

LogicalResult VerifyKernels::verifySchedule(func::FuncOp function) {
  WalkResult result = function.walk([&](Operation *op) -> WalkResult {
    if (!isa_and_present<nn::NNDialect, remat::RematDialect>(op->getDialect()))
      return WalkResult::advance();
    return op->emitOpError("needs to be in a kernel by now, but is in the "
                           "schedule @")
           << function.getName();
  });
  return failure(result.wasInterrupted());
}

LogicalResult VerifyKernels::verifyKernel(func::FuncOp kernel) {
  DenseMap<int64_t, unsigned> inPlace;
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index)
    for (StringRef name : {rt::kInPlaceAttr, rt::kMayAliasAttr}) {
      auto shared = kernel.getArgAttrOfType<IntegerAttr>(index, name);
      if (!shared)
        continue;
      int64_t number = shared.getInt();
      if (number < 0 || number >= kernel.getNumResults())
        return kernel.emitError("needs '")
               << name << "' of argument #" << index << " to be one of "
               << kernel.getNumResults() << " results, but got " << number;
      Type argument = kernel.getArgumentTypes()[index];
      Type result = kernel.getResultTypes()[number];
      if (argument != result)
        return kernel.emitError("needs '")
               << name << "' of argument #" << index << ", a " << argument
               << ", to be a result of that type, but #" << number << " is "
               << result;
      if (name != rt::kInPlaceAttr)
        continue;
      auto [other, isNew] = inPlace.try_emplace(number, index);
      if (!isNew)
        return kernel.emitError("needs one argument in place of result #")
               << number << ", but got #" << other->second << " and #" << index;
    }
  if (!loops)
    return success();
  WalkResult result = kernel.walk([&](Operation *op) -> WalkResult {
    if (!isa_and_present<nn::NNDialect>(op->getDialect()))
      return WalkResult::advance();
    return op->emitOpError("needs to be loops by now, but is in the kernel @")
           << kernel.getName();
  });
  return failure(result.wasInterrupted());
}
