//===- AnnotateSelective.cpp - Decides to recompute named parts of layers -===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decide.h"
#include "MoveFacts.h"
#include "reprise/Dialect/NN/Workload.h"
#include "reprise/Remat/Labels.h"
#include "reprise/Remat/Passes.h"
#include "reprise/Support/RecomputeLabels.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

namespace reprise::remat {
#define GEN_PASS_DEF_ANNOTATESELECTIVE
#include "reprise/Remat/Passes.h.inc"
} // namespace reprise::remat

using namespace mlir;
using namespace reprise;
using namespace reprise::remat;

namespace {
struct AnnotateSelective
    : public remat::impl::AnnotateSelectiveBase<AnnotateSelective> {
  using AnnotateSelectiveBase::AnnotateSelectiveBase;

  void runOnOperation() override {
    auto decideAll = [&](const Step &step) -> LogicalResult {
      llvm::SetVector<const RecomputeLabel *> labels;
      if (failed(readLabels(step, labels)))
        return failure();
      // What drops a region's outputs comes before what would keep them.
      for (LabelKind kind : {LabelKind::OutputDiscarding, LabelKind::Plain})
        for (const RecomputeLabel *label : labels)
          if (label->kind == kind)
            decide(step, *label);
      remarkDecisions(step);
      return success();
    };
    if (failed(onStep(getOperation(), decideAll)))
      signalPassFailure();
  }

  LogicalResult refuseUnknown(const Step &step, StringRef word);
  LogicalResult refuse(const Step &step, const RecomputeLabel &label);
  LogicalResult readLabels(const Step &step,
                           llvm::SetVector<const RecomputeLabel *> &labels);
  void decide(const Step &step, const RecomputeLabel &label);
  void warnIfUseless(const Step &step, const RecomputeLabel &label,
                     ArrayRef<Operation *> dropped);
};
} // namespace

/// The label of this name, or null.
static const RecomputeLabel *findLabel(StringRef name) {
  for (const RecomputeLabel &label : kRecomputeLabels)
    if (label.name == name)
      return &label;
  return nullptr;
}

/// Whether a layer has the region of the label.
static bool hasRegion(const Step &step, const RecomputeLabel &label) {
  return llvm::any_of(step.forward, [&](Operation *op) {
    return getLayer(op) >= 0 && label.covers(getModule(op));
  });
}

/// The labels whose regions the model has, separated by commas.
static std::string listLabels(const Step &step) {
  std::string list;
  for (const RecomputeLabel &label : kRecomputeLabels)
    if (hasRegion(step, label))
      list += (list.empty() ? "" : ", ") + label.name.str();
  return list;
}

LogicalResult AnnotateSelective::refuseUnknown(const Step &step,
                                               StringRef word) {
  const RecomputeLabel *nearest = kRecomputeLabels;
  for (const RecomputeLabel &label : kRecomputeLabels)
    if (label.name.edit_distance(word) < nearest->name.edit_distance(word))
      nearest = &label;
  return getOperation().emitError("selective recompute needs labels out of ")
         << listLabels(step) << ", but got '" << word
         << "'; the nearest label is '" << nearest->name << "'";
}

LogicalResult AnnotateSelective::refuse(const Step &step,
                                        const RecomputeLabel &label) {
  InFlightDiagnostic error =
      getOperation().emitError("selective recompute label '")
      << label.name << "' needs " << label.what << ", which ";
  if (label.kind == LabelKind::Newer)
    error << "Megatron Core has on its main branch of August 2026 and "
             "Reprise has not";
  else
    error << "this model does not have";
  return error << "; it can have " << listLabels(step);
}

/// The labels that are named and whose regions the model has.
LogicalResult
AnnotateSelective::readLabels(const Step &step,
                              llvm::SetVector<const RecomputeLabel *> &labels) {
  SmallVector<StringRef> words;
  StringRef(modules).split(words, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef word : words) {
    word = word.trim();
    const RecomputeLabel *label = findLabel(word);
    if (!label)
      return refuseUnknown(step, word);
    if (!label->isAccepted())
      return refuse(step, *label);
    if (hasRegion(step, *label))
      labels.insert(label);
    else if (label->without == WithoutRegion::Refuses)
      return refuse(step, *label);
    else
      getOperation().emitWarning("recompute label '")
          << label->name << "' buys nothing: this model has no " << label->what;
  }
  return success();
}

/// Drops the label's region in every layer: all of it, or all but its outputs.
void AnnotateSelective::decide(const Step &step, const RecomputeLabel &label) {
  SmallVector<Operation *> dropped;
  StringRef other; ///< The label that has dropped something of it.
  for (Operation *op : step.forward) {
    int64_t layer = getLayer(op);
    if (layer < 0 || !isOfRegion(label, op))
      continue;
    if (auto earlier = op->getAttrOfType<RecomputeAttr>(kDecisionAttr))
      other = earlier.getLabel();
    Operation *outside = nullptr;
    SmallVector<int64_t> inner = getInnerResults(
        step, op,
        [&](Operation *user) {
          return label.kind == LabelKind::OutputDiscarding ||
                 (getLayer(user) == layer && isOfRegion(label, user));
        },
        outside);
    if (decideToRecompute(op, layer, label.name, inner))
      dropped.push_back(op);
    else if (outside && llvm::any_of(op->getResults(), [&](Value result) {
               return step.isReadBelow(result);
             }))
      decideToSave(op, ("output of " + label.name).str());
  }
  if (dropped.empty() && !other.empty())
    getOperation().emitWarning("recompute label '")
        << label.name << "' buys nothing beside '" << other
        << "', which drops the same";
  else
    warnIfUseless(step, label, dropped);
}

void AnnotateSelective::warnIfUseless(const Step &step,
                                      const RecomputeLabel &label,
                                      ArrayRef<Operation *> dropped) {
  int64_t bytes = 0, flops = 0, fused = 0;
  for (Operation *op : dropped) {
    bytes += getFreedBytes(step, op);
    flops += getFlops(op);
    fused += nn::getWorkload(op).work == Work::Attention &&
             !step.isDropped(op->getResult(0));
  }
  if (bytes == 0) {
    getOperation().emitWarning("recompute label '")
        << label.name
        << "' buys nothing: backward reads no value that it would drop";
    return;
  }
  if (!fused)
    return;
  // Of other regions than this one, what the model has.
  SmallVector<StringRef> known = findLabels(getOperation()), better;
  for (const RecomputeLabel &other : kRecomputeLabels)
    if (other.modules != label.modules && llvm::is_contained(known, other.name))
      better.push_back(other.name);
  InFlightDiagnostic warning = getOperation().emitWarning("recompute label '");
  warning << label.name
          << "' buys nothing worth its time with fused attention: it frees "
             "only the log-sum-exp, "
          << bytes / fused << " bytes a layer, for " << flops / fused
          << " FLOPs a layer; ";
  if (!better.empty())
    warning << "recompute_modules with " << llvm::join(better, " and ")
            << ", or ";
  warning << "recompute_granularity full, free" << (better.empty() ? "s" : "")
          << " more";
}
