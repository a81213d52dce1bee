//===- Decide.cpp - What deciders share -----------------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decide.h"
#include "Share.h"
#include "mlir/IR/Remarks.h"
#include "reprise/Interfaces/ExpertRounds.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::remat;

void remat::decideToSave(Operation *op, StringRef reason, int64_t segment) {
  if (!op->hasAttr(kDecisionAttr))
    op->setAttr(kDecisionAttr,
                SaveAttr::get(op->getContext(), reason, segment));
}

bool remat::decideToRecompute(Operation *op, int64_t segment, StringRef label,
                              ArrayRef<int64_t> results) {
  if (op->hasAttr(kDecisionAttr) || results.empty() || !nn::mayBeReplayed(op))
    return false;
  MLIRContext *context = op->getContext();
  DenseI64ArrayAttr some;
  if (results.size() != op->getNumResults())
    some = DenseI64ArrayAttr::get(context, results);
  op->setAttr(kDecisionAttr, RecomputeAttr::get(context, segment, label, some));
  return true;
}

SmallVector<int64_t>
remat::getInnerResults(const Step &step, Operation *op,
                       function_ref<bool(Operation *)> isInside,
                       Operation *&outside) {
  SmallVector<int64_t> inner;
  for (OpResult result : op->getResults()) {
    auto leaves = llvm::find_if(result.getUsers(), [&](Operation *user) {
      // What a chunk of a model passes on is read when it is sent.
      return step.isLate(user) || (step.isForward(user) && !isInside(user));
    });
    if (leaves == result.getUsers().end())
      inner.push_back(result.getResultNumber());
    else
      outside = *leaves;
  }
  return inner;
}

bool remat::isMadeInRounds(Operation *op) {
  auto decision = op->getAttrOfType<RecomputeAttr>(kDecisionAttr);
  return decision && decision.getLabel() == kRoundsLabel;
}

int64_t remat::getFreedBytes(const Step &step, Operation *op) {
  int64_t bytes = 0;
  for (Value result : op->getResults())
    if (step.isDropped(result) && step.isReadBelow(result))
      bytes += getTypeBytes(result.getType());
  return bytes;
}

/// Bytes of the results of `op` that stay because backward or a replay reads
/// them.
static int64_t getKeptBytes(const Step &step, Operation *op,
                            const DenseSet<Operation *> &replayed) {
  int64_t bytes = 0;
  for (Value result : op->getResults())
    if (llvm::any_of(result.getUsers(), [&](Operation *user) {
          return step.isBelow(user) || replayed.contains(user);
        }))
      bytes += getTypeBytes(result.getType());
  return bytes;
}

void remat::remarkDecisions(const Step &step) {
  if (!step.backward->getContext()->getRemarkEngine())
    return;
  using remark::RemarkOpts, remark::metric;
  auto function = step.backward->getParentOfType<func::FuncOp>();
  RemarkOpts options =
      RemarkOpts::name("").category("Remat").function(function.getSymName());
  DenseSet<Operation *> replayed = step.getReplayed();
  for (Operation *op : step.forward) {
    Attribute attribute = op->getAttr(kDecisionAttr);
    if (!attribute || op->getNumResults() == 0)
      continue;
    if (auto decision = dyn_cast<RecomputeAttr>(attribute)) {
      options.remarkName = "Recompute";
      remark::passed(op->getLoc(), options)
          << getFullName(step.getFirstDropped(op))
          << metric("label", decision.getLabel())
          << metric("segment", decision.getSegment())
          << metric("bytes", getFreedBytes(step, op))
          << metric("flops", replayed.contains(op) && !step.isFree(op)
                                 ? getFlops(op)
                                 : int64_t(0));
      continue;
    }
    if (auto share = dyn_cast<ShareAttr>(attribute)) {
      options.remarkName = "Share";
      remark::passed(op->getLoc(), options)
          << getFullName(op->getResult(0)) << metric("axis", share.getAxis())
          << metric("segment", share.getSegment())
          << metric("bytes", getKeptBytes(step, op, replayed) /
                                 countRanks(function, share.getAxis()));
      continue;
    }
    options.remarkName = "Save";
    remark::passed(op->getLoc(), options)
        << getFullName(op->getResult(0))
        << metric("reason", cast<SaveAttr>(attribute).getReason())
        << metric("bytes", getKeptBytes(step, op, replayed));
  }
}
