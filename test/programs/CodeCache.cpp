//===- CodeCache.cpp - Machine code, made once ----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeCache.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "reprise/Codegen/CPU/Passes.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::target;
using reprise::test::CodeCache;

/// All that is said of a kernel but its name.
static std::string print(func::FuncOp kernel) {
  StringAttr name = kernel.getSymNameAttr();
  kernel.setSymName("code");
  std::string text;
  llvm::raw_string_ostream os(text);
  kernel->print(os, OpPrintingFlags().useLocalScope().assumeVerified());
  kernel.setSymNameAttr(name);
  return text;
}

/// Which micro-kernels a module gets.
static std::string getTiles(ModuleOp stage) {
  bool isAny = false, isBF16 = false;
  stage.walk([&](rt::GemmOp gemm) {
    isAny = true;
    isBF16 |= getElementTypeOrSelf(gemm.getA().getType()).isBF16();
  });
  return !isAny || isBF16 ? "tiles that may round" : "tiles";
}

/// Whether a symbol is of the function `name`: that, a version or a constant.
static bool isOf(StringRef symbol, StringRef name) {
  return symbol.consume_front(name) &&
         (symbol.empty() || symbol.front() == '.');
}

static void makeStub(LLVM::LLVMFuncOp function) {
  for (Block &block : function.getBody())
    block.dropAllReferences();
  function.getBody().getBlocks().clear();
  OpBuilder builder(function.getContext());
  builder.setInsertionPointToEnd(function.addEntryBlock(builder));
  LLVM::ReturnOp::create(builder, function.getLoc(), ValueRange());
}

LogicalResult CodeCache::compile(ModuleOp part, Code &code) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module =
      translateModuleToLLVMIR(part, context, "code");
  if (!module)
    return failure();
  for (llvm::Function &function : *module) {
    if (function.isDeclaration())
      continue;
    StringRef name = function.getName();
    name.consume_front(code.name);
    function.setName(code.symbol + name);
    function.setLinkage(llvm::GlobalValue::ExternalLinkage);
    function.setVisibility(llvm::GlobalValue::HiddenVisibility);
    function.setDSOLocal(true);
  }
  FailureOr<ObjectFile> object = emitObject(*module, cpu);
  if (failed(object))
    return failure();
  code.object = std::move(*object);
  return success();
}

/// Compiles the function `name` of a stage that is of the phase llvm.
LogicalResult CodeCache::add(ModuleOp stage, StringRef name,
                             const std::string &text) {
  Code &code = codes[text];
  code.name = name.str();
  code.symbol = "code." + std::to_string(codes.size());
  OwningOpRef<ModuleOp> part = ModuleOp::create(stage.getLoc());
  code.stubs = ModuleOp::create(stage.getLoc());
  for (Operation &op : llvm::make_early_inc_range(*stage.getBody())) {
    auto symbol = dyn_cast<SymbolOpInterface>(op);
    if (!symbol || !isa_and_present<LLVM::LLVMDialect>(op.getDialect()))
      continue;
    bool isOwn = isOf(symbol.getName(), name);
    if (isOwn || symbol.isDeclaration())
      part->push_back(op.clone());
    if (!isOwn)
      continue;
    auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
    if (function) {
      makeStub(function);
      code.stubs->push_back(op.clone());
    }
    op.erase();
  }
  return compile(*part, code);
}

/// Puts what the tables read of `code` into `stage`, under the name there.
void CodeCache::use(const Code &code, StringRef name, ModuleOp stage) {
  used.insert(&code);
  MLIRContext *context = stage.getContext();
  std::optional<int64_t> number = getStage(stage);
  auto rename = [&](StringRef symbol) {
    symbol.consume_front(code.name);
    return (name + symbol).str();
  };
  for (auto stub : const_cast<Code &>(code).stubs->getOps<LLVM::LLVMFuncOp>()) {
    auto function = cast<LLVM::LLVMFuncOp>(stub->clone());
    std::string own = rename(stub.getName());
    function.setName(own);
    for (StringRef version :
         {rt::kAVX512Attr, rt::kAVX512BF16Attr, rt::kAmxAttr})
      if (auto other = stub->getAttrOfType<FlatSymbolRefAttr>(version))
        function->setAttr(
            version, FlatSymbolRefAttr::get(context, rename(other.getValue())));
    stage.push_back(function);
    StringRef suffix = stub.getName();
    suffix.consume_front(code.name);
    aliases[getCodeSymbol(own, number)] = code.symbol + suffix.str();
  }
}

LogicalResult CodeCache::lower(ModuleOp stage) {
  registerBuiltinDialectTranslation(*stage.getContext());
  registerLLVMDialectTranslation(*stage.getContext());
  PassManager manager(stage.getContext());
  codegen::buildCPULoweringPipeline(manager, registers);
  return manager.run(stage);
}

/// Uses the micro-kernels that a stage has, or would have, if it were lowered.
LogicalResult CodeCache::takeTiles(ModuleOp stage, bool isLowered,
                                   const std::string &key) {
  auto [names, isNew] = tiles.try_emplace(key);
  if (isLowered)
    for (auto function :
         llvm::make_early_inc_range(stage.getOps<LLVM::LLVMFuncOp>())) {
      std::string name = function.getName().str();
      if (function.isExternal() ||
          !StringRef(name).starts_with("reprise_micro"))
        continue;
      if (!isNew) {
        function.erase();
        continue;
      }
      names->second.push_back(name);
      if (failed(add(stage, name, key + name)))
        return failure();
    }
  for (const std::string &name : names->second)
    use(codes[key + name], name, stage);
  return success();
}

LogicalResult CodeCache::take(ModuleOp stage) {
  std::vector<std::pair<std::string, std::string>> open; // names and texts
  for (auto kernel : llvm::make_early_inc_range(stage.getOps<func::FuncOp>())) {
    if (!kernel->hasAttr(rt::kKernelAttr))
      continue;
    std::string name = kernel.getName().str(), text = print(kernel);
    auto known = codes.find(text);
    if (known == codes.end()) {
      open.push_back({name, text});
      continue;
    }
    kernel.erase();
    use(known->second, name, stage);
  }
  std::string key = getTiles(stage);
  bool isLowered = !open.empty() || !tiles.count(key);
  if (isLowered && failed(lower(stage)))
    return failure();
  for (auto &[name, text] : open) {
    // A module has each kernel once.
    if (codes.count(text) || failed(add(stage, name, text)))
      return failure();
    use(codes[text], name, stage);
  }
  return takeTiles(stage, isLowered, key);
}

LogicalResult CodeCache::link(ModuleOp stages, StringRef runtime,
                              StringRef output) {
  aliases.clear();
  used.clear();
  SmallVector<CompiledModel> models;
  for (ModuleOp stage : stages.getOps<ModuleOp>()) {
    if (failed(take(stage)))
      return failure();
    models.push_back({stage});
  }
  std::vector<Tables> tables;
  for (const CompiledModel &model : models) {
    FailureOr<Tables> read = readTables(model.module);
    if (failed(read))
      return failure();
    tables.push_back(std::move(*read));
  }
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> data =
      writeTables(models, tables, aliases, context);
  if (!data)
    return failure();
  FailureOr<ObjectFile> object = emitObject(*data, cpu);
  if (failed(object))
    return failure();
  std::vector<ObjectFile> objects;
  for (const Code *code : used)
    objects.push_back(code->object);
  objects.push_back(std::move(*object));
  return linkExecutable(objects, runtime, output);
}
