//===- PadVocabulary.cpp - Logits of an aligned width -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Remarks.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Schedules.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Interfaces/Facts.h"
#include "reprise/Kernels/Passes.h"

namespace reprise::kernels {
#define GEN_PASS_DEF_PADVOCABULARY
#include "reprise/Kernels/Passes.h.inc"
} // namespace reprise::kernels

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

/// 16 bytes of bf16: what every access of a GEMM can be.
static constexpr int64_t kAligned = 8;
/// A tile's width.
static constexpr int64_t kPadded = 64;

static ArrayRef<int64_t> getShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// The parameter that an argument is, or is a state of, or an empty name.
static StringRef getParameterName(func::FuncOp function, unsigned index) {
  if (auto parameter =
          function.getArgAttrOfType<ParameterAttr>(index, kParameterAttr))
    return parameter.getName();
  for (StringRef role :
       {kGradientAttr, kMoment1Attr, kMoment2Attr, kWorkingAttr})
    if (auto name = function.getArgAttrOfType<StringAttr>(index, role))
      return name.getValue();
  if (auto partial =
          function.getArgAttrOfType<PartialAttr>(index, kPartialAttr))
    return partial.getName();
  return {};
}

namespace {
/// What has a row for each class, `[V, K]`, or a column for each, `[..., V]`,
/// in one function.
class Padder {
public:
  explicit Padder(func::FuncOp function) : function(function) {}

  /// Follows the states of a parameter. False if an op reads them that is not
  /// known to do the same with more rows.
  bool find(StringRef parameter, int64_t classes);
  void pad(int64_t classes, int64_t padded);

private:
  void add(Value value, bool areColumns) { found.insert({value, areColumns}); }
  bool follow(Operation *op, Value value, bool areColumns);

  func::FuncOp function;
  llvm::MapVector<Value, bool> found;
};

struct PadVocabulary : public kernels::impl::PadVocabularyBase<PadVocabulary> {
  using PadVocabularyBase::PadVocabularyBase;
  void runOnOperation() override;

private:
  void pad(StringRef parameter, int64_t classes, Location loc);
};
} // namespace

bool Padder::follow(Operation *op, Value value, bool areColumns) {
  if (auto rows = dyn_cast<ClassRows>(op))
    return rows.followClasses(value, areColumns, [&](Value other, bool column) {
      add(other, column);
    });
  if (auto fence = dyn_cast<remat::FenceOp>(op)) {
    if (value == fence.getValue() || value == fence.getOut()) {
      add(fence.getValue(), areColumns);
      add(fence.getOut(), areColumns);
    }
    return true;
  }
  return isa<func::ReturnOp>(op);
}

bool Padder::find(StringRef parameter, int64_t classes) {
  for (BlockArgument argument : function.getArguments())
    if (getParameterName(function, argument.getArgNumber()) == parameter)
      add(argument, /*areColumns=*/false);
  for (unsigned next = 0; next < found.size(); ++next) {
    auto [value, areColumns] = found.begin()[next];
    ArrayRef<int64_t> shape = getShape(value);
    if (areColumns ? shape.empty() || shape.back() != classes
                   : shape.size() != 2 || shape[0] != classes)
      return false;
    Operation *maker = value.getDefiningOp();
    if (maker ? !follow(maker, value, areColumns)
              : getParameterName(function,
                                 cast<BlockArgument>(value).getArgNumber()) !=
                    parameter)
      return false;
    for (Operation *user : value.getUsers())
      if (!follow(user, value, areColumns))
        return false;
  }
  return true;
}

void Padder::pad(int64_t classes, int64_t padded) {
  Builder builder(function.getContext());
  for (auto [value, areColumns] : found) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    (areColumns ? shape.back() : shape.front()) = padded;
    value.setType(type.clone(shape));
    if (auto argument = dyn_cast<BlockArgument>(value))
      function.setArgAttr(argument.getArgNumber(), kRowsAttr,
                          builder.getI64IntegerAttr(classes));
    for (Operation *user : value.getUsers())
      if (auto rows = dyn_cast<ClassRows>(user))
        rows.setNumClasses(classes);
  }
  Block &block = function.getBody().front();
  function.setType(builder.getFunctionType(
      block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
}

void PadVocabulary::pad(StringRef parameter, int64_t classes, Location loc) {
  SmallVector<Padder> padders;
  for (func::FuncOp function : getSchedules(getOperation()))
    if (!function.isExternal() &&
        !padders.emplace_back(function).find(parameter, classes)) {
      remark::missed(loc, remark::RemarkOpts::name("NotPadded")
                              .category("Kernels")
                              .function(function.getName()))
          << remark::metric("rows", classes);
      return;
    }
  int64_t padded = llvm::alignTo(classes, kPadded);
  for (Padder &padder : padders)
    padder.pad(classes, padded);
  remark::passed(
      loc, remark::RemarkOpts::name("Padded").category("Kernels").function(
               kStepFunction))
      << remark::metric("rows", classes) << remark::metric("padded", padded);
}

void PadVocabulary::runOnOperation() {
  auto step = getOperation().lookupSymbol<func::FuncOp>(kStepFunction);
  if (!step || !step.getBody().hasOneBlock() ||
      !getOperation()->hasAttr(rt::kGemmWorkspaceAttr))
    return markAllAnalysesPreserved();
  SmallVector<Value> tables;
  for (Operation &op : step.getBody().front()) {
    auto rows = dyn_cast<ClassRows>(op);
    if (Value table = rows ? rows.getClassTable() : Value())
      tables.push_back(table);
  }
  for (Value table : tables) {
    Location loc = table.getLoc();
    while (auto fence = table.getDefiningOp<remat::FenceOp>())
      table = fence.getValue();
    auto argument = dyn_cast<BlockArgument>(table);
    int64_t rows = getShape(table).front();
    if (argument && rows % kAligned != 0)
      pad(getParameterName(step, argument.getArgNumber()), rows, loc);
  }
}
