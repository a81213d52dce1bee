//===- SavePlan.cpp - Decisions as a plan file ----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MoveFacts.h"
#include "Step.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Interfaces/Facts.h"
#include "reprise/Remat/PlanFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/YAMLParser.h"
#include <map>

using namespace mlir;
using namespace reprise;
using namespace reprise::remat;

namespace {
/// Values of one layer with one decision.
struct Part {
  std::string values; ///< "u, g"
  std::string ending; ///< ", label: mlp"
  StringRef verb;     ///< "recompute", "save" or "share"

  auto getKey() const { return std::tie(verb, values, ending); }
};

/// Layers that share a part.
struct Line {
  Part part;
  SmallVector<int64_t> layers;
};
} // namespace

/// A word as YAML has it: with quotes unless it is a plain name.
static std::string quote(StringRef word) {
  bool isPlain = !word.empty() && llvm::isAlpha(word.front()) &&
                 llvm::all_of(word, [](char c) {
                   return llvm::isAlnum(c) || c == '_' || c == '.';
                 });
  return isPlain ? word.str() : "\"" + llvm::yaml::escape(word) + "\"";
}

/// What follows the values of a rule.
static std::string formatEnding(Attribute attribute, int64_t layer) {
  std::string ending;
  if (auto save = dyn_cast<SaveAttr>(attribute)) {
    if (save.getSegment() >= 0)
      ending = ", segment: " + std::to_string(save.getSegment());
    if (!save.getReason().empty())
      ending += ", reason: " + quote(save.getReason());
    return ending;
  }
  if (auto share = dyn_cast<ShareAttr>(attribute)) {
    ending = ", over: " + share.getAxis().str();
    if (share.getSegment() != layer)
      ending += ", segment: " + std::to_string(share.getSegment());
    if (!share.getReason().empty())
      ending += ", reason: " + quote(share.getReason());
    return ending;
  }
  auto recompute = cast<RecomputeAttr>(attribute);
  if (recompute.getSegment() != layer)
    ending = ", segment: " + std::to_string(recompute.getSegment());
  return ending + ", label: " + quote(recompute.getLabel());
}

/// Adds to `kept` the results of `op` that are kept though the first is
/// dropped, whose name means all of them.
static void addKept(Operation *op, ArrayRef<int64_t> dropped,
                    std::string &kept) {
  if (!llvm::is_contained(dropped, 0))
    return;
  for (OpResult result : op->getResults())
    if (!llvm::is_contained(dropped, int64_t(result.getResultNumber())))
      kept += (kept.empty() ? "" : ", ") + quote(getValueName(result));
}

/// The layer and the name by which rules find what `op` makes. What ranks share
/// is the input of a layer, which a chunk of a pipeline may get from another.
static std::pair<int64_t, std::string> getPlace(const Step &step,
                                                Operation *op) {
  if (op->getNumResults() == 0)
    return {getLayer(op), ""};
  if (step.getShare(op->getResult(0)))
    if (auto home = getHome(step, op->getResult(0)); home.second == "x0")
      return home;
  return {getLayer(op), getValueName(op->getResult(0))};
}

static StringRef getVerb(Attribute decision) {
  if (isa<RecomputeAttr>(decision))
    return "recompute";
  return isa<ShareAttr>(decision) ? "share" : "save";
}

/// Whether `op`, of which nothing is decided, would be taken to follow what is,
/// if the plan did not say that it stays.
static bool isKeptMove(const Step &step, Operation *op) {
  auto isDropped = [](Operation *op) {
    auto decision = op->getAttrOfType<RecomputeAttr>(kDecisionAttr);
    return decision && decision.getLabel() != kFreeLabel;
  };
  return getTensorMove(op) != Move::None && findFollowed(step, op, isDropped);
}

/// The decisions on the values of one layer, in the order of the ops. A part
/// that takes back some of another comes last.
static FailureOr<SmallVector<Part>> getParts(const Step &step, int64_t layer,
                                             ArrayRef<Operation *> ops) {
  SmallVector<Part> parts;
  std::string kept;
  std::map<std::string, Operation *> named;
  for (Operation *op : ops) {
    if (op->getNumResults() == 0)
      continue;
    Attribute decision = op->getAttr(kDecisionAttr);
    auto [first, isNew] = named.try_emplace(getPlace(step, op).second, op);
    if (!isNew && first->second->getAttr(kDecisionAttr) != decision) {
      InFlightDiagnostic error = op->emitOpError(
          "needs a name of its own in its layer to have a decision of its own "
          "in a plan file, but another is called ");
      error << first->first;
      error.attachNote(first->second->getLoc()) << "this one";
      return error;
    }
    if (isNew && !decision && isKeptMove(step, op))
      kept += (kept.empty() ? "" : ", ") + quote(first->first);
    if (!isNew || !decision)
      continue;
    auto recompute = dyn_cast<RecomputeAttr>(decision);
    std::string ending = formatEnding(decision, layer);
    StringRef verb = getVerb(decision);
    auto part = llvm::find_if(parts, [&](const Part &known) {
      return known.verb == verb && known.ending == ending;
    });
    if (part == parts.end())
      part = parts.insert(part, {"", ending, verb});
    auto add = [&](StringRef name) {
      part->values += (part->values.empty() ? "" : ", ") + quote(name);
    };
    if (!recompute || !recompute.getResults())
      add(first->first);
    else
      for (int64_t result : recompute.getResults().asArrayRef())
        add(getValueName(op->getResult(result)));
    if (recompute && recompute.getResults())
      addKept(op, recompute.getResults().asArrayRef(), kept);
  }
  if (!kept.empty())
    parts.push_back({kept, "", "save"});
  return parts;
}

/// "0-3", "[0-1, 5]", "outside".
static std::string formatLayers(ArrayRef<int64_t> layers) {
  if (layers.front() < 0)
    return "outside";
  std::string text;
  bool isList = false;
  for (size_t first = 0, last = 0; first < layers.size(); first = last + 1) {
    last = first;
    while (last + 1 < layers.size() && layers[last + 1] == layers[last] + 1)
      ++last;
    isList |= first != 0;
    text += (first ? ", " : "") + std::to_string(layers[first]);
    if (last > first)
      text += "-" + std::to_string(layers[last]);
  }
  return isList ? "[" + text + "]" : text;
}

/// The rows of a chunk of the head, if it has chunks, or what was asked for.
static std::optional<int64_t> getHeadRows(func::FuncOp function) {
  auto heads = function.getBody().getOps<RowChunks>();
  if (!heads.empty())
    return (*heads.begin()).getChunkRows();
  auto module = function->getParentOfType<ModuleOp>();
  auto train = module ? module->getAttrOfType<DictionaryAttr>(nn::kTrainAttr)
                      : DictionaryAttr();
  auto given =
      train ? train.getAs<IntegerAttr>(nn::kHeadChunkRows) : IntegerAttr();
  return given ? std::optional(given.getInt()) : std::nullopt;
}

LogicalResult remat::writePlanFile(func::FuncOp function, StringRef name,
                                   llvm::raw_ostream &os,
                                   bool putsActivationsFirst) {
  FailureOr<Step> step = getStep(function);
  if (failed(step))
    return failure();
  std::map<int64_t, SmallVector<Operation *>> layers;
  for (Operation *op : step->forward)
    layers[getPlace(*step, op).first].push_back(op);

  // Rules of different layers or values do not meet, so their order is free:
  // that in which they come up first. Those that take back come last.
  SmallVector<Line> lines;
  std::map<std::tuple<bool, StringRef, std::string, std::string>, size_t>
      numbers;
  for (auto &[layer, ops] : layers) {
    FailureOr<SmallVector<Part>> parts = getParts(*step, layer, ops);
    if (failed(parts))
      return failure();
    for (Part &part : *parts) {
      auto [found, isNew] = numbers.try_emplace(
          std::tuple_cat(std::tuple(layer < 0), part.getKey()), lines.size());
      if (isNew)
        lines.push_back({part, {}});
      lines[found->second].layers.push_back(layer);
    }
  }

  std::stable_partition(lines.begin(), lines.end(), [](const Line &line) {
    return line.part.verb == "recompute" || !line.part.ending.empty();
  });

  os << "name: " << quote(name) << "\n";
  if (layers.rbegin() != layers.rend() && layers.rbegin()->first >= 0)
    os << "layers: " << layers.rbegin()->first + 1 << "\n";
  if (auto chunks = function->getAttrOfType<ChunksAttr>(kChunksAttr)) {
    os << "chunks: {stages: " << chunks.getStages() << ", layers: [";
    llvm::interleaveComma(chunks.getLayers().asArrayRef(), os);
    os << "]}\n";
  }
  if (std::optional<int64_t> rows = getHeadRows(function))
    os << "head_chunk_rows: " << *rows << "\n";
  os << "free: off\n"; // Rules are about what is, too.
  if (llvm::any_of(step->forward, isExpertMove))
    os << "moves: named\n";
  if (putsActivationsFirst)
    os << "activations: first\n";
  os << (lines.empty() ? "rules: []\n" : "rules:\n");
  for (const Line &line : lines)
    os << "- {layers: " << formatLayers(line.layers) << ", " << line.part.verb
       << ": [" << line.part.values << "]" << line.part.ending << "}\n";
  return success();
}
