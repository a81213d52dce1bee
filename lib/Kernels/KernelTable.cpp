//===- KernelTable.cpp - Kernels, each structure once -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelTable.h"
#include "KernelBody.h"
#include "mlir/IR/IRMapping.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Interfaces/Facts.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

/// The attribute by which an op names its random stream.
static constexpr StringLiteral kStream = "stream";

KernelTable::KernelTable(ModuleOp module)
    : module(module), builder(module.getContext()) {
  for (auto symbol : module.getOps<SymbolOpInterface>())
    ++names[symbol.getName()];
}

SmallVector<int64_t> KernelTable::getIds(ArrayRef<Operation *> ops) const {
  SmallVector<int64_t> ids;
  auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
  for (Operation *op : ops) {
    if (auto stream = op->getAttrOfType<IntegerAttr>(kStream))
      ids.push_back(stream.getInt());
    if (StringAttr axis = getCoordinateAxis(op))
      ids.push_back(mesh.getNames().begin() -
                    llvm::find(mesh.getNames(), axis) - 1);
  }
  return ids;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// "2x8x96", with "_bf16" unless f32: the largest value that the ops touch.
static std::string getShapeName(ArrayRef<Operation *> ops) {
  ShapedType largest;
  auto look = [&](TypeRange types) {
    for (Type type : types) {
      auto shaped = cast<ShapedType>(type);
      if (!largest || shaped.getNumElements() > largest.getNumElements())
        largest = shaped;
    }
  };
  for (Operation *op : ops) {
    look(op->getResultTypes());
    look(op->getOperandTypes());
  }
  std::string name;
  for (int64_t size : largest.getShape())
    name += (name.empty() ? "" : "x") + std::to_string(size);
  if (name.empty())
    name = "scalar";
  return largest.getElementType().isBF16() ? name + "_bf16" : name;
}

/// "dropout_add_2x8x24". Long groups are named by their ends, and ops side by
/// side of one name are named once.
static std::string getName(ArrayRef<Operation *> ops) {
  SmallVector<StringRef> words;
  for (Operation *op : ops)
    if (StringRef word = op->getName().stripDialect();
        (ops.size() == 1 || !isa<ConstantNumber>(op)) &&
        (words.empty() || words.back() != word))
      words.push_back(word);
  constexpr size_t kMostWords = 4;
  std::string name = words.size() <= kMostWords
                         ? llvm::join(words, "_")
                         : (words.front() + "_to_" + words.back()).str();
  return name + "_" + getShapeName(ops);
}

func::FuncOp KernelTable::create(std::string name, FunctionType type,
                                 Location loc) {
  for (std::string stem = name; names[name]++;)
    name = stem + "_" + std::to_string(names[stem]);
  builder.setInsertionPointToEnd(module.getBody());
  auto kernel = func::FuncOp::create(builder, loc, name, type);
  kernel.setPrivate();
  kernel->setAttr(rt::kKernelAttr, builder.getUnitAttr());
  builder.setInsertionPointToStart(kernel.addEntryBlock());
  return kernel;
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

/// Equal for groups whose kernels are equal. Values are numbered, inputs
/// first.
static Attribute getStructure(Builder &builder, const Group &group) {
  DenseMap<Value, int64_t> numbers;
  SmallVector<Attribute> parts;
  auto append = [&](ArrayRef<int64_t> values) {
    parts.push_back(builder.getDenseI64ArrayAttr(values));
  };
  auto define = [&](Value value) {
    numbers.try_emplace(value, numbers.size());
    parts.push_back(TypeAttr::get(value.getType()));
  };
  llvm::for_each(group.inputs, define);
  for (Operation *op : group.ops) {
    parts.push_back(op->getName().getIdentifier());
    SmallVector<int64_t> operands;
    for (Value operand : op->getOperands())
      operands.push_back(numbers.lookup(operand));
    append(operands);
    if (auto properties =
            dyn_cast_if_present<DictionaryAttr>(op->getPropertiesAsAttribute()))
      for (NamedAttribute property : properties)
        if (property.getName() != kStream) {
          parts.push_back(property.getName());
          parts.push_back(property.getValue());
        }
    llvm::for_each(op->getResults(), define);
  }
  SmallVector<int64_t> outputs;
  for (Value output : group.outputs)
    outputs.push_back(numbers.lookup(output));
  append(outputs);
  for (auto [input, output] : group.inPlace)
    append({numbers.lookup(input), numbers.lookup(output)});
  return builder.getArrayAttr(parts);
}

/// Whether each element of the inputs that have a result's shape is read
/// before that of the result is written, row by row.
static bool readsBeforeWriting(ArrayRef<Operation *> ops) {
  return llvm::all_of(ops, [](Operation *op) {
    auto body = dyn_cast<LoopBody>(op);
    return op->hasTrait<nn::Pointwise>() || op->hasTrait<nn::Rowwise>() ||
           (body && body.readsBeforeWriting());
  });
}

/// States which arguments share, or may share, the buffer of which result.
/// Candidates for one result are given out in turn, so that a kernel of two
/// results can have both in place.
static void setSharing(func::FuncOp kernel, const Group &group) {
  Builder builder(kernel.getContext());
  auto getNumber = [&](Value output) {
    return std::distance(group.outputs.begin(),
                         llvm::find(group.outputs, output));
  };
  DenseSet<int64_t> taken;
  for (auto [input, output] : group.inPlace)
    taken.insert(getNumber(output));
  bool mayAlias = readsBeforeWriting(group.ops);
  bool isPointwise = llvm::all_of(
      group.ops, [](Operation *op) { return op->hasTrait<nn::Pointwise>(); });
  int64_t rank = 2;
  for (Value input : group.inputs)
    rank = std::max(rank, cast<ShapedType>(input.getType()).getRank());
  int64_t next = 0, numOutputs = group.outputs.size();
  for (auto [index, input] : llvm::enumerate(group.inputs)) {
    if (Value output = group.inPlace.lookup(input)) {
      kernel.setArgAttr(index, rt::kInPlaceAttr,
                        builder.getI64IntegerAttr(getNumber(output)));
      continue;
    }
    // A vector is an op's gain or bias, unless all are. What has fewer
    // dimensions than others has a number for each row, read all along it.
    auto type = cast<ShapedType>(input.getType());
    if (!mayAlias || (!isPointwise && type.getRank() < rank))
      continue;
    for (int64_t tried = 0; tried < numOutputs; ++tried) {
      int64_t number = (next + tried) % numOutputs;
      if (taken.contains(number) || group.outputs[number].getType() != type)
        continue;
      kernel.setArgAttr(index, rt::kMayAliasAttr,
                        builder.getI64IntegerAttr(number));
      next = number + 1;
      break;
    }
  }
}

func::FuncOp KernelTable::getKernel(const Group &group) {
  func::FuncOp &kernel = kernels[getStructure(builder, group)];
  if (kernel)
    return kernel;
  auto type = builder.getFunctionType(
      ValueRange(group.inputs.getArrayRef()).getTypes(),
      ValueRange(group.outputs.getArrayRef()).getTypes());
  Location loc = group.ops.back()->getLoc();
  kernel = create(getName(group.ops), type, loc);
  IRMapping mapping;
  for (auto [input, argument] : llvm::zip(group.inputs, kernel.getArguments()))
    mapping.map(input, argument);
  int64_t next = 0;
  for (Operation *op : group.ops) {
    Operation *clone = builder.clone(*op, mapping);
    clone->setDiscardableAttrs(ArrayRef<NamedAttribute>());
    if (clone->hasAttr(kStream))
      clone->setAttr(kStream, builder.getI64IntegerAttr(next++));
    if (getCoordinateAxis(clone))
      clone->setAttr(rt::kCoordinateAttr, builder.getI64IntegerAttr(next++));
  }
  SmallVector<Value> results;
  for (Value output : group.outputs)
    results.push_back(mapping.lookup(output));
  func::ReturnOp::create(builder, loc, results);
  setSharing(kernel, group);
  return kernel;
}

func::FuncOp KernelTable::getKernel(
    StringRef name, FunctionType type,
    function_ref<Value(OpBuilder &, ValueRange)> buildResult) {
  Attribute structure =
      builder.getArrayAttr({builder.getStringAttr(name), TypeAttr::get(type)});
  func::FuncOp &kernel = kernels[structure];
  if (kernel)
    return kernel;
  kernel = create(name.str(), type, module.getLoc());
  Value result = buildResult(builder, kernel.getArguments());
  func::ReturnOp::create(builder, module.getLoc(), result);
  return kernel;
}
