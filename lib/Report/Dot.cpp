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

namespace {
/// The graph of a layer's ops, and of the ops elsewhere that they read or that
/// read them. Nodes have the positions of their ops as numbers.
class LayerGraph {
public:
  LayerGraph(const Plan &plan, llvm::raw_ostream &os)
      : outcomes(getOutcomes(plan)), os(os) {}

  /// Finds the ops of a layer; an error if there are none.
  LogicalResult find(func::FuncOp step, int64_t layer);
  void print(int64_t layer);

private:
  void printNode(Operation *op, const Style &style, const llvm::Twine &label);
  void printInside(Operation *op);
  void printOutside(Operation *op);
  void printEdge(Operation *from, Operation *to);
  void printEdges(Operation *op);

  std::map<int64_t, Outcome> outcomes;
  llvm::raw_ostream &os;
  llvm::DenseMap<Operation *, int64_t> positions;
  llvm::SetVector<Operation *> inside, outside;
};
} // namespace

LogicalResult LayerGraph::find(func::FuncOp step, int64_t layer) {
  int64_t last = -1, position = 0;
  for (Operation &op : nn::getForward(step.getBody().front())) {
    positions[&op] = position++;
    nn::ScopeAttr scope = nn::getScope(&op);
    int64_t number = scope ? scope.getLayer() : -1;
    last = std::max(last, number);
    if (number == layer && op.getNumResults() != 0)
      inside.insert(&op);
  }
  if (inside.empty())
    return step.emitError("needs a layer from 0 to ")
           << last << " to draw, but got " << layer;
  return success();
}

void LayerGraph::printNode(Operation *op, const Style &style,
                           const llvm::Twine &label) {
  os << "  n" << positions[op] << " [shape=" << style.shape << ", fillcolor=\""
     << style.fill << "\", label=" << quote(label) << "];\n";
}

void LayerGraph::printInside(Operation *op) {
  nn::ScopeAttr scope = nn::getScope(op);
  std::string label = scope && !scope.getValue().empty()
                          ? scope.getValue().str()
                          : op->getName().stripDialect().str();
  label += "\n" + op->getName().getStringRef().str() + "\n";
  if (auto outcome = outcomes.find(positions[op]); outcome != outcomes.end()) {
    const auto &[style, bytes, price] = outcome->second;
    return printNode(op, *style,
                     label + style->words + ", " + remat::formatBytes(bytes) +
                         price);
  }
  bool isDecided =
      isa_and_present<remat::RecomputeAttr>(op->getAttr(remat::kDecisionAttr));
  const Style &style = isDecided ? kSkipped : kForward;
  printNode(op, style, label + style.words);
}

void LayerGraph::printOutside(Operation *op) {
  if (outside.insert(op))
    printNode(op, kOutside,
              nn::getScopeName(nn::getScope(op)) + "\n" +
                  op->getName().getStringRef());
}

void LayerGraph::printEdge(Operation *from, Operation *to) {
  os << "  n" << positions[from] << " -> n" << positions[to] << ";\n";
}

/// What the op reads, and who outside of the layer reads it.
void LayerGraph::printEdges(Operation *op) {
  llvm::SmallSetVector<Operation *, 4> sources, readers;
  for (Value operand : op->getOperands())
    if (Operation *source = operand.getDefiningOp())
      sources.insert(source);
  for (Operation *user : op->getUsers())
    if (positions.count(user) && !inside.contains(user))
      readers.insert(user);
  for (Operation *source : sources) {
    if (!inside.contains(source))
      printOutside(source);
    printEdge(source, op);
  }
  for (Operation *reader : readers) {
    printOutside(reader);
    printEdge(op, reader);
  }
}

void LayerGraph::print(int64_t layer) {
  os << "digraph " << quote("layer " + llvm::Twine(layer)) << " {\n"
     << "  node [style=filled, fontname=\"sans-serif\", fontsize=11];\n"
     << "  edge [color=\"#555555\"];\n";
  for (Operation *op : inside)
    printInside(op);
  for (Operation *op : inside)
    printEdges(op);
  os << "}\n";
}

LogicalResult report::writeDot(const Plan &plan, func::FuncOp step,
                               int64_t layer, llvm::raw_ostream &os) {
  LayerGraph graph(plan, os);
  if (failed(graph.find(step, layer)))
    return failure();
  graph.print(layer);
  return success();
}
