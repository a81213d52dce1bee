//===- AnnotateFull.cpp - Decides to recompute whole layers ---------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decide.h"
#include "Share.h"
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
/// From layer to segment; without the layers that are in none.
using Segments = DenseMap<int64_t, int64_t>;

struct AnnotateFull : public remat::impl::AnnotateFullBase<AnnotateFull> {
  using AnnotateFullBase::AnnotateFullBase;

  void runOnOperation() override {
    auto decideAll = [&](const Step &step) -> LogicalResult {
      FailureOr<Chunks> chunks = failure();
      if (failed(checkOptions()) ||
          failed(chunks = getChunks(getOperation(), step)))
        return failure();
      Segments segments = getSegments(step, *chunks);
      if (!share.empty() && failed(shareInputs(step, segments)))
        return failure();
      decide(step, segments);
      remarkDecisions(step);
      return success();
    };
    if (failed(onStep(getOperation(), decideAll)))
      signalPassFailure();
  }

  LogicalResult checkOptions();
  Segments getSegments(const Step &step, const Chunks &chunks);
  LogicalResult shareInputs(const Step &step, const Segments &segments);
  void decide(const Step &step, const Segments &segments);
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
  if (share.empty() || countRanks(getOperation(), share) > 1)
    return success();
  return getOperation().emitError("full recompute needs several ranks along '")
         << share << "' that share inputs of segments, but there is 1";
}

/// From layer to segment; without the layers that keep everything. Every chunk
/// begins with a segment of its own, and so does a layer that predicts a
/// further token, which does not go on from the one before. The first layers of
/// a chunk are none of those.
Segments AnnotateFull::getSegments(const Step &step, const Chunks &chunks) {
  std::map<int64_t, bool> layers; // Whether one begins anew.
  for (Operation *op : step.forward)
    if (getLayer(op) >= 0)
      layers[getLayer(op)] |=
          parseModule(getModule(op)) == ModuleKind::FurtherToken;
  Segments segments;
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

/// The segment of `op`, -1 if it is in none.
static int64_t getSegment(const Segments &segments, Operation *op) {
  auto found = segments.find(getLayer(op));
  return found == segments.end() ? -1 : found->second;
}

/// The segment that `value` is an input of, if ops of no other one read it in
/// the forward phase, nor of none; else -1.
static int64_t getReader(const Step &step, const Segments &segments,
                         Value value) {
  int64_t reader = -1;
  for (Operation *user : value.getUsers()) {
    if (!step.isForward(user) && step.isBelow(user))
      continue;
    // What a chunk of a model passes on is read when it is sent.
    int64_t segment = step.isForward(user) ? getSegment(segments, user) : -1;
    if (segment < 0 || (reader >= 0 && reader != segment))
      return -1;
    reader = segment;
  }
  return reader;
}

/// Decides on inputs of segments that all ranks have alike.
LogicalResult AnnotateFull::shareInputs(const Step &step,
                                        const Segments &segments) {
  OwnValues own(getOperation(), step, share);
  int64_t ranks = countRanks(getOperation(), share), count = 0;
  auto decideOn = [&](Value value, int64_t made) -> LogicalResult {
    int64_t reader = getReader(step, segments, value);
    if (reader < 0 || reader == made || own.contains(value) || !canBeCut(value))
      return success();
    if (getCutDim(value, ranks) < 0) {
      InFlightDiagnostic error = emitError(value.getLoc());
      explainCut(error, value, share, ranks);
      return error;
    }
    ++count;
    decideToShare(value, share, reader);
    return success();
  };
  if (BlockArgument border = getBorder(getOperation());
      border && !step.getShare(border) && failed(decideOn(border, -1)))
    return failure();
  for (Operation *op : step.forward)
    if (op->getNumResults() == 1 && !op->hasAttr(kDecisionAttr) &&
        failed(decideOn(op->getResult(0), getSegment(segments, op))))
      return failure();
  if (count == 0)
    getOperation().emitWarning("to share inputs of segments buys nothing: the "
                               "ranks along '")
        << share << "' have none that are alike";
  return success();
}

/// Of segments of several layers, what the layers but the last make of rows
/// that come back from rounds of experts. The next layers' gradients come
/// before those of the rounds, so that replays of these for what follows them
/// would stay until then, all at once.
static DenseSet<Operation *> findBehindRounds(const Step &step,
                                              const Segments &segments) {
  DenseMap<int64_t, int64_t> last; // layers
  for (auto [layer, segment] : segments)
    last[segment] =
        std::max(last.try_emplace(segment, layer).first->second, layer);
  // What comes back, and its sums.
  DenseSet<Operation *> back, behind;
  for (Operation *op : step.forward) {
    auto isBack = [&](Value operand) {
      return back.contains(operand.getDefiningOp());
    };
    auto isOfRound = [&](Value operand) {
      Operation *maker = operand.getDefiningOp();
      return maker && isMadeInRounds(maker);
    };
    int64_t segment = getSegment(segments, op);
    if (isMadeInRounds(op) || op->getNumOperands() == 0)
      continue;
    if (llvm::any_of(op->getOperands(), isOfRound) ||
        llvm::all_of(op->getOperands(), isBack))
      back.insert(op);
    else if (segment >= 0 && getLayer(op) < last.lookup(segment) &&
             llvm::any_of(op->getOperands(), isBack))
      behind.insert(op);
  }
  return behind;
}

void AnnotateFull::decide(const Step &step, const Segments &segments) {
  DenseSet<Operation *> behind = findBehindRounds(step, segments);
  if (segments.empty())
    getOperation().emitWarning(
        "full recompute buys nothing: no op of the forward pass is in a layer");
  for (Operation *op : step.forward) {
    int64_t segment = getSegment(segments, op);
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
    if (behind.contains(op)) {
      decideToSave(op, "made of rows of rounds");
      continue;
    }
    Operation *outside = nullptr;
    SmallVector<int64_t> inner = getInnerResults(
        step, op,
        [&](Operation *user) { return getSegment(segments, user) == segment; },
        outside);
    if (decideToRecompute(op, segment, "full", inner))
      continue;
    if (!outside)
      decideToSave(op, "has side effects");
    else if (int64_t reader = getSegment(segments, outside); reader >= 0)
      decideToSave(op, "input of segment " + std::to_string(reader));
    else
      decideToSave(op, "read outside every segment");
  }
}
