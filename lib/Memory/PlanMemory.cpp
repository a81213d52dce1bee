//===- PlanMemory.cpp - Offsets in one arena --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Planner.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Remarks.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Memory/Passes.h"
#include "llvm/Support/MathExtras.h"

namespace reprise::memory {
#define GEN_PASS_DEF_PLANMEMORY
#include "reprise/Memory/Passes.h.inc"
} // namespace reprise::memory

using namespace mlir;
using namespace reprise;
using namespace reprise::memory;

namespace {
struct PlanMemory : public memory::impl::PlanMemoryBase<PlanMemory> {
  using Base::Base;
  void runOnOperation() override;
  LogicalResult checkSchedule(func::FuncOp function);
  void recordPlan(ArrayRef<std::unique_ptr<Planner>> planners);
};
} // namespace

LogicalResult PlanMemory::checkSchedule(func::FuncOp function) {
  if (!function.getBody().hasOneBlock() ||
      !isa<func::ReturnOp>(function.getBody().front().getTerminator()))
    return function.emitError("needs one block that returns to be planned");
  return success();
}

/// The arena has room for whichever schedule needs most.
void PlanMemory::recordPlan(ArrayRef<std::unique_ptr<Planner>> planners) {
  const Planner &step = *planners.front();
  int64_t used = 0, peak = 0, bound = 0, usedWithin = 0, leastWithin = 0;
  for (const std::unique_ptr<Planner> &planner : planners) {
    used = std::max(used, planner->getUsed());
    peak = std::max(peak, planner->getPeak());
    bound = std::max(bound, planner->getBound());
    usedWithin = std::max(usedWithin, planner->getUsedWithin());
    leastWithin = std::max(leastWithin, planner->getLeastWithin());
  }
  Builder builder(&getContext());
  auto number = [&](StringRef name, int64_t bytes) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(bytes));
  };
  SmallVector<NamedAttribute> categories;
  for (auto [index, name] : llvm::enumerate(kCategoryNames)) {
    auto category = Category(index);
    int64_t bytes =
        category == Category::Activations ? used : step.getBytes(category);
    if (category == Category::Gradients)
      bytes += usedWithin - used;
    categories.push_back(number(name, bytes));
  }
  getOperation()->setAttr(
      rt::kPlanAttr,
      builder.getDictionaryAttr(
          {number("arena", step.getBegin() + usedWithin),
           number("least", step.getBegin() + leastWithin),
           number("begin", step.getBegin()), number("peak", peak),
           number("bound", bound),
           builder.getNamedAttr("categories",
                                builder.getDictionaryAttr(categories))}));
  for (const std::unique_ptr<Planner> &planner : planners) {
    func::FuncOp function = planner->getFunction();
    remark::passed(
        function.getLoc(),
        remark::RemarkOpts::name("Planned").category("Memory").function(
            function.getName()))
        << remark::metric("arena",
                          planner->getBegin() + planner->getUsedWithin())
        << remark::metric("peak", planner->getPeak())
        << remark::metric("bound", planner->getBound());
  }
}

void PlanMemory::runOnOperation() {
  if (gemmWorkspace)
    getOperation()->setAttr(
        rt::kGemmWorkspaceAttr,
        Builder(&getContext()).getI64IntegerAttr(gemmWorkspace));
  if (mostLaunches)
    getOperation()->setAttr(
        rt::kMostLaunchesAttr,
        Builder(&getContext()).getI64IntegerAttr(mostLaunches));
  int64_t bytes = rt::kDefaultAlignment;
  if (alignment)
    getOperation()->setAttr(
        rt::kAlignmentAttr,
        Builder(&getContext()).getI64IntegerAttr(alignment));
  if (auto recorded =
          getOperation()->getAttrOfType<IntegerAttr>(rt::kAlignmentAttr))
    bytes = recorded.getInt();
  if (bytes < 1 || !llvm::isPowerOf2_64(bytes)) {
    getOperation().emitError("needs an alignment that is a power of two, but "
                             "got ")
        << bytes;
    return signalPassFailure();
  }
  SymbolTable symbols(getOperation());
  SmallVector<std::unique_ptr<Planner>> planners;
  for (StringRef name : nn::kScheduleFunctions) {
    auto function = symbols.lookup<func::FuncOp>(name);
    if (!function && !planners.empty())
      continue;
    if (!function) {
      getOperation().emitError("needs a function @step to plan");
      return signalPassFailure();
    }
    if (failed(checkSchedule(function)))
      return signalPassFailure();
    planners.push_back(std::make_unique<Planner>(
        symbols, function, bytes,
        planners.empty() ? nullptr : planners.front().get()));
    if (failed(planners.back()->plan()))
      return signalPassFailure();
  }
  recordPlan(planners);
  for (const std::unique_ptr<Planner> &planner : planners)
    planner->rewrite();
}
