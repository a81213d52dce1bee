//===- KeepIdleSegment.cpp - Keeps what a replay would not free -----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Planning/Passes.h"
#include "reprise/Solver/Budget.h"
#include <set>

namespace reprise::planning {
#define GEN_PASS_DEF_KEEPIDLESEGMENT
#include "reprise/Planning/Passes.h.inc"
} // namespace reprise::planning

using namespace mlir;
using namespace reprise;
using namespace reprise::planning;

namespace {
struct KeepIdleSegment
    : public planning::impl::KeepIdleSegmentBase<KeepIdleSegment> {
  KeepIdleSegment(Phases phases, KeepIdleSegmentOptions options)
      : KeepIdleSegmentBase(std::move(options)), phases(std::move(phases)) {}
  void runOnOperation() override;

  Phases phases;
};
} // namespace

/// The ops that are decided to be recomputed with the last layer, in order.
static SmallVector<Operation *> getLastSegment(func::FuncOp step) {
  SmallVector<Operation *> decided;
  int64_t lastLayer = -1, segment = -1;
  for (Operation &op : step.getBody().front()) {
    nn::ScopeAttr scope = nn::getScope(&op);
    if (isa<nn::BackwardOp>(op))
      break;
    auto decision =
        op.getAttrOfType<remat::RecomputeAttr>(remat::kDecisionAttr);
    if (decision)
      decided.push_back(&op);
    if (!scope || scope.getLayer() < lastLayer)
      continue;
    if (scope.getLayer() > lastLayer)
      segment = -1;
    lastLayer = scope.getLayer();
    if (decision)
      segment = decision.getSegment();
  }
  llvm::erase_if(decided, [&](Operation *op) {
    return op->getAttrOfType<remat::RecomputeAttr>(remat::kDecisionAttr)
               .getSegment() != segment;
  });
  return decided;
}

/// Bytes that the program which `module`, decided, becomes needs for what is
/// alive at one time; by how much packing misses that is no merit of a plan.
/// Planned elsewhere: what is tried is not to be heard of.
static FailureOr<int64_t> planBytes(ModuleOp module, const Phases &phases,
                                    bool isFree) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, OpPrintingFlags().useLocalScope());
  MLIRContext context(module.getContext()->getDialectRegistry(),
                      MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) {});
  OwningOpRef<ModuleOp> trial = parseSourceString<ModuleOp>(text, &context);
  PassManager manager(&context);
  phases.applyDecisions(manager, isFree);
  phases.formKernels(manager, /*rowsApart=*/false);
  phases.planMemory(manager);
  if (!trial || failed(manager.run(*trial)))
    return failure();
  auto plan = (*trial)->getAttrOfType<DictionaryAttr>(rt::kPlanAttr);
  auto least = plan ? plan.getAs<IntegerAttr>("least") : IntegerAttr();
  if (!least)
    return failure();
  return least.getInt();
}

void KeepIdleSegment::runOnOperation() {
  auto step = getOperation().lookupSymbol<func::FuncOp>(nn::kStepFunction);
  SmallVector<Operation *> segment;
  if (step && step.getBody().hasOneBlock())
    segment = getLastSegment(step);
  if (segment.empty())
    return markAllAnalysesPreserved();
  if (leaveOpen) {
    std::set<int64_t> layers;
    for (Operation *op : segment)
      layers.insert(nn::getScope(op).getLayer());
    if (layers.size() <= solver::kMostSegmentLayers)
      for (Operation *op : segment)
        op->removeAttr(remat::kDecisionAttr);
    return;
  }

  FailureOr<int64_t> before = planBytes(getOperation(), phases, isFree);
  SmallVector<Attribute> decisions;
  int64_t number = -1;
  for (Operation *op : segment) {
    decisions.push_back(op->getAttr(remat::kDecisionAttr));
    number = cast<remat::RecomputeAttr>(decisions.back()).getSegment();
    op->setAttr(remat::kDecisionAttr,
                remat::SaveAttr::get(
                    &getContext(),
                    "in the segment before the loss, whose replay frees "
                    "nothing at the peak",
                    number));
  }
  FailureOr<int64_t> after = planBytes(getOperation(), phases, isFree);
  // What cannot be planned is refused by the phase that finds out.
  bool isIdle = succeeded(before) && succeeded(after) && *after <= *before;
  if (!isIdle)
    for (auto [op, decision] : llvm::zip(segment, decisions))
      op->setAttr(remat::kDecisionAttr, decision);
  if (failed(before) || failed(after))
    return;
  remark::passed(step.getLoc(), remark::RemarkOpts::name(
                                    isIdle ? "KeepSegment" : "ReplaySegment")
                                    .category("Remat")
                                    .function(step.getName()))
      << remark::metric("segment", number)
      << remark::metric("bytes", *after - *before);
}

std::unique_ptr<Pass>
planning::createKeepIdleSegment(Phases phases, KeepIdleSegmentOptions options) {
  return std::make_unique<KeepIdleSegment>(std::move(phases),
                                           std::move(options));
}
