//===- CopyModule.cpp - Modules in another context ------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Support/CopyModule.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace reprise;

FailureOr<std::string> reprise::writeModule(ModuleOp module) {
  std::string bytes;
  llvm::raw_string_ostream os(bytes);
  if (failed(writeBytecodeToFile(module, os)))
    return failure();
  return bytes;
}

OwningOpRef<ModuleOp> reprise::readModule(StringRef bytes,
                                          MLIRContext &context) {
  ParserConfig config(&context, /*verifyAfterParse=*/false);
  auto copy = parseSourceString<ModuleOp>(bytes, config);
  Location nowhere = UnknownLoc::get(&context);
  if (copy)
    copy->walk([&](Operation *op) {
      op->setLoc(nowhere);
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (BlockArgument argument : block.getArguments())
            argument.setLoc(nowhere);
    });
  return copy;
}

OwningOpRef<ModuleOp> reprise::copyInto(MLIRContext &context, ModuleOp module) {
  FailureOr<std::string> bytes = writeModule(module);
  return succeeded(bytes) ? readModule(*bytes, context) : nullptr;
}
