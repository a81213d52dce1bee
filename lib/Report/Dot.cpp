//===- Dot.cpp - A layer as a graph -----------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/NN/Phases.h"
#include "reprise/Dialect/Remat/RematOps.h"
#include "reprise/Report/Decisions.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/GraphWriter.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::report;

namespace {
/// What becomes of an op's results, and how that looks.
struct Style {
  const char *words;
  const char *fill;
  const char *shape;
};
} // namespace

static constexpr Style kKept = {"kept", "#9ecae9", "box"};
static constexpr Style kReplayed = {"recomputed", "#ffbf79", "box"};
static constexpr Style kFree = {"free", "#a6d8a0", "box"};
static constexpr Style kSkipped = {"decided, never replayed", "#ffffff", "box"};
static constexpr Style kForward = {"not needed later", "#eeeeee", "box"};
static constexpr Style kOutside = {"of another place", "#ffffff", "ellipse"};

/// `text` as a string of DOT.
static std::string quote(const llvm::Twine &text) {
  return "\"" + llvm::DOT::EscapeString(text.str()) + "\"";
}

static void printNode(llvm::raw_ostream &os, size_t id, const Style &style,
                      const llvm::Twine &label) {
  os << "  n" << id << " [shape=" << style.shape << ", fillcolor=\""
     << style.fill << "\", label=" << quote(label) << "];\n";
}

namespace {
/// What is decided on the results of an op, taken together.
struct Outcome {
  const Style *style = nullptr; // Recomputed if any of them is.
  int64_t bytes = 0;
  std::string price;
};
} // namespace

/// By the position of the op.
static std::map<int64_t, Outcome> getOutcomes(const Plan &plan) {
  std::map<int64_t, Outcome> outcomes;
  for (const remat::LayerPlan &layer : plan.decisions.layers)
    for (const Decision &decision : getDecisions(plan, layer)) {
      Outcome &outcome = outcomes[decision.origin.position];
      outcome.bytes += decision.bytes;
      if (decision.fate != Fate::Replayed) {
        bool isKept = !decision.isDropped();
        outcome.style = outcome.style ? outcome.style
                        : isKept      ? &kKept
                                      : &kFree;
        continue;
      }
      outcome.style = &kReplayed;
      outcome.price = "\nfor " + decision.rule + ": " +
                      remat::formatFlops(decision.flops) + ", about " +
                      formatSeconds(decision.seconds);
    }
  return outcomes;
}

LogicalResult report::writeDot(const Plan &plan, func::FuncOp step,
                               int64_t layer, llvm::raw_ostream &os) {
  std::map<int64_t, Outcome> outcomes = getOutcomes(plan);
  llvm::MapVector<Operation *, size_t> inside, outside;
  int64_t last = -1, position = 0;
  llvm::DenseMap<Operation *, int64_t> positions;
  for (Operation &op : nn::getForward(step.getBody().front())) {
    positions[&op] = position++;
    nn::ScopeAttr scope = nn::getScope(&op);
    int64_t number = scope ? scope.getLayer() : -1;
    last = std::max(last, number);
    if (number == layer && op.getNumResults() != 0)
      inside.insert({&op, positions[&op]});
  }
  if (inside.empty())
    return step.emitError("needs a layer from 0 to ")
           << last << " to draw, but got " << layer;

  os << "digraph " << quote("layer " + llvm::Twine(layer)) << " {\n"
     << "  node [style=filled, fontname=\"sans-serif\", fontsize=11];\n"
     << "  edge [color=\"#555555\"];\n";
  auto getLabel = [](Operation *op) {
    nn::ScopeAttr scope = nn::getScope(op);
    std::string name = scope && !scope.getValue().empty()
                           ? scope.getValue().str()
                           : op->getName().stripDialect().str();
    return name + "\n" + op->getName().getStringRef().str();
  };
  for (auto [op, id] : inside) {
    std::string label = getLabel(op);
    if (auto outcome = outcomes.find(id); outcome != outcomes.end()) {
      const auto &[style, bytes, price] = outcome->second;
      printNode(os, id, *style,
                label + "\n" + style->words + ", " + remat::formatBytes(bytes) +
                    price);
      continue;
    }
    bool isDecided = isa_and_present<remat::RecomputeAttr>(
        op->getAttr(remat::kDecisionAttr));
    const Style &style = isDecided ? kSkipped : kForward;
    printNode(os, id, style, label + "\n" + style.words);
  }
  auto printEdge = [&](Operation *from, Operation *to) {
    os << "  n" << positions[from] << " -> n" << positions[to] << ";\n";
  };
  auto printOutside = [&](Operation *op) {
    if (outside.insert({op, positions[op]}).second)
      printNode(os, positions[op], kOutside,
                nn::getScopeName(nn::getScope(op)) + "\n" +
                    op->getName().getStringRef());
  };
  for (auto [op, id] : inside) {
    llvm::SmallSetVector<Operation *, 4> sources, readers;
    for (Value operand : op->getOperands())
      if (Operation *source = operand.getDefiningOp())
        sources.insert(source);
    for (Operation *user : op->getUsers())
      if (positions.count(user) && !inside.count(user))
        readers.insert(user);
    for (Operation *source : sources) {
      if (!inside.count(source))
        printOutside(source);
      printEdge(source, op);
    }
    for (Operation *reader : readers) {
      printOutside(reader);
      printEdge(op, reader);
    }
  }
  os << "}\n";
  return success();
}
