//===- RandomSteps.h - Small steps to try solvers on ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_UNIT_SOLVER_RANDOMSTEPS_H
#define REPRISE_TEST_UNIT_SOLVER_RANDOMSTEPS_H

#include "reprise/Solver/StepGraph.h"

#include <random>

namespace reprise::solver {

/// Builds a step op by op.
struct StepBuilder {
  StepGraph graph;

  int64_t addValue(std::string name, int64_t bytes, bool isFree = false) {
    StepValue value;
    value.name = std::move(name);
    value.bytes = bytes;
    if (isFree)
      value.rule = StepValue::Rule::Free;
    graph.values.push_back(std::move(value));
    return graph.values.size() - 1;
  }

  StepOp &addOp(std::string name, StepPhase phase, int64_t layer,
                double seconds, std::vector<int64_t> reads,
                std::vector<int64_t> writes) {
    StepOp op;
    op.name = std::move(name);
    op.phase = phase;
    op.layer = layer;
    op.seconds = seconds;
    op.reads = std::move(reads);
    op.writes = std::move(writes);
    graph.ops.push_back(std::move(op));
    return graph.ops.back();
  }
};

/// A chain of `layers` layers of `kinds` kinds, each of `width` values beside
/// the one that leaves it, with sizes, seconds and readers at random; an
/// embedding before and a loss behind. Each backward pass makes something that
/// the update alone reads. With `keepsResidual`, what joins layers is always
/// kept.
inline StepGraph makeRandomChain(unsigned seed, int64_t layers, int64_t width,
                                 int64_t kinds = 1,
                                 bool keepsResidual = false) {
  StepBuilder builder;
  std::mt19937 random(seed);
  auto pick = [&](int64_t count) { return int64_t(random() % count); };
  struct Kind {
    std::vector<int64_t> bytes;
    std::vector<double> seconds;
    std::vector<std::vector<int64_t>> reads; ///< by op; 0 is what enters
    std::vector<std::vector<int64_t>> backward;
    std::vector<int64_t> workspace;
    int64_t sums; ///< bytes
  };
  std::vector<Kind> all(kinds);
  for (Kind &kind : all) {
    for (int64_t op = 0; op <= width; ++op) {
      kind.bytes.push_back(op < width ? 1 + pick(9) : 4);
      kind.seconds.push_back(1 + pick(20));
      std::vector<int64_t> reads = {op};
      if (op > 0 && pick(2))
        reads.push_back(pick(op));
      kind.reads.push_back(reads);
    }
    int64_t steps = 2 + pick(2);
    for (int64_t step = 0; step < steps; ++step) {
      std::vector<int64_t> reads;
      for (int64_t value = 0; value < width + 1; ++value)
        if (pick(3) == 0)
          reads.push_back(value);
      kind.backward.push_back(reads);
      kind.workspace.push_back(pick(6));
    }
    // The last to run reads what entered.
    kind.backward.back().push_back(0);
    kind.sums = 1 + pick(3);
  }

  int64_t residual = builder.addValue("x", 4, !keepsResidual);
  builder.addOp("embedding", StepPhase::Forward, -1, 2, {}, {residual});
  std::vector<std::vector<int64_t>> values;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const Kind &kind = all[layer % kinds];
    values.push_back({residual});
    for (int64_t op = 0; op <= width; ++op) {
      std::string name = "l" + std::to_string(layer) + "." + std::to_string(op);
      int64_t made =
          builder.addValue(name, kind.bytes[op], !keepsResidual || op < width);
      std::vector<int64_t> reads;
      for (int64_t read : kind.reads[op])
        reads.push_back(values.back()[read]);
      builder.addOp(name, StepPhase::Forward, layer, kind.seconds[op], reads,
                    {made});
      values.back().push_back(made);
    }
    residual = values.back().back();
  }
  int64_t gradient = builder.addValue("dx", 4);
  std::vector<int64_t> sums;
  builder.addOp("loss", StepPhase::Backward, -1, 1, {residual}, {gradient})
      .workspace = 3;
  for (int64_t layer = layers - 1; layer >= 0; --layer) {
    const Kind &kind = all[layer % kinds];
    for (size_t step = 0; step < kind.backward.size(); ++step) {
      int64_t next = builder.addValue("d", 4);
      std::vector<int64_t> reads = {gradient};
      for (int64_t read : kind.backward[step])
        reads.push_back(values[layer][read]);
      StepOp &op = builder.addOp("d" + std::to_string(layer),
                                 StepPhase::Backward, layer, 3, reads, {next});
      op.workspace = kind.workspace[step];
      op.sharing.push_back({0, 0, false});
      gradient = next;
      if (step == 0) {
        sums.push_back(builder.addValue("sums", kind.sums));
        op.writes.push_back(sums.back());
      }
    }
  }
  sums.push_back(gradient);
  builder.addOp("update", StepPhase::Update, -1, 1, sums, {});
  return builder.graph;
}

} // namespace reprise::solver

#endif // REPRISE_TEST_UNIT_SOLVER_RANDOMSTEPS_H
