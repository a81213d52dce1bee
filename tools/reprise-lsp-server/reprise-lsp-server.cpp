//===- reprise-lsp-server.cpp - Language server for the IR ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "reprise/Pipelines/Registration.h"
#include "tools/command-line/CommandLine.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/raw_ostream.h"

using namespace reprise;

/// The options of MLIR's server.
static tools::Tool getTool() {
  using tools::Takes;
  tools::Tool tool;
  tool.name = "reprise-lsp-server";
  tool.overview = "Speaks the Language Server Protocol about the IR of Reprise "
                  "and of MLIR, on standard input and output. An editor starts "
                  "it for files that end in .mlir.";
  tool.usage = "[options]";
  tool.libraries = "LLVM " LLVM_VERSION_STRING;
  tool.topics = {
      {"Options",
       {{"log",
         "error|info|verbose",
         "What is told on standard error (info)",
         Takes::Word,
         {"error", "info", "verbose"}},
        {"pretty",
         "true|false",
         "Indent the JSON that is written",
         Takes::MaybeWord,
         {"true", "false"}},
        {"input-style",
         "standard|delimited",
         "How messages are told apart: by their length, as the protocol says "
         "(standard), or by lines of // ----- (delimited)",
         Takes::Word,
         {"standard", "delimited"}},
        {"lit-test",
         "true|false",
         "Short for --input-style=delimited --pretty --log=verbose",
         Takes::MaybeWord,
         {"true", "false"}}}}};
  tools::addCommonOptions(tool);
  return tool;
}

int main(int argc, char **argv) {
  tools::Tool tool = getTool();
  tools::Words words;
  if (auto answer = tools::read(tool, {argv + 1, argv + argc}, words)) {
    (answer->isError ? llvm::errs() << "error: " : llvm::outs())
        << answer->text << (answer->isError ? "\n" : "");
    return answer->isError;
  }
  mlir::DialectRegistry registry;
  registerDialects(registry);
  return failed(mlir::MlirLspServerMain(argc, argv, registry));
}
