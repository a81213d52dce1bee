//===- DataWriter.cpp - Constant data of a module ---------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DataWriter.h"
#include "llvm/IR/IRBuilder.h"

using namespace reprise;
using namespace reprise::target;
using llvm::StringRef;

Typed<const char *> DataWriter::string(StringRef text) {
  llvm::Constant *&address = strings[text];
  if (!address)
    address = llvm::IRBuilder<>(module.getContext())
                  .CreateGlobalString(text, "text", 0, &module);
  return {address};
}

llvm::Constant *DataWriter::bytes(StringRef data, StringRef name, bool isText) {
  llvm::GlobalVariable *variable = global(
      llvm::ConstantDataArray::getString(module.getContext(), data, isText),
      name);
  variable->setAlignment(llvm::Align(16));
  return variable;
}

llvm::GlobalVariable *DataWriter::global(llvm::Constant *value,
                                         StringRef name) {
  return new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true,
                                  llvm::GlobalValue::PrivateLinkage, value,
                                  name);
}

llvm::Function *DataWriter::getFunction(StringRef name) {
  auto *type = llvm::FunctionType::get(
      llvm::Type::getVoidTy(module.getContext()), /*isVarArg=*/false);
  std::string symbol = getCodeSymbol(name, stage);
  if (auto same = aliases.find(symbol); same != aliases.end())
    symbol = same->second;
  auto *function = llvm::cast<llvm::Function>(
      module.getOrInsertFunction(symbol, type).getCallee());
  function->setVisibility(llvm::GlobalValue::HiddenVisibility);
  function->setDSOLocal(true);
  return function;
}
