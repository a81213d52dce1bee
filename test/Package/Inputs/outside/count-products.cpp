//===- count-products.cpp - Another project's program ---------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "reprise/ABI/Version.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/Remat/RematOps.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<reprise::nn::NNDialect, reprise::remat::RematDialect,
                  mlir::func::FuncDialect>();
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(argv[argc - 1], &context);
  if (!module)
    return 1;
  int products = 0;
  module->walk([&](reprise::nn::LinearOp) { ++products; });
  llvm::outs() << "reprise " REPRISE_VERSION ": " << products << " products\n";
  try { // Reprise has no say in whether others use exceptions.
    throw 0;
  } catch (int status) {
    return status;
  }
}
