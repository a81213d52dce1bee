//===- Budget.cpp - The cheapest plan for every budget --------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Curve.h"

#include <algorithm>

using namespace reprise::solver;

BudgetCurve::BudgetCurve(const StepGraph &graph, const BudgetOptions &options) {
  if (options.isSearched) {
    reason = "asked for a search";
  } else if (std::optional<Chain> chain = Chain::find(graph, reason)) {
    auto solved = std::make_unique<ChainSolver>(std::move(*chain), options);
    points = solved->getPoints();
    solver = std::move(solved);
    if (!points.empty())
      return;
    reason = "rules drop what joins layers further apart than a segment of " +
             std::to_string(kMostSegmentLayers);
  }
  solver = std::make_unique<GraphSolver>(graph, options);
  points = solver->getPoints();
}

BudgetCurve::~BudgetCurve() = default;

KeptValues BudgetCurve::getPlan(size_t point) const {
  return solver->getPlan(point);
}

int64_t BudgetCurve::find(int64_t bytes) const {
  auto behind = std::upper_bound(
      points.begin(), points.end(), bytes,
      [](int64_t peak, const BudgetPoint &point) { return peak < point.peak; });
  return behind - points.begin() - 1;
}

std::vector<std::pair<int64_t, int64_t>>
BudgetCurve::getSegments(size_t point) const {
  return solver->getSegments(point);
}

std::vector<StepStage>
reprise::solver::takeStages(const StepGraph &graph,
                            const std::vector<int64_t> &layers,
                            const std::vector<int64_t> &homes) {
  std::string why;
  std::optional<Chain> chain = Chain::find(graph, why);
  if (!chain || layers.empty())
    return {};
  // Embedding, layers, head; a head between layers comes with the one behind
  // it, which predicts further tokens, as does the last stage alone.
  std::vector<int64_t> behindLayer = {1}, ends;
  for (size_t block = 0; block < chain->blocks.size(); ++block)
    if (chain->blocks[block].layer >= 0)
      behindLayer.push_back(block + 1);
  size_t behind = 0;
  for (int64_t count : layers) {
    behind += count;
    if (count < 0 || behind >= behindLayer.size())
      return {};
    ends.push_back(behindLayer[behind]);
  }
  if (behind + 1 != behindLayer.size())
    return {};
  ends.back() = chain->blocks.size();
  if (!homes.empty())
    chain->moveOps(homes, ends);
  std::vector<StepStage> stages;
  int64_t begin = 0;
  for (int64_t end : ends) {
    Excerpt stage = extractStage(*chain, begin, end - begin);
    stages.push_back({std::move(stage.graph), std::move(stage.values)});
    begin = end;
  }
  return stages;
}
