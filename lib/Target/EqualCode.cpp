//===- EqualCode.cpp - Code that stages have in common --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stages have layers of one kind, and so the same kernels and micro-kernels,
// whatever these are called. Machine code is made of the first of those that
// are the same text.
//
//===----------------------------------------------------------------------===//

#include "Tables.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::target;

/// The symbols of `module` that stand alone: what is defined there refers to
/// nothing else that is, and nothing refers to it.
static llvm::StringSet<> findAlone(ModuleOp module) {
  llvm::StringSet<> defined;
  for (auto symbol : module.getOps<SymbolOpInterface>())
    if (!symbol.isDeclaration())
      defined.insert(symbol.getName());
  llvm::StringSet<> alone = defined;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    auto uses = SymbolTable::getSymbolUses(&function.getBody());
    if (!uses) {
      alone.erase(function.getName());
      continue;
    }
    for (SymbolTable::SymbolUse use : *uses) {
      StringRef used = use.getSymbolRef().getRootReference().getValue();
      if (!defined.contains(used))
        continue;
      alone.erase(used);
      alone.erase(function.getName());
    }
  }
  return alone;
}

/// All that is said of a function but its name and where it comes from.
static std::string print(LLVM::LLVMFuncOp function) {
  StringAttr name = function.getSymNameAttr();
  function.setSymName("code");
  std::string text;
  llvm::raw_string_ostream os(text);
  function->print(os, OpPrintingFlags().useLocalScope().assumeVerified());
  function.setSymNameAttr(name);
  return text;
}

Aliases target::takeEqualCode(ArrayRef<CompiledModel> models) {
  Aliases aliases;
  llvm::StringMap<std::string> known; // symbols by texts
  for (const CompiledModel &model : models) {
    ModuleOp module = model.module;
    std::optional<int64_t> stage = getStage(module);
    if (!stage || model.image)
      continue;
    llvm::StringSet<> alone = findAlone(module);
    for (auto function :
         llvm::make_early_inc_range(module.getOps<LLVM::LLVMFuncOp>())) {
      if (function.isExternal() || !alone.contains(function.getName()))
        continue;
      std::string symbol = getCodeSymbol(function.getName(), stage);
      auto [first, isNew] = known.try_emplace(print(function), symbol);
      if (isNew)
        continue;
      aliases[symbol] = first->second;
      function.erase();
    }
  }
  return aliases;
}
