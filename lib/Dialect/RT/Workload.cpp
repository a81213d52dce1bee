//===- Workload.cpp - What a launch costs ---------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Dialect/RT/Workload.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "reprise/Interfaces/CostModel.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace reprise;

static bool isBF16(Value value) {
  return cast<ShapedType>(value.getType()).getElementType().isBF16();
}

/// Whether `launch` is of a kernel with attention in it, of any dialect.
static bool isAttention(rt::LaunchOp launch, SymbolTable &symbols) {
  auto kernel = symbols.lookup<FunctionOpInterface>(launch.getKernel());
  return kernel && !kernel.isExternal() &&
         llvm::any_of(kernel.getFunctionBody().front(), [](Operation &op) {
           return op.getName().stripDialect().starts_with("attention");
         });
}

/// "gemm 256x64x64 f32", with " x8" for a batch of 8.
static std::string getKey(rt::GemmOp gemm) {
  std::string key;
  llvm::raw_string_ostream os(key);
  os << "gemm " << gemm.getM() << "x" << gemm.getN() << "x" << gemm.getK()
     << (isBF16(gemm.getA()) ? " bf16" : " f32");
  if (int64_t count = gemm.getBatchCount(); count != 1)
    os << " x" << count;
  return key;
}

Workload rt::getWorkload(Operation *op, SymbolTable &symbols) {
  Workload load;
  load.bytes = getOperandAndResultBytes(op);
  if (auto gemm = dyn_cast<GemmOp>(op)) {
    if (Value workspace = gemm.getWorkspace())
      load.bytes -= getTypeBytes(workspace.getType());
    if (gemm.getAccumulate()) // C is read, as an addend is.
      load.bytes += getTypeBytes(gemm.getOutput().getType());
    load.work = Work::Product;
    load.isBF16 = isBF16(gemm.getA());
    load.flops = gemm.getFlops();
    load.key = getKey(gemm);
    return load;
  }
  if (auto collective = dyn_cast<CollectiveOp>(op)) {
    if (Value workspace = collective.getWorkspace())
      load.bytes -= getTypeBytes(workspace.getType());
    load.flops = collective.getFlops();
    load.key = (stringifyCollective(collective.getKind()) + " over " +
                collective.getAxis())
                   .str();
    return load;
  }
  auto launch = cast<LaunchOp>(op);
  load.flops = launch.getFlops();
  load.key = launch.getKernel().str();
  if (isAttention(launch, symbols)) {
    load.work = Work::Attention;
    load.isBF16 = isBF16(op->getOperand(0));
  }
  return load;
}
