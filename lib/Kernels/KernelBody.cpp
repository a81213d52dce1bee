//===- KernelBody.cpp - How ops become loops --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelBody.h"
#include "mlir/IR/DialectRegistry.h"
#include "reprise/Dialect/NN/NNOps.h"

using namespace mlir;
using namespace reprise;

#include "reprise/Kernels/KernelBody.cpp.inc"

void kernels::registerKernelBodies(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, nn::NNDialect *) {
    attachElementBodies(*context);
    attachSumBodies(*context);
    attachRowBodies(*context);
    attachHeadBodies(*context);
    attachShardBodies(*context);
    attachExpertBodies(*context);
    attachLatentBodies(*context);
    attachGemmBodies(*context);
    attachNormBodies(*context);
    attachExchangeBodies(*context);
  });
}
