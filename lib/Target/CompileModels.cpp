//===- CompileModels.cpp - Kernels and tables as object files ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tables.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Threading.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::target;

/// Into how many parts code is divided at most. How many there are depends on
/// the code alone, and so do the bytes of each; more of them keep more
/// processors busy, but what LLVM sets up for each takes 3 ms.
static constexpr unsigned kMostParts = 12;

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// The class of each of `ops`, of which none refers to one of another class.
static llvm::IntEqClasses classify(ArrayRef<Operation *> ops) {
  DenseMap<StringAttr, unsigned> indices;
  for (auto [index, op] : llvm::enumerate(ops))
    if (auto symbol = dyn_cast<SymbolOpInterface>(op))
      indices[symbol.getNameAttr()] = index;
  llvm::IntEqClasses classes(ops.size());
  for (auto [index, op] : llvm::enumerate(ops))
    for (Region &region : op->getRegions())
      if (auto uses = SymbolTable::getSymbolUses(&region))
        for (SymbolTable::SymbolUse use : *uses)
          if (auto found = indices.find(use.getSymbolRef().getRootReference());
              found != indices.end())
            classes.join(index, found->second);
  classes.compress();
  return classes;
}

/// For each class the part it goes to: the largest first, each to the part with
/// the fewest ops so far.
static SmallVector<unsigned> distribute(ArrayRef<int64_t> sizes,
                                        unsigned numParts) {
  auto order = llvm::to_vector(llvm::seq<unsigned>(0, sizes.size()));
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return std::pair(-sizes[a], a) < std::pair(-sizes[b], b);
  });
  SmallVector<int64_t> filled(numParts);
  SmallVector<unsigned> parts(sizes.size());
  for (unsigned index : order) {
    parts[index] = llvm::min_element(filled) - filled.begin();
    filled[parts[index]] += sizes[index];
  }
  return parts;
}

/// Takes the functions and constants out of `module`, in parts of about the
/// same size, which do not refer to each other. What is only declared is in
/// each.
static std::vector<OwningOpRef<ModuleOp>> takeCode(ModuleOp module) {
  SmallVector<Operation *> declarations, ops;
  for (Operation &op : *module.getBody())
    if (isa_and_present<LLVM::LLVMDialect>(op.getDialect())) {
      auto symbol = dyn_cast<SymbolOpInterface>(op);
      (symbol && symbol.isDeclaration() ? declarations : ops).push_back(&op);
    }
  std::vector<OwningOpRef<ModuleOp>> parts;
  if (ops.empty())
    return parts;
  llvm::IntEqClasses classes = classify(ops);
  SmallVector<int64_t> sizes(classes.getNumClasses());
  for (auto [index, op] : llvm::enumerate(ops))
    op->walk([&, index = index](Operation *) { ++sizes[classes[index]]; });
  unsigned numParts = std::min(kMostParts, classes.getNumClasses());
  for (unsigned part = 0; part < numParts; ++part)
    parts.push_back(ModuleOp::create(module.getLoc()));
  for (Operation *op : declarations) {
    for (OwningOpRef<ModuleOp> &part : parts)
      part->push_back(op->clone());
    op->erase();
  }
  SmallVector<unsigned> numbers = distribute(sizes, numParts);
  for (auto [index, op] : llvm::enumerate(ops)) {
    Block *body = parts[numbers[classes[index]]]->getBody();
    op->moveBefore(body, body->end());
  }
  return parts;
}

//===----------------------------------------------------------------------===//
// Objects
//===----------------------------------------------------------------------===//

/// Compiles a part, with the functions of these symbols for others to find.
static FailureOr<ObjectFile> compilePart(ModuleOp part,
                                         std::optional<int64_t> stage,
                                         const llvm::StringSet<> &symbols,
                                         StringRef cpu) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code =
      translateModuleToLLVMIR(part, context, "reprise");
  if (!code)
    return failure();
  for (llvm::Function &function : *code) {
    if (function.isDeclaration())
      continue;
    std::string symbol = getCodeSymbol(function.getName(), stage);
    bool isFound = symbols.contains(symbol);
    function.setName(symbol);
    function.setLinkage(isFound ? llvm::GlobalValue::ExternalLinkage
                                : llvm::GlobalValue::InternalLinkage);
    if (!isFound)
      continue;
    function.setVisibility(llvm::GlobalValue::HiddenVisibility);
    function.setDSOLocal(true);
  }
  return emitObject(*code, cpu);
}

FailureOr<std::vector<ObjectFile>>
target::compileModels(ArrayRef<CompiledModel> models, StringRef cpu) {
  if (std::string error = checkProcessor(cpu); !error.empty()) {
    llvm::WithColor::error() << error << "\n";
    return failure();
  }
  // Read first: what is compiled is taken away.
  std::vector<Tables> tables;
  for (const CompiledModel &model : models) {
    FailureOr<Tables> read = readTables(model.module);
    if (failed(read))
      return failure();
    tables.push_back(std::move(*read));
  }
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> data =
      writeTables(models, tables, takeEqualCode(models), context);
  if (!data)
    return failure();
  llvm::StringSet<> symbols;
  for (const llvm::Function &function : *data)
    if (function.isDeclaration())
      symbols.insert(function.getName());

  std::vector<OwningOpRef<ModuleOp>> parts;
  std::vector<std::optional<int64_t>> stages;
  for (const CompiledModel &model : models)
    if (!model.image) {
      llvm::move(takeCode(model.module), std::back_inserter(parts));
      stages.resize(parts.size(), getStage(model.module));
    }
  MLIRContext *threads = models.front().module->getContext();
  registerBuiltinDialectTranslation(*threads);
  registerLLVMDialectTranslation(*threads);
  std::vector<ObjectFile> objects(parts.size() + 1);
  auto compile = [&](size_t index) {
    FailureOr<ObjectFile> object =
        index < parts.size()
            ? compilePart(*parts[index], stages[index], symbols, cpu)
            : emitObject(*data, cpu);
    if (succeeded(object))
      objects[index] = std::move(*object);
    return LogicalResult(object);
  };
  if (failed(failableParallelForEachN(threads, 0, objects.size(), compile)))
    return failure();
  return objects;
}
