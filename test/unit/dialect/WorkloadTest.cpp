//===- WorkloadTest.cpp - What GEMMs read and write -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Parser/Parser.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/RT/ScheduledOp.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace reprise;

/// The bytes of the only GEMM of a function with `body`.
static int64_t getGemmBytes(const char *body) {
  MLIRContext context;
  context.loadDialect<func::FuncDialect, rt::RTDialect>();
  std::string text = "func.func @f(%a: tensor<4x4xf32>) {\n" +
                     std::string(body) + "\nreturn\n}\n";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return -1;
  SymbolTable symbols(*module);
  int64_t bytes = 0;
  module->walk(
      [&](rt::ScheduledOp gemm) { bytes += gemm.getWorkload(symbols).bytes; });
  return bytes;
}

/// Three matrices of 64 bytes; C once more where something is added to it.
TEST(Workload, BytesOfGemms) {
  EXPECT_EQ(
      getGemmBytes("%c = rt.gemm %a, %a m 4 n 4 k 4 lda 4 ldb 4 ldc 4 : "
                   "(tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>"),
      3 * 64);
  EXPECT_EQ(getGemmBytes(
                "%c = rt.gemm %a, %a addend(%a) m 4 n 4 k 4 lda 4 ldb 4 ldc 4 "
                ": (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> "
                "tensor<4x4xf32>"),
            4 * 64);
  // Not the workspace.
  std::string buffers = "%x = rt.buffer at <device, 0> : memref<4x4xf32>\n"
                        "%c = rt.buffer at <device, 64> : memref<4x4xf32>\n"
                        "%s = rt.buffer at <device, 128> : memref<224xf32>\n"
                        "rt.gemm %x, %x to (%c) workspace(%s) ";
  std::string rest =
      "m 4 n 4 k 4 lda 4 ldb 4 ldc 4 : (memref<4x4xf32>, memref<4x4xf32>, "
      "memref<4x4xf32>, memref<224xf32>) -> ()";
  EXPECT_EQ(getGemmBytes((buffers + rest).c_str()), 3 * 64);
  EXPECT_EQ(getGemmBytes((buffers + "accumulate " + rest).c_str()), 4 * 64);
}
