//===- LeastPeak.cpp - What no plan needs less than -----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/StepGraph.h"

#include <algorithm>

using namespace reprise::solver;

namespace {
/// Values of the forward pass with bytes of their own.
class ForwardValues {
public:
  explicit ForwardValues(const StepGraph &graph)
      : graph(graph), isForward(graph.values.size()),
        lastReader(graph.values.size(), -1) {
    for (size_t op = 0; op < graph.ops.size(); ++op) {
      if (graph.ops[op].phase == StepPhase::Forward)
        for (int64_t value : graph.ops[op].writes)
          isForward[value] = true;
      else
        for (int64_t value : graph.ops[op].reads)
          lastReader[value] = op;
    }
    for (const StepValue &value : graph.values)
      if (value.whole >= 0)
        isForward[value.whole] = false;
    // In the bytes of another.
    for (const StepOp &op : graph.ops)
      for (const StepOp::Sharing &pair : op.sharing)
        if (pair.isForced)
          isForward[op.writes[pair.write]] = false;
  }

  /// Bytes of those that a plan has when `op`, behind the forward pass, runs:
  /// what that reads, and what a rule keeps for it or a later one.
  int64_t getBytes(int64_t op) const {
    int64_t bytes = 0;
    const std::vector<int64_t> &reads = graph.ops[op].reads;
    for (size_t v = 0; v < graph.values.size(); ++v) {
      const StepValue &value = graph.values[v];
      if (!isForward[v] || value.outlives || value.whole >= 0)
        continue;
      bool isKept = value.rule == StepValue::Rule::Keep && lastReader[v] >= op;
      if (isKept || std::count(reads.begin(), reads.end(), int64_t(v)))
        bytes += value.bytes;
    }
    return bytes;
  }

private:
  const StepGraph &graph;
  std::vector<bool> isForward;
  std::vector<int64_t> lastReader; ///< behind the forward pass; -1: none
};
} // namespace

int64_t reprise::solver::getLeastPeak(const StepGraph &graph) {
  ForwardValues forward(graph);
  StepSimulator simulator(graph);
  const StepRun &run = simulator.run(keepAll(graph));
  int64_t least = 0;
  for (size_t p = 0; p < run.schedule.size(); ++p) {
    auto [op, isReplay] = run.schedule[p];
    if (!isReplay && graph.ops[op].phase != StepPhase::Forward)
      least =
          std::max(least, simulator.getGradientBytes(p) + forward.getBytes(op));
  }
  return least;
}
