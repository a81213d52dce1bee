//===- RoundBiases.cpp - Biases for a library's products --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Kernels/Passes.h"

namespace reprise::kernels {
#define GEN_PASS_DEF_ROUNDBIASES
#include "reprise/Kernels/Passes.h.inc"
} // namespace reprise::kernels

using namespace mlir;
using namespace reprise;

namespace {
struct RoundBiases : public kernels::impl::RoundBiasesBase<RoundBiases> {
  using RoundBiasesBase::RoundBiasesBase;
  void runOnOperation() override;

private:
  void roundIn(func::FuncOp schedule);
  func::FuncOp getKernel(RankedTensorType type);

  DenseMap<Type, func::FuncOp> kernels;
};
} // namespace

/// The kernel that rounds a bias of this type.
func::FuncOp RoundBiases::getKernel(RankedTensorType type) {
  func::FuncOp &kernel = kernels[type];
  if (kernel)
    return kernel;
  ModuleOp module = getOperation();
  auto builder = OpBuilder::atBlockEnd(module.getBody());
  RankedTensorType rounded = type.clone(builder.getBF16Type());
  std::string name = "round_bias_" + std::to_string(type.getNumElements());
  kernel = func::FuncOp::create(builder, module.getLoc(), name,
                                builder.getFunctionType({type}, {rounded}));
  kernel.setPrivate();
  kernel->setAttr(rt::kKernelAttr, builder.getUnitAttr());
  SymbolTable(module).insert(kernel);
  builder.setInsertionPointToStart(kernel.addEntryBlock());
  Value result = nn::CastOp::create(builder, kernel.getLoc(), rounded,
                                    kernel.getArgument(0));
  func::ReturnOp::create(builder, kernel.getLoc(), result);
  return kernel;
}

/// A bias is rounded where it is first needed, and kept.
void RoundBiases::roundIn(func::FuncOp schedule) {
  DenseMap<Value, Value> rounded;
  for (auto gemm :
       llvm::make_early_inc_range(schedule.getBody().getOps<rt::GemmOp>())) {
    Value bias = gemm.getBias();
    if (!bias || !gemm.getCType().getElementType().isBF16() ||
        !cast<ShapedType>(bias.getType()).getElementType().isF32())
      continue;
    Value &copy = rounded[bias];
    if (!copy) {
      func::FuncOp kernel = getKernel(cast<RankedTensorType>(bias.getType()));
      OpBuilder builder(gemm);
      auto launch = rt::LaunchOp::create(
          builder, gemm.getLoc(), kernel.getResultTypes(), kernel.getName(),
          ValueRange(bias), /*outputs=*/ValueRange(),
          /*ids=*/DenseI64ArrayAttr(), /*flops=*/0);
      if (auto name = gemm->getAttrOfType<StringAttr>(rt::kNameAttr))
        launch->setAttr(
            rt::kNameAttr,
            builder.getStringAttr(name.getValue().split('@').first + ".bias"));
      copy = launch.getResult(0);
    }
    gemm.getBiasMutable().assign(copy);
  }
}

void RoundBiases::runOnOperation() {
  kernels.clear();
  if (!getOperation()->hasAttr(rt::kGemmWorkspaceAttr))
    return markAllAnalysesPreserved();
  for (auto function :
       llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
    if (!function->hasAttr(rt::kKernelAttr) && function.getBody().hasOneBlock())
      roundIn(function);
}
