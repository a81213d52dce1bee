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
#include "reprise/Dialect/NN/Schedules.h"
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

/// The arena of `space` has room for whichever schedule needs most.
static rt::ArenaAttr getArena(ArrayRef<std::unique_ptr<Planner>> planners,
                              Space space, MLIRContext *context) {
  ArenaSizes most = planners.front()->getSizes(space);
  for (const std::unique_ptr<Planner> &planner : planners) {
    ArenaSizes sizes = planner->getSizes(space);
    most.peak = std::max(most.peak, sizes.peak);
    most.bound = std::max(most.bound, sizes.bound);
    most.usedWithin = std::max(most.usedWithin, sizes.usedWithin);
    most.leastWithin = std::max(most.leastWithin, sizes.leastWithin);
  }
  SmallVector<rt::CategoryBytesAttr> categories;
  for (int index = 0; index <= int(Category::Activations); ++index) {
    auto category = Category(index);
    int64_t bytes =
        category == Category::Activations ? most.peak : most.fixed[index];
    if (category == Category::Gradients)
      bytes += most.usedWithin - most.peak;
    categories.push_back(rt::CategoryBytesAttr::get(context, category, bytes));
  }
  return rt::ArenaAttr::get(context, space, most.begin + most.usedWithin,
                            most.begin + most.leastWithin, most.begin,
                            most.peak, most.bound, categories);
}

void PlanMemory::recordPlan(ArrayRef<std::unique_ptr<Planner>> planners) {
  SmallVector<Space> spaces;
  for (const std::unique_ptr<Planner> &planner : planners)
    llvm::append_range(spaces, planner->getSpaces());
  llvm::sort(spaces);
  spaces.erase(llvm::unique(spaces), spaces.end());
  SmallVector<rt::ArenaAttr> arenas;
  for (Space space : spaces)
    arenas.push_back(getArena(planners, space, &getContext()));
  getOperation()->setAttr(rt::kPlanAttr,
                          rt::PlanAttr::get(&getContext(), arenas));
  for (const std::unique_ptr<Planner> &planner : planners) {
    func::FuncOp function = planner->getFunction();
    ArenaSizes sizes = planner->getSizes(Space::Device);
    remark::passed(
        function.getLoc(),
        remark::RemarkOpts::name("Planned").category("Memory").function(
            function.getName()))
        << remark::metric("arena", sizes.begin + sizes.usedWithin)
        << remark::metric("peak", sizes.peak)
        << remark::metric("bound", sizes.bound);
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
  for (func::FuncOp function : nn::getSchedules(getOperation())) {
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
