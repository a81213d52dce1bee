//===- LayerPlans.h - What a layer may keep, and what of it -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_SOLVER_LAYERPLANS_H
#define REPRISE_LIB_SOLVER_LAYERPLANS_H

#include "Layers.h"
#include "reprise/Solver/Budget.h"
#include <map>

namespace reprise::solver {

/// A way to run one block, or a few neighbours that keep only what enters the
/// first of them and what leaves the last.
struct LayerPlan {
  std::vector<bool> kept;   ///< by slot, block after block
  int64_t saved = 0;        ///< bytes between forward and backward
  int64_t forwardNeed = 0;  ///< most bytes alive during the forward passes
  int64_t backwardNeed = 0; ///< and during the backward passes
  double seconds = 0;       ///< of replays
};

/// The plans of the blocks of a chain, each kind of block looked at once.
class LayerPlans {
public:
  explicit LayerPlans(const Chain &chain) : chain(chain) {}

  /// Plans for `count` blocks from `first` on, none better than another in all
  /// respects, those that save least first. Segments have the same slots kept
  /// in each block.
  const std::vector<LayerPlan> &get(int64_t first, int64_t count);

  /// The kind of a block: equal numbers for blocks with equal plans.
  int64_t getKind(int64_t block);

private:
  std::vector<LayerPlan> enumerate(const Excerpt &excerpt, int64_t block);
  std::vector<LayerPlan> extend(const Excerpt &excerpt, int64_t first,
                                int64_t count);

  const Chain &chain;
  std::map<std::string, std::vector<LayerPlan>> plans;
  std::map<std::pair<int64_t, int64_t>, const std::vector<LayerPlan> *> found;
  std::map<std::string, int64_t> kinds;
  std::map<int64_t, int64_t> kindOf;
};

/// Without those that are no better in any respect than another one.
void keepBest(std::vector<LayerPlan> &plans);

} // namespace reprise::solver

#endif // REPRISE_LIB_SOLVER_LAYERPLANS_H
