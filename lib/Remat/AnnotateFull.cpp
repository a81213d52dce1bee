//===- AnnotateFull.cpp - Decides to recompute whole layers ---------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decide.h"
#include "reprise/Remat/Passes.h"
#include "reprise/Support/Modules.h"
#include <map>

namespace reprise::remat {
#define GEN_PASS_DEF_ANNOTATEFULL
#include "reprise/Remat/Passes.h.inc"
} // namespace reprise::remat

using namespace mlir;
using namespace reprise;
using namespace reprise::remat;

namespace {
struct AnnotateFull : public remat::impl::AnnotateFullBase<AnnotateFull> {
  using AnnotateFullBase::AnnotateFullBase;

  void runOnOperation() override {
    auto decideAll = [&](const Step &step) -> LogicalResult {
      FailureOr<Chunks> chunks = failure();
      if (failed(checkOptions()) ||
          failed(chunks = getChunks(getOperation(), step)))
        return failure();
      decide(step, getSegments(step, *chunks));
      remarkDecisions(step);
      return success();
    };
    if (failed(onStep(getOperation(), decideAll)))
      signalPassFailure();
  }

  LogicalResult checkOptions();
  DenseMap<int64_t, int64_t> getSegments(const Step &step,
                                         const Chunks &chunks);
  void decide(const Step &step, const DenseMap<int64_t, int64_t> &segments);
};
} // namespace

LogicalResult AnnotateFull::checkOptions() {
  if (method != "uniform" && method != "block") {
    InFlightDiagnostic error = getOperation().emitError(
        "full recompute needs the method uniform or block, but got ");
    return method.empty() ? error << "none" : error << "'" << method << "'";
  }
  if (numLayers == kUnsetNumLayers)
    return getOperation().emitError("full recompute needs a number of layers, ")
           << (method == "uniform" ? "those of a segment"
                                   : "those to recompute")
           << ", but got none";
  if (numLayers < 1)
    return getOperation().emitError("full recompute needs a number of layers "
                                    "of at least 1, but got ")
           << int64_t(numLayers);
  return success();
}

/// From layer to segment; without the layers that keep everything. Every chunk
/// begins with a segment of its own, and so does a layer that predicts a
/// further token, which does not go on from the one before. The first layers of
/// a chunk are none of those.
DenseMap<int64_t, int64_t> AnnotateFull::getSegments(const Step &step,
                                                     const Chunks &chunks) {
  std::map<int64_t, bool> layers; // Whether one begins anew.
  for (Operation *op : step.forward)
    if (getLayer(op) >= 0)
      layers[getLayer(op)] |=
          parseModule(getModule(op)) == ModuleKind::FurtherToken;
  DenseMap<int64_t, int64_t> segments;
  int64_t segment = -1, chunk = -1, index = 0;
  for (auto [layer, beginsAnew] : layers) {
    bool isUniform = method == "uniform";
    int64_t next = chunks.getChunkOf(layer);
    if (next != chunk || (isUniform && beginsAnew)) {
      chunk = next;
      index = 0;
    }
    if (isUniform || (index < numLayers && !beginsAnew)) {
      segment += !isUniform || index % numLayers == 0;
      segments[layer] = segment;
    }
    ++index;
  }
  return segments;
}

void AnnotateFull::decide(const Step &step,
                          const DenseMap<int64_t, int64_t> &segments) {
  if (segments.empty())
    getOperation().emitWarning(
        "full recompute buys nothing: no op of the forward pass is in a layer");
  /// -1 for what is in no segment.
  auto getSegment = [&](Operation *op) {
    auto found = segments.find(getLayer(op));
    return found == segments.end() ? -1 : found->second;
  };
  for (Operation *op : step.forward) {
    int64_t segment = getSegment(op);
    if (op->getNumResults() == 0)
      continue;
    if (segment < 0) {
      // What backward makes on its way anyway is left to free recompute.
      if (getLayer(op) < 0)
        decideToSave(op, "in no layer");
      else if (!step.findSharedGradient(op))
        decideToSave(op, "in a layer without recompute");
      continue;
    }
    Operation *outside = nullptr;
    SmallVector<int64_t> inner = getInnerResults(
        step, op, [&](Operation *user) { return getSegment(user) == segment; },
        outside);
    if (decideToRecompute(op, segment, "full", inner))
      continue;
    if (!outside)
      decideToSave(op, "has side effects");
    else if (getSegment(outside) >= 0)
      decideToSave(op,
                   "input of segment " + std::to_string(getSegment(outside)));
    else
      decideToSave(op, "read outside every segment");
  }
}
