//===- AnnotateSelective.cpp - Decides to recompute named parts of layers ----*-
// C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decide.h"
#include "reprise/Remat/Labels.h"
#include "reprise/Remat/Passes.h"
#include "llvm/ADT/SetVector.h"

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
    FailureOr<Step> step = getStep(getOperation());
    if (failed(step))
      return signalPassFailure();
    if (!step->backward)
      return markAllAnalysesPreserved();
    llvm::SetVector<const Label *> labels;
    if (failed(readLabels(labels)) || failed(step->verifyDecisions()))
      return signalPassFailure();
    for (const Label *label : labels)
      decide(*step, *label);
    remarkDecisions(*step);
  }

  LogicalResult readLabels(llvm::SetVector<const Label *> &labels);
  void decide(const Step &step, const Label &label);
  void warnIfUseless(const Step &step, const Label &label,
                     ArrayRef<Operation *> dropped);
};
} // namespace

LogicalResult
AnnotateSelective::readLabels(llvm::SetVector<const Label *> &labels) {
  SmallVector<StringRef> words;
  StringRef(modules).split(words, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef word : words) {
    std::string refusal = explainRefusedLabel(word.trim());
    if (!refusal.empty())
      return getOperation().emitError("selective recompute: ") << refusal;
    labels.insert(findLabel(word.trim()));
  }
  return success();
}

/// Drops the label's region in every layer: all of it, or all but its outputs.
void AnnotateSelective::decide(const Step &step, const Label &label) {
  if (label.kind == LabelKind::Absent) {
    getOperation().emitWarning("recompute label '")
        << label.name << "' buys nothing: this model has no " << label.what;
    return;
  }
  SmallVector<Operation *> dropped;
  for (Operation *op : step.forward) {
    int64_t layer = getLayer(op);
    if (layer < 0 || getModule(op) != label.what)
      continue;
    Operation *outside = nullptr;
    SmallVector<int64_t> inner = getInnerResults(
        step, op,
        [&](Operation *user) {
          return label.kind == LabelKind::OutputDiscarding ||
                 (getLayer(user) == layer && getModule(user) == label.what);
        },
        outside);
    if (decideToRecompute(op, layer, label.name, inner))
      dropped.push_back(op);
    else if (outside && llvm::any_of(op->getResults(), [&](Value result) {
               return step.isReadBelow(result);
             }))
      decideToSave(op, ("output of " + label.name).str());
  }
  warnIfUseless(step, label, dropped);
}

void AnnotateSelective::warnIfUseless(const Step &step, const Label &label,
                                      ArrayRef<Operation *> dropped) {
  int64_t bytes = 0, flops = 0, fused = 0;
  for (Operation *op : dropped) {
    bytes += getFreedBytes(step, op);
    flops += getFlops(op);
    fused += isa<nn::AttentionOp>(op);
  }
  if (bytes == 0) {
    getOperation().emitWarning("recompute label '")
        << label.name
        << "' buys nothing: backward reads no value that it would drop";
    return;
  }
  if (fused)
    getOperation().emitWarning("recompute label '")
        << label.name
        << "' buys nothing worth its time with fused attention: it frees only "
           "the log-sum-exp, "
        << bytes / fused << " bytes a layer, for " << flops / fused
        << " FLOPs a layer";
}
